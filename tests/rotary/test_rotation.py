# SPDX-License-Identifier: BSD-3-Clause
"""What a rotation does to values: NumPy's expression with the embedding's tables, and what is known of rotations."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fastpe

from ..oracles.reference import BFLOAT16, DTYPES, assert_same_bits, bits
from ..oracles.refusals import naming
from ..oracles.strategies import values
from .calls import expected
from .oracle import Array, arithmetic_dtype, pair_columns

pytestmark = pytest.mark.usefixtures("instruction_set")

FLOAT32, FLOAT64, FLOAT16 = DTYPES[:3]
PAIRINGS = pytest.mark.parametrize("interleaved", [False, True])
ALL_DTYPES = pytest.mark.parametrize("dtype", DTYPES, ids=str)
# Widths with every tail of a vector of 4, 8 or 16 pairs, with overlaps and without.
WIDTHS = [2, 6, 8, 14, 16, 18, 30, 32, 34, 62, 64, 66, 128, 130]


def normal(shape: tuple[int, ...], dtype: np.dtype[Any] = FLOAT64, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def by_numpy(x: Array, cos: Array, sin: Array, *, interleaved: bool) -> Array:
    """The expressions as models write them: [.., L, d] by halves [L, d/2]."""
    half = cos.shape[-1]
    y = np.empty_like(x)
    first, second = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(half), slice(half, None))
    x1, x2 = x[..., first].astype(cos.dtype), x[..., second].astype(cos.dtype)
    with np.errstate(all="ignore"):
        y[..., first] = (x1 * cos - x2 * sin).astype(x.dtype)
        y[..., second] = (x2 * cos + x1 * sin).astype(x.dtype)
    return y


@PAIRINGS
@ALL_DTYPES
@pytest.mark.parametrize("options", [{}, {"max_len": 9}, {"attention_factor": 1.1386}], ids=str)
def test_it_is_numpys_expression(options: dict[str, Any], dtype: np.dtype[Any], interleaved: bool) -> None:
    for d in WIDTHS:
        rope = fastpe.RotaryEmbedding(d, interleaved=interleaved, **options)
        x = values((2, 3, 5, d), dtype, seed=d)
        cos, sin = rope.tables(5, offset=4, dtype=arithmetic_dtype(dtype))
        y = by_numpy(x, cos, sin, interleaved=interleaved)
        assert_same_bits(rope.rotate(x, offset=4), y)
        assert rope.rotate_(x, offset=4) is x
        assert_same_bits(x, y)


@ALL_DTYPES
def test_half_split_is_rotate_half(dtype: np.dtype[Any]) -> None:
    rope, x = fastpe.RotaryEmbedding(8, interleaved=False, form="tile"), normal((2, 3, 5, 8), dtype)
    wide = x.astype(arithmetic_dtype(dtype))
    cos, sin = rope.tables(5, dtype=wide.dtype)
    rotated = np.concatenate([-wide[..., 4:], wide[..., :4]], -1)
    assert_same_bits(rope.rotate(x), (wide * cos + rotated * sin).astype(dtype))


def test_interleaved_is_a_product_of_complex_numbers() -> None:
    rope, x = fastpe.RotaryEmbedding(8, interleaved=True), normal((2, 5, 8))
    product = x.view(complex) * rope.tables(5, form="complex", dtype=np.float64)
    np.testing.assert_allclose(rope.rotate(x), product.view(float), rtol=0, atol=1e-15)


def test_the_pairings_differ_by_an_order_of_the_columns() -> None:
    half_split, interleaved = (fastpe.RotaryEmbedding(8, interleaved=pairing) for pairing in (False, True))
    x = normal((5, 8), FLOAT32)
    order = np.array([0, 2, 4, 6, 1, 3, 5, 7])
    assert_same_bits(interleaved.rotate(x)[:, order], half_split.rotate(x[:, order]))
    assert np.abs(interleaved.rotate(x) - half_split.rotate(x)).max() > 0.1


@PAIRINGS
@pytest.mark.parametrize("d", WIDTHS)
def test_norms_of_pairs_are_kept(d: int, interleaved: bool) -> None:
    x = normal((2, 50, d))
    y = fastpe.RotaryEmbedding(d, interleaved=interleaved).rotate(x, offset=10**6)
    first, second = pair_columns(d, interleaved)
    np.testing.assert_allclose(
        np.hypot(y[..., first], y[..., second]), np.hypot(x[..., first], x[..., second]), rtol=1e-14
    )


@PAIRINGS
def test_products_depend_on_the_distance_alone(interleaved: bool) -> None:
    rope = fastpe.RotaryEmbedding(64, interleaved=interleaved)
    q, k = normal((1, 64), seed=1), normal((1, 64), seed=2)

    def product(m: int, n: int) -> float:
        return float((rope.rotate(q, offset=m) * rope.rotate(k, offset=n)).sum())

    for far in (1000, 10**9, 2**52, -(2**52)):
        assert abs(product(9, 4) - product(far + 9, far + 4)) < 1e-12
    assert abs(product(9, 4) - product(9, 5)) > 1e-3


@PAIRINGS
@ALL_DTYPES
@pytest.mark.parametrize("conjugate", [False, True])
def test_the_inverse_returns(conjugate: bool, dtype: np.dtype[Any], interleaved: bool) -> None:
    x = normal((2, 5, 37), dtype)
    tolerance = {FLOAT64: 1e-14, FLOAT32: 1e-6, FLOAT16: 6e-3, BFLOAT16: 5e-2}[dtype]
    for factor in (None, 1.0, 1.3465735902799727, 0.25):
        options: dict[str, Any] = {
            "rotary_dim": 34,
            "interleaved": interleaved,
            "attention_factor": factor,
            "conjugate": conjugate,
        }
        rope = fastpe.RotaryEmbedding(**options, max_len=6)
        for call in ({}, {"offset": 77}, {"positions": [0.5, 3, -9, 2**30, 1]}, {"lengths": [5, 2]}):
            there = rope.rotate(x, **call)
            back = rope.rotate(there, **call, inverse=True)
            assert_same_bits(back, expected(there, options, **as_arrays(call), inverse=True))
            np.testing.assert_allclose(back.astype(float), x.astype(float), rtol=0, atol=tolerance)
            assert_same_bits(rope.rotate_(there, **call, inverse=True), back)
        assert np.abs((rope.rotate(x, offset=7) - x).astype(float)).max() > 0.5


def as_arrays(call: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(value) for name, value in call.items()}


def test_the_inverse_divides_by_the_factor() -> None:
    rope, x = fastpe.RotaryEmbedding(4, interleaved=False, attention_factor=4.0), normal((3, 4))
    plain = fastpe.RotaryEmbedding(4, interleaved=False)
    assert_same_bits(rope.rotate(x, inverse=True), plain.rotate(x, inverse=True) / 4)
    assert_same_bits(rope.rotate(x), plain.rotate(x) * 4)


@PAIRINGS
@ALL_DTYPES
def test_the_conjugate_is_the_inverse_where_the_factor_is_1(dtype: np.dtype[Any], interleaved: bool) -> None:
    plain, conjugate = (fastpe.RotaryEmbedding(34, interleaved=interleaved, conjugate=c) for c in (False, True))
    x = values((2, 5, 34), dtype, seed=3)
    assert_same_bits(conjugate.rotate(x, offset=5), plain.rotate(x, offset=5, inverse=True))
    assert_same_bits(conjugate.rotate(x, offset=5, inverse=True), plain.rotate(x, offset=5))
    cos, sin = plain.tables(5, offset=5, dtype=arithmetic_dtype(dtype))
    assert_same_bits(conjugate.rotate(x, offset=5), by_numpy(x, cos, -sin, interleaved=interleaved))


@PAIRINGS
@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16], ids=str)
def test_16_bits_are_float32_rounded_once(dtype: np.dtype[Any], interleaved: bool) -> None:
    rope, x = fastpe.RotaryEmbedding(66, interleaved=interleaved, max_len=3), values((2, 5, 66), dtype, seed=4)
    with np.errstate(all="ignore"):
        assert_same_bits(rope.rotate(x), rope.rotate(x.astype(FLOAT32)).astype(dtype))


def test_a_float16_result_out_of_range_is_infinite() -> None:
    x = np.full((2, 2), 60000, np.float16)
    y = fastpe.RotaryEmbedding(2, interleaved=False, freqs=[1.0]).rotate(x)
    assert_same_bits(y[0], x[0])
    assert y[1, 1] == np.inf  # 60000 * (cos 1 + sin 1)


# ---- what is left alone


def with_nan_payloads(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Every element is a NaN with bits of its own."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    count = int(np.prod(shape))
    exponent = bits(np.array([np.inf]).astype(dtype))[0]
    signs = (np.arange(count) % 2).astype(unsigned) << unsigned.type(8 * dtype.itemsize - 1)
    payloads = (np.arange(count) % 61 + 1).astype(unsigned)
    result: Array = (exponent | signs | payloads).reshape(shape).view(dtype)
    return result


@PAIRINGS
@ALL_DTYPES
@pytest.mark.parametrize("step", [1, 2])
def test_columns_and_rows_that_are_left_keep_their_bits(step: int, dtype: np.dtype[Any], interleaved: bool) -> None:
    rope = fastpe.RotaryEmbedding(6, interleaved=interleaved)
    x = with_nan_payloads((3, 2, 5, 11 * step), dtype)[..., ::step]
    assert len(np.unique(bits(x))) > 50
    x[..., :6] = 1
    mask = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
    for call, valid in (({"mask": mask}, mask), ({"lengths": [0, 5, 3]}, np.arange(5) < np.array([[0], [5], [3]]))):
        rows = with_nan_payloads((3, 2, 5, 11 * step), dtype)[..., ::step]
        rows[np.broadcast_to(valid[:, None], (3, 2, 5))] = x[np.broadcast_to(valid[:, None], (3, 2, 5))]
        before = rows.copy()
        results = [rope.rotate(rows, **call), rope.rotate(rows, **call, out=np.ones_like(rows))]
        rope.rotate_(rows, **call)
        for result in (*results, rows):
            left = ~np.broadcast_to(valid[:, None], (3, 2, 5))
            np.testing.assert_array_equal(bits(result[left]), bits(before[left]))
            np.testing.assert_array_equal(bits(result[..., 6:]), bits(before[..., 6:]))
            assert np.isfinite(result[~left][:, :6].astype(float)).all()


ZEROS = {"rope_type": "proportional", "partial_rotary_factor": 0.5}


@PAIRINGS
@ALL_DTYPES
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("d", [8, 64, 72])
def test_frequencies_of_0_keep_bits(d: int, step: int, dtype: np.dtype[Any], interleaved: bool) -> None:
    rope = fastpe.RotaryEmbedding(d, interleaved=interleaved, scaling=ZEROS, max_len=2)
    assert (rope.frequencies[d // 4 :] == 0).all()
    first, second = pair_columns(d, interleaved)
    still = np.concatenate([first[d // 4 :], second[d // 4 :]])
    turned = np.concatenate([first[: d // 4], second[: d // 4]])
    x = with_nan_payloads((4, d * step), dtype)[:, ::step]
    x[:, turned] = 1
    before = x.copy()
    outs = [rope.rotate(x), rope.rotate(x, out=np.zeros_like(x)), rope.rotate(x, inverse=True)]
    rope.rotate_(x)
    rope.shift_(x, by=3)
    for result in (*outs, x):
        np.testing.assert_array_equal(bits(result[:, still]), bits(before[:, still]))
        assert (result[1:, turned] != before[1:, turned]).any()


@PAIRINGS
def test_frequencies_of_0_between_others_keep_bits(interleaved: bool) -> None:
    freqs = np.tile([0.0, 1.0, 0.5, 0.0, -0.0, 0.25, 2.0, 0.0, 1e-3, 0.0], 5)
    options = {"rotary_dim": 100, "interleaved": interleaved, "freqs": freqs.tolist()}
    rope = fastpe.RotaryEmbedding(**options)
    first, second = pair_columns(100, interleaved)
    x = with_nan_payloads((3, 100), FLOAT32)
    turning = np.concatenate([first[freqs != 0], second[freqs != 0]])
    x[:, turning] = normal((3, turning.size), FLOAT32)
    y = rope.rotate(x)
    np.testing.assert_array_equal(bits(y[:, first[freqs == 0]]), bits(x[:, first[freqs == 0]]))
    np.testing.assert_array_equal(bits(y[:, second[freqs == 0]]), bits(x[:, second[freqs == 0]]))
    assert_same_bits(y, expected(x, options))


def test_frequencies_that_are_all_0_keep_all_bits() -> None:
    rope = fastpe.RotaryEmbedding(8, interleaved=False, freqs=[0.0] * 4)
    x = with_nan_payloads((2, 5, 9), FLOAT32)
    before = x.copy()
    for result in (rope.rotate(x), rope.rotate(x, out=np.zeros_like(x)), rope.rotate_(x), rope.shift_(x, by=5)):
        np.testing.assert_array_equal(bits(result), bits(before))
    with pytest.raises(ValueError, match=naming("positions")):
        rope.rotate_(x, positions=[0, 1, 2, 3, np.nan])


def test_frequencies_of_0_are_multiplied_where_there_is_a_factor() -> None:
    rope = fastpe.RotaryEmbedding(8, interleaved=False, scaling=ZEROS, attention_factor=1.5)
    x = np.ones((3, 8), np.float32)
    x[0, 3] = np.inf
    y = rope.rotate(x)
    assert (y[1:, [2, 3, 6, 7]] == 1.5).all()
    assert y[0, 3] == np.inf
    assert np.isnan(y[0, 7])
    # A shift has no factor.
    assert_same_bits(rope.shift_(x.copy(), by=[4, 5, 6])[:, [2, 3, 6, 7]], x[:, [2, 3, 6, 7]])


@PAIRINGS
@ALL_DTYPES
@pytest.mark.parametrize("max_len", [0, 4])
def test_position_0_is_no_exception(max_len: int, dtype: np.dtype[Any], interleaved: bool) -> None:
    rope = fastpe.RotaryEmbedding(4, interleaved=interleaved, max_len=max_len)
    x = np.ones((2, 4), dtype)
    x[0, 0] = np.inf
    y = rope.rotate(x, positions=[0, 0])
    partner = 1 if interleaved else 2
    assert y[0, 0] == np.inf
    assert np.isnan(y[0, partner])  # inf * 0
    assert_same_bits(y[1], x[1])
    signs = np.array([[-0.0, 0.0, -0.0, 0.0]], dtype)
    with np.errstate(all="ignore"):
        zero = dtype.type(0)
        first, second = pair_columns(4, interleaved)
        same = signs.copy()
        same[:, first] = signs[:, first] * dtype.type(1) - signs[:, second] * zero
        same[:, second] = signs[:, second] * dtype.type(1) + signs[:, first] * zero
    assert_same_bits(rope.rotate(signs), same)


# ---- out


def test_out_is_x_or_an_array_apart() -> None:
    rope, x = fastpe.RotaryEmbedding(4, interleaved=True), normal((2, 3, 6), FLOAT32)
    y = rope.rotate(x)
    assert y.flags.c_contiguous
    assert not np.shares_memory(x, y)
    out = np.full_like(x, 7)
    assert rope.rotate(x, out=out) is out
    assert_same_bits(out, y)
    assert rope.rotate(x, out=x) is x
    assert_same_bits(x, y)


def test_a_read_only_array_is_rotated_into_another() -> None:
    rope, x = fastpe.RotaryEmbedding(4, interleaved=True), normal((2, 3, 6), FLOAT32)
    y = rope.rotate(x.copy())
    x.flags.writeable = False
    assert_same_bits(rope.rotate(x), y)
    once = np.broadcast_to(x[:, :1], x.shape)
    assert_same_bits(rope.rotate(once), rope.rotate(once.copy()))


def test_one_array_is_returned_itself_and_several_as_a_tuple() -> None:
    rope = fastpe.RotaryEmbedding(4, interleaved=True)
    arrays = [normal((3, 4), ml_dtypes.bfloat16, seed=s) for s in range(7)]
    before = [array.copy() for array in arrays]
    assert rope.rotate_(arrays[0]) is arrays[0]
    result = rope.rotate_(*arrays[1:])
    assert type(result) is tuple
    for found, array, old in zip(result, arrays[1:], before[1:], strict=True):
        assert found is array
        assert_same_bits(array, rope.rotate(old))
