# SPDX-License-Identifier: BSD-3-Clause
"""The cases: work that users have, each in one state, with the bars that hold on every machine.

A builder yields fastpe's contender, then those of NumPy and torch in the fastest way that their users have for the state.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

import fastpe
from benchmarks.answers import (
    Check,
    Expected,
    added,
    embeddings,
    encoded,
    equals,
    float32_angles,
    resized,
    rotated,
    tables,
)
from benchmarks.graphs import graph_cases
from benchmarks.harness import Array, Bar, Case, Contender, Shape
from benchmarks.rivals import (
    both,
    frequencies,
    host_loop,
    interpolate,
    module,
    new_encoding,
    new_tables,
    onnx_rotate,
    steps,
)

_exact = 2e-15  # what fastpe promises before the one rounding, and the error of the reference
_rounded = 2.0**-25  # an encoding that was rounded to float32
_rotation = 1e-6  # cosine, sine, two products and a sum, rounded
_max_len = 4096


def _own(work: str, check: Check, **names: Any) -> Contender:
    return Contender(name="fastpe", work=work, names=names, check=check, kind="fastpe")


def _zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def _take(ids: str, out: str) -> dict[str, str]:
    """Rows of a table, into a given array; with mode="raise", NumPy writes to a buffer of its own first."""
    numpy = f'xp.take(table, {ids}, axis=0, out={out}, mode="clip")'
    return {"work": numpy, "torch": f"xp.index_select(table, 0, {ids}, out={out})"}


def _encode(shape: Shape, *, array: Array, encoding: str, first: bool) -> Iterator[Contender]:
    length, columns = shape
    expected, out = encoded(np.arange(length), columns), _zeros(*shape)
    make = functools.partial(fastpe.PositionalEncoding, columns, max_len=length if encoding == "kept" else 0)
    names = {"make": make, "encode": make().encode, "length": length, "out": out}
    call = "make().encode(length" if first else "encode(length"
    yield _own(f"{call})" if array == "new" else f"{call}, out=out)", expected.within(_exact), **names)
    if encoding == "kept":
        table, check = fastpe.encode(length, columns), expected.within(_rounded)
        yield from both(check, steps("setitem(out, ..., table)", "out"), table=table, out=out)
        return
    check = expected.within(float32_angles(np.arange(length)))
    position = np.arange(length, dtype=np.float32)[:, None]
    values: dict[str, Any] = {"position": position, "frequency": frequencies(columns)}
    if array == "new":
        frequency = "own(frequencies(columns))" if first else "frequency"
        functions: dict[str, Any] = {"new_encoding": new_encoding, "frequencies": frequencies, "columns": columns}
        yield from both(check, f"new_encoding(xp, position, {frequency})", **values, **functions)
        names = {"full": np.full, "shape": shape, "value": np.float32(1.5)}
        yield Contender(name="np.full", work="full(shape, value)", names=names, check=equals(1.5), kind="limit")
        return
    half = _zeros(length, columns // 2)
    values |= {"out": out, "angle": half, "wave": half, "even": "out[:, 0::2]", "odd": "out[:, 1::2]"}
    angles = "xp.multiply(position, frequency, out=angle)"
    work = steps(angles, "xp.sin(angle, out=even)", "xp.cos(angle, out=odd)", "out")
    torch = steps(angles, "even.copy_(xp.sin(angle, out=wave))", "odd.copy_(xp.cos(angle, out=wave))", "out")
    yield from both(check, work, torch=torch, **values)
    names = {"out": (filled := _zeros(*shape)), "fill": filled.fill}
    yield Contender(name="out.fill", work=steps("fill(1.5)", "out"), names=names, check=equals(1.5), kind="limit")


def _descending(shape: Shape) -> Iterator[Contender]:
    length, columns = shape
    call, ascending = fastpe.PositionalEncoding(columns, max_len=0).encode, np.arange(length)
    for name, positions in (("fastpe", ascending[::-1].copy()), ("ascending", ascending)):
        names = {"encode": call, "positions": positions, "out": _zeros(*shape)}
        own = _own("encode(positions, out=out)", encoded(positions, columns).within(_exact), **names)
        yield own if name == "fastpe" else dataclasses.replace(own, name=name, kind="reference")


def _increments(before: Any) -> Iterator[Contender]:
    """What reading and writing x takes."""
    return both(equals(before + np.float32(1)), "iadd(x, 1)", way=" x + 1", kind="limit", x=before)


def _add(shape: Shape, *, array: Array, dtype: str) -> Iterator[Contender]:
    """By an encoder that was made without max_len, as most are."""
    batch, length, columns = shape
    before = embeddings(shape, module("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype)
    encoder = fastpe.PositionalEncoding(columns)
    expected = added(before, np.tile(np.arange(length), batch))
    own_error = _rounded if dtype == "float32" else 5e-7  # 16-bit values are added in float32
    table_error = {"float32": _rounded, "float16": 2.0**-12, "bfloat16": 2.0**-9}[dtype]
    names = {"add": encoder.add if array == "new" else encoder.add_, "x": before.copy()}
    yield _own("add(x)", expected.within(own_error), **names)
    table = fastpe.encode(length, columns).astype(before.dtype)
    work = "x + table" if array == "new" else "iadd(x, table)"
    yield from both(expected.within(table_error), work, x=before, table=table)
    if dtype == "float32" and array != "new" and batch > 1:
        yield from _increments(before)


def _add_channels_first(shape: Shape) -> Iterator[Contender]:
    """x [B, channels, L], which fastpe takes as a view [B, L, channels]."""
    batch, channels, length = shape
    before = embeddings(shape)
    check = added(before.transpose(0, 2, 1), np.tile(np.arange(length), batch)).within(_rounded)
    encoder = fastpe.PositionalEncoding(channels)
    yield _own("add_(x)", check, add_=encoder.add_, x=before.copy().transpose(0, 2, 1))
    table = np.ascontiguousarray(fastpe.encode(length, channels).T)
    yield from both(check, "iadd(x, table).swapaxes(1, 2)", x=before, table=table)


def _encode_channels_first(shape: Shape) -> Iterator[Contender]:
    length, columns = shape
    check, encode = encoded(np.arange(length), columns).within(_exact), fastpe.PositionalEncoding(columns).encode
    names = {"encode": encode, "length": length, "out": _zeros(columns, length).T, "setitem": operator.setitem}
    own = _own("encode(length, out=out)", check, **names)
    copied = steps("setitem(out, ..., encode(length))", "out")
    yield from (own, dataclasses.replace(own, name="encode and copy", work=copied, kind="reference"))


def _add_scattered(shape: Shape, *, shared: bool) -> Iterator[Contender]:
    """At random positions, for all sequences or for each one."""
    columns, axes = shape[2], shape[1:2] if shared else shape[:2]
    before, positions = embeddings(shape), np.random.default_rng(9).integers(0, _max_len, axes)
    check = added(before, np.broadcast_to(positions, shape[:2]).ravel()).within(_rounded)
    encoder = fastpe.PositionalEncoding(columns, max_len=_max_len)
    encoder.warm_up()
    names = {"add_": encoder.add_, "x": before.copy(), "positions": positions}
    yield _own("add_(x, positions=positions)", check, **names)
    table = fastpe.encode(_max_len, columns)
    yield from both(check, "iadd(x, table[positions])", x=before, table=table, positions=positions)


def _rotate_scattered(shape: Shape) -> Iterator[Contender]:
    """At random positions, as candidates of a tree of tokens are, beside a run of them."""
    before, length = embeddings(shape), shape[2]
    rope = fastpe.RotaryEmbedding(shape[-1], interleaved=False, max_len=_max_len)
    rope.warm_up()
    scattered = np.random.default_rng(9).integers(0, _max_len, length)
    for name, positions in (("fastpe", scattered), ("a run", np.arange(length) + 100)):
        check = rotated(before, np.tile(positions, shape[0] * shape[1]), interleaved=False).within(_rotation)
        names = {"rotate_": rope.rotate_, "x": before.copy(), "positions": positions}
        own = _own("rotate_(x, positions=positions, seq_axis=-2)", check, **names)
        yield own if name == "fastpe" else dataclasses.replace(own, name=name, kind="reference")


def _embed(shape: Shape) -> Iterator[Contender]:
    batch, length, columns = shape
    table = embeddings((2 * batch * length, columns))
    ids = np.random.default_rng(3).integers(0, len(table), (batch, length))
    scale = float(np.float32(np.sqrt(columns)))
    check = added(table[ids], np.tile(np.arange(length), batch), scale).within(1e-5)
    names = {"ids": ids, "table": table, "scale": scale, "out": _zeros(*shape)}
    call = fastpe.PositionalEncoding(columns).embed
    yield _own("embed(ids, table, scale=scale, out=out)", check, embed=call, **names)
    values = {**names, "rows": fastpe.encode(length, columns), "flat_ids": "ids.ravel()"}
    values |= {"flat": f"out.reshape(-1, {columns})"}
    rest = ["xp.multiply(out, scale, out=out)", "xp.add(out, rows, out=out)"]
    yield from both(check, **{name: steps(take, *rest) for name, take in _take("flat_ids", "flat").items()}, **values)


def _decode(shape: Shape) -> Iterator[Contender]:
    batch, _, columns = shape
    before, offsets = embeddings(shape), np.random.default_rng(5).integers(0, _max_len, batch)
    check = added(before, offsets).within(_rounded)
    encoder, offset = fastpe.PositionalEncoding(columns, max_len=_max_len), int(offsets[0])
    encoder.warm_up()
    names = {"add_": encoder.add_, "x": before.copy(), "offset": offset if batch == 1 else offsets}
    yield _own("add_(x, offset=offset)", check, **names)
    values: dict[str, Any] = {"x": before[:, 0], "table": fastpe.encode(_max_len, columns)}
    if batch == 1:
        yield from both(check, "iadd(x, table[offset])", **values, offset=offset)
        return
    take = {name: steps(take, "iadd(x, rows)") for name, take in _take("offsets", "rows").items()}
    yield from both(check, **take, **values, offsets=offsets, rows=before[:, 0])


def _chunk(shape: Shape) -> Iterator[Contender]:
    """At a position whose angle float32 cannot tell: the rivals compute it in float64."""
    _, length, columns = shape
    before, late, add_ = embeddings(shape), 10_000_000, fastpe.PositionalEncoding(columns, max_len=0).add_
    late_check, early_check = (added(before, offset + np.arange(length)).within(1e-7) for offset in (late, 0))
    yield _own("add_(x, offset=offset)", late_check, add_=add_, x=before.copy(), offset=late)
    early = _own("add_(x, offset=offset)", early_check, add_=add_, x=before.copy(), offset=0)
    yield dataclasses.replace(early, name="position 0", kind="reference")
    position, frequency = late + np.arange(length)[:, None] + 0.0, 10000.0 ** (-np.arange(0, columns, 2) / columns)
    values: dict[str, Any] = {"x": before, "rows": np.zeros((length, columns))}
    values |= {"even": "rows[:, 0::2]", "odd": "rows[:, 1::2]"}
    values |= {"position": position, "frequency": frequency, "angle": position * frequency}
    waves = ["xp.multiply(position, frequency, out=angle)", "xp.sin(angle, out=even)", "xp.cos(angle, out=odd)"]
    yield from both(late_check, steps(*waves, "iadd(x, rows)"), **values)


def _idiom(before: Any, cosines: Any, sines: Any, *, interleaved: bool) -> dict[str, Any]:
    """x * cos + rotate_half(x) * sin in place, with all arrays at hand; torch's work is for halves only."""
    half = before.shape[-1] // 2
    first, second = ("::2", "1::2") if interleaved else (f":{half}", f"{half}:")
    views = {f"{name}_{i}": f"{name}[..., {part}]" for name in ("x", "turned") for i, part in ((1, first), (2, second))}
    wide = [np.repeat(each, 2, axis=-1) if interleaved else np.tile(each, 2) for each in (cosines, sines)]
    values: dict[str, Any] = {"x": before, "turned": np.zeros_like(before), **views, "cos": wide[0], "sin": wide[1]}
    numpy = ["xp.negative(x_2, out=turned_1)", "setitem(turned_2, ..., x_1)", "xp.multiply(turned, sin, out=turned)"]
    numpy += ["xp.multiply(x, cos, out=x)", "xp.add(x, turned, out=x)"]
    torch = ["xp.mul(x_1, half_sin, out=turned_1)", "x_1.mul_(half_cos).addcmul_(x_2, half_sin, value=-1)"]
    torch += ["x_2.mul_(half_cos).add_(turned_1)", "x"]
    values |= {"work": steps(*numpy), "torch": "" if interleaved else steps(*torch)}
    return {**values, "half_cos": cosines, "half_sin": sines}


