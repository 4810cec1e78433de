# SPDX-License-Identifier: BSD-3-Clause
"""The encoder object, and the few that the functions keep."""

# Annotations are evaluated here, where their names are known: the public classes say that they are of `fastpe`.

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import (
    are_positions,
    conversion,
    given_frequencies,
    integer,
    is_number,
    names_keywords,
    number,
    numbers,
    shown,
)
from fastpe._arrays import ArrayLike
from fastpe._config.model import ModelConfig
from fastpe._encoder_base import EncoderBase
from fastpe._errors import refused
from fastpe._names import ConventionName
from fastpe._sinusoid.convention import Convention, with_overrides
from fastpe._sinusoid.conventions import conventions


# encode, add_, add, embed and warm_up are inherited from csrc/bindings/encoding.cpp, with the docstrings of _docs.py.
class PositionalEncoding(EncoderBase, _core.Encoding):
    """A sinusoidal positional encoding: an immutable plan for one width and one convention.

    It is thread-safe, hashable by value, and picklable. `max_len` changes the speed, and never the results.

    Parameters
    ----------
    d_model : int
        Width of the embeddings, from 1 to 2**20.
    max_len : int, optional
        The rows of positions ``0 .. max_len - 1`` are kept once they are computed (``max_len * d_model`` values for each
        dtype), so that short calls read them, and `warm_up` computes them all. Rows of other positions are computed in
        each call. If `max_len` is not given, rows that are asked for again are kept: at most 8 MiB in each dtype, and
        16 MiB for all such encoders of a process. With 0, no rows are kept.
    convention, base, freq_scale, frequencies : optional
        As in `fastpe.encode`; `frequencies` takes the place of `base` and `freq_scale`.
    padding_idx : int, optional
        The id of padding, if padding is not counted: `embed` takes ids [L] or [B, L] and leaves these rows out, unless
        its call says which rows are valid. For `add_`, give ``valid=ids != encoding.padding_idx``.
    embedding_scale : float, optional
        What a model multiplies embeddings by before the encoding is added: the `scale` of `embed` unless its call gives
        one. For `add_`, give ``scale=encoding.embedding_scale``.

    Attributes
    ----------
    d_model, max_len, convention, base, freq_scale, padding_idx, embedding_scale
        The arguments, with the values that count where none were given. `base` and `freq_scale` are None if frequencies
        were given.
    arguments : dict
        All arguments: ``PositionalEncoding(**encoding.arguments) == encoding``.

    Raises
    ------
    ValueError
        For a width that the convention does not define, an unknown convention, or frequencies other than 0 whose
        magnitude is below ``2**-96``, or ``2**45`` and more.
    TypeError
        For an argument of another type.

    Notes
    -----
    ``PE[p, 2k] = sin(p / base**(2k / d_model))``, ``PE[p, 2k + 1] = cos(..)`` in the default convention: Vaswani et
    al., "Attention Is All You Need", 2017, section 3.5.

    Examples
    --------
    >>> import numpy as np, fastpe
    >>> encoding = fastpe.PositionalEncoding(8, max_len=512)
    >>> x = np.zeros((2, 3, 8), np.float32)
    >>> encoding.add_(x, offset=10) is x
    True
    >>> bool((x[1] == encoding.encode([10, 11, 12])).all())
    True
    """

    _compared = ("d_model", "convention", "padding_idx", "embedding_scale", "_given")
    _defaults: ClassVar = {"convention": "vaswani", "embedding_scale": 1.0}
    __slots__ = ("__weakref__", "_arguments", "max_len", *_compared)

    d_model: int
    max_len: int | None
    convention: Convention
    padding_idx: int | None
    embedding_scale: float
    _given: tuple[float, ...]

    @names_keywords
    def __init__(
        self,
        d_model: int,
        *,
        max_len: int | None = None,
        convention: ConventionName | Convention = "vaswani",
        base: float | None = None,
        freq_scale: float | None = None,
        frequencies: ArrayLike | None = None,
        padding_idx: int | None = None,
        embedding_scale: float = 1.0,
    ) -> None:
        self._require_new()
        width = integer("d_model", d_model, 1)
        rows = None if max_len is None else integer("max_len", max_len, 0)
        chosen = with_overrides(conventions._find(convention), base, freq_scale, frequencies)
        count, denominator, output_scale = chosen._numbers(width)
        given = () if frequencies is None else given_frequencies("frequencies", frequencies, count)
        if not denominator > 0:
            expected = f"less than the {denominator + chosen.denominator_offset} frequencies"
            raise refused(ValueError, "denominator_offset", f"is {chosen.denominator_offset}", expected)
        padding = None if padding_idx is None else integer("padding_idx", padding_idx, 0)
        scale = number("embedding_scale", embedding_scale)
        super().__init__(
            d_model=width,
            frequency_count=count,
            base=chosen.base,
            exponent_denominator=denominator,
            freq_scale=chosen.freq_scale,
            frequencies=given,
            interleaved=chosen.layout == "interleaved",
            cosine_first=chosen.cosine_first,
            output_scale=output_scale,
            max_len=rows,
            first_position=chosen.first_position,
            embedding_scale=scale,
            padding_idx=padding,
        )
        name = chosen.name if conventions.get(chosen.name) == chosen else chosen
        model = {"padding_idx": padding, "embedding_scale": scale}
        arguments = {"d_model": width, "max_len": rows, "convention": name, "frequencies": list(given) or None, **model}
        self._set(d_model=width, max_len=rows, convention=chosen, _given=given, _arguments=arguments, **model)

    @property
    def base(self) -> float | None:
        """The base of the frequencies; None if they were given."""
        return None if self._given else self.convention.base

    @property
    def freq_scale(self) -> float | None:
        """What the frequencies are multiplied by; None if they were given."""
        return None if self._given else self.convention.freq_scale

    @classmethod
    @names_keywords
    def from_config(
        cls, config: Mapping[str, Any] | str | os.PathLike[str] | ModelConfig, *, max_len: int | None = None
    ) -> "PositionalEncoding":
        """Make the encoding of a model from its config.json.

        Parameters
        ----------
        config : mapping, path or ModelConfig
            The dictionary of a config.json, or the path of this file.
        max_len : int, optional
            As in the constructor.

        Returns
        -------
        PositionalEncoding
            Its convention has the model's first position. `padding_idx` is the id that is not counted, or None if
            padding is counted as any other token, and `embedding_scale` the factor of embeddings.

        Raises
        ------
        ValueError
            For a ``model_type`` that is not known, or has another kind of positional encoding: the message names the
            call for it.
        TypeError
            For a value of another type.
        OSError
            For a file that cannot be read.

        Notes
        -----
        The model types are those of transformers 5.24 that add sinusoids, or have a table that is made of them. The page
        about models says which part of each model is meant.

        Examples
        --------
        >>> import numpy as np, fastpe
        >>> config = {"model_type": "m2m_100", "d_model": 8, "pad_token_id": 1, "scale_embedding": True}
        >>> encoding = fastpe.PositionalEncoding.from_config(config)
        >>> encoding.convention.name, encoding.convention.first_position, encoding.padding_idx
        ('fairseq', 2, 1)
        >>> ids, table = np.array([[5, 6, 1]]), np.ones((9, 8), np.float32)
        >>> encoding.embed(ids, table).shape  # scaled by encoding.embedding_scale, and without a position for id 1
        (1, 3, 8)
        """
        from fastpe._sinusoid.config import read_config  # most programs never need it

        width, convention, padding_idx, embedding_scale = read_config(config)
        return cls(
            width, max_len=max_len, convention=convention, padding_idx=padding_idx, embedding_scale=embedding_scale
        )

    @names_keywords
    def shift(self, pe: ArrayLike, *, by: float | ArrayLike) -> npt.NDArray[Any]:
        """Turn PE(p) into PE(p + by) without knowing p: one rotation per frequency.

        Parameters
        ----------
        pe : array_like [.., L, d_model]
            Encodings, float32 or float64.
        by : int, float or array_like [L], [B, L] or [B, 1]
            How many positions to move by, in either direction, for all rows or for each; it may be fractional.

        Returns
        -------
        ndarray [.., L, d_model]
            A new array of `pe`'s dtype. In float64, it is within 2e-15 of the encoding itself, times the convention's
            alpha.

        Raises
        ------
        ValueError
            For an odd width whose last sine has no cosine: the shift of such a column does not follow from `pe`. For a
            `by` that is not finite or beyond 2**53, or that has another shape.
        TypeError
            For an argument of another type.

        Notes
        -----
        Vaswani et al., 2017, section 3.5: "for any fixed offset k, PE(pos+k) can be represented as a linear function of
        PE(pos)".

        Examples
        --------
        >>> import numpy as np, fastpe
        >>> encoding = fastpe.PositionalEncoding(6)
        >>> moved = encoding.shift(encoding.encode([5], dtype=np.float64), by=-3)
        >>> bool(np.allclose(moved, encoding.encode([2], dtype=np.float64), rtol=0, atol=2e-15))
        True
        """
        table = _core.array(pe, "pe")
        if table.ndim < 1 or table.shape[-1] != self.d_model:
            raise refused(ValueError, "pe", f"has shape {list(table.shape)}", f"[.., {self.d_model}], d_model columns")
        if table.dtype not in (np.float32, np.float64):
            remedy = conversion(table, "pe", "float32")
            raise refused(TypeError, "pe", f"has dtype {table.dtype}", "float32 or float64", remedy)
        if 2 * self.convention._numbers(self.d_model).frequency_count > self.d_model:
            found = f"is {self.d_model}: the last sine has no cosine, so its shift does not follow from pe"
            raise refused(ValueError, "d_model", found, remedy="use an even width, or encode the positions")
        is_one = is_number(by)  # Python's integers may be too long for an array
        shifts = np.array(number("by", by)) if is_one else numbers("by", by, "a number, or one for each row")
        if not are_positions(shifts if is_one else _core.array(by, "by")):
            raise refused(ValueError, "by", f"is {shown(by)}", "finite shifts of magnitude at most 2**53")
        rows = table.shape[:-1]
        is_batch = len(rows) > 1 and shifts.shape[:-1] in ((1,), rows[:1]) and shifts.shape[-1:] in ((1,), rows[-1:])
        if shifts.shape not in ((), rows[-1:]) and not is_batch:
            expected = f"a number, or one for each row of pe, {list(table.shape)}: [L], [B, L] or [B, 1]"
            raise refused(ValueError, "by", f"has shape {list(shifts.shape)}", expected)
        if shifts.ndim == 2:
            shifts = shifts.reshape(len(shifts), *[1] * (len(rows) - 2), -1)
        unscaled = dataclasses.replace(self.convention, alpha=1.0)
        turning = cached_encoding(self.d_model, unscaled, None, None, self._given or None)
        rotation = turning.encode(shifts.reshape(-1), dtype=np.float64).reshape(*shifts.shape, -1)
        sines, cosines = self.convention._columns(self.d_model)
        wide = table.astype(np.float64)
        result = wide.copy()
        sine, cosine = rotation[..., sines], rotation[..., cosines]
        result[..., sines] = wide[..., sines] * cosine + wide[..., cosines] * sine
        result[..., cosines] = wide[..., cosines] * cosine - wide[..., sines] * sine
        return np.asarray(result.astype(table.dtype))


