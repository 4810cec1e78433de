# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C ends a long call soon and says what it leaves behind; SIGTERM ends the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")

PREAMBLE = """
import os, signal, sys, threading, time
import numpy as np, fastpe
def interrupted(call):
    sent = []
    def interrupt():
        time.sleep(0.15)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt, daemon=True).start()
    end = time.monotonic() + 20
    try:
        while time.monotonic() < end:
            call()
            if sent:  # between two calls: Python's own interruption is next
                time.sleep(1)
    except KeyboardInterrupt as error:
        print(f"{time.monotonic() - sent[0]:.3f}", error)
"""

# Each takes a tenth of a second at least, and is made several times over.
LONG_CALLS = {
    "encode": "fastpe.encode(200_000, 1024, out=out, num_threads=threads)",
    "add_": "fastpe.add_(out, num_threads=threads)",
    "add": "fastpe.add(x, out=out, num_threads=threads)",
    "many-short-sequences": "fastpe.add_(out.reshape(3125, 64, 1024), num_threads=threads)",
    "strided": "fastpe.add_(out.T[:1024, :100_000], num_threads=threads)",
    "fractional": "fastpe.encode(positions, 1024, out=out, num_threads=threads)",
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("call", LONG_CALLS)
def test_ctrl_c(call: str, threads: int, run_script: Callable[..., str]) -> None:
    arrays = f"""
threads = {threads}
out = np.zeros((200_000, 1024), np.float32)
x = np.broadcast_to(np.float32(1), out.shape)
positions = np.arange(200_000) + 0.5
"""
    script = PREAMBLE + arrays + f"interrupted(lambda: [{LONG_CALLS[call]} for _ in range(4)])"
    # The best of three: other processes delay this one too.
    for _ in range(3):
        seconds, _, message = run_script(script).strip().partition(" ")
        if not message:  # Python's own interruption: the signal came too shortly before the end of a call
            continue
        assert message == "interrupted: the output array was partly written; compute it again before using it"
        if float(seconds) < 0.2:
            return
    pytest.fail(f"returned after {seconds} s")


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
        assert process.wait(timeout=10) == -signal.SIGTERM
