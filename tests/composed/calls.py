# SPDX-License-Identifier: BSD-3-Clause
"""Draws calls as users write them, and says what each has to do."""

from __future__ import annotations

import itertools
import math
import pathlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import fastpe

from ..c_library import shared_library as c_library
from ..oracles.model import added, in_form, rotated, wide_type
from ..oracles.reference import DTYPES, Array
from .model import KNOBS, LARGEST, Encoding, Rotary, are_allowed, cosines_and_sines, encoded, positions_of

TABLE_ROWS = 40
FORMS = ("halves", "tile", "repeat", "cos_sin", "sin_cos", "pairs", "matrices")
MAX_LENS = (8, None, 0, 40, 300, 600)


def _limits() -> list[int]:
    """How many rows are done at once, somewhere: the small constants of the core's source, where it is there; and its blocks."""
    files = (pathlib.Path(__file__).parents[2] / "csrc" / "fastpe").rglob("*.[chi]*")
    constants = re.findall(r"constexpr std::int64_t \w+ = (\d+);", "".join(file.read_text() for file in files))
    return sorted({31, 62, 256, *(number for number in map(int, constants) if 8 <= number <= 512)})


LIMITS = _limits()


class Place:
    """An array somewhere in memory that has other bytes around and between its elements."""

    def __init__(self, memory: Array, array: Array, axis: int | None = None) -> None:
        self.memory = memory
        self.array = array
        self.rows_last = array if axis is None else np.moveaxis(array, axis, -2)  # [.., L, C]

    def after(self, values: Array) -> bytes:
        """The memory once the array has these values, [.., L, C]."""
        before = self.memory.copy()
        self.rows_last[...] = values.reshape(self.rows_last.shape)
        result = self.memory.tobytes()
        self.memory[...] = before
        return result


