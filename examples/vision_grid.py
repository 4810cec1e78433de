# SPDX-License-Identifier: BSD-3-Clause
"""Two-dimensional positions for patches of images whose sizes change.

The encoding of a grid is computed for each size, so there is no table to resize.

    python examples/vision_grid.py
"""

from __future__ import annotations

import numpy as np

import fastpe

D_MODEL = 384


def exact_grid(height: int, width: int) -> np.ndarray:
    """Compute the formula of masked autoencoders in float64: x in the first half, y in the second, sin | cos each."""
    frequency = 10000.0 ** (-np.arange(D_MODEL // 4) / (D_MODEL // 4))

    def encode(position: np.ndarray) -> np.ndarray:
        angle = position.reshape(-1, 1) * frequency
        return np.concatenate([np.sin(angle), np.cos(angle)], axis=1)

    y, x = np.mgrid[:height, :width]
    return np.concatenate([encode(x), encode(y)], axis=1)


def main() -> None:
    """Add positions to batches of patches of several sizes."""
    rng = np.random.default_rng(0)
    for height, width in ((14, 14), (24, 16), (70, 70)):
        patches = rng.standard_normal((4, height * width, D_MODEL), dtype=np.float32)
        exact = patches + exact_grid(height, width)
        grid = fastpe.encode_grid((height, width), D_MODEL, convention="mae2d")
        patches += grid.reshape(-1, D_MODEL)
        error = float(np.abs(patches - exact).max())
        assert error < 1e-6
        print(f"{height} x {width} patches {list(patches.shape)}: largest error {error:.3g}")


if __name__ == "__main__":
    main()
