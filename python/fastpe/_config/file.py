# SPDX-License-Identifier: BSD-3-Clause
"""JSON: what is known of each `model_type`; and a config.json, from whatever the caller has of it, with values and errors.

measured.json is what tools/measure_models.py measures with the installed transformers, and written.json what nobody can
measure, by hand and with sources. In what follows "the table" is both: rotation and layers (models), the way to the
language model (parts), how tokens are numbered (ids), inputs of exported graphs (graphs, whose rows name rules in
graph_rules), and what is added or biased (sinusoids, learned, biases).
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fastpe._arguments import shown
from fastpe._errors import a_type, refused

Json = Mapping[str, Any]
Path = tuple[str | int, ...]

# More columns or heads than any model has: products of such numbers stay exact.
_largest_size = 2**31
_what = "a mapping or the path of a config.json"
# Files have 5.
_most_levels, _most_containers = 16, 100_000


def path_text(path: Path) -> str:
    """As Python writes the value at this place of a config."""
    return "config" + "".join(f"[{name}]" if isinstance(name, int) else f'["{name}"]' for name in path)


def packaged(name: str, folder: str = "_config") -> dict[str, Any]:
    """What a JSON file of this package has."""
    import importlib.resources  # only some calls need it

    file = importlib.resources.files("fastpe").joinpath(f"{folder}/{name}")
    return json.loads(file.read_text("utf-8"))  # type: ignore[no-any-return]


@functools.cache
def table() -> dict[str, Any]:
    """What is measured, and what is written by hand, which counts where both have a row, or a field."""
    data, by_hand = packaged("measured.json"), written()
    rows = {kind: {**data[kind], **by_hand[kind]} for kind in ("parts", "ids", "graphs", "without")}
    for kind in ("models", "sinusoids"):
        names = sorted({*data[kind], *by_hand[kind]})
        rows[kind] = {name: data[kind].get(name, {}) | by_hand[kind].get(name, {}) for name in names}
    for kind in ("learned", "biases"):  # by hand, each row has its source
        rows[kind] = data[kind] | {name: call for name, (call, _) in by_hand[kind].items()}
    return {**by_hand, **rows}


@functools.cache
def written() -> dict[str, Any]:
    """The tables that are written by hand, each with its source."""
    return packaged("written.json")


def load(config: Json | str | os.PathLike[str]) -> Json:
    """`config` itself, or what the file of this name has."""
    loaded = config if isinstance(config, Mapping) else _loaded(config)
    _require_json(loaded, (), iter(range(_most_containers)))
    return loaded


def _loaded(config: Any) -> Json:
    if not isinstance(config, (str, os.PathLike)):
        remedy = "give config.to_dict()" if hasattr(config, "to_dict") else "of an open file, give json.load(config)"
        raise refused(TypeError, "config", f"is {a_type(config)}", _what, remedy)
    if isinstance(config, str) and config.lstrip().startswith("{"):
        raise refused(ValueError, "config", "is JSON", _what, "give json.loads(config)")
    name = os.fspath(config)
    inside, found = os.path.join(name, "config.json"), f"is {name!r}"
    if os.path.isdir(name):
        remedy = f"give {inside!r}" if os.path.isfile(inside) else "it has no config.json: give the path of one"
        raise refused(IsADirectoryError, "config", f"{found}, a directory", "a file", remedy)
    if not os.path.exists(name):
        hub = f"for a name on a hub, give huggingface_hub.hf_hub_download({name!r}, 'config.json')"
        remedy = hub if re.fullmatch(r"[\w-]+(/[\w.-]+)?", name) else ""  # as "gpt2" or "author/model"
        raise refused(FileNotFoundError, "config", f"{found}, which is not a file", "the path of one", remedy)
    if not os.path.isfile(name):  # to open a pipe would wait for its writer
        raise refused(ValueError, "config", f"{found}, a pipe or a device", "a file")
    with open(name, encoding="utf-8-sig") as file:
        try:
            loaded = json.load(file)
        except (RecursionError, ValueError) as error:
            found += f", which is not a config.json: {error}"
            remedy = "give the config.json of the same model; of a GGUF file, see the page From GGUF to options"
            raise refused(ValueError, "config", found, "JSON", remedy) from None
    if not isinstance(loaded, dict):
        raise refused(TypeError, "config", f"{found}, which has {a_type(loaded)}", "a JSON object")
    return loaded


def _require_json(value: Any, path: Path, left: Iterator[int]) -> None:
    """Refuse arrays, and a mapping that contains itself, or has more lists and mappings than a model's could: see `left`."""
    # One that stands in several places counts in each, since it is read in each.
    if len(path) > _most_levels or next(left, None) is None:
        where = f"on more than {_most_levels} levels, more than {_most_containers}, or contains itself"
        found = f"has mappings and lists inside of each other {where}"
        raise refused(ValueError, "config", found, "what a config.json has")
    for name, each in value.items() if isinstance(value, Mapping) else enumerate(value):
        # A number of NumPy is none of JSON's, nor is an array.
        if isinstance(each, (Mapping, list, tuple)):
            _require_json(each, (*path, name), left)
        elif hasattr(each, "__array__") and not isinstance(each, (float, str)):
            what = "what a config.json has: numbers, texts, lists and mappings"
            raise refused(TypeError, path_text((*path, name)), f"is {a_type(each)}", what, "give its .tolist()")


# Values


class Value(NamedTuple):
    """Something that a config says, and where it says it."""

    found: Any
    path: Path


def first(*values: Value) -> Value:
    """The first that is not null, or else the last."""
    return next((value for value in values if value.found is not None), values[-1])


def wrong(
    path: Path, found: str, expected: str = "", remedy: str = "", kind: type[Exception] = ValueError
) -> Exception:
    """An error to raise about one key of the config."""
    return refused(kind, path_text(path), found, expected, remedy)


def read_number(value: Value) -> float:
    """A finite number of the config."""
    number = _of_kind(value, (int, float), "a number")
    if not abs(number) <= sys.float_info.max:
        raise wrong(value.path, f"is {shown(number)}", "a finite number")
    return float(number)


def read_size(value: Value, most: int = _largest_size) -> int:
    """An int of the config, from 1."""
    number: int = _of_kind(value, int, "an int")
    if not 1 <= number <= most:
        raise wrong(value.path, f"is {shown(number)}", f"1 to {most}")
    return number


def _of_kind(value: Value, kinds: Any, expected: str) -> Any:
    if isinstance(value.found, bool) or not isinstance(value.found, kinds):
        remedy = "write it without quotes" if isinstance(value.found, str) else ""
        raise wrong(value.path, f"is {shown(value.found)}", expected, remedy, TypeError)
    return value.found
