# SPDX-License-Identifier: BSD-3-Clause
"""Which layers a model rotates, and by which table, beside the forward pass of every model of transformers.

Each model type that has a row is made tiny, with random weights, and run once. Its functions that rotate are watched:
what they are given while a layer runs is that layer's table.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import logging
import pathlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._rotary.model_types import table

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

LAYERS, LENGTH = 8, 12

# Keys of a tiny model, where its configuration has them.
SMALL: dict[str, Any] = {
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "mamba_n_heads"), LAYERS),
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "vocab_size", "vocab_size_per_layer_input"), 64),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_key_value_heads", "index_n_heads"), 4),
    **dict.fromkeys(("num_global_key_value_heads", "n_routed_experts", "num_experts", "num_local_experts"), 4),
    **dict.fromkeys(("intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size"), 32),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank", "o_lora_rank", "qk_nope_head_dim", "v_head_dim"), 16),
    **dict.fromkeys(("mamba_d_head", "hidden_size_per_layer_input"), 16),
    **dict.fromkeys(("sliding_window", "attention_chunk_size", "moe_num_experts", "max_window_layers"), 4),
    **dict.fromkeys(("n_group", "topk_group", "bos_token_id", "n_shared_experts"), 1),
    **dict.fromkeys(("num_experts_per_tok", "eos_token_id", "moe_k"), 2),
    "pad_token_id": 0,
    "mamba_d_state": 8,
    "num_kv_shared_layers": 0,
}
FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"
WIDE = {"hidden_size": 512}  # so that the default sections fit
# What a model type needs besides, or has in published files.
GIVEN: list[tuple[str, dict[str, Any]]] = [
    *((name, {"rotary_dim": 16}) for name in ("gptj", "codegen")),
    *((name, {"head_dim": 16}) for name in ("helium", "ministral", "hunyuan_v1_dense", "hunyuan_v1_moe")),
    *((name, WIDE) for name in ("qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text")),
    *((name, WIDE) for name in ("glm4v_moe_text", "glm_image_text", "glm4v_text", "glm_ocr_text")),
    ("llama4_text", {"no_rope_layers": [1] * LAYERS, "layer_types": [FULL] * LAYERS}),
    ("llama4_text", {"no_rope_layers": [1, 1, 1, 0] * 2, "attention_chunk_size": None}),
    ("llama4_text", {"no_rope_layer_interval": 3, "no_rope_layers": []}),
    ("smollm3", {"no_rope_layers": [0, 1, 1, 1, 1, 0, 1, 1]}),
    ("smollm3", {"no_rope_layer_interval": 2}),
    ("cohere2", {"sliding_window_pattern": 2}),
    ("cohere2_moe", {"first_k_dense_replace": 2}),
    ("cohere2_moe", {"first_k_dense_replace": 3, "prefix_dense_sliding_window_pattern": 2}),
    ("exaone4", {"sliding_window": None, "layer_types": [SLIDING, FULL] * 4}),
    ("exaone4", {"sliding_window_pattern": 3}),
    ("gemma3_text", {"sliding_window_pattern": 2, "rope_theta": 5e5, "rope_local_base_freq": 2e4}),
    ("modernbert", {"global_attn_every_n_layers": 2}),
    ("muse_spark_text", {"layer_rope_theta": [0, 5e5, 5e5, 5e5] * 2}),
    ("granite_swa", {"layer_rope_theta": [0, 5e5, 1e4, 5e5] * 2}),
    ("bamba", {"attn_layer_indices": [1, 6]}),
    ("lfm2", {"full_attn_idxs": [2, 5]}),
    ("lfm2_moe", {"layer_types": ["conv", FULL] * 4}),
    ("granitemoehybrid", {"position_embedding_type": "rope", "layer_types": ["mamba", "attention"] * 4}),
    ("laguna", {"layer_types": [FULL, SLIDING] * 4}),
    ("mellum", {"layer_types": [FULL, SLIDING] * 4}),
    ("deepseek_v4", {"layer_types": [SLIDING, "heavily_compressed_attention"] * 4}),
    ("qwen3_next", {"full_attention_interval": 3}),
    ("mllama_text_model", {"cross_attention_layers": [1, 4]}),
    (
        "step3p5",
        {"layer_types": [FULL, SLIDING] * 4, "rope_theta": [5e6, 1e4] * 4, "partial_rotary_factors": [0.5, 1.0] * 4},
    ),
    ("zaya", {"layer_types": ["hybrid", "hybrid_sliding"] * 4}),
    (
        "cohere_compass_text",
        {"rope_parameters": {FULL: None, SLIDING: {"rope_theta": 1e4}}, "layer_types": [SLIDING, FULL] * 4},
    ),
]

# Model types that are not run, and why: a new one that cannot be run is to be looked at.
NOT_RUN: dict[str, str] = {}


def tool() -> Any:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    logging.disable(logging.WARNING)
    return importlib.import_module("tools.rotary_models")


def configured(model_type: str, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The configuration of a tiny model, and the keys that a file of it would have."""
    kind = tool().configurations()[model_type]
    required = {key: words[0] for key, words in table()["models"][model_type].get("requires", {}).items()}
    written = {key: value for key, value in SMALL.items() if key in kind.__dataclass_fields__} | required | given
    return kind(**json.loads(json.dumps(written))), {"model_type": model_type, **written}


