# SPDX-License-Identifier: BSD-3-Clause
"""A host of an exported vision encoder: a config.json and sizes of images in, tokens for a language model out.

The graph is that of Qwen3-VL's encoder, made here as an exporter makes it: what depends on sizes are its inputs. The host
computes them with fastpe and runs the graph in ONNX Runtime, without torch. The tests compare its results with
transformers.

    pip install onnx onnxruntime
    python examples/vision_encoder_host.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import fastpe

try:
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    raise SystemExit(f"{error}: pip install onnx onnxruntime") from None

CONFIG = {
    "model_type": "qwen3_vl",
    "vision_config": {
        "model_type": "qwen3_vl_vision",
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "in_channels": 3,
        "patch_size": 4,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "num_position_embeddings": 36,
        "out_hidden_size": 24,
        "deepstack_visual_indexes": [],
    },
}


class Host:
    """A session of an exported encoder, and the config.json of its model."""

    def __init__(self, graph: bytes, config: Mapping[str, Any]) -> None:
        self.session, self.config = onnxruntime.InferenceSession(graph), config

    def run(self, pixel_values: np.ndarray, grid_thw: Any) -> np.ndarray:
        """Encode patches, as a processor gives them, of images of these sizes."""
        inputs = {"pixel_values": pixel_values, **fastpe.vision_inputs(self.config, grid_thw=grid_thw)}
        taken = [each.name for each in self.session.get_inputs()]
        return self.session.run(None, {name: inputs[name] for name in taken})[0]


class Graph:
    """Collects the nodes and weights of the encoder."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, np.ndarray]) -> None:
        self.config, self.weights = config, weights
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, kind: str, *inputs: Any, output: str | None = None, **attributes: Any) -> str:
        """Add a node, whose inputs are names or arrays, and return the name of its output."""
        output = output or f"{kind}_{len(self.nodes)}"
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        self.nodes.append(helper.make_node(kind, names, [output], **attributes))
        return output

    def constant(self, value: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def linear(self, x: str, name: str, output: str | None = None) -> str:
        weight = self.weights[f"{name}.weight"]
        product = self.add("MatMul", x, weight.reshape(len(weight), -1).T)
        return self.add("Add", product, self.weights[f"{name}.bias"], output=output)

    def norm(self, x: str, name: str) -> str:
        weight, bias = (self.weights[f"{name}.{part}"] for part in ("weight", "bias"))
        return self.add("LayerNormalization", x, weight, bias, epsilon=1e-6)

    def attention(self, x: str, name: str, cos: str, sin: str, mask: str) -> str:
        heads = self.config["num_heads"]
        shape = np.array([1, -1, 3, heads, self.config["hidden_size"] // heads])
        qkv = self.add("Transpose", self.add("Reshape", self.linear(x, f"{name}.qkv"), shape), perm=[2, 0, 3, 1, 4])
        q, k, v = (self.add("Gather", qkv, np.array(part), axis=0) for part in range(3))
        q, k = (self.add("RotaryEmbedding", each, cos, sin) for each in (q, k))
        x = self.add("Transpose", self.add("Attention", q, k, v, mask), perm=[0, 2, 1, 3])
        return self.linear(self.add("Reshape", x, np.array([-1, self.config["hidden_size"]])), f"{name}.proj")

    def segments(self) -> str:
        """Which patches attend to each other: those between two numbers of cu_seqlens."""
        count = self.add("Shape", "position_ids", start=0, end=1)
        patch = self.add("Range", np.int64(0), self.add("Squeeze", count), np.int64(1))
        starts = self.add("Cast", "cu_seqlens", to=TensorProto.INT64)
        after = self.add("GreaterOrEqual", self.add("Unsqueeze", patch, np.array([1])), starts)
        segment = self.add("ReduceSum", self.add("Cast", after, to=TensorProto.INT64), np.array([1]), keepdims=1)
        return self.add("Equal", segment, self.add("Transpose", segment, perm=[1, 0]))

    def encoder(self) -> bytes:
        """Make the graph: patches and what depends on their grids in, tokens out."""
        rows = self.add("Gather", self.weights["pos_embed.weight"], "interp_indices")
        weighted = self.add("Mul", rows, self.add("Unsqueeze", "interp_weights", np.array([2])))
        learned = self.add("ReduceSum", weighted, np.array([1]), keepdims=0)
        x = self.add("Add", self.linear("pixel_values", "patch_embed.proj"), learned)

        quarter = self.config["hidden_size"] // self.config["num_heads"] // 4
        frequencies = np.float32(10000.0 ** (-np.arange(quarter) / quarter))
        places = self.add("Cast", self.add("Unsqueeze", "position_ids", np.array([2])), to=TensorProto.FLOAT)
        angles = self.add("Reshape", self.add("Mul", places, frequencies), np.array([1, -1, 2 * quarter]))
        cos, sin, mask = self.add("Cos", angles), self.add("Sin", angles), self.segments()
        for layer in range(self.config["depth"]):
            name = f"blocks.{layer}"
            x = self.add("Add", x, self.attention(self.norm(x, f"{name}.norm1"), f"{name}.attn", cos, sin, mask))
            inner = self.linear(self.norm(x, f"{name}.norm2"), f"{name}.mlp.linear_fc1")
            x = self.add("Add", x, self.linear(self.add("Gelu", inner, approximate="tanh"), f"{name}.mlp.linear_fc2"))
        merged = self.config["spatial_merge_size"] ** 2 * self.config["hidden_size"]
        x = self.linear(self.add("Reshape", self.norm(x, "merger.norm"), np.array([-1, merged])), "merger.linear_fc1")
        self.linear(self.add("Gelu", x), "merger.linear_fc2", output="tokens")

        types = {"pixel_values": (TensorProto.FLOAT, ["N", "values"]), "position_ids": (TensorProto.INT64, ["N", 2])}
        types |= {"cu_seqlens": (TensorProto.INT32, ["S"]), "interp_indices": (TensorProto.INT64, ["N", 4])}
        types |= {"interp_weights": (TensorProto.FLOAT, ["N", 4])}
        inputs = [helper.make_tensor_value_info(name, *each) for name, each in types.items()]
        outputs = [
            helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["tokens", self.config["out_hidden_size"]])
        ]
        graph = helper.make_graph(self.nodes, "encoder", inputs, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
        return model.SerializeToString()


def random_weights(config: Mapping[str, Any], seed: int = 0) -> dict[str, np.ndarray]:
    """Weights by the names of transformers."""
    rng, width = np.random.default_rng(seed), config["hidden_size"]
    patch = (config["in_channels"], config["temporal_patch_size"], config["patch_size"], config["patch_size"])
    merged = config["spatial_merge_size"] ** 2 * width
    linear = {"patch_embed.proj": (width, *patch), "merger.linear_fc1": (merged, merged)}
    linear["merger.linear_fc2"] = (config["out_hidden_size"], merged)
    for layer in range(config["depth"]):
        linear |= {f"blocks.{layer}.attn.qkv": (3 * width, width), f"blocks.{layer}.attn.proj": (width, width)}
        linear[f"blocks.{layer}.mlp.linear_fc1"] = (config["intermediate_size"], width)
        linear[f"blocks.{layer}.mlp.linear_fc2"] = (width, config["intermediate_size"])
    norms = ["merger.norm", *(f"blocks.{layer}.norm{part}" for layer in range(config["depth"]) for part in (1, 2))]
    shapes = {"pos_embed.weight": (config["num_position_embeddings"], width)}
    for name, shape in (linear | dict.fromkeys(norms, (width,))).items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return {name: rng.standard_normal(shape, dtype=np.float32) * np.float32(0.3) for name, shape in shapes.items()}


def main() -> None:
    """Encode two images and a video together, and each by itself."""
    vision = CONFIG["vision_config"]
    host = Host(Graph(vision, random_weights(vision)).encoder(), CONFIG)
    grids = [(1, 4, 6), (1, 12, 8), (3, 8, 4)]  # times, heights and widths in patches
    lengths = [time * height * width for time, height, width in grids]
    values = vision["in_channels"] * vision["temporal_patch_size"] * vision["patch_size"] ** 2
    pixel_values = np.random.default_rng(1).standard_normal((sum(lengths), values), dtype=np.float32)

    together = host.run(pixel_values, grids)
    print(f"{sum(lengths)} patches of {len(grids)} grids -> tokens {list(together.shape)}")
    first = 0
    for grid, length in zip(grids, lengths, strict=True):
        alone = host.run(pixel_values[first : first + length], [grid])
        assert np.allclose(together[first // 4 : (first + length) // 4], alone, atol=1e-5)
        first += length


if __name__ == "__main__":
    main()
