# SPDX-License-Identifier: BSD-3-Clause
"""The row of a model in the table of graphs, the numbers that its config.json has for it, and checks that its inputs share."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import integer, likely, model_guess, number, shown
from fastpe._arrays import WritableArray
from fastpe._config.model import ModelConfig
from fastpe._config.tables import graphs
from fastpe._errors import refused

Array = npt.NDArray[Any]

# What the model types of parts end in.
_endings = {
    "text": ("", "_thinker", "_text"),
    "vision": ("", "_vision", "_vision_encoder", "_vision_model"),
    "audio": ("", "_encoder", "_audio", "_audio_encoder"),
}


class Model(NamedTuple):
    """What one kind of input needs to know of a model."""

    name: str
    row: Mapping[str, Any]
    config: ModelConfig  # the level that has the ids of tokens
    part: ModelConfig  # its encoder
    defaults: Mapping[str, Any]  # of the part, in transformers

    @property
    def tokens(self) -> Mapping[str, int]:
        """The ids of tokens that its class has by default."""
        return graphs()[self.name].get("tokens", {})

    def value(self, key: str) -> Any:
        """A value of the config, or the default of its class."""
        return self.part._keep(("value", self.name, key), lambda: self._value(key))

    def _value(self, key: str) -> Any:
        level, default = self._level(key)
        if key in level:
            return level[key]
        if near := likely(key, map(str, level)):
            raise refused(ValueError, "config", f"has the key {near!r}", f"{key!r}")
        return default

    def integer(self, key: str) -> int:
        """A number of the config, from 1."""
        return integer(self.place(key), self.value(key), 1)

    def number(self, key: str) -> float:
        """A number of the config, above 0."""
        return number(self.place(key), self.value(key), above_zero=True)

    def place(self, key: str) -> str:
        """What errors call a value: where the file has it."""
        level, _ = self._level(key)
        return (self.config if level is self.config._json else self.part)._place(key) if key in level else key

    def _level(self, key: str) -> tuple[Mapping[str, Any], Any]:
        own = self.row.get("config", {})
        return (self.config._json, own[key]) if key in own else (self.part._json, self.defaults[key])


@functools.cache
def _names(kind: str) -> Mapping[str, str]:
    """The names of rows by the model types of their models and parts."""
    return {f"{name}{ending}": name for name, kinds in graphs().items() if kind in kinds for ending in _endings[kind]}


def encoder(kind: str, config: ModelConfig) -> Model:
    """The encoder of images ("vision") or of sound ("audio") in a config, or that it is."""
    whole = [*config._to_text(must_end=False)]
    key = f"{kind}_config"
    level = next((each for each in whole if each._json.get(key) is not None), config)
    written = level._json.get(key)
    if written is not None and not isinstance(written, Mapping):
        raise refused(TypeError, level._place(key), f"is {shown(written)}", "a mapping")
    part = level if written is None else level._part(key) or level
    types = [name for each in ([part], [level], whole) for one in each if (name := one.model_type)]
    for model_type in types:
        name = _names(kind).get(model_type)
        if name is None:
            continue
        row = graphs()[name][kind]
        if part is config and model_type == name and row["config"] and row["config"].keys().isdisjoint(config._json):
            remedy = f"pass the config.json of the model, or its {key}"
            raise refused(ValueError, "config", f"has no {key}", remedy=remedy)
        return Model(name, {**row, "config": {}}, level, part, row["config"])
    found = f"has the model_type {shown(types[0])}" if types else "has no model_type"
    known = [name for name, kinds in graphs().items() if kind in kinds]
    expected = f"a model whose {kind} inputs are known: {', '.join(known)}"
    raise refused(ValueError, "config", found, expected, model_guess(types[0], known) if types else "")


def text_model(config: ModelConfig) -> Model | None:
    """The model whose text stands among images, videos and audio, or of its text by itself; None for others."""
    name = _names("text").get(config.model_type or "")
    if name is None:
        return None
    # Ids of tokens are beside the innermost mapping of text, or in it if only that is given.
    levels = [each for each in config._to_text(must_end=False) if _names("text").get(each.model_type or "") == name]
    level = next((each for each in reversed(levels) if not is_text_alone(each)), config)
    part = level._json.get("vision_config") or {}
    if not isinstance(part, Mapping):
        raise refused(TypeError, level._place("vision_config"), f"is {shown(part)}", "a mapping")
    kinds = graphs()[name]
    return Model(name, kinds["text"], level, level._part("vision_config") or level, kinds["vision"]["config"])


def is_text_alone(config: ModelConfig) -> bool:
    """Whether it is the mapping of a text model beside which a whole file has the ids of tokens."""
    return (config.model_type or "").endswith("_text")


def integer_array(name: str, value: Any, *shapes: tuple[int | None, ...], expected: str, kinds: str = "iu") -> Array:
    """An int64 array of one of these shapes, whose lengths are given or None; or of numbers of other kinds."""
    array: Array = _core.array(value, name)
    if array.shape == (0,) and all(len(shape) > 1 for shape in shapes):
        array = array.reshape(0, *(length or 0 for length in shapes[0][1:]))  # an empty list
    if array.dtype.kind not in kinds and array.size:
        expected, remedy = "numbers", ""
        if kinds == "iu":
            expected, remedy = "integers", "convert it to int64 first, if all numbers are whole"
        raise refused(TypeError, name, f"has dtype {array.dtype}", expected, remedy)
    if not any(_fits(shape, array.shape) for shape in shapes):
        missing = [shape[1:] for shape in shapes if len(shape) == array.ndim + 1 and _fits(shape[1:], array.shape)]
        remedy = f"pass [{name}]" if missing else ""
        raise refused(ValueError, name, f"has shape {list(array.shape)}", expected, remedy)
    return array.astype(np.float64 if array.dtype.kind == "f" and "f" in kinds else np.int64, copy=False)


def _fits(wanted: tuple[int | None, ...], shape: tuple[int, ...]) -> bool:
    return len(wanted) == len(shape) and all(a in (None, b) for a, b in zip(wanted, shape, strict=True))


def grids_of(name: str, value: Any, merge_sizes: Any, merge_name: str, *, columns: int = 3) -> Array:
    """Lengths in patches, [n, 3] or [n, 2], from 1, that blocks of merged patches divide: of one side, [n] or [1, 2]."""
    expected = f"rows of ({'time, ' * (columns == 3)}height, width), in patches"
    grids = integer_array(name, value, (None, columns), expected=expected)
    merge = np.broadcast_to(
        _core.array(merge_sizes, merge_name).reshape(-1, 2 if np.ndim(merge_sizes) == 2 else 1), (len(grids), 2)
    )
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


def delivered(
    inputs: dict[str, Any], dtype: npt.DTypeLike | None, out: Mapping[str, WritableArray] | None
) -> dict[str, Any]:
    """The inputs in a dtype of integers, and in the arrays of a mapping: all is checked before any is written."""
    if dtype is not None and np.dtype(dtype).kind not in "iu":
        raise refused(TypeError, "dtype", f"is {np.dtype(dtype)}", "integers", "it is that of arrays of integers")
    targets: dict[str, Array] = {}
    for name, given in (out or {}).items():
        if not isinstance(inputs.get(name), np.ndarray):
            arrays = [key for key, each in inputs.items() if isinstance(each, np.ndarray)]
            raise refused(ValueError, "out", f"has the name {shown(name)}", f"names of {', '.join(arrays)}")
        array = targets[name] = _core.array(given, f"out[{name!r}]", in_place=True)
        if not array.flags.writeable:
            raise refused(ValueError, f"out[{name!r}]", "is read-only", "a writable array")
        if array.shape != inputs[name].shape:
            found = f"has shape {list(array.shape)}"
            raise refused(ValueError, f"out[{name!r}]", found, f"{list(inputs[name].shape)}")
    new = {}
    for name, value in inputs.items():
        is_integers = isinstance(value, np.ndarray) and value.dtype.kind in "iu"
        if name in targets:
            new[name] = _exact(f"out[{name!r}]", value, targets[name].dtype)
        else:
            new[name] = _exact("dtype", value, np.dtype(dtype)) if dtype is not None and is_integers else value
    for name, target in targets.items():
        target[...] = new[name]
    return {**new, **(out or {})}


def _exact(name: str, values: Array, dtype: np.dtype[Any]) -> Array:
    """The values in another dtype; floating-point numbers are rounded."""
    new: Array = values.astype(dtype)
    if values.dtype.kind in "iub" and (dtype.kind not in f"iuf{values.dtype.kind}" or (new != values).any()):
        raise refused(ValueError, name, f"is {dtype}, which does not have all values", "a wider dtype of integers")
    if values.dtype.kind == "f" and dtype.kind != "f":
        raise refused(TypeError, name, f"is {dtype}", "a dtype of floating-point numbers")
    return new
