# SPDX-License-Identifier: BSD-3-Clause
"""What answers must be: exact values by integer arithmetic, which has nothing in common with how fastpe computes them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Check = Callable[[Any], float]  # asserts that an answer is right, and returns its largest error

_pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
_significand_bits = {"float32": 24, "float16": 11, "bfloat16": 8}
_rows_compared = 256  # of larger answers, spread evenly, the first and the last among them


@functools.cache
def _turns(columns: int) -> tuple[Array, Array]:
    """Turns per position as 96-bit fractions, base 10000: the upper 64 bits and the lower 32."""
    with localcontext() as context:
        context.prec = 60
        logarithm = Decimal(10000).ln()
        turns = ((-2 * k * logarithm / columns).exp() / (2 * _pi) for k in range(columns // 2))
        integers = [int((turn * (1 << 96)).to_integral_value()) for turn in turns]
    return np.array([i >> 32 for i in integers], np.uint64), np.array([i & 0xFFFFFFFF for i in integers], np.uint64)


def sines_and_cosines(positions: Array, columns: int) -> tuple[Array, Array]:
    """Of the angles of integer positions in [0, 2**32): [rows, columns / 2] each."""
    position = positions.astype(np.uint64)[:, None]
    high, low = _turns(columns)
    fraction = position * high + ((position * low) >> np.uint64(32))  # of a turn, modulo 2**64
    quadrant = (fraction + np.uint64(1 << 61)) >> np.uint64(62)
    residual = (fraction - (quadrant << np.uint64(62))).view(np.int64) * (2 * np.pi / 2.0**64)
    sine, cosine = np.sin(residual), np.cos(residual)
    is_odd = (quadrant & np.uint64(1)).astype(bool)
    sign = np.where(quadrant & np.uint64(2), -1.0, 1.0)
    return sign * np.where(is_odd, cosine, sine), sign * np.where(is_odd, -sine, cosine)


def encoding(positions: Array, columns: int) -> Array:
    result = np.empty((positions.size, columns))
    result[:, 0::2], result[:, 1::2] = sines_and_cosines(positions, columns)
    return result


@dataclasses.dataclass(frozen=True)
class Expected:
    """The exact values of an answer's rows, of which some are compared."""

    rows: int
    exact: Callable[[Array], Array]  # of the rows with these indices, in float64

    def within(self, absolute: float) -> Check:
        """The exact value with this error, rounded to the answer's dtype."""

        def check(answer: Any) -> float:
            found = np.asarray(answer).reshape(self.rows, -1)
            chosen = np.unique(np.linspace(0, self.rows - 1, _rows_compared).astype(np.int64))
            exact = self.exact(chosen)
            _, exponent = np.frexp(np.abs(exact) + absolute)
            allowed = np.ldexp(0.5, exponent - _significand_bits[found.dtype.name]) + absolute
            error = np.abs(found[chosen].astype(np.float64) - exact)
            assert (error <= allowed).all(), (
                f"off by {error.max():.3g}, {(error / allowed).max():.3g} of what is allowed"
            )
            return float(error.max())

        return check


def encoded(positions: Array, columns: int) -> Expected:
    return Expected(positions.size, lambda chosen: encoding(positions[chosen], columns))


def added(x: Array, positions: Array, scale: float = 1.0) -> Expected:
    """x * scale + encoding; `positions` has one position for each row."""
    rows, columns = x.reshape(-1, x.shape[-1]), x.shape[-1]

    def exact(chosen: Array) -> Array:
        return np.asarray(rows[chosen].astype(np.float64) * scale + encoding(positions[chosen], columns))

    return Expected(len(rows), exact)


def rotated(x: Array, positions: Array, *, interleaved: bool) -> Expected:
    rows, columns = x.reshape(-1, x.shape[-1]), x.shape[-1]
    order = np.arange(columns)
    first, second = (order[0::2], order[1::2]) if interleaved else np.split(order, 2)

    def exact(chosen: Array) -> Array:
        sine, cosine = sines_and_cosines(positions[chosen], columns)
        before, after = rows[chosen].astype(np.float64), np.empty((chosen.size, columns))
        after[:, first] = before[:, first] * cosine - before[:, second] * sine
        after[:, second] = before[:, second] * cosine + before[:, first] * sine
        return after

    return Expected(len(rows), exact)


def _cubic(side: int, length: int) -> Array:
    """The weights of the learned cells of an axis in each new one: cubic convolution, a = -3/4, as torch has it."""
    place = (np.arange(length) + 0.5) * side / length - 0.5
    weights = np.zeros((length, side))
    for tap in range(-1, 3):
        cell = np.floor(place) + tap
        x = abs(cell - place)
        near, far = 1.25 * x**3 - 2.25 * x**2 + 1, -0.75 * (x**3 - 5 * x**2 + 8 * x - 4)
        inside = np.clip(cell, 0, side - 1).astype(int)
        np.add.at(weights, (np.arange(length), inside), np.where(x <= 1, near, far))
    return weights


def resized(table: Array, side: int, shape: tuple[int, int]) -> Expected:
    """A learned grid of a square, its cells row by row, in mode "bicubic"."""
    grid = table.reshape(side, side, -1).astype(np.float64)
    cells = np.einsum("ih,jw,hwc->ijc", _cubic(side, shape[0]), _cubic(side, shape[1]), grid, optimize=True)
    rows = cells.reshape(-1, table.shape[-1])
    return Expected(len(rows), lambda chosen: rows[chosen])


def tables(positions: Array, columns: int, *, copies: int = 1, absolute: float) -> Check:
    """Cosines and sines in two arrays, with so many copies of them side by side."""

    def exact(chosen: Array) -> Array:
        sine, cosine = sines_and_cosines(positions[chosen], columns)
        return np.concatenate([*copies * [cosine], *copies * [sine]], axis=1)

    check = Expected(positions.size, exact).within(absolute)
    return lambda answer: check(np.concatenate([np.asarray(part) for part in answer], axis=-1))


def equals(value: Any) -> Check:
    def check(answer: Any) -> float:
        assert np.array_equal(np.asarray(answer), np.broadcast_to(value, np.shape(answer))), "not what was expected"
        return 0.0

    return check


def float32_angles(positions: Array) -> float:
    """How far off the usual code is: what float32 cannot tell of an angle, and the error of its frequency."""
    return 1e-6 + float(positions.max()) * 5e-7


def embeddings(shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> Array:
    """Values of about 1, in a pattern that no row repeats soon."""
    return np.resize(np.random.default_rng(7).standard_normal(65_521).astype(dtype), shape)
