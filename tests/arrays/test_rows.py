# SPDX-License-Identifier: BSD-3-Clause
"""Which rows a call changes, and at which positions: the same for sums, embeddings and rotations.

Each call is compared with the same call at explicit positions. tests/composed tries arrays of any layout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.reference import DTYPES, Array, assert_same_bits, bits, values
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
    "rotate": ROPE.rotate,
    "rotate_": lambda x, **rows: ROPE.rotate_(x.copy(), **rows),
    "by tables": lambda x, **rows: fastpe.rotate_by_tables_(x.copy(), cos=COS, sin=SIN, interleaved=False, **rows),
}
of_every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
of_sequences = pytest.mark.parametrize("call", [CALLS["add"], CALLS["rotate"]], ids=["add", "rotate"])


def embeddings(*shape: int) -> Array:
    return values(shape or (BATCH, LENGTH, WIDTH), np.dtype(np.float32), seed=3)


def with_odd_strides(array: Array) -> Array:
    return np.repeat(np.repeat(array, 2, axis=0), 3, axis=1)[::-2, ::-3][: len(array), ::-1]


@of_every_call
def test_counted_positions(call: Call) -> None:
    x = embeddings()

    def at(positions: Array) -> Array:
        return call(x, positions=positions)

    counted = np.arange(LENGTH)
    assert_same_bits(call(x), at(counted))
    assert_same_bits(call(x, offset=7), at(counted + 7))
    starts = np.array([[7], [0], [20]])
    assert_same_bits(
        at(counted + starts), np.stack([call(one, offset=s.item()) for one, s in zip(x, starts, strict=True)])
    )
    for offset in (starts, starts[:, 0], starts[:, 0].tolist(), starts.astype(np.uint8), with_odd_strides(starts)):
        assert_same_bits(call(x, offset=offset), at(counted + np.reshape(offset, (BATCH, 1))))
    # A mask leaves rows alone, and positions count the others.
    masked = call(x, valid=VALID, offset=starts)
    expected = at(np.where(VALID, np.cumsum(VALID, axis=1) - 1 + starts, 0))
    assert_same_bits(masked[VALID], expected[VALID])
    left = embeddings() if call is not _embed else VOCABULARY[(x[..., 0] > 0) * 4]
    np.testing.assert_array_equal(bits(masked[~VALID]), bits(left[~VALID]))
    # Lengths leave the rows behind alone.
    for lengths in ([2, 0, 6], np.array([[2], [0], [6]])):
        cut = call(x, lengths=lengths, offset=starts)
        for one, whole, before, length in zip(cut, at(counted + starts), left, [2, 0, 6], strict=True):
            assert_same_bits(one[:length], whole[:length])
            np.testing.assert_array_equal(bits(one[length:]), bits(before[length:]))


@of_every_call
@pytest.mark.parametrize("layout", [lambda array: array, with_odd_strides], ids=["plain", "strided"])
def test_one_row_stands_for_all(call: Call, layout: Callable[[Array], Array]) -> None:
    x = embeddings()
    positions, valid = layout(np.array([[7, 0, 3, 50, 2, 2]])), layout(VALID[:1])
    assert positions.shape == valid.shape == (1, LENGTH)
    assert_same_bits(call(x, positions=positions), call(x, positions=np.repeat(positions, BATCH, axis=0)))
    assert_same_bits(call(x, valid=valid), call(x, valid=np.repeat(valid, BATCH, axis=0)))
    assert_same_bits(call(x[0], positions=positions, valid=valid), call(x[0], positions=positions[0], valid=valid[0]))
    assert_same_bits(call(x[0], offset=[[7]], lengths=[[2]]), call(x[0], offset=7, lengths=2))


@of_every_call
def test_packed_sequences(call: Call) -> None:
    x = embeddings(9, WIDTH)
    for offset in (None, [10, 3, 0, 20], [[10], [3], [0], [20]]):
        starts = np.repeat(np.zeros(4, int) if offset is None else np.ravel(offset), [4, 0, 4, 1])
        positions = np.array([0, 1, 2, 3, 0, 1, 2, 3, 0]) + starts
        for dtype in ("i4", "i8", "u8"):
            cu_seqlens = np.array([0, 4, 4, 8, 9], dtype)
            options = {} if call in (_embed, CALLS["add"], CALLS["add_"], CALLS["learned"]) else {"seq_axis": 0}
            found = call(x, cu_seqlens=cu_seqlens, offset=offset, **options)
            assert_same_bits(found, call(x, positions=positions, **options))


@of_sequences
@pytest.mark.parametrize("order", [(0, 2, 1, 3), (2, 0, 1, 3), (1, 0, 2, 3)], ids=["BLHD", "LBHD", "a view"])
def test_the_axis_of_the_sequence(call: Call, order: tuple[int, ...]) -> None:
    x, rows = embeddings(BATCH, 2, LENGTH, WIDTH), {"offset": [5, 0, 9], "valid": VALID}
    expected = call(x, **rows)
    if order == (1, 0, 2, 3):  # [B, H, L, D] as a view of another order in memory
        assert_same_bits(call(x.transpose(order).copy().transpose(order), **rows), expected)
    else:
        seq_axis = order.index(2)
        for axis in (seq_axis, seq_axis - 4):
            found = call(x.transpose(order).copy(), seq_axis=axis, **rows)
            assert_same_bits(found, expected.transpose(order))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_ten_axes(dtype: np.dtype[Any]) -> None:
    x = values((1, 2, 1, 2, 1, 2, 1, 2, LENGTH, WIDTH), dtype, seed=0)
    for call in (fastpe.add, ROPE.rotate):
        assert_same_bits(call(x), np.stack([call(one) for one in x.reshape(-1, LENGTH, WIDTH)]).reshape(x.shape))


@of_every_call
@pytest.mark.parametrize("bad", [np.nan, 1e300, -np.inf, 2.0**62])
def test_positions_of_rows_that_are_left_alone_are_not_looked_at(call: Call, bad: float) -> None:
    x, positions = embeddings(), np.tile([0.0, 1, 2, bad, bad, bad], (BATCH, 1))
    for valid in ({"lengths": [3, 1, 2]}, {"valid": np.arange(LENGTH) < 3}):
        for given in (positions, positions[0]):
            assert_same_bits(call(x, positions=given, **valid), call(x, positions=np.arange(LENGTH), **valid))
    with pytest.raises((ValueError, IndexError), match=naming("positions")):
        call(x, positions=positions)


@of_sequences
@pytest.mark.parametrize("start", [0, 10**7, 2**53 - 10_000])
def test_streaming_in_chunks(call: Call, start: int) -> None:
    x, at = embeddings(1, 600, WIDTH), 0
    whole = call(x, offset=start)
    for chunk in (1, 60, 60, 61, 31, 7, 380):
        assert_same_bits(call(x[:, at : at + chunk], offset=start + at), whole[:, at : at + chunk])
        at += chunk
    assert at == 600


def test_encode_leaves_rows_that_do_not_count_zero() -> None:
    valid = VALID[:, ::-1]
    for dtype in DTYPES:
        whole = fastpe.encode(LENGTH, WIDTH, dtype=dtype)
        out = np.full((BATCH, LENGTH, WIDTH), 7, dtype)
        fastpe.encode(LENGTH, WIDTH, valid=valid, out=out)
        by_length = fastpe.encode(LENGTH, WIDTH, dtype=dtype, lengths=[2, 0, 6])
        for found, row_valid, length, cut in zip(out, valid, [2, 0, 6], by_length, strict=True):
            assert_same_bits(found[row_valid], whole[: row_valid.sum()])
            assert not found[~row_valid].any()
            assert_same_bits(cut[:length], whole[:length])
            assert not cut[length:].any()
    positions = np.arange(BATCH * LENGTH).reshape(BATCH, LENGTH)
    expected = np.where(valid[:1, :, None], fastpe.encode(positions, WIDTH), np.float32(0))
    assert_same_bits(fastpe.encode(positions, WIDTH, valid=valid[:1]), expected)


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
def test_empty_batches_take_what_stands_for_all_rows(call: Call) -> None:
    x = np.zeros((0, LENGTH, WIDTH), np.float32)
    for rows in (0, 1):
        positions, valid = np.zeros((rows, LENGTH), int), np.ones((rows, LENGTH), bool)
        assert call(x, positions=positions, valid=valid).shape == x.shape
    assert call(x, offset=np.zeros((0, 1), int), lengths=np.zeros((0, 1), int)).shape == x.shape


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
