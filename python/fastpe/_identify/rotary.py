# SPDX-License-Identifier: BSD-3-Clause
"""Rotary embeddings whose tables an array, or two, may be."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe._identify.answer import Answer, evaluated
from fastpe._identify.near import Candidate, nearly
from fastpe._identify.phases import (
    digits,
    geometric,
    is_round,
    largest_logarithm,
    measured,
    nearby,
    rounded,
    steps_error,
)
from fastpe._identify.readings import (
    Array,
    Stored,
    angle_tolerance,
    excess,
    float32_rounding,
    probe_rows,
    search_rows,
    stored_as,
    tolerance,
)
from fastpe._rotary.embedding import RotaryEmbedding
from fastpe._sinusoid.convention import Convention

Floats = npt.NDArray[np.float64]
Arguments = dict[str, Any]

# Fewer rows than these fit some frequencies whatever they are.
_fewest_rows = 4
# Bases that models have. If a base was scaled, the original one is looked for among these.
_usual_bases = (1e4, 5e5, 1e6, 5e6, 1e7, 1.5e5, 1.6e5)
_digits_of_bases = 2
# Lengths that models were trained with before their frequencies were scaled.
_trained_lengths = tuple(2**exponent for exponent in range(9, 21))
# Low and high frequency factors of llama3 in models' files.
_frequency_factors = ((1.0, 4.0), (1.0, 1.0))
# Positions beyond this are not looked for.
_largest_start = 2**31
_same_amplitude = 1e-5
_same_factor = 1e-4
_any_pairing = "cosines and sines are the same for both pairings: what interleaved= should be, the table does not say"


@dataclasses.dataclass(frozen=True)
class Reading:
    """What the rows say, in one of the forms.

    Attributes
    ----------
    form : str
        As in `RotaryEmbedding.tables`.
    steps : ndarray [pairs]
        Radians per row.
    amplitude : float
        Of cosines and sines.
    given : tuple of ndarray
        The arrays.
    stored : Stored
        How their values were rounded.
    starts : tuple of int
        Positions that the first row may have.
    steps_error : float
        How well the steps are known.
    """

    form: str
    steps: Floats
    amplitude: float
    given: tuple[Array, ...]
    stored: Stored
    starts: tuple[int, ...]
    steps_error: float

    @property
    def rounding(self) -> float:
        """The relative error of one rounding."""
        return self.stored.rounding

    def allowed(self, rope: RotaryEmbedding, positions: npt.NDArray[np.intp]) -> Array:
        """How far each value of one of the arrays may be off, in the rows of these positions."""
        frequencies = np.abs(rope.frequencies)
        if self.form == "angles":
            return np.abs(positions)[:, None] * (angle_tolerance(frequencies, 1.0) + 2.0 * self.rounding * frequencies)
        angles = angle_tolerance(frequencies, float(np.abs(positions).max()))
        bounds = tolerance(angles, self.rounding, rope.attention_factor)
        if self.form in ("tile", "cos_sin", "sin_cos"):
            return np.tile(bounds, 2)
        if self.form == "repeat":
            return np.repeat(bounds, 2)
        if self.form == "pairs":
            return bounds[:, None]
        return math.sqrt(2.0) * bounds if self.form == "complex" else bounds

    def fits(self, rope: RotaryEmbedding, start: int) -> bool:
        """Whether rows from all over the table are those of this embedding."""
        rows = np.unique(np.linspace(0, len(self.given[0]) - 1, probe_rows).astype(np.intp))
        made = rope.tables(start + rows, dtype=np.float64)
        arrays = made if isinstance(made, tuple) else (made,)
        allowed = self.allowed(rope, start + rows)
        return all(
            excess(given[rows], array, allowed)[0] <= 1.0 for given, array in zip(self.given, arrays, strict=True)
        )


def pairs(cos: Array, sin: Array) -> Iterator[Answer]:
    """What fits cosines and sines that lie apart."""
    yield from _answers(_pair_readings(cos, sin))


def single_arrays(array: Array) -> Iterator[Answer]:
    """What fits one array with both, or with the angles."""
    if array.ndim == 2 and array.dtype.kind == "c":
        yield from _answers(_circular("complex", array.real, array.imag, (array,)))
    elif array.ndim == 2:
        half = array.shape[1] // 2
        if array.shape[1] % 2 == 0:
            first, second = array[:, :half], array[:, half:]
            yield from _answers(_circular("cos_sin", first, second, (array,)))
            yield from _answers(_circular("sin_cos", second, first, (array,)))
        yield from _answers(_linear(array))
    elif array.ndim == 3:
        if array.shape[2] == 2:
            yield from _answers(_circular("pairs", array[..., 0], array[..., 1], (array,)))
        if len(array) == 2:
            for answer in pairs(array[0], array[1]):
                yield dataclasses.replace(
                    answer,
                    code=f"np.stack({answer.code})",
                    given=(array,),
                    allowed=(np.stack([np.broadcast_to(allowed, array[0].shape) for allowed in answer.allowed]),),
                )


def near_pairs(cos: Array, sin: Array) -> Iterator[Candidate]:
    """Embeddings without scaling or with a linear one, in the forms that cosines and sines that lie apart may have."""
    if cos.ndim != 2 or cos.dtype.kind == "c" or sin.dtype.kind == "c":
        return
    half = cos.shape[1] // 2
    if cos.shape[1] == 2 * half:
        yield from _candidates("tile", cos[:, :half], sin[:, :half], (cos, sin))
        yield from _candidates("repeat", cos[:, ::2], sin[:, ::2], (cos, sin))
    yield from _candidates("halves", cos, sin, (cos, sin))


def near_single_arrays(array: Array) -> Iterator[Candidate]:
    """The same for one array with both."""
    if array.ndim == 2 and array.dtype.kind == "c":
        yield from _candidates("complex", array.real, array.imag, (array,))
    elif array.ndim == 2 and array.shape[1] % 2 == 0:
        half = array.shape[1] // 2
        yield from _candidates("cos_sin", array[:, :half], array[:, half:], (array,))
        yield from _candidates("sin_cos", array[:, half:], array[:, :half], (array,))
    elif array.ndim == 3 and array.shape[2] == 2:
        yield from _candidates("pairs", array[..., 0], array[..., 1], (array,))
    elif array.ndim == 3 and len(array) == 2:
        yield from near_pairs(array[0], array[1])


def _candidates(form: str, cos: Array, sin: Array, given: tuple[Array, ...]) -> Iterator[Candidate]:
    """Embeddings with usual bases, and with numbers that somebody may have chosen and that the phases say."""
    if len(cos) < _fewest_rows:
        return
    rows = np.arange(min(len(cos), search_rows))
    pairs = cos.shape[1]
    phases = measured(sin[rows].astype(np.float64), cos[rows].astype(np.float64), rows, nearly)
    bases, factors = [*_usual_bases], [1.0]
    if phases is not None:
        # The slow frequencies of a changed table say nothing.
        fast = int(np.argmax([*(phases.steps < nearly), True]))
        found = geometric(phases.steps[:fast], np.arange(fast) / pairs, 1e4, 1.0, steps_error(nearly, len(rows)))
        bases += [base for base, _ in found if base == rounded(base, _digits_of_bases)]
        factors += [rounded(1.0 / scale, _digits_of_bases) for _, scale in found if 0.0 < scale < 1.0]
    for factor, base in dict.fromkeys(itertools.product(factors, bases)):
        arguments: Arguments = {"base": base}
        if factor != 1.0:
            arguments["scaling"] = {"rope_type": "linear", "factor": factor}
        rope = _embedding(2 * pairs, form, arguments)
        if rope is not None:
            made = rope.tables(len(rows), dtype=np.float64)
            arrays = made if isinstance(made, tuple) else (made,)
            distances = [np.abs(each[rows] - array).mean() for each, array in zip(given, arrays, strict=True)]
            shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
            title = f"a rotary embedding in form {form!r} with {shown}"
            yield Candidate(title, _call(rope, 0, len(cos)), given, float(np.mean(distances)))


def twin(convention: Convention, rows: Array, allowed: Array) -> list[str]:
    """The rotary embedding whose cosines and sines, side by side, are this encoding."""
    count, d_model = rows.shape
    if d_model % 2 or convention.exponent_denominator(d_model) != d_model / 2 or convention.base < 1.0:
        return []
    arguments: Arguments = {"base": convention.base}
    if convention.freq_scale != 1.0:
        arguments["scaling"] = {"rope_type": "linear", "factor": 1.0 / convention.freq_scale}
    if convention.output_scale(d_model) != 1.0:
        arguments["attention_factor"] = convention.output_scale(d_model)
    rope = _embedding(d_model, "cos_sin" if convention.cosine_first else "sin_cos", arguments)
    if rope is None:
        return []
    code = _call(rope, convention.first_position, count)
    if excess(rows, evaluated(code), allowed)[0] > 1.0:
        return []
    return [f"as the cache of a rotary embedding, it is {code}"]


def hints(array: Array) -> tuple[str, ...]:
    """Notes if an unknown table may be one half of a pair of tables: row 2 has the double angles of row 1."""
    if array.ndim != 2 or len(array) < 3 or array.dtype.kind == "c":
        return ()
    start, once, twice = array[:3].astype(np.float64)
    squares = np.minimum(np.abs(once), 1.0) ** 2
    halves = (
        ("cosines", "sines", 1.0, 2.0 * squares - 1.0, twice),
        ("sines", "cosines", 0.0, np.sqrt(4.0 * squares * (1.0 - squares)), np.abs(twice)),
    )
    for name, other, at_zero, doubled, given in halves:
        if (start == at_zero).all() and np.abs(doubled - given).mean() < nearly * np.abs(given - at_zero).mean():
            return (f"it may be the {name} of a rotary embedding: give its {other} too, as fastpe.identify(cos, sin)",)
    return ()


def _pair_readings(cos: Array, sin: Array) -> Iterator[Reading]:
    if cos.ndim != 2 or cos.dtype.kind == "c" or sin.dtype.kind == "c":
        return
    half = cos.shape[1] // 2
    given = (cos, sin)
    if cos.shape[1] % 2 == 0:
        if all(np.array_equal(array[:, :half], array[:, half:]) for array in given):
            yield from _circular("tile", cos[:, :half], sin[:, :half], given)
        if all(np.array_equal(array[:, 0::2], array[:, 1::2]) for array in given):
            yield from _circular("repeat", cos[:, 0::2], sin[:, 0::2], given)
    yield from _circular("halves", cos, sin, given)


def _circular(form: str, cos: Array, sin: Array, given: tuple[Array, ...]) -> Iterator[Reading]:
    if len(cos) < _fewest_rows:
        return
    stored = max(stored_as(cos), stored_as(sin))
    rounding = stored.rounding
    rows = np.arange(min(len(cos), search_rows))
    phases = measured(sin[rows].astype(np.float64), cos[rows].astype(np.float64), rows, rounding)
    if phases is None:
        return
    steps = phases.steps.copy()
    # A sine that stays zero has no frequency. Rows further down know the others better.
    steps[~sin[rows].any(axis=0)] = 0.0
    row = len(rows)
    while 2 * row <= len(cos):
        row *= 2
        far = cos[row - 1].astype(np.float64) + 1j * sin[row - 1].astype(np.float64)
        turned = far * phases.phasors[0].conj() * np.exp(-1j * steps * (row - 1))
        steps[steps != 0.0] += (np.angle(turned) / (row - 1))[steps != 0.0]
    at_zero = np.abs(phases.phasors[0] / phases.amplitude - 1.0).max() < 1e-3
    starts = (0,) if at_zero else tuple(phases.first_positions(steps))
    yield Reading(form, steps, phases.amplitude, given, stored, starts, steps_error(rounding, len(rows)))


def _linear(array: Array) -> Iterator[Reading]:
    if len(array) < _fewest_rows:
        return
    rows = array[: min(len(array), search_rows)].astype(np.float64)
    steps = (rows[-1] - rows[0]) / (len(rows) - 1)
    fastest = int(np.argmax(np.abs(steps)))
    if not (steps != 0.0).any():
        return
    start = round(rows[0, fastest] / steps[fastest])
    last = start + len(rows) - 1
    if start != 0 and last != 0:
        steps = rows[-1] / last
    if abs(start) > _largest_start:
        return
    stored = stored_as(array)
    yield Reading("angles", steps, 1.0, (array,), stored, (start,), steps_error(stored.rounding, 1))


def _answers(readings: Iterator[Reading]) -> Iterator[Answer]:
    for reading in readings:
        for start in reading.starts:
            for rope, notes in _embeddings(reading, start):
                if reading.rounding > float32_rounding:
                    notes = (
                        f"its values are rounded to {reading.stored.name}, which leaves few digits to its numbers",
                        *notes,
                    )
                rows = len(reading.given[0])
                allowed = reading.allowed(rope, start + np.arange(rows))
                yield Answer(
                    f"rotary embedding in form {reading.form!r}",
                    _call(rope, start, rows),
                    reading.given,
                    tuple(allowed for _ in reading.given),
                    rope,
                    (),
                    (*notes, _any_pairing),
                )


def _call(rope: RotaryEmbedding, start: int, rows: int) -> str:
    return f"fastpe.{rope!r}.tables({rows}{f', offset={start}' if start else ''})"


def _embeddings(reading: Reading, start: int) -> Iterator[tuple[RotaryEmbedding, tuple[str, ...]]]:
    """The embeddings that fit, the likeliest first, and what is to be said of each."""
    pairs = reading.steps.size
    for choices in (_unscaled, _stretched, _partial, _blended, _unusual, _given):
        for group in choices(reading):
            fitting = []
            for arguments in group:
                arguments = _with_factor(arguments, reading)
                rope = _embedding(2 * pairs, reading.form, arguments)
                if rope is not None and reading.fits(rope, start):
                    fitting.append((rope, arguments))
            if fitting:
                fitting.sort(key=lambda fit: _digits_of(fit[1].get("scaling", {})))
                yield fitting[0][0], _notes(choices, fitting[0][1], [others for _, others in fitting[1:]], pairs)
                break


def _digits_of(scaling: Arguments) -> int:
    return sum(digits(float(value)) for value in scaling.values() if isinstance(value, (int, float)))


def _notes(choices: Any, arguments: Arguments, others: list[Arguments], pairs: int) -> tuple[str, ...]:
    scaling = arguments.get("scaling", {})
    notes = []
    if scaling.get("rope_type") == "ntk":
        notes.append(
            f"base={_stretched_base(arguments['base'], scaling['factor'], 2 * pairs)!r} is the same; so is 'dynamic' "
            f"at the length where its factor has grown to {scaling['factor']:g}"
        )
    if scaling.get("rope_type") == "llama3":
        notes.append(
            "only the ratios of original_max_position_embeddings, low_freq_factor and high_freq_factor can be measured"
        )
    if others and choices is _blended:
        shown = "; ".join(str(each["scaling"]) for each in others[:3])
        notes.append(f"this table is too small or too coarse to tell the scaling from {shown}")
    if choices is _unusual:
        notes.append("base is no round number: it may be the result of a scaling, such as 'ntk' or 'dynamic'")
    if choices is _given:
        notes.append(
            "its frequencies follow no rule that is known here: they are measured, and longrope, for one, has such ones"
        )
    return tuple(notes)


def _embedding(rotary_dim: int, form: str, arguments: Arguments) -> RotaryEmbedding | None:
    try:
        return RotaryEmbedding(rotary_dim, interleaved=False, form=form, **arguments)
    except ValueError:
        # A base below 1, or numbers that are out of range.
        return None


def _with_factor(arguments: Arguments, reading: Reading) -> Arguments:
    """The arguments with the attention factor, if it is not the one of the scaling."""
    scaling = arguments.get("scaling", {})
    usual = 0.1 * math.log(scaling["factor"]) + 1.0 if scaling.get("rope_type") == "yarn" else 1.0
    amplitude = reading.amplitude
    if math.isclose(amplitude, usual, rel_tol=max(_same_amplitude, reading.rounding)):
        return arguments
    few = (rounded(amplitude, count) for count in range(1, 8))
    factor = next((number for number in few if math.isclose(number, amplitude, rel_tol=reading.rounding)), amplitude)
    return {**arguments, "attention_factor": factor}


def _geometric(steps: Floats, reading: Reading) -> list[tuple[float, float]]:
    """(base, factor by which frequencies are divided), those with few digits first."""
    exponents = np.arange(len(steps)) / reading.steps.size
    found = []
    for base, scale in geometric(steps, exponents, 1e4, 1.0, reading.steps_error):
        factor = next(
            (each for each in nearby(1.0 / scale) if math.isclose(each * scale, 1.0, rel_tol=1e-6)), 1 / scale
        )
        found.append((base, factor))
    return sorted(dict.fromkeys(found), key=lambda pair: (pair[1] != 1.0, digits(pair[0]) + digits(pair[1])))


# Each of these functions gives groups of arguments. Those of one group may be hard to tell apart. The first group in
# which any fit is taken.


def _unscaled(reading: Reading) -> Iterator[list[Arguments]]:
    for base, factor in _geometric(reading.steps, reading):
        if digits(base) <= _digits_of_bases and is_round(factor):
            yield [{"base": base, **({} if factor == 1.0 else {"scaling": {"rope_type": "linear", "factor": factor}})}]


def _unusual(reading: Reading) -> Iterator[list[Arguments]]:
    yield from ([{"base": base}] for base, factor in _geometric(reading.steps, reading) if factor == 1.0)


def _stretched(reading: Reading) -> Iterator[list[Arguments]]:
    pairs = reading.steps.size
    if pairs > 1:
        for base, factor in _geometric(reading.steps, reading):
            for usual in _usual_bases:
                for few in nearby((base / usual) ** ((pairs - 1) / pairs))[:2]:
                    if few > 1.0 and factor == 1.0:
                        yield [{"base": usual, "scaling": {"rope_type": "ntk", "factor": few}}]


def _stretched_base(base: float, factor: float, rotary_dim: int) -> float:
    return rounded(base * factor ** (rotary_dim / (rotary_dim - 2)), 8)


def _partial(reading: Reading) -> Iterator[list[Arguments]]:
    pairs = reading.steps.size
    used = int(np.count_nonzero(reading.steps))
    if 0 < used < pairs and reading.steps[:used].all():
        for base, factor in _geometric(reading.steps[:used], reading):
            scaling = {"rope_type": "proportional", "partial_rotary_factor": used / pairs}
            yield [{"base": base, "scaling": scaling if factor == 1.0 else {**scaling, "factor": factor}}]


def _blended(reading: Reading) -> Iterator[list[Arguments]]:
    """Scalings that leave fast frequencies, and divide slow ones by a factor."""
    steps, pairs = reading.steps, reading.steps.size
    if pairs < 3 or (steps <= 0.0).any() or abs(steps[0] - 1.0) > reading.steps_error:
        return
    exponents = np.arange(pairs) / pairs
    # The fastest frequencies but the first, which is always 1, say the base.
    logarithm = min(-pairs * math.log(steps[1]), largest_logarithm)
    for base in dict.fromkeys([*_usual_bases, *nearby(math.exp(logarithm))]):
        ratios = steps * base**exponents
        if (
            base <= 1.0
            or not is_round(base)
            or abs(ratios[1] - 1.0) * steps[1] > reading.steps_error
            or ratios[-1] > 0.999
        ):
            continue
        for factor in dict.fromkeys(nearby(1.0 / float(ratios[-1]))):
            # Sines of small angles are relatively exact.
            if abs(factor * ratios[-1] - 1.0) < _same_factor + 4.0 * reading.rounding:
                scalings = (*_llama3(ratios, factor, base, exponents), *_yarn(factor))
                yield [{"base": base, "scaling": scaling} for scaling in scalings]


def _llama3(ratios: Floats, factor: float, base: float, exponents: Floats) -> list[Arguments]:
    # Between the two wavelengths, a share of the unscaled frequency remains that grows linearly with the frequency.
    shares = (ratios - 1.0 / factor) / (1.0 - 1.0 / factor)
    between = (shares > 1e-3) & (shares < 1.0 - 1e-3)
    lengths: list[tuple[int, float, float]] = [
        (length, low, high) for (low, high), length in itertools.product(_frequency_factors, _trained_lengths)
    ]
    if np.count_nonzero(between) > 1:
        slope, intercept = np.polyfit(base ** -exponents[between], shares[between], 1)
        if slope > 0.0 > intercept:
            high = rounded(1.0 - 1.0 / intercept, 3)
            length = rounded(2.0 * math.pi * slope * (high - 1.0), 5)
            # A length is mostly a power of two.
            power = 2.0 ** round(math.log2(length))
            lengths.insert(0, (int(power if math.isclose(power, length, rel_tol=0.02) else length), 1.0, high))
    return [
        {
            "rope_type": "llama3",
            "factor": factor,
            "low_freq_factor": low,
            "high_freq_factor": high,
            "original_max_position_embeddings": length,
        }
        for length, low, high in dict.fromkeys(lengths)
    ]


def _yarn(factor: float) -> list[Arguments]:
    return [
        {
            "rope_type": "yarn",
            "factor": factor,
            "original_max_position_embeddings": length,
            **({} if truncate else {"truncate": False}),
        }
        for truncate, length in itertools.product((True, False), _trained_lengths)
    ]


def _given(reading: Reading) -> Iterator[list[Arguments]]:
    yield [{"freqs": reading.steps.tolist()}]
