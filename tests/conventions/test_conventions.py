# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import copy
import dataclasses
import pickle
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fastpe
from fastpe import Convention, GridConvention

from ..oracles.refusals import naming

REGISTRIES = ["conventions", "grid_conventions", "resize_conventions", "rotary_layouts"]


@pytest.mark.parametrize("name_of_registry", REGISTRIES)
def test_presets_are_frozen_hashable_picklable_and_shown(name_of_registry: str) -> None:
    registry = getattr(fastpe, name_of_registry)
    for name, preset in registry.items():
        assert preset.name == name
        field = "name"
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(preset, field, "other")
        pickled = pickle.dumps(preset)
        assert b"fastpe." not in pickled
        assert pickle.loads(pickled) == preset
        assert hash(copy.deepcopy(preset)) == hash(preset)
        assert eval(repr(preset), {"fastpe": fastpe, **vars(fastpe)}) == preset
        assert str(preset) == str(pickle.loads(pickled)) == preset.__doc__
        assert str(preset).startswith(f"{name}: {preset.formula}")
        assert all(text in str(preset) for text in (*preset.serves, preset.source))
        assert preset.serves
    assert [line.split()[0] for line in repr(registry).splitlines()[:-1]] == list(registry)
    with pytest.raises(TypeError):
        registry["mine"] = preset


def test_formulas_tell_orders_of_columns_apart() -> None:
    orders: list[Any] = ["axis", "function", "function_frequency", "frequency", "pair"]
    grids = [GridConvention("mine", fastpe.conventions["concat"], outermost=outermost) for outermost in orders]
    assert len({grid.formula for grid in grids}) == 5


def test_overrides_and_replace_are_the_same() -> None:
    replaced = dataclasses.replace(fastpe.conventions["timestep"], base=500.0, freq_scale=0.5)
    expected = fastpe.encode(20, 16, convention=replaced)
    result = fastpe.encode(20, 16, convention="timestep", base=500.0, freq_scale=0.5)
    assert (result == expected).all()
    frequencies = 0.5 * 500.0 ** (-np.arange(8) / 8)
    assert np.allclose(
        fastpe.encode(20, 16, convention="timestep", frequencies=frequencies), expected, rtol=0, atol=1e-6
    )


def test_an_own_convention_needs_nothing_but_data() -> None:
    mine = Convention("mine", layout="concatenated", cosine_first=True, denominator=2.0, base=4.0, alpha=0.5)
    table = fastpe.encode([1.0], 4, convention=mine, dtype=np.float64)[0]
    assert np.allclose(table, 0.5 * np.array([np.cos(1.0), np.cos(0.5), np.sin(1.0), np.sin(0.5)]), rtol=0, atol=1e-15)
    grid = GridConvention("mine2d", mine, axis_order=(1, 0))
    cell = fastpe.encode_grid((2, 3), 8, convention=grid, dtype=np.float64)[1, 2]
    assert (cell == fastpe.encode([2.0, 1.0], 4, convention=mine, dtype=np.float64).ravel()).all()


VASWANI = fastpe.conventions["vaswani"]
MAE2D = fastpe.grid_conventions["mae2d"]


def test_numbers_of_any_kind_make_the_same_convention() -> None:
    mine = dataclasses.replace(
        VASWANI, base=500.0, denominator_offset=1.0, alpha=2.0, first_position=3, cosine_first=True
    )
    for kinds in (
        {
            "base": 500,
            "denominator_offset": True + 0,
            "alpha": 2,
            "first_position": np.int8(3),
            "cosine_first": np.True_,
        },
        {"base": np.float32(500), "denominator_offset": Fraction(1), "alpha": np.float16(2)},
        {"base": np.array(500), "denominator_offset": np.uint8(1), "denominator": None},
    ):
        same = dataclasses.replace(mine, **kinds)
        assert (same, hash(same), repr(same)) == (mine, hash(mine), repr(mine))
    listed: Any = [1, 0]
    assert hash(dataclasses.replace(MAE2D, axis_order=listed)) == hash(MAE2D)


@pytest.mark.parametrize("name", list(fastpe.conventions))
def test_every_width_is_defined_or_refused_in_words(name: Any) -> None:
    preset = fastpe.conventions[name]
    for d_model in (*range(1, 20), *range(40, 131, 13)):
        if d_model % 2 and preset.odd == "error":
            with pytest.raises(ValueError, match=naming("d_model")):
                fastpe.encode(3, d_model, convention=name)
            continue
        if name == "nerf" and d_model > 90:
            # 2**45 and beyond.
            with pytest.raises(ValueError, match=naming("d_model")):
                fastpe.encode(3, d_model, convention=name)
            continue
        count, denominator, scale = preset._numbers(d_model)
        k = np.arange(count) / denominator
        angles = (preset.first_position + np.arange(3.0))[:, None] * preset.freq_scale * preset.base**-k
        functions = [np.cos(angles), np.sin(angles)] if preset.cosine_first else [np.sin(angles), np.cos(angles)]
        expected = np.zeros((3, d_model + 1))
        if preset.layout == "interleaved":
            expected[:, 0 : 2 * count : 2], expected[:, 1 : 2 * count : 2] = functions
        else:
            expected[:, : 2 * count] = np.concatenate(functions, axis=1)
        table = fastpe.encode(3, d_model, convention=name, dtype=np.float64)
        sines, cosines = preset._columns(d_model)
        zero = fastpe.encode([0], d_model, convention=name, dtype=np.float64)[0]
        assert (zero[sines] == 0).all()
        assert (zero[cosines] == scale).all()
        assert len(zero[sines]) + len(zero[cosines]) == min(2 * count, d_model)
        # NumPy rounds its angles, of which those of depthcharge, NeRF and Stable Audio are the largest.
        np.testing.assert_allclose(
            table, scale * expected[:, :d_model], rtol=0, atol=1e-15 + 8 * np.spacing(np.abs(angles).max(initial=1.0))
        )


def test_timesteps_of_the_two_conventions() -> None:
    t = np.linspace(0, 999, 7)
    assert (
        fastpe.timestep_embedding(t, 8, flip_sin_to_cos=False, downscale_freq_shift=1)
        == fastpe.encode(t, 8, convention="ddpm")
    ).all()
    unet = fastpe.timestep_embedding(t, 8, flip_sin_to_cos=True, downscale_freq_shift=0)
    assert (unet == fastpe.encode(t, 8, convention="timestep")).all()
    slower = fastpe.timestep_embedding(
        t, 8, flip_sin_to_cos=False, downscale_freq_shift=0.5, scale=2.0, max_period=5000, dtype=np.float64
    )
    angles = 2 * t[:, None] * 5000 ** (-np.arange(4) / 3.5)
    np.testing.assert_allclose(slower, np.concatenate([np.sin(angles), np.cos(angles)], 1), rtol=0, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_timesteps_are_taken_exactly(dtype: Any) -> None:
    t = np.array([0.5, 998.39]).astype(dtype)
    assert (
        fastpe.timestep_embedding(t, 8, flip_sin_to_cos=False, downscale_freq_shift=1)
        == fastpe.timestep_embedding(t.astype(float), 8, flip_sin_to_cos=False, downscale_freq_shift=1)
    ).all()
