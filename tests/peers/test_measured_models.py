# SPDX-License-Identifier: BSD-3-Clause
"""What tools/rotary_models.py writes: rows that are missing, and a model that nobody has seen."""

from __future__ import annotations

import importlib
import json
import logging
import types
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._config import tables
from fastpe._config.file import packaged

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

STORED = packaged("measured.json")
REMOVED = ("glm4_moe", "gemma3_text", "cohere2")


@pytest.fixture
def tool() -> Any:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    logging.disable(logging.WARNING)
    return importlib.import_module("tools.rotary_models")


def test_rows_that_are_missing_are_measured_again(tool: Any) -> None:
    rotaries = [each for each in tool.classes() if each.config.model_type in REMOVED]
    found = tool.measure(rotaries, {name: tool.configurations()[name] for name in ("gemma3", "qwen2_5_omni")})
    assert found.data["models"] == {name: STORED["models"][name] for name in REMOVED}
    assert found.data["parts"] == {name: STORED["parts"][name] for name in ("gemma3", "qwen2_5_omni")}
    without = {**STORED, "models": {name: row for name, row in STORED["models"].items() if name not in REMOVED}}
    assert len(tool.differences(without, found.data | {"models": without["models"] | found.data["models"]})) >= len(
        REMOVED
    )
    assert tool.text_of(STORED) == tool.text_of(json.loads(tool.text_of(STORED)))


def tiny_model() -> tuple[types.ModuleType, Any]:
    """A module as transformers has them: GLM's rotation, a base of its own, and two types of layers."""
    glm, llama = (importlib.import_module(f"transformers.models.{name}.modeling_{name}") for name in ("glm", "llama"))
    config: Any = importlib.import_module("transformers").LlamaConfig
    rotary: Any = llama.LlamaRotaryEmbedding

    class TinyConfig(config):  # type: ignore[misc]
        model_type = "tiny_of_yesterday"
        default_theta = 7e5

        def __post_init__(self, **more: Any) -> None:
            every = more.pop("full_attention_interval", 3)
            super().__post_init__(**more)
            kinds = ("sliding_attention", "full_attention")
            self.layer_types = [kinds[(at + 1) % every == 0] for at in range(self.num_hidden_layers)]

    class TinyRotaryEmbedding(rotary):  # type: ignore[misc]
        pass

    module = types.ModuleType("modeling_tiny")
    vars(module)["apply_rotary_pos_emb"] = glm.apply_rotary_pos_emb
    vars(module)["TinyRotaryEmbedding"] = TinyRotaryEmbedding
    return module, TinyConfig


def test_a_model_that_the_tool_has_never_seen(tool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module, config = tiny_model()
    rotary = tool.Rotary("tiny", module, vars(module)["TinyRotaryEmbedding"], config)
    found = tool.measure([rotary], {})
    row = found.data["models"]["tiny_of_yesterday"]
    assert row["interleaved"] is True
    assert row["rope_theta"] == 7e5
    assert row["layer_types"] == {"every": 3, "types": ["sliding_attention", "full_attention"], "key":
        "full_attention_interval"}  # fmt: skip
    data = {**tables.table(), "models": {**tables.table()["models"], "tiny_of_yesterday": row}}
    for name in ("rows", "rope", "layer_types", "model", "unread"):
        module_of_reader = importlib.import_module(f"fastpe._config.{name}")
        if hasattr(module_of_reader, "table"):
            monkeypatch.setattr(module_of_reader, "table", lambda: data)
    monkeypatch.setattr(tables, "table", lambda: data)
    given = {"model_type": "tiny_of_yesterday", "num_hidden_layers": 6, "hidden_size": 64, "num_attention_heads": 4}
    rope = fastpe.RotaryEmbedding.from_config(given)
    torch = importlib.import_module("torch")
    theirs = vars(module)["TinyRotaryEmbedding"](
        config(**{key: given[key] for key in ("hidden_size", "num_attention_heads")})
    )
    cos, _ = theirs(torch.zeros(1, 5, 64), torch.arange(5)[None])
    np.testing.assert_allclose(rope.tables(5, form=rope.form)[0], cos[0].numpy(), atol=1e-6)
    assert "rope = " in str(fastpe.ModelConfig(given))
    for call in (fastpe.PositionalEncoding.from_config, fastpe.RotaryLayout.from_config):
        with pytest.raises(ValueError, match="tiny_of_yesterday"):
            call(given)
