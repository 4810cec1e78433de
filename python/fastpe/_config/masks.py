# SPDX-License-Identifier: BSD-3-Clause
"""Which keys each layer of a language model lets a query see, as arguments of `attention_mask`."""

from __future__ import annotations

from typing import Any

from fastpe._config.file import Value, read_size, table, wrong
from fastpe._config.layer_types import Found, has_types, layer_types, number_of_layers
from fastpe._config.model import ModelConfig
from fastpe._config.model_type import row_of

_full, _sliding = "full_attention", "sliding_attention"
_rules = ("full", "encoder", "layer_types", "window", "use_sliding_window")
_llama4_chunk = 8192
_own = "its own code says which keys a query sees"
# Of a type of layers, the argument that limits what is seen, and the key that has it.
_limits = {
    _full: ("", ""),
    _sliding: ("window", "sliding_window"),
    "chunked_attention": ("chunk", "attention_chunk_size"),
}


def masks_of(part: ModelConfig) -> list[dict[str, Any] | None]:
    """The arguments of each layer, or of one for all; None for a layer that has no scores."""
    name, config, data = part._known_type or "", part._json, table()["masks"]
    rule = next((rule for rule in _rules if name in data[rule]), "")
    if not rule:
        raise wrong(part._at("model_type"), f"is {part.model_type!r}", remedy=_own)
    if config.get("use_bidirectional_attention"):
        raise wrong(part._at("use_bidirectional_attention"), "is given", remedy=_own)
    row, kinds = row_of(name), []
    count = number_of_layers(part, row) or 1
    if rule == "encoder":
        return [{"causal": False}] * count
    window, first = (*data[rule][name], None)[:2] if rule != "full" else (None, None)
    window, key = config.get("sliding_window", window), "use_sliding_window"
    if rule == "layer_types" or (rule == key and has_types(part)):
        kinds = [layer.name for layer in layer_types(Found(part, row))]
    elif rule == "window" and window is not None:
        kinds = [_sliding] * count
    elif rule == key and config.get(key) and window is not None:
        if first is None:
            raise wrong(part._at(key), "is true", remedy=_own)
        first = config.get("max_window_layers", first) if first else 0
        first = first and read_size(Value(first, part._at("max_window_layers")))
        kinds = [_full if at < first else _sliding for at in range(count)]
    return [_limited(part, kind, window) for kind in kinds or [_full] * count]


def _limited(part: ModelConfig, kind: str, window: Any) -> dict[str, Any] | None:
    """The arguments of a layer of this type."""
    if kind in table()["unrotated_layers"]:
        return None
    if kind not in _limits:
        raise wrong(part._at("layer_types"), f"has {kind!r}", remedy=_own)
    argument, key = _limits[kind]
    if not argument:
        return {"causal": True}
    found = window if key == "sliding_window" else part._json.get(key, _llama4_chunk)
    return {"causal": True, argument: read_size(Value(found, part._at(key)))}
