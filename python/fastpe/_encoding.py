# SPDX-License-Identifier: BSD-3-Clause
"""The encoder object."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe.conventions import Convention, find


def _at_least(name: str, value: int, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, expected an int") from None
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}, expected an int")
    if number < least:
        raise ValueError(f"{name} is {number}, expected at least {least}")
    if number > 2**53:
        raise ValueError(f"{name} is {number}, expected at most 2**53")
    return number


def _number(name: str, value: Any) -> float:
    # float() would take text too.
    if not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(f"{name} is {value!r}, expected a number")
    return float(value)


class PositionalEncoding(_core.Encoder):
    """A sinusoidal positional encoding: an immutable plan for one width and one convention.

    Thread-safe, hashable by value, and picklable. Results do not depend on `max_len`: it buys speed alone.

    Parameters
    ----------
    d_model : int
        Width of the embeddings, from 1 to 2**20.
    max_len : int, optional
        Rows of positions ``0 .. max_len - 1`` that are kept once computed (``max_len * d_model`` values per dtype), so
        that short calls read them. Positions outside are computed, never refused.
    convention : str or Convention, optional
        A name in `fastpe.conventions`, or one of your own.
    base, freq_scale : float, optional
        Instead of the convention's.
    freqs : array_like of float64, optional
        The frequencies themselves, in radians per position, instead of ``base`` and ``freq_scale``.

    Attributes
    ----------
    d_model, max_len, convention
        As given; `base` and `freq_scale` are in the convention.

    Raises
    ------
    ValueError
        For a width that the convention does not define, an unknown convention, or frequencies that are not finite.

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

    __slots__ = ("_freqs", "convention", "d_model", "max_len")

    d_model: int
    max_len: int
    convention: Convention
    _freqs: tuple[float, ...]

    def __init__(
        self,
        d_model: int,
        *,
        max_len: int = 0,
        convention: str | Convention = "vaswani",
        base: float | None = None,
        freq_scale: float | None = None,
        freqs: npt.ArrayLike | None = None,
    ) -> None:
        if hasattr(self, "d_model"):
            raise AttributeError("PositionalEncoding is immutable: it cannot be initialised again; make a new one")
        width = _at_least("d_model", d_model, 1)
        rows = _at_least("max_len", max_len, 0)
        chosen = _with_overrides(find(convention), base, freq_scale)
        given = _given_frequencies(freqs, base, freq_scale, chosen.frequency_count(width))
        denominator = chosen.exponent_denominator(width)
        if not denominator > 0:
            raise ValueError(
                f"shift is {chosen.shift}, expected less than the {denominator + chosen.shift} frequencies"
            )
        super().__init__(
            d_model=width,
            frequency_count=chosen.frequency_count(width),
            base=chosen.base,
            exponent_denominator=denominator,
            freq_scale=chosen.freq_scale,
            freqs=given,
            interleaved=chosen.layout == "interleaved",
            cosine_first=chosen.cosine_first,
            output_scale=chosen.output_scale(width),
            max_len=rows,
            first_position=chosen.first_position,
        )
        for name, value in (("d_model", width), ("max_len", rows), ("convention", chosen), ("_freqs", given)):
            object.__setattr__(self, name, value)

    @property
    def frequencies(self) -> npt.NDArray[np.float64]:
        """Radians per position, float64 ``[number of frequencies]``, each rounded to nearest.

        Examples
        --------
        >>> import fastpe
        >>> fastpe.PositionalEncoding(4).frequencies
        array([1.  , 0.01])
        """
        return self._frequencies()

    @property
    def wavelengths(self) -> npt.NDArray[np.float64]:
        """Positions per turn, ``2 pi / frequencies``, float64; infinite for a frequency of 0.

        Examples
        --------
        >>> import fastpe
        >>> fastpe.PositionalEncoding(4).wavelengths.round(2)
        array([  6.28, 628.32])
        """
        with np.errstate(divide="ignore"):
            return 2.0 * np.pi / self._frequencies()

    def shift(self, pe: npt.NDArray[Any], k: int) -> npt.NDArray[Any]:
        """Turn PE(p) into PE(p + k) without knowing p: one rotation per frequency.

        Parameters
        ----------
        pe : ndarray [.., d_model]
            Encodings, float32 or float64.
        k : int
            Positions to move by, either way.

        Returns
        -------
        ndarray [.., d_model]
            A new array of `pe`'s dtype; in float64 within 2e-15 of the encoding itself.

        Raises
        ------
        ValueError
            For an odd width whose last sine has no cosine: such a column's shift is no function of `pe` alone.

        Notes
        -----
        Vaswani et al., 2017, section 3.5: "for any fixed offset k, PE(pos+k) can be represented as a linear function of
        PE(pos)".

        Examples
        --------
        >>> import numpy as np, fastpe
        >>> encoding = fastpe.PositionalEncoding(6)
        >>> moved = encoding.shift(encoding.encode([5], dtype=np.float64), -3)
        >>> bool(np.allclose(moved, encoding.encode([2], dtype=np.float64), rtol=0, atol=2e-15))
        True
        """
        table = np.asarray(pe)
        if table.ndim < 1 or table.shape[-1] != self.d_model:
            raise ValueError(f"pe has shape {list(table.shape)}, expected [.., {self.d_model}], d_model columns")
        if table.dtype not in (np.float32, np.float64):
            raise TypeError(f"pe has dtype {table.dtype}, expected float32 or float64; convert it with .astype(..)")
        count = self.convention.frequency_count(self.d_model)
        if 2 * count > self.d_model:
            raise ValueError(
                f"d_model is {self.d_model}: the last sine has no cosine, so its shift is no function of pe alone; "
                f"use an even width, or encode the positions"
            )
        if not abs(k) <= 2**53:
            raise ValueError(f"k is {k!r}, expected a finite shift of magnitude at most 2**53")
        rotation = self.encode([k], dtype=np.float64)[0] / self.convention.output_scale(self.d_model)
        first, second = (
            (slice(0, 2 * count, 2), slice(1, 2 * count, 2))
            if self.convention.layout == "interleaved"
            else (slice(0, count), slice(count, 2 * count))
        )
        sines, cosines = (second, first) if self.convention.cosine_first else (first, second)
        wide = table.astype(np.float64)
        result = wide.copy()
        result[..., sines] = wide[..., sines] * rotation[cosines] + wide[..., cosines] * rotation[sines]
        result[..., cosines] = wide[..., cosines] * rotation[cosines] - wide[..., sines] * rotation[sines]
        return np.asarray(result.astype(table.dtype))

    def _value(self) -> tuple[Any, ...]:
        return (self.d_model, self.max_len, self.convention, self._freqs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PositionalEncoding):
            return NotImplemented
        return self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    def __repr__(self) -> str:
        freqs = f", freqs=<{len(self._freqs)} values>" if self._freqs else ""
        return f"PositionalEncoding({self.d_model}, max_len={self.max_len}, convention={self.convention!r}{freqs})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"PositionalEncoding is immutable: cannot set {name!r}; make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"PositionalEncoding is immutable: cannot delete {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), *self._value())


