# SPDX-License-Identifier: BSD-3-Clause
"""What a model's config.json says about its rotary embedding.

The file alone does not say it: which columns are pairs, and the defaults of keys that it leaves out, follow from its
`model_type`. models.json has one row for each, read from the classes of transformers. Their reading of a key decides.

What the fields of a row mean:

* interleaved, conjugate, form: as in `RotaryEmbedding`. pairing_key: a key of the config that decides the pairing.
* reorders: transformers leaves pairs of neighbours half of the width apart. Tests and documentation read it.
* width: keys of the config, or quotients of them; the first one that is there is the width of the head.
* partial: whether partial_rotary_factor is read; where it is "ignored", the width is that of the part already.
* rotary_dim: a key of the config that is the width of the part itself.
* rope_theta, partial_rotary_factor: defaults. rope: the mapping that counts if the config has none; it has no base where
  the config's own counts.
* layers: what differs for types of layers; null for layers that are not rotated. nested: there is no old form.
* scaled (of a layer): whether one mapping for all layers counts for this type; "rope_type": only if it has this key.
* own_theta (of a layer): a base in such a mapping does not count. yarn (of a layer): defaults of this scaling.
* types: other names of scalings. rope_types: the scalings that models of this type have, if not all.
* longrope: "mscale", the attention factor follows from the length.
* mrope: how sections divide the frequencies, and the default sections.
* requires: values of a key without which the model is not rotated. names: what a key is called. defaults: of its class.
* hand: fields that tools/rotary_models.py cannot measure. source: the folder in transformers.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fastpe._arguments import flag, integer, model_guess, shown, text
from fastpe._rotary.scaling import is_known_type, rotary_frequencies

Json = Mapping[str, Any]

# Where a row says nothing else: the width of a head, and the keys of the same meaning in every rope mapping.
_head_width = ("head_dim", "hidden_size // num_attention_heads")
_read_here = (
    "rope_type",
    "type",
    "rope_theta",
    "partial_rotary_factor",
    "original_max_position_embeddings",
    "max_position_embeddings",
)
_other_names = {"mrope": "default"}
# Parts and levels that lie inside of each other; files have 2 and 5.
_most_parts = 8
_most_levels = 16
# More columns or heads than any model has: products of such numbers stay exact.
_largest_size = 2**31
# Keys of the JSON files beside a config.json.
_other_files = {
    "weight_map": "the index of a checkpoint's files",
    "added_tokens": "a tokenizer.json",
    "added_tokens_decoder": "a tokenizer_config.json",
}
# HunYuan's files have these keys together with an alpha, and nothing reads them.
_unused_with_alpha = ("factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")


def read_config(
    config: Json | str | os.PathLike[str],
    *,
    layer_type: str | None,
    seq_len: int | None,
    interleaved: bool | None,
    axes: bool,
) -> dict[str, Any]:
    """The arguments of the `RotaryEmbedding` that `config` means."""
    model = _Model(*_text_part(_loaded(config), interleaved))
    layer = _Layer(model, layer_type)
    width = layer.width()
    pairing = model.pairing() if interleaved is None else flag("interleaved", interleaved)
    result: dict[str, Any] = {"rotary_dim": width + width % 2, "interleaved": pairing, "form": model.row["form"]}
    if model.row.get("conjugate"):
        result["conjugate"] = True
    if flag("axes", axes):
        result["axes"] = layer.axes(width)
    scaling = layer.scaling(seq_len)
    if width % 2:
        result["freqs"] = _odd_frequencies(width, layer.base(), scaling)
    elif scaling == {"rope_type": "default"}:
        result["base"] = layer.base()
    else:
        result["scaling"] = {**scaling, "rope_theta": layer.base()}
        result["seq_len"] = seq_len
    return result


@functools.cache
def _table() -> dict[str, Any]:
    """models.json."""
    table: dict[str, Any] = json.loads(
        importlib.resources.files("fastpe").joinpath("_rotary/models.json").read_text("utf-8")
    )
    return table


def model_types() -> list[str]:
    """The model types that have a row."""
    return list(_table()["models"])


def _loaded(config: Json | str | os.PathLike[str]) -> Json:
    """`config` itself, or what the file of this name has."""
    if isinstance(config, Mapping):
        _require_shallow(config)
        return config
    if not isinstance(config, (str, os.PathLike)):
        raise TypeError(
            f"config is a {type(config).__name__}, expected a mapping or the path of a config.json; {_config_hint(config)}"
        )
    if isinstance(config, str) and config.lstrip().startswith("{"):
        raise ValueError("config is JSON, expected a mapping or the path of a config.json; give json.loads(config)")
    if os.path.isdir(config):
        inside = os.path.join(config, "config.json")
        remedy = f"give {inside!r}" if os.path.isfile(inside) else "it has no config.json: give the path of one"
        raise IsADirectoryError(f"config is {os.fspath(config)!r}, a directory, expected a file; {remedy}")
    if not os.path.exists(config):
        name = os.fspath(config)
        hint = (
            f"for a name on a hub, give huggingface_hub.hf_hub_download({name!r}, 'config.json'), or "
            f"transformers.AutoConfig.from_pretrained({name!r}).to_dict()"
        )
        raise FileNotFoundError(
            f"config is {name!r}, which is no file, expected a mapping or the path of a config.json; "
            f"{hint if may_be_on_a_hub(name) else 'correct the path'}"
        )
    with open(config, encoding="utf-8") as file:
        try:
            loaded = json.load(file)
        except ValueError as error:
            raise ValueError(f"config is {os.fspath(config)!r}, which is no JSON: {error}") from None
        except RecursionError:
            raise ValueError(
                f"config is {os.fspath(config)!r}, whose JSON is nested too deeply, expected a config.json; give the path "
                f"of one"
            ) from None
    if not isinstance(loaded, dict):
        raise TypeError(f"config is {os.fspath(config)!r}, which has a {type(loaded).__name__}, expected a JSON object")
    _require_shallow(loaded)
    return loaded


def _require_shallow(config: Json) -> None:
    """Refuse a mapping that contains itself, or is nested so deeply that no model's can be."""
    inside: list[Any] = [config]
    for _ in range(_most_levels):
        containers = [each.values() if isinstance(each, Mapping) else each for each in inside]
        found = (each for values in containers for each in values if isinstance(each, (Mapping, list, tuple)))
        inside = [*{id(each): each for each in found}.values()]
        if not inside:
            return
    raise ValueError(
        f"config has mappings and lists inside of each other on more than {_most_levels} levels, or contains itself, "
        f"expected what a config.json has; give the mapping of one"
    )


