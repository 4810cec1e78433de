# SPDX-License-Identifier: BSD-3-Clause
"""The oracle obeys what is known of rotations without it, and NumPy's usual expressions."""

from __future__ import annotations

from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

from ..oracles.reference import BFLOAT16, DTYPES, assert_same_bits, bits, ulp
from . import oracle
from .oracle import FORMS, Array, Rotary

FLOAT32, FLOAT64, FLOAT16 = (np.dtype(t) for t in (np.float32, np.float64, np.float16))


def rotary(d: int = 8, *, interleaved: bool = False, **knobs: Any) -> Rotary:
    return Rotary(tuple(oracle.frequencies(d)[0]), interleaved, **knobs)


def values(shape: tuple[int, ...], dtype: np.dtype[Any] = FLOAT32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def rotate(x: Array, rope: Rotary, **keywords: Any) -> Array:
    row_of = (rope.inverted() if keywords.get("inverse") else rope).row_of(x.dtype)
    kept = [w == 0 and rope.attention_factor == 1 for w in rope.frequencies]
    return oracle.rotate(
        x,
        row_of,
        rotary_dim=rope.rotary_dim,
        interleaved=rope.interleaved,
        conjugate=rope.conjugate,
        kept=kept,
        **keywords,
    )


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16], ids=str)
def test_rounding_is_numpys(dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(1)
    exponents = rng.integers(-160 if dtype == FLOAT32 else -30, 15, 3000)
    wide = np.ldexp(rng.uniform(-2, 2, 3000), exponents)
    narrow = values((500,), dtype, seed=2)
    between = (narrow.astype(float) + np.nextafter(narrow, dtype.type(np.inf)).astype(float)) / 2  # ties
    for value in np.concatenate([wide, between, narrow.astype(float)]):
        assert oracle.rounded(mpmath.mpf(float(value)), dtype) == float(dtype.type(value))


def test_rounding_to_bfloat16_is_that_of_its_neighbours() -> None:
    for value in np.float32(values((500,), FLOAT64, seed=3)):
        assert oracle.rounded(mpmath.mpf(float(value)), BFLOAT16) == float(value.astype(BFLOAT16))


def test_rounding_overflows_to_infinity() -> None:
    assert oracle.rounded(mpmath.mpf(65519), FLOAT16) == 65504
    assert oracle.rounded(mpmath.mpf(65520), FLOAT16) == np.inf
    assert oracle.rounded(mpmath.mpf(-65520), FLOAT16) == -np.inf


def test_forms_are_the_halves_in_another_order() -> None:
    rope, positions = rotary(attention_factor=1.25), [[0, 3], [-7, 123456]]
    c, s = oracle.tables(rope, positions, "halves")
    assert c.shape == s.shape == (2, 2, 4)
    assert_same_bits(oracle.tables(rope, positions, "tile")[0], np.tile(c, 2))
    assert_same_bits(oracle.tables(rope, positions, "tile")[1], np.tile(s, 2))
    assert_same_bits(oracle.tables(rope, positions, "repeat")[0], np.repeat(c, 2, axis=-1))
    assert_same_bits(oracle.tables(rope, positions, "repeat")[1], np.repeat(s, 2, axis=-1))
    assert_same_bits(oracle.tables(rope, positions, "cos_sin"), np.concatenate([c, s], -1))
    assert_same_bits(oracle.tables(rope, positions, "sin_cos"), np.concatenate([s, c], -1))
    assert_same_bits(oracle.tables(rope, positions, "pairs"), np.stack([c, s], -1))
    whole = oracle.tables(rope, positions, "complex")
    assert whole.dtype == np.complex64
    assert_same_bits(whole.real.copy(), c)
    assert_same_bits(whole.imag.copy(), s)
    angles = oracle.tables(rope, positions, "angles", FLOAT64)
    np.testing.assert_allclose(1.25 * np.cos(angles), c, rtol=0, atol=1e-7)


@pytest.mark.parametrize("form", FORMS)
def test_exact_tables_are_the_rounded_ones_before_they_are_rounded(form: str) -> None:
    rope, positions = rotary(attention_factor=1.25), [0.0, 0.5, -3.25, 1e6]
    exact = oracle.exact_tables(rope, positions, form)
    near = oracle.tables(rope, positions, form)
    if form == "complex":
        near = np.stack([near.real, near.imag], -1)
    for truth, table in zip(*([part] if not isinstance(near, tuple) else part for part in (exact, near)), strict=True):
        error = np.abs((table.astype(float) - truth.high) - truth.low)
        assert (error <= 0.5 * ulp(truth.high, FLOAT32)).all()


def test_squares_add_up_to_that_of_the_factor() -> None:
    c, s = oracle.tables(rotary(16, attention_factor=1.5), np.arange(-5, 5) * 12345, "halves", FLOAT64)
    np.testing.assert_allclose(c**2 + s**2, 2.25, rtol=1e-15)


def test_position_0_gives_1_and_0() -> None:
    c, s = oracle.tables(rotary(), [0], "halves")
    assert (c == 1).all()
    assert not bits(s).any()


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_half_split_is_numpys_rotate_half(dtype: np.dtype[Any]) -> None:
    rope, x = rotary(), values((2, 3, 5, 8), dtype)
    cos, sin = oracle.tables(rope, np.arange(5), "tile", dtype)
    rotated = np.concatenate([-x[..., 4:], x[..., :4]], -1)
    assert_same_bits(rotate(x, rope), x * cos + rotated * sin)


def test_interleaved_is_a_product_of_complex_numbers() -> None:
    rope, x = rotary(interleaved=True), values((2, 5, 8), FLOAT64)
    product = x.view(complex) * oracle.tables(rope, np.arange(5), "complex", FLOAT64)
    np.testing.assert_allclose(rotate(x, rope), product.view(float), rtol=0, atol=1e-15)


def test_the_pairings_differ_by_an_order_of_the_columns() -> None:
    x = values((5, 8))
    order = np.array([0, 2, 4, 6, 1, 3, 5, 7])
    interleaved = rotate(x, rotary(interleaved=True))
    assert_same_bits(interleaved[:, order], rotate(x[:, order], rotary()))
    assert np.abs(interleaved - rotate(x, rotary())).max() > 0.1


@pytest.mark.parametrize("interleaved", [False, True])
def test_norms_of_pairs_are_kept(interleaved: bool) -> None:
    x = values((2, 50, 16), FLOAT64)
    y = rotate(x, rotary(16, interleaved=interleaved))
    first, second = oracle.pair_columns(16, interleaved)
    np.testing.assert_allclose(
        np.hypot(y[..., first], y[..., second]), np.hypot(x[..., first], x[..., second]), rtol=1e-14
    )


@pytest.mark.parametrize("factor", [1.0, 1.3])
@pytest.mark.parametrize("conjugate", [False, True])
def test_the_inverse_returns(factor: float, conjugate: bool) -> None:
    rope, x = rotary(attention_factor=factor, conjugate=conjugate), values((2, 5, 8), FLOAT64)
    np.testing.assert_allclose(rotate(rotate(x, rope, offset=77), rope, offset=77, inverse=True), x, rtol=0, atol=1e-14)


def test_the_conjugate_is_the_inverse_where_the_factor_is_1() -> None:
    x = values((2, 5, 8))
    assert_same_bits(rotate(x, rotary(conjugate=True)), rotate(x, rotary(), inverse=True))
    assert_same_bits(rotate(x, rotary(conjugate=True), inverse=True), rotate(x, rotary()))
    np.testing.assert_allclose(
        rotate(x, rotary(conjugate=True)), rotate(x, rotary(), positions=-np.arange(5)), rtol=0, atol=1e-6
    )


def test_products_depend_on_the_distance_alone() -> None:
    rope, q, k = rotary(), values((1, 8), FLOAT64, seed=1), values((1, 8), FLOAT64, seed=2)

    def product(m: int, n: int) -> float:
        return float((rotate(q, rope, offset=m) * rotate(k, rope, offset=n)).sum())

    assert abs(product(9, 4) - product(1009, 1004)) < 1e-13
    assert abs(product(9, 4) - product(9, 5)) > 1e-3


def test_the_columns_behind_are_left() -> None:
    x = values((2, 5, 11))
    y = rotate(x, rotary())
    assert_same_bits(y[..., 8:], x[..., 8:])
    assert_same_bits(y[..., :8], rotate(x[..., :8].copy(), rotary()))


@pytest.mark.parametrize("seq_axis", [-2, -3, 0])
def test_every_layout_is_the_same_rotation(seq_axis: int) -> None:
    rope, x = rotary(), values((2, 3, 5, 8))  # [B, H, L, D]
    offset, mask = [3, 50], np.array([[1, 1, 0, 1, 1], [0, 1, 1, 1, 0]], bool)
    order = {-2: (0, 1, 2, 3), -3: (0, 2, 1, 3), 0: (2, 0, 1, 3)}[seq_axis]
    y = rotate(x.transpose(order).copy(), rope, seq_axis=seq_axis, offset=offset, mask=mask)
    assert_same_bits(y.transpose(np.argsort(order)), rotate(x, rope, offset=offset, mask=mask))


def test_what_is_per_row_is_that_of_the_first_axis() -> None:
    rope, x = rotary(), values((2, 3, 5, 8))
    y = rotate(x, rope, offset=[3, 50])
    for b, start in enumerate([3, 50]):
        for h in range(3):
            assert_same_bits(y[b, h], rotate(x[b, h], rope, positions=np.arange(start, start + 5)))
    assert_same_bits(y, rotate(x, rope, positions=np.array([[3], [50]]) + np.arange(5)))
    assert_same_bits(y, rotate(x, rope, offset=[[3], [50]]))
    assert_same_bits(rotate(x, rope, offset=[3]), rotate(x, rope, offset=3))
    assert_same_bits(rotate(x, rope, positions=np.arange(5)[None]), rotate(x, rope))


def test_rows_that_do_not_count_are_left_and_not_counted() -> None:
    rope, x = rotary(), values((2, 5, 8))
    y = rotate(x, rope, mask=[[0, 0, 1, 1, 1], [1, 0, 1, 0, 1]])
    assert_same_bits(y[0, :2], x[0, :2])
    assert_same_bits(y[0, 2:], rotate(x[0, 2:], rope))
    assert_same_bits(y[1, ::2], rotate(x[1, ::2].copy(), rope))
    z = rotate(x, rope, lengths=[5, 2])
    assert_same_bits(z[0], rotate(x[0], rope))
    assert_same_bits(z[1, :2], rotate(x[1, :2], rope))
    assert_same_bits(z[1, 2:], x[1, 2:])


@pytest.mark.parametrize("shape", [(9, 8), (9, 3, 8)])
def test_packed_sequences_count_from_their_starts(shape: tuple[int, ...]) -> None:
    rope, x = rotary(), values(shape)
    y = rotate(x, rope, seq_axis=0, cu_seqlens=[0, 4, 4, 9], offset=[10, 0, 7])
    assert_same_bits(y[:4], rotate(x[:4], rope, seq_axis=0, offset=10))
    assert_same_bits(y[4:], rotate(x[4:], rope, seq_axis=0, offset=7))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_frequency_of_0_keeps_bits(dtype: np.dtype[Any]) -> None:
    frequencies = tuple(oracle.frequencies(8, 10000.0, {"rope_type": "proportional", "partial_rotary_factor": 0.5})[0])
    rope, x = Rotary(frequencies, False), values((3, 8), dtype)
    x[1, 2], x[1, 6], x[2, 3], x[2, 7] = np.inf, 1, -0.0, np.nan
    y = rotate(x, rope)
    assert_same_bits(y[:, [2, 3, 6, 7]], x[:, [2, 3, 6, 7]])
    assert (y[1:, [0, 1, 4, 5]] != x[1:, [0, 1, 4, 5]]).all()
    # Every other pair is multiplied, at position 0 too.
    z = rotate(x, Rotary(frequencies, False, attention_factor=1.5), positions=[0, 0, 0])
    assert np.isnan(z[1, 6])


@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16], ids=str)
def test_16_bits_are_float32_rounded_once(dtype: np.dtype[Any]) -> None:
    rope, x = rotary(), values((2, 5, 8), dtype)
    assert_same_bits(rotate(x, rope), rotate(x.astype(FLOAT32), rope).astype(dtype))


def test_equal_coordinates_are_one_axis() -> None:
    one, several = rotary(), rotary(axes=(0, 1, 2, 0))
    x, positions = values((2, 5, 8)), np.arange(10).reshape(2, 5) * 3
    stacked = np.stack([positions] * 3, -1)
    assert_same_bits(rotate(x, several, positions=stacked, coordinates=True), rotate(x, one, positions=positions))
    assert_same_bits(oracle.tables(several, stacked, "cos_sin"), oracle.tables(one, positions, "cos_sin"))
    shared = np.arange(15).reshape(5, 3)
    y = rotate(x, several, positions=shared, coordinates=True)
    assert_same_bits(y[1], rotate(x[1], several, positions=shared, coordinates=True))
    assert_same_bits(y[0, :, [1, 5]], rotate(x[0], one, positions=shared[:, 1])[:, [1, 5]].T)
