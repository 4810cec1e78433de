# SPDX-License-Identifier: BSD-3-Clause
"""The rotary inputs of Qwen2-VL for one image and text: its vision part, the prompt, and the tokens that follow.

The host makes position ids first, and tables of them then.

    python examples/qwen2_vl_ids.py
"""

from __future__ import annotations

import numpy as np

import fastpe

VISION_HEAD_DIM, TEXT_HEAD_DIM, THETA = 80, 128, 1e6  # rope_theta of config.json
PATCH, MERGE_SIZE = 14, 2


def main() -> None:
    """Make the tables, and check the properties that a model relies on."""
    vision = fastpe.rotary_layouts["qwen2_vl_vision"]
    text = fastpe.rotary_layouts["qwen2_vl"]

    # An image of 336 x 504 pixels, as the processor resizes it.
    grid = (1, 336 // PATCH, 504 // PATCH)
    patches = vision.positions(grid, merge_size=MERGE_SIZE)
    vision_cos, _ = vision.tables(patches, VISION_HEAD_DIM)
    print(f"vision: ids {list(patches.shape)}, tables {list(vision_cos.shape)}")
    # The four patches of a block, which become one token, follow each other.
    assert patches[:4].tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]

    # "<|vision_start|> image <|vision_end|> What is this?" in a template: text, image, text.
    ids = text.positions(15, grid, 12, merge_size=MERGE_SIZE)
    cos, sin = text.tables(ids, TEXT_HEAD_DIM, theta=THETA)
    print(f"prompt: ids {list(ids.shape)}, tables {list(cos.shape)}")
    position_ids = np.moveaxis(ids, -1, 0)[:, None]  # [3, B, L], as a graph by Hugging Face's names takes them
    assert position_ids.shape == (3, 1, len(ids))

    # One token per step: its three ids are equal, so an embedding of one coordinate has the same bits. It keeps rows.
    following = int(ids.max()) + 1
    decoder = fastpe.RotaryEmbedding(TEXT_HEAD_DIM, interleaved=False, base=THETA, form="tile", max_len=4096)
    for step in range(3):
        cos, sin = text.tables(text.positions(1, start=following + step), TEXT_HEAD_DIM, theta=THETA)
        kept_cos, kept_sin = decoder.tables(1, offset=following + step)
        assert np.array_equal(cos, kept_cos)
        assert np.array_equal(sin, kept_sin)
        print(f"token {len(ids) + step} of the sequence is at position {following + step}")


if __name__ == "__main__":
    main()
