# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe model``: a report for people and programs. tests/rotary/test_report.py looks at what it says."""

from __future__ import annotations

import pytest

pytest.importorskip("typer")

import json
from pathlib import Path

import fastpe

from .support import Capture, refused, run

CONFIG = {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 8, "num_hidden_layers": 4}


def test_the_report_of_a_file(capsys: Capture) -> None:
    Path("config.json").write_text(json.dumps(CONFIG))
    assert run("model config.json") == 0
    printed = capsys.readouterr().out
    assert printed == f"{fastpe.ModelConfig(CONFIG)}\n"
    assert "rope = fastpe.RotaryEmbedding.from_config(config)" in printed
    assert run("model config.json --json") == 0
    needs = json.loads(capsys.readouterr().out)["needs"]
    assert needs[0]["calls"][0] == "rope = fastpe.RotaryEmbedding.from_config(config)"


def test_other_files_are_refused_or_named(capsys: Capture) -> None:
    Path("genai_config.json").write_text('{"model": {"decoder": {}}, "search": {}}')
    assert run("model genai_config.json") == 0
    assert "config.json of the same model" in capsys.readouterr().out
    for name, key in {"tokenizer_config": "tokenizer_class", "generation_config": "temperature"}.items():
        Path(f"{name}.json").write_text(json.dumps({key: 1}))
        assert run(f"model {name}.json") == 0
        assert f"as a {name}.json has: give the config.json" in capsys.readouterr().out
    Path("model_index.json").write_text('{"_class_name": "FluxPipeline"}')
    assert run("model model_index.json") == 0
    assert "in the folder of its transformer" in capsys.readouterr().out
    Path("other.json").write_text("[]")
    assert "other.json" in refused("model other.json", capsys)
    assert "none.json" in refused("model none.json", capsys)


def test_remedies_are_options_and_commands(capsys: Capture) -> None:
    odd = {"model_type": "unheard_of", "head_dim": 8, "rope_theta": 1e6, "swa_rope_theta": 1e4}
    Path("odd.json").write_text(json.dumps(odd))
    command = "tables --config odd.json --rows 4 -o out.npz"
    assert "--interleaved" in refused(command, capsys)
    command += " --interleaved"
    assert "give --layer-type and --base" in refused(command, capsys)
    assert run(f"{command} --layer-type sliding_attention --base 1e4") == 0
    assert run("model odd.json") == 0
    assert "RotaryEmbedding.from_config(config): config" in capsys.readouterr().out  # which takes interleaved=
    Path("new.json").write_text('{"_class_name": "NewTransformer2DModel"}')
    assert run("model new.json") == 0
    assert "fastpe conventions lists layouts" in capsys.readouterr().out
