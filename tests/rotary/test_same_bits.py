# SPDX-License-Identifier: BSD-3-Clause
"""A rotary call's bits depend on values, positions and frequencies alone: on no instruction set, number of threads,
split of the work or row that was kept.
"""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpe
from fastpe import _core

from ..oracles.reference import DTYPES, assert_same_bits, bits
from ..oracles.strategies import dtypes, offsets, seeds, values
from ..oracles.streaming import assert_streaming_keeps_bits
from .calls import arrays_in, parts_of
from .oracle import FORMS, Array
from .test_tables import FORMS_AND_DTYPES

FLOAT32 = np.dtype(np.float32)
POSITIONS = np.concatenate(
    [np.arange(-40, 90), [2**31 - 1, 2**31, 10**12, 2**53, -(2**53)], np.arange(10**7, 10**7 + 40)]
).astype(np.int64)
FRACTIONS = np.concatenate([np.linspace(-50, 50, 37), [1e-310, 5e-324, 1e-9, 1e6 + 0.1, 2.0**50 + 0.125]])
PAIR_COUNTS = [1, 3, 8, 15, 32, 37]


def all_results(pairs: int, dtype: np.dtype[Any]) -> list[Array]:
    found: list[Array] = []
    options: dict[str, Any] = {"attention_factor": 1.1386}
    rope = fastpe.RotaryEmbedding(2 * pairs, interleaved=False, **options)
    several = fastpe.RotaryEmbedding(2 * pairs, interleaved=False, axes=np.arange(pairs) % 2, **options)
    coordinates = np.stack([POSITIONS, POSITIONS[::-1]], -1)[:, : min(pairs, 2)]
    for form in FORMS:
        if (form, dtype) in FORMS_AND_DTYPES:
            for positions in (POSITIONS, FRACTIONS, 50):
                found += map(parts_of, arrays_in(rope.tables(positions, form=form, dtype=dtype)))
            found += map(parts_of, arrays_in(several.tables(coordinates, form=form, dtype=dtype)))
    for interleaved in (False, True):
        rope = fastpe.RotaryEmbedding(2 * pairs, interleaved=interleaved, **options)
        x = values((3, 2, 20, 2 * pairs + 1), dtype, seed=pairs)
        found += [rope.rotate(x, offset=[0, 12345, -7]), rope.rotate(x, inverse=True), rope.shift_(x.copy(), by=-99)]
        found.append(rope.rotate_(np.asfortranarray(x)))
        tables = rope.tables(20)
        found.append(fastpe.rotate_(x.copy(), cos=tables[0], sin=tables[1], interleaved=interleaved))
    return found


@functools.cache
def on_the_baseline(pairs: int, dtype: np.dtype[Any]) -> list[Array]:
    before = _core.instruction_set()
    _core.use_instruction_set("baseline")
    try:
        return all_results(pairs, dtype)
    finally:
        _core.use_instruction_set(before)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("pairs", PAIR_COUNTS)
def test_every_instruction_set_gives_the_same_bits(instruction_set: str, pairs: int, dtype: np.dtype[Any]) -> None:
    expected = on_the_baseline(pairs, dtype)
    assert _core.instruction_set() == instruction_set
    for found, same in zip(all_results(pairs, dtype), expected, strict=True):
        assert_same_bits(found, same)


# ---- threads


@pytest.mark.parametrize(("form", "dtype"), FORMS_AND_DTYPES, ids=str)
def test_threads_write_the_same_tables(form: str, dtype: np.dtype[Any]) -> None:
    rope = fastpe.RotaryEmbedding(64, interleaved=False, max_len=64)
    rows = 2 * 1024 * 1024 // (32 * dtype.itemsize)
    keywords: dict[str, Any] = {"form": form, "dtype": dtype}
    one = arrays_in(rope.tables(rows, offset=9, num_threads=1, **keywords))
    for positions in (None, np.arange(9, 9 + rows), np.arange(9, 9 + rows)[None]):
        counted = {"positions": rows, "offset": 9} if positions is None else {"positions": positions}
        two = arrays_in(rope.tables(**counted, num_threads=2, **keywords))
        for found, same in zip(two, one, strict=True):
            np.testing.assert_array_equal(bits(parts_of(found)), bits(parts_of(same)).reshape(parts_of(found).shape))


