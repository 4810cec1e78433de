# SPDX-License-Identifier: BSD-3-Clause
"""Random calls, checked bit for bit against a model in NumPy, on every instruction set.

python fuzz.py --seconds 600 --seed 1     a failing case prints its number, and --only NUMBER repeats it

The model adds or rotates by rows of one position each, which the baseline computes without kept rows; whether those are exact
is for the tests. Arrays lie in larger ones, whose other elements must not change; refused calls change nothing.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import pathlib
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

import fastpe
from fastpe import PositionalEncoding, RotaryEmbedding, _core

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from tests.oracles.model import added, in_form, rotated, same_bits, wide_type

Array = npt.NDArray[Any]

DTYPES: list[np.dtype[Any]] = [np.dtype(t) for t in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)]
FORMS = ("halves", "tile", "repeat", "cos_sin", "sin_cos", "pairs")
LARGEST = 2**53
GUARD = 3.5
TABLE_ROWS = 301


class Case:
    """One call in the making."""

    def __init__(self, seed: str) -> None:
        self.integer = random.Random(seed).randint

    def pick(self, options: Any) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.integer(1, 100) <= percent

    def size(self) -> int:
        """A small size, now and then none or a larger one."""
        if self.chance(15):
            return self.integer(0, 3)
        return self.integer(1, 70) if self.chance(80) else self.integer(71, 700)

    def position(self) -> Any:
        """A position, now and then one that is refused."""
        if self.chance(60):
            return self.integer(-100, 300)
        usual = [self.integer(-LARGEST, LARGEST), self.integer(-(10**6), 10**6) + self.integer(0, 63) / 64]
        odd = [0.1, -0.0, 1e-300, 5e-324, 2.0**52 + 0.5, float(LARGEST), LARGEST, -LARGEST]
        refused = [LARGEST + 1, -(2**63), 2**63 - 1, float("nan"), float("inf"), -1e300]
        return self.pick(usual if self.chance(75) else odd if self.chance(80) else refused)

    def positions(self, *shape: int) -> Array:
        """Integers in runs, or anything."""
        count = int(np.prod(shape))
        if self.chance(50):
            values = np.arange(count) + self.integer(-200, 10**6)
            for _ in range(self.integer(0, 2)):
                values[self.integer(0, count) :] += self.integer(-5, 500)
            return values.astype(self.pick([np.int64, np.int64, np.int32, np.float64])).reshape(shape)
        listed = [self.position() for _ in range(count)]
        return np.array(listed, np.int64 if all(isinstance(each, int) for each in listed) else float).reshape(shape)

    def integers(self, low: int, high: int, *shape: int) -> Array:
        return np.array([self.integer(low, high) for _ in range(int(np.prod(shape)))], np.int64).reshape(shape)

    def place(self, shape: tuple[int, ...], dtype: Any) -> tuple[Array, Array]:
        """An array of that shape within a larger one, with any strides, and the larger one."""
        order = [*range(len(shape))]
        if self.chance(30):
            order.sort(key=lambda _: self.integer(0, 100))
        starts = [self.integer(0, 3) if self.chance(30) else 0 for _ in shape]
        steps = [self.pick([2, -1, -3]) if self.chance(15) else 1 for _ in shape]
        ends = [start + length * abs(step) for start, length, step in zip(starts, shape, steps, strict=True)]
        whole = np.full([ends[axis] + (self.integer(0, 3) if self.chance(30) else 0) for axis in order], GUARD, dtype)
        view = whole.transpose(np.argsort(order))
        for axis, (start, end, step) in enumerate(zip(starts, ends, steps, strict=True)):
            view = np.moveaxis(np.moveaxis(view, axis, 0)[start : end : abs(step)][:: 1 if step > 0 else -1], 0, axis)
        return view, whole

    def laid_out(self, values: Array) -> Array:
        """The same values, with any strides."""
        if values.ndim == 0 or self.chance(50):
            return values
        view, _ = self.place(values.shape, values.dtype)
        view[...] = values
        return view

    def numbers(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Embeddings, other ones for each array, now and then with one that is extreme."""
        values = ((np.arange(np.prod(shape)) * 37 + self.integer(0, 1000)) % 1009 - 500) / 16
        if values.size and self.chance(5):
            values[self.integer(0, values.size - 1)] = self.pick([np.inf, -np.inf, -0.0])
        return values.astype(dtype).reshape(shape)


