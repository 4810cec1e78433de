# SPDX-License-Identifier: BSD-3-Clause
"""Configs of models whose layers are not all alike, for tests of the embedding of those that are rotated."""

from __future__ import annotations

import re
from typing import Any

import fastpe

# Of Llama 3.1
LLAMA3: dict[str, Any] = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3["original_max_position_embeddings"] = 8192
# Models whose class rotates no layer by default, and a key that says which layers are rotated.
_some_rotated: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1, 3], "layers_block_type": None},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"], "num_hidden_layers": 2},
}


def rotated_rope(config: dict[str, Any], *, layer_type: str | None = None, **options: Any) -> fastpe.RotaryEmbedding:
    """The only embedding of the layers that are rotated, or of those of one type."""
    try:
        return fastpe.RotaryEmbedding.from_config(config, layer_type=layer_type, **options)
    except ValueError as error:
        if layer_type is not None or not re.search("layers_from_config|are not rotated", str(error)):
            raise
    layers = fastpe.RotaryEmbedding.layers_from_config(with_layers(config), **options)
    (rope,) = {layer for layer in layers if layer is not None}
    return rope


def with_layers(config: dict[str, Any], count: int = 24) -> dict[str, Any]:
    """The config with a number of layers, in the part of text as well."""
    more = {**config, **_some_rotated.get(config.get("model_type", ""), {})}
    parts = {name: with_layers(value, count) for name, value in more.items() if name == "text_config"}
    has_lists = any(isinstance(more.get(key), list) for key in ("layer_types", "layer_rope_theta"))
    return {**({} if has_lists else {"num_hidden_layers": count}), **more, **parts}
