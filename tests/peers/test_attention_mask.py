# SPDX-License-Identifier: BSD-3-Clause
"""Masks of attention beside the functions of transformers, on random lengths, paddings and pasts.

Run it with ``pytest -m peers tests/peers/test_attention_mask.py``.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fastpe

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
masking_utils: Any = pytest.importorskip("transformers.masking_utils")

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

RANDOM = np.random.default_rng(11)
TRIALS = 40


def config(kind: str, **numbers: Any) -> Any:
    made = getattr(transformers, kind)(num_hidden_layers=4, **numbers)
    made._attn_implementation = "eager"
    return made


def cache_of(past: int, batch: int) -> Any:
    """A cache of this many keys."""
    cache = transformers.DynamicCache()
    if past:
        keys = torch.zeros(batch, 1, past, 4)
        cache.update(keys, keys, 0)
    return cache


def batches() -> list[tuple[int, int, Any]]:
    """Lengths, pasts, and masks of tokenizers with padding on either side."""
    made = []
    for _ in range(TRIALS):
        length, past = int(RANDOM.integers(1, 24)), int(RANDOM.integers(1, 20)) * int(RANDOM.integers(2))
        padding = RANDOM.integers(0, past + length, (3, 1))
        valid = np.arange(past + length) >= padding
        made.append((length, past, valid[:, ::-1].copy() if not past and RANDOM.random() < 0.3 else valid))
    return made


@pytest.mark.parametrize(
    ("kind", "function", "numbers"),
    [
        ("LlamaConfig", "create_causal_mask", {}),
        ("MistralConfig", "create_sliding_window_causal_mask", {"window": 6}),
        ("Gemma3TextConfig", "create_causal_mask", {}),
        ("Gemma3TextConfig", "create_sliding_window_causal_mask", {"window": 5}),
        ("Llama4TextConfig", "create_chunked_causal_mask", {"chunk": 7}),
    ],
)
def test_of_a_layer(kind: str, function: str, numbers: dict[str, Any]) -> None:
    keys = {"sliding_window": numbers.get("window"), "attention_chunk_size": numbers.get("chunk")}
    model = config(kind, **{key: value for key, value in keys.items() if value is not None})
    for length, past, valid in batches():
        expected = getattr(masking_utils, function)(
            config=model,
            inputs_embeds=torch.zeros(len(valid), length, 8),
            attention_mask=torch.from_numpy(valid.astype(np.int64)),
            cache=cache_of(past, len(valid)),
        )
        found = fastpe.attention_mask(length, causal=True, past=past, valid=valid, dtype=np.float32, **numbers)
        assert np.array_equal(found, expected.numpy()), (length, past)


def test_images_of_gemma_3() -> None:
    module: Any = pytest.importorskip("transformers.models.gemma3.modeling_gemma3")
    model = config("Gemma3TextConfig", sliding_window=5)
    for length, _, _ in batches():
        token_types = RANDOM.integers(0, 2, (3, length)).repeat(3, axis=1)[:, :length]
        blocks = module.get_block_sequence_ids_for_mask(torch.from_numpy(token_types))
        valid = np.arange(length) >= RANDOM.integers(0, length, (3, 1))
        expected = module.create_masks_for_vision_model(
            model, torch.zeros(3, length, 8), torch.from_numpy(valid.astype(np.int64)), None, None, blocks
        )
        for kind, window in (("full_attention", None), ("sliding_attention", 5)):
            found = fastpe.attention_mask(
                length, causal=True, window=window, valid=valid, groups=blocks.numpy(), dtype=np.float32
            )
            assert np.array_equal(found, expected[kind].numpy()), kind


def test_an_encoder_of_gemma_3() -> None:
    """|q - k| < sliding_window there: one less than the window here."""
    module: Any = pytest.importorskip("transformers.models.gemma3.modeling_gemma3")
    overlay = module._bidirectional_window_overlay(5)
    place = np.arange(20)
    expected = overlay(0, 0, place[:, None], place)
    assert np.array_equal(fastpe.attention_mask(20, causal=False, window=4), expected)


def test_bidirectional_windows() -> None:
    place = np.arange(20)
    expected = masking_utils.sliding_window_bidirectional_overlay(5)(0, 0, place[:, None], place)
    assert np.array_equal(fastpe.attention_mask(20, causal=False, window=5), expected)


def test_the_encoder_of_qwen2_vl() -> None:
    """Its eager path takes sequences apart by cu_seqlens: attention over all of them with the mask is the same."""
    module: Any = pytest.importorskip("transformers.models.qwen2_vl.modeling_qwen2_vl")
    vision = SimpleNamespace(
        embed_dim=16, num_heads=2, attention_dropout=0.0, _attn_implementation="eager", hidden_size=16
    )
    torch.manual_seed(0)
    attention = module.VisionAttention(vision).eval()
    for _ in range(10):
        cu_seqlens = np.cumsum([0, *RANDOM.integers(1, 9, 4)])
        rows = int(cu_seqlens[-1])
        hidden, turn = torch.randn(rows, 16), (torch.ones(rows, 8), torch.zeros(rows, 8))
        with torch.no_grad():
            expected = attention(hidden, cu_seqlens=torch.from_numpy(cu_seqlens), position_embeddings=turn)
            q, k, v = attention.qkv(hidden).reshape(rows, 3, 2, 8).permute(1, 2, 0, 3)
            mask = fastpe.attention_mask(rows, causal=False, cu_seqlens=cu_seqlens, dtype=np.float32)
            scores = q @ k.mT / 8**0.5 + torch.from_numpy(mask)
            found = attention.proj((scores.softmax(-1) @ v).transpose(0, 1).reshape(rows, 16))
        assert torch.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(("count", "longest"), [(256, 512), (32, 128), (50, 600), (8, 512)])
def test_debertas_buckets(count: int, longest: int) -> None:
    module: Any = pytest.importorskip("transformers.models.deberta_v2.modeling_deberta_v2")
    distances = np.arange(-(10**4), 10**4 + 1)
    expected = module.make_log_bucket_position(torch.from_numpy(distances), count, longest).long()
    assert np.array_equal(fastpe.deberta_buckets(distances, num_buckets=count, max_position=longest), expected)
    # sew_d has a copy of it.
    sew_d: Any = pytest.importorskip("transformers.models.sew_d.modeling_sew_d")
    query, key = np.ogrid[:40, :50]
    expected = sew_d.build_relative_position(40, 50, bucket_size=count, max_position=longest, device="cpu")[0]
    found = fastpe.deberta_buckets(query - key, num_buckets=count, max_position=longest)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("shape", [(7, 7), (3, 5), (1, 4)])
def test_windows_of_swin(shape: tuple[int, int]) -> None:
    swin: Any = pytest.importorskip("transformers.models.swin.modeling_swin")
    swinv2: Any = pytest.importorskip("transformers.models.swinv2.modeling_swinv2")
    module = SimpleNamespace(window_size=shape)
    expected = swin.SwinRelativePositionBias._create_relative_position_index(module)
    assert np.array_equal(fastpe.window_relative_index(shape), expected)
    for pretrained in (None, (12, 6)):
        own = swinv2.Swinv2SelfAttention(transformers.Swinv2Config(), 16, 2, shape, pretrained or (0, 0))
        coordinates, index = own.create_coords_table_and_index()
        found = fastpe.window_relative_coordinates(shape, pretrained_shape=pretrained)
        if 1 not in shape or pretrained:  # transformers divides 0 by 0 there
            assert np.abs(found - coordinates[0].numpy()).max() < 1e-6
        assert np.array_equal(fastpe.window_relative_index(shape), index)
