# SPDX-License-Identifier: BSD-3-Clause
"""The part of a config that is a language model: its rope mapping, of which type each layer is, and whether it is rotated.

Files list the types in `layer_types`, or follow a rule of the model's class, the field `layer_types` of its row: one of

* {"cycle", "first", "key"}: types that repeat, behind those of the first layers; a key of the file may have the cycle.
* {"every", "at", "also", "key", "types"}: the second of two types is that of every n-th layer, from layer `at` on (-1 for
  the n-th), and of the layers in `also`; a key of the file may say n.
* {"list", "indices", "types"}: a key of the file has the indices of the layers of the second type.
* {"function"}: what no such rule says by itself, by the name of a function below.

Of types that a file lists, a row may say the key (listed), other names or what numbers mean (renamed), which one is no
layer (left_out), and the last one (last).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fastpe._arguments import shown
from fastpe._config.file import Json, read_size, table, wrong
from fastpe._config.model import ModelConfig
from fastpe._config.model_type import ModelType

_type_keys = ("layer_types", "layers_block_type")
_count_keys = ("num_layers", "n_layers", "n_layer", "decoder_num_hidden_layers", "speech_encoder_layers")
_most_layers = 10_000
# Where a file has no number of layers, so many show each type that the rule of its class has.
_enough_layers = 60
_full, _sliding = "full_attention", "sliding_attention"
_dense_pattern = "prefix_dense_sliding_window_pattern"


class RopeMapping(NamedTuple):
    """The mapping that transformers reads, its key, and its entries for types of layers: None if not rotated."""

    key: str
    given: Json
    entries: Json


@dataclass(frozen=True)
class Found:
    """The part of a config that is a language model, the row of its type, the levels around it, and a call's arguments."""

    part: ModelConfig
    row: ModelType
    outer: tuple[ModelConfig, ...] = ()
    given: Json = field(default_factory=dict)  # which count in place of keys

    @functools.cached_property
    def rope(self) -> RopeMapping:
        """The rope mapping; where there are two, they must say the same."""
        part, config = self.part, self.part._json
        old, new = (config.get(key) or {} for key in ("rope_scaling", "rope_parameters"))
        for key, given in (("rope_scaling", old), ("rope_parameters", new)):
            if not isinstance(given, Mapping):
                raise wrong(part._at(key), f"is {shown(given)}", "a mapping", kind=TypeError)
        first = {"type": old.get("rope_type"), "rope_type": old.get("type"), **config, **old}
        for name, value in new.items() if old else ():
            if first.get(name) != value:
                found = f"is {shown(value)}, and the rope_scaling, which counts, has {shown(first.get(name))}"
                raise wrong(part._at("rope_parameters", name), found, "the same", "leave one of the two mappings out")
        key, given = ("rope_scaling", old) if old else ("rope_parameters", new)
        given = {} if given in self.row.neutral.get(key, []) else given
        types = {*self.row.layers, *self.row.entries.values(), *table()["layer_types"]}
        is_entry = {name: isinstance(each, Mapping) or (each is None and name in types) for name, each in given.items()}
        return RopeMapping(key, given, {name: each for name, each in given.items() if is_entry[name]})

    @functools.cached_property
    def own(self) -> Mapping[int | None, Json]:
        """What the config says of single layers, as transformers 5 writes it, by the layer's number."""
        part, key = self.part, "per_layer_config"
        layers = part._json.get(key) or {}
        is_numbered = isinstance(layers, Mapping) and all(re.fullmatch("[0-9]{1,9}", str(at)) for at in layers)
        if not is_numbered or not all(isinstance(values, Mapping) for values in layers.values()):
            raise wrong(part._at(key), f"is {shown(layers)}", "mappings by the layer's number", kind=TypeError)
        for at, values in layers.items():
            for name in {"rope_scaling", "rope_parameters"} & {*values}:
                raise wrong(part._at(key, at, name), "is given", "one for the model", "give rotary_dim= and base=")
        read = {*self.row.width, *self.row.read_keys}
        return {int(at): {key: each for key, each in values.items() if key in read} for at, values in layers.items()}


class LayerType(NamedTuple):
    """One layer: its index, None where no layer of the file is of this type; its type; and whether it is rotated."""

    at: int | None
    name: str
    is_rotated: bool


def number_of_layers(part: ModelConfig, row: ModelType) -> int | None:
    """How many layers the file says that the model has."""
    for key in (*row.names_of("num_hidden_layers"), *_count_keys):
        if part._json.get(key) is not None:
            return read_size(part._value(key), _most_layers)
    keys = ("layer_types", row.rotated_layers.get("list", ""), *row.names_of("rope_theta"))
    lists = (part._json.get(key) for key in keys)
    return next((len(each) for each in lists if isinstance(each, (list, tuple)) and each), None)


def layer_types(found: Found) -> list[LayerType]:
    """The layers of the model; without their number, as many as show each type."""
    part, row = found.part, found.row
    count = number_of_layers(part, row) or _enough_layers
    names = _written(found, count) or _by_rule(found, row.layer_types, count)
    is_listed, by_type = _rotated(found, count), {name: is_rotated(found, name) for name in names}
    is_dense = _dense(part, count) if row.layer_types.get("function") == "cohere2_moe" else [False] * count
    return [
        LayerType(at, name, bool(is_listed[at]) and (is_dense[at] or by_type[name])) for at, name in enumerate(names)
    ]


