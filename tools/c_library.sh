#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The C library, installed; its example by CMake, also with fastpe's source in it, and by pkg-config, in C and C++; and its
# tests: c_library.sh CC CXX PREFIX
set -euo pipefail
cd "$(dirname "$0")/.."
export CC=$1 CXX=$2
prefix=$3
built() { cmake "$@" >/dev/null && cmake --build "$(sed 's/.* -B \([^ ]*\).*/\1/' <<<"$*")" >/dev/null; }
built -S . -B "$prefix/build" -G Ninja -DFASTPE_PYTHON=OFF -DCMAKE_INSTALL_LIBDIR=lib
cmake --install "$prefix/build" --prefix "$prefix" >/dev/null
for as_cxx in OFF ON; do
  built --fresh -S examples/c_library -B "$prefix/example" -DCMAKE_PREFIX_PATH="$prefix" -DEXAMPLE_AS_CXX=$as_cxx
  "$prefix/example/example"
  "$prefix/example/example_static"
  "$prefix/example/hosts"
done
built --fresh -S examples/c_library -B "$prefix/with_source" -G Ninja -DEXAMPLE_FASTPE_SOURCE="$PWD"
"$prefix/with_source/example"
"$prefix/with_source/example_static"
read -ra flags < <(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs fastpe)
flags+=(-pedantic -Wall -Wextra -Werror "-Wl,-rpath,$prefix/lib")
"$CC" -std=c99 examples/c_library/example.c "${flags[@]}" -o "$prefix/as_c"
"$CXX" -std=c++11 -x c++ examples/c_library/example.c -x none "${flags[@]}" -o "$prefix/as_cxx"
"$prefix/as_c"
"$prefix/as_cxx"
FASTPE_TEST_C_LIBRARY=$prefix pytest -q -n 2 tests/c_library tests/composed
