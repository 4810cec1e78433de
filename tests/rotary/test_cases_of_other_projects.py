# SPDX-License-Identifier: BSD-3-Clause
"""Cases that other projects test their rotary embeddings with, with some of the numbers that they state.

From huggingface/transformers (Apache License 2.0) and microsoft/onnxruntime (MIT License); each test names its source.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.refusals import naming
from .oracle import Array

from_config = fastpe.RotaryEmbedding.from_config

# huggingface/transformers: tests/utils/test_modeling_rope_utils.py, RopeTest

LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 2048}
GEMMA = {
    "model_type": "gemma3_text",
    "hidden_size": 2304,
    "num_attention_heads": 8,
    "head_dim": 256,
    "max_position_embeddings": 131072,
    "layer_types": ["full_attention", "sliding_attention"],
}
LLAMA3 = {"original_max_position_embeddings": 2048, "low_freq_factor": 1, "high_freq_factor": 4}
NESTED = [False, True]


def of(rope_type: str, *, nested: bool, seq_len: int | None = None, **keys: Any) -> tuple[Array, float]:
    """Frequencies and attention factor of their config: Llama's, or Gemma 3's, which has a scaling per layer type."""
    scaling = {"rope_type": rope_type, "rope_theta": 10000.0, **keys}
    if nested:
        default = {"rope_type": "default", "rope_theta": 10000.0}
        config = {**GEMMA, "rope_parameters": {"full_attention": scaling, "sliding_attention": default}}
        rope = from_config(config, layer_type="full_attention", seq_len=seq_len)
    else:
        rope = from_config({**LLAMA, "rope_parameters": scaling}, seq_len=seq_len)
    return rope.frequencies, rope.attention_factor


# Rope type, its keys, sequence length, nested; frequencies of some indices, with the digits that they state.
SNAPSHOTS: list[tuple[str, dict[str, Any], int | None, bool, dict[int, str]]] = [
    ("default", {}, None, False, {1: "8.6596e-01", 20: "5.6234e-02", 37: "4.8697e-03", 63: "1.1548e-04"}),
    ("default", {}, None, True, {1: "9.3057e-01", 40: "5.6234e-02", 75: "4.5316e-03", 127: "1.0746e-04"}),
    (
        "dynamic",
        {"factor": 10.0},
        16384,
        False,
        {1: "8.0931e-01", 20: "1.4531e-02", 37: "3.9834e-04", 63: "1.6265e-06"},
    ),
    (
        "dynamic",
        {"factor": 10.0},
        200000,
        True,
        {1: "9.1723e-01", 40: "3.1560e-02", 75: "1.5342e-03", 127: "1.7170e-05"},
    ),
    (
        "yarn",
        {"factor": 10.0, "beta_fast": 32, "beta_slow": 1},
        None,
        False,
        {16: "1.0000e-01", 17: "8.3479e-02", 37: "1.1882e-03", 40: "4.3007e-04", 41: "2.7384e-04", 63: "1.1548e-05"},
    ),
    (
        "yarn",
        {"factor": 10.0, "beta_fast": 32, "beta_slow": 1},
        None,
        True,
        {90: "1.5399e-03", 91: "1.4067e-03", 96: "8.8980e-04", 127: "3.4431e-05"},
    ),
    (
        "llama3",
        {"factor": 10.0, **LLAMA3},
        None,
        False,
        {30: "1.3335e-02", 31: "1.0730e-02", 36: "1.9675e-03", 40: "3.4539e-04", 41: "2.7384e-04", 63: "1.1548e-05"},
    ),
    (
        "llama3",
        {"factor": 10.0, **LLAMA3},
        None,
        True,
        {61: "1.2409e-02", 62: "1.0730e-02", 72: "1.9675e-03", 80: "3.4539e-04", 81: "2.9427e-04", 127: "1.0746e-05"},
    ),
    ("proportional", {"partial_rotary_factor": 0.25}, None, False, {1: "8.6596e-01", 15: "1.1548e-01", 16: "0"}),
]


@pytest.mark.parametrize(("rope_type", "keys", "seq_len", "nested", "stated"), SNAPSHOTS)
def test_frequencies_are_those_that_transformers_states(
    rope_type: str, keys: dict[str, Any], seq_len: int | None, nested: bool, stated: dict[int, str]
) -> None:
    freqs, _ = of(rope_type, nested=nested, seq_len=seq_len, **keys)
    for index, text in stated.items():
        # Theirs are float32, and rounded to five digits: their tolerance of 1e-5 would accept any small frequency.
        last_digit = float(f"1e{int(text.partition('e')[2]) - 4}") if text != "0" else 0.0
        assert abs(freqs[index] - float(text)) <= 0.51 * last_digit


@pytest.mark.parametrize("nested", NESTED)
@pytest.mark.parametrize("factor", [2.0, 10.0, 20.0])
def test_attention_factors_and_quotients_of_transformers(factor: float, nested: bool) -> None:
    default, no_scale = of("default", nested=nested)
    linear, linear_scale = of("linear", nested=nested, factor=factor)
    np.testing.assert_allclose(linear, default / factor, rtol=1e-15)
    short, short_scale = of("dynamic", nested=nested, seq_len=1, factor=factor)
    np.testing.assert_array_equal(short, default)
    proportional, proportional_scale = of("proportional", nested=nested, factor=factor)
    np.testing.assert_array_equal(proportional, linear)
    llama3_scale = of("llama3", nested=nested, factor=factor, **LLAMA3)[1]
    assert {no_scale, linear_scale, short_scale, proportional_scale, llama3_scale} == {1.0}

    assert of("yarn", nested=nested, factor=factor)[1] == pytest.approx(0.1 * math.log(factor) + 1.0, rel=1e-15)
    assert of("yarn", nested=nested, factor=factor, attention_factor=0.5)[1] == 0.5

    lists = {"short_factor": [2.0] * len(default), "long_factor": list(range(1, len(default) + 1))}
    trained = (GEMMA if nested else LLAMA)["max_position_embeddings"]
    assert isinstance(trained, int)
    scale = of("longrope", nested=nested, seq_len=1, factor=factor, **lists)[1]
    assert scale == pytest.approx(math.sqrt(1 + math.log(factor) / math.log(trained)), rel=1e-15)
    assert of("longrope", nested=nested, seq_len=1, factor=factor, attention_factor=0.5, **lists)[1] == 0.5
    for seq_len, key in ((0, "short_factor"), (trained, "short_factor"), (trained + 1, "long_factor")):
        freqs, _ = of("longrope", nested=nested, seq_len=seq_len, factor=factor, **lists)
        np.testing.assert_allclose(freqs, default / lists[key], rtol=1e-15)


@pytest.mark.parametrize("nested", NESTED)
def test_ramps_of_transformers_reach_as_far_as_it_expects(nested: bool) -> None:
    default, _ = of("default", nested=nested)
    for freqs, _ in (
        of("yarn", nested=nested, factor=10.0, beta_fast=32, beta_slow=1),
        of("llama3", nested=nested, factor=10.0, **LLAMA3),
    ):
        assert (default / 10 <= freqs * (1 + 1e-15)).all()
        assert (freqs <= default).all()
    freqs, _ = of("llama3", nested=nested, factor=10.0, **{**LLAMA3, "high_freq_factor": 1000})
    assert (freqs < default).all()
    freqs, _ = of(
        "yarn",
        nested=nested,
        factor=10.0,
        beta_fast=1000,
        beta_slow=1,
        original_max_position_embeddings=8 if nested else 2048,
    )
    assert freqs[0] == default[0]
    assert (freqs[1:] < default[1:]).all()
    if not nested:
        np.testing.assert_allclose(freqs[-20:], default[-20:] / 10, rtol=1e-15)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.25])
def test_proportional_frequencies_of_transformers_end_in_zeros(share: float) -> None:
    freqs, _ = of("proportional", nested=False, partial_rotary_factor=share)
    assert freqs.shape == (64,)
    assert (freqs[: int(64 * share)] > 0).all()
    assert (freqs[int(64 * share) :] == 0).all()
    halved, _ = of("proportional", nested=False, partial_rotary_factor=share, factor=2.0)
    np.testing.assert_array_equal(halved, freqs / 2)


# The same project: tests/causal_lm_tester.py, test_model_rope_scaling_frequencies


@pytest.mark.parametrize(
    ("model_type", "part_of_a_head"),
    [("llama", {}), ("falcon", {}), ("stablelm", {"partial_rotary_factor": 0.5})],
)
def test_tables_before_and_after_scaling_as_transformers_expects(
    model_type: str, part_of_a_head: dict[str, float]
) -> None:
    factor, short, long = 10, 10, 768

    def tables(rope_type: str, length: int, seq_len: int | None = None) -> Array:
        scaling = {"rope_type": rope_type, "rope_theta": 10000.0, **part_of_a_head}
        if rope_type != "default":
            scaling["factor"] = factor
        config = {"model_type": model_type, "hidden_size": 64, "num_attention_heads": 4, "rope_parameters": scaling}
        rope = from_config({**config, "max_position_embeddings": 512}, seq_len=seq_len)
        return np.stack(rope.tables(length))

    original = tables("default", long)
    np.testing.assert_array_equal(tables("default", short), original[:, :short])

    linear = tables("linear", long)
    np.testing.assert_array_equal(tables("linear", short), linear[:, :short])
    # Their tolerance for float32.
    np.testing.assert_allclose(linear[:, ::factor], original[:, : -(-long // factor)], rtol=1.3e-6, atol=1e-5)

    np.testing.assert_array_equal(tables("dynamic", short, seq_len=short), original[:, :short])
    dynamic = tables("dynamic", long, seq_len=long)
    yarn = tables("yarn", long)
    np.testing.assert_array_equal(tables("yarn", short), yarn[:, :short])
    for table, other in ((dynamic, original), (yarn, original), (yarn[:, :short], original[:, :short])):
        for part, other_part in zip(table, other, strict=True):
            assert not np.allclose(part, other_part, rtol=1.3e-6, atol=1e-5)


# microsoft/onnxruntime: onnxruntime/test/contrib_ops/rotary_embedding_op_test.cc, ContribOpRotaryEmbeddingTest, and
# onnxruntime/test/providers/cpu/llm/rotary_embedding_op_test.cc, RotaryEmbeddingTest, which has the same numbers

# [L, heads, D]
WIDE = np.array(
    [
        [[-1.0408, 0.9166, -1.3042, -1.1097], [-0.1320, -0.2751, -0.2350, 0.0937]],
        [[-1.2188, 1.1676, -1.0574, -0.1188], [-0.7396, -1.2425, -0.1752, 0.6990]],
        [[-0.8110, 0.6737, -1.1233, -0.0919], [-0.6861, 0.7202, 0.1963, 0.6142]],
    ],
    np.float32,
)
WIDE_ROTATED = [
    [[-1.0408, 0.9166, -1.3042, -1.1097], [-0.1320, -0.2751, -0.2350, 0.0937]],
    [[-1.6411, -0.3948, -1.0561, -0.1294], [0.6460, -1.2937, -0.1822, 0.6972]],
    [[-0.2751, -1.0178, -1.1212, -0.1143], [-0.3694, -0.9235, 0.1840, 0.6180]],
]
HALVES = np.array(
    [
        [[-1.0408, 0.9166, -1.3042, -1.1097, -1.2188, 1.1676], [1.0076, -0.7529, -0.2250, -0.4327, -1.5071, -0.4586]],
        [[-1.0574, -0.1188, -0.9078, 0.3452, -0.5713, -0.2351], [-0.8480, 0.5266, -1.2944, -0.0243, -0.2354, -0.7087]],
    ],
    np.float32,
)
HALVES_ROTATED = [
    [[-1.0408, 0.9166, -1.3042, -1.1097, -1.2188, 1.1676], [1.0076, -0.7529, -0.2250, -0.4327, -1.5071, -0.4586]],
    [[-0.8618, -0.0922, -0.9073, -0.7032, -0.5762, -0.2371], [-0.4377, 0.5370, -1.2929, -0.7267, -0.2107, -0.7115]],
]
# Their tables, cosines and sines, which are those of base 10000, rounded to four digits.
FOUR_COLUMNS = (
    [[1.0, 1.0], [0.5403, 0.9999], [-0.4161, 0.9998], [-0.9900, 0.9996]],
    [[0.0, 0.0], [0.8415, 0.0100], [0.9093, 0.0200], [0.1411, 0.0300]],
)
SIX_COLUMNS = (
    [[1.0, 1.0, 1.0], [0.5403, 0.9989, 1.0], [-0.4161, 0.9957, 1.0], [-0.9900, 0.9903, 1.0]],
    [[0.0, 0.0, 0.0], [0.8415, 0.0464, 0.0022], [0.9093, 0.0927, 0.0043], [0.1411, 0.1388, 0.0065]],
)
# For four of six columns, and only the cosine and sine of 1 in the last row.
PHI_COLUMNS = ([[1.0, 1.0], [1.0, 0.5403]], [[0.0, 0.0], [0.0, 0.8415]])
# One head.
PHI = HALVES[0][:, None]
PHI_ROTATED = [PHI[0].tolist(), [[1.0076, -0.0427, -0.2250, -0.8673, -1.5071, -0.4586]]]

ONNXRUNTIME: dict[str, tuple[Array, Any, Any, bool, dict[str, Any]]] = {
    "Interleaved_SmallData_LlamaMSFT": (WIDE, FOUR_COLUMNS, WIDE_ROTATED, True, {"offset": 0}),
    "Interleaved_SmallData_LlamaMSFT, 4D_Input": (WIDE, FOUR_COLUMNS, WIDE_ROTATED, True, {"positions": [0, 1, 2]}),
    "NotInterleaved_SmallData_LlamaMSFT": (HALVES, SIX_COLUMNS, HALVES_ROTATED, False, {"positions": [0, 1]}),
    "NotInterleaved_NoPosIds_SmallData_LlamaMSFT": (HALVES, SIX_COLUMNS, HALVES_ROTATED, False, {}),
    "CustomRotaryDim_SmallData_Phi": (PHI, PHI_COLUMNS, PHI_ROTATED, False, {"positions": [0, 1]}),
    "CustomRotaryDim_SmallData_Phi_Packed_Batching": (
        PHI[[0, 0, 1]],
        PHI_COLUMNS,
        [PHI_ROTATED[0], *PHI_ROTATED],
        False,
        {"cu_seqlens": [0, 1, 3]},
    ),
}


@pytest.mark.parametrize("is_float16", [False, True])
@pytest.mark.parametrize("name", ONNXRUNTIME)
def test_rotations_are_those_that_onnxruntime_states(name: str, is_float16: bool) -> None:
    given, tables, stated, interleaved, where = ONNXRUNTIME[name]
    dtype = np.float16 if is_float16 else np.float32
    x = given.astype(dtype)
    cos, sin = (np.array(table, dtype) for table in tables)
    if "4D" in name:
        x = np.ascontiguousarray(x.swapaxes(0, 1))
        fastpe.rotate_(x, cos=cos, sin=sin, interleaved=interleaved, **where)
        x = x.swapaxes(0, 1)
    else:
        fastpe.rotate_(x, cos=cos, sin=sin, interleaved=interleaved, seq_axis=-3, **where)
    # Their tolerance is 0.002 for both; in float32 only the four digits of the tables and of the result are lost.
    np.testing.assert_allclose(x, stated, rtol=0, atol=0.002 if is_float16 else 3e-4)


@pytest.mark.parametrize("tables", [FOUR_COLUMNS, SIX_COLUMNS])
def test_tables_are_those_of_onnxruntimes_cases(tables: Any) -> None:
    rope = fastpe.RotaryEmbedding(2 * len(tables[0][0]), interleaved=False, form="halves")
    for ours, theirs in zip(rope.tables(4), tables, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=0.51e-4)


@pytest.mark.parametrize(
    ("batch", "where", "found"),
    [
        pytest.param(1, {"positions": [[0, 2048]]}, 2048, id="ExceedsMaxSeqLen"),
        pytest.param(1, {"positions": [[-1, 0]]}, -1, id="Negative"),
        pytest.param(2, {"positions": [[0, 1], [2, 100]]}, 100, id="OOB_InBatch"),
        pytest.param(1, {"offset": 7}, 8, id="Format0_OOB"),
        pytest.param(1, {"offset": -5}, -5, id="Format0_Negative"),
    ],
)
def test_positions_that_onnxruntime_refuses_are_refused(batch: int, where: dict[str, Any], found: int) -> None:
    x = np.ones((batch, 2, 2, 4), np.float32)
    # Sines that would show what was written.
    cos, sin = np.zeros((8, 2), np.float32), np.full((8, 2), 0.5, np.float32)
    with pytest.raises(IndexError, match=naming(str(found))):
        fastpe.rotate_(x, cos=cos, sin=sin, interleaved=False, seq_axis=-3, **where)
    assert (x == 1.0).all()
