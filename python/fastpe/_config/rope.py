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
from fastpe._config.rows import Found, other_models
from fastpe._config.tables import ModelType, table
from fastpe._config.values import Value, read_number, read_size, wrong
from fastpe._rotary.scaling import common_keys, is_known_type, largest_dim, lengths, read_base

# Keys of the same meaning in every rope mapping.
_read_here = (*common_keys, *lengths)
_other_types = {"mrope": "default"}
# HunYuan's files have these keys together with an alpha, and nothing reads them.
_unused_with_alpha = ("factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")


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


class Rope(NamedTuple):
    """How a layer is rotated. `scaling` has a rope_type and its numbers, each with its place, without the base."""

    head_dim: int | None
    width: int
    share: float
    interleaved: bool
    base: Value | None
    scaling: dict[str, Value]
    multiplies_base: bool
    entry: Entry


def read_rope(found: Found, name: str, index: int | None, own: Json, given: Json) -> Rope:
    """The numbers of the layer `index`, whose type is `name`; arguments that are `given` count, and not keys."""
    entry = entry_of(found, name)._replace(own=own, at=index)
    model, part = entry.model, found.part
    interleaved = given.get("interleaved")
    if interleaved is None:
        written = part._json.get(model.pairing_key) if model.pairing_key else None
        interleaved = flag(part._place(model.pairing_key), model.interleaved if written is None else written)
    head, scaling = head_of(entry), given.get("scaling")
    width, share = (given["rotary_dim"], 1.0) if "rotary_dim" in given else _width(entry, head)
    base = Value(given["base"], ()) if "base" in given else None
    if base is None and (not isinstance(scaling, Mapping) or scaling.get("rope_theta") is None):
        base = _base(entry)
    read = _scaling(entry) if scaling is None else {}
    return Rope(
        None if head is None else head.found, width, share, interleaved, base, read, _multiplies_base(entry), entry
    )


# Where the numbers are


def rope_mapping(part: ModelConfig) -> tuple[str, Json]:
    """The rope mapping that transformers reads, and its key; two must say the same."""
    config = part._json
    for key in ("rope_scaling", "rope_parameters"):
        given = config.get(key) or {}
        if not isinstance(given, Mapping):
            raise wrong(part._at(key), f"is {shown(given)}", "a mapping", kind=TypeError)
    given = config.get("rope_scaling")
    if not given:
        return "rope_parameters", config.get("rope_parameters") or {}
    first = {"type": given.get("rope_type"), "rope_type": given.get("type"), **config, **given}
    for name, value in (config.get("rope_parameters") or {}).items():
        if first.get(name) != value:
            found = f"is {shown(value)}, and the rope_scaling, which counts, has {shown(first.get(name))}"
            raise wrong(part._at("rope_parameters", name), found, "the same", "leave one of the two mappings out")
    return "rope_scaling", given


def entries_of(part: ModelConfig, model: ModelType, names: list[str]) -> Json:
    """The entries of the rope mapping for types of layers; None for those that are not rotated."""
    known = {*model.layers, *model.entries.values(), *names, *table()["layer_types"]}
    return {
        name: value
        for name, value in rope_mapping(part)[1].items()
        if isinstance(value, Mapping) or (value is None and name in known)
    }


def entry_of(found: Found, name: str) -> Entry:
    """The rope mapping of one type of layers, which are rotated."""
    part, model = found.part, found.model
    key, given = rope_mapping(part)
    place = part._at(key)
    if model.layers or model.nested:
        given = {} if given in model.neutral.get(key, []) else given
    if model.reads_mapping is False and given:
        remedy = "write rope_theta in place of it, or give base= and scaling="
        raise wrong(
            place, f"is {shown(dict(given))}, which transformers does not read in models of this type", "", remedy
        )
    nested = entries_of(part, model, [name])
    name = model.entries.get(name, name)
    known = model.layers
    own_row = model.of_layer(name)
    if nested:
        _require_entries(place, given, nested, name, known)
        entry = Entry(part, own_row, nested.get(name) or {}, (*place, name), is_nested=True)
        _require_rope_type(entry)
        # transformers looks for truncate next to the entries only.
        written = {each: value for each, value in entry.written.items() if each != "truncate"}
        entry = entry._replace(written=written | {each: given[each] for each in ("truncate",) if each in given})
    elif not (known or model.nested):
        entry = Entry(part, model, given or model.rope, place, is_given=bool(given))
    else:
        if not known:
            expected = '{"full_attention": {..}, ..}, a mapping for each type of layers'
            raise wrong(part._at("rope_parameters"), f"is {shown(dict(given) or None)}", expected)
        if given and (key == "rope_parameters" or model.nested):
            expected = f"a mapping for each type of layers: {', '.join(known)}"
            remedy = f'write {{"{name}": {{..}}, ..}}, or give scaling= and base='
            raise wrong(place, f"is {shown(dict(given))}", expected, remedy)
        if not (given and own_row.scaled):
            entry = Entry(part, own_row, own_row.rope, place, is_given=False)
        else:
            entry = Entry(part, own_row, given, place)
            _require_rope_type(entry)
            for each in ("rope_theta", "partial_rotary_factor") if own_row.own_theta else ():
                if given.get(each) is not None:
                    what = f"is {shown(given[each])}, which transformers does not read here"
                    raise wrong((*place, each), what, remedy=f"write {own_row.names_of(each)[0]} next to {key}")
    neutral = [each for each in table()["neutral_factors"] if entry.written.get(each) == 1]
    # Null is a value of truncate.
    mapping = {
        each: value
        for each, value in entry.written.items()
        if (value is not None or each == "truncate") and each not in neutral
    }
    return entry._replace(mapping=mapping)


