# SPDX-License-Identifier: BSD-3-Clause
"""Which convention somebody's table was made with."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe._sinusoid.convention import Convention
from fastpe._sinusoid.encoder import PositionalEncoding
from fastpe._sinusoid.presets import conventions

# Rows looked at while searching; the answer is then checked on all of them.
_search_rows = 512
_chunk_values = 1 << 22

_probe_rows = 8
_turns_tried = 64

# How far the values of a table of each dtype may be off because they were rounded. float64 tables have often passed
# through float32.
_rounding = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
# The relative error of angles in systems that compute them in float32. It was measured at up to 1.5e-7; this has a margin.
_float32_angle_error = 2.5e-7
# Beyond this, tables of different conventions would be taken for one another.
_largest_tolerance = 0.2


@dataclasses.dataclass(frozen=True)
class Identification:
    """What a table was made with. Made by `identify`, printed readably.

    Attributes
    ----------
    matches : bool
        Whether `convention` reproduces the table within `tolerance`. Otherwise the rest describes the nearest one.
    convention : Convention
        The preset with the table's own knobs in place of its own, ready to be passed as ``convention=``.
    d_model, rows : int
        The table's shape.
    first_position : int
        Position of row 0: `convention`'s.
    base, freq_scale, alpha : float
        `convention`'s.
    largest_difference : float
        Between the table and `convention`'s exact values, over all rows that are not entirely zero.
    tolerance : float
        Largest difference that rounding explains: of the entries, and of float32 angles at the largest position.
    zero_rows : tuple of int
        Rows that are entirely zero, as for a padding index or a class token. They were left out.
    equivalents : tuple of str
        Other presets that give the same table at this width, with no more knobs changed.
    """

    matches: bool
    convention: Convention
    d_model: int
    rows: int
    largest_difference: float
    tolerance: float
    zero_rows: tuple[int, ...] = ()
    equivalents: tuple[str, ...] = ()

    @property
    def first_position(self) -> int:
        """The convention's."""
        return self.convention.first_position

    @property
    def base(self) -> float:
        """The convention's."""
        return self.convention.base

    @property
    def freq_scale(self) -> float:
        """The convention's."""
        return self.convention.freq_scale

    @property
    def alpha(self) -> float:
        """The convention's, as a number."""
        return self.convention.output_scale(self.d_model)

    @property
    def code(self) -> str:
        """The call that makes the table."""
        preset = conventions[self.convention.name]
        keywords = [f"convention={preset.name!r}"]
        if self.convention.alpha != preset.alpha:
            keywords = [f"convention=dataclasses.replace(fastpe.conventions[{preset.name!r}], alpha={self.alpha!r})"]
        for name in ("base", "freq_scale"):
            if getattr(self, name) != getattr(preset, name):
                keywords.append(f"{name}={getattr(self, name)!r}")
        start = self.first_position - preset.first_position
        if start:
            keywords.append(f"offset={start}")
        return f"fastpe.encode({self.rows}, {self.d_model}, {', '.join(keywords)})"

    def __str__(self) -> str:
        difference = f"largest difference {self.largest_difference:.2g}, rounding explains {self.tolerance:.2g}"
        if not self.matches:
            return f"no known convention; the nearest is {self.convention.name!r}: {difference}"
        lines = [f"{self.convention.name}: {difference}", f"    {self.code}"]
        if self.zero_rows:
            some = ", ".join(map(str, self.zero_rows[:5])) + (", .." if len(self.zero_rows) > 5 else "")
            lines.append(f"    rows left at zero: {some}")
        if self.equivalents:
            lines.append(f"    the same at this width: {', '.join(self.equivalents)}")
        return "\n".join(lines)


