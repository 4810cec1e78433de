# SPDX-License-Identifier: BSD-3-Clause
"""Native contenders: loops that do a part of the work, and the careful loops that do all of it with a table at hand."""

from __future__ import annotations

import ctypes
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
plain_fill = "plain stores of a constant"
streaming_fill = "streaming stores of a constant"

# The loops have what fastpe was told to use; -ffp-contract=off: fastpe does without FMA too.
_flags = {"avx512": ["-march=native", "-mprefer-vector-width=512"], "avx2": ["-march=native", "-mno-avx512f"]}

_dtypes = ["float32", "float16", "bfloat16"]  # as limits.c numbers them
_rows_to_a_side = 15  # of an anchor, as in limits.c
_size, _int, _float, _pointer = ctypes.c_size_t, ctypes.c_int, ctypes.c_float, ctypes.c_void_p
_functions = {
    "store_constant": (_pointer, _size, _float, _int),
    "stream_constant": (_pointer, _size, _float, _int),
    "add_constant": (_pointer, _size, _float, _int),
    "add_table": (_pointer, _pointer, _int, _size, _size, _size, _int),
    "gather_and_add": (_pointer, _pointer, _pointer, _pointer, _size, _size, _size, _float, _int),
    "turn_rows": (_pointer, _pointer, _pointer, _size, _size, _size, _size, _int, _int),
    "add_table_rows": (_pointer, _pointer, _pointer, _size, _size),
    "expand_rows": (_pointer, _pointer, _pointer, _pointer, _pointer, _size, _size),
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


def careful_expansion(rows: int, columns: int, check: Check) -> list[Contender]:
    """The encoding of positions 0 .. rows - 1, on one thread, in memory that begins on a cache line's boundary."""
    library = _library()
    if library is None or not library.has_streaming_stores():
        return []
    line = 16
    assert columns % line == 0
    memory = np.zeros(rows * columns + line, np.float32)
    begin = -(memory.ctypes.data // memory.itemsize) % line
    out = memory[begin : begin + rows * columns].reshape(rows, columns)
    radians = 10_000.0 ** (-np.repeat(np.arange(columns / 2), 2) * 2 / columns)
    rows_around = 2 * _rows_to_a_side + 1
    turns = np.multiply.outer([*range(_rows_to_a_side + 1), 2 * rows_around], radians)
    angles = np.multiply.outer([_rows_to_a_side, _rows_to_a_side + rows_around], radians)
    values, slopes = np.sin(angles), np.cos(angles)
    values[:, 1::2], slopes[:, 1::2] = np.cos(angles[:, 1::2]), -np.sin(angles[:, 1::2])
    anchors = np.stack([values, slopes], axis=1)
    arguments = (anchors, np.empty_like(anchors), np.cos(turns), np.sin(turns), rows, columns)
    return _native(careful, "expand_rows", check, out, *arguments)


def increments(buffer: InPlace) -> list[Contender]:
    x, check = buffer.x, is_incremented(buffer.before)
    return _native(increment, "add_constant", check, x, x.size, 1.0, _threads(), encoding="none", output="in place")


def careful_add(x: Array, table: Array, check: Check, *, name: str = careful) -> list[Contender]:
    """x [B, L, C] += table, [L, C] in float32."""
    library = _library()
    if x.dtype == np.float16 and library is not None and not library.has_float16():
        return []
    assert x.shape[-1] % 32 == 0
    arguments = (table, _dtypes.index(x.dtype.name), *x.shape, _threads())
    return _native(name, "add_table", check, x, *arguments, encoding="cached", output="in place")


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
    x: Array, cosines: Array, sines: Array, check: Check, *, interleaved: bool, heads_inside: bool
) -> list[Contender]:
    """x [B, heads, L, D], or [B, L, heads, D] with `heads_inside`, turned by tables [L, pairs]."""
    batch, second, third, columns = x.shape
    items, rows, heads = (batch, second, third) if heads_inside else (batch * second, third, 1)
    arguments = (cosines, sines, items, rows, heads, columns // 2, int(interleaved), _threads())
    return _native(careful, "turn_rows", check, x, *arguments, encoding="cached", output="in place")
