# SPDX-License-Identifier: BSD-3-Clause
"""Conventions of several coordinates that fit the cells of a table."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fastpe._grid.columns import AxisShare, SharedColumns
from fastpe._grid.convention import GridConvention
from fastpe._grid.encode import axis_coordinates
from fastpe._grid.presets import grid_conventions
from fastpe._identify.answer import Answer
from fastpe._identify.near import Candidate, nearly
from fastpe._identify.phases import digits, geometric, measured, steps_error
from fastpe._identify.readings import Array, angle_tolerance, excess, left_at_zero, stored_as, tolerance
from fastpe._sinusoid.encoder import PositionalEncoding

# No row of an encoding has values that all are smaller than this, so that such rows are class tokens.
_small = 0.5
# There is no base if the axis has a single cell, which shows no frequencies.
Knobs = tuple[float | None, float]

_probed_cells = 16
# How many of them may be damaged.
_damaged_cells = 4
# How many pairs of cells say whether columns change along an axis; a quarter of them may be apart by damage.
_probed_pairs = 64
# So many strides of columns, at most, are taken for those of axes.
_likely_strides = 3
# How many cells, at most, say what a place on an axis is: the median of them.
_median_lines = 5


@dataclasses.dataclass(frozen=True)
class Reading:
    """The table as the cells of a grid.

    Attributes
    ----------
    cells : ndarray [.., d_model]
        One axis for each axis of the grid.
    class_tokens : int
        Zero rows that were in front of them.
    channels_first : bool
        Whether the columns were the first axis.
    flat : str
        The code that makes the table's shape from the grid's.
    """

    cells: Array
    class_tokens: int = 0
    channels_first: bool = False
    flat: str = ""


def answers(array: Array) -> Iterator[Answer]:
    """All grids that fit, simplest reading first."""
    rounding, stored = stored_as(array)
    for reading in _readings(array, rounding):
        found = []
        for preset in grid_conventions.values():
            knobs = _knobs(preset, reading.cells, rounding)
            if knobs is not None:
                found.append((_complexity(preset, knobs), preset, knobs))
        for _, preset, knobs in sorted(found, key=lambda each: each[0]):
            notes = [f"its values are rounded to {stored}"] if stored != array.dtype.name else []
            if reading.class_tokens:
                rows = "its first row is" if reading.class_tokens == 1 else f"its first {reading.class_tokens} rows are"
                notes.insert(0, f"{rows} zero, as for class tokens")
            base, scales = knobs
            allowed = _allowed(preset, reading, base, scales, rounding)
            zero = np.flatnonzero(~array.any(axis=1)) if array.ndim == 2 else np.zeros(0, np.intp)
            left = zero[zero >= reading.class_tokens]
            if left.size:
                # Rows that are zero are not compared.
                allowed = np.where(np.isin(np.arange(len(array)), left)[:, None], np.inf, allowed)
                notes.append(left_at_zero(left.tolist()))
            others = tuple(other.name for _, other, same in found if other is not preset and same == knobs)
            if others:
                notes.append(f"the same at this width and shape: {', '.join(others)}")
            axis = dataclasses.replace(preset.axis, base=base, freq_scale=max(scales))
            yield Answer(
                f"grid {preset.name}",
                _call(preset, reading, base, scales),
                (array,),
                (allowed,),
                dataclasses.replace(preset, axis=axis),
                others,
                tuple(notes),
            )


def candidates(array: Array) -> Iterator[Candidate]:
    """The presets as they are, with the grids that the table may have."""
    for reading in _readings(array, nearly, _small):
        *shape, d_model = reading.cells.shape
        for preset in grid_conventions.values():
            try:
                columns = SharedColumns(preset, d_model, len(shape), None)
            except ValueError:
                continue
            differences = [
                np.abs(table - _axis_made(preset, share, len(table))[:, : table.shape[1]])
                for share in columns.shares
                if (table := _axis_table(share, reading.cells, nearly)) is not None
            ]
            if differences and len(differences) == len(columns.shares):
                distance = float(np.mean([difference.mean() for difference in differences]))
                code = _call(preset, reading, preset.axis.base, (preset.axis.freq_scale,) * len(shape))
                yield Candidate(f"grid {preset.name!r} of {tuple(shape)} cells", code, (array,), distance)


def _axis_made(preset: GridConvention, share: AxisShare, length: int) -> Array:
    """The encoding of one axis."""
    return share.encoding.encode(axis_coordinates(preset, length), dtype=np.float64)


def _readings(array: Array, rounding: float, small: float = 0.0) -> Iterator[Reading]:
    """The grids that the table may have. Leading rows with no value beyond `small` are those of class tokens."""
    *shape, d_model = array.shape
    leading = 0
    if array.ndim == 2:
        leading = int(np.argmax((np.abs(array) > small).any(axis=1)))
    else:
        yield Reading(array)
        yield Reading(np.moveaxis(array, 0, -1), channels_first=True)
    rows = array.reshape(-1, d_model)
    # The last of the leading rows may be the first cell, left at zero.
    for tokens in range(leading, max(leading - 2, -1), -1):
        flat = "" if tokens else f".reshape{(-1, *shape[1:], d_model)}"
        for grid in _grids(rows[tokens:], rounding):
            if list(grid) != shape:
                yield Reading(rows[tokens:].reshape(*grid, d_model), tokens, flat=flat)


def _grids(cells: Array, rounding: float) -> Iterator[tuple[int, ...]]:
    """The grids of which this may be the list of cells, those with the fewest axes first.

    Columns of an axis stay the same while the axes after it run, for as many cells as those have: its stride. All axes
    follow from the strides that most columns have. Slow columns seem to have others.
    """
    count = len(cells)
    strides = np.ones(cells.shape[1], np.intp)
    generator = np.random.default_rng(0)
    places = generator.integers(0, count, _probed_pairs)
    steps = generator.integers(0, count, _probed_pairs)
    probe = cells[places].astype(np.float64)
    divisors = [divisor for divisor in range(2, math.isqrt(count) + 1) if count % divisor == 0]
    for stride in sorted({*divisors, *(count // divisor for divisor in divisors)}):
        # Other places that are less than a stride apart from the same multiple of it.
        others = places - places % stride + (places + 1 + steps % (stride - 1)) % stride
        apart = np.abs(cells[others].astype(np.float64) - probe) > 2.0 * rounding
        strides[np.count_nonzero(apart, axis=0) <= _probed_pairs // 4] = stride
    found, columns = np.unique(strides[strides > 1], return_counts=True)
    likely = sorted(found[np.argsort(-columns, kind="stable")[:_likely_strides]].tolist(), reverse=True)
    for axes in range(1, len(likely) + 1):
        for outer in itertools.combinations(likely, axes):
            bounds = (count, *outer, 1)
            if all(above % below == 0 for above, below in itertools.pairwise(bounds)):
                yield tuple(above // below for above, below in itertools.pairwise(bounds))


def _knobs(preset: GridConvention, cells: Array, rounding: float) -> tuple[float, tuple[float, ...]] | None:
    """The base, and the scale of the frequencies for each axis of the grid; None where the preset does not fit."""
    *shape, d_model = cells.shape
    try:
        columns = SharedColumns(preset, d_model, len(shape), None)
    except ValueError:
        return None
    per_axis: dict[int, list[Knobs]] = {}
    for share in columns.shares:
        table = _axis_table(share, cells, rounding)
        if table is None:
            return None
        per_axis[share.axis] = _axis_knobs(preset, share, table, rounding)
    if set(per_axis) != set(range(len(shape))) or cells[..., columns.used :].any():
        return None
    combined = []
    for choice in itertools.product(*(per_axis[axis] for axis in range(len(shape)))):
        bases = {base for base, _ in choice if base is not None}
        scales = tuple(scale for _, scale in choice)
        if len(bases) <= 1 and (not preset.normalize or len(set(scales)) == 1):
            combined.append((next(iter(bases), preset.axis.base), scales))
    return min(combined, key=lambda knobs: _complexity(preset, knobs), default=None)


def _axis_table(share: AxisShare, cells: Array, rounding: float) -> Array | None:
    """The encoding of one axis; None where these columns change along another one. A few cells may be damaged."""
    lines = np.moveaxis(cells, share.axis, -2)
    count = math.prod(lines.shape[:-2])
    # Of an odd number, the median is one of the values.
    few = np.linspace(0, count - 1, min(_median_lines, count - 1 + count % 2)).astype(np.intp)
    chosen = tuple(each[:, None] for each in np.unravel_index(few, lines.shape[:-2]))

    def middle(places: npt.NDArray[np.intp], columns: slice) -> Array:
        read = (*chosen, places)
        values: Array = np.sort(lines[..., columns][read].astype(np.float64), axis=0)[len(few) // 2]
        return values

    generator = np.random.default_rng(0)
    index = tuple(generator.integers(0, length, _probed_cells) for length in cells.shape[:-1])
    off = np.zeros(_probed_cells, bool)
    for target, _ in share.pieces:
        differences = np.abs(cells[..., target][index].astype(np.float64) - middle(index[share.axis], target))
        off |= differences.max(axis=1) > 8.0 * rounding
        # Few tables are grids, so that the others are dropped before all places are read.
        if np.count_nonzero(off) > _damaged_cells:
            return None
    table = np.zeros((cells.shape[share.axis], max(source.stop for _, source in share.pieces)))
    for target, source in share.pieces:
        table[:, source] = middle(np.arange(len(table)), target)
    return table


def _axis_knobs(preset: GridConvention, share: AxisShare, table: Array, rounding: float) -> list[Knobs]:
    """Pairs of base and scale that give an axis' encoding."""
    coordinates = axis_coordinates(preset, len(table))
    structure = preset.axis
    if len(table) < 2:
        return [(None, structure.freq_scale)]
    width = share.encoding.d_model
    candidates = [(structure.base, structure.freq_scale)]
    if table.shape[1] == width:
        sines, cosines = (table[:, columns] for columns in structure.columns(width))
        phases = measured(sines, cosines, np.arange(len(table)), rounding)
        if phases is None:
            return []
        steps = phases.steps / float(coordinates[1] - coordinates[0])
        exponents = np.arange(steps.size) / structure.exponent_denominator(width)
        error = steps_error(rounding, len(table))
        candidates = geometric(steps, exponents, structure.base, structure.freq_scale, error)
    fitting: list[Knobs] = []
    for base, scale in candidates:
        try:
            encoding = PositionalEncoding(width, convention=structure, base=base, freq_scale=scale)
        except ValueError:
            continue
        made = encoding.encode(coordinates, dtype=np.float64)
        allowed = _column_tolerance(encoding, float(coordinates[-1]), rounding)
        if excess(table, made[:, : table.shape[1]], allowed[: table.shape[1]])[0] <= 1.0:
            fitting.append((base, scale))
    return fitting


