#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pytest with AddressSanitizer and UndefinedBehaviorSanitizer preloaded into a stock Python: sanitize.sh [pytest's arguments]
set -eu
cd "$(dirname "$0")/.."
flags="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
# -O1, as in the preset asan: with more, each of the kernels is compiled for minutes.
python=$(BUILD_TYPE=RelWithDebInfo tools/variant.sh sanitized "-DCMAKE_CXX_FLAGS=$flags" \
  "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g")
LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so) $(g++ -print-file-name=libstdc++.so.6)"
# Python itself leaks at exit.
export LD_PRELOAD ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
export PYTHONMALLOC=malloc
# Left out is what cannot be had under AddressSanitizer: an address space with a limit; an `operator new` that throws;
# memory that is given back at once; calls on gigabytes within a given time; valgrind and QEMU.
# Only Python's own output is captured, so that a report is seen: it ends the process.
exec "$python" -m pytest -p no:cacheprovider --capture=sys \
  --deselect tests/cli/test_arrays.py::test_a_file_larger_than_memory \
  --deselect tests/reliability/test_memory.py::test_memory_that_runs_out \
  --deselect tests/reliability/test_memory.py::test_wrong_calls_leak_nothing \
  --deselect tests/reliability/test_interruption.py::test_ctrl_c \
  --deselect tests/reliability/test_builds.py::test_stored_sums_on_a_processor_without_avx \
  "$@"
