# SPDX-License-Identifier: BSD-3-Clause
"""Learned grids of positions, resized."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import conversion, integer, integers, leave_out, names_keywords, numbers, shown
from fastpe._arrays import ArrayLike, WritableArray, returned
from fastpe._errors import refused
from fastpe._grid.interpolation import AxisTaps, axis_taps, float32_of
from fastpe._grid.resize_conventions import PaddingMode, ResizeConvention, ResizeMode, resize_conventions
from fastpe._names import ResizeConventionName

_axes_of_modes = {"linear": 1, "bilinear": 2, "bicubic": 2}


@names_keywords
def resize_table(
    table: ArrayLike,
    shape: Sequence[int],
    *,
    convention: ResizeConventionName | ResizeConvention | None = None,
    mode: ResizeMode | None = None,
    align_corners: bool | None = None,
    antialias: bool | None = None,
    padding_mode: PaddingMode | None = None,
    scale_factor: float | Sequence[float] | None = None,
    trained_shape: Sequence[int] | None = None,
    class_tokens: int = 0,
    merge_size: int = 1,
    dtype: npt.DTypeLike | None = None,
    num_threads: int | None = None,
    out: WritableArray | None = None,
) -> npt.NDArray[Any]:
    """Resize a learned grid of positions, as a model does it for images of another size than it was trained with.

    Parameters
    ----------
    table : array_like [N, D] or [1, N, D] of float
        The learned vectors: `class_tokens` rows, and then the cells of the grid, row by row.
    shape : sequence of int
        The new grid: ``(height, width)``, or ``(length,)`` for a table with one axis.
    convention : str or ResizeConvention, optional
        A name in `fastpe.resize_conventions`, or one of your own. There is no default: give it, or `mode`.
    mode : {"nearest", "nearest-exact", "linear", "bilinear", "bicubic", "tile"}, optional
        Instead of `convention`: the ``mode`` of ``torch.nn.functional.interpolate``; or "tile", which repeats the grid.
    align_corners, antialias : bool, optional
        With `mode`: what torch calls so, False by default.
    padding_mode : {"border", "zeros"}, optional
        With `mode`: what is beyond the learned grid. "border" by default, as in ``interpolate``; ``grid_sample`` has both.
    scale_factor : float or one per axis, optional
        With `mode`: what torch is given instead of a size. Cells are then ``1 / scale_factor`` apart instead of
        ``side / n``. As in torch on the CPU, an axis that keeps its length stays as it is in modes "linear" and "bilinear",
        with `antialias`, and in "nearest" for two axes; the modes that take single cells choose them in float32.
    trained_shape : sequence of int, optional
        The grid of `table`, a square by default.
    class_tokens : int, optional
        The number of rows in front that belong to no cell. They are copied.
    merge_size : int, optional
        Order the new cells by blocks of ``merge_size * merge_size``, as encoders take them that merge such blocks.
    dtype : dtype, optional
        float16, bfloat16, float32 or float64; that of `table` by default.
    num_threads : int, optional
        At most this many threads for this call; by default ``FASTPE_NUM_THREADS``, or OpenMP's number.
    out : ndarray, optional
        Where to write the result.

    Returns
    -------
    ndarray
        An array ``[class_tokens + cells, D]``, behind an axis of length 1 if `table` has one; or `out` if it was given.

    Raises
    ------
    ValueError
        For a table that is not a square without `trained_shape`, a mode that is not for this number of axes, an unknown
        convention, a convention together with what it says, or an `out` of another shape. Nothing has been written then.
    TypeError
        For neither convention nor mode, and for a dtype that does not fit.

    Notes
    -----
    Places and weights are exact fractions, except those of "nearest" and "nearest-exact" with a `scale_factor`. Cells
    are sums in float64, in the same order on every machine, rounded once to `dtype`; torch computes places, weights and
    sums in float32. The formulas are those of ``aten/src/ATen/native/UpSample.h`` and of each convention's source.

    Examples
    --------
    >>> import numpy as np, fastpe
    >>> table = np.random.default_rng(0).standard_normal((1 + 16 * 16, 384), dtype=np.float32)
    >>> fastpe.resize_table(table, (20, 30), convention="dinov2", class_tokens=1).shape
    (601, 384)
    >>> fastpe.resize_table([[0.0], [1.0]], (4,), mode="linear").T
    array([[0.  , 0.25, 0.75, 1.  ]])
    """
    chosen = _chosen(convention, mode, align_corners, antialias, padding_mode, scale_factor)
    grid = _grid("shape", shape)
    class_tokens, merge_size = integer("class_tokens", class_tokens, 0), integer("merge_size", merge_size, 1)
    learned = _core.array(table, "table")
    is_bfloat16 = learned.dtype.name == "bfloat16" or (learned.dtype == "V2" and not isinstance(table, np.ndarray))
    if learned.dtype not in (np.float16, np.float32, np.float64) and not is_bfloat16:
        remedy = conversion(learned, "table", "float32")
        raise refused(TypeError, "table", f"has dtype {learned.dtype}", "float16, bfloat16, float32 or float64", remedy)
    if learned.ndim not in (2, 3) or learned.shape[:-2] not in ((), (1,)):
        remedy = "reshape a grid [height, width, D] to [height * width, D], or pass table.reshape(D, -1).T of [1, D, height, width]"
        raise refused(ValueError, "table", f"has shape {list(learned.shape)}", "[N, D] or [1, N, D]", remedy)
    rows, width = learned.shape[-2:]
    trained = _trained_shape(trained_shape, rows, class_tokens, len(grid))
    axes = _taps_of_axes(chosen, grid, trained, scale_factor, merge_size)
    whole = (*learned.shape[:-2], class_tokens + math.prod(grid), width)
    result = _core.output(out, learned.dtype if dtype is None and out is None else dtype, whole, learned)
    sums = [_indices_and_weights(taps, side) for taps, side in zip(axes, trained, strict=True)]
    _core.resize_rows(
        np.require(learned, requirements=["C", "A"]),
        result,
        sides=(*trained, 1)[:2],
        rows=sums[0],
        columns=(*sums, _one_each(1))[1],
        class_tokens=class_tokens,
        merge_size=merge_size,
        num_threads=num_threads,
    )
    return returned(out, result)


@names_keywords
def resize_taps(
    shape: Sequence[int],
    trained_shape: Sequence[int],
    *,
    convention: ResizeConventionName | ResizeConvention | None = None,
    mode: ResizeMode | None = None,
    align_corners: bool | None = None,
    antialias: bool | None = None,
    padding_mode: PaddingMode | None = None,
    scale_factor: float | Sequence[float] | None = None,
    merge_size: int = 1,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Get the rows of a learned grid that each cell of a resized one is made of, and their weights.

    Parameters
    ----------
    shape, trained_shape : sequence of int
        The new grid and the learned one: ``(height, width)`` or ``(length,)``.
    convention, mode, align_corners, antialias, padding_mode, scale_factor, merge_size : optional
        As in `resize_table`: `convention` or `mode` is needed.

    Returns
    -------
    indices : int64 array [cells, taps]
        Rows of the learned grid, without class tokens. A row may appear more than once.
    weights : float32 array [cells, taps]
        Their weights, each the exact one, rounded once: a cell is the sum of ``weights[i, k] * table[indices[i, k]]``.

    Raises
    ------
    ValueError, TypeError
        The errors of `resize_table`.

    Notes
    -----
    A cell has one tap in the modes "nearest" and "tile", and 2, 4 or 16 in "linear", "bilinear" and "bicubic", even
    where nothing changes; more, with ``antialias=True``, where the new grid is smaller. Taps beyond the border have the
    index of the outermost cell.

    Examples
    --------
    >>> import fastpe
    >>> indices, weights = fastpe.resize_taps((1, 4), (2, 2), mode="bilinear", align_corners=True)
    >>> indices[1], weights[1].round(3)
    (array([0, 1, 2, 3]), array([0.667, 0.333, 0.   , 0.   ], dtype=float32))
    """
    chosen = _chosen(convention, mode, align_corners, antialias, padding_mode, scale_factor)
    grid, trained = _grid("shape", shape), _grid("trained_shape", trained_shape)
    if len(grid) != len(trained):
        raise refused(ValueError, "trained_shape", f"is {trained}", f"{len(grid)} lengths, as shape has")
    merge_size = integer("merge_size", merge_size, 1)
    axes = _taps_of_axes(chosen, grid, trained, scale_factor, merge_size)
    indices, numerators, denominators = axes[0]
    if math.prod(int(taps.denominators.max()) for taps in axes) > 2**52:
        numerators = numerators.astype(object)  # float64 does not have all products, nor int64
        denominators = denominators.astype(object)
    for side, taps in zip(trained[1:], axes[1:], strict=True):
        indices = _of_pairs(np.add, indices * side, taps.indices)
        numerators = _of_pairs(np.multiply, numerators, taps.numerators)
        denominators = _of_pairs(np.multiply, denominators, taps.denominators)
    return _in_merge_order(indices, merge_size), _in_merge_order(float32_of(numerators, denominators), merge_size)


