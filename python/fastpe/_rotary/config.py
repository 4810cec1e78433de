# SPDX-License-Identifier: BSD-3-Clause
"""What a model's config.json says about its rotary embedding.

The file does not say all: which columns are pairs, and the defaults of keys that it leaves out, follow from its
`model_type`. transformers' reading of a key decides, and a key that it does not read is not ignored silently.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
from collections.abc import Mapping
from typing import Any

from fastpe._arguments import flag, integer, shown, text
from fastpe._errors import refused
from fastpe._rotary.config_file import Json, Path, load, path_text
from fastpe._rotary.config_keys import Keys
from fastpe._rotary.config_models import Found, find_model, other_models, table
from fastpe._rotary.scaling import axes_of, common_keys, is_known_type, lengths, read_rotary_dim, rotary_frequencies

# Keys of the same meaning in every rope mapping.
_read_here = (*common_keys, *lengths)
_other_types = {"mrope": "default"}
# More columns or heads than any model has: products of such numbers stay exact.
_largest_size = 2**31
# HunYuan's files have these keys together with an alpha, and nothing reads them.
_unused_with_alpha = ("factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")


def read_config(
    config: Json | str | os.PathLike[str], layer_type: str | None, seq_len: int | None, mrope: bool, instead: Json
) -> dict[str, Any]:
    """The arguments of the `RotaryEmbedding` that `config` means. Those of `instead` that are not None count, not keys."""
    given = {name for name, value in instead.items() if value is not None}
    base, scaling, rotary_dim = (instead[name] for name in ("base", "scaling", "rotary_dim"))
    pairing = flag("interleaved", instead["interleaved"]) if "interleaved" in given else None
    found = find_model(load(config), pairing)
    if {"base", "scaling"} <= given:
        found = found._replace(config=_without_mapping(found.config, "rotary_dim" in given))
    model = found.model
    neutral = _neutral(found, model.interleaved if pairing is None else pairing)
    keys = Keys(found.config, found.outer, read=_read_keys(found), given=given, neutral=neutral)
    _require_rotary(found)
    for role in ("without", "switch", "kind", "layers", "other", "base factor", "scaling"):
        keys.require(role)
    is_latent = "qk_rope_head_dim" in model.width[0]
    keys.require("latent", is_latent and bool(model.source or found.config.get("qk_rope_head_dim")))
    layer = _Layer(found, layer_type, keys)
    if pairing is None:
        pairing = layer.pairing()
    keys.require("pairing", pairing)
    keys.require("opposite pairing", not pairing)
    keys.require("divisor", layer.divisor())
    head, width = layer.width() if rotary_dim is None else (layer.head(), read_rotary_dim(rotary_dim))
    if base is None and (not isinstance(scaling, Mapping) or scaling.get("rope_theta") is None):
        base = layer.base()
        keys.require("base", base)
    layer.require_layer_type(is_chosen="base" in given)
    result: dict[str, Any] = {"rotary_dim": width + width % 2, "interleaved": pairing, "form": model.form}
    if model.conjugate:
        result["conjugate"] = True
    if head is not None and head >= result["rotary_dim"]:
        result["head_dim"] = head
    if flag("mrope", mrope):
        result["frequency_axes"] = layer.frequency_axes(width)
    if scaling is not None:
        return {**result, "base": base, "scaling": scaling, "seq_len": seq_len}
    read = layer.scaling(seq_len)
    if layer.has_base_ntk():
        # Alibaba-NLP/new-impl:modeling.py, NTKScalingRotaryEmbedding, whose tables are at least as long as the scaled length.
        factor = max(_number("factor", read.get("factor")), 1.0)
        base, read = base * factor, {**read, "rope_type": "linear", "factor": factor ** (2 / width)}
    if width % 2:
        result["frequencies"] = _odd_frequencies(width, base, read)
    elif read == {"rope_type": "default"}:
        result["base"] = base
    else:
        result["scaling"] = {**read, "rope_theta": base}
        result["seq_len"] = seq_len
    return result


def _read_keys(found: Found) -> set[str]:
    """The keys that count. Where the type is not known, each name is compared with what the others say."""
    if found.model.source:
        return found.model.read_keys() - {found.model.rotary_dim}
    has_tail = found.config.get("qk_rope_head_dim") is not None
    return {"rope_scaling", "rope_parameters", *(["head_dim"] if has_tail else [])}


def _neutral(found: Found, interleaved: bool) -> dict[str, list[Any]]:
    """Values of keys that change nothing in this model."""
    neutral = dict(found.model.neutral)
    # As TensorRT-LLM writes the pairing
    kinds = neutral.get("position_embedding_type", [])
    neutral["position_embedding_type"] = [*kinds, "rope_gptj" if interleaved else "rope_gpt_neox"]
    count = found.config.get("num_hidden_layers")
    if isinstance(count, int) and 0 < count < 1000:
        # Molmo 2 lists the layers that are scaled: all of them, or the list is not known.
        neutral["rope_scaling_layers"] = [list(range(count))]
    return neutral


def _without_mapping(config: Json, has_width: bool) -> Json:
    """The config where only the rotated part of its rope mapping counts; one for each type of layers may have several."""
    given = config.get("rope_scaling") or config.get("rope_parameters") or {}
    if not isinstance(given, Mapping) or (not has_width and any(isinstance(each, Mapping) for each in given.values())):
        return config
    share = given.get("partial_rotary_factor", config.get("partial_rotary_factor"))
    return {**config, "rope_scaling": None, "rope_parameters": None, "partial_rotary_factor": share}


def _wrong(
    key: str | Path, found: str, expected: str = "", remedy: str = "", kind: type[Exception] = ValueError
) -> Exception:
    """An error to raise about one key of the config."""
    return refused(kind, path_text((key,) if isinstance(key, str) else key), found, expected, remedy)


def _require_rotary(found: Found) -> None:
    """Refuse a config that says that the model is not rotated."""
    for key, allowed in found.model.requires.items():
        if found.config.get(key, found.model.defaults.get(key)) not in allowed:
            what = f"is {shown(found.config.get(key))}: this model has no rotary embedding"
            this = json.dumps({key: allowed[0]})
            raise _wrong(key, what, remedy=f"leave its queries and keys as they are, or write {this} if yours has one")


class _Layer:
    """The keys that count for one type of layers: the rope mapping's, then the config's, then the row's."""

    def __init__(self, found: Found, layer_type: str | None, keys: Keys) -> None:
        self._config = found.config
        self._model = found.model
        self._keys = keys
        self._usual_width = found.model.width
        self._layer_type = None if layer_type is None else text("layer_type", layer_type)
        key, given = self._rope_mapping()
        layer_types = self._config.get("layer_types") or []
        if not isinstance(layer_types, (list, tuple)) or not all(isinstance(name, str) for name in layer_types):
            raise _wrong("layer_types", f"is {shown(layer_types)}", "a list of names", kind=TypeError)
        self._layer_types = list(layer_types)
        self._names = (*self._model.layers, *self._layer_types)
        nested = {
            name: value
            for name, value in given.items()
            if isinstance(value, Mapping) or (value is None and name in self._names)
        }
        has_layers = bool(self._model.layers or self._model.nested)
        if has_layers and given in self._model.neutral.get(key, []):
            given = {}
        self._is_nested = bool(nested)
        self._is_given = bool(given)  # by the config, not by the row
        if nested:
            self._names = (*self._names, *nested)
            mapping = self._of_nested(key, given, nested)
        elif has_layers:
            mapping = self._of_known_layers(key, given)
        else:
            mapping = given or self._model.rope
        self._written = mapping
        neutral = [name for name in table()["neutral_factors"] if mapping.get(name) == 1]
        self._mapping = {name: value for name, value in mapping.items() if value is not None and name not in neutral}
        self._own = self._own_values()

    def _rope_mapping(self) -> tuple[str, Json]:
        """The rope mapping that transformers reads, and its key; two must say the same."""
        for key in ("rope_scaling", "rope_parameters"):
            given = self._config.get(key) or {}
            if not isinstance(given, Mapping):
                raise _wrong(key, f"is {shown(given)}", "a mapping", kind=TypeError)
        given = self._config.get("rope_scaling")
        if not given:
            return "rope_parameters", self._config.get("rope_parameters") or {}
        first = {"type": given.get("rope_type"), "rope_type": given.get("type"), **self._config, **given}
        for name, value in (self._config.get("rope_parameters") or {}).items():
            if first.get(name) != value:
                found = f"is {shown(value)}, and the rope_scaling, which counts, has {shown(first.get(name))}"
                raise _wrong(("rope_parameters", name), found, "the same", "leave one of the two mappings out")
        return "rope_scaling", given

    def require_layer_type(self, *, is_chosen: bool) -> None:
        """Refuse layers that are not rotated, and a type that no key knows; keys that are not read have been refused."""
        layer_type, model = self._layer_type, self._model
        key, for_null = model.unrotated.get(layer_type or "") or ("", False)
        is_rotated = key in self._config and (self._config[key] is None) == for_null
        unrotated = [] if self._is_nested or model.layers else table()["unrotated_layers"]
        if layer_type in (*model.unrotated, *unrotated) and not is_rotated:
            found = f"is {layer_type!r}: these layers are not rotated"
            raise refused(ValueError, "layer_type", found, remedy="leave their queries and keys as they are")
        self._require_rotated_layers()
        if model.source and not (self._is_nested or model.layers):
            self._names = tuple(name for name in self._names if name in table()["layer_types"])
        if not is_chosen and layer_type not in (None, *self._names):
            found, remedy = f"is {layer_type!r}, but nothing in the config distinguishes layers", "leave it out"
            if self._names:
                found, remedy = f"is {layer_type!r}", f"give one of {', '.join(map(repr, dict.fromkeys(self._names)))}"
            raise refused(ValueError, "layer_type", found, remedy=remedy)

    def _require_rotated_layers(self) -> None:
        """Refuse layers of which each has 0 in the list of those that are rotated."""
        key = self._model.rotated_layers
        values = self._config.get(key) or []
        if not key or not isinstance(values, (list, tuple)):
            return
        if not values and self._config.get("no_rope_layer_interval") == 1:
            key, values = "no_rope_layer_interval", [0]
        if values and not any(self._of_this_type(values) or values):
            found, remedy = f"is {shown(self._config[key])}: these layers are not rotated", "leave them as they are"
            raise _wrong(key, found, remedy=remedy)

    def _of_this_type(self, values: list[Any] | tuple[Any, ...]) -> list[Any]:
        """Those of a list with one value for each layer that are for this type of layers."""
        if self._layer_type not in self._layer_types:
            return list(values)
        kinds = zip(values, self._layer_types, strict=False)
        return [value for value, kind in kinds if kind == self._layer_type]

    def _of_nested(self, key: str, given: Json, nested: Json) -> Json:
        """The mapping of this type, where the config has one for each."""
        layers = self._model.layers
        layer_type = self._chosen({**layers, **nested})
        if key == "rope_scaling" and layers:
            found = f"has {', '.join(nested)}, which transformers does not read there in models of this type"
            raise _wrong(key, found, remedy="write rope_parameters in place of rope_scaling")
        # Names that are not types of layers count only together.
        missing = {*layers} - {*nested, *table()["layer_types"]}
        if missing:
            raise _wrong((key, *missing), "is missing", f"an entry for each of {', '.join(layers)}", "write it")
        mapping = nested.get(layer_type, {})
        for name, value in given.items():
            is_known = name in _read_here and (value is None or mapping.get(name) is not None)
            if name not in nested and not is_known:
                found = f"is {shown(value)}, next to {', '.join(nested)}"
                raise _wrong((key, name), found, "only types of layers", "move it into the types that it is for")
        self._model = self._model.of_layer(layer_type)
        self._require_rope_type((key, layer_type), mapping)
        return mapping  # type: ignore[no-any-return]

    def _of_known_layers(self, key: str, given: Json) -> Json:
        """The mapping of this type, where the config has one or none, and the row says what that means for it."""
        known = self._model.layers
        if not known:
            expected = '{"full_attention": {..}, ..}, a mapping for each type of layers'
            raise _wrong("rope_parameters", f"is {shown(dict(given) or None)}", expected)
        layer_type = self._chosen(known)
        if given and (key == "rope_parameters" or self._model.nested):
            expected = f"a mapping for each type of layers: {', '.join(known)}"
            remedy = f'write {{"{layer_type}": {{..}}, ..}}, or give scaling= and base='
            raise _wrong(key, f"is {shown(dict(given))}", expected, remedy)
        self._model = self._model.of_layer(layer_type)
        if not (given and self._model.scaled):
            self._is_given = False
            return self._model.rope
        self._require_rope_type((key,), given)
        for name in ("rope_theta", "partial_rotary_factor") if self._model.own_theta else ():
            if given.get(name) is not None:
                found = f"is {shown(given[name])}, which transformers does not read here"
                raise _wrong((key, name), found, remedy=f"write {self._model.names_of(name)[0]} next to {key}")
        return given

    def _require_rope_type(self, place: Path, given: Json) -> None:
        """Refuse a scaling that transformers does not see in models of this type."""
        if self._model.scaled == "rope_type" and "rope_type" not in given and given.get("type", "default") != "default":
            found = "without a rope_type, which is not a scaling in models of this type in transformers"
            remedy = "write rope_type, or give scaling= and base="
            raise _wrong(place, f"is {shown(dict(given))} {found}, and is one in other systems", remedy=remedy)

    def _chosen(self, layers: Json) -> str:
        """`layer_type`, if it is one of `layers` and has positions."""
        names = ", ".join(map(repr, layers))
        if self._layer_type is None:
            found = "is None, but this model has several types of layers"
            raise refused(ValueError, "layer_type", found, remedy=f"give one of {names}")
        if self._layer_type not in layers:
            raise refused(ValueError, "layer_type", f"is {self._layer_type!r}", f"one of {names}")
        if layers[self._layer_type] is None:
            found = f"is {self._layer_type!r}: these layers are not rotated, their entry is null"
            raise refused(ValueError, "layer_type", found)
        return self._layer_type

    def _own_values(self) -> Json:
        """What the config says only of the layers that are meant, as transformers 5 writes it; all must have the same."""
        layers = self._config.get("per_layer_config") or {}
        if not isinstance(layers, Mapping) or not all(
            str(index).isdecimal() and len(str(index)) < 10 and isinstance(values, Mapping)
            for index, values in layers.items()
        ):
            raise _wrong("per_layer_config", f"is {shown(layers)}", "mappings by the layer's number", kind=TypeError)
        read = {*self._usual_width, *self._model.read_keys()}
        own = {int(at): {name: each for name, each in values.items() if name in read} for at, values in layers.items()}
        count = self._config.get("num_hidden_layers")
        # Without their number, some layers are not in the list: they have the config's values.
        meant = [*range(count)] if isinstance(count, int) and 0 < count < 1000 else [*own, -1]
        if self._layer_type in self._layer_types:
            meant = [at for at, kind in enumerate(self._layer_types) if kind == self._layer_type]
        for name in {name for values in own.values() for name in values}:
            outer = self._config.get(name)
            values = [own.get(at, {}).get(name, outer) for at in meant]
            if name in ("rope_scaling", "rope_parameters"):
                values.append(outer)
            if any(value != values[0] for value in values) and not self._keys.given >= {"base", "rotary_dim"}:
                found, expected = f"has several values of {name} for the layers that are meant", "one value"
                remedy = "give their layer_type=, or rotary_dim= and base="
                raise _wrong("per_layer_config", found, expected, remedy)
        return own.get(meant[0], {}) if meant else {}

    def pairing(self) -> bool:
        """Whether pairs are neighbours."""
        key = self._model.pairing_key
        given = self._config.get(key) if key else None
        return flag(path_text((key,)), self._model.interleaved if given is None else given)

    def value(self, key: str, *, null_counts: bool = False) -> Any:
        """What the config says under any name of `key`, or else the row; None where neither does.

        With `null_counts`, null in the config is a value, not a missing key.
        """
        names = self._model.names_of(key)
        for name in names:
            outer, _, inner = name.partition(".")
            found = self._own.get(name, self._config.get(outer))
            if inner and isinstance(found, Mapping):
                found = found.get(inner)
            if isinstance(found, (list, tuple)):
                found = self._of_layer(name, found)
            if found is not None:
                return found
        if null_counts and any(name in self._config for name in names):
            return None
        return next((self._model.defaults[name] for name in names if name in self._model.defaults), None)

    def _written_name(self, key: str) -> str:
        """What this config calls `key`."""
        names = self._model.names_of(key) or [key]
        return next((name for name in names if self._config.get(name) is not None), names[0])

    def _of_layer(self, name: str, values: list[Any] | tuple[Any, ...]) -> Any:
        """The value of a list with one for each layer; 0 stands for layers that are not rotated."""
        values = self._of_this_type(values)
        different = sorted({_number(name, value) for value in values if value})
        if values and not different:
            return 0
        if len(different) != 1:
            remedy = "write this number in place of the list, or give it as an argument: base= or rotary_dim="
            raise _wrong(name, f"has {different}", "one number for the layers that are meant", remedy)
        return different[0]

    def base(self) -> float:
        """The base of the frequencies."""
        path = self._null_path("rope_theta")
        if path is not None:
            what = "is null: in transformers, OLMo Hybrid is not rotated then, and other models cannot compute"
            raise _wrong(path, what, remedy="leave queries and keys as they are, or give base=")
        model = self._model
        is_outer = bool(model.layers) and any(name in self._config for name in model.names_of("rope_theta"))
        if self._is_nested and (model.nested or model.own_theta or is_outer) and "rope_theta" not in self._mapping:
            what = "is missing in the entry of these layers, and nothing else takes its place"
            raise _wrong("rope_theta", what, remedy="write it there, or give base=")
        found = self._number("rope_theta")
        if found is None:
            what = "is missing, and the default of this model_type is not known"
            raise _wrong(self._model.names_of("rope_theta")[0], what, remedy=f"give base={other_models(self._config)}")
        if found == 0.0:
            what, remedy = "is 0: the layers that are meant are not rotated", "leave their queries and keys as they are"
            raise _wrong(self._written_name("rope_theta"), what, remedy=remedy)
        return found

    def _null_path(self, key: str) -> Path | None:
        """Where null stands, if it stands where transformers reads this key: in the rope mapping, or else in the config."""
        if key in self._written:
            return ("rope_parameters", key) if self._written[key] is None else None
        # The first of several names is optional in transformers, and it reads no key of an inner mapping.
        names = [name for name in self._model.names_of(key) if "." not in name][-1:]
        is_read = not self._model.nested or key in self._model.names
        written = is_read and [name for name in names if name in self._config]
        return (names[0],) if written and self.value(key, null_counts=True) is None else None

    def _share(self) -> float:
        """The part of the head that is rotated."""
        model, path = self._model, self._null_path("partial_rotary_factor")
        if path and model.partial is True and model.partial_rotary_factor is not None and not model.rotary_dim:
            remedy = f"write 1.0 for it, or {model.partial_rotary_factor}, the part that these models usually rotate"
            raise _wrong(path, "is null, which is the whole head in transformers", remedy=remedy)
        found = self._number("partial_rotary_factor")
        usual = model.rope.get("partial_rotary_factor")
        if found is None and self._is_nested and model.partial is True and usual not in (None, 1.0):
            remedy = f"write 1.0, or {usual}, which is usual in these layers"
            raise _wrong("partial_rotary_factor", "is missing in the entry of these layers", remedy=remedy)
        if found is not None and not 0.0 < found <= 1.0:
            raise _wrong(self._written_name("partial_rotary_factor"), f"is {found!r}", "a number above 0, at most 1")
        return 1.0 if found is None else found

    def _number(self, key: str) -> float | None:
        """A number of the rope mapping, or else of the config, or else of the row.

        If the config has no rope mapping, transformers takes the row's, and does not look at the config's own key then.
        """
        inner, outer, default = self._mapping.get(key), self.value(key), getattr(self._model, key)
        if self._is_given and inner is not None:
            return _number(key, inner)
        chosen = next((each for each in (inner, outer, default) if each is not None), None)
        if outer is not None and outer != chosen:
            found = f"is {shown(outer)}, which transformers does not read here: it takes {chosen!r}"
            remedy = f'write {chosen!r}, or {{"rope_parameters": {{"{key}": {shown(outer)}, ..}}}}'
            raise _wrong(key, found, remedy=remedy)
        return None if chosen is None else _number(key, chosen)

    def head(self) -> int | None:
        """Columns of a head, or of its tail where this is what is rotated; None if the config does not say."""
        usual = [self._own[term] for term in self._usual_width if term in self._own]
        return next((size for size in itertools.chain(usual, map(self._term, self._model.width)) if size), None)

    def width(self) -> tuple[int | None, int]:
        """Columns of a head, and those that are rotated; odd ones have as many frequencies as the next even number."""
        head = self.head()
        exact = self._model.rotary_dim
        exact_width = self._config.get(exact, self._model.defaults.get(exact)) if exact else None
        has_share = {**self._config, **self._mapping}.get("partial_rotary_factor") is not None
        share = 1.0
        if exact_width is not None and not has_share:
            width = _size(exact, exact_width)
            share = width / (head or width)
        elif head is None:
            terms = [f"{' or '.join(self._model.names_of(term))}" for term in self._model.width]
            found = f"is missing, the width of a head, and so are {', '.join(terms[1:]) or 'its other names'}"
            remedy = f"give rotary_dim=, the number of columns that are rotated{other_models(self._config)}"
            raise _wrong(self._model.width[0], found, remedy=remedy)
        else:
            width, share = _size("head_dim", head), self._share()
            if self._rope_type() != "proportional" and self._model.partial != "ignored" and share != 1.0:
                if not self._model.partial:
                    found = f"is {share!r}, but models of this type rotate whole heads in transformers"
                    remedy = f"leave it out to do the same, or give rotary_dim={int(head * share)}"
                    raise _wrong("partial_rotary_factor", found, remedy=remedy)
                width = _size("partial_rotary_factor", int(head * share))
        if not self._model.source:
            self._keys.require("size", is_nested=True)
        self._keys.require("width", head, width)
        self._keys.require("rotated", width)
        self._keys.require("share", share)
        return head, width

    def _term(self, term: str) -> int | None:
        """The value of a key, or of a quotient such as "2 * hidden_size // num_attention_heads"."""
        dividend, _, divisor = term.partition(" // ")
        words = dividend.split(" * ")
        factors = [int(word) if word.isdigit() else self._count(word, null_counts=True) for word in words]
        below = self._count(divisor, null_counts=False) if divisor else 1
        known = [factor for factor in factors if factor]
        if not below or len(known) != len(words):
            return None
        if divisor:
            self._keys.require("size", known[-1], below)
        above, defaults = math.prod(known), self._model.defaults
        if above % below and [known[-1], below] != [defaults.get(key) for key in (words[-1], divisor)]:
            key, heads = map(self._written_name, (words[-1], divisor))
            found, remedy = f"is {known[-1]}, and {heads} is {below}", "correct them, or give rotary_dim="
            raise _wrong(key, found, "a multiple of the number of heads", remedy)
        return above // below

    def _count(self, key: str, *, null_counts: bool) -> int | None:
        """A number of columns or heads; None for 0 as well."""
        found = self.value(key, null_counts=null_counts)
        return _size(key, found) if found else None

    def _rope_type(self) -> Any:
        given = self._mapping.get("rope_type", self._mapping.get("type", "default"))
        names = {**_other_types, **self._model.types}
        return names.get(given, given) if isinstance(given, str) else given

    def divisor(self) -> Any:
        """What positions are divided by."""
        return self._mapping.get("factor") if self._rope_type() == "linear" else 1

    def has_base_ntk(self) -> bool:
        """Whether the scaling is the "ntk" of models whose base is multiplied by the factor."""
        written = self._mapping.get("rope_type", self._mapping.get("type"))
        return isinstance(written, str) and self._model.types.get(written) == "base_ntk"

    def scaling(self, seq_len: int | None) -> dict[str, Any]:
        """The rope mapping as `RotaryEmbedding` takes it, without the base."""
        if self._model.dynamic and not self._mapping:
            factor, trained = (self._config.get(key, self._model.defaults.get(key)) for key in self._model.dynamic)
            if factor in (None, 1, 1.0):
                return {"rope_type": "default"}
            return {"rope_type": "dynamic", "factor": factor, "max_position_embeddings": trained}
        rope_type = self._rope_type()
        if self.has_base_ntk():
            return {key: value for key, value in self._mapping.items() if key not in _read_here}
        dropped = (*_read_here, *table()["unused_keys"])
        if rope_type == "default" and "mrope_section" in self._mapping:
            dropped = (*dropped, "interleaved")  # Qwen3-Omni's files have it with the sections, and nothing reads it
        result = {key: value for key, value in self._mapping.items() if key not in dropped}
        # rotary_frequencies names the key of a type that it does not know.
        is_wrong_type = not is_known_type(rope_type) and "type" in self._mapping and "rope_type" not in self._mapping
        result = {"type" if is_wrong_type else "rope_type": rope_type, **result}
        if rope_type != "default" and self._mapping.get("rope_type", rope_type) != self._mapping.get("type", rope_type):
            result["type"] = self._mapping.get("type")  # rotary_frequencies says that it does not count
        self._require_factors(rope_type)
        if rope_type in ("yarn", "llama3", "longrope"):
            result["original_max_position_embeddings"] = self._trained_length()
        if rope_type == "yarn":
            result = {**self._model.yarn, **result}
            # 0 stands for the default.
            result = {key: value for key, value in result.items() if value or key not in ("beta_fast", "beta_slow")}
        if rope_type == "proportional":
            result["partial_rotary_factor"] = self._share()
        if rope_type == "dynamic" and result.get("alpha"):
            result = {key: value for key, value in result.items() if key not in _unused_with_alpha}
        elif rope_type == "dynamic" or (rope_type in ("yarn", "longrope") and "factor" not in result):
            result["max_position_embeddings"] = self._longest_length()
        if rope_type == "longrope" and self._model.longrope == "mscale":
            result = _with_mscale(result, seq_len)
        result = {key: value for key, value in result.items() if value is not None}
        if len(result) > 1 and not {"rope_type", "type"} & {*self._mapping}:
            del result["rope_type"]  # rotary_frequencies says that it is missing
        return result

    def _require_factors(self, rope_type: Any) -> None:
        """Refuse types that models of this type do not have, those that systems read differently, and missing factors."""
        key = "rope_type" if "rope_type" in self._written else "type"
        written = self._written.get(key)
        place = ("rope_scaling", key)
        allowed, told = self._model.rope_types, table()["told_scalings"]
        for name, word in {**{name: name for name in self._mapping}, key: rope_type}.items():
            if isinstance(word, str) and word in told:
                found = f"is {shown(self._mapping[name])}, which transformers does not have"
                raise _wrong((place[0], name), found, remedy=told[word])
        if allowed and rope_type not in allowed:
            found, expected = f"is {shown(written)}, which models of this type do not have", " or ".join(allowed)
            raise _wrong(place, found, expected, "correct it, or give scaling=")
        mscales = ("short_mscale", "long_mscale")
        if rope_type == "longrope" and self._model.longrope == "mscale" and not {*mscales} <= {*self._mapping}:
            found = f"is {written!r} without {' and '.join(mscales)}, which transformers refuses in models of this type"
            raise _wrong(place, found, remedy="write both")
        if rope_type == "yarn" and "factor" not in self._written:
            remedy = 'write it, or "factor": null for max_position_embeddings / original_max_position_embeddings'
            raise _wrong(place, "is 'yarn' without a factor, which transformers refuses", remedy=remedy)
        if rope_type == "longrope" and written != rope_type and not {"short_factor", "long_factor"} <= {*self._mapping}:
            found = f"is {written!r}, which means 'longrope' here, as in the files of early Phi 3 models, without "
            raise _wrong(place, f"{found}short_factor and long_factor", remedy="write both, or correct the type")

    def _longest_length(self) -> Any:
        found = self.value("max_position_embeddings")
        return self._mapping.get("max_position_embeddings") if found is None else found

    def _trained_length(self) -> Any:
        """The config's own key wins, but for models with types of layers, where it is ignored."""
        outer = None if self._is_nested or self._model.layers else self.value("original_max_position_embeddings")
        inner = self._mapping.get("original_max_position_embeddings")
        return next((each for each in (outer, inner, self._longest_length()) if each is not None), None)

    def frequency_axes(self, width: int) -> Any:
        """Which coordinate each frequency belongs to: time 0, height 1, width 2."""
        if self._model.mrope is None:
            found, remedy = "is True, but models of this type have one coordinate", "leave it out"
            if not self._model.source:
                found = "is True, but what coordinate turns which frequency is not known of this model_type"
                remedy = "use one of fastpe.rotary_layouts, or leave it out for text"
            raise refused(ValueError, "mrope", found, remedy=remedy)
        kind, default = self._model.mrope
        if kind == "doubled":
            found = "is True, but this model cuts its sections from the doubled width: the partners of a pair may have "
            found += "different angles, which is not a rotation"
            raise refused(ValueError, "mrope", found, remedy="leave it out for text")
        is_mixed = self._mapping.get("mrope_interleaved")
        if is_mixed is not None and bool(is_mixed) != (kind == "interleaved"):
            found = f"is {shown(is_mixed)}, which transformers does not read, and other systems do"
            remedy = "leave it out to do as transformers, or use one of fastpe.rotary_layouts"
            raise _wrong(("rope_scaling", "mrope_interleaved"), found, remedy=remedy)
        sections = self._mapping.get("mrope_section", default)
        place = ("rope_scaling", "mrope_section")
        if not isinstance(sections, (list, tuple)) or [type(each) for each in sections] != [int] * 3:
            raise _wrong(place, f"is {shown(sections)}", "a list of 3 ints", kind=TypeError)
        if sum(sections) != width // 2 or min(sections) < 0:
            raise _wrong(place, f"is {shown(sections)}", f"3 numbers whose sum is {width // 2}")
        division = {"sections": "runs", "interleaved": "strides"}.get(kind, "turns")
        if division == "turns" and sections[0] != sections[1]:
            raise _wrong(place, f"is {shown(sections)}", "that the first two are equal")
        return axes_of(division, sections)


