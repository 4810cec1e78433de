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
from fastpe._identify.numbers import call_dtype, digits, few_digits, linear_scaling, measured, tolerance
from fastpe._rotary.embedding import RotaryEmbedding
from fastpe._sinusoid.convention import Convention
from fastpe._sinusoid.encoder import PositionalEncoding
from fastpe._sinusoid.functions import encode
from fastpe._sinusoid.presets import conventions

_numbers = ("base", "freq_scale", "alpha", "first_position")


def find(table: Array, start: int, rounding: float) -> Match | None:
    """The simplest convention that makes the table: a preset as it is from row `start` on, or with other numbers."""
    d_model, rows = table.shape[1], nonzero([table])
    presets = [each for each in conventions.values() if frequencies(each, d_model) is not None]
    fits = [each for each in presets if _match(each, table, start, rounding).fits(rows)]
    for preset in () if fits else presets:
        # The first that fits has the fewest digits.
        candidates = _measured(preset, table[start:], rounding)
        fits += itertools.islice((each for each in candidates if _match(each, table, start, rounding).fits(rows)), 1)
    if not fits:
        return None
    fits.sort(key=_complexity)
    best = fits[0]
    # One digit more or less does not decide.
    others = [each for each in fits[1:] if each.name != best.name and _complexity(each) <= _complexity(best) + 1]
    names = tuple(each.name for each in others)
    same = [", ".join(f"{name}={value!r}" for name, value in _changes(each).items()) for each in others]
    titles = ", ".join(f"{name} with {numbers}" if numbers else name for name, numbers in zip(names, same, strict=True))
    notes = [f"at this width and length, the same as {titles}"] * bool(others)
    notes += _notes(best, len(table) - start, d_model)
    return dataclasses.replace(_match(best, table, start, rounding), equivalents=names, notes=tuple(notes))


def _measured(preset: Convention, table: Array, rounding: float) -> Iterator[Convention]:
    """The preset with the numbers that the table's own phases say."""
    d_model = table.shape[1]
    sines, cosines = (table[:, columns] for columns in preset.columns(d_model))
    phases = measured(sines, cosines, rounding)
    if phases is None or not math.isfinite(phases.amplitude):
        return
    alpha: Any = preset.alpha
    if not math.isclose(preset.output_scale(d_model), phases.amplitude, rel_tol=max(1e-6, 2.0 * rounding)):
        alpha = few_digits(phases.amplitude, 0.5 * rounding)
    pairs = phases.steps.size
    exponents = np.arange(pairs) / preset.exponent_denominator(d_model)
    for base, scale in phases.numbers(exponents, preset.base, preset.freq_scale):
        scaled = dataclasses.replace(preset, base=base, freq_scale=scale, alpha=alpha)
        per_row = frequencies(scaled, d_model)
        for first in () if per_row is None else phases.first_positions(per_row[:pairs]):
            yield dataclasses.replace(scaled, first_position=first)


def _changes(convention: Convention) -> dict[str, Any]:
    """The numbers that differ from those of the preset of this name."""
    preset, values = conventions[convention.name], {name: getattr(convention, name) for name in _numbers}
    return {name: value for name, value in values.items() if value != getattr(preset, name)}


def _complexity(convention: Convention) -> int:
    return sum(2 + digits(value) for value in _changes(convention).values())


def _call(convention: Convention, length: int, d_model: int, past: int = 0) -> str:
    """The call that makes rows from the first position on, or from `past` rows after it."""
    keywords, preset = _changes(convention), conventions[convention.name]
    past += keywords.pop("first_position", preset.first_position) - preset.first_position
    alpha = {"alpha": keywords.pop("alpha")} if "alpha" in keywords else {}
    chosen = dataclasses.replace(preset, **alpha) if alpha else preset.name
    return call_text(encode, length, d_model, convention=chosen, **keywords, **({"offset": past} if past else {}))


def _match(convention: Convention, table: Array, start: int, rounding: float) -> Match:
    """What `_call` makes, from row `start` on, and the rows before them."""
    d_model, first = table.shape[1], convention.first_position - start
    allowed = column_tolerance(convention, d_model, max(abs(first), abs(first + len(table))), rounding)

    def expected(rows: Rows) -> list[tuple[Array, Array]]:
        return [(encode(first + rows, d_model, convention=convention, dtype=call_dtype(table)), allowed)]

    return Match(convention.name, _call(convention, len(table) - start, d_model), convention, (table,), expected)


def _notes(best: Convention, length: int, d_model: int) -> Iterator[str]:
    if "first_position" in _changes(best) or best.name == "opennmt-tf":
        yield f"a stream goes on with {_call(best, length, d_model, length)}; add_ and add take this offset too"
    halves = best.layout == "concatenated" and best.exponent_denominator(d_model) == d_model / 2
    if halves and d_model % 2 == 0 and best.base >= 1.0 and best.output_scale(d_model) == 1.0:
        form, arguments = "cos_sin" if best.cosine_first else "sin_cos", linear_scaling(best.base, best.freq_scale)
        rope = RotaryEmbedding(d_model, interleaved=False, form=form, **arguments)
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
