# SPDX-License-Identifier: BSD-3-Clause
"""Daemon threads in a call when the interpreter ends: the process ends as any other, which is how many servers do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.timed

PREAMBLE = """
import sys, threading, time
import numpy as np, fastpe

threads = int(sys.argv[1])
x = np.zeros((8, 512, 768), np.float32)
large = np.zeros((16, 1024, 1024), np.float32)  # takes longer than the time between two looks for a signal
ids = np.zeros((512, 64), np.int64).T
encoding = fastpe.PositionalEncoding(768)

def new_rope():
    return fastpe.RotaryEmbedding(96, interleaved=True, max_len=4096)

class Scale:
    def __float__(self):
        time.sleep(0)  # Another thread runs, and at the end this one does no more.
        return 1.0

class Offset:
    def __array__(self, dtype=None, copy=None):
        time.sleep(0)
        return np.zeros(8, np.int64)

class Deleted(np.ndarray):
    def __del__(self):
        time.sleep(0)

class Deleting:
    def __array__(self, dtype=None, copy=None):
        return np.zeros(8, np.int64).view(Deleted)

def repeat(call):
    while True:
        try:
            call()
        except TypeError:
            pass

def start(call, count):
    for _ in range(count):
        threading.Thread(target=repeat, args=(call,), daemon=True).start()
    time.sleep(0.3)
"""

CALLS = {
    "add_": "encoding.add_(x, num_threads=threads)",
    "encode": "encoding.encode(4096, num_threads=threads)",
    "embed": "encoding.embed(ids, x[0], num_threads=threads)",
    "long": "fastpe.add_(large, num_threads=threads)",
    "rows-to-keep": "fastpe.PositionalEncoding(768, max_len=4096).encode(1, num_threads=threads)",
    "array": "encoding.add_(x, offset=Offset(), num_threads=threads)",
    "finaliser": "encoding.add_(x, offset=Deleting(), num_threads=threads)",
    "error": "encoding.add_(x, scale='1', alpha=Scale(), num_threads=threads)",
    "rotary": "new_rope().rotate_(x.reshape(8, 512, 8, 96), offset=Offset(), seq_axis=1, num_threads=threads)",
}


@pytest.mark.parametrize(
    ("call", "threads", "runs"),
    [
        *((call, 2, 1) for call in ("add_", "finaliser")),
        *(pytest.param(call, threads, 3, marks=pytest.mark.slow) for call in CALLS for threads in (1, 2)),
    ],
)
def test_the_process_ends_while_daemon_threads_are_in_a_call(
    call: str, threads: int, runs: int, run_script: Callable[..., str]
) -> None:
    script = PREAMBLE + f"start(lambda: {CALLS[call]}, 4)\nprint('end')"
    for _ in range(runs):
        assert run_script(script, str(threads)) == "end\n"


@pytest.mark.parametrize("runs", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_other_threads_call_on_while_a_daemon_thread_is_ended(runs: int, run_script: Callable[..., str]) -> None:
    # Standard output is flushed when daemon threads are let in no longer, some of them in the midst of a team.
    script = """
import os

class Output:
    def flush(self):
        for _ in range(5):
            encoding.add_(x, num_threads=threads)
        os.write(1, b"flushed;")

start(lambda: fastpe.add_(large, num_threads=threads), 2)
sys.stdout = Output()
"""
    for _ in range(runs):
        assert run_script(PREAMBLE + script, "2") == "flushed;"
