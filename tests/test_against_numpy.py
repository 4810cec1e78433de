# SPDX-License-Identifier: BSD-3-Clause
"""What fastpe computes, as ten lines of NumPy each. The other tests ask for more: exact bits, any array, any call."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastpe

Array = npt.NDArray[Any]
rng = np.random.default_rng(0)


def sinusoid(positions: Array, d_model: int) -> Array:
    """Sine and cosine of position / 10000^(2k / d), in neighbouring columns."""
    k = np.arange(d_model // 2)
    angles = positions[..., None] / 10000.0 ** (2 * k / d_model)
    table = np.empty((*positions.shape, d_model))
    table[..., 0::2], table[..., 1::2] = np.sin(angles), np.cos(angles)
    return table


def rotation(x: Array, positions: Array, *, interleaved: bool) -> Array:
    """Each pair of columns, as a point in the plane, turned by its angle."""
    d = x.shape[-1]
    angles = positions[:, None] / 10000.0 ** (2 * np.arange(d // 2) / d)
    cos, sin = np.cos(angles), np.sin(angles)
    neighbours, halves = (np.s_[..., 0::2], np.s_[..., 1::2]), (np.s_[..., : d // 2], np.s_[..., d // 2 :])
    first, second = neighbours if interleaved else halves
    result = np.empty_like(x)
    result[first] = x[first] * cos - x[second] * sin
    result[second] = x[second] * cos + x[first] * sin
    return result


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-6), (np.float16, 4e-3)])
def test_against_numpy(dtype: Any, tolerance: float) -> None:
    def check(found: Array, expected: Array) -> None:
        assert found.dtype == dtype
        np.testing.assert_allclose(found.astype(float), expected, rtol=tolerance, atol=tolerance)

    check(fastpe.encode(512, 768, dtype=dtype), sinusoid(np.arange(512), 768))
    check(fastpe.encode([3.5, -2.0], 10, dtype=dtype), sinusoid(np.array([3.5, -2.0]), 10))

    x = rng.standard_normal((4, 50, 64)).astype(dtype)
    check(fastpe.add(x, scale=2.0), x.astype(float) * 2 + sinusoid(np.arange(50), 64))
    starts = np.array([0, 7, 1000, -3])
    expected = x.astype(float) + sinusoid(starts[:, None] + np.arange(50), 64)
    assert fastpe.add_(x, offset=starts) is x
    check(x, expected)

    table, ids = rng.standard_normal((100, 64)).astype(dtype), rng.integers(0, 100, (4, 50))
    check(fastpe.embed(ids, table, scale=8.0), table[ids].astype(float) * 8 + sinusoid(np.arange(50), 64))

    q = rng.standard_normal((2, 3, 40, 64)).astype(dtype)
    for interleaved in (True, False):
        rope = fastpe.RotaryEmbedding(64, interleaved=interleaved)
        expected = rotation(q.astype(float), np.arange(40) + 9, interleaved=interleaved)
        check(rope.rotate(q, offset=9, seq_axis=-2), expected)
        cos, sin = rope.tables(49, dtype=dtype)
        given: Any = {"cos": cos, "sin": sin, "interleaved": interleaved, "offset": 9, "seq_axis": -2}
        check(fastpe.rotate_by_tables_(q.copy(), **given), expected)
