# SPDX-License-Identifier: BSD-3-Clause
"""What is said of calls that do not fit a signature, of other libraries' names, and of libraries that are missing."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

from fastpe import _core

if TYPE_CHECKING:
    _CoreType = type
else:
    _CoreType = type(_core.Encoder)

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)

_training = "to cuda cpu eval train parameters state_dict"
_orders = "print(fastpe.conventions) for the orders of columns"
_no_training = "leave it out: fastpe computes on the CPU, and has no parameters to train"
# Names that other libraries have for functions, classes and attributes, and what serves here. "()" is a call of the
# object itself.
_other_names: dict[str, tuple[tuple[str, str], ...]] = {
    "fastpe": (
        (
            "rotate",
            "make a RotaryEmbedding(..) and call its rotate(x), or call fastpe.rotate_(x, cos=.., sin=.., interleaved=..)",
        ),
        (
            "apply_rotary_pos_emb apply_rotary_emb apply_rotary_emb_func apply_rope rotate_half rotate_queries_or_keys",
            (
                "make a RotaryEmbedding(..) and call its rotate_(q, k), or call fastpe.rotate_(q, k, cos=.., sin=.., "
                "interleaved=..) with tables [rows, pairs]"
            ),
        ),
        (
            (
                "RotaryPositionalEmbedding RotaryPositionEmbedding RotaryPositionalEmbeddings RotaryPositionalEncoding "
                "RotaryPosEmb RoPE Rope rope LlamaRotaryEmbedding rotary_embedding"
            ),
            "use fastpe.RotaryEmbedding",
        ),
        ("from_config from_pretrained", "call fastpe.RotaryEmbedding.from_config(..) with a model's config.json"),
        (
            "precompute_freqs_cis get_1d_rotary_pos_embed get_rotary_matrix",
            "make a RotaryEmbedding(..) and call its tables(length)",
        ),
        (
            (
                "PositionEncoding PositionalEmbedding PositionEmbedding SinusoidalPositionalEncoding SinePositionEncoding "
                "SinusoidalPositionalEmbedding SinusoidalEmbedding PositionalEncoding1D"
            ),
            f"use fastpe.PositionalEncoding(d_model, convention=..), and {_orders}",
        ),
        ("ScaledSinusoidalEmbedding", "use fastpe.PositionalEncoding(d_model, convention='x-transformers')"),
        (
            "positional_encoding get_positional_encoding sinusoidal sinusoidal_embedding sinusoidal_encoding",
            f"call fastpe.encode(length, d_model, convention=..), and {_orders}",
        ),
        (
            "add_positional_encoding add_position_encoding",
            f"call fastpe.add(x, convention=..), or add_, which writes into x, and {_orders}",
        ),
        ("sinusoids get_timing_signal_1d", "call fastpe.encode(length, d_model, convention='tensor2tensor')"),
        ("get_sinusoid_encoding_table", "call fastpe.encode(length, d_model, convention='vaswani')"),
        (
            (
                "M2M100SinusoidalPositionalEmbedding NllbMoeSinusoidalPositionalEmbedding "
                "Speech2TextSinusoidalPositionalEmbedding TrOCRSinusoidalPositionalEmbedding"
            ),
            (
                "use fastpe.PositionalEncoding(d_model, convention='fairseq'), with mask=ids != padding_idx and "
                "offset=padding_idx - 1 in its calls"
            ),
        ),
        (
            "create_sinusoidal_positions get_1d_sincos_pos_embed get_1d_sincos_pos_embed_from_grid",
            "call fastpe.encode(length, d_model, convention='concat')",
        ),
        (
            (
                "PositionalEncoding2D PositionalEncoding3D get_2d_sincos_pos_embed get_3d_sincos_pos_embed "
                "build_2d_sincos_position_embedding build_sincos2d_pos_embed PositionEmbeddingSine encode_2d"
            ),
            "call fastpe.encode_grid(shape, d_model, convention=..)",
        ),
        (
            "RotaryEmbeddingCat RotaryEmbeddingDinoV3 RotaryEmbedding2D FluxPosEmbed",
            "call the methods of fastpe.rotary_layouts[..], and print(fastpe.rotary_layouts) for its names",
        ),
        ("AbsolutePositionalEmbedding", "call fastpe.add_(x, table=.., alpha=d_model**-0.5) with its emb.weight"),
        (
            "LearnedPositionalEmbedding",
            (
                "call fastpe.add_(x, table=..) with its weight, and with mask=ids != padding_idx and "
                "offset=padding_idx + 1 if it has a padding_idx"
            ),
        ),
        ("WhisperPositionalEmbedding", "call fastpe.add_(x, table=..) with its weight"),
        ("ALiBi Alibi AlibiPositionalBias alibi_slopes", "leave the encoding out: fastpe makes no biases of scores"),
        ("set_num_threads set_threads", "give num_threads= to each call, or set FASTPE_NUM_THREADS"),
        ("get_timestep_embedding Timesteps", "call fastpe.timestep_embedding(timesteps, embedding_dim)"),
        (
            "SinusoidalPosEmb",
            "call fastpe.timestep_embedding(timesteps, embedding_dim), with the scale= of its forward, if it has one",
        ),
    ),
    "PositionalEncoding": (
        ("() forward call apply", "call add(x), or add_(x), which writes into x, or encode(length) for the table"),
        ("pe pos_emb table tables weight weights embeddings", "call encode(length), which makes the table"),
        ("dim embed_dim embedding_dim hidden_size", "read d_model"),
        ("from_config from_pretrained", "call PositionalEncoding(d_model, convention=..)"),
        ("inv_freq freqs", "read frequencies"),
        ("max_seq_len max_length max_positions max_position_embeddings", "read max_len"),
        ("base freq_scale", "read it from convention"),
        (_training, _no_training),
    ),
    "RotaryEmbedding": (
        (
            (
                "() forward call apply rotate_queries_or_keys rotate_queries_and_keys apply_rotary_pos_emb "
                "apply_rotary_emb add_"
            ),
            "call rotate_(q, k), which writes into them, or rotate(x), or tables(length) for cosines and sines",
        ),
        (
            "cos sin cos_sin cos_cached sin_cached cos_cache sin_cache cos_sin_cache freqs_cis encode",
            "call tables(length), which makes the cosines and sines",
        ),
        ("inv_freq freqs original_inv_freq", "read frequencies"),
        ("attention_scaling mscale", "read attention_factor"),
        ("dim head_dim rope_dim", "read rotary_dim"),
        ("max_seq_len max_seq_len_cached max_position_embeddings", "read max_len"),
        ("base theta rope_theta rope_type scaling", "print the embedding, which shows its arguments"),
        ("from_pretrained", "call from_config(..) with the model's config.json"),
        (_training, _no_training),
    ),
    "RotaryLayout": (
        ("() forward call", "call rotate_(q, k, positions=ids), or tables(ids, head_dim) for cosines and sines"),
        ("axes_dim axes_dims_rope", "read sections, which has half of each number"),
        (_training, _no_training),
    ),
}


def no_attribute(found: str, owner: str, name: str) -> AttributeError:
    """The error about a name that `found` has not, as `owner` in the table."""
    remedy = _remedy(owner, name)
    return AttributeError(f"{found} has no attribute {name!r}" + (f"; {remedy}" if remedy else ""))


def _remedy(owner: str, name: str) -> str | None:
    return next((remedy for names, remedy in _other_names[owner] if name in names.split()), None)


class _OtherName:
    """An attribute that a class has not, and that another library's class has.

    ``__getattr__`` would do, too, but would make every call of a method slower.
    """

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: str, name: str) -> None:
        self._owner = owner
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        raise no_attribute(owner.__name__, self._owner, self._name)


class _OtherCall(_OtherName):
    """A call of an object itself, as other libraries have it."""

    def __get__(self, instance: object, owner: type) -> Any:
        return self

    def __call__(self, *arguments: object, **keywords: object) -> Any:
        raise TypeError(
            f"{self._owner} is no function, expected a call of a method; {_remedy(self._owner, self._name)}"
        )


def _own_names(names: Iterable[str], kind: type) -> list[str]:
    return [name for name in names if not isinstance(inspect.getattr_static(kind, name, None), _OtherName)]


class OtherNamesHidden(type):
    """The type of classes with other libraries' names, which completion and help() do not list."""

    def __dir__(cls) -> list[str]:
        return _own_names(type.__dir__(cls), cls)


