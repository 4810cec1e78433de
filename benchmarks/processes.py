# SPDX-License-Identifier: BSD-3-Clause
"""What only fresh processes can show: import time and memory."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.results import BarResult, Spread

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
x = np.ones((32, 512, 1024), np.float32)
out = np.ones((32, 512, 1024), np.float32)
half = np.ones((32, 512, 1024), np.float16)
ids = np.arange(32 * 512).reshape(32, 512) % 30522
table = np.ones((30522, 1024), np.float32)
lengths = np.full(32, 400)
offsets = np.arange(32) * 1000
call = lambda: {call}
open("/proc/self/clear_refs", "w").write("5")
before = peak_kib()
call()
print((peak_kib() - before) * 1024)
"""

_memory_calls = {
    "encode(out=) float32": "fastpe.encode(16384, 1024, out=out.reshape(-1, 1024))",
    "encode(out=) float64": "fastpe.encode(8192, 1024, out=out.reshape(-1).view(np.float64).reshape(-1, 1024))",
    "add_ float32": "fastpe.add_(x)",
    "add_ float16": "fastpe.add_(half)",
    "add_, strided": "fastpe.add_(x[:, :, ::2])",
    "add_(offset=[B], lengths=)": "fastpe.add_(x, offset=offsets, lengths=lengths)",
    "add(out=)": "fastpe.add(x, out=out)",
    "embed(out=)": "fastpe.embed(ids, table, out=out, scale=32.0)",
}


def _run(program: str) -> float:
    # Byte code is kept, as pip keeps it: compiling the package anew takes longer than importing it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", program]
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def import_time(processes: int) -> BarResult:
    _run(_time_import)  # writes byte code where there was none
    milliseconds = [1e3 * _run(_time_import) for _ in range(processes)]
    return BarResult("import fastpe beyond NumPy", Spread.of(milliseconds), at_most=10, unit="ms")


def extra_memory(repeats: int) -> list[BarResult]:
    """Resident memory of a process's first call beyond its arrays."""
    if sys.platform != "linux":
        return []
    return [
        BarResult(
            f"memory beyond the arrays, first {name}",
            Spread.of([_run(_measure_memory.format(call=call)) / 2**20 for _ in range(repeats)]),
            at_most=1,
            unit="MiB",
        )
        for name, call in _memory_calls.items()
    ]
