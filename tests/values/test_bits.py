# SPDX-License-Identifier: BSD-3-Clause
"""A value's bits depend on position, frequency and dtype alone, however the call came about."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe import _core

from ..oracles.reference import DTYPES, assert_same_bits, needs_64_bits, values


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_instruction_set_gives_wide_rows_the_same_bits(dtype: np.dtype[Any]) -> None:
    """tests/composed has narrow ones."""
    encoding, rope = fastpe.PositionalEncoding(770), fastpe.RotaryEmbedding(770, interleaved=False)
    x, before, results = values((2, 77, 770), dtype, seed=3), _core.config()["instruction_set"], []
    try:
        for name in _core.config()["available_instruction_sets"]:
            _core.use_instruction_set(name)
            sums = encoding.add(x, offset=12345, scale=1.7, alpha=-0.3)
            results.append([encoding.encode(300, offset=-100, dtype=dtype), sums, rope.rotate(x, seq_axis=-2)])
    finally:
        _core.use_instruction_set(before)
    for found in results[1:]:
        for array, same in zip(found, results[0], strict=True):
            assert_same_bits(array, same)


# ---- threads


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_two_threads_give_the_same_bits(dtype: np.dtype[Any]) -> None:
    rows = 4 * 1024 * 1024 // (512 * dtype.itemsize)  # 2 MiB for each thread
    one = fastpe.encode(rows, 512, offset=77, dtype=dtype, num_threads=1)
    assert_same_bits(fastpe.encode(rows, 512, offset=77, dtype=dtype, num_threads=2), one)
    x = values((4, rows // 4, 512), dtype, seed=5)
    keywords: list[dict[str, Any]] = [
        {},
        {"offset": np.array([5, -9, 2**40, 0])},
        {"positions": np.arange(rows // 4)[::-1] * 3},
        {"lengths": [rows // 4, 1, 0, 100], "scale": 3.0},
        {"valid": np.arange(rows // 4) % 7 > 2},
    ]
    for keyword in keywords:
        serial = fastpe.add(x, num_threads=1, **keyword)
        for result in (fastpe.add(x, num_threads=2, **keyword), fastpe.add_(x.copy(), num_threads=2, **keyword)):
            assert_same_bits(result, serial)
    ids = np.arange(rows) % 101
    table = values((101, 512), dtype, seed=6)
    assert_same_bits(fastpe.embed(ids, table, num_threads=2), fastpe.embed(ids, table, num_threads=1))


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc, which this system lacks")
@pytest.mark.skipif(not _core.config()["openmp"], reason="built without OpenMP: there is one thread")
@pytest.mark.timed
def test_two_threads_really_run() -> None:
    code = (
        "import os, fastpe; count = lambda: len(os.listdir('/proc/self/task')); before = count();"
        "fastpe.encode(100, 512, num_threads=2); assert count() == before, 'small work started a thread';"
        "fastpe.encode(4096, 512, num_threads=2); assert count() == before + 1, count()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})


# ---- call patterns


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_range_of_positions_has_the_bits_of_single_positions(dtype: np.dtype[Any]) -> None:
    encoding = fastpe.PositionalEncoding(35)
    first, last = -47, 150
    rows = np.concatenate([encoding.encode([position], dtype=dtype) for position in range(first, last)])
    for start in range(first, 47):
        for count in (*range(1, 9), *range(15, 20), *range(29, 35), *range(46, 49), *range(61, 65), *range(92, 96)):
            assert_same_bits(encoding.encode(count, offset=start, dtype=dtype), rows[start - first :][:count])


@needs_64_bits
@pytest.mark.parametrize("stride", [2**60, 2**62, -(2**62)])
def test_the_stride_of_an_axis_of_length_one_does_not_matter(stride: int) -> None:
    memory = np.zeros(64, np.float32)
    out = np.lib.stride_tricks.as_strided(memory, (1, 64), (stride, 4))
    fastpe.encode([13], 64, out=out)
    assert_same_bits(memory, fastpe.encode([13], 64)[0])
    column = np.lib.stride_tricks.as_strided(np.zeros(3, np.float32), (3, 1), (4, stride))
    assert_same_bits(fastpe.add_(column), fastpe.encode(3, 1))


# ---- stores that bypass the cache


@pytest.mark.parametrize(("columns", "shift"), [(1024, 0), (1000, 1)], ids=["whole lines", "lines that rows share"])
def test_a_large_streamed_table_has_the_bits_of_its_parts(columns: int, shift: int) -> None:
    rows = min(2 * _core.config()["streaming_bytes"] // (columns * 4), 2**17)
    out = np.full(rows * columns + shift, np.float32(7))[shift:].reshape(rows, columns)
    fastpe.encode(rows, columns, out=out)
    for start in range(0, rows, 1000):
        part = out[start : start + 1000]
        assert_same_bits(part, fastpe.encode(len(part), columns, offset=start))
