# SPDX-License-Identifier: BSD-3-Clause
"""Check an installed fastpe against reference_sums.txt, with nothing but NumPy (and ml_dtypes for bfloat16, if there).

python check_package.py          checks every table on every instruction set, with 1 and 3 threads
python check_package.py --print  prints the file anew
"""

from __future__ import annotations

import hashlib
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import fastpe
from fastpe import _core

SUMS = pathlib.Path(__file__).resolve().parents[1] / "tests" / "data" / "reference_sums.txt"


def lines() -> Iterator[tuple[str, str, str, int, int, int, str]]:
    """Operation, convention, dtype, first position, rows, d_model and SHA-256 sum of every line."""
    for text in SUMS.read_text().splitlines():
        if text and not text.startswith("#"):
            operation, convention, dtype, first, rows, d_model, digest = text.split()
            yield operation, convention, dtype, int(first), int(rows), int(d_model), digest


def dtype_named(name: str) -> np.dtype[Any] | None:
    """The dtype, or None for bfloat16 without ml_dtypes."""
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        return None
    bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return bfloat16


def embeddings(rows: int, columns: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Numbers that every dtype holds exactly."""
    return ((np.arange(rows * columns) * 37 % 101 - 50) / 8).reshape(rows, columns).astype(dtype)


def results_of(
    operation: str, convention: str, dtype: np.dtype[Any], first: int, rows: int, d_model: int, *, num_threads: int
) -> tuple[npt.NDArray[Any], ...]:
    """What a line's call gives: one array, or cosines and sines."""
    fractional = first + 0.375 * np.arange(rows)
    if operation.startswith("rotary"):
        rope = fastpe.RotaryEmbedding(d_model, interleaved=convention == "interleaved")
        if operation == "rotary_rotation":
            return (rope.rotate_(embeddings(rows, d_model, dtype), offset=first, num_threads=num_threads),)
        if operation == "rotary_integer":
            tables = rope.tables(rows, offset=first, form=convention, dtype=dtype, num_threads=num_threads)
        else:
            tables = rope.tables(fractional, form=convention, dtype=dtype, num_threads=num_threads)
        return tables if isinstance(tables, tuple) else (tables,)
    encoding = fastpe.PositionalEncoding(d_model, convention=convention)
    if operation == "integer":
        return (encoding.encode(rows, offset=first, dtype=dtype, num_threads=num_threads),)
    if operation == "fractional":
        return (encoding.encode(fractional, dtype=dtype, num_threads=num_threads),)
    x = embeddings(rows, d_model, dtype)
    return (encoding.add_(x, offset=first, scale=1.25, alpha=0.75, num_threads=num_threads),)


def sum_of(
    operation: str, convention: str, dtype: np.dtype[Any], first: int, rows: int, d_model: int, *, num_threads: int
) -> str:
    """SHA-256 of a line's results, one after the other, as little-endian bytes."""
    results = results_of(operation, convention, dtype, first, rows, d_model, num_threads=num_threads)
    if sys.byteorder == "big":
        results = tuple(result.byteswap() for result in results)
    return hashlib.sha256(b"".join(result.tobytes() for result in results)).hexdigest()


def main() -> int:
    """Check, or print."""
    checked = wrong = 0
    for operation, convention, name, first, rows, d_model, digest in lines():
        dtype = dtype_named(name)
        if dtype is None:
            continue
        if "--print" in sys.argv:
            new = sum_of(operation, convention, dtype, first, rows, d_model, num_threads=1)
            print(operation, convention, name, first, rows, d_model, new)
            continue
        for instruction_set in _core.available_instruction_sets():
            _core.use_instruction_set(instruction_set)
            for threads in (1, 3):
                checked += 1
                if sum_of(operation, convention, dtype, first, rows, d_model, num_threads=threads) != digest:
                    wrong += 1
                    print(f"wrong: {operation} {convention} {name} {first} {rows} {d_model} on {instruction_set}")
    if "--print" not in sys.argv:
        print(f"{checked} sums checked on {', '.join(_core.available_instruction_sets())}, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
