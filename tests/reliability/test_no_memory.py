# SPDX-License-Identifier: BSD-3-Clause
"""Calls in which one allocation fails, whichever it is, raise MemoryError and change nothing."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

from ..oracles.refusals import each
from . import test_wrong_arguments
from .test_wrong_arguments import written

# Every public function and method, other ways to call some, and calls that are refused. What is written in Python allocates
# often: there, the first failures are enough.
MOST = 150
CALLS = [written(function, arguments) for function, arguments in test_wrong_arguments.CALLS.items()]
CALLS += [
    "fastpe.PositionalEncoding(8, max_len=16, frequencies=freqs)",
    *each("enc.encode({})", "positions, dtype='float64', out=wide | ids, valid=ids"),
    "enc.add_(x, offset=[1, 2])",
    *each("enc.add({})", "x, valid=valid | x.tolist(), lengths=lengths"),
    "enc.embed(ids, table, position_table=table)",
    *each("enc.{}", "warm_up(dtype='float64') | frequencies | wavelengths"),
    "fastpe.encode(3, 8, convention='concat', base=123.0)",
    *each("fastpe.RotaryEmbedding(8, {})", "interleaved=True, frequency_axes=axes, max_len=8 | interleaved=False, scaling=linear"),
    *each("rope.{}, seq_axis=-2)", "rotate_(x, y, offset=[1, 2] | rotate(x, inverse=True | shift_(x, by=positions"),
    # More arrays than the free lists of tuples serve
    *each("rope.{}, seq_axis=-2)", "rotate_(x, *many | shift_(x, *many, by=3 | rotate_(large"),
    "fastpe.rotate_by_tables_(x, *many, cos=cos, sin=sin, interleaved=True, seq_axis=-2)",
    "enc.add_(large)",
    # Into memory that is given
    *each("enc.{})", "add_(memory | add(x, out=y | embed(ids, table, out=y"),
    *each("rope.{}, seq_axis=-2)", "rotate_(memory, y | rotate(x, out=y"),
    *each("rope.tables(positions, {})", "out=(table[:3, :4], table[3:6, :4]) | form='angles', out=wide[:, :4] | form='complex'"),
    *each("rope.{}", "frequencies | wavelengths | tables(3, form='halfs')"),
    "pickle.loads(pickle.dumps(enc))",
    *each("enc.encode(3, {})", "ofset=1 | 4, 5 | dtype='int32'"),
    *each("enc.add_(x{})", "[..., :6] | , positions=[0, 2**70, 1]"),
]  # fmt: skip

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

SCRIPT = f"""{test_wrong_arguments.SETUP}
import pickle, types
CALLS, MOST = {CALLS}, {MOST}
memory = types.SimpleNamespace(__array_interface__=x.__array_interface__)
y, wide = np.ones((2, 3, 8), np.float32), np.zeros((3, 8))
many, large = list(np.ones((24, 2, 3, 8), np.float32)), np.ones((1, 4096, 8), np.float32)
positions, lengths, valid = np.arange(3), np.array([1, 2]), np.array([True, False, True])
freqs, axes, linear = np.ones(4), np.array([0, 0, 1, 1]), dict(rope_type="linear", factor=2.0)

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

def contents():
    arrays = [*many, *(each for each in globals().values() if type(each) is np.ndarray)]
    return [array.tobytes() for array in arrays]

for source in CALLS:
    code = compile(source, source, "eval")
    end()
    usual = [outcome(code, None) for _ in range(3)][-1]
    if usual and usual[0] not in (TypeError, ValueError):
        raise AssertionError((source, usual))
    found, as_usual = [], 0
    for n in range(MOST):
        before = contents()
        result = outcome(code, n)
        if result and contents() != before:
            raise AssertionError((source, n, result, "an array was changed"))
        if result == usual:
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


@pytest.mark.skipif(
    sys.version_info[:2] in ((3, 12), (3, 13)),
    reason="_testcapi.set_nomemory ends these Pythons themselves, in code without fastpe",
)
def test_objects_of_python(run_script: Callable[..., str]) -> None:
    pytest.importorskip("_testcapi")
    check(OBJECTS, run_script)


@pytest.mark.skipif(
    sys.platform != "linux" or "LD_PRELOAD" in os.environ or not shutil.which("cc"),
    reason="replaces malloc by LD_PRELOAD",
)
def test_malloc(run_script: Callable[..., str], tmp_path: pathlib.Path) -> None:
    source, library = tmp_path / "failing.c", tmp_path / "failing.so"
    source.write_text(MALLOC_SOURCE, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", source, "-o", library, "-ldl"], check=True)
    check(MALLOC, run_script, LD_PRELOAD=str(library))


def check(hooks: str, run_script: Callable[..., str], **environment: str) -> None:
    output = run_script(hooks + SCRIPT, OMP_NUM_THREADS="1", **environment)
    counts = dict(line.rsplit(" ", 1) for line in output.splitlines())
    assert list(counts) == CALLS
    assert sum(map(int, counts.values())) > 4 * len(CALLS)
