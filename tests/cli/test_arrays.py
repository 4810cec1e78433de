# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe encode``, ``embed`` and ``add`` on .npy files."""

from __future__ import annotations

import pytest

pytest.importorskip("typer")

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import fastpe
from fastpe._cli import npy

from .support import Array, Capture, contents, embeddings, refused, run


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    # Many blocks per file, the last of which is a smaller one.
    monkeypatch.setattr(npy, "block_bytes", 100)


def added(x: Array, options: str = "") -> Array:
    np.save("x.npy", x)
    assert run(f"add x.npy -o y.npy --quiet {options}") == 0
    result: Array = np.load("y.npy", allow_pickle=False)
    return result


# ---- results


@pytest.mark.parametrize(
    ("shape", "seq_axis"), [((9, 5), 0), ((3, 9, 5), 1), ((9, 3, 6), 0), ((2, 3, 4, 7), 2), ((2, 3, 4, 7), -3)]
)
def test_every_layout_and_axis(shape: tuple[int, ...], seq_axis: int) -> None:
    x = embeddings(*shape)
    result = added(x, f"--seq-axis {seq_axis} --offset 100000")
    np.testing.assert_array_equal(result, fastpe.add(x, seq_axis=seq_axis, offset=100000))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("convention", ["vaswani", "fairseq"])
@pytest.mark.parametrize("is_native", [True, False])
def test_every_dtype_and_option(dtype: str, convention: Any, is_native: bool) -> None:
    x = embeddings(2, 9, 40, dtype=dtype)
    stored = x if is_native else x.astype(x.dtype.newbyteorder())
    result = added(stored, f"--convention {convention} --base 500 --scale 3 --alpha 0.5")
    np.testing.assert_array_equal(
        result, fastpe.add(x, convention=convention, base=500, scale=3, alpha=0.5), strict=True
    )


@pytest.mark.parametrize(("found", "asked"), [("float64", "float32"), ("float32", "float16"), ("float16", "float64")])
def test_conversion_comes_first(found: str, asked: str) -> None:
    x = embeddings(2, 9, 6, dtype=found)
    np.testing.assert_array_equal(added(x, f"--dtype {asked}"), fastpe.add(x.astype(asked)))


@pytest.mark.parametrize("where", ["-o y.npy", "--in-place"])
def test_bfloat16_as_numpy_saves_it(where: str) -> None:
    x = embeddings(2, 9, 6).astype(ml_dtypes.bfloat16)
    np.save("x.npy", x)
    assert run(f"add x.npy {where} --dtype bfloat16") == 0
    assert np.load("y.npy" if "y" in where else "x.npy").tobytes() == fastpe.add(x).tobytes()


