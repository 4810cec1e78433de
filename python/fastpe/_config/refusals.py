# SPDX-License-Identifier: BSD-3-Clause
"""Where a call has no answer for a config: what the model has instead, and which call gives that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fastpe._arguments import model_guess, shown
from fastpe._config.file import Json, table
from fastpe._config.model import ModelConfig
from fastpe._config.model_type import row_of
from fastpe._errors import refused


def refusal(config: ModelConfig, wanted: str) -> Exception:
    """An error to raise where `config` has no "rotation", "sinusoids", "layout" or "scores"."""
    name, written = config._known_type, config._json
    if name is None and (other := other_file(written)):
        remedy = "give the config.json of the same model"
        return refused(ValueError, config._place(), other, "what a config.json has", remedy)
    found, (clause, remedy) = "is missing" if name is None else f"is {name!r}", _instead(config, wanted)
    return refused(ValueError, config._place("model_type"), f"{found}{clause}", remedy=remedy)


def other_file(config: Json) -> str:
    """What shows that a file without a model_type describes no model."""
    if isinstance(config.get("model"), Mapping) and "decoder" in config["model"]:
        return 'has a "model" with a "decoder", as a genai_config.json has'
    what = {key: what for key, what in table()["other_files"].items() if key in config}
    return next((f'has no model_type but "{key}", as {each} has' for key, each in what.items()), "")


def is_known(config: ModelConfig) -> bool:
    """Whether it is another file than a config.json, or a model of which it is known what it has."""
    name, data = config._known_type, table()
    if name is None:
        return bool(other_file(config._json))
    return any(name in data[kind] for kind in ("layouts", "told", "without")) or bool(use_of(name))


def unmet(config: ModelConfig, requires: Mapping[str, list[Any]], defaults: Json) -> str:
    """The first key of `requires` whose value is none of those that it has there; empty where all are."""
    values = {key: config._json.get(key, defaults.get(key)) for key in requires}
    return next((key for key, value in values.items() if value not in requires[key]), "")


def _instead(config: ModelConfig, wanted: str) -> tuple[str, str]:
    """What is said of a config besides its model_type, and a remedy."""
    name, data, written = config._known_type or "", table(), config._json
    if not name and (kind := str(written.get("_class_name", ""))):
        row = data["diffusers"].get(kind, {})
        told = data["refusals"]["pipeline" if kind.endswith("Pipeline") else "diffusers"]
        remedy = f"use fastpe.RotaryEmbedding.from_layout({row['layout']!r}, head_dim)" if "layout" in row else told
        return f", and the _class_name is {shown(kind)}, as in a config of diffusers", row.get("told", remedy)
    layout, *remarks = data["layouts"].get(name, data["layouts"].get(f"{name}_vision", [""]))
    if layout and (name in data["layouts"] or config.vision is config):
        call = f"use fastpe.RotaryEmbedding.from_layout({layout!r}, head_dim)"
        return ", whose positions have several coordinates", ", ".join([call, *remarks])
    if name in data["told"]:
        # The first of its sentences whose key the config has.
        return "", next(sentence for key, sentence in data["told"][name].items() if not key or written.get(key))
    # A key that a type has only in models with code of their own, such as Jina's and MosaicML's, which are "bert".
    kind = "position_embedding_type" if written.get("position_embedding_type") in ("alibi", "rope", "rotary") else ""
    own = (str(key) for key, each in written.items() if each and re.search("rope|rotary|alibi", str(key)))
    if use_of(name) and (key := kind or next(own, "")):
        remedy = data["other_code"].get(name, data["refusals"]["own_code"])
        return f", which has no {key} of {shown(written[key])} in transformers", remedy
    of_text, use, (has, said, remedy) = name, use_of(name, written), data["refusals"][wanted]
    for _ in range(3):  # to the type of its language model
        of_text = data["parts"].get(of_text, [of_text])[-1]
    clause = f", which is not a model that {has}"
    if of_text in data["models"] and not unmet(config, row_of(of_text).requires, row_of(of_text).defaults):
        return clause, "use fastpe.RotaryEmbedding.from_config(config)"
    if use or name in data["without"]:
        none = "leave its queries and keys as they are, or use RotaryEmbedding(rotary_dim, ..) if yours has one"
        none = none if wanted == "rotation" else "it rotates nothing"
        return clause, use or "; ".join(filter(None, [none, parameters_of(name)]))
    if wanted == "rotation":
        guess = model_guess(name, [*data["models"], *data["parts"]], quote='"')
        guess = guess or "print(fastpe.rotary_layouts) for models of images and videos"
        remedy = f"{remedy}{other_models(written)}; {guess}"
    return f"{', which is not known' * bool(name)}{said}", remedy


def use_of(model_type: str, config: Json | None = None) -> str:
    """The call for a model that adds an encoding, a table or a bias of scores; empty where none is known.

    A few files of `config` say that the model adds no table.
    """
    data = table()
    if row := data["sinusoids"].get(model_type):
        note = f" for {row['note']}" if "note" in row else ""
        return f"use fastpe.PositionalEncoding.from_config(config){note}"
    if model_type in data["grids"]:
        return f"use {data['grids'][model_type]}"
    if (config or {}).get("position_biased_input") is False:
        return data["refusals"]["position_biased_input"]  # type: ignore[no-any-return]
    calls = {"learned": "a learned table: fastpe.add_(x, table=table, {})", "biases": "a bias to the scores: {}"}
    added = [said.format(data[kind][model_type]) for kind, said in calls.items() if model_type in data[kind]]
    return f"it adds {', and '.join(added)}" if added else ""


def parameters_of(model_type: str) -> str:
    """What is measured of a model that rotates nothing, and of which no call is known; empty where nothing is."""
    found = table()["without"].get(model_type)
    if not isinstance(found, list):
        return ""
    has = f"of positions, a checkpoint of default sizes has {', '.join(found)}"
    return has if found else "none of its parameters is named after positions"


def other_models(config: Json) -> str:
    """What is said of parts of the config that may be the model that is meant."""
    models = {name: part for name, part in config.items() if isinstance(part, Mapping) and "model_type" in part}
    names = [name for name in models if not re.search("vision|image|video|audio", str(name))]
    return f", or the mapping under {' or '.join(map(repr, names))} if this is your model" if names else ""
