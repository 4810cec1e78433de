# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

pytest.importorskip("typer")

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

import fastpe
from fastpe._cli import tables

from .support import PICKLE, Capture, refused, run


def file_of_arrays(path: Path, arrays: dict[str, Any]) -> str:
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    else:
        with open(path, "wb") as stream:
            tables.write_arrays(stream, path.suffix, arrays)
    return str(path)


@pytest.mark.parametrize("shape", [(1, 100, 64), (100, 1, 64)])
def test_a_module_s_buffer_is_known_and_noise_is_not(shape: tuple[int, ...], capsys: Capture) -> None:
    np.save("pe.npy", fastpe.encode(100, 64, convention="musicgen", base=500).reshape(shape))
    assert run("identify pe.npy") == 0
    assert capsys.readouterr().out.startswith("musicgen: ")
    np.save("noise.npy", np.random.default_rng(0).standard_normal(shape))
    assert run("identify noise.npy") == 1
    assert "no known convention" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_files_of_named_arrays(suffix: str, capsys: Capture) -> None:
    table = fastpe.encode(100, 64, convention="concat")[None]
    weights = {f"layers.{i}.weight": np.zeros((3, 3), np.float32) for i in range(9)}
    name = file_of_arrays(Path(f"model{suffix}"), {**weights, "pos_embed": table})
    assert run(f"identify {name} --key pos_embed") == 0
    assert capsys.readouterr().out.startswith("concat: ")
    # Without --key, a file of one array will do, and one of cosines and sines.
    alone = file_of_arrays(Path(f"alone{suffix}"), {"pos_embed": table})
    assert run(f"identify {alone}") == 0
    cos, sin = fastpe.RotaryEmbedding(64, interleaved=False).tables(50)
    for names in (("cos", "sin"), ("rope.sin_cached", "rope.cos_cached")):
        sines, cosines = (sin, cos) if "sin" in names[0] else (cos, sin)
        both = file_of_arrays(Path(f"both{suffix}"), dict(zip(names, (sines, cosines), strict=True)))
        capsys.readouterr()
        assert run(f"identify {both}") == 0
        assert "fastpe.RotaryEmbedding(64, interleaved=False, base=10000.0).tables(50)" in capsys.readouterr().out
        assert run(f"identify {both} --key {names[0]}") == 0
        cosines_name, sines_name = sorted(names, key=lambda name: "sin_" in name or name == "sin")
        assert run(f"identify {both} --key {cosines_name} --key {sines_name}") == 0
    refused(f"identify {name}", capsys, "10 arrays", "--key NAME")
    refused(f"identify {name} --key pe", capsys, "--key is pe")
    refused(f"identify {name} {'--key pos_embed ' * 3}", capsys, "--key")


def test_what_other_libraries_wrote(capsys: Capture) -> None:
    save_file = pytest.importorskip("safetensors.numpy").save_file
    table = fastpe.encode(100, 64, convention="concat")
    save_file({"pe": table, "scalar": np.array(1.0)}, Path("x.safetensors"), metadata={"format": "np"})
    assert run("identify x.safetensors --key pe") == 0
    np.savez_compressed("x.npz", pe=np.asfortranarray(table))
    assert run("identify x.npz") == 0
    assert capsys.readouterr().out.count("concat: largest difference 0;") == 2


@pytest.mark.parametrize(
    "suffix", [".npy", *(pytest.param(each, marks=pytest.mark.slow) for each in (".npz", ".safetensors"))]
)
def test_bfloat16(suffix: str) -> None:
    assert run(f"tables --rotary-dim 64 --rows 200 --form pairs --dtype bfloat16 -o cache{suffix} -q") == 0
    # In another process: this one may have imported ml_dtypes already.
    command = [sys.executable, "-m", "fastpe", "identify", f"cache{suffix}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "base=10000.0).tables(200, form='pairs')" in output


def safetensors(header: bytes, body: bytes = b"") -> bytes:
    return len(header).to_bytes(8, "little") + header + body


def entry(dtype: str = '"F32"', shape: str = "[1, 1]", offsets: str = "[0, 4]") -> bytes:
    return f'{{"a":{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}}}}}'.encode()


def test_hostile_safetensors(capsys: Capture) -> None:
    for content in (
        b"",
        b"\xff" * 8,
        (100_000_001).to_bytes(8, "little") + bytes(100),
        *map(safetensors, (b"[]", b"{", b"{}", b'{"a":1}', b'{"a":' + b"[" * 100_000)),
        safetensors(b'{"a":{"dtype":"F32","shape":[1]}}'),
        *(safetensors(entry(offsets=each), bytes(4)) for each in ("[0, 36]", "[4, 0]", "[-4, 0]", "[1e999, 0]")),
        *(safetensors(entry(shape=each), bytes(4)) for each in ("[9]", "[-1, -1]", "[1e999]")),
        safetensors(entry(shape="[0, 99999999999999999999999]", offsets="[0, 0]"), bytes(4)),
        *(safetensors(entry(dtype=each), bytes(4)) for each in ('"F8"', "[]")),
        safetensors(b'{"' + b"n" * 5000 + b'":1, "b": 2}'),
    ):
        Path("x.safetensors").write_bytes(content)
        refused("identify x.safetensors", capsys, "x.safetensors")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="an open file has no name here")
def test_what_was_opened_is_read(suffix: str) -> None:
    table = fastpe.encode(4, 4)
    name = file_of_arrays(Path("a" + suffix), {"pe": table})
    other = file_of_arrays(Path("b" + suffix), {"pe": table + 1})
    with open(name, "rb") as stream:
        Path(other).replace(name)
        (key,), load = tables.named_arrays(stream, name)
        assert np.array_equal(load(key), table)


def test_hostile_archives(capsys: Capture) -> None:
    np.savez("x.npz", x=fastpe.encode(20, 30))
    whole = Path("x.npz").read_bytes()
    rng, codes = np.random.default_rng(0), []
    for trial in range(60):
        data = bytearray(whole)
        for _ in range(3):
            place = rng.integers(len(data)) if trial % 2 else -1 - rng.integers(120)
            data[int(place)] = rng.integers(256)
        Path("x.npz").write_bytes(data if trial % 5 else data[: rng.integers(len(data))])
        codes.append(run("identify x.npz"))
        error = capsys.readouterr().err
        assert error.count("\n") <= codes[-1], error
    assert codes.count(1) > 20
    for method in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile("x.npz", "w", method) as archive:
            archive.writestr("x.npy", np.random.default_rng(0).bytes(3000))
        damaged = bytearray(Path("x.npz").read_bytes())
        damaged[200:240] = bytes(40)
        Path("x.npz").write_bytes(damaged)
        refused("identify x.npz", capsys, "x.npz")


def test_what_is_not_read(capsys: Capture) -> None:
    Path("x.zarr").mkdir()
    for name in ("x.csv", "x.parquet", "x.pt", "x.onnx", "x.txt"):
        Path(name).write_bytes(b"PAR1")
    for name in ("x.csv", "x.parquet", "x.pt", "x.onnx", "x.txt", "x.zarr", "none.npy", "-"):
        refused(f"identify {name}", capsys, name)
    with zipfile.ZipFile("x.pt", "w") as archive:
        archive.writestr("x/data.pkl", PICKLE)
    refused("identify x.pt", capsys, "x.pt is not")
