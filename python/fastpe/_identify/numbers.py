# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of a formula, from columns of sines and cosines; and how precisely they were stored and computed."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe._identify.answer import Array

Floats = npt.NDArray[np.float64]

_head_rows = 256
_head_values = 1 << 20
# The relative error of one rounding.
_roundings = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
_float32_rounding = 2.0**-24
# Of angles in systems that compute them in float32: at most 1.5e-7 was found. Rounding the exponent of a power adds to it for
# each unit of the exponent.
_float32_angle_error = 2.5e-7
_float32_power_error = 2.0**-23
# Beyond this, tables of different conventions would be taken for one another.
_largest_tolerance = 0.2
# How far the points of a row may be off: the rounding of bfloat16 takes a tenth of it.
_same_phase = 0.05
# Nobody chooses a base or a scale with a larger logarithm.
_largest_logarithm = 60.0
_largest_denominator = 32
_turns_tried = 512
_least_step = 1e-12


@dataclasses.dataclass(frozen=True)
class Phases:
    """Angles as points on circles: cosine + i sine [rows, pairs], their radius, and radians per row with their error."""

    phasors: npt.NDArray[np.complex128]
    amplitude: float
    steps: Floats
    error: float

    def numbers(self, exponents: Floats, base: float, scale: float) -> list[tuple[float, float]]:
        """Pairs of base and scale, such as people choose them, for which ``scale * base**-exponents`` are about the steps.

        The given numbers come first. The others come from a line through the logarithms.
        """
        if len(self.phasors) == 1:
            return [(base, scale)]
        bases, scales = [base], [scale]
        fast = self.steps > max(0.01 * np.abs(self.steps).max(), _least_step)
        steps, powers = self.steps[fast], exponents[fast]
        if steps.size > 1:
            # The error of a phase does not depend on its size, so slow frequencies have a larger relative error.
            slope, intercept = np.polyfit(powers, np.log(steps), 1, w=steps)
            weights = steps**2 * powers
            with_scale = -np.sum(weights * np.log(steps / scale)) / np.sum(weights * powers)
            bases += [*nearby(with_scale), *nearby(-slope)]
            scales += nearby(intercept)
        elif steps.size:
            scales += nearby(math.log(steps[0]))
        found = []
        for pair in itertools.product(dict.fromkeys(bases), dict.fromkeys(scales)):
            # Steps are known except for whole turns.
            apart = np.abs(np.angle(np.exp(1j * (pair[1] * pair[0] ** -powers - steps))))
            if pair[0] != 1.0 and apart.max(initial=0.0) < self.error * np.abs(self.steps).max():
                found.append(pair)
        return found

    def first_positions(self, frequencies: Floats) -> list[int]:
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
        whole = np.unique(np.rint(candidates[np.abs(candidates) < 2.0**31]))
        apart = np.abs(self.phasors[0] / self.amplitude - np.exp(1j * np.multiply.outer(whole, frequencies))).max(
            axis=1
        )
        return [int(position) for position in whole[apart < _same_phase]]


def measured(sines: Array, cosines: Array, rounding: float) -> Phases | None:
    """The phases of the first rows; None where the two are not sines and cosines of the same angles."""
    pairs = min(sines.shape[1], cosines.shape[1])
    head = np.s_[: max(2, min(_head_rows, _head_values // max(pairs, 1))), :pairs]
    phasors = cosines[head].astype(np.complex128) + 1j * sines[head].astype(np.float64)
    # Rows that are zero were left out by somebody: those before them say enough.
    zero = np.flatnonzero(~phasors.any(axis=1))
    phasors = phasors[: zero[0]] if zero.size else phasors
    sizes = np.abs(phasors)
    amplitude = float(np.sqrt(np.mean(sizes**2))) if sizes.size else 0.0
    if not amplitude > 0.0 or np.abs(sizes - amplitude).max() > 8.0 * rounding * amplitude:
        return None
    steps = np.angle(np.sum(phasors[1:] * phasors[:-1].conj(), axis=0))
    return Phases(phasors, amplitude, steps, 1e-5 + 8.0 * rounding / math.sqrt(len(phasors)))


def stored_as(array: Array) -> tuple[float, str]:
    """The relative error of one rounding, and the narrowest dtype that holds the first values."""
    name = array.dtype.name
    parts = np.ascontiguousarray(array[:_head_rows]).view(array.real.dtype)
    if name not in _roundings and not np.isin(parts, (-1, 0, 1)).all():
        with np.errstate(over="ignore", invalid="ignore"):
            single = parts.astype(np.float32)
            half = single.astype(np.float16)
        if (single == parts).all() and not (single.view(np.uint32) & 0xFFFF).any():
            name = "bfloat16"
        elif (half == parts).all():
            name = "float16"
    return _roundings.get(name, _float32_rounding), name


def tolerance(frequencies: Floats, furthest: float, rounding: float, amplitude: float = 1.0) -> Floats:
    """How far sines and cosines of each frequency may be off if angles up to `furthest` are float32 numbers.

    Exponents are rounded too, so that slow frequencies are relatively less exact.
    """
    sizes = np.abs(frequencies)
    powers = np.log(sizes.max(initial=0.0) / sizes, where=sizes > 0.0, out=np.zeros_like(sizes))
    angles = sizes * furthest * (_float32_angle_error + _float32_power_error * powers)
    bounds: Floats = amplitude * np.minimum(2.0 * rounding + angles, _largest_tolerance)
    return bounds


def call_dtype(array: Array) -> npt.DTypeLike:
    """The dtype in which calls make what is compared with this array."""
    return np.float64 if array.dtype.name in ("float64", "complex128") else np.float32


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
    """Significant decimal digits, at most 4."""
    return min(4, len(f"{value:e}".partition("e")[0].rstrip("0").strip("-.").replace(".", "")))
