# SPDX-License-Identifier: BSD-3-Clause
"""`shift_`: the bits of `rotate_` with an attention factor of 1 and positions=by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.reference import DTYPES, assert_same_bits, bits
from ..oracles.strategies import values
from .calls import expected
from .oracle import Array

pytestmark = pytest.mark.usefixtures("instruction_set")

FLOAT32 = np.dtype(np.float32)
ROWS = np.array([0, -3, 2, 100, 7])
# What `by` is for [B, H, L, D] of 2, 3, 5 and 10, and the same as [B, L].
MOVES: list[tuple[Any, Any]] = [
    (0, np.zeros((2, 5))),
    (-4, np.full((2, 5), -4)),
    (np.int16(9), np.full((2, 5), 9)),
    (np.array(-7), np.full((2, 5), -7)),
    (2**53, np.full((2, 5), 2**53)),
    (2.5, np.full((2, 5), 2.5)),
    (ROWS, np.broadcast_to(ROWS, (2, 5))),
    (ROWS.tolist(), np.broadcast_to(ROWS, (2, 5))),
    (ROWS[None], np.broadcast_to(ROWS, (2, 5))),
    (ROWS / 4, np.broadcast_to(ROWS / 4, (2, 5))),
    (np.arange(10).reshape(5, 2).T, np.arange(10).reshape(5, 2).T),
    (np.array([[-4], [9]], np.int32), np.array([[-4], [9]]).repeat(5, 1)),
    (np.array([[0.5], [-9.25]], np.float32), np.array([[0.5], [-9.25]]).repeat(5, 1)),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("by", "positions"), MOVES, ids=lambda value: f"{np.asarray(value).tolist()}"[:20])
def test_it_is_a_rotation_by_the_moves(by: Any, positions: Array, dtype: np.dtype[Any]) -> None:
    for options in ({}, {"attention_factor": 1.3, "max_len": 8}, {"conjugate": True, "max_len": 1000}):
        rope = fastpe.RotaryEmbedding(8, interleaved=True, **options)
        unscaled = fastpe.RotaryEmbedding(8, interleaved=True, conjugate=rope.conjugate)
        x = values((2, 3, 5, 10), dtype, seed=1)
        same = unscaled.rotate(x, positions=positions)
        assert_same_bits(
            same,
            expected(
                x, {"rotary_dim": 8, "interleaved": True, **options, "attention_factor": 1.0}, positions=positions
            ),
        )
        across = x.transpose(2, 0, 1, 3).copy()
        assert rope.shift_(x, by=by) is x
        assert_same_bits(x, same)
        assert_same_bits(rope.shift_(across, by=by, seq_axis=0), same.transpose(2, 0, 1, 3))


def test_one_row_of_each_sequence() -> None:
    rope = fastpe.RotaryEmbedding(8, interleaved=False)
    x = values((3, 2, 1, 8), FLOAT32, seed=2)
    by = np.array([[4], [-5], [6]])
    same = rope.rotate(x, positions=by)
    assert_same_bits(rope.shift_(x, by=by), same)


@pytest.mark.parametrize("shape", [(7, 8), (7, 3, 8)])
def test_packed_rows(shape: tuple[int, ...]) -> None:
    rope, x = fastpe.RotaryEmbedding(8, interleaved=False), values(shape, FLOAT32, seed=3)
    by = np.array([3, 3, 3, -2, -2, 0, 9])
    same = rope.rotate(x, positions=by, seq_axis=0)
    assert_same_bits(rope.shift_(x, by=by, seq_axis=0), same)


@pytest.mark.parametrize("limit", [{"mask": [[1, 0, 1, 1, 0], [0, 1, 1, 0, 0]]}, {"lengths": [2, 5]}])
@pytest.mark.parametrize("by", [-4, ROWS, np.array([[-4], [9]])])
def test_rows_that_do_not_count_are_left(by: Any, limit: dict[str, Any]) -> None:
    rope, x = fastpe.RotaryEmbedding(8, interleaved=False), values((2, 3, 5, 8), FLOAT32, seed=4)
    limit = {name: np.array(value, bool if name == "mask" else int) for name, value in limit.items()}
    valid = limit.get("mask", np.arange(5) < limit.get("lengths", np.zeros(2, int))[:, None])
    valid = np.broadcast_to(valid[:, None], (2, 3, 5))
    before = x.copy()
    moved = rope.shift_(x.copy(), by=by)
    rope.shift_(x, by=by, **limit)
    np.testing.assert_array_equal(bits(x[~valid]), bits(before[~valid]))
    assert_same_bits(x[valid], moved[valid])


def test_several_arrays() -> None:
    rope = fastpe.RotaryEmbedding(8, interleaved=False)
    arrays = [values((2, heads, 5, 9), FLOAT32, seed=heads) for heads in (1, 4)] + [values((2, 5, 8), FLOAT32, seed=5)]
    by = np.array([[-4], [9]])
    same = [rope.shift_(x.copy(), by=by) for x in arrays]
    for found, array, moved in zip(rope.shift_(*arrays, by=by), arrays, same, strict=True):
        assert found is array
        assert_same_bits(array, moved)


@pytest.mark.parametrize("max_len", [0, 20])
@pytest.mark.parametrize("shape", [(), (5,), (1, 5), (2, 5), (2, 1)])
def test_several_coordinates(shape: tuple[int, ...], max_len: int) -> None:
    axes = [0, 2, 1, 1]
    rope = fastpe.RotaryEmbedding(8, interleaved=False, axes=axes, max_len=max_len, attention_factor=1.5)
    by = np.random.default_rng(6).integers(-20, 20, (*shape, 3))
    x = values((2, 3, 5, 8), FLOAT32, seed=7)
    positions = np.broadcast_to(by, (2, 5, 3))
    same = expected(x, {"rotary_dim": 8, "interleaved": False, "axes": axes}, positions=positions)
    assert_same_bits(rope.shift_(x, by=by), same)


@pytest.mark.parametrize("factor", [1.0, 1.2])
def test_keys_come_to_other_positions(factor: float) -> None:
    rope = fastpe.RotaryEmbedding(64, interleaved=False, attention_factor=factor)
    x = np.random.default_rng(8).standard_normal((2, 5, 64))
    there = rope.rotate(x, offset=1000)
    np.testing.assert_allclose(rope.shift_(there, by=-990), rope.rotate(x, offset=10), rtol=0, atol=1e-13)
    np.testing.assert_allclose(rope.shift_(there, by=-np.arange(10, 15)), factor * x, rtol=0, atol=1e-13)


@pytest.mark.parametrize("shape", [(0, 8), (2, 0, 8), (0, 3, 8)])
def test_nothing_is_moved(shape: tuple[int, ...]) -> None:
    x = np.empty(shape, np.float32)
    assert fastpe.RotaryEmbedding(8, interleaved=False).shift_(x, by=3) is x
