# SPDX-License-Identifier: BSD-3-Clause
"""The oracle of rotary embeddings: what they are, written as plainly as possible, without a line of the package's code.

`frequencies` and `tables` are the truth, by mpmath; `rotate` is what a call means, one row after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

from ..oracles.reference import LEAST_EXPONENT, MANTISSA_BITS, Exact, position_of, row_is_valid

Array = npt.NDArray[Any]
Position = float | tuple[float, ...]
# Cosines and sines [d / 2] of one position, in the dtype of the arithmetic.
RowOf = Callable[[Position], tuple[Array, Array]]

FORMS = ("halves", "tile", "repeat", "cos_sin", "sin_cos", "pairs", "complex", "angles")


# Frequencies


def _ideal(d: int, base: Any) -> list[Any]:
    return [mpmath.power(base, -mpmath.mpf(2 * k) / d) for k in range(d // 2)]


def _of_stretched_base(d: int, base: Any, stretch: Any) -> list[Any]:
    # With two columns there is one frequency, whatever the base is.
    return _ideal(d, base) if d == 2 else _ideal(d, base * mpmath.power(stretch, mpmath.mpf(d) / (d - 2)))


def yarn_range(d: int, base: float, scaling: Mapping[str, Any]) -> tuple[Any, Any]:
    """Where the ramp of a yarn scaling begins and ends."""
    length = mpmath.mpf(scaling["original_max_position_embeddings"])

    def index(turns: float) -> Any:
        return d * mpmath.log(length / (2 * mpmath.pi * mpmath.mpf(turns))) / (2 * mpmath.log(mpmath.mpf(base)))

    low, high = index(scaling.get("beta_fast", 32)), index(scaling.get("beta_slow", 1))
    if scaling.get("truncate", True):
        low, high = mpmath.floor(low), mpmath.ceil(high)
    return max(low, mpmath.mpf(0)), min(high, mpmath.mpf(d - 1))


def _yarn_ramp(k: int, low: Any, high: Any) -> Any:
    if low == high:
        high += mpmath.mpf(1) / 1000
    return min(max((k - low) / (high - low), mpmath.mpf(0)), mpmath.mpf(1))


def _yarn_mscale(factor: Any, mscale: Any) -> Any:
    return mpmath.mpf(1) if factor <= 1 else mscale * mpmath.log(factor) / 10 + 1


def _yarn_attention_factor(factor: Any, scaling: Mapping[str, Any]) -> Any:
    if "attention_factor" in scaling:
        return mpmath.mpf(scaling["attention_factor"])
    mscale, mscale_all_dim = mpmath.mpf(scaling.get("mscale", 0)), mpmath.mpf(scaling.get("mscale_all_dim", 0))
    if mscale != 0 and mscale_all_dim != 0:
        return _yarn_mscale(factor, mscale) / _yarn_mscale(factor, mscale_all_dim)
    return _yarn_mscale(factor, 1)


def _llama3(w: Any, factor: Any, scaling: Mapping[str, Any]) -> Any:
    length = mpmath.mpf(scaling["original_max_position_embeddings"])
    low, high = mpmath.mpf(scaling["low_freq_factor"]), mpmath.mpf(scaling["high_freq_factor"])
    wavelength = 2 * mpmath.pi / w
    if wavelength > length / low:
        return w / factor
    if wavelength < length / high:
        return w
    smooth = (length / wavelength - low) / (high - low)
    return (1 - smooth) * w / factor + smooth * w


def frequencies(
    d: int, base: float = 10000.0, scaling: Mapping[str, Any] | None = None, seq_len: int = 0
) -> tuple[list[Any], Any]:
    """Frequencies and attention factor of a scaling, by the formulas of transformers (and of "ntk")."""
    scaling = scaling or {"rope_type": "default"}
    rope_type = scaling["rope_type"]
    ideal = _ideal(d, mpmath.mpf(base))
    length = scaling.get("original_max_position_embeddings", scaling.get("max_position_embeddings"))
    if "factor" in scaling:
        factor = mpmath.mpf(scaling["factor"])
    elif rope_type in ("yarn", "longrope"):
        factor = mpmath.mpf(scaling["max_position_embeddings"] / length)
    else:
        factor = mpmath.mpf(1)
    attention_factor = mpmath.mpf(1)
    if rope_type == "linear":
        result = [w / factor for w in ideal]
    elif rope_type == "ntk":
        result = _of_stretched_base(d, mpmath.mpf(base), factor)
    elif rope_type == "dynamic" and "alpha" in scaling:
        result = _of_stretched_base(d, mpmath.mpf(base), mpmath.mpf(scaling["alpha"]))
    elif rope_type == "dynamic":
        assert length is not None
        stretch = factor * max(seq_len, length) / length - (factor - 1)
        result = _of_stretched_base(d, mpmath.mpf(base), stretch)
    elif rope_type == "yarn":
        low, high = yarn_range(d, base, scaling)
        ramps = [_yarn_ramp(k, low, high) for k in range(d // 2)]
        result = [w / factor * ramp + w * (1 - ramp) for w, ramp in zip(ideal, ramps, strict=True)]
        attention_factor = _yarn_attention_factor(factor, scaling)
    elif rope_type == "longrope":
        assert length is not None
        divisors = scaling["long_factor" if seq_len > length else "short_factor"]
        result = [w / mpmath.mpf(divisor) for w, divisor in zip(ideal, divisors, strict=True)]
        if "attention_factor" in scaling:
            attention_factor = mpmath.mpf(scaling["attention_factor"])
        elif factor > 1:
            attention_factor = mpmath.sqrt(1 + mpmath.log(factor) / mpmath.log(length))
    elif rope_type == "llama3":
        result = [_llama3(w, factor, scaling) for w in ideal]
    elif rope_type == "proportional":
        rotated = int(scaling.get("partial_rotary_factor", 1.0) * d // 2)
        result = [w / factor if k < rotated else mpmath.mpf(0) for k, w in enumerate(ideal)]
    else:
        assert rope_type == "default"
        result = ideal
    return result, attention_factor


# Tables


@dataclass(frozen=True)
class Rotary:
    """A rotary embedding: its frequencies as exact numbers, and how columns are paired."""

    frequencies: tuple[Any, ...]
    interleaved: bool
    attention_factor: float = 1.0
    axes: tuple[int, ...] | None = None
    conjugate: bool = False

    @property
    def rotary_dim(self) -> int:
        return 2 * len(self.frequencies)

    def angles(self, position: Position) -> list[Any]:
        if self.axes is None:
            return [mpmath.mpf(position) * w for w in self.frequencies]
        assert isinstance(position, tuple)
        return [mpmath.mpf(position[axis]) * w for axis, w in zip(self.axes, self.frequencies, strict=True)]

    def inverted(self) -> Rotary:
        """With the tables of a call with `inverse`."""
        return replace(self, attention_factor=1.0 / self.attention_factor)

    def row_of(self, dtype: np.dtype[Any]) -> RowOf:
        """Cosines and sines of a position, in the dtype of the arithmetic with arrays of `dtype`."""
        wide = arithmetic_dtype(dtype)
        known: dict[Position, tuple[Array, Array]] = {}

        def row(position: Position) -> tuple[Array, Array]:
            if position not in known:
                cosines, sines = _values(self, position)
                known[position] = (
                    _array([rounded(c, wide) for c in cosines], wide),
                    _array([rounded(s, wide) for s in sines], wide),
                )
            return known[position]

        return row


def arithmetic_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(dtype if dtype in (np.float32, np.float64) else np.float32)


def rounded(value: Any, dtype: np.dtype[Any]) -> float:
    """The number of `dtype` that is nearest to an exact one; to even where two are as near."""
    if value == 0:
        return 0.0
    exponent = mpmath.frexp(value)[1] - 1
    unit = mpmath.ldexp(1, int(max(exponent, LEAST_EXPONENT[dtype]) - MANTISSA_BITS[dtype]))
    result = mpmath.nint(value / unit) * unit
    greatest = (2 - mpmath.ldexp(1, -MANTISSA_BITS[dtype])) * mpmath.ldexp(1, 1 - LEAST_EXPONENT[dtype])
    if abs(result) > greatest:
        return float("inf") if result > 0 else float("-inf")
    return float(result)


def _array(values: Any, dtype: np.dtype[Any]) -> Array:
    return np.asarray(values, np.float64).astype(dtype)


def _values(rotary: Rotary, position: Position) -> tuple[list[Any], list[Any]]:
    factor = mpmath.mpf(rotary.attention_factor)
    pairs = [mpmath.cos_sin(angle) for angle in rotary.angles(position)]
    return [factor * c for c, _ in pairs], [factor * s for _, s in pairs]


def _position_list(rotary: Rotary, positions: Array) -> tuple[list[Position], tuple[int, ...]]:
    """The positions one after the other, and the shape they have."""
    if rotary.axes is None:
        return [value.item() for value in positions.reshape(-1)], positions.shape
    return [tuple(row.tolist()) for row in positions.reshape(-1, positions.shape[-1])], positions.shape[:-1]


def _halves(rotary: Rotary, positions: npt.ArrayLike) -> tuple[Array, Array, Array]:
    """Exact cosines, sines and angles: arrays of mpmath's numbers, positions.shape + (d / 2,)."""
    listed, shape = _position_list(rotary, np.asarray(positions))
    count = len(rotary.frequencies)
    cosines, sines, angles = (np.empty((len(listed), count), object) for _ in range(3))
    for i, position in enumerate(listed):
        cosines[i], sines[i] = _values(rotary, position)
        angles[i] = rotary.angles(position)
    return tuple(part.reshape(*shape, count) for part in (cosines, sines, angles))  # type: ignore[return-value]


