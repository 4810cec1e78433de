# SPDX-License-Identifier: BSD-3-Clause
"""Sizes near their limits, memory that runs out, and memory that is given back."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

import fastpe

from ..oracles.examples import example
from ..oracles.reference import needs_64_bits
from ..oracles.refusals import naming

HUGE = 2**31 + 1


def zero_strided(shape: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), shape, (0,) * len(shape))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_sizes_that_no_memory_holds(dtype: type) -> None:
    with pytest.raises(MemoryError):
        fastpe.encode(2**50, 4, dtype=dtype)
    with pytest.raises(MemoryError):
        fastpe.RotaryEmbedding(4, interleaved=False).tables(2**50, dtype=dtype)


@needs_64_bits
@pytest.mark.parametrize("shape", [(HUGE, 4), (1, HUGE, 4), (HUGE, 1, 4), (2**20, 2**20, 4)])
def test_huge_views_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=naming("x")):
        fastpe.add_(zero_strided(shape))
    with pytest.raises(ValueError, match=naming("x")):
        fastpe.RotaryEmbedding(4, interleaved=False).rotate_(zero_strided(shape), seq_axis=-2)


@needs_64_bits
def test_more_than_31_bits_of_rows_without_columns() -> None:
    x = np.zeros((HUGE, 0), np.float32)
    assert fastpe.add_(x) is x
    assert fastpe.add_(np.zeros((0, HUGE, 4), np.float32)).shape == (0, HUGE, 4)
    rope = fastpe.RotaryEmbedding(4, interleaved=False)
    assert rope.rotate_(np.zeros((0, HUGE, 4), np.float32), seq_axis=-2).shape == (0, HUGE, 4)


@pytest.mark.skipif(os.name != "posix", reason="limits its memory with setrlimit")
def test_memory_that_runs_out(run_script: Callable[..., str]) -> None:
    run_script("""
        import resource
        import numpy as np, fastpe

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * resource.getpagesize()

        x = np.zeros((64, 1024), np.float32)
        rope = fastpe.RotaryEmbedding(1024, interleaved=True)
        wide, wide_rope = fastpe.PositionalEncoding(2**18), fastpe.RotaryEmbedding(2**18, interleaved=True)
        fastpe.add_(x)
        rope.rotate_(x, seq_axis=-2)
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + 64 * 2**20, -1))
        x[...] = 1
        calls = [
            lambda: fastpe.encode(100_000, 1024),
            lambda: fastpe.encode(np.arange(100_000), 1024),
            lambda: wide.encode(4),
            lambda: fastpe.PositionalEncoding(1024, max_len=200_000).add_(x),
            lambda: fastpe.add(np.broadcast_to(x[:1], (100_000, 1024))),
            lambda: rope.tables(200_000),
            lambda: fastpe.RotaryEmbedding(1024, interleaved=True, max_len=200_000).rotate_(x, seq_axis=-2),
            lambda: wide_rope.tables(4),
            lambda: rope.rotate(np.broadcast_to(x[:1], (100_000, 1024))),
        ]
        def fail():
            for call in calls:
                try:
                    call()
                except MemoryError:
                    continue
                raise AssertionError("no MemoryError")
        fail()
        before = resident()
        for _ in range(5):
            fail()
        assert resident() - before < 8 * 2**20, resident() - before
        assert (x == 1).all()
        assert (fastpe.add_(x) == 1 + fastpe.encode(64, 1024)).all()
    """)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads /proc/self/statm")
def test_wrong_calls_leak_nothing(run_script: Callable[..., str]) -> None:
    run_script("""
        import contextlib, os
        import numpy as np, fastpe

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        encoding, rope = fastpe.PositionalEncoding(64), fastpe.RotaryEmbedding(64, interleaved=True)
        x = np.zeros((8, 64), np.float32)
        def wrong():
            for keywords in ({"offset": [1, 2]}, {"positions": [np.nan] * 8}, {"valid": [1]}, {"nonsense": 1},
                             {"lengths": 9}, {"offset": [[1], [1, 2]]}):
                with contextlib.suppress(ValueError, TypeError):
                    encoding.add_(x, **keywords)
                with contextlib.suppress(ValueError, TypeError):
                    rope.rotate_(x, x.copy(), seq_axis=-2, **keywords)
                with contextlib.suppress(ValueError, TypeError):
                    rope.shift_(x, by=keywords, seq_axis=-2)
                with contextlib.suppress(ValueError, TypeError):
                    rope.tables([1.5], out=(x, keywords))
            rope.tables([1, 2, 3], form="tile")
            rope.rotate_(x, x.copy(), seq_axis=-2)
            encoding.encode([1, 2, 3])
            encoding.embed([1, 2], x)
        for _ in range(300):
            wrong()
        before = resident()
        for _ in range(1000):
            wrong()
        assert resident() - before < 2**19, resident() - before
    """)


@pytest.mark.parametrize("name", ["Host", "QuantisedHost"])
def test_a_rotary_host_allocates_nothing_after_its_start(name: str) -> None:
    # Rows of 8 kB or more, which cannot be taken for the few objects that a call of Python needs.
    host = getattr(example("npu_rotary_host"), name)(rotary_dim=4096, longest=40)
    addresses = [array.ctypes.data for array in (host.cos, host.sin)]
    host.step(0)
    tracemalloc.start()
    try:
        host.step(0)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for position in range(40):
            host.step(position)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100
    assert peak - before < 1000
    assert addresses == [array.ctypes.data for array in (host.cos, host.sin)]
