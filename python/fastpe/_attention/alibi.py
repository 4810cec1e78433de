# SPDX-License-Identifier: BSD-3-Clause
"""The slopes of ALiBi."""

from __future__ import annotations

import decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import integer, names_keywords, number
from fastpe._arrays import WritableArray, returned
from fastpe._rounding import rounded_once


@names_keywords
def alibi_slopes(
    num_heads: int, *, max_bias: float = 8.0, dtype: npt.DTypeLike | None = None, out: WritableArray | None = None
) -> npt.NDArray[Any]:
    """Compute the slopes of ALiBi: each head adds its slope times ``key - query`` to its scores.

    Parameters
    ----------
    num_heads : int
        The number of heads. It need not be a power of 2.
    max_bias : float, optional
        If the number of heads is a power of 2, the last one has the slope ``2**-max_bias``. MPT's configs call this
        number ``alibi_bias_max``.
    dtype : dtype, optional
        float16, bfloat16, float32 (the default) or float64.
    out : ndarray [num_heads], optional
        Where to write the result.

    Returns
    -------
    ndarray
        An array ``[num_heads]`` of exact slopes, each rounded once; or `out` if it was given.

    Raises
    ------
    ValueError, TypeError
        For a number of heads below 1, a `max_bias` that is not above 0, and an `out` of another shape.

    Notes
    -----
    With ``n`` the largest power of 2 up to `num_heads`, head ``i`` (from 1) has ``2**(-max_bias * i / n)``. Heads beyond
    ``n`` have every other slope of ``2 * n`` heads: ``2**(-max_bias * (2 * j - 1) / (2 * n))``, ``j`` from 1. As in
    ofirpress/attention_with_linear_biases, fairseq/models/transformer.py, which BLOOM, Falcon and MPT follow.

    Examples
    --------
    >>> import fastpe
    >>> fastpe.alibi_slopes(6)
    array([0.25      , 0.0625    , 0.015625  , 0.00390625, 0.5       ,
           0.125     ], dtype=float32)
    """
    num_heads, max_bias = integer("num_heads", num_heads, 1, 2**20), number("max_bias", max_bias, above_zero=True)
    result = _core.output(out, dtype, (num_heads,))
    power = 1 << (num_heads.bit_length() - 1)
    steps = [2 * i for i in range(1, power + 1)] + [2 * j - 1 for j in range(1, num_heads - power + 1)]
    slopes, remainders = np.empty(num_heads), np.empty(num_heads)
    with decimal.localcontext(decimal.Context(prec=60)):
        for head, step in enumerate(steps):
            exponent = Fraction(max_bias) * step / (2 * power)
            slope = decimal.Decimal(2) ** -(decimal.Decimal(exponent.numerator) / exponent.denominator)
            slopes[head] = float(slope)
            remainders[head] = slope - decimal.Decimal(slopes[head])
    result[...] = rounded_once(slopes, result.dtype, remainders)
    return returned(out, result)
