# SPDX-License-Identifier: BSD-3-Clause
"""A decoder in ONNX Runtime whose graph takes its rotary caches as inputs, compared with the same decoder in NumPy.

GroupQueryAttention rotates queries and new keys itself, by the rows of cos_cache and sin_cache that belong to their
positions. The host makes these caches once.

    pip install onnx onnxruntime
    python examples/onnx_decoder.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy_decoder import TINY, Decoder, random_weights

import fastpe

try:
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    raise SystemExit(f"{error}: pip install onnx onnxruntime") from None

LONGEST = 64


class Graph:
    """Collects the nodes and weights of the decoder."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, np.ndarray]) -> None:
        self.config, self.weights = config, weights
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def add(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node, and return the name of its first output."""
        output = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def constant(self, name: str) -> str:
        """Add a weight, and return its name."""
        self.constants[name] = numpy_helper.from_array(self.weights[name], name)
        return name

    def linear(self, x: str, name: str, output: str | None = None) -> str:
        transposed = self.add("Transpose", self.constant(f"{name}.weight"))
        return self.add("MatMul", x, transposed, output=output)

    def norm(self, x: str, name: str) -> str:
        epsilon = self.config["rms_norm_eps"]
        return self.add("RMSNormalization", x, self.constant(f"{name}.weight"), epsilon=epsilon)

    def attention(self, x: str, layer: int) -> str:
        name = f"model.layers.{layer}.self_attn"
        inputs = [self.linear(x, f"{name}.{part}_proj") for part in "qkv"]
        inputs += [f"past_key_{layer}", f"past_value_{layer}", "seqlens_k", "total_sequence_length"]
        inputs += ["cos_cache", "sin_cache"]
        attention = helper.make_node(
            "GroupQueryAttention",
            inputs,
            [f"attention_{layer}", f"present_key_{layer}", f"present_value_{layer}"],
            domain="com.microsoft",
            num_heads=self.config["num_attention_heads"],
            kv_num_heads=self.config["num_key_value_heads"],
            do_rotary=1,
            rotary_interleaved=0,
        )
        self.nodes.append(attention)
        return self.linear(f"attention_{layer}", f"{name}.o_proj")

    def session(self) -> Any:
        """Make the session: new tokens, the past and the caches in, logits and the new past out."""
        ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["B", "L"])
        x = self.add("Gather", self.constant("model.embed_tokens.weight"), "ids")
        layers = range(self.config["num_hidden_layers"])
        for layer in layers:
            name = f"model.layers.{layer}"
            x = self.add("Add", x, self.attention(self.norm(x, f"{name}.input_layernorm"), layer))
            y = self.norm(x, f"{name}.post_attention_layernorm")
            gate = self.linear(y, f"{name}.mlp.gate_proj")
            gate = self.add("Mul", gate, self.add("Sigmoid", gate))
            y = self.add("Mul", gate, self.linear(y, f"{name}.mlp.up_proj"))
            x = self.add("Add", x, self.linear(y, f"{name}.mlp.down_proj"))
        self.linear(self.norm(x, "model.norm"), "lm_head", output="logits")

        past = [f"past_{part}_{layer}" for layer in layers for part in ("key", "value")]
        present = [name.replace("past", "present") for name in past]
        heads = self.config["num_key_value_heads"]
        width = self.config["hidden_size"] // self.config["num_attention_heads"]
        floats = {name: ["B", heads, "past", width] for name in past}
        floats |= {name: ["rows", width // 2] for name in ("cos_cache", "sin_cache")}
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in floats.items()]
        lengths = {"seqlens_k": ["B"], "total_sequence_length": []}
        inputs += [helper.make_tensor_value_info(name, TensorProto.INT32, shape) for name, shape in lengths.items()]
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("logits", *present)]
        graph = helper.make_graph(self.nodes, "decoder", [ids, *inputs], outputs, list(self.constants.values()))
        versions = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=10)
        return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


class OnnxDecoder:
    """Keeps the past, and the caches for all positions."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, np.ndarray], *, batch: int) -> None:
        self.run = Graph(config, weights).session().run
        rope = fastpe.RotaryEmbedding.from_config(config)
        cos, sin = rope.tables(LONGEST, form="halves")
        empty = np.zeros((batch, config["num_key_value_heads"], 0, rope.rotary_dim), np.float32)
        names = [f"past_{part}_{layer}" for layer in range(config["num_hidden_layers"]) for part in ("key", "value")]
        self.past = dict.fromkeys(names, empty)
        self.caches = {"cos_cache": cos, "sin_cache": sin}
        self.tokens = 0

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """Return logits [B, L, vocabulary] of new tokens [B, L]."""
        self.tokens += ids.shape[1]
        lengths = {
            "seqlens_k": np.full(len(ids), self.tokens - 1, np.int32),
            "total_sequence_length": np.array(self.tokens, np.int32),
        }
        logits, *present = self.run(None, {"ids": ids} | self.past | self.caches | lengths)
        self.past = dict(zip(self.past, present, strict=True))
        return logits


def main() -> None:
    """Prefill and decode in both decoders, and compare."""
    weights = random_weights(TINY)
    ids = np.random.default_rng(1).integers(TINY["vocab_size"], size=(2, 24))
    in_numpy = Decoder(TINY, weights, batch=2, longest=LONGEST)
    in_onnx = OnnxDecoder(TINY, weights, batch=2)
    steps = [ids[:, :16], *(ids[:, i : i + 1] for i in range(16, 24))]
    expected = np.concatenate([in_numpy(step) for step in steps], axis=1)
    logits = np.concatenate([in_onnx(step) for step in steps], axis=1)
    difference = np.abs(logits - expected).max()
    assert difference < 1e-5 * np.abs(expected).max()
    print(f"prefill of 16 tokens and 8 single ones: logits as in NumPy, within {difference:.1e}")


if __name__ == "__main__":
    main()