@pytest.mark.parametrize("shape", [(0, 4), (3, 0, 4)])
def test_empty_arrays(shape: tuple[int, ...], capsys: Capture) -> None:
    assert added(np.zeros(shape, np.float32)).shape == shape
    os.unlink("y.npy")
    refused("add x.npy --scale nan -o y.npy", capsys, "--scale", code=2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_encode(dtype: str) -> None:
    assert run(f"encode --rows 50 --d-model 7 --offset -9 --dtype {dtype} --convention ddpm -o pe.npy") == 0
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    assert np.load("pe.npy").tobytes() == fastpe.encode(50, 7, offset=-9, dtype=kind, convention="ddpm").tobytes()


@pytest.mark.parametrize("kind", ["i8", ">u2", "u1"])
@pytest.mark.parametrize("shape", [(5, 20), (60,), (2, 3, 4)])
def test_embed(shape: tuple[int, ...], kind: str) -> None:
    ids, table = np.random.default_rng(0).integers(0, 30, shape), embeddings(30, 8)
    np.save("ids.npy", ids.astype(kind))
    np.save("table.npy", table)
    assert run("embed ids.npy table.npy -o y.npy --scale 2 --offset 7 --convention fairseq") == 0
    np.testing.assert_array_equal(np.load("y.npy"), fastpe.embed(ids, table, scale=2, offset=7, convention="fairseq"))


def test_ids_outside_of_the_vocabulary_leave_nothing(capsys: Capture) -> None:
    np.save("table.npy", embeddings(30, 8))
    for wrong in (-1, 30):
        np.save("ids.npy", np.r_[np.zeros(99, int), wrong])
        refused("embed ids.npy table.npy -o y.npy", capsys, "ids.npy", str(wrong))
    for shape in ((0, 4), (4, 0)):
        np.save("table.npy", np.zeros(shape, np.float32))
        refused("embed ids.npy table.npy -o y.npy", capsys)


def test_bits_are_bfloat16_only_if_that_is_asked_for(capsys: Capture) -> None:
    ids, table = np.array([[3, 1]]), embeddings(4, 8).astype(ml_dtypes.bfloat16)
    np.save("ids.npy", ids)
    np.save("table.npy", table)
    assert run("embed ids.npy table.npy -o y.npy --dtype bfloat16 -q") == 0
    assert np.load("y.npy").tobytes() == fastpe.embed(ids, table).tobytes()
    os.unlink("y.npy")
    refused("embed ids.npy table.npy -o y.npy", capsys, "bfloat16")
    refused("embed ids.npy table.npy -o y.npy --dtype float16", capsys, "--dtype")
    refused("add table.npy -o y.npy --dtype float16", capsys, "--dtype")


# ---- in place


def test_in_place() -> None:
    x = embeddings(4, 9, 6)
    np.save("x.npy", x)
    inode = os.stat("x.npy").st_ino
    assert run("add x.npy --in-place -q") == 0
    np.testing.assert_array_equal(np.load("x.npy"), fastpe.add(x))
    assert os.stat("x.npy").st_ino == inode
    assert os.listdir() == ["x.npy"]


@pytest.mark.parametrize(("stored", "options"), [("=f4", "--dtype float64"), (">f4", "")])
def test_in_place_refuses_another_dtype(stored: str, options: str, capsys: Capture) -> None:
    np.save("x.npy", embeddings(4, 6).astype(stored))
    refused(f"add x.npy --in-place {options}", capsys, "-o", code=2)


@pytest.mark.parametrize(("error", "code"), [(OSError(5, "Input/output error"), 1), (KeyboardInterrupt(), 130)])
def test_in_place_says_that_a_file_is_partly_changed(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    x = embeddings(20, 6)
    np.save("x.npy", x)
    right, calls = npy.read, []

    def fail_in_the_third_block(*arguments: Any) -> Array:
        calls.append(1)
        if len(calls) == 3:
            raise error
        return right(*arguments)

    monkeypatch.setattr(npy, "read", fail_in_the_third_block)
    assert run("add x.npy --in-place") == code
    note, line = capsys.readouterr().err.splitlines()
    assert line == ("fastpe: error: x.npy: Input/output error" if code == 1 else "fastpe: interrupted")
    rows = 2 * (100 // 24)
    assert note.startswith(f"fastpe: x.npy may be partly changed: the first {rows * 24} bytes")
    np.testing.assert_array_equal(np.load("x.npy")[:rows], fastpe.add(x)[:rows])
    np.testing.assert_array_equal(np.load("x.npy")[rows:], x[rows:])


def test_a_file_is_changed_in_place_by_one_run_at_a_time(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    fcntl = pytest.importorskip("fcntl")
    x = embeddings(6, 4)
    np.save("x.npy", x)
    os.link("x.npy", "link.npy")
    inner: list[int] = []
    read = npy.read

    def run_another(*arguments: Any) -> Array:
        if not inner:
            inner.append(-1)
            inner[:] = [run(f"add {name} --in-place") for name in ("x.npy", "link.npy")]
        return read(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(npy, "read", run_another)
        assert run("add x.npy --in-place --quiet") == 0
    assert inner == [1, 1]
    assert "another run" in capsys.readouterr().err

    def no_locks(*_: Any) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)  # as on some file systems
    assert run("add link.npy --in-place --quiet") == 0
    np.testing.assert_array_equal(np.load("x.npy"), fastpe.add(fastpe.add(x)))


# ---- files that somebody else wrote, or changes meanwhile


def header(text: str, version: bytes = b"\x01\x00") -> bytes:
    length = len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + length + text.encode()


def fields(shape: str, descr: str = "'<f4'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x09\x00" + bytes(100),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(100),
        b"\x93NUMPY\x01\x00\x76\x00{'descr'",
        header(fields("(3, -4)")),
        header(fields("(3, 4.5)")),
        header(fields("(3, 4)")),
        header(fields("(3, 4)")) + bytes(49),
        header(fields("(999999999999999, 2)")),
        header(fields("(0, 1" + "0" * 23 + ")")),
        header(fields("(2, 1" + "0" * 4400 + ")")),
        header(fields("(" + "1, " * 2000 + ")")) + bytes(4),
        header(fields("(1, 1)", "[('a', '<f4')]"), b"\x03\x00") + bytes(4),
        header(fields("(1, 1)", "'<f4' and " + "'x' " * 2000)) + bytes(4),
        header("__import__('os').abort()"),
        header("(" * 9000, b"\x02\x00"),
    ],
)
def test_hostile_headers(data: bytes, capsys: Capture) -> None:
    Path("x.npy").write_bytes(data)
    np.save("v.npy", embeddings(3, 4))
    for command in ("add x.npy -o y.npy", "add x.npy --in-place", "embed x.npy v.npy -o y.npy"):
        refused(command, capsys, "x.npy")
    refused("identify x.npy", capsys)


@pytest.mark.parametrize(
    "command", ["add x.npy -o y.npy", "add x.npy --in-place", "identify x.npy", "embed i.npy x.npy -o y.npy"]
)
def test_a_file_that_is_truncated_while_it_is_read_is_one_line(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    np.save("x.npy", embeddings(20_000, 64))
    np.save("i.npy", np.zeros(4, int))
    read = npy.read

    def truncate_first(*arguments: Any) -> Array:
        os.truncate("x.npy", 5_000)
        return read(*arguments)

    monkeypatch.setattr(npy, "read", truncate_first)
    monkeypatch.setattr(npy, "block_bytes", 1 << 20)
    assert run(command) == 1
    errors = capsys.readouterr().err.splitlines()
    assert errors[-1].startswith("fastpe: error: x.npy is truncated")
    assert len(errors) == (2 if "in-place" in command else 1)
    assert "y.npy" not in os.listdir()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX's")
def test_pipes_and_devices_are_not_read(capsys: Capture) -> None:
    np.save("v.npy", np.zeros((3, 4), int))
    for suffix in ("", ".npy", ".parquet", ".arrow"):
        os.mkfifo(f"pipe{suffix}")
        refused(f"add pipe{suffix} -o y{suffix}", capsys, "not a regular file")
    for command in (
        *("add pipe.npy --in-place", "identify pipe.npy", "identify /dev/zero"),
        *("embed pipe.npy v.npy -o y.npy", "embed v.npy pipe.npy -o y.npy"),
    ):
        refused(command, capsys, "not a regular file")
    refused("tables --config pipe.npy --rows 3 -o y.npz", capsys, "pipe.npy")
    run("add /dev/stdin -o y.npy")
    assert "y.npy" not in contents()


_with_little_memory = """
import resource, sys
from fastpe.__main__ import main
assert main(["add", "small.npy", "-o", "y.npy", "-q", *sys.argv[1:]]) == 0
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (32 << 20), now + (32 << 20)))
sys.exit(main(["add", "large.npy", "-o", "y.npy", "-q", *sys.argv[1:]]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of address space are Linux's")
@pytest.mark.parametrize("seq_axis", ["0", pytest.param("-2", marks=pytest.mark.slow)])
def test_a_file_larger_than_memory(seq_axis: str) -> None:
    for name, rows in (("small", 100), ("large", 64 << 10)):
        with open(f"{name}.npy", "wb") as stream:
            fields = {"descr": "<f4", "fortran_order": False, "shape": (rows, 1024)}
            np.lib.format.write_array_header_1_0(stream, fields)
            stream.truncate(stream.tell() + rows * 4096)
    command = [sys.executable, "-c", _with_little_memory, "--seq-axis", seq_axis]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_resize(capsys: Capture) -> None:
    table = embeddings(1 + 12, 8)
    np.save("table.npy", table)
    assert (
        run("resize table.npy --shape 5x7 --convention qwen3_vl --class-tokens 1 --trained-shape 3x4 -o out.npy") == 0
    )
    expected = fastpe.resize_table(table, (5, 7), convention="qwen3_vl", class_tokens=1, trained_shape=(3, 4))
    assert np.array_equal(np.load("out.npy"), expected)
    np.save("bits.npy", table[None].astype(ml_dtypes.bfloat16).view("V2"))
    assert run("resize bits.npy --shape 25 --convention sam_relative --dtype bfloat16 -o out.npy") == 0
    expected = fastpe.resize_table(table[None].astype(ml_dtypes.bfloat16), (25,), convention="sam_relative")
    assert np.load("out.npy").tobytes() == expected.tobytes()
    assert (
        run("resize table.npy --shape 5x7 --mode bicubic --antialias --class-tokens 1 --trained-shape 3x4 -o out.npy")
        == 0
    )
    expected = fastpe.resize_table(table, (5, 7), mode="bicubic", antialias=True, class_tokens=1, trained_shape=(3, 4))
    assert np.array_equal(np.load("out.npy"), expected)
    for options, named in (("", "--mode"), ("--convention vit --antialias", "--antialias"), ("--mode cubic", "--mode")):
        refused(f"resize table.npy --shape 5x7 --class-tokens 1 {options} -o new.npy", capsys, named, code=2)
    for shape in ("5", "0x5", "5x7x9", "5 x 7", "five"):
        refused(f"resize table.npy --shape '{shape}' --convention vit -o new.npy", capsys, "--shape", code=2)
    refused("resize table.npy --shape 5x7 --convention vit -o new.npy", capsys, "--trained-shape")
    refused("resize table.npy --shape 5x7 --convention clip -o new.npy", capsys, "fastpe conventions", code=2)