def candidates(config: Any) -> Iterator[tuple[list[Any], Any]]:
    """The models that take this configuration, the barest one first, with the modules of its folder."""
    transformers = importlib.import_module("transformers")
    folder = type(config).__module__.rpartition(".")[0]
    path = pathlib.Path(importlib.import_module(folder).__path__[0])
    modules = [importlib.import_module(f"{folder}.{source.stem}") for source in sorted(path.glob("modeling_*.py"))]
    kinds: set[Any] = {
        kind
        for module in modules
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if kind.__module__ == module.__name__ and issubclass(kind, transformers.PreTrainedModel)
        if getattr(kind, "config_class", None) is type(config) and not kind.__name__.endswith("PreTrainedModel")
    }
    for kind in sorted(kinds, key=lambda kind: (not kind.__name__.endswith("Model"), len(kind.__name__)))[:2]:
        yield modules, kind


def recorded(config: Any) -> dict[int, list[list[Any]]]:
    """What the functions that rotate are given, by the layer that runs."""
    failed: Exception | None = None
    for modules, kind in candidates(config):
        try:
            return run(modules, kind, config)
        except Exception as error:  # noqa: BLE001  # models refuse in many ways what is not for them
            failed = error
    raise failed or LookupError("no model takes this configuration")


def run(modules: list[Any], kind: Any, config: Any) -> dict[int, list[list[Any]]]:
    torch = importlib.import_module("torch")
    calls: dict[int, list[list[Any]]] = defaultdict(list)
    running: list[int] = []

    def watched(function: Any) -> Any:
        def call(*arguments: Any, **more: Any) -> Any:
            if running:
                calls[running[-1]].append([each for each in (*arguments, *more.values()) if torch.is_tensor(each)])
            return function(*arguments, **more)

        return call

    with contextlib.ExitStack() as stack:
        for module in modules:
            for name, function in list(vars(module).items()):
                if inspect.isfunction(function) and "apply_rot" in name and function.__module__ == module.__name__:
                    stack.callback(setattr, module, name, function)
                    setattr(module, name, watched(function))
        torch.manual_seed(0)
        model = kind(config).eval()
        lists = [each for each in model.modules() if isinstance(each, torch.nn.ModuleList) and len(each) == LAYERS]
        for at, layer in enumerate(lists[0]):
            layer.register_forward_pre_hook(lambda *_, at=at: running.append(at))
            layer.register_forward_hook(lambda *_: (running.pop(), None)[1])
        with torch.no_grad():
            try:
                model(torch.arange(LENGTH)[None] + 3, use_cache=False)
            except (TypeError, AttributeError, IndexError):
                model(inputs_embeds=torch.randn(1, LENGTH, config.hidden_size), use_cache=False)
    return calls


def has_table(call: list[Any], rope: fastpe.RotaryEmbedding) -> bool:
    """Whether the cosines of `rope` are among what a function was given."""
    made = rope.tables(LENGTH, form=rope.form)
    ours = made[0] if isinstance(made, tuple) else made
    if rope.form == "sin_cos":
        ours = rope.tables(LENGTH, form="halves")[0]
    for tensor in call:
        theirs = tensor.detach().numpy()
        if theirs.shape[-1] == ours.shape[-1] and theirs.size >= ours.size:
            rows = theirs.reshape(-1, theirs.shape[-1])[:LENGTH]
            if theirs.dtype == ours.dtype and np.abs(rows - ours).max() < 1e-4:
                return True
    return False


CASES = [*((name, {}) for name in table()["models"] if name not in {name for name, given in GIVEN[:11]}), *GIVEN]


@pytest.mark.parametrize(("model_type", "given"), CASES, ids=[f"{name}-{','.join(given)}" for name, given in CASES])
def test_layers_are_rotated_as_the_model_does(model_type: str, given: dict[str, Any]) -> None:
    tool()
    if model_type in NOT_RUN:
        pytest.skip(NOT_RUN[model_type])
    config, written = configured(model_type, given)
    saved = json.loads(config.to_json_string(use_diff=False))
    calls = recorded(config)
    for file in (written, saved):
        layers = fastpe.RotaryEmbedding.layers_from_config(file)
        assert [layer is not None for layer in layers] == [at in calls for at in range(LAYERS)]
        for at, rope in enumerate(layers):
            assert rope is None or any(has_table(call, rope) for call in calls[at]), (at, rope)


def test_every_type_of_layer_is_met() -> None:
    """Models of several kinds of layers that are not run would not be compared with anything."""
    assert {*NOT_RUN} <= {*table()["models"]}
