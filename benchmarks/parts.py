# SPDX-License-Identifier: BSD-3-Clause
"""Native contenders: loops that do a part of the work, and the careful loops that do all of it with a table at hand."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import pathlib
import tempfile
from typing import Any

import numpy as np
import numpy.typing as npt

import fastpe
from benchmarks.answers import InPlace, is_constant, is_incremented
from benchmarks.harness import Check, Contender
from benchmarks.native import compile_library

Array = npt.NDArray[Any]

increment = "x + 1 in place"
careful = "careful loop"
careful_streaming = "careful loop, streaming"
careful_far = "careful loop, second level"  # where it fetches what comes next, in longer segments
plain_fill = "plain stores of a constant"
streaming_fill = "streaming stores of a constant"

# The loops have what fastpe was told to use; -ffp-contract=off: fastpe does without FMA too.
_flags = {"avx512": ["-march=native", "-mprefer-vector-width=512"], "avx2": ["-march=native", "-mno-avx512f"]}

_dtypes = ["float32", "float16", "bfloat16"]  # as limits.c numbers them
_placings = ["one array", "halves", "tile", "repeat"]  # of a row's columns, as limits.c numbers them
_rows_to_a_side = 15  # of an anchor, as in limits.c
_size, _int, _float, _pointer = ctypes.c_size_t, ctypes.c_int, ctypes.c_float, ctypes.c_void_p
_functions = {
    "store_constant": (_pointer, _size, _float, _int),
    "stream_constant": (_pointer, _size, _float, _int),
    "add_constant": (_pointer, _size, _float, _int),
    "add_table": (_pointer, _pointer, _int, _int, _size, _size, _size, _int),
    "gather_and_add": (_pointer, _pointer, _pointer, _pointer, _size, _size, _size, _float, _int),
    "turn_rows": (_pointer, _pointer, _pointer, _pointer, _int, _size, _size, _size, _size, _int, _int),
    "add_table_rows": (_pointer, _pointer, _pointer, _size, _size),
    "expand_rows": (*(6 * [_pointer]), _size, _size, _size, _int, _int, _int),
    "angle_rows": (_pointer, _pointer, _size, _size, _int, _int),
}


def _threads() -> int:
    return int(fastpe.show_config()["threads"])


@functools.cache
def _library() -> ctypes.CDLL | None:
    """None where there is no C compiler, or none with the OpenMP that several threads need."""
    flags = ["-ffp-contract=off", *_flags.get(fastpe.show_config()["instruction_set"], [])]
    choices = [[*flags, "-fopenmp"]] if _threads() > 1 else [flags]
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "limits.so")
        if not compile_library(pathlib.Path(__file__).with_name("limits.c"), path, choices):
            return None
        library = ctypes.CDLL(str(path))
    for name, types in _functions.items():
        getattr(library, name).argtypes = [*types, _size]
        getattr(library, name).restype = None
    return library


def available() -> bool:
    return _library() is not None


def _native(
    name: str, function: str, check: Check, answer: Array, *arguments: Array | float, **keywords: Any
) -> list[Contender]:
    """A contender, or none without a library; `answer` is the first argument, too."""
    library = _library()
    if library is None:
        return []
    loop = getattr(library, function)
    kept = (answer, *arguments)  # alive as long as the contender
    given = [value.ctypes.data if isinstance(value, np.ndarray) else value for value in kept]

    def times(calls: int) -> None:
        loop(*given, calls)

    def work() -> Array:
        times(1)
        return kept[0]  # type: ignore[return-value]

    return [Contender(name=name, work=work, check=check, times=times, **keywords)]


def fills(out: Array) -> list[Contender]:
    library = _library()
    streams = library is not None and library.has_streaming_stores()
    loops = {plain_fill: "store_constant", **({streaming_fill: "stream_constant"} if streams else {})}
    return [
        contender
        for name, function in loops.items()
        for contender in _native(name, function, is_constant(1.5), out, out.size, 1.5, _threads(), encoding="none")
    ]


@dataclasses.dataclass(frozen=True)
class Waves:
    """Columns of an encoding: cosines where `are_cosines`, and sines elsewhere."""

    radians: Array  # per position
    are_cosines: Array

    @classmethod
    def of_encoding(cls, columns: int) -> Waves:
        even = np.arange(columns) // 2 * 2
        return cls(10_000.0 ** (-even / columns), np.arange(columns) > even)

    @classmethod
    def of_tables(cls, columns: int) -> Waves:
        """The cosines of a rotary embedding of so many columns, and the sines beside them."""
        radians = 10_000.0 ** (-2 * np.arange(columns // 2) / columns)
        return cls(np.tile(radians, 2), np.arange(columns) < columns // 2)

    def values_and_slopes(self, positions: Array) -> Array:
        angles = positions[..., None] * self.radians
        sines, cosines = np.sin(angles), np.cos(angles)
        return np.stack([np.where(self.are_cosines, *pair) for pair in ((cosines, sines), (-sines, cosines))], axis=-2)


def careful_expansions(rows: int, waves: Waves, check: Check, *, placing: str = "one array") -> list[Contender]:
    """Waves at positions 0 .. rows - 1. Rows begin on cache lines' boundaries."""
    library = _library()
    if library is None or not library.has_streaming_stores():
        return []
    threads, columns = _threads(), waves.radians.size
    rows_around = 2 * _rows_to_a_side + 1
    groups = -(-rows // (2 * rows_around))
    begins = np.array([groups * thread // threads * 2 * rows_around for thread in range(threads)])
    anchors = waves.values_and_slopes(np.add.outer(begins, [_rows_to_a_side, _rows_to_a_side + rows_around]))
    turns = np.multiply.outer([*range(_rows_to_a_side + 1), 2 * rows_around], waves.radians)
    # With a line between them, rows of these do not evict each other.
    start, cosines, sines = (
        _on_a_line(np.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, 8)])) for a in (anchors, np.cos(turns), np.sin(turns))
    )
    width = columns // 2 if placing == "halves" else columns
    outs = [_on_a_line(np.zeros((rows + 1, width), np.float32)) for _ in range(1 if placing == "one array" else 2)]
    answer = outs[0][:rows] if len(outs) == 1 else tuple(out[:rows] for out in outs)
    arguments = (start, _on_a_line(start), cosines, sines, rows, columns, cosines.shape[-1], _placings.index(placing))
    return [
        contender
        for name, streams in ((careful, False), (careful_streaming, True))
        for contender in _native(
            name, "expand_rows", lambda _: check(answer), outs[0], outs[-1], *arguments, streams, threads
        )
    ]


