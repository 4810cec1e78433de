# SPDX-License-Identifier: BSD-3-Clause
"""Tables as projects make them, in float32 where they compute in float32; and the call that each should be known as.

Nothing here uses the library. Formulas follow the sources named.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = tuple[npt.NDArray[Any], ...]
Floats = Any  # an array

f32 = np.float32


@dataclasses.dataclass(frozen=True)
class WildTable:
    source: str
    make: Callable[[], Any]
    # The call, or "" for a table that is rightly not known.
    code: str = ""


def _angles(positions: Any, frequencies: Floats) -> Floats:
    return np.multiply.outer(np.asarray(positions, f32), frequencies.astype(f32))


def _exp_frequencies(d: int) -> Floats:
    # exp(arange(0, d, 2) * (-log(10000) / d)), as torch code has it
    return np.exp(np.arange(0, d, 2, dtype=f32) * f32(-math.log(10000.0) / d))


def _inverse_powers(d: int, base: float = 10000.0) -> Floats:
    # 1 / (base ** (arange(0, d, 2) / d))
    return f32(1) / (f32(base) ** (np.arange(0, d, 2, dtype=f32) / f32(d)))


def _interleave(angles: Floats) -> Floats:
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(*angles.shape[:-1], -1)


def _side_by_side(angles: Floats) -> Floats:
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)


def _tensorflow_tutorial() -> Floats:
    angles = np.arange(200)[:, None] / np.power(10000, 2 * (np.arange(63) // 2) / f32(63))
    angles[:, 0::2], angles[:, 1::2] = np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])
    return angles[None].astype(f32)


def _wav2vec2_conformer() -> Floats:
    negative = _interleave(_angles(-np.arange(100), _exp_frequencies(64)))
    positive = _interleave(_angles(np.arange(100), _exp_frequencies(64)))
    return np.concatenate([positive[::-1], negative[1:]])[None]


def zipformer(t: Floats, width: int, factor: float = 1.0) -> Floats:
    length = math.sqrt(width)
    compressed = length * np.sign(t) * (np.log(np.abs(t) + length) - math.log(length))
    angles = np.multiply.outer(np.arctan(compressed / (factor * width / (2 * np.pi))), np.arange(1, 1 + width // 2))
    table = np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(-1, width)
    table[:, -1] = 1
    return table


def _cos_sin(rows: int, frequencies: Floats, factor: float = 1.0) -> tuple[Floats, Floats]:
    angles = _angles(np.arange(rows), frequencies)
    return np.cos(angles) * f32(factor), np.sin(angles) * f32(factor)


def _twice(tables: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    cos, sin = (np.concatenate([table, table], axis=1)[None] for table in tables)
    return cos, sin


def _llama3_frequencies() -> Floats:
    plain = _inverse_powers(128, 500000.0)
    wavelengths = f32(2 * math.pi) / plain
    smooth = (f32(8192) / wavelengths - f32(1)) / f32(4 - 1)
    blended = (f32(1) - smooth) * plain / f32(8) + smooth * plain
    slow = np.where(wavelengths > 8192, plain / f32(8), plain)
    return np.where((wavelengths >= 8192 / 4) & (wavelengths <= 8192), blended, slow)


def _freqs_cis() -> Floats:
    cos, sin = _cos_sin(1024, _inverse_powers(128))
    return cos + 1j * sin


def _qwen2_vl_patches() -> Arrays:
    rows, columns = (grid.reshape(4, 2, 4, 2).transpose(0, 2, 1, 3).ravel() for grid in np.indices((8, 8)))
    angles = np.concatenate([_angles(rows, _inverse_powers(40)), _angles(columns, _inverse_powers(40))], axis=1)
    return _twice((np.cos(angles), np.sin(angles)))


WILD_TABLES = {
    "PyTorch tutorial": WildTable(
        "pytorch/tutorials:beginner_source/transformer_tutorial.py",
        lambda: _interleave(_angles(np.arange(5000), _exp_frequencies(64)))[:, None],
        "fastpe.encode(5000, 64, convention='vaswani')"),
    "TensorFlow tutorial": WildTable(
        "tensorflow/text:docs/tutorials/transformer.ipynb, its first version", _tensorflow_tutorial,
        "fastpe.encode(200, 63, convention='vaswani')"),
    "wav2vec2-conformer": WildTable(
        "huggingface/transformers:models/wav2vec2_conformer/modeling_wav2vec2_conformer.py extend_pe", _wav2vec2_conformer,
        "fastpe.encode(199, 64, convention='vaswani', offset=-99)[::-1]"),
    "XLNet": WildTable(
        "huggingface/transformers:models/xlnet/modeling_xlnet.py, positions klen .. -qlen",
        lambda: _side_by_side(_angles(np.arange(100, -100, -1.0), _inverse_powers(64)))[:, None],
        "fastpe.encode(200, 64, convention='concat', offset=-99)[::-1]"),
    "Zipformer": WildTable(
        "k2-fsa/icefall:egs/librispeech/ASR/zipformer/zipformer.py CompactRelPositionalEncoding",
        lambda: zipformer(np.arange(-99, 100, dtype=f32), 64).astype(f32)),
    "Llama 3.1": WildTable(
        "huggingface/transformers:modeling_rope_utils.py _compute_llama3_parameters",
        lambda: _twice(_cos_sin(4096, _llama3_frequencies())),
        "fastpe.RotaryEmbedding(128, interleaved=False, base=500000.0, scaling={'rope_type': 'llama3', 'factor': 8.0, "
        "'low_freq_factor': 1.0, 'high_freq_factor': 4.0, 'original_max_position_embeddings': 8192})"
        ".tables(4096, form='tile')"),
    "Meta's freqs_cis": WildTable(
        "meta-llama/llama:llama/model.py precompute_freqs_cis", _freqs_cis,
        "fastpe.RotaryEmbedding(128, interleaved=False, base=10000.0).tables(1024, form='complex')"),
    "Gemma 4, full attention": WildTable(
        "huggingface/transformers:modeling_rope_utils.py _compute_proportional_rope_parameters",
        lambda: _twice(_cos_sin(512, np.where(np.arange(64) < 16, _inverse_powers(128, 1e6), f32(0))))),
    "Qwen2-VL, cosines and sines of patches": WildTable(
        "huggingface/transformers:models/qwen2_vl/modeling_qwen2_vl.py: two coordinates for each patch, in blocks of 2 x 2", _qwen2_vl_patches),
}  # fmt: skip
