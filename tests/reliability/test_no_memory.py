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
CALLS = [written(*each) for each in test_wrong_arguments.CALLS.items() if each[0] != "fastpe.show_config"]
CALLS += [
    "fastpe.show_config('dicts')",
    "fastpe.PositionalEncoding(8, max_len=16, frequencies=freqs)",
    *each("enc.encode({})", "positions, dtype='float64', out=wide | ids, valid=ids"),
    "enc.add_(x, offset=[1, 2])",
    *each("enc.add({})", "x, valid=valid | x.tolist(), lengths=lengths"),
    "enc.embed(ids, table, position_table=table)",
    *each("enc.{}", "warm_up(dtype='float64') | frequencies | wavelengths"),
    "fastpe.encode(3, 8, convention='concat', base=123.0)",
    *each(
        "fastpe.RotaryEmbedding(8, {})",
        "interleaved=True, frequency_axes=axes, max_len=8 | interleaved=False, scaling=linear",
    ),
    *each("rope.{}, seq_axis=-2)", "rotate_(x, y, offset=[1, 2] | rotate(x, inverse=True | shift_(x, by=positions"),
    # More arrays than the free lists of tuples serve
    *each("rope.{}, seq_axis=-2)", "rotate_(x, *many | shift_(x, *many, by=3 | rotate_(large"),
    "fastpe.rotate_by_tables_(x, *many, cos=cos, sin=sin, interleaved=True, seq_axis=-2)",
    "enc.add_(large)",
    # Into memory that is given
    *each("enc.{})", "add_(memory | add(x, out=y | embed(ids, table, out=y"),
    *each("rope.{}, seq_axis=-2)", "rotate_(memory, y | rotate(x, out=y"),
    *each(
        "rope.tables(positions, {})",
        "out=(table[:3, :4], table[3:6, :4]) | form='angles', out=wide[:, :4] | form='complex'",
    ),
    *each("rope.{}", "frequencies | wavelengths | tables(3, form='halfs')"),
    "pickle.loads(pickle.dumps(enc))",
    *each("enc.encode(3, {})", "ofset=1 | 4, 5 | dtype='int32'"),
    *each("enc.add_(x{})", "[..., :6] | , positions=[0, 2**70, 1]"),
    # Grids and points, into arrays that are given
    *each(
        "fastpe.encode_grid((2, 3), 8, convention='mae2d', {})",
        "out=cells | class_tokens=1, out=listed | channels_first=True, out=planes",
    ),
    "fastpe.encode_grid((2, 3), 8, convention='mae2d', valid=[[1, 1, 0], [1, 0, 0]], out=cells)",
    *each(
        "fastpe.encode_coordinates({})",
        "points, 768, convention='mae2d', out=of_points | points, 8, convention='nerf', include_input=True, out=with_points",
    ),
]
LARGE_CALLS = [
    # Columns far apart, of which some are done at a time
    *each("far.{})", "add_(apart.transpose(0, 2, 1) | add(wide_rows, out=far_out.T | add_(apart.transpose(0, 2, 1), table=far_table"),
    *each("far.{}, out=far_out.T)", "encode(64 | encode(64, dtype='float32', offset=3 | encode(backwards"),
    "fastpe.timestep_embedding(backwards, 6400, flip_sin_to_cos=True, downscale_freq_shift=0, out=far_out.T)",
    "far.embed(far_ids, far_table, out=far_out.T)",
    # Large enough for two threads
    *each("broad.{})", "add_(long | add_(long, offset=[3, 70000] | add(long, out=long_out | encode(2048, out=long_out[0]"),
    "broad.add_(long, valid=long_valid)",
    *each("turned.{}", "rotate_(heads, keys, seq_axis=0, cu_seqlens=[0, 700, 2048]) | rotate(heads, seq_axis=0, out=heads_out)"),
    "turned.tables(2048, out=(long[0, :, :64], long[1, :, :64]))",
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
import pickle, sys, types
CALLS, MOST = eval(sys.argv[1]), {MOST}
memory = types.SimpleNamespace(__array_interface__=x.__array_interface__)
y, wide = np.ones((2, 3, 8), np.float32), np.zeros((3, 8))
many, large = list(np.ones((24, 2, 3, 8), np.float32)), np.ones((1, 4096, 8), np.float32)
positions, lengths, valid = np.arange(3), np.array([1, 2]), np.array([True, False, True])
far, far_table = fastpe.PositionalEncoding(6400, max_len=0), fastpe.encode(64, 6400, convention="concat")
apart, wide_rows, far_out = (np.ones(shape, np.float32) for shape in ((1, 6400, 64), (64, 6400), (6400, 64)))
backwards, far_ids = np.arange(64)[::-1], np.arange(64) % 7
broad, turned = fastpe.PositionalEncoding(512, max_len=4096), fastpe.RotaryEmbedding(128, interleaved=False)
long, long_out, long_valid = np.ones((2, 2048, 512), np.float32), np.ones((2, 2048, 512), np.float32), np.arange(2048) % 3 != 1
heads, keys, heads_out = (np.ones((2048, count, 128), np.float32) for count in (8, 2, 8))
cells, listed, planes = np.ones((2, 3, 8), np.float32), np.ones((7, 8), np.float32), np.ones((8, 2, 3), np.float32)
points, of_points, with_points = np.arange(14.0).reshape(7, 2), np.ones((7, 768), np.float32), np.ones((7, 10), np.float32)
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

named = [(name, each) for name, each in globals().items() if type(each) is np.ndarray]
arrays = [(name, array, array.copy()) for name, array in named + [("many", each) for each in many]]

# A call's arrays as they are and as they were, and all small ones, which it may reach by other names.
def of_call(source):
    return [(array, before) for name, array, before in arrays if name in source or array.size < 1000]

for source in CALLS:
    code = compile(source, source, "eval")
    end()
    touched = of_call(source)
    usual = [outcome(code, None) for _ in range(3)][-1]
    if usual and usual[0] not in (TypeError, ValueError):
        raise AssertionError((source, usual))
    found, as_usual = [], 0
    for n in range(MOST):
        for array, values in touched:
            array[...] = values
        result = outcome(code, n)
        if result and not all(array.tobytes() == values.tobytes() for array, values in touched):
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
    check(CALLS + LARGE_CALLS, 1, OBJECTS, run_script)


@pytest.mark.skipif(
    sys.platform != "linux" or "LD_PRELOAD" in os.environ or not shutil.which("cc"),
    reason="replaces malloc by LD_PRELOAD",
)
@pytest.mark.parametrize("threads", [1, 2])
def test_malloc(threads: int, run_script: Callable[..., str], tmp_path: pathlib.Path) -> None:
    source, library = tmp_path / "failing.c", tmp_path / "failing.so"
    source.write_text(MALLOC_SOURCE, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", source, "-o", library, "-ldl"], check=True)
    calls = CALLS + LARGE_CALLS if threads == 1 else LARGE_CALLS
    check(calls, threads, MALLOC, run_script, LD_PRELOAD=str(library))


def check(calls: list[str], threads: int, hooks: str, run_script: Callable[..., str], **environment: str) -> None:
    output = run_script(hooks + SCRIPT, repr(calls), OMP_NUM_THREADS=str(threads), **environment)
    counts = dict(line.rsplit(" ", 1) for line in output.splitlines())
    assert list(counts) == calls
    assert sum(map(int, counts.values())) > (4 if calls[0] == CALLS[0] else 0.5) * len(calls)
