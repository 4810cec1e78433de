# SPDX-License-Identifier: BSD-3-Clause
"""What a rotation leaves alone, and its special values. tests/composed compares all others with NumPy's expression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.model import Array, pair_columns
from ..oracles.reference import DTYPES, assert_same_bits, bits

pytestmark = pytest.mark.usefixtures("instruction_set")

FLOAT32, FLOAT64, FLOAT16 = DTYPES[:3]
PAIRINGS = pytest.mark.parametrize("interleaved", [False, True])
ALL_DTYPES = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def normal(shape: tuple[int, ...], dtype: np.dtype[Any] = FLOAT64, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("factor", [1.0, 1.2])
def test_keys_come_to_other_positions(factor: float) -> None:
    rope = fastpe.RotaryEmbedding(64, interleaved=False, attention_factor=factor)
    x = normal((2, 5, 64), seed=8)
    there = rope.rotate(x, offset=1000, seq_axis=-2)
    np.testing.assert_allclose(rope.rotate(there, offset=1000, inverse=True, seq_axis=-2), x, rtol=0, atol=1e-13)
    np.testing.assert_allclose(
        rope.shift_(there, by=-990, seq_axis=-2), rope.rotate(x, offset=10, seq_axis=-2), rtol=0, atol=1e-13
    )
    np.testing.assert_allclose(rope.shift_(there, by=-np.arange(10, 15), seq_axis=-2), factor * x, rtol=0, atol=1e-13)


# ---- what is left alone


def with_nan_payloads(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Every element is a NaN with bits of its own."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    count = int(np.prod(shape))
    exponent = bits(np.array([np.inf]).astype(dtype))[0]
    signs = (np.arange(count) % 2).astype(unsigned) << unsigned.type(8 * dtype.itemsize - 1)
    payloads = (np.arange(count) % 61 + 1).astype(unsigned)
    result: Array = (exponent | signs | payloads).reshape(shape).view(dtype)
    return result


@PAIRINGS
@ALL_DTYPES
@pytest.mark.parametrize("step", [1, 2])
def test_columns_and_rows_that_are_left_keep_their_bits(step: int, dtype: np.dtype[Any], interleaved: bool) -> None:
    rope = fastpe.RotaryEmbedding(6, interleaved=interleaved, head_dim=11)
    x = with_nan_payloads((3, 2, 5, 11 * step), dtype)[..., ::step]
    assert len(np.unique(bits(x))) > 50
    x[..., :6] = 1
    some = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
    for call, valid in (({"valid": some}, some), ({"lengths": [0, 5, 3]}, np.arange(5) < np.array([[0], [5], [3]]))):
        rows = with_nan_payloads((3, 2, 5, 11 * step), dtype)[..., ::step]
        rows[np.broadcast_to(valid[:, None], (3, 2, 5))] = x[np.broadcast_to(valid[:, None], (3, 2, 5))]
        before = rows.copy()
        results = [
            rope.rotate(rows, seq_axis=-2, **call),
            rope.rotate(rows, seq_axis=-2, **call, out=np.ones_like(rows)),
        ]
        rope.rotate_(rows, seq_axis=-2, **call)
        for result in (*results, rows):
            left = ~np.broadcast_to(valid[:, None], (3, 2, 5))
            np.testing.assert_array_equal(bits(result[left]), bits(before[left]))
            np.testing.assert_array_equal(bits(result[..., 6:]), bits(before[..., 6:]))
            assert np.isfinite(result[~left][:, :6].astype(float)).all()


ZEROS = {"rope_type": "proportional", "partial_rotary_factor": 0.5}


@PAIRINGS
@ALL_DTYPES
@pytest.mark.parametrize(("d", "step"), [(8, 1), (64, 2), (72, 1)])
def test_frequencies_of_0_keep_bits(d: int, step: int, dtype: np.dtype[Any], interleaved: bool) -> None:
    rope = fastpe.RotaryEmbedding(d, interleaved=interleaved, scaling=ZEROS, max_len=2)
    assert (rope.frequencies[d // 4 :] == 0).all()
    first, second = pair_columns(d, interleaved)
    still = np.concatenate([first[d // 4 :], second[d // 4 :]])
    turned = np.concatenate([first[: d // 4], second[: d // 4]])
    x = with_nan_payloads((4, d * step), dtype)[:, ::step]
    x[:, turned] = 1
    before = x.copy()
    outs = [
        rope.rotate(x, seq_axis=-2),
        rope.rotate(x, out=np.zeros_like(x), seq_axis=-2),
        rope.rotate(x, inverse=True, seq_axis=-2),
    ]
    rope.rotate_(x, seq_axis=-2)
    rope.shift_(x, by=3, seq_axis=-2)
    for result in (*outs, x):
        np.testing.assert_array_equal(bits(result[:, still]), bits(before[:, still]))
        assert (result[1:, turned] != before[1:, turned]).any()


def test_frequencies_of_0_are_multiplied_where_there_is_a_factor() -> None:
    rope = fastpe.RotaryEmbedding(8, interleaved=False, scaling=ZEROS, attention_factor=1.5)
    x = np.ones((3, 8), np.float32)
    x[0, 3] = np.inf
    y = rope.rotate(x, seq_axis=-2)
    assert (y[1:, [2, 3, 6, 7]] == 1.5).all()
    assert y[0, 3] == np.inf
    assert np.isnan(y[0, 7])
    # A shift has no factor.
    assert_same_bits(rope.shift_(x.copy(), by=[4, 5, 6], seq_axis=-2)[:, [2, 3, 6, 7]], x[:, [2, 3, 6, 7]])


@PAIRINGS
@ALL_DTYPES
@pytest.mark.parametrize("max_len", [0, 4])
def test_position_0_is_no_exception(max_len: int, dtype: np.dtype[Any], interleaved: bool) -> None:
    rope = fastpe.RotaryEmbedding(4, interleaved=interleaved, max_len=max_len)
    x = np.ones((2, 4), dtype)
    x[0, 0] = np.inf
    y = rope.rotate(x, positions=[0, 0], seq_axis=-2)
    partner = 1 if interleaved else 2
    assert y[0, 0] == np.inf
    assert np.isnan(y[0, partner])  # inf * 0
    assert_same_bits(y[1], x[1])
