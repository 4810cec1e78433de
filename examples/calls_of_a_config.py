# SPDX-License-Identifier: BSD-3-Clause
"""Run what `fastpe model` prints for a config.json of Qwen2.5-VL, of Qwen3.5 and of a video model of diffusers.

A program that knows none of these models takes the calls from the command's JSON. What they give is compared with the formulas
of the models in NumPy; the tests compare it with transformers and diffusers.

    python examples/calls_of_a_config.py
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import fastpe

TOKENS = {"image_token_id": 96, "video_token_id": 95, "vision_start_token_id": 94, "vision_end_token_id": 93}
QWEN2_5_VL: dict[str, Any] = {
    "model_type": "qwen2_5_vl",
    **TOKENS,
    "text_config": {
        "hidden_size": 256,
        "num_attention_heads": 2,
        "num_hidden_layers": 4,
        "rope_theta": 1e6,
        "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    },
    "vision_config": {
        "hidden_size": 160,
        "num_heads": 2,
        "depth": 4,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "window_size": 56,
        "fullatt_block_indexes": [1, 3],
        "tokens_per_second": 2,
    },
}
QWEN3_5: dict[str, Any] = {
    "model_type": "qwen3_5",
    **TOKENS,
    "text_config": {
        "hidden_size": 128,
        "num_attention_heads": 2,
        "num_hidden_layers": 4,
        "head_dim": 64,
        "rope_parameters": {"rope_theta": 1e7, "partial_rotary_factor": 0.5, "mrope_section": [6, 5, 5]},
    },
    "vision_config": {"hidden_size": 160, "num_heads": 2, "depth": 2, "patch_size": 16, "spatial_merge_size": 2},
}
COSMOS = {"_class_name": "CosmosTransformer3DModel", "attention_head_dim": 64, "rope_scale": [1.0, 3.0, 3.0]}

# A prompt of four tokens, an image of 4 x 6 patches that become 2 x 3 tokens, and three tokens.
GRID = np.array([[1, 4, 6]])
PROMPT = np.array([[11, 12, 13, 94, *[96] * 6, 93, 14, 15]])


class Host:
    """The calls for a config.json, and what they name."""

    def __init__(self, config: Mapping[str, Any], **names: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "config.json")
            path.write_text(json.dumps(config), "utf-8")
            command = [sys.executable, "-m", "fastpe", "model", str(path), "--json"]
            said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        assert not said["not_known"]
        self.needs, self.names = (
            said["needs"],
            {"fastpe": fastpe, "np": np, "config": fastpe.ModelConfig(config), **names},
        )

    def get(self, name: str, part: str, need: str, call: int = -1) -> Iterator[Any]:
        """What the calls for each kind of layer assign to `name`: all of them up to the one of this number."""
        for each in self.needs:
            if (each["part"], each["need"]) == (part, need):
                for statement in each["calls"] if call < 0 else each["calls"][call : call + 1]:
                    exec(statement, self.names)  # noqa: S102
                yield self.names[name]


class Model:
    """What an engine needs of a model of text and images, for the prompt and the token after it."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        empty: dict[str, Any] = {"video_grid_thw": np.zeros((0, 3), int), "second_per_grid": []}
        host = Host(config, input_ids=PROMPT, image_grid_thw=GRID, grid_thw=GRID, **empty)
        host.names |= {"queries": PROMPT.shape[1], "cached": 0, "valid": np.ones_like(PROMPT)}
        (self.mask,) = host.get("mask", "text", "mask")
        (self.rope,) = host.get("rope", "text", "rotates", 0)
        (prompt,) = host.get("inputs", "text", "ids", 0)
        host.names |= {"input_ids": [[16]], "past": PROMPT.shape[1], "rope_deltas": prompt["rope_deltas"]}
        (following,) = host.get("inputs", "text", "ids", 1)
        self.position_ids, self.next_ids = prompt["position_ids"], following["position_ids"]
        (self.patches,) = host.get("inputs", "images", "inputs")
        self.patch_masks = [*host.get("mask", "images", "mask")]
        (self.vision_rope,) = host.get("rope", "images", "rotates")

    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Cosines and sines of the prompt, [1, L, frequencies]."""
        return self.rope.tables(np.moveaxis(self.position_ids, 0, -1), form="halves")


def check(config: Mapping[str, Any], axes: np.ndarray, base: float) -> None:
    """Compare with the formulas; `axes` says which coordinate turns which frequency."""
    model, length = Model(config), PROMPT.shape[1]
    rows, columns = np.divmod(np.arange(6), 3)
    image = 4 + np.stack([np.zeros(6, int), rows, columns])
    after = 4 + 3 + np.arange(3)  # behind the largest coordinate of the image
    ids = np.concatenate([np.tile(np.arange(4), (3, 1)), image, np.tile(after, (3, 1))], axis=1)
    assert np.array_equal(model.position_ids[:, 0], ids)
    assert (model.next_ids == after[-1] + 1).all()
    assert np.array_equal(model.mask[0, 0], np.tri(length, dtype=bool))
    angles = ids[axes].T * base ** (-np.arange(len(axes)) / len(axes))
    assert all(
        np.abs(ours[0] - exact).max() < 1e-6
        for ours, exact in zip(model.tables(), (np.cos(angles), np.sin(angles)), strict=True)
    )
    # Patches in the order of their blocks: each block of 2 x 2 patches becomes a token.
    blocks = np.indices((2, 3, 2, 2)).reshape(4, -1)
    assert np.array_equal(model.patches["position_ids"].T, [2 * blocks[0] + blocks[2], 2 * blocks[1] + blocks[3]])
    assert model.patch_masks[0].all()  # they are one image
    for mask in model.patch_masks[1:]:  # windows of 4 x 4 patches
        window = np.repeat([0, 1], [16, 8])
        assert np.array_equal(mask, window[:, None] == window)
    print(f"{config['model_type']}: ids {list(model.position_ids.shape)}, {model.rope.rotary_dim} columns are rotated")


def check_cosmos() -> None:
    """Compare with the formula: a base for each coordinate, and frames counted at 24 per second."""
    host = Host(COSMOS, frames=3, H=4, W=6, fps=16)
    ((rope,), (ids,)) = host.get("rope", "model", "rotates"), host.get("position_ids", "model", "ids")
    assert ids[-1].tolist() == [2 * 24 / 16, 3, 5]
    angles, widths = [], (24, 20, 20)
    for coordinate, width, scale in zip(ids.T, widths, COSMOS["rope_scale"], strict=True):
        base = 10000.0 * scale ** (width / (width - 2))
        angles.append(np.multiply.outer(coordinate, base ** (-np.arange(0, width, 2) / width)))
    exact = np.concatenate(angles, axis=-1)
    cos, sin = rope.tables(ids, form="halves")
    assert max(np.abs(cos - np.cos(exact)).max(), np.abs(sin - np.sin(exact)).max()) < 1e-6
    print(f"{COSMOS['_class_name']}: ids {list(ids.shape)}, tables {list(cos.shape)}")


def main() -> None:
    """Check three files."""
    check(QWEN2_5_VL, np.repeat([0, 1, 2], [16, 24, 24]), 1e6)
    takes_turns = np.array([k % 3 if k < 15 else 0 for k in range(16)])
    check(QWEN3_5, takes_turns, 1e7)
    check_cosmos()


if __name__ == "__main__":
    main()
