# SPDX-License-Identifier: BSD-3-Clause
"""The numbers by which the layers of one type are rotated, in one form, whatever the form of the file is.

A file has them at its top and in `rope_scaling`, as earlier releases of transformers write it, in `rope_parameters`, or
there in an entry for each type of layers. What it leaves out is the row's.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fastpe._arguments import flag, integer, shown
from fastpe._config.file import Json, Path, Value, first, not_read, path_text, read_number, read_size, wrong
from fastpe._config.model import ModelConfig
from fastpe._config.model_type import Found, ModelType
from fastpe._config.refusals import other_models
from fastpe._config.tables import table
from fastpe._rotary.scaling import common_keys, is_known_type, largest_dim, lengths, read_base

# Keys of the same meaning in every rope mapping.
_read_here = (*common_keys, *lengths)
# HunYuan's files have these keys together with an alpha, and nothing reads them.
_unused_with_alpha = ("factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")
_longest, _trained, _partial = "max_position_embeddings", "original_max_position_embeddings", "partial_rotary_factor"


class Entry(NamedTuple):
    """Where the numbers of some layers stand.

    `written` is their rope mapping, which stands at `place`, and `mapping` the same without what is null or changes nothing.
    It may be the config's (is_given), in an entry for this type of layers (is_nested), or the row's. `own` has the keys of
    the single layer `at`.
    """

    part: ModelConfig
    row: ModelType
    written: Json
    place: Path
    mapping: Json = types.MappingProxyType({})
    is_given: bool = True
    is_nested: bool = False
    own: Json = types.MappingProxyType({})
    at: int | None = None

    @property
    def written_type(self) -> Any:
        """The type of the scaling by the mapping's own word."""
        return self.mapping.get("rope_type", self.mapping.get("type", "default"))

    @property
    def rope_type(self) -> Any:
        """The type by the word that `RotaryEmbedding` has for it."""
        given = self.written_type
        return {"mrope": "default", **self.row.types}.get(given, given) if isinstance(given, str) else given

    def inner(self, key: str) -> Value:
        """A value of the rope mapping."""
        return Value(self.mapping.get(key), (*self.place, key))

    def outer(self, key: str, *, null_counts: bool = False) -> Value:
        """What the config says under any name of `key`, or else the row.

        With `null_counts`, null in the config is a value, not a missing key.
        """
        names, defaults = self.row.names_of(key), self.row.defaults
        written = next((value for value in map(self._named, names) if value.found is not None), None)
        if written is not None:
            return written
        if null_counts and any(name in self.part._json for name in names):
            defaults = {}
        name = next((name for name in names if name in defaults), [*names, key][0])
        return Value(defaults.get(name), self.part._at(name))

    def number(self, key: str) -> Value:
        """A number of the rope mapping, or else of the config, or else of the row.

        If the config has no rope mapping, transformers takes the row's, and does not look at the config's own key then.
        """
        inner, outer = self.inner(key), self.outer(key)
        if not self.row.is_known and None not in (inner.found, outer.found) and inner.found != outer.found:
            found = f"is {shown(outer.found)}, and {path_text(inner.path)} is {shown(inner.found)}"
            remedy = f"leave one out, or give {'base=' if key == 'rope_theta' else 'rotary_dim='}"
            raise wrong(outer.path, found, "the same", remedy)
        chosen = first(inner, outer, Value(getattr(self.row, key), self.part._at(key)))
        if not self.is_given and outer.found not in (None, chosen.found):
            remedy = f'write {chosen.found!r}, or {{"rope_parameters": {{"{key}": {shown(outer.found)}, ..}}}}'
            raise not_read(outer.path, outer.found, remedy)
        return chosen if chosen.found is None else Value(read_number(chosen), chosen.path)

    def null_path(self, key: str) -> Path | None:
        """Where null stands, if it stands where transformers reads this key: in the rope mapping, or else in the config."""
        if key in self.written:
            return (*self.place, key) if self.written[key] is None else None
        # The first of several names is optional in transformers, and it reads no key of an inner mapping.
        name = next((name for name in reversed(self.row.names_of(key)) if "." not in name), "")
        is_read = not self.row.nested or key in self.row.names
        is_null = is_read and name in self.part._json and self.outer(key, null_counts=True).found is None
        return self.part._at(name) if is_null else None

    def _named(self, name: str) -> Value:
        """What the config says under one name, which may be that of a key in an inner mapping."""
        outer, _, inner = name.partition(".")
        value = self.part._value(outer)
        if name in self.own:
            value = Value(self.own[name], self.part._at("per_layer_config", str(self.at), name))
        if inner and isinstance(value.found, Mapping):
            value = Value(value.found.get(inner), (*value.path, inner))
        return _of_layer(value, self.at) if isinstance(value.found, (list, tuple)) else value


