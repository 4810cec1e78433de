# SPDX-License-Identifier: BSD-3-Clause
"""The numbers by which the layers of one type are rotated, in one form, whatever the form of the file is.

A file has them at its top and in `rope_scaling`, as earlier releases of transformers write it, in `rope_parameters`, or
there in an entry for each type of layers. What it leaves out is the row's.
"""

from __future__ import annotations

import itertools
import math
import types
from collections.abc import Mapping
from typing import Any, NamedTuple

from fastpe._arguments import flag, integer, shown
from fastpe._config.file import Json, Path, path_text
from fastpe._config.model import ModelConfig
from fastpe._config.model_type import ModelType
from fastpe._config.rows import Found, other_models
from fastpe._config.tables import table
from fastpe._config.values import Value, not_read, read_number, read_size, wrong
from fastpe._rotary.scaling import common_keys, is_known_type, largest_dim, lengths, read_base

# Keys of the same meaning in every rope mapping.
_read_here = (*common_keys, *lengths)
# HunYuan's files have these keys together with an alpha, and nothing reads them.
_unused_with_alpha = ("factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")
_longest, _trained = "max_position_embeddings", "original_max_position_embeddings"


class Entry(NamedTuple):
    """Where the numbers of some layers stand.

    `written` is their rope mapping, which stands at `place`, and `mapping` the same without what is null or changes nothing.
    It may be the config's (is_given), in an entry for this type of layers (is_nested), or the row's. `own` has the keys of
    a single layer.
    """

    part: ModelConfig
    model: ModelType
    written: Json
    place: Path
    mapping: Json = types.MappingProxyType({})
    is_given: bool = True
    is_nested: bool = False
    own: Json = types.MappingProxyType({})
    at: int | None = None

    def inner(self, key: str) -> Value:
        """A value of the rope mapping, or None, and its place."""
        return Value(self.mapping.get(key), (*self.place, key))

    @property
    def written_type(self) -> Any:
        """The type of the scaling by the mapping's own word."""
        return self.mapping.get("rope_type", self.mapping.get("type", "default"))


class Rope(NamedTuple):
    """How a layer is rotated. `scaling` has a rope_type and its numbers, each with its place, without the base."""

    head_dim: int | None
    width: int
    share: float
    interleaved: bool
    base: Value | None
    scaling: dict[str, Value]
    entry: Entry


def read_rope(found: Found, name: str, index: int | None, own: Json, given: Json) -> Rope:
    """The numbers of the layer `index`, whose type is `name`; arguments that are `given` count, and not keys."""
    entry = entry_of(found, name)._replace(own=own, at=index)
    model, part, scaling = entry.model, found.part, given.get("scaling")
    written = part._json.get(model.pairing_key) if model.pairing_key and "interleaved" not in given else None
    usual = model.interleaved if written is None else flag(part._place(model.pairing_key), written)
    head = head_of(entry)
    width, share = (given["rotary_dim"], 1.0) if "rotary_dim" in given else _width(entry, head)
    base = Value(given["base"], ()) if "base" in given else None
    if base is None and (not isinstance(scaling, Mapping) or scaling.get("rope_theta") is None):
        base = _base(entry)
    read = {}
    if scaling is None and base is not None:
        multiplies = isinstance(entry.written_type, str) and model.types.get(entry.written_type) == "base_ntk"
        read = _base_ntk(entry, base, width) if multiplies else _scaling(entry)
    head_dim = None if head is None else head.found
    return Rope(head_dim, width, share, given.get("interleaved", usual), base, read, entry)


# Where the numbers are


def rope_mapping(part: ModelConfig) -> tuple[str, Json]:
    """The rope mapping that transformers reads, and its key; two must say the same."""
    config = part._json
    old, new = (config.get(key) or {} for key in ("rope_scaling", "rope_parameters"))
    for key, given in (("rope_scaling", old), ("rope_parameters", new)):
        if not isinstance(given, Mapping):
            raise wrong(part._at(key), f"is {shown(given)}", "a mapping", kind=TypeError)
    if not old:
        return "rope_parameters", new
    first = {"type": old.get("rope_type"), "rope_type": old.get("type"), **config, **old}
    for name, value in new.items():
        if first.get(name) != value:
            found = f"is {shown(value)}, and the rope_scaling, which counts, has {shown(first.get(name))}"
            raise wrong(part._at("rope_parameters", name), found, "the same", "leave one of the two mappings out")
    return "rope_scaling", old


