# SPDX-License-Identifier: BSD-3-Clause
"""An embedding takes heads, or the part of them that is rotated, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.refusals import naming

HALF = fastpe.RotaryEmbedding(8, interleaved=False, head_dim=16)


@pytest.mark.parametrize("columns", [9, 15, 17, 64])
def test_other_widths_are_refused_before_anything_is_written(columns: int) -> None:
    x, k = np.ones((2, 3, 4, columns), np.float32), np.ones((2, 3, 4, 16), np.float32)
    calls: list[Any] = [
        lambda: HALF.rotate_(x, seq_axis=-2),
        lambda: HALF.rotate_(k, x, seq_axis=-2),
        lambda: HALF.rotate(x, seq_axis=-2),
        lambda: HALF.shift_(x, by=1, seq_axis=-2),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=naming(str(columns))):
            call()
    assert (x == 1).all()
    assert (k == 1).all()


@pytest.mark.parametrize(
    ("config", "head_dim", "rotary_dim"),
    [
        ({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32}, 128, 128),
        ({"model_type": "gptj"}, 256, 64),
        ({"model_type": "gpt_neox", "hidden_size": 512, "num_attention_heads": 8}, 64, 16),
        ({"model_type": "deepseek_v3"}, 64, 64),
        ({"model_type": "glm4_moe", "head_dim": 128}, 128, 64),
    ],
)
def test_a_config_says_it(config: dict[str, Any], head_dim: int, rotary_dim: int) -> None:
    rope = fastpe.RotaryEmbedding.from_config(config)
    assert (rope.head_dim, rope.rotary_dim) == (head_dim, rotary_dim)
    with pytest.raises(ValueError, match="head"):
        rope.rotate_(np.ones((2, 16, 32 * head_dim), np.float32), seq_axis=-2)
