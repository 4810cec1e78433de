# SPDX-License-Identifier: BSD-3-Clause
"""Axes, strides, and parts of a wider encoding."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpe

from ..oracles import reference
from ..oracles.reference import DTYPES, Rows, assert_same_bits, bits
from ..oracles.strategies import dtypes, factors, integer_arrays, seeds, small_offsets, strided, values, widths

pytestmark = pytest.mark.usefixtures("instruction_set")


def rows_of(d_model: int, dtype: np.dtype[Any]) -> Rows:
    return Rows(functools.partial(fastpe.encode, d_model=d_model), d_model, dtype)


@given(
    dtype=dtypes,
    axes=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    d_model=widths,
    offset=small_offsets,
    scale=factors,
    data=st.data(),
)
def test_any_sequence_axis(
    dtype: np.dtype[Any], axes: list[int], d_model: int, offset: int, scale: float, data: st.DataObject
) -> None:
    shape = (*axes, d_model)
    x = data.draw(strided(shape, dtype))
    seq_axis = data.draw(st.integers(0, len(axes) - 1))
    keywords: dict[str, Any] = {"scale": scale, "seq_axis": seq_axis}
    expected = reference.add(x, rows_of(d_model, dtype), offset=np.asarray(offset), **keywords)
    assert_same_bits(fastpe.add(x, offset=offset, **keywords), expected)
    keywords["seq_axis"] = seq_axis - len(shape)
    out = data.draw(strided(shape, dtype))
    fastpe.add(x, offset=offset, out=out, **keywords)
    assert_same_bits(out, expected)
    fastpe.add_(x, offset=offset, **keywords)
    assert_same_bits(x, expected)


@given(
    dtype=dtypes,
    shape=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 12), st.integers(4, 20)),
    sequence_first=st.booleans(),
    data=st.data(),
)
def test_per_row_arguments_go_with_the_first_batch_axis(
    dtype: np.dtype[Any], shape: tuple[int, int, int, int], sequence_first: bool, data: st.DataObject
) -> None:
    # [B, H, L, C], or [L, B, H, C] by seq_axis=0.
    batch, heads, seq_len, d_model = shape
    seq_axis = 0 if sequence_first else -2
    x = data.draw(strided((seq_len, batch, heads, d_model) if sequence_first else shape, dtype))
    row = rows_of(d_model, dtype)
    offset = data.draw(integer_arrays((batch,), -100, 100))
    expected = reference.add(x, row, seq_axis=seq_axis, offset=offset)
    assert_same_bits(fastpe.add(x, seq_axis=seq_axis, offset=offset), expected)
    positions = data.draw(integer_arrays((batch, seq_len), -100, 100))
    expected = reference.add(x, row, seq_axis=seq_axis, positions=positions)
    assert_same_bits(fastpe.add(x, seq_axis=seq_axis, positions=positions), expected)
    lengths = data.draw(integer_arrays((batch,), 0, seq_len))
    expected = reference.add(x, row, seq_axis=seq_axis, lengths=lengths)
    assert_same_bits(fastpe.add_(x, seq_axis=seq_axis, lengths=lengths), expected)


@given(
    dtype=dtypes,
    d_model=st.integers(1, 70),
    batch=st.integers(1, 3),
    seq_len=st.integers(1, 50),
    offset=small_offsets,
    max_len=st.sampled_from([0, 40]),
    convention=st.sampled_from(["vaswani", "concat", "fairseq", "timestep"]),
    seed=seeds,
    data=st.data(),
)
def test_channels_are_slices_of_the_whole(
    dtype: np.dtype[Any],
    d_model: int,
    batch: int,
    seq_len: int,
    offset: int,
    max_len: int,
    convention: str,
    seed: int,
    data: st.DataObject,
) -> None:
    encoding = fastpe.PositionalEncoding(d_model, convention=convention, max_len=max_len)
    x = values((batch, seq_len, d_model), dtype, seed)
    whole = encoding.add(x, offset=offset, scale=2.0)
    begin = data.draw(st.integers(0, d_model))
    end = data.draw(st.integers(begin, d_model))
    part = x[..., begin:end]
    assert_same_bits(encoding.add(part, offset=offset, scale=2.0, channels=(begin, end)), whole[..., begin:end])
    table = encoding.encode(seq_len, offset=offset, dtype=dtype)
    assert_same_bits(encoding.encode(seq_len, offset=offset, dtype=dtype, channels=(begin, end)), table[:, begin:end])
    encoding.add_(part, offset=offset, scale=2.0, channels=(begin, end))
    assert_same_bits(x[..., begin:end], whole[..., begin:end])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(7, 12), (3, 7, 12), (2, 3, 7, 12), (1, 2, 1, 2, 1, 2, 1, 2, 7, 12)])
def test_two_to_ten_axes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    x = values(shape, dtype, seed=0)
    expected = reference.add(x, rows_of(12, dtype))
    assert_same_bits(fastpe.add_(x), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_sequence_axis_between_batch_axes(dtype: np.dtype[Any]) -> None:
    x = values((3, 5, 4, 8), dtype, seed=0)
    expected = reference.add(x, rows_of(8, dtype), seq_axis=1)
    assert_same_bits(fastpe.add(x, seq_axis=1), expected)
    assert_same_bits(fastpe.add_(x, seq_axis=1), expected)


@pytest.mark.parametrize("step", [1, 2, -1, -3])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_strided_last_axis(dtype: np.dtype[Any], step: int) -> None:
    for columns in (1, 2, 17):
        memory = values((2, 40, abs(step) * columns), dtype, seed=5)
        x = memory[..., ::step]
        assert x.shape == (2, 40, columns)
        elsewhere = memory.copy()
        elsewhere[..., ::step] = fastpe.add(x.copy(), lengths=[40, 13])
        fastpe.add_(x, lengths=[40, 13])
        assert_same_bits(memory, elsewhere)
        fastpe.encode(40, columns, offset=[0, 3], out=x)
        elsewhere[..., ::step] = fastpe.encode(40, columns, offset=[0, 3], dtype=dtype)
        np.testing.assert_array_equal(bits(memory), bits(elsewhere))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_wide_rows_of_elements_that_lie_far_apart(dtype: np.dtype[Any]) -> None:
    rows, d_model, first = 40, 5000, 7
    encoding = fastpe.PositionalEncoding(d_model + 10, max_len=20)
    keywords: dict[str, Any] = {"channels": (first, first + d_model), "num_threads": 2}

    def far_apart() -> Any:  # [rows, d_model], the columns 4000 bytes from each other
        return np.zeros((d_model, 4000 // dtype.itemsize), dtype)[:, :rows].T

    values = ((np.arange(rows * d_model) * 37 % 101 - 50) / 8).astype(dtype).reshape(rows, d_model)
    table = values[::-1].copy()
    for offset in (-20, 0):
        expected = encoding.encode(rows, offset=offset, dtype=dtype, **keywords)
        assert_same_bits(encoding.encode(rows, offset=offset, out=far_apart(), **keywords), expected)
        expected = encoding.add(values, offset=offset, scale=1.5, **keywords)
        x = far_apart()
        x[...] = values
        assert_same_bits(encoding.add(x, offset=offset, scale=1.5, out=far_apart(), **keywords), expected)
        assert_same_bits(encoding.add_(x, offset=offset, scale=1.5, **keywords), expected)
    whole = fastpe.PositionalEncoding(d_model)
    ids = np.arange(rows) * 7 % rows
    for learned in (None, table):
        found = whole.embed(ids, values, position_table=learned, lengths=30, out=far_apart())
        assert_same_bits(found, whole.embed(ids, values, position_table=learned, lengths=30))
