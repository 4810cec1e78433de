# SPDX-License-Identifier: BSD-3-Clause
"""Which layers are rotated, and by which embedding. tests/peers/test_rotary_layers.py has the models themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.refusals import naming

from_config = fastpe.RotaryEmbedding.from_config
layers_from_config = fastpe.RotaryEmbedding.layers_from_config

FULL, SLIDING = "full_attention", "sliding_attention"


def pattern(model_type: str, **keys: Any) -> str:
    layers = layers_from_config({"model_type": model_type, "num_hidden_layers": 8, **keys})
    return "".join("." if layer is None else "R" for layer in layers)


@pytest.mark.parametrize(
    ("model_type", "keys", "expected"),
    [
        *((name, {}, "RRR.RRR.") for name in ("cohere2", "exaone4", "exaone_moe", "afmoe", "llama4_text", "smollm3")),
        *((name, {}, "RRR.RRR.") for name in ("mistral_large4_text", "muse_spark_text")),
        ("flint", {}, "..RRR.R."),
        ("kolibri1", {}, "RRRR.RRR"),
        ("beam", {}, "RRRRR.R."),
        ("lara_mini", {}, ".R..R.R."),
        ("mllama_text_model", {}, "RRR.RRRR"),
        ("qwen3_next", {}, "...R...R"),
        ("recurrent_gemma", {}, "..R..R.."),
        ("llama4_text", {"no_rope_layers": [1] * 8, "layer_types": [FULL] * 8}, "RRRRRRRR"),
        ("llama4_text", {"no_rope_layers": [1, 1, 1, 0] * 2, "attention_chunk_size": None}, "RRR.RRR."),
        ("cohere2_moe", {"first_k_dense_replace": 2}, "RRRRR.RR"),
        ("cohere2", {"sliding_window_pattern": 2}, "R.R.R.R."),
        ("exaone4", {"sliding_window_pattern": "LLLG"}, "RRR.RRR."),
        ("smollm3", {"no_rope_layers": [0, 1, 1, 1, 1, 1, 1, 0]}, ".RRRRRR."),
        ("smollm3", {"no_rope_layer_interval": 2}, "R.R.R.R."),
        ("granite_swa", {"layer_rope_theta": [0, 1e4] * 4}, ".R.R.R.R"),
        ("llama", {}, "RRRRRRRR"),
    ],
)
def test_which_layers_are_rotated(model_type: str, keys: dict[str, Any], expected: str) -> None:
    assert pattern(model_type, **keys) == expected
    config = {"model_type": model_type, "num_hidden_layers": 8, **keys}
    if "." in expected:
        with pytest.raises(ValueError, match="layers_from_config"):
            from_config(config)
    else:
        assert {from_config(config)} == {*layers_from_config(config)}


def test_layers_that_are_alike_share_one_object() -> None:
    layers = layers_from_config({"model_type": "gemma3_text", "num_hidden_layers": 12})
    assert len({id(layer) for layer in layers}) == 2
    assert layers[5] is layers[11]
    for at, base in ((4, 1e4), (5, 1e6)):
        layer = layers[at]
        assert layer is not None
        np.testing.assert_allclose(layer.frequencies, base ** (-np.arange(128) / 128), rtol=1e-15)
    assert layers[5] == from_config({"model_type": "gemma3_text"}, layer_type=FULL)


def test_a_base_for_each_layer() -> None:
    given = [0, 5e5, 1e4, 5e5]
    config = {"model_type": "granite_swa", "rope_parameters": {"rope_theta": 1e4}, "layer_rope_theta": given}
    bases = [None if layer is None else 1 / layer.frequencies[-1] for layer in layers_from_config(config)]
    assert bases[0] is None
    assert bases[1] == bases[3] == pytest.approx(5e5 ** (126 / 128))
    assert bases[2] == pytest.approx(1e4 ** (126 / 128))


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"model_type": "llama"}, "num_hidden_layers"),
        ({"model_type": "llama", "num_hidden_layers": 0}, "num_hidden_layers"),
        ({"model_type": "llama", "num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"model_type": "cohere2", "num_hidden_layers": 3, "layer_types": [FULL]}, "layer_types"),
        ({"model_type": "cohere2", "layer_types": [FULL, "banana"]}, "layer_types 1"),
        ({"model_type": "smollm3", "num_hidden_layers": 3, "no_rope_layers": [1]}, "no_rope_layers"),
        ({"model_type": "smollm3", "num_hidden_layers": 3, "no_rope_layer_interval": 0}, "no_rope_layer_interval"),
    ],
    ids=str,
)
def test_a_file_that_does_not_say_it_is_refused(config: dict[str, Any], key: str) -> None:
    with pytest.raises(ValueError, match=naming(key)):
        layers_from_config(config)


@pytest.mark.parametrize("model_type", ["cohere2", "exaone4"])
def test_the_type_of_layers_follows_from_the_pattern(model_type: str) -> None:
    config = {"model_type": model_type, "num_hidden_layers": 8}
    assert from_config(config, layer_type=SLIDING) == layers_from_config(config)[0]
    with pytest.raises(ValueError, match="not rotated"):
        from_config(config, layer_type=FULL)
    with pytest.raises(ValueError, match=naming("layer_type")):
        from_config(config, layer_type="banana")
    # The last layer of Gemma 4 sees everything, whatever the file lists.
    gemma = layers_from_config({"model_type": "gemma4_text", "layer_types": [SLIDING] * 3})
    assert [layer.rotary_dim for layer in gemma if layer] == [256, 256, 512]
    # All layers of SmolLM 3 are of one type, and not alike.
    with pytest.raises(ValueError, match=r"not all rotated.*layers_from_config"):
        from_config({"model_type": "smollm3", "num_hidden_layers": 8}, layer_type=FULL)


@pytest.mark.parametrize("kind", ["yarn", "linear", "dynamic", "unheard_of"])
def test_a_mapping_named_scaling_is_refused(kind: str) -> None:
    for config in ({"scaling": {"type": kind, "factor": 4}}, {"attention": {"scaling": {"type": kind, "factor": 4}}}):
        with pytest.raises(ValueError, match=naming("scaling")):
            from_config({"model_type": "llama", **config})
    assert from_config({"model_type": "llama", "scaling": True}) == from_config({"model_type": "llama"})


def test_phimoe_has_long_factors_beyond_its_trained_length() -> None:
    lists = {"short_factor": [1 + 0.01 * i for i in range(32)], "long_factor": [1 + 0.5 * i for i in range(32)]}
    scaling = {"type": "longrope", **lists, "short_mscale": 1.2, "long_mscale": 1.3}
    config = {"model_type": "phimoe", "head_dim": 64, "rope_theta": 100.0, "rope_scaling": scaling}
    config["original_max_position_embeddings"] = 4096
    ideal = 100.0 ** (-np.arange(32) / 32)
    for length, divisors, factor in ((4096, "short_factor", 1.2), (131072, "long_factor", 1.3)):
        rope = from_config(config, seq_len=length)
        np.testing.assert_allclose(rope.frequencies, ideal / lists[divisors], rtol=1e-14)
        assert rope.attention_factor == factor


def test_a_missing_width_names_the_keys_of_this_type() -> None:
    with pytest.raises(ValueError, match=naming("head_dim hidden_size")) as raised:
        from_config({"model_type": "llama", "hidden_size": None, "num_attention_heads": None})
    assert "qk_rope_head_dim" not in str(raised.value)


def test_chatglm_2_and_3_read_rope_ratio_differently() -> None:
    with pytest.raises(ValueError, match=naming("rope_ratio")) as raised:
        from_config({"model_type": "chatglm", "kv_channels": 128, "rope_ratio": 16})
    names = {"RotaryEmbedding": fastpe.RotaryEmbedding, "kv_channels": 128, "rope_ratio": 16}
    third, second = (
        eval(call[call.index("RotaryEmbedding(") :].split(" for ")[0], names)
        for call in str(raised.value).split(", and ")
    )
    assert (third.frequencies[0], second.frequencies[0]) == (1.0, 0.0625)
    assert second.frequencies[-1] == pytest.approx(8.33e-6, rel=1e-3)
