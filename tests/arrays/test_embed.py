# SPDX-License-Identifier: BSD-3-Clause
"""`embed`: gather, scale and encoding in one pass."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpe

from ..oracles import reference
from ..oracles.reference import DTYPES, FOREIGN, Array, Rows, assert_same_bits, bits
from ..oracles.refusals import UNNAMED, naming
from ..oracles.strategies import dtypes, factors, integer_arrays, seeds, small_offsets, strided, values

pytestmark = pytest.mark.usefixtures("instruction_set")


def rows_of(d_model: int, dtype: np.dtype[Any]) -> Rows:
    return Rows(functools.partial(fastpe.encode, d_model=d_model), d_model, dtype)


@given(
    dtype=dtypes,
    shape=st.lists(st.integers(0, 6), max_size=3).map(tuple),
    d_model=st.integers(1, 33),
    vocabulary=st.integers(1, 20),
    offset=small_offsets,
    scale=factors,
    alpha=factors,
    seed=seeds,
    data=st.data(),
)
def test_against_the_oracle(
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    d_model: int,
    vocabulary: int,
    offset: int,
    scale: float,
    alpha: float,
    seed: int,
    data: st.DataObject,
) -> None:
    table = values((2 * vocabulary, d_model + 2), dtype, seed)[::-2, 1:-1]
    ids: Array = data.draw(integer_arrays(shape, 0, vocabulary - 1))
    if data.draw(st.booleans()):
        ids = ids[tuple(slice(None, None, -1) for _ in shape)]
    keywords: dict[str, Any] = {"scale": scale, "alpha": alpha}
    expected = reference.embed(ids, table, rows_of(d_model, dtype), offset=np.asarray(offset), **keywords)
    result = fastpe.embed(ids, table, offset=offset, **keywords)
    assert_same_bits(result, expected)
    out = data.draw(strided((*shape, d_model), dtype))
    assert fastpe.embed(ids, table, offset=offset, out=out, **keywords) is out
    assert_same_bits(out, expected)
    positions = np.arange(offset, offset + (shape[-1] if shape else 1))
    assert_same_bits(fastpe.embed(ids, table, positions=positions, **keywords), expected)


@given(
    dtype=dtypes,
    batch=st.integers(1, 3),
    seq_len=st.integers(0, 20),
    d_model=st.integers(4, 20),
    scale=factors,
    seed=seeds,
    data=st.data(),
)
def test_padding_and_offsets(
    dtype: np.dtype[Any], batch: int, seq_len: int, d_model: int, scale: float, seed: int, data: st.DataObject
) -> None:
    table = values((11, d_model), dtype, seed)
    ids = data.draw(integer_arrays((batch, seq_len), 0, 10))
    offset = data.draw(integer_arrays((batch,), -50, 50))
    row = rows_of(d_model, dtype)
    mask = np.random.default_rng(seed).random((batch, seq_len)) < 0.5
    keywords: dict[str, Any] = {"offset": offset, "scale": scale}
    assert_same_bits(
        fastpe.embed(ids, table, mask=mask, **keywords), reference.embed(ids, table, row, mask=mask, **keywords)
    )
    lengths = data.draw(integer_arrays((batch,), 0, seq_len))
    assert_same_bits(
        fastpe.embed(ids, table, lengths=lengths, **keywords),
        reference.embed(ids, table, row, lengths=lengths, **keywords),
    )
    cut = data.draw(st.integers(0, seq_len))
    packed: dict[str, Any] = {"cu_seqlens": [0, cut, cut, seq_len]}
    assert_same_bits(
        fastpe.embed(ids[0], table, scale=scale, **packed), reference.embed(ids[0], table, row, scale=scale, **packed)
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_learned_position_table(dtype: np.dtype[Any]) -> None:
    table = values((30, 13), dtype, seed=1)
    position_table = values((16, 13), dtype, seed=2)
    ids = np.random.default_rng(0).integers(0, 30, (3, 10))
    for keywords in ({"offset": 6}, {"offset": [0, 6, 3]}, {"positions": np.arange(10)[::-1]}, {"lengths": [10, 0, 4]}):
        arrays = {name: np.asarray(value) for name, value in keywords.items()}
        expected = reference.embed(ids, table, lambda p: position_table[int(p)], scale=3.0, **arrays)
        result = fastpe.embed(ids, table, position_table=position_table, scale=3.0, **keywords)
        assert_same_bits(result, expected)
    with pytest.raises(IndexError, match=naming("offset")):
        fastpe.embed(ids, table, position_table=position_table, offset=7)


def test_equals_the_three_numpy_passes() -> None:
    table = values((500, 96), np.dtype(np.float32), seed=0)
    ids = np.random.default_rng(1).integers(0, 500, (8, 300))
    expected = table[ids] * float(np.sqrt(96)) + fastpe.encode(300, 96)
    for num_threads in (1, 2):
        assert_same_bits(fastpe.embed(ids, table, scale=np.sqrt(96), num_threads=num_threads), expected)


@pytest.mark.parametrize(
    "ids",
    [
        [0, 7],
        [-1, 0],
        [[0, 1], [2, 9]],
        np.array([[[0, 0], [0, 0]], [[0, 8], [0, 0]]], np.int32),
        np.array([0, 2**64 - 1], np.uint64),
        np.array([2**31], np.uint32),
    ],
)
@pytest.mark.parametrize("lengths", [None, 0])
def test_an_id_outside_the_table_is_an_index_error(ids: Any, lengths: int | None) -> None:
    table = values((7, 5), np.dtype(np.float32), seed=0)
    out = values((*np.shape(ids), 5), np.dtype(np.float32), seed=1)
    before = out.copy()
    with pytest.raises(IndexError, match=naming("ids")):
        fastpe.embed(ids, table, out=out, lengths=lengths)
    np.testing.assert_array_equal(bits(out), bits(before))


@pytest.mark.parametrize(
    ("table", "error"),
    [
        (np.zeros((7, 5), np.int64), TypeError),
        (np.zeros((7, 5), f"{FOREIGN}f4"), TypeError),
        (np.zeros(5, np.float32), ValueError),
        (np.zeros((7, 10), np.float32)[:, ::2], ValueError),
        ([["1"] * 5], TypeError),
    ],
)
def test_wrong_tables_are_refused(table: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=naming("table")):
        fastpe.embed([0, 0], table)
    with pytest.raises(error, match=naming("position_table")):
        fastpe.embed([0, 0], np.zeros((7, 5), np.float32), position_table=table)


def test_tables_that_do_not_match_are_refused() -> None:
    table = np.zeros((7, 6), np.float32)
    with pytest.raises(ValueError, match=naming("position_table")):
        fastpe.embed([0], table, position_table=np.zeros((3, 5), np.float32))
    with pytest.raises(TypeError, match=naming("position_table")):
        fastpe.embed([0], table, position_table=np.zeros((3, 6)))
    with pytest.raises(ValueError, match=naming("table")):
        fastpe.PositionalEncoding(8).embed([0], table)
    with pytest.raises(ValueError, match=naming(UNNAMED)):
        fastpe.embed(np.arange(7), table, out=table)


@pytest.mark.parametrize("shape", [(0,), (0, 5), (3, 0), (2, 0, 4)])
def test_no_ids(shape: tuple[int, ...]) -> None:
    for rows in (0, 7):
        table = np.zeros((rows, 6), np.float32)
        assert fastpe.embed(np.zeros(shape, np.int64), table).shape == (*shape, 6)
    assert fastpe.embed([], table).shape == (0, 6)
    assert fastpe.embed([[0, 0]], np.zeros((3, 0), np.float32)).shape == (1, 2, 0)