def _require_entries(place: Path, given: Json, nested: Json, name: str, known: Json) -> None:
    """Refuse entries that transformers does not read."""
    if place[-1] == "rope_scaling" and known:
        found = f"has {', '.join(nested)}, which transformers does not read there in models of this type"
        raise wrong(place, found, remedy="write rope_parameters in place of rope_scaling")
    # Names that are not types of layers count only together.
    missing = {*known} - {*nested, *table()["layer_types"]}
    if missing:
        raise wrong((*place, *missing), "is missing", f"an entry for each of {', '.join(known)}", "write it")
    if name not in nested and name not in known:
        raise wrong((*place, name), "is missing, and layers have this type", "an entry for each type", "write it")
    mapping = nested.get(name) or {}
    for each, value in given.items():
        is_known = each == "truncate" or (each in _read_here and (value is None or mapping.get(each) is not None))
        if each not in nested and not is_known:
            found = f"is {shown(value)}, next to {', '.join(nested)}"
            raise wrong((*place, each), found, "only types of layers", "move it into the types that it is for")


def _require_rope_type(entry: Entry) -> None:
    """Refuse a scaling that transformers does not see in models of this type."""
    given = entry.written
    if entry.model.scaled == "rope_type" and "rope_type" not in given and given.get("type", "default") != "default":
        found = "without a rope_type, which is not a scaling in models of this type in transformers"
        remedy = "write rope_type, or give scaling= and base="
        raise wrong(entry.place, f"is {shown(dict(given))} {found}, and is one in other systems", remedy=remedy)


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
    if null_counts and any(name in part._json for name in names):
        return None
    defaults = entry.model.defaults
    return next((Value(defaults[name], part._at(name)) for name in names if name in defaults), None)


def _of_layer(entry: Entry, value: Value) -> Value:
    """The value of a list with one for each layer; where no layer is meant, its only value besides 0."""
    values, path, at = value.found, value.path, entry.at
    if at is not None and at < len(values):
        return Value(read_number(Value(values[at], (*path, at))), (*path, at))
    different = sorted({read_number(Value(each, path)) for each in values if each})
    if at is not None or len(different) != 1:
        found = f"has {different}" if at is None else f"has {len(values)} numbers"
        expected = "one number for the layers that are meant" if at is None else "one for each layer"
        raise wrong(path, found, expected, "write one number in place of the list, or give base= or rotary_dim=")
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
    inner, outer, default = entry.mapping.get(key), value_of(entry, key), getattr(entry.model, key)
    own = Value(inner, (*entry.place, key))
    if entry.is_given and inner is not None:
        return Value(read_number(own), own.path)
    usual = Value(default, entry.part._at(key))
    chosen = next((each for each in (own, outer, usual) if each is not None and each.found is not None), None)
    if outer is not None and chosen is not None and outer.found != chosen.found:
        found = f"is {shown(outer.found)}, which transformers does not read here: it takes {chosen.found!r}"
        remedy = f'write {chosen.found!r}, or {{"rope_parameters": {{"{key}": {shown(outer.found)}, ..}}}}'
        raise wrong(outer.path, found, remedy=remedy)
    return None if chosen is None else Value(read_number(chosen), chosen.path)


# The base, and the width


