# SPDX-License-Identifier: BSD-3-Clause
"""Calls compared with others that mean the same; tests/composed compares random ones with a model."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.reference import DTYPES, Array, assert_same_bits, values

LENGTH, WIDTH = 6, 16
ROPE = fastpe.RotaryEmbedding(WIDTH, interleaved=False)
CALLS: dict[str, Callable[..., Array]] = {
    "add": fastpe.add,
    "rotate": functools.partial(ROPE.rotate, seq_axis=-2),
}
of_every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@of_every_call
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_ten_axes(call: Callable[..., Array], dtype: np.dtype[Any]) -> None:
    x = values((1, 2, 1, 2, 1, 2, 1, 2, LENGTH, WIDTH), dtype, seed=0)
    assert_same_bits(call(x), np.stack([call(one) for one in x.reshape(-1, LENGTH, WIDTH)]).reshape(x.shape))


@of_every_call
@pytest.mark.parametrize("start", [0, 10**7, 2**53 - 10_000])
def test_streaming_in_chunks(call: Callable[..., Array], start: int) -> None:
    x, at = values((1, 600, WIDTH), np.dtype(np.float32), seed=3), 0
    whole = call(x, offset=start)
    for chunk in (1, 60, 60, 61, 31, 7, 380):
        assert_same_bits(call(x[:, at : at + chunk], offset=start + at), whole[:, at : at + chunk])
        at += chunk
    assert at == 600


@pytest.mark.parametrize("axis", [0, 1])
def test_learned_tables_may_have_an_axis_of_length_1(axis: int) -> None:
    table = values((9, WIDTH), np.dtype(np.float32), seed=2)
    ids, x = np.zeros((2, 5), int), values((3, LENGTH, WIDTH), np.dtype(np.float32), seed=3)
    for layout in (table, np.repeat(table, 2, axis=0)[::-2]):
        wide = np.expand_dims(layout, axis)
        assert_same_bits(fastpe.add(x, table=wide, offset=2), fastpe.add(x, table=layout, offset=2))
        found = fastpe.embed(ids, table, position_table=wide, offset=2)
        assert_same_bits(found, fastpe.embed(ids, table, position_table=layout, offset=2))
    assert_same_bits(fastpe.add(x[0, :1], table=table[None, :1]), x[0, :1] + table[:1])
