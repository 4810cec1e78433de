# SPDX-License-Identifier: BSD-3-Clause
"""How each layer of a model is rotated, by its config.json.

The file does not say all: which columns are pairs, and the defaults of keys that it leaves out, follow from its
`model_type`. transformers' reading of a key decides, and a key that it does not read is not ignored silently. The steps:
find the part of the model of text, take its row, find each layer's type, read the numbers of each type of layers that
is rotated, refuse the keys that were not read, and make the arguments of `RotaryEmbedding`.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from typing import Any

from fastpe._arguments import flag, integer, shown, text
from fastpe._config.file import Json, path_text, table, wrong
from fastpe._config.layer_types import Found, LayerType, has_types, is_rotated, layer_types, number_of_layers
from fastpe._config.model import ModelConfig, model_of
from fastpe._config.model_type import row_of, unknown_row
from fastpe._config.refusals import is_known, refusal, unmet, use_of
from fastpe._config.rope import Rope, read_rope
from fastpe._config.unread import refuse_unread
from fastpe._errors import refused
from fastpe._rotary.scaling import ScalingOfFile, axes_of, ideal_frequencies, read_rotary_dim, read_scaling

Source = Json | str | os.PathLike[str] | ModelConfig

# Of arguments, whose values are checked before a file is read.
_checks: dict[str, Callable[[Any], Any]] = {
    "interleaved": functools.partial(flag, "interleaved"),
    "mrope": functools.partial(flag, "mrope"),
    "rotary_dim": read_rotary_dim,
    "seq_len": lambda value: integer("seq_len", value, 0),
}


def find(config: Source, given: Json, wanted: str = "rotation") -> Found:
    """The model of text in `config`, or the model that it is; one that is rotated."""
    given = {name: value for name, value in given.items() if value is not None}
    given |= {name: check(given[name]) for name, check in _checks.items() if name in given}
    whole = model_of(config)
    if whole.vision is whole:
        raise refusal(whole, wanted)
    *around, part = whole._levels
    outer = tuple(level for level in around if level._json.keys() - {"model_type"} - part._json.keys())
    if part._known_type in table()["models"]:
        row = row_of(part._known_type)
    elif "interleaved" not in given or is_known(part):
        raise refusal(part, wanted)
    else:
        row = unknown_row(part._json, given["interleaved"])
    if key := unmet(part, row.requires, row.defaults):
        use = use_of(part._known_type or "") or "leave its queries and keys as they are"
        remedy = f"{use}, or write {json.dumps({key: row.requires[key][0]})} if yours has one"
        what = f"is {shown(part._json.get(key, row.defaults.get(key)))}: this model has no rotary embedding"
        raise wrong(part._at(key), what, remedy=remedy)
    return Found(part, row, outer, given)


def read_layers(config: Source, given: Json) -> list[dict[str, Any] | None]:
    """The arguments of the `RotaryEmbedding` of each layer, one mapping for all that are alike; None: it is not rotated."""
    found = find(config, given)
    if number_of_layers(found.part, found.row) is None:
        key = found.row.names_of("num_hidden_layers")[0]
        raise wrong(found.part._at(key), "is missing, the number of layers", remedy="write it")
    return _arguments_of(found, layer_types(found))


def read_layer(config: Source, layer_type: str | None, given: Json) -> dict[str, Any]:
    """The arguments of the `RotaryEmbedding` of all layers, or of those of one type, which are alike."""
    found = find(config, given)
    layers = layer_types(found)
    chosen = layers if layer_type is None else _of_type(found, layers, text("layer_type", layer_type))
    different = {id(each): each for each in _arguments_of(found, chosen)}
    first, *others = different.values()
    if first is not None and all(each == first for each in others):
        return first
    rotated = [layer for layer in chosen if layer.is_rotated]
    which = "was not given, and the layers of this model" if layer_type is None else f"is {layer_type!r}, whose layers"
    left = [str(layer.at) for layer in chosen if not layer.is_rotated]
    what = f"are not all rotated: {', '.join(left[:3])}{', ..' * (len(left) > 3)} are not"
    remedy = "use RotaryEmbedding.layers_from_config(config), which has an entry for each layer"
    if not rotated:
        what, remedy = "are not rotated", "leave their queries and keys as they are"
    elif layer_type is None and len({layer.name for layer in chosen}) > 1:
        remedy += f", or give layer_type=, one of {', '.join(dict.fromkeys(repr(layer.name) for layer in rotated))}"
    raise refused(ValueError, "layer_type", f"{which} {what if left else 'have rotations of their own'}", remedy=remedy)


def _of_type(found: Found, layers: list[LayerType], name: str) -> list[LayerType]:
    """The layers of one type; one without an index where the file has none, and the type is known."""
    row, entries = found.row, found.rope.entries
    is_said = bool(row.layers or row.layer_types or row.rotated_layers or entries) or has_types(found.part)
    known = [*row.layers, *entries, *(layer.name for layer in layers)] if is_said else []
    other = LayerType(None, name, is_rotated(found, name))
    if other.is_rotated and "base" not in found.given and name not in known:
        remedy = f"give one of {', '.join(dict.fromkeys(map(repr, known)))}"
        remedy = remedy if known else "leave it out: the config has one type"
        raise refused(ValueError, "layer_type", f"is {name!r}", remedy=remedy)
    return [layer for layer in layers if name in (layer.name, row.entries.get(layer.name))] or [other]


# The arguments


def _arguments_of(found: Found, layers: list[LayerType]) -> list[dict[str, Any] | None]:
    """Those of the `RotaryEmbedding` of each layer, one mapping for all that are alike; None: it is not rotated."""
    has_lists = any(isinstance(found.part._json.get(key), (list, tuple)) for key in found.row.number_keys)
    keys = [(layer.name, repr(found.own.get(layer.at)), layer.at if has_lists else None) for layer in layers]
    first = {key: layer for key, layer in zip(reversed(keys), reversed(layers), strict=True) if layer.is_rotated}
    ropes = {key: read_rope(found, layer) for key, layer in first.items()}
    made = {key: _arguments(rope, found.given) for key, rope in ropes.items()}
    if ropes:
        refuse_unread(found, [*ropes.values()])
    return [made[key] if layer.is_rotated else None for key, layer in zip(keys, layers, strict=True)]


def _arguments(rope: Rope, given: Json) -> dict[str, Any]:
    """The arguments of the `RotaryEmbedding` of a layer that is rotated."""
    row, width, read, seq_len = rope.entry.row, rope.width, rope.scaling, given.get("seq_len")
    base = None if rope.base is None else rope.base.found
    result: dict[str, Any] = {"rotary_dim": width + width % 2, "interleaved": rope.interleaved, "form": row.form}
    if row.conjugate:
        result["conjugate"] = True
    if rope.head_dim is not None and rope.head_dim >= result["rotary_dim"]:
        result["head_dim"] = rope.head_dim
    if given.get("mrope"):
        result["frequency_axes"] = _frequency_axes(rope)
    if "scaling" in given:
        return {**result, "base": base, "scaling": given["scaling"], "seq_len": seq_len}
    rope_type = read["rope_type"].found if "rope_type" in read else None
    if [*read] == ["rope_type"] and rope_type == "default" and width % 2 == 0:
        return {**result, "base": base}
    values = {**({} if rope.base is None else {"rope_theta": rope.base}), **read}
    places = {key: path_text(value.path) for key, value in values.items() if value.path}
    scaling = ScalingOfFile(path_text(rope.entry.place), {key: each.found for key, each in values.items()}, places)
    if width % 2 == 0:
        return {**result, "scaling": scaling, "seq_len": seq_len}
    # base**(-2k / width) for an odd width: every second frequency of the double width.
    if rope_type not in (None, "default", "linear"):
        what, expected = f"gives a rotated part of {width} columns", f"an even number for {rope_type!r}"
        raise wrong(rope.entry.part._at("partial_rotary_factor"), what, expected, "give rotary_dim=")
    doubled = read_scaling(2 * width, base=None, scaling=scaling, seq_len=None)
    frequencies = doubled.radians or ideal_frequencies(2 * width, doubled.base).tolist()
    return {**result, "frequencies": frequencies[::2]}


def _frequency_axes(rope: Rope) -> Any:
    """Which coordinate each frequency belongs to: time 0, height 1, width 2."""
    row, entry = rope.entry.row, rope.entry
    division, default = row.mrope or ("", None)
    if division in (told := table()["refusals"]["mrope"]):
        remedy = "leave it out for text, or use one of fastpe.rotary_layouts"
        raise refused(ValueError, "mrope", f"is True, but {told[division]}", remedy=remedy)
    mixed = entry.inner("mrope_interleaved")
    if mixed.found is not None and bool(mixed.found) != (division == "strides"):
        found, remedy = f"is {shown(mixed.found)}, which transformers does not read", "use one of fastpe.rotary_layouts"
        raise wrong(mixed.path, found, remedy=f"leave it out to do as it does, or {remedy}")
    path = entry.inner("mrope_section").path
    sections = default if entry.inner("mrope_section").found is None else entry.inner("mrope_section").found
    if not isinstance(sections, (list, tuple)) or [type(each) for each in sections] != [int] * 3:
        raise wrong(path, f"is {shown(sections)}", "a list of 3 ints", kind=TypeError)
    are_equal = division != "turns" or sections[0] == sections[1]
    if sum(sections) != rope.width // 2 or min(sections) < 0 or not are_equal:
        expected = f"3 numbers whose sum is {rope.width // 2}{', the first two equal' * (division == 'turns')}"
        raise wrong(path, f"is {shown(sections)}", expected)
    return axes_of(division, sections).tolist()
