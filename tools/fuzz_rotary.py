# SPDX-License-Identifier: BSD-3-Clause
"""Random calls of rotary embeddings.

The model knows tables of one coordinate and one position in the form "halves", each from a call of its own, without kept
rows and on the baseline; forms, several coordinates and rotations are made of them in NumPy.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from fuzz_cases import (
    DTYPES,
    LARGEST,
    SENTINEL,
    Array,
    Case,
    check_only_written,
    check_value,
    is_allowed,
    mpmath,
    wide_type,
)

import fastpe
from fastpe import RotaryEmbedding, _core

SCALINGS: list[dict[str, Any]] = [
    {"rope_type": "linear", "factor": 4.0},
    {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096},
    {"rope_type": "proportional", "partial_rotary_factor": 0.5},
]
FORMS = _core.table_forms


def a_rotary_embedding(case: Case) -> RotaryEmbedding:
    """A rotary embedding; ValueError where its frequencies are refused."""
    pairs = max(case.size() // (1 if case.chance(20) else 3), 1)
    keywords: dict[str, Any] = {}
    kind = case.integer(0, 9)
    if kind == 0:
        keywords["base"] = case.pick([2.0, 1.0, 500000.0, 1e8, 1e300, 0.5])
    elif kind == 1:
        keywords["freqs"] = [case.pick([0.0, 0.0, 1.0, -0.3, 1e-9, 1e6]) for _ in range(pairs)]
    elif kind == 2:
        keywords["scaling"] = case.pick(SCALINGS)
    if case.chance(30):
        keywords["attention_factor"] = case.pick([1.0, 0.5, 1.3465735902799727, 3.0, 1e-3])
    if case.chance(25):
        count = case.integer(1, 4)
        in_runs = case.chance(50)
        keywords["axes"] = [k * count // pairs if in_runs else case.integer(0, count - 1) for k in range(pairs)]
    return RotaryEmbedding(
        2 * pairs,
        interleaved=case.chance(50),
        conjugate=case.chance(20),
        form=case.pick(list(FORMS)),
        max_len=case.pick([0, 0, 1, 40, 200]),
        **keywords,
    )


def keep_some_rows(case: Case, rope: RotaryEmbedding) -> None:
    """Calls that leave some rows kept and others not."""
    for _ in range(case.integer(0, 2)):
        if rope.axes is None:
            rope.tables(case.integer(0, 60), offset=case.integer(-50, 220), dtype=case.pick([np.float32, np.float64]))


def halves_at(rope: RotaryEmbedding, positions: Array, dtype: np.dtype[Any], factor: float) -> tuple[Array, Array]:
    """Cosines and sines, [.., d/2] each; with axes, positions are [.., coordinates]."""
    active = _core.instruction_set()
    _core.use_instruction_set("baseline")
    without = {"axes": None, "max_len": 0, "attention_factor": factor}
    plain = RotaryEmbedding(**{**rope._arguments, **without})
    half = rope.rotary_dim // 2
    flat = positions.reshape(-1)
    cos, sin = np.zeros((flat.size, half), dtype), np.zeros((flat.size, half), dtype)
    known: dict[Any, int] = {}
    for row, position in enumerate(flat.tolist()):
        if position in known:
            cos[row], sin[row] = cos[known[position]], sin[known[position]]
        else:
            known[position] = row
            plain.tables(flat[row : row + 1], form="halves", out=(cos[row : row + 1], sin[row : row + 1]))
    _core.use_instruction_set(active)
    if rope.axes is None:
        return cos.reshape((*positions.shape, half)), sin.reshape((*positions.shape, half))
    axes, columns = np.array(rope.axes), np.arange(half)
    cos, sin = (part.reshape((*positions.shape, half))[..., axes, columns] for part in (cos, sin))
    return cos, sin


def check_exact(case: Case, rope: RotaryEmbedding, position: Any, row: Array, factor: float, is_sine: bool) -> None:
    """Compare one value of a row with 60 digits."""
    k = case.integer(0, rope.rotary_dim // 2 - 1)
    one = position[rope.axes[k]] if rope.axes is not None else position
    arguments = rope._arguments
    with mpmath.workdps(60):
        frequency = mpmath.mpf(float(rope.frequencies[k]))
        if arguments["freqs"] is None and arguments["scaling"] is None:
            frequency = mpmath.mpf(arguments["base"] or 10000.0) ** (mpmath.mpf(-2 * k) / rope.rotary_dim)
        phase = mpmath.mpf(float(one)) * frequency
        exact = mpmath.mpf(factor) * (mpmath.sin(phase) if is_sine else mpmath.cos(phase))
        check_value(float(row[k]), exact, row.dtype, factor, f"position {position!r}, frequency {k}, sine {is_sine}")


def in_form(form: str, cos: Array, sin: Array) -> list[Array]:
    """The arrays that a form has."""
    if form == "halves":
        return [cos, sin]
    if form == "tile":
        return [np.concatenate([part, part], -1) for part in (cos, sin)]
    if form == "repeat":
        return [np.repeat(part, 2, -1) for part in (cos, sin)]
    if form in ("cos_sin", "sin_cos"):
        return [np.concatenate([cos, sin] if form == "cos_sin" else [sin, cos], -1)]
    pairs = np.stack([cos, sin], -1)
    if form == "pairs":
        return [pairs]
    return [pairs.view(np.complex64 if cos.dtype == np.float32 else np.complex128)[..., 0]]


def angles_at(rope: RotaryEmbedding, positions: Array, dtype: np.dtype[Any]) -> Array:
    """Position times frequency, rounded once from 60 digits where frequencies are float64 numbers at face value."""
    half = rope.rotary_dim // 2
    axes = rope.axes if rope.axes is not None else [0] * half
    listed = positions.reshape(-1, 1 if rope.axes is None else positions.shape[-1])
    result = np.zeros((len(listed), half), dtype)
    arguments = rope._arguments
    is_ideal = arguments["freqs"] is None and arguments["scaling"] is None
    with mpmath.workdps(60):
        for k, frequency in enumerate(rope.frequencies.tolist()):
            exact = mpmath.mpf(frequency)
            if is_ideal:
                exact = mpmath.mpf(arguments["base"] or 10000.0) ** (mpmath.mpf(-2 * k) / rope.rotary_dim)
            for row, position in enumerate(listed):
                product = mpmath.mpf(float(position[axes[k]])) * exact
                result[row, k] = float(product) if dtype == np.float64 else np.float32(float(product))
    return result.reshape((*(positions.shape[:-1] if rope.axes is not None else positions.shape), half))


def some_positions(case: Case, rope: RotaryEmbedding, shape: tuple[int, ...]) -> Array:
    """Positions of that shape, with an axis of coordinates at the end where there are several."""
    if rope.axes is not None:
        shape = (*shape, max(rope.axes) + 1)
    return case.positions(int(np.prod(shape))).reshape(shape)


def fuzz_tables(case: Case, rope: RotaryEmbedding) -> str:
    """tables() in every form, of a number of positions or of an array."""
    form = case.pick(list(FORMS))
    is_counted = rope.axes is None and case.chance(30)
    if is_counted:
        count, offset = case.size(), case.integer(-400, 10**6)
        positions = np.arange(offset, offset + count)
        argument: Any = count
        keywords: dict[str, Any] = {"offset": offset}
    else:
        shape = tuple(case.integer(0, 6) for _ in range(case.integer(0, 3))) if case.chance(50) else (case.size(),)
        positions = some_positions(case, rope, shape)
        argument, keywords = case.laid_out(positions), {}
    keywords["num_threads"] = case.integer(1, 4)
    if form != rope.form or case.chance(50):
        keywords["form"] = form
    dtype = case.pick(DTYPES[:2] if form in ("complex", "angles") else DTYPES)
    if not is_allowed(positions):
        try:
            rope.tables(argument, dtype=dtype, **keywords)
        except ValueError:
            return "tables refused"
        raise AssertionError(f"not refused: {positions!r}")
    if form == "angles":
        expected = [angles_at(rope, positions, dtype)]
    else:
        cos, sin = halves_at(rope, positions, dtype, rope.attention_factor)
        expected = in_form(form, cos, sin)
        if cos.size:
            at, is_sine = case.integer(0, len(cos.reshape(-1, cos.shape[-1])) - 1), case.chance(50)
            row = (sin if is_sine else cos).reshape(-1, cos.shape[-1])[at]
            position = positions.reshape(-1, positions.shape[-1])[at].tolist() if rope.axes else positions.ravel()[at]
            check_exact(case, rope, position, row, rope.attention_factor, is_sine)
    if case.chance(40):
        result = rope.tables(argument, dtype=dtype, **keywords)
        found = list(result) if isinstance(result, tuple) else [result]
        assert [each.shape for each in found] == [each.shape for each in expected]
    else:
        placed = [a_place(case, each, form) for each in expected]
        out = tuple(view for view, _ in placed) if len(placed) > 1 else placed[0][0]
        assert rope.tables(argument, out=out, **keywords) is out
        found = [np.array(view) for view, _ in placed]
        for view, whole in placed:
            check_only_written(view, whole)
    for each, wanted in zip(found, expected, strict=True):
        if form == "angles":  # the sign of a zero is the product's or not
            each += each.dtype.type(0)
            wanted += wanted.dtype.type(0)
        different = np.argwhere(each != wanted)[:1].tolist()
        assert each.tobytes() == wanted.tobytes(), f"{form} {dtype} {keywords} at {different}, {rope!r}"
    return f"tables {form}"


def a_place(case: Case, like: Array, form: str) -> tuple[Array, Array]:
    """A place for such an array; pairs have no gaps between them."""
    if form == "pairs":
        view, whole = case.place((*like.shape[:-2], 2 * like.shape[-2]), like.dtype)
        return view.reshape(like.shape), whole
    view, whole = case.place(like.shape, like.dtype)
    if form == "complex" and view.strides[-1] != view.itemsize:
        view = whole = np.full(like.shape, SENTINEL, like.dtype)
    return view, whole


# ---- Rotations


@dataclass
class Rows:
    """Where the rows of a call are; arguments are [rows, L], with coordinates at the end where there are several."""

    kind: str
    positions: Array
    valid: Array
    keywords: dict[str, Any] = field(default_factory=dict)
    is_per_row: bool = False


def some_rows(case: Case, rope: RotaryEmbedding | None, rows: int, length: int, operation: str) -> Rows:
    """Positions, offsets, masks, lengths, packed sequences, or nothing."""
    counted = np.tile(np.arange(length), (rows, 1))
    result = Rows("plain", counted, np.ones((rows, length), bool))
    has_axes = rope is not None and rope.axes is not None
    kinds = ["plain", "offset", "offsets", "positions", "mask", "lengths", "packed"]
    if has_axes or operation == "shift_":
        kinds = ["positions", "positions", "mask", "lengths"]
    result.kind = kind = case.pick(kinds)
    keywords = result.keywords
    if kind in ("offset", "mask", "lengths"):
        offset = 0
        if not has_axes and operation != "shift_" and case.chance(70):
            offset = keywords["offset"] = case.pick([0, 1, -7, 30, 10**6, LARGEST - 1000, LARGEST])
        if kind == "mask":
            is_shared = case.chance(30)
            count = 1 if is_shared else rows
            valid = np.array([[case.chance(70) for _ in range(length)] for _ in range(count)], bool)
            valid = valid.reshape(count, length)
            result.valid = np.tile(valid, (rows // count if count else 1, 1)) if is_shared else valid
            keywords["mask"] = case.laid_out(valid[0] if is_shared else valid)
            result.is_per_row = not is_shared
            counted = np.cumsum(result.valid, axis=1) - result.valid
        elif kind == "lengths":
            lengths = np.array([case.integer(0, length) for _ in range(rows)], np.int64)
            keywords["lengths"] = case.laid_out(lengths)
            result.valid = np.arange(length) < lengths[:, None]
            result.is_per_row = True
        result.positions = counted + offset
    elif kind == "offsets":
        offsets = np.array([case.integer(-50, 10**7) for _ in range(rows)], np.int64)
        keywords["offset"] = case.laid_out(offsets)
        result.positions = counted + offsets[:, None]
        result.is_per_row = True
    elif kind == "packed":
        cuts = sorted(case.integer(0, length) for _ in range(case.integer(0, 4)))
        starts = [0, *cuts, length]
        keywords["cu_seqlens"] = case.laid_out(np.array(starts, case.pick([np.int32, np.int64])))
        firsts = np.zeros(len(starts) - 1, np.int64)
        if case.chance(40):
            firsts = np.array([case.integer(-50, 10**7) for _ in firsts], np.int64)
            keywords["offset"] = case.laid_out(firsts)
        for first, (begin, end) in zip(firsts, itertools.pairwise(starts), strict=True):
            result.positions[:, begin:end] = first + np.arange(end - begin)
    if kind == "positions" or has_axes or operation == "shift_":
        name = "by" if operation == "shift_" else "positions"
        result.positions, keywords[name], is_per_row = given_positions(case, rope, rows, length, operation)
        result.is_per_row = result.is_per_row or is_per_row
    return result


def given_positions(
    case: Case, rope: RotaryEmbedding | None, rows: int, length: int, operation: str
) -> tuple[Array, Any, bool]:
    """Positions of all rows, the argument that gives them, and whether it is per row."""
    coordinates = (max(rope.axes) + 1,) if rope is not None and rope.axes is not None else ()
    shape = (rows, length, *coordinates)

    def some(*lengths: int) -> Array:
        if rope is None:  # rows of given tables
            return np.array([case.integer(0, 300) for _ in range(int(np.prod(lengths)))], np.int64).reshape(lengths)
        return some_positions(case, rope, lengths)

    kinds = ["each", "shared", "shared", "broadcast"]
    if operation == "shift_":
        kinds += ["one", "one", "sequence"]
    kind = case.pick(kinds)
    if kind == "one" and not coordinates:
        by = case.integer(-1000, 1000)
        return np.full(shape, by), by, False
    if kind == "sequence" and length != 1:
        values = some(rows, 1)
        return np.broadcast_to(values, shape), case.laid_out(values), True
    if kind == "each":
        values = some(rows, length)
        return values, case.laid_out(values), True
    values = some(length)
    if kind == "broadcast":
        return np.broadcast_to(values, shape), np.broadcast_to(values, shape), True
    return np.broadcast_to(values, shape), case.laid_out(values), False


@dataclass
class Heads:
    """One array of a call, and the memory that it lies in."""

    array: Array
    whole: Array
    axis: int
    has_batch: bool

    def seen(self, array: Array) -> Array:
        """Such an array as [rows, .., L, D]."""
        moved = np.moveaxis(array, self.axis, -2)
        return moved if self.has_batch else moved[None]


def some_heads(
    case: Case, dtype: np.dtype[Any], rows: int, length: int, width: int, *, ndim: int, axis: int, is_packed: bool
) -> Heads:
    """An array whose sequence is its axis `axis`, in memory of any layout."""
    has_batch = not is_packed and ndim > 2 and not (ndim == 3 and axis == 0)
    heads = tuple(case.integer(0 if case.chance(2) else 1, 4) for _ in range(ndim - 2 - has_batch))
    if heads and case.chance(10):  # enough for several threads
        heads = (*heads[:-1], case.integer(5, 40))
    columns = width + (case.integer(1, 9) if case.chance(30) else 0)
    view, whole = case.place((*((rows,) if has_batch else ()), *heads, length, columns), dtype)
    # Every array of a call has numbers of its own.
    values = (np.arange(view.size) * 37 + case.integer(0, 1000)) % 1009 - 500
    view[...] = (values / 16).astype(dtype).reshape(view.shape)
    if view.size and case.chance(5):
        view[tuple(case.integer(0, each - 1) for each in view.shape)] = case.pick([np.inf, -np.inf, -0.0])
    return Heads(np.moveaxis(view, -2, axis), whole, axis, has_batch)


def rotated(
    seen: Array, rows: Rows, halves: tuple[Array, Array], *, interleaved: bool, backwards: bool, kept: Array
) -> Array:
    """As NumPy rotates [rows, .., L, D]; `halves` are [rows, L, d/2] in the type of the arithmetic."""
    cos, sin = halves
    half = cos.shape[-1]
    pairs = np.arange(half)
    first, second = (2 * pairs, 2 * pairs + 1) if interleaved else (pairs, pairs + half)
    heads = (1,) * (seen.ndim - 3)
    shape = (len(cos), *heads, *cos.shape[1:])
    cos, sin = cos.reshape(shape), (-sin if backwards else sin).reshape(shape)
    x1, x2 = seen[..., first].astype(cos.dtype), seen[..., second].astype(cos.dtype)
    with np.errstate(all="ignore"):
        y1 = (x1 * cos - x2 * sin).astype(seen.dtype)
        y2 = (x2 * cos + x1 * sin).astype(seen.dtype)
    turned = rows.valid.reshape((len(rows.valid), *heads, rows.valid.shape[1], 1)) & ~kept
    result = seen.copy()
    result[..., first] = np.where(turned, y1, seen[..., first])
    result[..., second] = np.where(turned, y2, seen[..., second])
    return result


def same_bits(found: Array, expected: Array) -> bool:
    """Whether all bits are equal but those within a NaN."""
    is_nan = np.isnan(expected)
    if (np.isnan(found) != is_nan).any():
        return False
    zero = found.dtype.type(0)
    return np.where(is_nan, zero, found).tobytes() == np.where(is_nan, zero, expected).tobytes()


def fuzz_rotation(case: Case, rope: RotaryEmbedding) -> str:
    """rotate_(), rotate(), shift_() and the rotation by given tables, of one array or several."""
    operation = case.pick(["rotate_", "rotate_", "rotate", "shift_", "by_tables"])
    dtype = case.pick(DTYPES)
    wide = wide_type(dtype)
    length, batch = case.integer(0, 5) if case.chance(30) else case.size(), case.integer(1, 4)
    count = 1 if operation == "rotate" else case.pick([1, 1, 2, 2, 3])
    ndim = case.integer(2, 5)
    axis = ndim - 2 if case.chance(60) else case.integer(0, ndim - 2)
    rows = some_rows(case, None if operation == "by_tables" else rope, batch, length, operation)
    if rows.is_per_row and (ndim == 2 or (ndim == 3 and axis == 0)):
        ndim, axis = 4, 2
    is_packed = rows.kind == "packed"
    keywords = rows.keywords
    if axis == ndim - 2:
        if case.chance(50):
            keywords["seq_axis"] = -2
    else:
        keywords["seq_axis"] = axis if case.chance(50) else axis - ndim
    counts_from_end = keywords.get("seq_axis", -2) == -2
    arrays = []
    for _ in range(count):
        own_ndim, own_axis = ndim, axis
        if counts_from_end and case.chance(30):
            own_ndim = case.integer(3 if rows.is_per_row else 2, 5)
            own_axis = own_ndim - 2
            if own_ndim == 3 and own_axis == 0:
                own_ndim, own_axis = ndim, axis
        # Without arguments for each row, every array may have a batch of its own.
        own_batch = batch if rows.is_per_row or case.chance(70) else case.integer(1, 3)
        place = {"ndim": own_ndim, "axis": own_axis, "is_packed": is_packed}
        arrays.append(some_heads(case, dtype, own_batch, length, rope.rotary_dim, **place))
    if case.chance(20) and count > 1:
        arrays = slices_of_one(case, arrays)

    interleaved, conjugate, factor = rope.interleaved, rope.conjugate, rope.attention_factor
    is_inverse = False
    tables: tuple[Array, Array] | None = None
    if operation in ("rotate_", "rotate"):
        if case.chance(30):
            is_inverse = keywords["inverse"] = True
            factor = 1.0 / factor
    elif operation == "shift_":
        factor = 1.0
    else:
        table_dtype = case.pick([np.dtype(np.float32), dtype])
        tables = given_tables(case, rope.rotary_dim // 2, table_dtype)
        keywords |= {"cos": tables[0], "sin": tables[1], "interleaved": interleaved, "conjugate": conjugate}
    keywords["num_threads"] = case.integer(1, 4)
    passed = [each.array for each in arrays]
    kept = np.zeros(rope.rotary_dim // 2, bool)
    if tables is None and factor == 1.0:
        kept = rope.frequencies == 0
    values = [each.seen(each.array).copy() for each in arrays]
    before = [each.whole.copy() for each in arrays]

    out, out_whole = arrays[0].array, arrays[0].whole
    if operation == "rotate" and case.chance(70):
        if case.chance(70):
            out, out_whole = case.place(out.shape, dtype)
        keywords["out"] = out
    out_before = out_whole.copy()

    def call() -> Any:
        if operation == "by_tables":
            return fastpe.rotate_(*passed, **keywords)
        return getattr(rope, operation)(*passed, **keywords)

    wanted = rows.positions[rows.valid]
    in_tables = tables is None or bool(((wanted >= 0) & (wanted < len(tables[0]))).all())
    is_empty = all(each.size == 0 for each in passed)
    if is_empty or not is_allowed(wanted) or not in_tables:
        try:
            call()
            assert is_empty or any(0 in each.shape[:-1] for each in passed), f"not refused: {wanted!r}"
        except (ValueError, IndexError):
            for each, was in zip(arrays, before, strict=True):
                assert each.whole.tobytes() == was.tobytes()
            assert out_whole.tobytes() == out_before.tobytes()
        return "rotation refused"

    mask = rows.valid[..., None] if rows.positions.ndim == 3 else rows.valid
    known = np.where(mask, rows.positions, 0)
    if tables is not None:
        halves = tables[0].astype(wide)[known], tables[1].astype(wide)[known]
    else:
        halves = halves_at(rope, known, wide, factor)
    expected = []
    for each in values:
        own = halves if len(each) == len(known) else (halves[0][:1], halves[1][:1])
        own_rows = rows if len(each) == len(known) else Rows(rows.kind, rows.positions[:1], rows.valid[:1])
        backwards = conjugate != is_inverse
        expected.append(rotated(each, own_rows, own, interleaved=interleaved, backwards=backwards, kept=kept))
    result = call()
    what = f"{operation} {rows.kind} {keywords} {[each.shape for each in passed]} {dtype} {rope!r}"
    if operation == "rotate":
        assert "out" not in keywords or result is out
        assert same_bits(arrays[0].seen(result), expected[0]), what
        if result is not arrays[0].array:
            assert arrays[0].whole.tobytes() == before[0].tobytes(), "an input was written"
    else:
        assert (result is passed[0]) if count == 1 else all(a is b for a, b in zip(result, passed, strict=True))
        for each, wanted_bits in zip(arrays, expected, strict=True):
            assert same_bits(each.seen(each.array), wanted_bits), what
    for each in arrays:
        each.array[...] = SENTINEL
    for each in arrays:
        check_only_written(each.array, each.whole)
    if operation == "rotate" and "out" in keywords:
        check_only_written(out, out_whole)
    several = " several" if count > 1 else ""
    return f"{operation} {rows.kind}{several}"


def slices_of_one(case: Case, arrays: list[Heads]) -> list[Heads]:
    """The same arrays as slices of one buffer's columns, if their other axes are alike."""
    if len({each.array.shape[:-1] for each in arrays}) > 1:
        return arrays
    widths = [each.array.shape[-1] for each in arrays]
    view, whole = case.place((*arrays[0].array.shape[:-1], sum(widths)), arrays[0].array.dtype)
    result, begin = [], 0
    for each, width in zip(arrays, widths, strict=True):
        part = view[..., begin : begin + width]
        part[...] = each.array
        begin += width
        result.append(Heads(part, whole, each.axis, each.has_batch))
    return result


