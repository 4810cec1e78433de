# SPDX-License-Identifier: BSD-3-Clause
"""Frequencies of rotary embeddings, and the scalings that a model's config.json names.

The keys are read here, each as a value of its type. The core judges the numbers, and computes with them.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import flag, integer, nearest, shown
from fastpe._errors import refused, renamed

# By their names in the core: the key that says a number, and the number; or that a key of this name does not count.
Numbers = dict[str, tuple[str, float | tuple[float, ...]] | None]

_default_base = 10000.0
largest_dim = 2**20
_largest = int(_core.largest_scaling_number)

# The types of a `Scaling` whose frequencies depend on a length.
types_by_length = ("dynamic", "longrope")

# Null has a meaning of its own in transformers, where other keys are as if they were missing.
of_null = {"truncate": False}
# Names that other systems give a type or a key, and the name to write here.
_other_types = {
    "su": 'early Phi-3 files mean "longrope"',
    "dynamic-yarn": 'write "yarn", whose factor is then seq_len / original_max_position_embeddings',
    "deepseek_yarn": 'it is vLLM\'s name for "yarn" as DeepSeek uses it',
    "mrope": 'it scales nothing: write "default" and leave mrope_section out',
}
_other_keys = {
    "attn_factor": "attention_factor, which is the whole factor, where attn_factor multiplies it",
    "base": "rope_theta",
}


class ScalingOfFile(dict[str, Any]):
    """A scaling whose keys stand in a config.json, not all in one mapping: errors name them by their places there."""

    def __init__(self, place: str, values: Mapping[str, Any], places: Mapping[str, str]) -> None:
        super().__init__(values)
        self.place, self.places = place, places


class Scaling(NamedTuple):
    """A scaling whose keys have been read: two that mean the same frequencies are equal."""

    rope_type: str
    base: float  # before it is scaled
    radians: tuple[float, ...] = ()  # per position; none for "default"
    attention_factor: float = 1.0


def ideal_frequencies(rotary_dim: int, base: float) -> npt.NDArray[np.float64]:
    """Radians per position that nothing scales."""
    return _core.rotary_frequencies(rotary_dim, base, "default", {})[0]


def axes_of(division: str, counts: Sequence[int]) -> npt.NDArray[np.int64]:
    """The coordinate of each frequency: see the divisions of `RotaryLayout`."""
    if division == "turns":
        return np.concatenate([np.tile([1, 2], counts[0]), np.zeros(counts[2], np.int64)])
    if division == "strides":
        axes = np.zeros(sum(counts), np.int64)
        axes[1 : 3 * counts[1] : 3] = 1
        axes[2 : 3 * counts[2] : 3] = 2
        return axes
    return np.repeat(np.arange(len(counts)), counts)


def read_rotary_dim(rotary_dim: Any) -> int:
    """`rotary_dim`, checked."""
    value = integer("rotary_dim", rotary_dim, 2, largest_dim)
    if value % 2:
        raise refused(ValueError, "rotary_dim", f"is {value}", "an even number: columns are rotated in pairs")
    return value


def read_scaling(
    rotary_dim: int, *, base: float | None, scaling: Mapping[str, Any] | None, seq_len: int | None
) -> Scaling:
    """The arguments of a `RotaryEmbedding`, checked, with what follows from them filled in."""
    if seq_len is not None:
        seq_len = integer("seq_len", seq_len, 0, _largest)
    chosen = None if base is None else read_base("base", base)
    if scaling is None:
        return Scaling("default", _default_base if chosen is None else chosen)
    keys = _Keys(scaling)
    if "rope_theta" in keys:
        theta = keys["rope_theta"]
        if chosen not in (None, theta):
            found = f"is {shown(base)} and {keys.name('rope_theta')} is {shown(theta)}"
            raise refused(ValueError, "base", found, "one of them", "leave base out")
        chosen = theta
    base = _default_base if chosen is None else chosen
    call = _Call(rotary_dim, base, seq_len)
    read = _types[keys.rope_type]
    numbers = read.others(keys, call)
    numbers |= {name: (name, keys[name]) for name in read.numbers if name in keys and name not in numbers}
    factor = keys.get("attention_factor")
    if keys.rope_type == "default":
        return Scaling("default", base)
    places = {name: keys.name(name) for name in read.numbers}
    places |= {name: keys.name(number[0]) for name, number in numbers.items() if number}
    places["base"] = keys.name("rope_theta") if "rope_theta" in keys else "base"
    given = {name: number[1] for name, number in numbers.items() if number}
    # HunYuan's models have an alpha: models/hunyuan_v1_dense, compute_ntk_alpha_rope_parameters
    core_type = "alpha" if "alpha" in keys else keys.rope_type
    try:
        radians, computed = _core.rotary_frequencies(rotary_dim, base, core_type, given)
    except ValueError as error:
        raise renamed(error, places) from None
    rope_type = "ntk" if "alpha" in keys else keys.rope_type
    return Scaling(rope_type, base, tuple(radians.tolist()), computed if factor is None else factor)


class _Call(NamedTuple):
    """What values of a scaling may depend on."""

    rotary_dim: int
    base: float
    seq_len: int | None

    def length(self, rope_type: str) -> int:
        if self.seq_len is None:
            expected = f'a length: the frequencies of "{rope_type}" depend on it'
            raise refused(ValueError, "seq_len", "is None", expected, "give seq_len=")
        return self.seq_len


class _Keys:
    """The keys of one scaling that are not None: its type knows them, and those that it needs are there."""

    def __init__(self, scaling: Any) -> None:
        if not isinstance(scaling, Mapping):
            expected = 'a mapping as config.json has it, such as {"rope_type": "linear", "factor": 4.0}'
            raise refused(TypeError, "scaling", f"is {shown(scaling)}", expected)
        self.place: str = getattr(scaling, "place", "scaling")
        self._places: Mapping[str, str] = getattr(scaling, "places", {})
        self._given = given = {key: value for key, value in scaling.items() if value is not None}
        name = "rope_type" if "rope_type" in given else "type"
        self.rope_type = given.get(name, "default")
        if not is_known_type(self.rope_type):
            found = f"is {shown(self.rope_type)}, which is not known"
            raise refused(ValueError, self.name(name), found, remedy=_type_hint(self.rope_type))
        known = (*common_keys, *_types[self.rope_type].keys)
        given |= {key: value for key, value in of_null.items() if key in known and scaling.get(key, "") is None}
        for key, value in given.items():
            if key not in known:
                place, found = self.name(key), f"is {shown(value)}, "
                if name not in given and (types := _types_with(key)):
                    remedy = f"write it: {key} is a key of {', '.join(types)}"
                    raise refused(ValueError, place, f"{found}and there is no rope_type", remedy=remedy)
                found += f'a key that "{self.rope_type}" does not know'
                raise refused(ValueError, place, found, remedy=_key_hint(key, value, known))
        needed = [names for names in _types[self.rope_type].needed if not {*names} & {*given}]
        if needed:
            found = f"has no {', and no '.join(' or '.join(names) for names in needed)}"
            written = given.get("type")
            conflict = f"rope_type counts, and not the type, {shown(written)}"
            remedy = f"write {'it' if len(needed) == 1 else 'them'}" if written in (None, self.rope_type) else conflict
            raise refused(ValueError, self.place, f'{found}, which "{self.rope_type}" needs', remedy=remedy)

    def __contains__(self, key: str) -> bool:
        return key in self._given

    def __getitem__(self, key: str) -> Any:
        """The value, checked: a key is read only where it counts."""
        read: Callable[[str, Any], Any] = _readers.get(key, _number)
        return read(self.name(key), self._given[key])

    def name(self, key: str) -> str:
        """The key as errors name it."""
        return self._places.get(key, f'{self.place}["{key}"]')

    def get(self, key: str, otherwise: Any = None) -> Any:
        return self[key] if key in self._given else otherwise

    def factor(self) -> Numbers:
        """Where there is no `factor`: how often the trained length fits into the longest one."""
        if "factor" in self or "max_position_embeddings" not in self:
            return {}
        longest: int = self["max_position_embeddings"]
        trained: int = self["original_max_position_embeddings"]
        if longest < trained and self.rope_type == "yarn":
            expected = f"at least original_max_position_embeddings, {trained}"
            raise refused(ValueError, self.name("max_position_embeddings"), f"is {longest}", expected, "swap them")
        return {"factor": ("max_position_embeddings", max(longest / trained, 1.0))}


def _dynamic(keys: _Keys, call: _Call) -> Numbers:
    if "alpha" in keys:
        if "factor" in keys:
            found = f"is {shown(keys['alpha'])} and {keys.name('factor')} is {shown(keys['factor'])}"
            remedy = "where there is an alpha, HunYuan's models do not use the factor: leave it out"
            raise refused(ValueError, keys.name("alpha"), found, "one of them", remedy)
        return {"factor": ("alpha", keys["alpha"]), "original_max_position_embeddings": None}
    # Two names for one number.
    names = [name for name in ("max_position_embeddings", "original_max_position_embeddings") if name in keys]
    trained, same = keys[names[0]], keys[names[-1]]
    if trained != same:
        found = f"is {trained} and {keys.name(names[1])} is {same}"
        expected = 'the same: both are the length beyond which "dynamic" scales'
        raise refused(ValueError, keys.name(names[0]), found, expected, "leave one out")
    length = max(call.length("dynamic"), trained)
    return {"original_max_position_embeddings": (names[0], trained), "seq_len": ("seq_len", length)}


def _longrope(keys: _Keys, call: _Call) -> Numbers:
    lists = [(name, keys[name]) for name in ("short_factor", "long_factor")]
    is_long = call.length("longrope") > keys["original_max_position_embeddings"]
    factor: Numbers = {"factor": None} if "attention_factor" in keys else keys.factor()
    return {"divisors": lists[is_long], "other_divisors": lists[not is_long]} | factor


def _proportional(keys: _Keys, call: _Call) -> Numbers:
    rotated = int(keys.get("partial_rotary_factor", 1.0) * call.rotary_dim // 2)
    return {"rotated_count": ("partial_rotary_factor", rotated)}


class _Type(NamedTuple):
    """A type of scaling: the keys of which one each is needed, other keys, and the numbers that have other names."""

    needed: tuple[tuple[str, ...], ...] = ()
    optional: tuple[str, ...] = ()
    others: Callable[[_Keys, _Call], Numbers] = lambda keys, call: {}

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*(name for names in self.needed for name in names), *self.optional]))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The keys that the core knows by these names."""
        return tuple(key for key in self.keys if key not in _own_keys)


