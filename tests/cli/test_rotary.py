# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe rotary``: tables of rotary embeddings as files."""

from __future__ import annotations

import pytest

pytest.importorskip("typer")

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import fastpe
from fastpe import _core
from fastpe.__main__ import main

from .support import Capture, refused

LLAMA = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_attention_heads": 8,
    "max_position_embeddings": 131072,
    "rope_theta": 500000.0,
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}
GEMMA3 = {
    "model_type": "gemma3_text",
    "head_dim": 32,
    "hidden_size": 256,
    "num_attention_heads": 8,
    "rope_theta": 1e6,
    "rope_local_base_freq": 1e4,
}


def arrays_in(path: Path) -> dict[str, npt.NDArray[Any]]:
    """What a file holds, read by another way than it was written."""
    if path.suffix == ".npy":
        return {"": np.load(path)}
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return dict(archive)
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    assert start % 8 == 0
    types = {"F16": np.float16, "BF16": ml_dtypes.bfloat16, "F32": np.float32, "F64": np.float64, "C64": np.complex64}
    result, ends = {}, [0]
    for name, entry in json.loads(data[8:start]).items():
        first, end = entry["data_offsets"]
        assert first == ends[-1]
        ends.append(end)
        result[name] = np.frombuffer(data[start + first : start + end], types[entry["dtype"]]).reshape(entry["shape"])
    assert start + ends[-1] == len(data)
    return result


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "npy"])
@pytest.mark.parametrize("form", _core.table_forms)
def test_files_hold_what_tables_returns(form: str, suffix: str, tmp_path: Path) -> None:
    target = tmp_path / f"cache.{suffix}"
    expected = fastpe.RotaryEmbedding(16, interleaved=False, base=1e6).tables(12, form=form, offset=1000)
    names = {"npy": [""]}.get(suffix, ["cos", "sin"] if isinstance(expected, tuple) else [form])
    arguments = ["--dim", "16", "--base", "1e6", "--seq-len", "12", "--offset", "1000", "--form", form]
    code = main(["rotary", *arguments, "-o", str(target)])
    if suffix == "npy" and isinstance(expected, tuple):
        assert code == 1
        assert not target.exists()
        return
    assert code == 0
    found = arrays_in(target)
    assert list(found) == names
    for array, right in zip(found.values(), expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_array_equal(array, right, strict=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dtypes(dtype: str, tmp_path: Path) -> None:
    target = tmp_path / "cache.safetensors"
    assert main(["rotary", "--dim", "8", "--seq-len", "5", "--dtype", dtype, "-o", str(target)]) == 0
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    cos, sin = fastpe.RotaryEmbedding(8, interleaved=False).tables(5, dtype=kind)
    found = arrays_in(target)
    np.testing.assert_array_equal(found["cos"], cos, strict=True)
    np.testing.assert_array_equal(found["sin"], sin, strict=True)


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_the_same_tables_are_the_same_file_at_any_time(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for year, target in enumerate(files, 30):
        monkeypatch.setattr("time.time", lambda year=year: year * 3.2e7)
        assert main(["rotary", "--dim", "8", "--seq-len", "5", "-o", str(target)]) == 0
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("--seq-len 3 -o a.npz", "--config"),
        ("--dim 8 --seq-len 3 -o a.txt", ".safetensors"),
        ("--dim 8 --seq-len 3 -o a.npy", "one array"),
        ("--dim 7 --seq-len 3 -o a.npz", "dim"),
        ("--dim 8 --seq-len 3 --form half -o a.npz", "form"),
        ("--dim 8 --seq-len 3 --dtype int8 -o a.npz", "--dtype"),
        ("--dim 8 --seq-len 3 --layer-type x -o a.npz", "--layer-type"),
        ("--dim 8 --seq-len 3 --form angles --dtype float16 -o a.npy", "angles"),
        ("--dim 8 --seq-len 3 --form complex --dtype float64 -o a.safetensors", "complex128"),
        ("--dim 8 --seq-len 3 --config c.json -o a.npz", "--dim"),
        ("--base 8 --seq-len 3 --config c.json -o a.npz", "--base"),
        ("--config missing.json --seq-len 3 -o a.npz", "missing.json"),
        ("--config organisation/model --seq-len 3 -o a.npz", "organisation/model"),
        ("--config . --seq-len 3 -o a.npz", "directory"),
        ("--config gemma.json --seq-len 3 -o a.npz", "layer_type"),
        ("--config unknown.json --seq-len 3 -o a.npz", "interleaved"),
        ("--dim 8 --seq-len 10000000000000 -o a.npz", ""),
    ],
)
def test_what_is_refused(options: str, named: str, capsys: Capture) -> None:
    Path("gemma.json").write_text(json.dumps(GEMMA3))
    Path("unknown.json").write_text(json.dumps({**LLAMA, "model_type": "my_own"}))
    refused(f"rotary {options}", capsys, named)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "nonsense",
        "[" * 200_000,
        '{"a":' * 200_000,
        '{"model_type": "llama", "head_dim": ' + "9" * 5000 + "}",
        '{"model_type": "llama", "head_dim": ' + "9" * 401 + "}",
        '{"model_type": "llama", "head_dim": 8, "rope_theta": 1' + "0" * 400 + "}",
        "\xff\xfe",
    ],
)
@pytest.mark.parametrize(
    "command", ["rotary --config c.json --seq-len 3 -o a.npz", "plot rotary --config c.json -o a.png"]
)
def test_hostile_configs(text: str, command: str, capsys: Capture) -> None:
    Path("c.json").write_text(text, encoding="latin-1")
    refused(command, capsys)


