# SPDX-License-Identifier: BSD-3-Clause
"""Proves how far the sine and cosine polynomials of the kernels are from sine and cosine, and where they are used.

    python tools/prove_polynomials.py

The coefficients and the interval are read from csrc/fastpe/kernels. Two things are proven, in exact rational arithmetic:

* Reach: a phase's fraction and rest, whatever the position and the frequency, end within the interval. The rest is
  bounded by what rounding and truncation can leave, for every kind of phase.
* Error: the difference from Taylor's series of the function, which is a polynomial and a remainder below the first term
  left out, is at most the largest Bernstein coefficient in magnitude, on each of many parts of the interval.

Rounding while a polynomial is evaluated is not part of it. Exits with 1 where a bound is not met.
"""

from __future__ import annotations

import math
import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

CORE = Path(__file__).resolve().parent.parent / "csrc" / "fastpe"

# Rational numbers just above pi / 2, and relative to it what x = fraction * fl(pi / 2) may gain when it is rounded.
HALF_PI = Fraction(157079632679489661924, 10**20)
ROUNDING = 1 + Fraction(1, 2**50)

LIMITS = (r"[\d.]+ : ([\d.]+)", r"([\d.]+) : [\d.]+")  # of the plain and the compensated polynomials
NOT_FAR = "a phase that is reduced once"
PARTS = 64
SERIES_TERMS = 14


def source() -> str:
    """The kernels, in whichever file."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((CORE / "kernels").glob("*.inl")))


def found(pattern: str, text: str, what: str) -> str:
    """What the pattern's group matches."""
    match = re.search(pattern, text, re.DOTALL)
    if match is None:
        raise SystemExit(f"{what} was not found in {CORE}: the pattern {pattern!r} has to follow the source")
    return match[1]


def numbers(text: str) -> list[Fraction]:
    """The coefficients in the order in which they stand."""
    literals = re.findall(r"-?0x1\.[0-9a-f]+p[+-]\d+|-0\.5", text)
    return [Fraction(n) if n == "-0.5" else Fraction(float.fromhex(n)) for n in literals]


class Polynomials(NamedTuple):
    """sin(x) is x + x z S(z) and cos(x) is 1 + z C(z), z = x^2; the coefficients of S and C, the constant first."""

    sine: list[Fraction]
    cosine: list[Fraction]
    limit: Fraction  # of the fraction, in quarter turns
    claimed_error: Fraction
    claimed_reach: Fraction  # of x


def polynomials() -> dict[str, Polynomials]:
    """What the kernels evaluate, and what they claim of it."""
    text = source()
    claims = re.findall(r"below 2\^-(\d+) for \|x\| <= ([\d.]+)", text)
    if len(claims) != 2:
        raise SystemExit(f"the source claims {len(claims)} errors, expected 2")
    limits = [Fraction(found(rf"double limit = compensated \? {pattern};", text, "the limit")) for pattern in LIMITS]
    plain = found(r"SinCos sincos_near_zero\(Doubles x\) \{(.*?)\n\}", text, "the plain polynomials")
    compensated = found(r"sincos_near_zero\(Doubles x, Doubles x_low\) \{(.*?)\n\}", text, "the compensated ones")
    coefficients = (
        numbers(found(r"Doubles s =(.*?)const Doubles c =", plain, "the plain sine")),
        numbers(found(r"const Doubles c =(.*?)SinCos result", plain, "the plain cosine")),
        numbers(found(r"Doubles s =(.*?)Doubles c =", compensated, "the compensated sine"))[::-1],
        # The first coefficient stands apart: half of z is subtracted, exactly.
        [Fraction(-1, 2), *numbers(found(r"Doubles c =(.*?)const Doubles half_z", compensated, "its cosine"))[::-1]],
    )
    return {
        name: Polynomials(*coefficients[2 * i : 2 * i + 2], limit, Fraction(1, 2 ** int(error)), Fraction(reach))
        for i, (name, limit, (error, reach)) in enumerate(zip(("plain", "compensated"), limits, claims, strict=True))
    }


# ---- error


def bernstein_coefficients(polynomial: list[Fraction], low: Fraction, high: Fraction) -> list[Fraction]:
    """Of the polynomial on [low, high]: its values there lie between the smallest and the largest."""
    degree = len(polynomial) - 1
    shifted = [
        sum((polynomial[n] * math.comb(n, k) * low ** (n - k) for n in range(k, degree + 1)), Fraction(0))
        * (high - low) ** k
        for k in range(degree + 1)
    ]
    return [
        sum((shifted[k] * Fraction(math.comb(i, k), math.comb(degree, k)) for k in range(i + 1)), Fraction(0))
        for i in range(degree + 1)
    ]


