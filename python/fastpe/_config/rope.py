# SPDX-License-Identifier: BSD-3-Clause
"""The numbers by which the layers of one type are rotated, in one form, whatever the form of the file is.

A file has them at its top and in `rope_scaling`, as earlier releases of transformers write it, in `rope_parameters`, or
there in an entry for each type of layers. What it leaves out is the row's.
"""

from __future__ import annotations

import itertools
import math
import sys
import types
from collections.abc import Mapping
from typing import Any, NamedTuple

from fastpe._arguments import flag, integer, shown
from fastpe._config.file import Json, Path, path_text
from fastpe._config.rows import Found, other_models
from fastpe._config.tables import ModelType, table
from fastpe._errors import refused
from fastpe._rotary.scaling import common_keys, is_known_type, lengths

# Keys of the same meaning in every rope mapping.
_read_here = (*common_keys, *lengths)
_other_types = {"mrope": "default"}
# More columns or heads than any model has: products of such numbers stay exact.
_largest_size = 2**31
# HunYuan's files have these keys together with an alpha, and nothing reads them.
_unused_with_alpha = ("factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")


class Entry(NamedTuple):
    """Where the numbers of some layers stand.

    `written` is their rope mapping, and `mapping` the same without what is null or changes nothing. It may be the config's
    (is_given), in an entry for this type of layers (is_nested), or the row's. `own` has the keys of one layer alone.
    """

    config: Json
    model: ModelType
    written: Json
    mapping: Json
    is_given: bool = True
    is_nested: bool = False
    own: Json = types.MappingProxyType({})
    at: int | None = None


class Rope(NamedTuple):
    """How a layer is rotated. `scaling` has a rope_type and its numbers, without the base."""

    head_dim: int | None
    width: int
    share: float
    interleaved: bool
    base: float | None
    scaling: dict[str, Any]
    multiplies_base: bool
    entry: Entry


def wrong(
    key: str | Path, found: str, expected: str = "", remedy: str = "", kind: type[Exception] = ValueError
) -> Exception:
    """An error to raise about one key of the config."""
    return refused(kind, path_text((key,) if isinstance(key, str) else key), found, expected, remedy)


def read_rope(found: Found, name: str, index: int | None, own: Json, given: Json) -> Rope:
    """The numbers of the layer `index`, whose type is `name`; arguments that are `given` count, and not keys."""
    entry = entry_of(found, name)._replace(own=own, at=index)
    model = entry.model
    interleaved = given.get("interleaved")
    if interleaved is None:
        written = found.config.get(model.pairing_key) if model.pairing_key else None
        interleaved = flag(path_text((model.pairing_key,)), model.interleaved if written is None else written)
    head, base, scaling = head_of(entry), given.get("base"), given.get("scaling")
    width, share = (given["rotary_dim"], 1.0) if "rotary_dim" in given else _width(entry, head)
    if base is None and (not isinstance(scaling, Mapping) or scaling.get("rope_theta") is None):
        base = _base(entry)
    read = _scaling(entry) if scaling is None else {}
    return Rope(head, width, share, interleaved, base, read, _multiplies_base(entry), entry)


# Where the numbers are


def rope_mapping(config: Json) -> tuple[str, Json]:
    """The rope mapping that transformers reads, and its key; two must say the same."""
    for key in ("rope_scaling", "rope_parameters"):
        given = config.get(key) or {}
        if not isinstance(given, Mapping):
            raise wrong(key, f"is {shown(given)}", "a mapping", kind=TypeError)
    given = config.get("rope_scaling")
    if not given:
        return "rope_parameters", config.get("rope_parameters") or {}
    first = {"type": given.get("rope_type"), "rope_type": given.get("type"), **config, **given}
    for name, value in (config.get("rope_parameters") or {}).items():
        if first.get(name) != value:
            found = f"is {shown(value)}, and the rope_scaling, which counts, has {shown(first.get(name))}"
            raise wrong(("rope_parameters", name), found, "the same", "leave one of the two mappings out")
    return "rope_scaling", given


def entries_of(config: Json, model: ModelType, names: list[str]) -> Json:
    """The entries of the rope mapping for types of layers; None for those that are not rotated."""
    known = {*model.layers, *model.entries.values(), *names, *table()["layer_types"]}
    return {
        name: value
        for name, value in rope_mapping(config)[1].items()
        if isinstance(value, Mapping) or (value is None and name in known)
    }