lengths = ("max_position_embeddings", "original_max_position_embeddings")
_trained = ("original_max_position_embeddings",)
_own_keys = ("max_position_embeddings", "alpha", "short_factor", "long_factor")  # from which the core's numbers follow

# Sources: huggingface/transformers:modeling_rope_utils.py, ROPE_INIT_FUNCTIONS; for ntk,
# jquesnelle/yarn:scaled_rope/LlamaNTKScaledRotaryEmbedding.py @eac10bd7.
_types = {
    "default": _Type(),
    "linear": _Type((("factor",),)),
    "dynamic": _Type((("factor", "alpha"), (*lengths, "alpha")), (), _dynamic),
    "yarn": _Type(
        (("factor", "max_position_embeddings"), _trained),
        ("beta_fast", "beta_slow", "truncate", "mscale", "mscale_all_dim", "attention_factor"),
        lambda keys, call: keys.factor(),
    ),
    "longrope": _Type(
        (("factor", "max_position_embeddings", "attention_factor"), _trained, ("short_factor",), ("long_factor",)),
        (),
        _longrope,
    ),
    "llama3": _Type((("factor",), _trained, ("low_freq_factor",), ("high_freq_factor",))),
    "proportional": _Type((), ("factor",), _proportional),
    "ntk": _Type((("factor",),)),
}


