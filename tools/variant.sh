#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# variant.sh name [-DNAME=VALUE ...] [-- pytest's arguments]: fastpe, built with these CMake options (and $CXX, where set), in an
# environment of its own, build/name, that has the active environment's packages too. Runs pytest there, or prints its Python.
set -eu
cd "$(dirname "$0")/.."
name=$1 environment=$PWD/build/$1
shift
options=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  options="$options
-Ccmake.args=$1"
  shift
done
python -m venv "$environment"
path='import sysconfig; print(sysconfig.get_path("purelib"))'
# A plain path: the other environment's own .pth files, an editable fastpe among them, are not read.
python -c "$path" >"$("$environment/bin/python" -c "$path")/parent.pth"
(
  IFS='
'
  # shellcheck disable=SC2086 # a line for each option
  exec "$environment/bin/python" -m pip install --quiet --force-reinstall --no-build-isolation --no-deps \
    -Cbuild-dir="build/$name-core" -Ccmake.build-type="${BUILD_TYPE:-Release}" -Cinstall.strip=false $options .
)
[ $# -gt 0 ] || { echo "$environment/bin/python"; exit; }
shift
exec "$environment/bin/python" -m pytest -p no:cacheprovider "$@"
