# SPDX-License-Identifier: BSD-3-Clause
"""What calls of a rotary embedding are to give, from the oracle's rotation and tables of single positions."""

from __future__ import annotations

from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np

import fastpe

from . import oracle
from .oracle import Array, Position

# What does not change any result.
SPEED_ALONE = ("max_len", "form")


class TableRows:
    """Cosines and sines of one position at a time, in the dtype of the arithmetic with arrays of `dtype`: the package's,
    which the tests of tables compare with exact values, and here once more with the formula.
    """

    def __init__(self, rope: fastpe.RotaryEmbedding, dtype: np.dtype[Any]) -> None:
        self._rope = rope
        self._dtype = oracle.arithmetic_dtype(dtype)
        self._known: dict[Position, tuple[Array, Array]] = {}

    def __call__(self, position: Position) -> tuple[Array, Array]:
        if position not in self._known:
            cos, sin = self._rope.tables([position], form="halves", dtype=self._dtype)
            coordinates = np.array(position, float)
            if self._rope.axes is not None:
                coordinates = coordinates[list(self._rope.axes)]
            factor, angles = self._rope.attention_factor, coordinates * self._rope.frequencies
            bound = factor * (1e-7 + 1e-15 * np.abs(coordinates).max())
            np.testing.assert_allclose(cos[0], factor * np.cos(angles), rtol=0, atol=bound)
            np.testing.assert_allclose(sin[0], factor * np.sin(angles), rtol=0, atol=bound)
            self._known[position] = cos[0], sin[0]
        return self._known[position]


def expected(x: Array, options: dict[str, Any], **call: Any) -> Array:
    """A rotated copy of x, row after row: of `RotaryEmbedding(**options).rotate(x, **call)`."""
    options = {name: value for name, value in options.items() if name not in SPEED_ALONE}
    rope = fastpe.RotaryEmbedding(**options)
    tables = rope
    if call.get("inverse"):
        tables = fastpe.RotaryEmbedding(**{**options, "attention_factor": 1.0 / rope.attention_factor})
    call.pop("num_threads", None)
    return oracle.rotate(
        x,
        TableRows(tables, x.dtype),
        rotary_dim=rope.rotary_dim,
        interleaved=rope.interleaved,
        conjugate=rope.conjugate,
        kept=(rope.frequencies == 0) & (rope.attention_factor == 1),
        coordinates=rope.axes is not None,
        **call,
    )


def exact(options: dict[str, Any]) -> oracle.Rotary:
    """The oracle's embedding of these options, without scalings."""
    d = options["rotary_dim"]
    if "freqs" in options:
        frequencies = [mpmath.mpf(float(w)) for w in options["freqs"]]
    else:
        frequencies = oracle.frequencies(d, options.get("base", 10000.0))[0]
    axes = options.get("axes")
    return oracle.Rotary(
        tuple(frequencies),
        options["interleaved"],
        options.get("attention_factor", 1.0),
        None if axes is None else tuple(axes),
        options.get("conjugate", False),
    )


def arrays_in(tables: Any) -> tuple[Array, ...]:
    """The arrays of a form, also where there is one."""
    return tables if isinstance(tables, tuple) else (tables,)


def parts_of(table: Array) -> Array:
    """The floats of a table: of a complex one its parts, with one more axis at the end."""
    if table.dtype.kind != "c":
        return table
    return np.stack([table.real, table.imag], -1)