def entry_of(found: Found, name: str) -> Entry:
    """The rope mapping of one type of layers, which are rotated."""
    config, model = found.config, found.model
    key, given = rope_mapping(config)
    if model.layers or model.nested:
        given = {} if given in model.neutral.get(key, []) else given
    nested = entries_of(config, model, [name])
    name = model.entries.get(name, name)
    known = model.layers
    own_row = model.of_layer(name)
    if nested:
        _require_entries(key, given, nested, name, known)
        entry = Entry(config, own_row, nested.get(name) or {}, {}, is_nested=True)
        _require_rope_type((key, name), entry)
        if "truncate" in given:
            entry = entry._replace(written={**entry.written, "truncate": given["truncate"]})
        elif "truncate" in entry.written:  # transformers looks for it next to the entries only
            entry = entry._replace(written={each: value for each, value in entry.written.items() if each != "truncate"})
    elif not (known or model.nested):
        entry = Entry(config, model, given or model.rope, {}, is_given=bool(given))
    else:
        if not known:
            expected = '{"full_attention": {..}, ..}, a mapping for each type of layers'
            raise wrong("rope_parameters", f"is {shown(dict(given) or None)}", expected)
        if given and (key == "rope_parameters" or model.nested):
            expected = f"a mapping for each type of layers: {', '.join(known)}"
            remedy = f'write {{"{name}": {{..}}, ..}}, or give scaling= and base='
            raise wrong(key, f"is {shown(dict(given))}", expected, remedy)
        if not (given and own_row.scaled):
            entry = Entry(config, own_row, own_row.rope, {}, is_given=False)
        else:
            entry = Entry(config, own_row, given, {})
            _require_rope_type((key,), entry)
            for each in ("rope_theta", "partial_rotary_factor") if own_row.own_theta else ():
                if given.get(each) is not None:
                    what = f"is {shown(given[each])}, which transformers does not read here"
                    raise wrong((key, each), what, remedy=f"write {own_row.names_of(each)[0]} next to {key}")
    neutral = [each for each in table()["neutral_factors"] if entry.written.get(each) == 1]
    mapping = {each: value for each, value in entry.written.items() if value is not None and each not in neutral}
    return entry._replace(mapping=mapping)


def _require_entries(key: str, given: Json, nested: Json, name: str, known: Json) -> None:
    """Refuse entries that transformers does not read."""
    if key == "rope_scaling" and known:
        found = f"has {', '.join(nested)}, which transformers does not read there in models of this type"
        raise wrong(key, found, remedy="write rope_parameters in place of rope_scaling")
    # Names that are not types of layers count only together.
    missing = {*known} - {*nested, *table()["layer_types"]}
    if missing:
        raise wrong((key, *missing), "is missing", f"an entry for each of {', '.join(known)}", "write it")
    if name not in nested and name not in known:
        raise wrong((key, name), "is missing, and layers have this type", "an entry for each type", "write it")
    mapping = nested.get(name) or {}
    for each, value in given.items():
        is_known = each == "truncate" or (each in _read_here and (value is None or mapping.get(each) is not None))
        if each not in nested and not is_known:
            found = f"is {shown(value)}, next to {', '.join(nested)}"
            raise wrong((key, each), found, "only types of layers", "move it into the types that it is for")


def _require_rope_type(place: Path, entry: Entry) -> None:
    """Refuse a scaling that transformers does not see in models of this type."""
    given = entry.written
    if entry.model.scaled == "rope_type" and "rope_type" not in given and given.get("type", "default") != "default":
        found = "without a rope_type, which is not a scaling in models of this type in transformers"
        remedy = "write rope_type, or give scaling= and base="
        raise wrong(place, f"is {shown(dict(given))} {found}, and is one in other systems", remedy=remedy)


# Keys of the config under any of their names


def value_of(entry: Entry, key: str, *, null_counts: bool = False) -> Any:
    """What the config says under any name of `key`, or else the row; None where neither does.

    With `null_counts`, null in the config is a value, not a missing key.
    """
    names = entry.model.names_of(key)
    for name in names:
        outer, _, inner = name.partition(".")
        found = entry.own.get(name, entry.config.get(outer))
        if inner and isinstance(found, Mapping):
            found = found.get(inner)
        if isinstance(found, (list, tuple)):
            found = _of_layer(entry, name, found)
        if found is not None:
            return found
    if null_counts and any(name in entry.config for name in names):
        return None
    return next((entry.model.defaults[name] for name in names if name in entry.model.defaults), None)


