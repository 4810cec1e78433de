# SPDX-License-Identifier: BSD-3-Clause
"""Rotation and layers of the models of the installed transformers, and which part of a configuration is the language model.

Every class of transformers that makes one-dimensional rotary tables is made from its default configuration, and what it does
is measured: the form of its tables, the pairing and the direction of its module's own rotation, which keys of the
configuration change the width, whether it reads a rope mapping, the defaults, and the types of its layers. tests/peers
compares tables, rotations and layers with the models.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import pathlib
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers

from fastpe._config.file import table
from fastpe._config.model_type import ModelType
from fastpe._config.unread import concerns_rotation
from tests.oracles.model import rotated

WIDTH = ["head_dim", "hidden_size // num_attention_heads"]
LENGTHS = ("max_position_embeddings", "original_max_position_embeddings")
PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
# Keys of rules of layers that classes read, and that are no fields of them.
LAYER_KEYS = ("sliding_window_pattern", "full_attention_interval", "global_attn_every_n_layers")

# Known classes, among them those that are given another configuration than their annotation names.
KNOWN = pathlib.Path(__file__).parents[2] / "tests" / "data" / "rotary_classes.json"


class Rotary(NamedTuple):
    """A class that makes tables, and the configuration that it takes."""

    folder: str
    module: Any
    kind: type
    config: type

    def tables(self, config: Any, layer_type: str | None, positions: int = 4) -> tuple[np.ndarray, ...]:
        """What its forward returns for the first positions."""
        ids = torch.arange(positions)[None]
        chosen = {} if layer_type is None else {"layer_type": layer_type}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rotary = self.kind(config)
            try:
                made = rotary(torch.zeros(1, positions, 8), ids, **chosen)
            except (IndexError, RuntimeError):  # the module wants one row of positions for each coordinate
                made = rotary(torch.zeros(1, positions, 8), ids.expand(3, 1, positions), **chosen)
        parts = made if isinstance(made, tuple) else (made,)
        return tuple(part.detach().numpy().reshape(-1, positions, part.shape[-1])[0] for part in parts)

    def width(self, config: Any, layer_type: str | None) -> int:
        """Columns of a head that are rotated."""
        parts = self.tables(config, layer_type)
        return parts[0].shape[-1] * (2 if form_of(parts) in ("halves", "complex") else 1)


def classes() -> Iterator[Rotary]:
    """Every class of transformers with one-dimensional tables for a text, a sound or a series."""
    found: set[tuple[str, type]] = set()
    for source in sorted(pathlib.Path(transformers.models.__path__[0]).glob("*/modeling_*.py")):
        if source.stem != f"modeling_{source.parent.name}" or "position_ids" not in source.read_text("utf-8"):
            continue
        module = importlib.import_module(f"transformers.models.{source.parent.name}.{source.stem}")
        for name, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ != module.__name__ or not re.search(r"(?<!Vision)(Rotary|Rope|RoPE)", name):
                continue
            wanted = list(inspect.signature(kind).parameters.values())[:1]
            takes = list(inspect.signature(kind.forward).parameters)
            if takes[1:3] == ["x", "position_ids"] and wanted and inspect.isclass(wanted[0].annotation):
                # Some name the whole model's configuration, and are given the text's.
                config = wanted[0].annotation
                config = config.sub_configs.get("text_config", config)
                if hasattr(config, "model_type"):
                    found.add((name, config))
                    yield Rotary(source.parent.name, module, kind, config)
    for known in json.loads(KNOWN.read_text("utf-8"))["classes"]:
        module, configs = (
            importlib.import_module(f"transformers.models.{known['folder']}.{part}_{known['folder']}")
            for part in ("modeling", "configuration")
        )
        config = getattr(configs, known["config"], None) or getattr(transformers, known["config"])
        if (known["kind"], config) not in found:
            yield Rotary(known["folder"], module, getattr(module, known["kind"]), config)


def form_of(parts: tuple[np.ndarray, ...]) -> str:
    """The form of tables that a module returned, by fastpe's name."""
    if np.iscomplexobj(parts[0]):
        return "complex"
    row = parts[0][-1]
    half = len(row) // 2
    if len(row) % 2 == 0 and np.array_equal(row[:half], row[half:]):
        return "tile"
    return "repeat" if np.array_equal(row[0::2], row[1::2]) else "halves"