def _number(name: str, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise refused(TypeError, name, f"is {shown(value)}", "a number")
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _number_from(least: float, most: float, expected: str) -> Callable[[str, Any], float]:
    def read(name: str, value: Any) -> float:
        result = _number(name, value)
        if not least <= result <= most:
            raise refused(ValueError, name, f"is {shown(value)}", expected)
        return result

    return read


read_base = _number_from(1.0, sys.float_info.max, "a finite number, at least 1")


def _numbers(name: str, values: Any) -> tuple[float, ...]:
    if not isinstance(values, (list, tuple)) and not (isinstance(values, np.ndarray) and values.ndim == 1):
        raise refused(TypeError, name, f"is {shown(values)}", "a list of numbers, one per frequency")
    return tuple(_number(f"{name}[{k}]", value) for k, value in enumerate(values))


# All other keys are numbers.
_readers: dict[str, Callable[[str, Any], Any]] = {
    "rope_theta": read_base,
    "partial_rotary_factor": _number_from(0.0, 1.0, "a share of the head, from 0 to 1"),
    "truncate": flag,
    "attention_factor": _number_from(math.ulp(0.0), sys.float_info.max, "a finite positive number"),
    **dict.fromkeys(("short_factor", "long_factor"), _numbers),
    **dict.fromkeys(lengths, functools.partial(integer, least=1, most=_largest)),
}

# Every type may have these. The rotary dimension says already which part of a head is rotated.
common_keys = ("rope_type", "type", "rope_theta", "partial_rotary_factor")


def is_known_type(rope_type: Any) -> bool:
    """Whether it is a name of a scaling."""
    return isinstance(rope_type, str) and rope_type in _types


def _types_with(key: Any) -> list[str]:
    """The types that have this key."""
    return [name for name, each in _types.items() if key in each.keys]


def _type_hint(rope_type: Any) -> str:
    other = _other_types.get(rope_type) if isinstance(rope_type, str) else None
    return other or _close(rope_type, tuple(_types)) or f"expected one of {', '.join(_types)}"


def _key_hint(key: Any, value: Any, known: tuple[str, ...]) -> str:
    if isinstance(value, Mapping):
        return f'it looks like the scaling of one kind of layer: only give scaling["{key}"]'
    if key in _other_keys:
        return f"give {_other_keys[key]}"
    if others := _types_with(key):
        return f"it is a key of {', '.join(others)}: correct rope_type, or leave the key out"
    remedy = "leave it out if it changes neither frequencies nor the attention factor, or give attention_factor"
    return _close(key, known) or f"expected {', '.join(known)}; {remedy}"


def _close(word: Any, known: tuple[str, ...]) -> str:
    near = nearest(word, known) if isinstance(word, str) else None
    return f'did you mean "{near}"?' if near else ""