def careful_angles(rows: int, columns: int, check: Check) -> list[Contender]:
    """Angles of a rotary embedding of so many columns, at positions 0 .. rows - 1."""
    library = _library()
    if library is None or not library.has_streaming_stores():
        return []
    pairs = columns // 2
    radians = _on_a_line(Waves.of_tables(columns).radians[:pairs])
    answer = _on_a_line(np.zeros((rows, pairs), np.float32))
    return [
        contender
        for name, streams in ((careful, False), (careful_streaming, True))
        for contender in _native(name, "angle_rows", check, answer, radians, rows, pairs, streams, _threads())
    ]


def _on_a_line(values: Array) -> Array:
    """A copy that begins on a cache line's boundary."""
    memory = np.empty(values.nbytes + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    copy = memory[begin : begin + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def increments(buffer: InPlace) -> list[Contender]:
    x, check = buffer.x, is_incremented(buffer.before)
    return _native(increment, "add_constant", check, x, x.size, 1.0, _threads(), encoding="none", output="in place")


def careful_add(x: Array, table: Array, check: Check, *, suffix: str = "") -> list[Contender]:
    """x [B, L, C] += table, [L, C] in float32."""
    library = _library()
    if x.dtype == np.float16 and library is not None and not library.has_float16():
        return []
    assert x.shape[-1] % 32 == 0
    dtype, rest = _dtypes.index(x.dtype.name), (*x.shape, _threads())
    return [
        contender
        for level, name in enumerate((careful, careful_far))
        for contender in _native(
            name + suffix, "add_table", check, x, table, dtype, level, *rest, encoding="cached", output="in place"
        )
    ]


def careful_embed(
    out: Array, embeddings: Array, ids: Array, table: Array, scale: float, check: Check
) -> list[Contender]:
    """Out [B, L, C]: embeddings[ids] * scale + table."""
    assert out.shape[-1] % 32 == 0
    arguments = (embeddings, ids, table, ids.size, *table.shape, scale, _threads())
    return _native(careful, "gather_and_add", check, out, *arguments, encoding="cached")


def careful_rows(x: Array, table: Array, positions: Array, check: Check) -> list[Contender]:
    """x [B, 1, C] += table[positions], on one thread."""
    assert x.shape[-1] % 32 == 0
    arguments = (table, positions, positions.size, table.shape[1])
    return _native(careful, "add_table_rows", check, x, *arguments, encoding="cached", output="in place")


def careful_rotation(
    x: Array,
    cosines: Array,
    sines: Array,
    check: Check,
    *,
    interleaved: bool,
    heads_inside: bool,
    out: Array | None = None,
) -> list[Contender]:
    """x [B, heads, L, D], or [B, L, heads, D] with `heads_inside`, turned by tables [L, pairs]: in place without `out`."""
    batch, second, third, columns = x.shape
    items, rows, heads = (batch, second, third) if heads_inside else (batch * second, third, 1)
    rest = (items, rows, heads, columns // 2, int(interleaved), _threads())
    answer, output = (x, "in place") if out is None else (out, "warm out")
    return [
        contender
        for level, name in enumerate((careful, careful_far))
        for contender in _native(
            name, "turn_rows", check, answer, x, cosines, sines, level, *rest, encoding="cached", output=output
        )
    ]
