# SPDX-License-Identifier: BSD-3-Clause
"""A value's bits depend on position, frequency and dtype alone, however the call came about."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpe
from fastpe import _core

from ..oracles.reference import (
    DTYPES,
    FOREIGN,
    Array,
    assert_same_bits,
    bits,
    needs_64_bits,
)
from ..oracles.strategies import dtypes, offsets, seeds, values, widths
from ..oracles.streaming import assert_streaming_keeps_bits

CONVENTIONS = ["vaswani", "concat", "fairseq", "timestep", "musicgen"]

# A fixed table of every dtype, made once on the first instruction set that this process chose.
POSITIONS = np.concatenate(
    [np.arange(-100, 200), [2**31 - 1, 2**31, 10**12, 2**53, -(2**53)], np.arange(10**7, 10**7 + 64)]
).astype(np.int64)
FRACTIONS = np.concatenate([np.linspace(-50, 50, 77), [1e-310, 5e-324, 1e-9, 1e6 + 0.1, 2.0**50 + 0.125]])


@functools.cache
def on_the_baseline(convention: str, dtype: np.dtype[Any], d_model: int) -> tuple[Array, Array, Array]:
    before = _core.instruction_set()
    _core.use_instruction_set("baseline")
    try:
        return tables(convention, dtype, d_model)
    finally:
        _core.use_instruction_set(before)


def tables(convention: str, dtype: np.dtype[Any], d_model: int) -> tuple[Array, Array, Array]:
    encoding = fastpe.PositionalEncoding(d_model, convention=convention)
    x = values((2, 77, d_model), dtype, seed=3)
    encoding.add_(x, offset=12345, scale=1.7, alpha=-0.3)
    return encoding.encode(POSITIONS, dtype=dtype), encoding.encode(FRACTIONS, dtype=dtype), x


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("d_model", [2, 30, 31, 64, 770])
def test_every_instruction_set_gives_the_same_bits(
    instruction_set: str, convention: str, dtype: np.dtype[Any], d_model: int
) -> None:
    expected = on_the_baseline(convention, dtype, d_model)
    assert _core.instruction_set() == instruction_set
    for result, same in zip(tables(convention, dtype, d_model), expected, strict=True):
        assert_same_bits(result, same)


# ---- threads


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_two_threads_give_the_same_bits(instruction_set: str, dtype: np.dtype[Any]) -> None:
    rows = 4 * 1024 * 1024 // (512 * dtype.itemsize)  # 2 MiB for each thread
    one = fastpe.encode(rows, 512, offset=77, dtype=dtype, num_threads=1)
    assert_same_bits(fastpe.encode(rows, 512, offset=77, dtype=dtype, num_threads=2), one)
    x = values((4, rows // 4, 512), dtype, seed=5)
    keywords: list[dict[str, Any]] = [
        {},
        {"offset": np.array([5, -9, 2**40, 0])},
        {"positions": np.arange(rows // 4)[::-1] * 3},
        {"lengths": [rows // 4, 1, 0, 100], "scale": 3.0},
        {"mask": np.arange(rows // 4) % 7 > 2},
    ]
    for keyword in keywords:
        serial = fastpe.add(x, num_threads=1, **keyword)
        for result in (fastpe.add(x, num_threads=2, **keyword), fastpe.add_(x.copy(), num_threads=2, **keyword)):
            assert_same_bits(result, serial)
    ids = np.arange(rows) % 101
    table = values((101, 512), dtype, seed=6)
    assert_same_bits(fastpe.embed(ids, table, num_threads=2), fastpe.embed(ids, table, num_threads=1))


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc, which this system lacks")
@pytest.mark.skipif(not _core.has_openmp(), reason="built without OpenMP: there is one thread")
def test_two_threads_really_run() -> None:
    code = (
        "import os, fastpe; count = lambda: len(os.listdir('/proc/self/task')); before = count();"
        "fastpe.encode(100, 512, num_threads=2); assert count() == before, 'small work started a thread';"
        "fastpe.encode(4096, 512, num_threads=2); assert count() == before + 1, count()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})


def test_calls_from_many_threads_give_the_same_bits() -> None:
    encoding = fastpe.PositionalEncoding(96, max_len=64)
    x = values((8, 300, 96), np.dtype(np.float32), seed=1)
    expected = encoding.add(x), encoding.encode(1000, dtype=np.float64)
    fresh = fastpe.PositionalEncoding(96, max_len=64)
    start = threading.Barrier(8)
    failures: list[str] = []

    def work() -> None:
        start.wait()
        for _ in range(20):
            mine = x.copy()
            fresh.add_(mine)
            if (bits(mine) != bits(expected[0])).any():
                failures.append("add_")
            if (bits(fresh.encode(1000, dtype=np.float64)) != bits(expected[1])).any():
                failures.append("encode")
            if fastpe.encode(3, 5, base=50.0)[0, 1] != 1:
                failures.append("a module-level function")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# ---- call patterns


@pytest.mark.usefixtures("instruction_set")
@given(
    start=offsets,
    count=st.integers(1, 150),
    d_model=widths,
    dtype=dtypes,
    convention=st.sampled_from(CONVENTIONS),
    data=st.data(),
)
def test_where_a_call_starts_does_not_matter(
    start: int, count: int, d_model: int, dtype: np.dtype[Any], convention: str, data: st.DataObject
) -> None:
    encoding = fastpe.PositionalEncoding(d_model, convention=convention)
    first = encoding.convention.first_position
    count = min(count, 2**53 + 1 - start - first)
    whole = encoding.encode(count, offset=start, dtype=dtype)
    positions = np.arange(first + start, first + start + count, dtype=np.int64)
    for same in (positions, positions.astype(np.float64), positions[None]):
        assert_same_bits(encoding.encode(same, dtype=dtype).reshape(whole.shape), whole)
    assert_same_bits(encoding.encode(positions[::-1], dtype=dtype)[::-1], whole)
    assert_same_bits(encoding.encode(count, offset=np.array([start]), dtype=dtype)[0], whole)
    # An offset beyond 2**53 is refused, even for no rows at all.
    cut = data.draw(st.integers(0, min(count, 2**53 - start)))
    assert_same_bits(encoding.encode(count - cut, offset=start + cut, dtype=dtype), whole[cut:])
    row = data.draw(st.integers(0, count - 1))
    assert_same_bits(encoding.encode([int(positions[row])], dtype=dtype)[0], whole[row])
    begin = data.draw(st.integers(0, d_model))
    end = data.draw(st.integers(begin, d_model))
    assert_same_bits(encoding.encode(count, offset=start, dtype=dtype, channels=(begin, end)), whole[:, begin:end])
    shuffled = np.random.default_rng(row).permutation(count)
    assert_same_bits(encoding.encode(positions[shuffled], dtype=dtype), whole[shuffled])


@pytest.mark.parametrize(
    "type_name", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", f"{FOREIGN}i4", f"{FOREIGN}f8"]
)
def test_the_type_of_a_position_does_not_matter(type_name: str) -> None:
    expected = fastpe.encode(120, 34)
    assert_same_bits(fastpe.encode(np.arange(120).astype(type_name), 34), expected)
    assert_same_bits(fastpe.encode(np.arange(120).astype(type_name)[::2], 34), expected[::2])
    x = np.zeros((120, 34), np.float32)
    assert_same_bits(fastpe.add_(x, positions=np.arange(120).astype(type_name)), fastpe.add(np.zeros_like(x)))


@pytest.mark.usefixtures("instruction_set")
@given(dtype=dtypes, d_model=widths, batch=st.integers(1, 9), rows=st.integers(1, 80), seed=seeds, data=st.data())
def test_how_a_batch_is_split_does_not_matter(
    dtype: np.dtype[Any], d_model: int, batch: int, rows: int, seed: int, data: st.DataObject
) -> None:
    x = values((batch, rows, d_model), dtype, seed)
    offset = data.draw(st.integers(-1000, 1000))
    whole = fastpe.add(x, offset=offset, scale=2.5)
    assert_same_bits(fastpe.add(x, offset=np.full(batch, offset), scale=2.5), whole)
    cut = data.draw(st.integers(0, batch))
    parts = [fastpe.add(part, offset=offset, scale=2.5) for part in (x[:cut], x[cut:])]
    assert_same_bits(np.concatenate(parts), whole)
    cut = data.draw(st.integers(0, rows))
    parts = [fastpe.add(x[:, :cut], offset=offset, scale=2.5), fastpe.add(x[:, cut:], offset=offset + cut, scale=2.5)]
    assert_same_bits(np.concatenate(parts, axis=1), whole)
    cut = data.draw(st.integers(0, d_model))
    parts = [
        fastpe.add(part, offset=offset, scale=2.5, d_model=d_model, channels=channels)
        for part, channels in ((x[..., :cut], (0, cut)), (x[..., cut:], (cut, d_model)))
    ]
    assert_same_bits(np.concatenate(parts, axis=2), whole)


@pytest.mark.usefixtures("instruction_set")
@settings(max_examples=80)
@given(
    dtype=dtypes,
    d_model=widths,
    max_len=st.integers(1, 100),
    start=st.integers(-5, 100),
    count=st.integers(1, 60),
    batch=st.integers(1, 3),
    convention=st.sampled_from(CONVENTIONS),
    seed=seeds,
)
def test_cached_rows_have_the_bits_of_computed_ones(
    dtype: np.dtype[Any],
    d_model: int,
    max_len: int,
    start: int,
    count: int,
    batch: int,
    convention: str,
    seed: int,
) -> None:
    computed = fastpe.PositionalEncoding(d_model, convention=convention)
    cached = fastpe.PositionalEncoding(d_model, convention=convention, max_len=max_len)
    x = values((batch, count, d_model), dtype, seed)
    assert_same_bits(cached.encode(count, offset=start, dtype=dtype), computed.encode(count, offset=start, dtype=dtype))
    for offset in (start, start + np.arange(batch) * 3):
        for scale, alpha in ((1.0, 1.0), (0.5, 3.0)):
            keywords: dict[str, Any] = {"offset": offset, "scale": scale, "alpha": alpha}
            expected = computed.add(x, **keywords)
            assert_same_bits(cached.add(x, **keywords), expected)
            assert_same_bits(cached.add_(x.copy(), **keywords), expected)
            strided = np.asfortranarray(x)
            assert_same_bits(cached.add_(strided, **keywords), expected)
    table = values((7, d_model), dtype, seed)
    ids = np.arange(batch * count).reshape(batch, count) % 7
    assert_same_bits(cached.embed(ids, table, offset=start), computed.embed(ids, table, offset=start))
    assert_same_bits(cached.encode([start + 0.5], dtype=dtype), computed.encode([start + 0.5], dtype=dtype))


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_range_of_positions_has_the_bits_of_single_positions(dtype: np.dtype[Any]) -> None:
    encoding = fastpe.PositionalEncoding(35)
    first, last = -47, 150
    rows = np.concatenate([encoding.encode([position], dtype=dtype) for position in range(first, last)])
    for start in range(first, 47):
        for count in range(1, 96):
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

STREAMING_SCRIPT = """
import hashlib, sys
import numpy as np, ml_dtypes, fastpe
from fastpe import _core
for name in _core.available_instruction_sets():
    _core.use_instruction_set(name)
    total = hashlib.sha256()
    for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        dtype = np.dtype(dtype)
        for d_model in (1, 5, 16, 33, 48, 130, 272):
            # 140 rows contain a whole pair of blocks, whose rows are streamed together.
            memory = np.zeros(3 * 140 * (d_model + 3) + 7, dtype)
            for start in (0, 1, 7):
                for gap in (0, 3):
                    width = d_model + gap
                    out = memory[start : start + 420 * width].reshape(3, 140, width)[..., :d_model]
                    for convention in ("vaswani", "concat", "timestep"):
                        encoder = fastpe.PositionalEncoding(d_model, convention=convention)
                        encoder.encode(140, offset=np.array([0, 5, -3]), out=out)
                        total.update(memory.tobytes())
                    x = np.linspace(-2, 2, out.size).astype(dtype).reshape(out.shape)
                    fastpe.add(x, offset=9, scale=1.5, out=out)
                    total.update(memory.tobytes())
                    fastpe.add(x, offset=np.array([1, 2, 3]), out=out)
                    total.update(memory.tobytes())
                    fastpe.embed(np.arange(420).reshape(3, 140) % 13, x[0, :13], out=out)
                    total.update(memory.tobytes())
    print(name, total.hexdigest())
"""


def test_streaming_stores_give_the_same_bits() -> None:
    assert_streaming_keeps_bits(STREAMING_SCRIPT)


def test_a_large_streamed_table_has_the_bits_of_its_parts() -> None:
    rows = 2 * _core.streaming_threshold_bytes() // (1024 * 4)
    rows = min(rows, 2**17)
    out: npt.NDArray[np.float32] = np.empty((rows, 1024), np.float32)
    fastpe.encode(rows, 1024, out=out)
    whole = hashlib.sha256(out.tobytes()).hexdigest()
    parts = hashlib.sha256()
    for start in range(0, rows, 1000):
        parts.update(fastpe.encode(min(1000, rows - start), 1024, offset=start).tobytes())
    assert parts.hexdigest() == whole
