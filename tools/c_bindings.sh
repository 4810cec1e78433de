#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The examples in Rust and Go, by bindgen and cgo, with an installed C library; says what is not here: c_bindings.sh PREFIX
set -euo pipefail
cd "$(dirname "$0")/.."
prefix=$(realpath "$1")
export LD_LIBRARY_PATH=$prefix/lib
here() {
  local name
  for name; do command -v "$name" >/dev/null || { echo "left out: $name is not here"; return 1; }; done
}
if here bindgen rustc; then
  export FASTPE_BINDINGS=$prefix/bindings.rs
  bindgen "$prefix/include/fastpe/fastpe.h" --allowlist-function 'fastpe_.*' --allowlist-type 'fastpe_.*' -o "$FASTPE_BINDINGS"
  rustc --edition 2021 -D warnings examples/c_library/example.rs -L "$prefix/lib" -l fastpe -o "$prefix/example_rs"
  "$prefix/example_rs"
fi
if here go; then
  export CGO_CFLAGS=-I$prefix/include CGO_LDFLAGS=-L$prefix/lib GOFLAGS=-mod=mod GOCACHE=$prefix/go-cache GO111MODULE=off
  go vet examples/c_library/example.go
  go build -o "$prefix/example_go" examples/c_library/example.go
  GODEBUG=cgocheck=2 "$prefix/example_go"
fi
