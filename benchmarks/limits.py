# SPDX-License-Identifier: BSD-3-Clause
"""Limits of memory and arithmetic: native loops where a C compiler is found, else NumPy's, named as what they are."""

from __future__ import annotations

import ctypes
import functools
import math
import pathlib
import tempfile
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.native import compile_library

Array = npt.NDArray[Any]


@functools.cache
def _native() -> ctypes.CDLL | None:
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "limits.so")
        contract_nothing = "-ffp-contract=off"  # nor does fastpe: its bits are the same without FMA
        flag_choices = [[contract_nothing, *flags] for flags in (["-march=native", "-fopenmp"], ["-fopenmp"], [])]
        if not compile_library(pathlib.Path(__file__).with_name("limits.c"), path, flag_choices):
            return None
        library = ctypes.CDLL(str(path))
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    for name, types in {
        "store_constant": (pointer, size, ctypes.c_float, number),
        "stream_constant": (pointer, size, ctypes.c_float, number),
        "add_constant": (pointer, size, ctypes.c_float, number),
        "rotate_rows": (pointer, pointer, pointer, pointer, size, size, size, size, size, number, number),
        "add_tile": (pointer, pointer, size, size, size, size, number),
        "add_table_rows": (pointer, pointer, pointer, size, size),
        "add_bfloat16_passes": (pointer, pointer, size, size, number),
    }.items():
        getattr(library, name).argtypes = [*types, size]
        getattr(library, name).restype = None
    return library


def has_native_loops() -> bool:
    return _native() is not None


def has_streaming_stores() -> bool:
    library = _native()
    return library is not None and bool(library.has_streaming_stores())


def has_threads() -> bool:
    library = _native()
    return library is not None and bool(library.has_threads())


class Loop:
    """A native loop over arrays, the first of which is its answer."""

    def __init__(self, function: str, answer: Array, *arguments: Array | float) -> None:
        self._function = getattr(_native(), function)
        self._answer = answer
        self._kept = [a for a in arguments if isinstance(a, np.ndarray)]
        self._arguments = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in (answer, *arguments)]

    def times(self, calls: int) -> None:
        self._function(*self._arguments, calls)

    def __call__(self) -> Array:
        self.times(1)
        return self._answer


def store(out: Array, threads: int) -> Loop:
    return Loop("store_constant", out, out.size, 1.5, threads)


def stream(out: Array, threads: int) -> Loop:
    return Loop("stream_constant", out, out.size, 1.5, threads)


def add_one(x: Array, threads: int) -> Loop:
    return Loop("add_constant", x, x.size, 1.0, threads)


def _aligned(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    line = 64
    bytes_needed = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(bytes_needed + line, np.uint8)
    start = -memory.ctypes.data % line
    return memory[start : start + bytes_needed].view(dtype).reshape(shape)


def _rotate(rows: Array, count: int, strides: tuple[int, int, int], threads: int, *, adds: bool) -> Loop:
    library = _native()
    assert library is not None
    columns = rows.shape[-1]

    # On cache lines' boundaries: the arithmetic's own cost, not that of its tables' place.
    def table(first: float, second: float, *shape: int) -> Array:
        made = _aligned((*shape, 2, columns), np.float64)
        made[..., 0, :], made[..., 1, :] = first, second
        return made

    known, turns = table(0.5, 0.25), table(1.0, 0.0, library.turns_made())
    tables = _aligned((2, library.table_rows(), columns), np.float64)
    tables[:] = 0.5
    return Loop("rotate_rows", rows, known, turns, tables, count, columns, *strides, adds, threads)


def rotate(count: int, columns: int, threads: int) -> Loop:
    """The arithmetic of so many rows alone, always into the same four; values are 0.375 or 0.125."""
    rows = _aligned((threads, 4, columns), np.float32)
    return _rotate(rows, count, (0, 0, 4 * columns), threads, adds=False)


def rotate_tile(count: int, columns: int, threads: int) -> Loop:
    """So many rows, a tile at a time, always into the same one; values are 0.375 or 0.125."""
    library = _native()
    assert library is not None
    tile = _aligned((threads, library.group_rows(), columns), np.float32)
    return _rotate(tile, count, (columns, 0, tile[0].size), threads, adds=False)


def rotate_into(rows: Array, threads: int, *, adds: bool) -> Loop:
    """Arithmetic and memory in one loop: 0.375 or 0.125 written to, or added to, rows (a multiple of four of them)."""
    library = _native()
    assert library is not None
    columns = rows.shape[-1]
    return _rotate(rows, len(rows), (columns, library.group_rows() * columns, 0), threads, adds=adds)


def add_tile(x: Array, threads: int) -> Loop:
    """0.25 added to x, [batch, rows, columns], from a tile, as many rows at a time as the first-level cache holds."""
    library = _native()
    assert library is not None
    first_level_bytes = 12 * 1024
    tile = _aligned((library.group_rows(), x.shape[2]), np.float32)
    tile[:] = 0.25
    segment_rows = min(max(1, first_level_bytes // tile[0].nbytes), library.group_rows() // 2)
    return Loop("add_tile", x, tile, *x.shape, segment_rows, threads)


def add_table_rows(x: Array, table: Array, positions: npt.NDArray[np.int64]) -> Loop:
    """A row of the table added to each row of x, on one thread."""
    return Loop("add_table_rows", x, table, positions, positions.size, table.shape[1])


def add_bfloat16(values: int, threads: int) -> Loop:
    """Sums of so many bfloat16 and float32 alone, in the first-level cache."""
    resident = 4096
    x = _aligned((threads, resident), np.uint16)
    return Loop("add_bfloat16_passes", x, _aligned((resident,), np.float32), resident, -(-values // resident), threads)
