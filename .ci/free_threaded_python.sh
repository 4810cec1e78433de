#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A Python without a global interpreter lock, built from Debian's newest source that can be had: free_threaded_python.sh PREFIX
# Needs apt-get and a C compiler.
set -euo pipefail
prefix=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Sources of newer releases than this system's, apart from its own lists.
archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 '/debian/$')
sources() {
  local apt=(apt-get -qq -o APT::Sandbox::User=root -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache"
    -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=-)
  echo "deb-src $archive $1 main" >sources.list
  "${apt[@]}" update && "${apt[@]}" source --download-only "$2" && ls python3.*.orig.tar.*z
}
mkdir -p lists/partial cache/archives/partial
sources sid python3.14 || sources forky python3.14 || sources trixie python3.13

tar xf python3.*.orig.tar.*z
cd Python-3.*
./configure --quiet --disable-gil --prefix="$prefix" --with-ensurepip=install
make --silent --jobs="$(nproc)"
make --silent install