def _rotate(shape: Shape, *, array: Array, interleaved: bool, seq_axis: int) -> Iterator[Contender]:
    """Queries or keys, [B, heads, L, D] or with seq_axis=-3 [B, L, heads, D]."""
    before, length = embeddings(shape), shape[seq_axis]
    along = np.arange(length)[:, None] if seq_axis == -3 else np.arange(length)
    positions = np.broadcast_to(along, shape[:-1]).ravel()
    check = rotated(before, positions, interleaved=interleaved).within(_rotation)
    rope = fastpe.RotaryEmbedding(shape[-1], interleaved=interleaved)
    cosines, sines = (table[:, None] if seq_axis == -3 else table for table in rope.tables(length))
    x, out = before.copy(), _zeros(*shape)
    if array == "given":
        names = {"x": x, "out": out, "seq_axis": seq_axis}
        yield _own("rotate(x, out=out, seq_axis=seq_axis)", check, rotate=rope.rotate, **names)
        changed = {"x": before.copy(), "seq_axis": seq_axis, "rotate_": rope.rotate_}
        in_place = _own("rotate_(x, seq_axis=seq_axis)", check, **changed)
        yield dataclasses.replace(in_place, name="in place", kind="reference")
        copied = {"x": before.copy(), "out": np.zeros_like(before), "copyto": np.copyto}
        work = steps("copyto(out, x)", "out")
        yield Contender(name="np.copyto", work=work, names=copied, check=equals(before), kind="limit")
        if seq_axis == -2:
            yield from onnx_rotate(before, cosines, sines, check, interleaved=interleaved)
    else:
        yield _own("rotate_(x, seq_axis=seq_axis)", check, x=x, seq_axis=seq_axis, rotate_=rope.rotate_)
        yield from both(check, **_idiom(before, cosines, sines, interleaved=interleaved))
        yield from _increments(before)
    if interleaved:  # as in the code of Llama's authors
        values: dict[str, Any] = {"x": before, "rotation": (cosines + 1j * sines).astype(np.complex64)}
        values |= {"out": out if array == "given" else "x", "z": "x.view(xp.complex64)", "y": "out.view(xp.complex64)"}
        yield from both(check, steps("xp.multiply(z, rotation, out=y)", "out"), way=" (complex)", **values)