def _column_tolerance(encoding: PositionalEncoding, furthest: float, rounding: float) -> npt.NDArray[np.float64]:
    angles = angle_tolerance(encoding.frequencies, furthest)
    columns = np.zeros(encoding.d_model)
    for functions in encoding.convention.columns(encoding.d_model):
        columns[functions] = angles[: len(columns[functions])]
    return tolerance(columns, rounding, 1.0)


def _allowed(
    preset: GridConvention, reading: Reading, base: float, scales: tuple[float, ...], rounding: float
) -> npt.NDArray[np.float64]:
    *shape, d_model = reading.cells.shape
    result = np.full(d_model, 2.0 * rounding)
    for share in SharedColumns(preset, d_model, len(shape), None).shares:
        encoding = PositionalEncoding(
            share.encoding.d_model, convention=preset.axis, base=base, freq_scale=scales[share.axis]
        )
        furthest = float(axis_coordinates(preset, shape[share.axis])[-1])
        bounds = _column_tolerance(encoding, furthest, rounding)
        for target, source in share.pieces:
            result[target] = bounds[source]
    return result.reshape(-1, *(1 for _ in shape)) if reading.channels_first else result


def _complexity(preset: GridConvention, knobs: tuple[float, tuple[float, ...]]) -> int:
    base, scales = knobs
    changed = [base] * (base != preset.axis.base) + [scale for scale in scales if scale != preset.axis.freq_scale]
    return sum(2 + digits(value) for value in changed)


def _call(preset: GridConvention, reading: Reading, base: float, scales: tuple[float, ...]) -> str:
    *shape, d_model = reading.cells.shape
    keywords = [f"convention={preset.name!r}"]
    if base != preset.axis.base:
        keywords.append(f"base={base!r}")
    if set(scales) != {preset.axis.freq_scale}:
        if preset.normalize:
            keywords.append(f"freq_scale={scales[0]!r}")
        else:
            spacing = tuple(scale / preset.axis.freq_scale for scale in scales)
            keywords.append(f"spacing={spacing[0] if len(set(spacing)) == 1 else spacing!r}")
    if reading.class_tokens:
        keywords.append(f"class_tokens={reading.class_tokens}")
    if reading.channels_first:
        keywords.append("channels_first=True")
    return f"fastpe.encode_grid({tuple(shape)}, {d_model}, {', '.join(keywords)}){reading.flat}"
