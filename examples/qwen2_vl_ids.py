# SPDX-License-Identifier: BSD-3-Clause
"""The rotary inputs of Qwen2-VL from a config.json, input_ids, grids and an attention mask.

Prompts with images are rotated first, and then the tokens that follow.

    python examples/qwen2_vl_ids.py [CONFIG_JSON]
"""

from __future__ import annotations

import json
import pathlib
import sys

import numpy as np

import fastpe

# The part of Qwen2-VL-7B-Instruct's config.json that is read here.
CONFIG = """{
  "model_type": "qwen2_vl", "hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4,
  "rope_theta": 1000000.0, "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
  "vision_start_token_id": 151652, "vision_end_token_id": 151653, "image_token_id": 151655, "video_token_id": 151656,
  "vision_config": {"embed_dim": 1280, "num_heads": 16, "spatial_merge_size": 2}
}"""
PADDING = 151643


def main(config_json: str | None = None) -> None:
    """Rotate a batch of two prompts, and three tokens that follow each."""
    config = json.loads(pathlib.Path(config_json).read_text("utf-8") if config_json else CONFIG)

    # "<|vision_start|> image <|vision_end|> What is this?" with two images, and with one, as from the processor.
    grids = np.array([[1, 24, 36], [1, 12, 8], [1, 24, 36]])  # in patches
    images = [[config["image_token_id"]] * int(grid.prod() // 4) for grid in grids]
    start, end = config["vision_start_token_id"], config["vision_end_token_id"]
    question = [3838, 374, 419, 30]
    prompts = [[start, *images[0], end, start, *images[1], end, *question], [start, *images[2], end, *question]]
    length = max(map(len, prompts))
    input_ids = np.array([[PADDING] * (length - len(prompt)) + prompt for prompt in prompts])
    attention_mask = (input_ids != PADDING).astype(int)

    # The vision encoder has tables of its own, in the order of patches.
    patches, sizes = fastpe.vision_inputs(config, grid_thw=grids)["position_ids"], config["vision_config"]
    vision = fastpe.RotaryLayout.from_config(config, vision=True)
    rope = fastpe.RotaryEmbedding.from_layout(vision, sizes["embed_dim"] // sizes["num_heads"])
    cos, _ = rope.tables(patches, form="tile")
    print(f"vision: ids {list(patches.shape)}, tables {list(cos.shape)}")

    inputs = fastpe.text_inputs(config, input_ids, attention_mask=attention_mask, image_grid_thw=grids)
    ids, deltas = inputs["position_ids"], inputs["rope_deltas"]
    print(f"prompts: position_ids {list(ids.shape)}, rope_deltas {deltas.ravel().tolist()}")

    # A graph takes ids or tables; queries and keys in NumPy are rotated in place.
    rope = fastpe.RotaryEmbedding.from_config(config, mrope=True)
    positions = np.moveaxis(ids, 0, -1)
    cos, _ = rope.tables(positions)
    heads, key_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head_dim = config["hidden_size"] // heads
    rng = np.random.default_rng(0)
    q = rng.standard_normal((2, heads, length, head_dim), dtype=np.float32)
    k = rng.standard_normal((2, key_heads, length, head_dim), dtype=np.float32)
    rope.rotate_(q, k, positions=positions, seq_axis=-2)
    print(f"tables {list(cos.shape)}, queries {list(q.shape)}")

    # One token per step: its coordinates are equal, so the embedding of one coordinate has the same bits.
    decoder = fastpe.RotaryEmbedding.from_config(config, max_len=4096)
    past = attention_mask.sum(axis=1)
    for step in range(3):
        offset = past + step + deltas[:, 0]
        q = rng.standard_normal((2, heads, 1, head_dim), dtype=np.float32)
        following = fastpe.text_inputs(config, [[question[0]]] * 2, past=past + step, rope_deltas=deltas)
        expected = rope.rotate(q, positions=np.moveaxis(following["position_ids"], 0, -1), seq_axis=-2)
        assert np.array_equal(decoder.rotate_(q, offset=offset, seq_axis=-2), expected)
        print(f"step {step}: the tokens are at {offset.tolist()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