def error_bound(coefficients: list[Fraction], first: int, x_most: Fraction) -> Fraction:
    """Of x^first (1 + z P(z)) as x^first (1 - z / ((first + 1) (first + 2)) + ..), for 0 <= x <= x_most."""
    difference = [
        (coefficients[k - 1] if 0 < k <= len(coefficients) else Fraction(0))
        - (Fraction((-1) ** k, math.factorial(2 * k + first)) if k > 0 else 0)
        for k in range(SERIES_TERMS)
    ]
    # The series alternates and its terms fall: what is left out is below its first term.
    remainder = x_most ** (2 * SERIES_TERMS) / math.factorial(2 * SERIES_TERMS + first)
    bound = Fraction(0)
    for part in range(PARTS):
        low, high = x_most * part / PARTS, x_most * (part + 1) / PARTS
        largest = max(abs(b) for b in bernstein_coefficients(difference, low**2, high**2))
        bound = max(bound, high**first * (largest + remainder))
    return bound


# ---- reach


def ulp_below(bound: Fraction) -> Fraction:
    """Of the largest double below the bound."""
    exponent = 0
    while Fraction(2) ** exponent >= bound:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) < bound:
        exponent += 1
    return Fraction(2) ** (exponent - 52)


def rest_of(count: Fraction, quarters: Fraction) -> Fraction:
    """What count * (high + low) may have beside its rounded product with high, which is below `quarters`."""
    return ulp_below(count * quarters) / 2 + count * ulp_below(quarters)


def rests() -> dict[str, Fraction]:
    """The largest rest of each kind of phase, in quarter turns."""
    header = (CORE / "kernels" / "kernels.h").read_text(encoding="utf-8")
    radius = int(found(r"block_radius = (\d+);", header, "the radius of a block"))
    group_radius = int(found(r"group_radius = (\d+);", header, "the radius of a group"))
    frequencies = (CORE / "sources" / "sinusoid" / "frequencies.cpp").read_text(encoding="utf-8")
    radians = Fraction(2) ** int(found(r"magnitude < 0x1p(\d+)\)", frequencies, "the largest frequency"))
    quarters = radians * Fraction(2, 3)  # 2 / pi is less
    turn = Fraction(2)  # an anchor's quarter turns, less whole turns
    rows = 2 * radius + 1
    rounding = ROUNDING  # of what is added to the rest
    far = Fraction(2) ** int(found(r"far_quarters = 0x1p(\d+);", source(), "where phases are reduced twice"))
    return {
        "an integer position": rounding * rest_of(Fraction(2**53 + radius, rows) + group_radius, turn),
        # Above 2^52 there is none. The nearest anchor is found by a division that is rounded.
        "a fractional position": rounding
        * (rest_of(Fraction(2**52, rows) + 1, turn) + rest_of(Fraction(radius + 1), quarters) + Fraction(1, 2**53)),
        "a row of a block": rounding * rest_of(Fraction(radius), quarters),
        "an anchor of a group": rounding * rest_of(Fraction(group_radius), turn),
        # Half an ulp of a number, and an ulp of its leading part, are at most 2^-53 and 2^-52 of it.
        NOT_FAR: rounding * far * Fraction(3, 2**53),
    }


def fraction_bound(limit: Fraction, rest: Fraction, is_far: bool) -> Fraction:
    """Of the fraction that is left: the sum itself, but if it is far and beyond the limit, one quarter turn less."""
    most = (Fraction(1, 2) + rest) * ROUNDING
    if not is_far:
        return most
    beyond = Fraction(3) * limit  # from there on two would be taken away
    if most >= beyond / ROUNDING:
        raise SystemExit(f"a fraction and rest of {float(most):.4f} quarter turns are beyond {float(beyond):.4f}")
    if most <= limit:
        return most
    return max(limit * ROUNDING, 1 - limit / ROUNDING, most - 1)


def main() -> int:
    """Prints the bounds."""
    met, every_rest = True, rests()
    for kind, rest in every_rest.items():
        print(f"rest of {kind}: below {float(rest):.4f} quarter turns")
    for name, p in polynomials().items():
        fraction = max(fraction_bound(p.limit, rest, kind != NOT_FAR) for kind, rest in every_rest.items())
        bounds = {
            f"{name}: |x|": (fraction * HALF_PI * ROUNDING, p.claimed_reach),
            f"{name}: error of the sine": (error_bound(p.sine, 1, p.claimed_reach), p.claimed_error),
            f"{name}: error of the cosine": (error_bound(p.cosine, 0, p.claimed_reach), p.claimed_error),
        }
        for what, (bound, claimed) in bounds.items():
            met = met and bound <= claimed
            relation = "within" if bound <= claimed else "NOT within"
            print(f"{what} is at most {float(bound):.6g}, {relation} the {float(claimed):.6g} claimed")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
