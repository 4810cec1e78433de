# SPDX-License-Identifier: BSD-3-Clause
"""Padding: rows that are left alone, and positions that count the others."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpe

from ..oracles import reference
from ..oracles.reference import DTYPES, Array, Rows, assert_same_bits, bits
from ..oracles.strategies import dtypes, factors, integer_arrays, seeds, small_offsets, strided, values

pytestmark = pytest.mark.usefixtures("instruction_set")

shapes = st.tuples(st.integers(1, 4), st.integers(0, 40), st.integers(4, 20))


def rows_of(d_model: int, dtype: np.dtype[Any]) -> Rows:
    return Rows(functools.partial(fastpe.encode, d_model=d_model), d_model, dtype)


def draw_mask(draw: st.DataObject, shape: tuple[int, ...]) -> Array:
    """Random, left-padded or right-padded; with any strides, or broadcast."""
    rng = np.random.default_rng(draw.draw(seeds))
    seq_len = shape[-1]
    kind = draw.draw(st.sampled_from(["random", "left", "right", "all", "none"]))
    limits = rng.integers(0, seq_len + 1, shape[:-1])[..., None]
    mask: Array = {
        "random": rng.random(shape) < 0.6,
        "left": np.arange(seq_len) >= limits,
        "right": np.arange(seq_len) < limits,
        "all": np.ones(shape, bool),
        "none": np.zeros(shape, bool),
    }[kind]
    layout = draw.draw(st.sampled_from(["plain", "strided", "reversed"]))
    if layout == "strided":
        wide = np.ones((*shape[:-1], 2 * seq_len), bool)
        wide[..., ::2] = mask
        return wide[..., ::2]
    return np.ascontiguousarray(mask[..., ::-1])[..., ::-1] if layout == "reversed" else mask


@given(dtype=dtypes, shape=shapes, per_batch=st.booleans(), offset=small_offsets, scale=factors, data=st.data())
def test_positions_count_valid_rows(
    dtype: np.dtype[Any], shape: tuple[int, int, int], per_batch: bool, offset: int, scale: float, data: st.DataObject
) -> None:
    x = data.draw(strided(shape, dtype))
    mask = draw_mask(data, shape[:2] if per_batch else shape[1:2])
    expected = reference.add(x, rows_of(shape[-1], dtype), mask=mask, offset=np.asarray(offset), scale=scale)
    out = fastpe.add(x, mask=mask, offset=offset, scale=scale)
    assert_same_bits(out, expected)
    left = np.broadcast_to(~mask, shape[:2])
    np.testing.assert_array_equal(bits(out)[left], bits(x)[left])
    per_row = np.full(shape[0], offset)
    fastpe.add_(x, mask=mask, offset=per_row, scale=scale)
    assert_same_bits(x, expected)


@given(dtype=dtypes, shape=shapes, per_batch=st.booleans(), mask_per_batch=st.booleans(), data=st.data())
def test_mask_with_explicit_positions(
    dtype: np.dtype[Any], shape: tuple[int, int, int], per_batch: bool, mask_per_batch: bool, data: st.DataObject
) -> None:
    x = data.draw(strided(shape, dtype))
    mask = draw_mask(data, shape[:2] if mask_per_batch else shape[1:2])
    positions = data.draw(integer_arrays(shape[:2] if per_batch else shape[1:2], -100, 100))
    expected = reference.add(x, rows_of(shape[-1], dtype), mask=mask, positions=positions)
    assert_same_bits(fastpe.add(x, mask=mask, positions=positions), expected)
    fastpe.add_(x, mask=mask, positions=positions)
    assert_same_bits(x, expected)


@given(dtype=dtypes, shape=shapes, scalar=st.booleans(), offset=small_offsets, scale=factors, data=st.data())
def test_lengths(
    dtype: np.dtype[Any], shape: tuple[int, int, int], scalar: bool, offset: int, scale: float, data: st.DataObject
) -> None:
    x = data.draw(strided(shape, dtype))
    lengths = data.draw(integer_arrays(() if scalar else shape[:1], 0, shape[1]))
    keywords: dict[str, Any] = {"lengths": lengths, "scale": scale}
    expected = reference.add(x, rows_of(shape[-1], dtype), offset=np.asarray(offset), **keywords)
    out = fastpe.add(x, offset=offset, **keywords)
    assert_same_bits(out, expected)
    right = np.arange(shape[1]) >= np.broadcast_to(lengths, shape[:1])[:, None]
    np.testing.assert_array_equal(bits(out)[right], bits(x)[right])
    assert_same_bits(fastpe.add(x, offset=np.full(shape[0], offset), **keywords), expected)
    assert_same_bits(fastpe.add(x, positions=np.arange(offset, offset + shape[1]), **keywords), expected)
    fastpe.add_(x, offset=offset, **keywords)
    assert_same_bits(x, expected)


@pytest.mark.parametrize("convention", ["vaswani", "fairseq", "opennmt-tf"])
def test_left_padding(convention: str) -> None:
    x = values((2, 6, 8), np.dtype(np.float32), seed=0)
    mask = np.array([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]], bool)
    first = fastpe.conventions[convention].first_position
    y = fastpe.add(x, mask=mask, convention=convention)
    table = fastpe.encode(first + np.arange(6), 8, convention=convention)
    assert_same_bits(y[0, 2:], x[0, 2:] + table[:4])
    assert_same_bits(y[1], x[1] + table)
    np.testing.assert_array_equal(bits(y[0, :2]), bits(x[0, :2]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_padding_of_several_batch_axes(dtype: np.dtype[Any]) -> None:
    x = values((3, 2, 5, 9), dtype, seed=7)
    mask = np.random.default_rng(0).random((3, 5)) < 0.5
    expected = reference.add(x, rows_of(9, dtype), mask=mask)
    assert_same_bits(fastpe.add(x, mask=mask), expected)
    lengths = np.array([5, 0, 2])
    expected = reference.add(x, rows_of(9, dtype), lengths=lengths)
    assert_same_bits(fastpe.add_(x, lengths=lengths), expected)


@given(dtype=dtypes, batch=st.integers(1, 3), seq_len=st.integers(0, 30), d_model=st.integers(1, 20), data=st.data())
def test_encode_zeroes_padded_rows(
    dtype: np.dtype[Any], batch: int, seq_len: int, d_model: int, data: st.DataObject
) -> None:
    mask = draw_mask(data, (batch, seq_len))
    out = data.draw(strided((batch, seq_len, d_model), dtype))
    fastpe.encode(seq_len, d_model, mask=mask, out=out)
    lengths = data.draw(integer_arrays((batch,), 0, seq_len))
    by_length = fastpe.encode(seq_len, d_model, dtype=dtype, lengths=lengths)
    whole = fastpe.encode(seq_len, d_model, dtype=dtype)
    zeros = np.zeros_like(whole)
    for b in range(batch):
        valid = int(mask[b].sum())
        assert_same_bits(out[b][mask[b]], whole[:valid])
        assert_same_bits(out[b][~mask[b]], zeros[: seq_len - valid])
        assert_same_bits(by_length[b][: lengths[b]], whole[: lengths[b]])
        assert_same_bits(by_length[b][lengths[b] :], zeros[lengths[b] :])
    positions = np.arange(seq_len)[::-1]
    table = fastpe.encode(positions, d_model, dtype=dtype, mask=mask[0])
    assert_same_bits(table[mask[0]], whole[::-1][mask[0]])
    assert not table[~mask[0]].any()


def test_masks_over_two_threads() -> None:
    x = values((3, 1500, 256), np.dtype(np.float32), seed=0)  # the threads part in the midst of the second item
    mask = np.random.default_rng(1).random((3, 1500)) < 0.7
    expected = x.copy()
    for b in range(3):
        expected[b, mask[b]] += fastpe.encode(int(mask[b].sum()), 256)
    assert_same_bits(fastpe.add_(x, mask=mask, num_threads=2), expected)


def test_strided_rows_beyond_the_lengths_are_left_alone() -> None:
    # Elements far apart are done in steps of one sequence, which shares its positions with the others all the same.
    x = np.zeros((2000, 4, 20), np.float32).transpose(1, 2, 0)
    lengths = [10, 0, 20, 1]
    fastpe.add_(x, lengths=lengths)
    expected = fastpe.encode(20, 2000)
    for row, length in zip(x, lengths, strict=True):
        assert_same_bits(row[:length], expected[:length])
        assert not row[length:].any()