def entries_of(part: ModelConfig, model: ModelType, names: list[str]) -> Json:
    """The entries of the rope mapping for types of layers; None for those that are not rotated."""
    known = {*model.layers, *model.entries.values(), *names, *table()["layer_types"]}
    given = rope_mapping(part)[1].items()
    return {name: each for name, each in given if isinstance(each, Mapping) or (each is None and name in known)}


def entry_of(found: Found, name: str) -> Entry:
    """The rope mapping of one type of layers, which are rotated."""
    part, model = found.part, found.model
    key, given = rope_mapping(part)
    place, known, nested = part._at(key), model.layers, entries_of(part, model, [name])
    name = model.entries.get(name, name)
    row = model.of_layer(name)
    if (known or model.nested) and given in model.neutral.get(key, []):
        given = {}
    if given and not model.reads_mapping:
        raise not_read(place, dict(given), "write rope_theta in place of it, or give base= and scaling=")
    if nested:
        _require_entries(place, given, nested, name, known)
        # transformers looks for truncate next to the entries only.
        beside = {each: given[each] for each in ("truncate",) if each in given}
        inside = {each: value for each, value in (nested.get(name) or {}).items() if each != "truncate"}
        entry = Entry(part, row, inside | beside, (*place, name), is_nested=True)
    elif not (known or model.nested):
        entry = Entry(part, model, given or model.rope, place, is_given=bool(given))
    elif not known or (given and (key == "rope_parameters" or model.nested)):
        expected = f"a mapping for each type of layers: {', '.join(known) or 'full_attention, ..'}"
        remedy = f'write {{"{name}": {{..}}, ..}}, or give scaling= and base='
        place = place if known else part._at("rope_parameters")
        raise wrong(place, f"is {shown(dict(given) or None)}", expected, remedy if known else "")
    elif not (given and row.scaled):
        entry = Entry(part, row, row.rope, place, is_given=False)
    else:
        entry = Entry(part, row, given, place)
        for each in ("rope_theta", "partial_rotary_factor") if row.own_theta else ():
            if given.get(each) is not None:
                raise not_read((*place, each), given[each], f"write {row.names_of(each)[0]} next to {key}")
    written, wants_type = entry.written, row.scaled == "rope_type" and entry.is_given and (known or nested)
    if wants_type and "rope_type" not in written and written.get("type", "default") != "default":
        remedy = "write rope_type, which transformers looks for in models of this type, or give scaling= and base="
        raise wrong(entry.place, f"is {shown(dict(written))}, without a rope_type", remedy=remedy)
    neutral = {each for each in table()["neutral_factors"] if written.get(each) == 1}
    kept = {each: value for each, value in written.items() if each not in neutral}
    # Null is a value of truncate.
    return entry._replace(
        mapping={each: value for each, value in kept.items() if value is not None or each == "truncate"}
    )


def _require_entries(place: Path, given: Json, nested: Json, name: str, known: Json) -> None:
    """Refuse entries that transformers does not read."""
    if place[-1] == "rope_scaling" and known:
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
            found = f"is {shown(value)}, next to {', '.join(nested)}"
            raise wrong((*place, each), found, "only types of layers", "move it into the types that it is for")


# Keys of the config under any of their names


def value_of(entry: Entry, key: str, *, null_counts: bool = False) -> Value | None:
    """What the config says under any name of `key`, or else the row; None where neither does.

    With `null_counts`, null in the config is a value, not a missing key.
    """
    part, names = entry.part, entry.model.names_of(key)
    for name in names:
        outer, _, inner = name.partition(".")
        value = Value(part._json.get(outer), part._at(outer))
        if name in entry.own:
            value = Value(entry.own[name], part._at("per_layer_config", str(entry.at), name))
        if inner and isinstance(value.found, Mapping):
            value = Value(value.found.get(inner), (*value.path, inner))
        if isinstance(value.found, (list, tuple)):
            value = _of_layer(entry, value)
        if value.found is not None:
            return value
    defaults = {} if null_counts and any(name in part._json for name in names) else entry.model.defaults
    return next((Value(defaults[name], part._at(name)) for name in names if name in defaults), None)