class Draw:
    """Choices, each made by drawing an integer; the simplest is the lowest."""

    def __init__(self, integer: Callable[[int, int], int]) -> None:
        self.integer = integer
        self.order = "contiguous"

    def pick(self, options: Any) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent

    def place(
        self, shape: tuple[int, ...], dtype: Any, *, axis: int | None = None, aligned: bool = True, plain: bool = False
    ) -> Place:
        """Contiguous; columns first; heads inside of the sequence; or transposed, reversed, with gaps and, unless `aligned`, between the addresses of its dtype.

        `axis` is where the last axis but one goes.
        """
        dtype, order, steps, gap, lines = np.dtype(dtype), [*range(len(shape))], [1] * len(shape), 0, 1
        kind = (
            "contiguous"
            if plain
            else self.pick(["contiguous", "contiguous", "columns", "columns", "inside", "any", "any", self.order])
        )
        self.order = kind  # arrays of one call often have the same
        if kind == "columns":
            order[-2:] = order[:-3:-1]
            lines = self.pick([1, 1, 1024 if math.prod(shape) < 2**15 else 1])
        elif kind == "inside":  # heads inside of the sequence
            order = [*order[:1], *order[-2:-1], *order[1:-2], *order[-1:]] if len(shape) > 2 else order
        elif kind == "any":
            order = self.pick([*itertools.permutations(order)]) if len(shape) < 5 else order
            steps = [self.pick([1, 1, -1, 2, -3]) for _ in shape]
        gap = 0 if kind == "contiguous" else self.pick([0, 1, 3])
        strides, bytes_in = [0] * len(shape), dtype.itemsize
        for each in reversed(order):
            strides[each] = bytes_in * steps[each]
            bytes_in *= max(shape[each], 1) * abs(steps[each])
            bytes_in += gap * dtype.itemsize
            if each == order[-1]:
                bytes_in = -(-bytes_in // lines) * lines
        start = 64 - sum(min(stride, 0) * max(length - 1, 0) for stride, length in zip(strides, shape, strict=True))
        start += 0 if aligned or self.chance(70) else 1
        memory = (np.arange(start + bytes_in + 64) * 37 % 251).astype(np.uint8)
        array: Array = np.ndarray(shape, dtype, memory, start, strides)
        return Place(memory, array if axis is None else np.moveaxis(array, -2, axis), axis)

    def argument(self, values: Array) -> Array:
        """The same values, in memory of any order."""
        if values.ndim == 0 or self.chance(50):
            return values
        array = self.place(values.shape, values.dtype, aligned=False).array
        array[...] = values
        return array

    def extent(self, batches: Any = (2, 1, 3, 0)) -> tuple[Any, int]:
        """How many sequences and rows: few, many rows of few sequences, or few rows of many sequences."""
        batch, length, kind = self.pick(batches), self.integer(0, 9), self.integer(0, 99)
        if kind >= 90 and batch:
            return self.pick(LIMITS) + self.pick([0, 1, -1, 7]), self.pick([1, 1, 2, 3])
        return batch, self.pick(LIMITS) + self.pick([0, 1, -1, 7]) if kind >= 70 else length

    def width(self) -> int:
        return self.pick([16, 33, 64]) if self.chance(20) else self.integer(1, 9)


@dataclass
class Rows:
    """Where the rows of a call are: what is passed, and what it means."""

    keywords: dict[str, Any]
    positions: Array  # of objects [batch, L], None where a row is not valid

    @property
    def valid(self) -> Array:
        return np.array([each is not None for each in self.positions.ravel()], bool).reshape(self.positions.shape)

    @property
    def indices(self) -> Array:
        """Positions as rows of a table."""
        return np.array([int(position or 0) for position in self.positions.ravel()], int).reshape(self.positions.shape)


def draw_valid(draw: Draw, length: int) -> list[bool]:
    """Padding on the left or on the right, holes, none, or nothing else."""
    kind, count = draw.pick(["left", "left", "right", "right", "holes", "none", "all"]), draw.integer(0, length)
    if kind == "holes":
        return [draw.chance(70) for _ in range(length)]
    return [{"left": row >= count, "right": row < count}.get(kind, kind == "none") for row in range(length)]


def draw_positions(draw: Draw, valid: list[bool], near: int, in_table: bool) -> list[Any]:
    """Numbers, one for each row, whether it counts or not. Something ends before `near`."""
    length = len(valid)
    kind = draw.pick(["run", "run", "run", "running sum", "running sum", "repeated", "gaps", "random", "fractions"])
    if kind == "running sum":
        return (np.cumsum(valid) - 1).tolist()  # type: ignore[no-any-return]
    if kind == "run":  # the first or last row that counts is where something ends
        lowest, highest = (-LARGEST, LARGEST) if draw.chance(30) and not in_table else (0, near - 1)
        step, is_lowest = draw.pick([1, -1]), draw.chance(50)
        counted = [row for row in range(length) if valid[row]] or [0]
        at = counted[0 if is_lowest == (step == 1) else -1]
        edge = (lowest if is_lowest else highest) + draw.pick([0, 0, 0, 1, -1])
        return [edge + step * (row - at) for row in range(length)]
    start = draw.pick([0, draw.integer(-8, near + 8), 1_000_013])
    if kind == "gaps":
        return [start + step for step in itertools.accumulate(draw.pick([1, 1, 0, 9]) for _ in range(length))]
    if kind == "random":
        return [draw.integer(0, TABLE_ROWS - 1) for _ in range(length)]
    if kind == "fractions" and not in_table:
        return [start + row * draw.pick([0.5, 0.1, 1.0]) for row in range(length)]
    return [start + row // 3 for row in range(length)]


def draw_rows(
    draw: Draw, batch: int, length: int, *, near: int, first: int = 0, name: str = "positions", coordinates: int = 0,
    in_table: bool = False, is_packed: bool = False, can_have_validity: bool = True, has_batch: bool = True, can_share: bool = True,
    can_be_placed: bool = True,
) -> Rows:  # fmt: skip
    """`near` is a position near which something ends: the rows that are kept, or the given table."""
    if is_packed:
        starts = sorted([0, length, *(draw.integer(0, length) for _ in range(draw.integer(0, 3)))])
        offsets = [draw.pick([0, 3, near - length]) for _ in starts[1:]] if draw.chance(50) else None
        given = {"cu_seqlens": draw.argument(np.array(starts, draw.pick([np.int64, np.int32])))}
        given |= {} if offsets is None else {"offset": draw.argument(np.array(offsets, np.int64))}
        return Rows(given, positions_of(1, length, first=first, offsets=offsets, starts=starts))

    def for_each(values_of: Callable[[int], list[Any]], shared: bool) -> list[list[Any]]:
        return [values_of(0)] * batch if shared else [values_of(b) for b in range(batch)]

    def as_argument(values: list[list[Any]], shared: bool, dtype: Any, *last: int) -> Array:
        array = np.array(values, dtype).reshape(batch, length, *last)
        options = [array[0]] if not has_batch else [array[0], array[:1], array] if shared else [array]
        return draw.argument(draw.pick(options))

    keywords: dict[str, Any] = {}
    meaning: dict[str, Any] = {}
    validity = draw.pick(["none", "valid", "valid", "lengths"]) if can_have_validity else "none"
    valid = [[True] * length] * batch
    if validity == "valid":
        is_shared = batch == 1 or (batch > 1 and draw.chance(50))
        meaning["valid"] = valid = for_each(lambda _: draw_valid(draw, length), is_shared)
        keywords["valid"] = as_argument(valid, is_shared, draw.pick([bool, np.int64, np.uint8, np.uint16, ">i4"]))
    elif validity == "lengths":
        equal = draw.integer(0, length)
        meaning["lengths"] = [equal] * batch if draw.chance(50) else [draw.integer(0, length) for _ in range(batch)]
        lengths = np.array(meaning["lengths"], draw.pick([np.int64, np.int32]))
        keywords["lengths"] = draw.argument(lengths[:, None] if draw.chance(30) else lengths)
        valid = [[row < each for row in range(length)] for each in meaning["lengths"]]
    where = draw.pick(["counted", "positions", "positions", "positions", "offset", "offsets"])
    where = "positions" if coordinates or name == "by" else where if can_be_placed else "counted"
    if where == "positions":
        is_shared = batch == 1 or (batch > 1 and draw.chance(70))

        def one(b: int) -> list[Any]:
            each = [draw_positions(draw, valid[b], near, in_table) for _ in range(coordinates or 1)]
            return [*zip(*each, strict=True)] if coordinates else each[0]

        values = for_each(one, is_shared)
        fill = draw.pick([None, None, None, None, -1, 2**62, math.nan, LARGEST + 1])
        if fill is not None:  # where no sequence that has these positions has a valid row
            needed = [[any(column) for column in zip(*valid, strict=True)]] * batch if is_shared else valid
            garbage = (fill,) * coordinates if coordinates else fill
            values = [
                [value if is_needed else garbage for value, is_needed in zip(*each, strict=True)]
                for each in zip(values, needed, strict=True)
            ]
        flat = np.array(values).ravel()
        dtypes = [np.float64] if flat.dtype.kind == "f" else [np.int64, np.int64, np.float64]
        if flat.size and flat.dtype.kind != "f" and np.abs(flat).max() < 2**24:
            dtypes += [np.int32, np.float32]
        array = as_argument(values, is_shared and can_share, draw.pick(dtypes), *[coordinates] * bool(coordinates))
        keywords[name] = array
        whole = np.broadcast_to(array, (batch, length, *array.shape[array.ndim - bool(coordinates) :])).tolist()
        meaning["positions"] = [[tuple(each) for each in row] for row in whole] if coordinates else whole
    elif where == "offset":
        offset = draw.pick([near - length, 0, 1, -7, 10**6, LARGEST - length, LARGEST])
        keywords["offset"], meaning["offsets"] = offset, [offset] * batch
    elif where == "offsets":
        meaning["offsets"] = [draw.pick([0, near - length, near - 1, 5, -3, 10**6]) for _ in range(batch)]
        each = np.array(meaning["offsets"], np.int64)
        keywords["offset"] = draw.argument(each[:, None] if draw.chance(30) else each)
    return Rows(keywords, positions_of(batch, length, first=first, **meaning))


@dataclass
class Call:
    """One call, which any encoder of its source can do."""

    what: Callable[[], str]
    source: Encoding | Rotary
    dtype: np.dtype[Any]  # that rows are kept in
    run: Callable[[Any, int], Any]  # with an encoder and a number of threads
    expected: Callable[[], list[Array]]  # results, [batch, .., L, C]
    written: list[Place]  # in place, or `out`
    rows: Rows
    table_rows: int | None = None
    read: tuple[Array, ...] = ()
    axis: int = -2  # of the sequence
    run_in_c: Callable[[Any, int], Any] | None = None  # the same by the C library, with its handle
    max_len: int | None = None

    @property
    def is_allowed(self) -> bool:
        return are_allowed(self.rows.positions, self.table_rows)

    @property
    def is_large(self) -> bool:
        """Whether a second thread may take part."""
        return sum(place.memory.size for place in self.written) >= 2**19

    @property
    def is_empty(self) -> bool:
        """Whether it may not have looked at positions."""
        return any(place.array.size == 0 for place in self.written) or 0 in self.rows.valid.shape


def for_c(keywords: dict[str, Any]) -> dict[str, Any]:
    """The same rows as the C library takes them."""
    result = dict(keywords)
    for name, value in keywords.items():
        if isinstance(value, np.ndarray):
            del result[name]
            aligned = np.require(value, bool if name == "valid" else None, "A")
            result["offsets" if name == "offset" else name] = aligned
    return result


def told(given: dict[str, Any]) -> str:
    """Arguments, but arrays of floats that say nothing about rows."""
    hidden = ("cos", "sin", "out", "table", "position_table")
    return ", ".join(f"{name}={value!r}" for name, value in given.items() if name not in hidden)


def numbers(shape: tuple[int, ...], dtype: Any) -> Array:
    return ((np.arange(math.prod(shape)) * 37 % 1009 - 500) / 16).astype(dtype).reshape(shape)


def draw_array(draw: Draw, shape: tuple[int, ...], dtype: Any, valid: Array, axis: int, has_batch: bool) -> Place:
    """An array whose rows that are not valid have any bytes; `shape` is [.., L, C]."""
    place = draw.place(shape, dtype, axis=axis)
    counts = valid.reshape(len(valid), *(1,) * (len(shape) - 3), valid.shape[1], 1) if has_batch else valid[0][:, None]
    np.copyto(place.rows_last, numbers(shape, dtype), where=np.broadcast_to(counts, shape))
    return place


def draw_encoding(draw: Draw) -> tuple[Encoding, int | None, int]:
    """An encoding, its max_len, and a position near which something may end."""
    d_model, max_len = draw.width(), draw.pick(MAX_LENS)
    source = Encoding(d_model, draw.pick([*KNOBS][: 2 if d_model < 4 else None]))
    if d_model < 7 and draw.chance(20):
        source = Encoding(d_model, frequencies=(1.0, -0.3, 1e-9)[: (d_model + 1) // 2])
    return source, max_len, max_len or 20


def draw_encode(draw: Draw) -> Call:
    (source, max_len, near), dtype = draw_encoding(draw), draw.pick(DTYPES)
    batch, length = draw.extent([None, 2, 1, 3])
    rows = draw_rows(
        draw, batch or 1, length, near=near, first=source.first_position, has_batch=batch is not None, can_share=False
    )  # fmt: skip
    given = dict(rows.keywords)
    argument = given.pop("positions", length)
    if isinstance(argument, int):  # arrays say how many sequences there are
        sequences = [len(given[name]) for name in ("offset", "lengths") if np.ndim(given.get(name, 0))]
        leading = (*sequences, *np.shape(given.get("valid", 0))[:-1])[:1]
    else:
        leading = argument.shape[:-1]
    rows.positions = rows.positions[: leading[0] if leading else 1]
    out = draw.place((*leading, length, source.d_model), dtype)
    has_out = draw.chance(70)

    def expected() -> list[Array]:
        pe = encoded(source, rows.positions, dtype)
        return [np.where(rows.valid[..., None], pe, np.zeros((), dtype))]

    return Call(
        lambda: f"encode({argument!r}, dtype={dtype}, {told(given)})", source, dtype,
        lambda encoder, threads: encoder.encode(
            argument, dtype=dtype, num_threads=threads, **given, out=out.array if has_out else None
        ),
        expected, [out] if has_out else [], rows, max_len=max_len,
        run_in_c=lambda handle, threads: handle.encode(out.array, threads=threads, **for_c(rows.keywords)),
    )  # fmt: skip


def draw_shape(draw: Draw, ndim: int, width: int) -> tuple[int, ...]:
    """[B, heads .., L, C]; now and then large enough for two threads."""
    batch, length = draw.extent()
    heads = [draw.pick([2, 1, 3]) for _ in range(ndim - 3)]
    if heads and draw.chance(8):
        heads[-1] = 1 + 2**18 // max(length * width * max(batch, 1), 2**9)
    return (*([batch] if ndim > 2 else []), *heads, length, width)


def draw_sum(draw: Draw) -> Call:
    """add_, add and embed, with sinusoids or a given table."""
    (source, max_len, near), dtype, name = draw_encoding(draw), draw.pick(DTYPES), draw.pick(["add_", "add", "embed"])
    ndim, in_table = draw.pick([3, 2, 4]), draw.chance(25)
    axis = -2 if name == "embed" or draw.chance(60) else draw.integer(-ndim, -2)
    shape = draw_shape(draw, ndim, source.d_model)
    batch = shape[0] if ndim > 2 else 1
    rows = draw_rows(
        draw, batch, shape[-2], near=TABLE_ROWS if in_table else near, first=source.first_position, in_table=in_table,
        is_packed=ndim == 2 and draw.chance(30), has_batch=ndim > 2,
    )  # fmt: skip
    table = numbers((TABLE_ROWS, source.d_model), dtype) if in_table else None
    factors = {"scale": draw.pick([0.5, 27.7128]), "alpha": draw.pick([1.0, -0.3])} if draw.chance(50) else {}
    given: dict[str, Any] = {**rows.keywords, **factors}
    x = draw_array(draw, shape, dtype, rows.valid, axis, ndim > 2)
    values, written = x.rows_last.copy(), [x]
    if name != "add_":
        out = draw.place(shape, dtype, axis=axis)
        written = [out] if draw.chance(70) else []
        given["out"] = out.array if written else None
    if name == "embed":
        vocabulary = numbers((14, source.d_model), dtype)[:: draw.pick([1, 2, -1])][:7]
        ids = draw.argument(np.arange(math.prod(shape[:-1])).reshape(shape[:-1]) * 5 % 7)
        values, given["position_table"] = vocabulary[ids], table
        arguments = [ids, vocabulary]
    else:
        arguments = [x.array]
        given |= {"table": table, "seq_axis": axis}

    def expected() -> list[Array]:
        pe = encoded(source, rows.positions, wide_type(dtype)) if table is None else table[rows.indices]
        return [added(values if ndim > 2 else values[None], pe, rows.valid, **factors)]

    def in_c(handle: Any, threads: int) -> None:
        out, options = written[0].array if name == "add" else None, {"seq_axis": axis, "threads": threads, **factors}
        if table is not None:
            c_library.add_table(handle.shared_library, table, x.array, out, **options, **for_c(rows.keywords))
        else:
            handle.add(x.array, out, **options, **for_c(rows.keywords))

    return Call(
        lambda: f"{name}({shape}, dtype={dtype}, {told(given)})", source, wide_type(dtype),
        lambda encoder, threads: getattr(encoder, name)(*arguments, num_threads=threads, **given),
        expected, written, rows, TABLE_ROWS if in_table else None, (*(arguments if name != "add_" else []),), axis,
        None if name == "embed" or not written or (in_table and source.first_position) else in_c, max_len,
    )  # fmt: skip


def draw_rotary(draw: Draw, can_have_axes: bool) -> tuple[Rotary, int | None, int]:
    half, max_len = (draw.width() + 1) // 2, draw.pick(MAX_LENS)
    axes = tuple(draw.integer(0, 2) for _ in range(half)) if can_have_axes and draw.chance(20) else None
    # Pairs of frequency 0 keep their bits where the factor is 1.
    given = tuple(draw.pick([0.0, 0.0, 1.0, -0.3, 1e-9]) for _ in range(half)) if draw.chance(20) else None
    factor = draw.pick([1.0, 1.1386, 0.5])
    source = Rotary(2 * half, draw.chance(50), draw.chance(20), factor, axes, frequencies=given)
    return source, max_len, max_len or 20


def draw_tables(draw: Draw) -> Call:
    (source, max_len, near), dtype, form = draw_rotary(draw, True), draw.pick(DTYPES), draw.pick(FORMS)
    batch, length = draw.extent([None, 2, 3])
    rows = draw_rows(
        draw, batch or 1, length, near=near, coordinates=source.coordinate_count, has_batch=batch is not None, can_share=False,
        can_have_validity=False,
    )  # fmt: skip
    given = dict(rows.keywords)
    argument = given.pop("positions", length)
    leading = np.shape(given.get("offset", 0))[:1]
    if isinstance(argument, np.ndarray):
        leading = () if batch is None else (batch,)
    rows.positions = rows.positions[: leading[0] if leading else 1]

    def expected() -> list[Array]:
        return [*in_form(form, *cosines_and_sines(source, rows.positions, dtype))]

    def in_c(handle: Any, threads: int) -> Any:
        return handle.tables(form, *(each.array for each in outs), threads=threads, **for_c(rows.keywords))

    half = np.empty((*leading, length, source.rotary_dim // 2), dtype)
    outs = [draw.place(each.shape, dtype, plain=form in ("pairs", "matrices")) for each in in_form(form, half, half)]
    has_out = draw.chance(70)
    out: Any = (tuple(each.array for each in outs) if len(outs) > 1 else outs[0].array) if has_out else None
    return Call(
        lambda: f"tables({argument!r}, form={form}, dtype={dtype}, {told(given)})", source, dtype,
        lambda rope, threads: rope.tables(argument, form=form, dtype=dtype, num_threads=threads, out=out, **given),
        expected, outs if has_out else [], rows, max_len=max_len,
        run_in_c=in_c,
    )  # fmt: skip


def draw_rotation(draw: Draw) -> Call:
    """rotate_, rotate, shift_ and the rotation by given tables, of one array or several."""
    name = draw.pick(["rotate_", "rotate", "shift_", "rotate_by_tables_"])
    (source, max_len, near), dtype = draw_rotary(draw, name != "rotate_by_tables_"), draw.pick(DTYPES)
    in_table = name == "rotate_by_tables_"
    has_table_rows = in_table and draw.chance(30)  # tables [B, L, pairs]
    is_packed = source.coordinates is None and name != "shift_" and not has_table_rows and draw.chance(15)
    ndim = draw.pick([4, 3, 2])
    has_batch = ndim > 2 and not is_packed
    axis = -ndim if is_packed else draw.integer(-ndim + (ndim == 3), -2)
    width = source.rotary_dim + (0 if in_table else draw.pick([0, 0, 3]))
    source = source._replace(head_dim=width)
    first = draw_shape(draw, ndim, width)
    batch, length = first[0] if has_batch else 1, first[-2]
    rows = draw_rows(
        draw, batch, length, near=TABLE_ROWS if in_table else near, name="by" if name == "shift_" else "positions",
        coordinates=source.coordinate_count, in_table=in_table, is_packed=is_packed, has_batch=has_batch,
        can_be_placed=not has_table_rows,
    )  # fmt: skip
    other = (*first[:has_batch], *[2] * (ndim - 2 - has_batch), length, width)  # with other heads
    shapes = [first, *[other] * draw.integer(0, 0 if name == "rotate" else 2)]
    arrays = [draw_array(draw, shape, dtype, rows.valid, axis, has_batch) for shape in shapes]
    given = {**rows.keywords, "seq_axis": axis}
    factor, inverse, tables = source.attention_factor, source.conjugate, None
    if in_table:
        half, table_dtype = source.rotary_dim // 2, draw.pick([np.dtype(np.float32), dtype])
        leading = (draw.pick([1, batch]), length) if has_table_rows else (TABLE_ROWS,)
        gap = draw.pick([0, 3])
        tables = numbers((2, *leading[:-1], leading[-1] + gap, half), table_dtype)[..., : leading[-1], :]
        given |= {"interleaved": source.interleaved, "inverse": inverse, "cos": tables[0], "sin": tables[1]}
    elif name == "shift_":
        factor = 1.0
    elif draw.chance(30):
        given["inverse"], inverse, factor = True, not inverse, 1.0 / factor
    outs = arrays
    if name == "rotate":
        outs = [draw.place(first, dtype, axis=axis)] if draw.chance(70) else []
        given["out"] = outs[0].array if outs else None
    values = [each.rows_last.copy() for each in arrays]

    def expected() -> list[Array]:
        if tables is None:
            turns = cosines_and_sines(source._replace(attention_factor=factor), rows.positions, wide_type(dtype))
        elif has_table_rows:
            cosines, sines = np.broadcast_to(tables, (2, batch, length, tables.shape[-1]))
            turns = cosines, sines
        else:
            turns = tables[0][rows.indices], tables[1][rows.indices]
        options = {"interleaved": source.interleaved, "inverse": inverse}
        return [rotated(x if has_batch else x[None], turns, rows.valid, **options) for x in values]

    def run(rope: Any, threads: int) -> Any:
        function = fastpe.rotate_by_tables_ if in_table else getattr(rope, name)
        return function(*(each.array for each in arrays), num_threads=threads, **given)

    def in_c(handle: Any, threads: int) -> None:
        options = {"seq_axis": axis, "threads": threads, **for_c(rows.keywords)}
        if name == "rotate":
            options["out"] = [each.array for each in outs]
        x = [each.array for each in arrays]
        if name == "shift_":
            handle.shift(*x, **options)
        elif in_table:
            options |= {"interleaved": source.interleaved, "cos": given["cos"], "sin": given["sin"]}
            c_library.rotate_by_tables(handle.shared_library, *x, inverse=int(inverse), **options)
        else:
            handle.rotate(*x, inverse=int(given.get("inverse", False)), **options)

    is_in_c = bool(outs) and (in_table or not source.conjugate)
    return Call(
        lambda: f"{name}({shapes}, dtype={dtype}, {told(given)})", source, wide_type(dtype), run, expected, outs, rows,
        TABLE_ROWS if in_table and not has_table_rows else None, tuple(each.array for each in arrays if name == "rotate"), axis,
        in_c if is_in_c else None, max_len,
    )  # fmt: skip


DRAWS = {"encode": draw_encode, "sums": draw_sum, "tables": draw_tables, "rotations": draw_rotation}
