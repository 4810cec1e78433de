#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pytest with AddressSanitizer and UndefinedBehaviorSanitizer preloaded into a stock Python: sanitize.sh [pytest's arguments]
# The active environment's packages are used, with a sanitized build of fastpe before them.
set -eu
cd "$(dirname "$0")/../.."
environment=build/sanitized
python -m venv "$environment"
packages=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
own_packages=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# A plain path: the other environment's own .pth files, an editable fastpe among them, are not read.
echo "$packages" > "$own_packages/parent.pth"
flags="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
"$environment/bin/python" -m pip install --quiet --force-reinstall --no-build-isolation --no-deps \
  -Cbuild-dir=build/sanitized-core -Ccmake.build-type=RelWithDebInfo -Cinstall.strip=false \
  "-Ccmake.define.CMAKE_CXX_FLAGS=$flags" .
LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so) $(g++ -print-file-name=libstdc++.so.6)"
# Python itself leaks at exit. The address space cannot be limited under AddressSanitizer.
export LD_PRELOAD ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
export PYTHONMALLOC=malloc
exec "$environment/bin/python" -m pytest -p no:cacheprovider \
  --deselect tests/reliability/test_memory.py::test_memory_that_runs_out "$@"
