# SPDX-License-Identifier: BSD-3-Clause
"""The row of a model in the table of graphs, and the numbers that its config.json has for it."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Any, NamedTuple

from fastpe._arguments import likely, model_guess, number, shown
from fastpe._config.file import Json, Value, path_text, read_size, table
from fastpe._config.model import ModelConfig
from fastpe._errors import refused

# What the model types of parts end in.
_endings = {
    "text": ("", "_thinker", "_text"),
    "vision": ("", "_vision", "_vision_encoder", "_vision_model"),
    "audio": ("", "_encoder", "_audio", "_audio_encoder"),
}


class Model(NamedTuple):
    """What one kind of input needs to know of a model."""

    name: str
    row: Mapping[str, Any]
    config: ModelConfig  # the level that has the ids of tokens
    part: ModelConfig  # its encoder
    defaults: Mapping[str, Any]  # of the part, in transformers
    tokens: Mapping[str, int] = types.MappingProxyType({})  # the ids that its class has by default

    def value(self, key: str) -> Value:
        """A value of the config, or the default of its class."""
        return self.part._keep(("value", self.name, key), lambda: self._value(key))

    def _value(self, key: str) -> Value:
        beside = self.row.get("beside", {})  # the part
        level, default = (self.config, beside[key]) if key in beside else (self.part, self.defaults[key])
        if key not in level._json and (near := likely(key, map(str, level._json))):
            raise refused(ValueError, "config", f"has the key {near!r}", f"{key!r}")
        return level._value(key, default)

    def integer(self, key: str) -> int:
        """A number of the config, from 1."""
        return read_size(self.value(key))

    def number(self, key: str) -> float:
        """A number of the config, above 0."""
        value = self.value(key)
        return number(path_text(value.path), value.found, above_zero=True)


@functools.cache
def graphs() -> Mapping[str, Mapping[str, Json]]:
    """What exported graphs take, by model: the rule of "text", "vision" and "audio", and the ids of "tokens"."""
    data = table()
    rules = data["graph_rules"]
    return {
        name: {kind: rules[kind][each] if kind in rules else each for kind, each in row.items()}
        for name, row in data["graphs"].items()
    }


@functools.cache
def _names(kind: str) -> Mapping[str, str]:
    """The names of rows by the model types of their models and parts."""
    return {f"{name}{ending}": name for name, row in graphs().items() if kind in row for ending in _endings[kind]}


def _inner(level: ModelConfig, key: str) -> ModelConfig:
    """The mapping under a key, or the level itself without one."""
    written = level._json.get(key)
    if written is not None and not isinstance(written, Mapping):
        raise refused(TypeError, level._place(key), f"is {shown(written)}", "a mapping")
    return level._part(key) or level


def encoder(kind: str, config: ModelConfig) -> Model:
    """The encoder of images ("vision") or of sound ("audio") in a config, or that it is."""
    levels, key = [*config._to_text(must_end=False)], f"{kind}_config"
    level = next((each for each in levels if each._json.get(key) is not None), config)
    part, known = _inner(level, key), _names(kind)
    types_of = [name for each in (part, level, *levels) if (name := each.model_type)]
    name = next((known[each] for each in types_of if each in known), None)
    if name is None:
        found = f"has the model_type {shown(types_of[0])}" if types_of else "has no model_type"
        expected = f"a model whose {kind} inputs are known: {', '.join(dict.fromkeys(known.values()))}"
        remedy = model_guess(types_of[0], [*known.values()]) if types_of else ""
        raise refused(ValueError, "config", found, expected, remedy)
    row = graphs()[name][kind]
    if part is config and part.model_type == name and row["config"] and row["config"].keys().isdisjoint(config._json):
        raise refused(ValueError, "config", f"has no {key}", remedy=f"pass the config.json of the model, or its {key}")
    return Model(name, row, level, part, row["config"])


def text_model(config: ModelConfig) -> Model | None:
    """The model whose text stands among images, videos and audio, or of its text by itself; None for others."""
    names = _names("text")
    name = names.get(config.model_type or "")
    if name is None:
        return None
    # Ids of tokens are beside the innermost mapping of text, or in it if only that is given.
    levels = [each for each in config._to_text(must_end=False) if names.get(each.model_type or "") == name]
    level = next((each for each in reversed(levels) if not is_text_alone(each)), config)
    row = graphs()[name]
    part = _inner(level, "vision_config")
    return Model(name, row["text"], level, part, row["vision"]["config"], row.get("tokens", {}))


def is_text_alone(config: ModelConfig) -> bool:
    """Whether it is the mapping of a text model beside which a whole file has the ids of tokens."""
    return (config.model_type or "").endswith("_text")