def _of_layer(entry: Entry, name: str, values: list[Any] | tuple[Any, ...]) -> Any:
    """The value of a list with one for each layer; where no layer is meant, its only value besides 0."""
    if entry.at is not None and entry.at < len(values):
        return read_number(name, values[entry.at])
    different = sorted({read_number(name, value) for value in values if value})
    if entry.at is not None or len(different) != 1:
        found = f"has {different}" if entry.at is None else f"has {len(values)} numbers"
        expected = "one number for the layers that are meant" if entry.at is None else "one for each layer"
        raise wrong(name, found, expected, "write one number in place of the list, or give base= or rotary_dim=")
    return different[0]


def written_name(entry: Entry, key: str) -> str:
    """What this config calls `key`."""
    names = entry.model.names_of(key) or [key]
    return next((name for name in names if entry.config.get(name) is not None), names[0])


def _null_path(entry: Entry, key: str) -> Path | None:
    """Where null stands, if it stands where transformers reads this key: in the rope mapping, or else in the config."""
    if key in entry.written:
        return ("rope_parameters", key) if entry.written[key] is None else None
    # The first of several names is optional in transformers, and it reads no key of an inner mapping.
    names = [name for name in entry.model.names_of(key) if "." not in name][-1:]
    is_read = not entry.model.nested or key in entry.model.names
    written = is_read and [name for name in names if name in entry.config]
    return (names[0],) if written and value_of(entry, key, null_counts=True) is None else None


def _number(entry: Entry, key: str) -> float | None:
    """A number of the rope mapping, or else of the config, or else of the row.

    If the config has no rope mapping, transformers takes the row's, and does not look at the config's own key then.
    """
    inner, outer, default = entry.mapping.get(key), value_of(entry, key), getattr(entry.model, key)
    if entry.is_given and inner is not None:
        return read_number(key, inner)
    chosen = next((each for each in (inner, outer, default) if each is not None), None)
    if outer is not None and outer != chosen:
        found = f"is {shown(outer)}, which transformers does not read here: it takes {chosen!r}"
        remedy = f'write {chosen!r}, or {{"rope_parameters": {{"{key}": {shown(outer)}, ..}}}}'
        raise wrong(key, found, remedy=remedy)
    return None if chosen is None else read_number(key, chosen)