class CoreOtherNamesHidden(OtherNamesHidden, _CoreType):
    """The same of a class of the core."""


def with_other_names(kind: _Class) -> _Class:
    """Decorate a class so that other libraries' names for what it does lead to its own."""
    owner = kind.__name__
    for name in " ".join(names for names, _ in _other_names[owner]).split():
        if name == "()":
            setattr(kind, "__call__", _OtherCall(owner, name))  # noqa: B010
        else:
            setattr(kind, name, _OtherName(owner, name))
    setattr(kind, "__dir__", lambda self: _own_names(object.__dir__(self), type(self)))  # noqa: B010
    return kind


@contextlib.contextmanager
def needed(what: str, library: str, requirement: str) -> Iterator[None]:
    """Turn a failed import of a library into what to install."""
    try:
        yield
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{what} needs {library}; install it with: pip install {requirement}", name=library
        ) from None


def explained(function: _Function) -> _Function:
    """Decorate a function so that a call with wrong arguments tells which ones are meant."""
    made: Any = functools.update_wrapper(_core.Explained(function, _explanation), function)
    if function.__name__ == "__init__":
        # inspect of Python 3.13 looks for the function behind a bound method, and would take self for an argument.
        made.__signature__ = inspect.signature(function)
    return cast(_Function, made)


def explained_fields(kind: _Class) -> _Class:
    """Decorate a dataclass so that its constructor, and `dataclasses.replace`, tell which fields are meant."""
    kind.__init__ = explained(kind.__init__)  # type: ignore[misc]
    return kind


def _explanation(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str | None:
    """What is wrong with the arguments; None if the error says it, or comes from within."""
    signature = inspect.signature(function)
    with contextlib.suppress(TypeError):
        signature.bind(*arguments, **keywords)
        return None
    owner, _, name = function.__qualname__.rpartition(".")
    name = owner if name == "__init__" else name
    parameters = list(signature.parameters.values())[1 if owner else 0 :]
    given = arguments[1 if owner else 0 :]
    known = [each.name for each in parameters if each.kind is not each.VAR_POSITIONAL]
    unexpected = next((keyword for keyword in keywords if keyword not in known), None)
    by_place = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    if unexpected is not None:
        meant = _core.other_name(unexpected, known)
        if meant in {*by_place[: len(given)], *keywords}:
            return (
                f"{name}() got an unexpected keyword argument {unexpected!r}; {meant!r}, which was given, serves in its "
                f"place: leave it out"
            )
        return _core.unexpected_argument(name, unexpected, known)
    has_others = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    has_more = len(given) > len(by_place)
    required = [each.name for each in parameters if each.default is each.empty and each.name in known]
    missing = next((each for each in required if each not in {*by_place[: len(given)], *keywords}), None)
    if missing is not None:
        message = _core.missing_argument(name, missing)
        if has_more:
            taken_for = "is another array" if has_others else "was not taken"
            message += f"; what has no name {taken_for}: write {missing}=.."
        return message
    return _core.too_many_arguments(name, known, len(by_place), len(given)) if has_more else None