def _in_form(form: str, cosines: Array, sines: Array, angles: Array) -> Array | tuple[Array, Array]:
    if form == "halves":
        return cosines, sines
    if form == "tile":
        return np.concatenate([cosines, cosines], -1), np.concatenate([sines, sines], -1)
    if form == "repeat":
        return np.repeat(cosines, 2, -1), np.repeat(sines, 2, -1)
    if form == "cos_sin":
        return np.concatenate([cosines, sines], -1)
    if form == "sin_cos":
        return np.concatenate([sines, cosines], -1)
    if form in ("pairs", "complex"):
        return np.stack([cosines, sines], -1)
    assert form == "angles"
    return angles


def _mapped(function: Callable[[Array], Any], result: Array | tuple[Array, Array]) -> Any:
    return tuple(map(function, result)) if isinstance(result, tuple) else function(result)


def _rounded_array(values: Array, dtype: np.dtype[Any]) -> Array:
    return _array(np.vectorize(lambda value: rounded(value, dtype), otypes=[float])(values), dtype)


def _exact_array(values: Array) -> Exact:
    high = np.vectorize(float, otypes=[float])(values)
    low = np.vectorize(lambda value, near: float(value - mpmath.mpf(near)), otypes=[float])(values, high)
    return Exact(high, low)


