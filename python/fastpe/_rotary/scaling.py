# SPDX-License-Identifier: BSD-3-Clause
"""Frequencies of rotary embeddings, and the scalings that a model's config.json names.

The keys are read here; the numbers are computed in the core.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import shown
from fastpe._errors import refused

Value = float | tuple[float, ...]

_default_base = 10000.0
_largest_dim = 2**20
_largest = int(_core.largest_scaling_number)
_range = f"2**-{_largest.bit_length() - 1} to 2**{_largest.bit_length() - 1}"

# Every type may have these. The rotary dimension says already which part of a head is rotated.
_common_keys = ("rope_type", "type", "rope_theta", "partial_rotary_factor")

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


class Scaling(NamedTuple):
    """A scaling whose keys have been read: two that mean the same numbers are equal.

    Attributes
    ----------
    rope_type : str
        What the core calls it.
    base : float
        The base before it is scaled.
    values : tuple of (str, float or tuple of float)
        What the core's scaling takes, by name.
    attention_factor : float or None
        Where the mapping says it; else it follows from the other numbers.
    """

    rope_type: str
    base: float
    values: tuple[tuple[str, Value], ...] = ()
    attention_factor: float | None = None

    def frequencies(self, rotary_dim: int) -> tuple[npt.NDArray[np.float64], float]:
        """Radians per position, and the attention factor."""
        freqs, factor = _core.rotary_frequencies(rotary_dim, self.base, self.rope_type, **dict(self.values))
        return freqs, factor if self.attention_factor is None else self.attention_factor


def rotary_frequencies(
    rotary_dim: int,
    *,
    base: float | None = None,
    scaling: Mapping[str, Any] | None = None,
    seq_len: int | None = None,
) -> tuple[npt.NDArray[np.float64], float]:
    """Compute the frequencies of a rotary embedding, scaled as a model's config.json says.

    Parameters
    ----------
    rotary_dim : int
        Columns that are rotated, an even number; the whole head for "proportional".
    base : float, optional
        The base of the ideal frequencies ``base**(-2k / rotary_dim)``, at least 1; by default 10000.
    scaling : mapping, optional
        ``rope_parameters`` or ``rope_scaling`` of a config.json: ``rope_type`` (or ``type``, where it is missing) and the
        keys of that type, listed below. ``rope_theta`` is the base. A value of None counts as a missing key.
    seq_len : int, optional
        Length of the sequences, for "dynamic" with a factor and for "longrope"; ignored elsewhere.

    Returns
    -------
    frequencies : ndarray of float64 ``[rotary_dim / 2]``
        Radians per position.
    attention_factor : float
        The factor of cosines and sines; 1 for all types but "yarn" and "longrope".

    Raises
    ------
    ValueError
        For an odd `rotary_dim`, an unknown type, a key that the type does not know, a key or a `seq_len` that it
        needs and does not have, a number out of its range, and two bases.
    TypeError
        For a value of another type.

    Notes
    -----
    Each value is that of its formula, rounded to float64 once, so it has the same bits on every machine. Numbers of a
    scaling are from 2**-31 to 2**31. With ``d`` for `rotary_dim`, ``w_k = base**(-2k / d)``, ``L0`` for
    ``original_max_position_embeddings`` and ``M`` for ``max_position_embeddings``:

    * "default": ``w_k``.
    * "linear": ``w_k / factor``.
    * "ntk": ``w_k`` of the base ``base * factor**(d / (d - 2))``.
    * "dynamic": as "ntk" with ``factor * L / M - (factor - 1)`` for its factor, where ``L`` is the greater of `seq_len`
      and ``M``. ``L0`` may stand for ``M``. Or as "ntk" with ``alpha`` for its factor.
    * "yarn": ``w_k / factor`` for frequencies that turn less than ``beta_slow`` times in ``L0`` positions, ``w_k`` for
      those that turn more than ``beta_fast`` times, and a blend between. Keys: ``L0``; ``factor``, or ``M`` for a
      factor of ``M / L0``; and, if need be, ``beta_fast`` (32), ``beta_slow`` (1), ``truncate`` (True), ``mscale``,
      ``mscale_all_dim``, ``attention_factor``.
    * "longrope": ``w_k / long_factor[k]`` where ``seq_len > L0``, else ``w_k / short_factor[k]``. Keys: these, and
      ``factor``, ``M`` for a factor of ``M / L0``, or ``attention_factor``.
    * "llama3": ``w_k / factor`` for frequencies that turn less than ``low_freq_factor`` times in ``L0`` positions,
      ``w_k`` for those that turn more than ``high_freq_factor`` times, and a blend between.
    * "proportional": ``w_k / factor`` for the first ``int(partial_rotary_factor * d // 2)``, then 0; both keys are 1
      where they are missing. All other types ignore the share: `rotary_dim` says how many
      columns are rotated.

    Other systems use some of these words for other numbers. The page "Scale for long contexts" lists them.

    Examples
    --------
    >>> import fastpe
    >>> fastpe.rotary_frequencies(8)
    (array([1.   , 0.1  , 0.01 , 0.001]), 1.0)
    >>> llama = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
    ...          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    >>> freqs, factor = fastpe.rotary_frequencies(128, scaling=llama)
    >>> freqs[[0, 32, 63]]
    array([1.00000000e+00, 5.24846161e-04, 3.06892599e-07])
    >>> yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    >>> fastpe.rotary_frequencies(128, base=1e6, scaling=yarn)[1]
    1.138629436111989
    >>> fastpe.rotary_frequencies(64, scaling={"rope_type": "linear", "facter": 4.0})
    Traceback (most recent call last):
    ValueError: scaling["facter"] is 4.0, a key that "linear" does not know; did you mean "factor"?
    """
    dim = read_rotary_dim(rotary_dim)
    return read_scaling(dim, base=base, scaling=scaling, seq_len=seq_len).frequencies(dim)


def read_rotary_dim(rotary_dim: Any) -> int:
    """`rotary_dim`, checked."""
    value = _integer("rotary_dim", rotary_dim, 2, _largest_dim, "2 to 2**20")
    if value % 2:
        raise refused(ValueError, "rotary_dim", f"is {value}", "an even number: columns are rotated in pairs")
    return value


def read_scaling(
    rotary_dim: int, *, base: float | None, scaling: Mapping[str, Any] | None, seq_len: int | None
) -> Scaling:
    """The arguments of `rotary_frequencies`, checked, with what follows from them filled in."""
    if seq_len is not None:
        seq_len = _integer("seq_len", seq_len, 0, _largest, f"0 to 2**{_largest.bit_length() - 1}")
    if scaling is None:
        return Scaling("default", _default_base if base is None else _base("base", base))
    keys = _Keys(scaling)
    chosen = None if base is None else _base("base", base)
    theta = keys.take("rope_theta")
    if theta is not None:
        theta = _base('scaling["rope_theta"]', theta)
        if chosen not in (None, theta):
            found = f'is {shown(base)} and scaling["rope_theta"] is {shown(theta)}'
            raise refused(ValueError, "base", found, "one of them", "leave base out")
        chosen = theta
    return _readers[keys.rope_type](keys, rotary_dim, _default_base if chosen is None else chosen, seq_len)


class _Keys:
    """The keys of one scaling: those that are not None, and known to its type."""

    def __init__(self, scaling: Any) -> None:
        if not isinstance(scaling, Mapping):
            expected = 'a mapping as config.json has it, such as {"rope_type": "linear", "factor": 4.0}'
            raise refused(TypeError, "scaling", f"is {shown(scaling)}", expected)
        self._given = {key: value for key, value in scaling.items() if value is not None}
        name = "rope_type" if "rope_type" in self._given else "type"
        self.rope_type = self._given.get(name, "default")
        is_named = name in self._given
        if not is_known_type(self.rope_type):
            found = f"is {shown(self.rope_type)}, which is not known"
            raise refused(ValueError, f'scaling["{name}"]', found, remedy=_type_hint(self.rope_type))
        known = (*_common_keys, *_known_keys[self.rope_type])
        for key, value in self._given.items():
            if key not in known:
                place, found = f'scaling["{key}"]', f"is {shown(value)}, "
                if not is_named and (types := _types_with(key)):
                    remedy = f"write it: {key} is a key of {', '.join(types)}"
                    raise refused(ValueError, place, f"{found}and there is no rope_type", remedy=remedy)
                found += f'a key that "{self.rope_type}" does not know'
                raise refused(ValueError, place, found, remedy=_key_hint(key, value, self.rope_type))

    def take(self, key: str) -> Any:
        """The value as it was given; None where it is missing."""
        return self._given.get(key)

    def require(self, *names: str) -> None:
        """Name all the keys that are missing at once."""
        missing = [name for name in names if name not in self._given]
        if missing:
            raise self.missing(" and no ".join(missing))

    def missing(self, what: str) -> Exception:
        written = self._given.get("type")
        conflict = "" if written in (None, self.rope_type) else f"rope_type counts, and not the type, {shown(written)}"
        return refused(ValueError, "scaling", f'has no {what}, which "{self.rope_type}" needs', remedy=conflict)

    def number(self, key: str, otherwise: float | None = None) -> float:
        """A number from 2**-31 to 2**31."""
        value = self._given.get(key, otherwise)
        if value is None:
            raise self.missing(key)
        return _positive(f'scaling["{key}"]', value)

    def non_negative(self, key: str) -> float:
        """0, where it is missing too, or a number from 2**-31 to 2**31."""
        value = self._given.get(key, 0.0)
        return 0.0 if _number(f'scaling["{key}"]', value) == 0.0 else _positive(f'scaling["{key}"]', value, "0 or ")

    def numbers(self, key: str, count: int) -> tuple[float, ...]:
        """One number per frequency."""
        values = self._given.get(key)
        if values is None:
            raise self.missing(key)
        if not isinstance(values, (list, tuple)) and not (isinstance(values, np.ndarray) and values.ndim == 1):
            raise refused(TypeError, f'scaling["{key}"]', f"is {shown(values)}", f"a list of {count} numbers")
        if len(values) != count:
            expected = f"{count}: one per frequency, rotary_dim / 2"
            raise refused(ValueError, f'scaling["{key}"]', f"has {len(values)} numbers", expected)
        return tuple(_positive(f'scaling["{key}"][{k}]', value) for k, value in enumerate(values))

    def length(self, key: str, least: int = 1) -> int:
        value = self._given.get(key)
        if value is None:
            raise self.missing(key)
        return _length(f'scaling["{key}"]', value, least)

    def flag(self, key: str, otherwise: bool) -> bool:
        value = self._given.get(key, otherwise)
        if not isinstance(value, (bool, np.bool_)):
            raise refused(TypeError, f'scaling["{key}"]', f"is {shown(value)}", "True or False")
        return bool(value)

    def attention_factor(self) -> float | None:
        value = self._given.get("attention_factor")
        if value is None:
            return None
        number = _number('scaling["attention_factor"]', value)
        if not 0.0 < number < float("inf"):
            place = 'scaling["attention_factor"]'
            raise refused(ValueError, place, f"is {shown(value)}", "a finite positive number")
        return number


def _default(keys: _Keys, rotary_dim: int, base: float, seq_len: int | None) -> Scaling:
    return Scaling("default", base)


def _linear(keys: _Keys, rotary_dim: int, base: float, seq_len: int | None) -> Scaling:
    """Source: huggingface/transformers:modeling_rope_utils.py, _compute_linear_scaling_rope_parameters."""
    return Scaling("linear", base, (("factor", keys.number("factor")),))


def _ntk(keys: _Keys, rotary_dim: int, base: float, seq_len: int | None) -> Scaling:
    """Source: jquesnelle/yarn:scaled_rope/LlamaNTKScaledRotaryEmbedding.py @eac10bd7."""
    return Scaling("ntk", base, (("factor", keys.number("factor")),))


def _dynamic(keys: _Keys, rotary_dim: int, base: float, seq_len: int | None) -> Scaling:
    """Source: huggingface/transformers:modeling_rope_utils.py, _compute_dynamic_ntk_parameters.

    With alpha: models/hunyuan_v1_dense/modeling_hunyuan_v1_dense.py, compute_ntk_alpha_rope_parameters.
    """
    if keys.take("alpha") is not None:
        if keys.take("factor") is not None:
            found = f'is {shown(keys.take("alpha"))} and scaling["factor"] is {shown(keys.take("factor"))}'
            remedy = "where there is an alpha, HunYuan's models do not use the factor: leave it out"
            raise refused(ValueError, 'scaling["alpha"]', found, "one of them", remedy)
        return Scaling("ntk", base, (("factor", keys.number("alpha")),))
    if keys.take("factor") is None:
        raise keys.missing("factor and no alpha")
    factor = keys.number("factor")
    # Two names for one number.
    names = [
        key for key in ("max_position_embeddings", "original_max_position_embeddings") if keys.take(key) is not None
    ]
    if not names:
        raise keys.missing("max_position_embeddings")
    trained = keys.length(names[0])
    if keys.length(names[-1]) != trained:
        found = f'is {trained} and scaling["{names[1]}"] is {keys.length(names[1])}'
        expected = 'the same: both are the length beyond which "dynamic" scales'
        raise refused(ValueError, f'scaling["{names[0]}"]', found, expected, "leave one out")
    length = float(max(_needed(seq_len, "dynamic"), trained))
    return Scaling("dynamic", base, (("factor", factor), ("length", length), ("trained_length", float(trained))))


def _yarn(keys: _Keys, rotary_dim: int, base: float, seq_len: int | None) -> Scaling:
    """Source: huggingface/transformers:modeling_rope_utils.py, _compute_yarn_parameters."""
    trained = keys.length("original_max_position_embeddings")
    factor = _factor(keys, trained, "factor and no max_position_embeddings")
    beta_fast, beta_slow = keys.number("beta_fast", 32.0), keys.number("beta_slow", 1.0)
    if beta_fast < beta_slow:
        expected = f"at least beta_slow, {shown(beta_slow)}"
        raise refused(ValueError, 'scaling["beta_fast"]', f"is {shown(beta_fast)}", expected, "swap them")
    if base < 2:
        expected = 'at least 2 for "yarn", which divides by its logarithm'
        raise refused(ValueError, "base", f"is {shown(base)}", expected)
    values: tuple[tuple[str, Value], ...] = (
        ("factor", factor),
        ("trained_length", float(trained)),
        ("beta_fast", beta_fast),
        ("beta_slow", beta_slow),
        ("truncate", keys.flag("truncate", True)),
        ("mscale", keys.non_negative("mscale")),
        ("mscale_all_dim", keys.non_negative("mscale_all_dim")),
    )
    return Scaling("yarn", base, values, keys.attention_factor())


def _longrope(keys: _Keys, rotary_dim: int, base: float, seq_len: int | None) -> Scaling:
    """Source: huggingface/transformers:modeling_rope_utils.py, _compute_longrope_parameters."""
    keys.require("original_max_position_embeddings", "short_factor", "long_factor")
    trained = keys.length("original_max_position_embeddings", 2)
    short = keys.numbers("short_factor", rotary_dim // 2)
    long = keys.numbers("long_factor", rotary_dim // 2)
    attention_factor = keys.attention_factor()
    if attention_factor is None:
        factor = _factor(keys, trained, "factor, no max_position_embeddings and no attention_factor")
    else:
        factor = 1.0
    divisors = long if _needed(seq_len, "longrope") > trained else short
    values = (("divisors", divisors), ("factor", factor), ("trained_length", float(trained)))
    return Scaling("longrope", base, values, attention_factor)


def _llama3(keys: _Keys, rotary_dim: int, base: float, seq_len: int | None) -> Scaling:
    """Source: huggingface/transformers:modeling_rope_utils.py, _compute_llama3_parameters."""
    keys.require("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    low, high = keys.number("low_freq_factor"), keys.number("high_freq_factor")
    if low > high:
        expected = f"at most high_freq_factor, {shown(high)}"
        raise refused(ValueError, 'scaling["low_freq_factor"]', f"is {shown(low)}", expected, "swap them")
    values = (
        ("factor", keys.number("factor")),
        ("trained_length", float(keys.length("original_max_position_embeddings"))),
        ("low_turns", low),
        ("high_turns", high),
    )
    return Scaling("llama3", base, values)


def _proportional(keys: _Keys, rotary_dim: int, base: float, seq_len: int | None) -> Scaling:
    """Source: huggingface/transformers:modeling_rope_utils.py, _compute_proportional_rope_parameters."""
    given = keys.take("partial_rotary_factor")
    share = 1.0 if given is None else _number('scaling["partial_rotary_factor"]', given)
    if not 0.0 <= share <= 1.0:
        place = 'scaling["partial_rotary_factor"]'
        raise refused(ValueError, place, f"is {shown(given)}", "a share of the head, from 0 to 1")
    rotated = int(share * rotary_dim // 2)
    return Scaling("proportional", base, (("factor", keys.number("factor", 1.0)), ("rotated_count", rotated)))


_readers: dict[str, Callable[[_Keys, int, float, int | None], Scaling]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "longrope": _longrope,
    "llama3": _llama3,
    "proportional": _proportional,
    "ntk": _ntk,
}

_known_keys: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor", "alpha", "max_position_embeddings", "original_max_position_embeddings"),
    "yarn": (
        "factor",
        "original_max_position_embeddings",
        "max_position_embeddings",
        "beta_fast",
        "beta_slow",
        "truncate",
        "mscale",
        "mscale_all_dim",
        "attention_factor",
    ),
    "longrope": (
        "factor",
        "original_max_position_embeddings",
        "max_position_embeddings",
        "short_factor",
        "long_factor",
        "attention_factor",
    ),
    "llama3": ("factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"),
    "proportional": ("factor",),
    "ntk": ("factor",),
}


def _factor(keys: _Keys, trained: int, what: str) -> float:
    """`factor`, or how often the trained length fits into the longest one."""
    if keys.take("factor") is not None:
        return keys.number("factor")
    if keys.take("max_position_embeddings") is None:
        raise keys.missing(what)
    return keys.length("max_position_embeddings") / trained


def _needed(seq_len: int | None, rope_type: str) -> int:
    if seq_len is None:
        expected = f'a length: the frequencies of "{rope_type}" depend on it'
        raise refused(ValueError, "seq_len", "is None", expected, "give seq_len=")
    return seq_len


def _base(name: str, value: Any) -> float:
    number = _number(name, value)
    if not 1.0 <= number < float("inf"):
        raise refused(ValueError, name, f"is {shown(value)}", "a finite number, at least 1")
    return number


def _number(name: str, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise refused(TypeError, name, f"is {shown(value)}", "a number")
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _positive(name: str, value: Any, besides: str = "") -> float:
    number = _number(name, value)
    if not 1 / _largest <= number <= _largest:
        raise refused(ValueError, name, f"is {shown(value)}", f"{besides}a number from {_range}")
    return number


def _length(name: str, value: Any, least: int) -> int:
    return _integer(name, value, least, _largest, f"{least} to 2**{_largest.bit_length() - 1}")


def _integer(name: str, value: Any, least: int, greatest: int, bounds: str) -> int:
    try:
        result = operator.index(value)
    except TypeError:
        raise refused(TypeError, name, f"is {shown(value)}", "an int") from None
    if isinstance(value, (bool, np.bool_)):
        raise refused(TypeError, name, f"is {shown(value)}", "an int")
    if not least <= result <= greatest:
        raise refused(ValueError, name, f"is {shown(value)}", bounds)
    return result


def is_known_type(rope_type: Any) -> bool:
    """Whether it is a name of a scaling."""
    return isinstance(rope_type, str) and rope_type in _known_keys


def _type_hint(rope_type: Any) -> str:
    if isinstance(rope_type, str) and rope_type in _other_types:
        return _other_types[rope_type]
    return _close(rope_type, tuple(_known_keys)) or f"expected one of {', '.join(_known_keys)}"


def _types_with(key: Any) -> list[str]:
    """The types that have this key."""
    return [name for name, keys in _known_keys.items() if key in keys]


def _key_hint(key: Any, value: Any, rope_type: str) -> str:
    if isinstance(value, Mapping):
        return f'it looks like the scaling of one kind of layer: give scaling["{key}"] alone'
    if key in _other_keys:
        return f"give {_other_keys[key]}"
    if others := _types_with(key):
        return f"it is a key of {', '.join(others)}: correct rope_type, or leave the key out"
    known = (*_known_keys[rope_type], *_common_keys)
    return _close(key, known) or f"expected {', '.join(known)}; leave it out if it does not change the frequencies"


def _close(word: Any, known: tuple[str, ...]) -> str:
    import difflib  # this import takes longer than the rest of the package's, and only errors need it

    close = difflib.get_close_matches(shown(word).lower(), known, n=1)
    return f'did you mean "{close[0]}"?' if close else ""