def check(
    call: Callable[[], Any], what: str, expected: Callable[[], Sequence[Array]], outs: Sequence[tuple[Array, Array]],
    *inputs: Array, is_allowed: bool, is_empty: bool = False,
) -> str:  # fmt: skip
    """The call gives what is expected in each of `outs` and changes nothing beside; or it is refused and changes nothing."""
    memories = [*inputs, *(whole for _, whole in outs)]
    before = [memory.tobytes() for memory in memories]
    if is_empty or not is_allowed:
        try:
            call()
        except (ValueError, IndexError):
            assert [memory.tobytes() for memory in memories] == before, f"a refused call wrote something: {what}"
        else:
            assert is_empty, f"not refused: {what}"
        return "refused"
    active = _core.config()["instruction_set"]
    _core.use_instruction_set("baseline")
    wanted = expected()
    _core.use_instruction_set(active)
    result = call()
    results = [*result] if isinstance(result, tuple) else [result]
    assert [id(each) for each in results] == [id(out) for out, _ in outs], what
    for found, expected_one in zip(results, wanted, strict=True):
        assert same_bits(found, expected_one), what
    assert [memory.tobytes() for memory in inputs] == before[: len(inputs)], f"an input was written: {what}"
    for out, _ in outs:
        out[...] = GUARD
    assert all((whole == whole.dtype.type(GUARD)).all() for _, whole in outs), f"more than out was written: {what}"
    return what.partition(" (")[0]


# ---- Encodings and rotary embeddings, and their rows


