# SPDX-License-Identifier: BSD-3-Clause
"""Decode a padded batch with SmolLM3 and Gemma 3 in NumPy: the rotation and the mask of each layer, by its config.json.

SmolLM3 does not rotate every fourth layer, and the layers of Gemma 3 have two bases and two masks. Names of tensors are those
of Hugging Face. The tests compare the logits with transformers.

    python examples/masked_decoder.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import fastpe

SHARED: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 112,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-6,
}
SMOLLM3 = {**SHARED, "model_type": "smollm3", "rope_theta": 5e6}
GEMMA3 = {**SHARED, "model_type": "gemma3_text", "sliding_window": 5, "query_pre_attn_scalar": 16}


class Decoder:
    """A batch of sequences, whose keys and values are kept."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, np.ndarray]) -> None:
        self.config, self.weights, self.is_gemma = config, weights, config["model_type"] == "gemma3_text"
        self.ropes = fastpe.RotaryEmbedding.layers_from_config(config)
        # Every sixth layer of Gemma 3 sees all keys.
        self.windows = [
            config["sliding_window"] if self.is_gemma and (layer + 1) % 6 else None for layer in range(len(self.ropes))
        ]
        self.cache: dict[int, np.ndarray] = {}
        self.valid: np.ndarray | None = None

    def __call__(self, ids: np.ndarray, valid: np.ndarray | None = None) -> np.ndarray:
        """Return logits [B, L, vocabulary]; `valid` [B, L] says which tokens of a prompt are not padding."""
        valid = np.ones_like(ids) if valid is None else valid
        if self.valid is None:
            past, positions = 0, fastpe.text_inputs(self.config, ids, attention_mask=valid)["position_ids"]
        else:
            past, seen = self.valid.shape[1], self.valid.sum(axis=1)
            positions = fastpe.text_inputs(self.config, ids, past=seen)["position_ids"]
            valid = np.concatenate([self.valid, valid], axis=1)
        self.valid = valid
        masks = {
            window: fastpe.attention_mask(
                ids.shape[1], causal=True, past=past, window=window, valid=valid, dtype=np.float32
            )
            for window in {*self.windows}
        }
        x = self.weights["model.embed_tokens.weight"][ids]
        if self.is_gemma:
            x = x * np.float32(x.shape[-1] ** 0.5)
        # What comes after attention is normalized by Gemma 3 only.
        before = "pre_feedforward_layernorm" if self.is_gemma else "post_attention_layernorm"
        for layer, window in enumerate(self.windows):
            name = f"model.layers.{layer}"
            y = self._attention(layer, self._norm(x, f"{name}.input_layernorm"), positions, masks[window])
            x = x + (self._norm(y, f"{name}.post_attention_layernorm") if self.is_gemma else y)
            y = self._norm(x, f"{name}.{before}")
            gate, up = (self._linear(y, f"{name}.mlp.{part}_proj") for part in ("gate", "up"))
            y = self._linear(self._activated(gate) * up, f"{name}.mlp.down_proj")
            x = x + (self._norm(y, f"{name}.post_feedforward_layernorm") if self.is_gemma else y)
        return self._linear(self._norm(x, "model.norm"), "lm_head")

    def _attention(self, layer: int, x: np.ndarray, positions: np.ndarray, mask: np.ndarray) -> np.ndarray:
        name, config = f"model.layers.{layer}.self_attn", self.config
        q, k, v = (
            self._linear(x, f"{name}.{part}_proj").reshape(*x.shape[:2], -1, config["head_dim"]).swapaxes(1, 2).copy()
            for part in "qkv"
        )  # [B, heads, L, D]
        if self.is_gemma:
            q, k = self._norm(q, f"{name}.q_norm"), self._norm(k, f"{name}.k_norm")
        if (rope := self.ropes[layer]) is not None:
            rope.rotate_(q, k, positions=positions, seq_axis=-2)
        kept = self.cache.get(layer, np.zeros((2, *k.shape[:2], 0, k.shape[-1]), np.float32))
        self.cache[layer] = np.concatenate([kept, np.stack([k, v])], axis=-2)
        k, v = (each.repeat(q.shape[1] // k.shape[1], axis=1) for each in self.cache[layer])
        scores = q @ k.swapaxes(-1, -2) * np.float32(config.get("query_pre_attn_scalar", config["head_dim"]) ** -0.5)
        scores = np.exp(scores + mask - (scores + mask).max(axis=-1, keepdims=True))
        y = scores / scores.sum(axis=-1, keepdims=True) @ v
        return self._linear(y.swapaxes(1, 2).reshape(*x.shape[:2], -1), f"{name}.o_proj")

    def _activated(self, x: np.ndarray) -> np.ndarray:
        if self.is_gemma:
            return 0.5 * x * (1 + np.tanh(np.float32((2 / np.pi) ** 0.5) * (x + np.float32(0.044715) * x**3)))
        return x / (1 + np.exp(-x))

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.weights[f"{name}.weight"].T

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        scale = np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(self.config["rms_norm_eps"]))
        return x / scale * (self.weights[f"{name}.weight"] + np.float32(self.is_gemma))


def random_weights(config: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Make the tensors of such a model, with random numbers."""
    rng, d, inner, head_dim = (
        np.random.default_rng(0),
        config["hidden_size"],
        config["intermediate_size"],
        config["head_dim"],
    )
    queries, keys = (config[f"num_{kind}_heads"] * head_dim for kind in ("attention", "key_value"))
    parts: dict[str, tuple[int, ...]] = {
        **{f"self_attn.{part}_proj": (width, d) for part, width in (("q", queries), ("k", keys), ("v", keys))},
        **{f"mlp.{part}_proj": (inner, d) for part in ("gate", "up")},
        "self_attn.o_proj": (d, queries),
        "mlp.down_proj": (d, inner),
        **{f"{which}_layernorm": (d,) for which in ("input", "post_attention", "pre_feedforward", "post_feedforward")},
        "self_attn.q_norm": (head_dim,),
        "self_attn.k_norm": (head_dim,),
    }
    shapes = {"model.embed_tokens": (config["vocab_size"], d), "lm_head": (config["vocab_size"], d), "model.norm": (d,)}
    for layer in range(config["num_hidden_layers"]):
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in parts.items()}
    return {
        f"{name}.weight": rng.standard_normal(shape, dtype=np.float32) / np.float32(shape[-1] ** 0.5)
        for name, shape in shapes.items()
    }


def decoded(
    config: Mapping[str, Any], weights: Mapping[str, np.ndarray], ids: np.ndarray, valid: np.ndarray, prompt: int
) -> np.ndarray:
    """Logits of all tokens: of the prompts together, and then of one token of each after the other."""
    decoder = Decoder(config, weights)
    parts = [decoder(ids[:, :prompt], valid[:, :prompt])]
    parts += [decoder(ids[:, at : at + 1]) for at in range(prompt, ids.shape[1])]
    return np.concatenate(parts, axis=1)


def main() -> None:
    """Decode two prompts of different lengths together, and compare with each by itself in one pass."""
    for config in (SMOLLM3, GEMMA3):
        weights, padding = random_weights(config), (7, 0)
        ids = np.random.default_rng(1).integers(config["vocab_size"], size=(2, 24))
        valid = (np.arange(24) >= np.array(padding)[:, None]).astype(int)
        logits = decoded(config, weights, ids, valid, prompt=16)
        difference = max(
            float(np.abs(Decoder(config, weights)(row[None, first:]) - found[first:]).max())
            for row, first, found in zip(ids, padding, logits, strict=True)
        )
        assert difference < 2e-5
        print(
            f"{config['model_type']}: 16 padded tokens and 8 single ones, as each prompt alone: within {difference:.1e}"
        )


if __name__ == "__main__":
    main()
