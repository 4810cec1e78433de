# SPDX-License-Identifier: BSD-3-Clause
"""The example that reads a GGUF file, on files that the gguf package writes, against the formulas of llama.cpp."""

from __future__ import annotations

import math
import pathlib
import subprocess
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastpe

from ..oracles.configs import LLAMA3

gguf = pytest.importorskip("gguf")

POSITION, WIDTH, BASE, CONTEXT = 70_001, 128, 5e5, 131072
PLAIN: dict[str, Any] = {"embedding_length": 4096, "attention.head_count": 32, "context_length": CONTEXT, "rope.freq_base": BASE}  # fmt: skip
TYPE, FACTOR, OLD_FACTOR = "rope.scaling.type", "rope.scaling.factor", "rope.scale_linear"
ORIGINAL, ATTENTION = "rope.scaling.original_context_length", "rope.scaling.attn_factor"
YARN = {TYPE: "yarn", FACTOR: 4.0, ORIGINAL: 32768}
SHORT, LONG, FREQS = "rope_factors_short.weight", "rope_factors_long.weight", "rope_freqs.weight"
DIVISORS = np.linspace(1.0, 9.0, WIDTH // 2).astype(np.float32)
FACTORS = {SHORT: DIVISORS, LONG: 3 * DIVISORS}


def write(path: pathlib.Path, architecture: str, keys: dict[str, Any], tensors: dict[str, Any] | None = None) -> None:
    """A key of `keys` belongs to the architecture where no other one is before it."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b" * 300, ""])  # what the reader passes over
    writer.add_array("tokenizer.ggml.scores", [0.5, 1.5, 2.5])
    for name, value in {**PLAIN, **keys}.items():
        key = name if name.startswith(("other.", "split.")) else f"{architecture}.{name}"
        kinds = {str: writer.add_string, float: writer.add_float32, bool: writer.add_bool, list: writer.add_array}
        if value is not None:
            kinds.get(type(value), writer.add_uint32)(key, value)
    writer.add_tensor("token_embd.weight", np.ones((3, 5), np.float32))
    for name, numbers in (tensors or {}).items():
        writer.add_tensor(name, np.asarray(numbers))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def run(prefix: pathlib.Path, path: pathlib.Path, length: int = 0) -> subprocess.CompletedProcess[str]:
    command = [prefix / "example" / "gguf", path, str(POSITION), str(length)]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=60)


def llama_cpp(
    width: int = WIDTH, base: float = BASE, freq_scale: float = 1.0, factors: Any = 1.0, yarn_context: int = 0, attention: float = 1.0
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:  # fmt: skip
    """Radians per position, and cosines and sines at POSITION: ggml_rope_cache_init and rope_yarn in ggml's ops.cpp."""
    extrapolated = base ** (-2 * np.arange(width // 2) / width) / factors
    radians = freq_scale * extrapolated
    if yarn_context:
        low, high = (width * math.log(yarn_context / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (32, 1))
        low, high = max(0, math.floor(low)), min(width - 1, math.ceil(high))
        kept = 1 - np.clip((np.arange(width // 2) - low) / max(0.001, high - low), 0, 1)
        radians = radians * (1 - kept) + extrapolated * kept
        attention *= 1 + 0.1 * math.log(1 / freq_scale)
    return radians, attention * np.array([np.cos(POSITION * radians), np.sin(POSITION * radians)])


def float32(value: float) -> float:
    return float(np.float32(value))


SCALINGS: dict[str, tuple[str, dict[str, Any], dict[str, Any], int, dict[str, Any]]] = {
    "plain": ("llama", {}, {}, 0, {}),
    "no base, a part of a head": ("stablelm", {"rope.freq_base": None, "rope.dimension_count": 32}, {}, 0, {"width": 32, "base": 1e4}),
    "linear": ("llama", {TYPE: "linear", FACTOR: 4.0}, {}, 0, {"freq_scale": 0.25}),
    "a factor without a type": ("qwen2", {FACTOR: 4.0}, {}, 0, {"freq_scale": 0.25}),
    "the old key": ("llama", {OLD_FACTOR: 8.0}, {}, 0, {"freq_scale": 0.125}),
    "the old key beside the new one": ("llama", {OLD_FACTOR: 8.0, FACTOR: 2.0}, {}, 0, {"freq_scale": 0.5}),
    "the old key beside a factor of 0": ("llama", {OLD_FACTOR: 8.0, FACTOR: 0.0}, {}, 0, {}),
    "none": ("llama", {TYPE: "none", FACTOR: 4.0, ATTENTION: 1.5}, {}, 0, {"attention": 1.5}),
    "linear, cosines and sines multiplied": ("llama", {FACTOR: 2.0, ATTENTION: 1.25}, {}, 0, {"freq_scale": 0.5, "attention": 1.25}),
    "yarn": ("qwen2", YARN, {}, 0, {"freq_scale": 0.25, "yarn_context": 32768}),
    "yarn, usual numbers": ("qwen3", {**YARN, ATTENTION: 1.0, "rope.scaling.yarn_beta_fast": 32.0, "rope.scaling.yarn_beta_slow": 1.0,
                                      "rope.scaling.finetuned": False}, {}, 0, {"freq_scale": 0.25, "yarn_context": 32768}),
    "yarn without an original length": ("llama", {TYPE: "yarn", FACTOR: 4.0}, {}, 0, {"freq_scale": 0.25, "yarn_context": CONTEXT}),
    "yarn without a factor": ("llama", {TYPE: "yarn"}, {}, 0, {}),
    "divisors": ("llama", {}, {FREQS: DIVISORS}, 0, {"factors": DIVISORS.astype(float)}),
    "divisors and linear": ("llama", {FACTOR: 3.0}, {FREQS: DIVISORS}, 0, {"factors": 3.0 * DIVISORS.astype(float)}),
    "longrope, by the file's length": ("llama", {TYPE: "longrope", ORIGINAL: 4096, ATTENTION: 1.1902380714}, FACTORS, 0,
                                       {"factors": FACTORS[LONG].astype(float), "attention": float32(1.1902380714)}),
    "longrope, long": ("minicpm", {TYPE: "longrope", ORIGINAL: 4096}, FACTORS, 4097, {"factors": FACTORS[LONG].astype(float)}),
    "longrope, short": ("minicpm", {TYPE: "longrope", ORIGINAL: 4096}, FACTORS, 4096, {"factors": FACTORS[SHORT].astype(float)}),
    "phi3, whose files have no type": ("phi3", {ORIGINAL: 4096}, FACTORS, 100, {"factors": FACTORS[SHORT].astype(float)}),
    "a part of a file with its divisors": ("llama", {"split.count": 3}, {FREQS: DIVISORS}, 0, {"factors": DIVISORS.astype(float)}),
    "granite": ("granite", {"rope.scaling.finetuned": True, FACTOR: 4.0}, {}, 0, {"freq_scale": 0.25}),
    "layers with windows": ("olmo2", {"attention.sliding_window": 4096}, {}, 0, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", SCALINGS.values(), ids=list(SCALINGS))
def test_tables_are_those_of_llama_cpp(case: Any, prefix: pathlib.Path, tmp_path: pathlib.Path) -> None:
    architecture, keys, tensors, length, formula = case
    write(tmp_path / "model.gguf", architecture, keys, tensors)
    ran = run(prefix, tmp_path / "model.gguf", length)
    first, *rows = ran.stdout.splitlines()
    radians, expected = llama_cpp(**formula)
    pairing = "interleaved" if architecture in ("llama", "minicpm", "granite") else "halves"
    assert (first, ran.returncode) == (f"128 {2 * len(radians)} {pairing}", 0)
    error = POSITION * radians * 2.0**-48 + 2.0**-50
    assert (abs(np.array([row.split() for row in rows], float).T - expected) <= error).all()


def test_a_converted_model_has_the_frequencies_of_its_config(prefix: pathlib.Path, tmp_path: pathlib.Path) -> None:
    config = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": BASE}
    plain, scaled = (
        fastpe.RotaryEmbedding.from_config({**config, "rope_scaling": each}, interleaved=True)
        for each in (None, LLAMA3)
    )
    # What convert_hf_to_gguf.py writes, in float32.
    divisors = plain.frequencies / scaled.frequencies
    write(tmp_path / "model.gguf", "llama", {}, {FREQS: divisors.astype(np.float32)})
    found = np.array([row.split() for row in run(prefix, tmp_path / "model.gguf").stdout.splitlines()[1:]], float).T
    for ours, theirs in zip(scaled.tables(1, offset=POSITION, dtype="float64"), found, strict=True):
        assert (abs(ours[0] - theirs) <= POSITION * scaled.frequencies * 2.0**-24 + 2.0**-52).all()


REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("unheard_of", {}, {}, "unheard_of"),
    ("llama", {TYPE: "dynamic", FACTOR: 4.0}, {}, TYPE),
    *(("qwen2", {f"rope.{name}": value}, {}, name) for name, value in (
        ("scaling.alpha", 1000.0), ("scaling.yarn_log_multiplier", 0.1), ("scaling.yarn_ext_factor", 1.0),
        ("scaling.yarn_attn_factor", 1.0), ("freq_base_swa", 1e4), ("dimension_count_swa", 64),
        ("dimension_sections", [16, 24, 24, 0]), ("scaling.of_the_future", False), ("freq_base", "10000"),
    )),
    ("llama", {**YARN, "rope.scaling.yarn_beta_fast": 16.0}, {}, "yarn_beta_fast"),
    ("llama", {**YARN, ATTENTION: 1.5}, {}, "attn_factor"),
    ("llama", {ATTENTION: 0.0}, {}, "attn_factor"),
    ("llama", {FACTOR: 0.25}, {}, "factor"),
    ("llama", {"attention.head_count": [32, 16]}, {}, "attention.head_count"),
    ("llama", {"attention.head_count": None}, {}, "rotary_dim"),
    ("llama", {"other.rope.freq_base": 1e4}, {}, "other.rope.freq_base"),
    ("granite", {"rope.scaling.finetuned": False}, {}, "finetuned"),
    ("olmo2", {**YARN, "attention.sliding_window": 4096}, {}, "sliding_window"),
    ("llama", {TYPE: "longrope"}, {}, TYPE),
    ("llama", {TYPE: "longrope"}, {SHORT: DIVISORS}, TYPE),
    ("llama", {}, FACTORS, TYPE),
    ("llama", YARN, {FREQS: DIVISORS}, "yarn"),
    ("llama", {"split.count": 2}, {}, "split.count"),
    ("llama", {}, {FREQS: DIVISORS[:32]}, "divisor_count"),
    ("llama", {}, {FREQS: DIVISORS.astype(np.float16)}, FREQS),
    ("llama", {}, {"rope_of_the_future.weight": DIVISORS}, "rope_of_the_future.weight"),
]  # fmt: skip


@pytest.mark.parametrize(("architecture", "keys", "tensors", "word"), REFUSED)
def test_refused(
    architecture: str, keys: Any, tensors: Any, word: str, prefix: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    write(tmp_path / "model.gguf", architecture, keys, tensors)
    ran = run(prefix, tmp_path / "model.gguf")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert word in ran.stderr


def test_files_that_end_too_early_are_refused(prefix: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.gguf"
    write(path, "llama", {}, {FREQS: DIVISORS})
    whole = path.read_bytes()
    for length in (0, 3, 8, 20, 30, 200, 500, len(whole) - 256):
        path.write_bytes(whole[:length])
        assert run(prefix, path).returncode == 1
