# SPDX-License-Identifier: BSD-3-Clause
"""Configs that from_config refuses, by the key that is wrong, and what is next to them, which it reads."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

import fastpe

from ..oracles.refusals import Refused, check_refused, each, rows

LLAMA = {"model_type": "llama", "head_dim": 8}
GEMMA = {"model_type": "gemma3_text"}
BARE = {"head_dim": 8, "rope_theta": 1e4}
PHI = {"model_type": "phi3", "hidden_size": 32, "num_attention_heads": 4}
LISTS = {"short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
MSCALES = {"short_mscale": 1.2, "long_mscale": 1.3}
LINEAR = {"type": "linear", "factor": 8.0}
FULL = {"layer_type": "full_attention"}

REFUSED: Refused = {
    # ---- What is not a config
    (TypeError, "config"): [
        *each("read({})", "None | 4 | [LLAMA] | Config() | io.StringIO(TEXT) | TEXT.encode()"),
        "read(os.fsencode(SAVED))",
    ],
    (ValueError, "config"): ["read(TEXT)"],
    (FileNotFoundError, "config"): ["read('organisation/model')", "read('nofile.json')"],
    (ValueError, "weight_map"): ["read({'weight_map': {}, 'version': '1.0'})"],
    (ValueError, "added_tokens"): ["read({'added_tokens': {}, 'version': '1.0'})"],
    (ValueError, "peft_type"): ["read({'peft_type': 'LORA', 'r': 8})"],
    # whose positions have several coordinates
    (ValueError, "_class_name"): ["read({'_class_name': 'FluxTransformer2DModel', 'attention_head_dim': 128})"],
    (ValueError, "qwen2_vl_vision"): [
        "read({'model_type': 'qwen3_vl', 'hidden_size': 1152, 'num_heads': 16, 'patch_size': 16})",
        "read({'model_type': 'qwen2_5_vl', 'hidden_size': 1280, 'num_heads': 16, 'patch_size': 14}, rotary_dim=80)",
    ],
    # ---- Models
    (TypeError, "model_type"): ["read({'model_type': ['llama']})"],
    (ValueError, "model_type"): [
        # without a rotary embedding
        *each("read({'model_type': '{}'})", "whisper | m2m_100 | vit_mae | bert"),
        # unknown: which columns are pairs is not guessed, however similar the name is
        *each(
            "read({**BARE, 'model_type': '{}'})",
            "unheard_of | lama | phi_3 | mistral5 | qwen3_6 | qwen3_6_text | pixtral | dinov3_vit",
        ),
    ],
    (ValueError, "model_type scores"): each("read({'model_type': '{}'})", "bloom | mpt | t5"),
    (ValueError, "alibi"): ["read({'model_type': 'falcon', 'alibi': True})"],
    (ValueError, "text_config"): ["read({'model_type': 'llava'})"],
    (ValueError, "mrope"): ["read(LLAMA, mrope=True)", "read({'model_type': 'hunyuan_vl_text'}, mrope=True)"],
    (TypeError, "mrope"): ["read({'model_type': 'qwen2_vl_text'}, mrope=1)"],
    (ValueError, "layer_type"): [
        "read(GEMMA)",
        "read(GEMMA, layer_type='full')",
        "read(LLAMA, **FULL)",
        "read({'model_type': 'beam'}, **FULL)",
        "read({'model_type': 'cohere_compass_text', 'rope_parameters': {'full_attention': None}, 'layer_types': ['full_attention']}, **FULL)",
    ],
    (TypeError, "layer_types"): ["read({**LLAMA, 'layer_types': 4})"],
    (TypeError, "per_layer_config"): ["read({**LLAMA, 'per_layer_config': {'a': {}}})"],
    (TypeError, "interleaved"): ["read(LLAMA, interleaved=1)"],
    (TypeError, "mrope_section"): ["mrope('qwen2_vl', 4)"],
    (ValueError, "mrope_section"): ["mrope('qwen2_vl', [1, 2, 3])", "mrope('ernie4_5_vl_moe', [20, 24, 20])"],
    # ---- Sizes and bases
    (TypeError, "hidden_size"): ["read({'model_type': 'llama', 'hidden_size': '64', 'num_attention_heads': 8})"],
    (ValueError, "head_dim"): ["read({**LLAMA, 'head_dim': -64})", "read({'rope_theta': 1e4}, interleaved=True)"],
    (TypeError, "rope_theta"): ["read({**LLAMA, 'rope_theta': '1e4'})"],
    (ValueError, "rope_theta"): [
        "read({**LLAMA, 'rope_theta': None})",
        "read({'model_type': 'gpt_oss', 'rope_theta': None})",
        "read({'model_type': 'apertus', 'rope_theta': 1e4})",
        "read({'head_dim': 8}, interleaved=True)",
    ],
    (ValueError, "partial_rotary_factor"): [
        "read({**LLAMA, 'partial_rotary_factor': 0.5})",
        "read({'model_type': 'phi', 'partial_rotary_factor': 0})",
    ],
    (ValueError, "rotary_dim"): ["read({'model_type': 'minimax', 'rotary_dim': 64})"],
    # ---- Scalings
    (TypeError, "rope_scaling"): ["read({**LLAMA, 'rope_scaling': 4})"],
    (ValueError, "rope_scaling"): ["read({**GEMMA, 'rope_scaling': LINEAR}, **FULL)"],
    (ValueError, "rope_parameters"): [
        "read({**GEMMA, 'rope_parameters': {'rope_theta': 1e4}}, **FULL)",
        "read({**LLAMA, 'rope_parameters': {'a': {'rope_theta': 1e4}, 'factor': 2.0}}, layer_type='a')",
    ],
    (ValueError, "seq_len"): ["read({**LLAMA, 'rope_scaling': {'type': 'dynamic', 'factor': 2.0}})"],
    (ValueError, "factor"): [
        "read({**LLAMA, 'rope_scaling': {'type': 'linear'}})",
        "read({**LLAMA, 'rope_scaling': {'type': 'yarn'}})",
        "read({**LLAMA, 'rope_scaling': {'factor': 2.0}})",
    ],
    (ValueError, "facter"): ["read({**LLAMA, 'rope_scaling': {'type': 'linear', 'facter': 2.0}})"],
    (ValueError, "low_freq_factor high_freq_factor"): [
        "read({**LLAMA, 'rope_scaling': {'rope_type': 'llama3', 'type': 'linear', 'factor': 4.0}})",
        "fastpe.RotaryEmbedding(8, interleaved=True, scaling={'rope_type': 'llama3', 'factor': 8.0})",
    ],
    (ValueError, "yarm"): ["read({**LLAMA, 'rope_scaling': {'type': 'yarm', 'factor': 8.0}})"],
    (ValueError, "su"): ["read({**LLAMA, 'rope_scaling': {'type': 'su', **LISTS}}, seq_len=8)"],
    (ValueError, "dynamic"): ["read({**PHI, 'rope_scaling': {'type': 'dynamic', 'factor': 2.0}}, seq_len=8)"],
    (ValueError, "short_factor long_factor"): [
        "read({**PHI, 'rope_scaling': {'type': 'yarn', 'factor': 2.0}}, seq_len=8)"
    ],
    (ValueError, "short_mscale long_mscale"): [
        "read({**PHI, 'model_type': 'phimoe', 'rope_scaling': {'type': 'longrope', **LISTS}}, seq_len=8)"
    ],
}

TAKEN = [
    "mrope('qwen2_vl', [20, 24, 20])",
    *each("read({})", "LLAMA | SAVED | Path(SAVED) | os.fsdecode(SAVED) | json.loads(TEXT)"),
    "read(BARE, interleaved=False)",
    "read({**BARE, 'model_type': 'unheard_of'}, interleaved=True)",
    "read({'model_type': 'falcon', 'alibi': False})",
    "read({'model_type': 'llava', 'text_config': LLAMA})",
    *each("read({'model_type': '{}'})", "gpt_oss | mixtral"),
    "read({'model_type': 'apertus', 'rope_parameters': {'rope_theta': 1e4}})",
    "read(GEMMA, layer_type='sliding_attention')",
    "read({**GEMMA, 'rope_scaling': {'rope_type': 'linear', 'factor': 8.0}}, **FULL)",
    "read({**GEMMA, 'rope_parameters': {'full_attention': {'rope_theta': 1e4}}}, **FULL)",
    "read({**LLAMA, 'rope_parameters': {'a': {'rope_theta': 1e4, **LINEAR}}}, layer_type='a')",
    "read({**LLAMA, 'rope_scaling': {'type': 'dynamic', 'factor': 2.0}}, seq_len=64)",
    "read({**LLAMA, 'rope_scaling': {'type': 'yarn', 'factor': None}})",
    "read({**PHI, 'rope_scaling': {'type': 'yarn', 'factor': 2.0, **LISTS}}, seq_len=8)",
    "read({**PHI, 'rope_scaling': {'type': 'longrope', 'factor': 2.0, **LISTS}}, seq_len=8)",
    "read({**PHI, 'model_type': 'phimoe', 'rope_scaling': {'type': 'longrope', **LISTS, **MSCALES}}, seq_len=8)",
]


class Config:
    """As of transformers."""

    def to_dict(self) -> dict[str, Any]:
        return LLAMA


def mrope(family: str, sections: Any) -> fastpe.RotaryEmbedding:
    config = {"model_type": f"{family}_text", "rope_scaling": {"type": "default", "mrope_section": sections}}
    return fastpe.RotaryEmbedding.from_config(config, mrope=True)


@pytest.fixture
def names(tmp_path: Path) -> dict[str, Any]:
    text = json.dumps(LLAMA)
    saved = tmp_path / "saved.json"
    saved.write_text(text)
    return {
        **globals(),
        "read": fastpe.RotaryEmbedding.from_config,
        "TEXT": text,
        "SAVED": str(saved),
        "io": io,
        "os": os,
    }


@pytest.mark.parametrize(("call", "error", "arguments"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], arguments: str, names: dict[str, Any]) -> None:
    check_refused(call, error, arguments, names)


@pytest.mark.parametrize("call", TAKEN)
def test_taken(call: str, names: dict[str, Any]) -> None:
    assert isinstance(eval(call, names), fastpe.RotaryEmbedding)
