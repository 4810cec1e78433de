#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The tests on a repaired wheel, where there is no compiler and no checkout: bare.sh SDIST WHEEL [pytest's arguments]
# What the tests need must be in the sdist; everything that is installed must be a wheel. FASTPE_TEST_PACKAGES= (empty) leaves
# NumPy and pytest alone, as in the tests of a distribution: what needs more is skipped.
set -eu
sdist=$(realpath "$1")
wheel=$(realpath "$2")
shift 2
bare=$(mktemp -d)
trap 'rm -rf "$bare"' EXIT
python3 -m venv "$bare/environment"
# shellcheck disable=SC2086 # several words, or none
"$bare/environment/bin/pip" install --quiet --only-binary :all: \
  "$wheel" 'pytest>=8' ${FASTPE_TEST_PACKAGES-hypothesis>=6.100 mpmath>=1.3 ml_dtypes>=0.4 typer>=0.12 rich>=13 matplotlib>=3.10.9 \
  safetensors>=0.8}
tar -xf "$sdist" -C "$bare"
cd "$bare"/fastpe-*/
mkdir "$bare/tools"
for tool in env sh taskset; do ln -s "$(command -v "$tool")" "$bare/tools"; done
# Nothing else on the path: no compiler, no cmake.
run() { env --ignore-environment HOME="$bare" LANG=C.UTF-8 PATH="$bare/environment/bin:$bare/tools" "$@"; }
if run sh -c 'command -v cc || command -v c++ || command -v gcc || command -v clang || command -v cmake'; then
  echo "there is a compiler on the path" >&2
  exit 1
fi
run python -c 'import fastpe, sys; sys.exit(0 if fastpe.__file__.startswith(sys.prefix) else fastpe.__file__)'
run python tools/check_package.py
run python -m pytest tests -p no:cacheprovider "$@"
