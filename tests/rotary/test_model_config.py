# SPDX-License-Identifier: BSD-3-Clause
"""The object of a config.json: its parts, what it is equal to, and that every function takes it."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._config.file import table

from ..oracles.refusals import naming

QWEN: dict[str, Any] = {
    "model_type": "qwen2_5_vl",
    "image_token_id": 9,
    "text_config": {"hidden_size": 256, "num_attention_heads": 2, "rope_theta": 1e6},
    "vision_config": {"model_type": "qwen2_5_vl", "patch_size": 14, "spatial_merge_size": 2},
}
OMNI: dict[str, Any] = {
    "model_type": "qwen2_5_omni",
    "thinker_config": {
        "text_config": {"hidden_size": 256, "num_attention_heads": 2},
        "vision_config": {"patch_size": 14},
        "audio_config": {"d_model": 64},
    },
    "talker_config": {"model_type": "qwen2_5_omni_talker", "head_dim": 64},
    "quantization_config": {"bits": 4},
}
COLQWEN: dict[str, Any] = {"model_type": "colqwen2", "vlm_config": QWEN}


def test_parts_have_their_place_and_their_type() -> None:
    config = fastpe.ModelConfig(OMNI)
    assert {place: part.model_type for place, part in config.parts.items()} == {
        "thinker_config": "qwen2_5_omni_thinker",
        "thinker_config.text_config": "qwen2_5_omni_text",
        "thinker_config.vision_config": "qwen2_5_omni_vision_encoder",
        "thinker_config.audio_config": "qwen2_5_omni_audio_encoder",
        "talker_config": "qwen2_5_omni_talker",
    }
    assert config.text is config.parts["thinker_config.text_config"]
    assert config.vision is config.parts["thinker_config.vision_config"]
    assert config.audio is config.parts["thinker_config.audio_config"]
    assert fastpe.RotaryEmbedding.from_config(config.parts["talker_config"]).rotary_dim == 64


@pytest.mark.parametrize(
    ("given", "text", "vision"),
    [
        (QWEN, ["text_config"], ["vision_config"]),
        (COLQWEN, ["vlm_config", "text_config"], ["vlm_config", "vision_config"]),
        (QWEN["vision_config"], None, []),
        ({"model_type": "qwen2_5_vl_vision"}, None, []),
        ({"model_type": "pixtral"}, None, []),
        ({"model_type": "llama"}, [], None),
        ({"model_type": "unheard_of"}, [], None),
        ({"model_type": "unheard_of", "llm_config": {"model_type": "llama"}}, ["llm_config"], None),
        (
            {"model_type": "qwen3_asr", "thinker_config": {"text_config": {"a": 1}}},
            ["thinker_config", "text_config"],
            None,
        ),
        ({"hidden_size": 8}, [], None),
        ({"model_type": "llava"}, None, None),
    ],
    ids=lambda each: str(each)[:60],
)
def test_the_parts_that_calls_use(given: Any, text: Any, vision: Any) -> None:
    config = fastpe.ModelConfig(given)
    for part, path in ((config.text, text), (config.vision, vision)):
        inner = given
        for key in path or ():
            inner = inner[key]
        assert (part is None) == (path is None)
        assert part is None or part.to_dict() == {"model_type": part.model_type, **inner} or part.model_type is None


def test_files_from_before_text_config_are_their_own_text() -> None:
    old = {"model_type": "qwen2_vl", "hidden_size": 256, "num_attention_heads": 2, "vision_config": {"depth": 8}}
    old |= {"rope_theta": 1e6, "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}}
    text = fastpe.ModelConfig(old).text
    assert text is not None
    assert (text.model_type, fastpe.RotaryEmbedding.from_config(old).rotary_dim) == ("qwen2_vl_text", 128)


def test_equality_hash_pickle_and_copies_go_by_what_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text("\ufeff" + json.dumps(QWEN), "utf-8")
    config = fastpe.ModelConfig(path)
    backwards = fastpe.ModelConfig(dict(reversed(QWEN.items())))
    assert config == backwards == pickle.loads(pickle.dumps(config)) == copy.deepcopy(config) == copy.copy(config)
    assert len({config, backwards, fastpe.ModelConfig(config)}) == 1
    assert config.text == fastpe.ModelConfig({"model_type": "qwen2_5_vl_text", **QWEN["text_config"]})
    assert fastpe.ModelConfig({"a": True}) != fastpe.ModelConfig({"a": 1}) != fastpe.ModelConfig({"a": 1.5})
    assert fastpe.ModelConfig({}) != {}


def test_it_is_immutable() -> None:
    given = copy.deepcopy(QWEN)
    config = fastpe.ModelConfig(given)
    given["text_config"]["hidden_size"] = 4
    config.to_dict()["vision_config"]["patch_size"] = 4
    assert config.to_dict() == QWEN
    for name in ("model_type", "other"):
        with pytest.raises(AttributeError, match=name):
            setattr(config, name, "llama")
    with pytest.raises(TypeError):
        config.parts["x"] = config  # type: ignore[index]


@pytest.mark.parametrize(
    ("given", "error", "place"),
    [
        (None, TypeError, "config"),
        ([QWEN], TypeError, "config"),
        ({"a": np.zeros(2)}, TypeError, "a"),
        ({"a": [{1.5: 2}]}, TypeError, "config a 0"),
        ({"a": [b"x"]}, TypeError, "config a 0"),
        ("nofile.json", FileNotFoundError, "config"),
    ],
)
def test_what_is_no_config_is_refused(given: Any, error: type[Exception], place: str) -> None:
    with pytest.raises(error, match=naming(place)):
        fastpe.ModelConfig(given)


def test_calls_take_it_as_they_take_the_mapping() -> None:
    for given in (QWEN, COLQWEN):
        config = fastpe.ModelConfig(given)
        rope = fastpe.RotaryEmbedding.from_config(given, mrope=True)
        assert rope == fastpe.RotaryEmbedding.from_config(config, mrope=True)
        assert rope == fastpe.RotaryEmbedding.from_config(config.text or {}, mrope=True)
        assert fastpe.RotaryLayout.from_config(config).name == "qwen2_vl"
        assert fastpe.RotaryLayout.from_config(config, vision=True).name == "qwen2_vl_vision"
        assert fastpe.RotaryLayout.from_config(config.vision or {}).name == "qwen2_vl_vision"
        assert np.array_equal(fastpe.query_scale(config, 3), np.ones(3))
    whisper = fastpe.ModelConfig({"model_type": "whisper", "d_model": 8})
    assert fastpe.PositionalEncoding.from_config(whisper).d_model == 8
    asr = fastpe.ModelConfig({"model_type": "fun_asr_nano", "audio_config": {"input_size": 8}})
    assert fastpe.PositionalEncoding.from_config(asr).d_model == 8


def test_an_error_has_the_place_of_the_part() -> None:
    part = {**QWEN, "text_config": {"model_type": "unheard_of", "rope_theta": 1e4}}
    for config in (part, fastpe.ModelConfig(part), fastpe.ModelConfig(part).text or {}):
        with pytest.raises(ValueError, match=r'^config\["text_config"\]\["model_type"\] is'):
            fastpe.RotaryEmbedding.from_config(config)


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ({"rope_theta": "1e4"}, '["rope_theta"]'),
        ({"rope_theta": 0.5}, '["rope_theta"]'),
        ({"head_dim": 2**21}, '["head_dim"]'),
        ({"rope_parameters": {"rope_type": "linear", "factor": 2.0, "facter": 2.0}}, '["rope_parameters"]["facter"]'),
        ({"rope_scaling": {"type": "linear", "factor": 0.5}}, '["rope_scaling"]["factor"]'),
        ({"rope_scaling": {**YARN, "beta_fast": 1, "beta_slow": 2}}, '["rope_scaling"]["beta_fast"]'),
        (
            {"rope_scaling": {"type": "dynamic", "factor": 2.0}, "max_position_embeddings": 1.5},
            '["max_position_embeddings"]',
        ),
        ({"rope_scaling": YARN, "original_max_position_embeddings": "4096"}, '["original_max_position_embeddings"]'),
        ({"rope_scaling": {"type": "yarm"}}, '["rope_scaling"]["type"]'),
        ({"rope_scaling": {"type": "llama3", "factor": 2.0}}, '["rope_scaling"]'),
        ({"layer_types": ["banana", "apple"]}, '["layer_types"][0]'),
        ({"rotary": {"base": 1e4}}, '["rotary"]'),
        ({"attention": [{"xpos": True}]}, '["attention"][0]["xpos"]'),
        ({"partial_rotary_factor": 0.5}, '["partial_rotary_factor"]'),
        ({"per_layer_config": {"1": {"head_dim": "8"}}}, '["per_layer_config"]["1"]["head_dim"]'),
        ({"hidden_size": 770, "num_attention_heads": 12}, '["hidden_size"]'),
    ],
    ids=str,
)
def test_an_error_has_the_place_of_the_value(text: Any, place: str) -> None:
    part = {
        "model_type": "llama",
        **({} if "hidden_size" in text else {"head_dim": 64}),
        "num_hidden_layers": 2,
        **text,
    }
    for outer, at in ((part, ""), ({"model_type": "llava", "text_config": part}, '["text_config"]')):
        with pytest.raises((TypeError, ValueError)) as raised:
            fastpe.RotaryEmbedding.layers_from_config(outer, seq_len=100)
        assert raised.value._fields["argument"] == f"config{at}{place}"  # type: ignore[attr-defined]
        assert "scaling[" not in str(raised.value)


def test_null_is_a_value_of_truncate() -> None:
    config = {"model_type": "llama", "head_dim": 64, "rope_theta": 1e6}
    false, null = (
        fastpe.RotaryEmbedding.from_config({**config, "rope_scaling": {**YARN, "truncate": each}})
        for each in (False, None)
    )
    assert np.array_equal(false.frequencies, null.frequencies)
    assert not np.array_equal(
        null.frequencies, fastpe.RotaryEmbedding.from_config({**config, "rope_scaling": YARN}).frequencies
    )
    direct = fastpe.RotaryEmbedding(64, interleaved=False, scaling={**YARN, "rope_theta": 1e6, "truncate": None})
    assert direct == pickle.loads(pickle.dumps(direct)) == fastpe.RotaryEmbedding(**direct.arguments) == null


def test_layers_that_are_alike_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    original = fastpe.RotaryEmbedding.__init__

    def counted(self: Any, *given: Any, **more: Any) -> None:
        made.append(self)
        original(self, *given, **more)

    monkeypatch.setattr(fastpe.RotaryEmbedding, "__init__", counted)
    config = {"model_type": "gemma3_text", "num_hidden_layers": 62}
    assert len(fastpe.RotaryEmbedding.layers_from_config(config)) == 62
    assert len(made) == 2


def test_a_type_that_ends_in_vision_or_audio_may_be_a_whole_model() -> None:
    for name, inner in (("aya_vision", "cohere2"), ("qwen2_audio", "qwen2")):
        text = {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 4}
        whole = fastpe.ModelConfig({"model_type": name, "text_config": text})
        assert whole.vision is None
        assert whole.audio is None
        assert whole.text is not None
        assert whole.text.model_type == inner
        assert len(fastpe.RotaryEmbedding.layers_from_config(whole)) == 4


def test_no_error_says_to_make_the_call_that_raised_it() -> None:
    kinds = ("models", "parts", "layouts", "told", "without", "sinusoids", "grids", "biases", "learned")
    said: dict[str, list[str]] = {}
    for model_type in {name for kind in kinds for name in table()[kind]}:
        for kind in (fastpe.RotaryEmbedding, fastpe.PositionalEncoding, fastpe.RotaryLayout):
            call: Any = kind.from_config
            try:
                call({"model_type": model_type})
            except ValueError as error:
                said.setdefault(f"use fastpe.{kind.__name__}.from_config(config)", []).append(str(error))
    assert not [error for call, errors in said.items() for error in errors if call in error]