def identify(table: npt.ArrayLike) -> Identification:
    """Find the convention that reproduces a table.

    Parameters
    ----------
    table : array_like [L, d_model]
        Somebody's encodings of consecutive positions, one per row, of any real dtype. Axes of length 1 around them
        (``[1, L, d_model]``, ``[L, 1, d_model]``) are ignored.

    Returns
    -------
    Identification
        The convention, its knobs (first position, base, freq_scale, alpha) and the largest difference; or, with
        ``matches`` False, the nearest one.

    Raises
    ------
    ValueError
        For a table that is not two-dimensional, is empty, is entirely zero or is not finite.
    TypeError
        For a table that holds no real numbers.

    Notes
    -----
    Every preset of `fastpe.conventions` is tried, first as it is, then with the base, frequency scale, first position
    and amplitude that the table's own phases say. A few rows of a narrow table can fit several presets: see
    `Identification.equivalents`.

    Examples
    --------
    >>> import fastpe
    >>> found = fastpe.identify(fastpe.encode(100, 64, convention="concat", base=500.0, offset=1))
    >>> found.matches, found.convention.name, found.base, found.first_position
    (True, 'concat', 500.0, 1)
    >>> print(found)
    concat: largest difference 3e-08, rounding explains 2.5e-05
        fastpe.encode(100, 64, convention='concat', base=500.0, offset=1)
    """
    array = _checked(table)
    rounding = _rounding.get(array.dtype.name, 2.0**-24)
    zero = np.asarray(~array.any(axis=1))
    if zero.all():
        raise ValueError("table is entirely zero, expected encodings")
    head = array[:_search_rows].astype(np.float64)
    head_rows = np.flatnonzero(~zero[:_search_rows])
    if not head_rows.size:
        raise ValueError(f"table's first {_search_rows} rows are entirely zero, expected encodings from there on")

    fits = [_Fit.of(preset, head, head_rows, rounding) for preset in _presets_defined_at(array.shape[1])]
    if not any(fit.fits() for fit in fits):
        fits = [_Fit.of(candidate, head, head_rows, rounding) for candidate in _candidates(head, head_rows)]
    best = min(fits, key=_Fit.rank)
    difference = _largest_difference(best.convention, array, ~zero)
    tolerance = _tolerance(best.convention, array.shape, rounding)
    return Identification(
        matches=difference <= tolerance,
        convention=best.convention,
        d_model=array.shape[1],
        rows=array.shape[0],
        largest_difference=difference,
        tolerance=tolerance,
        zero_rows=tuple(np.flatnonzero(zero).tolist()),
        equivalents=_equivalents(best, fits),
    )


def _checked(table: npt.ArrayLike) -> npt.NDArray[Any]:
    array = np.asarray(table)
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        raise TypeError(f"table has dtype {array.dtype}, expected real numbers")
    if array.ndim > 2:
        outer = [length for length in array.shape[:-1] if length != 1]
        array = array.reshape(*(outer or [1]), array.shape[-1])
    if array.ndim != 2:
        raise ValueError(f"table has shape {list(np.shape(table))}, expected [L, d_model]: one row per position")
    if 0 in array.shape:
        raise ValueError(f"table has shape {list(array.shape)}, expected at least one row and one column")
    if not np.isfinite(array.astype(np.float64, copy=False)).all():
        raise ValueError("table holds values that are not finite, expected encodings")
    return array


