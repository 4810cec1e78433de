# SPDX-License-Identifier: BSD-3-Clause
"""What others do to files while a command reads or writes them."""

from __future__ import annotations

import pytest

pytest.importorskip("typer")

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import fastpe
from fastpe.__main__ import main
from fastpe._cli.files import named_arrays, npy_stream
from fastpe._cli.files.addition import Addition, ArrayWork

Array = npt.NDArray[Any]


def embeddings(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def write_input(suffix: str) -> None:
    x = embeddings(6, 4)
    if suffix == "npy":
        np.save("x.npy", x)
    elif suffix == "npz":
        np.savez("x.npz", x=x)
    else:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import feather, parquet

        table = pa.table({"x": pa.array(x.tolist(), pa.list_(pa.float32()))})
        (parquet.write_table if suffix == "parquet" else feather.write_feather)(table, f"x.{suffix}")


@pytest.mark.parametrize("hard_links", [True, False])
@pytest.mark.parametrize(
    ("command", "output"),
    [
        (["encode", "--seq-len", "3", "--d-model", "4"], "y.npy"),
        (["rotary", "--dim", "4", "--seq-len", "3"], "y.safetensors"),
        (["plot", "heatmap", "--d-model", "4"], "y.png"),
        *((["add", f"x.{suffix}"], f"y.{suffix}") for suffix in ("npy", "npz", "parquet", "arrow")),
    ],
)
def test_no_clobber_keeps_a_file_that_appears_meanwhile(
    command: list[str],
    output: str,
    hard_links: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if command[0] == "add":
        write_input(output.partition(".")[2])
    before = set(os.listdir())

    def no_link(*_: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    if not hard_links:
        monkeypatch.setattr(os, "link", no_link)
    assert main([*command, "-o", output, "--no-clobber", "--quiet"]) == 0
    assert set(os.listdir()) == before | {output}
    made = Path(output).read_bytes()
    os.unlink(output)
    sync = os.fsync

    def sync_late(descriptor: int) -> None:
        sync(descriptor)
        if not os.path.exists(output):
            Path(output).write_bytes(b"of somebody else")

    monkeypatch.setattr(os, "fsync", sync_late)
    assert main([*command, "-o", output, "--no-clobber"]) == 1
    assert capsys.readouterr().err.startswith(f"fastpe: {output} exists, and --no-clobber keeps it")
    assert Path(output).read_bytes() == b"of somebody else"
    assert set(os.listdir()) == before | {output}
    # Without the option, it is replaced as any other file is.
    assert main([*command, "-o", output, "--quiet"]) == 0
    assert Path(output).read_bytes() == made


@pytest.mark.parametrize(
    ("first", "second"), [("x.npy", "x.npy"), ("x.npy", "link.npy"), ("g.zarr", "g.zarr"), ("g.zarr", "g.zarr/x")]
)
def test_a_file_is_changed_in_place_by_one_run_at_a_time(
    first: str, second: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    x = embeddings(6, 4)
    if "zarr" in first:
        zarr = pytest.importorskip("zarr")
        zarr.open_group("g.zarr", mode="w")["x"] = x
    np.save("x.npy", x)
    np.save("a.npy", x)
    if "link" in second:
        os.link("x.npy", "link.npy")
    inner: list[int] = []
    add = ArrayWork.add_

    def run_another(self: ArrayWork, view: Array, ranges: Any) -> None:
        if view.size and not inner:
            inner.append(-1)
            capsys.readouterr()
            inner[0] = main(["add", "a.npy", second, "--in-place"])
        add(self, view, ranges)

    monkeypatch.setattr(ArrayWork, "add_", run_another)
    assert main(["add", first, "--in-place", "--quiet"]) == 0
    assert inner == [1]
    error = capsys.readouterr().err
    assert error.startswith(f"fastpe: {second} is being changed in place by another run")
    assert error.count("\n") == 1
    # The other run has not changed its other input either, and this one has ended.
    np.testing.assert_array_equal(np.load("a.npy"), x)
    assert main(["add", second, "--in-place", "--quiet"]) == 0
    result = zarr.open_group("g.zarr", mode="r")["x"][...] if "zarr" in first else np.load("x.npy")
    np.testing.assert_array_equal(result, fastpe.add(fastpe.add(x)))


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def no_locks(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    x = embeddings(6, 4)
    np.save(tmp_path / "x.npy", x)
    assert main(["add", str(tmp_path / "x.npy"), "--in-place", "-q"]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), fastpe.add(x))


def write_table(path: Path) -> None:
    arrays = {"table": fastpe.encode(500, 256)}
    with open(path, "wb") as stream:
        named_arrays.writer_of(str(path), arrays)(stream, arrays)


_with_a_truncation = """
import os, sys
import fastpe
from fastpe.__main__ import main
identify = fastpe.identify
def truncate_first(*arrays):
    os.truncate(sys.argv[1], 200)
    return identify(*arrays)
fastpe.identify = truncate_first
sys.exit(main(["identify", sys.argv[1]]))
"""


def test_a_table_that_was_read_needs_no_file(tmp_path: Path) -> None:
    write_table(tmp_path / "t.npy")
    command = [sys.executable, "-c", _with_a_truncation, str(tmp_path / "t.npy")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("vaswani")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
def test_a_table_that_is_truncated_while_it_is_read_is_one_line(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"t{suffix}"
    write_table(path)
    read = npy_stream.read_elements

    def truncate_first(*arguments: Any) -> None:
        os.truncate(path, 40_000)
        read(*arguments)

    monkeypatch.setattr(npy_stream, "read_elements", truncate_first)
    assert main(["identify", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"fastpe: {path}")
    assert error.count("\n") == 1


def test_a_parquet_file_that_is_truncated_while_it_is_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.chdir(tmp_path)
    x = embeddings(40_000, 64)
    table = pa.table({"x": pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 64)})
    parquet.write_table(table, "x.parquet", row_group_size=1000)
    add = Addition.added

    def truncate_first(*arguments: Any, **options: Any) -> Array:
        os.truncate("x.parquet", 1_000_000)
        return add(*arguments, **options)

    monkeypatch.setattr(Addition, "added", truncate_first)
    assert main(["add", "x.parquet", "-o", "y.parquet"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("fastpe: x.parquet ")
    assert error.count("\n") == 1
    assert os.listdir() == ["x.parquet"]


@pytest.mark.parametrize("target", [["--in-place"], ["-o", "out"]])
def test_a_file_that_is_replaced_after_its_check_is_refused(
    target: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("out")
    for name in ("a.npy", "b.npy"):
        np.save(name, np.ones((6, 4), np.float32))
    checked = Addition.check

    def replacing(self: Addition, header: npy_stream.Header, label: str) -> ArrayWork:
        work = checked(self, header, label)
        if label == "b.npy":  # as many bytes as before
            np.save("b.npy", np.ones((3, 4)))
        return work

    monkeypatch.setattr(Addition, "check", replacing)
    assert main(["add", "a.npy", "b.npy", *target]) == 1
    assert "b.npy" in capsys.readouterr().err
    np.testing.assert_array_equal(np.load("b.npy"), np.ones((3, 4)))


@pytest.mark.parametrize(
    "header", [b'{"a":' + b"[" * 100_000, b'{"a":{"dtype":"F32","shape":[1e999],"data_offsets":[0,4]}}']
)
def test_hostile_safetensors_are_one_line(header: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    assert main(["identify", str(path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
