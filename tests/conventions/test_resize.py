# SPDX-License-Identifier: BSD-3-Clause
"""Resized learned grids beside sums of fractions, cell by cell; tests/peers/test_resize.py compares with torch and models."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import fastpe

from ..oracles.reference import assert_same_bits
from ..oracles.refusals import Refused, check_refused, each, rows

Array = npt.NDArray[Any]


def kernel(mode: str, x: Fraction, a: Fraction) -> Fraction:
    """Of a distance in cells."""
    if mode != "bicubic":
        return max(Fraction(0), 1 - x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else Fraction(0)


MORE: list[dict[str, Any]] = [{}, {"align_corners": True}, {"antialias": True}, {"padding_mode": "zeros"}]
OPTIONS: list[dict[str, Any]] = [{"mode": mode} for mode in ("nearest", "nearest-exact", "tile")]
OPTIONS += [{"mode": mode, **more} for mode in ("bilinear", "bicubic") for more in MORE]
SHAPES = [((4, 4), (7, 5)), ((7, 7), (3, 2)), ((2, 5), (6, 4)), ((1, 1), (3, 2)), ((6, 6), (1, 1)), ((5, 5), (5, 5))]


def taps_of_axis(
    side: int,
    length: int,
    mode: str,
    align_corners: bool = False,
    antialias: bool = False,
    padding_mode: str = "border",
    step: Fraction | None = None,
) -> list[list[tuple[int, Fraction]]]:
    """For each new cell of an axis, learned cells and their weights, from the first one on. A cell may be there twice."""
    step = Fraction(side, length) if step is None else step
    if align_corners:
        step = Fraction(side - 1, max(length - 1, 1))
    result = []
    for i in range(length):
        if mode in ("nearest", "nearest-exact", "tile"):
            cell = {"nearest": math.floor(i * step), "nearest-exact": math.floor((i + Fraction(1, 2)) * step)}
            result.append([(min(cell.get(mode, i % side), side - 1), Fraction(1))])
            continue
        center = i * step if align_corners else (i + Fraction(1, 2)) * step - Fraction(1, 2)
        stretch = max(step, Fraction(1)) if antialias else Fraction(1)
        a = Fraction(-1, 2) if antialias else Fraction(-3, 4)
        reach = math.ceil(2 * stretch)
        taps = []
        for j in range(math.floor(center) - reach, math.floor(center) + reach + 2):
            weight = kernel(mode, abs(j - center) / stretch, a)
            inside = 0 <= j < side
            if weight and (inside or (not antialias and padding_mode == "border")):
                taps.append((min(max(j, 0), side - 1), weight))
        total = sum(weight for _, weight in taps) if antialias else Fraction(1)
        result.append([(j, weight / total) for j, weight in taps])
    return result


def exact_axis(*arguments: Any, **options: Any) -> list[dict[int, Fraction]]:
    """For each new cell of an axis, the weight of each learned one."""
    result = []
    for taps in taps_of_axis(*arguments, **options):
        weights: dict[int, Fraction] = Counter()  # type: ignore[assignment]
        for j, weight in taps:
            weights[j] += weight
        result.append(weights)
    return result


def exact(axes: Iterable[list[dict[int, Fraction]]], trained: tuple[int, ...]) -> list[dict[int, Fraction]]:
    """For each new cell of a grid, the weight of each row of the table."""
    cells = []
    for chosen in itertools.product(*axes):
        weights: dict[int, Fraction] = Counter()  # type: ignore[assignment]
        for taps in itertools.product(*(taps_of_axis.items() for taps_of_axis in chosen)):
            row = int(np.ravel_multi_index([index for index, _ in taps], trained))
            weights[row] += math.prod((weight for _, weight in taps), start=Fraction(1))
        cells.append(weights)
    return cells


def assert_nearest(new: Array, cells: list[dict[int, Fraction]], table: Array) -> None:
    """Each number is the sum that is meant, rounded once."""
    for row, weights in zip(new, cells, strict=True):
        for column, got in enumerate(row):
            total = sum((weight * Fraction(float(table[i, column])) for i, weight in weights.items()), Fraction(0))
            assert is_nearest(got, total) if new.dtype != np.float64 else abs(Fraction(float(got)) - total) < 2**-48


def is_nearest(value: Any, exact: Fraction) -> bool:
    """Whether no neighbour of the same dtype is nearer."""
    distance = abs(Fraction(float(value)) - exact)
    away = [np.nextafter(value, np.array(end, value.dtype)) for end in (-np.inf, np.inf)]
    return all(distance <= abs(Fraction(float(other)) - exact) for other in away)


def table_of(cells: int, width: int = 3, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(cells).standard_normal((cells, width)).astype(dtype)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(map(str, options.values())))
@pytest.mark.parametrize(("trained", "shape"), SHAPES, ids=str)
def test_cells_are_the_exact_sums_rounded_once(trained: Any, shape: Any, options: dict[str, Any]) -> None:
    table = table_of(math.prod(trained))
    cells = exact([exact_axis(side, n, **options) for side, n in zip(trained, shape, strict=True)], trained)
    for dtype in (np.float32, np.float64):
        new = fastpe.resize_table(table, shape, trained_shape=trained, dtype=dtype, **options)
        assert new.dtype == dtype
        assert_nearest(new, cells, table)
    indices, weights = fastpe.resize_taps(shape, trained, **options)
    assert indices.dtype == np.int64
    assert weights.dtype == np.float32
    for rows_of_cell, factors, expected in zip(indices, weights, cells, strict=True):
        dense = np.bincount(rows_of_cell, factors.astype(np.float64), len(table))
        assert np.abs(dense - [float(expected.get(row, 0)) for row in range(len(table))]).max() < 1e-6


@pytest.mark.parametrize(
    ("mode", "side", "lengths"), [("bicubic", 24, (11, 13)), ("bicubic", 47, (64, 3)), ("bilinear", 2**26 - 5, (3, 7))]
)
def test_weights_are_rounded_once(mode: Any, side: int, lengths: Any) -> None:
    _, weights = fastpe.resize_taps(lengths, (side, side), mode=mode)
    reach = 2 if mode == "bicubic" else 1
    for (i, j), got in zip(itertools.product(*map(range, lengths)), weights, strict=True):
        per_axis = []
        for at, length in ((i, lengths[0]), (j, lengths[1])):
            center = (at + Fraction(1, 2)) * Fraction(side, length) - Fraction(1, 2)
            first = math.floor(center) - reach + 1
            per_axis.append([kernel(mode, abs(k - center), Fraction(-3, 4)) for k in range(first, first + 2 * reach)])
        assert all(is_nearest(got[k], a * b) for k, (a, b) in enumerate(itertools.product(*per_axis)))


def test_weights_whose_denominators_exceed_int64() -> None:
    indices, weights = fastpe.resize_taps((1, 1), (113, 113), mode="bicubic", antialias=True)
    of_axis = exact_axis(113, 1, mode="bicubic", antialias=True)[0]
    one = np.array([float(of_axis.get(i, 0)) for i in range(113)])
    dense = np.bincount(indices[0], weights[0], 113 * 113).reshape(113, 113)
    np.testing.assert_allclose(dense, np.outer(one, one), rtol=1e-6, atol=1e-12)


def test_a_rounded_quotient_half_way_between_two_floats_is_not_rounded_again() -> None:
    from fastpe._grid.interpolation import float32_of

    half_way = (1 << 24) + 1  # over 2**24: between two of float32
    tiny = 1 << 60
    numerators = [half_way * tiny + 1, half_way * tiny - 1, half_way * tiny, (half_way + 2) * tiny - 1]
    got = float32_of(np.array(numerators, object), np.full(4, tiny << 24, object))
    assert (got == np.array([1 + 2**-23, 1, 1, 1 + 2**-23], np.float32)).all()


def test_one_axis_and_scale_factors() -> None:
    table, grid, factors = table_of(7), table_of(16), ((7 + 0.1) / 4, (9 + 0.1) / 4)
    for options in ({"mode": "linear"}, {"mode": "linear", "align_corners": True}, {"mode": "nearest"}):
        assert_nearest(fastpe.resize_table(table, (12,), **options), exact([exact_axis(7, 12, **options)], (7,)), table)
    for mode in ("bilinear", "bicubic"):
        axes = [exact_axis(4, n, mode, step=1 / Fraction(factor)) for n, factor in zip((7, 9), factors, strict=True)]
        new = fastpe.resize_table(grid, (7, 9), mode=mode, scale_factor=factors)
        assert_nearest(new, exact(axes, (4, 4)), grid)
    given = fastpe.resize_table(grid, (7, 9), mode="bicubic", scale_factor=factors)
    assert_same_bits(fastpe.resize_table(grid, (7, 9), convention="dinov2_2023"), given)


@pytest.mark.parametrize(
    ("mode", "side", "factor", "cells"),
    [
        ("nearest", 40, 0.1, [0, 10, 20, 30]),
        ("nearest", 3, 24.0, np.repeat(range(3), 24)),
        ("nearest", 24, 1.00417, [0, *range(23)]),
        ("nearest", 27, 0.3, [0, 3, 6, 10, 13, 16, 20, 23]),
        ("nearest-exact", 10, 0.1, [5]),
    ],
)
def test_a_factor_chooses_the_cells_that_torch_chooses(mode: Any, side: int, factor: float, cells: Any) -> None:
    line = np.arange(float(side))[:, None]
    assert (fastpe.resize_table(line, (len(cells),), mode=mode, scale_factor=factor)[:, 0] == cells).all()


@pytest.mark.parametrize("options", [{"mode": "bilinear"}, {"mode": "bicubic"}, {"convention": "dinov2_2023"}], ids=str)
def test_what_keeps_its_length_is_left_as_it_is(options: Any) -> None:
    grid = table_of(12).astype(np.float64)
    grid[5] = np.inf
    assert_same_bits(fastpe.resize_table(grid, (3, 4), trained_shape=(3, 4), **options), grid)
    taller = fastpe.resize_table(grid, (6, 4), trained_shape=(3, 4), mode="bilinear")
    assert not np.isnan(taller.reshape(6, 4, -1)[:, [0, 2, 3]]).any()
    # A graph has as many taps for every image.
    equal, larger = (fastpe.resize_taps(shape, (3, 4), **options)[0] for shape in ((3, 4), (6, 5)))
    assert equal.shape[1] == larger.shape[1]


def test_conventions_say_what_modes_cannot() -> None:
    grid = table_of(16)
    # Cropped of a square.
    square = fastpe.resize_table(grid, (9, 9), mode="bilinear").reshape(9, 9, 3)
    assert_same_bits(fastpe.resize_table(grid, (5, 9), convention="radio"), square[:5].reshape(-1, 3))
    # Left as it is.
    assert_same_bits(fastpe.resize_table(grid, (4, 4), convention="dinov2_2023"), grid)
    assert_same_bits(fastpe.resize_table(grid, (4, 4), convention="hy_v4_vl"), grid)
    assert not (fastpe.resize_table(grid, (4, 5), convention="dinov2_2023").reshape(4, 5, 3)[:, 0] == grid[::4]).all()
    indices, weights = fastpe.resize_taps((4, 4), (4, 4), convention="dinov2_2023", merge_size=2)
    assert np.isin(weights, (0, 1)).all()
    assert (weights.sum(axis=1) == 1).all()
    taken = np.take_along_axis(indices, weights.argmax(axis=1)[:, None], axis=1)
    assert taken.T.tolist() == [[0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]]
    # Repeated.
    tiled = fastpe.resize_table(grid, (6, 10), convention="sam3").reshape(6, 10, 3)
    assert_same_bits(tiled, np.tile(grid.reshape(4, 4, 3), (2, 3, 1))[:6, :10])
    own = dataclasses.replace(fastpe.resize_conventions["radio"], name="mine", mode="bicubic")
    square = fastpe.resize_table(grid, (9, 9), mode="bicubic").reshape(9, 9, 3)
    assert_same_bits(fastpe.resize_table(grid, (5, 9), convention=own), square[:5].reshape(-1, 3))


@pytest.mark.parametrize("merge_size", [1, 2])
def test_class_tokens_merge_order_a_leading_axis_and_out(merge_size: int) -> None:
    table = table_of(2 + 9, 5)
    cells = fastpe.resize_table(table[2:], (4, 6), convention="qwen3_vl")
    blocks = cells.reshape(4 // merge_size, merge_size, 6 // merge_size, merge_size, 5).swapaxes(1, 2).reshape(-1, 5)
    expected = np.concatenate([table[:2], blocks])
    options: Any = {"convention": "qwen3_vl", "class_tokens": 2, "merge_size": merge_size}
    assert_same_bits(fastpe.resize_table(table, (4, 6), **options), expected)
    assert_same_bits(fastpe.resize_table(table[None], (4, 6), **options), expected[None])
    assert fastpe.resize_table(table[:, :0], (4, 6), **options).shape == (26, 0)
    around = np.full((53, 11), np.float32(7))
    out = around[1::2, 1::2]
    assert fastpe.resize_table(table[:, ::-1][:, ::-1], (4, 6), **options, out=out) is out
    assert_same_bits(out, expected)
    out[...] = 7
    assert (around == 7).all()
    indices, weights = fastpe.resize_taps((4, 6), (3, 3), convention="qwen3_vl", merge_size=merge_size)
    assert np.allclose((table[2:][indices] * weights[..., None]).sum(1), blocks, rtol=0, atol=1e-6)


def test_numbers_next_to_a_tie_of_bfloat16() -> None:
    numbers = [1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, 1 + 2**-8, -1 - 2**-8 - 2**-40, np.inf, 1e39, -1e-46, -0.0]
    got = fastpe.resize_table([numbers], (1,), mode="nearest", dtype=ml_dtypes.bfloat16)[0]
    assert got.tolist() == [1 + 2**-7, 1, 1, -1 - 2**-7, np.inf, np.inf, 0, 0]
    assert np.signbit(got[-2:].astype(np.float32)).all()


def rounded_once(wide: Array, dtype: Any) -> Array:
    if dtype != ml_dtypes.bfloat16:
        return wide.astype(dtype)
    nearest = wide.astype(dtype)  # or next to it, since this rounds to float32 on the way
    near = [nearest, *(np.nextafter(nearest, np.array(end, dtype)) for end in (-np.inf, np.inf))]
    is_odd = np.stack([each.view(np.uint16) & 1 for each in near])
    distance = np.stack([abs(each.astype(np.float64) - wide) for each in near])
    best = np.lexsort((is_odd, distance), axis=0)[:1]
    result: Array = np.take_along_axis(np.stack(near), best, 0)[0]
    return result


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("options", [*OPTIONS, {"mode": "linear"}], ids=lambda each: " ".join(map(str, each.values())))
def test_bits_are_those_of_float64_sums_in_the_order_of_taps(options: dict[str, Any]) -> None:
    """Along the height, then along the width, with any number of threads, in arrays with any gaps."""
    axis_count = 1 if options["mode"] == "linear" else 2
    dtypes = [np.dtype(each) for each in (np.float32, ml_dtypes.bfloat16, np.float64, np.float16)]
    others, scales = itertools.cycle([*dtypes, ml_dtypes.bfloat16]), itertools.cycle((2.0**-130, 1.0, 2.0**120))
    shapes: list[Any] = [((9, 5), (4, 8)), ((3, 4), (3, 6)), ((2, 1), (5, 3)), ((6, 17), (12, 10))]
    for (trained, shape), dtype in itertools.product(shapes, dtypes):
        width, tokens, to = 7 * math.prod(shape) + 1, len(trained) - 1, next(others)
        trained, shape = trained[-axis_count:], shape[-axis_count:]
        numbers = np.random.default_rng(width).standard_normal((tokens + math.prod(trained), width))
        table = (numbers * (1.0 if np.float16 in (dtype, to) else next(scales))).astype(dtype)
        table[table == 0] = 0  # taps with a weight of 0, which the model leaves out, may make 0 of -0
        cells = table[tokens:].astype(np.float64).reshape(*trained, width)
        for axis, (side, length) in enumerate(zip(trained, shape, strict=True)):
            lines = []
            for taps in taps_of_axis(side, length, **options):
                terms = (np.take(cells, index, axis) * float(weight) for index, weight in taps)
                lines.append(functools.reduce(np.add, terms))
            cells = np.stack(lines, axis)
        wide = np.concatenate([table[:tokens].astype(np.float64), cells.reshape(-1, width)])
        expected = rounded_once(wide, to)
        around = np.zeros((2 * len(wide), 2 * width), to)
        for threads, out in ((1, None), (2, np.zeros_like(expected)), (3, around[::2, ::2])):
            given = {"trained_shape": trained, "class_tokens": tokens, "num_threads": threads, "dtype": to, "out": out}
            assert_same_bits(fastpe.resize_table(table, shape, **given, **options), expected)


def test_columns_are_resized_alike_however_many_there_are() -> None:
    table = np.random.default_rng(0).standard_normal((37 * 37, 900)).astype(np.float32)
    parts = [fastpe.resize_table(table[:, at : at + 300], (3, 5), convention="dinov2") for at in (0, 300, 600)]
    np.testing.assert_array_equal(
        fastpe.resize_table(table, (3, 5), convention="dinov2"), np.concatenate(parts, axis=1)
    )


def test_identify_says_nothing_of_resized_tables() -> None:
    learned = table_of(24 * 24, 64)
    assert not fastpe.identify(learned)
    sinusoidal = fastpe.encode_grid((14, 14), 64, convention="mae2d").reshape(-1, 64)
    for convention in ("vit", "timm", "qwen3_vl"):
        assert not fastpe.identify(fastpe.resize_table(sinusoidal, (24, 24), convention=convention))
        assert not fastpe.identify(fastpe.resize_table(learned, (14, 14), convention=convention))


REFUSED: Refused = {
    (TypeError, "convention mode"): ["resize(table, (4, 4))", "taps((4, 4), (3, 3))", "taps((4, 4), (3, 3), antialias=True)"],
    (ValueError, "convention"): each("resize(table, (4, 4), convention='{}')", "vti | clip | mae2d | fairseq"),
    (TypeError, "convention"): ["resize(table, (4, 4), convention=3)"],
    (ValueError, "convention mode"): ["resize(table, (4, 4), convention='vit', mode='bicubic')"],
    (ValueError, "convention antialias"): ["resize(table, (4, 4), convention='vit', antialias=False)"],
    (ValueError, "convention scale_factor"): ["resize(table, (4, 4), convention='vit', scale_factor=2.0)"],
    (ValueError, "mode"): each("resize(table, (4, 4), mode='{}')", "cubic | area | lanczos"),
    (ValueError, "align_corners mode"): ["resize(table, (4, 4), mode='nearest', align_corners=True)"],
    (ValueError, "antialias align_corners"): ["resize(table, (4, 4), mode='bilinear', align_corners=True, antialias=True)"],
    (ValueError, "padding_mode"): each("resize(table, (4, 4), mode={})", "'bilinear', padding_mode='reflection' | 'tile', padding_mode='zeros'"),
    (TypeError, "antialias"): ["resize(table, (4, 4), mode='bilinear', antialias='no')"],
    (ValueError, "shape"): each("resize(table, {})", "(4,), mode='bilinear' | (4, 4), mode='linear' | (0, 4), mode='tile' | (2, 2, 2), mode='nearest'"),
    (TypeError, "shape"): each("resize(table, {}, mode='nearest')", "4 | (4.0, 4) | None"),
    (ValueError, "shape merge_size"): ["resize(table, (4, 5), mode='bilinear', merge_size=2)", "resize(table, (4,), mode='nearest', merge_size=2)"],
    (ValueError, "table class_tokens trained_shape"): [
        "resize(table[:8], (4, 4), mode='bilinear')",
        "resize(table, (4, 4), mode='bilinear', class_tokens=1)",
        "resize(table, (4, 4), mode='bilinear', class_tokens=9)",
        "resize(table, (4, 4), mode='bilinear', trained_shape=(2, 4))",
    ],
    (ValueError, "trained_shape"): ["resize(table, (4, 4), mode='bilinear', trained_shape=(9,))", "taps((4,), (3, 3), mode='nearest')"],
    (ValueError, "table"): ["resize(table.reshape(3, 3, 2), (4, 4), mode='bilinear')", "resize(table[0], (4, 4), mode='bilinear')"],
    (TypeError, "table"): ["resize(table.astype(int), (4, 4), mode='bilinear')", "resize(table * 1j, (4, 4), mode='bilinear')"],
    (ValueError, "scale_factor"): each("resize(table, (6, 6), scale_factor={})", "2.5, mode='bilinear' | -2.0, mode='bilinear' | (2.0, 2.0, 2.0), mode='nearest' | 2.0, mode='bilinear', align_corners=True"),
    (ValueError, "out"): [
        "resize(table, (3, 3), mode='bilinear', out=table)","resize(table, (4, 4), mode='bilinear', out=np.zeros((4, 4, 2), np.float32))"],
    (ValueError, "size_offset"): ["fastpe.ResizeConvention('mine', 'tile', size_offset=0.1)"],
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "named"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], named: str) -> None:
    table = table_of(9, 2)
    names = {"np": np, "fastpe": fastpe, "table": table, "resize": fastpe.resize_table, "taps": fastpe.resize_taps}
    check_refused(call, error, named, names)
