# SPDX-License-Identifier: BSD-3-Clause
"""A decoder with a KV cache in NumPy: Llama, Qwen2 and SmolLM3, with the names of Hugging Face's config.json and tensors.

SmolLM3 does not rotate every fourth layer.

Keys are rotated before they go into the cache. When old tokens are evicted, `shift_` moves the keys after them, so
that a conversation can continue indefinitely.

    python examples/numpy_decoder.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import fastpe

# Qwen2 has biases in the projections that attention reads, Llama has none.
TINY: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 112,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}


class Decoder:
    """One batch of sequences of the same length, of at most `longest` tokens."""

    def __init__(
        self, config: Mapping[str, Any], weights: Mapping[str, np.ndarray], *, batch: int, longest: int
    ) -> None:
        self.config, self.weights = config, weights
        self.heads, self.key_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim = config.get("head_dim") or config["hidden_size"] // self.heads
        self.ropes = fastpe.RotaryEmbedding.layers_from_config(config, max_len=longest)
        shape = (config["num_hidden_layers"], batch, self.key_heads, longest, self.head_dim)
        self.keys, self.values = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self.tokens = 0

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """Return logits [B, L, vocabulary] of new tokens [B, L], and keep their keys and values."""
        x = self.weights["model.embed_tokens.weight"][ids]
        for layer in range(len(self.keys)):
            name = f"model.layers.{layer}"
            x = x + self._attention(layer, self._norm(x, f"{name}.input_layernorm"))
            y = self._norm(x, f"{name}.post_attention_layernorm")
            gate = self._linear(y, f"{name}.mlp.gate_proj")
            x = x + self._linear(
                gate / (1 + np.exp(-gate)) * self._linear(y, f"{name}.mlp.up_proj"), f"{name}.mlp.down_proj"
            )
        self.tokens += ids.shape[1]
        return self._linear(self._norm(x, "model.norm"), "lm_head")

    def evict(self, count: int, *, sinks: int) -> None:
        """Drop `count` tokens after the first `sinks`; the later ones move to lower positions."""
        kept = slice(sinks + count, self.tokens)
        moved = slice(sinks, self.tokens - count)
        for keys, rope in zip(self.keys, self.ropes, strict=True):
            if rope is not None:
                rope.shift_(keys[..., kept, :], by=-count, seq_axis=-2)
        for cache in (self.keys, self.values):
            cache[..., moved, :] = cache[..., kept, :]
        self.tokens -= count

    def _attention(self, layer: int, x: np.ndarray) -> np.ndarray:
        name = f"model.layers.{layer}.self_attn"
        q, k, v = (
            self._linear(x, f"{name}.{part}_proj").reshape(*x.shape[:2], -1, self.head_dim).swapaxes(1, 2)
            for part in "qkv"
        )
        rope = self.ropes[layer]
        if rope is not None:
            rope.rotate_(q, k, offset=self.tokens, seq_axis=-2)  # [B, heads, L, D]
        end = self.tokens + x.shape[1]
        keys, values = self.keys[layer, :, :, :end], self.values[layer, :, :, :end]
        keys[:, :, self.tokens :], values[:, :, self.tokens :] = k, v
        # Several queries share a key: [B, key heads, queries, L, D].
        q = q.reshape(len(q), self.key_heads, -1, *q.shape[2:]) * np.float32(self.head_dim**-0.5)
        scores = q @ keys[:, :, None].swapaxes(-1, -2)
        scores[..., np.arange(end) > np.arange(self.tokens, end)[:, None]] = -np.inf
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        y = scores / scores.sum(axis=-1, keepdims=True) @ values[:, :, None]
        return self._linear(
            y.reshape(len(y), self.heads, *y.shape[3:]).swapaxes(1, 2).reshape(*x.shape[:2], -1), f"{name}.o_proj"
        )

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        y = x @ self.weights[f"{name}.weight"].T
        bias = self.weights.get(f"{name}.bias")
        return y if bias is None else y + bias

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        scale = np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(self.config["rms_norm_eps"]))
        return x / scale * self.weights[f"{name}.weight"]


def random_weights(config: Mapping[str, Any], seed: int = 0) -> dict[str, np.ndarray]:
    """Make the tensors of such a model, with random numbers."""
    rng = np.random.default_rng(seed)
    d, inner = config["hidden_size"], config["intermediate_size"]
    key_width = d // config["num_attention_heads"] * config["num_key_value_heads"]
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens": (config["vocab_size"], d), "model.norm": (d,)}
    for layer in range(config["num_hidden_layers"]):
        shapes |= {
            f"model.layers.{layer}.{name}": shape
            for name, shape in {
                "input_layernorm": (d,),
                "self_attn.q_proj": (d, d),
                "self_attn.k_proj": (key_width, d),
                "self_attn.v_proj": (key_width, d),
                "self_attn.o_proj": (d, d),
                "post_attention_layernorm": (d,),
                "mlp.gate_proj": (inner, d),
                "mlp.up_proj": (inner, d),
                "mlp.down_proj": (d, inner),
            }.items()
        }
    shapes["lm_head"] = (config["vocab_size"], d)
    return {
        f"{name}.weight": rng.standard_normal(shape, dtype=np.float32) / np.float32(shape[-1] ** 0.5)
        for name, shape in shapes.items()
    }


def check(config: Mapping[str, Any]) -> None:
    """Decode token by token, compare with one pass over all tokens, then evict tokens and continue."""
    weights = random_weights(config)
    ids = np.random.default_rng(1).integers(config["vocab_size"], size=(2, 48))

    whole = Decoder(config, weights, batch=2, longest=64)
    expected = whole(ids)
    decoder = Decoder(config, weights, batch=2, longest=64)
    logits = np.concatenate([decoder(ids[:, :32]), *(decoder(ids[:, i : i + 1]) for i in range(32, 48))], axis=1)
    difference = np.abs(logits - expected).max()
    assert difference < 2e-5
    print(f"prefill of 32 tokens and 16 single ones, compared with one pass over 48: logits within {difference:.1e}")

    sinks, evicted = 4, 16
    decoder.evict(evicted, sinks=sinks)
    fresh = Decoder(config, weights, batch=2, longest=64)
    fresh(np.delete(ids, np.s_[sinks : sinks + evicted], axis=1))
    # Keys of the first layer depend only on their own tokens; those of other layers also depend on evicted ones.
    difference = np.abs(decoder.keys[0, ..., :32, :] - fresh.keys[0, ..., :32, :]).max()
    assert difference < 2e-5
    print(f"{evicted} tokens evicted: the first layer's keys are as without them, within {difference:.1e}")
    decoder(ids[:, :1])


def main() -> None:
    """Check a model whose layers are alike, and one that does not rotate all of them."""
    check(TINY)
    smollm3 = {**TINY, "model_type": "smollm3", "num_hidden_layers": 4}
    check(smollm3)
    assert [rope is None for rope in fastpe.RotaryEmbedding.layers_from_config(smollm3)] == [False, False, False, True]


if __name__ == "__main__":
    main()