def _base(entry: Entry) -> Value:
    """The base of the frequencies."""
    path = _null_path(entry, "rope_theta")
    if path is not None:
        what = "is null: in transformers, OLMo Hybrid is not rotated then, and other models cannot compute"
        raise wrong(path, what, remedy="leave queries and keys as they are, or give base=")
    model, part = entry.model, entry.part
    of_layers = model.rotated_layers.get("list", "")
    if of_layers in model.names_of("rope_theta") and part._json.get(of_layers) is not None:
        found = value_of(entry, "rope_theta")
    else:
        is_outer = bool(model.layers) and any(name in part._json for name in model.names_of("rope_theta"))
        if entry.is_nested and (model.nested or model.own_theta or is_outer) and "rope_theta" not in entry.mapping:
            what = "is missing in the entry of these layers, and nothing else takes its place"
            raise wrong((*entry.place, "rope_theta"), what, remedy="write it there, or give base=")
        found = _number(entry, "rope_theta")
    if found is None:
        what = "is missing, and the default of this model_type is not known"
        raise wrong(part._at(model.names_of("rope_theta")[0]), what, remedy=f"give base={other_models(part._json)}")
    if read_number(found) == 0.0:
        what, remedy = "is 0: the layers that are meant are not rotated", "leave their queries and keys as they are"
        raise wrong(found.path, what, remedy=remedy)
    return Value(read_base(path_text(found.path), found.found), found.path)


def _share(entry: Entry) -> float:
    """The part of the head that is rotated."""
    model, path = entry.model, _null_path(entry, "partial_rotary_factor")
    if path and model.partial is True and model.partial_rotary_factor is not None and not model.rotary_dim:
        remedy = f"write 1.0 for it, or {model.partial_rotary_factor}, the part that these models usually rotate"
        raise wrong(path, "is null, which is the whole head in transformers", remedy=remedy)
    share = _number(entry, "partial_rotary_factor")
    usual = model.rope.get("partial_rotary_factor")
    if share is None and entry.is_nested and model.partial is True and usual not in (None, 1.0):
        remedy = f"write 1.0, or {usual}, which is usual in these layers"
        raise wrong((*entry.place, "partial_rotary_factor"), "is missing in the entry of these layers", remedy=remedy)
    if share is not None and not 0.0 < share.found <= 1.0:
        raise wrong(share.path, f"is {share.found!r}", "a number above 0, at most 1")
    return 1.0 if share is None else share.found


def head_of(entry: Entry) -> Value | None:
    """Columns of a head, or of its tail where this is what is rotated; None if the config does not say."""
    tail = "qk_rope_head_dim" if "qk_rope_head_dim" in entry.model.width[0] else "head_dim"
    own = [term for term in (tail, *entry.model.width) if term in entry.own]
    values = (Value(entry.own[term], entry.part._at("per_layer_config", str(entry.at), term)) for term in own)
    sizes = itertools.chain(values, (_term(entry, term) for term in entry.model.width))
    return next((size for size in sizes if size is not None and size.found), None)


def _width(entry: Entry, head: Value | None) -> tuple[int, float]:
    """Columns that are rotated, and which part of the head they are; an odd number has frequencies of its own."""
    model, part = entry.model, entry.part
    exact = model.rotary_dim
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
    if _rope_type(entry) == "proportional" or model.partial == "ignored" or share == 1.0:
        return width, share
    if not model.partial:
        found = f"is {share!r}, but models of this type rotate whole heads in transformers"
        remedy = f"leave it out to do the same, or give rotary_dim={int(width * share)}"
        raise wrong(_path_of_share(entry), found, remedy=remedy)
    return read_size(Value(int(width * share), _path_of_share(entry))), share


def _path_of_share(entry: Entry) -> Path:
    share = _number(entry, "partial_rotary_factor")
    return entry.part._at("partial_rotary_factor") if share is None else share.path


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
    given = entry.mapping.get("rope_type", entry.mapping.get("type", "default"))
    names = {**_other_types, **entry.model.types}
    return names.get(given, given) if isinstance(given, str) else given


def _multiplies_base(entry: Entry) -> bool:
    """Whether the scaling is the "ntk" of models whose base is multiplied by the factor."""
    written = entry.mapping.get("rope_type", entry.mapping.get("type"))
    return isinstance(written, str) and entry.model.types.get(written) == "base_ntk"


