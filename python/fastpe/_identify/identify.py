# SPDX-License-Identifier: BSD-3-Clause
"""Which call makes somebody's table."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fastpe._identify import grids, rotary, sequences
from fastpe._identify.answer import Answer, Identification
from fastpe._identify.near import Candidate, nearest
from fastpe._identify.readings import Array, checked, excess, left_at_zero, stored_as, untyped_bfloat16
from fastpe._rotary.embedding import RotaryEmbedding

# No tokenizer has a padding index beyond this.
_largest_padding_index = 7
# The share of equal values from which on halves are taken for the same.
_mostly = 0.8
# What a table is good for that nothing known makes.
_table_as_it_is = "fastpe.add_(x, table=table) adds a table [L, d_model] as it is"
_tables_as_they_are = "fastpe.rotate_(q, k, cos=cos, sin=sin, interleaved=..) rotates by tables [L, pairs] as they are"
_not_turned = (
    "table or sin is zero in each row, as at position 0, which is the same in every embedding: give other rows, too"
)
_swapped = "table has the sines and sin has the cosines: give them the other way round"
_transposed = "table has positions as columns, and table.T is made by "


def identify(table: npt.ArrayLike, sin: npt.ArrayLike | None = None) -> Identification:
    """Find the call that makes a table.

    Parameters
    ----------
    table : array_like
        Encodings, of any real dtype: ``[L, d_model]``, one row per position; the cells of a grid of two axes or more, as
        ``[H, W, d_model]``, ``[d_model, H, W]`` or one after the other, behind class tokens or not; or one array with
        the cosines and sines of a rotary embedding, in any form of `RotaryEmbedding.tables`, complex numbers too. Axes
        of length 1 are ignored.
    sin : array_like, optional
        The sines, if `table` has the cosines of a rotary embedding alone.

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
        For an argument that holds no numbers, or holds several arrays.

    Notes
    -----
    Every preset of `fastpe.conventions` and `fastpe.grid_conventions` is tried, first as it is, then with the base,
    frequency scale, first position and amplitude that the table's own phases say. Rows may count downwards. For a
    rotary embedding, the frequencies are measured, and scalings that give them are tried. The call is evaluated and
    compared with the whole table before it is given.

    Presets that a narrow or short table cannot tell apart are in `Identification.equivalents`.

    If no call makes the table, but a preset as it is, or a rotary embedding without scaling or with a linear one, comes
    close to it, the notes name the nearest one and the largest difference.

    Examples
    --------
    >>> import fastpe
    >>> found = fastpe.identify(fastpe.encode(100, 64, convention="concat", base=500.0, offset=1))
    >>> found.matches, found.convention.name, found.base, found.first_position
    (True, 'concat', 500.0, 1)
    >>> print(fastpe.identify(fastpe.encode_grid((14, 14), 768, convention="mae2d", class_tokens=1)))
    grid mae2d: largest difference 0; rounding may cause up to 3.4e-06
        fastpe.encode_grid((14, 14), 768, convention='mae2d', class_tokens=1)
        its first row is zero, as for class tokens
    >>> cos, sin = fastpe.RotaryEmbedding(64, interleaved=False, base=500000.0).tables(100)
    >>> fastpe.identify(cos, sin).code
    'fastpe.RotaryEmbedding(64, interleaved=False, base=500000.0).tables(100)'
    """
    array = checked("table", table)
    bits = _bits_of_bfloat16(table)
    if sin is not None:
        sines = checked("sin", sin)
        if sines.shape != array.shape:
            raise ValueError(f"sin has shape {list(sines.shape)}, expected {list(array.shape)}, as table has")
        if np.array_equal(array, sines):
            raise ValueError(
                "both arrays are equal, expected cosines, and the sines that go with them; give an array that has both alone"
            )
        # Rows of position 0 and rows left at zero have equal halves in every form.
        turned = array.any(axis=-1) & sines.any(axis=-1)
        as_they_are = _tables_as_they_are
        if not turned.any():
            as_they_are = _not_turned
        elif _is_tiled(array[turned]) and _is_tiled(sines[turned]):
            as_they_are += f", once they are cut to [:, :{array.shape[-1] // 2}]"
        elif _is_repeated(array[turned]) and _is_repeated(sines[turned]):
            as_they_are += ", once they are cut to [:, ::2], with np.ascontiguousarray"
        found = _first_that_holds(
            rotary.pairs(array, sines), rotary.near_pairs(array, sines), array, _as_given(table), (*bits, as_they_are)
        )
        if found.matches or not _first_that_holds(rotary.pairs(sines, array), iter(()), sines, (), ()).matches:
            return found
        return dataclasses.replace(found, notes=(_swapped,))
    if not array.any():
        raise ValueError("table is entirely zero, expected encodings")
    as_it_is = () if array.dtype.kind == "c" else (_table_as_it_is,)
    hints = (*bits, *_equal_sequences(array), *rotary.hints(array), *as_it_is)
    found = _first_that_holds(_answers(array), _candidates(array), array, _as_given(table), hints)
    if found.matches or array.ndim != 2 or array.dtype.kind == "c":
        return found
    turned = np.ascontiguousarray(array.T)
    other = _first_that_holds(_sequences(turned), iter(()), turned, (), ())
    return dataclasses.replace(found, notes=(_transposed + other.code,)) if other.matches else found


def _bits_of_bfloat16(table: npt.ArrayLike) -> tuple[str, ...]:
    """A note for integers of two bytes, which torch views bfloat16 as."""
    dtype = np.asarray(table).dtype
    is_short = dtype.kind in "iu" and dtype.itemsize == 2
    return ("if its integers are the bits of bfloat16, give table.view(ml_dtypes.bfloat16)",) if is_short else ()


def _as_given(table: npt.ArrayLike) -> tuple[str, ...]:
    """Notes about what the call makes otherwise than the table: axes of length 1, and another dtype."""
    array = np.asarray(table)
    notes = []
    if array.ndim > 2 and 1 in array.shape[:-1]:
        notes.append(f"the table has shape {list(array.shape)}, and the call makes it without axes of length 1")
    if array.dtype.name in ("float64", "float16", "bfloat16"):
        notes.append(f"the table has dtype {array.dtype.name}, which the call makes if it is given as dtype=")
    if array.dtype == untyped_bfloat16:
        notes.append("the table was read as bfloat16, which the call makes if it is given as dtype=")
    if array.dtype.kind in "iu":
        notes.append(f"the table has dtype {array.dtype.name}, and the call makes float32, without that rounding")
    if array.dtype.name == "complex128":
        notes.append("the table has dtype complex128, which the call makes with dtype='float64', that of its parts")
    return tuple(notes)


def _first_that_holds(
    answers: Iterator[Answer],
    candidates: Iterator[Candidate],
    array: Array,
    as_given: tuple[str, ...],
    hints: tuple[str, ...],
) -> Identification:
    """The first answer whose call makes the table; or none, with the nearest candidate and the hints."""
    rows, d_model = math.prod(array.shape[:-1]), array.shape[-1]
    zero_rows = tuple(np.flatnonzero(~array.any(axis=1)).tolist()) if array.ndim == 2 else ()
    notes: list[str] = []
    largest, allowed = math.inf, 0.0
    for answer in answers:
        ratio, difference, tolerance = answer.tried()
        if ratio <= 1.0:
            made_by = answer.made_by
            return Identification(
                matches=True,
                title=answer.title,
                code=answer.code,
                d_model=d_model,
                rows=rows,
                largest_difference=difference,
                tolerance=tolerance,
                convention=None if isinstance(made_by, RotaryEmbedding) else made_by,
                rotary=made_by if isinstance(made_by, RotaryEmbedding) else None,
                zero_rows=zero_rows,
                equivalents=answer.equivalents,
                notes=(*answer.notes, *as_given),
            )
        if not notes:
            largest, allowed = difference, tolerance
            notes = [
                f"a sample of the rows fits {answer.code}, but {_some(answer.wrong_rows())} off by up to {difference:.2g}",
                *answer.notes[: min(answer.skipped, 1)],
            ]
    near = None if notes else nearest(candidates)
    if near is not None:
        notes, largest = [near[0]], near[1]
    return Identification(
        matches=False,
        title="no known convention",
        code="",
        d_model=d_model,
        rows=rows,
        largest_difference=largest,
        tolerance=allowed,
        zero_rows=zero_rows,
        notes=(*notes, *hints),
    )


def _equal_sequences(array: Array) -> tuple[str, ...]:
    """What to give instead of several sequences with the same rows."""
    for axis, one in enumerate(("table[0]", "table[:, 0]")):
        if array.ndim == 3 and (array == array.take([0], axis)).all():
            return (f"its sequences are equal: give {one}",)
    return ()


def _is_tiled(array: Array) -> bool:
    """Whether the halves of the columns are equal, but for a few values that may be damaged."""
    return array.shape[-1] % 2 == 0 and _are_mostly_equal(*np.split(array, 2, axis=-1))


def _is_repeated(array: Array) -> bool:
    """Whether columns 2k and 2k + 1 are equal, but for a few values that may be damaged."""
    return array.shape[-1] % 2 == 0 and _are_mostly_equal(array[..., ::2], array[..., 1::2])


def _are_mostly_equal(one: Array, other: Array) -> bool:
    return float(np.mean(one == other)) > _mostly


def _some(rows: list[int]) -> str:
    return f"row {rows[0]} is" if len(rows) == 1 else f"{len(rows)} rows, from row {rows[0]} on, are"


def _answers(array: Array) -> Iterator[Answer]:
    if array.ndim == 2 and array.dtype.kind != "c":
        yield from _sequences(array)
    if array.dtype.kind != "c":
        yield from grids.answers(array)
    yield from rotary.single_arrays(array)


def _candidates(array: Array) -> Iterator[Candidate]:
    if array.ndim == 2 and array.dtype.kind != "c":
        yield from sequences.candidates(array)
    if array.dtype.kind != "c":
        yield from grids.candidates(array)
    yield from rotary.near_single_arrays(array)


def _sequences(array: Array) -> Iterator[Answer]:
    rounding, stored = stored_as(array)
    rounded = (f"its values are rounded to {stored}",) if stored != array.dtype.name else ()
    zero = np.flatnonzero(~array.any(axis=1)).tolist()
    leading = zero == list(range(len(zero)))
    padding = len(zero) == 1 and 0 < zero[0] <= _largest_padding_index
    if zero and (leading or padding) and zero[-1] + 1 < len(array):
        start = zero[-1] + 1
        if padding:
            skipped = f"row {zero[0]} is zero, as for the padding index {zero[0]}"
        elif len(zero) == 1:
            skipped = "row 0 is zero, as for a padding index or a class token"
        else:
            skipped = f"rows 0 to {zero[-1]} are zero, as for class tokens"
        note = f"{skipped}: tokens start at row {start}, and the call makes the rows from there on"
        yield from _sequence(array[start:], rounding, (note, *rounded), array[:start])
    if zero:
        rounded = (left_at_zero(zero), *rounded)
    yield from _sequence(array, rounding, rounded)


def _sequence(rows: Array, rounding: float, notes: tuple[str, ...], skipped: Array | None = None) -> Iterator[Answer]:
    """What fits the rows, and those of the skipped ones before them that are not zero."""
    fits = sequences.find(rows, rounding)
    if not fits:
        return
    best = fits[0]
    chosen, d_model = best.convention, rows.shape[1]
    others = [fit for fit in fits[1:] if fit.convention.name != chosen.name]
    same = [fit for fit in others if sequences.same_formula(chosen, fit.convention, d_model)]
    rivals = [fit for fit in others if fit not in same]
    code = best.call(len(rows), d_model)
    allowed = sequences.column_tolerance(chosen, d_model, len(rows), rounding)
    keep = np.asarray(rows.any(axis=1))
    if not keep.all():
        # Rows that are zero are not compared.
        allowed = np.where(keep[:, None], allowed, np.inf)
    more = []
    earlier = np.zeros(0, np.intp) if skipped is None else np.flatnonzero(skipped.any(axis=1))
    if skipped is not None and earlier.size:
        # Those before a padding index go on counting: other values there say that this is another table.
        places = earlier - len(skipped)
        read = len(rows) - 1 - places if best.descending else places
        bounds = sequences.column_tolerance(chosen, d_model, len(rows) + len(skipped), rounding)
        if excess(skipped[earlier], sequences.expected(chosen, d_model, read), bounds)[0] > 1.0:
            return
        first, last = chosen.first_position + read[0], chosen.first_position + read[-1]
        more.append(
            f"row 0 before it holds position {first} of the same encoding"
            if earlier.size == 1
            else f"rows 0 to {earlier[-1]} before it hold positions {first} to {last} of the same encoding"
        )
    if best.descending:
        more.append(
            f"its rows run down from position {chosen.first_position + len(rows) - 1} to {chosen.first_position}"
        )
    if same:
        more.append(f"the same formula: {', '.join(dict.fromkeys(fit.convention.name for fit in same))}")
    if rivals:
        first_of_each: dict[str, str] = {}
        for fit in rivals:
            first_of_each.setdefault(fit.convention.name, fit.title_with_frequencies)
        titles = ", ".join(first_of_each.values())
        more.append(f"this table is too small or too coarse to tell it from {titles}")
    if not best.is_round:
        more.append(
            "base or freq_scale is no round number: the formula may be another one, which differs at other widths"
        )
    if chosen.layout == "concatenated" and not best.descending:
        more += rotary.twin(chosen, rows, allowed)
    names = tuple(dict.fromkeys(fit.convention.name for fit in others))
    title = best.title if best.is_round else f"{best.title}, at this width"
    yield Answer(
        title, code, (rows,), (allowed,), chosen, names, (*notes, *more), 0 if skipped is None else len(skipped)
    )
