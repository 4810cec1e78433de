# SPDX-License-Identifier: BSD-3-Clause
"""No key of a config that speaks of rotation is passed over: it is read, or harmless, or refused by its name.

The right values are those of the models' own code.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.configs import rotated_rope
from ..oracles.refusals import naming

from_config = fastpe.RotaryEmbedding.from_config

Config = dict[str, Any]

BARE = {"model_type": "unheard_of", "head_dim": 128, "rope_theta": 1e6}
LLAMA = {"model_type": "llama", "head_dim": 128, "rope_theta": 1e6}
UNKNOWN = {"interleaved": False}
PHI = {"model_type": "phi3", "hidden_size": 32, "num_attention_heads": 4}
SWA = {"layer_type": "sliding_attention", **UNKNOWN}
MROPE = {
    "interleaved": True,
    "mrope_interleaved": True,
    "mrope_section": [24, 20, 20],
    "rope_type": "default",
    "type": "default",
}

NESTED = {name: {"rope_type": "default", "rope_theta": 1e4} for name in ("full_attention", "sliding_attention")}

# A config, the arguments, and a frequency with its index.
READ: list[tuple[Config, Config, int, float]] = [
    ({**LLAMA, "rope_is_neox_style": True}, {}, 1, 1e6 ** (-1 / 64)),
    ({"model_type": "paddleocr_vl_text", "rope_is_neox_style": True, "use_3d_rope": True}, {}, 1, 5e5 ** (-1 / 64)),
    ({"model_type": "nomic_bert", "rotary_emb_base": 10000}, {}, 31, 1.3335e-4),
    ({"model_type": "nomic_bert"}, {}, 31, 1.2409e-3),
    ({"model_type": "nomic_bert", "rotary_scaling_factor": 2}, {"seq_len": 8192}, 31, 1.7728e-4),
    ({"model_type": "nomic_bert", "rotary_scaling_factor": 2, "max_trained_positions": 2048, "n_embd": 768,
        "n_head": 12}, {"seq_len": 8192}, 31, 1.7728e-4),
    ({"model_type": "x", "hidden_size": 7168, "num_attention_heads": 128, "qk_rope_head_dim": 64, "rope_theta": 1e4},
        UNKNOWN, 31, 1.3335e-4),
    ({"model_type": "qwen3_omni_moe_text", "head_dim": 128, "rope_theta": 1e6, "rope_scaling": MROPE}, {}, 63,
        1.2409e-6),
    # Other spellings, where the type is not known.
    *(({"model_type": "x", "head_dim": 128, key: 5e5}, UNKNOWN, 63, 5e5 ** (-126 / 128)) for key in ("rotary_emb_base",
        "rotary_base", "rope_base", "rotary_embedding_base", "rope_embedding_base")),
    *(({**BARE, key: 0.25}, UNKNOWN, 15, 1e6 ** (-30 / 32)) for key in ("rope_pct", "rotary_pct", "rotary_percent",
        "rotary_emb_fraction", "partial_rotary_factor")),
    *(({"rope_theta": 1e6, key: 64}, UNKNOWN, 31, 1e6 ** (-62 / 64)) for key in ("head_dim", "kv_channels",
        "attention_head_dim", "rotary_dim", "rotary_ndims")),
    ({"rope_theta": 1e6, "n_embd": 512, "n_head": 8}, UNKNOWN, 31, 1e6 ** (-62 / 64)),
    # A list of types says what such keys say.
    ({**BARE, "full_attention_interval": 2, "layer_types": ["sliding_attention", "full_attention"]}, UNKNOWN, 63, 1.2409e-6),
    ({**BARE, "full_attention_interval": 1, "hybrid_override_pattern": None, "attn_type_list": []}, UNKNOWN, 63, 1.2409e-6),
    ({"model_type": "hunyuan_v1_dense", "use_rotary_pos_emb": True}, {}, 63, 1e4 ** (-126 / 128)),
    # What says the same as the others is harmless.
    ({**LLAMA, "rotary_emb_base": 1e6, "rotary_pct": 1.0, "kv_channels": 128, "rope_interleaved": False}, {}, 63,
        1.2409e-6),
    ({**BARE, "rope_type": "default", "use_rope": True, "is_neox_style": True, "alibi": False}, UNKNOWN, 63, 1.2409e-6),
    ({**LLAMA, "mlp_ratio": 4.0, "routed_scaling_factor": 2.5, "logit_scale": 0.1, "v_head_dim": 64}, {}, 63,
        1.2409e-6),
    ({**BARE, "vision_config": {"rope_theta": 1e4, "hidden_size": 8}}, UNKNOWN, 63, 1.2409e-6),
    # Lists of mappings, and a mapping that only says that there is no scaling
    ({**LLAMA, "block_configs": [{"attention": {"rope_theta": 1e6, "n_heads_in_group": 8}, "ffn": {}}]}, {}, 63,
        1.2409e-6),
    ({"model_type": "mimo_v2_flash", "rope_scaling": {"type": "default", "rope_type": "default"}},
        {"layer_type": "sliding_attention"}, 31, 1e4 ** (-62 / 64)),
    # Keys that change nothing in this model, with this value
    ({"model_type": "modernbert", "position_embedding_type": "absolute"}, {**SWA}, 31, 1e4 ** (-62 / 64)),
    ({"model_type": "step3p5", "yarn_only_types": ["full_attention"], "use_rope_layers": []}, SWA, 63,
        1e4 ** (-126 / 128)),
    ({"model_type": "falcon", "alibi": False, "alibi_bias_max": 8}, {}, 31, 1e4 ** (-62 / 64)),
    ({"model_type": "falcon", "n_embed": 2048, "num_attention_heads": 32}, {}, 31, 1e4 ** (-62 / 64)),
    ({"model_type": "bamba", "attn_rotary_emb": 64}, {}, 31, 1e4 ** (-62 / 64)),
    ({"model_type": "openelm", "rope_freq_constant": 10000, "rope_max_length": 4096, "head_dim": 64}, UNKNOWN, 31,
        1e4 ** (-62 / 64)),
    ({"model_type": "cohere2", "position_embedding_type": "rope_gptj"}, {}, 63, 1e4 ** (-126 / 128)),
    ({"model_type": "ernie4_5", "freq_allocation": 20, "compression_ratio": 1.0}, {}, 63, 5e5 ** (-126 / 128)),
    ({**LLAMA, "use_partial_rope": False, "use_mla": False}, {}, 63, 1.2409e-6),
    ({"model_type": "deepseek_v2", "use_mla": True}, {}, 31, 1e4 ** (-62 / 64)),
    ({**BARE, "use_mla": False, "qk_rope_head_dim": 0, "rope_traditional": False}, UNKNOWN, 63, 1.2409e-6),
    ({**LLAMA, "mup_use_scaling": True, "mla_scale_q_lora": True, "hidden_scale": 4.125}, {}, 63, 1.2409e-6),
    ({"model_type": "glm_moe_dsa", "index_topk_freq": 4, "indexer_rope_interleave": False}, {}, 31, 1e4 ** (-62 / 64)),
    ({"model_type": "hunyuan_v1_moe", "use_mla": False, "qk_rope_head_dim": 64}, {}, 63, 1e4 ** (-126 / 128)),
    # The base times the factor, and frequencies by factor**(2 / d)
    *(({"model_type": name, "position_embedding_type": "rope", "rope_theta": 160000, "rope_scaling": scaling}, {}, 1,
        0.65850) for name in ("gte", "new") for scaling in [{"factor": 2, "type": "ntk"}]),
    ({"model_type": "gte", "position_embedding_type": "rope", "rope_theta": 160000, "rope_scaling": {"factor": 0.5,
        "type": "ntk"}}, {}, 1, 160000 ** (-2 / 64)),
    # transformers overwrites the part of Bamba, and takes the width of Bailing's tail for that of the rotated part.
    ({"model_type": "bamba", "partial_rotary_factor": 0.5}, {}, 31, 1e4 ** (-62 / 64)),
    ({"model_type": "bailing_hybrid", "partial_rotary_factor": 0.5, "head_dim": 128}, {}, 31, 6e6 ** (-62 / 64)),
    ({"model_type": "roformer", "rotary_value": False}, {}, 31, 1e4 ** (-62 / 64)),
    ({"model_type": "qwen2_5_omni_token2wav", "dit_config": {}}, {}, 31, 1e4 ** (-62 / 64)),
    # Parts by other names
    *(({"model_type": f"{kind}encoder-decoder", "encoder": {"rope_theta": 1.0}, "decoder": LLAMA}, {}, 63,
        1.2409e-6) for kind in ("vision-", "speech-", "")),
    ({"model_type": "vibevoice", "decoder_config": LLAMA}, {}, 63, 1.2409e-6),
    # Positions are divided once.
    ({**LLAMA, "rope_scaling": {"type": "linear", "factor": 8.0}, "rope_condense_ratio": 8}, {}, 63, 1.2409e-6 / 8),
    ({**LLAMA, "rope_condense_ratio": 8}, {"scaling": {"rope_type": "linear", "factor": 8.0}}, 63, 1.2409e-6 / 8),
    ({**LLAMA, "use_2d_rope": False, "attn_use_rope": True}, {}, 63, 1.2409e-6),
    # TensorRT-LLM's name of the pairing, a shared key that each type of layers also has, and Qwen 3 Omni's talker
    ({**BARE, "position_embedding_type": "rope_gpt_neox"}, UNKNOWN, 63, 1.2409e-6),
    ({"model_type": "gemma4_text", "rope_parameters": {**NESTED, "rope_type": "default"}}, SWA, 127,
        1e4 ** (-254 / 256)),
    ({"model_type": "qwen3_omni_moe_talker", "text_config": {"head_dim": 64}}, {}, 31, 1e4 ** (-62 / 64)),
    # Arguments count, and not the keys.
    ({"_class_name": "StableAudioDiTModel", "attention_head_dim": 64}, {**UNKNOWN, "base": 1e4, "scaling": {},
        "rotary_dim": 32}, 15, 1e4 ** (-30 / 32)),
    ({**LLAMA, "use_partial_rope": True}, {"rotary_dim": 64}, 31, 1e6 ** (-62 / 64)),
    ({**LLAMA, "compression_ratio": 2.0}, {"scaling": {"rope_type": "default"}}, 63, 1.2409e-6),
    ({"model_type": "deepseek_v2", "use_mla": False}, {"interleaved": False, "rotary_dim": 128}, 63,
        1e4 ** (-126 / 128)),
    ({"model_type": "gemma3_text", "rope_parameters": {"rope_type": "linear", "factor": 8.0}},
        {"layer_type": "full_attention", "base": 1e6, "scaling": {"rope_type": "default"}, "rotary_dim": 256}, 127,
        1e6 ** (-254 / 256)),
    ({**BARE, "swa_rope_theta": 1e4}, {**SWA, "base": 1e4}, 63, 1e4 ** (-126 / 128)),
    ({**LLAMA, "rotary_pct": 0.25}, {"rotary_dim": 32}, 15, 1e6 ** (-30 / 32)),
    ({**LLAMA, "yarn": {"factor": 8.0}}, {"scaling": {"rope_type": "default"}}, 63, 1.2409e-6),
    ({**LLAMA, "rope_scaling": {"type": "linear", "factor": 4.0}}, {"scaling": {"rope_type": "default"}}, 63,
        1.2409e-6),
    ({**LLAMA, "use_scaled_rope": True}, {"scaling": {"rope_type": "linear", "factor": 2.0}}, 63, 1.2409e-6 / 2),
    ({**LLAMA, "rope_interleaved": True}, {"interleaved": True}, 63, 1.2409e-6),
]  # fmt: skip

# Keys that say that the model is not rotated, that its positions are divided, or that its base is another one.
OFF: Config = {
    **dict.fromkeys(("attn_use_rope", "lightning_use_rope", "rope_enabled", "global_rope", "use_rope"), False),
    **dict.fromkeys(("use_pos_emb", "use_position_embeddings", "use_positional_embedding"), False),
    **dict.fromkeys(("add_position_embedding", "use_rotary_position_embeddings"), False),
    **{key: [1, 0] for key in ("rope_layers", "no_rope_layers", "nope_layers")},
    **dict.fromkeys(("pos_embd_type", "rel_pos_type"), "alibi"),
    **dict.fromkeys(("context_extension_factor", "compress_pos_emb", "alpha_value", "rope_condense_ratio"), 4),
    "rotary_embedding": 0,
    "position_encoding_2d": True,
    "training_seqlen": 8192,
}

# A config, the arguments, and the key that is named.
REFUSED: list[tuple[Config, Config, str]] = [
    # Pairing by the names of GPT-NeoX, which mean the opposite of "interleaved"
    ({"model_type": "qwen3", "head_dim": 64, "rope_theta": 1e7, "rope_is_neox_style": False}, {}, "rope_is_neox_style"),
    ({"model_type": "ernie4_5", "rope_is_neox_style": True}, {}, "rope_is_neox_style"),
    # Which layers are rotated, whatever the pairing
    *(({**BARE, key: [0, 1, 1, 1]}, UNKNOWN, key) for key in ("rope_layout", "rope_interleave_layers",
        "use_pos_emb_layers")),
    # GLM of 2022, under the model_type of GLM 4
    ({"model_type": "glm", "hidden_size": 4096, "num_attention_heads": 64, "block_position_encoding": True}, {},
        "block_position_encoding"),
    # ALiBi under the model_type of BERT
    ({"model_type": "bert", "alibi_starting_size": 512}, {}, "alibi_starting_size"),
    # No argument says which layers are rotated.
    *(({**config, key: value}, {**UNKNOWN, "base": 1e4, "scaling": {"rope_type": "default"}, "rotary_dim": 128},
        key) for config in (BARE, LLAMA) for key, value in {"attn_use_rope": False, "use_rope": False,
        "no_rope_layers": [1, 1, 1, 0], "nope_layers": [3], "position_embedding_type": "alibi"}.items()),
    # Of which type each layer is, where no list of types says it
    *(({**config, key: value}, UNKNOWN, key) for config in (BARE, LLAMA) for key, value in {"attn_type_list": [0] * 7 +
        [1], "full_attention_interval": 4, "hybrid_override_pattern": "M-M*-", "linear_attn_config": {"full_attn_layers":
        [4]}, "attn_layer_period": 8, "attention_layers": [3], "full_attn_idxs": [2], "layers_block": {"attn_types":
        ["global"]}, "hybrid_layer_pattern": [0, 1], "block_types": ["recurrent", "attention"]}.items()),
    ({"model_type": "minimax", "attn_type_list": [0, 0, 0, 1], "num_hidden_layers": 4}, {}, "attn_type_list"),
    ({"model_type": "jet_nemotron", "head_dim": 128, "rope_theta": 1e6, "layer_types": ["jet", "jet", "swa", "attn"]},
        UNKNOWN, "layer_types 0"),
    # A mapping that the model does not read
    ({"model_type": "esm", "position_embedding_type": "rotary", "rope_parameters": {"rope_theta": 1e5}}, {},
        "rope_parameters"),
    # Queries are rotated by three other positions.
    ({"model_type": "qwen2", "head_dim": 64, "dual_chunk_attention_config": {"chunk_size": 262144}}, {},
        "dual_chunk_attention_config"),
    # A second base
    *(({**BARE, key: 1e4, **more}, SWA, key) for key in ("swa_rope_theta", "rope_local_base_freq",
        "compress_rope_theta", "local_rope_theta", "rope_theta_swa") for more in [{"layer_types": ["sliding_attention",
        "full_attention"]}]),
    *(({**LLAMA, key: 1e4}, {}, key) for key in ("swa_rope_theta", "rope_local_base_freq", "global_rope_theta")),
    # Other spellings, where the type is known and does not have them
    *(({**LLAMA, key: 5e5}, {}, key) for key in ("rotary_emb_base", "rotary_base", "rope_base", "rope_freq_base",
        "rotary_embedding_base", "ropeTheta")),
    *(({**LLAMA, key: 0.25}, {}, key) for key in ("rope_pct", "rotary_pct", "rotary_percent", "rotary_emb_fraction",
        "rope_ratio", "rotary_fraction")),
    *(({**LLAMA, key: 32}, {}, key) for key in ("kv_channels", "rotary_dim", "rope_dim", "rotary_ndims", "d_head")),
    # Two names that disagree
    ({**BARE, "rotary_emb_base": 5e5}, UNKNOWN, "rotary_emb_base"),
    ({**BARE, "partial_rotary_factor": 0.5, "rotary_pct": 0.25}, UNKNOWN, "rotary_pct"),
    ({**BARE, "kv_channels": 64}, UNKNOWN, "kv_channels"),
    ({**BARE, "rope_ratio": 500}, UNKNOWN, "rope_ratio"),
    # Scalings outside of a rope mapping, and mappings by other names
    ({"head_dim": 128, "rope_theta": 1e6, "yarn": {"factor": 4.0}}, {"interleaved": True}, "yarn"),
    *(({**config, key: value}, UNKNOWN, key) for config in (BARE, LLAMA) for key, value in {"use_scaled_rope": True,
        "use_dynamic_ntk": True, "rope_scaling_factor": 4.0, "rope_scale": 4.0, "rotary_scaling_factor": 2.0,
        "ntk_alpha": 8.0, "longrope_scaling": {"factor": 2.0}, "rope_interpolation": 4,
        "position_interpolation_factor": 2.0, "xpos": True, "mscale": 0.7, "rope_params": {"base": 1e4},
        "rotary": {"base": 1e4, "type": "dynamic"}, "rope_axis": 3}.items()),
    ({**BARE, "attn_config": {"rope_theta": 5e5}}, UNKNOWN, "rope_theta"),
    ({**LLAMA, "attention": {"rotary": {"base": 5e5}}}, {}, "rotary"),
    ({**LLAMA, "rope_scaling": {"type": "linear", "factor": 2.0, "facter": 3.0}}, {}, "facter"),
    # The rope word that systems read differently
    ({**LLAMA, "rope_scaling": {"factor": 2, "type": "ntk"}}, {}, "ntk"),
    ({"model_type": "gte", "rope_scaling": {"factor": 2, "type": "ntk", "mixed_b": 0.4}}, {}, "mixed_b"),
    ({"model_type": "gte", "rope_scaling": {"factor": 2, "type": "base_ntk"}}, {}, "base_ntk"),
    ({**LLAMA, "rope_scaling": {"factor": 2, "type": "base_ntk"}}, {}, "base_ntk"),
    ({**LLAMA, "rope_scaling": {"factor": 2.0, "type": "dynamic-yarn"}}, {}, "seq_len"),
    # Lists of mappings
    ({**LLAMA, "block_configs": [{}, {"attention": {"rope_theta": 5e5}}]}, {}, "block_configs 1 attention rope_theta"),
    ({**LLAMA, "layer_configs": [[{"hidden_size": 8, "rope_pct": 0.5}]]}, {}, "layer_configs 0 0 rope_pct"),
    # Keys of models' own code, which transformers does not read
    ({"model_type": "ernie4_5", "compression_ratio": 2.0}, {}, "compression_ratio"),
    ({"model_type": "deepseek_v2", "use_mla": False}, {}, "use_mla"),
    ({**LLAMA, "use_mla": True}, {}, "use_mla"),
    ({**LLAMA, "rope_traditional": True}, {}, "rope_traditional"),
    ({**BARE, "n_rot": 64}, UNKNOWN, "n_rot"),
    ({"model_type": "zamba2", "use_mem_rope": False}, {}, "use_mem_rope"),
    ({"model_type": "zamba2"}, {}, "use_mem_rope"),
    ({"model_type": "zamba2", "use_mem_rope": True, "use_long_context": True}, {}, "use_long_context"),
    ({"model_type": "moshi", "max_period": 1e5}, {}, "max_period"),
    ({"model_type": "modernbert", "rope_theta": 5e5}, SWA, "rope_theta"),
    ({"model_type": "step3p5", "yarn_only_types": ["sliding_attention"]}, SWA, "yarn_only_types"),
    ({**LLAMA, "position_embedding_type": "rope_gptj"}, {}, "position_embedding_type"),
    ({**LLAMA, "freq_allocation": 20}, {}, "freq_allocation"),
    ({**LLAMA, "use_partial_rope": True}, {}, "use_partial_rope"),
    # A width and a share that disagree
    ({**BARE, "rotary_dim": 128, "partial_rotary_factor": 0.5}, UNKNOWN, "rotary_dim"),
    ({"model_type": "minimax_m2", "rotary_dim": 64, "partial_rotary_factor": 0.25}, {}, "rotary_dim"),
    # Sizes under names that are not read
    ({"model_type": "falcon", "n_head": 64}, {}, "n_head"),
    ({"model_type": "llama", "n_embd": 512, "n_head": 8}, {}, "n_embd"),
    # Whether, and which columns
    *(({**BARE, key: True}, UNKNOWN, key) for key in ("alibi", "no_rope", "use_alibi")),
    *(({**BARE, key: False}, UNKNOWN, key) for key in ("use_rope", "use_rotary_embeddings", "rotary")),
    *(({**LLAMA, key: True}, {}, key) for key in ("alibi", "rotary_emb_interleaved", "rope_interleave", "interleaved")),
    *(({**LLAMA, key: False}, {}, key) for key in ("use_rope", "is_neox_style")),
    ({**BARE, "position_embedding_type": "absolute"}, UNKNOWN, "position_embedding_type"),
    *(({**BARE, key: value}, UNKNOWN, key) for key, value in OFF.items()),
    ({**BARE, "lightning_use_rope": True, "attn_use_rope": False}, UNKNOWN, "attn_use_rope"),
    ({**LLAMA, "rope_scaling": {"type": "linear", "factor": 4.0}, "rope_condense_ratio": 8}, {}, "rope_condense_ratio"),
    ({**LLAMA, "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096},
        "rope_condense_ratio": 4}, {}, "rope_condense_ratio"),
    ({"model_type": "roformer", "rotary_value": True}, {}, "rotary_value"),
    ({"model_type": "bamba", "partial_rotary_factor": 1.0, "attn_layer_indices": [0]}, {}, "partial_rotary_factor"),
    ({"model_type": "granitemoehybrid"}, {}, "position_embedding_type"),
    ({"model_type": "granitemoehybrid", "position_embedding_type": None}, {}, "position_embedding_type"),
    ({"model_type": "baichuan", "rope_theta": 1e4, "head_dim": 128}, UNKNOWN, "model_type"),
    *(({**LLAMA, "rope_scaling": {"type": name, "factor": 2.0}}, {}, name) for name in ("su", "ntkmixed")),
    ({"model_type": "xlm-roberta", "position_embedding_type": "rotary"}, {}, "'jina_embeddings_v3'"),
    # Which layers, whatever else is said; pairs, and numbers, of which the file says another thing
    *(({**BARE, key: value}, {**UNKNOWN, "base": 1e6, "rotary_dim": 128, "scaling": {"rope_type": "default"}}, key)
        for key, value in {"rope_axis": 3, "use_rope_in_full_attention": False, "layers_with_rope": [0], "rope_layers": False,
        "attention_rope_pattern": "SSSF", "position_encoding_layers": ["rope", "nope"]}.items()),
    *(({**BARE, key: value}, UNKNOWN, key) for key, value in {"rope_interleave": True, "rope_interleaved": True,
        "is_neox_style": False, "rope_style": "gptj", "local_base_freq": 1e4}.items()),
    *(({**BARE, "rope_parameters": {key: value}, key: value / 2}, UNKNOWN, key)
        for key, value in {"rope_theta": 1e4, "partial_rotary_factor": 1.0}.items()),
    # Several coordinates
    *(({**BARE, key: value}, UNKNOWN, key) for key, value in {"_class_name": "ZImageTransformer2DModel",
        "axes_dims": [32, 48, 48], "axes_lens": [512, 512], "axes_dims_rope": [16, 56, 56]}.items()),
    # Widths of heads, and not of values only; heads of other layers
    *(({**BARE, key: 256}, UNKNOWN, key) for key in ("qkv_head_dim", "kv_head_dim", "key_value_head_dim")),
    *(({"rope_theta": 1e4, "hidden_size": 512, "num_attention_heads": 8, key: 16}, UNKNOWN,
        key) for key in ("num_swa_attention_heads", "swa_num_attention_heads")),
    ({"rope_theta": 1e4, "hidden_size": 512, "num_attention_heads": 8, "attention_dim": 1024}, UNKNOWN,
        "attention_dim"),
    # What more a rotary embedding may be, and where
    *(({**BARE, key: True}, UNKNOWN, key) for key in ("learnable_rope", "complex_rope", "q_rope",
        "rope_on_full_attention")),
    *(({**LLAMA, key: value}, {}, key) for key, value in {"rotate_half": False, "gptj_style": True}.items()),
    ({**LLAMA, "rope_on_full_attention": False}, {}, "rope_on_full_attention"),
    ({**LLAMA, "min_wavelength": 2}, {}, "min_wavelength"),
    ({**BARE, "attn_bias_type": "alibi"}, UNKNOWN, "attn_bias_type"),
    ({**LLAMA, "attention": {"bias": {"type": "alibi"}}}, {}, "attention bias type"),
    *(({"model_type": name, "rope_scaling": {"mrope_interleaved": given}}, {"mrope": True},
        "mrope_interleaved") for name, given in (("qwen2_vl_text", True), ("qwen3_vl_text", False))),
    # Models of other code, which transformers takes for models with a learned table
    ({"model_type": "gpt_neo", "rotary": True, "rotary_dim": 64}, {}, "rotary"),
    # A mapping for each type of layers: elsewhere, next to other keys, or not for all
    ({"model_type": "gemma3_text", "rope_scaling": NESTED}, SWA, "rope_scaling"),
    ({"model_type": "laguna", "rope_parameters": {"sliding_attention": {"rope_type": "default"}, "rope_theta": 7e4}},
        SWA, "rope_parameters rope_theta"),
    ({"model_type": "deepseek_v4", "rope_parameters": {"main": {"rope_theta": 1e4}}}, {"layer_type": "main"},
        "compress"),
    ({"model_type": "gemma3_text", "rope_parameters": {**NESTED, "truncate": False}}, SWA, "truncate"),
    ({"model_type": "gemma3_text", "rope_parameters": {**NESTED, "sliding_attention": {"rope_type": "yarn",
        "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 4096, "truncate": False}}}, SWA, "truncate"),
    ({"model_type": "gemma3_text", "rope_parameters": {**NESTED, "sliding_attention": {}}}, SWA, "rope_theta"),
    *(({"model_type": "deepseek_v4", "rope_scaling": {key: 0.5}}, {"layer_type": "compress"},
        f"rope_scaling {key}") for key in ("rope_theta", "partial_rotary_factor")),
    ({"model_type": "phi", "partial_rotary_factor": None}, {}, "partial_rotary_factor"),
    *(({"model_type": name, "rope_parameters": {**NESTED, "sliding_attention": {**entry}}}, SWA, key) for name, entry,
        key in (("mimo_v2_flash", {"rope_theta": 1e4}, "partial_rotary_factor"), ("neomme", {"rope_theta": 1e4,
        "type": "linear", "factor": 2.0}, "rope_type"), ("ultrabert", {"rope_type": "default"}, "rope_theta"))),
    ({**BARE, "rope_scaling": {"mrope_section": [16, 24, 24]}}, {**UNKNOWN, "mrope": True}, "mrope"),
    # Around the part that counts
    ({"model_type": "llava", "rope_theta": 5e5, "text_config": LLAMA}, {}, "rope_theta"),
    ({"model_type": "llava", "rope_scaling": {"type": "linear", "factor": 2.0}, "text_config": LLAMA}, {},
        "rope_scaling"),
    # Null, and 0 for layers that are not rotated
    ({"model_type": "granite_swa", "rope_theta": 0}, {}, "rope_theta"),
    ({"model_type": "modernbert", "local_rope_theta": None}, SWA, "local_rope_theta"),
    ({"model_type": "modernbert", "global_rope_theta": None}, {**SWA, "layer_type": "full_attention"},
        "global_rope_theta"),
    # Widths
    ({"model_type": "llama", "hidden_size": 770, "num_attention_heads": 12}, {}, "hidden_size num_attention_heads"),
    ({"n_embd": 770, "n_head": 12, "rope_theta": 1e4}, UNKNOWN, "n_embd n_head"),
    # Parts
    ({"model_type": "qwen3_asr", "audio_config": {"hidden_size": 8}}, {}, "text_config"),
    ({"model_type": "llava"}, {}, "text_config"),
    # Files that describe no model, and encoders of images
    ({"weight_map": {}, "version": "1.0"}, {}, "weight_map"),
    ({"added_tokens": {}, "version": "1.0"}, {}, "added_tokens"),
    ({"peft_type": "LORA", "r": 8}, {}, "peft_type"),
    ({"_class_name": "FluxTransformer2DModel", "attention_head_dim": 128}, {}, "_class_name"),
    ({"model_type": "qwen3_vl", "hidden_size": 1152, "num_heads": 16, "patch_size": 16}, {}, "qwen2_vl_vision"),
    ({"model_type": "qwen2_5_vl", "hidden_size": 1280, "num_heads": 16, "patch_size": 14}, {"rotary_dim": 80},
        "qwen2_vl_vision"),
    # Models that are not rotated, and unknown ones, however similar the name is
    *(({"model_type": name}, {}, "model_type") for name in ("whisper", "m2m_100", "vit_mae", "bert")),
    *(({"model_type": name}, {}, "model_type scores") for name in ("bloom", "mpt", "t5")),
    *(({**BARE, "model_type": name}, {}, "model_type") for name in ("unheard_of", "lama", "phi_3", "mistral5",
        "qwen3_6", "qwen3_6_text", "pixtral", "dinov3_vit")),
    # Layers that the model does not have, or that differ
    ({"model_type": "gemma3_text"}, {}, "layer_type"),
    ({"model_type": "gemma3_text"}, {"layer_type": "full"}, "layer_type"),
    *(({"model_type": name, "head_dim": 8}, {"layer_type": "full_attention"}, "layer_type") for name in ("llama", "beam")),
    ({"model_type": "cohere_compass_text", "rope_parameters": {"full_attention": None}, "layer_types":
        ["full_attention"]}, {"layer_type": "full_attention"}, "layer_type"),
    ({"model_type": "llama4_text", "attention_chunk_size": None}, {"layer_type": "chunked_attention"}, "layer_type"),
    # Sections
    *(({"model_type": f"{name}_text", "rope_scaling": {"mrope_section": sections}}, {"mrope": True}, "mrope_section") for
        name, sections in (("qwen2_vl", [1, 2, 3]), ("ernie4_5_vl_moe", [20, 24, 20]))),
    *((config, {"mrope": True}, "mrope") for config in (LLAMA, {"model_type": "hunyuan_vl_text"})),
    # Sizes and bases
    ({**LLAMA, "head_dim": -64}, {}, "head_dim"),
    ({"rope_theta": 1e4}, UNKNOWN, "head_dim"),
    ({"head_dim": 8}, UNKNOWN, "rope_theta"),
    *(({"model_type": name, "head_dim": 8, "rope_theta": base}, {}, "rope_theta") for name, base in (("llama", None),
        ("gpt_oss", None), ("apertus", 1e4))),
    ({**LLAMA, "partial_rotary_factor": 0.5}, {}, "partial_rotary_factor"),
    *(({"model_type": "phi", "partial_rotary_factor": share}, {}, "partial_rotary_factor") for share in (0, 1.5)),
    ({"model_type": "minimax", "rotary_dim": 64}, {}, "rotary_dim"),
    # Scalings that lack something
    ({"model_type": "gemma3_text", "rope_scaling": {"type": "linear", "factor": 8.0}}, {"layer_type": "full_attention"},
        "rope_scaling"),
    ({"model_type": "gemma3_text", "rope_parameters": {"rope_theta": 1e4}}, {"layer_type": "full_attention"},
        "rope_parameters"),
    ({**LLAMA, "rope_parameters": {"a": {"rope_theta": 1e4}, "factor": 2.0}}, {"layer_type": "a"}, "rope_parameters"),
    *(({**LLAMA, "rope_scaling": scaling}, {}, key) for key, scaling in (("factor", {"type": "yarn"}), ("factor", {"factor": 2.0}), ("yarm", {"type": "yarm", "factor": 8.0}),
        ("seq_len", {"type": "dynamic", "factor": 2.0}),
        ("low_freq_factor high_freq_factor", {"rope_type": "llama3", "type": "linear", "factor": 4.0}))),
    *(({**PHI, "rope_scaling": scaling}, {"seq_len": 8}, key) for key, scaling in (("dynamic", {"type": "dynamic",
        "factor": 2.0}), ("short_factor long_factor", {"type": "yarn", "factor": 2.0}))),
    ({**PHI, "model_type": "phimoe", "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 4, "long_factor":
        [2.0] * 4}}, {"seq_len": 8}, "short_mscale long_mscale"),
]  # fmt: skip

# What is no config, and values of another type
WRONG_TYPES: list[tuple[Any, Config, str]] = [
    *((given, {}, "config") for given in (None, 4, [LLAMA], io.StringIO("{}"), b"{}", b"config.json")),
    ({"model_type": ["llama"]}, {}, "model_type"),
    *(({**LLAMA, key: value}, {}, key) for key, value in {"layer_types": 4, "per_layer_config": {"a": {}},
        "rope_theta": "1e4", "rope_scaling": 4}.items()),
    *(({**LLAMA, key: True}, {}, key) for key in ("rope_theta", "head_dim")),
    ({"model_type": "llama", "hidden_size": "64", "num_attention_heads": 8}, {}, "hidden_size"),
    ({"model_type": "qwen2_vl_text", "rope_scaling": {"mrope_section": 4}}, {"mrope": True}, "mrope_section"),
    ({"model_type": "qwen2_vl_text"}, {"mrope": 1}, "mrope"),
    (LLAMA, {"interleaved": 1}, "interleaved"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "arguments", "index", "expected"), READ, ids=[str(row[0])[:80] for row in READ])
def test_read(config: Config, arguments: Config, index: int, expected: float) -> None:
    rope = rotated_rope(config, **arguments)
    assert index in (1, len(rope.frequencies) - 1)
    assert rope.frequencies[index] == pytest.approx(expected, rel=5e-5)


@pytest.mark.parametrize(
    ("config", "arguments", "key"), REFUSED, ids=[f"{row[0].get('model_type')}-{row[2]}" for row in REFUSED]
)
def test_refused(config: Config, arguments: Config, key: str) -> None:
    with pytest.raises(ValueError, match=naming(key)) as raised:
        from_config(config, **arguments)
    # What to do is part of the error.
    fields = raised.value._fields  # type: ignore[attr-defined]
    assert fields["argument"]
    assert fields["remedy"] or fields["expected"]


@pytest.mark.parametrize(("config", "arguments", "key"), WRONG_TYPES)
def test_wrong_types(config: Any, arguments: Config, key: str) -> None:
    with pytest.raises(TypeError, match=naming(key)):
        from_config(config, **arguments)


def test_the_part_of_text_is_found_by_the_names_that_files_have() -> None:
    llama = {**LLAMA, "head_dim": 32}
    for config in (
        {"model_type": "qwen3_asr", "thinker_config": {"text_config": llama}},
        {"model_type": "internvl_chat", "llm_config": llama},
        {"model_type": "unheard_of", "language_config": llama},
    ):
        assert from_config(config).rotary_dim == 32


@pytest.mark.parametrize("arguments", [{}, UNKNOWN])
def test_other_parts_that_may_be_the_model_are_named(arguments: Config) -> None:
    config = {"model_type": "tts", "talker_config": LLAMA, "vision_config": {"model_type": "vit"}}
    with pytest.raises(ValueError, match=r"under 'talker_config' if"):
        from_config(config, **arguments)


SINUSOIDS = [
    ({"model_type": "timesfm"}, "use_positional_embedding"),
    ({"model_type": "timesfm", "use_positional_embedding": False}, "use_positional_embedding"),
    ({"model_type": "m2m_100", "pad_token_id": None}, "pad_token_id"),
    ({"model_type": "bert", "position_embedding_type": "alibi"}, "position_embedding_type"),
    ({"model_type": "bert", "alibi_starting_size": 512}, "alibi_starting_size"),
    ({"model_type": "m2m_100", "hidden_size": 512}, "d_model"),
]


@pytest.mark.parametrize(("config", "key"), SINUSOIDS, ids=str)
def test_no_key_of_a_sinusoidal_encoding_is_passed_over(config: Config, key: str) -> None:
    with pytest.raises((TypeError, ValueError), match=naming(key)):
        fastpe.PositionalEncoding.from_config(config)


def test_null_counts_in_a_sinusoidal_encoding() -> None:
    assert fastpe.PositionalEncoding.from_config({"model_type": "fsmt"}).embedding_scale == 32.0
    assert fastpe.PositionalEncoding.from_config({"model_type": "fsmt", "scale_embedding": None}).embedding_scale == 1.0


def test_the_decoder_of_two_models_may_add_sinusoids() -> None:
    trocr = {"model_type": "trocr", "d_model": 64, "use_learned_position_embeddings": False}
    config = {"model_type": "vision-encoder-decoder", "encoder": {"model_type": "vit"}, "decoder": trocr}
    assert fastpe.PositionalEncoding.from_config(config).convention.name == "fairseq"
    with pytest.raises(ValueError, match=naming("model_type 'trocr'")):
        from_config(config)


@pytest.mark.parametrize("key", OFF)
def test_what_switches_the_rotation_off_is_not_to_be_left_out(key: str) -> None:
    with pytest.raises(ValueError, match=naming(key)) as raised:
        from_config({**LLAMA, key: OFF[key]})
    assert "leave the key out" not in str(raised.value)


def test_a_base_in_the_given_scaling_counts() -> None:
    rope = from_config({**LLAMA, "rope_theta": None}, scaling={"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4})
    assert np.array_equal(rope.frequencies, fastpe.RotaryEmbedding(128, interleaved=False, base=1e4).frequencies / 2)


def test_a_remedy_leads_to_no_other_refusal() -> None:
    conformer = {"model_type": "wav2vec2-conformer", "position_embeddings_type": "relative"}
    for call in (from_config, fastpe.PositionalEncoding.from_config):
        with pytest.raises(ValueError, match=r"fastpe\.encode\(np\.arange\(L - 1, -L, -1\), hidden_size\)"):
            call(conformer)
    for name in ("deberta", "deberta-v2"):
        with pytest.raises(ValueError, match="it adds no table"):
            fastpe.PositionalEncoding.from_config({"model_type": name, "position_biased_input": False})
    with pytest.raises(ValueError, match=r"table.*and a bias to the scores"):
        fastpe.PositionalEncoding.from_config({"model_type": "mpnet"})
    with pytest.raises(ValueError, match=naming("model_type")) as raised:
        fastpe.query_scale({"model_type": "unheard_of"}, 4)
    assert "interleaved" not in str(raised.value)
    with pytest.raises(ValueError, match=r"clip_text_model|learned"):
        fastpe.PositionalEncoding.from_config({"model_type": "clip", "text_config": {}})


@pytest.mark.parametrize(
    "config", [BARE, LLAMA, {**LLAMA, "layer_types": ["full_attention", "sliding_attention"]}], ids=str
)
def test_a_base_for_a_type_of_layers_is_given_for_this_type(config: Config) -> None:
    options: Config = UNKNOWN if config is BARE else {}
    config = {**config, "num_hidden_layers": 2, "swa_rope_theta": 1e4}
    with pytest.raises(ValueError, match=naming("swa_rope_theta")) as raised:
        fastpe.RotaryEmbedding.layers_from_config(config, **options)
    call = vars(raised.value)["_fields"]["remedy"].partition("use RotaryEmbedding.")[2].partition(" for each")[0]
    for name, base in (("full_attention", 1e6), ("sliding_attention", 1e4)):
        given = call.replace("layer_type=..", f"layer_type={name!r}").replace("base=..", f"base={base}, **options")
        scope = {"from_config": from_config, "config": config, "options": options}
        assert eval(given, scope) == fastpe.RotaryEmbedding(128, interleaved=False, base=base)


@pytest.mark.parametrize("name", ["linear", "dynamic", "yarn", "llama3", "longrope"])
def test_missing_keys_of_a_scaling_are_written_as_the_error_says(name: str) -> None:
    scaling: Config = {"rope_type": name}
    with pytest.raises(ValueError, match="scaling") as raised:
        fastpe.RotaryEmbedding(8, interleaved=False, scaling=scaling)
    fields = vars(raised.value)["_fields"]
    assert fields["remedy"] in ("write it", "write them")
    numbers = {"factor": 2.0, "short_factor": [1.0] * 4, "long_factor": [1.0] * 4}
    numbers |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    missing = fields["found"].partition(", which")[0].removeprefix("has no ").split(", and no ")
    written = {key: numbers.get(key, 64) for key in (each.split(" or ")[0] for each in missing)}
    assert fastpe.RotaryEmbedding(8, interleaved=False, scaling={**scaling, **written}, seq_len=9)


def test_the_arguments_are_attributes() -> None:
    encoding = fastpe.PositionalEncoding(8, convention="tensor2tensor", base=500.0)
    assert (encoding.base, encoding.freq_scale, fastpe.PositionalEncoding(8).base) == (500.0, 1.0, 10000.0)
    given = fastpe.PositionalEncoding(4, frequencies=[1.0, 0.5])
    assert given.base is given.freq_scale is None
