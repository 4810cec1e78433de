# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe demo``: the main job on a built-in batch, checked and timed."""

from __future__ import annotations

import statistics
import timeit
from typing import Annotated

import numpy as np
import typer

import fastpe
from fastpe._cli import options

_rounds = 15


def demo(
    batch: Annotated[int, options.option("Number of sequences.", "B", min=1)] = 32,
    seq_len: Annotated[int, options.option("Number of positions.", "L", min=1)] = 512,
    d_model: options.DModel = 768,
) -> None:
    """Encode, add, check and time a built-in batch.

    The command exits with 1 if a value is further from a float64 NumPy reference than rounding explains.
    """
    x = np.random.default_rng(0).standard_normal((batch, seq_len, d_model), dtype=np.float32)

    def reference() -> np.ndarray:
        column = np.arange(d_model)
        angle = np.arange(seq_len)[:, None] / np.power(10000, 2 * (column // 2) / d_model)
        return np.where(column % 2, np.cos(angle), np.sin(angle))

    frequencies = (1 / np.power(10000, np.arange(0, d_model, 2) / d_model)).astype(np.float32)
    positions, rival = np.arange(seq_len, dtype=np.float32)[:, None], np.empty((seq_len, d_model), np.float32)

    def computed_by_numpy() -> None:
        angle = positions * frequencies
        np.sin(angle, out=rival[:, 0::2])
        np.cos(angle[:, : d_model // 2], out=rival[:, 1::2])

    exact = reference()
    table, pe, y, z = exact.astype(np.float32), fastpe.encode(seq_len, d_model), fastpe.add_(x.copy()), x.copy()
    # The reference's own angles are rounded, to float64.
    half_ulp = 0.5 * np.spacing(np.abs(exact).astype(np.float32)) + 4 * seq_len * 2.0**-53
    half_ulp_of_sum = 0.5 * np.maximum(np.spacing(np.abs(y)), np.spacing(np.abs(x + table)))
    error, error_of_sum = np.abs(pe - exact), np.abs(y - (x + exact))
    passed = (error <= half_ulp).all() and (error_of_sum <= half_ulp + half_ulp_of_sum).all()
    facts = fastpe.show_config()
    print(
        f"fastpe {facts['version']} ({facts['compiler']}), {facts['instruction_set']}, threads: {facts['threads']}, ",
        end="",
    )
    print(f"NumPy {facts['numpy']}, {facts['machine']}\n\nx [{batch}, {seq_len}, {d_model}] float32, medians\n")
    print(f"{'work':<12}  largest error       fastpe        NumPy  NumPy / fastpe")
    for work, largest, ours, theirs in (
        ("encode", error.max(), lambda: fastpe.encode(seq_len, d_model, out=pe), computed_by_numpy),
        ("add in place", error_of_sum.max(), lambda: fastpe.add_(y), lambda: np.add(z, table, out=z)),
    ):
        # In turns, so that a slow moment of the machine falls on both.
        times = [(timeit.timeit(ours, number=1), timeit.timeit(theirs, number=1)) for _ in range(_rounds + 1)][1:]
        ms, numpy_ms = (statistics.median(each) * 1e3 for each in zip(*times, strict=True))
        print(f"{work:<12}  {largest:>13.3g}  {ms:>8.3f} ms  {numpy_ms:>8.3f} ms  {numpy_ms / ms:>14.1f}")
    print("\nNumPy computes with float32 angles, which is less exact, and adds a table that it already has.")
    outcome = "passed: no" if passed else "FAILED: a"
    print(f"check {outcome} value is further from the float64 reference than its rounding to float32")
    if not passed:
        raise typer.Exit(1)
