# SPDX-License-Identifier: BSD-3-Clause
"""What is known of one `model_type` that rotates, as fields; and a config of such a type."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from fastpe._arguments import shown
from fastpe._config.file import Json, wrong
from fastpe._config.model import ModelConfig
from fastpe._config.tables import table


@dataclass(frozen=True)
class ModelType:
    """A row of the table: what a config.json of this `model_type` does not say, and how its keys are read."""

    interleaved: bool  # this, form and conjugate are those of RotaryEmbedding
    form: str = "halves"
    conjugate: bool = False
    pairing_key: str = ""  # a key of the config that decides the pairing
    reorders: bool = False  # transformers leaves pairs of neighbours half of the width apart
    # The first that is there is the width of the head, or, in models that rotate the tail of a head, of this tail.
    width: tuple[str, ...] = ("head_dim", "hidden_size // num_attention_heads")
    rotary_dim: str = ""  # a key that is the width of the rotated part itself
    partial: bool | str = False  # whether partial_rotary_factor is read; "ignored": the width is that of the part
    rope_theta: float | None = None  # this, the next, defaults and rope are those of the model's class
    partial_rotary_factor: float | None = None
    rope: Json = field(default_factory=dict)  # without a base where the config's own counts
    nested: bool = False  # each type of layers has a rope mapping of its own, and no old form of the config is read
    reads_mapping: bool = True
    entries: Mapping[str, str] = field(default_factory=dict)  # names in the rope mapping of types of layers
    # What differs for each type of layers, as fields of this class; None if they are not rotated.
    layers: Mapping[str, Json | None] = field(default_factory=dict)
    scaled: bool | str = False  # in layers: one mapping for all layers counts ("rope_type": only if it has this key)
    yarn: Json = field(default_factory=dict)  # in layers: defaults of this scaling
    types: Mapping[str, str] = field(default_factory=dict)  # other names of scalings
    rope_types: tuple[str, ...] = ()  # the scalings that models of this type have, if not all
    longrope: str = ""  # "mscale" if the attention factor follows from the length
    dynamic: tuple[str, str] | None = None  # keys of the factor and trained length of "dynamic" without a rope mapping
    mrope: tuple[str, Any] | None = None  # how sections divide the frequencies, or "doubled"; the default sections
    requires: Mapping[str, list[Any]] = field(default_factory=dict)  # of a key, without which none rotates
    # Types of layers that are not rotated: always (None), or unless a key is null (true) or is not (false).
    unrotated: Mapping[str, tuple[str, bool] | None] = field(default_factory=dict)
    rotated_layers: Json = field(default_factory=dict)  # a list with 0 for each layer that is not, or a rule
    layer_types: Json = field(default_factory=dict)  # a rule; layer_types.py describes both
    names: Mapping[str, list[str]] = field(default_factory=dict)  # of a key, in the order in which they count
    harmless: tuple[str, ...] = ()  # keys that concern rotation, and that the model's module does not read
    neutral: Mapping[str, list[Any]] = field(default_factory=dict)  # values of such keys that change nothing
    defaults: Json = field(default_factory=dict)
    query_scale: tuple[str, ...] = ()  # what queries are multiplied by besides: see fastpe.query_scale
    is_known: bool = True
    source: str = ""  # the folder in transformers, or the file of another project

    def of_layer(self, layer_type: str) -> ModelType:
        """The row of one type of layers."""
        return replace(self, **(self.layers.get(layer_type) or {})) if self.layers else self

    def names_of(self, key: str) -> list[str]:
        """What configs call this key."""
        return self.names.get(key, [key])

    @functools.cached_property
    def number_keys(self) -> frozenset[str]:
        """The names of all keys whose numbers say how layers are rotated, whatever their type."""
        rows = [self.of_layer(name) for name in self.layers] or [self]
        words = [word for row in rows for term in row.width for word in term.replace(" // ", " * ").split(" * ")]
        keys = {*words, "rope_theta", "partial_rotary_factor", "original_max_position_embeddings"}
        return frozenset(name for row in rows for key in keys for name in row.names_of(key))

    @functools.cached_property
    def read_keys(self) -> frozenset[str]:
        """The names of all keys that are read."""
        others = {self.rotary_dim, self.pairing_key, *self.requires, *(self.dynamic or ()), *self.harmless}
        rules = (self.layer_types, self.rotated_layers)
        others |= {rule[word] for rule in rules for word in ("key", "list", "listed") if word in rule}
        return self.number_keys | others | {"rope_scaling", "rope_parameters"}


@functools.cache
def row_of(model_type: str) -> ModelType:
    """The row of a type that has one."""
    return ModelType(**table()["models"][model_type])


def unknown_row(part: ModelConfig, interleaved: bool) -> ModelType:
    """The row of a type that is not known: of each key, the name that the file has."""
    names = {key: [_name_in(part, names) or names[0]] for key, names in table()["unknown"]["names"].items()}
    # Where a file has the width of the part, it counts.
    exact, width = _name_in(part, table()["rotary_dims"]), tuple(table()["unknown"]["width"])
    return ModelType(interleaved, width=width, rotary_dim=exact, partial=True, names=names, is_known=False)


def _name_in(part: ModelConfig, names: list[str]) -> str:
    return next((name for name in names if part._json.get(name) is not None), "")


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
        if old and new and old != new:
            found = f"is {shown(new)}, and rope_scaling is {shown(old)}"
            raise wrong(part._at("rope_parameters"), found, "the same", "leave one of the two out")
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
