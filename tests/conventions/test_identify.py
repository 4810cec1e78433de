# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastpe


def _made_again(found: fastpe.Identification) -> npt.NDArray[Any]:
    names: dict[str, Any] = {"fastpe": fastpe, "dataclasses": dataclasses}
    return np.asarray(eval(found.code, names))


def _float32_angles(table_rows: int, d_model: int, convention: str, **knobs: Any) -> npt.NDArray[np.float32]:
    """The encoding as most systems compute it: float32 frequencies, float32 angles."""
    encoding = fastpe.PositionalEncoding(d_model, convention=convention, **knobs)
    first = encoding.convention.first_position
    positions = np.arange(first, first + table_rows, dtype=np.float32)
    angles = positions[:, None] * encoding.frequencies.astype(np.float32)
    exact = encoding.encode(table_rows, dtype=np.float64)
    result = exact.astype(np.float32)
    sines, cosines = np.sin(angles), np.cos(angles)
    if encoding.convention.layout == "interleaved":
        result[:, 0::2], result[:, 1::2] = sines, cosines
    else:
        result[:, : d_model // 2], result[:, d_model // 2 :] = sines, cosines
    assert np.abs(result - exact).max() > 1e-6, "the case should carry a float32 error worth tolerating"
    return result


def _defined() -> list[tuple[str, int]]:
    return [
        (name, d_model)
        for name, preset in fastpe.conventions.items()
        for d_model in (2, 3, 16, 65, 512)
        if not (d_model % 2 and preset.odd == "error")
        # Its 256th frequency, 2**255, is beyond what the library multiplies positions with.
        and not (name == "nerf" and d_model == 512)
    ]


@pytest.mark.parametrize("rows", [3, 1500])
@pytest.mark.parametrize(("name", "d_model"), _defined())
def test_every_preset_is_found_in_its_own_table(name: str, d_model: int, rows: int) -> None:
    table = fastpe.encode(rows, d_model, convention=name)
    found = fastpe.identify(table)
    assert found.matches
    assert found.largest_difference < 1e-7
    assert name in (found.convention.name, *found.equivalents)
    assert np.abs(_made_again(found) - table).max() < 1e-7


@pytest.mark.parametrize("largest", [36, pytest.param(130, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", list(fastpe.conventions))
def test_every_preset_is_found_at_every_width(name: str, largest: int) -> None:
    for d_model in range(1, largest + 1):
        try:
            table = fastpe.encode(5, d_model, convention=name)
        except ValueError:
            # A width that the convention does not define.
            continue
        if not table.any():
            # One column, of padding.
            continue
        found = fastpe.identify(table)
        assert found.matches
        assert name in (found.convention.name, *found.equivalents), d_model


@pytest.mark.parametrize(
    ("name", "knobs"),
    [
        ("vaswani", {"base": 500.0}),
        ("tensor2tensor", {"base": 500.0}),
        ("concat", {"freq_scale": 0.25}),
        ("timestep", {"freq_scale": 0.001, "base": 1e5}),
        ("ddpm", {"offset": 1000}),
        ("vaswani", {"offset": -3}),
        ("mlx", {"base": 200.0, "offset": 3}),
    ],
)
def test_knobs_are_found(name: str, knobs: dict[str, Any]) -> None:
    found = fastpe.identify(fastpe.encode(300, 64, convention=name, **knobs))
    assert found.matches
    assert name in (found.convention.name, *found.equivalents)
    preset = fastpe.conventions[name]
    assert found.base == knobs.get("base", preset.base)
    assert found.freq_scale == knobs.get("freq_scale", preset.freq_scale)
    assert found.first_position == preset.first_position + knobs.get("offset", 0)
    assert np.abs(_made_again(found) - fastpe.encode(300, 64, convention=name, **knobs)).max() < 1e-7


def test_an_amplitude_is_found() -> None:
    found = fastpe.identify(fastpe.encode(100, 64, convention="concat") * np.float32(0.3))
    assert (found.matches, found.convention.name, found.alpha) == (True, "concat", 0.3)
    assert np.abs(_made_again(found) - 0.3 * fastpe.encode(100, 64, convention="concat")).max() < 1e-7


@pytest.mark.parametrize("name", ["vaswani", "concat", "tensor2tensor"])
def test_float32_angles_are_tolerated(name: str) -> None:
    found = fastpe.identify(_float32_angles(5000, 128, name))
    assert found.matches
    assert found.convention == fastpe.conventions[name]
    assert 1e-6 < found.largest_difference <= found.tolerance < 2e-3


def test_one_frequency_denominator_is_told_from_the_other() -> None:
    # marian-nmt against its ports: the same layout, half - 1 against half.
    tables = [fastpe.encode(512, 512, convention=name) for name in ("tensor2tensor", "concat")]
    assert np.abs(tables[0] - tables[1]).max() > 0.7
    assert [fastpe.identify(table).convention.name for table in tables] == ["tensor2tensor", "concat"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_dtypes(dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16
    found = fastpe.identify(fastpe.encode(200, 64, convention="musicgen", dtype=kind))
    assert (found.matches, found.convention.name) == (True, "musicgen")


def test_zero_rows_are_left_out_and_named() -> None:
    table = fastpe.encode(50, 32, convention="concat")
    table[[1, 7]] = 0.0
    found = fastpe.identify(table)
    assert (found.matches, found.convention.name, found.zero_rows) == (True, "concat", (1, 7))
    assert "rows left at zero: 1, 7" in str(found)


@pytest.mark.parametrize("shape", [(1, 40, 16), (40, 1, 16)])
def test_axes_of_length_one_are_ignored(shape: tuple[int, ...]) -> None:
    assert fastpe.identify(fastpe.encode(40, 16).reshape(shape)).matches


def test_nothing_known_is_said_so() -> None:
    found = fastpe.identify(np.random.default_rng(1).normal(size=(60, 32)))
    assert not found.matches
    assert found.largest_difference > found.tolerance
    assert str(found).startswith("no known convention; the nearest is")
    swapped = fastpe.encode(60, 32)[:, ::-1]
    assert not fastpe.identify(swapped).matches


def test_a_defect_far_down_is_seen() -> None:
    table = fastpe.encode(5000, 16)
    table[4321, 5] += np.float32(0.5)
    found = fastpe.identify(table)
    assert not found.matches
    assert found.largest_difference == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (np.zeros((3, 4)), ValueError, "entirely zero"),
        (np.ones(4), ValueError, r"shape \[4\], expected \[L, d_model\]"),
        (np.ones((2, 3, 4)), ValueError, r"shape \[2, 3, 4\]"),
        (np.ones((0, 4)), ValueError, "at least one row"),
        (np.full((2, 4), np.nan), ValueError, "not finite"),
        (np.full((2, 4), "a"), TypeError, "expected real numbers"),
        (np.ones((2, 4), complex), TypeError, "expected real numbers"),
    ],
)
def test_what_is_no_table_is_refused(table: npt.NDArray[Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fastpe.identify(table)