def may_be_on_a_hub(name: str) -> bool:
    """Whether this is the form of a model's name there, such as "gpt2" or "organisation/model"."""
    return re.fullmatch(r"[\w-][\w.-]*(/[\w.-]+)?", name) is not None and not name.endswith(".json")


def _config_hint(config: Any) -> str:
    """How to make a mapping of this object."""
    if hasattr(config, "read"):
        return "give json.load(config)"
    if isinstance(config, (bytes, bytearray)):
        return "give json.loads(config)" if config.lstrip().startswith(b"{") else "give os.fsdecode(config)"
    if hasattr(config, "to_dict"):
        return "give config.to_dict()"
    if isinstance(config, (list, tuple)) and len(config) == 1:
        return "give config[0]"
    return "give the dictionary of your model's config.json, or its path"


def _text_part(config: Json, interleaved: bool | None) -> tuple[Json, Json]:
    """The part of `config` that describes the model of text, and its row."""
    table = _table()
    for _ in range(_most_parts):
        model_type = config.get("model_type")
        if model_type is not None:
            model_type = table["other_names"].get(text("model_type", model_type), model_type)
        inner = config.get("text_config")
        if model_type in table["parts"]:
            key, part_type = table["parts"][model_type]
            part = config.get(key)
            if isinstance(part, Mapping):
                config = {**part, "model_type": part.get("model_type") or part_type}
            elif "hidden_size" in config:
                # Files from before the part had a key of its own, as of Qwen2-VL.
                config = {**config, "model_type": part_type}
            else:
                raise ValueError(f'config has no "{key}", which a model_type of {model_type!r} keeps its sizes in')
        elif isinstance(inner, Mapping):
            config = inner
        elif model_type in table["models"]:
            return config, table["models"][model_type]
        else:
            break
    else:
        raise ValueError(
            f'config has a "text_config" inside of another more than {_most_parts} times, expected one; give the innermost '
            f"mapping"
        )
    if model_type in table["without"]:
        raise ValueError(
            f"model_type is {model_type!r}, a model that has no rotary embedding; leave its queries and keys as they are, "
            f"or use RotaryEmbedding(rotary_dim, ..) if yours has one{_made_by_convention(str(model_type))}"
        )
    for key, what in _other_files.items():
        if model_type is None and key in config:
            raise ValueError(
                f'config has no model_type but a "{key}", as {what} has, expected what a config.json has; give the '
                f"config.json of the same model"
            )
    if interleaved is None:
        raise ValueError(
            f"model_type is {model_type!r}, which is not known, and a config does not say which columns are pairs; "
            f"give interleaved=True for neighbours, or interleaved=False for columns that are half of the width apart"
            + ("" if model_type is None else _near_type(model_type, (*table["models"], *table["parts"])))
        )
    return config, {"form": "halves", "partial": True}