def _with_overrides(convention: Convention, base: float | None, freq_scale: float | None) -> Convention:
    import dataclasses

    if base is not None:
        convention = dataclasses.replace(convention, base=_number("base", base))
    if freq_scale is not None:
        convention = dataclasses.replace(convention, freq_scale=_number("freq_scale", freq_scale))
    return convention


def _given_frequencies(
    freqs: npt.ArrayLike | None, base: float | None, freq_scale: float | None, count: int
) -> tuple[float, ...]:
    if freqs is None:
        return ()
    if base is not None or freq_scale is not None:
        raise ValueError(
            "freqs and base or freq_scale were both given, expected one; freqs are the frequencies themselves"
        )
    try:
        array = np.asarray(freqs)
    except ValueError:
        raise ValueError(f"freqs is {freqs!r}, expected [{count}] numbers") from None
    if array.dtype.kind not in "iuf":
        raise TypeError(f"freqs has dtype {array.dtype}, expected float64; convert it with .astype(..)")
    array = array.astype(np.float64)
    if array.shape != (count,):
        raise ValueError(f"freqs has shape {list(array.shape)}, expected [{count}]: one per pair of columns")
    return tuple(array.tolist())


def _rebuild(
    kind: type[PositionalEncoding], d_model: int, max_len: int, convention: Convention, freqs: tuple[float, ...]
) -> PositionalEncoding:
    return kind(d_model, max_len=max_len, convention=convention, freqs=freqs or None)
