# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe plot``."""

from __future__ import annotations

import pytest

pytest.importorskip("typer")
pytest.importorskip("matplotlib")

import json
from pathlib import Path

from .support import Capture, refused, run
from .test_tables import LLAMA

SMALL = "--d-model 16 --rows 20"


@pytest.mark.parametrize(
    "picture", ["similarity", *(pytest.param(each, marks=pytest.mark.slow) for each in ("float32_error", "waves"))]
)
def test_every_picture_of_an_encoding(picture: str) -> None:
    assert run(f"plot {picture} {SMALL} -o a.png") == 0
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")


def test_the_frequencies_of_a_config() -> None:
    Path("config.json").write_text(json.dumps(LLAMA))
    assert run("plot rotary_wavelengths --config config.json -o a.svg") == 0
    assert b"llama3" in Path("a.svg").read_bytes()
    gemma = {"model_type": "gemma3_text", "head_dim": 32, "num_hidden_layers": 6}
    Path("gemma.json").write_text(json.dumps(gemma | {"rope_theta": 1e6, "rope_local_base_freq": 1e4}))
    for which, base in (("--layer-type full_attention", b"1,000,000"), ("--layer 0", b"10,000")):
        assert run(f"plot rotary_wavelengths --config gemma.json {which} -o b.svg") == 0
        picture = Path("b.svg").read_bytes()
        assert all(word in picture for word in (b"gemma3_text", which.split()[1].encode(), base))


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "magic"), [("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_side_by_side_and_the_same_file_each_time(suffix: str, magic: bytes) -> None:
    for name in "ab":
        assert run(f"plot heatmap {SMALL} --convention concat --convention mlx --dark -o {name}.{suffix}") == 0
    data = Path(f"a.{suffix}").read_bytes()
    assert data.startswith(magic)
    if suffix == "svg":
        assert b"concat" in data
        assert b"mlx" in data


def test_options_that_count_are_taken() -> None:
    dynamic = {"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 128}
    config = {**LLAMA, "model_type": "my_own", "rope_scaling": dynamic, "max_position_embeddings": 128}
    Path("new.json").write_text(json.dumps(config))
    assert run("plot rotary_wavelengths --config new.json --rows 4096 --no-interleaved -o a.svg") == 0


def test_what_is_refused(capsys: Capture) -> None:
    Path("llama.json").write_text(json.dumps(LLAMA))
    for command, code, named in (
        ("heatmap", 2, "-o"),
        ("heatmap -o a.gif", 2, "a.gif"),
        ("heatmap -o a.png --convention x", 2, "--convention"),
        ("flowers -o a.png", 2, "flowers"),
        ("rotary_wavelengths -o a.png", 2, "--config"),
        ("rotary_wavelengths --config missing.json -o a.png", 1, "missing.json"),
        ("waves --config config.json -o a.png", 2, "--config"),
        ("heatmap --rows 1 -o a.png", 2, "--rows"),
        # What changes nothing
        ("heatmap --layer-type full_attention -o a.png", 2, "--layer-type"),
        ("heatmap --interleaved -o a.png", 2, "--interleaved"),
        ("rotary_wavelengths --config llama.json --convention mlx -o a.png", 2, "--convention"),
        ("rotary_wavelengths --config llama.json --d-model 128 -o a.png", 2, "--d-model"),
        ("rotary_wavelengths --config llama.json --rows 5 -o a.png", 2, "--rows"),
        ("rotary_wavelengths --config llama.json --interleaved -o a.png", 2, "--interleaved"),
    ):
        refused(f"plot {command}", capsys, named, code=code)
