#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A wheel built from the sdist without a network, from nothing but downloaded build requirements: offline.sh SDIST OUT
# Needs the right to make a network namespace (util-linux' unshare).
set -eu
sdist=$(realpath "$1")
out=$(mkdir -p "$2" && realpath "$2")
offline=$(mktemp -d)
trap 'rm -rf "$offline"' EXIT
tar -xf "$sdist" -C "$offline"
python3 -m venv "$offline/environment"
. "$offline/environment/bin/activate"
pip download --quiet --only-binary :all: --require-hashes --dest "$offline/wheels" \
  --requirement "$(echo "$offline"/fastpe-*/tools/requirements/build.txt)"
build='pip wheel --quiet --no-deps --no-index --find-links "$1/wheels" --config-settings wheel.reproducible=true -w "$2" "$3"'
unshare --map-root-user --net sh -c "$build" sh "$offline" "$out" "$sdist"
