# SPDX-License-Identifier: BSD-3-Clause
"""Embeddings from a model's config.json: what each key means, and which files are refused.

tests/peers/test_rotary_configs.py compares the same files, and every model type, with transformers itself.
"""

from __future__ import annotations

import contextlib
import json
import math
import pathlib
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._config.file import table as _table
from fastpe._config.file import written

from ..oracles.configs import rotated_rope
from ..oracles.refusals import naming

DATA = json.loads((pathlib.Path(__file__).parents[1] / "data" / "rotary_configs.json").read_text("utf-8"))["models"]
CLASSES = json.loads((pathlib.Path(__file__).parents[1] / "data" / "rotary_classes.json").read_text("utf-8"))["classes"]

from_config = fastpe.RotaryEmbedding.from_config


def sizes(width: int, heads: int) -> dict[str, Any]:
    return {"hidden_size": width, "num_attention_heads": heads}


LLAMA = {"model_type": "llama", **sizes(512, 8), "rope_theta": 500000.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}


# Published files


def compare(rope: fastpe.RotaryEmbedding, case: dict[str, Any]) -> None:
    """Compare with the numbers of transformers, which are float32."""
    assert (rope.rotary_dim, rope.interleaved, rope.form) == (case["rotary_dim"], case["interleaved"], case["form"])
    assert rope.attention_factor == pytest.approx(case["attention_factor"], rel=1e-15)
    expected = np.array(case["frequencies"])
    scaling = rope.arguments["scaling"] or {}
    base = rope.arguments["base"] or scaling.get("rope_theta", 10000.0)
    # The exponent's rounding counts log(base) times, and there are a few operations besides.
    bounds = expected * (math.log(base) + 6.0) * 2.0**-24
    assert (np.abs(rope.frequencies[case["indices"]] - expected) <= bounds).all()


@pytest.mark.parametrize("model", DATA, ids=lambda model: model["model"])
def test_published_file(model: dict[str, Any]) -> None:
    for case in model["expected"]:
        compare(rotated_rope(model["config"], layer_type=case["layer_type"], seq_len=case["seq_len"]), case)


@pytest.mark.parametrize("case", CLASSES, ids=lambda case: f"{case['kind']}-{case['layer_type']}")
def test_defaults_of_a_class(case: dict[str, Any]) -> None:
    required = {key: words[0] for key, words in _table()["models"][case["model_type"]].get("requires", {}).items()}
    compare(rotated_rope({"model_type": case["model_type"], **required}, layer_type=case["layer_type"]), case)


# The table of model types


def test_parts_and_other_names_lead_to_rows() -> None:
    table = _table()
    for name, (key, part) in table["parts"].items():
        assert key != name
        kinds = ("models", "parts", "without", "sinusoids", "learned", "told")
        assert part is None or any(part in table[kind] for kind in kinds), part
    assert all(name in table["models"] for name in table["other_names"].values())
    assert not {*table["without"]} & {*table["models"]}
    assert all(table["sources"].get(kind) for kind in written() if kind != "sources")