def has_types(part: ModelConfig) -> bool:
    """Whether the file says of which type each layer is."""
    return any(part._json.get(key) for key in _type_keys)


def is_rotated(found: Found, name: str) -> bool:
    """Whether layers of this type are rotated, as far as the type says it, or its entry in the file or in the row."""
    part, row = found.part, found.row
    if (found.rope.entries or row.layers).get(row.entries.get(name, name), {}) is None:
        return False
    if name in row.unrotated:
        key, for_null = row.unrotated[name] or ("", False)
        return key in part._json and (part._json[key] is None) == for_null
    return name not in table()["unrotated_layers"] or name in row.layers


def _written(found: Found, count: int) -> list[str]:
    """The type of each layer, as the file lists them."""
    part, rule = found.part, found.row.layer_types
    keys = (*_type_keys, rule.get("listed", ""))
    key = next((name for name in keys if part._json.get(name) is not None), "")
    names, renamed = part._json.get(key) or [], rule.get("renamed", {})
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) or str(name) in renamed for name in names):
        raise wrong(part._at(key), f"is {shown(names)}", "a list of names", kind=TypeError)
    layers = [renamed.get(str(name), name) for name in names if name != rule.get("left_out")]
    count = len(layers) if len(names) == count else count
    if not names:
        return []
    _require_count(part, key, layers, count)
    layers = layers[:count]
    known = {*table()["layer_types"], *table()["unrotated_layers"], *found.row.layers, *found.rope.entries}
    for at, name in enumerate(layers):
        if name not in known:
            what = f"is {name!r}: whether layers of this type are rotated is not known"
            remedy = "correct it, or use RotaryEmbedding(..) for the layers that are rotated"
            raise wrong(part._at(key, at), what, remedy=remedy)
    return [*layers[:-1], rule.get("last", layers[-1])]


def _require_count(part: ModelConfig, key: str, values: Any, count: int) -> None:
    if len(values) < count:
        raise wrong(part._at(key), f"has {len(values)} entries, and the model has {count} layers", "one for each")


def _by_rule(found: Found, rule: Json, count: int) -> list[Any]:
    """The types that follow from the rule of the model's class."""
    if "function" in rule:
        return _functions[rule["function"]](found, count)
    part = found.part
    written = part._json.get(rule.get("key", ""))
    if "cycle" in rule:
        first, cycle = rule.get("first", []), written or rule["cycle"]
        return [first[at] if at < len(first) else cycle[at % len(cycle)] for at in range(count)]
    if isinstance(written, str) and re.fullmatch("[LG]+", written):  # as EXAONE 4 writes it
        return [rule["types"][written[at % len(written)] == "G"] for at in range(count)]
    if "every" in rule:
        every = rule["every"] if written is None else read_size(part._value(rule["key"]))
        first_at = count - 1 if rule.get("at") == "last" else rule.get("at", -1)
        also = {index % count for index in rule.get("also", [])}
        return [rule["types"][(at - first_at) % every == 0 or at in also] for at in range(count)]
    if "list" in rule:
        others = part._json.get(rule["list"])
        others = rule.get("indices") if others is None else others
        if others is not None and not isinstance(others, (list, tuple)):
            raise wrong(part._at(rule["list"]), f"is {shown(others)}", "a list of ints", kind=TypeError)
        return [rule["types"][others is None or at in others] for at in range(count)]
    return [_full] * count


def _rotated(found: Found, count: int) -> Sequence[Any]:
    """One value for each layer: 0 where it is not rotated, whatever its type is."""
    part, rule = found.part, found.row.rotated_layers
    key = rule.get("list", "")
    values = part._json.get(key)
    if values is None and "every" not in rule:
        return [1] * count
    if values is None or (not values and rule.get("empty")):
        return _by_rule(found, {**rule, "types": [1, 0]}, count)
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, (int, float)) for value in values):
        raise wrong(part._at(key), f"is {shown(values)}", "a list of numbers", kind=TypeError)
    _require_count(part, key, values, count)
    return values


# What no rule says


def _llama4(found: Found, count: int) -> list[str]:
    """Layers that are rotated see chunks."""
    chunked = "chunked_attention" if found.part._json.get("attention_chunk_size", 0) is not None else _full
    return [chunked if each else _full for each in _rotated(found, count)]


def _cohere2_moe(found: Found, count: int) -> list[str]:
    """The first layers, which are dense, have a pattern of their own."""
    dense = _first_dense(found.part)
    rule = {"every": 4, "key": "sliding_window_pattern", "types": [_sliding, _full]}
    first = _by_rule(found, {**rule, "every": 1, "key": _dense_pattern}, dense)
    return [*first, *_by_rule(found, rule, count - dense)]


def _dense(part: ModelConfig, count: int) -> list[bool]:
    """Which layers of Cohere 2 MoE are dense, and so rotated whatever their type is, if their pattern is 1."""
    kinds = ["dense"] * _first_dense(part)
    if isinstance(written := part._json.get("mlp_layer_types"), (list, tuple)):
        kinds = [*written]
    is_pattern = part._json.get(_dense_pattern) in (None, 1)
    return [is_pattern and kind == "dense" for kind in [*kinds, *[""] * count][:count]]


def _first_dense(part: ModelConfig) -> int:
    key = "first_k_dense_replace"
    return read_size(part._value(key), _most_layers) if part._json.get(key) else 0


_functions: dict[str, Callable[[Found, int], list[str]]] = {
    "cohere2_moe": _cohere2_moe,
    "llama4": _llama4,
}
