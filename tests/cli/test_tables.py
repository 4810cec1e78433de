# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe tables``: tables of rotary embeddings as files."""

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

from ..oracles.configs import LLAMA3
from .support import Capture, refused, run

LLAMA: dict[str, Any] = {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 8, "rope_theta": 500000.0}
LLAMA |= {"max_position_embeddings": 131072, "rope_scaling": LLAMA3}
GEMMA3 = {"model_type": "gemma3_text", "head_dim": 32, "rope_theta": 1e6, "rope_local_base_freq": 1e4}


def arrays_in(path: Path) -> dict[str, npt.NDArray[Any]]:
    if path.suffix == ".npy":
        return {"": np.load(path)}
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return dict(archive)
    return dict(pytest.importorskip("safetensors.numpy").load_file(path))


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "npy"])
@pytest.mark.parametrize("form", _core.table_forms)
def test_files_hold_what_tables_returns(form: Any, suffix: str) -> None:
    expected = fastpe.RotaryEmbedding(16, interleaved=False, base=1e6).tables(12, form=form, offset=1000)
    code = run(f"tables --rotary-dim 16 --base 1e6 --rows 12 --offset 1000 --form {form} -o cache.{suffix}")
    if suffix == "npy" and isinstance(expected, tuple):
        assert code == 2
        assert not Path("cache.npy").exists()
        return
    assert code == 0
    found = arrays_in(Path(f"cache.{suffix}"))
    assert list(found) == {"npy": [""]}.get(suffix, ["cos", "sin"] if isinstance(expected, tuple) else [form])
    for array, right in zip(found.values(), expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_array_equal(array, right, strict=True)


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dtypes_and_the_same_file_at_any_time(dtype: str, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for year, name in enumerate("ab", 30):
        monkeypatch.setattr("time.time", lambda year=year: year * 3.2e7)
        assert run(f"tables --rotary-dim 8 --rows 5 --dtype {dtype} -o {name}.{suffix}") == 0
    assert Path(f"a.{suffix}").read_bytes() == Path(f"b.{suffix}").read_bytes()
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    tables = fastpe.RotaryEmbedding(8, interleaved=False).tables(5, dtype=kind)
    for array, right in zip(arrays_in(Path(f"a.{suffix}")).values(), tables, strict=True):
        np.testing.assert_array_equal(array.view(kind), right, strict=True)


def test_what_is_refused(capsys: Capture) -> None:
    Path("gemma.json").write_text(json.dumps(GEMMA3))
    Path("nonsense.json").write_bytes(b"\xff\xfe")
    Path("list.json").write_text("[]")
    Path("unknown.json").write_text(json.dumps({**LLAMA, "model_type": "my_own"}))
    for code, options, named in (
        (2, "--rows 3 -o a.npz", "--config"),
        (2, "--rotary-dim 8 --rows 3 -o a.txt", ".safetensors"),
        (2, "--rotary-dim 8 --rows 3 -o a.npy", "one array"),
        (2, "--rotary-dim 7 --rows 3 -o a.npz", "dim"),
        (2, "--rotary-dim 8 --rows 3 --form half -o a.npz", "form"),
        (2, "--rotary-dim 8 --rows 3 --dtype int8 -o a.npz", "--dtype"),
        (2, "--rotary-dim 8 --rows 3 --layer-type x -o a.npz", "--layer-type"),
        (2, "--rotary-dim 8 --rows 3 --form angles --dtype float16 -o a.npy", "angles"),
        (1, "--rotary-dim 8 --rows 3 --config c.json -o a.npz", "c.json"),
        (1, "--config missing.json --rows 3 -o a.npz", "missing.json"),
        (1, "--config organisation/model --rows 3 -o a.npz", "hf download organisation/model"),
        (1, "--config . --rows 3 -o a.npz", "directory"),
        (1, "--config nonsense.json --rows 3 -o a.npz", "expected JSON"),
        (1, "--config list.json --rows 3 -o a.npz", "a list"),
        (2, "--config gemma.json --rows 3 -o a.npz", "--layer-type, one of 'sliding_attention', 'full_attention'"),
        (1, "--config unknown.json --rows 3 -o a.npz", "--no-interleaved"),
        (1, "--rotary-dim 8 --rows 10000000000000 -o a.npz", ""),
    ):
        refused(f"tables {options}", capsys, named, code=code)


def test_safetensors_have_no_complex128(capsys: Capture) -> None:
    refused("tables --rotary-dim 8 --rows 3 --form complex --dtype float64 -o a.safetensors", capsys, "complex128")


def cache_of(config: dict[str, Any], options: str) -> dict[str, npt.NDArray[Any]]:
    Path("config.json").write_text(json.dumps(config))
    assert run(f"tables --config config.json {options} -o cache.npz") == 0
    return arrays_in(Path("cache.npz"))


def test_a_config_gives_the_tables_of_its_model() -> None:
    found = cache_of(LLAMA, "--rows 30")
    scaling = {**LLAMA["rope_scaling"], "rope_theta": LLAMA["rope_theta"]}
    cos, sin = fastpe.RotaryEmbedding(32, interleaved=False, scaling=scaling).tables(30)
    np.testing.assert_array_equal(found["cos"], cos, strict=True)
    np.testing.assert_array_equal(found["sin"], sin, strict=True)
    cache_of({**LLAMA, "model_type": "my_own"}, "--rows 3 --no-interleaved")
    found = cache_of(LLAMA, "--rows 30 --rotary-dim 16 --base 1e5")
    rope = fastpe.RotaryEmbedding.from_config(LLAMA, rotary_dim=16, base=1e5)
    np.testing.assert_array_equal(found["cos"], rope.tables(30, form="halves")[0], strict=True)
    for layer_type, base in (("full_attention", 1e6), ("sliding_attention", 1e4)):
        found = cache_of(GEMMA3, f"--rows 30 --form halves --layer-type {layer_type}")
        cos, _ = fastpe.RotaryEmbedding(32, interleaved=False, base=base).tables(30)
        np.testing.assert_array_equal(found["cos"], cos, strict=True)


def test_a_layer_and_a_scaling_may_be_chosen() -> None:
    layers = fastpe.RotaryEmbedding.layers_from_config({**GEMMA3, "num_hidden_layers": 6})
    for number in (0, 5):
        found, rope = cache_of({**GEMMA3, "num_hidden_layers": 6}, f"--rows 9 --layer {number}"), layers[number]
        assert rope is not None
        np.testing.assert_array_equal(found["cos"], rope.tables(9, form="halves")[0], strict=True)
    found = cache_of(LLAMA, """--rows 9 --scaling '{"rope_type": "linear", "factor": 2.0}'""")
    plain = fastpe.RotaryEmbedding(32, interleaved=False, base=LLAMA["rope_theta"])
    expected = plain.tables(np.arange(9) / 2, form="halves")[0]
    np.testing.assert_allclose(found["cos"], expected, rtol=0, atol=1e-6)


def test_a_layer_that_is_not_rotated_or_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    config = {"model_type": "smollm3", "num_hidden_layers": 4, "head_dim": 32}
    Path("config.json").write_text(json.dumps(config))
    for options, word in {
        "--layer 3": "not rotated",
        "--layer 4": "0 to 3",
        "": "give --layer",
        "--layer 1 --layer-type full_attention": "one of them",
        "--scaling 4": "mapping",
    }.items():
        assert run(f"tables --config config.json --rows 3 {options} -o cache.npz") != 0
        assert word in capsys.readouterr().err
        assert not Path("cache.npz").exists()


def test_a_scaling_takes_the_last_position() -> None:
    """The longest sequence that the file serves is as long as its last position says."""
    scaling = {"rope_type": "dynamic", "factor": 2.0}
    config = {**LLAMA, "rope_theta": 1e4, "max_position_embeddings": 64, "rope_scaling": scaling}
    for offset, length in ((0, 40), (30, 70)):
        found = cache_of(config, f"--rows 40 --offset {offset} --form halves")
        known = {**scaling, "max_position_embeddings": 64}
        rope = fastpe.RotaryEmbedding(32, interleaved=False, scaling=known, seq_len=length)
        np.testing.assert_array_equal(found["cos"], rope.tables(40, offset=offset)[0], strict=True)
