# SPDX-License-Identifier: BSD-3-Clause
"""Children of a process that used threads run, and run correctly."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pathlib
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import fastpe

pytestmark = [pytest.mark.timed, pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")]

HERE = pathlib.Path(__file__).parent
needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="looks into /proc")
needs_gunicorn = pytest.mark.skipif(importlib.util.find_spec("gunicorn") is None, reason="gunicorn is not installed")


def with_others(packages: str, order: str) -> object:
    missing = [name for name in packages.split("+") if importlib.util.find_spec(name) is None]
    skip = pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")
    return pytest.param(["others", packages, order], marks=[skip, needs_proc])


@pytest.mark.parametrize(
    "scenario",
    [
        ["fork"],
        ["fork_from_thread"],
        pytest.param(["fork_during_calls"], marks=pytest.mark.slow),
        pytest.param(["fork_during_first_calls"], marks=pytest.mark.slow),
        ["fork_while_rows_are_kept"],
        ["pool", "fork"],
        pytest.param(["pool", "forkserver"], marks=pytest.mark.slow),
        pytest.param(["pool", "spawn"], marks=pytest.mark.slow),
        *(
            with_others(packages, order)
            for packages in ("torch", "sklearn")
            for order in ("fastpe-first", "fastpe-last", "fastpe-in-child")
        ),
    ],
    ids="-".join,
)
def test_fork(scenario: list[str], run_file: Callable[..., str]) -> None:
    run_file(HERE / "fork_scenarios.py", *scenario, timeout_seconds=90)


@needs_gunicorn
@pytest.mark.parametrize("worker_class", [pytest.param("sync", marks=pytest.mark.slow), "gthread"])
def test_preloaded_server(worker_class: str) -> None:
    requests, d_model, rows = 24, 512, 2048
    with socket.create_server(("127.0.0.1", 0), backlog=requests) as listener:
        port = listener.getsockname()[1]
        descriptor = listener.fileno()
        command = [sys.executable, "-m", "gunicorn", "--preload", "--workers=3", f"--worker-class={worker_class}"]
        command += ["--threads=2", f"--bind=fd://{descriptor}", "--timeout=30", "--log-level=warning"]
        command += [f"--chdir={HERE}", "wsgi_app:application"]
        with subprocess.Popen(command, pass_fds=[descriptor], stderr=subprocess.PIPE, text=True) as server:
            try:

                def response(offset: int) -> str:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/?{offset}", timeout=60) as answer:
                        return str(answer.read().decode())

                with ThreadPoolExecutor(6) as clients:
                    found = list(clients.map(response, range(requests)))
            finally:
                server.terminate()
                _, log = server.communicate(timeout=30)
    expected = [hashlib.sha256(fastpe.encode(rows, d_model, offset=i).tobytes()).hexdigest() for i in range(requests)]
    assert found == expected, log
    assert "TIMEOUT" not in log