def test_the_table_is_read_on_first_use() -> None:
    code = (
        "import sys, fastpe; rope = fastpe.RotaryEmbedding(8, interleaved=True);"
        "assert 'fastpe._config.layers' not in sys.modules;"
        "fastpe.RotaryEmbedding.from_config({'model_type': 'llama'});"
        "assert 'fastpe._config.layers' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Forms of a config


def test_old_new_and_nested_forms_mean_the_same() -> None:
    flat = {"rope_type": "linear", "factor": 8.0}
    sizes = {"model_type": "llama", "head_dim": 64}
    old = from_config({**sizes, "rope_theta": 1e6, "rope_scaling": flat})
    assert from_config({**sizes, "rope_parameters": {**flat, "rope_theta": 1e6}}) == old
    assert from_config({**sizes, "rope_theta": 1e6, "rope_parameters": flat}) == old
    assert from_config({**sizes, "rope_theta": 1e6, "rope_scaling": {"type": "linear", "factor": 8.0}}) == old
    gemma = {"model_type": "gemma3_text", "head_dim": 64}
    old = from_config({**gemma, "rope_theta": 1e6, "rope_scaling": flat}, layer_type="full_attention")
    nested = {"full_attention": {**flat, "rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}
    assert from_config({**gemma, "rope_parameters": nested}, layer_type="full_attention") == old
    local = from_config({**gemma, "rope_local_base_freq": 1e4, "rope_scaling": flat}, layer_type="sliding_attention")
    assert from_config({**gemma, "rope_parameters": nested}, layer_type="sliding_attention") == local


def test_two_rope_mappings_say_the_same_and_inner_keys_come_before_outer_ones() -> None:
    linear = {"type": "linear", "factor": 2.0}
    for other in ({"rope_type": "linear", "factor": 2.0, "rope_theta": LLAMA["rope_theta"]}, {}, None):
        config = {**LLAMA, "rope_scaling": linear, "rope_parameters": other}
        assert from_config(config) == from_config({**LLAMA, "rope_scaling": linear})
    different = {"rope_theta": {"rope_theta": 3e4}, "factor": {**linear, "factor": 4.0}, "rope_type": YARN}
    for key, parameters in different.items():
        with pytest.raises(ValueError, match=naming(f"rope_parameters {key}")):
            from_config({**LLAMA, "rope_scaling": linear, "rope_parameters": parameters})
    inner = {**LLAMA, "rope_parameters": {"rope_theta": 3e4}}
    assert from_config(inner).arguments["base"] == 3e4
    empty = {**LLAMA, "rope_scaling": {}, "rope_parameters": {"rope_theta": 3e4}}
    assert from_config(empty).arguments["base"] == 3e4


@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters", "head_dim", "partial_rotary_factor", "layer_types"])
def test_null_counts_as_missing(key: str) -> None:
    assert from_config({**LLAMA, key: None}) == from_config(LLAMA)


def test_null_for_the_width_of_a_head_is_no_default() -> None:
    gemma = {"model_type": "gemma2", **sizes(512, 8)}
    assert from_config(gemma).rotary_dim == 256
    assert from_config({**gemma, "head_dim": None}).rotary_dim == 64


def test_the_text_of_a_model_with_other_parts() -> None:
    text = {key: value for key, value in LLAMA.items() if key != "model_type"}
    vision = {"model_type": "siglip_vision_model", "hidden_size": 64}
    expected = from_config(LLAMA)
    assert from_config({"model_type": "llava", "text_config": text, "vision_config": vision}) == expected
    assert from_config({"model_type": "llava", "text_config": LLAMA}) == expected
    assert from_config({"model_type": "unheard_of", "text_config": LLAMA}) == expected
    thinker = {"thinker_config": {"text_config": {"head_dim": 64, "rope_theta": 1e6}}}
    assert from_config({"model_type": "qwen3_omni_moe", **thinker}).rotary_dim == 64
    flat = {"model_type": "qwen2_vl", **sizes(512, 8)}
    assert from_config(flat).rotary_dim == 64
    kimi = {"model_type": "kimi_k25", "text_config": {"model_type": "kimi_k2", "qk_rope_head_dim": 64}}
    assert from_config(kimi).interleaved


@pytest.mark.parametrize(
    ("config", "width", "base"),
    [
        ({"model_type": "gpt_neox", "rotary_pct": 0.5, "rotary_emb_base": 5000}, 48, 5000),
        ({"model_type": "jetmoe", "kv_channels": 64}, 64, 10000),
        ({"model_type": "dbrx", "d_model": 512, "n_heads": 8, "attn_config": {"rope_theta": 500000}}, 64, 500000),
        ({"model_type": "dbrx", "rope_theta": 5e4, "attn_config": {"rope_theta": None}}, 128, 5e4),
        ({"model_type": "minimax_m2", "head_dim": 128, "rotary_dim": 64}, 64, 5e6),
        # GLM 4.5's heads are wider than their share of hidden_size.
        ({"model_type": "glm4_moe", "head_dim": 128, **sizes(5120, 96), "partial_rotary_factor": 0.5}, 64, 1e4),
        ({"model_type": "phi", "head_dim": 160}, 80, 10000),
        ({"model_type": "persimmon", "head_dim": 160}, 80, 10000),
        ({"model_type": "bamba", "head_dim": 160}, 80, 10000),
        ({"model_type": "esm", "position_embedding_type": "rotary", "head_dim": 160}, 160, 10000),
        ({"model_type": "gptj", "rotary_dim": 32}, 32, 10000),
        ({"model_type": "deepseek_v3", "qk_rope_head_dim": 32, "head_dim": 192}, 32, 10000),
        ({"model_type": "zamba2", "use_mem_rope": True, **sizes(512, 8)}, 128, 10000),
        ({"model_type": "moonshine", "hidden_size": 320, "decoder_num_attention_heads": 8}, 36, 10000),
        ({"model_type": "phi", "partial_rotary_factor": 0.4, **sizes(2560, 32)}, 32, 10000),
        ({"model_type": "granite_swa", "layer_rope_theta": [0, 5e5, 5e5], "rope_theta": 1e4}, 128, 5e5),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_aliases_of_keys(config: dict[str, Any], width: int, base: float) -> None:
    rope = rotated_rope(config)
    assert (rope.rotary_dim, rope.arguments["base"]) == (width, base)


@pytest.mark.parametrize(
    ("config", "head_dim", "rotary_dim"),
    [
        ({"model_type": "llama", **sizes(4096, 32)}, 128, 128),
        ({"model_type": "gptj"}, 256, 64),
        ({"model_type": "gpt_neox", **sizes(512, 8)}, 64, 16),
        ({"model_type": "deepseek_v3"}, 64, 64),
        ({"model_type": "glm4_moe", "head_dim": 128}, 128, 64),
    ],
)
def test_the_width_of_a_head(config: dict[str, Any], head_dim: int, rotary_dim: int) -> None:
    rope = from_config(config)
    assert (rope.head_dim, rope.rotary_dim) == (head_dim, rotary_dim)
    with pytest.raises(ValueError, match="head"):
        rope.rotate_(np.ones((2, 16, 32 * head_dim), np.float32), seq_axis=-2)


def test_an_odd_width_has_the_frequencies_of_the_odd_number() -> None:
    # GLM-4.5's default: half of 42 columns.
    rope = from_config({"model_type": "glm4_moe"})
    assert rope.rotary_dim == 22
    assert rope.frequencies == pytest.approx(10000.0 ** (-2 * np.arange(11) / 21), rel=1e-15)


@pytest.mark.parametrize("layer_type", ["full_attention", "sliding_attention"])
def test_a_layer_of_its_own_width(layer_type: str) -> None:
    expected = 512 if layer_type == "full_attention" else 256
    assert from_config({"model_type": "gemma4_text"}, layer_type=layer_type).rotary_dim == expected
    own = {"layer_types": ["sliding_attention", "full_attention"], "per_layer_config": {"01": {"head_dim": 128}}}
    expected = 128 if layer_type == "full_attention" else 256
    assert from_config({"model_type": "gemma4_text", **own}, layer_type=layer_type).rotary_dim == expected


def test_layers_of_one_type_that_differ() -> None:
    some = {**LLAMA, "per_layer_config": {"3": {"head_dim": 32}, "4": {"intermediate_size": 8}}}
    kinds = {**some, "layer_types": ["full_attention"] * 3 + ["sliding_attention"]}
    assert from_config(kinds, layer_type="sliding_attention").rotary_dim == 32
    every = {**LLAMA, "num_hidden_layers": 2, "per_layer_config": {0: {"head_dim": 32}, 1: {"head_dim": 32}}}
    assert from_config(every).rotary_dim == 32
    for config in (some, {**some, "num_hidden_layers": 8}, {**some, "rope_theta": 1e4}):
        with pytest.raises(ValueError, match="layers_from_config"):
            from_config(config)
    layers = fastpe.RotaryEmbedding.layers_from_config({**some, "num_hidden_layers": 5})
    assert [layer.rotary_dim for layer in layers if layer] == [64, 64, 64, 32, 64]
    mapping = {**LLAMA, "num_hidden_layers": 1, "per_layer_config": {0: {"rope_scaling": {"rope_theta": 1e4}}}}
    with pytest.raises(ValueError, match=naming("per_layer_config")):
        from_config(mapping)


def test_numbers_for_each_layer() -> None:
    config = {"model_type": "step3p5", "rope_theta": [5e6, 1e4, 5e6], "partial_rotary_factors": [0.5, 1.0, 0.5]}
    config["layer_types"] = ["full_attention", "sliding_attention", "full_attention"]
    full = from_config(config, layer_type="full_attention")
    local = from_config(config, layer_type="sliding_attention")
    assert (full.rotary_dim, full.arguments["base"]) == (64, 5e6)
    assert (local.rotary_dim, local.arguments["base"]) == (128, 1e4)


# Scalings


def test_the_trained_length() -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0}

    def trained(config: dict[str, Any], **layer: Any) -> Any:
        return from_config(config, **layer).arguments["scaling"]["original_max_position_embeddings"]

    inner = {**yarn, "original_max_position_embeddings": 100}
    assert trained({**LLAMA, "rope_scaling": inner}) == 100
    # With one mapping, the outer key wins. With nested mappings, it is ignored.
    assert trained({**LLAMA, "rope_scaling": inner, "original_max_position_embeddings": 200}) == 200
    nested = {"model_type": "gemma3_text", "rope_parameters": {"full_attention": {**inner, "rope_theta": 1e6}}}
    assert trained({**nested, "original_max_position_embeddings": 200}, layer_type="full_attention") == 100
    old = {"model_type": "gemma3_text", "rope_scaling": inner, "original_max_position_embeddings": 200}
    assert trained(old, layer_type="full_attention") == 100
    assert trained({**LLAMA, "rope_scaling": yarn, "max_position_embeddings": 300}) == 300


@pytest.mark.parametrize(
    ("model_type", "name", "read"),
    [("phi3", "su", "longrope"), ("phi3", "yarn", "longrope"), ("phi4_multimodal", "su", "longrope")],
)
def test_longrope_by_other_names(model_type: str, name: str, read: str) -> None:
    scaling = {"type": name, "short_factor": [1.0] * 32, "long_factor": [2.0] * 32}
    config = {**LLAMA, "model_type": model_type, "rope_scaling": scaling}
    config |= {"max_position_embeddings": 8192, "original_max_position_embeddings": 4096}
    short, long = (from_config(config, seq_len=length) for length in (4096, 4097))
    assert short.arguments["scaling"]["rope_type"] == read
    assert np.array_equal(short.frequencies, 2 * long.frequencies)
    assert short.attention_factor == pytest.approx(math.sqrt(1 + math.log(2) / math.log(4096)), rel=1e-15)


@pytest.mark.parametrize(("model_type", "trained"), [("phi3", 4096), ("phi4_multimodal", 4096), ("llama", 8192)])
def test_the_trained_length_that_is_left_out(model_type: str, trained: int) -> None:
    scaling = {"type": "longrope", "short_factor": [1.0] * 32, "long_factor": [2.0] * 32}
    config = {**LLAMA, "model_type": model_type, "rope_scaling": scaling, "max_position_embeddings": 8192}
    rope = from_config(config, seq_len=5000)
    assert rope.arguments["scaling"]["original_max_position_embeddings"] == trained


def test_a_factor_of_null_is_the_quotient_of_the_lengths() -> None:
    lengths = {"original_max_position_embeddings": 4096, "max_position_embeddings": 16384}
    rope = from_config({**LLAMA, **lengths, "rope_scaling": {"rope_type": "yarn", "factor": None}})
    written = from_config({**LLAMA, "rope_scaling": YARN})
    assert np.array_equal(rope.frequencies, written.frequencies)
    assert rope.attention_factor == written.attention_factor


def test_mrope_scales_nothing() -> None:
    config = {"model_type": "qwen2_vl_text", "head_dim": 128, "rope_theta": 1e6, "rope_scaling": {"type": "mrope"}}
    assert from_config(config) == fastpe.RotaryEmbedding(128, interleaved=False, base=1e6)


def test_hunyuan_counts_alpha_alone() -> None:
    scaling = {"type": "dynamic", "alpha": 1000.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0}
    rope = from_config({"model_type": "hunyuan_v1_dense", "head_dim": 128, "rope_scaling": scaling})
    expected = fastpe.RotaryEmbedding(128, interleaved=False, scaling={"rope_type": "dynamic", "alpha": 1000.0})
    assert np.array_equal(rope.frequencies, expected.frequencies)


def test_keys_without_effect_on_tables_are_dropped_and_others_refused() -> None:
    scaling = {**YARN, "llama_4_scaling_beta": 0.1, "finetuned": True, "mrope_section": [1, 2]}
    scaling |= {"attn_factor": 1.0, "extrapolation_factor": 1}
    assert from_config({**LLAMA, "rope_scaling": scaling}) == from_config({**LLAMA, "rope_scaling": YARN})
    for key in ("attn_factor", "extrapolation_factor"):
        with pytest.raises(ValueError, match=naming(key)):
            from_config({**LLAMA, "rope_scaling": {**YARN, key: 2.0}})


TYPES = {"layer_types": ["sliding_attention", "full_attention"]}


@pytest.mark.parametrize("model_type", _table()["models"])
def test_layers_that_are_not_rotated(model_type: str) -> None:
    row = _table()["models"][model_type]
    config = {"model_type": model_type, **{key: words[0] for key, words in row.get("requires", {}).items()}}
    if row.get("nested") and not row.get("layers"):
        config["rope_parameters"] = {"full_attention": {"rope_theta": 10000.0}}
    for layer in (*row.get("unrotated", {}), *_table()["unrotated_layers"], "banana"):
        with pytest.raises(ValueError, match=naming(f"'{layer}'")):
            from_config({**config, "layer_types": [*TYPES["layer_types"], layer]}, layer_type=layer)


@pytest.mark.parametrize(
    ("config", "layer_type", "is_rotated"),
    [
        # transformers: "if self.sliding_window is None or self.is_sliding"
        *(({"model_type": name}, "full_attention", False) for name in ("exaone4", "exaone_moe", "kolibri1")),
        ({"model_type": "exaone4", "sliding_window": None}, "full_attention", True),
        ({"model_type": "exaone4", "sliding_window": 4096}, "full_attention", False),
        ({"model_type": "exaone4_5", "text_config": {"model_type": "exaone4_5_text"}}, "full_attention", False),
        *(({"model_type": name}, "full_attention", False) for name in ("afmoe", "cohere2", "flint", "lara_mini")),
        *(({"model_type": name}, "sliding_attention", True) for name in ("afmoe", "cohere2", "exaone4", "kolibri1")),
        # "position_embeddings if self.config.layer_rope_theta[i] else None"
        ({"model_type": "muse_spark_text"}, "full_attention", False),
        ({"model_type": "muse_spark_text", "layer_rope_theta": [0, 5e5]}, "full_attention", True),
        ({"model_type": "muse_spark_text", "layer_rope_theta": [0, 5e5]}, "sliding_attention", False),
        # "self.use_rope = config.no_rope_layers[layer_idx]"
        *(({"model_type": "smollm3", "no_rope_layers": given}, None, all(given)) for given in ([1, 0], [0, 0], [1, 1])),
        ({"model_type": "smollm3", "no_rope_layers": [1, 0]}, "full_attention", False),
        ({"model_type": "smollm3", "no_rope_layers": [1, 0]}, "sliding_attention", True),
        ({"model_type": "smollm3", "no_rope_layer_interval": 1}, None, False),
        ({"model_type": "unheard_of", "rope_theta": 1e4, "head_dim": 64}, "full_attention", True),
        ({"model_type": "llama"}, "full_attention", True),
    ],
)
def test_whether_a_layer_is_rotated(config: dict[str, Any], layer_type: str | None, is_rotated: bool) -> None:
    part = {"text_config": {**config["text_config"], **TYPES}} if "text_config" in config else TYPES
    with contextlib.nullcontext() if is_rotated else pytest.raises(ValueError, match=r"not (all )?rotated"):
        from_config({**config, **part}, layer_type=layer_type, interleaved=False)


def test_a_length_counts_where_it_is_needed() -> None:
    assert from_config(LLAMA, seq_len=77) == from_config(LLAMA)
    dynamic = {**LLAMA, "rope_scaling": {"type": "dynamic", "factor": 2.0}, "max_position_embeddings": 2048}
    assert from_config(dynamic, seq_len=4096) != from_config(dynamic, seq_len=2048)
    with pytest.raises(ValueError, match="seq_len is None, expected a length"):
        from_config(dynamic)


# Pairings


def test_interleaved_may_be_another_one_than_the_models() -> None:
    assert not from_config(LLAMA).interleaved
    gguf = from_config(LLAMA, interleaved=True)
    assert gguf.interleaved
    assert gguf.form == "tile"
    assert from_config({"model_type": "deepseek_v3"}).interleaved
    assert not from_config({"model_type": "deepseek_v3", "rope_interleave": False}).interleaved
    assert from_config({"model_type": "nanochat"}).conjugate


def test_an_unknown_model_type_with_a_pairing() -> None:
    config = {**LLAMA, "model_type": "unheard_of", "partial_rotary_factor": 0.5}
    rope = from_config(config, interleaved=True, max_len=16)
    assert rope == fastpe.RotaryEmbedding(32, interleaved=True, base=500000.0, head_dim=64, max_len=16)


@pytest.mark.parametrize(
    ("model_type", "section", "expected"),
    [
        ("qwen2_vl_text", [1, 2, 1], [0, 1, 1, 2]),
        ("qwen3_vl_text", [2, 1, 1], [0, 1, 2, 0]),
        ("qwen3_vl_text", [4, 2, 2], [0, 1, 2, 0, 1, 2, 0, 0]),
        ("qwen3_vl_text", [3, 2, 1], [0, 1, 2, 0, 1, 0]),
        ("ernie4_5_vl_moe_text", [1, 1, 2], [1, 2, 0, 0]),
    ],
)
def test_sections(model_type: str, section: list[int], expected: list[int]) -> None:
    config = {"model_type": model_type, "head_dim": 2 * len(expected), "rope_scaling": {"mrope_section": section}}
    assert from_config(config, mrope=True).frequency_axes == tuple(expected)
    assert from_config(config).frequency_axes is None


# What is refused


def test_wrong_files(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        from_config(tmp_path / "missing.json")
    with pytest.raises(IsADirectoryError, match=r"expected a file; it has no config\.json: give the path of one$"):
        from_config(tmp_path)
    path = tmp_path / "config.json"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(IsADirectoryError, match=re.escape(f"a directory, expected a file; give {str(path)!r}")):
        from_config(tmp_path)
    with pytest.raises(ValueError, match=r"which is not a config\.json.*expected JSON"):
        from_config(path)
    for name in ("model.gguf", "model.safetensors", "model.onnx"):
        (tmp_path / name).write_bytes(b"GGUF\x03\xff")
        with pytest.raises(ValueError, match=r"not a config\.json: .*give the config\.json of the same model"):
            from_config(tmp_path / name)
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(TypeError, match="which has a list, expected a JSON object"):
        from_config(path)


def test_a_config_is_not_changed_and_may_be_a_path(tmp_path: pathlib.Path) -> None:
    config = json.loads(json.dumps(DATA[0]["config"]))
    rope = from_config(config)
    assert config == DATA[0]["config"]
    path = tmp_path / "any name"
    path.write_text(json.dumps(config), "utf-8")
    assert from_config(path) == from_config(str(path)) == rope
