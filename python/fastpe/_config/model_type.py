# SPDX-License-Identifier: BSD-3-Clause
"""What is known of one `model_type` that rotates, as fields."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fastpe._config.file import Json, table


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


def unknown_row(config: Json, interleaved: bool) -> ModelType:
    """The row of a type that is not known: of each key, the name that the file has."""

    def name_in(names: list[str]) -> str:
        return next((name for name in names if config.get(name) is not None), "")

    names = {key: [name_in(names) or names[0]] for key, names in table()["unknown"]["names"].items()}
    # Where a file has the width of the part, it counts.
    exact, width = name_in(table()["rotary_dims"]), tuple(table()["unknown"]["width"])
    return ModelType(interleaved, width=width, rotary_dim=exact, partial=True, names=names, is_known=False)
