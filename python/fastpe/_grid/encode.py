# SPDX-License-Identifier: BSD-3-Clause
"""The functions that encode grids and points."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import (
    are_positions,
    asked_once,
    bools,
    conversion,
    integer,
    integers,
    names_keywords,
    numbers,
    shown,
)
from fastpe._arrays import ArrayLike, WritableArray, returned
from fastpe._errors import refused, renamed
from fastpe._grid.columns import SharedColumns
from fastpe._grid.convention import GridConvention
from fastpe._grid.grid_conventions import grid_conventions
from fastpe._names import GridConventionName
from fastpe._rounding import rounded_once
from fastpe._sinusoid.convention import with_overrides

# DETR adds this to the last coordinate before it divides by it.
_normalize_epsilon = 1e-6


@names_keywords
def encode_grid(
    shape: Sequence[int],
    d_model: int,
    *,
    convention: GridConventionName | GridConvention,
    base: float | None = None,
    freq_scale: float | None = None,
    frequencies: ArrayLike | None = None,
    spacing: float | Sequence[float] = 1.0,
    valid: ArrayLike | None = None,
    class_tokens: int | None = None,
    channels_first: bool = False,
    dtype: npt.DTypeLike | None = None,
    num_threads: int | None = None,
    out: WritableArray | None = None,
) -> npt.NDArray[Any]:
    """Encode every cell of a grid.

    Parameters
    ----------
    shape : sequence of int
        The grid: ``(height, width)``, ``(time, height, width)``, .. as the convention takes it.
    d_model : int
        Width of the encoding.
    convention : str or GridConvention
        A name in `fastpe.grid_conventions`, or one of your own. There is no default: the order of the axes differs.
    base, freq_scale : float, optional
        Numbers that replace those of the convention.
    frequencies : array_like of float64, optional
        The frequencies of every axis themselves, in radians per cell.
    spacing : float or one per axis, optional
        Distance between neighbouring cells, in the order of `shape`.
    valid : bool array [height, width] or [B, height, width], optional
        Which cells are counted: those that are True, or 1. The coordinate of a cell along an axis is the number of
        counted cells up to it. Cells of padding thus repeat the coordinate before them, as in DETR.
    class_tokens : int, optional
        If it is given, even as 0, the result is ``[class_tokens + cells, d_model]`` and begins with this many rows of
        zeros.
    channels_first : bool, optional
        Whether the result is ``[d_model, height, width]`` instead of ``[height, width, d_model]``.
    dtype, num_threads, out : optional
        As in `encode`.

    Returns
    -------
    ndarray
        An array ``shape + (d_model,)``, behind the mask's batch axis if it has one; or `out` if it was given. Most
        systems keep one list of cells, which is ``.reshape(-1, d_model)`` of it and copies nothing.

    Raises
    ------
    ValueError
        For a width that the convention cannot share among the axes, a number of axes that it does not take, an unknown
        convention, or an `out` or `valid` of another shape. Nothing has been written then.
    TypeError
        For a dtype that does not fit.

    Notes
    -----
    The number of rows that are computed is the sum of the axes' lengths. Values are as exact as those of `encode`.

    The convention ``"sam"`` is for points times the model's matrix, and not for grids: call `encode_coordinates`.

    Examples
    --------
    >>> import fastpe
    >>> fastpe.encode_grid((14, 14), 768, convention="mae2d", class_tokens=1).shape
    (197, 768)
    >>> fastpe.encode_grid((1, 2), 4, convention="hf2d").round(3)
    array([[[0.   , 1.   , 0.   , 1.   ],
            [0.   , 1.   , 0.841, 0.54 ]]], dtype=float32)
    """
    chosen = _chosen(convention, base, freq_scale, frequencies)
    d_model = integer("d_model", d_model, 1)
    grid = _grid_shape(shape)
    spacings = _spacings(spacing, len(grid))
    columns = SharedColumns(chosen, d_model, len(grid), frequencies)
    valid = None if valid is None else _checked_valid(valid, grid)
    tokens, num_threads = (
        None if class_tokens is None else integer("class_tokens", class_tokens, 0),
        asked_once(num_threads),
    )
    if tokens is not None and channels_first:
        found = "and channels_first were both given"
        raise refused(
            ValueError, "class_tokens", found, "one of them: class tokens are rows in front of a list of cells"
        )
    lines = {
        axis: axis_coordinates(
            chosen,
            np.arange(length) if valid is None else np.cumsum(valid, axis - len(grid)) - 1,
            spacings[axis],
            0 if valid is None else axis - len(grid),
        )
        for axis, length in enumerate(grid)
    }
    for axis, coordinates in lines.items():
        if not are_positions(coordinates):
            found = f"is {shown(spacing)}, which puts cells of axis {axis} beyond 2**53"
            raise refused(ValueError, "spacing", found, "smaller numbers")
    batch = () if valid is None else valid.shape[: valid.ndim - len(grid)]
    if tokens is not None:
        whole = (*batch, tokens + math.prod(grid), d_model)
    else:
        whole = (*batch, d_model, *grid) if channels_first else (*batch, *grid, d_model)
    written = _core.output(out, dtype, whole, *(() if valid is None else (valid,)))
    result = written if out is None else np.empty(written.shape, written.dtype)
    cells = result
    if tokens is not None:
        cells = result[..., tokens:, :].reshape(*batch, *grid, d_model)
    elif channels_first:
        cells = np.moveaxis(result, len(batch), -1)
    if valid is None:
        rows = [share.rows(lines[share.axis], result.dtype, num_threads) for share in columns.shares]
        if channels_first:
            # The copy runs along the target's own innermost axis.
            columns.spread([np.asfortranarray(table) for table in rows], cells)
        else:
            columns.spread_by_blocks(rows, cells)
    else:
        columns.write(lines, cells, num_threads)
    if tokens is not None:
        result[..., :tokens, :] = np.zeros((), result.dtype)
    if out is not None:  # in one step: where no memory is left, it has changed nothing
        np.copyto(written, result)
    return returned(out, written)


@names_keywords
def encode_coordinates(
    coordinates: ArrayLike,
    d_model: int,
    *,
    convention: GridConventionName | GridConvention,
    base: float | None = None,
    freq_scale: float | None = None,
    frequencies: ArrayLike | None = None,
    include_input: bool = False,
    dtype: npt.DTypeLike | None = None,
    num_threads: int | None = None,
    out: WritableArray | None = None,
) -> npt.NDArray[Any]:
    """Encode points, each given by several coordinates.

    Parameters
    ----------
    coordinates : array_like [.., axes] of int, float32 or float64
        The points, with axes in the order of a grid's shape. They are taken as they are, and not normalized.
    d_model : int
        Width of the encoding: ``2 * frequencies * axes``.
    convention, base, freq_scale, frequencies, dtype, num_threads, out
        As in `encode_grid`; frequencies are in radians per unit.
    include_input : bool, optional
        Whether to include the coordinates themselves, in front or where the convention has them. The result then has
        ``d_model + axes`` columns.

    Returns
    -------
    ndarray
        An array ``coordinates.shape[:-1] + (d_model,)``, or `out` if it was given.

    Raises
    ------
    ValueError, TypeError
        The errors of `encode_grid`.

    Notes
    -----
    With the convention ``"nerf"``, frequencies are ``2**k`` without a factor pi: Mildenhall et al., "NeRF", 2020,
    section 5.1, as in its code.

    With ``"sam"``, the coordinates are points times the model's matrix ``[axes of the image, frequencies]``, and `d_model`
    is twice the number of coordinates: one sine and one cosine of each.

    Examples
    --------
    >>> import numpy as np, fastpe
    >>> fastpe.encode_coordinates(np.zeros((4096, 3)), 60, convention="nerf", include_input=True).shape
    (4096, 63)
    >>> points, matrix = np.array([[0.25, 0.5]]), np.ones((2, 128))
    >>> fastpe.encode_coordinates((2 * points - 1) @ matrix, 2 * matrix.shape[1], convention="sam").shape
    (1, 256)
    """
    chosen = _chosen(convention, base, freq_scale, frequencies)
    d_model = integer("d_model", d_model, 1)
    points = _core.array(coordinates, "coordinates")
    if points.ndim < 1 or points.shape[-1] == 0:
        raise refused(ValueError, "coordinates", f"has shape {list(points.shape)}", "[.., axes]")
    if points.dtype.kind not in "iuf":
        remedy = conversion(points, "coordinates", "float64")
        raise refused(TypeError, "coordinates", f"has dtype {points.dtype}", "int, float32 or float64", remedy)
    # The encoder checks as well, but only the part that it is given.
    if not are_positions(points):
        raise refused(ValueError, "coordinates", "holds values that are not finite or beyond 2**53", "smaller ones")
    axis_count = points.shape[-1]
    own = axis_count if include_input else 0
    try:
        columns = SharedColumns(chosen, d_model, axis_count, frequencies)
    except ValueError as error:
        if not own:
            raise
        raise renamed(error, {"d_model": f"d_model (without the {own} columns of the input)"}) from None
    num_threads = asked_once(num_threads)
    written = _core.output(out, dtype, (*points.shape[:-1], d_model + own), points)
    result = written if out is None else np.empty(written.shape, written.dtype)
    front = 0 if chosen.input_last else own
    encoded = result[..., front : front + d_model]
    if points.ndim == 1:
        # A single point is written as a list of one.
        points, encoded = points[None], encoded[None]
    columns.write({axis: points[..., axis] for axis in range(axis_count)}, encoded, num_threads)
    if own:
        start = d_model if chosen.input_last else 0
        is_tensor = result.dtype == "V2"  # of bfloat16, which NumPy does not know without ml_dtypes
        inputs = rounded_once(points.astype(np.float64), result.dtype) if is_tensor else points
        result[..., start : start + own] = inputs
    if out is not None:  # in one step: where no memory is left, it has changed nothing
        np.copyto(written, result)
    return returned(out, written)


def _chosen(convention: Any, base: float | None, freq_scale: float | None, frequencies: Any) -> GridConvention:
    found = grid_conventions._find(convention)
    axis = with_overrides(found.axis, base, freq_scale, frequencies)
    return found if axis is found.axis else dataclasses.replace(found, axis=axis)


def _grid_shape(shape: Sequence[int]) -> tuple[int, ...]:
    grid = integers("shape", shape, "(height, width)")
    if not grid or min(grid) < 0:
        raise refused(ValueError, "shape", f"is {shown(shape)}", "one length per axis, each at least 0")
    return grid


def _spacings(spacing: float | Sequence[float], axis_count: int) -> list[float]:
    expected = f"a number, or {axis_count} of them: one per axis"
    spacings = numbers("spacing", spacing, expected)
    if spacings.shape not in ((), (axis_count,)) or not np.isfinite(spacings).all():
        raise refused(ValueError, "spacing", f"is {shown(spacing)}", expected)
    return [float(value) for value in np.broadcast_to(spacings, (axis_count,))]


def axis_coordinates(
    convention: GridConvention, cells: npt.NDArray[Any], spacing: float = 1.0, axis: int = 0
) -> npt.NDArray[Any]:
    """The coordinates of cells along one axis, as they are encoded; cells are counted from 0."""
    counted = cells + convention.axis.first_position
    coordinates = counted + convention.cell_offset if convention.cell_offset else counted
    if spacing != 1.0:
        counted, coordinates = counted * spacing, coordinates * spacing
    if convention.normalize and counted.shape[axis]:
        return np.asarray(coordinates / (np.take(counted, [-1], axis=axis) + _normalize_epsilon))
    return coordinates


def _checked_valid(valid: ArrayLike, grid: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    valid = bools("valid", valid)
    if valid.shape[-len(grid) :] != grid or valid.ndim > len(grid) + 1:
        expected = f"{list(grid)}, or a batch axis before that"
        raise refused(ValueError, "valid", f"has shape {list(valid.shape)}", expected)
    return valid
