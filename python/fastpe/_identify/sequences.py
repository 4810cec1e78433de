# SPDX-License-Identifier: BSD-3-Clause
"""Conventions of one coordinate that fit the rows of a table."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe._identify.near import Candidate
from fastpe._identify.phases import Phases, digits, geometric, is_round, measured, rounded, steps_error
from fastpe._identify.readings import Array, angle_tolerance, excess, probe_rows, search_rows, tolerance
from fastpe._sinusoid.convention import Convention
from fastpe._sinusoid.encoder import PositionalEncoding
from fastpe._sinusoid.presets import conventions

# Nobody chooses a number with more digits than these.
_most_digits = 4

# The presets, and conventions that no preset has: the other orders of the functions, each with both denominators.
_structures = (
    *conventions.values(),
    dataclasses.replace(conventions["vaswani"], cosine_first=True),
    dataclasses.replace(conventions["tensor2tensor"], layout="interleaved"),
    dataclasses.replace(conventions["tensor2tensor"], layout="interleaved", cosine_first=True),
    dataclasses.replace(conventions["concat"], cosine_first=True),
)
_frequency_numbers = ("base", "freq_scale")
_numbers = (*_frequency_numbers, "alpha", "first_position")


@dataclasses.dataclass(frozen=True)
class Fit:
    """A convention that gives the rows, read downwards or upwards.

    Attributes
    ----------
    convention : Convention
        With the table's own numbers in place of a preset's. Its first position is that of the first row that is read.
    descending : bool
        Whether the last row is the first in reading order.
    complexity : int
        Of what is not the preset's.
    """

    convention: Convention
    descending: bool
    complexity: int

    @property
    def is_round(self) -> bool:
        """Whether somebody may have chosen all the numbers."""
        return all(is_round(value) for name, value in _changes(self.convention) if name in _frequency_numbers)

    @property
    def title(self) -> str:
        """The preset's name, and the fields that differ from it, except numbers."""
        return self._titled([name for name, _ in _changes(self.convention) if name not in _numbers])

    @property
    def title_with_frequencies(self) -> str:
        """The title, with a base and a scale that are not the preset's."""
        return self._titled(
            [name for name, _ in _changes(self.convention) if name not in _numbers or name in _frequency_numbers]
        )

    def _titled(self, names: list[str]) -> str:
        changes = ", ".join(f"{name}={getattr(self.convention, name)!r}" for name in names)
        return self.convention.name + (f" with {changes}" if changes else "")

    def call(self, rows: int, d_model: int) -> str:
        """The call that makes the table."""
        chosen = self.convention
        preset = conventions[chosen.name]
        changes = dict(_changes(chosen))
        numbers = [f"{name}={changes.pop(name)!r}" for name in _frequency_numbers if name in changes]
        changes.pop("first_position", None)
        keywords = [f"convention={preset.name!r}"]
        if changes:
            fields = ", ".join(f"{name}={value!r}" for name, value in changes.items())
            keywords = [f"convention=dataclasses.replace(fastpe.conventions[{preset.name!r}], {fields})"]
        keywords += numbers
        positions = str(rows)
        if self.descending:
            last = chosen.first_position + rows - 1
            positions = f"np.arange({last}, {chosen.first_position - 1}, -1)"
        elif chosen.first_position != preset.first_position:
            keywords.append(f"offset={chosen.first_position - preset.first_position}")
        return f"fastpe.encode({positions}, {d_model}, {', '.join(keywords)})"


@dataclasses.dataclass(frozen=True)
class _Order:
    """The rows of a table that are not zero, read downwards or upwards: the first ones, and some of all."""

    descending: bool
    head: Array
    head_rows: npt.NDArray[np.intp]
    probe: Array
    probe_rows: npt.NDArray[np.intp]

    @classmethod
    def of(cls, table: Array, descending: bool) -> _Order:
        read = table[::-1] if descending else table
        rows = np.flatnonzero(read.any(axis=1))
        head = rows[rows < rows[0] + search_rows]
        probe = rows[np.unique(np.linspace(0, len(rows) - 1, probe_rows).astype(np.intp))]
        return cls(descending, read[head].astype(np.float64), head, read[probe].astype(np.float64), probe)

    def fits(self, convention: Convention, rounding: float) -> bool:
        """Whether the convention makes the probe."""
        d_model = self.probe.shape[1]
        allowed = column_tolerance(convention, d_model, int(self.probe_rows[-1]) + 1, rounding)
        return excess(self.probe, expected(convention, d_model, self.probe_rows), allowed)[0] <= 1.0

    def phases(self, structure: Convention, rounding: float) -> Phases | None:
        """The phases of the columns that should be sines and cosines."""
        sines, cosines = (self.head[:, columns] for columns in structure.columns(self.head.shape[1]))
        return measured(sines, cosines, self.head_rows, rounding)


def find(table: Array, rounding: float) -> list[Fit]:
    """Presets that fit as they are, or else with the table's own numbers, the simplest ones first."""
    orders = [_Order.of(table, descending) for descending in ((False, True) if len(table) > 1 else (False,))]
    d_model = table.shape[1]
    structures = [structure for structure in _structures if _is_defined(structure, d_model)]
    fits = [
        _fit(structure, order.descending)
        for order in orders
        for structure in structures
        if order.fits(structure, rounding)
    ]
    if not fits:
        fits = [
            _fit(candidate, order.descending)
            for order in orders
            for structure in structures
            # The first that fits has the fewest digits.
            for candidate in itertools.islice(_candidates(structure, order, rounding), 1)
        ]
    fits.sort(key=lambda fit: fit.complexity)
    return [
        fit
        for fit in fits
        if fit.complexity == fits[0].complexity
        or (fit.complexity == fits[0].complexity + 1 and not same_formula(fit.convention, fits[0].convention, d_model))
    ]


