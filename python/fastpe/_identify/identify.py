# SPDX-License-Identifier: BSD-3-Clause
"""Which call makes somebody's table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fastpe import _core
from fastpe._arrays import ArrayLike
from fastpe._errors import a_type, refused
from fastpe._identify import encodings, rotary
from fastpe._identify.answer import Array, Identification, nonzero
from fastpe._identify.numbers import stored_as

_zero_rows_shown = 5
_saved_bfloat16 = np.dtype("V2")  # by NumPy
_as_it_is = "fastpe.add_(x, table=table) adds a table [L, d_model] of encodings as it is"
_as_they_are = (
    "fastpe.rotate_by_tables_(q, k, cos=cos, sin=sin, interleaved=..) rotates by cosines and sines [L, pairs]"
)


def identify(table: ArrayLike, sin: ArrayLike | None = None) -> Identification:
    """Find the call that makes a table.

    Parameters
    ----------
    table : array_like
        Encodings, of any real dtype: ``[L, d_model]``, one row per position, or transposed; the cells of a grid of two or
        three axes, as ``[H, W, d_model]``, ``[d_model, H, W]`` or one after the other, behind class tokens or not; or one
        array of a rotary embedding, in any form of `RotaryEmbedding.tables` except angles. Axes of length 1 are ignored.
    sin : array_like, optional
        The sines, if `table` has the cosines of a rotary embedding only.

    Returns
    -------
    Identification
        The call, what it is made with, and the largest difference. It is false, as ``matches`` is, if nothing known
        makes the table.

    Raises
    ------
    ValueError
        For an array that has less than two axes, is empty, is entirely zero or is not finite, and a `sin` of another
        shape or equal to `table`.
    TypeError
        For an argument that is not an array of numbers.

    Notes
    -----
    Every preset of `fastpe.conventions` and `fastpe.grid_conventions` is tried, first as it is, then with the base,
    frequency scale, first position and amplitude that the table's phases show, if these are numbers that people choose.
    Of rotary embeddings, those without scaling and with "linear" and "llama3" are known. Before a call is given, all
    rows that are not zero are compared with what it makes.

    Presets that a narrow or short table does not tell apart are in `Identification.equivalents`.

    Examples
    --------
    >>> import fastpe
    >>> found = fastpe.identify(fastpe.encode(100, 64, convention="concat", base=500.0, offset=1))
    >>> found.matches, found.convention.name, found.base, found.first_position
    (True, 'concat', 500.0, 1)
    >>> print(fastpe.identify(fastpe.encode_grid((14, 14), 768, convention="mae2d", class_tokens=1)))
    grid mae2d: largest difference 0; rounding may cause up to 3.4e-06
        fastpe.encode_grid((14, 14), 768, convention='mae2d', class_tokens=1)
        zero rows: row 0
    >>> cos, sin = fastpe.RotaryEmbedding(64, interleaved=False, base=500000.0).tables(100)
    >>> fastpe.identify(cos, sin).code
    'fastpe.RotaryEmbedding(64, interleaved=False, base=500000.0).tables(100)'
    """
    array = _checked("table", table)
    given = [array] if sin is None else [array, _checked("sin", sin)]
    if given[-1].shape != array.shape:
        raise refused(ValueError, "sin", f"has shape {list(given[1].shape)}", f"{list(array.shape)}, as table has")
    if sin is not None and np.array_equal(array, given[1]):
        raise refused(ValueError, "sin", "holds the same values as table", "sines", "leave it out if table has both")
    if sin is None and not array.any():
        raise refused(ValueError, "table", "is entirely zero", "encodings")
    encoding = sin is None and array.dtype.kind != "c"
    if encoding and array.ndim == 3 and len(array) == 2:
        given = [*array]  # cosines and sines, if they are not a grid
    zero = tuple(np.flatnonzero(~array.any(axis=1)).tolist()) if array.ndim == 2 else ()
    size = {"d_model": array.shape[-1], "rows": math.prod(array.shape[:-1]), "zero_rows": zero}
    with np.errstate(over="ignore", invalid="ignore"):
        for match in itertools.chain(encodings.find(array) if encoding else (), rotary.find(given)):
            if (difference := match.difference(nonzero(match.given))) is not None:
                notes = *match.notes, *_notes(zero, match.given[0], _core.array(table, "table").dtype)
                found = {**match.found, "largest_difference": difference, "tolerance": float(match.allowed.max())}
                return Identification(True, code=match.code, **found, **size, notes=notes)
    notes = (_as_it_is if sin is None else _as_they_are,) if array.dtype.kind != "c" else ()
    return Identification(False, "no known convention", "", **size, notes=notes)


def _checked(name: str, table: Any) -> Array:
    """`table` in single or double precision, without its axes of length 1 except for the last two."""
    array: Array = _core.array(table, name)
    if array.dtype == _saved_bfloat16:
        array = (np.ascontiguousarray(array).view("<u2").astype(np.uint32) << 16).view(np.float32)
    if array.dtype.kind not in "fiubc" and array.dtype.name != "bfloat16":
        raise refused(TypeError, name, f"is {a_type(table)}", "an array of numbers", "read a file with numpy.load")
    if array.ndim < 2 or 0 in array.shape:
        raise refused(ValueError, name, f"has shape {list(array.shape)}", "[L, d_model]: one row for each position")
    dtype = np.result_type(array, np.float32)
    array = array.astype({"g": "d", "G": "D"}.get(dtype.char, dtype), copy=False)  # no call makes long doubles
    if not np.isfinite(array).all():
        raise refused(ValueError, name, "holds values that are not finite", "encodings", f"pass np.nan_to_num({name})")
    outer = [length for length in array.shape[:-1] if length != 1]
    return array if array.ndim == 2 else array.reshape(*(outer or [1]), array.shape[-1])


def _notes(zero: tuple[int, ...], given: Array, table_dtype: np.dtype[Any]) -> Iterator[str]:
    dtype = "bfloat16" if table_dtype == _saved_bfloat16 else table_dtype.name
    if zero:
        more = ", .." if len(zero) > _zero_rows_shown else ""
        yield f"zero rows: row {', '.join(map(str, zero[:_zero_rows_shown]))}{more}"
    if (stored := stored_as(given)[1]) not in (given.dtype.name, dtype):
        yield f"its values are rounded to {stored}"
    if dtype not in ("float32", "complex64"):
        yield f"the table has dtype {dtype}: give dtype= to the call"
