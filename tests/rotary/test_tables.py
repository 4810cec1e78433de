# SPDX-License-Identifier: BSD-3-Clause
"""`RotaryEmbedding.tables`: exact values in every form and dtype, at any positions, into any array."""

from __future__ import annotations

import functools
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

import fastpe

from ..oracles.reference import DTYPES, Exact, assert_same_bits, bits, errors, ulp
from ..oracles.weak_spots import near_quarter_turns
from . import oracle
from .oracle import FORMS, Array, arrays_in, parts_of

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
WIDE = ("complex", "angles")  # which only wide dtypes have
FORMS_AND_DTYPES = [(form, each) for form in FORMS for each in (DTYPES[:2] if form in WIDE else DTYPES)]
# Each width has another tail of a vector.
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"rotary_dim": 10, "interleaved": False},
    "factor": {"rotary_dim": 6, "interleaved": True, "base": 5e5, "attention_factor": 1.3465735902799727},
    "small factor": {"rotary_dim": 2, "interleaved": True, "attention_factor": 0.0123},
    "given": {"rotary_dim": 6, "interleaved": False, "frequencies": [0.0, -2.5, 1e-9], "conjugate": True},
}
COUNTED = 37
INTEGERS = np.array(
    [0, 1, -1, 7, -1000, 4095, 2**24 + 1, 2**31 - 1, -(2**31), 10**12, 2**53 - 1, 2**53, -(2**53)], np.int64
)
FRACTIONS = np.array([0.5, -3.25, 1e-310, 5e-324, 1e-9, 1e6 + 0.1, -12345.678, 2.0**50 + 0.125])


@functools.cache
def truths_of(name: str, kind: str, form: str) -> tuple[Exact, ...]:
    return oracle.exact_tables(OPTIONS[name], positions_of(kind), form)


def positions_of(kind: str) -> Array:
    return {"counted": np.arange(-5, COUNTED - 5), "integers": INTEGERS, "fractions": FRACTIONS}[kind]


def bound(truth: Array, dtype: np.dtype[Any], form: str, factor: float) -> Array:
    """The error that is promised; angles are products, rounded once."""
    if form == "angles":
        return ulp(truth, dtype) * (0.5 + 1e-6)
    if dtype == FLOAT64:
        return ulp(truth, dtype) + 2e-16 * factor
    return 0.5 * ulp(truth, dtype) + 1e-15 * factor


def assert_exact(tables: Any, truths: tuple[Exact, ...], form: str, dtype: np.dtype[Any], factor: float) -> None:
    for table, truth in zip(map(parts_of, arrays_in(tables)), truths, strict=True):
        assert table.dtype == dtype
        assert table.shape == truth.high.shape
        excess = errors(table, truth) - bound(truth.high, dtype, form, factor)
        assert (excess <= 0).all(), f"{excess.max()} beyond the promise at {np.argwhere(excess > 0)[0].tolist()}"


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_and_dtype_is_exact(form: Any, name: str) -> None:
    for dtype in [dtype for known, dtype in FORMS_AND_DTYPES if known == form]:
        for max_len in (0, 16):
            rope = fastpe.RotaryEmbedding(**OPTIONS[name], max_len=max_len)
            keywords: dict[str, Any] = {"form": form, "dtype": dtype}
            for kind in ("integers", "fractions"):
                tables = rope.tables(positions_of(kind), **keywords)
                assert_exact(tables, truths_of(name, kind, form), form, dtype, rope.attention_factor)
            for _ in range(2):  # the second time from rows that are kept
                tables = rope.tables(COUNTED, offset=-5, **keywords)
                assert_exact(tables, truths_of(name, "counted", form), form, dtype, rope.attention_factor)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("k", [0, 3, 7])
def test_values_that_are_nearly_0_are_exact(k: int, dtype: np.dtype[Any]) -> None:
    rope = fastpe.RotaryEmbedding(16, interleaved=False, attention_factor=1.75)
    frequency = oracle.frequencies(16)[0][k]
    positions = near_quarter_turns(2 * frequency / mpmath.pi, 0, 2**53, 25)
    cos, sin = rope.tables(positions, dtype=dtype)
    for p, c, s in zip(positions, cos[:, k], sin[:, k], strict=True):
        for found, truth in zip((c, s), mpmath.cos_sin(mpmath.mpf(p) * frequency), strict=True):
            error = abs(mpmath.mpf(float(found)) - mpmath.mpf(1.75) * truth)
            assert error <= bound(np.array(float(1.75 * truth)), dtype, "halves", 1.75)


# ---- positions


def test_position_0_of_either_sign_gives_1_and_0() -> None:
    for rope in (fastpe.RotaryEmbedding(4, interleaved=False), fastpe.RotaryEmbedding(4, interleaved=False, max_len=2)):
        for positions in (1, [0], [0.0], [-0.0], [[0.0, -0.0], [-0.0, 0.0]]):
            cos, sin = rope.tables(positions)
            assert (cos == 1).all()
            assert not bits(sin).any()


