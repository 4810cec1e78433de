# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest


def run_python(arguments: list[str], timeout_seconds: float, environment: dict[str, str]) -> str:
    """What Python prints, run in a process of its own: hanging or crashing, it fails the test that asked for it."""
    with subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, error = process.communicate(timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)  # its children too
            out, error = process.communicate()
            pytest.fail(f"no end within {timeout_seconds} s; printed {out!r}, {error!r}")
    assert process.returncode == 0, f"exit code {process.returncode}: {out}\n{error}"
    return out


@pytest.fixture(scope="session")
def run_script() -> Callable[..., str]:
    """Run a script given as text, with arguments."""

    def run(script: str, *arguments: str, timeout_seconds: float = 120.0, **environment: str) -> str:
        return run_python(["-c", textwrap.dedent(script), *arguments], timeout_seconds, environment)

    return run


@pytest.fixture(scope="session")
def run_file() -> Callable[..., str]:
    """Run a script file with arguments."""

    def run(path: pathlib.Path, *arguments: str, timeout_seconds: float = 120.0, **environment: str) -> str:
        return run_python([str(path), *arguments], timeout_seconds, environment)

    return run