@pytest.mark.parametrize("pairs", [3, 9, 33])
@pytest.mark.parametrize("has_axes", [False, True])
@pytest.mark.parametrize(("form", "dtype"), FORMS_AND_DTYPES, ids=str)
def test_threads_write_the_same_tables_if_rows_are_no_whole_cache_lines(
    form: str, dtype: np.dtype[Any], has_axes: bool, pairs: int
) -> None:
    rope = fastpe.RotaryEmbedding(
        2 * pairs, interleaved=False, max_len=16, axes=np.arange(pairs) % 2 if has_axes else None
    )
    rows = 1536 * 1024 // (pairs * dtype.itemsize)
    positions = np.arange(rows)
    if has_axes:
        positions = np.stack([positions // 100, positions % 100], -1)
    tables = [arrays_in(rope.tables(positions, form=form, dtype=dtype, num_threads=threads)) for threads in (1, 2, 3)]
    for same in tables[1:]:
        for found, expected in zip(same, tables[0], strict=True):
            assert_same_bits(parts_of(found), parts_of(expected))


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_threads_rotate_to_the_same_bits(dtype: np.dtype[Any], interleaved: bool) -> None:
    rope = fastpe.RotaryEmbedding(64, interleaved=interleaved, max_len=50)
    length = 4 * 1024 * 1024 // (64 * dtype.itemsize * 12)
    x = values((2, 6, length, 66), dtype, seed=1)
    k = values((2, 2, length, 64), dtype, seed=2)
    calls: list[dict[str, Any]] = [
        {},
        {"offset": np.array([5, -9])},
        {"positions": np.arange(length)[::-1] * 3},
        {"lengths": [length, 100], "inverse": True},
        {"mask": np.arange(length) % 7 > 2},
    ]
    for call in calls:
        one = rope.rotate(x, num_threads=1, **call)
        assert_same_bits(rope.rotate(x, num_threads=2, **call), one)
        q, k_one, k_two = x.copy(), k.copy(), k.copy()
        rope.rotate_(k_one, num_threads=1, **call)
        rope.rotate_(q, k_two, num_threads=2, **call)
        assert_same_bits(q, one)
        assert_same_bits(k_two, k_one)
    across = x.transpose(0, 2, 1, 3).copy()
    assert_same_bits(
        rope.rotate_(across, seq_axis=1, num_threads=2), rope.rotate(x, num_threads=1).transpose(0, 2, 1, 3)
    )
    one, two = (rope.shift_(x.copy(), by=[[3], [-8]], num_threads=threads) for threads in (1, 2))
    assert_same_bits(two, one)


def test_calls_from_many_threads_give_the_same_bits() -> None:
    def make() -> fastpe.RotaryEmbedding:
        return fastpe.RotaryEmbedding(96, interleaved=True, max_len=64, attention_factor=1.5)

    x = values((4, 100, 96), FLOAT32, seed=1)
    rope = make()
    expected = rope.rotate(x), rope.rotate(x, inverse=True), rope.shift_(x.copy(), by=5), rope.tables(60)[1]
    fresh = make()
    start = threading.Barrier(8)
    failures: list[str] = []

    def work() -> None:
        start.wait()
        for _ in range(10):
            found = fresh.rotate(x), fresh.rotate(x, inverse=True), fresh.shift_(x.copy(), by=5), fresh.tables(60)[1]
            if any((bits(a) != bits(b)).any() for a, b in zip(found, expected, strict=True)):
                failures.append("other bits")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# ---- rows that are kept


@given(
    dtype=dtypes,
    pairs=st.integers(1, 20),
    interleaved=st.booleans(),
    max_len=st.integers(1, 60),
    start=st.integers(-5, 60),
    count=st.integers(1, 40),
    factor=st.sampled_from([1.0, 1.25]),
    seed=seeds,
)
def test_kept_rows_have_the_bits_of_computed_ones(
    dtype: np.dtype[Any],
    pairs: int,
    interleaved: bool,
    max_len: int,
    start: int,
    count: int,
    factor: float,
    seed: int,
) -> None:
    options: dict[str, Any] = {"interleaved": interleaved, "attention_factor": factor}
    for axes in (None, np.arange(pairs) % 2):
        computed, kept = (fastpe.RotaryEmbedding(2 * pairs, axes=axes, max_len=m, **options) for m in (0, max_len))
        positions = np.arange(start, start + count)
        if axes is not None:
            positions = np.stack([positions, np.full_like(positions, start)], -1)[..., : axes.max() + 1]
        for form in ("halves", "repeat", "sin_cos", "pairs"):
            for given_positions in (positions, positions + 0.5):
                keywords: dict[str, Any] = {"form": form, "dtype": dtype}
                for found, same in zip(
                    arrays_in(kept.tables(given_positions, **keywords)),
                    arrays_in(computed.tables(given_positions, **keywords)),
                    strict=True,
                ):
                    assert_same_bits(found, same)
        x = values((2, count, 2 * pairs), dtype, seed)
        calls: list[dict[str, Any]] = [{"positions": positions}, {"positions": positions, "inverse": True}]
        if axes is None:
            calls += [{"offset": start}, {"offset": start + np.arange(2) * 3}, {"mask": np.arange(count) % 2 == 0}]
        for call in calls:
            same = computed.rotate(x, **call)
            assert_same_bits(kept.rotate(x, **call), same)
            assert_same_bits(kept.rotate_(np.asfortranarray(x), **call), same)
        assert_same_bits(kept.shift_(x.copy(), by=positions), computed.shift_(x.copy(), by=positions))


# ---- how a call is split


@given(
    dtype=dtypes,
    pairs=st.integers(1, 20),
    interleaved=st.booleans(),
    start=offsets,
    rows=st.integers(1, 100),
    data=st.data(),
)
def test_how_a_batch_is_split_does_not_matter(
    dtype: np.dtype[Any], pairs: int, interleaved: bool, start: int, rows: int, data: st.DataObject
) -> None:
    rope = fastpe.RotaryEmbedding(2 * pairs, interleaved=interleaved)
    x = values((2, 3, rows, 2 * pairs), dtype, data.draw(seeds))
    start = min(start, 2**53 - rows)
    whole = rope.rotate(x, offset=start)
    cut = data.draw(st.integers(0, rows))
    parts = [rope.rotate(x[:, :, :cut], offset=start), rope.rotate(x[:, :, cut:], offset=start + cut)]
    assert_same_bits(np.concatenate(parts, axis=2), whole)
    assert_same_bits(
        np.concatenate([rope.rotate(x[:, :1], offset=start), rope.rotate(x[:, 1:], offset=start)], 1), whole
    )
    assert_same_bits(np.stack([rope.rotate(each, offset=start) for each in x]), whole)
    positions = np.arange(start, start + rows, dtype=np.int64)
    shuffled = np.random.default_rng(rows).permutation(rows)
    assert_same_bits(rope.rotate(x[:, :, shuffled], positions=positions[shuffled]), whole[:, :, shuffled])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_range_of_positions_has_the_bits_of_single_ones(dtype: np.dtype[Any]) -> None:
    rope = fastpe.RotaryEmbedding(18, interleaved=False)
    first = -40
    rows = np.concatenate([rope.tables([p], form="cos_sin", dtype=dtype) for p in range(first, 100)])
    for start in range(first, 30, 3):
        for count in range(1, 70, 2):
            assert_same_bits(
                rope.tables(count, offset=start, form="cos_sin", dtype=dtype), rows[start - first :][:count]
            )


# ---- stores that bypass the cache

STREAMING_SCRIPT = """
import hashlib, sys
import numpy as np, ml_dtypes, fastpe
from fastpe import _core
for name in _core.available_instruction_sets():
    _core.use_instruction_set(name)
    total = hashlib.sha256()
    for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        dtype = np.dtype(dtype)
        for pairs in (1, 5, 16, 33, 64):
            rope = fastpe.RotaryEmbedding(2 * pairs, interleaved=pairs % 2 == 0, max_len=0)
            for form, width in (("cos_sin", 2 * pairs), ("sin_cos", 2 * pairs), ("halves", pairs), ("tile", 2 * pairs),
                                ("repeat", 2 * pairs), ("pairs", pairs), ("angles", pairs)):
                if form == "angles" and dtype.itemsize == 2:
                    continue
                for start in (0, 1, 7):
                    for gap in (0, 3):
                        last = (2,) if form == "pairs" else ()
                        size = (width + gap) * (2 if last else 1)
                        memories = [np.zeros(140 * size + 7, dtype) for _ in range(2)]
                        outs = tuple(
                            memory[start : start + 140 * size].reshape(140, width + gap, *last)[:, :width]
                            for memory in memories
                        )
                        several = form in ("halves", "tile", "repeat")
                        for positions, offset in ((140, 5), (np.arange(140) % 9, None)):
                            rope.tables(positions, form=form, offset=offset, out=outs if several else outs[0])
                            for memory in memories:
                                total.update(memory.tobytes())
            x = np.linspace(-2, 2, 3 * 70 * (2 * pairs + 1)).astype(dtype).reshape(3, 70, 2 * pairs + 1)
            out = np.zeros_like(x)
            total.update(rope.rotate(x, offset=9, out=out).tobytes())
            total.update(rope.rotate(x, offset=np.array([1, 2, 3]), out=out).tobytes())
            total.update(rope.rotate_(x).tobytes())
            heads = x.reshape(3, 14, 5, 2 * pairs + 1)
            total.update(rope.rotate(heads, seq_axis=1, offset=np.array([4, 5, 6])).tobytes())
            total.update(rope.rotate_(heads, seq_axis=0)[..., ::-1].tobytes())
    print(name, total.hexdigest())
"""


def test_streaming_stores_give_the_same_bits() -> None:
    assert_streaming_keeps_bits(STREAMING_SCRIPT)


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="this system tells the size of its memory in another way")
@pytest.mark.parametrize("rows", [1, 200_000])
def test_rows_that_cannot_be_kept_are_no_matter_where_none_is_read(rows: int) -> None:
    # In float64, these rows take twice the machine's memory. With a fraction among the coordinates, none of them is read.
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") // 16
    rope = fastpe.RotaryEmbedding(4, interleaved=False, axes=[0, 1], max_len=most)
    plain = fastpe.RotaryEmbedding(4, interleaved=False, axes=[0, 1])
    positions = np.array([[0.5, 3.0]] * rows)
    options: dict[str, Any] = {"form": "cos_sin", "dtype": np.float64}
    assert_same_bits(rope.tables(positions, **options), plain.tables(positions, **options))