def _of_pairs(combine: Any, of_rows: npt.NDArray[Any], of_columns: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """[rows, columns, taps] of each cell in the first axis and each in the second."""
    shape = (len(of_rows), len(of_columns), -1)
    result: npt.NDArray[Any] = combine(of_rows[:, None, :, None], of_columns[None, :, None, :]).reshape(shape)
    return result


def _chosen(convention: Any, mode: Any, *options: Any) -> ResizeConvention:
    named = dict(zip(("align_corners", "antialias", "padding_mode", "scale_factor"), options, strict=True))
    if convention is not None:
        leave_out("convention", "the convention says all of that", mode=mode, **named)
        return resize_conventions._find(convention)
    if mode is None:
        remedy = "print(fastpe.resize_conventions) lists the names"
        raise refused(TypeError, "convention", "and mode were not given", "one of them: models differ", remedy)
    del named["scale_factor"]
    return ResizeConvention("given", mode, **{name: value for name, value in named.items() if value is not None})


def _grid(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    grid = integers(name, shape, "(height, width)")
    if len(grid) not in (1, 2) or min(grid) < 1:
        raise refused(ValueError, name, f"is {shown(shape)}", "(height, width) or (length,), each at least 1")
    return grid


def _trained_shape(given: Sequence[int] | None, rows: int, class_tokens: int, axis_count: int) -> tuple[int, ...]:
    """The grid of a table, which its rows must fit."""
    cells, found = rows - class_tokens, f"has {rows} rows, {class_tokens} of them class tokens"
    if given is not None:
        trained = _grid("trained_shape", given)
        if len(trained) != axis_count:
            raise refused(ValueError, "trained_shape", f"is {trained}", f"{axis_count} lengths, as shape has")
        if math.prod(trained) != cells:
            expected = f"{math.prod(trained)} rows of cells: trained_shape is {trained}"
            raise refused(ValueError, "table", found, expected, "correct trained_shape or class_tokens")
        return trained
    side = math.isqrt(max(cells, 0)) if axis_count == 2 else cells
    if cells < 1 or side**axis_count != cells:
        expected = "cells of a square" if axis_count == 2 else "cells as well"
        raise refused(ValueError, "table", found, expected, "give class_tokens or trained_shape")
    return (side,) * axis_count


def _taps_of_axes(
    convention: ResizeConvention, grid: tuple[int, ...], trained: tuple[int, ...], scale_factor: Any, merge_size: int
) -> list[AxisTaps]:
    """The taps along each axis."""
    axis_count = _axes_of_modes.get(convention.mode, len(grid))
    if axis_count != len(grid):
        expected = f"{'one length' if axis_count == 1 else '(height, width)'} in mode {convention.mode!r}"
        raise refused(ValueError, "shape", f"is {grid}", expected)
    if merge_size > 1 and (len(grid) != 2 or any(length % merge_size for length in grid)):
        expected = f"a height and a width that are multiples of merge_size, {merge_size}"
        raise refused(ValueError, "shape", f"is {grid}", expected)
    if convention.keeps_equal and grid == trained:
        return [axis_taps(convention, side, side, Fraction(1)) for side in trained]
    factors = [None] * len(grid) if scale_factor is None else _factors(convention, grid, trained, scale_factor)
    counted = (max(grid),) * len(grid) if convention.square else grid
    return [
        axis_taps(convention, side, length, _step(convention, side, count, factor, axis_count=len(grid)))
        for side, length, count, factor in zip(trained, grid, counted, factors, strict=True)
    ]


def _factors(
    convention: ResizeConvention, grid: tuple[int, ...], trained: tuple[int, ...], scale_factor: Any
) -> list[float]:
    expected = f"a number above 0, or {len(grid)} of them: one per axis"
    factors = numbers("scale_factor", scale_factor, expected)
    if factors.shape not in ((), (len(grid),)) or not (np.isfinite(factors) & (factors > 0)).all():
        raise refused(ValueError, "scale_factor", f"is {shown(scale_factor)}", expected)
    if convention.align_corners or convention.mode == "tile":
        remedy = "leave scale_factor out: it changes nothing there"
        raise refused(ValueError, "scale_factor", "was given with align_corners or 'tile'", "another mode", remedy)
    each = [float(factor) for factor in np.broadcast_to(factors, len(grid))]
    lengths = tuple(math.floor(side * factor) for side, factor in zip(trained, each, strict=True))
    if lengths != grid:
        expected = f"one that makes shape {grid} of {trained}"
        raise refused(ValueError, "scale_factor", f"is {shown(scale_factor)}, which makes {lengths}", expected)
    return each


def _step(
    convention: ResizeConvention, side: int, length: int, scale_factor: float | None, axis_count: int
) -> Fraction | np.float32:
    """Learned cells per new cell."""
    if convention.align_corners:
        return Fraction(side - 1, length - 1) if length > 1 else Fraction(0)
    if scale_factor and convention.mode in ("nearest", "nearest-exact"):
        # Whatever factor it is given, torch copies an axis of two that keeps its length or becomes twice as long.
        if convention.mode == "nearest" and axis_count == 2 and length in (side, 2 * side):
            return Fraction(side, length)
        rounded: np.float32 = np.float32(1 / scale_factor)
        return rounded
    # Here it only copies one that keeps its length.
    if length == side and (convention.mode != "bicubic" or convention.antialias):
        return Fraction(1)
    return 1 / Fraction(scale_factor) if scale_factor else side / (length + Fraction(convention.size_offset))


def _indices_and_weights(taps: AxisTaps, side: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Of the sums along an axis. Where cells stay as they are, a weight of 0 would make NaN of an infinity."""
    return _one_each(side) if taps.keep(side) else (taps.indices, taps.weights)


def _one_each(side: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    return np.arange(side, dtype=np.int64)[:, None], np.ones((side, 1))


def _in_merge_order(cells: npt.NDArray[Any], merge_size: int) -> npt.NDArray[Any]:
    """The cells of a grid [.., D] as rows."""
    *grid, width = cells.shape
    if merge_size > 1:
        height, wide = grid
        blocks = cells.reshape(height // merge_size, merge_size, wide // merge_size, merge_size, width)
        cells = blocks.swapaxes(1, 2)
    return cells.reshape(math.prod(grid), width)
