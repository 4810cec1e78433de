# SPDX-License-Identifier: BSD-3-Clause
"""What columns of sines and cosines say of the angles behind them."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_float32_steps_error = 3e-6
# How far the points of a row may be off. The rounding of bfloat16 alone takes a tenth of this.
_same_phase = 0.05
# The largest logarithm of a base or a scale that is tried: nobody chooses larger ones.
largest_logarithm = 60.0
_turns_tried = 64
# The least factor between the frequencies with which a position is measured, one after the other.
_next_frequency = 4.0
_largest_denominator = 99
# Numbers with at most this many digits are taken for numbers that somebody chose.
_round_digits = 3


@dataclasses.dataclass(frozen=True)
class Phases:
    """Angles, as points on circles.

    Attributes
    ----------
    phasors : ndarray [rows, pairs]
        Cosine + i sine.
    rows : ndarray [rows]
        Which rows of the table they are.
    amplitude : float
        Radius of the circles.
    steps : ndarray [pairs]
        Radians per row, from -pi to pi.
    """

    phasors: npt.NDArray[np.complex128]
    rows: npt.NDArray[np.intp]
    amplitude: float
    steps: Floats

    def first_positions(self, frequencies: Floats) -> list[int]:
        """The integers that the position of row 0 can be, by these frequencies."""
        order = np.argsort(np.abs(frequencies))
        order = order[frequencies[order] != 0.0]
        if not order.size:
            return []
        slow = frequencies[order[0]]
        candidates = (np.angle(self._start(order[0], slow)) + 2.0 * np.pi * np.arange(-1, _turns_tried)) / slow
        before = abs(slow)
        for k in order[1:]:
            if abs(frequencies[k]) > _next_frequency * before:
                before = abs(frequencies[k])
                candidates += (
                    np.angle(self._start(k, frequencies[k]) * np.exp(-1j * frequencies[k] * candidates))
                    / (frequencies[k])
                )
        whole = np.rint(candidates)
        whole = np.unique(whole[np.abs(whole) < 2.0**31])
        first = self.phasors[0] / self.amplitude
        apart = np.abs(first - np.exp(1j * np.multiply.outer(whole + self.rows[0], frequencies))).max(axis=1)
        return [int(position) for position in whole[apart < _same_phase]]

    def _start(self, pair: int, frequency: float) -> complex:
        turned = self.phasors[:, pair] * np.exp(-1j * frequency * self.rows)
        return complex(turned.sum())


def measured(sines: Floats, cosines: Floats, rows: npt.NDArray[np.intp], rounding: float) -> Phases | None:
    """The phases; None where the two are no sines and cosines of the same angles."""
    pairs = min(sines.shape[1], cosines.shape[1])
    phasors = cosines[:, :pairs] + 1j * sines[:, :pairs]
    sizes = np.abs(phasors)
    amplitude = float(np.sqrt(np.mean(sizes**2))) if sizes.size else 0.0
    if not amplitude > 0.0 or np.abs(sizes - amplitude).max() > 8.0 * rounding * amplitude:
        return None
    return Phases(phasors, rows, amplitude, _steps(phasors, rows))


def _steps(phasors: npt.NDArray[np.complex128], rows: npt.NDArray[np.intp]) -> Floats:
    """The phase per row, from ever wider gaps between rows: each gap tells how many turns the next one has."""
    result = np.zeros(phasors.shape[1])
    lag = 1
    while lag < len(rows):
        apart = rows[lag:] - rows[:-lag] == lag
        if apart.any():
            turned = np.sum(phasors[lag:][apart] * phasors[:-lag][apart].conj(), axis=0)
            result += np.angle(turned * np.exp(-1j * result * lag)) / lag
        lag *= 2
    return result


def geometric(steps: Floats, exponents: Floats, base: float, scale: float, error: float) -> list[tuple[float, float]]:
    """Pairs of base and scale for which ``scale * base**-exponents`` are the steps, except for an error of the fastest.

    The given numbers come first. The others come from a line through the logarithms.
    """
    bases, scales = [base], [scale]
    if steps.size > 1 and (steps > 0.0).all():
        logarithms = np.log(steps)
        # The error of a phase does not depend on its size, so slow frequencies have a larger relative error.
        slope, intercept = np.polyfit(exponents, logarithms, 1, w=steps)
        weights = steps**2 * exponents
        with_scale = -np.sum(weights * (logarithms - math.log(abs(scale)))) / np.sum(weights * exponents)
        for logarithm in (with_scale, -slope):
            if abs(logarithm) < largest_logarithm:
                bases += nearby(math.exp(logarithm))
        if abs(intercept) < largest_logarithm:
            scales += nearby(math.exp(intercept))
    elif steps.size == 1:
        scales += nearby(float(steps[0]))
    pairs = [(each, factor) for each in dict.fromkeys(bases) for factor in dict.fromkeys(scales)]
    columns = np.array([pair for pair in pairs if pair[0] > 0.0 and pair[0] != 1.0]).reshape(-1, 2)
    # Steps are known except for whole turns.
    turned = np.exp(1j * (columns[:, 1:] * columns[:, :1] ** -exponents - steps))
    apart = np.abs(np.angle(turned)).max(axis=1, initial=0.0)
    near = apart < error * np.abs(steps).max(initial=0.0)
    return [(float(each), float(factor)) for each, factor in columns[near]]


def steps_error(rounding: float, rows: int) -> float:
    """How far measured steps may be off, relative to the fastest one, as entries and float32 angles are rounded."""
    return _float32_steps_error + 8.0 * rounding / rows


def nearby(value: float) -> list[float]:
    """Round numbers first, then round multiples of pi, and quotients of small integers: people choose those."""
    multiples = [rounded(value / math.pi, digits) * math.pi for digits in (1, 2)]
    quotient = float(Fraction(value).limit_denominator(_largest_denominator))
    quotients = [quotient] if quotient else []
    return [*(rounded(value, digits) for digits in (1, 2, 3, 5)), *multiples, *quotients, value]


def rounded(value: float, digits: int) -> float:
    """To significant decimal digits."""
    return float(f"{value:.{digits}g}")


def digits(value: float) -> int:
    """Significant decimal digits, or those of a multiple of pi or of a quotient of small integers."""
    quotient = Fraction(value).limit_denominator(_largest_denominator)
    decimal = min(_digits(value), 1 + _digits(rounded(value / math.pi, 15)))
    return decimal if float(quotient) != value else min(decimal, len(f"{quotient.numerator}{quotient.denominator}"))


def is_round(value: float) -> bool:
    """Whether somebody may have chosen this number."""
    return digits(value) <= _round_digits


def _digits(value: float) -> int:
    mantissa = repr(float(value)).partition("e")[0]
    return max(1, len(mantissa.replace(".", "").strip("-0")))
