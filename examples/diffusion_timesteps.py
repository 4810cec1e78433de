# SPDX-License-Identifier: BSD-3-Clause
"""Timestep and guidance embeddings of a diffusion loop that runs without torch.

A UNet takes one embedding for the timestep of each step, and another one for the guidance scale.

    python examples/diffusion_timesteps.py
"""

from __future__ import annotations

import numpy as np

import fastpe


def main() -> None:
    """Embed the inputs of a UNet for 20 steps, and compare with the float64 formula."""
    timesteps = np.linspace(999, 0, 20)
    guidance_scale = 7.5

    frequency = 10000.0 ** (-np.arange(160) / 160)
    step_embedding = np.empty((2, 320), np.float32)  # conditional and unconditional
    largest = 0.0
    for timestep in timesteps:
        fastpe.timestep_embedding(
            [timestep, timestep], 320, flip_sin_to_cos=True, downscale_freq_shift=0, out=step_embedding
        )
        exact = np.concatenate([np.cos(timestep * frequency), np.sin(timestep * frequency)])
        largest = max(largest, float(np.abs(step_embedding - exact).max()))
    # Half a unit in the last place below 1.
    assert largest < 2.0**-25 + 1e-12
    print(f"{len(timesteps)} timesteps {list(step_embedding.shape)}: largest error {largest:.3g}")

    guidance = fastpe.timestep_embedding(
        [(guidance_scale - 1) * 1000], 256, flip_sin_to_cos=False, downscale_freq_shift=1
    )
    assert guidance.dtype == np.float32
    print(f"guidance {list(guidance.shape)} {guidance.dtype}: no float64 that the graph would refuse")


if __name__ == "__main__":
    main()
