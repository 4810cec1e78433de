# SPDX-License-Identifier: BSD-3-Clause
"""Commands that are refused: the exit code, what the message names, and that no file is written."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from fastpe.__main__ import main

ENCODE = "encode --seq-len 3 --d-model 8 -o y.npy"
ADD = "add x.npy -o y.npy"
ROTARY = "rotary --dim 8 --seq-len 3 -o y.npz"

# By the exit code and the option or file that is named.
REFUSED: dict[tuple[int, str], list[str]] = {
    (2, "--ofset"): [f"{ADD} --ofset 1"],
    (2, "--theta"): [f"{ADD} --theta 500"],
    (2, "--dim"): ["encode --seq-len 3 --dim 8 -o y.npy", "rotary --dim 0 --seq-len 3 -o y.npz"],
    (2, "--offset"): [f"{ADD} --offset 1.5", f"--offset 3 {ADD}"],
    (2, "--base"): [f"{ENCODE} --base 0"],
    (2, "-o"): ["add x.npy -o"],
    (2, "x.npy"): ["x.npy -o y.npy"],
    (2, "convention"): ["convention"],
    (1, "-o --in-place"): ["add x.npy", f"{ADD} --in-place"],
    (1, "--in-place --no-clobber"): ["add x.npy --in-place --no-clobber"],
    (1, "x.npy"): ["add x.npy -o x.npy"],
    (1, "row.npy"): ["add row.npy -o y.npy", "add x.npy -o row.npy/y.npy"],
    (1, "ids.npy"): ["add ids.npy -o y.npy"],
    (1, "short.npy"): ["add short.npy -o y.npy"],
    (1, "two.npz"): ["add two.npz -o y.npz", "identify two.npz"],
    (1, "model.pt"): ["add model.pt -o y.npy"],
    (1, "none"): ["add x.npy -o none/y.npy"],
    (1, "y.npz"): ["encode --seq-len 3 --d-model 8 -o y.npz"],
    (1, "y.safetensors"): ["add x.npy -o y.safetensors", "encode --seq-len 3 --d-model 8 -o y.safetensors"],
    (1, "y.foo"): ["add x.npy -o y.foo"],
    (1, "--offset"): [f"{ADD} --offset {2**53 - 1}"],
    (1, "--convention"): [f"{ADD} --convention fairsec", f"{ENCODE} --convention mae2d"],
    (1, "--d-model"): ["encode --seq-len 3 --d-model 7 --convention mlx -o y.npy"],
    (1, "--dim"): [
        "rotary --dim 7 --seq-len 3 -o y.npz",
        "rotary --seq-len 3 -o y.npz",
        "rotary --config llama.json --dim 8 --seq-len 3 -o y.npz",
    ],
    (1, "y.npy"): ["rotary --dim 8 --seq-len 3 -o y.npy"],
    (1, "--form"): [f"{ROTARY} --form half"],
    (1, "--dtype"): [
        f"{ROTARY} --form complex --dtype float16",
        "rotary --dim 8 --seq-len 3 --form complex --dtype float64 -o y.safetensors",
    ],
    (1, "--config"): [
        f"rotary --config {config} --seq-len 3 -o y.npz"
        for config in ("nofile.json", "made", "organisation/model", '\'{"model_type": "llama"}\'')
    ],
    (1, "model_type"): [f"rotary --config {name}.json --seq-len 3 -o y.npz" for name in ("gpt2", "unknown")],
    (1, "--layer-type"): ["rotary --config gemma.json --seq-len 3 -o y.npz"],
    (1, "factor"): ["rotary --config yarn.json --seq-len 3 -o y.npz"],
    (1, "TABLE"): ["identify -"],
    (1, "x.csv"): ["identify x.csv"],
    (1, "made"): ["identify made"],
    (1, "t.parquet"): ["identify t.parquet"],
    (1, "--key"): ["identify x.npy --key a"],
    (1, "NAME"): ["conventions whisper", "conventions mae2"],
}

TAKEN = [
    ENCODE,
    ADD,
    ROTARY,
    f"{ADD} --offset {2**53 - 3}",
    "add x.npy --in-place",
    "add short.npy -o y.npy --dtype bfloat16",
    "rotary --config llama.json --seq-len 3 -o y.npz",
    "rotary --config unknown.json --no-interleaved --seq-len 3 -o y.npz",
    "rotary --config gemma.json --seq-len 3 -o y.npz --layer-type full_attention",
    "rotary --dim 8 --seq-len 3 --form complex -o y.safetensors",
    "conventions mae2d",
]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("made").mkdir()
    np.save("x.npy", np.ones((3, 8), np.float32))
    np.save("row.npy", np.ones(8, np.float32))
    np.save("ids.npy", np.ones((3, 8), np.int64))
    np.save("short.npy", np.ones((3, 8), "V2"))
    np.savez("two.npz", a=np.ones((3, 8)), b=np.ones((3, 8)))
    Path("x.csv").write_text("1,2")
    Path("model.pt").write_bytes(b"PK\x03\x04")
    Path("t.parquet").write_bytes(b"PAR1")
    configs = {
        "llama": {"model_type": "llama", "head_dim": 8},
        "unknown": {"model_type": "unheard_of", "head_dim": 8, "rope_theta": 1e4},
        "gemma": {"model_type": "gemma3_text", "head_dim": 8},
        "gpt2": {"model_type": "gpt2"},
        "yarn": {"model_type": "llama", "head_dim": 8, "rope_scaling": {"type": "yarn"}},
    }
    for name, config in configs.items():
        Path(f"{name}.json").write_text(json.dumps(config))


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(Path().rglob("*"))}


@pytest.mark.parametrize(
    ("command", "code", "named"),
    [
        pytest.param(command, code, named, id=command)
        for (code, named), commands in REFUSED.items()
        for command in commands
    ],
)
def test_refused(command: str, code: int, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents()
    assert main(shlex.split(command)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("fastpe")
    assert captured.err.count("\n") == 1
    for each in named.split():
        # An argument of the library may have its name in Python.
        name = each.lstrip("-").replace("-", "[-_]") if each.startswith("--") else re.escape(each)
        assert re.search(rf"(?<!\w){name}(?!\w)", captured.err)
    assert contents() == before


@pytest.mark.parametrize("command", TAKEN)
def test_taken(command: str) -> None:
    assert main(shlex.split(command)) == 0
