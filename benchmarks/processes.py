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

# The growth of the largest resident set during the call, and that of its pages of files. These are pages of code:
# processes share them, and the system maps many of them at once. Linux: /proc resets the largest set on request.
_measure_memory = """
import numpy as np, fastpe
def mib(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) / 1024
x = np.ones((32, 512, 1024), np.float32)
out = np.ones((32, 512, 1024), np.float32)
half = np.ones((32, 512, 1024), np.float16)
ids = np.arange(32 * 512).reshape(32, 512) % 30522
table = np.ones((30522, 1024), np.float32)
lengths = np.full(32, 400)
offsets = np.arange(32) * 1000
call = lambda: {call}
open("/proc/self/clear_refs", "w").write("5")
before = mib("VmHWM"), mib("RssFile")
call()
print(mib("VmHWM") - before[0], mib("RssFile") - before[1])
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


def _run(program: str) -> list[float]:
    """The numbers that a fresh process prints."""
    # Byte code is kept, as pip keeps it: compiling the package anew takes longer than importing it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return [float(number) for number in printed.split()]


def import_time(processes: int) -> BarResult:
    _run(_time_import)  # writes byte code where there was none
    milliseconds = [1e3 * seconds for _ in range(processes) for seconds in _run(_time_import)]
    return BarResult("import fastpe beyond NumPy", Spread.of(milliseconds), at_most=10, unit="ms")


def extra_memory(repeats: int) -> list[BarResult]:
    """Resident memory of a process's first call beyond its arrays."""
    if sys.platform != "linux":
        return []
    return [_extra_memory(name, call, repeats) for name, call in _memory_calls.items()]


def _extra_memory(name: str, call: str, repeats: int) -> BarResult:
    runs = [_run(_measure_memory.format(call=call)) for _ in range(repeats)]
    return BarResult(
        f"memory beyond the arrays, first {name}",
        Spread.of([grown for grown, _ in runs]),
        at_most=1,
        unit="MiB",
        limit="without pages of code",
        value_at_limit=Spread.of([grown - mapped for grown, mapped in runs]).median,
    )
