# SPDX-License-Identifier: BSD-3-Clause
"""What was given, checked, and how precisely it was stored and computed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import conversion
from fastpe._identify.files import reading_of

Array = npt.NDArray[Any]

# How many rows phases are measured in, and how many rows of the whole table candidates are compared with. The answer is
# then checked on all rows.
search_rows = 256
probe_rows = 16

# The relative error of one rounding to each dtype. float64 tables have often passed through float32.
_rounding = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
float32_rounding = 2.0**-24
# The relative error of angles in systems that compute them in float32. Up to 1.5e-7 was measured; this has a margin.
_float32_angle_error = 2.5e-7
# Rounding a power's exponent to float32, and the factor before it, adds this much for each unit of the exponent.
_float32_power_error = 2.0**-23
# NumPy saves bfloat16 as two bytes without a type.
untyped_bfloat16 = np.dtype("V2")
# Beyond this, tables of different conventions would be taken for one another.
_largest_tolerance = 0.2
_zero_rows_shown = 5
# The bound if nothing may be off, which keeps ratios finite.
_least_bound = 1e-300


def checked(name: str, table: Any) -> Array:
    """`table` as an array of finite numbers, without its axes of length 1 but for the last two."""
    if isinstance(table, (str, bytes, os.PathLike)):
        reading = reading_of(table)
        where = f", where NAME is one of {reading.names}{reading.remark}" if reading.names else ""
        raise TypeError(f"{name} is {table!r}, expected an array; read the file with {reading.array}{where}")
    if isinstance(table, Mapping):
        key = next(iter(table), "NAME")
        raise TypeError(f"{name} holds several arrays by name, expected one; pick an entry, such as [{key!r}]")
    try:
        array = np.asarray(table)
    except (TypeError, RuntimeError) as error:
        # torch refuses tensors in bfloat16 and those that require a gradient.
        if not hasattr(table, "detach"):
            raise
        raise TypeError(
            f"{name} is a {type(table).__name__} that numpy.asarray refuses, expected an array; pass "
            f"{name}.detach().float().numpy()"
        ) from error
    except ValueError:
        raise ValueError(f"{name} holds rows of different lengths, expected an array; pick one entry") from None
    if array.dtype.kind == "O" and not array.ndim:
        array = _core.array(table, name)  # an error for a module of torch
    if array.dtype == untyped_bfloat16:
        array = (np.ascontiguousarray(array).view("<u2").astype(np.uint32) << 16).view(np.float32)
    if array.dtype.kind not in "fiubc" and array.dtype.name != "bfloat16":
        may_be_converted = array.dtype.kind in "OV" and array.ndim
        raise TypeError(
            f"{name} has dtype {array.dtype}, expected numbers"
            + (
                f"; {conversion(array, name, 'float32')}"
                if may_be_converted
                else "; read files with numpy.load, and pick one array of several"
            )
        )
    if array.ndim < 2:
        raise ValueError(
            f"{name} has shape {list(array.shape)}, expected [L, d_model]: one row per position{_as_frequencies(name, array)}"
        )
    if 0 in array.shape:
        raise ValueError(f"{name} has shape {list(array.shape)}, expected at least one row and one column")
    finite = np.isfinite(array)
    if not finite.all():
        index = np.argwhere(~finite)[0].tolist()
        raise ValueError(
            f"{name} holds values that are not finite, expected encodings; the first of {int((~finite).sum())} is "
            f"{name}{index}, {array[tuple(index)]}: pass np.where(np.isfinite({name}), {name}, 0) to see what the rest is"
        )
    if array.ndim > 2:
        outer = [length for length in array.shape[:-1] if length != 1]
        array = array.reshape(*(outer or [1]), array.shape[-1])
    return array.astype(np.float64) if array.dtype.kind in "iub" else array


def _as_frequencies(name: str, values: Array) -> str:
    """What to do with a vector that may be the inv_freq of a checkpoint."""
    if values.ndim != 1 or values.dtype.kind != "f" or not (values > 0).all() or not (np.diff(values) < 0).all():
        return ""
    return (
        f"; if these are the frequencies of a rotary embedding, give them to fastpe.RotaryEmbedding({2 * len(values)}, "
        f"interleaved=.., freqs={name})"
    )


class Stored(NamedTuple):
    """How values were rounded. Of several, the largest is the coarsest.

    Attributes
    ----------
    rounding : float
        The error of one rounding, relative to the amplitude.
    name : str
        The dtype, or integers.
    """

    rounding: float
    name: str


def stored_as(array: Array) -> Stored:
    """Integers, or the narrowest dtype that holds the first values exactly: values rounded to it tell no more."""
    own = str(array.dtype.name)
    as_given = Stored(_rounding.get(own, float32_rounding), own)
    if array.dtype.kind not in "fc":
        return as_given
    sample = array[:search_rows]
    parts = np.ascontiguousarray(sample).view(sample.real.dtype)
    if np.isin(parts, (-1, 0, 1)).all():
        return as_given
    if np.array_equal(parts, np.rint(parts)):
        # Integers that are coarser than bfloat16 would fit many conventions.
        rounding = min(0.5 / float(np.abs(parts).max()), _rounding["bfloat16"])
        return Stored(max(rounding, as_given.rounding), "integers")
    if own in _rounding:
        return as_given
    with np.errstate(over="ignore"):
        single = parts.astype(np.float32)
        half = single.astype(np.float16)
    if (single == parts).all():
        if not (single.view(np.uint32) & 0xFFFF).any():
            return Stored(_rounding["bfloat16"], "bfloat16")
        if (half == single).all():
            return Stored(_rounding["float16"], "float16")
    return as_given


def left_at_zero(rows: Sequence[int]) -> str:
    """What a note says of rows that are zero, and were not compared."""
    some = ", ".join(map(str, rows[:_zero_rows_shown])) + (", .." if len(rows) > _zero_rows_shown else "")
    return f"rows left at zero: {some}"


def angle_tolerance(frequencies: npt.NDArray[np.float64], furthest: float) -> npt.NDArray[np.float64]:
    """How far sines and cosines may be off, for each frequency, if the angles up to `furthest` are float32 numbers.

    Frequencies are powers of a base, and their exponents are rounded too, so that slow ones are relatively less exact.
    """
    sizes = np.abs(frequencies)
    used = sizes > 0.0
    powers = np.zeros_like(sizes)
    powers[used] = np.log(sizes.max(initial=0.0) / sizes[used])
    return sizes * furthest * (_float32_angle_error + _float32_power_error * powers)


def tolerance(angles: npt.NDArray[np.float64], rounding: float, amplitude: float) -> npt.NDArray[np.float64]:
    """How far values may be off. `angles` is the part of it that comes from the angles."""
    return amplitude * np.minimum(2.0 * rounding + angles, _largest_tolerance)


def excess(given: Array, expected: Array, allowed: Array) -> tuple[float, float, float]:
    """How far values are off: the largest ratio to what is allowed, a difference, and what is allowed.

    If the ratio is above 1, the difference and the allowed one are those of its place, and else they are the largest
    ones. `allowed` is broadcast. Values for which it is infinite are not compared.
    """
    if given.shape != expected.shape:
        return math.inf, math.inf, 0.0
    worst = (0.0, 0.0, 0.0)
    largest = 0.0
    bounds = np.broadcast_to(allowed, given.shape)
    for part in _parts(given):
        differences = np.abs(widened(given[part]) - expected[part])
        largest = max(largest, float(differences.max(where=np.isfinite(bounds[part]), initial=0.0)))
        with np.errstate(over="ignore"):
            ratios = differences / np.maximum(bounds[part], _least_bound)
        index = np.unravel_index(int(np.argmax(ratios)), ratios.shape)
        worst = max(worst, (float(ratios[index]), float(differences[index]), float(bounds[part][index])))
    return worst if worst[0] > 1.0 else (worst[0], largest, float(allowed.max(where=np.isfinite(allowed), initial=0.0)))


def rows_off(given: Array, expected: Array, allowed: Array) -> list[int]:
    """Indices along the first axis at which any value is off by more than what is allowed."""
    if given.shape != expected.shape:
        return list(range(len(given)))
    bounds = np.broadcast_to(allowed, given.shape)
    result: list[int] = []
    for part in _parts(given):
        off = np.abs(widened(given[part]) - expected[part]) > bounds[part]
        result += (part.start + np.flatnonzero(off.reshape(len(off), -1).any(axis=1))).tolist()
    return result


def largest_in_rows(given: Array, expected: Array) -> npt.NDArray[np.float64]:
    """The largest difference at each index of the first axis; infinite for arrays of different shapes."""
    if given.shape != expected.shape:
        return np.full(len(given), np.inf)
    return np.concatenate(
        [
            np.abs(widened(given[part]) - expected[part]).reshape(part.stop - part.start, -1).max(axis=1)
            for part in _parts(given)
        ]
    )


def _parts(array: Array) -> Iterator[slice]:
    """Rows of which a few copies in float64 are small."""
    step = max(1, (1 << 22) * len(array) // max(array.size, 1))
    return (slice(start, min(start + step, len(array))) for start in range(0, len(array), step))


def widened(array: Array) -> Array:
    """In float64 or complex128."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64, copy=False)
