# SPDX-License-Identifier: BSD-3-Clause
"""Positions where an encoding is least accurate, found from what its frequencies are rather than at random.

An error of 1e-15 shows where the value is tiny, which is where position * frequency is nearly a multiple of a quarter
turn: multiples of the denominators of the frequency's continued fraction. The phase is least accurate where the
anchor's own phase lies near a tie, an odd multiple of an eighth of a turn, and the product's rounding leaves much.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import mpmath  # type: ignore[import-untyped]
import numpy as np

from .reference import Array, ulp

BLOCK_ROWS = 31  # positions of a block, its anchor in the middle
GROUP_ANCHORS = 17  # of which only the middle one's phase is computed, but in float64
FIXED_BITS = 256
LOWEST, HIGHEST = int(2**51.5), 2**53


class Worst(NamedTuple):
    """By how much an error exceeds the ulps allowed."""

    excess: float
    position: float
    column: int
    exact: Any


def allowed(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Ulps and what may come on top."""
    return (1.0, 2e-16) if dtype == np.float64 else (0.5, 1e-15)


def frequencies_of(convention: Any, d_model: int) -> list[Any]:
    """Radians per position of an even width, from the convention's fields."""
    denominator = (
        d_model / 2 - convention.denominator_offset if convention.denominator is None else convention.denominator
    )
    base, scale = mpmath.mpf(convention.base), mpmath.mpf(convention.freq_scale)
    return [scale * mpmath.power(base, -mpmath.mpf(k) / denominator) for k in range(d_model // 2)]


def columns_of(convention: Any, d_model: int, k: int) -> tuple[int, int]:
    """Where the sine and the cosine of frequency k stand."""
    first, second = (2 * k, 2 * k + 1) if convention.layout == "interleaved" else (k, k + d_model // 2)
    return (second, first) if convention.cosine_first else (first, second)


def convergents(value: Any) -> Iterator[int]:
    """Denominators of the continued fraction of 0 < value."""
    before, denominator = 0, 1
    while True:
        yield denominator
        rest = value - mpmath.floor(value)
        if rest < mpmath.mpf(2) ** -120:
            return
        value = 1 / rest
        before, denominator = denominator, int(mpmath.floor(value)) * denominator + before


def near_quarter_turns(quarters: Any, lowest: int, highest: int, count: int) -> list[int]:
    """Integers in [lowest, highest] whose product with `quarters` is close to an integer."""
    denominators = [1]
    for denominator in convergents(quarters):
        if denominator > highest // 64:
            break
        denominators.append(denominator)
    before, last = (denominators[-2], denominators[-1]) if len(denominators) > 1 else (0, 1)
    rng = np.random.default_rng(denominators)
    multiples = rng.integers(-(-lowest // last), highest // last, count, endpoint=True).tolist()
    others = rng.integers(-4, 4, count, endpoint=True).tolist()
    found = {a * last + b * before for a, b in zip(multiples, others, strict=True)}
    return sorted(p for p in found if lowest <= p <= highest)


class AnchorPhase:
    """Rounds an anchor's phase as the kernels do, from the frequency's leading 53 bits."""

    def __init__(self, radians: Any) -> None:
        turns = mpmath.mpf(BLOCK_ROWS) * radians / (2 * mpmath.pi)
        quarters = 4 * (turns - mpmath.nint(turns))
        self._exact = int(mpmath.floor(mpmath.ldexp(quarters, FIXED_BITS)))
        self._dropped = max(abs(self._exact).bit_length() - 53, 0)
        self._high = abs(self._exact) >> self._dropped

    def left(self, anchor: int) -> float:
        """Quarter turns that are left of it, in magnitude, without those of the rounded product: 1/2 and a rest."""
        product = int(float(anchor * self._high))
        one = 1 << (FIXED_BITS - self._dropped)
        whole, part = divmod(product, one)
        if 2 * part > one or (2 * part == one and whole % 2 == 1):
            whole += 1
        return abs(abs(anchor * self._exact) - (whole << FIXED_BITS)) / 2.0**FIXED_BITS


def anchor_of(position: int) -> int:
    return (position + BLOCK_ROWS // 2) // BLOCK_ROWS


def weakest(radians: Any, candidates: int, count: int) -> list[int]:
    """Positions with tiny values, those first of which the phase that they are turned from has the most left."""
    positions = near_quarter_turns(2 * radians / mpmath.pi, LOWEST, HIGHEST, candidates)
    phase = AnchorPhase(radians)

    def left(position: int) -> float:
        centre = (anchor_of(position) + GROUP_ANCHORS // 2) // GROUP_ANCHORS * GROUP_ANCHORS
        return phase.left(centre)

    return sorted(positions, key=lambda p: -left(p))[:count]


def weakest_float64(radians: Any, candidates: int, count: int) -> list[int]:
    """Whole blocks, those first of which the anchor's phase has the most left: no group is turned in float64, and an
    ulp of most values is larger than what is allowed beyond it.
    """
    rng = np.random.default_rng(53)
    # Where the anchors' products are largest.
    anchors = rng.integers(anchor_of(int(2**52.9)), anchor_of(HIGHEST) - 1, candidates).tolist()
    phase = AnchorPhase(radians)
    kept = sorted(anchors, key=lambda a: -phase.left(a))[: -(-count // BLOCK_ROWS)]
    return [a * BLOCK_ROWS + row for a in kept for row in range(-(BLOCK_ROWS // 2), BLOCK_ROWS // 2 + 1)]


def weakest_halves(radians: Any, count: int) -> list[float]:
    """Positions with a fraction of a half and tiny values; none has one beyond 2^52."""
    doubled = near_quarter_turns(radians / mpmath.pi, 2 * LOWEST, 2**53, 4 * count)
    return [p / 2 for p in doubled if p % 2 == 1][:count]


@functools.cache
def sine_and_cosine(radians: Any, position: float) -> tuple[Any, Any]:
    cosine, sine = mpmath.cos_sin(mpmath.mpf(position) * radians)
    return sine, cosine


def worst_error(table: Array, positions: Sequence[float], radians: Any, columns: tuple[int, int]) -> Worst:
    """Of one frequency's two columns."""
    ulps = allowed(table.dtype)[0]
    worst = Worst(-1.0, 0.0, 0, 0)
    for row, position in zip(table, positions, strict=True):
        for column, exact in zip(columns, sine_and_cosine(radians, position), strict=True):
            error = abs(mpmath.mpf(float(row[column])) - exact)
            excess = float(error - ulps * mpmath.mpf(float(ulp(np.float64(exact), table.dtype))))
            if excess > worst.excess:
                worst = Worst(excess, position, column, exact)
    return worst
