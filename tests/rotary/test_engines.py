# SPDX-License-Identifier: BSD-3-Clause
"""The calls of docs/engines.md make what the formulas of the engines make.

tests/peers/test_rotary.py runs the operators of ONNX Runtime with the same calls.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastpe

from ..oracles import docs_pages

Array = npt.NDArray[np.float64]

ROWS, POSITION, POSITIONS = 40, 17, 5 + np.arange(12).reshape(2, 6)
BASE = 10000.0

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
EMBEDDINGS = {
    "plain": fastpe.RotaryEmbedding(16, interleaved=False),
    "interleaved": fastpe.RotaryEmbedding(16, interleaved=True),
    "yarn": fastpe.RotaryEmbedding(16, interleaved=False, scaling=YARN),
}


class Angles:
    """What an engine's formula starts from, in float64: positions of any shape times frequencies."""

    def __init__(self, rope: fastpe.RotaryEmbedding, positions: Any) -> None:
        self.radians = np.asarray(positions)[..., None] * rope.frequencies
        self.cos = np.cos(self.radians) * rope.attention_factor
        self.sin = np.sin(self.radians) * rope.attention_factor

    @property
    def halves(self) -> tuple[Array, Array]:
        return self.cos, self.sin

    @property
    def tiled(self) -> tuple[Array, Array]:
        return np.concatenate([self.cos] * 2, axis=-1), np.concatenate([self.sin] * 2, axis=-1)


def cache(rope: fastpe.RotaryEmbedding) -> tuple[Array, Array]:
    """One row per position, from position 0 on."""
    return Angles(rope, range(ROWS)).halves


def angles(rope: fastpe.RotaryEmbedding) -> Array:
    """Those of one position, as tables have them."""
    row: Array = rope.tables([POSITION], form="angles", dtype=np.float64)[0]
    return row


def cosines_then_sines(rope: fastpe.RotaryEmbedding) -> tuple[Array]:
    return (np.concatenate(cache(rope), axis=-1),)


def float2(rope: fastpe.RotaryEmbedding) -> tuple[Array]:
    """Pairs in memory, position after position."""
    return (np.stack(cache(rope), axis=-1).reshape(1, -1),)


def ascend(rope: fastpe.RotaryEmbedding) -> tuple[Array, Array]:
    """Coefficients for each column: of a pair both have the same."""
    cos, sin = cache(rope)
    columns = np.arange(16) // 2 if rope.interleaved else np.arange(16) % 8
    return cos[:, columns], sin[:, columns]


ENGINES: dict[str, Callable[[fastpe.RotaryEmbedding], tuple[Array, ...]]] = {
    "ONNX RotaryEmbedding from opset 23 on, with position_ids": cache,
    "ONNX RotaryEmbedding without position_ids": lambda rope: Angles(rope, POSITIONS).halves,
    "com.microsoft.RotaryEmbedding": cache,
    "com.microsoft.MRotaryEmbedding": cache,
    "com.microsoft.GroupQueryAttention": cache,
    "vLLM rotary_embedding": cosines_then_sines,
    "FlashInfer apply_rope_with_cos_sin_cache": cosines_then_sines,
    "flash-attn apply_rotary_emb": cache,
    "TensorRT-LLM's attention": float2,
    "TensorRT IRotaryEmbeddingLayer, with positionIds": cache,
    # The engine divides by these numbers, and the results are the angles.
    "MLX mx.fast.rope": lambda rope: (POSITION / angles(rope),),
    "ggml ggml_rope_ext": lambda rope: (POSITION * BASE ** (-2 * np.arange(8) / 16) / angles(rope),),
    "QNN hosts, half of the width": lambda rope: Angles(rope, [[[POSITION]]]).halves,
    "QNN hosts, the whole width": lambda rope: Angles(rope, [[POSITION]]).tiled,
    "Core ML, graphs traced from transformers": lambda rope: Angles(rope, [[POSITION]]).tiled,
    "OpenVINO, vision part of Qwen-VL": lambda rope: (Angles(rope, POSITIONS).radians,),
    "cuDNN RoPE": lambda rope: (Angles(rope, range(ROWS)).radians,),
    "XNNPACK rope_nthc": cosines_then_sines,
    "IPEX rotary_position_embedding": lambda rope: (np.concatenate(cache(rope)[::-1], axis=-1),),
    "ncnn RotaryEmbed": lambda rope: Angles(rope, POSITIONS[0]).halves,
    "MediaTek's language models in ExecuTorch": lambda rope: (np.stack(Angles(rope, POSITIONS).tiled, axis=1),),
    "Ascend npu_rotary_mul": ascend,
}


@functools.cache
def calls() -> dict[str, str]:
    return docs_pages.engine_calls()


def made_by_the_call(engine: str, rope: fastpe.RotaryEmbedding) -> tuple[npt.NDArray[Any], ...]:
    names = {"np": np, "rope": rope, "d": 16, "M": ROWS, "p": POSITION, "positions": POSITIONS, "rope_base": BASE}
    result = eval(calls()[engine], names)
    return result if isinstance(result, tuple) else (result,)


def test_each_engine_of_the_page_is_here() -> None:
    assert set(calls()) == set(ENGINES)


@pytest.mark.parametrize("kind", EMBEDDINGS)
@pytest.mark.parametrize("engine", ENGINES)
def test_calls_make_the_engines_arrays(engine: str, kind: str) -> None:
    rope = EMBEDDINGS[kind]
    expected = ENGINES[engine](rope)
    found = made_by_the_call(engine, rope)
    assert len(found) == len(expected)
    for array, right in zip(found, expected, strict=True):
        assert array.shape == right.shape
        assert array.dtype == np.float32
        # One rounding to float32, and that of angles in float64.
        np.testing.assert_allclose(array, right, rtol=2.0**-24, atol=1e-13)
