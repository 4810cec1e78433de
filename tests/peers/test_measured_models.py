# SPDX-License-Identifier: BSD-3-Clause
"""What tools/measure_models.py writes: rows that are missing, and models that nobody has seen."""

from __future__ import annotations

import importlib
import json
import logging
import pathlib
import sys
import types
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._config import file
from fastpe._config.model_type import row_of
from fastpe._graph import model

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

STORED = file.packaged("measured.json")
REMOVED = ("glm4_moe", "cohere2", "qwen3_vl", "roberta", "vit", "pegasus_x", "t5")
TINY, TINY_VL, TINY_ADDED = "tiny_of_yesterday", "tiny_vl", "tiny_added"


@pytest.fixture
def tool() -> Any:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    logging.disable(logging.WARNING)
    return importlib.import_module("tools.measure_models")


@pytest.fixture
def tables_of(tool: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Files of its own for the tool, which everything reads, and begins with `stored`."""

    def begin(stored: dict[str, Any]) -> None:
        measured, inputs, seen = (tmp_path / name for name in ("measured.json", "graph_inputs.json", "positions.json"))
        measured.write_text(tool.text_of(stored), "utf-8")
        inputs.write_bytes(tool.graphs.STORED.read_bytes())
        seen.write_bytes(tool.SEEN.read_bytes())
        monkeypatch.setattr(tool, "MEASURED", measured)
        monkeypatch.setattr(tool, "SEEN", seen)
        monkeypatch.setattr(tool.graphs, "STORED", inputs)
        packaged = file.packaged
        monkeypatch.setattr(
            file,
            "packaged",
            lambda name, *folder: (
                json.loads(measured.read_text("utf-8")) if name == measured.name else packaged(name, *folder)
            ),
        )
        clear()

    yield begin
    monkeypatch.undo()
    clear()


def clear() -> None:
    for cached in (file.table, model.graphs, row_of, model._names):
        cached.cache_clear()


def test_rows_that_are_missing_are_measured_again(tool: Any, tables_of: Any) -> None:
    """All kinds of facts of seven types, and no other row changes."""
    kinds = ("models", "parts", "ids", "graphs", "without", "sinusoids", "learned", "biases")
    without = {kind: {name: row for name, row in STORED[kind].items() if name not in REMOVED} for kind in kinds}
    assert all(STORED[kind].keys() - rows.keys() for kind, rows in without.items())
    tables_of({**STORED, **without})
    assert tool.main(["--check", *REMOVED]) == 1
    assert tool.main(["--write", *REMOVED]) == 0
    assert json.loads(tool.MEASURED.read_text("utf-8")) == STORED
    assert tool.main(["--check", *REMOVED]) == 0


def tiny_model() -> tuple[types.ModuleType, Any, Any]:
    """A module as transformers has them: GLM's rotation, a base of its own, and two types of layers."""
    glm, llama = (importlib.import_module(f"transformers.models.{name}.modeling_{name}") for name in ("glm", "llama"))
    config: Any = importlib.import_module("transformers").LlamaConfig
    rotary: Any = llama.LlamaRotaryEmbedding
    causal: Any = llama.LlamaForCausalLM

    class TinyConfig(config):  # type: ignore[misc]
        model_type = TINY
        default_theta = 7e5
        rotary_phase: Any = None  # a key that nobody knows

        def __post_init__(self, **more: Any) -> None:
            every = more.pop("full_attention_interval", 3)
            super().__post_init__(**more)
            kinds = ("sliding_attention", "full_attention")
            self.layer_types = [kinds[(at + 1) % every == 0] for at in range(self.num_hidden_layers)]

    class TinyRotaryEmbedding(rotary):  # type: ignore[misc]
        pass

    class TinyForCausalLM(causal):  # type: ignore[misc]
        config_class = TinyConfig

    module = types.ModuleType("modeling_tiny")
    vars(module)["apply_rotary_pos_emb"] = glm.apply_rotary_pos_emb
    vars(module)["TinyRotaryEmbedding"] = TinyRotaryEmbedding
    return module, TinyConfig, TinyForCausalLM


def tiny_images(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same among images: the classes of Qwen3-VL under other names, with special tokens of their own."""
    place = "transformers.models.{0}.{1}_{0}"
    of: Any = importlib.import_module(place.format("qwen3_vl", "modeling"))
    encoder: Any = of.Qwen3VLVisionModel
    model: Any = of.Qwen3VLModel
    vision: Any = encoder.config_class
    whole: Any = model.config_class

    class TinyVisionConfig(vision):  # type: ignore[misc]
        model_type = f"{TINY_VL}_vision"

    class TinyVLConfig(whole):  # type: ignore[misc]
        model_type = TINY_VL
        sub_configs = {**whole.sub_configs, "vision_config": TinyVisionConfig}  # noqa: RUF012
        image_token_id: int = 77

    class TinyVisionModel(encoder):  # type: ignore[misc]
        config_class = TinyVisionConfig

    class TinyModel(model):  # type: ignore[misc]
        config_class = TinyVLConfig

    kinds = {
        "configuration": [TinyVisionConfig, TinyVLConfig],
        "modeling": [TinyVisionModel, TinyModel, of.Qwen3VLTextModel, of.get_vision_position_ids],
    }
    for word, members in kinds.items():
        module = types.ModuleType(place.format(TINY_VL, word))
        for each in members:
            vars(module)[each.__name__] = each
            if each.__name__.startswith("Tiny"):
                each.__module__ = module.__name__
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return TinyVLConfig


def tiny_sinusoids(monkeypatch: pytest.MonkeyPatch) -> Any:
    """M2M100's classes under another name, with widths and a factor of their own."""
    of: Any = importlib.import_module("transformers.models.m2m_100.modeling_m2m_100")
    model: Any = of.M2M100Model
    config: Any = model.config_class

    class TinyAddedConfig(config):  # type: ignore[misc]
        model_type = TINY_ADDED
        d_model: int = 48
        scale_embedding: bool = False

    class TinyAddedModel(model):  # type: ignore[misc]
        config_class = TinyAddedConfig

    for word, each in {"configuration": TinyAddedConfig, "modeling": TinyAddedModel}.items():
        module = types.ModuleType(f"transformers.models.{TINY_ADDED}.{word}_{TINY_ADDED}")
        vars(module)[each.__name__], each.__module__ = each, module.__name__
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return TinyAddedConfig


def test_models_that_the_tool_has_never_seen(
    tool: Any, tables_of: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They go through --write, then all calls answer or refuse; what is not measured is said."""
    module, config, model = tiny_model()
    kinds = {TINY: config, TINY_VL: tiny_images(monkeypatch), TINY_ADDED: tiny_sinusoids(monkeypatch)}
    auto: Any = importlib.import_module("transformers.models.auto.modeling_auto").MODEL_FOR_CAUSAL_LM_MAPPING
    monkeypatch.setitem(auto._extra_content, config, model)
    rotary = tool.rotation.Rotary("tiny", module, vars(module)["TinyRotaryEmbedding"], config)
    monkeypatch.setattr(tool.rotation, "configurations", lambda: kinds)
    monkeypatch.setattr(tool.rotation, "classes", lambda: [rotary])
    tables_of(STORED)
    assert tool.main(["--write", *kinds]) == 0
    assert f"not measured, models: {TINY}: what rotary_phase mean" in capsys.readouterr().out
    row = file.table()["models"][TINY]
    assert row["interleaved"] is True
    assert row["rope_theta"] == 7e5
    assert row["layer_types"] == {"every": 3, "types": ["sliding_attention", "full_attention"], "key":
        "full_attention_interval"}  # fmt: skip
    given = {"model_type": TINY, "num_hidden_layers": 6, "hidden_size": 64, "num_attention_heads": 4}
    rope = fastpe.RotaryEmbedding.from_config(given)
    torch = importlib.import_module("torch")
    theirs = vars(module)["TinyRotaryEmbedding"](
        config(**{key: given[key] for key in ("hidden_size", "num_attention_heads")})
    )
    cos, _ = theirs(torch.zeros(1, 5, 64), torch.arange(5)[None])
    np.testing.assert_allclose(rope.tables(5, form=rope.form)[0], cos[0].numpy(), atol=1e-6)
    assert fastpe.text_inputs(given, [[5, 6]])["position_ids"].tolist() == [[0, 1]]
    assert "rope = " in str(fastpe.ModelConfig(given))
    for call in (fastpe.PositionalEncoding.from_config, fastpe.RotaryLayout.from_config):
        with pytest.raises(ValueError, match=TINY):
            call(given)
    inputs = fastpe.text_inputs(
        {"model_type": TINY_VL, "vision_config": {}}, [[5, *[77] * 4]], image_grid_thw=[[1, 4, 4]]
    )
    assert inputs["position_ids"][:, 0].tolist() == [[0, 1, 1, 1, 1], [0, 1, 1, 2, 2], [0, 1, 2, 1, 2]]
    of_vision = [{"model_type": name, "vision_config": {}} for name in (TINY_VL, "qwen3_vl")]
    ours, same = (fastpe.vision_inputs(each, grid_thw=[[1, 4, 4]]) for each in of_vision)
    assert ours.keys() == same.keys()
    added = fastpe.PositionalEncoding.from_config({"model_type": TINY_ADDED})
    assert repr(added) == "PositionalEncoding(48, convention='fairseq', padding_idx=1)"
    assert (
        fastpe.PositionalEncoding.from_config({"model_type": TINY_ADDED, "scale_embedding": True}).embedding_scale > 1
    )
    with pytest.raises(ValueError, match=TINY_ADDED):
        fastpe.text_inputs({"model_type": TINY_ADDED}, [[5, 6]])
