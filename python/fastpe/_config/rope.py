# SPDX-License-Identifier: BSD-3-Clause
"""The numbers by which the layers of one type are rotated, in one form, whatever the form of the file is.

A file has them at its top and in `rope_scaling`, as earlier releases of transformers write it, in `rope_parameters`, or
there in an entry for each type of layers. What it leaves out is the row's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fastpe._arguments import flag, shown
from fastpe._config.file import Json, Path, Value, first, path_text, read_number, read_size, table, wrong
from fastpe._config.layer_types import Found, LayerType
from fastpe._config.model import ModelConfig
from fastpe._config.model_type import ModelType
from fastpe._config.refusals import other_models
from fastpe._rotary.scaling import common_keys, largest_dim, lengths, of_null, read_base

# Keys of the same meaning in every rope mapping.
_read_here = (*common_keys, *lengths)
_longest, _trained, _partial = "max_position_embeddings", "original_max_position_embeddings", "partial_rotary_factor"
# Keys that transformers refuses to do without. Null is a value of the first.
_needed = {"yarn": ("factor",), "longrope": ("short_factor", "long_factor")}
_mscales = ("short_mscale", "long_mscale")


class Entry(NamedTuple):
    """The rope mapping of one layer, and its place: of the whole config, an entry for its type, or the row's."""

    part: ModelConfig
    row: ModelType
    mapping: Json
    place: Path
    form: str  # "whole", "entry", "row"
    own: Json  # keys of only this layer
    at: int | None

    @property
    def type_key(self) -> str:
        """The key that names the scaling."""
        return "rope_type" if self.mapping.get("rope_type") is not None else "type"

    @property
    def rope_type(self) -> Any:
        """The scaling, by the word that `RotaryEmbedding` has for it."""
        given = first(self.inner(self.type_key), Value("default", ())).found
        return {"mrope": "default", **self.row.types}.get(given, given) if isinstance(given, str) else given

    def inner(self, key: str) -> Value:
        """A value of the rope mapping."""
        return Value(self.mapping.get(key), (*self.place, key))

    def outer(self, key: str) -> Value:
        """What the config says under any name of `key`, where null under the last name counts, or else the row."""
        names, defaults = self.row.names_of(key), self.row.defaults
        for name in names:
            if (value := self._named(name)).found is not None:
                return value
        if names and names[-1] in self.part._json:
            return Value(None, self.part._at(names[-1]))
        name = next((name for name in names if name in defaults), [*names, key][0])
        return Value(defaults.get(name), self.part._at(name))

    def number(self, key: str) -> Value:
        """A number of the rope mapping, or else of the config, or else of the row.

        If the config has no rope mapping, transformers takes the row's, and does not look at the config's own key then.
        """
        row, inner, outer = self.row, self.inner(key), self.outer(key)
        usual, argument = getattr(row, key), "base=" if key == "rope_theta" else "rotary_dim="
        is_needed = key == "rope_theta" or (row.partial is True and row.rope.get(key, 1.0) != 1.0)
        if self.form == "entry" and is_needed and key not in self.mapping:
            raise wrong(inner.path, "is missing", remedy=f"write it, or give {argument}")
        differ = None not in (inner.found, outer.found) and inner.found != outer.found
        if differ and (self.form == "row" or not row.is_known):
            other = path_text(inner.path) if self.form != "row" else "that of the rope mapping of its class"
            found = f"is {shown(outer.found)}, and {other} is {shown(inner.found)}"
            raise wrong(outer.path, found, "the same", f"leave out the one that is not meant, or give {argument}")
        chosen, last = first(inner, outer), row.names_of(key)[-1:]
        if chosen.found is not None:
            return Value(read_number(chosen), chosen.path)
        if usual is not None and (key in self.mapping or not self.part._json.keys().isdisjoint(last)):
            raise wrong(chosen.path, "is null", "a number", f"write {usual} for the default, or give {argument}")
        return Value(usual, chosen.path)

    def _named(self, name: str) -> Value:
        """What the config says under one name, which may be that of a key in an inner mapping."""
        outer, _, inner = name.partition(".")
        value = self.part._value(outer)
        if name in self.own:
            value = Value(self.own[name], self.part._at("per_layer_config", str(self.at), name))
        if inner and isinstance(value.found, Mapping):
            value = Value(value.found.get(inner), (*value.path, inner))
        if not isinstance(value.found, (list, tuple)):
            return value
        if self.at is None or self.at >= len(value.found):
            raise wrong(value.path, f"is {shown(value.found)}", "one number for the layers that are meant")
        value = Value(value.found[self.at], (*value.path, self.at))
        return Value(read_number(value), value.path)


