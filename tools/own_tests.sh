#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Fetches the tests of rotary embeddings that other projects have, and that no package contains: own_tests.sh OUT
# Needs a network and Git. Those of transformers and keras-hub are of the releases that are installed.
set -eu
out=$(mkdir -p "$1" && realpath "$1")

# fetch PROJECT VERSION FILE ..: these files of a repository, of its newest commit where the version is empty.
fetch() {
  clone=$out/${1#*/} version=$2
  git clone --quiet --depth 1 --filter blob:none --no-checkout ${version:+--branch "$version"} "https://github.com/$1" "$clone"
  shift 2
  git -C "$clone" checkout --quiet HEAD -- "$@"
}

installed() { python -c 'import importlib.metadata, sys; print("v" + importlib.metadata.version(sys.argv[1]))' "$1"; }

fetch huggingface/transformers "$(installed transformers)" tests/utils/test_modeling_rope_utils.py
fetch keras-team/keras-hub "$(installed keras-hub)" keras_hub/src/layers/modeling/rotary_embedding_test.py
fetch lucidrains/x-transformers '' tests/test_x_transformers.py
fetch microsoft/onnxruntime '' onnxruntime/test/contrib_ops/rotary_embedding_op_test.cc \
  onnxruntime/test/providers/cpu/llm/rotary_embedding_op_test.cc
