# SPDX-License-Identifier: BSD-3-Clause
"""The numeric contract against exact values, with exactly the promised bounds.

float32, float16, bfloat16: |error| <= 0.5 ulp + 1e-15. float64: |error| <= 1 ulp + 2e-16.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpe

from ..oracles.reference import (
    BFLOAT16,
    DTYPES,
    VASWANI,
    Array,
    Exact,
    Knobs,
    assert_same_bits,
    bits,
    columns,
    errors,
    exact_table,
    ulp,
)
from ..oracles.weak_spots import allowed

pytestmark = pytest.mark.usefixtures("instruction_set")


def integer_positions() -> list[int]:
    result = {0, 1, 10**6, 2**31, 2**53, 10**12, 5000, 30, 31, 32, 46, 47}
    for exponent in range(1, 54):
        result |= {2**exponent - 1, 2**exponent, 2**exponent + 1}
    rng = np.random.default_rng(20170612)
    result |= {int(2**e) for e in rng.uniform(0, 53, 60)}
    kept = sorted(p for p in result if p <= 2**53)
    return kept + [-p for p in kept[::7]]


def fractional_positions() -> list[float]:
    rng = np.random.default_rng(1)
    fixed = [0.5, 1 / 3, -2.75, 15.5, 46.5, 999.9, 1e6 + 0.1, 2.0**31 + 0.5, 2.0**52 - 0.5]
    fixed += [1e-3, 1e-30, 5e-324, -1e-308]
    random: list[float] = (rng.uniform(-1, 1, 40) * 2.0 ** rng.uniform(0, 50, 40)).tolist()
    return fixed + random


CASES: dict[str, tuple[int, Knobs]] = {
    "width 64": (64, VASWANI),
    "width 2": (2, VASWANI),
    "odd width": (7, VASWANI),
    "base 1e8": (32, Knobs(base=1e8)),
    "base 3.7": (16, Knobs(base=3.7)),
    "base below 1": (16, Knobs(base=0.01)),
    "base 1e-40": (16, Knobs(base=1e-40, freq_scale=1e-28)),
    "base 1": (4, Knobs(base=1.0)),
    "scale 1000": (32, Knobs(freq_scale=1000.0)),
    "scale 1/3": (32, Knobs(freq_scale=1 / 3)),
    "given": (12, Knobs(freqs=(math.pi, -1.0, 0.0, 1e-9, 12345.678, 2.0**39))),
    "concatenated": (24, Knobs(interleaved=False, shift=1.0, pads_odd=True)),
    "cosine first, padded": (15, Knobs(interleaved=False, cosine_first=True, pads_odd=True)),
}


def encoding_of(d_model: int, knobs: Knobs) -> fastpe.PositionalEncoding:
    convention = fastpe.Convention(
        "test",
        layout="interleaved" if knobs.interleaved else "concatenated",
        cosine_first=knobs.cosine_first,
        denominator_offset=knobs.shift,
        odd="pad" if knobs.pads_odd else "natural",
        base=knobs.base,
        freq_scale=knobs.freq_scale,
    )
    return fastpe.PositionalEncoding(d_model, convention=convention, frequencies=knobs.freqs)


@functools.cache
def truth(case: str, fractional: bool) -> Exact:
    d_model, knobs = CASES[case]
    return exact_table(fractional_positions() if fractional else integer_positions(), d_model, knobs)


def check_error(table: Array, exact: Exact, positions: Sequence[float]) -> None:
    ulps, absolute = allowed(table.dtype)
    excess = errors(table, exact) - ulps * ulp(exact.high, table.dtype)
    worst = np.unravel_index(np.argmax(excess), excess.shape)
    assert excess[worst] <= absolute, (table.dtype, positions[int(worst[0])], worst[1])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_negative_output_scale_negates_every_value(dtype: np.dtype[Any]) -> None:
    for alpha in (1.0, 0.3, 1e-300):
        chosen = [dataclasses.replace(fastpe.conventions["vaswani"], alpha=sign * alpha) for sign in (1.0, -1.0)]
        values, negated = (fastpe.encode(40, 66, convention=each, dtype=dtype) for each in chosen)
        np.testing.assert_array_equal(negated, -values)
        assert values.any() or alpha == 1e-300


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("fractional", [False, True], ids=["integer", "fractional"])
def test_error_is_within_the_promise(case: str, fractional: bool) -> None:
    positions = np.array(fractional_positions() if fractional else integer_positions())
    for dtype in DTYPES:
        table = encoding_of(*CASES[case]).encode(positions, dtype=dtype)
        check_error(table, truth(case, fractional), positions.tolist())


@settings(max_examples=25)
@given(
    position=st.integers(-(2**53), 2**53) | st.floats(-(2.0**53), 2.0**53),
    d_model=st.integers(1, 12),
    base=st.floats(1.0, 1e6),
    dtype=st.sampled_from(DTYPES),
)
def test_error_at_any_position(position: float, d_model: int, base: float, dtype: np.dtype[Any]) -> None:
    table = fastpe.encode([position], d_model, base=base, dtype=dtype)
    check_error(table, exact_table([position], d_model, Knobs(base=base)), [position])


@pytest.mark.parametrize("case", CASES)
def test_sine_is_odd_and_cosine_even(case: str) -> None:
    encoding = encoding_of(*CASES[case])
    positions = np.array([*integer_positions(), *fractional_positions()], np.float64)
    signs = np.array([-1.0 if column is not None and column[0] == "sin" else 1.0 for column in columns(*CASES[case])])
    for dtype in DTYPES:
        plus, minus = encoding.encode(positions, dtype=dtype), encoding.encode(-positions, dtype=dtype)
        assert np.abs(plus.astype(np.float64)).max() <= 1
        np.testing.assert_array_equal(minus, plus * signs.astype(dtype))


@pytest.mark.parametrize("case", CASES)
def test_position_zero_is_exact(case: str) -> None:
    d_model, knobs = CASES[case]
    expected = [float(column is not None and column[0] == "cos") for column in columns(d_model, knobs)]
    for dtype in DTYPES:
        for positions in (1, [0], [0.0], [-0.0], np.array([0], np.uint8)):
            row = encoding_of(d_model, knobs).encode(positions, dtype=dtype)[0]
            np.testing.assert_array_equal(row.astype(np.float64), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_magnitude_is_at_most_one_where_the_exact_value_almost_is(dtype: np.dtype[Any]) -> None:
    # Quarter turns: position p times pi/2, up to an error of about p * 1e-17.
    table = fastpe.encode(200_000, 4, frequencies=[math.pi / 2, math.pi], dtype=dtype).astype(np.float64)
    assert np.abs(table).max() == 1.0


@pytest.mark.parametrize(("position", "frequency"), [(35, 7.046143523051393), (21, 1.121997376282069)])
def test_magnitude_is_at_most_one_where_the_last_addition_exceeds_it(position: int, frequency: float) -> None:
    # The sum of both products is 1 + 2^-52 in magnitude before it is bounded, whichever lane of a vector computes it.
    row = fastpe.encode([position], 64, frequencies=[frequency] * 32, convention="concat", dtype=np.float64)[0]
    assert np.abs(row[:32]).tolist() == [1.0] * 32


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BFLOAT16], ids=str)
def test_sixteen_bit_tables_are_the_float64_ones_rounded_once(dtype: np.dtype[Any]) -> None:
    wide = fastpe.encode(4096, 256, dtype=np.float64)
    # Rounding to odd keeps, in float32, on which side of every 16-bit tie a value lies.
    pattern = wide.view(np.uint64)
    sticky = ((pattern & 0x1FFFFFFF) != 0).astype(np.uint64) << np.uint64(29)
    odd = ((pattern & ~np.uint64(0x1FFFFFFF)) | sticky).view(np.float64).astype(np.float32)
    assert_same_bits(fastpe.encode(4096, 256, dtype=dtype), odd.astype(dtype))


# ---- the rounding step of 16-bit sums, over all embeddings there are


def every_value(dtype: np.dtype[Any]) -> Array:
    result: Array = np.arange(65536, dtype=np.uint16).view(dtype).reshape(64, 1024).copy()
    return result


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BFLOAT16], ids=str)
def test_every_sixteen_bit_embedding_on_every_kind_of_tie(dtype: np.dtype[Any]) -> None:
    exponents = range(-24, 15) if dtype == np.float16 else range(-133, 128, 3)
    ties = 0
    for exponent in exponents:
        for factor in (1.0, -1.0, 3.0):
            x = every_value(dtype)
            addend = np.full((1, 1024), math.ldexp(factor, exponent)).astype(dtype)
            with np.errstate(all="ignore"):
                wide = x.astype(np.float32) + addend.astype(np.float32)
                expected = wide.astype(dtype)
            dropped = 13 if dtype == np.float16 else 16
            ties += int((bits(wide) & (2**dropped - 1) == 2 ** (dropped - 1)).sum())
            fastpe.add_(x, positions=np.zeros(64, np.int64), table=addend)
            assert_same_bits(x, expected)
    assert ties > 10_000


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BFLOAT16], ids=str)
def test_every_sixteen_bit_nan_is_the_upper_part_of_its_sum(dtype: np.dtype[Any]) -> None:
    x = every_value(dtype)
    with np.errstate(invalid="ignore"):  # signalling ones
        is_nan = np.isnan(x)
        sums = bits(x[is_nan].astype(np.float32) + np.float32(1.0))
    as_float16 = (sums >> 16 & 0x8000) | 0x7C00 | (sums >> 13 & 0x3FF)
    expected = as_float16 if dtype == np.float16 else sums >> 16
    ones = np.ones((64, 1024), dtype)
    assert sums.size > 200
    np.testing.assert_array_equal(bits(fastpe.add(x, table=ones))[is_nan], expected)