def _rotate_columns(shape: Shape) -> Iterator[Contender]:
    """Queries [L, heads, D] out of the columns of a projection, far into a text, as ggml's hosts rotate them."""
    (length, heads, columns), past = shape, 100_000
    x = embeddings((length, (heads + 16) * columns))[:, : heads * columns].reshape(shape)
    expected = rotated(x, np.repeat(past + np.arange(length), heads), interleaved=True)
    rotate = fastpe.RotaryEmbedding(columns, interleaved=True, max_len=0).rotate
    names = {"rotate": rotate, "x": x, "past": past, "out": _zeros(*shape)}
    yield _own("rotate(x, out=out, offset=past, seq_axis=0)", expected.within(_rotation), **names)
    yield from host_loop(x, past, expected.within(float32_angles(past + np.arange(length))))


def _decode_rotation(shape: Shape) -> Iterator[Contender]:
    """Queries of 32 heads and keys of 8, at one position."""
    position, columns = 1234, shape[-1]
    arrays = queries, keys = embeddings(shape), embeddings((1, 8, 1, columns))
    checks = [rotated(x, np.full(x.shape[1], position), interleaved=False).within(_rotation) for x in arrays]
    rope = fastpe.RotaryEmbedding(columns, interleaved=False, max_len=_max_len)
    rope.warm_up()

    def check(answer: Any) -> float:
        return max(check(rotated) for check, rotated in zip(checks, answer, strict=True))

    names = {"rotate_": rope.rotate_, "q": queries.copy(), "k": keys.copy(), "position": position}
    yield _own("rotate_(q, k, offset=position, seq_axis=-2)", check, **names)
    idioms = [both(checks[i], **_idiom(arrays[i], *rope.tables([position]), interleaved=False)) for i in (0, 1)]
    for q, k in zip(*idioms, strict=True):
        turns = {name: eval(f"lambda: {each.work}", each.names) for name, each in (("q", q), ("k", k))}
        yield dataclasses.replace(q, work="(q(), k())", names=turns, check=check)


