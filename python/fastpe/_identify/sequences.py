# SPDX-License-Identifier: BSD-3-Clause
"""Conventions of one coordinate that make the rows of a table."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fastpe._identify.answer import Array, Match, Rows, call_text, nonzero
from fastpe._identify.numbers import call_dtype, digits, few_digits, measured, tolerance
from fastpe._rotary.embedding import RotaryEmbedding
from fastpe._sinusoid.convention import Convention
from fastpe._sinusoid.encoder import PositionalEncoding
from fastpe._sinusoid.functions import encode
from fastpe._sinusoid.presets import conventions

_vaswani, _concat, _half_minus_one = (conventions[name] for name in ("vaswani", "concat", "tensor2tensor"))
# The presets, and the orders of functions that no preset has, each with both denominators.
_structures = (
    *conventions.values(),
    dataclasses.replace(_vaswani, cosine_first=True),
    dataclasses.replace(_half_minus_one, layout="interleaved"),
    dataclasses.replace(_half_minus_one, layout="interleaved", cosine_first=True),
    dataclasses.replace(_concat, cosine_first=True),
)
_numbers = ("base", "freq_scale", "alpha", "first_position")


def find(table: Array, start: int, rounding: float) -> Match | None:
    """The simplest convention that makes the table: a preset as it is from row `start` on, or with other numbers."""
    d_model, rows = table.shape[1], nonzero([table])
    structures = [each for each in _structures if frequencies(each, d_model) is not None]
    fits = [each for each in structures if _match(each, table, start, rounding).fits(rows)]
    for structure in () if fits else structures:
        # The first that fits has the fewest digits.
        candidates = _measured(structure, table[start:], rounding)
        fits += itertools.islice((each for each in candidates if _match(each, table, start, rounding).fits(rows)), 1)
    if not fits:
        return None
    fits.sort(key=_complexity)
    best = fits[0]
    # One digit more or less does not decide.
    others = [each for each in fits[1:] if each.name != best.name and _complexity(each) <= _complexity(best) + 1]
    titles = ", ".join(dict.fromkeys(_title(each, "base", "freq_scale") for each in others))
    notes = [f"at this width and length, the same as {titles}"] * bool(others) + [
        *_notes(best, len(table) - start, d_model)
    ]
    names = tuple(dict.fromkeys(each.name for each in others))
    return dataclasses.replace(_match(best, table, start, rounding), equivalents=names, notes=tuple(notes))


def _measured(structure: Convention, table: Array, rounding: float) -> Iterator[Convention]:
    """The structure with the numbers that the table's own phases say."""
    d_model = table.shape[1]
    sines, cosines = (table[:, columns] for columns in structure.columns(d_model))
    phases = measured(sines, cosines, rounding)
    if phases is None:
        return
    error = max(1e-6, 2.0 * rounding)
    if math.isclose(structure.output_scale(d_model), phases.amplitude, rel_tol=error):
        alpha: Any = structure.alpha
    else:
        alpha = few_digits(phases.amplitude, 0.5 * rounding)
    pairs = phases.steps.size
    exponents = np.arange(pairs) / structure.exponent_denominator(d_model)
    for base, scale in phases.numbers(exponents, structure.base, structure.freq_scale):
        scaled = dataclasses.replace(structure, base=base, freq_scale=scale, alpha=alpha)
        per_row = frequencies(scaled, d_model)
        for first in () if per_row is None else phases.first_positions(per_row[:pairs]):
            yield dataclasses.replace(scaled, first_position=first)


def _changes(convention: Convention) -> dict[str, Any]:
    """The fields that differ from those of the preset of this name."""
    preset = conventions[convention.name]
    values = {field.name: getattr(convention, field.name) for field in dataclasses.fields(preset) if field.compare}
    return {name: value for name, value in values.items() if value != getattr(preset, name)}


def _complexity(convention: Convention) -> int:
    changes = _changes(convention).items()
    return sum(2 + digits(value) if name in _numbers else 1 for name, value in changes)


def _title(convention: Convention, *also: str) -> str:
    changes = _changes(convention).items()
    shown = [f"{name}={value!r}" for name, value in changes if name not in _numbers or name in also]
    return convention.name + (f" with {', '.join(shown)}" if shown else "")


def _call(convention: Convention, length: int, d_model: int, past: int = 0) -> str:
    """The call that makes rows from the first position on, or from `past` rows after it."""
    changes, preset = _changes(convention), conventions[convention.name]
    keywords: dict[str, Any] = {name: changes.pop(name) for name in ("base", "freq_scale") if name in changes}
    past += changes.pop("first_position", preset.first_position) - preset.first_position
    chosen = dataclasses.replace(preset, **changes) if changes else preset.name
    return call_text(encode, length, d_model, convention=chosen, **keywords, **({"offset": past} if past else {}))


def _match(convention: Convention, table: Array, start: int, rounding: float) -> Match:
    """What `_call` makes, from row `start` on, and the rows before them."""
    d_model, first = table.shape[1], convention.first_position - start
    allowed = column_tolerance(convention, d_model, max(abs(first), abs(first + len(table))), rounding)

    def expected(rows: Rows) -> list[tuple[Array, Array]]:
        return [(encode(first + rows, d_model, convention=convention, dtype=call_dtype(table)), allowed)]

    return Match(_title(convention), _call(convention, len(table) - start, d_model), convention, (table,), expected)


def _notes(best: Convention, length: int, d_model: int) -> Iterator[str]:
    if "first_position" in _changes(best) or best.name == "opennmt-tf":
        yield f"a stream goes on with {_call(best, length, d_model, length)}; add_ and add take this offset too"
    halves = best.layout == "concatenated" and best.exponent_denominator(d_model) == d_model / 2
    if halves and d_model % 2 == 0 and best.base >= 1.0 and best.output_scale(d_model) == 1.0:
        scaling = None if best.freq_scale == 1.0 else {"rope_type": "linear", "factor": 1.0 / best.freq_scale}
        form = "cos_sin" if best.cosine_first else "sin_cos"
        rope = RotaryEmbedding(d_model, interleaved=False, base=best.base, scaling=scaling, form=form)
        offset = {"offset": best.first_position} if best.first_position else {}
        yield f"as the cache of a rotary embedding, it is {call_text(rope.tables, length, **offset)}"


def column_tolerance(convention: Convention, d_model: int, furthest: float, rounding: float) -> Array:
    """How far each column may be off."""
    columns = np.zeros(d_model)
    bounds = tolerance(frequencies(convention, d_model), furthest, rounding, abs(convention.output_scale(d_model)))
    for functions in convention.columns(d_model):
        columns[functions] = bounds[: len(columns[functions])]
    return columns


def frequencies(convention: Convention, d_model: int) -> Any:
    """Radians per position; None where the convention does not define this width, or frequencies are out of range."""
    try:
        return PositionalEncoding(d_model, convention=convention, max_len=0).frequencies
    except ValueError:
        return None
