# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import inspect
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import fastpe


def _formula(
    t: npt.ArrayLike, d: int, flip: bool, shift: float, scale: float, period: float
) -> npt.NDArray[np.float64]:
    half = d // 2
    angles = scale * np.asarray(t, float)[:, None] * period ** (-np.arange(half) / (half - shift))
    parts = [np.cos(angles), np.sin(angles)] if flip else [np.sin(angles), np.cos(angles)]
    return np.concatenate([*parts, np.zeros((len(angles), d % 2))], axis=1)


def test_names_and_defaults_are_those_of_diffusers() -> None:
    parameters = list(inspect.signature(fastpe.timestep_embedding).parameters.values())[:6]
    assert [(p.name, p.default) for p in parameters[2:]] == [
        ("flip_sin_to_cos", False),
        ("downscale_freq_shift", 1),
        ("scale", 1),
        ("max_period", 10000),
    ]
    assert [p.name for p in parameters[:2]] == ["timesteps", "embedding_dim"]


@pytest.mark.parametrize("d", [4, 7, 320])
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("shift", [0, 1, 0.5])
def test_formula(d: int, flip: bool, shift: float) -> None:
    t = [0, 1, 2.5, 999.75]
    result = fastpe.timestep_embedding(
        t, d, flip_sin_to_cos=flip, downscale_freq_shift=shift, scale=2.0, max_period=5000, dtype=np.float64
    )
    assert np.abs(result - _formula(t, d, flip, shift, 2.0, 5000)).max() < 1e-11


def test_the_two_conventions() -> None:
    t = np.linspace(0, 999, 7)
    assert (fastpe.timestep_embedding(t, 8) == fastpe.encode(t, 8, convention="ddpm")).all()
    unet = fastpe.timestep_embedding(t, 8, flip_sin_to_cos=True, downscale_freq_shift=0)
    assert (unet == fastpe.encode(t, 8, convention="timestep")).all()
    assert np.abs(unet - fastpe.timestep_embedding(t, 8)).max() > 1


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_timesteps_are_taken_exactly(dtype: Any) -> None:
    t = np.array([0.5, 998.39]).astype(dtype)
    assert (fastpe.timestep_embedding(t, 8) == fastpe.timestep_embedding(t.astype(float), 8)).all()
