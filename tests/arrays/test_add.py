# SPDX-License-Identifier: BSD-3-Clause
"""`add_` and `add`: arithmetic, factors, outputs and learned tables."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpe
from fastpe import _core

from ..oracles import reference
from ..oracles.reference import DTYPES, Array, Rows, assert_same_bits, bits, combine
from ..oracles.refusals import naming
from ..oracles.strategies import dtypes, factors, seeds, small_offsets, strided, values, widths

pytestmark = pytest.mark.usefixtures("instruction_set")


def rows_of(d_model: int, dtype: np.dtype[Any]) -> Rows:
    return Rows(functools.partial(fastpe.encode, d_model=d_model), d_model, dtype)


@given(
    dtype=dtypes,
    shape=st.tuples(st.integers(0, 3), st.integers(0, 40), widths),
    offset=small_offsets,
    scale=factors,
    alpha=factors,
    data=st.data(),
)
def test_against_the_oracle(
    dtype: np.dtype[Any],
    shape: tuple[int, int, int],
    offset: int,
    scale: float,
    alpha: float,
    data: st.DataObject,
) -> None:
    x = data.draw(strided(shape, dtype))
    expected = reference.add(x, rows_of(shape[-1], dtype), offset=np.asarray(offset), scale=scale, alpha=alpha)
    before = x.copy()
    assert_same_bits(fastpe.add(x, offset=offset, scale=scale, alpha=alpha), expected)
    np.testing.assert_array_equal(bits(x), bits(before))
    out = data.draw(strided(shape, dtype))
    assert fastpe.add(x, offset=offset, scale=scale, alpha=alpha, out=out) is out
    assert_same_bits(out, expected)
    assert fastpe.add_(x, offset=offset, scale=scale, alpha=alpha) is x
    assert_same_bits(x, expected)


@pytest.mark.parametrize("dtype", DTYPES[:2], ids=str)
@pytest.mark.parametrize("shape", [(3, 5), (2, 100, 17), (5, 70, 64), (2, 3, 40, 33), (1, 1, 768), (64, 1, 48)])
def test_equals_numpy_bit_for_bit(dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    x = values(shape, dtype, seed=11)
    pe = fastpe.encode(shape[-2], shape[-1], dtype=dtype)
    assert_same_bits(fastpe.add(x), x + pe)
    scale = np.sqrt(shape[-1])
    assert_same_bits(fastpe.add(x, scale=scale), x * float(scale) + pe)
    assert_same_bits(fastpe.add(x, scale=0.1, alpha=0.7), x * 0.1 + 0.7 * pe)
    x += pe
    assert_same_bits(fastpe.add_(values(shape, dtype, seed=11)), x)


@pytest.mark.parametrize("dtype", DTYPES[2:], ids=str)
def test_sixteen_bits_are_float32_arithmetic_rounded_once(dtype: np.dtype[Any]) -> None:
    x = values((3, 50, 37), dtype, seed=12)
    for scale, alpha in ((1.0, 1.0), (6.1, 1.0), (0.1, -0.7)):
        expected = combine(x, fastpe.encode(50, 37), scale, alpha)
        assert_same_bits(fastpe.add(x, scale=scale, alpha=alpha), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_tail_length(dtype: np.dtype[Any]) -> None:
    for columns in range(1, 34):
        # A guard of NaNs around x must be left alone.
        memory = np.full((4, 40 + 2, columns + 2), np.nan).astype(dtype)
        x = memory[1:3, 1:-1, 1:-1]
        x[...] = values(x.shape, dtype, seed=columns)
        rows = fastpe.encode(40, columns, dtype=np.float64 if dtype == np.float64 else np.float32)
        expected = combine(x, rows, 1.0, 1.0)
        fastpe.add_(x)
        assert_same_bits(x, expected)
        memory[1:3, 1:-1, 1:-1] = 0
        assert int(np.isnan(memory).sum()) == memory.size - x.size
        out = memory[1:3, 1:-1, 1:-1]
        fastpe.encode(40, columns, offset=np.array([0, 50]), out=out)
        assert_same_bits(out[1], fastpe.encode(40, columns, offset=50, dtype=dtype))
        assert int(np.isnan(memory).sum()) == memory.size - x.size


@pytest.mark.parametrize("factor", [np.inf, -np.inf, 1e300, -0.0, 1e-300, 5])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_extreme_factors_behave_as_numpy(dtype: np.dtype[Any], factor: float) -> None:
    x = values((2, 9, 11), dtype, seed=4)
    with np.errstate(all="ignore"):
        factor_there = factor if dtype == np.float64 else float(np.float32(factor))
    pe = fastpe.encode(9, 11, dtype=np.float64 if dtype == np.float64 else np.float32)
    assert_same_bits(fastpe.add(x, scale=factor), combine(x, pe, factor_there, 1.0))
    assert_same_bits(fastpe.add(x, alpha=factor), combine(x, pe, 1.0, factor_there))


@pytest.mark.parametrize("name", ["scale", "alpha"])
def test_a_factor_that_is_no_number_is_refused(name: str) -> None:
    x = values((2, 9, 11), np.dtype(np.float32), seed=4)
    before = x.copy()
    for nan in (np.nan, np.float32(np.nan), np.array(-np.nan)):
        factor: dict[str, Any] = {name: nan}
        with pytest.raises(ValueError, match=naming(name)):
            fastpe.add_(x, **factor)
    assert_same_bits(x, before)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_out_may_be_x_itself(dtype: np.dtype[Any]) -> None:
    x = values((3, 20, 21), dtype, seed=2)
    expected = fastpe.add(x, lengths=[20, 3, 0])
    assert fastpe.add(x, lengths=[20, 3, 0], out=x) is x
    assert_same_bits(x, expected)


@given(
    dtype=dtypes,
    table_rows=st.integers(1, 50),
    d_model=widths,
    batch=st.integers(1, 3),
    scale=factors,
    alpha=factors,
    seed=seeds,
    data=st.data(),
)
def test_learned_tables(
    dtype: np.dtype[Any],
    table_rows: int,
    d_model: int,
    batch: int,
    scale: float,
    alpha: float,
    seed: int,
    data: st.DataObject,
) -> None:
    table = values((2 * table_rows, d_model + 1), dtype, seed)[::-2, :d_model]
    seq_len = data.draw(st.integers(0, table_rows))
    offset = data.draw(st.integers(0, table_rows - seq_len))
    x = data.draw(strided((batch, seq_len, d_model), dtype))
    keywords: dict[str, Any] = {"scale": scale, "alpha": alpha}
    expected = reference.add(x, lambda p: table[int(p)], offset=np.asarray(offset), **keywords)
    assert_same_bits(fastpe.add(x, table=table, offset=offset, **keywords), expected)
    assert_same_bits(fastpe.add(x, table=table, offset=np.full(batch, offset), **keywords), expected)
    positions = np.random.default_rng(seed).integers(0, table_rows, (batch, seq_len))
    expected = reference.add(x, lambda p: table[int(p)], positions=positions, **keywords)
    assert_same_bits(fastpe.add(x, table=table, positions=positions, **keywords), expected)
    fastpe.add_(x, table=table, positions=positions.astype(np.float64), **keywords)
    assert_same_bits(x, expected)


@pytest.mark.parametrize(
    "keywords",
    [
        {"offset": 3},
        {"offset": -1},
        {"offset": [0, 4]},
        {"positions": [0, 1, 2, 6]},
        {"positions": [[0, 1, 2, 3], [0, 0, -7, 0]]},
        {"positions": [0, 1, 2.5, 3]},
        {"positions": np.array([0, 1, 2**64 - 1, 3], np.uint64)},
    ],
)
def test_a_position_outside_a_learned_table_is_an_index_error(keywords: dict[str, Any]) -> None:
    x = values((2, 4, 5), np.dtype(np.float32), seed=1)
    before = x.copy()
    table = np.ones((6, 5), np.float32)
    with pytest.raises(IndexError, match=naming(*keywords)):
        fastpe.add_(x, table=table, **keywords)
    np.testing.assert_array_equal(bits(x), bits(before))
    # Nobody looks at the positions of rows that are left alone.
    masked = {"lengths": [0, 0]} if "offset" in keywords else {"mask": np.zeros(4, bool)}
    fastpe.add_(x, table=table, **keywords, **masked)
    np.testing.assert_array_equal(bits(x), bits(before))


def test_the_methods_are_the_functions() -> None:
    encoding = fastpe.PositionalEncoding(10)
    x = values((2, 6, 10), np.dtype(np.float32), seed=8)
    table = values((9, 10), np.dtype(np.float32), seed=9)
    assert_same_bits(encoding.encode(6), fastpe.encode(6, 10))
    assert_same_bits(encoding.add(x, offset=4), fastpe.add(x, offset=4))
    assert_same_bits(encoding.add_(x.copy()), fastpe.add_(x.copy()))
    assert_same_bits(encoding.embed([3, 8], table), fastpe.embed([3, 8], table))


def test_float64_never_appears_unless_asked_for() -> None:
    x = np.zeros((2, 3, 4), np.float32)
    assert fastpe.encode(3, 4).dtype == np.float32
    assert fastpe.encode(np.arange(3.0), 4).dtype == np.float32
    assert fastpe.add(x, scale=np.float64(2.0)).dtype == np.float32
    assert fastpe.add(x, positions=np.arange(3.0)).dtype == np.float32
    assert fastpe.embed([0, 1], x[0]).dtype == np.float32
    assert _core.instruction_set() in _core.available_instruction_sets()


def test_first_position_counts_only_implied_positions() -> None:
    x: Array = np.zeros((5, 6), np.float32)
    for name in ("fairseq", "opennmt-tf"):
        convention = fastpe.conventions[name]
        shifted = fastpe.encode(np.arange(5) + convention.first_position, 6, convention=name)
        assert_same_bits(fastpe.add(x, convention=name), x + shifted)
        assert_same_bits(
            fastpe.add(x, convention=name, positions=np.arange(5)),
            x + fastpe.encode([0, 1, 2, 3, 4], 6, convention=name),
        )


@pytest.mark.parametrize("kind", ["V2", "u2", "i2"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits_of_bfloat16_are_not_guessed(dtype: np.dtype[Any], kind: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rows = fastpe.encode(5, 8, dtype=ml_dtypes.bfloat16)
    x = np.ones((5, 8), dtype)
    calls: dict[str, Callable[[Array], Array]] = {
        "table": lambda table: fastpe.add(x, table=table),
        "position_table": lambda table: fastpe.embed(np.arange(5), x, position_table=table),
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=naming(name)):
            call(rows.view(kind))
        assert_same_bits(call(rows.view(kind).view(ml_dtypes.bfloat16).astype(dtype)), call(rows.astype(dtype)))
