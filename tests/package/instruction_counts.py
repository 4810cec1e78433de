# SPDX-License-Identifier: BSD-3-Clause
"""Instructions that small calls execute in the compiled module, counted by Callgrind: a measure without noise.

`python tests/package/instruction_counts.py` prints them as JSON, and with `--update` stores them. Only the instructions of
the extension module are counted, on one thread and with AVX2 (which Callgrind knows, unlike AVX-512), so Python, NumPy and
the C library do not matter; the compiler does, and is stored with the counts.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
import numpy.typing as npt

import fastpe

stored_file = pathlib.Path(__file__).parents[1] / "data" / "instruction_counts.json"

_switches = """
#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void stop(const char* name) { CALLGRIND_DUMP_STATS_AT(name); CALLGRIND_STOP_INSTRUMENTATION; }
"""
_environment = {
    "FASTPE_ISA": "avx2",
    "FASTPE_NUM_THREADS": "1",
    "FASTPE_STREAMING_BYTES": str(1 << 40),  # the size of this machine's cache must not decide
    "PYTHONHASHSEED": "0",
}


def _aligned(*shape: int, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """Kernels treat what is not aligned separately, so the allocator must not decide either."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def _calls() -> dict[str, Any]:
    computing, keeping = fastpe.PositionalEncoding(512, max_len=0), fastpe.PositionalEncoding(768, max_len=256)
    # Rows of which a segment holds one, whatever the size of this machine's first-level cache.
    wide = fastpe.PositionalEncoding(3072, max_len=0)
    halves, pairs = (fastpe.RotaryEmbedding(128, interleaved=each, max_len=256) for each in (False, True))
    tables = fastpe.RotaryEmbedding(128, interleaved=False, max_len=0)
    table, rows, x, half = _aligned(64, 512), _aligned(256, 512), _aligned(8, 8, 3072), _aligned(8, 8, 3072, dtype="f2")
    token, tokens, out, vocabulary = _aligned(1, 1, 768), _aligned(64, 1, 768), _aligned(4, 4, 768), _aligned(100, 768)
    q, k, heads = _aligned(1, 32, 1, 128), _aligned(1, 8, 1, 128), _aligned(1, 8, 64, 128)
    random = np.random.default_rng(2)
    scattered, offsets, ids = (
        random.permutation(100_000)[:256],
        random.integers(0, 256, 64),
        random.integers(0, 100, (4, 4)),
    )
    two, two_tiled = (_aligned(1, 64), _aligned(1, 64)), (_aligned(1, 128), _aligned(1, 128))
    return {
        "encode [64, 512]": lambda: computing.encode(64, out=table),
        "encode 256 scattered positions of 512": lambda: computing.encode(scattered, out=rows),
        "add_ [8, 8, 3072]": lambda: wide.add_(x),
        "add_ [8, 8, 3072], float16": lambda: wide.add_(half),
        "add_ one token [1, 1, 768], kept row": lambda: keeping.add_(token, offset=200),
        "add_ 64 tokens [64, 1, 768], kept rows": lambda: keeping.add_(tokens, offset=offsets),
        "embed [4, 4, 768], scaled": lambda: keeping.embed(ids, vocabulary, scale=3.0, out=out),
        "rotate_ [1, 8, 64, 128], halves": lambda: halves.rotate_(heads),
        "rotate_ [1, 8, 64, 128], interleaved": lambda: pairs.rotate_(heads),
        "rotate_ q [1, 32, 1, 128] and k [1, 8, 1, 128], kept row": lambda: halves.rotate_(q, k, offset=200),
        "tables of one row, halves": lambda: tables.tables(1, offset=200, out=two),
        "tables of one row, tile": lambda: tables.tables(1, offset=200, form="tile", out=two_tiled),
    }


def _count_here(library: str) -> None:
    """Run under Callgrind: one dump for each call, after others that make what is made once."""
    switches = ctypes.CDLL(library)
    for name, call in _calls().items():
        call()
        call()
        switches.start()
        call()
        switches.stop(name.encode())


def _of_module(dump: str) -> tuple[str, int]:
    """The call's name, and the cost of all functions in the extension module, without what they call."""
    found = re.search(r"^desc: Trigger: Client Request: (.*)$", dump, re.MULTILINE)
    total, in_module, is_call = 0, False, False
    for line in dump.splitlines():
        if line.startswith("ob="):
            in_module = "/_core." in line
        elif line.startswith("calls="):
            is_call = True
        elif line[:1].isdigit():
            total += int(line.split()[1]) if in_module and not is_call else 0
            is_call = False
    return found[1] if found else "", total


def count() -> dict[str, Any]:
    """The compiler and the instructions of each call, or why nothing can be counted here."""
    config = fastpe.show_config()
    if shutil.which("valgrind") is None or "avx2" not in config["available_instruction_sets"]:
        return {"unavailable": "there is no valgrind, or no AVX2"}
    with tempfile.TemporaryDirectory() as directory:
        compile_switches = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", f"{directory}/switches.so"]
        if (
            subprocess.run(compile_switches, input=_switches, text=True, capture_output=True, check=False).returncode
            != 0
        ):
            return {"unavailable": "cc does not find valgrind/callgrind.h"}
        options = ["--instr-atstart=no", "--compress-strings=no", "--compress-pos=no"]
        command = ["valgrind", "--tool=callgrind", *options, f"--callgrind-out-file={directory}/counts", sys.executable]
        command += [__file__, "--count-here", f"{directory}/switches.so"]
        run = subprocess.run(command, env={**os.environ, **_environment}, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise RuntimeError(f"valgrind failed:\n{run.stdout}\n{run.stderr}")
        counts = dict(_of_module(path.read_text(encoding="utf-8")) for path in pathlib.Path(directory).glob("counts*"))
    return {"compiler": config["compiler"], "instructions": {name: counts[name] for name in _calls()}}


if __name__ == "__main__":
    if "--count-here" in sys.argv:
        _count_here(sys.argv[-1])
    else:
        text = json.dumps(count(), indent=2) + "\n"
        print(text, end="")
        if "--update" in sys.argv:
            stored_file.write_text(text, encoding="utf-8")
