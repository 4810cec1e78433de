# SPDX-License-Identifier: BSD-3-Clause
"""An encoding added in place: batches, 16 bits, a scale, packed and padded batches."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import fastpe
from benchmarks import machine, oracle, parts, peers
from benchmarks.answers import Answers, InPlace, dtype_owners
from benchmarks.harness import Bar, Case, Check, Contender, Factory, Selection

Array = npt.NDArray[Any]

_shapes = (
    (1, 512, 768),
    (1, 2048, 768),
    (1, 8192, 1024),
    (1, 16384, 384),  # columns of one panel and a half
    (8, 64, 768),
    (8, 512, 768),
    (32, 512, 768),
    (32, 512, 1024),
    (8, 8192, 1024),
)
# "Never slower", where both move the same bytes.
_as_fast = 0.97


def _own(name: str, work: Callable[[], Any], check: Check, *, cached: bool = False) -> Contender:
    return Contender(name=name, work=work, check=check, encoding="cached" if cached else "own", output="in place")


def _numpy(name: str, work: Callable[[], Any], check: Check, *, output: Any = "in place") -> Contender:
    return Contender(name=f"NumPy {name}", work=work, check=check, encoding="cached", output=output)


def _add(selection: Selection, *, shape: tuple[int, int, int]) -> Case:
    batch, seq_len, d_model = shape
    buffer = InPlace.of(shape)
    x = buffer.x
    answers = buffer.answers(np.tile(np.arange(seq_len), batch))
    encoder = fastpe.PositionalEncoding(d_model)
    keeping = fastpe.PositionalEncoding(d_model, max_len=seq_len)
    contenders = [
        _own("fastpe", lambda: encoder.add_(x), answers.promised),
        _own("fastpe, max_len", lambda: keeping.add_(x), answers.promised, cached=True),
    ]
    if selection.rivals:
        table = fastpe.encode(seq_len, d_model)
        rounded = answers.within(1e-7)
        contenders += [
            Contender(
                name="fastpe add, new array", work=lambda: encoder.add(x), check=answers.promised, output="fresh"
            ),
            *peers.adders(x, table, rounded),
            *parts.increments(buffer),
            *parts.careful_add(x, table, rounded),
        ]
    bars = [
        Bar(
            requirement="beside the better of NumPy and torch, table at hand",
            rivals=[peers.numpy_add, peers.torch_add],
            at_least=_as_fast,
            limits=[parts.careful, parts.careful_far],
        )
    ]
    if batch >= 8:
        share = 0.85 if fastpe.show_config()["threads"] == 1 else 0.9
        bars.append(
            Bar(
                requirement="beside x + 1",
                rivals=[parts.increment],
                at_least=share,
                limits=[parts.careful, parts.careful_far],
            )
        )
    return Case(
        name=f"add_ {list(shape)}", bytes_moved=2 * x.nbytes, contenders=contenders, bars=bars, reset=buffer.reset
    )


def _sixteen_bits(selection: Selection, *, shape: tuple[int, int, int]) -> Case:
    """Beside float32, on arrays of their own."""
    batch, seq_len, d_model = shape
    positions = np.tile(np.arange(seq_len), batch)
    encoder = fastpe.PositionalEncoding(d_model)
    buffers: list[InPlace] = []
    contenders: list[Contender] = []
    table = fastpe.encode(seq_len, d_model)
    for dtype, owner in dtype_owners().items():
        buffer = InPlace.of(shape, dtype)
        x = buffer.x
        answers = buffer.answers(positions)
        buffers.append(buffer)
        contenders.append(_own(f"fastpe {dtype}", functools.partial(encoder.add_, x), answers.promised))
        if selection.rivals:
            rounded = answers.within(float(oracle.half_ulp(np.float64(1.0), dtype)))
            work = functools.partial(np.add, x, table.astype(dtype), out=x)
            contenders += [
                dataclasses.replace(_numpy("", work, rounded), name=f"{owner} np.add(x, table, out=x) {dtype}"),
                *parts.careful_add(x, table, rounded, suffix=f" {dtype}"),
            ]
    bytes_of_sixteen_bits = buffers[-1].x.nbytes

    def reset() -> None:
        for buffer in buffers:
            buffer.reset()

    return Case(
        name=f"add_ 16 bits {list(shape)}",
        bytes_moved=2 * bytes_of_sixteen_bits,
        contenders=contenders,
        bars=_bars_of_sixteen_bits(in_cache=machine.is_in_cache(bytes_of_sixteen_bits)),
        reset=reset,
        note="GB/s are those of the 16-bit arrays",
    )


def _elsewhere(selection: Selection, *, shape: tuple[int, int, int], name: str) -> Case:
    """Into another array, in every dtype."""
    batch, seq_len, d_model = shape
    positions = np.tile(np.arange(seq_len), batch)
    encoder = fastpe.PositionalEncoding(d_model)
    table = fastpe.encode(seq_len, d_model)
    contenders: list[Contender] = []
    bars: list[Bar] = []
    for dtype, owner in dtype_owners().items():
        buffer = InPlace.of(shape, dtype)
        x, out = buffer.x, np.zeros_like(buffer.x)
        answers = buffer.answers(positions)
        own = Contender(name=f"fastpe {dtype}", work=functools.partial(encoder.add, x, out=out), check=answers.promised)
        contenders.append(own)
        if selection.rivals:
            check = answers.within(float(oracle.half_ulp(np.float64(1.0), dtype)))
            work = functools.partial(np.add, x, table.astype(dtype), out=out)
            rival = Contender(name=f"{owner} np.add(x, table, out=out) {dtype}", work=work, check=check)
            contenders.append(dataclasses.replace(rival, encoding="cached"))
            bars.append(
                Bar(requirement=f"{dtype}, beside {owner}", contender=own.name, rivals=[rival.name], at_least=_as_fast)
            )
    return Case(
        name=name,
        bytes_moved=2 * batch * seq_len * d_model * 2,
        contenders=contenders,
        bars=bars,
        note="GB/s are those of the 16-bit arrays",
    )


def _careful(dtype: np.dtype[Any]) -> list[str]:
    return [f"{loop} {dtype}" for loop in (parts.careful, parts.careful_far)]


def _bars_of_sixteen_bits(*, in_cache: bool) -> list[Bar]:
    config = fastpe.show_config()
    one_thread, is_avx512 = config["threads"] == 1, config["instruction_set"] == "avx512"
    bars = []
    for dtype, owner in dtype_owners().items():
        bar = functools.partial(Bar, contender=f"fastpe {dtype}", limits=_careful(dtype))
        if dtype == np.float32:
            continue
        if in_cache:
            if not one_thread:
                times = 18 if machine.is_intel() and dtype != np.float16 else 20
                rivals = [f"{owner} np.add(x, table, out=x) {dtype}"]
                bars.append(bar(requirement=f"{dtype}, in the cache, beside {owner}", rivals=rivals, at_least=times))
        elif dtype == np.float16 or one_thread:
            share = 0.6 if dtype == np.float16 else 0.85 if is_avx512 else 1.1
            requirement = f"{dtype}, out of the cache, of the float32 time"
            bars.append(bar(requirement=requirement, rivals=["fastpe float32"], at_most=share))
        else:
            requirement = f"{dtype}, out of the cache, beside the careful loop"
            bars.append(bar(requirement=requirement, rivals=_careful(dtype), at_least=_as_fast))
    return bars


def _scaled(selection: Selection, *, shape: tuple[int, int, int]) -> Case:
    batch, seq_len, d_model = shape
    buffer = InPlace.of(shape)
    x = buffer.x
    encoder = fastpe.PositionalEncoding(d_model)
    scale = 0.5  # repeated calls stay finite
    positions = np.tile(np.arange(seq_len), batch)
    plain, scaled = buffer.answers(positions), buffer.answers(positions, scale)
    contenders = [
        _own("fastpe", lambda: encoder.add_(x, scale=scale), scaled.promised),
        _own("fastpe, no scale", lambda: encoder.add_(x), plain.promised),
    ]
    if selection.rivals:
        table = fastpe.encode(seq_len, d_model)
        factor = np.float32(scale)
        rounded = scaled.within(1e-7)
        contenders += [
            _numpy("multiply, add, both out=x", lambda: np.add(np.multiply(x, factor, out=x), table, out=x), rounded),
            _numpy("x * scale + table", lambda: x * factor + table, rounded, output="fresh"),
        ]
    return Case(
        name=f"x * scale + PE {list(shape)}",
        bytes_moved=2 * x.nbytes,
        contenders=contenders,
        bars=[Bar(requirement="scale fused, of the time without", rivals=["fastpe, no scale"], at_most=1.05)],
        reset=buffer.reset,
    )


def _packed(selection: Selection, *, lengths: list[int], d_model: int, name: str) -> Case:
    """A packed batch: rows of all sequences, one after another."""
    starts = np.cumsum([0, *lengths])
    positions = np.concatenate([np.arange(length) for length in lengths])
    buffer = InPlace.of((positions.size, d_model))
    x = buffer.x
    answers = buffer.answers(positions)
    encoder = fastpe.PositionalEncoding(d_model, max_len=max(lengths))
    contenders = [
        _own("fastpe cu_seqlens=", lambda: encoder.add_(x, cu_seqlens=starts), answers.promised, cached=True),
        _own("fastpe positions=", lambda: encoder.add_(x, positions=positions), answers.promised, cached=True),
    ]
    if selection.rivals:
        table = fastpe.encode(max(lengths), d_model)
        contenders.append(
            _numpy("x += table[positions]", lambda: np.add(x, table[positions], out=x), answers.within(1e-7))
        )
    return Case(name=name, bytes_moved=2 * x.nbytes, contenders=contenders, reset=buffer.reset)


def _encoding_of_valid_rows(positions: Array, width: int) -> Array:
    return np.where(positions[:, None] >= 0, oracle.encoding(np.maximum(positions, 0), width), 0.0)


def _padded(selection: Selection, *, shape: tuple[int, int, int], name: str) -> Case:
    """A padded batch, half full: rows from lengths[b] on stay as they are."""
    batch, seq_len, d_model = shape
    lengths = np.linspace(1, seq_len, batch).astype(np.int64)
    valid = np.arange(seq_len) < lengths[:, None]
    buffer = InPlace.of(shape)
    x = buffer.x
    positions = np.where(valid, np.arange(seq_len), -1)
    answers: Answers = dataclasses.replace(buffer.answers(positions), table=_encoding_of_valid_rows)
    encoder = fastpe.PositionalEncoding(d_model)
    contenders = [_own("fastpe lengths=", lambda: encoder.add_(x, lengths=lengths), answers.promised)]
    if selection.rivals:
        table = fastpe.encode(seq_len, d_model)
        rounded, mask = answers.within(1e-7), valid[:, :, None]
        contenders += [
            _numpy("np.add(out=x, where=mask)", lambda: np.add(x, table, out=x, where=mask), rounded),
            _numpy("x += table * mask", lambda: np.add(x, table * mask, out=x), rounded),
        ]
    moved = 2 * int(lengths.sum()) * d_model * 4
    return Case(name=name, bytes_moved=moved, contenders=contenders, reset=buffer.reset)


def factories() -> dict[str, Factory]:
    lengths = [1024, 17, 300, 2048, 5, 800, 1500, 64] * 2
    elsewhere = "add(x, out=) [8, 2048, 1024]"
    packed, padded = "add_ 16 packed sequences of 1024", "add_ [8, 512, 768], half of it padding"
    return {
        **{f"add_ {list(shape)}": functools.partial(_add, shape=shape) for shape in _shapes},
        **{
            f"add_ 16 bits {list(shape)}": functools.partial(_sixteen_bits, shape=shape)
            for shape in ((8, 512, 768), (8, 8192, 1024))
        },
        elsewhere: functools.partial(_elsewhere, shape=(8, 2048, 1024), name=elsewhere),
        "x * scale + PE [8, 8192, 1024]": functools.partial(_scaled, shape=(8, 8192, 1024)),
        packed: functools.partial(_packed, lengths=lengths, d_model=1024, name=packed),
        padded: functools.partial(_padded, shape=(8, 512, 768), name=padded),
    }