def exact_tables(rotary: Rotary, positions: npt.ArrayLike, form: str) -> Any:
    """Tables as sums of two float64 arrays; "complex" as its parts, with one more axis at the end."""
    return _mapped(_exact_array, _in_form(form, *_halves(rotary, positions)))


def tables(rotary: Rotary, positions: npt.ArrayLike, form: str, dtype: npt.DTypeLike = np.float32) -> Any:
    """Tables whose values are the exact ones rounded once; of positions that are given, never counted."""
    parts = np.dtype(dtype)
    result = _mapped(lambda values: _rounded_array(values, parts), _in_form(form, *_halves(rotary, positions)))
    if form != "complex":
        return result
    assert parts in (np.float32, np.float64)
    return result.view(np.complex64 if parts == np.float32 else np.complex128)[..., 0]


# Rotation


def pair_columns(rotary_dim: int, interleaved: bool) -> tuple[Array, Array]:
    """Columns of the first and of the second partner of each pair."""
    half = np.arange(rotary_dim // 2)
    return (2 * half, 2 * half + 1) if interleaved else (half, half + rotary_dim // 2)


def _rotate_row(row: Array, cosines: Array, sines: Array, first: Array, second: Array, kept: Array) -> None:
    """One row, or the rows of all heads, in place. The pairs in `kept` keep their bits."""
    wide = arithmetic_dtype(row.dtype)
    x1, x2 = row[..., first].astype(wide), row[..., second].astype(wide)
    with np.errstate(all="ignore"):
        y1 = (x1 * cosines - x2 * sines).astype(row.dtype)
        y2 = (x2 * cosines + x1 * sines).astype(row.dtype)
    row[..., first[~kept]] = y1[..., ~kept]
    row[..., second[~kept]] = y2[..., ~kept]


def batch_axis_of(ndim: int, seq_axis: int, packed: bool) -> int | None:
    """The axis to which all belongs that is per row of a batch; seq_axis counts from the front."""
    if packed or ndim == 2 or (ndim == 3 and seq_axis == 0):
        return None
    return 1 if seq_axis == 0 else 0


def _per_row(value: npt.ArrayLike | None, rows: int, axes: int) -> Array | None:
    """An argument with its batch axis spread over the rows; `axes` is the number of axes without it."""
    if value is None:
        return None
    array = np.asarray(value)
    if axes == 0 and array.ndim == 2:
        array = array[:, 0]
    return array if array.ndim == axes else np.broadcast_to(array, (rows, *array.shape[1:]))


def rotate(
    x: Array,
    row_of: RowOf,
    *,
    rotary_dim: int,
    interleaved: bool,
    kept: npt.ArrayLike = False,
    conjugate: bool = False,
    inverse: bool = False,
    offset: npt.ArrayLike | None = None,
    positions: npt.ArrayLike | None = None,
    mask: npt.ArrayLike | None = None,
    lengths: npt.ArrayLike | None = None,
    cu_seqlens: Sequence[int] | None = None,
    coordinates: bool = False,
    seq_axis: int = -2,
) -> Array:
    """A copy of x, rotated one row at a time.

    `row_of` gives the tables of one position, in the dtype of the arithmetic; with `inverse` those of the factor's
    inverse. `kept` marks the pairs that keep their bits: frequency 0 and factor 1. With `coordinates`, positions have
    one more axis at the end.
    """
    result: Array = x.copy()
    seq_axis %= x.ndim
    batch_axis = batch_axis_of(x.ndim, seq_axis, cu_seqlens is not None)
    # [L, B, .., D]
    rows = np.moveaxis(result, seq_axis, 0)
    rows = rows[:, None] if batch_axis is None else np.moveaxis(result, (seq_axis, batch_axis), (0, 1))
    length, batches = rows.shape[:2]
    first, second = pair_columns(rotary_dim, interleaved)
    kept_pairs = np.broadcast_to(np.asarray(kept, bool), first.shape)
    packed_starts = None if offset is None or cu_seqlens is None else np.asarray(offset)
    starts = _per_row(offset, batches, 0) if cu_seqlens is None else packed_starts
    counts = _per_row(lengths, batches, 0)
    valid = _per_row(mask, batches, 1)
    given = _per_row(positions, batches, 2 if coordinates else 1)
    for b in range(batches):
        valid_before = 0
        for row in range(length):
            if not row_is_valid(b, row, valid, counts):
                continue
            position: Position
            if coordinates:
                assert given is not None
                position = tuple((given[row] if given.ndim == 2 else given[b, row]).tolist())
            else:
                position = position_of(
                    b,
                    row,
                    valid_before,
                    first=0,
                    offset=starts,
                    positions=given,
                    mask=valid,
                    cu_seqlens=cu_seqlens,
                )
            valid_before += 1
            cosines, sines = row_of(position)
            _rotate_row(rows[row, b], cosines, -sines if conjugate != inverse else sines, first, second, kept_pairs)
    return result
