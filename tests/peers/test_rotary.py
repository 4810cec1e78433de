# SPDX-License-Identifier: BSD-3-Clause
"""Rotary embeddings beside projects that rotate queries and keys, and under ONNX's own tests of its operator.

test_rotary_configs.py has transformers.

Run it with ``pytest -m peers tests/peers/test_rotary.py``.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastpe

from ..oracles import docs_pages
from .conftest import imported

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

Array = npt.NDArray[Any]

# A float32 angle p * w, rounded twice, is off by about 2**-23 of itself.
LENGTH = 64
ROUNDING = LENGTH * 2.0**-22 + 2.0**-22


def normal(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def compare(ours: Array, theirs: Any, bound: float) -> None:
    theirs = np.asarray(theirs, np.float64)
    assert ours.shape == theirs.shape
    assert np.abs(ours.astype(np.float64) - theirs).max() <= bound


# ONNX


def run_node(kind: str, feeds: dict[str, Array], outputs: list[str], *, domain: str, **attributes: Any) -> list[Array]:
    """The outputs of a graph of one node in ONNX Runtime, whose inputs are the feeds in their order.

    Outputs have the type of the first input.
    """
    helper, runtime = imported("onnx").helper, imported("onnxruntime")
    types = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in feeds.items()}
    graph = helper.make_graph(
        [helper.make_node(kind, list(feeds), outputs, domain=domain, **attributes)],
        "rotary",
        [helper.make_tensor_value_info(name, type_, None) for name, type_ in types.items()],
        [helper.make_tensor_value_info(name, next(iter(types.values())), None) for name in outputs],
    )
    versions = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=10)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    result: list[Array] = session.run(None, feeds)
    return result


def tables_of(engine: str, **names: Any) -> tuple[Array, Array]:
    """What the call of docs/engines.md makes."""
    cos, sin = eval(docs_pages.engine_calls()[engine], names)
    return cos, sin


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("with_ids", [True, False])
def test_onnx_operator_in_onnxruntime(interleaved: bool, with_ids: bool, dtype: str) -> None:
    rope = fastpe.RotaryEmbedding(64, interleaved=interleaved)
    x = normal(2, 4, LENGTH, 64).astype(dtype)
    positions = np.stack([np.arange(LENGTH), 100 + np.arange(LENGTH)])
    row = "from opset 23 on, with position_ids" if with_ids else "without position_ids"
    cos, sin = tables_of(f"ONNX RotaryEmbedding {row}", rope=rope, M=200, positions=positions)
    feeds = {"x": x, "cos": cos.astype(dtype), "sin": sin.astype(dtype)}
    if with_ids:
        feeds["ids"] = positions
    (expected,) = run_node("RotaryEmbedding", feeds, ["y"], domain="", interleaved=int(interleaved))
    # In float16 the tables are rounded, and so are results of up to 4.
    bound = 1e-6 if dtype == "float32" else 2.0**-8
    ours = rope.rotate(x, positions=positions, seq_axis=-2)
    compare(ours, expected, bound)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("rotary_dim", [64, 32])
def test_group_query_attention_of_onnxruntime(interleaved: bool, rotary_dim: int) -> None:
    """A prompt, then one token for each of two sequences, which are at different positions."""
    batch, heads, key_heads, columns, prompt = 2, 4, 2, 64, 20
    rope = fastpe.RotaryEmbedding(rotary_dim, interleaved=interleaved, head_dim=columns)
    cos, sin = tables_of("com.microsoft.GroupQueryAttention", rope=rope, M=200)
    past = {name: normal(batch, key_heads, 0, columns) for name in ("past_key", "past_value")}
    keys, values = (np.zeros((batch, key_heads, prompt + 1, columns), np.float32) for _ in range(2))
    for starts, length in (((0, 0), prompt), ((prompt, prompt - 7), 1)):
        counts = enumerate((heads, key_heads, key_heads), length)
        q, k, v = (normal(batch, length, count, columns, seed=seed) for seed, count in counts)
        offset = np.array(starts, np.int32)
        feeds = {
            **{name: each.reshape(batch, length, -1).copy() for name, each in (("q", q), ("k", k), ("v", v))},
            **past,
            "seqlens_k": offset + np.int32(length - 1),
            "total_sequence_length": np.array(max(starts) + length, np.int32),
            "cos_cache": cos,
            "sin_cache": sin,
        }
        attributes = {"num_heads": heads, "kv_num_heads": key_heads, "rotary_interleaved": int(interleaved)}
        outputs = ["y", "present_key", "present_value"]
        y, *present = run_node("GroupQueryAttention", feeds, outputs, domain="com.microsoft", do_rotary=1, **attributes)
        past = dict(zip(past, present, strict=True))

        rope.rotate_(q, k, offset=offset, seq_axis=-3)
        ours = []
        for b, start in enumerate(starts):
            new = slice(start, start + length)
            keys[b, :, new], values[b, :, new] = k[b].swapaxes(0, 1), v[b].swapaxes(0, 1)
            compare(keys[b, :, new], present[0][b, :, new], 1e-6)
            seen = slice(start + length)
            ours.append(attention(q[b].swapaxes(0, 1), keys[b, :, seen], values[b, :, seen]).swapaxes(0, 1))
        compare(np.stack(ours).reshape(y.shape), y, 2e-6)


def attention(q: Array, k: Array, v: Array) -> Array:
    """Causal attention of one sequence, [heads, L, D], in float64; the last query is at the last key."""
    k, v = (each.repeat(len(q) // len(k), axis=0).astype(np.float64) for each in (k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    rows, columns = scores.shape[1:]
    scores[:, np.arange(columns) > np.arange(columns - rows, columns)[:, None]] = -np.inf
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result: Array = scores / scores.sum(axis=-1, keepdims=True) @ v
    return result


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("rotary_dim", [64, 32])
@pytest.mark.parametrize("start", ["offset", "positions"])
def test_onnxruntime_kernel(interleaved: bool, rotary_dim: int, start: str) -> None:
    batch, heads, columns, rows = 2, 4, 64, 200
    rope = fastpe.RotaryEmbedding(rotary_dim, interleaved=interleaved, head_dim=columns)
    cos, sin = tables_of("com.microsoft.RotaryEmbedding", rope=rope, M=rows)
    # [B, L, heads * D] goes with a part of the head, [B, heads, L, D] with all of it.
    is_flat = rotary_dim < columns
    x = normal(batch, LENGTH, heads, columns) if is_flat else normal(batch, heads, LENGTH, columns)
    positions = np.array([17]) if start == "offset" else np.stack([np.arange(LENGTH), 100 + np.arange(LENGTH)])
    attributes = {"interleaved": int(interleaved)}
    if is_flat:
        attributes |= {"num_heads": heads, "rotary_embedding_dim": rotary_dim}
    given = x.reshape(batch, LENGTH, -1) if is_flat else x
    feeds = {"x": given, "ids": positions.astype(np.int64), "cos": cos, "sin": sin}
    (expected,) = run_node("RotaryEmbedding", feeds, ["y"], domain="com.microsoft", **attributes)
    where = {"offset": 17} if start == "offset" else {"positions": positions}
    rope.rotate_(x, seq_axis=-3 if is_flat else -2, **where)
    # Its AVX2 kernel fuses a product and a sum.
    compare(x.reshape(expected.shape), expected, 1e-6)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("is_flat", [False, True])
@pytest.mark.parametrize("layout", ["sections", "interleaved sections"])
def test_onnxruntime_kernel_of_three_coordinates(layout: str, interleaved: bool, is_flat: bool) -> None:
    batch, heads, columns, rotary_dim, sections = 2, 4, 64, 48, [12, 7, 5]
    axes = np.repeat([0, 1, 2], sections)
    if layout == "interleaved sections":
        # As in Qwen3-VL: h and w take every third frequency of the front, and t has the others.
        axes = np.zeros(rotary_dim // 2, int)
        axes[1 : 3 * sections[1] : 3], axes[2 : 3 * sections[2] : 3] = 1, 2
    one_axis = fastpe.RotaryEmbedding(rotary_dim, interleaved=interleaved, base=1e6)
    cos, sin = tables_of("com.microsoft.MRotaryEmbedding", rope=one_axis, M=200)
    x = normal(batch, LENGTH, heads, columns) if is_flat else normal(batch, heads, LENGTH, columns)
    ids = np.random.default_rng(3).integers(0, 200, (3, batch, LENGTH))
    feeds = {"x": x.reshape(batch, LENGTH, -1) if is_flat else x, "ids": ids, "cos": cos, "sin": sin}
    attributes = {"mrope_section": sections, "mrope_layout": int(layout != "sections"), "interleaved": int(interleaved)}
    attributes |= {"num_heads": heads, "rotary_embedding_dim": rotary_dim}
    (expected,) = run_node("MRotaryEmbedding", feeds, ["y"], domain="com.microsoft", **attributes)
    rope = fastpe.RotaryEmbedding(rotary_dim, interleaved=interleaved, base=1e6, head_dim=columns, frequency_axes=axes)
    rope.rotate_(x, positions=np.moveaxis(ids, 0, -1), seq_axis=-3 if is_flat else -2)
    compare(x.reshape(expected.shape), expected, 1e-6)


# Other projects


def test_x_transformers_rotation() -> None:
    torch, module = imported("torch"), imported("x_transformers.x_transformers")
    rotary = module.RotaryEmbedding(32)
    angles, _ = rotary.forward_from_seq_len(LENGTH)
    x = normal(2, 4, LENGTH, 64)
    expected = module.apply_rotary_pos_emb(torch.from_numpy(x.copy()), angles)
    ours = fastpe.RotaryEmbedding(32, interleaved=True, head_dim=64).rotate_(x, seq_axis=-2)
    compare(ours, expected, 8 * ROUNDING)


def embedding_of_keras_hub(layer: Any, d: int) -> fastpe.RotaryEmbedding:
    """The embedding of a keras_hub.layers.RotaryEmbedding for heads of d columns."""
    scaling: dict[str, Any] = {"rope_type": layer.rope_type, "factor": layer.scaling_factor}
    if layer.rope_type == "dynamic":  # it leaves the base
        scaling = {"rope_type": "linear", "factor": layer.scaling_factor ** (d / (d - 2))}
    elif layer.rope_type == "yarn":
        names = ("beta_fast", "beta_slow", "truncate", "original_max_position_embeddings")
        scaling |= {name: getattr(layer, name) for name in names}
    return fastpe.RotaryEmbedding(d, interleaved=False, base=layer.max_wavelength, scaling=scaling)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_wavelength": 500000, "scaling_factor": 4.0},
        {"rope_type": "dynamic", "scaling_factor": 4.0},
        # The ramp of "yarn" lies inside of the head.
        {"rope_type": "yarn", "scaling_factor": 8.0, "original_max_position_embeddings": 128, "truncate": True},
        {"rope_type": "yarn", "scaling_factor": 8.0, "original_max_position_embeddings": 128, "truncate": False},
    ],
    ids=lambda options: "-".join(map(str, options.values())) or "default",
)
def test_keras_hub_rotation(options: dict[str, Any]) -> None:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    torch, layers = imported("torch"), imported("keras_hub.layers")
    x = normal(2, LENGTH, 4, 64)
    layer = layers.RotaryEmbedding(**options)
    expected = layer(torch.from_numpy(x.copy()), start_index=5).cpu()
    ours = embedding_of_keras_hub(layer, 64).rotate_(x, offset=5, seq_axis=-3)
    compare(ours, expected, 8 * ROUNDING)
