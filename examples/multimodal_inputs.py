# SPDX-License-Identifier: BSD-3-Clause
"""What the exported graphs of Idefics 3 and Qwen3-Omni take besides pixels, features and tokens.

Idefics 3's encoder takes images of several sizes, padded, and one row of its learned grid for each patch. Qwen3-Omni's takes
chunks of a spectrogram; its language model takes ids of three coordinates, and where images are.

    python examples/multimodal_inputs.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import fastpe

IDEFICS3: dict[str, Any] = {
    "model_type": "idefics3",
    "image_token_id": 5,
    "text_config": {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 2},
    "vision_config": {"model_type": "idefics3_vision", "image_size": 364, "patch_size": 14},
}
QWEN3_OMNI: dict[str, Any] = {
    "model_type": "qwen3_omni_moe",
    "thinker_config": {
        "model_type": "qwen3_omni_moe_thinker",
        "audio_token_id": 90,
        "image_token_id": 91,
        "video_token_id": 92,
        "audio_start_token_id": 93,
        "audio_end_token_id": 94,
        "vision_start_token_id": 95,
        "vision_end_token_id": 96,
        "position_id_per_seconds": 13,
        "text_config": {"hidden_size": 256, "num_attention_heads": 2, "head_dim": 128},
        "vision_config": {"hidden_size": 160, "num_heads": 2, "patch_size": 16, "spatial_merge_size": 2},
        "audio_config": {"d_model": 64, "n_window": 50, "n_window_infer": 800},
    },
}


def idefics3() -> None:
    """Two images of 25 x 17 and 11 x 19 patches, in one batch."""
    sizes = np.array([[25, 17], [11, 19]])
    inputs = fastpe.vision_inputs(IDEFICS3, target_sizes=sizes)
    side = 26  # rows and columns of the learned grid
    for ids, mask, (height, width) in zip(inputs["position_ids"], inputs["patch_attention_mask"], sizes, strict=True):
        # Where a patch begins in its image says in which row and column of the grid it is.
        row, column = (np.arange(count) * side // count for count in (height, width))
        assert np.array_equal(mask, (np.arange(25)[:, None] < height) & (np.arange(19) < width))
        assert np.array_equal(ids[mask.ravel()], np.add.outer(row * side, column).ravel())
        assert (ids[~mask.ravel()] == 0).all()
    print(
        f"Idefics 3: position_ids {list(inputs['position_ids'].shape)}, for patches of {len(sizes)} images side by side"
    )


def qwen3_omni() -> None:
    """A clip of 3.3 seconds, an image of 4 x 6 patches and text."""
    thinker, frames, grid = QWEN3_OMNI["thinker_config"], 330, np.array([[1, 4, 6]])
    sound = fastpe.audio_inputs(QWEN3_OMNI, feature_lens=[frames])
    assert sound["chunk_lengths"].tolist() == [100, 100, 100, 30]
    # Three convolutions halve each chunk.
    lengths = sound["chunk_lengths"]
    for _ in range(3):
        lengths = (lengths - 1) // 2 + 1
    assert sound["aftercnn_lens"].tolist() == [lengths.sum()]
    assert sound["padded_mask_after_cnn"].sum(axis=1).tolist() == lengths.tolist()
    print(f"Qwen3-Omni: {frames} frames in chunks of {sound['chunk_lengths'].tolist()} become {lengths.sum()} tokens")

    clip = [
        thinker["audio_start_token_id"],
        *[thinker["audio_token_id"]] * int(lengths.sum()),
        thinker["audio_end_token_id"],
    ]
    image = [thinker["vision_start_token_id"], *[thinker["image_token_id"]] * 6, thinker["vision_end_token_id"]]
    prompt = np.array([[11, 12, *clip, *image, 13]])
    inputs = fastpe.text_inputs(QWEN3_OMNI, prompt, image_grid_thw=grid)
    start = 2 + len(clip) + 1  # tokens of sound count as those of text
    rows, columns = np.divmod(np.arange(6), 3)
    before, after = np.tile(np.arange(start), (3, 1)), np.tile(start + 3 + np.arange(2), (3, 1))
    expected = np.concatenate([before, start + np.stack([0 * rows, rows, columns]), after], axis=1)
    assert np.array_equal(inputs["position_ids"][:, 0], expected)
    assert np.array_equal(inputs["visual_pos_masks"], prompt == thinker["image_token_id"])
    following = fastpe.text_inputs(QWEN3_OMNI, [[14]], past=prompt.shape[1], rope_deltas=inputs["rope_deltas"])
    assert (following["position_ids"] == start + 5).all()
    # openvino.genai keeps the positions of only the text in a fourth row.
    four = fastpe.text_inputs(QWEN3_OMNI, prompt, image_grid_thw=grid, text_row="last")["position_ids"]
    assert np.array_equal(four[3, 0], np.arange(prompt.shape[1]))
    print(
        f"Qwen3-Omni: position_ids {list(inputs['position_ids'].shape)}, rope_deltas {inputs['rope_deltas'].ravel().tolist()}"
    )


def main() -> None:
    """Compare what both take with their formulas."""
    idefics3()
    qwen3_omni()


if __name__ == "__main__":
    main()
