# SPDX-License-Identifier: BSD-3-Clause
"""Positions of rows that are not valid may be anything, in every state of an encoder: nothing depends on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.reference import Array, Knobs, assert_same_bits, exact_table, values

WIDTH, LIMIT = 16, 2**53
TABLES = Knobs(interleaved=False, cosine_first=True)
Rows = Sequence[int | float]
Call = Callable[[Array, dict[str, Any]], Array]
OfRow = Callable[[Array, float], Array]


def exact(position: float, knobs: Knobs) -> Array:
    return np.asarray(exact_table([position], WIDTH, knobs).high[0])


def added(row: Array, position: float) -> Array:
    return row + exact(position, Knobs())


def rotated(row: Array, position: float) -> Array:
    cos, sin = np.split(exact(position, TABLES), 2)
    first, second = np.split(row.astype(np.float64), 2)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin])


# What every encoder of a state went through before. Without max_len, rows are kept that are asked for again.
def fresh(make: Callable[..., Any]) -> Any:
    return make()


def warm(make: Callable[..., Any]) -> Any:
    encoder = make(max_len=8)
    encoder.warm_up()
    return encoder


def used(make: Callable[..., Any]) -> Any:
    encoder = make()
    for _ in range(3):
        (encoder.add_ if hasattr(encoder, "add_") else encoder.rotate_)(
            np.zeros((3, 8, WIDTH), np.float32), seq_axis=-2
        )
    return encoder


def encoding(**options: Any) -> Any:
    return fastpe.PositionalEncoding(WIDTH, **options)


def rope(**options: Any) -> Any:
    return fastpe.RotaryEmbedding(WIDTH, interleaved=False, **options)


STATES = (fresh, warm, used)


def calls_of(encoder: Any, embedding: Any, state: str) -> dict[str, tuple[Call, OfRow]]:
    return {
        f"add_ {state}": (lambda x, rows: encoder.add_(x, **rows), added),
        f"add {state}": (lambda x, rows: encoder.add(x, **rows), added),
        f"rotate_ {state}": (lambda x, rows: embedding.rotate_(x, seq_axis=-2, **rows), rotated),
    }


def shift_of(embedding: Any) -> Call:
    return lambda x, rows: embedding.shift_(x, by=rows.pop("positions"), seq_axis=-2, **rows)


TABLE, (COS, SIN) = encoding().encode(8), rope().tables(8)
CALLS: dict[str, tuple[Call, OfRow]] = {
    **{name: call for state in STATES for name, call in calls_of(state(encoding), state(rope), state.__name__).items()},
    "add_ by a table": (lambda x, rows: fastpe.add_(x, table=TABLE, **rows), added),
    "rotate_ by tables": (
        lambda x, rows: fastpe.rotate_by_tables_(x, cos=COS, sin=SIN, interleaved=False, seq_axis=-2, **rows),
        rotated,
    ),
}
SHIFTS = {state.__name__: shift_of(state(rope)) for state in STATES}


def check(call: Call, of_row: OfRow, positions: Rows, mask: Array, **rows: Any) -> None:
    for shape in ((len(mask), len(positions), WIDTH), (len(mask), 3, len(positions), WIDTH)):
        x = np.clip(values(shape, np.dtype(np.float32), seed=5), -4, 4)
        expected = x.copy()
        for b, l in np.argwhere(mask):
            for row in expected[b].reshape(-1, len(positions), WIDTH)[:, l]:
                row[:] = of_row(row, positions[l])
        found = call(x.copy(), {"positions": np.array(positions), **rows})
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)
        keep = np.broadcast_to(~mask.reshape(len(mask), *[1] * (len(shape) - 3), -1), shape[:-1])
        assert_same_bits(found[keep], x[keep])


LEFT_PADDED = np.array([0, 0, 0, 1, 1, 1], bool)
# Positions that a batch shares, and its mask.
CASES: dict[str, tuple[Rows, Any]] = {
    "running sum": ((np.cumsum(LEFT_PADDED) - 1).tolist(), [LEFT_PADDED] * 2),
    "descending from above": ([8, 7, 6, 5], [[0, 1, 1, 1]] * 2),
    "descending to below": ([2, 1, 0, -1, -2, -3], [[1, 1, 1, 0, 0, 0]] * 2),
    "beyond any integer": ([2**62, 0, 1, -(2**62), 2, 7], [[0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 1, 1]]),
    "not a number": ([np.nan, 0, 1, np.inf, 2.0, 7], [[0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 1, 1]]),
    "one after the other": ([-1, 0, 1, 2, 3, 9], [[0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0]]),
}


@pytest.mark.parametrize(("positions", "valid"), CASES.values(), ids=CASES)
@pytest.mark.parametrize(("call", "of_row"), CALLS.values(), ids=CALLS)
def test_positions_that_a_batch_shares(call: Call, of_row: OfRow, positions: Rows, valid: Any) -> None:
    mask = np.array(valid, bool)
    check(call, of_row, positions, mask, valid=mask)
    if (mask == mask[0]).all():
        check(call, of_row, positions, mask, valid=mask[0])
    lengths = mask.sum(1)
    if (mask == (np.arange(len(positions)) < lengths[:, None])).all():
        check(call, of_row, positions, mask, lengths=lengths)


@pytest.mark.parametrize(("positions", "valid"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("call", SHIFTS.values(), ids=SHIFTS)
def test_moves_that_a_batch_shares(call: Call, positions: Rows, valid: Any) -> None:
    mask = np.array(valid, bool)
    check(call, rotated, positions, mask, valid=mask)


@pytest.mark.parametrize("name", [name for name in CALLS if "fresh" in name])
def test_positions_at_the_limit(name: str) -> None:
    call, of_row = CALLS[name]
    for sign in (-1, 1):
        positions = [sign * (LIMIT - 1), sign * LIMIT, sign * (LIMIT + 1), sign * (LIMIT + 2)]
        for order, valid in ((slice(None), [1, 1, 0, 0]), (slice(None, None, -1), [0, 0, 1, 1])):
            mask = np.array([valid] * 2, bool)
            check(call, of_row, positions[order], mask, valid=mask)


@pytest.mark.parametrize(("call", "of_row"), CALLS.values(), ids=CALLS)
def test_offsets_of_sequences_without_valid_rows(call: Call, of_row: OfRow) -> None:
    x = values((3, 4, WIDTH), np.dtype(np.float32), seed=6).clip(-4, 4)
    expected = np.stack([x[0], [*x[1][:2], of_row(x[1][2], 3), of_row(x[1][3], 4)], x[2]])
    mask = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]], bool)
    for positions in ({"offset": [-9, 3, 2**62]}, {"positions": [[-9] * 4, [2**62, -1, 3, 4], [-1] * 4]}):
        np.testing.assert_allclose(call(x.copy(), {"valid": mask, **positions}), expected, rtol=0, atol=2e-6)
