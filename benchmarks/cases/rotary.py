# SPDX-License-Identifier: BSD-3-Clause
"""Rotary embeddings: queries and keys rotated in place, in float32 and 16 bits, one token, and tables in every form."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

import fastpe
from benchmarks import machine, oracle, parts, peers
from benchmarks.answers import InPlace, Rotated, dtype_owners, equals, is_incremented
from benchmarks.harness import Bar, Case, Contender, Factory, Selection

Array = npt.NDArray[Any]

_columns = 128
_loops = [parts.careful, parts.careful_far]
# [B, heads, L, D], and [B, L, heads, D] with seq_axis=-3.
_shapes = (((1, 32, 2048, _columns), -2), ((8, 32, 512, _columns), -2), ((1, 2048, 32, _columns), -3))
_table_rows = 131_072
one_token = "decode q [1, 32, 1, 128] and k [1, 8, 1, 128]"
_max_len = 4096


def _pairing(interleaved: bool) -> str:
    return "interleaved" if interleaved else "halves"


def _positions(shape: tuple[int, ...], seq_axis: int) -> Array:
    """Of each row of an array, one after the other."""
    length = shape[seq_axis]
    along = np.arange(length).reshape([-1 if axis == len(shape) + seq_axis else 1 for axis in range(len(shape) - 1)])
    return np.broadcast_to(along, shape[:-1]).ravel()


def _embedding(interleaved: bool = False, max_len: int = 0) -> Any:
    return fastpe.RotaryEmbedding(_columns, interleaved=interleaved, max_len=max_len)


def _rotate(selection: Selection, *, shape: tuple[int, ...], seq_axis: int, interleaved: bool, name: str) -> Case:
    buffer = InPlace.of(shape)
    x = buffer.x
    check = Rotated(_positions(shape, seq_axis), buffer.before.reshape(-1, _columns), interleaved).check
    rows, heads_inside = shape[seq_axis], seq_axis == -3

    def own(name: str, rope: Any, encoding: Any) -> Contender:
        work = functools.partial(rope.rotate_, x, seq_axis=seq_axis)
        return Contender(name=name, work=work, check=check, encoding=encoding, output="in place")

    contenders = [
        own("fastpe", _embedding(interleaved), "own"),
        own("fastpe, max_len", _embedding(interleaved, rows), "cached"),
    ]
    if selection.rivals:
        cosines, sines = _embedding().tables(rows)
        pairs = {"interleaved": interleaved, "heads_inside": heads_inside}
        contenders += [
            *peers.rotators(x, cosines, sines, check, **pairs),
            *parts.increments(buffer),
            *parts.careful_rotation(x, cosines, sines, check, interleaved=interleaved, heads_inside=heads_inside),
        ]
    bars = [
        Bar(requirement="beside x + 1", rivals=[parts.increment], at_least=0.85, limits=_loops),
        Bar(requirement="beside NumPy's idiom", rivals=[peers.numpy_rotary], at_least=10, limits=_loops),
        Bar(requirement="beside torch eager", rivals=[peers.torch_rotary], at_least=10, limits=_loops),
        Bar(requirement="beside onnxruntime", rivals=[peers.onnx_rotary], at_least=2, limits=_loops),
    ]
    return Case(name=name, bytes_moved=2 * x.nbytes, contenders=contenders, bars=bars, reset=buffer.reset)


def _elsewhere(selection: Selection, *, name: str) -> Case:
    """Into another array."""
    shape, seq_axis = _shapes[0]
    x = InPlace.of(shape).x
    out = np.zeros_like(x)
    rope = _embedding()
    check = Rotated(_positions(shape, seq_axis), x.reshape(-1, _columns), interleaved=False).check
    contenders = [Contender(name="fastpe", work=lambda: rope.rotate(x, out=out), check=check)]
    if selection.rivals:
        contenders.append(
            Contender(
                name=_numpy_increment,
                work=lambda: np.add(x, np.float32(1), out=out),
                check=is_incremented(x),
                encoding="none",
            )
        )
        cosines, sines = rope.tables(shape[seq_axis])
        contenders += parts.careful_rotation(x, cosines, sines, check, interleaved=False, heads_inside=False, out=out)
    bar = Bar(requirement="beside x + 1", rivals=[_numpy_increment], at_least=0.85, limits=_loops)
    return Case(name=name, bytes_moved=2 * x.nbytes, contenders=contenders, bars=[bar])


_numpy_increment = "NumPy np.add(x, 1, out=out)"


def _sixteen_bits(selection: Selection, *, name: str) -> Case:
    shape, seq_axis = _shapes[0]
    rope, buffers, contenders = _embedding(), [], []
    for dtype in dtype_owners():
        buffer = InPlace.of(shape, dtype)
        buffers.append(buffer)
        check = Rotated(_positions(shape, seq_axis), buffer.before.reshape(-1, _columns), interleaved=False).check
        work = functools.partial(rope.rotate_, buffer.x)
        contenders.append(Contender(name=f"fastpe {dtype}", work=work, check=check, output="in place"))

    def reset() -> None:
        for buffer in buffers:
            buffer.reset()

    config = fastpe.show_config()
    bars = [
        Bar(
            requirement="float16, of the float32 time",
            contender="fastpe float16",
            rivals=["fastpe float32"],
            at_most=0.6,
        )
    ]
    if config["threads"] == 1 and len(buffers) > 2:
        share = 0.85 if config["instruction_set"] == "avx512" else 1.1
        bars.append(
            Bar(
                requirement="bfloat16, of the float32 time",
                contender="fastpe bfloat16",
                rivals=["fastpe float32"],
                at_most=share,
            )
        )
    return Case(
        name=name,
        bytes_moved=2 * buffers[-1].x.nbytes,
        contenders=contenders,
        bars=bars if not machine.is_in_cache(buffers[-1].x.nbytes) else [],
        reset=reset,
        note="GB/s are those of the 16-bit arrays",
    )


def _numpy_add() -> list[Contender]:
    buffer = InPlace.of((1, 1, 768))
    row = fastpe.encode(1, 768)[0]
    return [
        Contender(
            name=_numpy_row,
            work="x += row",
            names={"x": buffer.x, "row": row},
            check=equals(buffer.before + row),
            encoding="cached",
            output="in place",
        )
    ]


_numpy_row = "NumPy x += row, [1, 1, 768]"


def _decode(selection: Selection, *, name: str) -> Case:
    """Queries and keys of one token, in one call."""
    position = 1234
    queries, keys = InPlace.of((1, 32, 1, _columns)), InPlace.of((1, 8, 1, _columns))
    rope = _embedding(max_len=_max_len)
    check = Rotated(np.full(32, position), queries.before.reshape(-1, _columns), interleaved=False).check
    names = {"x": queries.x, "k": keys.x, "position": position}
    contenders = [
        Contender(
            name="fastpe, max_len",
            work="rotate_(x, k, offset=position)",
            names={**names, "rotate_": rope.rotate_},
            check=check,
            encoding="cached",
            output="in place",
        )
    ]
    if selection.rivals:
        cosines, sines = rope.tables([position], form="tile")

        def usual(x: Array, k: Array) -> Array:
            turned = [np.concatenate([-each[..., 64:], each[..., :64]], axis=-1) for each in (x, k)]
            rotated = [each * cosines + half * sines for each, half in zip((x, k), turned, strict=True)]
            return np.asarray(rotated[0])

        contenders += [
            Contender(name=peers.numpy_rotary, work=lambda: usual(queries.x, keys.x), check=check, encoding="cached"),
            *_numpy_add(),
        ]

    def reset() -> None:
        queries.reset()
        keys.reset()

    bars = [
        Bar(
            requirement="of the time of NumPy's idiom",
            contender="fastpe, max_len",
            rivals=[peers.numpy_rotary],
            at_most=0.15,
        ),
        Bar(
            requirement="of the time of NumPy's x += row, [1, 1, 768]",
            contender="fastpe, max_len",
            rivals=[_numpy_row],
            at_most=1.2,
        ),
    ]
    return Case(
        name=name, bytes_moved=2 * (queries.x.nbytes + keys.x.nbytes), contenders=contenders, bars=bars, reset=reset
    )


def _one_row_of_tables(selection: Selection, *, name: str) -> Case:
    position = 1234
    rope = _embedding(max_len=_max_len)
    out = (np.empty((1, 64), np.float32), np.empty((1, 64), np.float32))
    exact = oracle.encoding([position], _columns, concatenated=True)

    def check(answer: Any) -> float:
        error = np.abs(out[0] - exact[:, 64:]).max()
        assert error <= 2**-25 + 1e-15, f"off by {error:.3g}"
        return float(error)

    contenders = [
        Contender(
            name="fastpe, max_len",
            work='tables(1, offset=position, form="halves", out=out)',
            names={"tables": rope.tables, "position": position, "out": out, "x": out[0]},
            check=check,
            encoding="cached",
        )
    ]
    if selection.rivals:
        contenders += _numpy_add()
    bar = Bar(
        requirement="of the time of NumPy's x += row, [1, 1, 768]",
        contender="fastpe, max_len",
        rivals=[_numpy_row],
        at_most=0.5,
    )
    return Case(name=name, bytes_moved=512, contenders=contenders, bars=[bar])


def _forms(selection: Selection, *, form: str, name: str) -> Case:
    """Beside the encoding of as many bytes."""
    rope = _embedding()
    shapes = {
        "halves": 2 * [64],
        "tile": 2 * [128],
        "repeat": 2 * [128],
        "pairs": [64, 2],
        "angles": [64],
        "complex": [64],
    }
    dtype = np.complex64 if form == "complex" else np.float32
    if form in ("halves", "tile", "repeat"):
        parts_of = tuple(np.empty((_table_rows, width), dtype) for width in shapes[form])
        out: Any = parts_of
    else:
        width = shapes.get(form, [128])
        out = np.empty((_table_rows, *width), dtype)
        parts_of = (out,)
    total = sum(part.nbytes for part in parts_of)
    d_model = total // _table_rows // 4
    encoding = np.empty((_table_rows, d_model), np.float32)
    encoder = fastpe.PositionalEncoding(d_model)
    sampled = np.unique(np.linspace(0, _table_rows - 1, 1024).astype(np.int64))
    expected = rope.tables(sampled, form=form)

    def check(answer: Any, tolerance: float = 0.0) -> float:
        wanted, found = (a if isinstance(a, tuple) else (a,) for a in (expected, answer))
        error = max(float(np.abs(part[sampled] - rows).max()) for part, rows in zip(found, wanted, strict=True))
        assert error <= tolerance, f"off by {error:.3g} from the rows of these positions"
        return error

    contenders = [
        Contender(name="fastpe tables", work=lambda: rope.tables(_table_rows, form=form, out=out), check=check),
        Contender(
            name="fastpe encode, as many bytes",
            work=lambda: encoder.encode(_table_rows, out=encoding),
            check=lambda answer: equals(encoder.encode(sampled))(answer[sampled]),
        ),
    ]
    if selection.rivals and form in ("halves", "tile", "repeat"):
        waves, close = parts.Waves.of_tables(_columns), functools.partial(check, tolerance=2e-7)
        contenders += parts.careful_expansions(_table_rows, waves, close, placing=form)
    if selection.rivals and form == "angles":
        # The careful loop multiplies once, in double.
        last_place = float(np.spacing(np.float32(_table_rows)))
        contenders += parts.careful_angles(_table_rows, _columns, functools.partial(check, tolerance=last_place))
    bar = Bar(
        requirement="of the time of encode of as many bytes",
        contender="fastpe tables",
        rivals=["fastpe encode, as many bytes"],
        at_most=1.1,
        limits=[parts.careful, parts.careful_streaming],
    )
    return Case(name=name, bytes_moved=total, contenders=contenders, bars=[bar])


def factories() -> dict[str, Factory]:
    found: dict[str, Factory] = {}
    for shape, seq_axis in _shapes:
        for interleaved in (False, True):
            name = f"rotate_ {list(shape)}, {_pairing(interleaved)}" + (", seq_axis=-3" if seq_axis == -3 else "")
            found[name] = functools.partial(_rotate, shape=shape, seq_axis=seq_axis, interleaved=interleaved, name=name)
    for name, factory in (
        ("rotate(x, out=) [1, 32, 2048, 128], halves", _elsewhere),
        ("rotate_ 16 bits [1, 32, 2048, 128]", _sixteen_bits),
        (one_token, _decode),
        ("tables of one row, d = 128, out=", _one_row_of_tables),
    ):
        found[name] = functools.partial(factory, name=name)
    for form in ("halves", "tile", "repeat", "cos_sin", "sin_cos", "pairs", "complex", "angles"):
        name = f'tables({_table_rows}), d = 128, "{form}"'
        found[name] = functools.partial(_forms, form=form, name=name)
    return found
