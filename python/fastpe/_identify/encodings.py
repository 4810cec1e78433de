# SPDX-License-Identifier: BSD-3-Clause
"""Presets that make a table: the rows of a sequence, or the cells of a grid. A sequence is a grid of one axis."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from fastpe._grid.columns import SharedColumns
from fastpe._grid.convention import GridConvention
from fastpe._grid.encode import axis_coordinates, encode_grid
from fastpe._grid.grid_conventions import grid_conventions
from fastpe._identify import numbers
from fastpe._identify.answer import Array, Match, Rows, call_text, nonzero
from fastpe._rotary.embedding import RotaryEmbedding
from fastpe._sinusoid.conventions import conventions
from fastpe._sinusoid.encoder import PositionalEncoding
from fastpe._sinusoid.functions import encode

# Tokenizers have no padding index beyond this.
_largest_padding_index = 7
# Tables have no more columns than these.
_widest = 1 << 14
# So many strides of columns are taken for those of axes.
_likely_strides = 4
_sequences = {name: GridConvention(name, convention) for name, convention in conventions.items()}


def find(array: Array) -> Iterator[Match]:
    """The simplest preset that makes the table, for each way to read it."""
    rounding = numbers.stored_as(array)[0]
    views = {"": array, "[::-1]": array[::-1], ".transpose()": array.T} if array.ndim == 2 else {}
    if views and array.shape[1] % 2 == 0 and (array[:, ::2] == array[:, 1::2]).all():
        views[".repeat(2, axis=-1)"] = array[:, ::2]
    rows = [_rows(view, rounding, then) for then, view in views.items()]
    readings = itertools.chain(*rows[:1], _cells(array, rounding), *rows[1:])
    return filter(None, map(_simplest, readings))


def _rows(array: Array, rounding: float, then: str) -> Iterator[_Reading]:
    """A sequence, behind rows that are zero or not."""
    zero = np.flatnonzero(~array.any(axis=1)).tolist()
    leading = zero == list(range(len(zero))) or (len(zero) == 1 and zero[0] <= _largest_padding_index)
    if array.shape[1] <= _widest:
        for start in dict.fromkeys([zero[-1] + 1 if zero and leading else 0, 0]):
            yield _Reading((len(array),), array, rounding, then=then, start=start)


def _cells(array: Array, rounding: float) -> Iterator[_Reading]:
    """Grids of the array's own shape, or of cells one after the other."""
    *shape, d_model = array.shape
    if len(shape) > 1:
        yield _Reading(tuple(shape), array.reshape(-1, d_model), rounding)
        yield _Reading(array.shape[1:], array.reshape(len(array), -1).T, rounding, {"channels_first": True})
    tokens = int(np.argmax(array.any(axis=1))) if len(shape) == 1 else 0
    cells = array.reshape(-1, d_model)[tokens:]
    count = len(cells)
    divisors = [divisor for divisor in range(2, math.isqrt(count) + 1) if count % divisor == 0]
    strides = sorted({1, *divisors, *(count // divisor for divisor in divisors)})
    # The columns of an axis change first where it goes on, a stride of it away; slow ones a multiple of it away.
    changed = [np.abs(cells[stride % count] - cells[0]) > 2.0 * rounding for stride in strides]
    columns = Counter(strides[place] for place in np.argmax(changed, axis=0) if place > 0)
    likely = sorted((stride for stride, _ in columns.most_common(_likely_strides)), reverse=True)
    grids: list[tuple[int, ...]] = [(count // stride, stride) for stride in likely]
    grids += [(count // a, a // b, b) for a, b in itertools.combinations(likely, 2) if a % b == 0]
    for grid in grids:
        if tokens:
            yield _Reading(grid, cells, rounding, {"class_tokens": tokens})
        elif list(grid) != shape:
            yield _Reading(grid, cells, rounding, then=f".reshape{(-1, *shape[1:], d_model)}")


@dataclasses.dataclass(frozen=True)
class _Reading:
    """A table as a list of cells [cells, d_model], and what a call has to make it so; for a sequence, from row `start` on."""

    shape: tuple[int, ...]
    cells: Array
    rounding: float
    keywords: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    then: str = ""
    start: int = 0

    @property
    def is_sequence(self) -> bool:
        return len(self.shape) == 1


def _simplest(reading: _Reading) -> Match | None:
    """The preset that makes the cells with the fewest changes, and others that are as simple."""
    rows = nonzero([reading.cells])
    presets = (_sequences if reading.is_sequence else grid_conventions).values()
    own = [each for preset in presets if (each := _Candidate(reading, preset, {})).shares]
    fits = [each for each in own if each.match.fits(rows)]
    for each in () if fits else own:
        changed = sorted(each.measured(), key=lambda new: new.complexity)
        fits += itertools.islice((new for new in changed if new.shares and new.match.fits(rows)), 1)
    if not fits:
        return None
    best, *others = sorted(fits, key=lambda each: each.complexity)
    # One digit more or less does not decide.
    others = [each for each in others if each.complexity <= best.complexity + 1]
    same = [f"at this size, the same as {', '.join(map(str, others))}"] * bool(others)
    tokens = [f"tokens start at row {reading.start}, behind padding or class tokens, and so does the call"]
    found = {**best.match.found, "equivalents": tuple(each.preset.name for each in others)}
    return dataclasses.replace(best.match, found=found, notes=(*tokens * bool(reading.start), *same, *best.notes()))


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """A preset that may make what was read, and the numbers that differ from its own."""

    reading: _Reading
    preset: GridConvention
    changes: Mapping[str, Any]

    @property
    def complexity(self) -> int:
        return sum(2 + numbers.digits(number) for value in self.changes.values() for number in np.unique(value))

    def __str__(self) -> str:
        changes = ", ".join(f"{name}={value!r}" for name, value in self.changes.items())
        return f"{self.preset.name} with {changes}" if changes else self.preset.name

    @cached_property
    def convention(self) -> GridConvention:
        numbers = {name: value for name, value in self.changes.items() if name != "spacing"}
        return dataclasses.replace(self.preset, axis=dataclasses.replace(self.preset.axis, **numbers))

    @cached_property
    def shares(self) -> list[tuple[PositionalEncoding, Array]]:
        """The encoding of each axis, and the columns where it is; none where this size or these numbers have no encoding."""
        d_model, axes = self.reading.cells.shape[1], len(self.reading.shape)
        try:
            if self.reading.is_sequence:
                return [(PositionalEncoding(d_model, convention=self.convention.axis, max_len=0), np.arange(d_model))]
            shares = SharedColumns(self.convention, d_model, axes, None).shares
        except ValueError:
            return []
        shares = sorted(shares, key=lambda share: share.axis) if len(shares) == axes else []
        return [(each.encoding, np.concatenate([np.r_[target] for target, _ in each.pieces])) for each in shares]

    @cached_property
    def lines(self) -> list[Array]:
        """The coordinates of the cells along each axis."""
        spacings = np.broadcast_to(self.changes.get("spacing", 1.0), len(self.reading.shape))
        cells = (np.arange(length) - self.reading.start for length in self.reading.shape)
        return [axis_coordinates(self.convention, *each) for each in zip(cells, spacings, strict=True)]

    @cached_property
    def match(self) -> Match:
        cells, axis, is_sequence = self.reading.cells, self.convention.axis, self.reading.is_sequence
        d_model, allowed = cells.shape[1], np.zeros(cells.shape[1])
        # What `make` keeps does not have the match itself, so that the table is freed without the garbage collector.
        shape, axes = self.reading.shape, [*zip(self.shares, self.lines, strict=True)]
        for (encoding, columns), line in axes:
            factor, furthest = abs(axis._numbers(encoding.d_model).scale), float(np.abs(line).max())
            bounds = factor * numbers.tolerance(encoding.frequencies, furthest, self.reading.rounding)
            for function in axis._columns(encoding.d_model):
                allowed[columns[function]] = bounds[: len(columns[function])]

        def make(rows: Rows) -> list[Array]:
            made = np.zeros((len(rows), d_model), cells.dtype)
            places = np.unravel_index(rows, shape)
            for ((encoding, columns), line), place in zip(axes, places, strict=True):
                made[:, columns] = encoding.encode(line[place], dtype=made.dtype)[:, : len(columns)]
            return [made]

        found = {name: getattr(axis, name) for name in ("first_position", "base", "freq_scale")}
        found |= {"title": self.preset.name if is_sequence else f"grid {self.preset.name}"}
        found |= {"convention": axis if is_sequence else self.convention, "alpha": axis._numbers(d_model).scale}
        return Match(self.call(), found, [cells], make, allowed)

    def measured(self) -> Iterator[_Candidate]:
        """The preset with the numbers that the cells along one line of each axis say."""
        own, reading, found = self.preset.axis, self.reading, []
        for axis, ((encoding, columns), line) in enumerate(zip(self.shares, self.lines, strict=True)):
            stride = math.prod(reading.shape[axis + 1 :])
            cells = reading.cells[reading.start :: stride][: min(len(line), numbers.head_rows)]
            sines, cosines = (cells[:, columns[function]] for function in own._columns(encoding.d_model))
            step = float(line[1] - line[0]) if len(line) > 1 else 1.0
            denominator = own._numbers(encoding.d_model).denominator
            if (phases := numbers.measured(sines, cosines, reading.rounding, denominator, step)) is None:
                return
            found.append(phases)
        phases, alpha, amplitude = found[0], own.alpha, own._numbers(reading.cells.shape[1]).scale
        if not math.isclose(amplitude, phases.amplitude, rel_tol=max(1e-6, 2.0 * reading.rounding)):
            alpha = numbers.few_digits(phases.amplitude, 0.5 * reading.rounding)
        scales_of = [each.numbers(own.base, own.freq_scale) for each in found]
        for base in scales_of[0]:
            for scales in itertools.product(*(each.get(base, ()) for each in scales_of)):
                if reading.is_sequence:
                    for first in phases.first_positions(scales[0] * base**-phases.exponents):
                        yield self.changed(base=base, freq_scale=scales[0], alpha=alpha, first_position=first)
                elif not self.preset.normalize:
                    spacing = tuple(scale / own.freq_scale for scale in scales)
                    yield self.changed(base=base, spacing=spacing if len({*spacing}) > 1 else spacing[0])
                elif len({*scales}) == 1:
                    yield self.changed(base=base, freq_scale=scales[0])

    def changed(self, **numbers: Any) -> _Candidate:
        own = {**vars(self.preset.axis), "spacing": 1.0}
        changes = {name: value for name, value in numbers.items() if value != own[name]}
        return dataclasses.replace(self, changes=changes)

    def call(self, past: int = 0) -> str:
        """The call that makes the cells, or as many rows from `past` rows behind them on."""
        reading, preset, changes = self.reading, self.preset, dict(self.changes)
        d_model = reading.cells.shape[1]
        if not reading.is_sequence:
            keywords = {"convention": preset.name, **changes, **reading.keywords}
            return call_text(encode_grid, reading.shape, d_model, **keywords) + reading.then
        past += self.convention.axis.first_position - preset.axis.first_position
        chosen = dataclasses.replace(preset.axis, alpha=changes["alpha"]) if "alpha" in changes else preset.name
        changed = {key: changes[key] for key in ("base", "freq_scale") if key in changes}
        offset = {"offset": past} if past else {}
        length = len(reading.cells) - reading.start
        return call_text(encode, length, d_model, convention=chosen, **changed, **offset) + reading.then

    def notes(self) -> Iterator[str]:
        axis, reading = self.convention.axis, self.reading
        length, d_model = len(reading.cells) - reading.start, reading.cells.shape[1]
        if not reading.is_sequence or reading.then:
            return
        if "first_position" in self.changes or self.preset.name == "opennmt_tf":
            yield f"a stream goes on with {self.call(length)}; add_ and add take this offset too"
        halves = axis.layout == "concatenated" and axis._numbers(d_model).denominator == d_model / 2
        is_rotary = axis.base >= 1.0 >= axis.freq_scale > 0.0 and axis._numbers(d_model).scale == 1.0
        if halves and d_model % 2 == 0 and is_rotary:
            form = "cos_sin" if axis.cosine_first else "sin_cos"
            arguments = numbers.linear_scaling(axis.base, axis.freq_scale)
            rope = RotaryEmbedding(d_model, interleaved=False, **arguments)
            offset = {"offset": axis.first_position} if axis.first_position else {}
            yield f"as the cache of a rotary embedding, it is {call_text(rope.tables, length, form=form, **offset)}"
