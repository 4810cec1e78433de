# SPDX-License-Identifier: BSD-3-Clause
"""What is known of one `model_type` that rotates, as fields."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from fastpe._config.file import Json
from fastpe._config.tables import table


@dataclasses.dataclass(frozen=True)
class ModelType:
    """A row of the table: what a config.json of this `model_type` does not say, and how its keys are read.

    * interleaved, conjugate, form: as in `RotaryEmbedding`. pairing_key: a key of the config that decides the pairing.
    * reorders: whether transformers leaves pairs of neighbours half of the width apart. Tests and documentation read it.
    * width: keys of the config, or quotients of them; the first one that is there is the width of the head, or, for models
      that rotate the tail of a head, the width of the tail. rotary_dim: a key that is the width of the rotated part itself.
    * partial: whether partial_rotary_factor is read. With "ignored", the width is already that of the part.
    * rope_theta, partial_rotary_factor, defaults: of the model's class.
    * rope: the rope mapping that counts if the config has none. It has no base where the config's own counts.
    * nested: whether each type of layers has a rope mapping of its own, and no old form of the config is read.
      entries: where the entries have other names than the types of layers. reads_mapping: whether one is read at all.
    * layers: what differs for each type of layers: fields of this class, or None if they are not rotated. There, scaled says
      whether one mapping for all layers counts ("rope_type": only if it has this key), own_theta, whether a base in it does
      not, and yarn has defaults of this scaling.
    * types: other names of scalings. rope_types: the scalings that models of this type have, if not all.
    * longrope: "mscale" if the attention factor follows from the length.
    * dynamic: the keys of the factor and of the trained length of a "dynamic" scaling that is not in a rope mapping.
    * mrope: how sections divide the frequencies, as in `Rotation`, or "doubled"; and the default sections.
    * requires: values of a key without which the model is not rotated.
    * unrotated: types of layers that are not rotated: always (None), or unless a key is null (true) or is not (false).
      rotated_layers: the key of a list that has 0 for each layer that is not rotated, and the rule without it.
      layer_types: the rule of the types of layers. Both rules are described in layer_types.py.
    * names: what a key is called, in the order in which names count.
    * harmless: keys that concern rotation, and that the model's module does not read, by the source of the row. neutral:
      values of such keys that change nothing, where others would.
    * query_scale: what queries are multiplied by besides: see `fastpe.query_scale`.
    * source: the folder in transformers, or the file of another project.
    """

    interleaved: bool
    form: str = "halves"
    conjugate: bool = False
    pairing_key: str = ""
    reorders: bool = False
    width: tuple[str, ...] = ("head_dim", "hidden_size // num_attention_heads")
    rotary_dim: str = ""
    partial: bool | str = False
    rope_theta: float | None = None
    partial_rotary_factor: float | None = None
    rope: Json = dataclasses.field(default_factory=dict)
    nested: bool = False
    reads_mapping: bool = True
    entries: Mapping[str, str] = dataclasses.field(default_factory=dict)
    layers: Mapping[str, Json | None] = dataclasses.field(default_factory=dict)
    scaled: bool | str = False
    own_theta: bool = False
    yarn: Json = dataclasses.field(default_factory=dict)
    types: Mapping[str, str] = dataclasses.field(default_factory=dict)
    rope_types: tuple[str, ...] = ()
    longrope: str = ""
    dynamic: tuple[str, str] | None = None
    mrope: tuple[str, Any] | None = None
    requires: Mapping[str, list[Any]] = dataclasses.field(default_factory=dict)
    unrotated: Mapping[str, tuple[str, bool] | None] = dataclasses.field(default_factory=dict)
    rotated_layers: Json = dataclasses.field(default_factory=dict)
    layer_types: Json = dataclasses.field(default_factory=dict)
    names: Mapping[str, list[str]] = dataclasses.field(default_factory=dict)
    harmless: tuple[str, ...] = ()
    neutral: Mapping[str, list[Any]] = dataclasses.field(default_factory=dict)
    defaults: Json = dataclasses.field(default_factory=dict)
    query_scale: tuple[str, ...] = ()
    source: str = ""

    def of_layer(self, layer_type: str) -> ModelType:
        """The row of one type of layers."""
        return dataclasses.replace(self, **(self.layers.get(layer_type) or {}))

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
        others |= {rule[word] for rule in rules for word in ("key", "list") if word in rule}
        return self.number_keys | others | {"rope_scaling", "rope_parameters"}


@functools.cache
def row_of(model_type: str) -> ModelType:
    """The row of a type that has one."""
    return ModelType(**table()["models"][model_type])
