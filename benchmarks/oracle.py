# SPDX-License-Identifier: BSD-3-Clause
"""The exact encoding, by integer arithmetic on turns: nothing in common with the way fastpe computes it."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]


_fraction_bits = 96
_significand_bits = {"float32": 24, "float64": 53, "float16": 11, "bfloat16": 8}
_smallest_exponent = {"float32": -149, "float64": -1074, "float16": -24, "bfloat16": -133}

# Of `encoding` itself: sine and cosine of at most an eighth of a turn, in float64.
oracle_error = 4e-16
promised_error = 1e-15


def _mpmath() -> Any:
    # It has no types; comparing two installations does without it.
    return importlib.import_module("mpmath")


@functools.cache
def _turns(d_model: int, denominator: float) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Turns per position as 96-bit fractions: the upper 64 bits and the lower 32."""
    mpmath = _mpmath()
    with mpmath.workdps(60):
        count = (d_model + 1) // 2
        turns = [mpmath.power(10000, -mpmath.mpf(k) / denominator) / (2 * mpmath.pi) for k in range(count)]
        integers = [int(mpmath.nint(mpmath.ldexp(turn, _fraction_bits))) for turn in turns]
    high = np.array([integer >> 32 for integer in integers], np.uint64)
    low = np.array([integer & 0xFFFFFFFF for integer in integers], np.uint64)
    return high, low


def encoding(positions: npt.ArrayLike, d_model: int, *, concatenated: bool = False, shift: float = 0.0) -> Float64Array:
    """Sine and cosine, base 10000, of integer positions in [0, 2**32): shape S -> S + (d_model,)."""
    position = np.asarray(positions).astype(np.uint64)[..., None]
    assert int(position.max(initial=0)) < 1 << 32
    high, low = _turns(d_model, d_model / 2 - shift)
    fraction = position * high + ((position * low) >> np.uint64(32))  # of a turn, modulo 2**64
    quadrant = (fraction + np.uint64(1 << 61)) >> np.uint64(62)
    residual = (fraction - (quadrant << np.uint64(62))).view(np.int64)
    angle = residual * (2 * np.pi / 2.0**64)
    sine, cosine = np.sin(angle), np.cos(angle)
    is_odd = (quadrant & np.uint64(1)).astype(bool)
    sines, cosines = np.where(is_odd, cosine, sine), np.where(is_odd, -sine, cosine)
    is_negative = (quadrant & np.uint64(2)).astype(bool)
    sines, cosines = np.where(is_negative, -sines, sines), np.where(is_negative, -cosines, cosines)
    result = np.empty((*position.shape[:-1], d_model))
    if concatenated:
        result[..., : sines.shape[-1]], result[..., sines.shape[-1] :] = sines, cosines
    else:
        result[..., 0::2], result[..., 1::2] = sines, cosines[..., : d_model // 2]
    return result


def half_ulp(values: Float64Array, dtype: np.dtype[Any]) -> Float64Array:
    """Half a unit in the last place of `dtype` at each value."""
    _, exponent = np.frexp(values)
    half_ulp_exponent = np.maximum(exponent - _significand_bits[dtype.name], _smallest_exponent[dtype.name]) - 1
    return np.asarray(np.ldexp(1.0, half_ulp_exponent))


def check_itself() -> None:
    """Compare with mpmath's own sine and cosine at some positions."""
    generator = np.random.default_rng(1)
    d_model = 64
    mpmath = _mpmath()
    positions = [0, 1, 2, 10_000_000, *generator.integers(0, 1 << 32, 8).tolist()]
    actual = encoding(positions, d_model)
    with mpmath.workdps(60):
        for row, position in zip(actual, positions, strict=True):
            for column, value in enumerate(row.tolist()):
                angle = position * mpmath.power(10000, -mpmath.mpf(column // 2 * 2) / d_model)
                exact = mpmath.cos(angle) if column % 2 else mpmath.sin(angle)
                assert abs(exact - value) <= oracle_error, (position, column)
