# SPDX-License-Identifier: BSD-3-Clause
"""`fastpe.rotate_by_tables_`: rotation by cosines and sines that the caller has."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

import fastpe

from ..oracles.model import Array, rotated, wide_type
from ..oracles.reference import DTYPES, assert_same_bits, values
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
    fastpe.rotate_by_tables_(x, cos=table, sin=np.zeros_like(table), interleaved=True, seq_axis=-2)
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
    x = values((2, len(angles), 2 * cos.shape[1]), FLOAT32, seed=12)
    same = expected(x, cos, sin)
    assert_same_bits(fastpe.rotate_by_tables(x, cos=cos, sin=sin, interleaved=True, seq_axis=-2), same)
    cos, sin = np.stack([cos, cos]), np.stack([sin, sin])
    assert_same_bits(fastpe.rotate_by_tables_(x, cos=cos, sin=sin, interleaved=True, seq_axis=-2), same)


@pytest.mark.parametrize("shape", [(4, 4), (2, 6)])
@pytest.mark.parametrize(
    ("name", "head_dim"), [("qwen2_vl_vision", 80), ("llama4_vision", 88), ("kimi_k25_vision", 72), ("sam2", 64)]
)
def test_tables_of_images_are_taken(name: Any, head_dim: int, shape: tuple[int, int]) -> None:
    """Two axes that have the same frequencies, side by side."""
    rope = fastpe.RotaryEmbedding.from_layout(name, head_dim)
    ids = np.indices(shape).reshape(2, -1).T
    x = values((len(ids), head_dim), FLOAT32, seed=13)
    expected = rope.rotate(x, positions=ids, seq_axis=-2)
    cos, sin = rope.tables(ids, form="halves")
    fastpe.rotate_by_tables_(x, cos=cos, sin=sin, interleaved=rope.interleaved, seq_axis=-2)
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
        fastpe.rotate_by_tables_(
            x, cos=cos, sin=sin, interleaved=False, head_dim=None if head_dim == 8 else head_dim, seq_axis=-2
        )


def test_tables_rotate_whole_heads_unless_a_part_is_asked_for() -> None:
    cos, sin = fastpe.RotaryEmbedding(8, interleaved=False).tables(5)
    x = values((2, 5, 12), FLOAT32, seed=15)
    with pytest.raises(ValueError, match=naming("x")):
        fastpe.rotate_by_tables(x, cos=cos, sin=sin, interleaved=False, seq_axis=-2)
    found = fastpe.rotate_by_tables(x, cos=cos, sin=sin, interleaved=False, seq_axis=-2, head_dim=12)
    expected = fastpe.RotaryEmbedding(8, interleaved=False, head_dim=12).rotate(x, seq_axis=-2)
    assert_same_bits(found, expected)


WRONG: dict[str, dict[str, Any]] = {
    "rows": {"x": np.ones((3, 2, 5, 8), np.float32)},
    "batch": {"x": np.ones((2, 2, 4, 8), np.float32)},
    "positions": {"positions": [0, 1, 2, 3]},
    "offset": {"offset": 3},
    "heads": {"cos": np.ones((3, 1, 4, 4), np.float32)},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_tables_of_a_batch_have_a_row_for_each_row(wrong: dict[str, Any]) -> None:
    cos, sin = fastpe.RotaryEmbedding(8, interleaved=True).tables(np.zeros((3, 4), int))
    call = {
        "x": np.ones((3, 2, 4, 8), np.float32),
        "cos": cos,
        "sin": sin,
        "interleaved": True,
        "seq_axis": -2,
        **wrong,
    }
    with pytest.raises(ValueError, match=naming("cos")):
        fastpe.rotate_by_tables_(**call)


@pytest.mark.parametrize(
    ("of_cos", "of_sin"),
    [([0, 1, 0, 1, 2], [0, 1, 0, 1, 2]), ([0, 1, 0, 1], [0, 1, 2, 3]), ([0, 1, 2, 3], [0, 1, 0, 1])],
)
def test_some_columns_may_be_there_twice(of_cos: list[int], of_sin: list[int]) -> None:
    columns = values((5, 4), FLOAT32, seed=13)
    cos, sin = (np.ascontiguousarray(columns[:, each]) for each in (of_cos, of_sin))
    x = values((2, 5, 12), FLOAT32, seed=14)
    same = expected(x, cos, sin)
    assert_same_bits(fastpe.rotate_by_tables_(x, cos=cos, sin=sin, interleaved=True, head_dim=12, seq_axis=-2), same)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("is_batch", [False, True])
def test_tables_of_any_strides(is_batch: bool, dtype: npt.DTypeLike) -> None:
    """Such as those of CTranslate2, which hold each column twice."""
    rope = fastpe.RotaryEmbedding(8, interleaved=True)
    cos, sin = rope.tables([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]] if is_batch else 5)
    x = values((2, 3, 5, 8), np.dtype(dtype), seed=16)
    for tables_dtype in {np.dtype(np.float32), np.dtype(dtype)}:
        tables = [table.astype(tables_dtype) for table in (cos, sin)]
        same = fastpe.rotate_by_tables(x, cos=tables[0], sin=tables[1], interleaved=True, seq_axis=-2)
        for strided in (
            [np.repeat(table, 2, -1)[..., ::2] for table in tables],
            [np.asfortranarray(table) for table in tables],
            [np.ascontiguousarray(table[..., ::-1])[..., ::-1] for table in tables],
        ):
            found = fastpe.rotate_by_tables(x, cos=strided[0], sin=strided[1], interleaved=True, seq_axis=-2)
            assert_same_bits(found, same)
