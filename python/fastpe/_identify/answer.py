# SPDX-License-Identifier: BSD-3-Clause
"""What `identify` answers: a call, how far the table is from what it makes, and what else is known."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe._grid.convention import GridConvention
from fastpe._registry import Preset
from fastpe._rotary.embedding import RotaryEmbedding
from fastpe._sinusoid.convention import Convention

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.intp]

# The rows that a candidate must make before all are compared, and the values that are compared at a time.
_sample_rows = 48
_block_values = 1 << 20


def call_text(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> str:
    """A call of the package as its reader writes it, who has imported fastpe."""

    def shown(value: Any) -> str:
        return f"fastpe.{value!r}" if isinstance(value, Preset | RotaryEmbedding) else repr(value)

    owner = getattr(function, "__self__", None)
    given = [*map(shown, arguments), *(f"{name}={shown(value)}" for name, value in keywords.items())]
    return f"{'fastpe' if owner is None else shown(owner)}.{function.__name__}({', '.join(given)})"


@dataclasses.dataclass(frozen=True)
class Match:
    """A call that may make the arrays that were given.

    `make` makes some rows of them, in which each column may be off by `allowed`. `found` has fields of `Identification`.
    """

    code: str
    found: Mapping[str, Any]
    given: Sequence[Array]
    make: Callable[[Rows], Sequence[Array]]
    allowed: Array
    notes: tuple[str, ...] = ()

    def fits(self, rows: Rows) -> bool:
        """Whether the call makes some of these rows, from all over the table."""
        return self.difference(rows[np.linspace(0, len(rows) - 1, _sample_rows).astype(np.intp)]) is not None

    def difference(self, rows: Rows) -> float | None:
        """The largest difference in these rows, or None if one is larger than allowed."""
        largest, step = 0.0, max(1, _block_values // self.allowed.size)
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            for given, made in zip(self.given, self.make(block), strict=True):
                off = np.abs(given[block].astype(np.float64) - made)
                if not (off <= self.allowed).all():
                    return None
                largest = max(largest, float(off.max()))
        return largest


def nonzero(given: Sequence[Array]) -> Rows:
    """The rows that are compared: those that are not entirely zero."""
    return np.flatnonzero(np.any([array.any(axis=tuple(range(1, array.ndim))) for array in given], axis=0))


@dataclasses.dataclass(frozen=True)
class Identification:
    """What `identify` found out about a table. `print` shows it as text, and it is true if something matches.

    Attributes
    ----------
    matches : bool
        Whether anything known makes the table.
    title : str
        What the table is, in a few words.
    code : str
        The call that makes the table; empty if nothing known does. If the table starts with padding or class tokens, it
        makes the rows that tokens read. `identify` has compared all values. Of a rotary embedding, ``interleaved=`` is
        not known, and may be True or False.
    convention : Convention, GridConvention or None
        The preset with the numbers of the table, which can be passed as ``convention=``; None for a rotary embedding
        and for an unknown table.
    rotary : RotaryEmbedding or None
        The rotary embedding whose table it is.
    d_model, rows : int
        The table's last extent, and the number of its rows or cells.
    largest_difference : float
        The largest difference between the table and what the call makes, over all rows that are not entirely zero;
        infinite for an unknown table.
    tolerance : float
        The largest difference that rounding may cause: that of the entries, and that of angles in float32 at the
        largest position. For slow frequencies, less is allowed.
    zero_rows : tuple of int
        Rows that are entirely zero, such as those of a padding index or a class token. They were not compared.
    equivalents : tuple of str
        Other presets that give the same table at this width and length.
    notes : tuple of str
        Sentences that say what else is known.
    first_position : int or None
        The position of the first row of `code`, which is that of the convention.
    base, freq_scale, alpha : float or None
        The numbers of the convention.
    """

    matches: bool
    title: str
    code: str
    d_model: int
    rows: int
    largest_difference: float = math.inf
    tolerance: float = 0.0
    convention: Convention | GridConvention | None = None
    rotary: RotaryEmbedding | None = None
    zero_rows: tuple[int, ...] = ()
    equivalents: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    first_position: int | None = None
    base: float | None = None
    freq_scale: float | None = None
    alpha: float | None = None

    def __bool__(self) -> bool:
        """Whether something matches."""
        return self.matches

    def __str__(self) -> str:
        if not self.matches:
            return "\n    ".join([self.title, *self.notes])
        difference = f"largest difference {self.largest_difference:.2g}; rounding may cause up to {self.tolerance:.2g}"
        return "\n    ".join([f"{self.title}: {difference}", self.code, *self.notes])