@dataclasses.dataclass(frozen=True)
class _Fit:
    convention: Convention
    complexity: int  # of the knobs that are not the preset's
    difference: float
    tolerance: float
    amplitude: float

    @classmethod
    def of(
        cls, convention: Convention, head: npt.NDArray[np.float64], rows: npt.NDArray[np.intp], rounding: float
    ) -> _Fit:
        preset = conventions[convention.name]
        names = ("base", "freq_scale", "alpha", "first_position")
        changed = (name for name in names if getattr(convention, name) != getattr(preset, name))
        complexity = sum(2 + _digits(getattr(convention, name)) for name in changed)
        tolerance = _tolerance(convention, head.shape, rounding)
        difference = 0.0
        # Most candidates are wrong, and a few rows tell.
        for some in (rows[:: max(1, len(rows) // _probe_rows)], rows):
            if difference <= tolerance:
                difference = _difference(convention, head, some)
        return cls(convention, complexity, difference, tolerance, convention.output_scale(head.shape[1]))

    def fits(self) -> bool:
        return self.difference <= self.tolerance

    def rank(self) -> tuple[bool, float]:
        # Among those that fit, differences are noise and the plainest explanation wins: few knobs, round numbers; then
        # (as `min` keeps it) the presets' order.
        return (False, self.complexity) if self.fits() else (True, self.difference / self.amplitude)


def _equivalents(best: _Fit, fits: list[_Fit]) -> tuple[str, ...]:
    if not best.fits():
        return ()
    names = [fit.convention.name for fit in fits if fit.rank() == best.rank()]
    return tuple(name for name in dict.fromkeys(names) if name != best.convention.name)


def _presets_defined_at(d_model: int) -> Iterator[Convention]:
    return (preset for preset in conventions.values() if _is_defined_at(preset, d_model))


def _candidates(head: npt.NDArray[np.float64], rows: npt.NDArray[np.intp]) -> Iterator[Convention]:
    d_model = head.shape[1]
    for preset in _presets_defined_at(d_model):
        measured = _measured(preset, head, rows)
        alphas: list[Any] = [preset.alpha]
        for alpha in measured.alphas:
            if not math.isclose(alpha, preset.output_scale(d_model), rel_tol=1e-6):
                alphas.append(alpha)
        for frequencies in _frequency_knobs(preset, measured, d_model):
            base, freq_scale = frequencies
            scaled = dataclasses.replace(preset, base=base, freq_scale=freq_scale)
            if not _is_defined_at(scaled, d_model):
                continue
            starts = [preset.first_position, 0, 1, 2, *_first_positions(scaled, measured, d_model)]
            for first_position in dict.fromkeys(starts):
                for alpha in alphas:
                    yield dataclasses.replace(scaled, first_position=first_position, alpha=alpha)


@dataclasses.dataclass(frozen=True)
class _Measured:
    """What a table's phases say under one preset's layout."""

    phasors: npt.NDArray[np.complex128]  # [rows, pairs], cosine + i sine
    rows: npt.NDArray[np.intp]
    steps: npt.NDArray[np.float64]  # radians per row, [pairs]
    alphas: tuple[float, ...]


def _measured(preset: Convention, head: npt.NDArray[np.float64], rows: npt.NDArray[np.intp]) -> _Measured:
    sines, cosines = (head[rows, columns] for columns in preset.columns(head.shape[1]))
    pairs = min(sines.shape[1], cosines.shape[1])
    phasors = cosines[:, :pairs] + 1j * sines[:, :pairs]
    size = float(np.sqrt(np.mean(np.abs(phasors) ** 2))) if pairs else 0.0
    alphas = tuple(dict.fromkeys((_rounded(size, 5), size))) if size > 0.0 else ()
    return _Measured(phasors, rows, _steps(phasors, rows), alphas)


def _steps(phasors: npt.NDArray[np.complex128], rows: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """Phase per row, from ever wider gaps: each settles which turn the next one is in."""
    result = np.zeros(phasors.shape[1])
    lag = 1
    while lag < len(rows):
        apart = rows[lag:] - rows[:-lag] == lag
        if apart.any():
            turned = np.sum(phasors[lag:][apart] * phasors[:-lag][apart].conj(), axis=0)
            expected = np.exp(-1j * result * lag)
            result += np.angle(turned * expected) / lag
        lag *= 2
    return result


def _frequency_knobs(preset: Convention, measured: _Measured, d_model: int) -> list[tuple[float, float]]:
    """(base, freq_scale): the preset's, then what a straight line through the logarithms says."""
    result = [(preset.base, preset.freq_scale)]
    steps = measured.steps
    if not steps.size or (steps <= 0.0).any():
        return result
    k = np.arange(steps.size) / preset.exponent_denominator(d_model)
    logarithms = np.log(steps)
    bases, scales = [preset.base], [preset.freq_scale]
    if steps.size > 1:
        # A phase is measured equally well whatever its size, so slow frequencies have the larger relative error.
        slope, intercept = np.polyfit(k, logarithms, 1, w=steps)
        with_scale = -np.sum(steps**2 * k * (logarithms - math.log(abs(preset.freq_scale)))) / np.sum((steps * k) ** 2)
        for logarithm in (with_scale, -slope):
            if abs(logarithm) < 60.0:
                bases += _nearby(math.exp(logarithm))
        scales += _nearby(math.exp(intercept))
    else:
        scales += _nearby(float(steps[0]))
    for base in dict.fromkeys(bases):
        for scale in dict.fromkeys(scales):
            # A whole table is made only if the measured phases agree.
            if base > 0.0 and base != 1.0 and np.abs(scale * base**-k - steps).max() < 1e-4 * steps.max():
                result.append((base, scale))
    return list(dict.fromkeys(result))


def _nearby(value: float) -> list[float]:
    """Round numbers first: people choose those."""
    return [*(_rounded(value, digits) for digits in (1, 2, 3, 5)), value]


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _is_defined_at(convention: Convention, d_model: int) -> bool:
    """Whether there is an encoder of this width; which widths and frequencies there are is the encoder's own matter."""
    try:
        _unscaled(convention, d_model)
    except ValueError:
        return False
    return True


def _digits(value: float) -> int:
    """Significant decimal digits."""
    mantissa = repr(float(value)).partition("e")[0]
    return max(1, len(mantissa.replace(".", "").strip("-0")))


def _first_positions(convention: Convention, measured: _Measured, d_model: int) -> list[int]:
    """The position of row 0, by the slowest frequency that tells integers apart."""
    pairs = measured.steps.size
    if not pairs:
        return []
    frequencies = _unscaled(convention, d_model).frequencies[:pairs]
    slow = int(np.argmin(np.abs(frequencies)))
    turned = measured.phasors[:, slow] * np.exp(-1j * frequencies[slow] * measured.rows)
    # Known up to whole turns; a fast frequency makes many of them before long.
    positions = (np.angle(turned.sum()) + 2.0 * np.pi * np.arange(_turns_tried)) / frequencies[slow]
    whole = np.rint(positions)
    return [int(position) for position in whole[np.abs(positions - whole) < 0.05] if abs(position) < 2.0**31]


@functools.lru_cache(maxsize=4)
def _encoding(convention: Convention, d_model: int) -> PositionalEncoding:
    return PositionalEncoding(d_model, convention=convention)


def _unscaled(convention: Convention, d_model: int) -> PositionalEncoding:
    return _encoding(dataclasses.replace(convention, alpha=1.0, first_position=0), d_model)


def _difference(convention: Convention, table: npt.NDArray[Any], rows: npt.NDArray[np.intp], start: int = 0) -> float:
    encoding = _unscaled(convention, table.shape[1])
    expected = encoding.encode(convention.first_position + start + rows, dtype=np.float64)
    expected *= convention.output_scale(table.shape[1])
    return float(np.abs(table[rows] - expected).max(initial=0.0))


def _largest_difference(convention: Convention, table: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> float:
    step = max(1, _chunk_values // table.shape[1])
    return max(
        _difference(
            convention,
            table[start : start + step].astype(np.float64),
            np.flatnonzero(valid[start : start + step]),
            start,
        )
        for start in range(0, len(table), step)
    )


def _tolerance(convention: Convention, shape: tuple[int, ...], rounding: float) -> float:
    fastest = float(np.abs(_unscaled(convention, shape[1]).frequencies).max(initial=0.0))
    furthest = max(abs(convention.first_position), abs(convention.first_position + shape[0] - 1))
    of_one = 2.0 * rounding + _float32_angle_error * fastest * furthest
    return convention.output_scale(shape[1]) * min(of_one, _largest_tolerance)