# ---- with a config


def test_a_config_gives_the_tables_of_its_model(tmp_path: Path) -> None:
    config, target = tmp_path / "config.json", tmp_path / "cache.npz"
    config.write_text(json.dumps(LLAMA))
    assert main(["rotary", "--config", str(config), "--seq-len", "30", "-o", str(target)]) == 0
    scaling = {**LLAMA["rope_scaling"], "rope_theta": LLAMA["rope_theta"]}  # type: ignore[dict-item]
    cos, sin = fastpe.RotaryEmbedding(32, interleaved=False, scaling=scaling).tables(30, form="tile")
    found = arrays_in(target)
    np.testing.assert_array_equal(found["cos"], cos, strict=True)
    np.testing.assert_array_equal(found["sin"], sin, strict=True)


def test_layer_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, target = tmp_path / "config.json", tmp_path / "cache.npz"
    config.write_text(json.dumps(GEMMA3))
    arguments = ["--config", str(config), "--seq-len", "30", "--form", "halves", "-o", str(target)]
    for layer_type, base in (("full_attention", 1e6), ("sliding_attention", 1e4)):
        assert main(["rotary", *arguments, "--layer-type", layer_type]) == 0
        cos, _ = fastpe.RotaryEmbedding(32, interleaved=False, base=base).tables(30)
        np.testing.assert_array_equal(arrays_in(target)["cos"], cos, strict=True)
    assert main(["rotary", *arguments]) == 1
    assert "sliding_attention" in capsys.readouterr().err


def test_a_scaling_takes_the_last_position(tmp_path: Path) -> None:
    """The longest sequence that the file serves is as long as its last position says."""
    config, target = tmp_path / "config.json", tmp_path / "cache.npz"
    scaling = {"rope_type": "dynamic", "factor": 2.0}
    config.write_text(json.dumps({**LLAMA, "rope_theta": 1e4, "max_position_embeddings": 64, "rope_scaling": scaling}))
    for offset, length in ((0, 40), (30, 70)):
        arguments = ["--seq-len", "40", "--offset", str(offset), "--form", "halves", "-o", str(target)]
        assert main(["rotary", "--config", str(config), *arguments]) == 0
        known = {**scaling, "max_position_embeddings": 64}
        rope = fastpe.RotaryEmbedding(32, interleaved=False, scaling=known, seq_len=length)
        np.testing.assert_array_equal(arrays_in(target)["cos"], rope.tables(40, offset=offset)[0], strict=True)


def test_a_model_that_is_not_known_needs_its_pairing() -> None:
    Path("c.json").write_text(json.dumps({**LLAMA, "model_type": "my_own"}))
    assert main(["rotary", "--config", "c.json", "--seq-len", "3", "-o", "a.npz", "--no-interleaved"]) == 0