def candidates(table: Array) -> Iterator[Candidate]:
    """The presets as they are, the plainest of one formula first."""
    order = _Order.of(table, False)
    rows, d_model = table.shape
    for preset in conventions.values():
        if _is_defined(preset, d_model):
            amplitude = preset.output_scale(d_model)
            differences = np.abs(order.head - expected(preset, d_model, order.head_rows))
            code = _fit(preset, False).call(rows, d_model)
            yield Candidate(repr(preset.name), code, (table,), float(differences.mean()) / amplitude, amplitude)


def same_formula(one: Convention, other: Convention, d_model: int) -> bool:
    """Whether two conventions agree at all even widths, or at all odd ones, as `d_model` is."""
    return all(
        (one.base, one.freq_scale, one.first_position) == (other.base, other.freq_scale, other.first_position)
        and one.columns(width) == other.columns(width)
        and one.exponent_denominator(width) == other.exponent_denominator(width)
        and one.output_scale(width) == other.output_scale(width)
        for width in (d_model + 4, 2 * d_model + 6 - d_model % 2)
    )


def expected(convention: Convention, d_model: int, rows: npt.NDArray[np.intp]) -> Array:
    """The exact values of these rows."""
    values = _unscaled(convention, d_model).encode(convention.first_position + rows, dtype=np.float64)
    values *= convention.output_scale(d_model)
    return values


def column_tolerance(convention: Convention, d_model: int, rows: int, rounding: float) -> npt.NDArray[np.float64]:
    """How far each column may be off."""
    furthest = max(abs(convention.first_position), abs(convention.first_position + rows - 1))
    angles = angle_tolerance(_unscaled(convention, d_model).frequencies, furthest)
    columns = np.zeros(d_model)
    for functions in convention.columns(d_model):
        columns[functions] = angles[: len(columns[functions])]
    return tolerance(columns, rounding, abs(convention.output_scale(d_model)))


def _fit(convention: Convention, descending: bool) -> Fit:
    complexity = int(descending)
    for name, value in _changes(convention):
        is_number = name in _numbers and not isinstance(value, str)
        complexity += 2 + min(digits(value), _most_digits) if is_number else 1
    return Fit(convention, descending, complexity)


def _changes(convention: Convention) -> list[tuple[str, Any]]:
    """The fields that differ from the preset's, and their values."""
    preset = conventions[convention.name]
    names = [field.name for field in dataclasses.fields(convention) if field.compare]
    return [(name, getattr(convention, name)) for name in names if getattr(convention, name) != getattr(preset, name)]


def _candidates(structure: Convention, order: _Order, rounding: float) -> Iterator[Convention]:
    """The structure with the numbers that the table's own phases say, where it fits then."""
    d_model = order.head.shape[1]
    phases = order.phases(structure, rounding)
    if phases is None:
        return
    exponents = np.arange(phases.steps.size) / structure.exponent_denominator(d_model)
    error = steps_error(rounding, len(order.head_rows))
    knobs = geometric(phases.steps, exponents, structure.base, structure.freq_scale, error)
    if len(order.head_rows) == 1:
        # One row says nothing of steps.
        knobs = [(structure.base, structure.freq_scale)]
    alphas = _alphas(structure, phases.amplitude, d_model, rounding)
    for base, freq_scale in knobs:
        scaled = dataclasses.replace(structure, base=base, freq_scale=freq_scale)
        if not _is_defined(scaled, d_model):
            continue
        frequencies = _unscaled(scaled, d_model).frequencies[: phases.steps.size]
        for first_position, alpha in itertools.product(phases.first_positions(frequencies), alphas):
            candidate = dataclasses.replace(scaled, first_position=first_position, alpha=alpha)
            if order.fits(candidate, rounding):
                yield candidate


def _alphas(structure: Convention, amplitude: float, d_model: int, rounding: float) -> list[Any]:
    """The amplitude by a name, where it has one, or as a number with few digits."""
    near = max(1e-6, 2.0 * rounding)
    named: list[Any] = [structure.alpha, "1/sqrt(d)", "sqrt(2/d)"]
    for alpha in named:
        if math.isclose(dataclasses.replace(structure, alpha=alpha).output_scale(d_model), amplitude, rel_tol=near):
            return [alpha]
    few = (rounded(amplitude, count) for count in range(1, 6))
    return [next((alpha for alpha in few if math.isclose(alpha, amplitude, rel_tol=near)), amplitude)]


def _is_defined(convention: Convention, d_model: int) -> bool:
    """Whether there is an encoder of this width; which widths and frequencies there are is the encoder's own matter."""
    try:
        _unscaled(convention, d_model)
    except ValueError:
        return False
    return True


@functools.lru_cache(maxsize=32)
def _encoding(convention: Convention, d_model: int) -> PositionalEncoding:
    return PositionalEncoding(d_model, convention=convention)


def _unscaled(convention: Convention, d_model: int) -> PositionalEncoding:
    return _encoding(dataclasses.replace(convention, alpha=1.0, first_position=0), d_model)