def _of_layer(entry: Entry, value: Value) -> Value:
    """The value of a list with one for each layer; where no layer is meant, its only value besides 0."""
    values, path, at = value.found, value.path, entry.at
    if at is not None and at < len(values):
        return Value(read_number(Value(values[at], (*path, at))), (*path, at))
    different = sorted({read_number(Value(each, path)) for each in values if each})
    if at is not None or len(different) != 1:
        expected = "one number for the layers that are meant" if at is None else "one for each layer"
        remedy = "write one number in place of the list, or give base= or rotary_dim="
        raise wrong(path, f"is {shown(values)}", expected, remedy)
    return Value(different[0], path)


def written_name(entry: Entry, key: str) -> str:
    """What this config calls `key`."""
    names = entry.model.names_of(key) or [key]
    return next((name for name in names if entry.part._json.get(name) is not None), names[0])


def _null_path(entry: Entry, key: str) -> Path | None:
    """Where null stands, if it stands where transformers reads this key: in the rope mapping, or else in the config."""
    if key in entry.written:
        return (*entry.place, key) if entry.written[key] is None else None
    # The first of several names is optional in transformers, and it reads no key of an inner mapping.
    names = [name for name in entry.model.names_of(key) if "." not in name][-1:]
    is_read = not entry.model.nested or key in entry.model.names
    written = is_read and [name for name in names if name in entry.part._json]
    return entry.part._at(names[0]) if written and value_of(entry, key, null_counts=True) is None else None


def _number(entry: Entry, key: str) -> Value | None:
    """A number of the rope mapping, or else of the config, or else of the row.

    If the config has no rope mapping, transformers takes the row's, and does not look at the config's own key then.
    """
    inner, outer = entry.inner(key), value_of(entry, key)
    usual = Value(getattr(entry.model, key), entry.part._at(key))
    chosen = next((each for each in (inner, outer, usual) if each is not None and each.found is not None), None)
    is_hidden = outer is not None and not (entry.is_given and inner.found is not None)
    if outer is not None and chosen is not None and is_hidden and outer.found != chosen.found:
        remedy = f'write {chosen.found!r}, or {{"rope_parameters": {{"{key}": {shown(outer.found)}, ..}}}}'
        raise not_read(outer.path, outer.found, remedy)
    return None if chosen is None else Value(read_number(chosen), chosen.path)


# The base, and the width


def _base(entry: Entry) -> Value:
    """The base of the frequencies."""
    model, part, key = entry.model, entry.part, "rope_theta"
    names, of_layers = model.names_of(key), model.rotated_layers.get("list", "")
    if path := _null_path(entry, key):
        # In OLMo Hybrid no layer is rotated then, and other models cannot compute.
        raise wrong(path, "is null", "a number", "leave queries and keys as they are, or give base=")
    if of_layers in names and part._json.get(of_layers) is not None:
        found = value_of(entry, key)
    else:
        is_outer = bool(model.layers) and any(name in part._json for name in names)
        if entry.is_nested and (model.nested or model.own_theta or is_outer) and key not in entry.mapping:
            what = "is missing in the entry of these layers, and nothing else takes its place"
            raise wrong((*entry.place, key), what, remedy="write it there, or give base=")
        found = _number(entry, key)
    if found is None:
        what = "is missing, and the default of this model_type is not known"
        raise wrong(part._at(names[0]), what, remedy=f"give base={other_models(part._json)}")
    if read_number(found) == 0.0:
        what = "is 0: the layers that are meant are not rotated"
        raise wrong(found.path, what, remedy="leave their queries and keys as they are")
    return Value(read_base(path_text(found.path), found.found), found.path)


def _share(entry: Entry) -> Value:
    """The part of the head that is rotated."""
    model, key = entry.model, "partial_rotary_factor"
    path, usual = _null_path(entry, key), model.partial_rotary_factor
    if path and model.partial is True and usual is not None and not model.rotary_dim:
        raise wrong(path, "is null, which is the whole head in transformers", remedy=f"write 1.0 for it, or {usual}")
    share, usual = _number(entry, key), model.rope.get(key)
    if share is None and entry.is_nested and model.partial is True and usual not in (None, 1.0):
        raise wrong((*entry.place, key), "is missing in the entry of these layers", remedy=f"write 1.0, or {usual}")
    if share is not None and not 0.0 < share.found <= 1.0:
        raise wrong(share.path, f"is {share.found!r}", "a number above 0, at most 1")
    return Value(1.0, entry.part._at(key)) if share is None else share


