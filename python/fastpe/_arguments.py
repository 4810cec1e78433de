# SPDX-License-Identifier: BSD-3-Clause
"""Checks of single values. Each returns the value in the type that the package works with, or says what is wrong."""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arrays import ArrayLike
from fastpe._errors import a_type, refused

# Positions and lengths beyond this are not exact float64 numbers.
largest_position = 2**53
_longest_shown = 500
_Callable = TypeVar("_Callable", bound=Callable[..., Any])


def shown(value: Any) -> str:
    """What a message shows of a value: its repr, if that is one line; Python writes no integer of over 4300 digits."""
    try:
        text = repr(value)
        if "\n" not in text:
            return text if len(text) <= _longest_shown else f"{text[:_longest_shown]}.."
        shape = f" of shape {list(value.shape)}" if isinstance(value, np.ndarray) else ""
        return f"{a_type(value)}{shape}"
    except (ValueError, RecursionError):
        if type(value) is int:
            return f"an int of {value.bit_length()} bits"
        if type(value) in (list, tuple, dict):
            return f"{a_type(value)} of {len(value)}"
        raise


def integer(name: str, value: Any, least: int = -largest_position, most: int = largest_position) -> int:
    """An int from `least` to `most`, which is 2**53."""
    try:
        result = operator.index(value)
    except TypeError:
        raise refused(TypeError, name, f"is {shown(value)}", "an int") from None
    if isinstance(value, (bool, np.bool_)):
        raise refused(TypeError, name, f"is {shown(value)}", "an int")
    if not least <= result <= most:
        expected = f"at least {_bound(least)}" if result < least else f"at most {_bound(most)}"
        raise refused(ValueError, name, f"is {shown(result)}", expected)
    return result


def _bound(value: int) -> str:
    """Large powers of 2 as such."""
    power = abs(value).bit_length() - 1
    return f"{'-' if value < 0 else ''}2**{power}" if power > 15 and abs(value) == 2**power else str(value)


def asked_once(value: Any) -> Any:
    """An int instead of an object whose `__index__` several calls would run, and else the value itself: calls check it."""
    if value is None or isinstance(value, int) or hasattr(value, "shape") or not hasattr(value, "__index__"):
        return value
    return operator.index(value)


def integers(name: str, values: Any, example: str) -> tuple[int, ...]:
    """One int per axis."""
    try:
        return tuple(integer(name, value) for value in values)
    except TypeError:
        raise refused(TypeError, name, f"is {shown(values)}", f"one int per axis, such as {example}") from None


def is_number(value: Any) -> bool:
    """Whether `value` is one real number. `float` would also take text, complex numbers and arrays of one number."""
    if isinstance(value, (bool, np.bool_, str, bytes, np.complexfloating)) or getattr(value, "ndim", 0) != 0:
        return False
    return hasattr(value, "__float__") or hasattr(value, "__index__")


def number(name: str, value: Any, *, above_zero: bool = False) -> float:
    """A finite number."""
    if not is_number(value):
        raise refused(TypeError, name, f"is {shown(value)}", "a number")
    try:
        result = float(value)
    except OverflowError:
        result = np.inf
    if not np.isfinite(result) or (above_zero and result <= 0.0):
        raise refused(ValueError, name, f"is {shown(value)}", f"a finite number{' above 0' if above_zero else ''}")
    return result


def numbers(name: str, values: ArrayLike, expected: str, kinds: str = "iuf", dtype: str = "float64") -> Any:
    """An array of real numbers of these kinds as `dtype`; whether they are finite is not checked."""
    try:
        array = _core.array(values, name)
    except ValueError:
        raise refused(ValueError, name, f"is {shown(values)}", expected) from None
    if array.dtype.kind in "SUO":
        raise refused(TypeError, name, f"is {shown(values)}", expected)
    if array.dtype.kind not in kinds:
        raise refused(TypeError, name, f"has dtype {array.dtype}", dtype, conversion(array, name, dtype))
    if dtype == "int64" and array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise refused(ValueError, name, f"has {array.max()}", "integers of at most 2**63 - 1")
    return array.astype(dtype)


