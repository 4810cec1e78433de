# SPDX-License-Identifier: BSD-3-Clause
"""Check a shared library against tests/data/reference_sums.txt: python -m tests.c_library.sums libfastpe.so

FASTPE_ISA says on which instruction set, once for the process.
"""

from __future__ import annotations

import hashlib
import pathlib
import sys
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .shared_library import Encoding, Library, Rotary

SUMS = pathlib.Path(__file__).resolve().parents[1] / "data" / "reference_sums.txt"
DOUBLED = ("tile", "repeat")


def results_of(library: Library, line: str, threads: int) -> tuple[npt.NDArray[Any], ...]:
    """What a line's call gives: one array, or cosines and sines."""
    operation, convention, name, *numbers, _ = line.split()
    first, rows, width = map(int, numbers)
    dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    fractions = first + 0.375 * np.arange(rows)
    positions: dict[str, Any] = {"positions": fractions} if operation.endswith("fractional") else {"offset": first}
    embeddings = ((np.arange(rows * width) * 37 % 101 - 50) / 8).reshape(rows, width).astype(dtype)
    if operation == "rotary_rotation":
        Rotary(library, width, convention).rotate(embeddings, threads=threads, **positions)
        return (embeddings,)
    if operation.startswith("rotary"):
        shape = {"pairs": (rows, width // 2, 2), "cos_sin": (rows, width), "sin_cos": (rows, width)}.get(
            convention, (rows, width if convention in DOUBLED else width // 2)
        )
        out = [np.empty(shape, dtype) for _ in range(2 if convention in ("halves", *DOUBLED) else 1)]
        return Rotary(library, width).tables(convention, *out, threads=threads, **positions)
    encoding = Encoding(library, width, convention)
    if operation == "add":
        return (encoding.add(embeddings, scale=1.25, alpha=0.75, threads=threads, **positions),)
    return (encoding.encode(np.empty((rows, width), dtype), threads=threads, **positions),)


def main() -> int:
    """Check all lines with one thread and with three."""
    library = Library(pathlib.Path(sys.argv[1]))
    checked = wrong = 0
    for line in SUMS.read_text().splitlines():
        if line.startswith("#"):
            continue
        for threads in (1, 3):
            found = hashlib.sha256(b"".join(map(np.ndarray.tobytes, results_of(library, line, threads)))).hexdigest()
            checked += 1
            if found != line.split()[-1]:
                wrong += 1
                print(f"wrong with {threads} threads: {line}")
    print(f"{checked} sums on {library.c.fastpe_instruction_set().decode()}, {wrong} wrong")
    return int(wrong > 0 or not checked)


if __name__ == "__main__":
    sys.exit(main())
