# SPDX-License-Identifier: BSD-3-Clause
"""Calls in which one allocation fails, whichever it is, raise MemoryError and leave everything as good as it was."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

import fastpe

# Every public function and method, and calls that are refused. What is written in Python allocates often: there, the
# first failures are enough.
CALLS = [
    "fastpe.PositionalEncoding(8)",
    "fastpe.PositionalEncoding(8, max_len=16, freqs=freqs)",
    "enc.encode(3, num_threads=1)",
    "enc.encode(positions, dtype='float64', out=wide)",
    "enc.encode(ids, mask=ids)",
    "enc.add_(x, offset=[1, 2])",
    "enc.add(x, mask=mask)",
    "enc.add(x.tolist(), lengths=lengths)",
    "enc.embed(ids, table, position_table=table)",
    "enc.shift(x, 3)",
    "enc.warm_up(dtype='float64')",
    "enc.frequencies",
    "enc.wavelengths",
    "fastpe.encode(3, 8)",
    "fastpe.encode(3, 8, convention='concat', base=123.0)",
    "fastpe.add_(x)",
    "fastpe.add(x)",
    "fastpe.embed(ids, table)",
    "fastpe.timestep_embedding(positions, 8)",
    "fastpe.encode_grid((2, 3), 8, convention='mae2d')",
    "fastpe.encode_coordinates(x[0, :, :2], 8, convention='mae2d')",
    "fastpe.identify(table)",
    "fastpe.show_config()",
    "fastpe.Convention('mine')",
    "fastpe.GridConvention('mine', axis=enc.convention)",
    "fastpe.RotaryEmbedding(8, interleaved=True)",
    "fastpe.RotaryEmbedding(8, interleaved=True, axes=axes, max_len=8, form='tile')",
    "fastpe.RotaryEmbedding(8, interleaved=False, scaling=linear)",
    "fastpe.PositionalEncoding.from_config({'model_type': 'whisper'})",
    "fastpe.RotaryEmbedding.from_config({'model_type': 'llama', 'head_dim': 8})",
    "fastpe.rotary_frequencies(8, scaling=linear)",
    "rope.rotate_(x, y, offset=[1, 2])",
    "rope.rotate(x, inverse=True)",
    "rope.shift_(x, by=positions)",
    "rope.tables(3)",
    "rope.tables(positions, form='complex')",
    "rope.warm_up()",
    "rope.frequencies",
    "rope.wavelengths",
    "fastpe.rotate_(x, cos=cos, sin=sin, interleaved=True)",
    "layout.parts(128)",
    "layout.tables(points, 128)",
    "layout.rotate(heads, positions=points)",
    "layout.rotate_(heads, positions=points)",
    "pickle.loads(pickle.dumps(enc))",
    "enc.encode(3, ofset=1)",
    "enc.encode(3, 4, 5)",
    "enc.encode(True)",
    "enc.encode(3, dtype='int32')",
    "enc.add_(x[..., :6])",
    "enc.add_(x, positions=[0, 2**70, 1])",
    "rope.tables(3, form='halfs')",
]

# What fails, from the n-th allocation on, for one allocation; and what ends that.
OBJECTS = """
import _testcapi
def fail(n): _testcapi.set_nomemory(n, n + 1)
end = _testcapi.remove_mem_hooks
"""
MALLOC = """
import ctypes
library = ctypes.CDLL(None)
fail, end = library.fail_allocation, library.fail_none
"""
MALLOC_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
static __thread long left = -1;
void fail_allocation(long n) { left = n; }
void fail_none(void) { left = -1; }
static int fails(void) { return left >= 0 && left-- == 0; }
static void* next(const char* name) { return dlsym(RTLD_NEXT, name); }
#define REPLACED(name, parameters, arguments)                        \
  void* name parameters {                                            \
    static void*(*original) parameters;                              \
    if (!original) original = next(#name);                           \
    return fails() ? (errno = ENOMEM, (void*)NULL) : original arguments; \
  }
REPLACED(malloc, (size_t bytes), (bytes))
REPLACED(realloc, (void* old, size_t bytes), (old, bytes))
REPLACED(aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes))
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  static int (*original)(void**, size_t, size_t);
  if (!original) original = next("posix_memalign");
  return fails() ? ENOMEM : original(out, alignment, bytes);
}
"""

