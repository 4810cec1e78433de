# SPDX-License-Identifier: BSD-3-Clause
"""How a layout rotates: which frequencies each coordinate has, for one width of a head."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpe._arguments import integer, integers, shown
from fastpe._errors import refused
from fastpe._rotary.scaling import axes_of, ideal_frequencies, read_base

# Divisions whose coordinates have a sequence of frequencies each, over its own columns.
_own_sequences = ("blocks", "mixed", "halves")


class Rotation(NamedTuple):
    """What a project's module does, as data.

    `division` says which frequencies belong to which coordinate. Four values divide one sequence, ``base**(-2k / d)``
    over all ``d`` columns. "runs": each coordinate has a run of neighbours. "strides": the second and third coordinate
    have every third frequency, and the first one has the others. "turns": the second and third coordinate alternate, and
    the first one has the rest. "parity": the first coordinate has the even frequencies, and then the second one has the
    odd ones. Otherwise each coordinate has a sequence over its own columns. "blocks": the sequences follow each other, and
    are paired across the head. "mixed": each k has the frequencies of both coordinates, the last coordinate first.
    "halves": each coordinate has a half of the head, which is paired in itself.
    """

    division: Literal["runs", "strides", "turns", "parity", "blocks", "mixed", "halves"]
    interleaved: bool
    form: str  # of the tables that the project's own module gives
    base: float | None = 10000.0  # None where models differ, and then where theirs is found
    base_is: str = "the rope_theta of config.json, or call RotaryEmbedding.from_config"
    sections: tuple[int, ...] | None = None  # how many frequencies each coordinate has
    proportions: tuple[int, ...] | None = None  # the coordinates' shares if there are no sections; equal by default
    # Columns that cannot be shared are refused, given to the first coordinate, or left as they are.
    remainder: Literal["error", "first", "keep"] = "error"
    linear: bool = False  # evenly spaced from pi to pi * base / 2, where base is the resolution in pixels
    freq_scale: float = 1.0
    partial: bool = False  # whether a head may have more columns than are rotated

    def arguments(
        self, layout: str, coordinates: Sequence[str], head_dim: Any, base: Any, sections: Any
    ) -> dict[str, Any]:
        """The arguments of the `RotaryEmbedding`."""
        head_dim = integer("head_dim", head_dim, 2)
        bases = self._bases(layout, coordinates, base)
        chosen = bases[0]
        if chosen is None:
            found = f"is None, and the models of layout {layout!r} have different ones"
            raise refused(ValueError, "base", found, remedy=f"give base=, {self.base_is}")
        sections = self.sections if sections is None else self._checked(layout, coordinates, sections)
        counts = self._counts(layout, coordinates, head_dim, sections)
        if self.division == "halves":
            half = head_dim // 2
            found = f"is {layout!r}, which rotates each half of a head by one coordinate"
            rope = f"rope = fastpe.RotaryEmbedding({half}, interleaved={self.interleaved}, base={chosen})"
            calls = "; ".join(
                f"rope.rotate_(q[..., {columns}], positions=ids[:, {i}], seq_axis=-2)"
                for i, columns in enumerate((f":{half}", f"{half}:"))
            )
            raise refused(ValueError, "layout", found, remedy=f"rotate the halves: {rope}; {calls}")
        axes = np.tile([1, 0], counts[0]) if self.division == "mixed" else axes_of(self.division, counts)
        frequencies = self._frequencies(bases, counts)
        result = {
            "rotary_dim": 2 * sum(counts),
            "interleaved": self.interleaved,
            "frequency_axes": axes,
            "head_dim": head_dim,
        }
        ideal = frequencies is None
        return result | {"form": self.form} | ({"base": chosen} if ideal else {"frequencies": frequencies})

    def _bases(self, layout: str, coordinates: Sequence[str], base: Any) -> tuple[Any, ...]:
        """The base of each coordinate."""
        if not isinstance(base, (tuple, list, np.ndarray)) or np.ndim(base) == 0:
            return (self.base if base is None else read_base("base", base),) * len(coordinates)
        if len(base) != len(coordinates):
            expected = f"one number, or one for each coordinate of layout {layout!r}, {', '.join(coordinates)}"
            raise refused(ValueError, "base", f"has {len(base)} numbers", expected)
        if self.division not in ("blocks", "mixed") or self.linear:
            expected = f"one number: layout {layout!r} divides one sequence of frequencies among its coordinates"
            raise refused(ValueError, "base", f"is {shown(base)}", expected)
        return tuple(read_base("base", each) for each in base)

    def _checked(self, layout: str, coordinates: Sequence[str], sections: Any) -> tuple[int, ...]:
        result = integers("sections", sections, "(16, 24, 24)")
        if len(result) != len(coordinates) or min(result) < 1:
            expected = f"{len(coordinates)} numbers of at least 1: one per coordinate of layout {layout!r}, "
            raise refused(ValueError, "sections", f"is {result}", expected + ", ".join(coordinates))
        if self.division in ("turns", "parity", "mixed") and result[0] != result[1]:
            expected = f"the first two to be equal: layout {layout!r} takes them in turns"
            raise refused(ValueError, "sections", f"is {result}", expected)
        return result

    def _counts(
        self, layout: str, coordinates: Sequence[str], head_dim: int, sections: tuple[int, ...] | None
    ) -> tuple[int, ...]:
        """Frequencies of each coordinate."""
        wrong = functools.partial(refused, ValueError, "head_dim", f"is {head_dim}")
        if sections is not None:
            width = 2 * sum(sections)
            if width == head_dim or (self.partial and width < head_dim):
                return sections
            expected = f"{'at least ' if self.partial else ''}{width}: the sections of layout {layout!r}, "
            expected += f"{sections}, count frequencies, of two columns each"
            if width == 2 * head_dim and not any(columns % 2 for columns in sections):
                halves = tuple(columns // 2 for columns in sections)
                raise wrong(expected, f"if these are numbers of columns, give half of each, sections={halves}")
            raise wrong(expected, "give sections= whose sum is half of the head")
        shares = self.proportions or (1,) * len(coordinates)
        multiple = 2 * sum(shares) // math.gcd(*shares)
        if self.remainder == "error" and head_dim % multiple:
            names = ", ".join(coordinates)
            raise wrong(f"a multiple of {multiple}: layout {layout!r} shares the columns among {names} in pairs")
        if self.remainder == "first" and head_dim % 2:
            raise wrong("an even number: columns are rotated in pairs")
        pairs = head_dim // 2
        counts = [pairs * share // sum(shares) for share in shares]
        if self.remainder == "first":
            counts[0] += pairs - sum(counts)
        if min(counts) < 1:
            raise wrong(f"more: a coordinate of layout {layout!r} has no columns")
        return tuple(counts)

    def _frequencies(self, bases: tuple[float, ...], counts: tuple[int, ...]) -> npt.NDArray[np.float64] | None:
        """None for the ideal ones over all columns, in their order."""
        if self.division in ("runs", "strides", "turns"):
            return None
        if self.division == "parity":
            shared = ideal_frequencies(2 * sum(counts), bases[0])
            return np.concatenate([shared[0::2], shared[1::2]])
        if self.linear:
            own = [np.pi * np.linspace(1.0, bases[0] / 2.0, count) for count in counts]
        else:
            own = [ideal_frequencies(2 * count, base) for base, count in zip(bases, counts, strict=True)]
        if self.division == "mixed":
            own = [np.stack(own[::-1], axis=1).ravel()]
        return self.freq_scale * np.concatenate(own)

    def formula(self, coordinate_count: int) -> str:
        """Frequencies, pairs and form in one line."""
        if self.sections is None:
            counts = f"({' : '.join(map(str, self.proportions or (1,) * coordinate_count))})"
        else:
            counts = " + ".join(map(str, self.sections))
        pairs = "(2k, 2k + 1)" if self.interleaved else "(k, k + d / 2)"
        if self.division == "halves":
            pairs += " of each half"
        own = self.division in _own_sequences
        where = "d per coordinate" if own else f"d for all, divided in {self.division}"
        scale = "" if self.freq_scale == 1.0 else f"{self.freq_scale:g} * "
        base = "base" if self.base is None else f"{self.base:g}"
        each = f"pi * linspace(1, {base} / 2)" if self.linear else f"{base}^(-2k / d)"
        return f'{counts} frequencies of {scale}{each}, {where}; pairs {pairs}; form "{self.form}"'