def entry_of(found: Found, layer: LayerType) -> Entry:
    """The rope mapping of a layer. One that transformers does not read for models of this type is refused."""
    part, model, (key, given, nested) = found.part, found.row, found.rope
    name, types = model.entries.get(layer.name, layer.name), [*model.layers]
    row, mapping, place, form = model.of_layer(name), given, part._at(key), "whole"
    if nested:
        mapping, place, form = nested.get(name) or {}, (*place, name), "entry"
        shared = {*nested, *(each for each in _read_here if mapping.get(each) is not None)}
        # Names that are not types of layers count only together.
        is_read = {name, *types} - {*table()["layer_types"]} <= {*nested} and name in nested and {*given} <= shared
        is_read &= not (types and key == "rope_scaling")
        is_read &= "truncate" not in mapping  # transformers looks for it beside the entries
    elif types or model.nested:
        # An earlier form: one mapping, which counts for some types, and a base for each beside it.
        is_read = bool(types) and (not given or (key == "rope_scaling" and not model.nested))
        is_read &= not {"rope_theta", _partial} & {*given}
        mapping = given if row.scaled else {}
    else:
        is_read = model.reads_mapping or not given
    if row.scaled == "rope_type" and "type" in mapping:
        is_read &= "rope_type" in mapping
    if not is_read and not {"base", "scaling", "rotary_dim"} <= {*found.given}:
        expected = f"an entry with its rope_type and rope_theta for each type of layers: {', '.join(types) or name}"
        expected = expected if nested or types or model.nested else "rope_theta beside it"
        remedy = "write it so, or give base=, scaling= and rotary_dim="
        raise wrong(part._at(key), f"is {shown(given)}, which transformers does not read here", expected, remedy)
    if form == "whole" and not (mapping and is_read):
        mapping, form = row.rope, "row"
    return Entry(part, row, mapping, place, form, found.own.get(layer.at, {}), layer.at)


class Rope(NamedTuple):
    """How a layer is rotated. `scaling` has a rope_type and its numbers, each with its place, without the base."""

    head_dim: int | None
    width: int
    share: float
    interleaved: bool
    base: Value | None
    scaling: dict[str, Value]
    entry: Entry


def read_rope(found: Found, layer: LayerType) -> Rope:
    """The numbers of a layer; arguments that are given count, and not keys."""
    entry, given, part = entry_of(found, layer), found.given, found.part
    row, scaling = entry.row, given.get("scaling")
    written = part._json.get(row.pairing_key) if row.pairing_key and "interleaved" not in given else None
    usual = row.interleaved if written is None else flag(part._place(row.pairing_key), written)
    head = _head(entry)
    width, share = (given["rotary_dim"], 1.0) if "rotary_dim" in given else _width(entry, head)
    base = Value(given["base"], ()) if "base" in given else None
    if base is None and (not isinstance(scaling, Mapping) or scaling.get("rope_theta") is None):
        base = _base(entry)
    read = {} if scaling is not None or base is None else _scaling(entry, base, width, given.get("seq_len"))
    return Rope(head.found, width, share, given.get("interleaved", usual), base, read, entry)


# The base, and the width