SCRIPT = """
import pickle
import numpy as np, fastpe

x, y = np.zeros((2, 3, 8), np.float32), np.zeros((2, 3, 8), np.float32)
heads, points = np.ones((4, 128), np.float32), np.zeros((4, 3))
wide, ids, table = np.zeros((3, 8)), np.zeros((2, 3), np.int64), fastpe.encode(9, 8)
positions, lengths, mask = np.arange(3), np.array([1, 2]), np.array([True, False, True])
freqs, axes, linear = np.ones(4), np.array([0, 0, 1, 1]), {"rope_type": "linear", "factor": 2.0}
cos, sin = np.ones((9, 4), np.float32), np.zeros((9, 4), np.float32)
enc, rope = fastpe.PositionalEncoding(8), fastpe.RotaryEmbedding(8, interleaved=True)
layout = fastpe.rotary_layouts["wan"]

def outcome(code, n):
    try:
        if n is not None:
            fail(n)
        try:
            eval(code)
        finally:
            end()
    except BaseException as error:
        return type(error), str(error)

for source in CALLS:
    code = compile(source, source, "eval")
    end()
    usual = [outcome(code, None) for _ in range(3)][-1]
    if usual and usual[0] not in (TypeError, ValueError):
        raise AssertionError((source, usual))
    found, as_usual = [], 0
    for n in range(MOST):
        if (result := outcome(code, n)) == usual:
            as_usual += 1
        elif issubclass(result[0], MemoryError):
            found.append(n)
            as_usual = 0
        elif result[0] is not SystemError or "without" not in result[1]:  # of NumPy or Python: no exception was set
            raise AssertionError((source, n, result))
        if as_usual == 10:
            break
    assert outcome(code, None) == usual, source
    print(source, len(found), flush=True)
"""


def test_every_public_function_is_called() -> None:
    public = {f"fastpe.{name}(" for name in fastpe.__all__ if callable(getattr(fastpe, name))}
    for prefix, kind in (("enc", fastpe.PositionalEncoding), ("rope", fastpe.RotaryEmbedding)):
        public |= {f"{prefix}.{name}" for name in dir(kind) if not name.startswith("_") and name not in kind.__slots__}
    missing = {name for name in public if not any(name in call for call in CALLS)}
    assert missing == {"fastpe.Identification(", "fastpe.RotaryLayout(", "enc.from_config", "rope.from_config"}


@pytest.mark.parametrize("part", range(4))
def test_objects_of_python(part: int, run_script: Callable[..., str]) -> None:
    pytest.importorskip("_testcapi")
    check(OBJECTS, CALLS[part::4], run_script)


@pytest.mark.skipif(
    sys.platform != "linux" or "LD_PRELOAD" in os.environ or not shutil.which("cc"),
    reason="replaces malloc by LD_PRELOAD",
)
@pytest.mark.parametrize("part", range(4))
def test_malloc(part: int, run_script: Callable[..., str], tmp_path: pathlib.Path) -> None:
    source, library = tmp_path / "failing.c", tmp_path / "failing.so"
    source.write_text(MALLOC_SOURCE, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", source, "-o", library, "-ldl"], check=True)
    check(MALLOC, CALLS[part::4], run_script, LD_PRELOAD=str(library))


def check(hooks: str, calls: list[str], run_script: Callable[..., str], **environment: str) -> None:
    output = run_script(f"CALLS = {calls!r}\nMOST = 1000\n{hooks}{SCRIPT}", OMP_NUM_THREADS="1", **environment)
    counts = dict(line.rsplit(" ", 1) for line in output.splitlines())
    assert list(counts) == calls
    assert sum(map(int, counts.values())) > len(calls)
