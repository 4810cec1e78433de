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


def lines() -> Iterator[tuple[list[Any], str]]:
    """Every line's operation, convention, dtype, first position, rows and d_model, and its SHA-256 sum."""
    for text in SUMS.read_text().splitlines():
        if text and not text.startswith("#"):
            *words, digest = text.split()
            yield [*words[:3], *map(int, words[3:])], digest


def dtype_named(name: str) -> Any:
    """The dtype, or None for bfloat16 without ml_dtypes."""
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        return None
    return np.dtype(ml_dtypes.bfloat16)


def results_of(
    operation: str, convention: str, dtype: Any, first: int, rows: int, d_model: int, *, threads: int
) -> tuple[npt.NDArray[Any], ...]:
    """What a line's call gives: one array, or cosines and sines."""
    # Numbers that every dtype holds exactly.
    x = ((np.arange(rows * d_model) * 37 % 101 - 50) / 8).reshape(rows, d_model).astype(dtype)
    fractions = first + 0.375 * np.arange(rows)
    counted: dict[str, Any] = {"offset": first, "num_threads": threads}
    source: Any = (
        fastpe.RotaryEmbedding(d_model, interleaved=convention == "interleaved")
        if operation.startswith("rotary_")
        else fastpe.PositionalEncoding(d_model, convention=convention)
    )
    calls = {
        "integer": lambda: source.encode(rows, dtype=dtype, **counted),
        "fractional": lambda: source.encode(fractions, dtype=dtype, num_threads=threads),
        "add": lambda: source.add_(x, scale=1.25, alpha=0.75, **counted),
        "rotary_integer": lambda: source.tables(rows, form=convention, dtype=dtype, **counted),
        "rotary_fractional": lambda: source.tables(fractions, form=convention, dtype=dtype, num_threads=threads),
        "rotary_rotation": lambda: source.rotate_(x, seq_axis=-2, **counted),
    }
    result = calls[operation]()
    return result if isinstance(result, tuple) else (result,)


def sum_of(operation: str, convention: str, dtype: Any, *sizes: Any, threads: int) -> str:
    """SHA-256 of a line's results, one after the other, as little-endian bytes."""
    results = results_of(operation, convention, dtype, *sizes, threads=threads)
    if sys.byteorder == "big":
        results = tuple(result.byteswap() for result in results)
    return hashlib.sha256(b"".join(result.tobytes() for result in results)).hexdigest()


def main() -> int:
    """Check, or print."""
    checked = wrong = 0
    available = _core.config()["available_instruction_sets"]
    for (operation, convention, name, *sizes), digest in lines():
        dtype = dtype_named(name)
        if dtype is None:
            continue
        if "--print" in sys.argv:
            print(operation, convention, name, *sizes, sum_of(operation, convention, dtype, *sizes, threads=1))
            continue
        for instruction_set in available:
            _core.use_instruction_set(instruction_set)
            for threads in (1, 3):
                checked += 1
                if sum_of(operation, convention, dtype, *sizes, threads=threads) != digest:
                    wrong += 1
                    print(f"wrong: {operation} {convention} {name} {sizes} on {instruction_set}")
    if "--print" not in sys.argv:
        print(f"{checked} sums checked on {', '.join(available)}, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
