# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

pytest.importorskip("typer")

import re
from pathlib import Path
from typing import Any

import numpy as np

import fastpe
from fastpe.__main__ import main
from fastpe._cli.files import named_arrays


def file_of_arrays(path: Path, arrays: dict[str, Any]) -> str:
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    else:
        with open(path, "wb") as stream:
            named_arrays.writer_of(str(path), arrays)(stream, arrays)
    return str(path)


def test_identify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "pe.npy"
    np.save(table, fastpe.encode(100, 64, convention="musicgen", base=500))
    assert main(["identify", str(table)]) == 0
    assert capsys.readouterr().out.startswith("musicgen: ")


@pytest.mark.parametrize("shape", [(1, 100, 64), (100, 1, 64)])
def test_identify_takes_the_buffers_of_modules(
    tmp_path: Path, shape: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "pe.npy", fastpe.encode(100, 64, convention="concat").reshape(shape))
    assert main(["identify", str(tmp_path / "pe.npy")]) == 0
    assert capsys.readouterr().out.startswith("concat: ")


def test_identify_says_when_there_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "noise.npy"
    np.save(table, np.random.default_rng(0).standard_normal((50, 16)))
    assert main(["identify", str(table)]) == 1
    assert "no known convention" in capsys.readouterr().out


def test_identify_refuses_what_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "x.npy"
    table.write_text("no array")
    assert main(["identify", str(table)]) == 1
    assert "is not a .npy file" in capsys.readouterr().err
    np.save(table, np.array([[print]]), allow_pickle=True)
    assert main(["identify", str(table)]) == 1
    assert "holds Python objects" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_identify_readsfile_of_arrays(tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = fastpe.encode(100, 64, convention="concat")[None]
    weights = {f"layers.{i}.weight": np.zeros((3, 3), np.float32) for i in range(9)}
    name = file_of_arrays(tmp_path / f"model{suffix}", {**weights, "pos_embed": table})
    assert main(["identify", name, "--key", "pos_embed"]) == 0
    assert capsys.readouterr().out.startswith("concat: ")
    # Without --key, a file of one array will do, and one of cosines and sines.
    alone = file_of_arrays(tmp_path / f"alone{suffix}", {"pos_embed": table})
    assert main(["identify", alone]) == 0
    cos, sin = fastpe.RotaryEmbedding(64, interleaved=False).tables(50)
    for names in (("cos", "sin"), ("rope.sin_cached", "rope.cos_cached")):
        sines, cosines = (sin, cos) if "sin" in names[0] else (cos, sin)
        both = file_of_arrays(tmp_path / f"both{suffix}", dict(zip(names, (sines, cosines), strict=True)))
        capsys.readouterr()
        assert main(["identify", both]) == 0
        assert "fastpe.RotaryEmbedding(64, interleaved=False, base=10000.0).tables(50)" in capsys.readouterr().out
        assert main(["identify", both, "--key", names[0]]) == 0
        assert "of a rotary embedding in form" in capsys.readouterr().out
        cosines_name, sines_name = sorted(names, key=lambda name: "sin_" in name or name == "sin")
        assert main(["identify", both, "--key", cosines_name, "--key", sines_name]) == 0
    for arguments, message in (
        ([name], f"{name} holds 10 arrays (pos_embed, layers.0.weight, "),
        ([name], "); choose with --key NAME, cosines and sines with two: --key COS --key SIN"),
        ([name, "--key", "pe"], f"--key is pe, expected one of {name}'s arrays: pos_embed"),
        ([name, *(["--key", "pos_embed"] * 3)], "--key was given 3 times, expected once for a table, or twice"),
    ):
        assert main(["identify", *arguments]) == 1
        assert message in capsys.readouterr().err


def test_identify_reads_what_other_libraries_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from safetensors.numpy import save_file

    table = fastpe.encode(100, 64, convention="concat")
    save_file({"pe": table, "scalar": np.array(1.0)}, tmp_path / "x.safetensors", metadata={"format": "np"})
    assert main(["identify", str(tmp_path / "x.safetensors"), "--key", "pe"]) == 0
    np.savez_compressed(tmp_path / "x.npz", pe=np.asfortranarray(table))
    assert main(["identify", str(tmp_path / "x.npz")]) == 0
    assert capsys.readouterr().out.count("concat: largest difference 0;") == 2


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
def test_identify_reads_bfloat16(tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = str(tmp_path / f"cache{suffix}")
    options = ["--dim", "64", "--seq-len", "200", "--form", "pairs", "--dtype", "bfloat16"]
    assert main(["rotary", *options, "-o", name, "-q"]) == 0
    assert main(["identify", name]) == 0
    assert "base=10000.0, form='pairs').tables(200)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff" * 8, "its header would end at byte"),
        (b"\x02" + b"\0" * 7 + b"[]", "or damaged: "),
        (b"\x02" + b"\0" * 7 + b"{", "or damaged: "),
        ((36).to_bytes(8, "little") + b'{"a":{"dtype":"F32","shape":[1]}}   ', "or damaged: "),
        (
            (62).to_bytes(8, "little") + b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}'.ljust(62),
            "a would lie at bytes 70 to 106 of 70",
        ),
        (
            (62).to_bytes(8, "little") + b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,4]}}'.ljust(62) + b"0000",
            "a has 4 bytes, which are not those of its shape",
        ),
        (
            (62).to_bytes(8, "little") + b'{"a":{"dtype":"F8","shape":[4],"data_offsets":[0,4]}}'.ljust(62) + b"0000",
            "a has type F8, expected one of F16, BF16, F32, F64, C64; convert it",
        ),
        (b"\x02" + b"\0" * 7 + b"{}", "holds no array"),
    ],
)
def test_identify_refuses_damaged_safetensors(
    tmp_path: Path, content: bytes, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    assert main(["identify", str(path)]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("suffix", "library"),
    [(".pt", "torch"), (".pth", "torch"), (".bin", "torch"), (".ckpt", "torch"), (".onnx", "onnx")],
)
def test_identify_says_how_to_export(
    tmp_path: Path, suffix: str, library: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(b"PK\x03\x04")
    assert main(["identify", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    command = re.search(r'python -c "(import .*)", where NAME is', error)
    assert command
    compile(command[1], "command", "exec")
    assert command[1].startswith(f"import {library}, numpy; numpy.save('table.npy', ")


@pytest.mark.parametrize("library", ["torch", "onnx"])
def test_the_command_that_exports_works(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module: Any = pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    table = fastpe.encode(100, 64, convention="concat")
    if library == "torch":
        name = "model.pt"
        module.save({"NAME": module.from_numpy(table)}, name)
    else:
        name = "model.onnx"
        initializer = module.numpy_helper.from_array(table, "NAME")
        graph = module.helper.make_graph([], "graph", [], [], [initializer])
        module.save(module.helper.make_model(graph), name)
    assert main(["identify", name]) == 1
    command = re.search(r'python -c "(import .*)", where NAME is', capsys.readouterr().err)
    assert command
    exec(command[1], {})  # noqa: S102
    assert main(["identify", "table.npy"]) == 0
    assert capsys.readouterr().out.startswith("concat: ")