def _scaling(entry: Entry) -> dict[str, Value]:
    """The keys of the rope mapping that `RotaryEmbedding` takes, without the base."""
    model, mapping, part = entry.model, entry.mapping, entry.part
    if model.dynamic and not mapping:
        values = [Value(part._json.get(key, model.defaults.get(key)), part._at(key)) for key in model.dynamic]
        if values[0].found in (None, 1, 1.0):
            return {"rope_type": Value("default", ())}
        keys = ("rope_type", "factor", "max_position_embeddings")
        return dict(zip(keys, [Value("dynamic", ()), *values], strict=True))
    written = {key: Value(value, (*entry.place, key)) for key, value in mapping.items()}
    rope_type = _rope_type(entry)
    if _multiplies_base(entry):
        return {key: value for key, value in written.items() if key not in _read_here}
    dropped = (*_read_here, *table()["unused_keys"])
    if rope_type == "default" and "mrope_section" in mapping:
        dropped = (*dropped, "interleaved")  # Qwen3-Omni's files have it with the sections, and nothing reads it
    result = {key: value for key, value in written.items() if key not in dropped}
    # The scaling's reader names the key of a type that it does not know.
    is_wrong_type = not is_known_type(rope_type) and "type" in mapping and "rope_type" not in mapping
    type_key = "type" if is_wrong_type else "rope_type"
    result = {type_key: Value(rope_type, (*entry.place, "rope_type" if "rope_type" in mapping else "type")), **result}
    if rope_type != "default" and "type" in mapping and mapping["type"] != mapping.get("rope_type", mapping["type"]):
        result["type"] = written["type"]  # that reader says that it does not count
    _require_factors(entry, rope_type)
    if rope_type in ("yarn", "llama3", "longrope"):
        result |= _named("original_max_position_embeddings", trained_length(entry))
    if rope_type == "yarn":
        # 0 stands for the default.
        unset = [key for key in ("beta_fast", "beta_slow") if key in result and not result[key].found]
        usual = {key: Value(value, (*entry.place, key)) for key, value in model.yarn.items()}
        result = {**usual, **{key: value for key, value in result.items() if key not in unset}}
    if rope_type == "proportional":
        result["partial_rotary_factor"] = Value(_share(entry), _path_of_share(entry))
    if rope_type == "dynamic" and "alpha" in result and result["alpha"].found:
        result = {key: value for key, value in result.items() if key not in _unused_with_alpha}
    elif rope_type == "dynamic" or (rope_type in ("yarn", "longrope") and "factor" not in result):
        result |= _named("max_position_embeddings", _longest_length(entry))
    if len(result) > 1 and not {"rope_type", "type"} & {*mapping}:
        del result["rope_type"]  # that reader says that it is missing
    return result


def _named(key: str, value: Value | None) -> dict[str, Value]:
    return {} if value is None or value.found is None else {key: value}


def _require_factors(entry: Entry, rope_type: Any) -> None:
    """Refuse types that models of this type do not have, those that systems read differently, and missing factors."""
    key = "rope_type" if "rope_type" in entry.written else "type"
    written = entry.written.get(key)
    place = (*entry.place, key)
    allowed, told = entry.model.rope_types, table()["told_scalings"]
    for name, word in {**{name: name for name in entry.mapping}, key: rope_type}.items():
        if isinstance(word, str) and word in told:
            found = f"is {shown(entry.mapping[name])}, which transformers does not have"
            raise wrong((*entry.place, name), found, remedy=told[word])
    if allowed and rope_type not in allowed:
        found, expected = f"is {shown(written)}, which models of this type do not have", " or ".join(allowed)
        raise wrong(place, found, expected, "correct it, or give scaling=")
    mscales = ("short_mscale", "long_mscale")
    if rope_type == "longrope" and entry.model.longrope == "mscale" and not {*mscales} <= {*entry.mapping}:
        found = f"is {written!r} without {' and '.join(mscales)}, which transformers refuses in models of this type"
        raise wrong(place, found, remedy="write both")
    if rope_type == "yarn" and "factor" not in entry.written:
        remedy = 'write it, or "factor": null for max_position_embeddings / original_max_position_embeddings'
        raise wrong(place, "is 'yarn' without a factor, which transformers refuses", remedy=remedy)
    if rope_type == "longrope" and written != rope_type and not {"short_factor", "long_factor"} <= {*entry.mapping}:
        found = f"is {written!r}, which means 'longrope' here, as in the files of early Phi 3 models, without "
        raise wrong(place, f"{found}short_factor and long_factor", remedy="write both, or correct the type")


def _longest_length(entry: Entry) -> Value | None:
    found = value_of(entry, "max_position_embeddings")
    inner = Value(entry.mapping.get("max_position_embeddings"), (*entry.place, "max_position_embeddings"))
    return inner if found is None else found


def trained_length(entry: Entry) -> Value | None:
    """The config's own key wins, but for models with types of layers, where it is ignored."""
    key = "original_max_position_embeddings"
    is_ignored = entry.is_nested or bool(entry.model.layers)
    outer = None if is_ignored else value_of(entry, key)
    inner = Value(entry.mapping.get(key), (*entry.place, key))
    found = (outer, inner, _longest_length(entry))
    return next((each for each in found if each is not None and each.found is not None), None)


def with_mscale(scaling: dict[str, Value], seq_len: int | None) -> dict[str, Value]:
    """PhiMoE: the length chooses between two attention factors, as between the divisors."""
    result = {key: value for key, value in scaling.items() if key not in ("short_mscale", "long_mscale")}
    if seq_len is not None:  # RotaryEmbedding says that it needs the length
        is_long = integer("seq_len", seq_len, 0) > read_size(scaling["original_max_position_embeddings"])
        result["attention_factor"] = scaling["long_mscale" if is_long else "short_mscale"]
    return result
