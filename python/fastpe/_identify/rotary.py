# SPDX-License-Identifier: BSD-3-Clause
"""Rotary embeddings whose tables an array, or two, may be."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fastpe._identify import numbers
from fastpe._identify.answer import Array, Match, Rows, call_text, nonzero
from fastpe._rotary.embedding import RotaryEmbedding

# Fewer rows than these fit some frequencies, whatever they are.
_fewest_rows = 4
_usual_bases = (1e4, 5e5, 1e6, 5e6, 1e7)
# What files of models with "llama3" have: the least and largest turns, and the length before scaling.
_turns = ((1.0, 4.0), (1.0, 1.0))
_lengths = (8192, 4096, 2048, 16384, 32768, 131072)
_pairing = "the table does not show the pairing: interleaved= may be True or False"
_quotients = "of original_max_position_embeddings and the turns, only the quotients can be measured"


def find(given: Sequence[Array]) -> Iterator[Match]:
    """The embedding whose cosines and sines these are, in one array or two, for each form that they may have."""
    rounding, rows = max(numbers.stored_as(array)[0] for array in given), nonzero(given)
    for form, cos, sin, which in _readings(given) if len(given[0]) >= _fewest_rows else ():
        fits: list[tuple[Match, dict[str, Any]]] = []
        for start, arguments in _arguments(cos, sin, rounding):
            with contextlib.suppress(ValueError):  # a base below 1, or numbers that are out of range
                rope = RotaryEmbedding._of_model(form=form, rotary_dim=2 * cos.shape[1], interleaved=False, **arguments)
                match = _match([cos, sin], which, rope, start, rounding)
                fits += [(match, arguments)] * match.fits(rows)
        if fits:
            match, arguments = fits[0]
            others = [str({key: each[key] for key in each if each[key] != arguments.get(key)}) for _, each in fits[1:]]
            notes = [f"this table is too small or too coarse to tell it from {'; '.join(others[:3])}"] * bool(others)
            yield dataclasses.replace(match, notes=(*notes, *match.notes))


def _readings(given: Sequence[Array]) -> Iterator[tuple[Any, Array, Array, slice]]:
    """Forms that the arrays may have, their cosines and sines [rows, pairs], and which of the two were given."""
    array, both = given[0], slice(0, 2)
    half, odd = divmod(array.shape[-1], 2)
    if array.dtype.kind == "c":
        if array.ndim == 2 and len(given) == 1:
            yield "complex", array.real, array.imag, both
    elif array.shape[2:] == (2, 2):
        (cos, minus_sin), (sin, same) = np.moveaxis(array, (2, 3), (0, 1))
        if np.array_equal(cos, same) and np.array_equal(-sin, minus_sin):
            yield "matrices", cos, sin, both
    elif array.shape[2:] == (2,):
        yield "pairs", array[..., 0], array[..., 1], both
    elif array.ndim == 2:
        if len(given) == 1 and not odd:
            yield "cos_sin", array[:, :half], array[:, half:], both
            yield "sin_cos", array[:, half:], array[:, :half], both
        forms = {"tile": np.s_[:half, half:], "repeat": np.s_[::2, 1::2], "halves": np.s_[:, :]}
        for form, (one, other) in forms.items():
            if all(np.array_equal(each[:, one], each[:, other]) for each in given):
                first = array[:, one]
                # In the first two rows from position 0 on, angles are so small that one function says the other.
                second = np.sqrt(np.maximum(1.0 - first[:2].astype(np.float64) ** 2, 0.0))
                if len(given) == 2:
                    yield form, first, given[1][:, one], both
                elif first[0].any():
                    yield form, first, second, slice(0, 1)
                else:
                    yield form, second, first, slice(1, 2)


def _arguments(cos: Array, sin: Array, rounding: float) -> Iterator[tuple[int, dict[str, Any]]]:
    """The first position, and what frequencies follow from: a base, a linear scaling, or that of llama3."""
    rows = min(len(cos), len(sin), numbers.head_rows)
    # Cosines of small angles say little of them.
    phases = numbers.measured(sin[:rows], cos[:rows], rounding * (1 if rows > 2 else 64), cos.shape[1])
    if phases is None:
        return
    found = phases.numbers(1e4, 1.0).items()
    linear = (numbers.linear_scaling(base, scale) for base, scales in found for scale in scales)
    for arguments in itertools.chain(linear, _llama3(phases.steps, phases.exponents)):
        for start in phases.first_positions(phases.steps) if rows > 2 else (0,):
            yield start, arguments


def _llama3(steps: Array, exponents: Array) -> Iterator[dict[str, Any]]:
    """Fast frequencies stay, slow ones are divided by a factor, and those between are a mean of both."""
    if steps.size < 3 or (steps <= 0.0).any() or abs(steps[0] - 1.0) > 0.01:
        return
    # The fastest frequency but the first, which is always 1, says the base; the slowest says the factor.
    for base in dict.fromkeys([*_usual_bases, *numbers.nearby(-steps.size * math.log(steps[1]))]):
        ratios = steps * base**exponents
        if abs(ratios[1] - 1.0) < 0.01 and ratios[-1] < 0.99:
            factors = numbers.nearby(-math.log(ratios[-1]))
            for factor, (low, high), length in itertools.product(factors, _turns, _lengths):
                scaling = {"rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high}
                yield {"base": base, "scaling": {**scaling, "original_max_position_embeddings": length}}


def _match(tables: list[Array], which: slice, rope: RotaryEmbedding, start: int, rounding: float) -> Match:
    given, notes = tables[which], (_quotients, _pairing) if "llama3" in repr(rope) else (_pairing,)
    length = len(given[0])
    allowed = numbers.tolerance(rope.frequencies, max(abs(start), abs(start + length)), rounding)

    def make(rows: Rows) -> Any:
        return rope.tables(start + rows, form="halves", dtype=given[0].dtype)[which]

    form = {} if rope.form == "halves" else {"form": rope.form}
    call = call_text(rope.tables, length, **form, **({"offset": start} if start else {}))
    title = f"rotary embedding in form {rope.form!r}"
    if len(given) == 1:
        call, title = f"{call}[{which.start}]", f"{('cosines', 'sines')[which.start]} of a {title}"
    return Match(call, {"title": title, "rotary": rope}, given, make, allowed, notes)
