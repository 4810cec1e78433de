# SPDX-License-Identifier: BSD-3-Clause
"""Worked examples that the literature prints, to all their printed digits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fastpe

from ..oracles.reference import Array
from ..oracles.refusals import naming

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


def test_batch_of_two_sentences() -> None:
    np.testing.assert_allclose(fastpe.PositionalEncoding(4).frequencies, [1, 0.01], rtol=1e-15)
    first = np.arange(0.1, 1.25, 0.1)
    x = np.stack([first, first + 1.0]).reshape(2, 3, 4).round(1)
    assert x[1, -1, -1] == 2.2
    before = x.copy()
    assert fastpe.add_(x) is x
    np.testing.assert_allclose(x[0, 1], [0.5 + 0.8415, 0.6 + 0.5403, 0.7 + 0.0100, 0.8 + 0.99995], rtol=0, atol=5e-5)
    np.testing.assert_array_equal(x[0, 1, 3].round(5), 1.79995)
    np.testing.assert_allclose((x - before)[0], (x - before)[1], rtol=0, atol=1e-15)
    for item in (0, 1):
        np.testing.assert_array_equal(x[item], before[item] + fastpe.encode(3, 4, dtype=np.float64))


def test_i_like_deep_learning() -> None:
    x = np.array(
        [
            [
                [0.1, 0.3, -0.2, 0.5, 0.1, -0.4],
                [0.2, 0.1, 0.3, 0.2, 0.4, 0.1],
                [0.5, 0.2, -0.1, 0.3, 0.7, -0.2],
                [0.3, 0.6, 0.1, 0.2, 0.5, 0.4],
            ]
        ]
    )
    expected = x.copy()
    for p in range(4):
        for k in range(3):
            angle = p / 10000 ** (2 * k / 6)
            expected[0, p, 2 * k] += math.sin(angle)
            expected[0, p, 2 * k + 1] += math.cos(angle)
    fastpe.add_(x)
    assert x.shape == (1, 4, 6)
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(x[0, 0], [0.1, 1.3, -0.2, 1.5, 0.1, 0.6])


def test_values_lie_in_the_unit_interval() -> None:
    for dtype in (np.float32, np.float64, np.float16):
        table = fastpe.encode(5000, 512, dtype=dtype)
        assert np.abs(table).max() <= 1


@pytest.mark.parametrize("d_model", [2, 4, 64, 512, 768])
def test_wavelengths_are_a_geometric_progression(d_model: int) -> None:
    wavelengths = fastpe.PositionalEncoding(d_model).wavelengths
    exponents = 2 * np.arange(d_model // 2) / d_model
    np.testing.assert_allclose(wavelengths, 2 * np.pi * 10000.0**exponents, rtol=1e-14)
    assert wavelengths[0] == 2 * np.pi
    assert wavelengths[-1] < 10000 * 2 * np.pi
    ratios = wavelengths[1:] / wavelengths[:-1]
    np.testing.assert_allclose(ratios, 10000 ** (2 / d_model), rtol=1e-14)


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


def test_shift_checks_its_input() -> None:
    odd = fastpe.PositionalEncoding(5)
    with pytest.raises(ValueError, match=naming("d_model")):
        odd.shift(odd.encode([1], dtype=np.float64), 1)
    encoding = fastpe.PositionalEncoding(4)
    with pytest.raises(ValueError, match=naming("pe")):
        encoding.shift(np.zeros((2, 6)), 1)
    with pytest.raises(TypeError, match=naming("pe")):
        encoding.shift(np.zeros((2, 4), np.float16), 1)
    single = encoding.shift(encoding.encode([5]), -5)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, encoding.encode([0]), rtol=0, atol=1e-7)


@pytest.mark.parametrize("position", [2**53, -(2**53), 2**53 - 1, 10**12, 2**31, 2.0**53, 1e15 + 0.5])
def test_no_position_is_refused_up_to_two_to_the_53(position: float) -> None:
    table = fastpe.encode(np.array([position]), 6, dtype=np.float64)
    np.testing.assert_allclose(table[0, ::2] ** 2 + table[0, 1::2] ** 2, 1, atol=1e-15)


def copied_loop(max_len: int, d_model: int) -> Array:
    """A loop found in many repositories: i is already even, and the 2 is there a second time."""
    pe = np.zeros((max_len, d_model))
    for pos in range(max_len):
        for i in range(0, d_model, 2):
            pe[pos, i] = math.sin(pos / (10000 ** ((2 * i) / d_model)))
            if i + 1 < d_model:
                pe[pos, i + 1] = math.cos(pos / (10000 ** ((2 * i) / d_model)))
    return pe


@pytest.mark.parametrize("d_model", [4, 6, 7, 128])
def test_the_copied_loop_is_base_1e8(d_model: int) -> None:
    table = fastpe.encode(10, d_model, base=1e8, dtype=np.float64)
    np.testing.assert_allclose(table, copied_loop(10, d_model), rtol=0, atol=2e-15)
    np.testing.assert_array_equal(table, fastpe.encode(10, d_model, convention="doubled_exponent", dtype=np.float64))


@pytest.mark.parametrize("d_model", [1, 3, 5, 33, 511])
def test_odd_widths_keep_the_last_sine(d_model: int) -> None:
    table = fastpe.encode(20, d_model, dtype=np.float64)
    last = [math.sin(p / 10000 ** ((d_model - 1) / d_model)) for p in range(20)]
    np.testing.assert_allclose(table[:, -1], last, rtol=0, atol=2e-15)
    assert fastpe.PositionalEncoding(d_model).frequencies.shape == ((d_model + 1) // 2,)
