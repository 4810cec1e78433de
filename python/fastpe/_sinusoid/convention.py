# SPDX-License-Identifier: BSD-3-Clause
"""What a convention of one coordinate says.

With ``n`` frequencies,

    w_k = freq_scale * base ** (-k / (n - denominator_offset)),    k = 0 .. n - 1
    PE[p] = alpha * layout(sin(p * w), cos(p * w))

A preset is named after an implementation, never after a family of models: ports of one model disagree with each other.
``print(fastpe.conventions)`` lists them, and printing one says which systems it serves and where its formula stands.
"""

# Annotations are evaluated here: libraries that build dataclasses from configurations read them.
import dataclasses
from typing import Any, Literal, NamedTuple, get_args

from fastpe import _core
from fastpe._arguments import choice, is_number, leave_out, number
from fastpe._registry import Preset

Layout = Literal["interleaved", "concatenated"]
Odd = Literal["natural", "pad", "round_up", "error"]
NamedAlpha = Literal["1/sqrt(d)", "sqrt(2/d)"]


class Numbers(NamedTuple):
    """What a convention says of encodings of one width."""

    frequency_count: int
    denominator: float  # of the frequencies' exponents
    scale: float  # alpha


@dataclasses.dataclass(frozen=True, repr=False)
class Convention(Preset):
    """What a formula of sinusoidal encodings leaves open.

    With ``n`` frequencies, ``w_k = freq_scale * base ** (-k / (n - denominator_offset))`` for k from 0 to n - 1, and position p is
    encoded as ``alpha * layout(sin(p * w), cos(p * w))``.

    Attributes
    ----------
    name : str
        Its name in `conventions`.
    layout : str
        "interleaved" is sin, cos, sin, cos ..; "concatenated" is all of one function and then all of the other.
    cosine_first : bool
        Whether cosines come before sines.
    denominator_offset : float
        The number that is subtracted from the number of frequencies in the exponent's denominator.
    denominator : float, optional
        The exponent's denominator itself, whatever the number of frequencies.
    odd : str
        What is done with an odd ``d_model``. "natural" keeps the last sine (or cosine, if cosines come first), drops its
        partner, and has ``d_model / 2`` in the denominator. "pad" leaves the last column zero. "round_up" computes the
        next even width and drops its last column. "error" refuses it.
    base, freq_scale : float
        The numbers of the formula above; frequencies are in radians per position.
    first_position : int
        The position at which counting starts.
    alpha : float or str
        The factor by which the encoding is multiplied: a number, "1/sqrt(d)" or "sqrt(2/d)".
    serves : tuple of str
        Systems that use it. Comparisons ignore them.
    source : str
        Where the formula was read: repository, file and commit. Comparisons ignore it.

    Raises
    ------
    TypeError, ValueError
        For a field of another type, a text that is not one of the above, a number that is not finite, or a `base` or
        `denominator` that is not above 0.

    Examples
    --------
    >>> import dataclasses, fastpe
    >>> slow = dataclasses.replace(fastpe.conventions["vaswani"], base=1e6)
    >>> fastpe.encode(3, 8, convention=slow).shape
    (3, 8)
    >>> print(fastpe.conventions["opennmt_tf"])
    opennmt_tf: [sin | cos], w_k = 10000^(-k / (n - 1)), n = d / 2
        positions from 1; odd d: error
        serves: OpenNMT-tf SinusoidalPositionEncoder; CTranslate2 SinusoidalPositionEncoder; FunASR SinusoidalPositionEncoder
        source: OpenNMT/CTranslate2:src/layers/common.cc @0d8bcd36
    """

    name: str
    layout: Layout = "interleaved"
    cosine_first: bool = False
    denominator_offset: float = 0.0
    denominator: float | None = None
    odd: Odd = "natural"
    base: float = 10000.0
    freq_scale: float = 1.0
    first_position: int = 0
    alpha: float | NamedAlpha = 1.0
    serves: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    source: str = dataclasses.field(default="", compare=False)

    def _checked_fields(self) -> dict[str, Any]:
        denominator, alpha = self.denominator, self.alpha
        return {
            "denominator": None if denominator is None else number("denominator", denominator, above_zero=True),
            "base": number("base", self.base, above_zero=True),
            "alpha": number("alpha", alpha)
            if is_number(alpha)
            else choice("alpha", alpha, get_args(NamedAlpha), otherwise="a number"),
        }

    def _numbers(self, d_model: int) -> "Numbers":
        """What it says of encodings of this width."""
        numbers = (self.denominator_offset, self.denominator, self.alpha)
        return Numbers(*_core.convention_numbers(str(self.name), self.odd, *numbers, d_model))

    def _columns(self, d_model: int) -> tuple[slice, slice]:
        """The columns that hold sines, and those that hold cosines."""
        count = self._numbers(d_model).frequency_count
        used = min(2 * count, d_model)
        if self.layout == "interleaved":
            first, second = slice(0, used, 2), slice(1, used, 2)
        else:
            first, second = slice(0, count), slice(count, used)
        return (second, first) if self.cosine_first else (first, second)

    @property
    def formula(self) -> str:
        """Layout and frequencies in one line.

        Examples
        --------
        >>> import fastpe
        >>> fastpe.conventions["timestep"].formula
        '[cos | sin], w_k = 10000^(-k / n), n = floor(d / 2)'
        """
        order = functions_text(self)
        if self.layout == "concatenated":
            order = f"[{order}]"
        elif self.alpha != 1.0:
            order = f"({order})"
        count = {"pad": "floor(d / 2)", "round_up": "ceil(d / 2)"}.get(self.odd, "d / 2")
        n = f", n = {count}" if self.denominator is None else ""
        return f"{factor_text(self)}{order}, w_k = {frequency_text(self)}{n}"

    def _counting(self) -> str:
        return f"positions from {self.first_position}; odd d: {self.odd}"


def functions_text(convention: Convention) -> str:
    """The two functions in the order of the columns."""
    pair = ("cos", "sin") if convention.cosine_first else ("sin", "cos")
    return ("{}, {}, {}, {}, .." if convention.layout == "interleaved" else "{} | {}").format(*pair, *pair)


def factor_text(convention: Convention) -> str:
    """What the functions are multiplied with."""
    return "" if convention.alpha == 1.0 else f"{convention.alpha} * "


def frequency_text(convention: Convention) -> str:
    """The frequencies in terms of k and, without a denominator of its own, n."""
    scale = "" if convention.freq_scale == 1.0 else f"{convention.freq_scale:g} * "
    if convention.denominator is not None:
        exponent = "-k" if convention.denominator == 1.0 else f"-k / {convention.denominator:g}"
    else:
        exponent = f"(-k / (n - {convention.denominator_offset:g}))" if convention.denominator_offset else "(-k / n)"
    return f"{scale}{convention.base:g}^{exponent}"


def with_overrides(
    convention: Convention, base: float | None, freq_scale: float | None, frequencies: Any
) -> Convention:
    """The convention with the frequencies that a call asks for; `frequencies` take the place of both numbers."""
    if frequencies is not None:
        leave_out("frequencies", "they replace both numbers", base=base, freq_scale=freq_scale)
    wanted = {"base": base, "freq_scale": freq_scale}
    given: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    return dataclasses.replace(convention, **given) if given else convention