def head_of(entry: Entry) -> Value | None:
    """Columns of a head, or of its tail where this is what is rotated; None if the config does not say."""
    tail = "qk_rope_head_dim" if "qk_rope_head_dim" in entry.model.width[0] else "head_dim"
    own = [term for term in (tail, *entry.model.width) if term in entry.own]
    values = (Value(entry.own[term], entry.part._at("per_layer_config", str(entry.at), term)) for term in own)
    sizes = itertools.chain(values, (_term(entry, term) for term in entry.model.width))
    return next((size for size in sizes if size is not None and size.found), None)


def _width(entry: Entry, head: Value | None) -> tuple[int, float]:
    """Columns that are rotated, and which part of the head they are; an odd number has frequencies of its own."""
    model, part, exact = entry.model, entry.part, entry.model.rotary_dim
    exact_width = part._json.get(exact, model.defaults.get(exact)) if exact else None
    if exact_width is not None and {**part._json, **entry.mapping}.get("partial_rotary_factor") is None:
        width = read_size(Value(exact_width, part._at(exact)), largest_dim)
        return width, width / (head.found if head else width)
    if head is None:
        # The tail of a head is the width only in models that have one.
        first, *terms = [term for term in model.width if term != "qk_rope_head_dim"] or model.width
        first, *others = [*model.names_of(first), *terms]
        found = f"is missing, the width of a head{', and so are ' if others else ''}{', '.join(others)}"
        remedy = f"give rotary_dim=, the number of columns that are rotated{other_models(part._json)}"
        raise wrong(part._at(first), found, remedy=remedy)
    width, share = read_size(head, largest_dim), _share(entry)
    if _rope_type(entry) == "proportional" or model.partial == "ignored" or share.found == 1.0:
        return width, share.found
    if not model.partial:
        remedy = f"leave it out, as transformers rotates whole heads, or give rotary_dim={int(width * share.found)}"
        raise not_read(share.path, share.found, remedy)
    return read_size(Value(int(width * share.found), share.path)), share.found


