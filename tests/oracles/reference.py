# SPDX-License-Identifier: BSD-3-Clause
"""The oracle: exact values of the encoding, by mpmath and without a line of the package. model.py has what calls mean."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import mpmath  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
import pytest

from .model import same_bits

Array = npt.NDArray[Any]

needs_64_bits = pytest.mark.skipif(sys.maxsize < 2**32, reason="a 32-bit machine has no such sizes or strides")

# Byte orders, as the names of dtypes begin.
NATIVE, FOREIGN = ("<", ">") if sys.byteorder == "little" else (">", "<")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), BFLOAT16)
MANTISSA_BITS = {DTYPES[0]: 23, DTYPES[1]: 52, DTYPES[2]: 10, DTYPES[3]: 7}
LEAST_EXPONENT = {DTYPES[0]: -126, DTYPES[1]: -1022, DTYPES[2]: -14, DTYPES[3]: -126}

# Positions to 2^53 times frequencies to 2^45, and 200 bits to spare for the fraction of a turn.
mpmath.mp.prec = 300


@dataclass(frozen=True)
class Knobs:
    """What tells one encoding from another."""

    interleaved: bool = True
    cosine_first: bool = False
    shift: float = 0.0
    pads_odd: bool = False
    base: float = 10000.0
    freq_scale: float = 1.0
    freqs: tuple[float, ...] | None = None


VASWANI = Knobs()


def frequency_count(d_model: int, knobs: Knobs) -> int:
    return d_model // 2 if knobs.pads_odd else (d_model + 1) // 2


def columns(d_model: int, knobs: Knobs) -> list[tuple[str, int] | None]:
    """Function and frequency of each column; None for a column of zeros."""
    first, second = ("cos", "sin") if knobs.cosine_first else ("sin", "cos")
    count = frequency_count(d_model, knobs)
    result: list[tuple[str, int] | None] = []
    if knobs.interleaved:
        for k in range(count):
            result += [(first, k), (second, k)]
    else:
        result += [(first, k) for k in range(count)]
        result += [(second, k) for k in range(count)]
    result.append(None)
    return result[:d_model]


@functools.lru_cache(maxsize=1024)
def exact_frequencies(d_model: int, knobs: Knobs = VASWANI) -> tuple[Any, ...]:
    count = frequency_count(d_model, knobs)
    if knobs.freqs is not None:
        return tuple(mpmath.mpf(value) for value in knobs.freqs)
    denominator = mpmath.mpf(count if knobs.pads_odd else d_model / 2) - mpmath.mpf(knobs.shift)
    return tuple(
        mpmath.mpf(knobs.freq_scale) * mpmath.power(mpmath.mpf(knobs.base), -mpmath.mpf(k) / denominator)
        for k in range(count)
    )


class Exact(NamedTuple):
    """A table as the sum of two float64 arrays: some 106 bits of the exact values."""

    high: Array
    low: Array


def exact_table(positions: Sequence[float], d_model: int, knobs: Knobs = VASWANI) -> Exact:
    frequencies = exact_frequencies(d_model, knobs)
    high = np.zeros((len(positions), d_model))
    low = np.zeros((len(positions), d_model))
    for i, position in enumerate(positions):
        pairs = [mpmath.cos_sin(mpmath.mpf(position) * w) for w in frequencies]
        for j, column in enumerate(columns(d_model, knobs)):
            if column is None:
                continue
            function, k = column
            value = pairs[k][0 if function == "cos" else 1]
            high[i, j] = float(value)
            low[i, j] = float(value - mpmath.mpf(high[i, j]))
    return Exact(high, low)


def ulp(values: Array, dtype: np.dtype[Any]) -> Array:
    """Distance between neighbours of `dtype` at these magnitudes."""
    exponents = np.frexp(values)[1] - 1
    return np.asarray(np.ldexp(1.0, np.maximum(exponents, LEAST_EXPONENT[dtype]) - MANTISSA_BITS[dtype]))


def errors(table: Array, exact: Exact) -> Array:
    """Absolute errors, themselves right to about 1e-16 of their size."""
    return np.abs((table.astype(np.float64) - exact.high) - exact.low)


def bits(array: Array) -> Array:
    """The array's bytes as unsigned integers, for comparisons that tell -0.0 from 0.0 and see NaNs."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def assert_same_bits(result: Array, expected: Array) -> None:
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    assert same_bits(result, expected), f"first at {np.argwhere(bits(result) != bits(expected))[0].tolist()}"


def values(shape: Sequence[int], dtype: np.dtype[Any], seed: int) -> Array:
    """Embeddings: ordinary ones, and now and then an extreme one."""
    rng = np.random.default_rng(seed)
    result = np.asarray(rng.standard_normal(tuple(shape))).astype(dtype)
    if result.size:
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 6e-8, 60000.0]).astype(dtype)
        flat = result.reshape(-1)
        flat[rng.integers(0, flat.size, 2)] = special[rng.integers(0, special.size, 2)]
    return result