def _of_layer(value: Value, at: int | None) -> Value:
    """The value of a list with one for each layer; where no layer is meant, its only value besides 0."""
    values, path = value
    if at is not None and at < len(values):
        return Value(read_number(Value(values[at], (*path, at))), (*path, at))
    different = sorted({read_number(Value(each, path)) for each in values if each})
    if at is not None or len(different) != 1:
        expected = "one number for the layers that are meant" if at is None else "one for each layer"
        remedy = "write one number in place of the list, or give base= or rotary_dim="
        raise wrong(path, f"is {shown(values)}", expected, remedy)
    return Value(different[0], path)


def entry_of(found: Found, name: str) -> Entry:
    """The rope mapping of one type of layers, which are rotated."""
    part, model, (key, given, nested) = found.part, found.row, found.rope
    place, known, name = part._at(key), model.layers, model.entries.get(name, name)
    row, differ = model.of_layer(name), bool(known or model.nested)
    if differ and given in model.neutral.get(key, []):
        given = {}
    if given and not model.reads_mapping:
        raise not_read(place, dict(given), "write rope_theta in place of it, or give base= and scaling=")
    if nested:
        _require_entries(found, name)
        # transformers looks for truncate next to the entries only.
        beside = {each: given[each] for each in ("truncate",) if each in given}
        inside = {each: value for each, value in (nested.get(name) or {}).items() if each != "truncate"}
        entry = Entry(part, row, inside | beside, (*place, name), is_nested=True)
    elif not differ:
        entry = Entry(part, model, given or model.rope, place, is_given=bool(given))
    elif not known or (given and (key == "rope_parameters" or model.nested)):
        expected = f"a mapping for each type of layers: {', '.join(known) or 'full_attention, ..'}"
        remedy = f'write {{"{name}": {{..}}, ..}}, or give scaling= and base=' if known else ""
        raise wrong(
            place if known else part._at("rope_parameters"), f"is {shown(dict(given) or None)}", expected, remedy
        )
    elif not (given and row.scaled):
        entry = Entry(part, row, row.rope, place, is_given=False)
    else:
        entry = Entry(part, row, given, place)
        for each in ("rope_theta", _partial) if row.own_theta else ():
            if given.get(each) is not None:
                raise not_read((*place, each), given[each], f"write {row.names_of(each)[0]} next to {key}")
    written, wants_type = entry.written, row.scaled == "rope_type" and entry.is_given and (differ or nested)
    if wants_type and "rope_type" not in written and written.get("type", "default") != "default":
        remedy = "write rope_type, which transformers looks for in models of this type, or give scaling= and base="
        raise wrong(entry.place, f"is {shown(dict(written))}, without a rope_type", remedy=remedy)
    # Null is a value of truncate.
    kept = {each: value for each, value in written.items() if value is not None or each == "truncate"}
    neutral = {each for each in table()["neutral_factors"] if kept.get(each) == 1}
    return entry._replace(mapping={each: value for each, value in kept.items() if each not in neutral})


