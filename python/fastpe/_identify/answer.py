# SPDX-License-Identifier: BSD-3-Clause
"""The call that makes a table: evaluated, compared with the table, and only then given."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from fastpe._grid.convention import GridConvention
from fastpe._identify.readings import Array, excess, rows_off
from fastpe._rotary.embedding import RotaryEmbedding
from fastpe._sinusoid.convention import Convention


@dataclasses.dataclass(frozen=True)
class Answer:
    """What fits the rows that were searched, and has yet to be compared with all of them.

    Attributes
    ----------
    title : str
        What the table is.
    code : str
        The call.
    given : tuple of ndarray
        The arrays that the call should make.
    allowed : tuple of ndarray
        How far each may be off, broadcast.
    made_by : Convention, GridConvention or RotaryEmbedding
        What the call calls with.
    equivalents, notes : tuple of str
        As in `Identification`.
    skipped : int
        How many rows of the table come before those of the call. The first note says why.
    """

    title: str
    code: str
    given: tuple[Array, ...]
    allowed: tuple[Array, ...]
    made_by: Convention | GridConvention | RotaryEmbedding
    equivalents: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: int = 0

    def wrong_rows(self) -> list[int]:
        """Indices along the table's first axis, of rows that the call does not make."""
        made = evaluated(self.code)
        arrays = made if isinstance(made, tuple) else (made,)
        rows = set().union(*map(rows_off, self.given, arrays, self.allowed))
        return sorted(self.skipped + row for row in rows)

    def tried(self) -> tuple[float, float, float]:
        """`excess` of what the call makes."""
        made = evaluated(self.code)
        arrays = made if isinstance(made, tuple) else (made,)
        return max(map(excess, self.given, arrays, self.allowed))


def evaluated(code: str) -> Any:
    """The result of a call that was written here, with the names that its reader has imported."""
    import fastpe  # which imports this file

    return eval(code, {"fastpe": fastpe, "np": np, "dataclasses": dataclasses})


@dataclasses.dataclass(frozen=True)
class Identification:
    """What `identify` found out about a table. `print` shows it as text, and it is true if something matches.

    Attributes
    ----------
    matches : bool
        Whether anything known makes the table. If not, `code` is empty, and `notes` say what is near, if anything is, and
        which call uses the table as it is.
    title : str
        What the table is, in a few words.
    code : str
        The call that makes the table. If the table starts with padding or class tokens, it makes the rows that tokens
        read. `identify` has evaluated it and compared all values.
    convention : Convention, GridConvention or None
        The preset with the numbers of the table, which can be passed as ``convention=``; None for a rotary embedding
        and for an unknown table.
    rotary : RotaryEmbedding or None
        The rotary embedding whose table it is.
    d_model, rows : int
        The table's last extent, and the number of its rows or cells.
    largest_difference : float
        The largest difference between the table and what the call makes, over all rows that are not entirely zero;
        infinite for an unknown table that nothing comes near.
    tolerance : float
        The largest difference that rounding may cause: that of the entries, and that of angles in float32 at the
        largest position. For slow frequencies, less is allowed.
    zero_rows : tuple of int
        Rows that are entirely zero, such as those of a padding index or a class token. They were not compared.
    equivalents : tuple of str
        Other presets that give the same table at this width, with no more fields changed.
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
    largest_difference: float
    tolerance: float
    convention: Convention | GridConvention | None = None
    rotary: RotaryEmbedding | None = None
    zero_rows: tuple[int, ...] = ()
    equivalents: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether something matches."""
        return self.matches

    @property
    def _axis(self) -> Convention | None:
        return self.convention.axis if isinstance(self.convention, GridConvention) else self.convention

    @property
    def first_position(self) -> int | None:
        """The first position of the convention."""
        return self._axis.first_position if self._axis else None

    @property
    def base(self) -> float | None:
        """The base of the convention."""
        return self._axis.base if self._axis else None

    @property
    def freq_scale(self) -> float | None:
        """The factor of the convention's frequencies."""
        return self._axis.freq_scale if self._axis else None

    @property
    def alpha(self) -> float | None:
        """The `alpha` of the convention, as a number."""
        return self._axis.output_scale(self.d_model) if self._axis else None

    def __str__(self) -> str:
        if not self.matches:
            return "\n    ".join(["no known convention", *self.notes])
        difference = f"largest difference {self.largest_difference:.2g}; rounding may cause up to {self.tolerance:.2g}"
        return "\n    ".join([f"{self.title}: {difference}", self.code, *self.notes])
