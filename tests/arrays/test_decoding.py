# SPDX-License-Identifier: BSD-3-Clause
"""One row for each of several sequences: calls that other libraries take are refused, and what means the same works."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fastpe

from ..oracles.reference import Array
from ..oracles.refusals import naming

ROPE = fastpe.RotaryEmbedding(16, interleaved=False)
TABLE = np.zeros((3, 16), np.float32)
PAST = np.array([17, 3, 60, 0])
MASK = np.array([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1], [0, 1, 0, 1, 1, 1]])
Call = Callable[..., Array]
CALLS: list[Call] = [fastpe.add, ROPE.rotate, lambda x, **rows: fastpe.embed(np.int64(x[..., 0]), TABLE, **rows)]


@pytest.mark.parametrize("call", CALLS)
def test_offsets_of_one_sequence_are_refused_without_a_batch_axis(call: Call) -> None:
    x = np.ones((4, 16), np.float32)
    with pytest.raises(ValueError, match=naming("offset")):
        call(x, offset=PAST)
    for row, position in zip(call(x[:, None], offset=PAST), PAST, strict=True):
        np.testing.assert_array_equal(row, call(x[:1], offset=int(position)))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("count", [1, 2])
def test_a_mask_with_earlier_rows_is_refused(call: Call, count: int) -> None:
    x = np.ones((3, 6, 16), np.float32)
    new = x[:, -count:]
    for mask in (MASK, MASK[:2]):
        with pytest.raises(ValueError, match=naming("mask")):
            call(new, mask=mask)
    expected = call(x, mask=MASK)[:, -count:]
    np.testing.assert_array_equal(call(new, mask=MASK[:, -count:], offset=MASK[:, :-count].sum(1)), expected)


def test_offsets_of_another_number_are_not_taken_for_those_of_rows() -> None:
    with pytest.raises(ValueError, match=naming("offset")):
        fastpe.add(np.ones((4, 16), np.float32), offset=PAST[:3])


def test_one_token_with_heads_needs_an_axis_for_rows() -> None:
    x = np.random.default_rng(0).standard_normal((4, 2, 16), dtype=np.float32)
    expected = [ROPE.rotate(each[None], seq_axis=0, offset=int(past))[0] for each, past in zip(x, PAST, strict=True)]
    np.testing.assert_array_equal(ROPE.rotate(x[:, :, None], offset=PAST)[:, :, 0], expected)


@pytest.mark.parametrize("call", CALLS[:2])
@pytest.mark.parametrize(
    "rows", [{"mask": MASK}, {"positions": np.tile(np.arange(6), (3, 1))}, {"positions": np.arange(6)}]
)
def test_rows_of_the_axis_before_are_refused(call: Call, rows: dict[str, Array]) -> None:
    x = np.ones((3, 6, 2, 16), np.float32)
    with pytest.raises(ValueError, match=naming(*rows)):
        call(x, **rows)
    expected = np.moveaxis(call(np.moveaxis(x, 1, 2), **rows), 2, 1)
    np.testing.assert_array_equal(call(x, **rows, seq_axis=-3), expected)


@pytest.mark.parametrize("call", CALLS[:2])
def test_lengths_of_the_axis_before_are_refused(call: Call) -> None:
    x, lengths = np.ones((3, 6, 2, 16), np.float32), [6, 1, 5]
    with pytest.raises(ValueError, match=naming("lengths")):
        call(x, lengths=lengths)
    expected = np.moveaxis(call(np.moveaxis(x, 1, 2), lengths=lengths), 2, 1)
    np.testing.assert_array_equal(call(x, lengths=lengths, seq_axis=-3), expected)
    for too_long, array in ((7, x), (6, x[:, 0])):
        with pytest.raises(ValueError, match=naming("lengths")):
            call(array, lengths=[too_long, 1, 5])


def test_rows_of_a_leading_sequence_are_refused() -> None:
    x = np.ones((6, 3, 16), np.float32)
    with pytest.raises(ValueError, match=naming("mask")):
        fastpe.add(x, mask=MASK)
    expected = fastpe.add(x.swapaxes(0, 1), mask=MASK).swapaxes(0, 1)
    np.testing.assert_array_equal(fastpe.add(x, mask=MASK, seq_axis=-3), expected)