def _require_entries(found: Found, name: str) -> None:
    """Refuse entries that transformers does not read."""
    (key, given, nested), known = found.rope, found.row.layers
    place = found.part._at(key)
    if key == "rope_scaling" and known:
        raise not_read(place, dict(given), "write rope_parameters in place of rope_scaling")
    # Names that are not types of layers count only together.
    missing = [*({*known} - {*nested, *table()["layer_types"]}), *({name} - {*nested, *known})]
    if missing:
        expected = f"an entry for each type of layers{', ' * bool(known)}{', '.join(known)}"
        raise wrong((*place, missing[0]), "is missing", expected, "write it")
    mapping = nested.get(name) or {}
    for each, value in given.items():
        is_known = each == "truncate" or (each in _read_here and (value is None or mapping.get(each) is not None))
        if each not in nested and not is_known:
            beside = f"is {shown(value)}, next to {', '.join(nested)}"
            raise wrong((*place, each), beside, "only types of layers", "move it into the types that it is for")


class Rope(NamedTuple):
    """How a layer is rotated. `scaling` has a rope_type and its numbers, each with its place, without the base."""

    head_dim: int | None
    width: int
    share: float
    interleaved: bool
    base: Value | None
    scaling: dict[str, Value]
    entry: Entry


def read_rope(found: Found, name: str, at: int | None, own: Json, given: Json) -> Rope:
    """The numbers of the layer `at`, whose type is `name`; arguments that are `given` count, and not keys."""
    entry = entry_of(found, name)._replace(own=own, at=at)
    row, part, scaling = entry.row, found.part, given.get("scaling")
    written = part._json.get(row.pairing_key) if row.pairing_key and "interleaved" not in given else None
    usual = row.interleaved if written is None else flag(part._place(row.pairing_key), written)
    head = _head(entry)
    width, share = (given["rotary_dim"], 1.0) if "rotary_dim" in given else _width(entry, head)
    base = Value(given["base"], ()) if "base" in given else None
    if base is None and (not isinstance(scaling, Mapping) or scaling.get("rope_theta") is None):
        base = _base(entry)
    read = {} if scaling is not None or base is None else _scaling(entry, base, width)
    return Rope(head.found, width, share, given.get("interleaved", usual), base, read, entry)


# The base, and the width


def _base(entry: Entry) -> Value:
    """The base of the frequencies."""
    row, part, key = entry.row, entry.part, "rope_theta"
    names, of_layers = row.names_of(key), row.rotated_layers.get("list", "")
    if path := entry.null_path(key):
        # In OLMo Hybrid no layer is rotated then, and other models cannot compute.
        raise wrong(path, "is null", "a number", "leave queries and keys as they are, or give base=")
    if of_layers in names and part._json.get(of_layers) is not None:
        found = entry.outer(key)
    else:
        is_outer = bool(row.layers) and any(name in part._json for name in names)
        if entry.is_nested and (row.nested or row.own_theta or is_outer) and key not in entry.mapping:
            raise wrong(
                (*entry.place, key), "is missing, and nothing takes its place", remedy="write it, or give base="
            )
        found = entry.number(key)
    if found.found is None:
        remedy = f"give base={other_models(part._json)}"
        raise wrong(part._at(names[0]), "is missing, and its default is not known", remedy=remedy)
    if read_number(found) == 0.0:
        raise wrong(found.path, "is 0: nothing is rotated", remedy="leave queries and keys as they are")
    return Value(read_base(path_text(found.path), found.found), found.path)


def _head(entry: Entry) -> Value:
    """Columns of a head, or of its tail where this is what is rotated; None if the config does not say."""
    tail = "qk_rope_head_dim" if "qk_rope_head_dim" in entry.row.width[0] else "head_dim"
    own = [term for term in (tail, *entry.row.width) if term in entry.own]
    for term in (*own, *entry.row.width):
        size = _term(entry, term)
        if size.found is not None:
            break
    return size


