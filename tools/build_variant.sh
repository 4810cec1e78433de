#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# build_variant.sh name [-DNAME=VALUE ...]: fastpe, built with these CMake options (and $CXX, where set), in an environment
# of its own, build/name, that has the active environment's packages too. Prints that environment's Python.
set -eu
cd "$(dirname "$0")/.."
name=$1
shift
environment=$PWD/build/$name
python -m venv "$environment"
packages=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
own_packages=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# A plain path: the other environment's own .pth files, an editable fastpe among them, are not read.
echo "$packages" > "$own_packages/parent.pth"
for option in "$@"; do set -- "$@" "-Ccmake.args=$option"; shift; done
"$environment/bin/python" -m pip install --quiet --force-reinstall --no-build-isolation --no-deps \
  -Cbuild-dir="build/$name-core" -Ccmake.build-type="${BUILD_TYPE:-Release}" -Cinstall.strip=false "$@" .
echo "$environment/bin/python"
