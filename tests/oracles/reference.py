# SPDX-License-Identifier: BSD-3-Clause
"""The oracle: what the encoding is, written as plainly as possible and without a line of the package's code.

`exact_table` is the truth, by mpmath; `naive_row` the formula in float64; `add` and `embed` what a call means, row by row.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import mpmath  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[Any]
Row = Callable[[float], Array]

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


def naive_row(position: float, d_model: int, knobs: Knobs = VASWANI) -> Array:
    """The formula in float64: off by about 1e-16 times the position."""
    frequencies = [float(w) for w in exact_frequencies(d_model, knobs)]
    row = np.zeros(d_model)
    for j, column in enumerate(columns(d_model, knobs)):
        if column is not None:
            function, k = column
            row[j] = (math.cos if function == "cos" else math.sin)(position * frequencies[k])
    return row


def combine(x: Array, pe: Array, scale: float, alpha: float) -> Array:
    """``x * scale + alpha * pe`` as promised: in the dtype itself, or in float32 and rounded once."""
    with np.errstate(all="ignore"):
        if x.dtype in (np.float32, np.float64):
            return np.asarray(x * scale + alpha * pe)
        wide = x.astype(np.float32) * np.float32(scale) + np.float32(alpha) * pe.astype(np.float32)
        return np.asarray(wide.astype(x.dtype))


def row_is_valid(b: int, position_in_row: int, mask: Array | None, lengths: Array | None) -> bool:
    if lengths is not None:
        return position_in_row < int(lengths if lengths.ndim == 0 else lengths[b])
    if mask is not None:
        return bool(mask[position_in_row] if mask.ndim == 1 else mask[b, position_in_row])
    return True


def start_of_sequence(row: int, cu_seqlens: Iterable[int]) -> tuple[int, int]:
    """Index and start of the sequence that holds this row."""
    found = (0, 0)
    for index, start in enumerate(list(cu_seqlens)[:-1]):
        if start <= row:
            found = (index, int(start))
    return found


def position_of(
    b: int,
    row: int,
    valid_before: int,
    *,
    first: int,
    offset: Array | None,
    positions: Array | None,
    mask: Array | None,
    cu_seqlens: Sequence[int] | None,
) -> float:
    if positions is not None:
        value = positions[row] if positions.ndim == 1 else positions[b, row]
        return float(value) if np.issubdtype(positions.dtype, np.floating) else int(value)
    index, within = b, valid_before if mask is not None else row
    if cu_seqlens is not None:
        index, start = start_of_sequence(row, cu_seqlens)
        within = row - start
    added = 0 if offset is None else int(offset if offset.ndim == 0 else offset[index])
    return first + added + within


def add(
    x: Array,
    row_of: Row,
    *,
    seq_axis: int = -2,
    scale: float = 1.0,
    alpha: float = 1.0,
    first: int = 0,
    offset: Array | None = None,
    positions: Array | None = None,
    mask: Array | None = None,
    lengths: Array | None = None,
    cu_seqlens: Sequence[int] | None = None,
) -> Array:
    """A copy of x with the encoding added, one row at a time; `row_of` gives the encoding of one position."""
    result: Array = x.copy()
    rows = np.moveaxis(result, seq_axis, -2)
    for index in np.ndindex(rows.shape[:-2]):
        b = index[0] if index else 0
        valid_before = 0
        for row in range(rows.shape[-2]):
            if not row_is_valid(b, row, mask, lengths):
                continue
            position = position_of(
                b,
                row,
                valid_before,
                first=first,
                offset=offset,
                positions=positions,
                mask=mask,
                cu_seqlens=cu_seqlens,
            )
            at = (*index, row)
            rows[at] = combine(rows[at], row_of(position), scale, alpha)
            valid_before += 1
    return result


def embed(ids: Array, table: Array, row_of: Row, **keywords: Any) -> Array:
    """Rows of the table, with the encoding added."""
    gathered = np.empty((*ids.shape, table.shape[1]), table.dtype)
    for index in np.ndindex(ids.shape):
        gathered[index] = table[int(ids[index])]
    if ids.ndim == 0:
        return np.asarray(add(gathered[None], row_of, **keywords)[0])
    return add(gathered, row_of, **keywords)


def bits(array: Array) -> Array:
    """The array's bytes as unsigned integers, for comparisons that tell -0.0 from 0.0 and see NaNs."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def assert_same_bits(result: Array, expected: Array) -> None:
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    different = bits(result) != bits(expected)
    # Which of two NaNs an addition keeps is the processor's choice.
    wrong = different & ~(np.isnan(result) & np.isnan(expected))
    assert not wrong.any(), (
        f"{int(wrong.sum())} of {wrong.size} values differ, first at {np.argwhere(wrong)[0].tolist()}"
    )


class Rows:
    """Rows of the encoding for the oracle, one position at a time: `encode` of explicit positions, which the numeric
    contract's tests compare with exact values, and here once more with the formula.
    """

    def __init__(
        self, encode: Callable[..., Array], d_model: int, dtype: np.dtype[Any], knobs: Knobs = VASWANI
    ) -> None:
        self._encode = encode
        self._d_model = d_model
        # What is added to 16-bit embeddings is float32.
        self._dtype = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float32)
        self._knobs = knobs
        self._known: dict[float, Array] = {}

    def __call__(self, position: float) -> Array:
        if position not in self._known:
            row = self._encode([position], dtype=self._dtype)[0]
            expected = naive_row(position, self._d_model, self._knobs)
            np.testing.assert_allclose(row, expected, rtol=0, atol=1e-7 + 1e-15 * abs(position))
            self._known[position] = row
        return self._known[position]
