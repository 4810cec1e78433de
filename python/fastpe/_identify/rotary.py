# SPDX-License-Identifier: BSD-3-Clause
"""Rotary embeddings whose tables an array, or two, may be."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastpe._identify.answer import Array, Match, Rows, call_text, nonzero
from fastpe._identify.numbers import Floats, Phases, call_dtype, few_digits, measured, nearby, stored_as, tolerance
from fastpe._rotary.embedding import RotaryEmbedding

# Fewer rows than these fit some frequencies, whatever they are.
_fewest_rows = 4
_usual_bases = (1e4, 5e5, 1e6, 5e6, 1e7)
# What files of models with "llama3" have: the least and largest turns, and the length before scaling.
_turns = ((1.0, 4.0), (1.0, 1.0))
_lengths = (8192, 4096, 2048, 16384, 32768, 131072)
_pairing = "cosines and sines are the same for both pairings: what interleaved= should be, the table does not say"
_quotients = "of original_max_position_embeddings and the turns, only the quotients can be measured"


class _Reading(NamedTuple):
    """The form, and cosines and sines [rows, pairs] of the arrays; `which` of the two was given, if it was one."""

    form: str
    cos: Array
    sin: Array
    which: int | None = None


def find(given: Sequence[Array]) -> Match | None:
    """The embedding whose cosines and sines these are, in one array or two."""
    rounding, rows = max(stored_as(array)[0] for array in given), nonzero(given)
    for reading in _readings(given) if len(given[0]) >= _fewest_rows else ():
        fits: list[tuple[Match, dict[str, Any]]] = []
        for start, arguments in _arguments(reading, rounding):
            try:
                rope = RotaryEmbedding(2 * reading.cos.shape[1], interleaved=False, form=reading.form, **arguments)
            except ValueError:  # a base below 1, or numbers that are out of range
                continue
            match = _match(reading, given, rope, start, rounding)
            if match.fits(rows):
                fits.append((match, arguments))
        if fits:
            match, arguments = fits[0]
            others = [str({key: each[key] for key in each if each[key] != arguments.get(key)}) for _, each in fits[1:]]
            notes = [f"this table is too small or too coarse to tell it from {'; '.join(others[:3])}"] * bool(others)
            return dataclasses.replace(match, notes=(*notes, *match.notes))
    return None


def _readings(given: Sequence[Array]) -> Iterator[_Reading]:
    array = given[0]
    if array.dtype.kind == "c":
        if array.ndim == 2 and len(given) == 1:
            yield _Reading("complex", array.real, array.imag)
    elif array.ndim == 2:
        half, odd = divmod(array.shape[1], 2)
        if len(given) == 1 and not odd:
            yield _Reading("cos_sin", array[:, :half], array[:, half:])
            yield _Reading("sin_cos", array[:, half:], array[:, :half])
        forms = [("tile", np.s_[:half], np.s_[half:]), ("repeat", np.s_[::2], np.s_[1::2])] if not odd else []
        for form, one, other in (*forms, ("halves", np.s_[:], np.s_[:])):
            if all(np.array_equal(each[:, one], each[:, other]) for each in given):
                if len(given) == 2:
                    yield _Reading(form, array[:, one], given[1][:, one])
                else:
                    # In the first two rows from position 0 on, angles are so small that one function says the other.
                    first = array[:2, one].astype(np.float64)
                    second = np.sqrt(np.maximum(1.0 - first**2, 0.0))
                    which = int(not array[0].any())
                    cos, sin = (second, first) if which else (first, second)
                    yield _Reading(form, cos, sin, which)
    elif array.shape[2:] == (2,) and len(given) == 1:
        yield _Reading("pairs", array[..., 0], array[..., 1])


def _arguments(reading: _Reading, rounding: float) -> Iterator[tuple[int, dict[str, Any]]]:
    """The first position, and what frequencies follow from: a base, a linear scaling, or that of llama3."""
    # Cosines of small angles say little of them.
    phases = measured(reading.sin, reading.cos, rounding * (1 if reading.which is None else 64))
    if phases is None:
        return
    exponents = np.arange(phases.steps.size) / phases.steps.size
    found: list[dict[str, Any]] = []
    for base, scale in phases.numbers(exponents, 1e4, 1.0):
        scaling = {"rope_type": "linear", "factor": few_digits(1.0 / scale, 1e-12)}
        found.append({"base": base} if scale == 1.0 else {"base": base, "scaling": scaling})
    factor = few_digits(phases.amplitude, max(1e-6, rounding))
    whole = {} if math.isclose(factor, 1.0, rel_tol=max(1e-5, rounding)) else {"attention_factor": factor}
    for arguments in (*found, *_llama3(phases, exponents)):
        for start in phases.first_positions(phases.steps) if reading.which is None else (0,):
            yield start, {**arguments, **whole}


def _llama3(phases: Phases, exponents: Floats) -> Iterator[dict[str, Any]]:
    """Fast frequencies stay, slow ones are divided by a factor, and those between are a mean of both."""
    steps = phases.steps
    if steps.size < 3 or (steps <= 0.0).any() or abs(steps[0] - 1.0) > 0.01:
        return
    # The fastest frequency but the first, which is always 1, says the base; the slowest says the factor.
    for base in dict.fromkeys([*_usual_bases, *nearby(-steps.size * math.log(steps[1]))]):
        ratios = steps * base**exponents
        if abs(ratios[1] - 1.0) < 0.01 and ratios[-1] < 0.99:
            for factor, (low, high), length in itertools.product(nearby(-math.log(ratios[-1])), _turns, _lengths):
                scaling = {"rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high}
                yield {"base": base, "scaling": {**scaling, "original_max_position_embeddings": length}}


def _match(reading: _Reading, given: Sequence[Array], rope: RotaryEmbedding, start: int, rounding: float) -> Match:
    form, which, length = reading.form, reading.which, len(given[0])
    bounds = tolerance(rope.frequencies, max(abs(start), abs(start + length)), rounding, rope.attention_factor)
    if form in ("tile", "cos_sin", "sin_cos"):
        bounds = np.tile(bounds, 2)
    elif form == "repeat":
        bounds = np.repeat(bounds, 2)
    else:
        bounds = {"pairs": bounds[:, None], "complex": math.sqrt(2.0) * bounds}.get(form, bounds)

    def expected(rows: Rows) -> list[tuple[Array, Array]]:
        made = rope.tables(start + rows, dtype=call_dtype(given[0]))
        arrays = made if isinstance(made, tuple) else (made,)
        return [(each, bounds) for each in (arrays if which is None else arrays[which : which + 1])]

    call = call_text(rope.tables, length, **({"offset": start} if start else {}))
    call += "" if which is None else f"[{which}]"
    title = ("" if which is None else ("cosines of a ", "sines of a ")[which]) + f"rotary embedding in form {form!r}"
    notes = (*[_quotients] * ("llama3" in repr(rope)), _pairing)
    return Match(title, call, rope, given, expected, (), notes)
