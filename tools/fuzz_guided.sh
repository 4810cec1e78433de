#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# fuzz.py's calls chosen by Atheris, guided by the coverage of the C++ core, with AddressSanitizer: fuzz_guided.sh
# [libFuzzer's arguments]. Needs Clang, and Atheris in the active environment. What it learns stays in build/corpus; an input
# that fails is kept as build/crash-.., and `fuzz_guided.sh build/crash-..` repeats it.
set -eu
cd "$(dirname "$0")/.."
CXX=${CXX:-clang++-14}
export CXX
flags="-fsanitize=address,fuzzer-no-link -fno-omit-frame-pointer"
python=$(BUILD_TYPE=RelWithDebInfo tools/build_variant.sh fuzzed "-DCMAKE_CXX_FLAGS=$flags")
mkdir -p build/corpus
[ -f "${1:-}" ] || set -- build/corpus "$@"
LD_PRELOAD="$("$python" -c 'import atheris; print(atheris.path())')/asan_with_fuzzer.so"
export LD_PRELOAD ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc
exec "$python" tools/fuzz.py --atheris -artifact_prefix=build/ -rss_limit_mb=6000 "$@"
