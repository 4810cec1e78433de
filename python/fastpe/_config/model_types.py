# SPDX-License-Identifier: BSD-3-Clause
"""What is known of each `model_type`: models.json, which tools/rotary_models.py measures with the installed transformers."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fastpe._arguments import model_guess, shown, text
from fastpe._config.file import Json, packaged
from fastpe._errors import refused

# Parts lie inside of each other; files have 2.
_most_parts = 8


@dataclasses.dataclass(frozen=True)
class ModelType:
    """A row of models.json: what a config.json of this `model_type` does not say, and how its keys are read.

    * interleaved, conjugate, form: as in `RotaryEmbedding`. pairing_key: a key of the config that decides the pairing.
    * reorders: whether transformers leaves pairs of neighbours half of the width apart. Tests and documentation read it.
    * width: keys of the config, or quotients of them; the first one that is there is the width of the head, or, for models
      that rotate the tail of a head, the width of the tail. rotary_dim: a key that is the width of the rotated part itself.
    * partial: whether partial_rotary_factor is read. With "ignored", the width is already that of the part.
    * rope_theta, partial_rotary_factor, defaults: of the model's class.
    * rope: the rope mapping that counts if the config has none. It has no base where the config's own counts.
    * nested: whether each type of layers has a rope mapping of its own, and no old form of the config is read.
      entries: where the entries have other names than the types of layers.
    * layers: what differs for each type of layers: fields of this class, or None if they are not rotated. There, scaled says
      whether one mapping for all layers counts ("rope_type": only if it has this key), own_theta, whether a base in it does
      not, and yarn has defaults of this scaling.
    * types: other names of scalings. rope_types: the scalings that models of this type have, if not all.
    * longrope: "mscale" if the attention factor follows from the length.
    * dynamic: the keys of the factor and of the trained length of a "dynamic" scaling that is not in a rope mapping.
    * mrope: how sections divide the frequencies, as in `Rotation`, or "doubled"; and the default sections.
    * requires: values of a key without which the model is not rotated.
    * unrotated: types of layers that are not rotated: always (None), or unless a key is null (true) or is not (false).
      rotated_layers: the key of a list that has 0 for each layer that is not rotated, and which these are without it:
      every n-th, counted from the first or from the last, where a key may say n. layer_types: see `_by_rule`.
    * names: what a key is called, in the order in which names count.
    * harmless: keys that concern rotation, and that the model's module does not read, by the source of the row. neutral:
      values of such keys that change nothing, where others would.
    * query_scale: what queries are multiplied by besides: see `fastpe.query_scale`.
    * hand: fields that the tool cannot measure. source: the folder in transformers, or the file of another project.
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
    hand: tuple[str, ...] = ()
    source: str = ""

    def of_layer(self, layer_type: str) -> ModelType:
        """The row of one type of layers."""
        return dataclasses.replace(self, **(self.layers.get(layer_type) or {}))

    def names_of(self, key: str) -> list[str]:
        """What configs call this key."""
        return self.names.get(key, [key])

    def read_keys(self) -> set[str]:
        """The names of all keys that are read, whatever the type of the layers."""
        rows = [self.of_layer(name) for name in self.layers] or [self]
        words = [word for row in rows for term in row.width for word in term.replace(" // ", " * ").split(" * ")]
        keys = {*words, "rope_theta", "partial_rotary_factor", "original_max_position_embeddings"}
        named = {name for row in rows for key in keys for name in row.names_of(key)}
        others = {self.rotary_dim, self.pairing_key, *self.requires, *(self.dynamic or ()), *self.harmless}
        rules = {*self.rotated_layers.values(), *(key for key in self.layer_types.values() if isinstance(key, str))}
        return named | others | {key for key in rules if isinstance(key, str)} | {"rope_scaling", "rope_parameters"}


class Found(NamedTuple):
    """The part of a config that describes one model, what is known of its type, and the levels around it."""

    config: Json
    model: ModelType
    outer: tuple[Json, ...]


@functools.cache
def table() -> dict[str, Any]:
    """models.json."""
    return packaged("models.json")


def parts_of(config: Json, parts: Mapping[str, Any]) -> Iterator[tuple[Json, str | None]]:
    """`config`, the part in it that describes one model, and so on, each with its `model_type`."""
    other_names, expected = table()["other_names"], None
    for _ in range(_most_parts):
        model_type = config.get("model_type")
        if model_type is not None:
            model_type = other_names.get(text("model_type", model_type), model_type)
        if model_type is None:
            model_type = expected
        yield config, model_type
        key, expected = parts.get(model_type or "", ("text_config", expected))
        part = config.get(key)
        if not isinstance(part, Mapping) and (model_type in parts or model_type not in table()["models"]):
            names = [*table()["text_parts"], *(["decoder_config"] if model_type in parts else [])]
            found_parts = (config[name] for name in names if config.get(name))
            part = next((each for each in found_parts if isinstance(each, Mapping)), None)
        if isinstance(part, Mapping):
            config = part
        elif model_type in parts and "hidden_size" in config:
            # Files from before the part had a key of its own, as of Qwen2-VL.
            config = {**config, "model_type": expected}
        elif model_type in parts:
            found = f"has no {key!r}, in which a model_type of {model_type!r} keeps its sizes"
            raise refused(ValueError, "config", found, remedy="give the mapping of the model of text")
        else:
            return
    found = f"has parts inside of each other more than {_most_parts} times"
    raise refused(ValueError, "config", found, 'one "text_config"', "give the innermost mapping")


def is_image_encoder(config: Json) -> bool:
    """Whether this is a "vision_config" that has the `model_type` of the whole model, as in files of Qwen."""
    is_named = f"{config.get('model_type')}_vision" in table()["layouts"]
    return is_named and "patch_size" in config and "vision_config" not in config


