# SPDX-License-Identifier: BSD-3-Clause
"""Configs that no model has: each is one ValueError or TypeError that says what is wrong, and ends at once."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpe

_huge = 10**400
_nested: Any = []
for _ in range(100_000):
    _nested = [_nested]
_itself: dict[str, Any] = {}
_itself["x"] = _itself

_values = [_huge, -_huge, float("nan"), float("inf"), -1, 0, 2**63, "8", [1, "a"], {"a": 1}, True, [_huge] * 4, b"x"]
_outer = [
    *("rope_theta", "rope_scaling", "rope_parameters", "head_dim", "hidden_size", "num_attention_heads"),
    *("partial_rotary_factor", "rotary_dim", "layer_types", "per_layer_config", "max_position_embeddings"),
    *("rotary_emb_base", "rotary_pct", "qk_rope_head_dim", "rope_ratio", "yarn", "rope_params", "use_rope", "alibi"),
    *("num_hidden_layers", "text_config", "rope_interleave", "position_embedding_type", "swa_rope_theta"),
    "model_type",
]
_inner = [
    *("factor", "low_freq_factor", "beta_fast", "mscale", "attention_factor", "short_factor", "long_factor"),
    *("original_max_position_embeddings", "mrope_section", "alpha", "rope_theta", "partial_rotary_factor"),
]
_of_sinusoids = [
    *("d_model", "hidden_size", "emb_dim", "pad_token_id", "scale_embedding", "min_timescale", "max_timescale"),
    *("decoder", "sinusoidal_embeddings", "use_learned_position_embeddings", "model_type", "text_config"),
]
_scalings = ["linear", "dynamic", "yarn", "longrope", "llama3", "default", "proportional"]
_types = ["llama", "unknown"]
_more_types = ["qwen2_vl", "deepseek_v3", "gemma3_text", "phi3", "nomic_bert", "granite_swa"]


def _read(config: Any, **options: Any) -> None:
    with contextlib.suppress(TypeError, ValueError):
        fastpe.RotaryEmbedding.from_config(config, **options)


@pytest.mark.parametrize(
    "model_type", ["llama", *(pytest.param(t, marks=pytest.mark.slow) for t in ("unknown", *_more_types))]
)
def test_no_value_of_a_key_raises_another_error(model_type: str) -> None:
    config = {"model_type": model_type, "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 1e4}
    for key, value in itertools.product(_outer, _values):
        for options in ({}, {"interleaved": False, "layer_type": "sliding_attention"}):
            _read({**config, key: value}, **options)
    for scaling, key, value in itertools.product(_scalings, _inner, _values):
        written = {"rope_type": scaling, "factor": 2.0, "original_max_position_embeddings": 1024, key: value}
        _read({**config, "rope_scaling": written}, interleaved=False, seq_len=100)


@pytest.mark.parametrize("argument", ["base", "scaling", "rotary_dim", "seq_len", "interleaved", "layer_type", "mrope"])
def test_no_value_of_an_argument_raises_another_error(argument: str) -> None:
    for model_type, value in itertools.product(_types, [*_values, _itself]):
        config = {"model_type": model_type, "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 1e4}
        _read(config, **{"interleaved": False, argument: value})


@pytest.mark.parametrize("model_type", ["m2m_100", "marian", "timesfm", "musicgen", "xlm", "trocr", "unknown"])
def test_no_value_of_a_sinusoidal_config_raises_another_error(model_type: str) -> None:
    for key, value in itertools.product(_of_sinusoids, [*_values, _itself]):
        with contextlib.suppress(TypeError, ValueError):
            fastpe.PositionalEncoding.from_config({"model_type": model_type, key: value})


@pytest.mark.parametrize("key", ["text_config", "thinker_config", "rope_scaling"])
@pytest.mark.parametrize("model_type", ["gemma3", "qwen2_5_omni", "llama"])
def test_a_mapping_that_contains_itself_is_refused(model_type: str, key: str) -> None:
    config: dict[str, Any] = {"model_type": model_type, "head_dim": 8}
    config[key] = config
    with pytest.raises(ValueError, match=r"\bconfig\b"):
        fastpe.RotaryEmbedding.from_config(config)


@pytest.mark.parametrize("value", [_nested, _itself])
def test_deep_values_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"\bconfig\b"):
        fastpe.RotaryEmbedding.from_config({"model_type": "llama", "head_dim": 8, "extra": value})


@pytest.mark.parametrize(
    "written",
    [
        *("", "[]", "nonsense", '"other.json"', '{"a": NaN', "[" * 200_000, '{"a":' * 200_000, "\xff\xfe"),
        *(f'{{"model_type": "llama", "head_dim": {number}}}' for number in ("9" * 5000, "9" * 401)),
        '{"model_type": "llama", "head_dim": 8, "rope_theta": 1' + "0" * 400 + "}",
    ],
)
def test_hostile_files_are_refused(written: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(written, encoding="latin-1")
    with pytest.raises((TypeError, ValueError), match=r"\bconfig\b"):
        fastpe.RotaryEmbedding.from_config(path)


@pytest.mark.parametrize("value", [np.array([1e4, 2e4]), np.float32(1e4), np.int64(8), np.array("a"), np.array([])])
def test_arrays_and_numbers_of_numpy_are_refused_by_their_key(value: Any) -> None:
    llama = {"model_type": "llama", "head_dim": 8}
    for key in ("rope_theta", "rope_parameters", "rope_scaling", "alibi", "layer_types", "head_dim", "x"):
        for config in ({**llama, key: value}, {**llama, "text_config": [{key: value}]}):
            with pytest.raises(TypeError, match=rf"\b{key}\b.*tolist"):
                fastpe.RotaryEmbedding.from_config(config)
    with pytest.raises(TypeError, match=r"\bd_model\b.*tolist"):
        fastpe.PositionalEncoding.from_config({"model_type": "marian", "d_model": value})


@pytest.mark.parametrize("digits", [401, 4000])
def test_numbers_of_many_digits_are_refused_by_their_key(digits: int) -> None:
    for key in ("rope_theta", "head_dim", "hidden_size"):
        config = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, key: 10**digits}
        with pytest.raises(ValueError, match=rf"\b{key}\b"):
            fastpe.RotaryEmbedding.from_config(config)


def test_values_that_stand_in_many_places_are_refused() -> None:
    shared: dict[str, Any] = {}
    for _ in range(14):
        shared = {f"k{i}": shared for i in range(10)}
    with pytest.raises(ValueError, match=r"\bconfig\b"):
        fastpe.PositionalEncoding.from_config({"model_type": "marian", "d_model": 8, "extra": shared})


def test_long_texts_are_shown_in_part() -> None:
    for config in ({"model_type": "x" * 10**6}, {"model_type": "llama", "head_dim": 8, "rope_theta": "9" * 10**6}):
        with pytest.raises((TypeError, ValueError)) as caught:
            fastpe.RotaryEmbedding.from_config(config)
        assert len(str(caught.value)) < 5000
    for key, value in (("rope" * 10**5, None), ("lora" * 10**5 + "\n", {})):
        fastpe.RotaryEmbedding.from_config({"model_type": "llama", "head_dim": 8, "rope_theta": 1e4, key: value})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(ValueError, match=r"^config "):
        fastpe.RotaryEmbedding.from_config(tmp_path / "config.json")