def apply(module: Any, config: Any, parts: tuple[np.ndarray, ...], x: np.ndarray) -> np.ndarray:
    """Rotate [B, H, L, D] as the module's attention does."""
    tensor = torch.from_numpy(x.copy())
    if config.model_type == "qwen2_5_omni_dit":
        tensor = module.deinterleave_head_dim(tensor)  # as its attention does before
    tables = [torch.from_numpy(part.copy())[None] for part in parts]
    if len(tables) == 1:
        # Llama 4 has the heads behind the sequence.
        swaps = "[:, :, None, :]" in inspect.getsource(module.apply_rotary_emb)
        given = tensor.transpose(1, 2) if swaps else tensor
        turned = module.apply_rotary_emb(given, given, *tables)[0]
        return (turned.transpose(1, 2) if swaps else turned).numpy()
    name = "apply_rotary_pos_emb"
    is_mla = hasattr(config, "qk_rope_head_dim") and getattr(config, "rope_interleave", True)
    if is_mla and hasattr(module, f"{name}_interleave"):
        name = f"{name}_interleave"
    function = getattr(module, name)
    if list(inspect.signature(function).parameters)[1:2] == ["cos"]:
        return function(tensor, *tables).numpy()
    return function(tensor, tensor, *tables)[0].numpy()


