# SPDX-License-Identifier: BSD-3-Clause
"""Limits of memory and arithmetic: native loops where a C compiler is found, else NumPy's, named as what they are."""

from __future__ import annotations

import ctypes
import functools
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.native import compile_library

Float32Array = npt.NDArray[np.float32]


@functools.cache
def _native() -> ctypes.CDLL | None:
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "limits.so")
        contract_nothing = "-ffp-contract=off"  # nor does fastpe: its bits are the same without FMA
        flag_choices = [[contract_nothing, *flags] for flags in (["-march=native", "-fopenmp"], ["-fopenmp"], [])]
        if not compile_library(pathlib.Path(__file__).with_name("limits.c"), path, flag_choices):
            return None
        library = ctypes.CDLL(str(path))
    for name in ("store_constant", "stream_constant", "add_constant"):
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_float, ctypes.c_int]
        getattr(library, name).restype = None
    library.rotate_rows.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    library.rotate_rows.restype = None
    return library


def has_native_loops() -> bool:
    return _native() is not None


def has_streaming_stores() -> bool:
    library = _native()
    return library is not None and bool(library.has_streaming_stores())


def has_threads() -> bool:
    library = _native()
    return library is not None and bool(library.has_threads())


def _native_call(name: str, array: Float32Array, value: float, threads: int) -> Callable[[], Float32Array]:
    function, address, size = getattr(_native(), name), array.ctypes.data, array.size

    def call() -> Float32Array:
        function(address, size, value, threads)
        return array

    return call


def store(out: Float32Array, threads: int) -> Callable[[], Float32Array]:
    return _native_call("store_constant", out, 1.5, threads)


def stream(out: Float32Array, threads: int) -> Callable[[], Float32Array]:
    return _native_call("stream_constant", out, 1.5, threads)


def add_one(x: Float32Array, threads: int) -> Callable[[], Float32Array]:
    return _native_call("add_constant", x, 1.0, threads)


def _aligned(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    line = 64
    bytes_needed = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(bytes_needed + line, np.uint8)
    start = -memory.ctypes.data % line
    return memory[start : start + bytes_needed].view(dtype).reshape(shape)


def rotate(values: int, threads: int) -> Callable[[], Float32Array]:
    """The arithmetic of so many values alone; the answer's rows hold 0.375 and 0.125."""
    library = _native()
    assert library is not None
    columns = library.rotation_columns()
    # On cache lines' boundaries: the arithmetic's own cost, not that of its tables' place.
    rows = _aligned((threads, 2, columns), np.float32)
    tables = _aligned((4, columns), np.float64)
    tables[:] = np.array([0.5, 0.5, 0.25, 0.5])[:, None]
    row_pairs = -(-values // (2 * columns))
    function, rows_address, tables_address = library.rotate_rows, rows.ctypes.data, tables.ctypes.data

    def call() -> Float32Array:
        assert tables.size  # kept for as long as this function
        function(rows_address, tables_address, row_pairs, threads)
        return rows

    return call
