# SPDX-License-Identifier: BSD-3-Clause
"""What the fuzzer's cases are made of: numbers that are chosen, positions, and arrays that lie in larger ones."""

from __future__ import annotations

import importlib
import random
from typing import Any, Protocol, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt

mpmath = importlib.import_module("mpmath")  # has no types

Array = npt.NDArray[Any]

DTYPES: list[np.dtype[Any]] = [np.dtype(t) for t in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)]
LARGEST = 2**53
SENTINEL = 3.5


class Choices(Protocol):
    """Where a case takes its numbers from."""

    def integer(self, low: int, high: int) -> int:
        """Return an int from low to high, both included."""


class RandomChoices:
    """Choices of a seeded generator."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        """Return an int from low to high, both included."""
        return self._random.randint(low, high)


class Case:
    """One call in the making."""

    def __init__(self, choices: Choices) -> None:
        self.integer = choices.integer

    def pick(self, options: list[Any]) -> Any:
        """One of them."""
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """True that often."""
        return self.integer(1, 100) <= percent

    def size(self) -> int:
        """A small size, more often a large one than chance has it."""
        return (
            self.integer(0, 3) if self.chance(15) else self.integer(1, 70) if self.chance(90) else self.integer(71, 700)
        )

    def rows_for_threads(self, row_bytes: int) -> int:
        """So many rows that several threads make them."""
        return self.integer(2**20, 3 * 2**20) // row_bytes + 1

    def position(self) -> int | float:
        """A position, now and then one that is refused."""
        kind = self.integer(0, 99)
        if kind < 60:
            return self.integer(-100, 300)
        if kind < 75:
            return self.integer(-LARGEST, LARGEST)
        if kind < 90:
            return self.integer(-(10**6), 10**6) + self.integer(0, 63) / 64
        if kind < 98:
            return cast(float, self.pick([0.1, -0.0, 1e-300, 5e-324, 2.0**52 + 0.5, float(LARGEST), LARGEST, -LARGEST]))
        return cast(float, self.pick([LARGEST + 1, -(2**63), 2**63 - 1, float("nan"), float("inf"), -1e300]))

    def positions(self, count: int) -> Array:
        """An array of positions, integers in runs or anything."""
        if self.chance(50):
            start = self.integer(-200, 10**6)
            values = np.arange(start, start + count)
            for _ in range(self.integer(0, 2)):
                values[self.integer(0, count) :] += self.integer(-5, 500)
            return values.astype(self.pick([np.int64, np.int64, np.int32, np.float64]))
        listed = [self.position() for _ in range(count)]
        if all(isinstance(value, int) for value in listed):
            return np.array(listed, np.int64)
        return np.array(listed, np.float64)

    def place(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Array, Array]:
        """Return an array of that shape within a larger one, with any strides, and the larger one."""
        order = list(range(len(shape)))
        if self.chance(30):
            order[: len(shape)] = sorted(order, key=lambda _: self.integer(0, 100))
        padding = [(self.integer(0, 3), self.integer(0, 3)) if self.chance(30) else (0, 0) for _ in shape]
        step = [self.pick([2, -1, -3]) if self.chance(15) else 1 for _ in shape]
        lengths = [length * abs(s) + sum(pad) for length, s, pad in zip(shape, step, padding, strict=True)]
        whole = np.full([lengths[axis] for axis in order], SENTINEL, dtype)
        view = whole.transpose([order.index(axis) for axis in range(len(shape))])
        index = []
        for length, s, (before, _) in zip(shape, step, padding, strict=True):
            part = slice(before, before + length * abs(s), abs(s))
            index.append(part)
        view = view[tuple(index)]
        return view[tuple(slice(None, None, -1 if s < 0 else 1) for s in step)], whole

    def laid_out(self, values: Array) -> Array:
        """The same values, with any strides."""
        if values.ndim == 0 or self.chance(50):
            return values
        view, _ = self.place(values.shape, values.dtype)
        view[...] = values
        return view


def wide_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What is computed in."""
    return np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)


def check_only_written(out: Array, whole: Array) -> None:
    """Nothing of the larger array but `out` was written."""
    out[...] = SENTINEL
    assert (whole == np.asarray(SENTINEL, whole.dtype)).all(), "something beside out was written"


def is_allowed(positions: Array) -> bool:
    """Whether all of them are finite and of magnitude at most 2**53."""
    if positions.dtype.kind == "f":
        return bool((np.abs(positions) <= LARGEST).all())
    return all(abs(int(position)) <= LARGEST for position in positions.ravel())


def check_value(found: float, exact: Any, dtype: np.dtype[Any], scale: float, what: str) -> None:
    """Whether an encoding of this scale is as near to the exact value as promised."""
    if dtype == np.float64:
        allowed = np.spacing(abs(float(exact))) + 2e-16 * scale
    else:
        # Half the distance to the next value: twice the distance below the binade, where subnormals end it.
        info = cast(Any, ml_dtypes.finfo)(dtype)
        unit = max(2.0 ** np.floor(np.log2(max(abs(float(exact)), 1e-300))), float(info.tiny)) * float(info.eps)
        allowed = unit / 2 + 1e-15 * scale
    error = abs(mpmath.mpf(found) - exact)
    assert error <= allowed, f"{what}: {found!r} for {exact}, allowed {allowed}"
