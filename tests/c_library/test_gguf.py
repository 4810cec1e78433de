# SPDX-License-Identifier: BSD-3-Clause
"""The example that reads a GGUF file, on files that the gguf package writes, against the same model's config.json."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.configs import LLAMA3

gguf = pytest.importorskip("gguf")

POSITION = 70_001
BASE = {"hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 5e5}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}


def write(path: pathlib.Path, architecture: str, *, width: int = 0, divisors: Any = None, **scaling: Any) -> None:
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_embedding_length(4096)
    writer.add_head_count(32)
    writer.add_context_length(131072)
    writer.add_rope_freq_base(5e5)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b" * 300, ""])  # what the reader passes over
    if width:
        writer.add_rope_dimension_count(width)
    if scaling:
        writer.add_rope_scaling_type(gguf.RopeScalingType(scaling["rope_type"]))
        writer.add_rope_scaling_factor(scaling["factor"])
    if "original_max_position_embeddings" in scaling:
        writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
    writer.add_tensor("token_embd.weight", np.ones((3, 5), np.float32))
    if divisors is not None:
        writer.add_tensor("rope_freqs.weight", np.asarray(divisors, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def run(prefix: pathlib.Path, path: pathlib.Path) -> subprocess.CompletedProcess[str]:
    command: list[str | pathlib.Path] = [prefix / "example" / "gguf", path, str(POSITION)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def divisors_of(scaling: dict[str, Any]) -> Any:
    """What convert_hf_to_gguf writes: the ideal frequencies over the scaled ones."""
    plain, scaled = (fastpe.RotaryEmbedding(128, interleaved=True, **each) for each in (
        {"base": 5e5}, {"scaling": {**scaling, "rope_theta": 5e5}}))  # fmt: skip
    return plain.frequencies / scaled.frequencies


@pytest.mark.parametrize(
    ("architecture", "written", "config"),
    [
        ("llama", {}, {"model_type": "llama"}),
        ("llama", {"width": 128, "divisors": divisors_of(LLAMA3)}, {"model_type": "llama", "rope_scaling": LLAMA3}),
        ("qwen2", YARN, {"model_type": "qwen2", "rope_scaling": YARN}),
        ("llama", {"rope_type": "linear", "factor": 4.0},
         {"model_type": "llama", "rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    ],
    ids=["plain", "llama3", "yarn", "linear"],
)  # fmt: skip
def test_tables(
    architecture: str, written: dict[str, Any], config: dict[str, Any], prefix: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "model.gguf"
    write(path, architecture, **written)
    is_interleaved = architecture == "llama"
    rope = fastpe.RotaryEmbedding.from_config({**BASE, **config}, interleaved=is_interleaved)
    ran = run(prefix, path)
    first, *rows = ran.stdout.splitlines()
    assert (first, ran.returncode, len(rows)) == (f"128 128 {'interleaved' if is_interleaved else 'halves'}", 0, 64)
    cos, sin = rope.tables(1, offset=POSITION, dtype="float64")
    # The base and the divisors of a file are float32.
    error = POSITION * rope.frequencies * (2.0**-24 if "divisors" in written else 2.0**-50) + 2.0**-52
    for ours, theirs in zip((cos[0], sin[0]), np.array([row.split() for row in rows], float).T, strict=True):
        assert (np.abs(ours - theirs) <= error).all()


@pytest.mark.parametrize(
    ("architecture", "written", "word"),
    [
        ("unheard_of", {}, "pairing"),
        ("llama", {"rope_type": "longrope", "factor": 4.0}, "scaling"),
        ("llama", {"divisors": [1.0] * 32}, "divisor_count"),
        ("qwen2", {"rope_type": "yarn", "factor": 0.25}, "factor"),
    ],
)
def test_refused(
    architecture: str, written: dict[str, Any], word: str, prefix: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "model.gguf"
    write(path, architecture, **written)
    ran = run(prefix, path)
    assert ran.returncode == 1
    assert word in ran.stderr
    path.write_bytes(path.read_bytes()[:200])
    assert run(prefix, path).returncode == 1
