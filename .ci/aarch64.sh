#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests on the CPython of a Debian for AArch64, which QEMU runs: .ci/aarch64.sh ROOT [pytest's arguments]
# The module is compiled here, by GCC's cross-compiler, and packages are installed from here: both would take long in QEMU.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$1 site=$1/opt/site
shift
version=$(cd "$root/usr/include" && echo python3.*)
unset VIRTUAL_ENV  # CMake would look for headers of its Python
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
python3 -m venv "$build/tools"
"$build/tools/bin/pip" install --quiet pybind11 cmake ninja
export PATH=$build/tools/bin:$PATH
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  "-DCMAKE_CXX_FLAGS=-idirafter $root/usr/include -idirafter $root/usr/include/aarch64-linux-gnu" \
  -DSKBUILD_PROJECT_VERSION="$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)" \
  -DPython_INCLUDE_DIR="$root/usr/include/$version" -DPYBIND11_USE_CROSSCOMPILING=ON \
  -DPYTHON_MODULE_EXTENSION=".cpython-${version//[a-z.]/}-aarch64-linux-gnu.so" \
  -Dpybind11_DIR="$(python -m pybind11 --cmakedir)" >/dev/null
cmake --build "$build" --target _core >/dev/null
pip install --quiet --target "$site" --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 \
  --platform manylinux2014_aarch64 --python-version "${version#python}" --only-binary :all: \
  numpy ml_dtypes 'pytest>=8' pytest-xdist 'hypothesis>=6.100' mpmath typing_extensions
cp -r python/fastpe python/_fastpe_command "$site"
cp "$build"/_core*.so "$site/fastpe"
[ -d "$root/fastpe" ] || { mkdir "$root/fastpe" && cp -r tests benchmarks tools pyproject.toml "$root/fastpe"; }
# With /proc, from which tests read what threads do.
unshare --mount bash -ec 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"' "$root" \
  env PYTHONPATH=/opt/site sh -c 'cd /fastpe && exec python3 -m pytest -q -p no:cacheprovider "$@"' sh "$@"