def _base(entry: Entry) -> Value:
    """The base of the frequencies."""
    row, part, key = entry.row, entry.part, "rope_theta"
    names, of_layers = row.names_of(key), row.rotated_layers.get("list", "")
    is_of_layer = of_layers in names and part._json.get(of_layers) is not None
    found = entry.outer(key) if is_of_layer else entry.number(key)
    if found.found is None:
        remedy = f"give base={other_models(part._json)}"
        raise wrong(found.path, "is missing, and its default is not known", remedy=remedy)
    return Value(read_base(path_text(found.path), found.found), found.path)


def _head(entry: Entry) -> Value:
    """Columns of a head, or of its tail where this is what is rotated; None if the config does not say."""
    width = entry.row.width
    tail = "qk_rope_head_dim" if "qk_rope_head_dim" in width[0] else "head_dim"
    own = [term for term in (tail, *width) if term in entry.own]
    sizes = (_term(entry, term) for term in (*own, *width))
    return next((size for size in sizes if size.found is not None), Value(None, ()))


def _term(entry: Entry, term: str) -> Value:
    """A number of columns, or a quotient as "2 * hidden_size // num_attention_heads", at the place of its last key; not 0."""
    dividend, _, divisor = term.partition(" // ")
    *factors, last = dividend.split(" * ")
    size, heads = entry.outer(last), entry.outer(divisor) if divisor else Value(1, ())
    if not size.found or not heads.found:
        return Value(None, size.path)
    above, below = math.prod(map(int, factors)) * read_size(size), read_size(heads)
    if above % below and [size.found, below] != [entry.row.defaults.get(key) for key in (last, divisor)]:
        found = f"is {size.found}, and {heads.path[-1]} is {below}"
        raise wrong(size.path, found, "a multiple of the number of heads", "correct them, or give rotary_dim=")
    return Value(above // below, size.path)


def _width(entry: Entry, head: Value) -> tuple[int, float]:
    """Columns that are rotated, and which part of the head they are; an odd number has frequencies of its own."""
    row, part, key = entry.row, entry.part, entry.row.rotary_dim
    exact = part._value(key, row.defaults.get(key))
    if key and exact.found is not None and first(entry.inner(_partial), entry.outer(_partial)).found is None:
        width = read_size(exact, largest_dim)
        return width, width / (head.found or width)
    if head.found is None:
        names = " or ".join(name for term in row.width for name in row.names_of(term))
        remedy = f"give rotary_dim=, the number of columns that are rotated{other_models(part._json)}"
        raise wrong(part._path, f"has no {names}, the width of a head", remedy=remedy)
    width, share = read_size(head, largest_dim), _share(entry)
    if entry.rope_type == "proportional" or row.partial == "ignored" or share.found == 1.0:
        return width, share.found
    if not row.partial:
        found = f"is {shown(share.found)}, and transformers rotates whole heads in models of this type"
        raise wrong(share.path, found, remedy=f"leave it out, or give rotary_dim={int(width * share.found)}")
    return read_size(Value(int(width * share.found), share.path)), share.found


def _share(entry: Entry) -> Value:
    """The part of the head that is rotated."""
    share = entry.number(_partial)
    if share.found is not None and not 0.0 < share.found <= 1.0:
        raise wrong(share.path, f"is {share.found!r}", "a number above 0, at most 1")
    return first(share, Value(1.0, share.path))


# The scaling


def _scaling(entry: Entry, base: Value, width: int, seq_len: int | None) -> dict[str, Value]:
    """The keys of the rope mapping that `RotaryEmbedding` takes, without the base unless the scaling multiplies it."""
    row, mapping, rope_type = entry.row, entry.mapping, entry.rope_type
    if row.dynamic and not mapping:
        factor, length = (entry.part._value(key, row.defaults.get(key)) for key in row.dynamic)
        scaled = {"rope_type": Value("dynamic", ()), "factor": factor, _longest: length}
        return {"rope_type": Value("default", ())} if factor.found in (None, 1) else scaled
    data = table()
    unused = {*_read_here, *(key for key in data["neutral_factors"] if mapping.get(key) == 1)}
    unused |= {name for key, names in data["unused_keys"].items() if not key or mapping.get(key) for name in names}
    read = {key for key, value in mapping.items() if value is not None or key in of_null} - unused
    result = {key: entry.inner(key) for key in mapping if key in read}
    scaling = {"rope_type": Value(rope_type, (*entry.place, entry.type_key))}
    _require_read(entry, scaling | result)
    if rope_type == "base_ntk" != mapping.get(entry.type_key):
        return result | _base_ntk(entry, base, width)
    # Each type reads of these what it needs.
    follows = {key: read(entry) for key, read in _following.get(str(rope_type), {}).items()}
    result |= {key: value for key, value in follows.items() if value.found is not None}
    if rope_type == "yarn":
        result = {key: Value(value, (*entry.place, key)) for key, value in row.yarn.items()} | result
    if rope_type == "longrope" and row.longrope == "mscale":
        # PhiMoE: the length chooses between two attention factors, as between the divisors.
        short, long = (result.pop(key) for key in _mscales)
        if seq_len is not None:  # RotaryEmbedding says that it needs the length
            result["attention_factor"] = long if seq_len > read_size(result[_trained]) else short
    # Without a type, that reader says that it is missing.
    return scaling | result if entry.inner(entry.type_key).found is not None or not result else result


def _base_ntk(entry: Entry, base: Value, width: int) -> dict[str, Value]:
    """Alibaba-NLP/new-impl:modeling.py, NTKScalingRotaryEmbedding, whose tables are at least as long as the scaled length."""
    factor = entry.inner("factor")
    times = max(read_number(factor), 1.0)
    numbers = {"factor": Value(times ** (2 / width), factor.path), "rope_theta": Value(base.found * times, base.path)}
    return {"rope_type": Value("linear", ()), **numbers}


def _require_read(entry: Entry, scaling: dict[str, Value]) -> None:
    """Refuse types that models of this type do not have, those that systems read differently, and missing keys."""
    row, told, (rope_type, place) = entry.row, table()["told_scalings"], scaling["rope_type"]
    for key, value in scaling.items():
        word = value.found if key == "rope_type" else key
        if isinstance(word, str) and word in told:
            found = f"is {shown(value.found)}, which transformers does not have"
            raise wrong(value.path, found, remedy=told[word])
    written = shown(entry.mapping.get(entry.type_key))
    if row.rope_types and rope_type not in row.rope_types:
        raise wrong(place, f"is {written}", " or ".join(row.rope_types), "correct it, or give scaling=")
    needed = [
        *_needed.get(str(rope_type), ()),
        *(_mscales if (rope_type, row.longrope) == ("longrope", "mscale") else ()),
    ]
    if missing := [key for key in needed if key not in (entry.mapping if rope_type == "yarn" else scaling)]:
        found = f"is {written} without {' and '.join(missing)}, which transformers refuses"
        raise wrong(place, found, remedy="write what is missing, or correct the type")


def trained_length(entry: Entry) -> Value:
    """The config's own key wins, but for models with types of layers, where it is ignored."""
    outer = [] if entry.form == "entry" or entry.row.layers else [entry.outer(_trained)]
    return first(*outer, entry.inner(_trained), _longest_length(entry))


def _longest_length(entry: Entry) -> Value:
    return first(entry.outer(_longest), entry.inner(_longest))


_following: dict[str, dict[str, Callable[[Entry], Value]]] = {
    "dynamic": {_longest: _longest_length},
    "llama3": {_trained: trained_length},
    "longrope": {_trained: trained_length, _longest: _longest_length},
    "proportional": {_partial: _share},
    "yarn": {_trained: trained_length, _longest: _longest_length},
}
