# SPDX-License-Identifier: BSD-3-Clause
"""python -m benchmarks.busy: calls with the default threads against num_threads=1 while other programs compute.

Starts twice as many busy processes as there are processors, and ends them whatever happens. The exit code is 1 where a
median default call takes more than 3 times the median call of one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

import fastpe

BAR = 3.0
D_MODEL = 768
ROWS = (1, 64, 512, 1024, 2048, 4096, 16_384, 131_072)  # 3 KB to 403 MB
VOCABULARY = 8192
CALLERS = 16
CALLERS_SHAPE = (4, 256, D_MODEL)

# Ends by itself when this process is gone, however that ended.
HOG = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000): pass
"""

Floats = npt.NDArray[np.float32]
Call = Callable[[int | None], Floats]


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    hogs: list[subprocess.Popen[bytes]] = []
    try:
        hogs += [subprocess.Popen([sys.executable, "-c", HOG]) for _ in range(count)]
        time.sleep(0.5 if hogs else 0)
        yield
    finally:
        for hog in hogs:
            hog.kill()
        for hog in hogs:
            hog.wait()


def works(rows: int) -> dict[str, tuple[Call, Callable[[], object], Floats]]:
    """By name: a call with so many threads, what comes before a call whose answer is looked at, the right answer."""
    encoding = fastpe.encode(rows, D_MODEL, num_threads=1)
    x, out = np.empty_like(encoding), np.empty_like(encoding)
    random = np.random.default_rng(0)
    table = random.standard_normal((VOCABULARY, D_MODEL), np.float32)
    ids = random.integers(0, VOCABULARY, rows)
    return {
        "add_": (lambda threads: fastpe.add_(x, num_threads=threads), lambda: x.fill(1), 1 + encoding),
        "encode": (
            lambda threads: fastpe.encode(rows, D_MODEL, out=out, num_threads=threads),
            lambda: out.fill(np.nan),
            encoding,
        ),
        "embed": (
            lambda threads: fastpe.embed(ids, table, out=out, num_threads=threads),
            lambda: out.fill(np.nan),
            table[ids] + encoding,
        ),
    }


def take_turns(call: Call, seconds: float) -> tuple[list[float], list[float]]:
    """Times of calls with one thread and of default calls, in turns of many calls."""
    turns = 6
    times: dict[int | None, list[float]] = {1: [], None: []}
    for _ in range(turns):
        for threads, of_these in times.items():
            turn_ends = time.perf_counter() + seconds / turns
            while True:
                start = time.perf_counter()
                call(threads)
                end = time.perf_counter()
                of_these.append(end - start)
                if end > turn_ends:
                    break
    return times[1], times[None]


def row(*cells: str) -> str:
    return f"{cells[0]:8}" + "".join(f"{cell:>14}" for cell in cells[1:])


def microseconds(times: list[float], quantile: float) -> str:
    return f"{1e6 * sorted(times)[int(quantile * (len(times) - 1))]:.1f}"


def measure(seconds: float) -> list[float]:
    """Print a line for each work and size; their ratios."""
    print(row("work", "MB", "1 thread, us", "p99", "default, us", "p99", "calls", "ratio"))
    ratios = []
    for rows in ROWS:
        for name, (call, prepare, expected) in works(rows).items():
            for threads in (1, None):
                prepare()
                assert np.array_equal(call(threads), expected), f"{name} of {rows} rows is wrong"
            one, default = take_turns(call, seconds)
            prepare()
            assert np.array_equal(call(None), expected), f"{name} of {rows} rows is wrong"
            ratios.append(statistics.median(default) / statistics.median(one))
            p50_and_p99 = [microseconds(times, quantile) for times in (one, default) for quantile in (0.5, 0.99)]
            megabytes = f"{expected.nbytes / 1e6:.3g}"
            print(row(name, megabytes, *p50_and_p99, f"{len(default)}", f"{ratios[-1]:.2f}"), flush=True)
    return ratios


def measure_callers(seconds: float) -> None:
    """Print what a call takes, seen from outside, where many Python threads call at once."""
    expected = 1 + np.broadcast_to(fastpe.encode(CALLERS_SHAPE[1], D_MODEL, num_threads=1), CALLERS_SHAPE)

    def microseconds_per_call(num_threads: int | None) -> float:
        calls: list[int] = []
        wrong: list[int] = []
        start = threading.Barrier(CALLERS + 1)

        def caller() -> None:
            x = np.ones(CALLERS_SHAPE, np.float32)
            if not np.array_equal(fastpe.add_(x, num_threads=num_threads), expected):
                wrong.append(1)
            start.wait()
            own_calls = 0
            ends = time.perf_counter() + seconds
            while time.perf_counter() < ends:
                fastpe.add_(x, num_threads=num_threads)
                own_calls += 1
            calls.append(own_calls)

        threads = [threading.Thread(target=caller) for _ in range(CALLERS)]
        for thread in threads:
            thread.start()
        start.wait()
        started = time.perf_counter()
        for thread in threads:
            thread.join()
        assert not wrong
        return 1e6 * (time.perf_counter() - started) / sum(calls)

    turns = [(microseconds_per_call(1), microseconds_per_call(None)) for _ in range(3)]
    one, default = (statistics.median(times) for times in zip(*turns, strict=True))
    print(f"{CALLERS} calling threads and no other programs, add_ {list(CALLERS_SHAPE)}:", end=" ")
    print(f"a call takes {default:.0f} us by default, {one:.0f} us with num_threads=1")


def main() -> int:
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parser = argparse.ArgumentParser(prog="python -m benchmarks.busy", description=__doc__)
    parser.add_argument("--processes", type=int, default=2 * processors, help="busy ones; 0: a quiet machine")
    parser.add_argument("--seconds", type=float, default=0.6, help="of each work, size and number of threads")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    threads = fastpe.show_config()["threads"]
    print(f"{options.processes} busy processes, {processors} processors, {threads} threads by default")
    with busy_processes(options.processes):
        ratios = measure(options.seconds)
    measure_callers(options.seconds)
    held = sum(ratio <= BAR for ratio in ratios)
    print(
        f"{held} of {len(ratios)} medians within {BAR:g} times those of one thread; the largest ratio: {max(ratios):.2f}"
    )
    return 0 if held == len(ratios) else 1


if __name__ == "__main__":
    sys.exit(main())
