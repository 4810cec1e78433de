# SPDX-License-Identifier: BSD-3-Clause
"""What a call means: which position each row has, if any, and the exact value of a position.

A value's last bit is the package's, from a call for this one row without kept rows, once it is within the promised bounds of the
exact value. So it does not depend on anything but position, frequency and dtype.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import mpmath  # type: ignore[import-untyped]
import numpy as np

import fastpe

from ..oracles.reference import Array, Exact, Knobs, columns, errors, exact_frequencies, ulp
from ..oracles.weak_spots import allowed

LARGEST = 2**53
KNOBS = {
    "vaswani": Knobs(),
    "concat": Knobs(interleaved=False),
    "fairseq": Knobs(interleaved=False, shift=1.0, pads_odd=True),
    "musicgen": Knobs(interleaved=False, shift=1.0, pads_odd=True, cosine_first=True),
}


def positions_of(
    batch: int, length: int, *, first: int = 0, offsets: Sequence[int] | None = None, positions: Any = None,
    valid: Any = None, lengths: Sequence[int] | None = None, starts: Sequence[int] | None = None,
) -> Array:  # fmt: skip
    """The position of each row, [batch, L]; None of rows that are not valid. `starts` are those of packed sequences."""
    result = np.full((batch, length), None)
    for b in range(batch):
        counted = 0
        for row in range(length):
            if (valid is not None and not valid[b][row]) or (lengths is not None and row >= lengths[b]):
                continue
            if positions is not None:
                result[b, row] = positions[b][row]
            elif starts is not None:
                sequence = bisect.bisect_right(starts, row) - 1
                result[b, row] = first + (offsets[sequence] if offsets else 0) + row - starts[sequence]
            else:
                result[b, row] = first + (offsets[b] if offsets else 0) + counted
                counted += 1
    return result


def are_allowed(positions: Array, table_rows: int | None) -> bool:
    """Whether each position of a valid row can be encoded, or is a row of the table."""
    numbers: list[Any] = []
    for position in (position for position in positions.ravel() if position is not None):
        numbers += position if isinstance(position, tuple) else [position]
    if table_rows is None:
        return all(abs(number) <= LARGEST for number in numbers)  # which a NaN is not
    return all(0 <= number < table_rows and number == math.floor(number) for number in numbers)


@functools.lru_cache(maxsize=10_000)
def cosines_sines_of(frequencies: tuple[Any, ...], position: Any) -> list[tuple[Any, Any]]:
    return [mpmath.cos_sin(frequency * position) for frequency in frequencies]


class Encoding(NamedTuple):
    d_model: int
    convention: Any = "vaswani"
    frequencies: tuple[float, ...] | None = None

    def make(self, max_len: int | None) -> fastpe.PositionalEncoding:
        return fastpe.PositionalEncoding(
            self.d_model, convention=self.convention, max_len=max_len, frequencies=self.frequencies
        )

    @property
    def first_position(self) -> int:
        return 2 if self.convention == "fairseq" else 0

    def exact(self, position: Any) -> list[Any]:
        knobs = dataclasses.replace(KNOBS[self.convention], freqs=self.frequencies)
        turns = cosines_sines_of(exact_frequencies(self.d_model, knobs), position)
        places = columns(self.d_model, knobs)
        return [mpmath.mpf(0) if place is None else turns[place[1]][place[0] == "sin"] for place in places]

    def one_row(self, position: Any, dtype: np.dtype[Any]) -> Array:
        return np.asarray(_plain(self).encode(np.array([position]), dtype=dtype))


class Rotary(NamedTuple):
    rotary_dim: int
    interleaved: bool
    conjugate: bool = False
    attention_factor: float = 1.0
    coordinates: tuple[int, ...] | None = None  # of each frequency
    head_dim: int | None = None
    frequencies: tuple[float, ...] | None = None

    @property
    def coordinate_count(self) -> int:
        """How many coordinates a position has; 0: it is a number."""
        return 0 if self.coordinates is None else max(self.coordinates) + 1

    def make(self, max_len: int | None) -> fastpe.RotaryEmbedding:
        return fastpe.RotaryEmbedding(
            self.rotary_dim, max_len=max_len, interleaved=self.interleaved, conjugate=self.conjugate, head_dim=self.head_dim,
            attention_factor=self.attention_factor, frequency_axes=self.coordinates, frequencies=self.frequencies,
        )  # fmt: skip

    def exact(self, position: Any) -> list[Any]:
        turns = cosines_sines_of(exact_frequencies(self.rotary_dim, Knobs(freqs=self.frequencies)), position)
        return [mpmath.mpf(self.attention_factor) * turn[part] for part in (0, 1) for turn in turns]

    def one_row(self, position: Any, dtype: np.dtype[Any]) -> Array:
        return np.concatenate(_plain(self).tables(np.array([position]), form="halves", dtype=dtype), -1)


@functools.cache
def _plain(source: Encoding | Rotary) -> Any:
    return source.make(max_len=0)


@functools.cache
def _row(source: Encoding | Rotary, position: Any, dtype: np.dtype[Any]) -> Array:
    """The row of a position: PE, or cosines and then sines."""
    row, exact = source.one_row(position, dtype)[0], source.exact(position)
    high = np.array([float(value) for value in exact])
    low = np.array([float(value - part) for value, part in zip(exact, high.tolist(), strict=True)])
    ulps, beyond = allowed(dtype)
    factor = max(1.0, getattr(source, "attention_factor", 1.0))
    assert (errors(row, Exact(high, low)) <= ulps * ulp(high, dtype) + beyond * factor).all(), (source, position, dtype)
    return np.asarray(row)


def encoded(source: Encoding, positions: Array, dtype: np.dtype[Any]) -> Array:
    """PE of each row, [batch, L, C]; anything where a row is not valid."""
    rows = [_row(source, position or 0, dtype) for position in positions.ravel()]
    return np.array(rows, dtype).reshape(*positions.shape, source.d_model)


def cosines_and_sines(source: Rotary, positions: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Each [batch, L, rotary_dim / 2]; anything where a row is not valid."""
    half, axes = source.rotary_dim // 2, source.coordinates
    plain = Rotary(
        source.rotary_dim, interleaved=False, attention_factor=source.attention_factor, frequencies=source.frequencies
    )

    def row(position: Any) -> Array:
        if axes is None or position is None:
            return _row(plain, position or 0, dtype)
        parts = [_row(plain, each, dtype) for each in position]
        return np.array([parts[axes[column % half]][column] for column in range(2 * half)], dtype)

    rows = np.array([row(position) for position in positions.ravel()], dtype).reshape(*positions.shape, 2 * half)
    return rows[..., :half], rows[..., half:]
