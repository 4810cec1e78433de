# SPDX-License-Identifier: BSD-3-Clause
"""What calls mean, given the rows of their positions: NumPy, and no line of the package.

Arrays are [batch, .., L, C], rows [batch, L, C], and `valid` [batch, L] says which rows count. One row of a batch stands for all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Dtype = np.dtype[Any]


def wide_type(dtype: Dtype) -> Dtype:
    """What is computed in: the dtype itself, or float32 for 16 bits."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def same_bits(found: Array, expected: Array) -> bool:
    """Whether all bits are equal; which of two NaNs an operation keeps is the processor's choice."""
    is_nan, zero = np.isnan(expected), expected.dtype.type(0)
    found, expected = (np.where(is_nan & np.isnan(each), zero, each) for each in (found, expected))
    return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()


def _for_each_head(rows: Array, axes: int) -> Array:
    return rows.reshape((len(rows), *(1,) * axes, *rows.shape[1:]))


def combine(x: Array, pe: Array, scale: float = 1.0, alpha: float = 1.0) -> Array:
    """x * scale + alpha * pe: each operation rounded as NumPy does in the wide type, and the result once."""
    wide = wide_type(x.dtype)
    with np.errstate(all="ignore"):
        sums = x.astype(wide) * wide.type(scale) + wide.type(alpha) * pe.astype(wide)
        return np.asarray(sums.astype(x.dtype))


def added(x: Array, rows: Array, valid: Array, scale: float = 1.0, alpha: float = 1.0) -> Array:
    """The sum with each row that counts; other rows keep their bits."""
    sums = combine(x, _for_each_head(rows, x.ndim - 3), scale, alpha)
    return np.where(_for_each_head(valid[..., None], x.ndim - 3), sums, x)


def pair_columns(rotary_dim: int, interleaved: bool) -> tuple[Array, Array]:
    """Columns of the first and of the second partner of each pair."""
    half = np.arange(rotary_dim // 2)
    return (2 * half, 2 * half + 1) if interleaved else (half, half + rotary_dim // 2)


def rotated(
    x: Array, halves: tuple[Array, Array], valid: Array, *, interleaved: bool, inverse: bool = False, kept: Any = False
) -> Array:
    """Each pair turned by its cosine and sine in the wide type; pairs that are `kept` keep their bits, as rows do."""
    first, second = pair_columns(2 * halves[0].shape[-1], interleaved)
    wide = wide_type(x.dtype)
    cos, sin = (_for_each_head(part.astype(wide), x.ndim - 3) for part in halves)
    sin = -sin if inverse else sin
    x1, x2 = x[..., first].astype(wide), x[..., second].astype(wide)
    with np.errstate(all="ignore"):
        y1, y2 = (x1 * cos - x2 * sin).astype(x.dtype), (x2 * cos + x1 * sin).astype(x.dtype)
    turned = _for_each_head(valid[..., None], x.ndim - 3) & ~np.asarray(kept)
    result: Array = x.copy()
    result[..., first] = np.where(turned, y1, x[..., first])
    result[..., second] = np.where(turned, y2, x[..., second])
    return result


def in_form(form: str, cosines: Array, sines: Array) -> tuple[Array, ...]:
    """The arrays that a form of tables has; "complex" as its parts, with one more axis at the end."""
    if form == "halves":
        return cosines, sines
    if form == "tile":
        return np.concatenate([cosines, cosines], -1), np.concatenate([sines, sines], -1)
    if form == "repeat":
        return np.repeat(cosines, 2, -1), np.repeat(sines, 2, -1)
    if form == "matrices":
        return (np.stack([cosines, -sines, sines, cosines], -1).reshape(*cosines.shape, 2, 2),)
    if form in ("pairs", "complex"):
        return (np.stack([cosines, sines], -1),)
    return (np.concatenate([cosines, sines] if form == "cos_sin" else [sines, cosines], -1),)
