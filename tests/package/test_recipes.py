# SPDX-License-Identifier: BSD-3-Clause
"""The guide's recipes for servers, runtimes and tables, run as they stand there, and the server of examples/ under load.

Run with: ``pip install 'fastpe[test,recipes]' && pytest tests/package/test_recipes.py``; more load: add ``-m slow -s``.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib.util
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.docs_pages import recipe
from ..oracles.examples import DIRECTORY, example

# Of the libraries, and of what they depend on.
pytestmark = pytest.mark.filterwarnings("ignore")


def require(*libraries: str) -> None:
    missing = [name for name in libraries if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: pip install 'fastpe[recipes]'")


@pytest.mark.parametrize("library", ["onnxruntime", "datasets", "polars", "torch.utils.data"])
def test_recipe(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require(library.partition(".")[0], *(["onnx"] if library == "onnxruntime" else []))
    if library == "torch.utils.data" and multiprocessing.get_start_method() != "fork":
        pytest.skip("a snippet has no module that workers could import, where they are not forked")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    rng = np.random.default_rng(0)
    batch, seq_len, d_model = 4, 128, 256
    x = rng.standard_normal((batch, seq_len, d_model), dtype=np.float32)
    table = rng.standard_normal((1000, d_model), dtype=np.float32)
    before = x.copy()
    # What the guide's snippets before the recipe have defined.
    names = {"np": np, "fastpe": fastpe, "x": x, "batch": batch, "seq_len": seq_len, "d_model": d_model}
    names |= {"table": table, "ids": rng.integers(0, 1000, (batch, seq_len))}
    exec(recipe("guide.md" if library == "onnxruntime" else "integrations.md", library), names)  # noqa: S102
    np.testing.assert_array_equal(x, before)


# ---- the server of examples/asgi_server.py, which listens on 127.0.0.1 alone


def test_the_application_without_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    require("onnx", "onnxruntime")
    example("asgi_server").main()
    lines = capsys.readouterr().out.splitlines()
    assert [line[:4] for line in lines] == ["200:", "400:", "400:"]
    assert "ids" in lines[1]


@pytest.mark.parametrize("body", [b"", b"[]", b"[1.5]", b"[true]", b"[-1]", b"[" * 100000, b"[1" + b"0" * 40 + b"]"])
def test_a_wrong_request_gets_a_message(body: bytes) -> None:
    require("onnx", "onnxruntime")
    status, answer = asyncio.run(example("asgi_server").call(body))
    assert status == 400
    assert answer["error"]


@dataclasses.dataclass(frozen=True)
class Server:
    process: subprocess.Popen[str]
    port: int

    @property
    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def server() -> Iterator[Server]:
    command = [sys.executable, "-m", "uvicorn", "asgi_server:app", f"--app-dir={DIRECTORY}"]
    command += ["--host=127.0.0.1", "--port=0", "--no-access-log", "--timeout-graceful-shutdown=20"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if found := re.search(r"running on http://127\.0\.0\.1:(\d+)", line):
                    yield Server(process, int(found[1]))
                    break
            else:
                pytest.fail("the server did not start")
        finally:
            process.kill()


@dataclasses.dataclass
class Load:
    """What clients saw."""

    seconds: list[float] = dataclasses.field(default_factory=list)
    refused: int = 0
    cut_short: int = 0

    def percentile_ms(self, percent: float) -> float:
        return float(np.percentile(self.seconds, percent)) * 1e3


async def client(port: int, bodies: Iterator[bytes], expected: dict[bytes, Any], load: Load) -> None:
    """Send requests over one connection until there are no more, or the server closes it between two answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for body in bodies:
            start = time.perf_counter()
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                load.refused += 1
                load.cut_short += bool(getattr(error, "partial", b""))
                return
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            assert length is not None
            answer = await reader.readexactly(int(length[1]))
            load.seconds.append(time.perf_counter() - start)
            assert head.startswith(b"HTTP/1.1 200 ")
            assert json.loads(answer) == expected[body]
            if b"connection: close" in head.lower():
                return
    finally:
        writer.close()


def requests(lengths: tuple[int, ...]) -> dict[bytes, Any]:
    """Bodies of some lengths, with the answers that the same model gives here."""
    model = example("asgi_server").model
    rng = np.random.default_rng(1)
    ids = [rng.integers(0, 1000, length).tolist() for length in lengths]
    return {json.dumps(one).encode(): model(one) for one in ids}


async def run_load(port: int, count: int, connections: int, expected: dict[bytes, Any]) -> Load:
    load = Load()
    bodies = iter([*expected] * (count // len(expected)))
    # The clients take turns with one iterator, so that all of it is sent once.
    await asyncio.wait_for(
        asyncio.gather(*(client(port, bodies, expected, load) for _ in range(connections))), timeout=500
    )
    return load


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the server's memory from /proc")
@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_server_under_load(count: int) -> None:
    require("onnx", "onnxruntime", "uvicorn")
    expected = requests((1, 7, 64, 512))
    with server() as running:
        asyncio.run(run_load(running.port, 400, 16, expected))
        warm = running.resident_bytes
        start = time.perf_counter()
        load = asyncio.run(run_load(running.port, count, 16, expected))
        seconds = time.perf_counter() - start
        grown = running.resident_bytes - warm
    p50, p95, p99 = (load.percentile_ms(percent) for percent in (50, 95, 99))
    print(
        f"\n{count} requests over 16 connections: {count / seconds:.0f} per second; latency p50 {p50:.1f} ms, p95 {p95:.1f} ms, "
        f"p99 {p99:.1f} ms; resident memory {warm / 1e6:.0f} MB, grown by {grown / 1e6:.1f} MB"
    )
    assert (len(load.seconds), load.refused) == (count, 0)
    # Allocators keep some of what threads had; a leak of one input of 512 rows in a hundred would be 6.5 MB.
    assert grown < 6e6
    # Far above what a busy machine needs: a request that waits for a lost wake-up takes for ever.
    assert p99 < 10_000


@pytest.mark.skipif(os.name != "posix", reason="this signal is POSIX's")
def test_a_busy_server_stops() -> None:
    require("onnx", "onnxruntime", "uvicorn")
    expected = requests((4096,))

    async def load_and_stop(running: Server) -> Load:
        load = asyncio.create_task(run_load(running.port, 100_000, 8, expected))
        await asyncio.sleep(0.5)
        running.process.send_signal(signal.SIGTERM)
        return await load

    with server() as running:
        load = asyncio.run(load_and_stop(running))
        code = running.process.wait(timeout=30)
        assert running.process.stderr is not None
        log = running.process.stderr.read()
    # Every request was answered in full or not at all, and no thread kept the process.
    assert load.cut_short == 0
    assert load.seconds
    assert len(load.seconds) < 100_000
    assert code in (0, -signal.SIGTERM), log
    assert "Traceback" not in log
    assert "ERROR" not in log
