# SPDX-License-Identifier: BSD-3-Clause
"""Grids and points beside their formulas, which test_pages.py holds them against."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe import GridConvention

from ..oracles.reference import DTYPES, assert_same_bits

CONCAT = fastpe.conventions["concat"]
WIDTHS = {
    "diffusers3d": (3, 32),
    "positional_encodings": (2, 10),
    "tensor2tensor": (2, 10),
    "nerf": (2, 12),
    "sam": (2, 4),
}


def _grid(name: str) -> tuple[tuple[int, ...], int]:
    axes, d_model = WIDTHS.get(name, (2, 16))
    return (5, 3, 4)[:axes], d_model


@pytest.mark.parametrize("name", list(fastpe.grid_conventions))
def test_grids_points_and_channels_first_agree_to_the_bit(name: str) -> None:
    shape, d_model = _grid(name)
    convention = dataclasses.replace(fastpe.grid_conventions[name], normalize=False)
    points = np.moveaxis(np.indices(shape), 0, -1) + convention.axis.first_position + convention.cell_offset
    for dtype in DTYPES:
        grid = fastpe.encode_grid(shape, d_model, convention=convention, dtype=dtype)
        assert_same_bits(fastpe.encode_coordinates(points, d_model, convention=convention, dtype=dtype), grid)
        turned = fastpe.encode_grid(shape, d_model, convention=convention, dtype=dtype, channels_first=True)
        assert grid.flags.c_contiguous
        assert turned.flags.c_contiguous
        assert_same_bits(np.moveaxis(turned, 0, -1), grid)


@pytest.mark.parametrize(
    ("shape", "d_model", "name"),
    [
        ((40, 60, 96), 48, "diffusers3d"),
        ((9, 8, 20, 40), 25, "positional_encodings"),
        ((2, 9000), 64, "mae2d"),
        ((9000, 2), 64, "mae2d"),
    ],
)
def test_large_grids_are_those_of_their_points(shape: tuple[int, ...], d_model: int, name: Any) -> None:
    out = np.full((*shape, d_model), np.float32(7))
    fastpe.encode_grid(shape, d_model, convention=name, out=out)
    assert_same_bits(out, fastpe.encode_coordinates(np.moveaxis(np.indices(shape), 0, -1), d_model, convention=name))


@pytest.mark.parametrize("name", list(fastpe.grid_conventions))
@pytest.mark.parametrize("channels_first", [False, True])
def test_out_may_be_any_view_and_nothing_around_it_is_touched(name: Any, channels_first: bool) -> None:
    shape, d_model = _grid(name)
    expected = fastpe.encode_grid(shape, d_model, convention=name, channels_first=channels_first)
    around = np.full(tuple(2 * n + 1 for n in expected.shape), np.float32(7))
    out = around[tuple(slice(1, 2 * n + 1, 2) for n in expected.shape)]
    assert fastpe.encode_grid(shape, d_model, convention=name, channels_first=channels_first, out=out) is out
    assert_same_bits(out, expected)
    out[...] = 7
    assert (around == 7).all()


def test_class_tokens_are_zero_rows_in_front() -> None:
    grid = fastpe.encode_grid((3, 4), 16, convention="mae2d")
    out = np.full((14, 16), np.float32(7))
    assert fastpe.encode_grid((3, 4), 16, convention="mae2d", class_tokens=2, out=out) is out
    assert (out[:2] == 0).all()
    assert (out[2:] == grid.reshape(12, 16)).all()
    # Any number, 0 too, makes one list of cells.
    assert (fastpe.encode_grid((3, 4), 16, convention="mae2d", class_tokens=0) == grid.reshape(12, 16)).all()


def test_columns_that_no_axis_has_are_zero() -> None:
    out = np.full((2, 3, 11), np.float32(7))
    fastpe.encode_grid((2, 3), 11, convention="tensor2tensor", out=out)
    assert (out[..., 8:] == 0).all()
    assert (out[..., :8] == fastpe.encode_grid((2, 3), 8, convention="tensor2tensor")).all()
    narrow = np.full((2, 3, 3), np.float32(7))
    assert (fastpe.encode_grid((2, 3), 3, convention="tensor2tensor", out=narrow) == 0).all()


def test_spacing_per_axis() -> None:
    grid = fastpe.encode_grid((2, 3), 8, convention="hf2d", spacing=(0.5, 2.0))
    points = np.stack(np.meshgrid([0.0, 0.5], [0.0, 2.0, 4.0], indexing="ij"), axis=-1)
    assert_same_bits(grid, fastpe.encode_coordinates(points, 8, convention="hf2d"))


def test_an_offset_is_added_before_a_spacing_and_divides_nothing() -> None:
    mine = GridConvention("mine", CONCAT, cell_offset=0.5)
    expected = fastpe.encode_coordinates([[[0.25, 1.0]], [[0.75, 1.0]]], 8, convention=mine)
    assert_same_bits(fastpe.encode_grid((2, 1), 8, convention=mine, spacing=(0.5, 2.0)), expected)
    divided = dataclasses.replace(mine, axis=dataclasses.replace(CONCAT, first_position=1), normalize=True)
    points = np.array([[[1.5], [2.5], [3.5], [4.5]]]) / (4 + 1e-6)
    expected = fastpe.encode_coordinates(points, 4, convention=mine)
    assert_same_bits(fastpe.encode_grid((4,), 4, convention=divided), expected[0])
    points = np.array([[[3.0], [5.0], [7.0], [9.0]]]) / (8 + 1e-6)
    assert_same_bits(
        fastpe.encode_grid((4,), 4, convention=divided, spacing=2.0),
        fastpe.encode_coordinates(points, 4, convention=mine)[0],
    )


def test_the_input_comes_where_the_convention_has_it() -> None:
    points = np.array([[0.5, -0.25, 1.0], [0.1, 0.2, 0.3]])
    first = dataclasses.replace(fastpe.grid_conventions["pytorch3d"], input_last=False)
    in_front = fastpe.encode_coordinates(points, 24, convention=first, include_input=True)
    behind = fastpe.encode_coordinates(points, 24, convention="pytorch3d", include_input=True)
    assert (behind[:, 24:] == points.astype(np.float32)).all()
    assert_same_bits(np.concatenate([in_front[:, 3:], in_front[:, :3]], axis=1), behind)
    single = fastpe.encode_coordinates(points[0], 24, convention="pytorch3d", include_input=True)
    assert_same_bits(single, behind[0])


@pytest.mark.parametrize("name", ["detr", "mae2d", "timm2d"])
@pytest.mark.parametrize("channels_first", [False, True])
def test_a_mask_that_hides_nothing_changes_nothing(name: Any, channels_first: bool) -> None:
    plain = fastpe.encode_grid((5, 7), 16, convention=name, channels_first=channels_first)
    full = np.ones((2, 5, 7), np.int32 if channels_first else bool)
    masked = fastpe.encode_grid((5, 7), 16, convention=name, channels_first=channels_first, valid=full)
    assert masked.shape == (2, *plain.shape)
    assert_same_bits(masked[0], plain)
    assert_same_bits(masked[1], plain)
    one = fastpe.encode_grid((5, 7), 16, convention=name, channels_first=channels_first, valid=full[0])
    assert_same_bits(one, plain)


def test_a_padded_image_is_encoded_as_if_it_were_alone() -> None:
    valid = np.zeros((1, 9, 8), bool)
    valid[:, :5, :6] = True
    padded = fastpe.encode_grid((9, 8), 16, convention="detr", valid=valid)
    assert_same_bits(padded[0, :5, :6], fastpe.encode_grid((5, 6), 16, convention="detr"))
    tokens = fastpe.encode_grid((9, 8), 16, convention="detr", valid=valid, class_tokens=1)
    assert tokens.shape == (1, 73, 16)
    assert (tokens[:, 0] == 0).all()
    assert_same_bits(tokens[:, 1:].reshape(padded.shape), padded)


@pytest.mark.parametrize("include_input", [False, True])
@pytest.mark.parametrize("name", list(fastpe.grid_conventions))
def test_a_single_point_is_a_row_of_many(name: Any, include_input: bool) -> None:
    shape, d_model = _grid(name)
    points = np.random.default_rng(5).uniform(-3, 3, (4, len(shape)))
    rows = fastpe.encode_coordinates(points, d_model, convention=name, include_input=include_input)
    out = np.full(2 * rows.shape[1], np.float32(7))
    for point, row in zip(points, rows, strict=True):
        keywords: dict[str, Any] = {"convention": name, "include_input": include_input, "out": out[::2]}
        assert_same_bits(fastpe.encode_coordinates(point, d_model, **keywords), row)
    assert (out[1::2] == 7).all()
    given, row = list(points[0]), fastpe.encode_coordinates(points[:1], d_model, convention=name)[0]
    assert_same_bits(fastpe.encode_coordinates(given, d_model, convention=name), row)


@pytest.mark.parametrize("outermost", ["axis", "function", "function_frequency", "frequency", "pair"])
def test_columns_that_cannot_be_shared_are_padded_or_cut(outermost: Any) -> None:
    whole = fastpe.encode_grid((2, 3), 12, convention=GridConvention("mine", CONCAT, outermost=outermost))
    for d_model in (13, 14, 15):
        padded = GridConvention("mine", CONCAT, outermost=outermost, remainder="pad")
        grid = np.full((2, 3, d_model), np.float32(7))
        fastpe.encode_grid((2, 3), d_model, convention=padded, out=grid)
        assert_same_bits(grid[..., :12], whole)
        assert (grid[..., 12:] == 0).all()
    for d_model in (9, 10, 11, 12):
        cut = GridConvention("mine", CONCAT, outermost=outermost, remainder="truncate")
        assert_same_bits(fastpe.encode_grid((2, 3), d_model, convention=cut), whole[..., :d_model])
    for convention in (padded, cut):
        assert fastpe.encode_grid((2, 3), 1, convention=convention).shape == (2, 3, 1)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_grids(shape: tuple[int, int]) -> None:
    assert fastpe.encode_grid(shape, 8, convention="detr").shape == (*shape, 8)
    assert fastpe.encode_grid(shape, 8, convention="mae2d", class_tokens=1).shape == (1, 8)
    assert fastpe.encode_grid(shape, 8, convention="detr", valid=np.ones(shape, bool)).shape == (*shape, 8)
    assert fastpe.encode_coordinates(np.zeros((*shape, 2)), 8, convention="hf2d").shape == (*shape, 8)
