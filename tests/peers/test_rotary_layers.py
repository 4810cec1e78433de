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
import pathlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._config.file import table

from .conftest import tool

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
# What a model type needs besides.
SECTIONS = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}}
NEEDS: dict[str, dict[str, Any]] = {
    **{key: {"rotary_dim": 16} for key in ("gptj", "codegen")},
    **{key: {"head_dim": 16} for key in ("helium", "ministral", "hunyuan_v1_dense", "hunyuan_v1_moe")},
    **dict.fromkeys(("qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text"), SECTIONS),
    **dict.fromkeys(("glm4v_text", "glm_ocr_text"), SECTIONS),
    **{key: {"head_dim": 128, "partial_rotary_factor": 0.5} for key in ("glm4v_moe_text", "glm_image_text")},
    "hunyuan_vl_text": {"head_dim": 16, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4,
        "xdrope_section": [2, 2, 2, 2]}},
    "lfm2_moe": {"layer_types": ["conv", FULL] * 4},
    "cohere_compass_text": {"rope_parameters": {FULL: {"rope_theta": 1e4, "mrope_section": [3, 3, 2]}}},
    "diffusion_gemma_text": {"num_experts": 4, "top_k_experts": 2},
    "ernie4_5_vl_moe_text": {"moe_intermediate_size": [32, 32], "head_dim": 128},
    "mimo_v2_flash": {"num_key_value_heads": 2},
    "longcat_flash": {"ffn_hidden_size": 32, "expert_ffn_hidden_size": 32, "zero_expert_num": 1, "moe_topk": 2,
        "num_layers": LAYERS},
    "zamba2": {"layers_block_type": [LINEAR, "hybrid"] * 4},
    "zaya": {"num_experts_per_tok": 1},
    "falcon_h1": {"mamba_d_ssm": 128},
    "qwen4_exp_text": {"ple_layer_ids": [], "indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 256,
        "indexer_budget": 8, "indexer_compress_ratio": 4},
}  # fmt: skip
# Model types that are not run, and why: a new one that cannot be run is to be looked at.
NOT_RUN: dict[str, str] = {
    name: why
    for why, names in {
        "it is run with other inputs than ids": """
            blt_global_transformer blt_local_decoder blt_local_encoder csm deepseek_ocr2_encoder dia_decoder
            evolla idefics moshi muse_glimmer_assistant phi4_multimodal qwen2_5_omni_dit qwen2_5_omni_talker
            qwen3_omni_moe_talker_code_predictor qwen3_omni_moe_talker_text t5gemma2_decoder t5gemma2_text
            voxtral_realtime_text
        """,
        "it is a model of sound or of series": """
            dots3_note_audio_encoder glmasr_encoder gradium_phonon_tts kyutai_speech_to_text lasr_encoder mimi
            mimi_decoder mimi_encoder moonshine moonshine_streaming nemotron3_5_transcribe_asr_audio
            nemotron3_5_transcribe_word_timestamp nemotron3_diarization_audio neucodec pe_audio_encoder
            pe_audio_video_encoder pe_video_encoder pocket_tts pocket_tts_audio_tokenizer
            pocket_tts_audio_tokenizer_decoder pocket_tts_audio_tokenizer_encoder seamless_m4t timesfm2_5
            voxtral_realtime_encoder wav2vec2-bert wav2vec2-conformer xcodec2
        """,
        "its model is another type's": "exaone internlm3 iquestcoder new sarvam_mla sarvam_moe t5_gemma_module",
        "transformers 5.24 fails on it": "chameleon dbrx deepseek_ocr2_text",
        "it rotates in a method of its attention": "roformer",
    }.items()
    for name in names.split()
}
# Whose saved file has other numbers: the number of passes through layers, and a key that nothing reads.
NOT_SAVED = {"hrm_text", "minimax_m3_vl_text"}
# What else files have.
GIVEN: list[tuple[str, dict[str, Any]]] = [
    ("llama4_text", {"no_rope_layers": [1] * LAYERS, "layer_types": [FULL] * LAYERS}),
    ("llama4_text", {"no_rope_layers": [1, 1, 1, 0] * 2, "attention_chunk_size": None}),
    ("llama4_text", {"no_rope_layer_interval": 3, "no_rope_layers": []}),
    ("smollm3", {"no_rope_layers": [0, 1, 1, 1, 1, 0, 1, 1]}),
    ("smollm3", {"no_rope_layer_interval": 2}),
    ("cohere2", {"sliding_window_pattern": 2}),
    ("cohere2_moe", {"first_k_dense_replace": 2}),
    ("cohere2_moe", {"first_k_dense_replace": 3, "prefix_dense_sliding_window_pattern": 2}),
    ("exaone4", {"sliding_window": None, "layer_types": [FULL] * LAYERS}),
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
    ("step3p5", {"layer_types": [FULL, SLIDING] * 4, "rope_theta": [5e6, 1e4] * 4, "partial_rotary_factors": [0.5,
        1.0] * 4}),
    ("zaya", {"layer_types": ["hybrid", "hybrid_sliding"] * 4}),
    ("cohere_compass_text", {"rope_parameters": {FULL: None, SLIDING: {"rope_theta": 1e4}}, "layer_types": [SLIDING,
        FULL] * 4}),
]  # fmt: skip


def configured(model_type: str, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The configuration of a tiny model, and the keys that a file of it would have."""
    kind = tool().configurations()[model_type]
    required = {key: words[0] for key, words in table()["models"][model_type].get("requires", {}).items()}
    small = {key: value for key, value in SMALL.items() if key in kind.__dataclass_fields__}
    written = small | required | NEEDS.get(model_type, {}) | given
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


# The fields of a row that say which layers are rotated, and how.
RULE = ("layer_types", "rotated_layers", "layers")
CASES = [*((name, {}) for name in table()["models"] if name not in NOT_RUN), *GIVEN]


# Quick are one model of each rule, and what files change.
QUICK = {json.dumps([table()["models"][name].get(field) for field in RULE]): name for name, given in CASES if not given}


@pytest.mark.parametrize(
    ("model_type", "given"),
    [
        pytest.param(name, given, marks=[] if given or name in QUICK.values() else pytest.mark.slow)
        for name, given in CASES
    ],
    ids=[f"{name}-{','.join(given)}" for name, given in CASES],
)
def test_layers_are_rotated_as_the_model_does(model_type: str, given: dict[str, Any]) -> None:
    config, written = configured(model_type, given)
    saved = json.loads(config.to_json_string(use_diff=False))
    calls = recorded(config)
    for file in (written, saved) if model_type not in NOT_SAVED else (written,):
        layers = fastpe.RotaryEmbedding.layers_from_config(file)
        assert [layer is not None for layer in layers] == [at in calls for at in range(LAYERS)]
        for at, rope in enumerate(layers):
            assert rope is None or any(has_table(call, rope) for call in calls[at]), (at, rope)


def test_models_that_are_not_run_have_layers_that_are_alike() -> None:
    """Where layers differ, the rule of the class is compared with the forward pass of a model that has it."""
    for name in NOT_RUN:
        row = table()["models"][name]
        if any(row.get(field) for field in RULE):
            same = [other for other in {*table()["models"]} - {*NOT_RUN} if shares_rule(row, table()["models"][other])]
            assert same, name


def shares_rule(row: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(row.get(field) == other.get(field) for field in RULE)
