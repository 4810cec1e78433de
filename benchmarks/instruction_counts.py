# SPDX-License-Identifier: BSD-3-Clause
"""Instructions that four small workloads execute in the compiled module, counted by Callgrind: a measure without noise.

``python -m benchmarks.instruction_counts``            prints them with the stored ones
``python -m benchmarks.instruction_counts --update``   stores them, after a change that is meant to move them

Only the instructions of the extension module are counted, on one thread and with AVX2 (which Callgrind knows, unlike
AVX-512), so Python, NumPy and the C library do not matter; the compiler does, and is stored with the counts.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import fastpe
from benchmarks.native import compile_library

_source = pathlib.Path(__file__).with_suffix(".c")
_root = _source.parent.parent
stored_file = _root / "tests" / "data" / "instruction_counts.json"

_environment = {
    "FASTPE_ISA": "avx2",
    "FASTPE_NUM_THREADS": "1",
    "FASTPE_STREAMING_BYTES": str(1 << 40),  # the size of this machine's cache must not decide
    "PYTHONHASHSEED": "0",
}


def unavailable() -> str | None:
    """Why nothing can be counted here."""
    if shutil.which("valgrind") is None:
        return "valgrind is not installed"
    if "avx2" not in fastpe.show_config()["available_instruction_sets"]:
        return "the avx2 kernels are not available here"
    with tempfile.TemporaryDirectory() as directory:
        if not compile_library(_source, pathlib.Path(directory, "switches.so"), [[]]):
            return "there is no C compiler, or it does not find valgrind/callgrind.h"
    return None


def _aligned(*shape: int) -> npt.NDArray[np.float32]:
    """Kernels treat what is not aligned separately, so the allocator must not decide either."""
    size = int(np.prod(shape))
    memory = np.zeros(size + 16, np.float32)
    start = -memory.ctypes.data % 64 // 4
    return memory[start : start + size].reshape(shape)


def _workloads() -> dict[str, Callable[[], object]]:
    encoder = fastpe.PositionalEncoding(512)
    # Rows of which a segment holds one, whatever the size of this machine's first-level cache.
    wide = fastpe.PositionalEncoding(3072)
    caching = fastpe.PositionalEncoding(768, max_len=256)
    table, batch, token, rows = _aligned(512, 512), _aligned(8, 64, 3072), _aligned(1, 1, 768), _aligned(256, 512)
    scattered = np.random.default_rng(2).permutation(100_000)[:256]

    def decode() -> None:
        for position in range(64):
            caching.add_(token, offset=position)

    return {
        "encode [512, 512]": lambda: encoder.encode(512, out=table),
        "add_ [8, 64, 3072]": lambda: wide.add_(batch),
        "add_ [1, 1, 768], cached row, 64 calls": decode,
        "encode 256 scattered positions of 512": lambda: encoder.encode(scattered, out=rows),
    }


def _count_here(library: str) -> None:
    """Run under Callgrind: one dump for each workload, after a call that makes what is made once."""
    switches = ctypes.CDLL(library)
    assert fastpe.show_config()["instruction_set"] == "avx2"
    for name, call in _workloads().items():
        call()
        switches.start_counting()
        call()
        switches.stop_counting(name.encode())


def _instructions_of_module(dump: str) -> tuple[str, int]:
    """The workload's name, and the cost of all functions in the extension module, without what they call."""
    found = re.search(r"^desc: Trigger: Client Request: (.*)$", dump, re.MULTILINE)
    if found is None:
        return "", 0
    total, in_module, is_call = 0, False, False
    for line in dump.splitlines():
        if line.startswith("ob="):
            in_module = "/_core." in line
        elif line.startswith("calls="):
            is_call = True
        elif line[:1].isdigit():
            if in_module and not is_call:
                total += int(line.split()[1])
            is_call = False
    return found.group(1), total


def count() -> dict[str, Any]:
    """The compiler, and instructions per workload."""
    with tempfile.TemporaryDirectory() as directory:
        library = pathlib.Path(directory, "switches.so")
        compile_library(_source, library, [[]])
        command = [
            "valgrind",
            "--tool=callgrind",
            "--instr-atstart=no",
            "--compress-strings=no",
            "--compress-pos=no",
            f"--callgrind-out-file={directory}/counts",
            *(sys.executable, "-m", "benchmarks.instruction_counts", "--count-here", str(library)),
        ]
        environment = {**os.environ, **_environment}
        run = subprocess.run(command, cwd=_root, env=environment, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise RuntimeError(f"valgrind failed:\n{run.stdout}\n{run.stderr}")
        dumps = [path.read_text(encoding="utf-8") for path in pathlib.Path(directory).glob("counts*")]
    counts = dict(_instructions_of_module(dump) for dump in dumps)
    counts.pop("", None)
    missing = [name for name in _workloads() if not counts.get(name)]
    if missing:
        raise RuntimeError(f"no instructions were counted for {', '.join(missing)}")
    return {"compiler": fastpe.show_config()["compiler"], "instructions": {name: counts[name] for name in _workloads()}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instruction_counts", description=__doc__)
    parser.add_argument("--update", action="store_true", help="store the counts")
    parser.add_argument("--json", action="store_true", help="print the counts, or why there are none, as JSON")
    parser.add_argument("--count-here", metavar="LIBRARY", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.count_here:
        _count_here(arguments.count_here)
        return
    reason = unavailable()
    counted: dict[str, Any] = {"unavailable": reason} if reason is not None else count()
    if arguments.json:
        print(json.dumps(counted))
        return
    if reason is not None:
        sys.exit(reason)
    stored = json.loads(stored_file.read_text(encoding="utf-8")) if stored_file.exists() else {"instructions": {}}
    for name, instructions in counted["instructions"].items():
        before = stored["instructions"].get(name)
        print(f"{name:40} {instructions:>12}" + (f"  {instructions / before - 1:+.2%} of the stored" if before else ""))
    print(f"compiled by {counted['compiler']}, stored counts by {stored.get('compiler', 'nobody')}")
    if arguments.update:
        stored_file.parent.mkdir(exist_ok=True)
        stored_file.write_text(json.dumps(counted, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
