# SPDX-License-Identifier: BSD-3-Clause
"""Conventions of several coordinates that make the cells of a table."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fastpe._grid.columns import AxisShare, SharedColumns
from fastpe._grid.convention import GridConvention
from fastpe._grid.encode import axis_coordinates, encode_coordinates, encode_grid
from fastpe._grid.presets import grid_conventions
from fastpe._identify.answer import Array, Match, Rows, call_text, nonzero
from fastpe._identify.numbers import call_dtype, digits, measured
from fastpe._identify.sequences import column_tolerance, frequencies

# So many strides of columns are taken for those of axes.
_likely_strides = 4


class _Reading(NamedTuple):
    """The table as a list of cells [cells, d_model], and what the call has to make it so."""

    shape: tuple[int, ...]
    cells: Array
    keywords: dict[str, Any]
    then: str = ""


def find(array: Array, tokens: int, rounding: float) -> Match | None:
    """The simplest preset of grids that makes the table, whose first rows are class tokens."""
    for reading in _readings(array, tokens, rounding):
        found, rows = [], nonzero([reading.cells])
        for preset in grid_conventions.values():
            shares = _shares(preset, reading)
            for base, scales in _numbers(preset, shares, reading, rounding):
                match = _match(preset, shares, reading, base, scales, rounding)
                if match.fits(rows):
                    changed = {base, *scales} - {preset.axis.base, preset.axis.freq_scale}
                    found.append((sum(2 + digits(value) for value in changed), preset.name, match))
        if found:
            best = min(found, key=lambda each: each[0])
            names = tuple(dict.fromkeys(name for size, name, _ in found if size == best[0] and name != best[1]))
            notes = (f"at this width and shape, the same as {', '.join(names)}",) * bool(names)
            return dataclasses.replace(best[2], equivalents=names, notes=notes)
    return None


def _readings(array: Array, tokens: int, rounding: float) -> Iterator[_Reading]:
    *shape, d_model = array.shape
    if len(shape) > 1:
        yield _Reading(tuple(shape), array.reshape(-1, d_model), {})
        yield _Reading(array.shape[1:], array.reshape(len(array), -1).T, {"channels_first": True})
    cells = array.reshape(-1, d_model)[tokens:]
    count = len(cells)
    divisors = [divisor for divisor in range(2, math.isqrt(count) + 1) if count % divisor == 0]
    # The columns of an axis change first where it goes on, a stride of it away; slow ones a multiple of it away.
    strides_of_columns = np.ones(d_model, np.intp)
    unchanged = np.ones(d_model, bool)
    for stride in sorted({1, *divisors, *(count // divisor for divisor in divisors)}):
        changed = unchanged & (np.abs(cells[stride % count].astype(np.float64) - cells[0]) > 2.0 * rounding)
        strides_of_columns[changed] = stride
        unchanged &= ~changed
    found, columns = np.unique(strides_of_columns[strides_of_columns > 1], return_counts=True)
    strides = sorted(found[np.argsort(-columns, kind="stable")[:_likely_strides]].tolist(), reverse=True)
    grids: list[tuple[int, ...]] = [(count // stride, stride) for stride in strides]
    grids += [(count // a, a // b, b) for a, b in itertools.combinations(strides, 2) if a % b == 0]
    for grid in grids:
        if tokens:
            yield _Reading(grid, cells, {"class_tokens": tokens})
        elif list(grid) != shape:
            yield _Reading(grid, cells, {}, f".reshape{(-1, *shape[1:], d_model)}")


def _shares(preset: GridConvention, reading: _Reading) -> list[AxisShare]:
    """The columns of each axis; none where the convention does not take this width and number of axes."""
    try:
        shares = SharedColumns(preset, reading.cells.shape[1], len(reading.shape), None).shares
    except ValueError:
        return []
    return shares if {share.axis for share in shares} == set(range(len(reading.shape))) else []


def _numbers(
    preset: GridConvention, shares: list[AxisShare], reading: _Reading, rounding: float
) -> Iterator[tuple[float, tuple[float, ...]]]:
    """The base and the scale of each axis: the preset's, or those that the cells along one line of each axis say."""
    axis, shape = preset.axis, reading.shape
    if not shares or any(frequencies(axis, share.encoding.d_model) is None for share in shares):
        return
    yield axis.base, (axis.freq_scale,) * len(shape)
    found: dict[int, dict[float, float]] = {}
    for share in shares:
        length, width = shape[share.axis], share.encoding.d_model
        if length > 1:
            stride = math.prod(shape[share.axis + 1 :])
            line = np.zeros((length, width))
            for target, source in share.pieces:
                line[:, source] = reading.cells[: length * stride : stride, target]
            sines, cosines = (line[:, columns] for columns in axis.columns(width))
            phases = measured(sines, cosines, rounding)
            if phases is None:
                return
            first, second, *_ = axis_coordinates(preset, length)
            exponents = np.arange(phases.steps.size) / axis.exponent_denominator(width)
            per_unit = dataclasses.replace(phases, steps=phases.steps / float(second - first))
            found[share.axis] = dict(reversed(per_unit.numbers(exponents, axis.base, axis.freq_scale)))
    for base in dict.fromkeys(base for numbers in found.values() for base in numbers):
        if all(base in numbers for numbers in found.values()):
            scales = tuple(found[i][base] if i in found else axis.freq_scale for i in range(len(shape)))
            if not preset.normalize or len({*scales}) == 1:
                yield base, scales


def _match(
    preset: GridConvention,
    shares: list[AxisShare],
    reading: _Reading,
    base: float,
    scales: tuple[float, ...],
    rounding: float,
) -> Match:
    shape, cells, own = reading.shape, reading.cells, preset.axis.freq_scale
    d_model = cells.shape[1]
    spacing: Any = tuple(scale / own for scale in scales)
    # Normalized coordinates have no spacing.
    scale = scales[0] if preset.normalize else own
    keywords: dict[str, Any] = {"convention": preset.name}
    keywords |= {} if base == preset.axis.base else {"base": base}
    keywords |= {} if scale == own else {"freq_scale": scale}
    if not preset.normalize and set(spacing) != {1.0}:
        keywords["spacing"] = spacing[0] if len(set(spacing)) == 1 else spacing
    lines = [axis_coordinates(preset, length) * (each / scale) for length, each in zip(shape, scales, strict=True)]
    axis = dataclasses.replace(preset.axis, base=base, freq_scale=scale)
    allowed = np.full(d_model, 2.0 * rounding)
    for share in shares:
        bounds = column_tolerance(axis, share.encoding.d_model, float(lines[share.axis][-1]), rounding)
        for target, source in share.pieces:
            allowed[target] = bounds[source]
    chosen = dataclasses.replace(preset, axis=axis)

    def expected(rows: Rows) -> list[tuple[Array, Array]]:
        places = np.unravel_index(rows, shape)
        coordinates = np.stack([line[place] for line, place in zip(lines, places, strict=True)], axis=-1)
        return [(encode_coordinates(coordinates, d_model, convention=chosen, dtype=call_dtype(cells)), allowed)]

    call = call_text(encode_grid, shape, d_model, **keywords, **reading.keywords) + reading.then
    return Match(f"grid {preset.name}", call, chosen, (cells,), expected)