def read_number(name: str, value: Any) -> float:
    """A finite number of the config."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        remedy = "write it without quotes" if isinstance(value, str) else ""
        raise wrong(name, f"is {shown(value)}", "a number", remedy, TypeError)
    if not abs(value) <= sys.float_info.max:
        raise wrong(name, f"is {shown(value)}", "a finite number")
    return float(value)


def read_size(name: str, value: Any, most: int = _largest_size) -> int:
    """An int of the config, from 1."""
    if isinstance(value, bool) or not isinstance(value, int):
        remedy = "write it without quotes" if isinstance(value, str) else ""
        raise wrong(name, f"is {shown(value)}", "an int", remedy, TypeError)
    if not 1 <= value <= most:
        raise wrong(name, f"is {shown(value)}", f"1 to {most}")
    return value


# The base, and the width


def _base(entry: Entry) -> float:
    """The base of the frequencies."""
    path = _null_path(entry, "rope_theta")
    if path is not None:
        what = "is null: in transformers, OLMo Hybrid is not rotated then, and other models cannot compute"
        raise wrong(path, what, remedy="leave queries and keys as they are, or give base=")
    model = entry.model
    of_layers = model.rotated_layers.get("key", "")
    if of_layers in model.names_of("rope_theta") and entry.config.get(of_layers) is not None:
        return read_number(of_layers, value_of(entry, "rope_theta"))
    is_outer = bool(model.layers) and any(name in entry.config for name in model.names_of("rope_theta"))
    if entry.is_nested and (model.nested or model.own_theta or is_outer) and "rope_theta" not in entry.mapping:
        what = "is missing in the entry of these layers, and nothing else takes its place"
        raise wrong("rope_theta", what, remedy="write it there, or give base=")
    found = _number(entry, "rope_theta")
    if found is None:
        what = "is missing, and the default of this model_type is not known"
        raise wrong(model.names_of("rope_theta")[0], what, remedy=f"give base={other_models(entry.config)}")
    if found == 0.0:
        what, remedy = "is 0: the layers that are meant are not rotated", "leave their queries and keys as they are"
        raise wrong(written_name(entry, "rope_theta"), what, remedy=remedy)
    return found


def _share(entry: Entry) -> float:
    """The part of the head that is rotated."""
    model, path = entry.model, _null_path(entry, "partial_rotary_factor")
    if path and model.partial is True and model.partial_rotary_factor is not None and not model.rotary_dim:
        remedy = f"write 1.0 for it, or {model.partial_rotary_factor}, the part that these models usually rotate"
        raise wrong(path, "is null, which is the whole head in transformers", remedy=remedy)
    found = _number(entry, "partial_rotary_factor")
    usual = model.rope.get("partial_rotary_factor")
    if found is None and entry.is_nested and model.partial is True and usual not in (None, 1.0):
        remedy = f"write 1.0, or {usual}, which is usual in these layers"
        raise wrong("partial_rotary_factor", "is missing in the entry of these layers", remedy=remedy)
    if found is not None and not 0.0 < found <= 1.0:
        raise wrong(written_name(entry, "partial_rotary_factor"), f"is {found!r}", "a number above 0, at most 1")
    return 1.0 if found is None else found


def head_of(entry: Entry) -> int | None:
    """Columns of a head, or of its tail where this is what is rotated; None if the config does not say."""
    tail = "qk_rope_head_dim" if "qk_rope_head_dim" in entry.model.width[0] else "head_dim"
    own = (entry.own[term] for term in (tail, *entry.model.width) if term in entry.own)
    return next(
        (size for size in itertools.chain(own, (_term(entry, term) for term in entry.model.width)) if size), None
    )


def _width(entry: Entry, head: int | None) -> tuple[int, float]:
    """Columns that are rotated, and which part of the head they are; an odd number has frequencies of its own."""
    model = entry.model
    exact = model.rotary_dim
    exact_width = entry.config.get(exact, model.defaults.get(exact)) if exact else None
    if exact_width is not None and {**entry.config, **entry.mapping}.get("partial_rotary_factor") is None:
        width = read_size(exact, exact_width)
        return width, width / (head or width)
    if head is None:
        # The tail of a head is the width only in models that have one.
        first, *terms = [term for term in model.width if term != "qk_rope_head_dim"] or model.width
        first, *others = [*model.names_of(first), *terms]
        found = f"is missing, the width of a head{', and so are ' if others else ''}{', '.join(others)}"
        remedy = f"give rotary_dim=, the number of columns that are rotated{other_models(entry.config)}"
        raise wrong(first, found, remedy=remedy)
    width, share = read_size("head_dim", head), _share(entry)
    if _rope_type(entry) == "proportional" or model.partial == "ignored" or share == 1.0:
        return width, share
    if not model.partial:
        found = f"is {share!r}, but models of this type rotate whole heads in transformers"
        remedy = f"leave it out to do the same, or give rotary_dim={int(head * share)}"
        raise wrong("partial_rotary_factor", found, remedy=remedy)
    return read_size("partial_rotary_factor", int(head * share)), share


def _term(entry: Entry, term: str) -> int | None:
    """The value of a key, or of a quotient such as "2 * hidden_size // num_attention_heads"."""
    dividend, _, divisor = term.partition(" // ")
    words = dividend.split(" * ")
    factors = [int(word) if word.isdigit() else _count(entry, word, null_counts=True) for word in words]
    below = _count(entry, divisor, null_counts=False) if divisor else 1
    known = [factor for factor in factors if factor]
    if not below or len(known) != len(words):
        return None
    above, defaults = math.prod(known), entry.model.defaults
    if above % below and [known[-1], below] != [defaults.get(key) for key in (words[-1], divisor)]:
        key, heads = (written_name(entry, each) for each in (words[-1], divisor))
        found, remedy = f"is {known[-1]}, and {heads} is {below}", "correct them, or give rotary_dim="
        raise wrong(key, found, "a multiple of the number of heads", remedy)
    return above // below


def _count(entry: Entry, key: str, *, null_counts: bool) -> int | None:
    """A number of columns or heads; None for 0 as well."""
    found = value_of(entry, key, null_counts=null_counts)
    return read_size(key, found) if found else None


# The scaling


def _rope_type(entry: Entry) -> Any:
    given = entry.mapping.get("rope_type", entry.mapping.get("type", "default"))
    names = {**_other_types, **entry.model.types}
    return names.get(given, given) if isinstance(given, str) else given


def _multiplies_base(entry: Entry) -> bool:
    """Whether the scaling is the "ntk" of models whose base is multiplied by the factor."""
    written = entry.mapping.get("rope_type", entry.mapping.get("type"))
    return isinstance(written, str) and entry.model.types.get(written) == "base_ntk"


def _scaling(entry: Entry) -> dict[str, Any]:
    """The rope mapping as `RotaryEmbedding` takes it, without the base."""
    model, mapping = entry.model, entry.mapping
    if model.dynamic and not mapping:
        factor, trained = (entry.config.get(key, model.defaults.get(key)) for key in model.dynamic)
        if factor in (None, 1, 1.0):
            return {"rope_type": "default"}
        return {"rope_type": "dynamic", "factor": factor, "max_position_embeddings": trained}
    rope_type = _rope_type(entry)
    if _multiplies_base(entry):
        return {key: value for key, value in mapping.items() if key not in _read_here}
    dropped = (*_read_here, *table()["unused_keys"])
    if rope_type == "default" and "mrope_section" in mapping:
        dropped = (*dropped, "interleaved")  # Qwen3-Omni's files have it with the sections, and nothing reads it
    result = {key: value for key, value in mapping.items() if key not in dropped}
    # The scaling's reader names the key of a type that it does not know.
    is_wrong_type = not is_known_type(rope_type) and "type" in mapping and "rope_type" not in mapping
    result = {"type" if is_wrong_type else "rope_type": rope_type, **result}
    if rope_type != "default" and mapping.get("rope_type", rope_type) != mapping.get("type", rope_type):
        result["type"] = mapping.get("type")  # that reader says that it does not count
    _require_factors(entry, rope_type)
    if rope_type in ("yarn", "llama3", "longrope"):
        result["original_max_position_embeddings"] = trained_length(entry)
    if rope_type == "yarn":
        result = {**model.yarn, **result}
        # 0 stands for the default.
        result = {key: value for key, value in result.items() if value or key not in ("beta_fast", "beta_slow")}
    if rope_type == "proportional":
        result["partial_rotary_factor"] = _share(entry)
    if rope_type == "dynamic" and result.get("alpha"):
        result = {key: value for key, value in result.items() if key not in _unused_with_alpha}
    elif rope_type == "dynamic" or (rope_type in ("yarn", "longrope") and "factor" not in result):
        result["max_position_embeddings"] = _longest_length(entry)
    result = {key: value for key, value in result.items() if value is not None}
    if len(result) > 1 and not {"rope_type", "type"} & {*mapping}:
        del result["rope_type"]  # that reader says that it is missing
    return result


def _require_factors(entry: Entry, rope_type: Any) -> None:
    """Refuse types that models of this type do not have, those that systems read differently, and missing factors."""
    key = "rope_type" if "rope_type" in entry.written else "type"
    written = entry.written.get(key)
    place = ("rope_scaling", key)
    allowed, told = entry.model.rope_types, table()["told_scalings"]
    for name, word in {**{name: name for name in entry.mapping}, key: rope_type}.items():
        if isinstance(word, str) and word in told:
            found = f"is {shown(entry.mapping[name])}, which transformers does not have"
            raise wrong((place[0], name), found, remedy=told[word])
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


def _longest_length(entry: Entry) -> Any:
    found = value_of(entry, "max_position_embeddings")
    return entry.mapping.get("max_position_embeddings") if found is None else found


def trained_length(entry: Entry) -> Any:
    """The config's own key wins, but for models with types of layers, where it is ignored."""
    is_ignored = entry.is_nested or bool(entry.model.layers)
    outer = None if is_ignored else value_of(entry, "original_max_position_embeddings")
    inner = entry.mapping.get("original_max_position_embeddings")
    return next((each for each in (outer, inner, _longest_length(entry)) if each is not None), None)


def with_mscale(scaling: dict[str, Any], seq_len: int | None) -> dict[str, Any]:
    """PhiMoE: the length chooses between two attention factors, as between the divisors."""
    result = {key: value for key, value in scaling.items() if key not in ("short_mscale", "long_mscale")}
    if seq_len is not None:  # RotaryEmbedding says that it needs the length
        is_long = integer("seq_len", seq_len, 0) > scaling["original_max_position_embeddings"]
        result["attention_factor"] = scaling.get("long_mscale" if is_long else "short_mscale")
    return result