def an_encoding(case: Case) -> PositionalEncoding:
    d_model, max_len = max(case.size(), 1), case.pick([0, 0, 1, 40, 200])
    if case.chance(10):
        freqs = [case.pick([0.0, 1.0, -0.3, 1e-9, 1e6]) for _ in range((d_model + 1) // 2)]
        return PositionalEncoding(d_model, max_len=max_len, frequencies=freqs)
    return PositionalEncoding(d_model, max_len=max_len, convention=case.pick([*fastpe.conventions]))


def a_rotary_embedding(case: Case) -> RotaryEmbedding:
    pairs = max(case.size() // (1 if case.chance(20) else 3), 1)
    keywords = {"interleaved": case.chance(50), "conjugate": case.chance(20), "form": case.pick(FORMS)}
    if case.chance(20):
        keywords["frequencies"] = [case.pick([0.0, 0.0, 1.0, -0.3, 1e-9, 1e6]) for _ in range(pairs)]
    if case.chance(30):
        keywords["attention_factor"] = case.pick([1.0, 0.5, 1.3465735902799727, 3.0, 1e-3])
    if case.chance(25):
        count, in_runs = case.integer(1, 4), case.chance(50)
        keywords["frequency_axes"] = [
            k * count // pairs if in_runs else case.integer(0, count - 1) for k in range(pairs)
        ]
    rope = RotaryEmbedding(2 * pairs, max_len=case.pick([0, 0, 1, 40, 200]), **keywords)
    for _ in range(case.integer(0, 2) if rope.frequency_axes is None else 0):  # leaves some rows kept
        rope.tables(case.integer(0, 60), offset=case.integer(-50, 220), dtype=case.pick([np.float32, np.float64]))
    return rope


def coordinates_of(source: Any) -> tuple[int, ...]:
    """What positions have as a last axis."""
    axes = getattr(source, "frequency_axes", None)
    return () if axes is None else (max(axes) + 1,)


def rows_at(source: PositionalEncoding, positions: Array, dtype: np.dtype[Any]) -> Array:
    """PE of positions, each in a call of its own."""
    plain = PositionalEncoding(
        source.d_model, convention=source.convention, frequencies=source._given or None, max_len=0
    )
    rows = np.zeros((positions.size, source.d_model), dtype)
    for row, position in zip(rows, positions.ravel(), strict=True):
        plain.encode(np.asarray([position]), out=row[None])
    return rows.reshape((*positions.shape, source.d_model))


def halves_at(rope: RotaryEmbedding, positions: Array, dtype: np.dtype[Any], factor: float) -> tuple[Array, Array]:
    """Cosines and sines, [.., d/2] each, of each coordinate in a call of its own; with axes, one has [.., coordinates]."""
    plain = RotaryEmbedding(**{**rope._arguments, "frequency_axes": None, "max_len": 0, "attention_factor": factor})
    half = rope.rotary_dim // 2
    tables = np.zeros((2, positions.size, half), dtype)
    known: dict[Any, int] = {}
    for row, position in enumerate(positions.reshape(-1).tolist()):
        same = known.setdefault(position, row)
        tables[:, row] = tables[:, same]
        if same == row:
            plain.tables([position], form="halves", out=(tables[0, row, None], tables[1, row, None]))
    parts = tables.reshape((2, *positions.shape, half))
    if rope.frequency_axes is not None:
        parts = parts[..., np.array(rope.frequency_axes), np.arange(half)]
    return parts[0], parts[1]


# ---- Which rows a call has


class Rows(NamedTuple):
    kind: str
    positions: Array  # [batch, L], and coordinates
    valid: Array  # [batch, L]
    keywords: dict[str, Any]
    is_per_row: bool  # whether an argument is for each of the batch


def are_allowed(positions: Array, in_table: bool = False) -> bool:
    low, high = (0, TABLE_ROWS - 1) if in_table else (-LARGEST, LARGEST)
    return all(low <= position <= high for position in positions.ravel().tolist())


def spread(case: Case, values_of: Callable[[int], Array], batch: int) -> tuple[Array, Array, bool]:
    """Values [batch, ..], the argument that gives them, and whether it is for each of the batch."""
    if case.chance(50):
        values = values_of(batch)
        return values, case.laid_out(values), True
    one = values_of(1)
    values = np.broadcast_to(one, (batch, *one.shape[1:]))
    argument = case.pick([one, one[0], values])
    return values, argument, argument is values


def some_rows(
    case: Case, batch: int, length: int, *, first: int = 0, name: str = "positions", coordinates: tuple[int, ...] = (),
    in_table: bool = False, is_packed: bool = False,
) -> Rows:  # fmt: skip
    """Counted or given positions, offsets, masks, lengths, or packed sequences."""
    keywords: dict[str, Any] = {}
    valid, limit, is_per_row = np.ones((batch, length), bool), "", False
    where = "positions" if coordinates or name == "by" else case.pick(["counted", "offset", "offsets", "positions"])
    if is_packed:
        where = "packed"
    elif (limit := case.pick(["", "", "valid", "lengths"])) == "valid":
        valid, keywords["valid"], is_per_row = spread(case, lambda n: case.integers(0, 9, n, length) > 2, batch)
    elif limit == "lengths":
        lengths = case.integers(0, length, batch)
        keywords["lengths"], is_per_row = case.laid_out(lengths), True
        valid = np.arange(length) < lengths[:, None]
    positions = first + np.cumsum(valid, axis=1) - valid
    if where == "positions":
        values_of = lambda n: case.integers(0, TABLE_ROWS, n, length) if in_table else case.positions(n, length, *coordinates)  # fmt: skip
        positions, keywords[name], is_given = spread(case, values_of, batch)
        is_per_row = is_per_row or is_given
    elif where == "packed":
        starts = [0, *sorted(case.integer(0, length) for _ in range(case.integer(0, 4))), length]
        keywords["cu_seqlens"] = case.laid_out(np.array(starts, case.pick([np.int32, np.int64])))
        offsets = case.integers(-50, 10**7, len(starts) - 1) * case.chance(40)
        keywords |= {"offset": case.laid_out(offsets)} if offsets.any() else {}
        for offset, (begin, end) in zip(offsets, itertools.pairwise(starts), strict=True):
            positions[0, begin:end] = first + offset + np.arange(end - begin)
    elif where == "offset":
        keywords["offset"] = case.pick([0, 1, -7, 30, 10**6, LARGEST - 1000, LARGEST])
        positions += keywords["offset"]
    elif where == "offsets":
        offsets = case.integers(-50, 300 if in_table else 10**7, batch, 1)
        positions += offsets
        keywords["offset"], is_per_row = case.laid_out(case.pick([offsets, offsets[:, 0]])), True
    return Rows(f"{where} {limit}".strip(), positions, valid, keywords, is_per_row)


class Placed(NamedTuple):
    array: Array
    whole: Array  # the memory that it lies in
    axis: int  # of the sequence
    has_batch: bool

    def seen(self, array: Array) -> Array:
        """Such an array as [batch, .., L, C]."""
        return np.moveaxis(array, self.axis, -2) if self.has_batch else np.moveaxis(array, self.axis, -2)[None]

    def as_it_is(self, seen: Array) -> Array:
        return np.moveaxis(seen if self.has_batch else seen[0], -2, self.axis)


def some_array(case: Case, dtype: Any, batch: int | None, length: int, columns: int, *, ndim: int, axis: int) -> Placed:
    others = tuple(case.integer(0 if case.chance(2) else 1, 4) for _ in range(ndim - 2 - (batch is not None)))
    if others and case.chance(10):  # enough for several threads
        others = (*others[:-1], case.integer(5, 40))
    view, whole = case.place((*(() if batch is None else (batch,)), *others, length, columns), dtype)
    view[...] = case.numbers(view.shape, dtype)
    return Placed(np.moveaxis(view, -2, axis), whole, axis, batch is not None)


# ---- Calls


def fuzz_rows(case: Case, source: Any) -> str:
    """encode() or tables() of a number of positions, or of an array."""
    is_encoding = isinstance(source, PositionalEncoding)
    form = "" if is_encoding else case.pick(FORMS)
    dtype, keywords = case.pick(DTYPES), {"num_threads": case.integer(1, 4)}
    if getattr(source, "frequency_axes", None) is None and case.chance(40):
        argument, keywords["offset"] = case.size(), case.integer(-400, 10**6)
        first = source.convention.first_position if is_encoding else 0
        positions = first + keywords["offset"] + np.arange(argument)
    else:
        shape = tuple(case.integer(0, 6) for _ in range(case.integer(0, 3))) if case.chance(50) else (case.size(),)
        positions = case.positions(*shape, *coordinates_of(source))
        argument = case.laid_out(positions)
    if is_encoding:
        begin, end = keywords["channels"] = some_channels(case, source)
        outs = [case.place((*positions.shape, end - begin), dtype)]
        expected: Any = lambda: [rows_at(source, positions, dtype)[..., begin:end]]
    else:
        keywords |= {"form": form} if form != source.form or case.chance(50) else {}
        expected = lambda: in_form(form, *halves_at(source, positions, dtype, source.attention_factor))
        leading = positions.shape[: positions.ndim - len(coordinates_of(source))]
        likes = in_form(form, *[np.empty((*leading, source.rotary_dim // 2), dtype)] * 2)
        outs = [case.place(like.shape, dtype) for like in likes]
        if form == "pairs":  # without gaps between them
            outs = [(np.full(likes[0].shape, GUARD, dtype),) * 2]
    given = {"out": outs[0][0] if len(outs) == 1 else tuple(out for out, _ in outs)}
    call = lambda: (source.encode if is_encoding else source.tables)(argument, **keywords, **given)
    what = f"{'encode' if is_encoding else f'tables {form}'} ({argument} {keywords} {dtype} {source!r}"
    return check(call, what, expected, outs, is_allowed=are_allowed(positions))


def some_channels(case: Case, encoding: PositionalEncoding) -> tuple[int, int]:
    first = 0 if case.chance(80) else case.integer(0, encoding.d_model)
    return first, encoding.d_model if first == 0 else case.integer(first, encoding.d_model)


def fuzz_add(case: Case, encoding: PositionalEncoding) -> str:
    """add_(), add() and embed()."""
    dtype, length, operation = case.pick(DTYPES), case.size(), case.pick(["add_", "add_", "add", "embed"])
    is_packed, in_table = case.chance(12), case.chance(15)
    ndim = 2 if is_packed else case.pick([2, 2, 3, 3, 3, 4, 5])
    axis = ndim - 2 if operation == "embed" or case.chance(60) else case.integer(0, ndim - 2)
    batch, first = case.integer(1, 4) if ndim > 2 else None, encoding.convention.first_position
    rows = some_rows(case, batch or 1, length, first=first, in_table=in_table, is_packed=is_packed)
    keywords = {**rows.keywords, "num_threads": case.integer(1, 4)}
    factors = {"scale": case.pick([1.0, 0.5, 27.712812921102035, -1.7]), "alpha": case.pick([1.0, 0.3, -2.0, 0.0])}
    factors = factors if case.chance(50) else {}
    begin, end, learned = 0, encoding.d_model, None
    if in_table:
        learned = case.numbers((TABLE_ROWS, end), dtype)
        keywords["position_table" if operation == "embed" else "table"] = learned
    elif operation != "embed":
        begin, end = keywords["channels"] = some_channels(case, encoding)
    x = some_array(case, dtype, batch, length, end - begin, ndim=ndim, axis=axis)
    values, arguments, inputs, out = x.seen(x.array).copy(), (x.array,), x.whole, (x.array, x.whole)
    if operation == "embed":
        inputs = values.reshape(-1, end - begin) if values.size else np.zeros((1, end - begin), dtype)
        ids = case.integers(0, len(inputs) - 1, *x.array.shape[:-1])
        values, arguments = x.seen(inputs[ids]), (case.laid_out(ids), inputs)
    else:
        keywords["seq_axis"] = axis - ndim * case.chance(50)
    if operation != "add_":
        out = case.place(x.array.shape, dtype)
        keywords["out"] = out[0]

    def expected() -> list[Array]:
        known, wide = np.where(rows.valid, rows.positions, 0), wide_type(dtype)
        pe = rows_at(encoding, known, wide)[..., begin:end] if learned is None else learned[known]
        return [x.as_it_is(added(values, pe, rows.valid, **factors))]

    call = lambda: getattr(encoding, operation)(*arguments, **keywords, **factors)
    what = f"{operation} {rows.kind} ({keywords} {factors} {x.array.shape} {dtype} {encoding!r}"
    is_allowed, is_empty = are_allowed(rows.positions[rows.valid], in_table), 0 in x.array.shape[:-1]
    others = [] if operation == "add_" else [inputs]
    return check(call, what, expected, [out], *others, is_allowed=is_allowed, is_empty=is_empty)


def fuzz_rotation(case: Case, rope: RotaryEmbedding) -> str:
    """rotate_(), rotate(), shift_() and the rotation by given tables, of one array or several."""
    operation, dtype = case.pick(["rotate_", "rotate_", "rotate", "shift_", "by_tables"]), case.pick(DTYPES)
    length = case.integer(0, 5) if case.chance(30) else case.size()
    ndim, half = case.integer(2, 5), rope.rotary_dim // 2
    axis = ndim - 2 if case.chance(60) else case.integer(0, ndim - 2)
    in_table = operation == "by_tables"
    coordinates = () if in_table else coordinates_of(rope)
    is_packed = axis == 0 and operation != "shift_" and not coordinates and case.chance(40)
    has_batch = not is_packed and ndim > 2 and not (ndim == 3 and axis == 0)
    batch, name = case.integer(1, 4) if has_batch else None, "by" if operation == "shift_" else "positions"
    options: dict[str, Any] = {"in_table": in_table, "is_packed": is_packed}
    rows = some_rows(case, batch or 1, length, name=name, coordinates=coordinates, **options)
    keywords = {**rows.keywords, "num_threads": case.integer(1, 4)}
    keywords["seq_axis"] = axis - ndim * (axis == ndim - 2 or case.chance(50))
    arrays = []
    for _ in range(1 if operation == "rotate" else case.pick([1, 1, 2, 2, 3])):
        width = rope.rotary_dim + case.integer(1, 9) * case.chance(30)
        own_ndim = (
            case.integer(2, 5) if not rows.is_per_row and has_batch and axis == ndim - 2 and case.chance(30) else ndim
        )
        own_batch = batch if own_ndim == ndim else None if own_ndim == 2 else case.integer(1, 3)
        arrays.append(some_array(case, dtype, own_batch, length, width, ndim=own_ndim, axis=axis + own_ndim - ndim))
    options = {"interleaved": rope.interleaved, "inverse": rope.conjugate}
    factor, tables = rope.attention_factor, None
    if in_table:
        shape, table_dtype = (TABLE_ROWS, half + case.integer(0, 3)), case.pick([np.float32, dtype])
        tables = [case.numbers(shape, table_dtype)[:, :half] for _ in range(2)]
        keywords |= {"interleaved": rope.interleaved, "conjugate": rope.conjugate, "cos": tables[0], "sin": tables[1]}
    elif operation == "shift_":
        factor = 1.0
    elif case.chance(30):
        keywords["inverse"], options["inverse"], factor = True, not rope.conjugate, 1.0 / factor
    options["kept"] = (rope.frequencies == 0) & (factor == 1.0 and tables is None)
    outs, inputs = [(each.array, each.whole) for each in arrays], []
    if operation == "rotate" and case.chance(70):
        outs, inputs = [case.place(arrays[0].array.shape, dtype)], [arrays[0].whole]
    keywords |= {"out": outs[0][0]} if operation == "rotate" else {}

    def expected() -> list[Array]:
        known = np.where(rows.valid[..., None] if coordinates else rows.valid, rows.positions, 0)
        cos, sin = [each[known] for each in tables or ()] or halves_at(rope, known, wide_type(dtype), factor)
        count = None if rows.is_per_row else 1  # of rows that stand for all
        turn = lambda x: rotated(x, (cos[:count], sin[:count]), rows.valid[:count], **options)
        return [each.as_it_is(turn(each.seen(each.array))) for each in arrays]

    function = fastpe.rotate_ if in_table else getattr(rope, operation)
    call = lambda: function(*(each.array for each in arrays), **keywords)
    shapes = [each.array.shape for each in arrays]
    what = f"{operation} {rows.kind} ({keywords} {shapes} {dtype} {rope!r}"
    is_allowed = are_allowed(rows.positions[rows.valid], in_table)
    is_empty = any(0 in shape[:-1] for shape in shapes)
    return check(call, what, expected, outs, *inputs, is_allowed=is_allowed, is_empty=is_empty)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind, default in (("seconds", float, 10.0), ("cases", int, 10**9), ("seed", int, 1), ("only", int, None)):
        parser.add_argument(f"--{name}", type=kind, default=default)
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    end = time.monotonic() + options.seconds
    kinds: Any = [(an_encoding, fuzz_rows, fuzz_add, fuzz_add), (a_rotary_embedding, fuzz_rows, fuzz_rotation)]
    for number in range(options.cases) if options.only is None else [options.only]:
        if time.monotonic() > end:
            break
        case = Case(f"{options.seed}/{number}")
        _core.use_instruction_set(case.pick(_core.config()["available_instruction_sets"]))
        make, *calls = case.pick(kinds)
        try:
            source = make(case)
        except ValueError:  # a width or frequencies that are refused
            counts["no source"] += 1
            continue
        try:
            counts[case.pick(calls)(case, source)] += 1
        except BaseException:
            print(f"case {number} of seed {options.seed} failed")
            raise
    print("\n".join(f"{count:8d} {name}" for name, count in sorted(counts.items())))
    print(f"{counts.total():8d} cases, none failed")


if __name__ == "__main__":
    main()