# Encoders of calls, the oldest first. A dict is never changed but replaced, and no lock is held while an encoder is made, as
# functools' caches hold one on free-threaded Python: it would stay locked in a child whose parent forked meanwhile.
_kept_encodings: dict[tuple[Any, ...], PositionalEncoding] = {}
_most_kept = 16


def cached_encoding(d_model: Any, convention: Any, base: Any, freq_scale: Any, frequencies: Any) -> PositionalEncoding:
    """The encoder of a call, made or kept from an earlier one."""
    global _kept_encodings
    try:
        given = None if frequencies is None else tuple(numbers("frequencies", frequencies, "numbers").tolist())
        # With the types, or 8.0 would pass for a width as soon as 8 had been one.
        key = (d_model, convention, base, freq_scale, given, type(d_model), type(base), type(freq_scale))
        found = _kept_encodings.get(key)
        if found is None:
            found = PositionalEncoding(
                d_model, convention=convention, base=base, freq_scale=freq_scale, frequencies=given
            )
            _kept_encodings = dict([*_kept_encodings.items(), (key, found)][-_most_kept:])
        return found
    except (TypeError, ValueError):
        # Wrong, or unhashable and therefore wrong: the constructor says which argument it is.
        pass
    return PositionalEncoding(d_model, convention=convention, base=base, freq_scale=freq_scale, frequencies=frequencies)
