# SPDX-License-Identifier: BSD-3-Clause
"""`fastpe.rotate_`: rotation by cosines and sines that the caller has."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import fastpe

from ..oracles.model import Array, rotated, wide_type
from ..oracles.reference import DTYPES, assert_same_bits, bits, values
from ..oracles.refusals import naming

pytestmark = pytest.mark.usefixtures("instruction_set")

FLOAT32, FLOAT64, FLOAT16 = DTYPES[:3]


def expected(x: Array, cos: Array, sin: Array) -> Array:
    return rotated(x, (cos[None], sin[None]), np.ones((1, x.shape[-2]), bool), interleaved=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_nan_in_a_table_stays_one(dtype: np.dtype[Any]) -> None:
    # All of its bits but the sign are ones: rounded as a number is, it would be -0.
    nan = np.array(-1, np.int64 if dtype.itemsize == 8 else np.int32).view(wide_type(dtype))
    table = np.full((1, 20), np.copysign(nan, 1), nan.dtype)
    x = np.ones((1, 40), dtype)
    fastpe.rotate_(x, cos=table, sin=np.zeros_like(table), interleaved=True)
    assert np.isnan(x).all()


GRID = np.indices((3, 3)).reshape(2, -1).T


@pytest.mark.parametrize("angles", [GRID, GRID[4:5], GRID[::4], np.zeros((4, 2)), np.ones((4, 2))], ids=str)
@pytest.mark.parametrize("repeated", [False, True])
def test_axes_may_share_frequencies(angles: Array, repeated: bool) -> None:
    """Cells on the diagonal have each column twice, and so have rows whose columns are all alike."""
    frequencies = np.array([1.0, 0.3, 0.1]) if len(angles) != 4 else np.ones(3)
    both = angles[:, :, None] * frequencies
    table = (both.swapaxes(1, 2) if repeated else both).reshape(len(angles), -1)
    cos, sin = np.cos(table).astype(np.float32), np.sin(table).astype(np.float32)
    x = values((2, len(angles), 16), FLOAT32, seed=12)
    same = expected(x, cos, sin)
    assert_same_bits(fastpe.rotate_(x, cos=cos, sin=sin, interleaved=True), same)


@pytest.mark.parametrize("shape", [(4, 4), (2, 6)])
@pytest.mark.parametrize(
    ("name", "head_dim"),
    [("qwen2_vl_vision", 80), ("llama4_vision", 88), ("kimi_k25_vision", 72), ("sam2", 64)],
)
def test_tables_of_images_are_taken(name: str, head_dim: int, shape: tuple[int, int]) -> None:
    """Two axes that have the same frequencies, side by side."""
    rope = fastpe.RotaryEmbedding.from_layout(name, head_dim)
    ids = np.indices(shape).reshape(2, -1).T
    x = values((len(ids), head_dim), FLOAT32, seed=13)
    expected = rope.rotate(x, positions=ids)
    cos, sin = rope.tables(ids, form="halves")
    fastpe.rotate_(x, cos=cos, sin=sin, interleaved=rope.interleaved)
    assert_same_bits(x, expected)


@pytest.mark.parametrize("form", ["tile", "repeat"])
@pytest.mark.parametrize("head_dim", [8, 24])
@pytest.mark.parametrize("positions", [[0, 0, 1, 2, 3], [1, 0, 1, 2], [3, 2, 1, 0], [1, 2, 3, None, None]], ids=str)
def test_rows_of_padding_do_not_hide_columns_that_are_there_twice(
    positions: list[int | None], head_dim: int, form: Literal["tile", "repeat"]
) -> None:
    rope = fastpe.RotaryEmbedding(8, interleaved=False)
    cos, sin = rope.tables([position or 0 for position in positions], form=form)
    cos[[position is None for position in positions]] = 0  # a table that ends in zeros
    x = values((len(positions), head_dim), FLOAT32, seed=14)
    with pytest.raises(ValueError, match=naming("cos")):
        fastpe.rotate_(x, cos=cos, sin=sin, interleaved=False)


@pytest.mark.parametrize(
    ("of_cos", "of_sin"),
    [([0, 1, 0, 1, 2], [0, 1, 0, 1, 2]), ([0, 1, 0, 1], [0, 1, 2, 3]), ([0, 1, 2, 3], [0, 1, 0, 1])],
)
def test_some_columns_may_be_there_twice(of_cos: list[int], of_sin: list[int]) -> None:
    columns = values((5, 4), FLOAT32, seed=13)
    cos, sin = (np.ascontiguousarray(columns[:, each]) for each in (of_cos, of_sin))
    x = values((2, 5, 12), FLOAT32, seed=14)
    same = expected(x, cos, sin)
    assert_same_bits(fastpe.rotate_(x, cos=cos, sin=sin, interleaved=True), same)


def test_rows_that_do_not_count_need_no_row() -> None:
    cos, sin = fastpe.RotaryEmbedding(6, interleaved=False).tables(3)
    x = values((2, 5, 6), FLOAT32, seed=11)
    before = x.copy()
    fastpe.rotate_(x, cos=cos, sin=sin, interleaved=False, lengths=[3, 0])
    assert_same_bits(x[0, :3], fastpe.RotaryEmbedding(6, interleaved=False).rotate(before[0, :3]))
    np.testing.assert_array_equal(bits(x[0, 3:]), bits(before[0, 3:]))
    np.testing.assert_array_equal(bits(x[1]), bits(before[1]))
    none = np.empty((0, 3), np.float32)
    empty = np.empty((2, 0, 6), np.float32)
    assert fastpe.rotate_(empty, cos=none, sin=none, interleaved=False) is empty
