# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fastpe


def test_the_two_conventions() -> None:
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