def halves_of(parts: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
    """One cosine and one sine for each pair."""
    form = form_of(parts)
    if form == "complex":
        return parts[0].real, parts[0].imag
    if form == "tile":
        return tuple(part[:, : part.shape[-1] // 2] for part in parts)  # type: ignore[return-value]
    return tuple(part[:, ::2] for part in parts) if form == "repeat" else parts  # type: ignore[return-value]


def pairing(rotary: Rotary, config: Any, layer_type: str | None) -> dict[str, bool]:
    """Which columns are pairs, which way they turn, and whether they change places."""
    parts = rotary.tables(config, layer_type)
    columns = rotary.width(config, layer_type)
    x = np.random.default_rng(1).standard_normal((1, 2, 4, columns)).astype(np.float32)
    theirs = apply(rotary.module, config, parts, x)
    for interleaved, conjugate, reorders in (
        (False, False, False),
        (True, False, False),
        (True, False, True),
        (False, True, False),
        (True, True, False),
    ):
        every = np.ones((1, x.shape[2]), bool)
        halves = tuple(half[None] for half in halves_of(parts))
        ours = rotated(x, halves, every, interleaved=interleaved, inverse=conjugate)
        if reorders:  # the pairs are left half of the width apart
            ours = np.concatenate([ours[..., 0::2], ours[..., 1::2]], -1)
        if np.allclose(theirs, ours, atol=1e-5):
            return {"interleaved": interleaved, "conjugate": conjugate, "reorders": reorders}
    raise ValueError("its rotation is none that fastpe has")


def made(kind: type, **given: Any) -> Any:
    """A configuration; some refuse an argument that they set themselves."""
    config = kind(**given)
    config.allow_global_per_layer_attribute_access = True
    return config


def changes(rotary: Rotary, key: str, layer_type: str | None, before: int) -> bool:
    """Whether another value of a key gives another width."""
    value = getattr(made(rotary.config), key, None) or before
    try:
        # A model that rotates half or a quarter of a head has the same width at two or four times that width.
        return rotary.width(made(rotary.config, **{key: 6 * value}), layer_type) != before
    except Exception:  # noqa: BLE001  # validators and properties without a setter raise many kinds
        return False


def layer_rule(kind: type) -> dict[str, Any] | None:
    """The rule of the types of layers, as layer_types.py describes it; None where there is none that it describes."""
    counts = (13, 24, 30)
    lists = [types_of_layers(kind, count) for count in counts]
    if not all(lists):
        return {} if lists == [None] * 3 else None
    longest = lists[-1] or []
    first, *rest = sorted(dict.fromkeys(longest), key=lambda name: -longest.count(name))
    if not rest:
        return {} if first == "full_attention" else {"cycle": [first]}
    for every, at, also in itertools.product(range(2, 9), range(-1, 7), ([], [-1], [0], [0, 1], [0, 1, -1])):
        rule = {
            "every": every,
            "types": [first, rest[0]],
            **({} if at == -1 else {"at": at}),
            **({"also": also} if also else {}),
        }
        if at < every - 1 and all(follows(rule, count) == names for count, names in zip(counts, lists, strict=True)):
            return {**rule, **key_of(kind, rule)}
    for length in range(2, 13):
        rule = {"cycle": longest[:length]}
        if all((rule["cycle"] * 30)[: len(names or [])] == names for names in lists):
            return rule
    return None


def types_of_layers(kind: type, count: int, **given: Any) -> list[str] | None:
    """What a configuration says of so many layers, if it lists their types."""
    try:
        names = getattr(made(kind, num_hidden_layers=count, **given), "layer_types", None)
    except Exception:  # noqa: BLE001  # validators refuse in many ways
        return None
    return list(names) if isinstance(names, (list, tuple)) and len(names) == count else None


def follows(rule: dict[str, Any], count: int) -> list[str]:
    """The types by a rule."""
    also = {index % count for index in rule.get("also", [])}
    return [rule["types"][(at - rule.get("at", -1)) % rule["every"] == 0 or at in also] for at in range(count)]


def key_of(kind: type, rule: dict[str, Any]) -> dict[str, str]:
    """The key that says every how many layers are of the other type."""
    fields = [name for name in kind.__dataclass_fields__ if getattr(kind, name, None) == rule["every"]]
    wanted = follows({**rule, "every": rule["every"] + 1}, 30)
    found = [key for key in (*fields, *LAYER_KEYS) if types_of_layers(kind, 30, **{key: rule["every"] + 1}) == wanted]
    return {"key": found[0]} if found else {}


def reads_mapping(rotary: Rotary) -> bool:
    """Whether a scaling in the rope mapping changes its tables."""
    scaling = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
    try:
        before, after = (
            rotary.tables(made(rotary.config, rope_parameters=dict(each)), None) for each in (PLAIN, scaling)
        )
    except Exception:  # noqa: BLE001  # some want a mapping for each type of layers
        return True
    return not np.array_equal(before[0], after[0])


def text_part(kind: type) -> list[str] | None:
    """The key of the part that leads to the language model, and the type of that part."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            config = kind()
            text = config.get_text_config(decoder=True)
            parts = {key: getattr(config, key, None) for key in kind.sub_configs}
            leads = [
                key for key, part in parts.items() if part is not None and part.get_text_config(decoder=True) is text
            ]
        except Exception:  # noqa: BLE001  # some have no default, or two models of text
            return None
    return [leads[0], parts[leads[0]].model_type] if leads and text is not config else None


def row(rotary: Rotary) -> dict[str, Any]:
    """What can be measured of a model; of its layers, where there is a rule."""
    config = made(rotary.config)
    types = getattr(config, "layer_types", None) or []
    # transformers goes through a set of the types, whose order is another one in each process.
    rope = dict(sorted(config.rope_parameters.items(), key=lambda item: ([*types, item[0]].index(item[0]), item[0])))
    nested = {name: value for name, value in rope.items() if isinstance(value, dict) or value is None}
    layer_types = [name for name, value in nested.items() if value is not None] or [None]
    first = layer_types[0]
    result: dict[str, Any] = {**pairing(rotary, config, first), "form": form_of(rotary.tables(config, first))}
    before = rotary.width(config, first)
    if changes(rotary, "qk_rope_head_dim", first, before):
        result["width"] = ["qk_rope_head_dim"]
    elif not changes(rotary, "head_dim", first, before) and changes(rotary, "hidden_size", first, before):
        result["width"] = WIDTH[1:]
    if nested:
        result["layers"] = {name: value if value is None else {"rope": value} for name, value in nested.items()}
    else:
        plain = {"rope_type": "default", "rope_theta": 4000.0}
        share = made(rotary.config, rope_parameters=dict(plain)).rope_parameters.get("partial_rotary_factor", 1.0)
        if share != 1.0:
            result["partial_rotary_factor"] = share
        half = made(rotary.config, rope_parameters={**plain, "partial_rotary_factor": share / 2})
        result["partial"] = rotary.width(half, None) != rotary.width(made(rotary.config, rope_parameters=plain), None)
        result["rope_theta"] = made(rotary.config, rope_parameters={"rope_type": "default"}).rope_parameters[
            "rope_theta"
        ]
        usual = {"rope_type": "default", "rope_theta": result["rope_theta"], "partial_rotary_factor": share}
        if {"partial_rotary_factor": 1.0, **rope} != usual:
            if made(rotary.config, rope_theta=4000.0).rope_parameters["rope_theta"] == 4000.0:
                del rope["rope_theta"]
            result["rope"] = rope
    names = {key: config.attribute_map.get(key, key) for key in ("head_dim", "hidden_size", "num_attention_heads")}
    keys = [*names, *LENGTHS, "qk_rope_head_dim"]
    if result.get("width") == ["qk_rope_head_dim"]:
        keys = [*LENGTHS, "qk_rope_head_dim"]
    elif result.get("width") == WIDTH[1:]:
        keys.remove("head_dim")
    elif getattr(rotary.config.__dataclass_fields__.get(names["head_dim"]), "default", None) is None:
        keys.remove("head_dim")  # computed from the others
    defaults = {names.get(key, key): getattr(config, key, None) for key in keys}
    result["defaults"] = {key: value for key, value in defaults.items() if isinstance(value, int)}
    if not nested and not reads_mapping(rotary):
        result["reads_mapping"] = False
    rule = layer_rule(rotary.config)
    if rule:
        result["layer_types"] = rule
    usual = ("interleaved", "reads_mapping")
    return {key: value for key, value in result.items() if value is not False or key in usual}


def configurations() -> dict[str, type]:
    """The configuration class of each model_type, by the folders' own files."""
    found: dict[str, type] = {}
    for source in sorted(pathlib.Path(transformers.models.__path__[0]).glob("*/configuration_*.py")):
        module = importlib.import_module(f"transformers.models.{source.parent.name}.{source.stem}")
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if (
                issubclass(kind, transformers.PretrainedConfig)
                and kind.__module__ == module.__name__
                and kind.model_type
            ):
                found.setdefault(kind.model_type, kind)
    return found


def measure(
    rotaries: Iterable[Rotary], kinds: Mapping[str, type]
) -> tuple[dict[str, Any], dict[str, list[str]], dict[str, list[str]]]:
    """The rows of classes that make tables, the parts of configurations, and what is not measured of a model_type."""
    models: dict[str, Any] = {}
    missing: dict[str, list[str]] = {}
    for rotary in rotaries:
        name = rotary.config.model_type
        if name in models:
            continue
        try:
            models[name] = {**row(rotary), "source": f"models/{rotary.folder}"}
        except Exception as error:  # noqa: BLE001  # a class that cannot be measured is reported
            missing[name] = [f"{rotary.kind.__name__}: {type(error).__name__}: {str(error).splitlines()[0][:200]}"]
            continue
        if layer_rule(rotary.config) is None:
            missing.setdefault(name, []).append("the rule of the types of its layers")
        unknown = {*(types_of_layers(rotary.config, 24) or [])} - {
            *table()["layer_types"],
            *table()["unrotated_layers"],
        }
        if unknown:
            missing.setdefault(name, []).append(f"whether layers of the type {', '.join(sorted(unknown))} are rotated")
        own = {*rotary.config.__dataclass_fields__} - {*transformers.PretrainedConfig.__dataclass_fields__}
        row_of_file = {**models[name], **table()["models"].get(name, {})}
        keys = sorted(key for key in own - ModelType(**row_of_file).read_keys if concerns_rotation(key))
        missing |= {name: [*missing.get(name, []), f"what {', '.join(keys)} mean"]} if keys else {}
    parts = {name: part for name, kind in sorted(kinds.items()) if (part := text_part(kind)) and name not in models}
    return dict(sorted(models.items())), parts, missing