def whole_numbers(name: str, values: ArrayLike, remedy: str) -> npt.NDArray[Any]:
    """An array of integers; of an empty list too, which NumPy takes for one of float64."""
    array = _core.array(values, name)
    if not array.size and not isinstance(values, np.ndarray):
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise refused(TypeError, name, f"has dtype {array.dtype}", "integers", remedy)
    return array


def are_positions(values: npt.NDArray[Any]) -> bool:
    """Whether all are finite and of a magnitude that the encoder takes."""
    if not values.size:
        return True
    # As Python's numbers, which have a negative of each, and no float64 in between.
    return bool(-largest_position <= values.min().item() and values.max().item() <= largest_position)


def bools(name: str, valid: ArrayLike) -> npt.NDArray[np.bool_]:
    """A mask, of bool or of 0 and 1."""
    array = _core.bools(valid, name)
    if array.dtype != np.bool_:
        expected = "bool or integers, True or 1 for what counts"
        remedy = f"pass {name} == 0 if it is added to scores, and {name} != 0 otherwise"
        raise refused(TypeError, name, f"has dtype {array.dtype}", expected, remedy)
    return array


def given_frequencies(name: str, values: ArrayLike, count: int) -> tuple[float, ...]:
    """`count` numbers."""
    array = numbers(name, values, f"[{count}] numbers")
    if array.shape != (count,):
        raise refused(ValueError, name, f"has shape {list(array.shape)}", f"[{count}]: one per pair of columns")
    return tuple(array.tolist())


def leave_out(name: str, why: str, **others: Any) -> None:
    """Refuse arguments that `name` takes the place of."""
    for other, value in others.items():
        if value is not None:
            raise refused(ValueError, name, f"and {other} were both given", "one", f"{why}: leave {other} out")


def dtype_of(dtype: Any, kinds: str) -> np.dtype[Any]:
    """NumPy's dtype of this name, which is one of these kinds, "iu" or "iuf"."""
    word = dtype if isinstance(dtype, str) else repr(dtype).rpartition(".")[2]  # as of torch.int32
    named = np.dtype(word) if word in np.sctypeDict else np.dtype(object)
    try:
        result: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        result = np.dtype(object)
    if result.kind not in kinds:
        remedy = f"pass {named.name!r}" if named.kind in kinds else ""
        expected = "integers or floats" if "f" in kinds else "integers"
        raise refused(TypeError, "dtype", f"is {shown(dtype)}", expected, remedy)
    return result


def conversion(array: npt.NDArray[Any], name: str, dtype: str) -> str:
    """What makes numbers of `dtype` of an array of another one, as a remedy."""
    if array.dtype == "V2":
        return f"convert it to {dtype} first, after .view(ml_dtypes.bfloat16) if it is a NumPy array"
    if array.dtype.kind in "iu" and array.dtype.itemsize == 2:
        return f"pass {name}.view(ml_dtypes.bfloat16) if it has the bits of bfloat16"
    return f"pass {name}.real" if array.dtype.kind == "c" else f"convert it to {dtype} first"


def flag(name: str, value: Any) -> bool:
    """A truth value: text such as "no" is refused, since Python counts it as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise refused(TypeError, name, f"is {shown(value)}", "True or False")
    return bool(value)


def text(name: str, value: Any) -> str:
    """A str."""
    if not isinstance(value, str):
        raise refused(TypeError, name, f"is {shown(value)}", "a str")
    return value


def texts(name: str, values: Any) -> tuple[str, ...]:
    """A tuple of str."""
    if not isinstance(values, (tuple, list)) or not all(isinstance(value, str) for value in values):
        raise refused(TypeError, name, f"is {shown(values)}", "a tuple of str")
    return tuple(values)


def choice(name: str, value: Any, allowed: tuple[str, ...], *, otherwise: str = "") -> str:
    """One of the texts in `allowed`. `otherwise` names what else the caller takes."""
    if isinstance(value, str) and value in allowed:
        return value
    *others, last = [*([otherwise] if otherwise else []), *map(repr, allowed)]
    found, expected = f"is {shown(value)}", f"{', '.join(others)} or {last}"
    if not isinstance(value, str):
        raise refused(TypeError, name, found, expected)
    near = likely(value, allowed, 0.6)
    hint = f"did you mean {near!r}?" if near else ""
    raise refused(ValueError, name, found, expected, hint)


def nearest(value: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The text in `known` that `value` was probably meant to be: few mistake the first letter."""
    import difflib  # this import takes longer than the rest of the package's, and only errors need it

    value = value[:_longest_shown].lower()
    near = difflib.get_close_matches(value, [each for each in known if each[:1] == value[:1]], 1, cutoff)
    return near[0] if near else None


