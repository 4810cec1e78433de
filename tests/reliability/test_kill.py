# SPDX-License-Identifier: BSD-3-Clause
"""`fastpe add` killed at any point leaves no half-written file under its final name, and can be run again."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import fastpe

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="kills with SIGKILL"),
    pytest.mark.skipif(importlib.util.find_spec("typer") is None, reason="the command line needs typer"),
]

KILLS = int(os.environ.get("FASTPE_TEST_KILLS", "10"))


@pytest.mark.slow
def test_killed_at_any_point(tmp_path: pathlib.Path) -> None:
    source, out = tmp_path / "x.npy", tmp_path / "out.npy"
    x = np.ones((12_000, 1024), np.float32)
    np.save(source, x)
    expected = fastpe.add(x).tobytes()
    command = [sys.executable, "-m", "fastpe", "add", str(source), "-o", str(out), "--quiet"]
    before = set(tmp_path.iterdir())
    chance = random.Random(1)
    killed_while_writing = 0
    for _ in range(KILLS):
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            # Most of the time is Python's start: wait for the first new file, then for a random time.
            while process.poll() is None and set(tmp_path.iterdir()) == before:
                time.sleep(0.001)
            time.sleep(chance.uniform(0.0, 0.06))
            process.kill()
            killed_while_writing += process.wait() == -signal.SIGKILL
        if out.exists():
            assert np.load(out, allow_pickle=False).tobytes() == expected
            out.unlink()
        for partial in set(tmp_path.iterdir()) - before:
            partial.unlink()
    assert killed_while_writing > KILLS // 4  # else nothing was tried
    subprocess.run(command, check=True, timeout=60)
    assert np.load(out, allow_pickle=False).tobytes() == expected
    print(f"{killed_while_writing} of {KILLS} killed while they ran")
