# SPDX-License-Identifier: BSD-3-Clause
"""What a model's config.json says about its rotary embedding.

The file does not say all: which columns are pairs, and the defaults of keys that it leaves out, follow from its
`model_type`. transformers' reading of a key decides, and a key that it does not read is not passed over in silence.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from fastpe._arguments import flag, integer, shown, text
from fastpe._errors import refused
from fastpe._rotary.config_file import Json, load
from fastpe._rotary.config_keys import Keys, path_text
from fastpe._rotary.config_models import Found, find_model, table
from fastpe._rotary.scaling import is_known_type, read_rotary_dim, rotary_frequencies

# Keys of the same meaning in every rope mapping.
_read_here = (
    "rope_type",
    "type",
    "rope_theta",
    "partial_rotary_factor",
    "original_max_position_embeddings",
    "max_position_embeddings",
)
_other_types = {"mrope": "default"}
# More columns or heads than any model has: products of such numbers stay exact.
_largest_size = 2**31
# HunYuan's files have these keys together with an alpha, and nothing reads them.
_unused_with_alpha = ("factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")


def read_config(
    config: Json | str | os.PathLike[str],
    *,
    layer_type: str | None,
    seq_len: int | None,
    interleaved: bool | None,
    axes: bool,
    base: float | None,
    scaling: Json | None,
    rotary_dim: int | None,
) -> dict[str, Any]:
    """The arguments of the `RotaryEmbedding` that `config` means. Arguments that are given count, not the keys."""
    pairing = None if interleaved is None else flag("interleaved", interleaved)
    found = find_model(load(config), pairing)
    _require_rotary(found)
    given = {"interleaved": interleaved, "base": base, "scaling": scaling, "rotary_dim": rotary_dim}
    keys = Keys(
        found.config,
        found.outer,
        read=_read_keys(found),
        given={name for name, value in given.items() if value is not None},
    )
    for role in ("without", "switch", "kind", "other", "base factor"):
        keys.require(role)
    count = found.config.get("num_hidden_layers")
    # Molmo 2 lists the layers that are scaled: all of them, or the list is not known.
    keys.require("scaling", *([list(range(count))] if isinstance(count, int) and 0 < count < 1000 else []))
    layer = _Layer(found, layer_type)
    if pairing is None:
        pairing = layer.pairing()
    keys.require("pairing", pairing)
    keys.require("opposite pairing", not pairing)
    result: dict[str, Any] = {"interleaved": pairing, "form": found.model.form}
    if found.model.conjugate:
        result["conjugate"] = True
    if rotary_dim is None:
        head, width = layer.width(keys)
    else:
        head, width = layer.head(), read_rotary_dim(rotary_dim)
    own_base = None
    has_base = base is not None or (isinstance(scaling, Mapping) and scaling.get("rope_theta") is not None)
    if not has_base:
        own_base = layer.base()
        keys.require("base", own_base)
    if base is None:
        layer.require_layer_type()
    result = {"rotary_dim": width + width % 2, **result}
    if head is not None and head >= result["rotary_dim"]:
        result["head_dim"] = head
    if flag("axes", axes):
        result["axes"] = layer.axes(width)
    chosen_base = own_base if base is None else base
    if scaling is not None:
        return {**result, "base": chosen_base, "scaling": scaling, "seq_len": seq_len}
    read = layer.scaling(seq_len)
    if width % 2:
        result["freqs"] = _odd_frequencies(width, chosen_base, read)
    elif read == {"rope_type": "default"}:
        result["base"] = chosen_base
    else:
        result["scaling"] = {**read, "rope_theta": chosen_base}
        result["seq_len"] = seq_len
    return result


def _read_keys(found: Found) -> set[str]:
    """The keys that count. Where the type is not known, each name is compared with what the others say."""
    if found.model.source:
        return found.model.read_keys()
    has_tail = found.config.get("qk_rope_head_dim") is not None
    return {"rope_scaling", "rope_parameters", *(["head_dim"] if has_tail else [])}


def _require_rotary(found: Found) -> None:
    """Refuse a config that says that the model is not rotated."""
    for key, allowed in found.model.requires.items():
        if found.config.get(key, found.model.defaults.get(key)) not in allowed:
            raise refused(
                ValueError,
                path_text((key,)),
                f"is {shown(found.config.get(key))}: this model has no rotary embedding",
                remedy=f"leave its queries and keys as they are, or write {json.dumps({key: allowed[0]})} if yours has one",
            )


class _Layer:
    """The keys that count for one type of layers: the rope mapping's, then the config's, then the row's."""

    def __init__(self, found: Found, layer_type: str | None) -> None:
        self._config = found.config
        self._model = found.model
        self._usual_width = found.model.width
        self._layer_type = None if layer_type is None else text("layer_type", layer_type)
        key = "rope_scaling" if self._config.get("rope_scaling") else "rope_parameters"
        given = self._config.get(key) or {}
        if not isinstance(given, Mapping):
            raise refused(TypeError, path_text((key,)), f"is {shown(given)}", "a mapping")
        self._layer_types = self._texts("layer_types")
        self._names = (*self._model.layers, *self._layer_types)
        nested = {
            name: value
            for name, value in given.items()
            if isinstance(value, Mapping) or (value is None and name in self._names)
        }
        self._is_nested = bool(nested)
        self._is_given = bool(given)  # by the config, not by the row
        if nested:
            self._names = (*self._names, *nested)
            mapping = self._of_nested(key, given, nested)
        elif self._model.layers or self._model.nested:
            mapping = self._of_known_layers(key, given)
        else:
            mapping = given or self._model.rope
        self._written = mapping
        self._mapping = {name: value for name, value in mapping.items() if value is not None}
        self._own = self._own_values()

    def require_layer_type(self) -> None:
        """Refuse a type of layers that no key knows; keys that are not read have been refused by now."""
        if self._layer_type not in (None, *self._names):
            found = f"is {self._layer_type!r}, but nothing in the config distinguishes layers"
            raise refused(ValueError, "layer_type", found, remedy="leave it out")

    def _of_nested(self, key: str, given: Json, nested: Json) -> Json:
        """The mapping of this type, where the config has one for each."""
        layer_type = self._chosen({**self._model.layers, **nested})
        for name, value in given.items():
            if name not in nested and name not in _read_here:
                raise refused(
                    ValueError,
                    path_text((key, name)),
                    f"is {shown(value)}, next to {', '.join(nested)}",
                    "only types of layers",
                    "move it into the types that it is for",
                )
        self._model = self._model.of_layer(layer_type)
        return nested.get(layer_type, {})  # type: ignore[no-any-return]

    def _of_known_layers(self, key: str, given: Json) -> Json:
        """The mapping of this type, where the config has one or none, and the row says what that means for it."""
        known = self._model.layers
        if not known:
            expected = '{"full_attention": {..}, ..}, a mapping for each type of layers'
            raise refused(ValueError, path_text(("rope_parameters",)), f"is {shown(dict(given) or None)}", expected)
        layer_type = self._chosen(known)
        if given and (key == "rope_parameters" or self._model.nested):
            raise refused(
                ValueError,
                path_text((key,)),
                f"is {shown(dict(given))}",
                f"a mapping for each type of layers: {', '.join(known)}",
                f'write {{"{layer_type}": {{..}}, ..}}, or give scaling= and base=',
            )
        self._model = self._model.of_layer(layer_type)
        if not (given and self._model.scaled):
            self._is_given = False
            return self._model.rope
        if self._model.scaled == "rope_type" and "rope_type" not in given:
            raise refused(
                ValueError,
                path_text((key,)),
                f"is {shown(dict(given))} without a rope_type, which is not a scaling in models of this type in "
                f"transformers, and is one in other systems",
                remedy="write rope_type, or give scaling=",
            )
        return {name: value for name, value in given.items() if name != "rope_theta" or not self._model.own_theta}

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

    def _texts(self, key: str) -> list[str]:
        """A list of names in the config, empty where it is missing."""
        found = self._config.get(key) or []
        if not isinstance(found, (list, tuple)) or not all(isinstance(name, str) for name in found):
            raise refused(TypeError, path_text((key,)), f"is {shown(found)}", "a list of names")
        return list(found)

    def _own_values(self) -> Json:
        """What the config says only of the first layer of this type, as transformers 5 writes it."""
        layers = self._config.get("per_layer_config") or {}
        if not isinstance(layers, Mapping) or not all(
            str(index).isdecimal() and len(str(index)) < 10 and isinstance(values, Mapping)
            for index, values in layers.items()
        ):
            raise refused(
                TypeError, path_text(("per_layer_config",)), f"is {shown(layers)}", "mappings by the layer's number"
            )
        if self._layer_type not in self._layer_types:
            return {}
        first = self._layer_types.index(self._layer_type)
        return next((values for index, values in layers.items() if int(index) == first), {})

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
        names = self._model.names_of(key)
        return next((name for name in names if self._config.get(name) is not None), names[0])

    def _of_layer(self, name: str, values: list[Any] | tuple[Any, ...]) -> Any:
        """The value of a list with one for each layer; 0 stands for layers that are not rotated."""
        if self._layer_type in self._layer_types:
            kinds = zip(values, self._layer_types, strict=False)
            values = [value for value, kind in kinds if kind == self._layer_type]
        different = sorted({_number(name, value) for value in values if value})
        if values and not different:
            return 0
        if len(different) != 1:
            raise refused(
                ValueError,
                path_text((name,)),
                f"has {different}",
                "one number for the layers that are meant",
                "write this number in place of the list, or give it as an argument: base= or rotary_dim=",
            )
        return different[0]

    def base(self) -> float:
        """The base of the frequencies."""
        name = self._null_name("rope_theta")
        if name is not None:
            raise refused(
                ValueError,
                name,
                "is null, which transformers keeps and cannot compute with",
                remedy="give base=, or leave the key out for the default of the model_type",
            )
        found = self._number("rope_theta")
        if found is None:
            raise refused(
                ValueError,
                path_text((self._model.names_of("rope_theta")[0],)),
                "is missing, and the default of this model_type is not known",
                remedy="give base=",
            )
        if found == 0.0:
            place = path_text((self._written_name("rope_theta"),))
            remedy = "leave their queries and keys as they are"
            raise refused(ValueError, place, "is 0: the layers that are meant are not rotated", remedy=remedy)
        return found

    def _null_name(self, key: str) -> str | None:
        """Where null stands, if it stands where transformers reads this key: in the rope mapping, or else in the config."""
        if key in self._written:
            return path_text(("rope_parameters", key)) if self._written[key] is None else None
        # The first of several names is optional in transformers, and it reads no key of an inner mapping.
        names = [name for name in self._model.names_of(key) if "." not in name][-1:]
        is_read = not self._model.nested or key in self._model.names
        written = is_read and [name for name in names if name in self._config]
        return path_text((names[0],)) if written and self.value(key, null_counts=True) is None else None

    def _share(self) -> float:
        """The part of the head that is rotated."""
        found = self._number("partial_rotary_factor")
        if found is not None and not 0.0 < found <= 1.0:
            place = path_text((self._written_name("partial_rotary_factor"),))
            raise refused(ValueError, place, f"is {found!r}", "a number above 0, at most 1")
        return 1.0 if found is None else found

    def _number(self, key: str) -> float | None:
        """A number of the rope mapping, or else of the config, or else of the row.

        If the config has no rope mapping, transformers takes the row's, and does not look at the config's own key then.
        """
        inner, outer, default = self._mapping.get(key), self.value(key), getattr(self._model, key)
        if self._is_given and inner is not None:
            return _number(key, inner)
        chosen = next((each for each in (inner, outer, default) if each is not None), None)
        # The key itself, where models of this type have another name for it.
        has_other_name = self._layer_type is None and key not in self._model.names_of(key)
        unread = self._config.get(key) if has_other_name else None
        for written in (outer, unread):
            if written is not None and written != chosen:
                raise refused(
                    ValueError,
                    path_text((key,)),
                    f"is {shown(written)}, which transformers does not read here: it takes {chosen!r}",
                    remedy=f'write {chosen!r}, or {{"rope_parameters": {{"{key}": {shown(written)}, ..}}}}',
                )
        return None if chosen is None else _number(key, chosen)

    def head(self) -> int | None:
        """Columns of a head, or of its tail where this is what is rotated; None if the config does not say."""
        usual = [self._own[term] for term in self._usual_width if term in self._own]
        return next((size for size in itertools.chain(usual, map(self._term, self._model.width)) if size), None)

    def width(self, keys: Keys) -> tuple[int | None, int]:
        """Columns of a head, and those that are rotated; odd ones have as many frequencies as the next even number."""
        exact = self._model.rotary_dim
        if (
            exact
            and self._config.get(exact, self._model.defaults.get(exact)) is not None
            and "partial_rotary_factor" not in {**self._mapping, **self._config}
        ):
            width = _size(exact, self._config.get(exact, self._model.defaults.get(exact)))
            head = self.head()
            keys.require("width", width, head)
            keys.require("share", width / (head or width))
            return head, width
        # Files write another width of one type of layers under a key of its own, or under the usual key of these.
        head = self.head()
        if head is None:
            terms = [f"{' or '.join(self._model.names_of(term))}" for term in self._model.width]
            raise refused(
                ValueError,
                path_text((self._model.width[0],)),
                f"is missing, the width of a head, and so are {', '.join(terms[1:]) or 'its other names'}",
                remedy="give rotary_dim=, the number of columns that are rotated",
            )
        share = self._share()
        if self._rope_type() == "proportional" or self._model.partial == "ignored" or share == 1.0:
            keys.require("width", head)
            keys.require("share", share)
            return _size("head_dim", head), head
        if not self._model.partial:
            raise refused(
                ValueError,
                path_text(("partial_rotary_factor",)),
                f"is {share!r}, but models of this type rotate whole heads in transformers",
                remedy=f"leave it out to do the same, or give rotary_dim={int(head * share)}",
            )
        width = _size("partial_rotary_factor", int(head * share))
        keys.require("width", head, width)
        keys.require("share", share)
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
        above, defaults = math.prod(known), self._model.defaults
        if above % below and [known[-1], below] != [defaults.get(key) for key in (words[-1], divisor)]:
            key, heads = map(self._written_name, (words[-1], divisor))
            raise refused(
                ValueError,
                path_text((key,)),
                f"is {known[-1]}, and {heads} is {below}",
                "a multiple of the number of heads",
                "correct them, or give rotary_dim=",
            )
        return above // below

    def _count(self, key: str, *, null_counts: bool) -> int | None:
        """A number of columns or heads; None for 0 as well."""
        found = self.value(key, null_counts=null_counts)
        return _size(key, found) if found else None

    def _rope_type(self) -> Any:
        given = self._mapping.get("rope_type", self._mapping.get("type", "default"))
        names = {**_other_types, **self._model.types}
        return names.get(given, given) if isinstance(given, str) else given

    def scaling(self, seq_len: int | None) -> dict[str, Any]:
        """The rope mapping as `RotaryEmbedding` takes it, without the base."""
        if self._model.dynamic and not self._mapping:
            factor, trained = (self._config.get(key, self._model.defaults.get(key)) for key in self._model.dynamic)
            if factor in (None, 1, 1.0):
                return {"rope_type": "default"}
            return {"rope_type": "dynamic", "factor": factor, "max_position_embeddings": trained}
        rope_type = self._rope_type()
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
        written = self._written.get("rope_type", self._written.get("type"))
        place = path_text(("rope_scaling", "rope_type" if "rope_type" in self._written else "type"))
        allowed = self._model.rope_types
        if allowed and rope_type not in allowed:
            raise refused(
                ValueError,
                place,
                f"is {shown(written)}, which models of this type do not have",
                " or ".join(map(repr, allowed)),
                "correct it, or give scaling=",
            )
        if rope_type == "ntk":
            raise refused(
                ValueError,
                place,
                "is 'ntk', which systems read differently: base * factor**(d / (d - 2)), or base * factor and then "
                "frequencies / factor**(2 / d), as in vLLM and GTE; transformers does not have it",
                remedy='give scaling={"rope_type": "ntk", "factor": ..} for the first one, or base= or '
                "RotaryEmbedding(.., freqs=..)",
            )
        mscales = ("short_mscale", "long_mscale")
        if rope_type == "longrope" and self._model.longrope == "mscale" and not {*mscales} <= {*self._mapping}:
            found = f"is {written!r} without {' and '.join(mscales)}, which transformers refuses in models of this type"
            raise refused(ValueError, place, found, remedy="write both")
        if rope_type == "yarn" and "factor" not in self._written:
            found = "is 'yarn' without a factor, which transformers refuses"
            remedy = (
                'write the factor, or "factor": null for max_position_embeddings / original_max_position_embeddings'
            )
            raise refused(ValueError, place, found, remedy=remedy)
        if rope_type == "longrope" and written != rope_type and not {"short_factor", "long_factor"} <= {*self._mapping}:
            raise refused(
                ValueError,
                place,
                f"is {written!r}, which means 'longrope' here, as in the files of early Phi 3 models, without "
                f"short_factor and long_factor",
                remedy="write both, or correct the type",
            )

    def _longest_length(self) -> Any:
        found = self.value("max_position_embeddings")
        return self._mapping.get("max_position_embeddings") if found is None else found

    def _trained_length(self) -> Any:
        """With one mapping for all layers, the config's own key wins. With nested mappings, it is ignored."""
        outer = None if self._is_nested else self.value("original_max_position_embeddings")
        inner = self._mapping.get("original_max_position_embeddings")
        return next((each for each in (outer, inner, self._longest_length()) if each is not None), None)

    def axes(self, width: int) -> Any:
        """Which coordinate turns each frequency: time 0, height 1, width 2."""
        if self._model.mrope is None:
            raise refused(
                ValueError, "axes", "is True, but models of this type have one coordinate", remedy="leave it out"
            )
        kind, default = self._model.mrope
        if kind == "doubled":
            raise refused(
                ValueError,
                "axes",
                "is True, but this model cuts its sections from the doubled width: the partners of a pair may have "
                "different angles, which is not a rotation",
                remedy="leave it out for text",
            )
        sections = self._mapping.get("mrope_section", default)
        place = path_text(("rope_scaling", "mrope_section"))
        if not isinstance(sections, (list, tuple)) or [type(each) for each in sections] != [int] * 3:
            raise refused(TypeError, place, f"is {shown(sections)}", "a list of 3 ints")
        if sum(sections) != width // 2 or min(sections) < 0:
            raise refused(ValueError, place, f"is {shown(sections)}", f"3 numbers whose sum is {width // 2}")
        if kind == "sections":
            return np.repeat([0, 1, 2], sections)
        result = np.zeros(width // 2, np.int64)
        if kind == "interleaved":
            for axis in (1, 2):
                result[axis : 3 * sections[axis] : 3] = axis
        else:
            # Ernie 4.5 VL: height and width take turns; its sections are for height, width and time.
            if sections[0] != sections[1]:
                raise refused(ValueError, place, f"is {shown(sections)}", "that the first two are equal")
            result[: 2 * sections[0]] = np.tile([1, 2], sections[0])
        return result


def _odd_frequencies(width: int, base: Any, scaling: dict[str, Any]) -> Any:
    """base**(-2k / width) for an odd width: every second frequency of the double width."""
    rope_type = scaling.get("rope_type", "default")
    if rope_type not in ("default", "linear"):
        found = f"gives a rotated part of {width} columns"
        raise refused(
            ValueError,
            path_text(("partial_rotary_factor",)),
            found,
            f"an even number for {rope_type!r}",
            "give rotary_dim=",
        )
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
        raise refused(TypeError, path_text((name,)), f"is {shown(value)}", "a number", remedy)
    if not abs(value) <= sys.float_info.max:
        raise refused(ValueError, path_text((name,)), f"is {shown(value)}", "a finite number")
    return float(value)


def _size(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        remedy = "write it without quotes" if isinstance(value, str) else ""
        raise refused(TypeError, path_text((name,)), f"is {shown(value)}", "an int", remedy)
    if not 1 <= value <= _largest_size:
        raise refused(ValueError, path_text((name,)), f"is {shown(value)}", f"1 to {_largest_size}")
    return value
