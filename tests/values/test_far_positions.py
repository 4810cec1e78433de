# SPDX-License-Identifier: BSD-3-Clause
"""The numeric contract near position 2^53, where it is hardest to keep; tests/oracles/weak_spots.py says how they are found."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import math
from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

import fastpe

from ..oracles.reference import DTYPES, assert_same_bits
from ..oracles.weak_spots import (
    allowed,
    columns_of,
    frequencies_of,
    weakest,
    weakest_float64,
    weakest_halves,
    worst_error,
)

D_MODEL = 16
PROOF = Path(__file__).resolve().parents[2] / "tools" / "prove_polynomials.py"

instruction_sets = pytest.mark.usefixtures("instruction_set")

# An encoding's alpha is another factor.
CONVENTIONS = {name: dataclasses.replace(preset, alpha=1.0) for name, preset in fastpe.conventions.items()} | {
    "base 1e-40": fastpe.Convention("steep", base=1e-40, freq_scale=1e-28),
    "base 2**-141": fastpe.Convention("steepest", base=2.0**-141, freq_scale=-(2.0**-92)),
    "base 1e24": fastpe.Convention("falling", base=1e24, freq_scale=2.0**44),
}

# Close to the largest, and to the smallest that turn at all.
GIVEN = (math.nextafter(2.0**45, 0), 2.0**44 / 3, -(2.0**36), 123456.789, math.pi, 1.0, 0.1, 1e-5, 1e-12, 2.0**-96)


@functools.cache
def positions_of(radians: Any) -> tuple[list[int], list[float]]:
    magnitude = abs(radians)
    return weakest(magnitude, 3000, 16), weakest_halves(magnitude, 16)


def check(encoding: fastpe.PositionalEncoding, k: int, radians: Any, columns: tuple[int, int], dtype: Any) -> None:
    integers, halves = positions_of(radians)
    for positions, spelled in ((integers, np.array(integers, np.int64)), (halves, np.array(halves, np.float64))):
        if not positions:
            continue
        table = encoding.encode(spelled, dtype=dtype)
        assert_same_bits(encoding.encode(spelled.astype(np.float64), dtype=dtype), table)
        worst = worst_error(table, positions, radians, columns)
        assert worst.excess <= allowed(dtype)[1], (k, worst)


@instruction_sets
@pytest.mark.parametrize(
    "dtype",
    [dtype if dtype == np.float32 else pytest.param(dtype, marks=pytest.mark.slow) for dtype in DTYPES],
    ids=str,
)
@pytest.mark.parametrize("name", CONVENTIONS)
def test_tiny_values_of_every_convention_are_within_the_promise(name: str, dtype: np.dtype[Any]) -> None:
    convention = CONVENTIONS[name]
    encoding = fastpe.PositionalEncoding(D_MODEL, convention=convention)
    for k, radians in enumerate(frequencies_of(convention, D_MODEL)):
        check(encoding, k, radians, columns_of(convention, D_MODEL, k), dtype)


@instruction_sets
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tiny_values_of_frequencies_of_any_size_are_within_the_promise(dtype: np.dtype[Any]) -> None:
    encoding = fastpe.PositionalEncoding(2 * len(GIVEN), frequencies=GIVEN)
    for k, frequency in enumerate(GIVEN):
        check(encoding, k, mpmath.mpf(frequency), (2 * k, 2 * k + 1), dtype)


@functools.cache
def blocks_near_a_tie(radians: Any, count: int) -> list[int]:
    return weakest_float64(radians, 100_000, 31 * count)


@instruction_sets
@pytest.mark.parametrize("count", [50, pytest.param(400, marks=pytest.mark.slow)])
def test_float64_values_around_anchors_near_a_tie_are_within_the_promise(count: int) -> None:
    convention = fastpe.conventions["vaswani"]
    k = 2
    radians = frequencies_of(convention, D_MODEL)[k]
    positions = blocks_near_a_tie(radians, count)
    table = fastpe.encode(np.array(positions), D_MODEL, dtype=np.float64)
    worst = worst_error(table, positions, radians, columns_of(convention, D_MODEL, k))
    assert worst.excess <= allowed(table.dtype)[1], worst


@pytest.mark.parametrize("offset", [2**63 - 1, 2**54 + 1, -(2**54) - 1, -(2**63)])
def test_offsets_are_refused_beyond_the_limit_wherever_counting_begins(offset: int) -> None:
    first = -(2**53) if offset > 0 else 2**53
    encoding = fastpe.PositionalEncoding(
        4, convention=dataclasses.replace(fastpe.conventions["vaswani"], first_position=first)
    )
    for x in (np.zeros((2, 1, 4)), np.zeros((2, 3, 4))):
        with pytest.raises(ValueError, match=r"^offset\[0\] makes the position of row"):
            encoding.add_(x, offset=[offset, -first])
        assert not x.any()


def test_the_polynomials_errors_are_proven_where_they_are_used(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("prove_polynomials", PROOF)
    assert spec is not None
    assert spec.loader is not None
    proof = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(proof)
    status = proof.main()
    assert status == 0, capsys.readouterr().out