def _term(entry: Entry, term: str) -> Value:
    """A number of columns, or a quotient as "2 * hidden_size // num_attention_heads", at the place of its last key; not 0."""
    dividend, _, divisor = term.partition(" // ")
    *factors, last = dividend.split(" * ")
    size = entry.outer(last, null_counts=True)
    above = math.prod(map(int, factors)) * read_size(size) if size.found else 0
    heads = entry.outer(divisor) if divisor else Value(1, ())
    below = read_size(heads) if heads.found else 0
    if not above or not below:
        return Value(None, size.path)
    if above % below and [size.found, below] != [entry.row.defaults.get(key) for key in (last, divisor)]:
        found = f"is {size.found}, and {heads.path[-1]} is {below}"
        raise wrong(size.path, found, "a multiple of the number of heads", "correct them, or give rotary_dim=")
    return Value(above // below, size.path)


def _width(entry: Entry, head: Value) -> tuple[int, float]:
    """Columns that are rotated, and which part of the head they are; an odd number has frequencies of its own."""
    row, part, key = entry.row, entry.part, entry.row.rotary_dim
    exact = Value(part._json.get(key, row.defaults.get(key)), part._at(key))
    if key and exact.found is not None and {**part._json, **entry.mapping}.get(_partial) is None:
        width = read_size(exact, largest_dim)
        return width, width / (head.found or width)
    if head.found is None:
        # The tail of a head is the width only in models that have one.
        terms = [term for term in row.width if term != "qk_rope_head_dim"] or [*row.width]
        missing, *others = [*row.names_of(terms[0]), *terms[1:]]
        found = f"is missing, the width of a head{', and so is ' * bool(others)}{' and '.join(others)}"
        remedy = f"give rotary_dim=, the number of columns that are rotated{other_models(part._json)}"
        raise wrong(part._at(missing), found, remedy=remedy)
    width, share = read_size(head, largest_dim), _share(entry)
    if entry.rope_type == "proportional" or row.partial == "ignored" or share.found == 1.0:
        return width, share.found
    if not row.partial:
        remedy = f"leave it out, as transformers rotates whole heads, or give rotary_dim={int(width * share.found)}"
        raise not_read(share.path, share.found, remedy)
    return read_size(Value(int(width * share.found), share.path)), share.found


def _share(entry: Entry) -> Value:
    """The part of the head that is rotated."""
    row, path, usual = entry.row, entry.null_path(_partial), entry.row.partial_rotary_factor
    if path and row.partial is True and usual is not None and not row.rotary_dim:
        raise wrong(path, "is null, which is the whole head in transformers", remedy=f"write 1.0 for it, or {usual}")
    share, usual = entry.number(_partial), row.rope.get(_partial)
    if share.found is None and entry.is_nested and row.partial is True and usual not in (None, 1.0):
        raise wrong(
            (*entry.place, _partial), "is missing in the entry of these layers", remedy=f"write 1.0, or {usual}"
        )
    if share.found is not None and not 0.0 < share.found <= 1.0:
        raise wrong(share.path, f"is {share.found!r}", "a number above 0, at most 1")
    return first(share, Value(1.0, share.path))


# The scaling


def _scaling(entry: Entry, base: Value, width: int) -> dict[str, Value]:
    """The keys of the rope mapping that `RotaryEmbedding` takes, without the base unless the scaling multiplies it."""
    row, mapping, rope_type = entry.row, entry.mapping, entry.rope_type
    if row.dynamic and not mapping:
        factor, length = (entry.part._value(key, row.defaults.get(key)) for key in row.dynamic)
        scaled = {"rope_type": Value("dynamic", ()), "factor": factor, _longest: length}
        return {"rope_type": Value("default", ())} if factor.found in (None, 1) else scaled
    if isinstance(entry.written_type, str) and row.types.get(entry.written_type) == "base_ntk":
        return _base_ntk(entry, base, width)
    key = "rope_type" if "rope_type" in mapping else "type"
    _require_factors(entry, key)
    dropped = {*_read_here, *table()["unused_keys"]}
    if rope_type == "default" and "mrope_section" in mapping:
        dropped.add("interleaved")  # Qwen3-Omni's files have it with the sections, and nothing reads it
    if rope_type == "dynamic" and mapping.get("alpha"):
        dropped |= {*_unused_with_alpha}
    # The scaling's reader names the key of a type that it does not know, and says of another type that it does not count.
    type_key = "rope_type" if is_known_type(rope_type) or "type" not in mapping else key
    result = {type_key: Value(rope_type, (*entry.place, key))}
    result |= {name: entry.inner(name) for name in mapping if name not in dropped}
    if rope_type != "default" and "type" in mapping and mapping["type"] != mapping.get("rope_type", mapping["type"]):
        result["type"] = entry.inner("type")
    if rope_type == "yarn":
        # 0 stands for the default.
        unset = [name for name in ("beta_fast", "beta_slow") if name in result and not result[name].found]
        usual = {name: Value(value, (*entry.place, name)) for name, value in row.yarn.items()}
        result = {**usual, **{name: value for name, value in result.items() if name not in unset}}
    # Each type reads of these what it needs.
    follows = {key: read(entry) for key, read in _following.get(str(rope_type), {}).items()}
    result |= {name: value for name, value in follows.items() if value.found is not None}
    if len(result) > 1 and not {"rope_type", "type"} & {*mapping}:
        del result["rope_type"]  # that reader says that it is missing
    return result


def _base_ntk(entry: Entry, base: Value, width: int) -> dict[str, Value]:
    """Alibaba-NLP/new-impl:modeling.py, NTKScalingRotaryEmbedding, whose tables are at least as long as the scaled length."""
    others = {key: entry.inner(key) for key in entry.mapping if key not in _read_here}
    factor = entry.inner("factor")
    times = max(read_number(factor), 1.0)
    read = {
        "factor": factor._replace(found=times ** (2 / width)),
        "rope_theta": base._replace(found=base.found * times),
    }
    return {**others, "rope_type": Value("linear", ()), **read}


def _require_factors(entry: Entry, key: str) -> None:
    """Refuse types that models of this type do not have, those that systems read differently, and missing factors."""
    row, mapping, rope_type, place = entry.row, entry.mapping, entry.rope_type, (*entry.place, key)
    written = entry.written.get(key)
    for name, word in {**{name: name for name in mapping}, key: rope_type}.items():
        if isinstance(word, str) and word in table()["told_scalings"]:
            found = f"is {shown(mapping[name])}, which transformers does not have"
            raise wrong((*entry.place, name), found, remedy=table()["told_scalings"][word])
    if row.rope_types and rope_type not in row.rope_types:
        raise wrong(place, f"is {shown(written)}", " or ".join(row.rope_types), "correct it, or give scaling=")
    needed: tuple[str, ...] = ()
    if rope_type == "longrope":
        # Early Phi 3 files have another word for it.
        needed = ("short_factor", "long_factor") if written != rope_type else ()
        needed += ("short_mscale", "long_mscale") if row.longrope == "mscale" else ()
    if not {*needed} <= {*mapping}:
        found = f"is {written!r} without {' and '.join(needed)}, which transformers refuses in models of this type"
        raise wrong(place, found, remedy="write them, or correct the type")
    if rope_type == "yarn" and "factor" not in entry.written:
        remedy = f'write it, or "factor": null for {_longest} / {_trained}'
        raise wrong(place, "is 'yarn' without a factor, which transformers refuses", remedy=remedy)


def trained_length(entry: Entry) -> Value:
    """The config's own key wins, but for models with types of layers, where it is ignored."""
    outer = [] if entry.is_nested or entry.row.layers else [entry.outer(_trained)]
    return first(*outer, entry.inner(_trained), _longest_length(entry))


def _longest_length(entry: Entry) -> Value:
    return first(entry.outer(_longest), entry.inner(_longest))


def with_mscale(scaling: dict[str, Value], seq_len: int | None) -> dict[str, Value]:
    """PhiMoE: the length chooses between two attention factors, as between the divisors."""
    result = {key: value for key, value in scaling.items() if key not in ("short_mscale", "long_mscale")}
    if seq_len is not None:  # RotaryEmbedding says that it needs the length
        is_long = integer("seq_len", seq_len, 0) > read_size(scaling[_trained])
        result["attention_factor"] = scaling["long_mscale" if is_long else "short_mscale"]
    return result


_following: dict[str, dict[str, Callable[[Entry], Value]]] = {
    "dynamic": {_longest: _longest_length},
    "llama3": {_trained: trained_length},
    "longrope": {_trained: trained_length, _longest: _longest_length},
    "proportional": {_partial: _share},
    "yarn": {_trained: trained_length, _longest: _longest_length},
}
