# SPDX-License-Identifier: BSD-3-Clause
"""Axes of length 1 stand for all rows: of positions and masks, of offsets and lengths, and of learned tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.reference import Array, assert_same_bits
from ..oracles.refusals import naming

BATCH, LENGTH, WIDTH = 3, 5, 8


def _call(name: str, **arguments: Any) -> Array:
    rng = np.random.default_rng(1)
    if name == "encode":
        return fastpe.encode(LENGTH, WIDTH, **arguments)
    if name == "embed":
        table = rng.standard_normal((20, WIDTH))
        if "table" in arguments:
            arguments["position_table"] = arguments.pop("table")
        return fastpe.embed(rng.integers(0, 20, (BATCH, LENGTH)), table, **arguments)
    x = rng.standard_normal((BATCH, LENGTH, WIDTH))
    if name == "add_":
        assert fastpe.add_(x, **arguments) is x
        return x
    return fastpe.add(x, **arguments)


of_every_function = pytest.mark.parametrize("name", ["encode", "add_", "add", "embed"])
of_functions_of_rows = pytest.mark.parametrize("name", ["add_", "add", "embed"])


def _plain(array: Array) -> Array:
    return array


def _with_odd_strides(array: Array) -> Array:
    return np.repeat(np.repeat(array, 2, axis=0), 3, axis=1)[::-2, ::-3][: len(array), ::-1]


@of_functions_of_rows
@pytest.mark.parametrize("layout", [_plain, _with_odd_strides])
def test_positions_of_one_row_are_those_of_all(name: str, layout: Callable[[Array], Array]) -> None:
    positions = layout(np.array([[7, 0, 3, 10**9, 2]]))
    assert positions.shape == (1, LENGTH)
    assert_same_bits(_call(name, positions=positions), _call(name, positions=positions[0]))
    assert_same_bits(_call(name, positions=positions / 2), _call(name, positions=positions[0] / 2))


@of_functions_of_rows
@pytest.mark.parametrize("layout", [_plain, _with_odd_strides])
def test_a_mask_of_one_row_is_that_of_all(name: str, layout: Callable[[Array], Array]) -> None:
    mask = layout(np.array([[False, True, True, False, True]]))
    assert_same_bits(_call(name, mask=mask), _call(name, mask=mask[0]))


def test_encode_takes_a_mask_of_one_row_for_a_batch() -> None:
    mask = np.array([[False, True, True, False, True]])
    assert_same_bits(_call("encode", mask=mask, offset=[4, 5, 6]), _call("encode", mask=mask[0], offset=[4, 5, 6]))
    assert_same_bits(_call("encode", mask=mask), _call("encode", mask=mask[0])[None])
    positions = np.arange(BATCH * LENGTH).reshape(BATCH, LENGTH)
    of_all = fastpe.encode(positions, WIDTH, mask=np.repeat(mask, BATCH, axis=0))
    assert_same_bits(fastpe.encode(positions, WIDTH, mask=mask), of_all)


@of_every_function
@pytest.mark.parametrize("keyword", ["offset", "lengths"])
@pytest.mark.parametrize("layout", [_plain, _with_odd_strides])
def test_one_number_per_row_may_stand_in_a_column(name: str, keyword: str, layout: Callable[[Array], Array]) -> None:
    column = layout(np.array([[4], [0], [2]]))
    assert column.shape == (BATCH, 1)
    assert_same_bits(_call(name, **{keyword: column}), _call(name, **{keyword: column[:, 0]}))


def test_offsets_of_packed_sequences_may_stand_in_a_column() -> None:
    x = np.zeros((LENGTH, WIDTH))
    expected = fastpe.add(x, cu_seqlens=[0, 2, 5], offset=[10, 20])
    assert_same_bits(fastpe.add(x, cu_seqlens=[0, 2, 5], offset=[[10], [20]]), expected)


def test_rows_without_a_batch_axis_take_one_of_length_1() -> None:
    x = np.zeros((LENGTH, WIDTH))
    positions, mask = np.array([[3, 1, 4, 1, 5]]), np.array([[True, False, True, True, False]])
    expected = fastpe.add(x, positions=positions[0], mask=mask[0])
    assert_same_bits(fastpe.add(x, positions=positions, mask=mask), expected)
    assert_same_bits(fastpe.add(x, offset=[[7]], lengths=[[2]]), fastpe.add(x, offset=7, lengths=2))


@of_functions_of_rows
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("layout", [_plain, _with_odd_strides])
def test_learned_tables_may_have_an_axis_of_length_1(name: str, axis: int, layout: Callable[[Array], Array]) -> None:
    table = np.random.default_rng(2).standard_normal((9, WIDTH))
    if layout is not _plain:
        table = np.repeat(table, 2, axis=0)[::-2]
    wide = np.expand_dims(table, axis)
    assert_same_bits(_call(name, table=wide, offset=2), _call(name, table=table, offset=2))


def test_learned_tables_of_one_row_may_have_an_axis_of_length_1() -> None:
    x, row = np.ones((1, 4)), np.arange(4.0)
    assert_same_bits(fastpe.add(x, table=row[None, None]), x + row)


def test_empty_batches_take_what_stands_for_all_rows() -> None:
    x = np.zeros((0, LENGTH, WIDTH))
    for rows in (0, 1):
        positions, mask = np.zeros((rows, LENGTH), int), np.ones((rows, LENGTH), bool)
        assert fastpe.add(x, positions=positions, mask=mask).shape == x.shape
    assert fastpe.add(x, offset=np.zeros((0, 1), int), lengths=np.zeros((0, 1), int)).shape == x.shape


@pytest.mark.parametrize(
    "arguments",
    [
        # A list of one may miss the others; an int says that it is for all.
        {"offset": [1]},
        {"offset": [[1]]},
        {"lengths": [[1, 2, 3]]},
        {"lengths": np.ones((3, 1, 1), int)},
        {"positions": [[1], [2], [3]]},
        {"positions": np.zeros((2, 5), int)},
        {"positions": [[1]]},
        {"positions": [[0, 1, np.nan, 2, 3]]},
        {"mask": np.ones((3, 1), bool)},
        {"mask": np.ones((2, 5), bool)},
        {"mask": np.ones((1, 1, 5), bool)},
        {"table": np.ones((2, 3, 8))},
        {"table": np.ones((1, 1, 5, 8))},
        {"table": np.ones((1, 5, 6))},
    ],
)
def test_what_would_be_ambiguous_is_refused_before_anything_is_written(arguments: dict[str, Any]) -> None:
    x = np.zeros((BATCH, LENGTH, WIDTH))
    with pytest.raises(ValueError, match=naming(*arguments)):
        fastpe.add_(x, **arguments)
    assert (x == 0).all()


def test_a_table_of_embeddings_has_two_axes() -> None:
    with pytest.raises(ValueError, match=naming("table")):
        fastpe.embed([0, 1], np.ones((1, 4, 8)))
