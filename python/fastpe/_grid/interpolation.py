# SPDX-License-Identifier: BSD-3-Clause
"""The learned cells that a resized cell is made of, along one axis, and their weights as fractions of integers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpe._grid.resize_conventions import ResizeConvention
from fastpe._rounding import rounded_once

# Arrays of int64, or of Python's integers where numbers may become large.
Integers = npt.NDArray[Any]


class AxisTaps(NamedTuple):
    """For each of the new cells of an axis: the learned cells, and the numerators and the denominator of their weights."""

    indices: npt.NDArray[np.int64]  # [cells, taps]
    numerators: Integers  # [cells, taps]
    denominators: Integers  # [cells, 1]

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """Each weight, rounded once."""
        return np.asarray(self.numerators / self.denominators, np.float64)

    def keep(self, side: int) -> bool:
        """Whether each cell of an axis of `side` learned ones is left as it is."""
        others = self.indices != np.arange(len(self.indices))[:, None]
        return len(self.indices) == side and not (self.numerators * others).any()


def axis_taps(convention: ResizeConvention, side: int, length: int, step: Fraction | np.float32) -> AxisTaps:
    """The taps of `length` new cells in an axis of `side` learned ones, for `step` learned cells per new cell.

    A step of float32 is multiplied as such, and only in modes that take single cells: a product decides which one.
    """
    if isinstance(step, np.float32):
        half = np.float32(0.5 if convention.mode == "nearest-exact" else 0)
        return _single(np.floor((np.arange(length, dtype=np.float32) + half) * step), side)
    p, q = step.numerator, step.denominator
    # Up to here no number reaches 2**53, below which float64 has all integers.
    number = np.int64 if max(p, q) <= 2**11 and length < 2**32 else object
    cells: Integers = np.arange(length).astype(number)
    if convention.mode in ("nearest", "nearest-exact", "tile"):
        whole = {"nearest": cells * p // q, "nearest-exact": (2 * cells + 1) * p // (2 * q), "tile": cells % side}
        return _single(whole[convention.mode], side)
    # Places are in units of 1 / (2 * q) of a learned cell. The kernel reaches as far as `support` of `unit`.
    places = 2 * p * cells if convention.align_corners else (2 * cells + 1) * p - q
    unit = 2 * (max(p, q) if convention.antialias else q)
    support = 2 if convention.mode == "bicubic" else 1
    first = (places - support * unit) // (2 * q) + 1
    indices = first[:, None] + np.arange(-(-support * unit // q))
    numerators, denominator = _kernel(convention, abs(2 * q * indices - places[:, None]), unit)
    denominators = np.full((length, 1), denominator, number)
    if convention.antialias or convention.padding_mode == "zeros":
        numerators = numerators * ((indices >= 0) & (indices < side))
    if convention.antialias:
        denominators = numerators.sum(axis=1, keepdims=True)
    return AxisTaps(np.clip(indices, 0, side - 1).astype(np.int64), numerators, denominators)


def _single(whole: npt.NDArray[Any], side: int) -> AxisTaps:
    """One learned cell for each new one."""
    one = np.ones((len(whole), 1), np.int64)
    return AxisTaps(np.minimum(whole, side - 1)[:, None].astype(np.int64), one, one)


def _kernel(convention: ResizeConvention, distance: Integers, unit: int) -> tuple[Integers, int]:
    """Numerators and the denominator of the kernel's values at distances that are given in `unit`.

    The cubic kernel is that of Keys, "Cubic convolution interpolation for digital image processing", 1981.
    """
    if convention.mode != "bicubic":
        return np.maximum(unit - distance, 0), unit
    a = -2 if convention.antialias else -3  # in quarters
    near = ((a + 8) * distance - (a + 12) * unit) * distance**2 + 4 * unit**3
    far = a * (((distance - 5 * unit) * distance + 8 * unit**2) * distance - 4 * unit**3)
    return np.where(distance <= unit, near, np.where(distance < 2 * unit, far, 0)), 4 * unit**3


def float32_of(numerators: Integers, denominators: Integers) -> npt.NDArray[np.float32]:
    """Fractions, each rounded once."""
    quotients = np.asarray(numerators / denominators, np.float64)
    # The quotient of a denominator below 2**28 is half-way between two of float32 only where the fraction is.
    if denominators.max() < 2**28:
        return quotients.astype(np.float32)
    remainders = np.zeros(quotients.shape)
    for place in np.argwhere((quotients.view(np.uint64) & 0x1FFF_FFFF) == 0x1000_0000):
        at = tuple(place)
        exact = Fraction(int(numerators[at]), int(np.broadcast_to(denominators, numerators.shape)[at]))
        remainders[at] = exact - Fraction(quotients[at])
    return rounded_once(quotients, np.dtype(np.float32), remainders)