def _made_by_convention(model_type: str) -> str:
    """What is said of a model without a rotary embedding whose positional encoding is known."""
    from fastpe._sinusoid.presets import conventions  # which only errors need

    return "".join(f"; {served}" for served in conventions.serving(model_type))


def _near_type(model_type: str, known: Iterable[str]) -> str:
    """What is said of a known type with a similar name."""
    guess = model_guess(model_type, known, quote='"')
    return f"; {guess}" if guess else "; print(fastpe.rotary_layouts) for models of images and videos"


class _Model:
    """A config and its row."""

    def __init__(self, config: Json, row: Json) -> None:
        self.config = config
        self.row = row
        for key, allowed in row.get("requires", {}).items():
            if config.get(key) not in allowed:
                raise ValueError(
                    f'config has a "{key}" of {config.get(key)!r}: this model has no rotary embedding; leave its queries '
                    f"and keys as they are, or write {json.dumps({key: allowed[0]})} if yours has one"
                )

    def pairing(self) -> bool:
        """Whether pairs are neighbours."""
        key = self.row.get("pairing_key")
        given = None if key is None else self.config.get(key)
        return flag(str(key), self.row["interleaved"] if given is None else given)


class _Layer:
    """The keys that count for one type of layers: the rope mapping's, then the config's, then the row's."""

    def __init__(self, model: _Model, layer_type: str | None) -> None:
        self._config = model.config
        self._row = dict(model.row)
        self._usual_width = model.row.get("width", _head_width)
        self._layer_type = None if layer_type is None else text("layer_type", layer_type)
        key = "rope_scaling" if self._config.get("rope_scaling") else "rope_parameters"
        given = self._config.get(key) or {}
        if not isinstance(given, Mapping):
            raise TypeError(f'config has a "{key}" of {given!r}, expected a mapping')
        self._layer_types = self._texts("layer_types")
        names = (*self._row.get("layers", {}), *self._layer_types)
        nested = {
            name: value
            for name, value in given.items()
            if isinstance(value, Mapping) or (value is None and name in names)
        }
        self._is_nested = bool(nested)
        self._is_given = bool(given)  # by the config, not by the row
        if nested:
            mapping = self._of_nested(key, given, nested)
        elif self._row.get("layers") or self._row.get("nested"):
            mapping = self._of_known_layers(key, given)
        else:
            if self._layer_type not in (None, *names):
                raise ValueError(f"layer_type is {layer_type!r}, but all layers of this model are alike; leave it out")
            mapping = given or self._row.get("rope", {})
        self._written = mapping
        self._mapping = {name: value for name, value in mapping.items() if value is not None}
        self._own = self._own_values()

    def _of_nested(self, key: str, given: Json, nested: Json) -> Json:
        """The mapping of this type, where the config has one for each."""
        known = self._row.get("layers", {})
        layer_type = self._chosen({**known, **nested})
        for name in given:
            if name not in nested and name not in _read_here:
                raise ValueError(
                    f'config has a "{key}" with {name!r} and {", ".join(nested)}, expected types of layers alone; '
                    f"move it into the types that it is for"
                )
        self._row |= known.get(layer_type) or {}
        return nested.get(layer_type, {})  # type: ignore[no-any-return]

    def _of_known_layers(self, key: str, given: Json) -> Json:
        """The mapping of this type, where the config has one or none, and the row says what that means for it."""
        known = self._row.get("layers")
        if not known:
            raise ValueError(
                'config has no "rope_parameters" for each type of layers, expected {"full_attention": {..}, ..}'
            )
        layer_type = self._chosen(known)
        if given and (key == "rope_parameters" or self._row.get("nested")):
            raise ValueError(
                f'config has a "{key}" of {dict(given)!r}, expected one for each type of layers: {", ".join(known)}; '
                f'write {{"{layer_type}": {{..}}, ..}}'
            )
        self._row |= known[layer_type]
        scaled = self._row.get("scaled")
        if not (given and scaled):
            self._is_given = False
            return self._row.get("rope", {})  # type: ignore[no-any-return]
        if scaled == "rope_type" and "rope_type" not in given:
            raise ValueError(
                f'config has a "{key}" of {dict(given)!r} without a rope_type, which is no scaling in models of this '
                f"type in transformers, and a scaling in other systems; write rope_type"
            )
        return {name: value for name, value in given.items() if name != "rope_theta" or not self._row.get("own_theta")}

    def _chosen(self, layers: Json) -> str:
        """`layer_type`, if it is one of `layers` and has positions."""
        names = ", ".join(map(repr, layers))
        if self._layer_type is None:
            raise ValueError(f"layer_type is None, but this model has several types of layers; give one of {names}")
        if self._layer_type not in layers:
            raise ValueError(f"layer_type is {self._layer_type!r}, expected one of {names}")
        if layers[self._layer_type] is None:
            raise ValueError(f"layer_type is {self._layer_type!r}: these layers are not rotated, their entry is null")
        return self._layer_type

    def _texts(self, key: str) -> list[str]:
        """A list of names in the config, empty where it is missing."""
        found = self._config.get(key) or []
        if not isinstance(found, (list, tuple)) or not all(isinstance(name, str) for name in found):
            raise TypeError(f'config has a "{key}" of {found!r}, expected a list of names')
        return list(found)

    def _own_values(self) -> Json:
        """What the config says of the first layer of this type alone, as transformers 5 writes it."""
        layers = self._config.get("per_layer_config") or {}
        if not isinstance(layers, Mapping) or not all(
            str(index).isdecimal() and isinstance(values, Mapping) for index, values in layers.items()
        ):
            raise TypeError(f'config has a "per_layer_config" of {layers!r}, expected mappings by the layer\'s number')
        if self._layer_type not in self._layer_types:
            return {}
        first = self._layer_types.index(self._layer_type)
        return next((values for index, values in layers.items() if int(index) == first), {})

    def value(self, key: str, *, null_counts: bool = False) -> Any:
        """What the config says under any name of `key`, or else the row; None where neither does.

        With `null_counts`, null in the config is a value, not a missing key.
        """
        names = self._names(key)
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
        return next((self._row["defaults"][name] for name in names if name in self._row.get("defaults", {})), None)

    def _names(self, key: str) -> list[str]:
        found: list[str] = self._row.get("names", {}).get(key, [key])
        return found

    def _of_layer(self, name: str, values: list[Any] | tuple[Any, ...]) -> Any:
        """The value of a list with one for each layer; 0 stands for layers that are not rotated."""
        if self._layer_type in self._layer_types:
            kinds = zip(values, self._layer_types, strict=False)
            values = [value for value, kind in kinds if kind == self._layer_type]
        different = sorted({_number(name, value) for value in values if value})
        if len(different) != 1:
            raise ValueError(
                f'config has a "{name}" with {different}, expected one number for the layers that are meant; '
                f"write this number in place of the list"
            )
        return different[0]

    def base(self) -> float:
        """The base of the frequencies."""
        if self._is_null("rope_theta"):
            raise ValueError(
                'config has a "rope_theta" of null, which transformers keeps and cannot compute with; write the number, or '
                "leave the key out for the default of the model_type"
            )
        found = self._number("rope_theta")
        if found is None:
            raise ValueError(
                "config has no rope_theta, and the default of its model_type is not known; write it into the config, "
                "or use RotaryEmbedding(.., base=..)"
            )
        return found

    def _is_null(self, key: str) -> bool:
        """Whether null stands where transformers reads this key: in the rope mapping, or else in the config."""
        if key in self._written:
            return self._written[key] is None
        # The first of several names is optional in transformers, and it reads no key of an inner mapping.
        names = [name for name in self._names(key) if "." not in name][-1:]
        is_read = not self._row.get("nested") or key in self._row.get("names", {})
        written = is_read and any(name in self._config for name in names)
        return written and self.value(key, null_counts=True) is None

    def _share(self) -> float:
        """The part of the head that is rotated."""
        found = self._number("partial_rotary_factor")
        if found is not None and not 0.0 < found <= 1.0:
            raise ValueError(f"config has a partial_rotary_factor of {found!r}, expected a number above 0, at most 1")
        return 1.0 if found is None else found

    def _number(self, key: str) -> float | None:
        """A number of the rope mapping, or else of the config, or else of the row.

        If the config has no rope mapping, transformers takes the row's, and does not look at the config's own key then.
        """
        inner, outer, default = self._mapping.get(key), self.value(key), self._row.get(key)
        if self._is_given and inner is not None:
            return _number(key, inner)
        chosen = next((each for each in (inner, outer, default) if each is not None), None)
        # The key itself, where models of this type have another name for it.
        has_other_name = self._layer_type is None and key not in self._names(key)
        unread = self._config.get(key) if has_other_name else None
        for written in (outer, unread):
            if written is not None and written != chosen:
                raise ValueError(
                    f'config has a "{key}" of {written!r}, which transformers does not read here: it takes {chosen!r}; '
                    f'write {chosen!r}, or {{"rope_parameters": {{"{key}": {written!r}, ..}}}}'
                )
        return None if chosen is None else _number(key, chosen)

    def width(self) -> int:
        """Columns that are rotated; odd ones have as many frequencies as the next even number."""
        exact = self._row.get("rotary_dim")
        if (
            exact
            and self._config.get(exact) is not None
            and "partial_rotary_factor" not in {**self._mapping, **self._config}
        ):
            return _size(exact, self._config[exact])
        # Files write another width of one type of layers under a key of its own, or under the usual key of these.
        usual = [self._own[term] for term in self._usual_width if term in self._own]
        terms = self._row.get("width", _head_width)
        head = next((size for size in (*usual, *map(self._term, terms)) if size), None)
        if head is None:
            raise ValueError(
                f"config has no {' and no '.join(terms)}, expected one of them, the width of the rotated part; write "
                f"it into the config, or use RotaryEmbedding(rotary_dim, ..)"
            )
        unread = self._config.get("rotary_dim")
        if unread not in (None, head) and "rotary_dim" not in (*terms, exact):
            raise ValueError(
                f"config has a rotary_dim of {unread!r}, which transformers does not read in models of this type: it "
                f"takes {head}; leave it out to do the same, or use RotaryEmbedding({unread!r}, ..)"
            )
        share = self._share()
        if self._rope_type() == "proportional" or self._row.get("partial") == "ignored" or share == 1.0:
            return _size("head_dim", head)
        if not self._row.get("partial"):
            raise ValueError(
                f"config has a partial_rotary_factor of {share!r}, but models of this type rotate whole heads in "
                f"transformers; leave it out to do the same, or use RotaryEmbedding({int(head * share)}, ..)"
            )
        return _size("partial_rotary_factor", int(head * share))

    def _term(self, term: str) -> int | None:
        """The value of a key, or of a quotient such as "2 * hidden_size // num_attention_heads"."""
        dividend, _, divisor = term.partition(" // ")
        words = dividend.split(" * ")
        factors = [int(word) if word.isdigit() else self._count(word, null_counts=True) for word in words]
        below = self._count(divisor, null_counts=False) if divisor else 1
        known = [factor for factor in factors if factor]
        return math.prod(known) // below if below and len(known) == len(words) else None

    def _count(self, key: str, *, null_counts: bool) -> int | None:
        """A number of columns or heads; None for 0, too."""
        found = self.value(key, null_counts=null_counts)
        return _size(key, found) if found else None

    def _rope_type(self) -> Any:
        given = self._mapping.get("rope_type", self._mapping.get("type", "default"))
        names = {**_other_names, **self._row.get("types", {})}
        return names.get(given, given) if isinstance(given, str) else given

    def scaling(self, seq_len: int | None) -> dict[str, Any]:
        """The rope mapping as `RotaryEmbedding` takes it, without the base."""
        rope_type = self._rope_type()
        dropped = (*_read_here, *_table()["unused_keys"])
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
            result = {**self._row.get("yarn", {}), **result}
            # 0 stands for the default.
            result = {key: value for key, value in result.items() if value or key not in ("beta_fast", "beta_slow")}
        if rope_type == "proportional":
            result["partial_rotary_factor"] = self._share()
        if rope_type == "dynamic" and result.get("alpha"):
            result = {key: value for key, value in result.items() if key not in _unused_with_alpha}
        elif rope_type == "dynamic" or (rope_type in ("yarn", "longrope") and "factor" not in result):
            result["max_position_embeddings"] = self._longest_length()
        if rope_type == "longrope" and self._row.get("longrope") == "mscale":
            result = _with_mscale(result, seq_len)
        result = {key: value for key, value in result.items() if value is not None}
        if len(result) > 1 and not {"rope_type", "type"} & {*self._mapping}:
            del result["rope_type"]  # rotary_frequencies says that it is missing
        return result

    def _require_factors(self, rope_type: Any) -> None:
        """Refuse what transformers refuses: a type that such models do not have, and missing factors."""
        written = self._written.get("rope_type", self._written.get("type"))
        allowed = self._row.get("rope_types")
        if allowed and rope_type not in allowed:
            raise ValueError(
                f"config has a rope type of {json.dumps(written)}, expected "
                f"{' or '.join(map(json.dumps, allowed))}: models of this type have no other; correct it, or use "
                f"RotaryEmbedding(.., scaling=..)"
            )
        mscales = ("short_mscale", "long_mscale")
        if rope_type == "longrope" and self._row.get("longrope") == "mscale" and not {*mscales} <= {*self._mapping}:
            raise ValueError(
                f'config has a rope type of "{written}" without {" and ".join(mscales)}, which transformers refuses in '
                f"models of this type; write both"
            )
        if rope_type == "yarn" and "factor" not in self._written:
            raise ValueError(
                'config has a rope type of "yarn" without a factor, which transformers refuses; write the factor, or '
                '"factor": null for max_position_embeddings / original_max_position_embeddings'
            )
        if rope_type == "longrope" and written != rope_type and not {"short_factor", "long_factor"} <= {*self._mapping}:
            raise ValueError(
                f'config has a rope type of "{written}", which means "longrope" here, as in the files of early Phi 3 '
                f"models, without short_factor and long_factor; write both, or correct the type"
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
        if "mrope" not in self._row:
            raise ValueError("axes is True, but models of this type have one coordinate; leave it out")
        kind, default = self._row["mrope"]
        if kind == "doubled":
            raise ValueError(
                "axes is True, but this model cuts its sections from the doubled width: the partners of a pair may "
                "have different angles, which is no rotation; leave it out for text"
            )
        sections = self._mapping.get("mrope_section", default)
        if not isinstance(sections, (list, tuple)) or [type(each) for each in sections] != [int] * 3:
            raise TypeError(f"config has an mrope_section of {sections!r}, expected a list of 3 ints")
        if sum(sections) != width // 2 or min(sections) < 0:
            raise ValueError(
                f"config has an mrope_section of {sections!r}, expected 3 numbers whose sum is {width // 2}"
            )
        if kind == "sections":
            return np.repeat([0, 1, 2], sections)
        result = np.zeros(width // 2, np.int64)
        if kind == "interleaved":
            for axis in (1, 2):
                result[axis : 3 * sections[axis] : 3] = axis
        else:
            # Ernie 4.5 VL: height and width take turns; its sections are for height, width and time.
            if sections[0] != sections[1]:
                raise ValueError(f"config has an mrope_section of {sections!r}, expected the first two to be equal")
            result[: 2 * sections[0]] = np.tile([1, 2], sections[0])
        return result


def _odd_frequencies(width: int, base: float, scaling: dict[str, Any]) -> Any:
    """base**(-2k / width) for an odd width: every second frequency of the double width."""
    rope_type = scaling.get("rope_type", "default")
    if rope_type not in ("default", "linear"):
        raise ValueError(
            f"the rotated part has {width} columns, expected an even number for {rope_type!r}; correct "
            f"partial_rotary_factor"
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


def _unquoted(value: Any) -> str:
    """What to do about a number that is text."""
    return ", not text; write it without quotes" if isinstance(value, str) else ""


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f'config has a "{name}" of {value!r}, expected a number{_unquoted(value)}')
    if not abs(value) <= sys.float_info.max:
        raise ValueError(f'config has a "{name}" of {shown(value)}, expected a finite number')
    return float(value)


def _size(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f'config has a "{name}" of {value!r}, expected an int{_unquoted(value)}')
    if not 1 <= value <= _largest_size:
        raise ValueError(f'config has a "{name}" of {shown(value)}, expected 1 to {_largest_size}')
    return value
