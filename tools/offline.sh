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
python - "$offline"/fastpe-*/pyproject.toml > "$offline/requirements.txt" <<'PYTHON'
import re, sys
text = open(sys.argv[1], encoding="utf-8").read()
print(*re.findall(r'"(.+?)"', re.search(r"^requires = \[(.*)\]$", text, re.MULTILINE)[1]), "cmake", "ninja", sep="\n")
PYTHON
pip download --quiet --only-binary :all: --dest "$offline/wheels" --requirement "$offline/requirements.txt"
build='pip wheel --quiet --no-deps --no-index --find-links "$1/wheels" --config-settings wheel.reproducible=true -w "$2" "$3"'
unshare --map-root-user --net sh -c "$build" sh "$offline" "$out" "$sdist"