# Words of other libraries: the argument that takes the place of each here, and what to write.
_foreign = {
    "theta": ("base", "give base="),
    "rope_theta": ("base", "give base="),
    "max_period": ("base", "give base="),
    "dim": ("rotary_dim d_model seq_axis", "give {argument}="),
    "embed_dim": ("d_model", "give d_model="),
    "embedding_dim": ("d_model", "give d_model="),
    "hidden_size": ("d_model", "give d_model="),
    "max_position_embeddings": ("max_len", "give max_len="),
    "rope_scaling": ("scaling", "give scaling="),
    "sliding_window": ("window", "give window=sliding_window"),
    "factor": ("scaling", "write it in scaling="),
    "mscale": ("scaling", "write it in scaling="),
    "freqs": ("frequencies", "give frequencies=, in radians per position"),
    "inv_freq": ("frequencies", "give frequencies=inv_freq"),
    "conjugate": ("inverse", "give inverse="),
    "is_neox_style": ("interleaved", "give interleaved=not is_neox_style"),
    "traditional": ("interleaved", "give interleaved="),
    "mask": (
        "valid attention_mask",
        "give {argument}=, 1 or True where a row counts, or {argument}=~mask of a mask of padding",
    ),
    "attention_mask": ("valid", "give valid=attention_mask"),
    "valid": ("attention_mask", "give attention_mask=valid"),
    "key_padding_mask": ("valid", "give valid=~key_padding_mask: True means padding there"),
    "padding_idx": ("valid", "give valid=ids != padding_idx"),
    "seq_lens": ("lengths", "give lengths=seq_lens"),
    "seq_lengths": ("lengths", "give lengths=seq_lengths"),
    "grid_thw": ("image_grid_thw", "give image_grid_thw= or video_grid_thw="),
    "image_grid_thw": ("grid_thw", "give grid_thw="),
    "video_grid_thw": ("grid_thw", "give grid_thw="),
    "second_per_grid_ts": ("second_per_grid", "give second_per_grid="),
    "video_second_per_grid": ("second_per_grid", "give second_per_grid="),
    "start_pos": ("offset past", "give {argument}=start_pos"),
    "image_sizes": ("target_sizes", "give target_sizes=, in patches, or grid_thw="),
    "start_index": ("offset", "give offset=start_index"),
    "past": ("offset", "give offset=past"),
    "past_len": ("offset past", "give {argument}=past_len"),
    "past_key_values_length": ("offset past", "give {argument}=past_key_values_length"),
    "offset": ("by past", "give {argument}=offset"),
    "positions": ("by", "give by=, how many positions to move by"),
    "axis": ("seq_axis", "give seq_axis="),
    "batch_first": ("seq_axis", "give seq_axis=0 for [L, B, ..]; without it, x is [B, L, ..]"),
    "out": ("x", "it changes x itself: the call of this name without the underscore takes out="),
    "layer": ("layer_type", "use layers_from_config(config)[layer]"),
    "layer_idx": ("layer_type", "use layers_from_config(config)[layer_idx]"),
    "num_prefix_tokens": ("class_tokens", "give class_tokens="),
    "base_size": ("spacing", "give spacing=, the base_size divided by the length of an axis"),
    "max_seqlen": ("max_len cu_seqlens", "{argument} is what counts here"),
}

