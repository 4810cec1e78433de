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
