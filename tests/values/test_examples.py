# SPDX-License-Identifier: BSD-3-Clause
"""Worked examples that the literature prints, to all their printed digits."""

from __future__ import annotations

import numpy as np
import pytest

import fastpe

pytestmark = pytest.mark.usefixtures("instruction_set")

D4_ROWS = [
    [0, 1, 0, 1],
    [0.84147098, 0.54030231, 0.00999983, 0.99995],
    [0.90929743, -0.41614684, 0.01999867, 0.99980001],
    [0.14112001, -0.9899925, 0.0299955, 0.99955003],
]


def test_four_columns_to_eight_digits() -> None:
    table = fastpe.encode(4, 4, dtype=np.float64)
    np.testing.assert_array_equal(table.round(8), D4_ROWS)
    np.testing.assert_array_equal(fastpe.encode(4, 4), table.astype(np.float32))


def test_eight_columns() -> None:
    encoding = fastpe.PositionalEncoding(8)
    np.testing.assert_allclose(encoding.wavelengths, 2 * np.pi * np.array([1, 10, 100, 1000]), rtol=1e-15)
    row = encoding.encode([1], dtype=np.float64)[0]
    np.testing.assert_array_equal(row.round(2), [0.84, 0.54, 0.10, 1.00, 0.01, 1.00, 0.00, 1.00])
    assert row[3].round(3) == 0.995


@pytest.mark.parametrize("convention", ["vaswani", "concat", "musicgen", "mlx"])
@pytest.mark.parametrize("k", [0, 1, -1, 7, -1000, 12345, 10**6, -(10**6)])
def test_shift_is_a_linear_function_of_the_encoding(k: int, convention: str) -> None:
    encoding = fastpe.PositionalEncoding(128, convention=convention)
    positions = np.array([0, 1, 2, 3, 17, 500, 4999, 65536, 10**6, 10**7])
    shifted = encoding.shift(encoding.encode(positions, dtype=np.float64), k)
    expected = encoding.encode(positions + k, dtype=np.float64)
    np.testing.assert_allclose(shifted, expected, rtol=0, atol=2e-15)
    # Linear: what it does to a sum is the sum of what it does.
    a, b = encoding.encode([3, 8], dtype=np.float64)
    np.testing.assert_allclose(
        encoding.shift(a + 2 * b, k), encoding.shift(a, k) + 2 * encoding.shift(b, k), atol=2e-15
    )
