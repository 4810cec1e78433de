# SPDX-License-Identifier: BSD-3-Clause
"""A rotary call's bits do not depend on instruction sets and numbers of threads. tools/fuzz.py compares rotations on every
instruction set, rows that are kept, and calls that are split, with rows of one position each.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe import _core

from ..oracles.reference import DTYPES, assert_same_bits, values
from .oracle import FORMS, Array, arrays_in, parts_of
from .test_tables import FORMS_AND_DTYPES

FLOAT32 = np.dtype(np.float32)
POSITIONS = np.concatenate(
    [np.arange(-40, 90), [2**31 - 1, 2**31, 10**12, 2**53, -(2**53)], np.arange(10**7, 10**7 + 40)]
).astype(np.int64)
FRACTIONS = np.concatenate([np.linspace(-50, 50, 37), [1e-310, 5e-324, 1e-9, 1e6 + 0.1, 2.0**50 + 0.125]])
PAIR_COUNTS = [1, 3, 15, 32, 37]


def all_results(pairs: int, dtype: np.dtype[Any]) -> list[Array]:
    found: list[Array] = []
    options: dict[str, Any] = {"attention_factor": 1.1386}
    rope = fastpe.RotaryEmbedding(2 * pairs, interleaved=False, **options)
    several = fastpe.RotaryEmbedding(2 * pairs, interleaved=False, frequency_axes=np.arange(pairs) % 2, **options)
    coordinates = np.stack([POSITIONS, POSITIONS[::-1]], -1)[:, : min(pairs, 2)]
    for form in FORMS:
        if (form, dtype) in FORMS_AND_DTYPES:
            for positions in (POSITIONS, FRACTIONS, 50):
                found += map(parts_of, arrays_in(rope.tables(positions, form=form, dtype=dtype)))
            found += map(parts_of, arrays_in(several.tables(coordinates, form=form, dtype=dtype)))
    return found


@functools.cache
def on_the_baseline(pairs: int, dtype: np.dtype[Any]) -> list[Array]:
    before = _core.config()["instruction_set"]
    _core.use_instruction_set("baseline")
    try:
        return all_results(pairs, dtype)
    finally:
        _core.use_instruction_set(before)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("pairs", PAIR_COUNTS)
def test_every_instruction_set_gives_the_same_bits(instruction_set: str, pairs: int, dtype: np.dtype[Any]) -> None:
    expected = on_the_baseline(pairs, dtype)
    assert _core.config()["instruction_set"] == instruction_set
    for found, same in zip(all_results(pairs, dtype), expected, strict=True):
        assert_same_bits(found, same)


# ---- threads


@pytest.mark.parametrize(("form", "dtype"), FORMS_AND_DTYPES, ids=str)
def test_threads_write_the_same_tables_if_rows_are_no_whole_cache_lines(form: str, dtype: np.dtype[Any]) -> None:
    has_axes = dtype in DTYPES[:2]
    pairs = 33 if has_axes else 3
    axes = np.arange(pairs) % 2 if has_axes else None
    rope = fastpe.RotaryEmbedding(2 * pairs, interleaved=False, max_len=16, frequency_axes=axes)
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
        {"valid": np.arange(length) % 7 > 2},
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
