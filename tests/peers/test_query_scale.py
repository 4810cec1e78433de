# SPDX-License-Identifier: BSD-3-Clause
"""What queries are multiplied by, beside the functions and the attention of transformers."""

from __future__ import annotations

import importlib
import pathlib
import re
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._config.file import table

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

SCALED = {name: row for name, row in table()["models"].items() if "query_scale" in row}
MARKS = {"mscale": "yarn_apply_mscale", "llama_4": "llama_4_scaling_beta", "temperature": "attn_temperature_tuning"}
# They have no rotary embedding, and are refused.
INKLING = {"inkling", "inkling2", "inkling2_loop"}
POSITIONS = np.array([0, 1, 1023, 1024, 4095, 4096, 50_000])


def module_of(row: dict[str, Any]) -> Any:
    folder = {"models/sarvam_mla": "deepseek_v3"}.get(row["source"], pathlib.PurePath(row["source"]).name)
    return importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")


def test_every_model_that_scales_queries_has_a_row() -> None:
    transformers = pytest.importorskip("transformers")
    found: dict[str, set[str]] = {}
    for source in pathlib.Path(transformers.models.__path__[0]).glob("*/modeling_*.py"):
        text = source.read_text("utf-8")
        for kind, mark in (*MARKS.items(), ("log", "log_scaling_n_floor")):
            if re.search(rf"\b{mark}\b", text):
                found.setdefault(source.parent.name, set()).add(kind)
    rows = {pathlib.PurePath(row["source"]).name: {*row["query_scale"]} for row in SCALED.values()}
    del rows["sarvam_mla"]  # its model is DeepSeek V3's
    assert found == rows | {name: {"log"} for name in INKLING}


@pytest.mark.parametrize("model_type", SCALED)
def test_scales_are_those_of_the_models_own_functions(model_type: str) -> None:
    torch = pytest.importorskip("torch")
    row, expected = SCALED[model_type], np.ones(len(POSITIONS))
    if "temperature" in row["query_scale"]:
        pytest.skip("it is in the attention itself: see below")
    module = module_of(row)
    rope = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 40.0, "original_max_position_embeddings": 1024}
    rope |= {"mscale": 1.0, "mscale_all_dim": 0.8, "llama_4_scaling_beta": 0.3}
    if "mscale" in row["query_scale"]:
        expected *= module.yarn_apply_mscale(rope, 1.0)
    if "llama_4" in row["query_scale"]:
        positions = torch.from_numpy(POSITIONS).double()[None]
        expected *= module.get_llama_4_attn_scale(positions, 0.3, 1024).numpy().reshape(-1)
    config = {"model_type": model_type, "num_hidden_layers": 8, "rope_parameters": rope}
    np.testing.assert_allclose(fastpe.query_scale(config, POSITIONS), expected, rtol=4e-16 * 4)


def test_llama_4_scales_queries_of_layers_that_are_not_rotated(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    module = importlib.import_module("transformers.models.llama4.modeling_llama4")
    sizes = {"hidden_size": 64, "intermediate_size": 32, "intermediate_size_mlp": 32, "vocab_size": 64, "head_dim": 16}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 4, "num_local_experts": 2}
    keys = {"floor_scale": 4, "attn_scale": 0.25, "pad_token_id": 0}
    queries: dict[bool, list[Any]] = {True: [], False: []}
    for tuning, seen in queries.items():
        config = module.Llama4TextConfig(**sizes, **keys, attn_temperature_tuning=tuning)
        torch.manual_seed(0)
        model = module.Llama4TextModel(config).eval()
        original = module.ALL_ATTENTION_FUNCTIONS.get_interface

        def watched(*arguments: Any, seen: list[Any] = seen, original: Any = original) -> Any:
            interface = original(*arguments)

            def call(attention: Any, query: Any, *more: Any, **options: Any) -> Any:
                seen.append(query.detach().numpy())
                return interface(attention, query, *more, **options)

            return call

        monkeypatch.setattr(module.ALL_ATTENTION_FUNCTIONS, "get_interface", watched)
        with torch.no_grad():
            model(torch.arange(20)[None] + 3, use_cache=False)
        monkeypatch.undo()
    written = {"model_type": "llama4_text", "num_hidden_layers": 4, **keys}
    for layer in range(4):
        ratio = queries[True][layer] / queries[False][layer]
        ours = fastpe.query_scale(written, 20, layer=layer)
        np.testing.assert_allclose(ratio, np.broadcast_to(ours[:, None], ratio.shape), rtol=1e-6)
