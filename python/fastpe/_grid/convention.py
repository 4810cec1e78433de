# SPDX-License-Identifier: BSD-3-Clause
"""What a convention of several coordinates says: how the encodings of the axes share the columns."""

# Annotations are evaluated here: libraries that build dataclasses from configurations read them.
import dataclasses
import math
from typing import Any, Literal

from fastpe._arguments import integers
from fastpe._errors import refused
from fastpe._registry import Preset
from fastpe._sinusoid.convention import Convention, factor_text, frequency_text, functions_text

Outermost = Literal["axis", "function", "function_frequency", "frequency", "pair"]
Remainder = Literal["error", "pad", "truncate"]


@dataclasses.dataclass(frozen=True, repr=False)
class GridConvention(Preset):
    """How the encodings of several axes make one vector.

    Attributes
    ----------
    name : str
        Its name in `grid_conventions`.
    axis : Convention
        The encoding of one axis, over its share of the columns; coordinates count from its first position.
    outermost : str
        What changes slowest along the vector. With "axis", one axis follows the other, each in the order of the field
        `axis`. With "function", the sines of all axes come before their cosines, axis by axis, and with
        "function_frequency" frequency by frequency. With "frequency", each frequency has the sines of all axes and then
        their cosines. With "pair", each frequency has the sine and cosine of one axis after the other.
    axis_order : tuple of int, optional
        The axes of the grid's shape, in the order in which they appear in the vector; that of the shape by default.
    proportions : tuple of int, optional
        The axes' shares of the columns, in the vector's order; equal by default.
    remainder : str
        What is done with columns that cannot be shared in pairs: "error" refuses them, "pad" leaves the last ones zero,
        and "truncate" takes the next larger width and drops its last columns.
    normalize : bool
        Whether coordinates are divided by the last one (plus 1e-6) along their axis.
    cell_offset : float
        The number that is added to counted coordinates. Normalized coordinates are divided by the last one without it.
    input_last : bool
        Whether coordinates themselves, where a call includes them, come after the encoding.
    projected : bool
        Whether coordinates are points times a matrix of the model. Each then has one frequency, so two columns.
    serves : tuple of str
        Systems that use it. Comparisons ignore them.
    source : str
        Where the convention was read. Comparisons ignore it.

    Raises
    ------
    TypeError, ValueError
        For a field of another type, a text that is not one of the above, an `axis_order` that does not name every axis
        once, shares below 1, and an `outermost` that the other fields exclude.

    Examples
    --------
    >>> import fastpe
    >>> print(fastpe.grid_conventions["hf2d"])
    hf2d: axis 0 (sin | cos), axis 1 (sin | cos); w_k = 10000^(-k / n), n per axis
        coordinates from 0
        serves: transformers build_2d_sinusoidal_position_embedding (RT-DETR, D-FINE)
        source: huggingface/transformers:models/rt_detr/modeling_rt_detr.py, version 5.24
    """

    name: str
    axis: Convention
    outermost: Outermost = "axis"
    axis_order: tuple[int, ...] | None = None
    proportions: tuple[int, ...] | None = None
    remainder: Remainder = "error"
    normalize: bool = False
    cell_offset: float = 0.0
    input_last: bool = False
    projected: bool = False
    serves: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    source: str = dataclasses.field(default="", compare=False)

    def _checked_fields(self) -> dict[str, Any]:
        axis: Any = self.axis
        if not isinstance(axis, Convention):
            expected = "a fastpe.Convention, such as fastpe.conventions['concat']"
            raise refused(TypeError, "axis", f"is {axis!r}", expected)
        order = None if self.axis_order is None else integers("axis_order", self.axis_order, "(1, 0)")
        shares = None if self.proportions is None else integers("proportions", self.proportions, "(2, 1)")
        if order is not None and (not order or sorted(order) != list(range(len(order)))):
            raise refused(ValueError, "axis_order", f"is {order}", "every axis once, counted from 0, such as (1, 0)")
        if shares is not None and (not shares or min(shares) < 1):
            raise refused(ValueError, "proportions", f"is {shares}", "one share per axis, each at least 1")
        if order is not None and shares is not None and len(order) != len(shares):
            expected = f"{len(order)} shares: one per axis of axis_order {order}"
            raise refused(ValueError, "proportions", f"is {shares}", expected)
        if self.outermost != "axis" and (self.axis.layout != "concatenated" or shares is not None):
            expected = "'axis' where axes are interleaved or have shares of their own"
            remedy = "give axis a concatenated layout and leave proportions out"
            raise refused(ValueError, "outermost", f"is {self.outermost!r}", expected, remedy)
        return {"axis_order": order, "proportions": shares}

    def _order(self, axis_count: int) -> tuple[int, ...]:
        """Axes in the order in which they appear in the vector."""
        order = tuple(range(axis_count)) if self.axis_order is None else self.axis_order
        self._check_axis_count(axis_count, order)
        return order

    def _widths(self, d_model: int, axis_count: int) -> tuple[int, ...]:
        """Columns of each axis, in vector order; even, and not always `d_model` in all."""
        shares = (1,) * axis_count if self.proportions is None else self.proportions
        self._check_axis_count(axis_count, shares)
        if self.projected and d_model != 2 * axis_count:
            expected = f"{2 * axis_count}, two columns for each: convention {self.name!r} is for points times the "
            remedy = "give these to fastpe.encode_coordinates, with d_model=2 * matrix.shape[1]"
            systems = f": {'; '.join(self.serves)}" if self.serves else ""
            found = f"is {d_model} for {axis_count} axes"
            raise refused(ValueError, "d_model", found, f"{expected}model's matrix", remedy + systems)
        total = 2 * sum(shares)
        if self.remainder == "truncate":
            return tuple(2 * -(-d_model * share // total) for share in shares)
        if self.remainder == "error":
            multiple = math.lcm(*(total // math.gcd(total, share) for share in shares))
            if d_model % multiple:
                expected = f"a multiple of {multiple}: convention {self.name!r} shares the columns among "
                raise refused(ValueError, "d_model", f"is {d_model}", f"{expected}{axis_count} axes in pairs")
        return tuple(2 * (d_model * share // total) for share in shares)

    def _check_axis_count(self, axis_count: int, per_axis: tuple[int, ...]) -> None:
        if len(per_axis) != axis_count:
            expected = f"{len(per_axis)}, the only number that it is made for"
            raise refused(ValueError, "convention", f"{self.name!r} was given {axis_count} axes", expected)

    @property
    def formula(self) -> str:
        """Order of the columns and frequencies in one line."""
        if self.outermost == "axis":
            functions = f"{factor_text(self.axis)}({functions_text(self.axis)})"
            order = (0, 1) if self.axis_order is None else self.axis_order
            columns = ", ".join([f"axis {axis} {functions}" for axis in order] + [".."] * (self.axis_order is None))
        elif self.outermost == "pair":
            axes = "axis 0, axis 1, .." if self.axis_order is None else ", ".join(f"axis {i}" for i in self.axis_order)
            columns = f"for each k {factor_text(self.axis)}({functions_text(self.axis)}) of {axes}"
        else:
            first, second = ("cosines", "sines") if self.axis.cosine_first else ("sines", "cosines")
            each = "for each k " if self.outermost == "frequency" else ""
            axes = "0, 1, .." if self.axis_order is None else ", ".join(map(str, self.axis_order))
            by = " for each k" if self.outermost == "function_frequency" else ""
            columns = f"{each}{factor_text(self.axis)}{first} of axis {axes}{by}, then their {second}"
        return f"{columns}; w_k = {frequency_text(self.axis)}, n per axis"

    def _counting(self) -> str:
        if self.projected:
            return "coordinates are points times the model's matrix"
        first = self.axis.first_position
        offset = f", less {-self.cell_offset:g}" if self.cell_offset < 0 else f", plus {self.cell_offset:g}"
        return (
            f"coordinates from {first}{offset if self.cell_offset else ''}"
            f"{', divided by the last' if self.normalize else ''}"
            f"{'; the input, if included, comes last' if self.input_last else ''}"
        )
