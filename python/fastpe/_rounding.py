# SPDX-License-Identifier: BSD-3-Clause
"""Rounding once to dtypes narrower than float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def rounded_once(
    values: npt.NDArray[np.float64], dtype: np.dtype[Any], remainders: npt.ArrayLike = 0.0
) -> npt.NDArray[Any]:
    """`values` as `dtype`; `remainders` say by their signs on which side of its float64 each number lies.

    Rounding twice is rounding once if the first time, what is inexact goes to the neighbour whose last bit is 1.
    """
    if dtype == np.float64:
        return values
    below = np.nextafter(values, np.where(np.less(remainders, 0), -np.inf, np.inf))
    even = values.view(np.uint64) & 1 == 0
    values = np.where(np.not_equal(remainders, 0) & even, below, values)
    with np.errstate(over="ignore"):
        if dtype.str[1:] != "V2":
            return values.astype(dtype)
        # bfloat16, which NumPy may have no arithmetic of
        single = values.astype(np.float32)
    bits, widened = single.view(np.uint32), single.astype(np.float64)
    bits -= abs(widened) > abs(values)
    bits |= widened != values
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).view(dtype)
