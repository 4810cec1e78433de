# SPDX-License-Identifier: BSD-3-Clause
"""Compare python/fastpe/_config/models.json with the installed transformers: python tools/rotary_models.py

Every class of transformers that makes one-dimensional rotary tables is made from its default configuration, and what it
does is measured: the form of its tables, the pairing and the direction of its module's own rotation, which keys of the
configuration change the width, and the defaults. The rows that are missing in the data, and the fields that differ, are
printed. ``--rows`` prints every measured row, in the form of the data.

Names of keys that only old files have, sections of M-RoPE and types of layers in old files cannot be measured. They are
written by hand, from the configuration's source; ``hand`` names those fields of a row that would be measured otherwise.
Some whole rows are also written so. tests/peers/test_rotary_configs.py compares tables and rotations.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.resources
import inspect
import json
import logging
import pathlib
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from tests.oracles.model import rotated

# What a row says and this script measures; models.json also has other fields.
MEASURED = "interleaved conjugate reorders form width partial rope_theta partial_rotary_factor rope layers defaults"
WIDTH = ["head_dim", "hidden_size // num_attention_heads"]
LENGTHS = ("max_position_embeddings", "original_max_position_embeddings")

# Known classes, among them those that are given another configuration than their annotation names.
KNOWN = pathlib.Path(__file__).parents[1] / "tests" / "data" / "rotary_classes.json"


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


def row(rotary: Rotary) -> dict[str, Any]:
    """What can be measured of a model."""
    config = made(rotary.config)
    rope = dict(config.rope_parameters)
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
    return {key: value for key, value in result.items() if value is not False or key == "interleaved"}


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


def unknown_types(data: dict[str, Any]) -> list[str]:
    """Model types that no table has: they need a row, or the name of a call, or they are `without`."""
    tables = ("models", "parts", "layouts", "told", "sinusoids", "grids", "learned", "without")
    known = {name for each in tables for name in data[each]}
    return sorted({*configurations()} - known)


def rows() -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """The rows by model_type, and why others have none, by model_type too."""
    found: dict[str, dict[str, Any]] = {}
    without: dict[str, str] = {}
    for rotary in classes():
        model_type = rotary.config.model_type
        try:
            found.setdefault(model_type, {**row(rotary), "source": f"models/{rotary.folder}"})
        except Exception as error:  # noqa: BLE001  # a class that cannot be measured is reported
            without[model_type] = f"{rotary.kind.__name__}: {type(error).__name__}: {error}"
    return found, without


def main() -> int:
    """Print what differs, or the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", action="store_true", help="print every measured row")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    found, without = rows()
    if options.rows:
        print(",\n".join(f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found)))
        return 0
    data = json.loads(importlib.resources.files("fastpe").joinpath("_config/models.json").read_text("utf-8"))
    complaints = [
        f"{name}: no row; measured: {json.dumps(found[name])}" for name in sorted(found) if name not in data["models"]
    ]
    for name in sorted({*found} & {*data["models"]}):
        ours, theirs = data["models"][name], found[name]
        complaints += [
            f"{name}: {field} is {ours.get(field)!r}, measured: {theirs.get(field)!r}"
            for field in MEASURED.split()
            if field not in ours.get("hand", ()) and ours.get(field) != theirs.get(field)
        ]
    complaints += [f"{name}: no table of models.json has this model type" for name in unknown_types(data)]
    unknown = {*without} - {*data["models"]} - {*data["parts"]} - {*data["layouts"]}
    print("\n".join(complaints), end="\n" if complaints else "")
    print(f"transformers {transformers.__version__}: {len(found)} model types, {len(complaints)} differences")
    print("\n".join(f"no row, and not measured: {name}: {without[name]}" for name in sorted(unknown)))
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
