# SPDX-License-Identifier: BSD-3-Clause
"""Configs that from_config refuses, what it says, and the calls that follow it."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

import fastpe

from ..oracles.remedies import check_remedy, evaluating

LLAMA = {"model_type": "llama", "head_dim": 8}
LINEAR = {"type": "linear", "factor": 8.0}
BARE = {"head_dim": 8, "rope_theta": 1e4}
DYNAMIC = {**LLAMA, "rope_scaling": {"type": "dynamic", "factor": 2.0}}
PHI = {"model_type": "phi3", "hidden_size": 32, "num_attention_heads": 4}
LISTS = {"short_factor": [1.0] * 4, "long_factor": [2.0] * 4}


class Config:
    """As of transformers."""

    def to_dict(self) -> dict[str, Any]:
        return LLAMA


def read(config: Any, **arguments: Any) -> fastpe.RotaryEmbedding:
    return fastpe.RotaryEmbedding.from_config(config, **arguments)


REMEDIED: list[tuple[str, str, str]] = [
    (
        "read('organisation/model')",
        "give huggingface_hub.hf_hub_download('organisation/model', 'config.json'), or transformers.AutoConfig",
        "(read(hf_hub_download('organisation/model', 'config.json')), read(Config().to_dict()))",
    ),
    ("read(json.dumps(LLAMA).encode())", "give json.loads(config)", "read(json.loads(json.dumps(LLAMA).encode()))"),
    (
        "read(io.StringIO(json.dumps(LLAMA)))",
        "give json.load(config)",
        "read(json.load(io.StringIO(json.dumps(LLAMA))))",
    ),
    ("read(os.fsencode(SAVED))", "give os.fsdecode(config)", "read(os.fsdecode(os.fsencode(SAVED)))"),
    ("read([LLAMA])", "give config[0]", "read([LLAMA][0])"),
    *(
        (f"read({{{key!r}: {{}}, 'version': '1.0'}})", "give the config.json of the same model", "read(LLAMA)")
        for key in ("weight_map", "added_tokens", "added_tokens_decoder")
    ),
    (
        "read({'model_type': 'whisper'})",
        "or use RotaryEmbedding(rotary_dim, ..) if yours has one; 'tensor2tensor' serves openai/whisper",
        "fastpe.encode(4, 8, convention='tensor2tensor')",
    ),
    ("read({'model_type': 'm2m_100'})", "; 'fairseq' serves", "fastpe.encode(4, 8, convention='fairseq')"),
    (
        "read({'model_type': 'vit_mae'})",
        "; 'mae2d' serves",
        "fastpe.encode_grid((2, 2), 8, convention='mae2d', class_tokens=1)",
    ),
    (
        "read({'model_type': 'llama', 'hidden_size': '64', 'num_attention_heads': 8})",
        "config has a \"hidden_size\" of '64', expected an int, not text; write it without quotes",
        "read({'model_type': 'llama', 'hidden_size': 64, 'num_attention_heads': 8})",
    ),
    (
        "read({**LLAMA, 'rope_theta': '1e4'})",
        "config has a \"rope_theta\" of '1e4', expected a number, not text; write it without quotes",
        "read({**LLAMA, 'rope_theta': 1e4})",
    ),
    ("read(None)", "give the dictionary of your model's config.json, or its path", "(read(LLAMA), read(SAVED))"),
    (
        "read({'model_type': 'gpt_oss', 'rope_theta': None})",
        "write the number, or leave the key out",
        "(read({'model_type': 'gpt_oss', 'rope_theta': 1e4}), read({'model_type': 'gpt_oss'}))",
    ),
    (
        "read('nofile.json')",
        "no file, expected a mapping or the path of a config.json; correct the path",
        "read(LLAMA)",
    ),
    (
        "read({**LLAMA, 'rope_theta': None})",
        "write the number, or leave the key out",
        "read({**LLAMA, 'rope_theta': 1e4})",
    ),
    (
        "read({**LLAMA, 'rope_scaling': {'type': 'linear'}})",
        'scaling has no factor, which "linear" needs',
        "read({**LLAMA, 'rope_scaling': {'type': 'linear', 'factor': 2.0}})",
    ),
    (
        "read({**LLAMA, 'rope_scaling': {'rope_type': 'llama3', 'type': 'linear', 'factor': 4.0}})",
        "rope_type counts, and not the type, 'linear'",
        "read({**LLAMA, 'rope_scaling': {'rope_type': 'linear', 'factor': 4.0}})",
    ),
    ("read(json.dumps(LLAMA))", "give json.loads(config)", "read(json.loads(json.dumps(LLAMA)))"),
    (
        "read({'model_type': 'bert'})",
        "leave its queries and keys as they are, or use RotaryEmbedding(rotary_dim, ..) if yours has one",
        "RotaryEmbedding(64, interleaved=False)",
    ),
    (
        "read({'model_type': 'falcon', 'alibi': True})",
        'or write {"alibi": false} if yours has one',
        "read({'model_type': 'falcon', 'alibi': False})",
    ),
    (
        "read({**PHI, 'rope_scaling': {'type': 'dynamic', 'factor': 2.0}}, seq_len=8)",
        "correct it, or use RotaryEmbedding(.., scaling=..)",
        "(read({**PHI, 'rope_scaling': {'type': 'longrope', 'factor': 2.0, **LISTS}}, seq_len=8), RotaryEmbedding(8, interleaved=False, scaling={'type': 'linear', 'factor': 2.0}))",
    ),
    (
        "read({**PHI, 'model_type': 'phimoe', 'rope_scaling': {'type': 'longrope', **LISTS}}, seq_len=8)",
        "without short_mscale and long_mscale, which transformers refuses in models of this type; write both",
        "read({**PHI, 'model_type': 'phimoe', 'rope_scaling': {'type': 'longrope', **LISTS, 'short_mscale': 1.2, 'long_mscale': 1.3}}, seq_len=8)",
    ),
    (
        "read({**LLAMA, 'rope_scaling': {'type': 'su', **LISTS}}, seq_len=8)",
        'early Phi-3 files mean "longrope"',
        "read({**LLAMA, 'rope_scaling': {'type': 'longrope', **LISTS}}, seq_len=8)",
    ),
    (
        "read({**LLAMA, 'rope_scaling': {'factor': 2.0}})",
        "there is no rope_type; write it: factor is a key of linear",
        "read({**LLAMA, 'rope_scaling': {'rope_type': 'linear', 'factor': 2.0}})",
    ),
    (
        "rotary_frequencies(8, scaling={'rope_type': 'llama3', 'factor': 8.0})",
        'scaling has no low_freq_factor and no high_freq_factor and no original_max_position_embeddings, which "llama3" needs',
        "rotary_frequencies(8, scaling={'rope_type': 'llama3', 'factor': 8.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0, 'original_max_position_embeddings': 64})",
    ),
    (
        "read({**LLAMA, 'rope_scaling': {'type': 'linaer', 'factor': 8.0}})",
        'scaling["type"] is \'linaer\', which is not known; did you mean "linear"?',
        "read({**LLAMA, 'rope_scaling': LINEAR})",
    ),
    ("read(Config())", "give config.to_dict()", "read(Config().to_dict())"),
    ("read({**LLAMA, 'model_type': 'lama'})", 'did you mean "llama"?', "read(LLAMA)"),
    *(
        (
            f"read({{**BARE, 'model_type': {vision!r}}})",
            f"; if it has positions of several coordinates, use fastpe.rotary_layouts[{name!r}]",
            f"fastpe.rotary_layouts[{name!r}].tables([[0, 1], [2, 3]], 64, theta=100.0)",
        )
        for vision, name in (("dinov3_vit", "dinov3"), ("pixtral", "pixtral"), ("llama4_vision_model", "llama4_vision"))
    ),
    ("read({**LLAMA, 'model_type': 'phi_3'})", 'did you mean "phi3"?', "read({**LLAMA, 'model_type': 'phi3'})"),
    *(
        (
            f"read({{**BARE, 'model_type': {newer!r}}})",
            f'; "{known}" is known, and may be another model: before you take it, compare how both rotate queries and keys',
            f"read({{**BARE, 'model_type': {newer!r}}}, interleaved=False)",
        )
        for newer, known in (("qwen3_6", "qwen3_5"), ("qwen3_6_text", "qwen3_5_text"), ("mistral5", "mistral"))
    ),
    (
        "read({**BARE, 'model_type': 'unheard_of'})",
        "give interleaved=True for neighbours, or interleaved=False",
        "(read({**BARE, 'model_type': 'unheard_of'}, interleaved=True), read(BARE, interleaved=False))",
    ),
    (
        "read({'model_type': 'x', 'rope_theta': 1e4}, interleaved=True)",
        "write it into the config, or use RotaryEmbedding(rotary_dim, ..)",
        "(read({**BARE, 'model_type': 'x'}, interleaved=True), RotaryEmbedding(8, interleaved=True, base=1e4))",
    ),
    (
        "read({'model_type': 'gemma3_text'})",
        "give one of 'full_attention', 'sliding_attention'",
        "read({'model_type': 'gemma3_text'}, layer_type='sliding_attention')",
    ),
    ("read(LLAMA, layer_type='full_attention')", "all layers of this model are alike; leave it out", "read(LLAMA)"),
    (
        "read({'model_type': 'gemma3_text', 'rope_scaling': LINEAR}, layer_type='full_attention')",
        "write rope_type",
        "read({'model_type': 'gemma3_text', 'rope_scaling': {'rope_type': 'linear', 'factor': 8.0}}, layer_type='full_attention')",
    ),
    (
        "read({'model_type': 'gemma3_text', 'rope_parameters': {'rope_theta': 1e4}}, layer_type='full_attention')",
        'write {"full_attention": {..}, ..}',
        "read({'model_type': 'gemma3_text', 'rope_parameters': {'full_attention': {'rope_theta': 1e4}}}, layer_type='full_attention')",
    ),
    (
        "read({**LLAMA, 'rope_parameters': {'a': {'rope_theta': 1e4}, 'factor': 2.0}}, layer_type='a')",
        "move it into the types that it is for",
        "read({**LLAMA, 'rope_parameters': {'a': {'rope_theta': 1e4, 'rope_type': 'linear', 'factor': 2.0}}}, layer_type='a')",
    ),
    (
        "read({**LLAMA, 'partial_rotary_factor': 0.5})",
        "or use RotaryEmbedding(4, ..)",
        "(read(LLAMA), RotaryEmbedding(4, interleaved=False))",
    ),
    (
        "read({'model_type': 'minimax', 'rotary_dim': 64})",
        "or use RotaryEmbedding(64, ..)",
        "(read({'model_type': 'minimax'}), RotaryEmbedding(64, interleaved=False))",
    ),
    (
        "read({'model_type': 'apertus', 'rope_theta': 1e4})",
        'write 12000000.0, or {"rope_parameters": {"rope_theta": 10000.0, ..}}',
        "(read({'model_type': 'apertus', 'rope_theta': 12e6}), read({'model_type': 'apertus', 'rope_parameters': {'rope_theta': 10000.0}}))",
    ),
    ("read(LLAMA, axes=True)", "models of this type have one coordinate; leave it out", "read(LLAMA)"),
    ("read({'model_type': 'llava'})", 'no "text_config"', "read({'model_type': 'llava', 'text_config': LLAMA})"),
    ("read(DYNAMIC)", "give seq_len=", "read(DYNAMIC, seq_len=64)"),
    (
        "read({**LLAMA, 'rope_scaling': {'type': 'yarn'}})",
        'write the factor, or "factor": null',
        "(read({**LLAMA, 'rope_scaling': {'type': 'yarn', 'factor': 2.0}}), read({**LLAMA, 'rope_scaling': {'type': 'yarn', 'factor': None}}))",
    ),
    (
        "read({**PHI, 'rope_scaling': {'type': 'yarn', 'factor': 2.0}}, seq_len=8)",
        "write both, or correct the type",
        "read({**PHI, 'rope_scaling': {'type': 'yarn', 'factor': 2.0, **LISTS}}, seq_len=8)",
    ),
    (
        "read({**LLAMA, 'rope_scaling': {'type': 'linear', 'facter': 2.0}})",
        'did you mean "factor"?',
        "read({**LLAMA, 'rope_scaling': {'type': 'linear', 'factor': 2.0}})",
    ),
]


@pytest.mark.parametrize(("wrong", "remedy", "remedied"), REMEDIED, ids=[wrong for wrong, *_ in REMEDIED])
def test_the_remedy_works(wrong: str, remedy: str, remedied: str, tmp_path: Path) -> None:
    def hf_hub_download(model: str, name: str) -> Path:
        """As huggingface_hub's, without a network."""
        (tmp_path / name).write_text(json.dumps(LLAMA))
        return tmp_path / name

    functions = {name: getattr(fastpe, name) for name in ("RotaryEmbedding", "rotary_frequencies")}
    saved = tmp_path / "saved.json"
    saved.write_text(json.dumps(LLAMA))
    names = {**globals(), **functions, "hf_hub_download": hf_hub_download, "io": io, "os": os, "SAVED": str(saved)}
    check_remedy(evaluating(lambda: names), wrong, remedy, remedied)
