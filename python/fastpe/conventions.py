# SPDX-License-Identifier: BSD-3-Clause
"""How systems in use define their sinusoidal encoding, by name.

With ``n`` frequencies,

    w_k = freq_scale * base ** (-k / (n - shift)),    k = 0 .. n - 1
    PE[p] = alpha * layout(sin(p * w), cos(p * w))

A preset is named after an implementation, never after a family of models: ports of one model disagree with each other.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

__all__ = ["Convention", "conventions"]


@dataclasses.dataclass(frozen=True)
class Convention:
    """The knobs of one sinusoidal encoding.

    Attributes
    ----------
    name : str
        What it is called in `conventions`.
    layout : {"interleaved", "concatenated"}
        sin, cos, sin, cos .., or all of one and then all of the other.
    cosine_first : bool
        Whether cosines come before sines.
    shift : float
        Subtracted from the number of frequencies in the exponent's denominator.
    odd : {"natural", "pad", "round_up", "error"}
        An odd ``d_model``: "natural" keeps the last sine (the first function, to be exact) and drops its partner, with
        ``d_model / 2`` in the denominator; "pad" leaves the last column zero; "round_up" computes the next even width
        and drops its last column; "error" refuses.
    base, freq_scale : float
        As in the formula above; radians per position.
    first_position : int
        What counted positions start from.
    alpha : float or {"1/sqrt(d)", "sqrt(2/d)"}
        What the encoding is multiplied with.

    Examples
    --------
    >>> import dataclasses, fastpe
    >>> slow = dataclasses.replace(fastpe.conventions["vaswani"], base=1e6)
    >>> fastpe.encode(3, 8, convention=slow).shape
    (3, 8)
    """

    name: str
    layout: Literal["interleaved", "concatenated"] = "interleaved"
    cosine_first: bool = False
    shift: float = 0.0
    odd: Literal["natural", "pad", "round_up", "error"] = "natural"
    base: float = 10000.0
    freq_scale: float = 1.0
    first_position: int = 0
    alpha: float | Literal["1/sqrt(d)", "sqrt(2/d)"] = 1.0

    def frequency_count(self, d_model: int) -> int:
        """Number of frequencies in an encoding this wide."""
        if d_model % 2 == 0 or self.odd == "pad":
            return d_model // 2
        if self.odd == "error":
            raise ValueError(
                f"d_model is {d_model}, expected an even number: convention {self.name!r} defines no odd width; "
                f"choose another convention or replace its odd= field"
            )
        return d_model // 2 + 1

    def exponent_denominator(self, d_model: int) -> float:
        """The denominator ``n - shift`` of the exponent."""
        n = d_model / 2 if self.odd == "natural" else float(self.frequency_count(d_model))
        # One frequency has no exponent; systems with a shift clamp the same way.
        return max(n - self.shift, 1.0) if self.shift > 0 else max(n, 0.5) - self.shift

    def output_scale(self, d_model: int) -> float:
        """`alpha` as a number."""
        if self.alpha == "1/sqrt(d)":
            return 1.0 / math.sqrt(d_model)
        if self.alpha == "sqrt(2/d)":
            return math.sqrt(2.0 / d_model)
        return float(self.alpha)


_presets = (
    Convention("vaswani"),
    Convention("concat", layout="concatenated"),
    Convention("tensor2tensor", layout="concatenated", shift=1.0, odd="pad"),
    Convention("fairseq", layout="concatenated", shift=1.0, odd="pad", first_position=2),
    Convention("opennmt-tf", layout="concatenated", shift=1.0, odd="error", first_position=1),
    Convention("musicgen", layout="concatenated", shift=1.0, odd="pad", cosine_first=True),
    Convention("ddpm", layout="concatenated", shift=1.0, odd="pad"),
    Convention("timestep", layout="concatenated", odd="pad", cosine_first=True),
    Convention("mlx", layout="concatenated", shift=1.0, odd="error", alpha="sqrt(2/d)"),
    Convention("tatp22", odd="round_up"),
    Convention("doubled_exponent", base=1e8),
)

conventions: Mapping[str, Convention] = MappingProxyType({preset.name: preset for preset in _presets})


def find(convention: str | Convention) -> Convention:
    """A convention from its name, or itself."""
    if isinstance(convention, Convention):
        return convention
    if not isinstance(convention, str):
        raise TypeError(f"convention is {convention!r}, expected a name or a fastpe.Convention")
    if convention in conventions:
        return conventions[convention]
    close = difflib.get_close_matches(convention, conventions, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(conventions)}"
    raise ValueError(f"convention is {convention!r}, which is not known; {hint}")