def _odd_frequencies(width: int, base: Any, scaling: dict[str, Any]) -> Any:
    """base**(-2k / width) for an odd width: every second frequency of the double width."""
    rope_type = scaling.get("rope_type", "default")
    if rope_type not in ("default", "linear"):
        found, expected = f"gives a rotated part of {width} columns", f"an even number for {rope_type!r}"
        raise _wrong("partial_rotary_factor", found, expected, "give rotary_dim=")
    return rotary_frequencies(2 * width, base=base, scaling=scaling)[0][::2]


def _with_mscale(scaling: dict[str, Any], seq_len: int | None) -> dict[str, Any]:
    """PhiMoE: the length chooses between two attention factors, and the short factors serve every length."""
    result = {key: value for key, value in scaling.items() if key not in ("short_mscale", "long_mscale")}
    if seq_len is None:
        return result  # RotaryEmbedding says that it needs the length
    is_long = integer("seq_len", seq_len, 0) > scaling["original_max_position_embeddings"]
    result["long_factor"] = scaling.get("short_factor")
    result["attention_factor"] = scaling.get("long_mscale" if is_long else "short_mscale")
    return result


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        remedy = "write it without quotes" if isinstance(value, str) else ""
        raise _wrong(name, f"is {shown(value)}", "a number", remedy, TypeError)
    if not abs(value) <= sys.float_info.max:
        raise _wrong(name, f"is {shown(value)}", "a finite number")
    return float(value)


def _size(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        remedy = "write it without quotes" if isinstance(value, str) else ""
        raise _wrong(name, f"is {shown(value)}", "an int", remedy, TypeError)
    if not 1 <= value <= _largest_size:
        raise _wrong(name, f"is {shown(value)}", f"1 to {_largest_size}")
    return value
