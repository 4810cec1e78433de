# SPDX-License-Identifier: BSD-3-Clause
"""The row of a model in models.json, and the numbers that its config.json has for it."""

from __future__ import annotations

import functools
import importlib.resources
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import integer, likely, model_guess, number, shown
from fastpe._config.file import Json, load
from fastpe._errors import refused

Array = npt.NDArray[Any]

# The parts of a config.json have model types of their own.
_endings = re.compile(r"(_text|_thinker|_vision|(_vision|_audio)?_encoder|_vision_model)$")


class Model(NamedTuple):
    """What one kind of input needs to know of a model."""

    name: str
    row: Mapping[str, Any]
    config: Json  # the level that has the ids of tokens
    part: Json  # its encoder
    defaults: Mapping[str, Any]  # of the part, in transformers

    def value(self, key: str) -> Any:
        """A value of the config, or the default of its class."""
        own = self.row.get("config", {})
        level, default = (self.config, own[key]) if key in own else (self.part, self.defaults[key])
        if level.get(key) is not None:
            return level[key]
        if near := likely(key, map(str, level)):
            raise refused(ValueError, "config", f"has the key {near!r}", f"{key!r}")
        return default

    def integer(self, key: str) -> int:
        """A number of the config, from 1."""
        return integer(key, self.value(key), 1)

    def number(self, key: str) -> float:
        """A number of the config, above 0."""
        return number(key, self.value(key), above_zero=True)


@functools.cache
def models() -> Mapping[str, Mapping[str, Any]]:
    """The rows of each model, by the kind of input."""
    table = json.loads(importlib.resources.files("fastpe").joinpath("_graph/models.json").read_text("utf-8"))
    rows = table["models"]
    rows |= {name: rows[same] for name, same in table["other_names"].items()}
    return {
        name: {kind: rows[row][kind] if isinstance(row, str) else row for kind, row in kinds.items()}
        for name, kinds in rows.items()
    }


def encoder(kind: str, config: Json | str | os.PathLike[str]) -> Model:
    """The encoder of images ("vision") or of sound ("audio") that a config.json describes, or that is its part."""
    whole = load(config)
    level = _thinker(whole)
    part = level.get(f"{kind}_config")
    levels = [level, whole] if part is None else [part, level, whole]
    part = level if part is None else part
    if not isinstance(part, Mapping):
        raise refused(TypeError, f"{kind}_config", f"is {shown(part)}", "a mapping")
    types = [str(each["model_type"]) for each in levels if each.get("model_type")]
    for model_type in types:
        row = models().get(plain_name(model_type), {}).get(kind)
        if row is None:
            continue
        is_named = re.search(rf"_{kind}(_encoder|_model)?$", model_type) is not None
        if part is whole and not is_named and row["config"] and row["config"].keys().isdisjoint(whole):
            remedy = f"pass the config.json of the model, or its {kind}_config"
            raise refused(ValueError, "config", f"has no {kind}_config", remedy=remedy)
        return Model(plain_name(model_type), {**row, "config": {}}, level, part, row["config"])
    found = f"has the model_type {shown(types[0])}" if types else "has no model_type"
    known = [name for name, kinds in models().items() if kind in kinds]
    expected = f"a model whose {kind} inputs are known: {', '.join(known)}"
    raise refused(ValueError, "config", found, expected, model_guess(types[0], known) if types else "")


def text_model(config: Json | str | os.PathLike[str]) -> Model | None:
    """The model whose text stands among images, videos and audio; None for others, whose positions count tokens."""
    whole = load(config)
    level = _thinker(whole)
    name = plain_name(str(level.get("model_type") or whole.get("model_type")))
    kinds = models().get(name, {})
    if "text" not in kinds:
        return None
    part = level.get("vision_config") or {}
    if not isinstance(part, Mapping):
        raise refused(TypeError, "vision_config", f"is {shown(part)}", "a mapping")
    return Model(name, kinds["text"], level, part, kinds["vision"]["config"])


def plain_name(model_type: str) -> str:
    """The model type without the name of a part."""
    return _endings.sub("", model_type)


def _thinker(config: Json) -> Json:
    inner = config.get("thinker_config")
    return inner if isinstance(inner, Mapping) else config


def integer_array(name: str, value: Any, *shapes: tuple[int | None, ...], expected: str, kinds: str = "iu") -> Array:
    """An int64 array of one of these shapes, whose lengths are given or None; or of numbers of other kinds."""
    array: Array = _core.array(value, name)
    if array.dtype.kind not in kinds and array.size:
        raise refused(TypeError, name, f"has dtype {array.dtype}", "integers" if kinds == "iu" else "numbers")
    if not any(_fits(shape, array.shape) for shape in shapes):
        missing = [shape[1:] for shape in shapes if len(shape) == array.ndim + 1 and _fits(shape[1:], array.shape)]
        remedy = f"pass {name}[None]" if missing else ""
        raise refused(ValueError, name, f"has shape {list(array.shape)}", expected, remedy)
    return array.astype(np.float64 if array.dtype.kind == "f" and "f" in kinds else np.int64, copy=False)


def _fits(wanted: tuple[int | None, ...], shape: tuple[int, ...]) -> bool:
    return len(wanted) == len(shape) and all(a in (None, b) for a, b in zip(wanted, shape, strict=True))


def grids_of(name: str, value: Any, merge_sizes: Any, merge_name: str, *, columns: int = 3) -> Array:
    """Lengths in patches, [n, 3] or [n, 2], from 1, that blocks of merged patches divide: of one side, [n] or [1, 2]."""
    expected = f"rows of ({'time, ' * (columns == 3)}height, width), in patches"
    grids = integer_array(name, value, (None, columns), expected=expected)
    merge = np.broadcast_to(np.asarray(merge_sizes).reshape(-1, 2 if np.ndim(merge_sizes) == 2 else 1), (len(grids), 2))
    for row in np.flatnonzero(np.any(grids < 1, axis=1))[:1]:
        raise refused(ValueError, f"{name}[{row}]", f"is {tuple(grids[row].tolist())}", "lengths of at least 1")
    for row in np.flatnonzero(np.any(grids[:, -2:] % merge != 0, axis=1))[:1]:
        sides = " and ".join(map(str, dict.fromkeys(merge[row].tolist())))
        expected = f"a height and a width that are multiples of {merge_name}, {sides}"
        raise refused(ValueError, f"{name}[{row}]", f"is {tuple(grids[row].tolist())}", expected)
    return grids


def require_int32(name: str, counts: Iterable[int]) -> None:
    """Refuse what has more places than boundaries can count."""
    if (total := sum(counts)) > np.iinfo(np.int32).max:
        raise refused(ValueError, name, f"has {total} in all", "less than 2**31", "make several calls")


def boundaries(lengths: Any) -> Array:
    """Where things of these lengths begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
