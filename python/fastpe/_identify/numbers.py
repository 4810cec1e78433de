# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of a formula, from columns of sines and cosines; and how precisely they were stored and computed."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from fastpe._identify.answer import Array

# The rows that numbers are measured in.
head_rows = 256
# The relative error of angles that are computed in float32, and what each unit of a power's exponent adds to it.
_float32_angle_error = 2.5e-7
_float32_power_error = 2.0**-23
# Beyond this, tables of different conventions would be taken for one another.
_largest_tolerance = 0.2
# How far the points of a row may be off: the rounding of bfloat16 takes a tenth of it.
_same_phase = 0.05
# Nobody chooses a base or a scale with a larger logarithm.
_largest_logarithm = 60.0
_largest_denominator = 32
# No table starts further from position 0: angles of two or three frequencies may be found anywhere.
_furthest_start = 2**20
_turns_tried = 512
_least_step = 1e-12


@dataclasses.dataclass(frozen=True)
class Phases:
    """Angles as points on circles: cosine + i sine [rows, pairs], their radius, and radians per unit with their error."""

    phasors: Array
    amplitude: float
    steps: Array
    error: float
    exponents: Array  # in formulas, steps are scale * base**-exponents

    def numbers(self, base: float, scale: float) -> dict[float, list[float]]:
        """Bases, and scales for each, such as people choose them, that make about these steps.

        The given numbers come first. The others come from a line through the logarithms.
        """
        if len(self.phasors) == 1:
            return {base: [scale]}
        bases, scales = [base], [scale]
        fast = self.steps > max(0.01 * np.abs(self.steps).max(), _least_step)
        steps, powers = self.steps[fast], self.exponents[fast]
        if steps.size > 1:
            # The error of a phase does not depend on its size, so slow frequencies have a larger relative error.
            slope, intercept = np.polyfit(powers, np.log(steps), 1, w=steps)
            weights = steps**2 * powers
            with_scale = -np.sum(weights * np.log(steps / scale)) / np.sum(weights * powers)
            bases += [*nearby(with_scale), *nearby(-slope)]
            scales += nearby(intercept)
        elif steps.size:
            scales += nearby(math.log(steps[0]))
        found: dict[float, list[float]] = {}
        for pair in itertools.product(dict.fromkeys(bases), dict.fromkeys(scales)):
            # Steps are known except for whole turns.
            apart = np.abs(np.angle(np.exp(1j * (pair[1] * pair[0] ** -powers - steps))))
            if pair[0] != 1.0 and apart.max(initial=0.0) < self.error * np.abs(self.steps).max():
                found.setdefault(pair[0], []).append(pair[1])
        return found

    def first_positions(self, frequencies: Array) -> list[int]:
        """The integers that the position of the first row can be, by these frequencies, from the slowest on."""
        starts = (self.phasors * np.exp(-1j * np.multiply.outer(np.arange(len(self.phasors)), frequencies))).sum(axis=0)
        order = [k for k in np.argsort(np.abs(frequencies)) if frequencies[k] != 0.0]
        if not order:
            return []
        slow = frequencies[order[0]]
        candidates = (np.angle(starts[order[0]]) + 2.0 * np.pi * np.arange(-1, _turns_tried)) / slow
        for k in order[1:]:
            if abs(frequencies[k]) > 4.0 * abs(slow):
                slow = frequencies[k]
                candidates += np.angle(starts[k] * np.exp(-1j * slow * candidates)) / slow
        whole = np.unique(np.rint(candidates[np.abs(candidates) < _furthest_start]))
        points = np.exp(1j * np.multiply.outer(whole, frequencies))
        apart = np.abs(self.phasors[0] / self.amplitude - points).max(axis=1)
        return [int(position) for position in whole[apart < _same_phase]]


def measured(sines: Array, cosines: Array, rounding: float, denominator: float, unit: float = 1.0) -> Phases | None:
    """The phases of rows that are `unit` apart; None where the two are not sines and cosines of the same angles."""
    pairs = min(sines.shape[1], cosines.shape[1])
    phasors = cosines[:, :pairs] + 1j * sines[:, :pairs].astype(np.float64)
    # Rows that are zero were left out by somebody: those before them say enough.
    zero = np.flatnonzero(~phasors.any(axis=1))
    phasors = phasors[: zero[0]] if zero.size else phasors
    sizes = np.abs(phasors)
    amplitude = float(np.sqrt(np.mean(sizes**2))) if sizes.size else 0.0
    if not 0.0 < amplitude < math.inf or np.abs(sizes - amplitude).max() > 8.0 * rounding * amplitude:
        return None
    steps = np.angle(np.sum(phasors[1:] * phasors[:-1].conj(), axis=0)) / unit
    error = 1e-5 + 8.0 * rounding / math.sqrt(len(phasors))
    return Phases(phasors, amplitude, steps, error, np.arange(pairs) / denominator)


def stored_as(array: Array) -> tuple[float, str]:
    """The relative error of one rounding, and the narrowest dtype that holds the first values."""
    reals = np.ascontiguousarray(array[:head_rows]).view(array.real.dtype)
    single = reals.astype(np.float32)
    if not np.isin(reals, (-1, 0, 1)).all():
        if (single == reals).all() and not (single.view(np.uint32) & 0xFFFF).any():
            return 2.0**-8, "bfloat16"
        if (single.astype(np.float16) == reals).all():
            return 2.0**-11, "float16"
    return 2.0**-24, array.dtype.name


def tolerance(frequencies: Array, furthest: float, rounding: float) -> Array:
    """How far sines and cosines of each frequency may be off if angles up to `furthest` are float32 numbers.

    Exponents are rounded too, so that frequencies far from the first are relatively less exact.
    """
    sizes = np.abs(frequencies)
    powers = np.abs(np.log(sizes / sizes[:1], where=sizes > 0.0, out=np.zeros_like(sizes)))
    angles = sizes * furthest * (_float32_angle_error + _float32_power_error * powers)
    return np.asarray(np.minimum(2.0 * rounding + angles, _largest_tolerance))


def linear_scaling(base: float, scale: float) -> dict[str, Any]:
    """The arguments of a rotary embedding with these frequencies."""
    factor = few_digits(1.0 / scale, 1e-12)
    return {"base": base} | ({} if scale == 1.0 else {"scaling": {"rope_type": "linear", "factor": factor}})


def nearby(logarithm: float) -> list[float]:
    """Numbers that people choose near the one of this logarithm: round ones, multiples of pi, and quotients."""
    if abs(logarithm) > _largest_logarithm:
        return []
    value = math.exp(logarithm)
    round_ones = [few_digits(value, 0.5 * 10.0**-count) for count in (1, 2, 3)]
    small = Fraction(min(value, 1.0 / value)).limit_denominator(_largest_denominator)
    quotients = [float(small if value < 1.0 else 1 / small)] if small else []
    return list(dict.fromkeys((*round_ones, few_digits(value / math.pi, 1e-3) * math.pi, *quotients)))


def few_digits(value: float, error: float) -> float:
    """The number with the fewest digits that is relatively as close as this, or the value itself."""
    few = (float(f"{value:.{count}g}") for count in range(1, 8))
    return next((each for each in few if math.isclose(each, value, rel_tol=error)), value)


def digits(value: float) -> int:
    """Significant decimal digits; at most 4 of a fraction, which may be pi or a quotient."""
    count = len(f"{value:.15e}".partition("e")[0].rstrip("0").strip("-.").replace(".", ""))
    return count if value == int(value) else min(4, count)