def _tables(shape: Shape) -> Iterator[Contender]:
    length, columns = shape
    check = functools.partial(tables, np.arange(length), columns)
    call = fastpe.RotaryEmbedding(columns, interleaved=False, max_len=0).tables
    yield _own("tables(length)", check(absolute=_exact), tables=call, length=length)
    values: dict[str, Any] = {"position": np.arange(length, dtype=np.float32)[:, None], "new_tables": new_tables}
    values["frequency"] = frequencies(columns)
    yield from both(check(absolute=float32_angles(np.arange(length))), "new_tables(xp, position, frequency)", **values)


def _angles(shape: Shape) -> Iterator[Contender]:
    """Products of positions and frequencies, beside cosines and sines in arrays at hand."""
    length, columns = shape
    exact = np.arange(length)[:, None] * 10000.0 ** (-np.arange(0, columns, 2) / columns)
    expected = Expected(length, lambda chosen: exact[chosen])
    call = fastpe.RotaryEmbedding(columns, interleaved=False, max_len=0).tables
    names = {"tables": call, "length": length, "out": _zeros(length, columns // 2)}
    yield _own('tables(length, form="angles", out=out)', expected.within(1e-11), **names)
    halves = {"tables": call, "length": length, "out": (_zeros(length, columns // 2), _zeros(length, columns // 2))}
    check = tables(np.arange(length), columns, absolute=_exact)
    yield dataclasses.replace(_own("tables(length, out=out)", check, **halves), name="halves", kind="reference")
    values: dict[str, Any] = {"position": np.arange(length, dtype=np.float32)[:, None]}
    values |= {"frequency": frequencies(columns), "out": names["out"]}
    work = "xp.multiply(position, frequency, out=out)"
    yield from both(expected.within(float32_angles(np.arange(length))), work, **values)


def _mask(shape: Shape) -> Iterator[Contender]:
    length, keys = shape
    position, key = np.arange(keys - length, keys)[:, None], np.arange(keys)
    expected = equals((key <= position) & (key > position - 1024))
    call = "attention_mask(length, causal=True, past=past, window=1024)"
    yield _own(call, expected, attention_mask=fastpe.attention_mask, length=length, past=keys - length)
    names = {"position": position, "key": key}
    numpy = "(key <= position) & (key > position - 1024)"
    yield Contender(name="NumPy", work=numpy, names=names, check=expected)


def _table_row(shape: Shape, *, form: str) -> Iterator[Contender]:
    position, columns, half, copies = 1234, shape[-1], shape[-1] // 2, 2 if form == "tile" else 1
    check = functools.partial(tables, np.array([position]), columns, copies=copies)
    call = functools.partial(fastpe.RotaryEmbedding(columns, interleaved=False, max_len=0).tables, form=form)
    out = (_zeros(1, copies * half), _zeros(1, copies * half))
    yield _own("tables(1, offset=position, out=out)", check(absolute=_exact), tables=call, position=position, out=out)
    values = {"position": float(position), "frequency": frequencies(columns), "cos": out[0], "sin": out[1]}
    values |= {"angle": _zeros(half), "cos_1": f"cos[0, :{half}]", "sin_1": f"sin[0, :{half}]"}
    values |= {"cos_2": f"cos[0, {half}:]", "sin_2": f"sin[0, {half}:]"}
    work = ["xp.multiply(frequency, position, out=angle)", "xp.cos(angle, out=cos_1)", "xp.sin(angle, out=sin_1)"]
    work += ["setitem(cos_2, ..., cos_1)", "setitem(sin_2, ..., sin_1)"] if form == "tile" else []
    yield from both(check(absolute=float32_angles(np.array([position]))), steps(*work, "(cos, sin)"), **values)


def _resize(shape: Shape, *, images: int = 1) -> Iterator[Contender]:
    """A square grid of DINOv2 for images of other sizes; for torch in the order in which it is resized there."""
    side, *last, columns = shape
    table = embeddings((side * side, columns))
    expected = resized(table, side, (last[0], last[1]))
    shapes = [[last[0] + i % 7, last[1] + i] for i in reversed(range(images))]
    work = '[resize(table, shape, mode="bicubic") for shape in shapes][-1]'
    yield _own(work, expected.within(_exact), resize=fastpe.resize_table, table=table, shapes=shapes)
    yield from interpolate(table, side, shapes, expected.within(1e-4))


def _encode_case(
    length: int, width: int, array: Array, *bars: Bar, encoding: Any = "computed", first: bool = False
) -> Case:
    work = f"encode({length}, {width})" + (", first call" if first else "")
    build = functools.partial(_encode, array=array, encoding=encoding, first=first)
    return Case("encode", work, array, encoding, (length, width), build, bars)


def _add_case(shape: Shape, *bars: Bar, array: Array = "in place", encoding: Any = "kept", dtype: str = "") -> Case:
    work = f"{'add' if array == 'new' else 'add_'} {list(shape)}" + (f", {dtype}" if dtype else "")
    build = functools.partial(_add, array=array, dtype=dtype or "float32")
    return Case("16 bits" if dtype else "add", work, array, encoding, shape, build, bars)


def _rotate_case(shape: Shape, pairing: str, *bars: Bar, array: Array = "in place", seq_axis: int = -2) -> Case:
    work = f"{'rotate' if array == 'given' else 'rotate_'} {list(shape)}, {pairing}"
    work += ", seq_axis=-3" if seq_axis == -3 else ""
    build = functools.partial(_rotate, array=array, interleaved=pairing == "interleaved", seq_axis=seq_axis)
    return Case("rotate", work, array, "kept", shape, build, bars)


def _transposed_case(shape: Shape, least: float) -> Case:
    bars = [Bar(["NumPy"], least, least, "fastpe transposes its rows in each call, NumPy has them transposed")]
    return Case("add", f"add_ {list(shape)}, channels first", "in place", "kept", shape, _add_channels_first, bars)


def _scattered_case(shape: Shape, name: str) -> Case:
    build = functools.partial(_add_scattered, shared=name == "shared")
    work = f"add_ {list(shape)}, {name} random positions"
    obstacle = "each position is checked first, and looked up again to add"
    return Case("add", work, "in place", "kept", shape, build, [Bar(["NumPy"], 0.9, 0.9, obstacle)])


_hidden = functools.partial(dataclasses.replace, page="no")
_shown = functools.partial(dataclasses.replace, page="page and README")


def all_cases() -> list[Case]:
    """In the order of the page. A bar is how many times as fast as a rival, with one thread and with all."""
    full = Bar(["np.full"], 0.75, 1, "a second thread does not make new pages faster")
    filled = Bar(["out.fill"], 0.45, 0.7)
    batch, sequence, new_sum = (Bar(["NumPy", "torch"], least, least) for least in (0.97, 0.88, 0.95))
    incremented = Bar(["NumPy x + 1", "torch x + 1"], 0.8, 0.8, "x + 1 reads no rows")
    onnx = Bar(["onnxruntime"], 2, 1.6)
    descending, late = Bar(["ascending"], 0.8, 0.8), Bar(["position 0"], 1, 1)
    numpy = functools.partial(Bar, ["NumPy"])
    gathered = numpy(3, None, "NumPy's passes move only 3 times as many bytes")
    scattered = numpy(2.5, 2.5, "NumPy's passes move only 1.7 times as many bytes")
    rotated_pairs = numpy(8, 8, "NumPy takes only 8 to 9 times as long as x + 1")
    heads, batch_of_heads, table = (1, 32, 2048, 128), (8, 32, 512, 128), "against a table"
    angles = "tables(4096), d = 128, angles"
    grid, resizes = "resize_table [37 x 37, 1024] to", (37, 24, 18, 1024)
    resized_grid = Case("grids", f"{grid} 24 x 18", "new", "against a table", resizes, _resize, [Bar(["torch"], 3, 3)])
    for_images = functools.partial(_resize, images=20)
    resized_grids = Case(
        "grids", f"{grid} 20 sizes", "new", "against a table", resizes, for_images, [Bar(["torch"], 3, 3)]
    )
    copying, turning = (Bar([name], 0.77, 0.77) for name in ("np.copyto", "in place"))  # the longer of the two
    qk, chunk = "rotate_ q [1, 32, 1, 128] and k [1, 8, 1, 128]", "add_ [1, 10, 560] at position 10^7"
    split = "rotate [512, 32, 128] out of [512, 6144], interleaved"
    token, tokens, large = "add_ one token [1, 1, 768]", "add_ 64 tokens [64, 1, 1024]", "tables(131072), d = 128"
    transposed, copied = "encode(1024, 256), channels first", Bar(["encode and copy"], 1, 1)
    tree, run = "rotate_ [1, 32, 64, 128] at random positions", Bar(["a run"], 0.7, 0.7)
    backwards, row = "encode 4096 descending positions of 768", "tables of one row, {}".format
    halves, tile = (functools.partial(_table_row, form=form) for form in ("halves", "tile"))
    return [
        _shown(_encode_case(512, 768, "new", Bar(["np.full"], 0.5, 0.6))),
        _encode_case(8192, 1024, "new", full),
        _hidden(_encode_case(32_768, 1024, "new", full)),
        _hidden(_encode_case(512, 768, "new", first=True)),
        _hidden(_encode_case(64, 64, "given", numpy(4, 4))),
        _encode_case(512, 768, "given", filled, numpy(3.5, 5)),
        _hidden(_encode_case(8192, 1024, "given", filled, numpy(3.5, 5))),
        _hidden(_encode_case(32_768, 1024, "given", filled, numpy(3.5, 5))),
        _hidden(_encode_case(512, 768, "given", encoding="kept")),
        _hidden(Case("encode", backwards, "given", "computed", (4096, 768), _descending, [descending])),
        _hidden(Case("encode", transposed, "given", "kept", (1024, 256), _encode_channels_first, [copied])),
        _add_case((1, 512, 768), sequence),
        _hidden(_add_case((1, 8192, 1024), sequence, encoding=table)),
        _hidden(_add_case((8, 512, 768), batch, incremented)),
        _shown(_add_case((32, 512, 768), batch, incremented)),
        _hidden(_add_case((8, 4096, 1024), batch, incremented, encoding=table)),
        _hidden(_add_case((8, 512, 768), new_sum, array="new")),
        _add_case((32, 512, 768), new_sum, array="new"),
        _add_case((8, 512, 768), numpy(30, 50), dtype="float16"),
        _hidden(_add_case((8, 512, 768), numpy(7, 13), dtype="bfloat16")),
        _transposed_case((8, 256, 1024), 0.5),
        *(_hidden(_transposed_case(*each)) for each in (((2, 256, 6400), 0.5), ((1, 256, 1024), 0.3))),
        _scattered_case((86, 1008, 64), "shared"),
        _hidden(_scattered_case((34, 99, 64), "own")),
        Case("embed", "embed [32, 512, 768], scaled", "given", "kept", (32, 512, 768), _embed, [gathered]),
        _shown(Case("decode", token, "in place", "kept", (1, 1, 768), _decode, [numpy(2.5, 2.5)])),
        _hidden(Case("decode", tokens, "in place", "kept", (64, 1, 1024), _decode, [scattered])),
        Case("decode", chunk, "in place", "computed", (1, 10, 560), _chunk, [late]),
        _shown(_rotate_case(heads, "halves", incremented, numpy(8, 8))),
        _rotate_case(heads, "interleaved", incremented, rotated_pairs),
        _hidden(_rotate_case(batch_of_heads, "halves", incremented, numpy(8, 8))),
        _hidden(_rotate_case(batch_of_heads, "interleaved", incremented, rotated_pairs)),
        _hidden(_rotate_case((1, 2048, 32, 128), "halves", incremented, seq_axis=-3)),
        _hidden(Case("rotate", tree, "in place", "kept", (1, 32, 64, 128), _rotate_scattered, [run])),
        _rotate_case(heads, "halves", onnx, copying, array="given"),
        _hidden(_rotate_case(heads, "interleaved", onnx, array="given")),
        _hidden(_rotate_case((128, 16, 64), "halves", turning, array="given", seq_axis=-3)),
        Case("rotate", split, "given", "computed", (512, 32, 128), _rotate_columns, [Bar(["C loop"], 1.5, 2)]),
        Case("decode", qk, "in place", "kept", (1, 32, 1, 128), _decode_rotation, [numpy(8, 8)]),
        _shown(Case("tables", "tables(4096), d = 128", "new", "computed", (4096, 128), _tables, [numpy(2.8, 4.5)])),
        _hidden(Case("tables", large, "new", "computed", (131_072, 128), _tables, [numpy(2.2, 3.5)])),
        _hidden(Case("tables", angles, "given", "computed", (4096, 128), _angles, [Bar(["halves"], 0.67, 0.67)])),
        _hidden(
            Case("tables", "attention_mask, a window", "new", "computed", (4096, 4096), _mask, [Bar(["NumPy"], 3, 3)])
        ),
        Case("decode", row("halves"), "given", "computed", (1, 128), halves, [numpy(2, 2)]),
        _hidden(Case("decode", row("tile"), "given", "computed", (1, 128), tile, [numpy(2, 2)])),
        resized_grid,
        _hidden(resized_grids),
        *map(_hidden, graph_cases()),
    ]
