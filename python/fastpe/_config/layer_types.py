# SPDX-License-Identifier: BSD-3-Clause
"""Of which type each layer of a model is, and whether it is rotated.

Files list the types in `layer_types`, or follow a rule of the model's class: the field `layer_types` of its row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fastpe._arguments import shown
from fastpe._config.file import Json, path_text
from fastpe._config.rope import read_size, rope_mapping
from fastpe._config.tables import ModelType, table
from fastpe._errors import refused

_type_keys = ("layer_types", "layers_block_type")
_count_keys = ("num_layers", "n_layers", "n_layer", "decoder_num_hidden_layers", "speech_encoder_layers")
_most_layers = 10_000
# Where a file has no number of layers, so many show each type that the rule of its class has.
_enough_layers = 60


class LayerType(NamedTuple):
    """One layer: its index, None where no layer of the file is of this type; its type; and whether it is rotated."""

    at: int | None
    name: str
    is_rotated: bool


def number_of_layers(config: Json, model: ModelType) -> int | None:
    """How many layers the file says that the model has."""
    for key in (*model.names_of("num_hidden_layers"), *_count_keys):
        if config.get(key) is not None:
            return read_size(key, config[key], _most_layers)
    keys = ("layer_types", model.rotated_layers.get("key", ""), *model.names_of("rope_theta"))
    return next((len(config[key]) for key in keys if isinstance(config.get(key), (list, tuple)) and config[key]), None)


def layer_types(config: Json, model: ModelType) -> list[LayerType]:
    """The layers of the model; without their number, as many as show each type."""
    count = number_of_layers(config, model) or _enough_layers
    names = _names(config, model, count)
    rotated = _rotated_layers(config, model, count)
    if "rotated" in model.layer_types and not has_types(config):  # Llama 4
        key, name = model.layer_types["rotated"]
        names = [name if each and config.get(key, 0) is not None else "full_attention" for each in rotated]
    return [
        LayerType(at, name, bool(rotated[at]) and is_rotated(config, model, name, at)) for at, name in enumerate(names)
    ]


def has_types(config: Json) -> bool:
    """Whether the file says of which type each layer is."""
    return any(config.get(key) for key in _type_keys)


def is_rotated(config: Json, model: ModelType, name: str, index: int | None = None) -> bool:
    """Whether layers of this type are rotated, as far as the type says it."""
    if index is not None and _prefix_pattern(config) == 1 and _is_dense(config, model, index):
        return True
    if name in model.unrotated:
        key, for_null = model.unrotated[name] or ("", False)
        return key in config and (config[key] is None) == for_null
    return name not in table()["unrotated_layers"] or name in model.layers


def _names(config: Json, model: ModelType, count: int) -> list[str]:
    """The type of each layer."""
    key = next((name for name in _type_keys if config.get(name) is not None), "")
    written = config.get(key) or []
    if not isinstance(written, (list, tuple)) or not all(isinstance(name, str) for name in written):
        raise refused(TypeError, path_text((key,)), f"is {shown(written)}", "a list of names")
    rule = model.layer_types
    if written:
        names = list(written)
        if "pairs" in rule and rule["pairs"] in names:
            names, count = names[::2], count // 2 if len(names) == count else count
        if len(names) < count:
            found = f"has {len(names)} names, and the model has {count} layers"
            raise refused(ValueError, path_text((key,)), found, "one for each layer")
        names = [rule.get("renamed", {}).get(name, name) for name in names[:count]]
        known = {*table()["layer_types"], *table()["unrotated_layers"], *model.layers, *rope_mapping(config)[1]}
        for at, name in enumerate(names if model.source else []):
            if name not in known:
                found = f"is {name!r}: whether layers of this type are rotated is not known"
                raise refused(ValueError, path_text((key, at)), found, remedy="correct it")
    else:
        names = [*_by_rule(config, rule, count, model)]
    if rule.get("ends") and names:
        names[-1] = rule["ends"]
    return names


def _by_rule(config: Json, rule: Json, count: int, model: ModelType) -> Iterator[Any]:
    """The types that follow from the rule of the model's class.

    * cycle: the types from the first layer on. cycle_key: the key of such a list. first: the types of the first layers.
    * usual, other: one type, and the other that every n-th layer has, from layer `at` on, -1 for the n-th, "last" for a
      count from the end. every, key: n, and the key that says it. also: other layers of that type.
    * list: the key of a list with the indices of the other type, and `indices` if the config has none. values: the types
      by the numbers of the list under `key`.
    """
    dense = _dense_layers(config, model)
    pattern = config.get(rule.get("key", ""))
    cycle = config.get(rule.get("cycle_key", "")) or rule.get("cycle")
    if "values" in rule and isinstance(pattern, (list, tuple)):
        known = {int(number): name for number, name in rule["values"].items()}
        if len(pattern) < count or any(value not in known for value in pattern if not isinstance(value, (list, dict))):
            expected = f"one of {', '.join(map(str, known))} for each of {count} layers"
            raise refused(ValueError, path_text((rule["key"],)), f"is {shown(pattern)}", expected)
        yield from (known.get(value, next(iter(known.values()))) for value in pattern[:count])
    elif isinstance(pattern, str) and re.fullmatch("[LG]+", pattern):  # as EXAONE 4 writes it
        yield from (rule["other" if pattern[at % len(pattern)] == "G" else "usual"] for at in range(count))
    elif cycle:
        first = rule.get("first", [])
        yield from (first[at] if at < len(first) else cycle[at % len(cycle)] for at in range(count))
    elif "list" in rule:
        others = config.get(rule["list"])
        others = rule.get("indices") if others is None else others
        if others is not None and not isinstance(others, (list, tuple)):
            raise refused(TypeError, path_text((rule["list"],)), f"is {shown(others)}", "a list of ints")
        yield from (rule["other" if others is None or at in others else "usual"] for at in range(count))
    elif "usual" in rule:
        every = read_size(rule.get("key", ""), rule["every"] if pattern is None else pattern)
        at = count - 1 if rule.get("at") == "last" else rule.get("at", -1)
        also = {index % count for index in rule.get("also", [])}
        for index in range(dense):
            yield rule["other" if (index + 1) % _prefix_pattern(config) == 0 else "usual"]
        for index in range(count - dense):
            yield rule["other" if (index - at) % every == 0 or index in also else "usual"]
    else:
        yield from ["full_attention"] * count


def _rotated_layers(config: Json, model: ModelType, count: int) -> Sequence[Any]:
    """One value for each layer: 0 where it is not rotated, whatever its type is."""
    rule = model.rotated_layers
    key = rule.get("key", "")
    values = config.get(key)
    if values is None and "every" not in rule:
        return [1] * count
    if values is None or (not values and rule.get("empty")):
        return [*_by_rule(config, {**rule, "key": rule.get("interval", ""), "usual": 1, "other": 0}, count, model)]
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, (int, float)) for value in values):
        raise refused(TypeError, path_text((key,)), f"is {shown(values)}", "a list of numbers")
    if len(values) < count:
        found = f"has {len(values)} numbers, and the model has {count} layers"
        raise refused(ValueError, path_text((key,)), found, "one for each layer")
    return values


def _is_dense(config: Json, model: ModelType, index: int) -> bool:
    kinds = config.get("mlp_layer_types") if "dense" in model.layer_types else None
    if isinstance(kinds, (list, tuple)) and index < len(kinds):
        return bool(kinds[index] == "dense")
    return index < _dense_layers(config, model)


def _dense_layers(config: Json, model: ModelType) -> int:
    """Cohere 2 MoE: the first layers, which are dense, have a pattern of their own, and are rotated if it is 1."""
    key = model.layer_types.get("dense", "")
    given = config.get(key) if key else None
    return 0 if not given else read_size(key, given, _most_layers)


def _prefix_pattern(config: Json) -> int:
    key = "prefix_dense_sliding_window_pattern"
    return 1 if config.get(key) is None else read_size(key, config[key])
