# SPDX-License-Identifier: BSD-3-Clause
"""What is known of the language model in a config; and where a call has no answer, what the model has instead."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import NamedTuple

from fastpe._arguments import model_guess, nearest, shown
from fastpe._config.file import Json
from fastpe._config.model import ModelConfig
from fastpe._config.model_type import ModelType, row_of
from fastpe._config.tables import table
from fastpe._errors import refused


class Found(NamedTuple):
    """The part of a config that is a language model, what is known of its type, and the levels around it."""

    part: ModelConfig
    model: ModelType
    outer: tuple[ModelConfig, ...]

    @property
    def config(self) -> Json:
        return self.part._json


def find_model(config: ModelConfig, interleaved: bool | None, wanted: str = "rotation") -> Found:
    """The model of text in `config`, or the model that it is."""
    if config.vision is config:
        raise refusal(config, wanted)
    *around, part = config._levels
    outer = tuple(level for level in around if level._json.keys() - {"model_type"} - part._json.keys())
    if part._known_type in table()["models"]:
        return Found(part, row_of(part._known_type), outer)
    if interleaved is None or is_known(part):
        raise refusal(part, wanted)
    unknown = ModelType(interleaved=interleaved, partial=True, **table()["unknown"])
    # Where a file has the width of the part, it counts.
    exact = next((key for key in table()["rotary_dims"] if part._json.get(key) is not None), "")
    return Found(part, dataclasses.replace(unknown, rotary_dim=exact), outer)


def is_known(config: ModelConfig) -> bool:
    """Whether it is another file than a config.json, or a model of which it is known what it has."""
    name, data = config._known_type, table()
    if name is None:
        return bool(other_file(config._json))
    return bool(name in data["layouts"] or name in data["told"] or name in data["without"] or use_of(name))


def is_rotated_model(config: ModelConfig, model: ModelType) -> bool:
    """Whether the file says that a model of a type that may be rotated is."""
    values = {key: config._json.get(key, model.defaults.get(key)) for key in model.requires}
    return all(value in model.requires[key] for key, value in values.items())


def other_file(config: Json) -> str:
    """What shows that a file without a model_type describes no model."""
    if isinstance(config.get("model"), Mapping) and "decoder" in config["model"]:
        return 'has a "model" with a "decoder", as a genai_config.json has'
    what = {key: what for key, what in table()["other_files"].items() if key in config}
    return next((f'has no model_type but "{key}", as {each} has' for key, each in what.items()), "")


def refusal(config: ModelConfig, wanted: str) -> Exception:
    """An error to raise where `config` has no "rotation", "sinusoids", "layout" or "scores": what it has, and what to call instead."""
    name, data, written = config._known_type, table(), config._json
    if name is None and (other := other_file(written)):
        remedy = "give the config.json of the same model"
        return refused(ValueError, config._place(), other, "what a config.json has", remedy)
    found, remedy = _told(config)
    if not remedy:
        has = {"sinusoids": "adds sinusoids", "layout": "has a layout"}.get(wanted, "rotates by one coordinate")
        of_text = name
        for _ in range(3):  # to the type of its language model
            of_text = data["parts"].get(of_text, [of_text])[-1]
        use = use_of(name or "", written)
        if of_text in data["models"] and is_rotated_model(config, row_of(of_text)):
            found, remedy = (
                f"{found}, which is not a model that {has}",
                "use fastpe.RotaryEmbedding.from_config(config)",
            )
        elif use or name in data["without"]:
            otherwise = (
                "leave its queries and keys as they are, or use RotaryEmbedding(rotary_dim, ..) if yours has one"
            )
            otherwise = otherwise if wanted == "rotation" else "it rotates nothing"
            found = f"{found}, which is not a model that {has}"
            remedy = use or "; ".join(filter(None, [otherwise, parameters_of(name or "")]))
        else:
            found, remedy = _unknown(config, wanted, found if name is None else f"{found}, which is not known")
    return refused(ValueError, config._place("model_type"), found, remedy=remedy)


def _told(config: ModelConfig) -> tuple[str, str]:
    """What a config is that has no rotation by one coordinate, and a remedy that does not depend on the call; or none."""
    name, data, written = config._known_type, table(), config._json
    found = "is missing" if name is None else f"is {name!r}"
    if name is None and "_class_name" in written:
        kind = written["_class_name"]
        row = data["diffusers"].get(str(kind), {})
        otherwise = "print(fastpe.rotary_layouts) lists layouts, and fastpe.timestep_embedding encodes timesteps"
        if str(kind).endswith("Pipeline"):
            otherwise = "give the config.json in the folder of its transformer"
        call = f"use fastpe.RotaryEmbedding.from_layout({row.get('layout')!r}, head_dim)"
        remedy = call if "layout" in row else row.get("told", otherwise)
        return f"is missing, and the _class_name is {shown(kind)}, as in a config of diffusers", remedy
    layout, *remarks = data["layouts"].get(name, data["layouts"].get(f"{name}_vision", [""]))
    if layout and (name in data["layouts"] or config.vision is config):
        remedy = ", ".join([f"use fastpe.RotaryEmbedding.from_layout({layout!r}, head_dim)", *remarks])
        return f"{found}, whose positions have several coordinates", remedy
    if name in data["told"]:
        # The first of its sentences whose key the config has.
        return found, next(sentence for key, sentence in data["told"][name].items() if not key or written.get(key))
    if use_of(name or ""):
        # Models with code of their own, such as Jina's and MosaicML's, have the `model_type` of BERT.
        kinds = {key: value for key, value in written.items() if value and re.search("rope|rotary|alibi", str(key))}
        if written.get("position_embedding_type") in ("alibi", "rope", "rotary"):
            kinds = {"position_embedding_type": written["position_embedding_type"]}
        for key, value in kinds.items():
            remedy = (
                "use RotaryEmbedding(rotary_dim, ..) if its own code rotates, or add and rotate nothing if it has ALiBi"
            )
            other = data["other_code"].get(name)
            family = f', or write {{"model_type": {other!r}}} if it is of this family' if other else ""
            return f"{found}, which has no {key} of {shown(value)} in transformers", f"{remedy}{family}"
    return found, ""


def _unknown(config: ModelConfig, wanted: str, found: str) -> tuple[str, str]:
    name, data = config._known_type or "", table()
    if wanted == "rotation":
        guess = model_guess(name, [*data["models"], *data["parts"]], quote='"')
        remedy = "give interleaved=True for neighbours, or interleaved=False for columns that are half of the width "
        remedy += f"apart{other_models(config._json)}; "
        remedy += guess or "print(fastpe.rotary_layouts) for models of images and videos"
        return f"{found}, and nothing else in a config says which columns are pairs", remedy
    if wanted == "scores":
        return f"{found}: what its queries are multiplied by is not known", "multiply them as its own code does"
    if wanted == "sinusoids":
        near = nearest(name, data["sinusoids"], 0.7)
        guess = f'; "{near}" is known: before you take it, compare what both add to embeddings' if near else ""
        return found, f"use PositionalEncoding(d_model, convention=..){guess}"
    return f"{found}, and names no layout", "print(fastpe.rotary_layouts) lists the layouts"


def use_of(model_type: str, config: Json | None = None) -> str:
    """The call for a model that adds an encoding, a table or a bias of scores; empty where none is known.

    A few files of `config` say that the model adds no table.
    """
    data = table()
    if (config or {}).get("position_biased_input") is False:
        return f"it adds no table, but {_of_deberta(config or {})} to the scores"
    if model_type in data["sinusoids"]:
        note = data["sinusoids"].get(model_type, {}).get("note", "")
        return f"use fastpe.PositionalEncoding.from_config(config){f' for {note}' if note else ''}"
    if model_type in data["grids"]:
        return f"use {data['grids'][model_type]}"
    if model_type in data["learned"]:
        bias = f", and a bias to the scores: {data['biases'][model_type]}" if model_type in data["biases"] else ""
        return f"it adds a learned table: fastpe.add_(x, table=table, {data['learned'][model_type]}){bias}"
    if model_type in data["biases"]:
        return f"it adds a bias to the scores: {data['biases'][model_type]}"
    return ""


def parameters_of(model_type: str) -> str:
    """What is measured of a model that rotates nothing, and of which no call is known; empty where nothing is."""
    found = table()["without"].get(model_type)
    if not isinstance(found, list):
        return ""
    has = f"of positions, a checkpoint of default sizes has {', '.join(found)}"
    return has if found else "none of its parameters is named after positions"


def _of_deberta(config: Json) -> str:
    """What DeBERTa's files, of which all published ones add no table, have in its place."""
    keys = ("position_buckets", "max_relative_positions", "max_position_embeddings")
    buckets, *lengths = (value if type(value) is int else 0 for value in map(config.get, keys))
    longest = next((length for length in lengths if length > 0), 512)
    if not 4 <= buckets < longest:
        return "what it learned of relative positions"
    return f"learned rows of fastpe.deberta_buckets(query - key, num_buckets={buckets}, max_position={longest})"


def other_models(config: Json) -> str:
    """What is said of parts of the config that may be the model that is meant."""
    models = {name: part for name, part in config.items() if isinstance(part, Mapping) and "model_type" in part}
    names = [name for name in models if not re.search("vision|image|video|audio", str(name))]
    return f", or the mapping under {' or '.join(map(repr, names))} if this is your model" if names else ""
