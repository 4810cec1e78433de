# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C ends a long call soon and says what it leaves behind; SIGTERM ends the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

pytestmark = [pytest.mark.timed, pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")]

# What is promised is measured in processor time, which other processes do not lengthen much. The signal comes when this
# process has used a given amount of it: SIGPROF, here with the handler of Ctrl-C.
PREAMBLE = """
import signal, sys, time
import numpy as np, fastpe
signal.signal(signal.SIGPROF, signal.default_int_handler)
def interrupted(call):
    for attempt in range(20):
        delay = 0.1 + 0.03 * attempt
        sent = time.process_time() + delay
        signal.setitimer(signal.ITIMER_PROF, delay)
        try:
            while True:
                call()
        except KeyboardInterrupt as error:
            seconds = time.process_time() - sent
            if str(error):  # it says what state arrays are in; Python's own interruption, between two calls, says nothing
                return print(seconds)
    sys.exit("never interrupted during a call")
threads = int(sys.argv[1])
out = np.zeros((200_000, 1024), np.float32)
"""

LONG_CALLS = {
    "encode": "fastpe.encode(200_000, 1024, out=out, num_threads=threads)",
    "add_": "fastpe.add_(out, num_threads=threads)",
    # At first each of its elements is on a page that does not exist yet.
    "strided": "fastpe.add_(out.T[:1024, :100_000], num_threads=threads)",
    # The calling thread has nothing to do, the other one everything.
    "unequal-shares": "fastpe.encode(positions, 1024, out=out, valid=second_half, num_threads=threads)",
    "positions-to-check": "fastpe.encode(same_positions, 2, out=pairs, num_threads=threads)",
    # Nothing is written: rows are made, to be kept.
    "rows-to-keep": "fastpe.PositionalEncoding(1024, max_len=300_000).warm_up(num_threads=threads)",
    "add-into-x": "fastpe.add(out, out=out, num_threads=threads)",
    "rotate_": "rope.rotate_(out[:, :512], out[:, 512:], num_threads=threads)",
    "by-tables": "fastpe.rotate_by_tables_(out[:, :512], cos=cos, sin=cos, interleaved=False, num_threads=threads)",
    "tables": "rope.tables(200_000, form='halves', out=halves, num_threads=threads)",
    "resized": "fastpe.resize_table(out[:40_000], (400, 400), mode='bicubic', out=out[40_000:], num_threads=threads)",
    "rotary-rows-to-keep": "new_rope(300_000).warm_up(num_threads=threads)",
}

QUICK = [("encode", 1), ("add_", 2), ("unequal-shares", 2), ("rows-to-keep", 2)]


@pytest.mark.parametrize(
    ("call", "threads"),
    [
        pytest.param(call, threads, marks=[] if (call, threads) in QUICK else pytest.mark.slow)
        for call in LONG_CALLS
        for threads in (1, 2)
    ],
)
def test_ctrl_c(call: str, threads: int, run_script: Callable[..., str]) -> None:
    arrays = """
positions = np.arange(200_000) + 0.5
second_half = positions > 100_000
same_positions = np.zeros(10**8, np.int8)
pairs = np.empty((10**8, 2), np.float32)
halves = out[:, :256], out[:, 256:512]
cos = np.zeros((200_000, 256), np.float32)
cos[0, 0] = 1  # Tables that have each column twice are refused.
def new_rope(max_len=0):
    return fastpe.RotaryEmbedding(512, interleaved=False, max_len=max_len)
rope = new_rope()
"""
    script = PREAMBLE + arrays + f"interrupted(lambda: {LONG_CALLS[call]})"
    assert float(run_script(script, str(threads))) < 0.2 * threads


def test_ctrl_c_of_a_mask(run_script: Callable[..., str]) -> None:
    """It is written by Python, from the first rows on."""
    script = """
import signal, time
import numpy as np, fastpe
signal.signal(signal.SIGPROF, signal.default_int_handler)
out = np.empty((10_000, 10_000), np.float32)
for delay in (0.01, 0.02, 0.004, 0.03):
    out[...] = 7
    sent = time.process_time() + delay
    try:
        signal.setitimer(signal.ITIMER_PROF, delay)
        fastpe.attention_mask(10_000, causal=True, window=9, dtype=np.float32, out=out)
        signal.setitimer(signal.ITIMER_PROF, 0)
    except KeyboardInterrupt:
        print(time.process_time() - sent)
        break
assert out[-1, 0] == 7
"""
    assert float(run_script(script)) < 0.2


def test_sigterm_ends_the_process() -> None:
    script = """
import numpy as np, fastpe
out = np.zeros((100_000, 1024), np.float32)
print("ready", flush=True)
while True:
    fastpe.encode(100_000, 1024, out=out)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.wait(timeout=60) == -signal.SIGTERM
