# SPDX-License-Identifier: BSD-3-Clause
"""Which rows a call changes, and at which positions: the same for sums, embeddings and rotations.

Each call is compared with another that means the same. tests/composed compares random ones with a model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.reference import DTYPES, Array, assert_same_bits, values
from ..oracles.refusals import naming

BATCH, LENGTH, WIDTH = 3, 6, 16
ROPE = fastpe.RotaryEmbedding(WIDTH, interleaved=False)
COS, SIN = ROPE.tables(60)
VOCABULARY = np.random.default_rng(0).standard_normal((9, WIDTH)).astype(np.float32)
VALID = np.array([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1], [0, 1, 0, 1, 1, 0]], bool)

Call = Callable[..., Array]


def _embed(x: Array, **rows: Any) -> Array:
    return fastpe.embed((x[..., 0] > 0) * 4, VOCABULARY, **rows)


CALLS: dict[str, Call] = {
    "add": fastpe.add,
    "add_": lambda x, **rows: fastpe.add_(x.copy(), **rows),
    "learned": lambda x, **rows: fastpe.add(x, table=np.concatenate([COS, SIN], -1), **rows),
    "embed": _embed,
    "rotate": lambda x, **rows: ROPE.rotate(x, **{"seq_axis": -2, **rows}),
    "rotate_": lambda x, **rows: ROPE.rotate_(x.copy(), **{"seq_axis": -2, **rows}),
    "by tables": lambda x, **rows: fastpe.rotate_by_tables_(
        x.copy(), cos=COS, sin=SIN, interleaved=False, **{"seq_axis": -2, **rows}
    ),
}
of_every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
of_sequences = pytest.mark.parametrize("call", [CALLS["add"], CALLS["rotate"]], ids=["add", "rotate"])


def embeddings(*shape: int) -> Array:
    return values(shape or (BATCH, LENGTH, WIDTH), np.dtype(np.float32), seed=3)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_ten_axes(dtype: np.dtype[Any]) -> None:
    x = values((1, 2, 1, 2, 1, 2, 1, 2, LENGTH, WIDTH), dtype, seed=0)
    for call in (fastpe.add, CALLS["rotate"]):
        assert_same_bits(call(x), np.stack([call(one) for one in x.reshape(-1, LENGTH, WIDTH)]).reshape(x.shape))


@of_sequences
@pytest.mark.parametrize("start", [0, 10**7, 2**53 - 10_000])
def test_streaming_in_chunks(call: Call, start: int) -> None:
    x, at = embeddings(1, 600, WIDTH), 0
    whole = call(x, offset=start)
    for chunk in (1, 60, 60, 61, 31, 7, 380):
        assert_same_bits(call(x[:, at : at + chunk], offset=start + at), whole[:, at : at + chunk])
        at += chunk
    assert at == 600


@pytest.mark.parametrize("axis", [0, 1])
def test_learned_tables_may_have_an_axis_of_length_1(axis: int) -> None:
    table = np.random.default_rng(2).standard_normal((9, WIDTH)).astype(np.float32)
    for layout in (table, np.repeat(table, 2, axis=0)[::-2]):
        wide, x = np.expand_dims(layout, axis), embeddings()
        assert_same_bits(fastpe.add(x, table=wide, offset=2), fastpe.add(x, table=layout, offset=2))
        ids = np.zeros((2, 5), int)
        found = fastpe.embed(ids, VOCABULARY, position_table=wide, offset=2)
        assert_same_bits(found, fastpe.embed(ids, VOCABULARY, position_table=layout, offset=2))
    assert_same_bits(fastpe.add(x[0, :1], table=table[None, :1]), x[0, :1] + table[:1])


@of_every_call
@pytest.mark.parametrize(
    "rows",
    [
        # A list of one may miss the others; an int says that it is for all.
        {"offset": [1]},
        {"offset": [[1]]},
        {"lengths": [[1, 2, 3]]},
        {"lengths": np.ones((3, 1, 1), int)},
        {"positions": [[1], [2], [3]]},
        {"positions": np.zeros((2, LENGTH), int)},
        {"positions": [[1]]},
        {"valid": np.ones((3, 1), bool)},
        {"valid": np.ones((2, LENGTH), bool)},
        {"valid": np.ones((1, 1, LENGTH), bool)},
    ],
    ids=str,
)
def test_what_would_be_ambiguous_is_refused(call: Call, rows: dict[str, Any]) -> None:
    x = embeddings()
    with pytest.raises(ValueError, match=naming(*rows)):
        call(x, **rows)


# ---- One row for each of several sequences: calls that other libraries take are refused, and what means the same works.

PAST = np.array([17, 3, 50])


@of_every_call
def test_offsets_of_one_sequence_are_refused_without_a_batch_axis(call: Call) -> None:
    x = embeddings(BATCH, WIDTH)
    with pytest.raises(ValueError, match=naming("offset")):
        call(x, offset=PAST)
    rows = call(x[:, None], offset=PAST)[:, 0]
    for row, token, position in zip(rows, x, PAST, strict=True):
        assert_same_bits(row, call(token[None], offset=int(position))[0])


@of_every_call
@pytest.mark.parametrize("count", [1, 2])
def test_a_mask_with_earlier_rows_is_refused(call: Call, count: int) -> None:
    x, valid = embeddings(), VALID | (np.arange(LENGTH) > 3)
    new = x[:, -count:]
    for wrong in (valid, valid[:2]):
        with pytest.raises(ValueError, match=naming("valid")):
            call(new, valid=wrong)
    found = call(new, valid=valid[:, -count:], offset=valid[:, :-count].sum(1))
    assert_same_bits(found, call(x, valid=valid)[:, -count:])


@of_sequences
@pytest.mark.parametrize(
    "rows", [{"valid": VALID}, {"positions": np.tile(np.arange(LENGTH), (3, 1))}, {"lengths": [6, 1, 5]}]
)
def test_rows_of_the_axis_before_are_refused(call: Call, rows: dict[str, Any]) -> None:
    x = embeddings(BATCH, LENGTH, 2, WIDTH)
    with pytest.raises(ValueError, match=naming(*rows)):
        call(x, **rows)
    assert_same_bits(call(x, **rows, seq_axis=-3), np.moveaxis(call(np.moveaxis(x, 1, 2), **rows), 2, 1))
