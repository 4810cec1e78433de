# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe demo``: the main job on a built-in batch, checked and timed."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
from rich import box
from rich.console import Console
from rich.table import Table

import fastpe
from fastpe._cli.measuring import busy_note, configuration, in_units, median_seconds
from fastpe._cli.rival import usual_float64

# How far the reference may be off, because its float64 angles are rounded.
_reference_error_per_position = 4 * 2.0**-53


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The largest error of one result, and whether it keeps the promise."""

    largest_error: float
    kept: bool


def check_encode(pe: npt.NDArray[np.float32], exact: npt.NDArray[np.float64]) -> Outcome:
    """Allow half a unit in the last place, since values are the exact ones rounded once."""
    error = np.abs(pe - exact)
    allowed = 0.5 * np.spacing(np.abs(exact).astype(np.float32)) + _reference_error_per_position * len(exact)
    return Outcome(float(error.max()), bool((error <= allowed).all()))


def check_add(y: npt.NDArray[np.float32], x: npt.NDArray[np.float32], exact: npt.NDArray[np.float64]) -> Outcome:
    """Allow two roundings to float32: that of the encoding, and that of the sum."""
    largest, kept = 0.0, True
    # Row by row, so that the float64 intermediates stay small.
    for row_of_y, row_of_x in zip(y, x, strict=True):
        total = row_of_x + exact
        error = np.abs(row_of_y - total)
        spacing = np.maximum(np.spacing(np.abs(row_of_y)), np.spacing(np.abs(total).astype(np.float32)))
        encoding_spacing = np.spacing(np.abs(exact).astype(np.float32))
        allowed = 0.5 * (spacing + encoding_spacing) + _reference_error_per_position * len(exact)
        largest = max(largest, float(error.max()))
        kept = kept and bool((error <= allowed).all())
    return Outcome(largest, kept)


def run(console: Console, *, batch: int, seq_len: int, d_model: int, rounds: int = 15) -> bool:
    """Print configuration, errors and times, and return whether the check passed."""
    x = np.random.default_rng(0).standard_normal((batch, seq_len, d_model), dtype=np.float32)
    # Float64 NumPy is the check, too: it shares nothing with the core.
    exact = usual_float64(np.empty((seq_len, d_model)))
    table = exact.astype(np.float32)

    pe = fastpe.encode(seq_len, d_model)
    y = x.copy()
    fastpe.add_(y)
    outcomes = check_encode(pe, exact), check_add(y, x, exact)

    out = np.empty_like(pe)
    theirs_out = np.empty_like(pe)
    own = x.copy()
    theirs = x.copy()
    encode_seconds = median_seconds(
        [lambda: fastpe.encode(seq_len, d_model, out=out), lambda: usual_float64(theirs_out)], rounds=rounds
    )
    add_seconds = median_seconds([lambda: fastpe.add_(own), lambda: np.add(theirs, table, out=theirs)], rounds=rounds)

    console.print(configuration(), highlight=False, soft_wrap=True)
    if note := busy_note():
        console.print(note, highlight=False, soft_wrap=True)
    result = Table(title=f"x [{batch}, {seq_len}, {d_model}] float32", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("work", "largest error", "fastpe", "NumPy", "NumPy / fastpe"):
        result.add_column(heading, justify="left" if heading == "work" else "right")
    rows: list[tuple[str, Outcome, list[float]]] = [
        ("encode", outcomes[0], encode_seconds),
        ("add in place", outcomes[1], add_seconds),
    ]
    for work, outcome, (own_time, numpy_time) in rows:
        error = f"{outcome.largest_error:.3g}" + ("" if outcome.kept else " FAILED")
        result.add_row(work, error, in_units(own_time), in_units(numpy_time), f"{numpy_time / own_time:.1f}")
    console.print(result)
    console.print("Medians. NumPy computes the float64 formula, and adds a table that it already has.", soft_wrap=True)
    passed = all(outcome.kept for outcome in outcomes)
    console.print(
        "check passed: no value is further from the float64 reference than its rounding to float32"
        if passed
        else "check FAILED: a value is further from the float64 reference than its rounding to float32",
        soft_wrap=True,
    )
    return passed