# Arguments that have no default, since another value than the model's is wrong in silence: how to choose it.
_choices = {
    "interleaved": "True if a pair is two neighbouring columns, as in GPT-J, and False if it is columns k and k + d/2, as in "
    "Llama; from_config knows it of models",
    "convention": "print(fastpe.grid_conventions) lists the names",
    "causal": "True if queries see no later keys, as in decoders, and False if they see keys on both sides",
    "flip_sin_to_cos": "both are in a config of diffusers, downscale_freq_shift as freq_shift",
    "downscale_freq_shift": "a config of diffusers has it as freq_shift",
    "bidirectional": "True in encoders, and False in decoders",
    "num_buckets": "configs have both as position_buckets and max_relative_positions, and where the latter is below 1, "
    "max_position_embeddings",
    "by": "how many positions to move by",
    "to_interleaved": "True for columns k and k + d/2 that become neighbours, and False for neighbours that become those",
}
# What the name of a call in other libraries is here.
_calls = {
    "rope": "RotaryEmbedding",
    "rotary": "RotaryEmbedding",
    "rotaryembedding": "RotaryEmbedding",
    "rotarypositionalembedding": "RotaryEmbedding",
    "rotarypositionalembeddings": "RotaryEmbedding",
    "rotate": "RotaryEmbedding, whose methods are rotate and rotate_",
    "tables": "RotaryEmbedding, whose method is tables",
    "applyrotaryposemb": "RotaryEmbedding, or rotate_by_tables for cosines and sines that are there already",
    "applyrotaryemb": "RotaryEmbedding, or rotate_by_tables for cosines and sines that are there already",
    "sinusoidal": "PositionalEncoding",
    "sinusoidalpositionalembedding": "PositionalEncoding",
    "sinusoidalpositionalencoding": "PositionalEncoding",
    "gettimestepembedding": "timestep_embedding",
    "alibi": "alibi_slopes",
}


def other_call(name: str) -> str:
    """What takes the place of another library's name, as a remedy, or nothing."""
    call = _calls.get(re.sub(r"[-_. ]", "", name.lower()))
    return f"; use fastpe.{call}" if call else ""


def hint(name: str, known: Iterable[str]) -> str:
    """What the error of an unknown keyword says besides; the compiled methods also ask for it.

    Where no names are known, it is of a missing argument; "" stands for too many arguments by place.
    """
    known = list(known)
    if not known:
        return f"; {_choices[name]}" if name in _choices else ""
    if not name:
        several = "inverse" in known or "by" in known
        return "; the call of this name with an underscore takes several arrays" if several else ""
    arguments, remedy = _foreign.get(name, ("", ""))
    if found := next((each for each in arguments.split() if each in known), None):
        return f"; {remedy.format(argument=found)}"
    near = None if name in _foreign else nearest(name, known)
    return f". Did you mean {near!r}?" if near else ""


def names_keywords(function: _Callable) -> _Callable:
    """Make the error of an unknown keyword name the one that was meant."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    takes_names = len(known) > code.co_argcount and not code.co_flags & inspect.CO_VARARGS
    needed = [name for name in known[code.co_argcount :] if name not in (function.__kwdefaults__ or {})]

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except TypeError as error:
            unknown = [hint(name, known) for name in options if name not in known]
            if takes_names and len(arguments) > code.co_argcount:
                unknown = [f"; give what follows by its name, such as {known[code.co_argcount]}="]
            more = "".join((unknown or [hint(name, ()) for name in needed if name not in options])[:1])
            if not more:
                raise
            raise TypeError(f"{str(error).partition('. Did you mean')[0]}{more}") from None

    return call  # type: ignore[return-value]


def likely(name: str, known: Iterable[str], cutoff: float = 0.85) -> str | None:
    """The nearest name with the same digits: others may be another version, or another formula."""
    near = nearest(name, known, cutoff)
    return near if near and re.findall(r"\d", near) == re.findall(r"\d", name) else None


def model_guess(name: str, known: Iterable[str], quote: str = "'") -> str:
    """What a message says of a known name of a model that is similar."""
    known = [each for each in known if each != name]  # which the caller may know, but not of what the config says
    if near := likely(name, known):
        return f"did you mean {quote}{near}{quote}?"
    if near := nearest(name, known, 0.7):
        return (
            f"{quote}{near}{quote} is known, and may be another model: before you take it, compare how both rotate queries "
            f"and keys"
        )
    return ""