def _term(entry: Entry, term: str) -> Value | None:
    """The value of a key, or of a quotient such as "2 * hidden_size // num_attention_heads", at the place of its last key."""
    dividend, _, divisor = term.partition(" // ")
    words = dividend.split(" * ")
    factors = [int(word) if word.isdigit() else _count(entry, word, null_counts=True) for word in words]
    below = _count(entry, divisor, null_counts=False) if divisor else 1
    known = [factor for factor in factors if factor]
    if not below or len(known) != len(words):
        return None
    above, defaults, path = math.prod(known), entry.model.defaults, entry.part._at(written_name(entry, words[-1]))
    if above % below and [known[-1], below] != [defaults.get(key) for key in (words[-1], divisor)]:
        found = f"is {known[-1]}, and {written_name(entry, divisor)} is {below}"
        raise wrong(path, found, "a multiple of the number of heads", "correct them, or give rotary_dim=")
    return Value(above // below, path)


def _count(entry: Entry, key: str, *, null_counts: bool) -> int | None:
    """A number of columns or heads; None for 0 as well."""
    value = value_of(entry, key, null_counts=null_counts)
    return read_size(value) if value and value.found else None


# The scaling


def _rope_type(entry: Entry) -> Any:
    given = entry.written_type
    return {"mrope": "default", **entry.model.types}.get(given, given) if isinstance(given, str) else given


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


def _scaling(entry: Entry) -> dict[str, Value]:
    """The keys of the rope mapping that `RotaryEmbedding` takes, without the base."""
    model, mapping, part = entry.model, entry.mapping, entry.part
    if model.dynamic and not mapping:
        factor, length = (Value(part._json.get(key, model.defaults.get(key)), part._at(key)) for key in model.dynamic)
        scaled = {"rope_type": Value("dynamic", ()), "factor": factor, _longest: length}
        return {"rope_type": Value("default", ())} if factor.found in (None, 1) else scaled
    rope_type, key = _rope_type(entry), "rope_type" if "rope_type" in mapping else "type"
    dropped = {*_read_here, *table()["unused_keys"]}
    if rope_type == "default" and "mrope_section" in mapping:
        dropped.add("interleaved")  # Qwen3-Omni's files have it with the sections, and nothing reads it
    result = {name: entry.inner(name) for name in mapping if name not in dropped}
    # The scaling's reader names the key of a type that it does not know, and says of another type that it does not count.
    type_key = "rope_type" if is_known_type(rope_type) or "type" not in mapping else key
    result = {type_key: Value(rope_type, (*entry.place, key)), **result}
    if rope_type != "default" and "type" in mapping and mapping["type"] != mapping.get("rope_type", mapping["type"]):
        result["type"] = entry.inner("type")
    _require_factors(entry, rope_type)
    follows: dict[str, Value | None] = {}
    if rope_type in ("yarn", "llama3", "longrope"):
        follows[_trained] = trained_length(entry)
    if rope_type == "yarn":
        # 0 stands for the default.
        unset = [name for name in ("beta_fast", "beta_slow") if name in result and not result[name].found]
        usual = {name: Value(value, (*entry.place, name)) for name, value in model.yarn.items()}
        result = {**usual, **{name: value for name, value in result.items() if name not in unset}}
    if rope_type == "proportional":
        follows["partial_rotary_factor"] = _share(entry)
    if rope_type == "dynamic" and "alpha" in result and result["alpha"].found:
        result = {name: value for name, value in result.items() if name not in _unused_with_alpha}
    elif rope_type == "dynamic" or (rope_type in ("yarn", "longrope") and "factor" not in result):
        follows[_longest] = _longest_length(entry)
    result |= {name: value for name, value in follows.items() if value is not None and value.found is not None}
    if len(result) > 1 and not {"rope_type", "type"} & {*mapping}:
        del result["rope_type"]  # that reader says that it is missing
    return result


def _require_factors(entry: Entry, rope_type: Any) -> None:
    """Refuse types that models of this type do not have, those that systems read differently, and missing factors."""
    key = "rope_type" if "rope_type" in entry.written else "type"
    written, place, told = entry.written.get(key), (*entry.place, key), table()["told_scalings"]
    for name, word in {**{name: name for name in entry.mapping}, key: rope_type}.items():
        if isinstance(word, str) and word in told:
            found = f"is {shown(entry.mapping[name])}, which transformers does not have"
            raise wrong((*entry.place, name), found, remedy=told[word])
    if (allowed := entry.model.rope_types) and rope_type not in allowed:
        raise wrong(place, f"is {shown(written)}", " or ".join(allowed), "correct it, or give scaling=")
    needed: tuple[str, ...] = ()
    if rope_type == "longrope":
        # Early Phi 3 files have another word for it.
        needed = ("short_factor", "long_factor") if written != rope_type else ()
        needed += ("short_mscale", "long_mscale") if entry.model.longrope == "mscale" else ()
    if not {*needed} <= {*entry.mapping}:
        found = f"is {written!r} without {' and '.join(needed)}, which transformers refuses in models of this type"
        raise wrong(place, found, remedy="write them, or correct the type")
    if rope_type == "yarn" and "factor" not in entry.written:
        remedy = f'write it, or "factor": null for {_longest} / {_trained}'
        raise wrong(place, "is 'yarn' without a factor, which transformers refuses", remedy=remedy)


def _longest_length(entry: Entry) -> Value:
    found = value_of(entry, _longest)
    return entry.inner(_longest) if found is None else found


def trained_length(entry: Entry) -> Value | None:
    """The config's own key wins, but for models with types of layers, where it is ignored."""
    outer = None if entry.is_nested or entry.model.layers else value_of(entry, _trained)
    found = (outer, entry.inner(_trained), _longest_length(entry))
    return next((each for each in found if each is not None and each.found is not None), None)


def with_mscale(scaling: dict[str, Value], seq_len: int | None) -> dict[str, Value]:
    """PhiMoE: the length chooses between two attention factors, as between the divisors."""
    result = {key: value for key, value in scaling.items() if key not in ("short_mscale", "long_mscale")}
    if seq_len is not None:  # RotaryEmbedding says that it needs the length
        is_long = integer("seq_len", seq_len, 0) > read_size(scaling[_trained])
        result["attention_factor"] = scaling["long_mscale" if is_long else "short_mscale"]
    return result
