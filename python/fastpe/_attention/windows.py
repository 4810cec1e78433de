# SPDX-License-Identifier: BSD-3-Clause
"""Relative positions of the tokens in a window of Swin and Swin v2."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from fastpe._arguments import integers, names_keywords, shown
from fastpe._errors import refused
from fastpe._rounding import rounded_once


@names_keywords
def window_relative_index(shape: Sequence[int]) -> npt.NDArray[np.int64]:
    """Number the relative positions of every two tokens in a window, as rows of Swin's table of biases.

    Parameters
    ----------
    shape : sequence of int
        The window: ``(height, width)``, or ``(depth, height, width)`` as in Video Swin.

    Returns
    -------
    int64 array [N, N]
        For query and key of the N tokens, row by row: a row of a table with ``prod(2 * n - 1)`` rows.

    Raises
    ------
    ValueError, TypeError
        For a shape that is not one to three lengths of at least 1.

    Notes
    -----
    The differences ``query - key + n - 1`` along the axes are the digits of the number. As in
    microsoft/Swin-Transformer, models/swin_transformer.py, relative_position_index.

    Examples
    --------
    >>> import fastpe
    >>> fastpe.window_relative_index((1, 3))
    array([[2, 1, 0],
           [3, 2, 1],
           [4, 3, 2]])
    """
    lengths = _window("shape", shape)
    index = np.zeros((*lengths, *lengths), np.int64)
    for axis, length in enumerate(lengths):
        place = np.arange(length)
        difference = np.subtract.outer(place, place) + length - 1
        own = [length if each % len(lengths) == axis else 1 for each in range(2 * len(lengths))]
        index *= 2 * length - 1
        index += difference.reshape(own)
    return index.reshape(np.prod(lengths), -1)


@names_keywords
def window_relative_coordinates(
    shape: Sequence[int], *, pretrained_shape: Sequence[int] | None = None
) -> npt.NDArray[np.float32]:
    """Make the logarithmic coordinates of relative positions that Swin v2's network takes for its biases.

    Parameters
    ----------
    shape : sequence of int
        The window, ``(height, width)``.
    pretrained_shape : sequence of int, optional
        The window that the model was first trained with, where it is another one: distances are counted in its size.

    Returns
    -------
    float32 array [2 * height - 1, 2 * width - 1, 2]
        Coordinates along height and width, each rounded once. `window_relative_index` numbers the cells.

    Raises
    ------
    ValueError, TypeError
        For a shape that is not one to three lengths of at least 1.

    Notes
    -----
    ``sign(x) * log2(8 * abs(x) / (n - 1) + 1) / log2(8)`` for a difference ``x``; 0 where ``n`` is 1. As in
    microsoft/Swin-Transformer, models/swin_transformer_v2.py, relative_coords_table.

    Examples
    --------
    >>> import fastpe
    >>> fastpe.window_relative_coordinates((2, 2))[0]
    array([[-1.0566417, -1.0566417],
           [-1.0566417,  0.       ],
           [-1.0566417,  1.0566417]], dtype=float32)
    """
    lengths = _window("shape", shape)
    sizes = lengths if pretrained_shape is None else _window("pretrained_shape", pretrained_shape)
    if len(sizes) != len(lengths):
        raise refused(ValueError, "pretrained_shape", f"is {sizes}", f"{len(lengths)} lengths, as shape has")
    axes = [_logarithms(length, size) for length, size in zip(lengths, sizes, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def _logarithms(length: int, size: int) -> npt.NDArray[np.float32]:
    """The coordinates of the differences along one axis."""
    values, remainders = np.zeros(length), np.zeros(length)
    with decimal.localcontext(decimal.Context(prec=60)):
        for x in range(1, length if size > 1 else 1):
            ratio = 1 + Fraction(8 * x, size - 1)
            exact = (decimal.Decimal(ratio.numerator) / ratio.denominator).ln() / decimal.Decimal(8).ln()
            values[x] = float(exact)
            remainders[x] = exact - decimal.Decimal(values[x])
    positive = rounded_once(values, np.dtype(np.float32), remainders)
    return np.concatenate([-positive[:0:-1], positive])


def _window(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    lengths = integers(name, shape, "(height, width)")
    if not 1 <= len(lengths) <= 3 or min(lengths) < 1:
        raise refused(ValueError, name, f"is {shown(shape)}", "one to three lengths of at least 1")
    return lengths
