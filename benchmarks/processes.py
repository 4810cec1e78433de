# SPDX-License-Identifier: BSD-3-Clause
"""What only fresh processes or many threads can show: import time, memory, and calls from many threads at once."""

from __future__ import annotations

import concurrent.futures
import functools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

import fastpe
from benchmarks.harness import BarResult, Spread

_time_import = """
import time
import numpy
start = time.perf_counter()
import fastpe
print(time.perf_counter() - start)
"""

# Growth of the largest resident set over that at the start of the call. Linux: /proc resets it on request.
_measure_memory = """
import numpy as np, fastpe
def peak_kib():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
{setup}
call = lambda: {call}
open("/proc/self/clear_refs", "w").write("5")
before = peak_kib()
call()
print((peak_kib() - before) * 1024)
"""

_arrays = """
x = np.ones((32, 512, 1024), np.float32)
out = np.ones((32, 512, 1024), np.float32)
half = np.ones((32, 512, 1024), np.float16)
ids = np.arange(32 * 512).reshape(32, 512) % 30522
table = np.ones((30522, 1024), np.float32)
lengths = np.full(32, 400)
offsets = np.arange(32) * 1000
"""

_memory_calls = {
    "first encode(out=) float32": "fastpe.encode(16384, 1024, out=out.reshape(-1, 1024))",
    "first encode(out=) float64": "fastpe.encode(8192, 1024, out=out.reshape(-1).view(np.float64).reshape(-1, 1024))",
    "first add_ float32": "fastpe.add_(x)",
    "first add_ float16": "fastpe.add_(half)",
    "first add_, strided": "fastpe.add_(x[:, :, ::2])",
    "first add_(offset=[B], lengths=)": "fastpe.add_(x, offset=offsets, lengths=lengths)",
    "first add(out=)": "fastpe.add(x, out=out)",
    "first embed(out=)": "fastpe.embed(ids, table, out=out, scale=32.0)",
}


def _run(program: str) -> float:
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


def import_time(processes: int) -> BarResult:
    _run(_time_import)  # writes byte code where there was none
    seconds = [_run(_time_import) for _ in range(processes)]
    milliseconds = [1e3 * s for s in seconds]
    return BarResult(
        "import",
        "import fastpe beyond NumPy, fresh processes",
        Spread.of(milliseconds),
        min(milliseconds),
        at_most=10,
        unit="ms",
    )


def extra_memory(repeats: int) -> list[BarResult]:
    if sys.platform != "linux":
        return []
    results = []
    for name, call in _memory_calls.items():
        program = _measure_memory.format(setup=_arrays, call=call)
        mebibytes = [_run(program) / 2**20 for _ in range(repeats)]
        requirement = "resident memory beyond the arrays, in a fresh process"
        results.append(
            BarResult(f"memory, {name}", requirement, Spread.of(mebibytes), min(mebibytes), at_most=1, unit="MiB")
        )
    return results


def _throughput(callers: int, calls: Sequence[Callable[[], object]], repeats: int) -> float:
    """Calls per second when the list of calls, `repeats` times over, is dealt to this many threads."""
    barrier = threading.Barrier(callers + 1)

    def work(caller: int) -> None:
        barrier.wait()
        for _ in range(repeats):
            for call in calls[caller::callers]:
                call()

    with concurrent.futures.ThreadPoolExecutor(callers) as pool:
        futures = [pool.submit(work, caller) for caller in range(callers)]
        barrier.wait()
        start = time.perf_counter()
        for future in futures:
            future.result()
        return len(calls) * repeats / (time.perf_counter() - start)


def many_callers(rounds: int, seconds: float, callers: int = 8) -> list[BarResult]:
    """The same calls on the same arrays, by eight application threads at once and by one."""
    results = []
    for shape in ((8, 64, 768), (8, 512, 768)):
        encoder = fastpe.PositionalEncoding(shape[-1])
        arrays = [np.zeros(shape, np.float32) for _ in range(callers)]
        calls = [functools.partial(encoder.add_, x) for x in arrays]
        repeats = max(1, round(seconds * _throughput(1, calls, 3) / len(calls)))
        ratios = []
        for round_index in range(rounds):
            rates = {
                count: _throughput(count, calls, repeats) for count in ((1, callers), (callers, 1))[round_index % 2]
            }
            ratios.append(rates[callers] / rates[1])
        expected = fastpe.add_(np.zeros(shape, np.float32))
        for x in arrays:
            x.fill(0)
        with concurrent.futures.ThreadPoolExecutor(callers) as pool:
            assert all(np.array_equal(x, expected) for x in pool.map(encoder.add_, arrays))
        requirement = f"{callers} threads calling at once: throughput of one caller kept (within 5 %)"
        results.append(
            BarResult(f"add_ {list(shape)} float32", requirement, Spread.of(ratios), max(ratios), at_least=0.95)
        )
    return results


def idle_threads(rounds: int) -> BarResult:
    """Processor time that this process uses while it sleeps, when OpenMP's threads have given up waiting for work."""
    x = np.zeros((8, 512, 768), np.float32)
    milliseconds = []
    for _ in range(rounds):
        fastpe.add_(x)
        time.sleep(0.05)
        start = time.process_time()
        time.sleep(0.2)
        milliseconds.append(1e3 * (time.process_time() - start))
    requirement = "idle threads sleep: processor time from 50 to 250 ms after a call"
    return BarResult(
        f"add_ {list(x.shape)} float32", requirement, Spread.of(milliseconds), min(milliseconds), at_most=1, unit="ms"
    )