@pytest.mark.usefixtures("instruction_set")
def test_angles_near_a_tie_are_rounded_as_float64_products_are() -> None:
    ties = 1 + 2.0**-13 * np.arange(0, 8192, 97) + 2.0**-24  # in the middle of two float32 numbers
    near = (ties[:, None] / 3 + 2.0**-54 * np.arange(-3, 4)).ravel()
    for count in (1, 5, 16, len(near)):
        for start in range(0, len(near) - count + 1, 61):
            freqs = near[start : start + count]
            rope = fastpe.RotaryEmbedding(2 * count, interleaved=False, frequencies=freqs)
            expected = np.array([3, -3])[:, None] * freqs
            assert_same_bits(rope.tables([3, -3], form="angles"), expected.astype(np.float32))


# ---- out


@pytest.mark.parametrize("form", FORMS)
def test_axes_of_length_1_may_stand_in_front_of_out(form: Any) -> None:
    rope = fastpe.RotaryEmbedding(10, interleaved=False)
    for positions in (1, 3, np.arange(6).reshape(2, 3)):
        tables = arrays_in(rope.tables(positions, form=form))
        views = tuple(np.full((1, 1, *table.shape), 77, table.dtype) for table in tables)
        rope.tables(positions, form=form, out=views if len(views) == 2 else views[0])
        for view, table in zip(views, tables, strict=True):
            assert_same_bits(parts_of(view[0, 0]), parts_of(table))
        wrong = tuple(np.zeros((2, *table.shape), table.dtype) for table in tables)
        with pytest.raises(ValueError, match=r"^out(\[0\])? "):
            rope.tables(positions, form=form, out=wrong if len(wrong) == 2 else wrong[0])
        assert not any(each.any() for each in wrong)


def test_pairs_whose_parts_lie_apart_are_written() -> None:
    rope = fastpe.RotaryEmbedding(10, interleaved=False)
    memory = np.full((3, 5, 4), 77, np.float32)
    rope.tables(3, form="pairs", out=memory[..., ::2])
    assert_same_bits(memory[..., ::2], rope.tables(3, form="pairs"))
    assert (memory[..., 1::2] == 77).all()


# ---- axes

AXES: dict[str, Any] = {"rotary_dim": 12, "interleaved": False, "frequency_axes": [0, 2, 1, 1, 0, 2]}
AXES["attention_factor"] = 1.5


@pytest.mark.parametrize("max_len", [0, 16])
@pytest.mark.parametrize(("form", "dtype"), FORMS_AND_DTYPES, ids=str)
def test_each_coordinate_turns_its_frequencies(form: Any, dtype: np.dtype[Any], max_len: int) -> None:
    rope = fastpe.RotaryEmbedding(**AXES, max_len=max_len)
    positions = np.array([[[0, 3, 5], [-7, 123456, 2]], [[15, 1, 0], [2**53, 2, 16]], [[15, 1, 0], [15, 2, 0]]])
    for given_positions in (positions, positions[:2, :1] * 0.25):
        tables = rope.tables(given_positions, form=form, dtype=dtype)
        assert_exact(tables, oracle.exact_tables(AXES, given_positions, form), form, dtype, rope.attention_factor)
    for found, same in zip(
        arrays_in(rope.tables(np.moveaxis(positions[..., ::-1], -1, 0).copy().transpose(1, 2, 0), form=form)),
        arrays_in(rope.tables(positions[..., ::-1].copy(), form=form)),
        strict=True,
    ):
        assert_same_bits(parts_of(found), parts_of(same))


def test_a_single_point_is_a_row_of_many() -> None:
    rope = fastpe.RotaryEmbedding(4, interleaved=False, frequency_axes=[0, 1])
    expected = rope.tables(np.array([[7, 1], [1, 7]]), form="cos_sin")[1]
    for point in (np.array([1, 7]), np.array([1, 50, 7, 60])[::2]):
        np.testing.assert_array_equal(rope.tables(point, form="cos_sin"), expected)


def test_one_coordinate_may_be_an_axis() -> None:
    one, several = (fastpe.RotaryEmbedding(8, interleaved=False, frequency_axes=axes) for axes in (None, [0] * 4))
    assert_same_bits(several.tables(np.arange(5)[:, None])[0], one.tables(5)[0])


def test_a_coordinate_that_turns_nothing_is_not_looked_at() -> None:
    rope = fastpe.RotaryEmbedding(4, interleaved=False, frequency_axes=[0, 2])
    found, same = (rope.tables([[3, unused, 5], [4, unused, 6]])[0] for unused in (0, 12345))
    assert_same_bits(found, same)


@pytest.mark.parametrize(
    ("form", "dtype"),
    [pytest.param(*each, marks=[] if i % 5 == 0 else pytest.mark.slow) for i, each in enumerate(FORMS_AND_DTYPES)],
    ids=str,
)
def test_threads_write_the_same_tables_if_rows_are_no_whole_cache_lines(form: Any, dtype: np.dtype[Any]) -> None:
    has_axes = dtype in DTYPES[:2]
    pairs = 33 if has_axes else 3
    axes = np.arange(pairs) % 2 if has_axes else None
    rope = fastpe.RotaryEmbedding(2 * pairs, interleaved=False, max_len=16, frequency_axes=axes)
    rows = 1536 * 1024 // (pairs * dtype.itemsize)
    positions = np.arange(rows)
    if has_axes:
        positions = np.stack([positions // 100, positions % 100], -1)
    tables = [arrays_in(rope.tables(positions, form=form, dtype=dtype, num_threads=threads)) for threads in (1, 2, 3)]
    for same in tables[1:]:
        for found, expected in zip(same, tables[0], strict=True):
            assert_same_bits(parts_of(found), parts_of(expected))
