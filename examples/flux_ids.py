# SPDX-License-Identifier: BSD-3-Clause
"""The rotary tables of Flux for a host whose compiled graph takes cosines and sines.

The graph is compiled for one size of images, and its input buffers do not move. The tables depend only on the size,
so they are made once, and not in each denoising step.

    python examples/flux_ids.py
"""

from __future__ import annotations

import numpy as np

import fastpe

HEAD_DIM, TEXT_TOKENS = 128, 512
PIXELS_PER_PATCH = 16  # 8 of the autoencoder, times 2 of the latent patches


def exact_tables(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute Flux's formula in float64: 16, 56 and 56 columns for the three ids, every value twice."""
    parts = []
    for axis, width in enumerate((16, 56, 56)):
        omega = 1.0 / 10000.0 ** (np.arange(0, width, 2) / width)
        parts.append(np.repeat(ids[:, axis, None] * omega, 2, axis=-1))
    angles = np.concatenate(parts, axis=-1)
    return np.cos(angles), np.sin(angles)


class Host:
    """Owns the graph's inputs for images of one size."""

    def __init__(self, height: int, width: int) -> None:
        layout = fastpe.rotary_layouts["flux"]
        self.ids = layout.positions(TEXT_TOKENS, (height // PIXELS_PER_PATCH, width // PIXELS_PER_PATCH))
        shape = (len(self.ids), HEAD_DIM)
        self.cos, self.sin = np.empty(shape, np.float16), np.empty(shape, np.float16)
        rope = fastpe.RotaryEmbedding.from_layout("flux", HEAD_DIM)
        rope.tables(self.ids, form="repeat", out=(self.cos, self.sin))


def main() -> None:
    """Fill the inputs for three sizes and compare them with the formula."""
    for height, width in ((512, 512), (768, 1360), (1024, 1024)):
        host = Host(height, width)
        error = max(
            float(np.abs(ours - exact).max())
            for ours, exact in zip((host.cos, host.sin), exact_tables(host.ids), strict=True)
        )
        assert error < 2.0**-12 + 1e-12  # half a unit of float16 below 1
        sizes = f"ids {list(host.ids.shape)}, tables {list(host.cos.shape)} {host.cos.dtype}"
        print(f"{height} x {width}: {sizes}, largest error {error:.3g}")


if __name__ == "__main__":
    main()