def find_model(config: Json, interleaved: bool | None) -> Found:
    """The model of text in `config`, or the model that it is."""
    if is_image_encoder(config):
        model_type = config["model_type"]
        found = f"has the model_type {model_type!r} and a patch_size, as the vision_config of this model"
        remedy = f"use fastpe.RotaryEmbedding.from_layout({table()['layouts'][f'{model_type}_vision'][0]!r}, head_dim)"
        raise refused(ValueError, "config", found, "a whole config.json", f"{remedy} for the encoder of images")
    levels = [*parts_of(config, table()["parts"])]
    part, model_type = levels[-1]
    outer = tuple(level for level, _ in levels[:-1] if level.keys() - {"model_type"} - part.keys())
    if model_type in table()["models"]:
        return Found(part, ModelType(**table()["models"][model_type]), outer)
    for key, what in table()["other_files"].items():
        if model_type is None and key in part:
            remedy = "give the config.json of the same model"
            found = f'has no model_type but "{key}", as {what} has'
            raise refused(ValueError, "config", found, "what a config.json has", remedy)
    if model_type is not None:
        refuse_known(model_type, part)
    if interleaved is None:
        if model_type is None and "_class_name" in part:
            found = f"has no model_type but a _class_name of {shown(part['_class_name'])}, as a config of diffusers"
            remedy = "print(fastpe.rotary_layouts) lists the layouts of its models"
            raise refused(ValueError, "config", found, "a model whose positions have one coordinate", remedy)
        found = "is missing" if model_type is None else f"is {model_type!r}, which is not known"
        found += ", and nothing else in a config says which columns are pairs"
        remedy = "give interleaved=True for neighbours, or interleaved=False for columns that are half of the width "
        guess = model_guess(model_type or "", [*table()["models"], *table()["parts"]], quote='"')
        otherwise = "print(fastpe.rotary_layouts) for models of images and videos"
        remedy += f"apart{other_models(part)}; {guess or otherwise}"
        raise refused(ValueError, "model_type", found, remedy=remedy)
    unknown = ModelType(interleaved=interleaved, partial=True, **table()["unknown"])
    # Where a file has the width of the part, it counts.
    exact = next((key for key in table()["rotary_dims"] if part.get(key) is not None), "")
    return Found(part, dataclasses.replace(unknown, rotary_dim=exact), outer)


def refuse_known(model_type: str, config: Json) -> None:
    """Refuse a model that has no rotary embedding of one coordinate, and say what it has."""
    layouts, told = table()["layouts"], table()["told"]
    if model_type in layouts:
        layout, *more = layouts[model_type]
        remedy = f"use fastpe.RotaryEmbedding.from_layout({layout!r}, head_dim){''.join(f', {each}' for each in more)}"
        found = f"is {model_type!r}, whose positions have several coordinates"
        raise refused(ValueError, "model_type", found, remedy=remedy)
    if model_type in told:
        # The first of its sentences whose key the config has.
        remedy = next(sentence for key, sentence in told[model_type].items() if not key or config.get(key))
        raise refused(ValueError, "model_type", f"is {model_type!r}", remedy=remedy)
    refuse_other_code(model_type, config)
    use = use_of(model_type)
    if use or model_type in table()["without"]:
        found = f"is {model_type!r}, a model that has no rotary embedding"
        otherwise = "leave its queries and keys as they are, or use RotaryEmbedding(rotary_dim, ..) if yours has one"
        raise refused(ValueError, "model_type", found, remedy=use or otherwise)


def refuse_other_code(model_type: str, config: Json) -> None:
    """Refuse a config with keys that its `model_type` does not have in transformers.

    Models with code of their own, such as Jina's and MosaicML's, have the `model_type` of BERT.
    """
    if not use_of(model_type):
        return
    kinds = {key: value for key, value in config.items() if value and re.search("rope|rotary|alibi", key)}
    if config.get("position_embedding_type") in ("alibi", "rope", "rotary"):
        kinds = {"position_embedding_type": config["position_embedding_type"]}
    for key, value in kinds.items():
        found = f"is {model_type!r}, which has no {key} of {shown(value)} in transformers"
        remedy = (
            "use RotaryEmbedding(rotary_dim, ..) if its own code rotates, or add and rotate nothing if it has ALiBi"
        )
        if other := table()["other_code"].get(model_type):
            remedy += f', or write {{"model_type": {other!r}}} if it is of this family'
        raise refused(ValueError, "model_type", found, remedy=remedy)


def use_of(model_type: str) -> str:
    """The call for a model that adds an encoding, a table or a bias of scores; empty where none is known."""
    data = table()
    if model_type in data["sinusoids"] or model_type in data["sinusoid_parts"]:
        note = data["sinusoids"].get(model_type, {}).get("note", "")
        return f"use fastpe.PositionalEncoding.from_config(config){f' for {note}' if note else ''}"
    if model_type in data["grids"]:
        return f"use {data['grids'][model_type]}"
    if model_type in data["learned"]:
        return f"it adds a learned table: fastpe.add_(x, table=table, {data['learned'][model_type]})"
    if model_type in data["biases"]:
        return f"it adds a bias to the scores: {data['biases'][model_type]}"
    return ""


def other_models(config: Json) -> str:
    """What is said of parts of the config that may be the model that is meant."""
    models = {name: part for name, part in config.items() if isinstance(part, Mapping) and "model_type" in part}
    names = [name for name in models if not re.search("vision|image|video|audio", name)]
    return f", or the mapping under {' or '.join(map(repr, names))} if this is your model" if names else ""