def given_tables(case: Case, pairs: int, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Cosines and sines that are given: any numbers, with gaps between rows or without."""
    tables = []
    for _ in range(2):
        whole = np.full((301, pairs + case.integer(0, 3)), SENTINEL, dtype)
        table = whole[:, :pairs]
        numbers = (np.arange(table.size) * 41 + case.integer(0, 500)) % 1013 - 500
        table[...] = (numbers / 32).astype(dtype).reshape(table.shape)
        tables.append(table)
    return tables[0], tables[1]


def fuzz_threads(case: Case, rope: RotaryEmbedding) -> str:
    """tables() of so many rows that several threads make them, beside those that one thread makes."""
    form = case.pick([*FORMS, "angles"])
    dtype = case.pick(DTYPES[:2] if form in ("complex", "angles") else DTYPES)
    rows = case.rows_for_threads(rope.rotary_dim // 2 * dtype.itemsize)
    keywords: dict[str, Any] = {"form": form, "dtype": dtype}
    if rope.axes is None and case.chance(50):
        argument: Any = rows
        keywords["offset"] = case.integer(-400, 10**6)
    else:
        few = some_positions(case, rope, (case.integer(1, 300),))
        argument = np.resize(few, (rows, *few.shape[1:]))
        if not is_allowed(few):
            return "tables refused"
    one, several = (rope.tables(argument, num_threads=threads, **keywords) for threads in (1, case.integer(2, 4)))
    pairs = zip(one, several, strict=True) if isinstance(one, tuple) else [(one, several)]
    for wanted, found in pairs:
        assert found.tobytes() == wanted.tobytes(), f"threads: {form} {dtype} {rows} rows, {rope!r}"
    return f"threads: tables {form}"


def run_case(case: Case) -> str:
    """Make one call of a rotary embedding; return what it was."""
    try:
        rope = a_rotary_embedding(case)
    except ValueError:
        return "rotary embedding refused"
    keep_some_rows(case, rope)
    if case.chance(2):
        return fuzz_threads(case, rope)
    return cast(str, case.pick([fuzz_tables, fuzz_rotation, fuzz_rotation])(case, rope))
