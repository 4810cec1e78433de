# SPDX-License-Identifier: BSD-3-Clause
"""What answers must be, and the arrays that they are made of."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import oracle
from benchmarks.harness import Check

Array = npt.NDArray[Any]

_values_checked_whole = 1 << 22
_rows_sampled = 1024  # of larger answers, spread evenly, the first and the last among them


@dataclasses.dataclass(frozen=True)
class Answers:
    """What rows of an answer must be: x * scale + PE(positions), x and PE as float64, one position per row."""

    positions: Array
    d_model: int
    x: Array | None = None  # [rows, d_model], as it was before the call
    scale: float = 1.0
    table: Callable[[Array, int], Array] = oracle.encoding

    @functools.cached_property
    def _chosen(self) -> Array:
        rows = self.positions.size
        if rows * self.d_model <= _values_checked_whole:
            return np.arange(rows)
        return np.unique(np.linspace(0, rows - 1, _rows_sampled).astype(np.int64))

    @functools.cached_property
    def _exact_encoding(self) -> Array:
        return self.table(self.positions.ravel()[self._chosen], self.d_model)

    @functools.cached_property
    def _scaled(self) -> Array:
        if self.x is None:
            return np.zeros_like(self._exact_encoding)
        return self.x[self._chosen].astype(np.float64) * self.scale

    def _compare(self, answer: Any, bound: Callable[[Array, np.dtype[Any]], Array]) -> float:
        rows = np.asarray(answer).reshape(-1, self.d_model)
        assert rows.shape[0] == self.positions.size, f"{rows.shape[0]} rows, expected {self.positions.size}"
        exact = self._scaled + self._exact_encoding
        error = np.abs(rows[self._chosen].astype(np.float64) - exact)
        allowed = bound(exact, rows.dtype)
        worst = np.unravel_index(int(np.argmax(error - allowed)), error.shape)
        assert (error <= allowed).all(), (
            f"row {self._chosen[worst[0]]}, column {worst[1]} is off by {error[worst]:.3g}, allowed {allowed[worst]:.3g}"
        )
        return float(error.max(initial=0.0))

    def promised(self, answer: Any) -> float:
        """As exact as fastpe promises."""

        def bound(exact: Array, dtype: np.dtype[Any]) -> Array:
            slack = oracle.promised_error + oracle.oracle_error
            encoding = self._exact_encoding
            if self.x is None:
                return oracle.half_ulp(encoding, dtype) + slack
            # Operands and sum are rounded in the dtype they are computed in; the last rounding is the result's.
            computed = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
            operands = oracle.half_ulp(encoding, computed) + oracle.half_ulp(self._scaled, computed)
            result = oracle.half_ulp(np.abs(exact) + operands, dtype)
            if computed != dtype:
                operands = operands + oracle.half_ulp(np.abs(exact) + operands, computed)
            return operands + result + slack

        return self._compare(answer, bound)

    def within(self, tolerance: float) -> Check:
        """As exact as this contender can be: an absolute error, beside the rounding of the result."""

        def bound(exact: Array, dtype: np.dtype[Any]) -> Array:
            return 2 * oracle.half_ulp(np.abs(exact) + 1.0, dtype) + tolerance

        return lambda answer: self._compare(answer, bound)

    def float32_angles(self) -> Check:
        """Angles in float32 are off by what float32 cannot tell of the position, times the logarithm's own error."""
        return self.within(1e-6 + float(self.positions.max(initial=0)) * 5e-7)

    def float64_angles(self) -> Check:
        return self.within(float(self.positions.max(initial=0)) * 2e-15)


@dataclasses.dataclass(frozen=True)
class Rotated:
    """What rows of an answer must be: those of x [rows, columns], each rotated by its position's angles."""

    positions: Array  # one per row
    x: Array
    interleaved: bool

    def check(self, answer: Any) -> float:
        columns = self.x.shape[-1]
        rows = np.asarray(answer).reshape(-1, columns)
        assert rows.shape == self.x.shape, f"shape {rows.shape}, expected {self.x.shape}"
        chosen = np.unique(np.linspace(0, len(rows) - 1, 4 * _rows_sampled).astype(np.int64))
        x = self.x[chosen].astype(np.float64)
        sines, cosines = np.split(oracle.encoding(self.positions[chosen], columns, concatenated=True), 2, axis=-1)
        first, second = pair_columns(columns, interleaved=self.interleaved)
        exact = np.empty_like(x)
        exact[:, first] = x[:, first] * cosines - x[:, second] * sines
        exact[:, second] = x[:, second] * cosines + x[:, first] * sines
        # Cosine and sine, two products and their sum are rounded, and the result in the array's own dtype.
        largest = np.abs(x[:, first]) + np.abs(x[:, second])
        computed = np.dtype(np.float32)
        allowed = np.empty_like(x)
        allowed[:, first] = allowed[:, second] = 6 * oracle.half_ulp(largest, computed)
        if rows.dtype != computed:
            allowed += oracle.half_ulp(np.abs(exact) + allowed, rows.dtype)
        error = np.abs(rows[chosen].astype(np.float64) - exact)
        assert (error <= allowed).all(), f"off by {error.max():.3g}"
        return float(error.max(initial=0.0))


def pair_columns(columns: int, *, interleaved: bool) -> tuple[slice, slice]:
    """The columns of pairs' first and second members."""
    if interleaved:
        return slice(0, None, 2), slice(1, None, 2)
    return slice(0, columns // 2), slice(columns // 2, None)


def is_constant(value: float) -> Check:
    def check(answer: Any) -> float:
        assert (answer == value).all(), f"expected {value} everywhere"
        return 0.0

    return check


def is_incremented(before: Array) -> Check:
    def check(answer: Any) -> float:
        assert (answer.reshape(before.shape) == before + before.dtype.type(1)).all(), "expected x + 1"
        return 0.0

    return check


def equals(expected: Array) -> Check:
    def check(answer: Any) -> float:
        assert np.array_equal(answer, expected), "expected other values"
        return 0.0

    return check


def embeddings(shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> Array:
    """Values of about 1, in a pattern that no row repeats soon."""
    pattern = np.random.default_rng(7).standard_normal(65_521).astype(dtype)
    x = np.empty(shape, dtype)
    flat = x.reshape(-1)
    for start in range(0, flat.size, pattern.size):
        part = flat[start : start + pattern.size]
        part[:] = pattern[: part.size]
    return x


def dtype_owners() -> dict[np.dtype[Any], str]:
    """The dtypes of arrays that are changed in place, and who adds them up otherwise."""
    found: dict[np.dtype[Any], str] = {np.dtype(np.float32): "NumPy", np.dtype(np.float16): "NumPy"}
    if importlib.util.find_spec("ml_dtypes") is not None:
        import ml_dtypes

        found[np.dtype(ml_dtypes.bfloat16)] = "ml_dtypes"
    return found


@dataclasses.dataclass(frozen=True)
class InPlace:
    """x, and how to put it back."""

    before: Array
    x: Array

    @classmethod
    def of(cls, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> InPlace:
        before = embeddings(shape, dtype)
        return cls(before, before.copy())

    def reset(self) -> None:
        np.copyto(self.x, self.before)

    def answers(self, positions: Array, scale: float = 1.0) -> Answers:
        d_model = self.x.shape[-1]
        return Answers(positions, d_model, self.before.reshape(-1, d_model), scale)
