#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pytest on a build with other CMake options, or another $CXX: variant.sh name [-DNAME=VALUE ...] [-- pytest's arguments]
set -eu
name=$1
shift
options=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  options="$options $1"
  shift
done
[ $# -gt 0 ] && shift
cd "$(dirname "$0")/.."
# shellcheck disable=SC2086 # options have no spaces
python=$(tools/build_variant.sh "$name" $options)
exec "$python" -m pytest -p no:cacheprovider "$@"
