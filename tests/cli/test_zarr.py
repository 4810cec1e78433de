# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

pytest.importorskip("zarr")

import asyncio
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import zarr

import fastpe
from fastpe.__main__ import main
from fastpe._cli.files import blocks

Array = np.ndarray[Any, Any]
ZARR_3 = int(zarr.__version__.partition(".")[0]) >= 3
FORMATS = [2, 3] if ZARR_3 else [2]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    # Some chunks per block, and many blocks per array.
    monkeypatch.setattr(blocks, "block_bytes", 500)


def embeddings(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def open_group(path: Path, zarr_format: int) -> Any:
    return zarr.open_group(str(path), mode="w", **({"zarr_format": zarr_format} if ZARR_3 else {}))


def make(group: Any, name: str, x: Array, chunks: tuple[int, ...], **options: Any) -> None:
    create = group.create_array if ZARR_3 else group.create_dataset
    create(name, shape=x.shape, chunks=chunks, dtype=x.dtype, **options)[...] = x


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture(params=FORMATS)
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A group with embeddings, others in a group below, and an array of integers."""
    path = tmp_path / "x.zarr"
    group = open_group(path, request.param)
    group.attrs["model"] = "some"
    make(group, "tokens", embeddings(5, 11, 8), (2, 4, 3))
    group["tokens"].attrs["unit"] = "none"
    make(group, "ids", np.arange(5), (2,))
    make(group.create_group("more"), "tokens", embeddings(4, 6), (4, 6))
    return path


def test_a_new_store_has_all_that_the_old_one_has(store: Path) -> None:
    before = files(store)
    target = store.with_name("y.zarr")
    options = ["--key", "tokens", "--offset", "70000", "--scale", "2", "-q"]
    assert main(["add", str(store), "-o", str(target), *options]) == 0
    assert files(store) == before
    after = files(target)
    assert set(after) == set(before)
    changed = {name for name in after if after[name] != before[name]}
    assert {name.split(os.sep)[0] for name in changed} == {"tokens"}
    assert not {Path(name).name for name in changed} & {"zarr.json", ".zarray", ".zattrs"}
    result = zarr.open(str(target), mode="r")["tokens"][...]
    np.testing.assert_array_equal(result, fastpe.add(embeddings(5, 11, 8), offset=70000, scale=2))
    assert set(os.listdir(store.parent)) == {"x.zarr", "y.zarr"}


def test_in_place_and_several_keys(store: Path) -> None:
    assert main(["add", str(store), "--in-place", "--key", "tokens", "--key", "more/tokens", "-q"]) == 0
    group = zarr.open(str(store), mode="r")
    np.testing.assert_array_equal(group["tokens"][...], fastpe.add(embeddings(5, 11, 8)))
    np.testing.assert_array_equal(group["more/tokens"][...], fastpe.add(embeddings(4, 6)))
    np.testing.assert_array_equal(group["ids"][...], np.arange(5))


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize(
    ("chunks", "seq_axis", "dtype"),
    [((5, 11, 8), 0, np.float16), ((3, 4, 5), 0, np.float32), ((1, 2, 3), 1, np.float64), ((2, 11, 8), -2, ">f4")],
)
def test_one_array_in_any_chunks(
    tmp_path: Path, chunks: tuple[int, ...], seq_axis: int, dtype: Any, zarr_format: int
) -> None:
    x = embeddings(5, 11, 8, dtype=dtype)
    source, target = tmp_path / "group" / "x", tmp_path / "y.zarr"
    make(open_group(source.parent, zarr_format), "x", x, chunks)
    assert main(["add", str(source), "-o", str(target), "--seq-axis", str(seq_axis), "-q"]) == 0
    result = zarr.open(str(target), mode="r")
    native = x.astype(x.dtype.newbyteorder("="))
    np.testing.assert_array_equal(result[...], fastpe.add(native, seq_axis=seq_axis))
    assert result.dtype == zarr.open(str(source), mode="r").dtype


@pytest.mark.skipif(not ZARR_3, reason="shards are zarr 3's")
def test_shards(tmp_path: Path) -> None:
    x = embeddings(6, 11, 8)
    make(open_group(tmp_path, 3), "x.zarr", x, (1, 2, 4), shards=(2, 4, 8))
    before = files(tmp_path)
    assert main(["add", str(tmp_path / "x.zarr"), "--in-place", "-q"]) == 0
    np.testing.assert_array_equal(zarr.open(str(tmp_path / "x.zarr"))[...], fastpe.add(x))
    assert set(files(tmp_path)) == set(before)


def test_chunks_that_were_never_written(tmp_path: Path) -> None:
    source = tmp_path / "x.zarr"
    array = zarr.open(str(source), mode="w", shape=(6, 8), chunks=(2, 8), dtype="f4", fill_value=3)
    array[:2] = 1
    assert main(["add", str(source), "--in-place", "-q"]) == 0
    x = np.repeat(np.array([1, 3, 3], np.float32), 2)[:, None] + np.zeros(8, np.float32)
    np.testing.assert_array_equal(zarr.open(str(source))[...], fastpe.add(x))


@pytest.mark.parametrize("shape", [(0, 4), (3, 0, 4), (3, 4, 0)])
def test_empty_arrays(tmp_path: Path, shape: tuple[int, ...]) -> None:
    chunks = tuple(max(extent, 1) for extent in shape)
    zarr.open(str(tmp_path / "x.zarr"), mode="w", shape=shape, chunks=chunks, dtype="f4")
    assert main(["add", str(tmp_path / "x.zarr"), "-o", str(tmp_path / "y.zarr"), "-q"]) == 0
    assert zarr.open(str(tmp_path / "y.zarr")).shape == shape


def test_directories_hold_stores_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    x = embeddings(4, 6)
    os.mkdir("in")
    np.save("in/a.npy", x)
    zarr.open("in/b.zarr", mode="w", shape=x.shape, chunks=(3, 5), dtype=x.dtype)[...] = x
    assert main(["add", "in", "-o", "out", "-q"]) == 0
    np.testing.assert_array_equal(np.load("out/a.npy"), fastpe.add(x))
    np.testing.assert_array_equal(zarr.open("out/b.zarr", mode="r")[...], fastpe.add(x))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "y.zarr"], "x.zarr holds 3 arrays (ids, tokens, more/tokens); choose with --key NAME"),
        (["-o", "y.zarr", "--key", "more"], "--key is more, expected one of x.zarr's arrays: ids, tokens, more/tokens"),
        (["-o", "y.zarr", "--key", "ids"], "x.zarr:ids has dtype int64, expected float16, float32 or float64"),
        (["-o", "y.zarr", "--key", "tokens", "--dtype", "float16"], "a zarr array keeps its type; leave --dtype out"),
        (["--in-place", "--key", "tokens", "--seq-axis", "2"], "--seq-axis is 2, expected an axis of x.zarr:tokens"),
        (["-o", "x.zarr", "--key", "tokens"], "x.zarr is the input itself"),
        (["-o", "there.zarr", "--key", "tokens"], "there.zarr exists, and only a file is replaced; remove it first"),
        (["-o", "no/y.zarr", "--key", "tokens"], "no is no directory; make it first"),
        (
            ["-o", "y.npy", "--key", "tokens"],
            "x.zarr is a zarr store, and so is its result; give y.npy the suffix .zarr",
        ),
        (["-o", "-", "--key", "tokens"], "which no pipe can take"),
    ],
)
def test_errors_are_one_line_and_write_nothing(
    store: Path,
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(store.parent)
    zarr.open_group("there.zarr", mode="w")
    before = files(store.parent)
    assert main(["add", "x.zarr", *options]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert files(store.parent) == before


@pytest.mark.parametrize("target", ["x.zarr/new.zarr", "x.zarr/group/new.zarr", "x.zarr/e/new.zarr"])
def test_a_store_is_not_copied_into_itself(
    store: Path, target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(store.parent)
    before = files(store)
    (store / "group").mkdir(exist_ok=True)
    target = target.replace("x.zarr", store.name)
    assert main(["add", store.name, "--key", "e", "-o", target]) == 1
    error = capsys.readouterr().err
    assert f"{target} lies in the input {store.name}; name an output outside of it" in error
    assert error.count("\n") == 1
    assert files(store) == before


@pytest.mark.skipif(os.name != "posix", reason="makes symbolic links")
@pytest.mark.parametrize("place", [".", "../out"])
def test_a_store_with_a_link_to_itself_or_to_its_copy_is_refused(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    zarr.open("x.zarr", mode="w", shape=(4, 4), chunks=(2, 2), dtype="f4")
    os.mkdir("out")
    os.symlink(place, "x.zarr/link")
    assert main(["add", "x.zarr", "-o", "out/y.zarr"]) == 1
    error = capsys.readouterr().err
    assert "x.zarr/link is a link to " in error
    assert error.count("\n") == 1
    assert os.listdir("out") == []


@pytest.mark.skipif(not ZARR_3, reason="zarr 3 warns of what it does not know")
@pytest.mark.skipif(os.name != "posix", reason="such names are POSIX's")
@pytest.mark.filterwarnings("default")
def test_warnings_about_names_move_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w")
    group["e"] = embeddings(3, 4)
    (tmp_path / "x.zarr" / "a\x1b[31mb").touch()
    assert main(["add", str(tmp_path / "x.zarr"), "-o", str(tmp_path / "y.zarr"), "-q"]) == 0
    error = capsys.readouterr().err
    assert error.startswith("fastpe: warning: Object at a\\x1b[31mb is not recognized")
    assert error.count("\n") == 1


@pytest.mark.parametrize("trials", [2, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("zarr_format", FORMATS)
def test_damaged_stores_are_one_line_and_leave_nothing(
    tmp_path: Path, zarr_format: int, trials: int, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "x.zarr", tmp_path / "y.zarr"
    make(open_group(source, zarr_format), "x", embeddings(6, 8), (3, 8))
    rng = np.random.default_rng(0)
    names = sorted(path for path in source.rglob("*") if path.is_file())
    refused = 0
    for name in names:
        whole = name.read_bytes()
        for _ in range(trials):
            data = bytearray(whole)
            for _ in range(3):
                data[rng.integers(len(data))] = rng.integers(256)
            name.write_bytes(data if rng.integers(4) else data[: rng.integers(len(data))])
            code = main(["add", str(source), "-o", str(target), "-q"])
            error = capsys.readouterr().err
            assert error.count("\n") == code, error
            assert target.exists() == (code == 0)
            assert {path.name for path in tmp_path.iterdir()} <= {"x.zarr", "y.zarr"}
            if target.exists():
                shutil.rmtree(target)
            refused += code
        name.write_bytes(whole)
    assert refused > 10 * trials // 6


def test_an_object_array_is_never_unpickled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zarr.open(str(tmp_path / "x.zarr"), mode="w", shape=(4, 4), chunks=(2, 2), dtype="f4", **_version_2())
    metadata = tmp_path / "x.zarr" / ".zarray"
    fields = json.loads(metadata.read_text())
    metadata.write_text(json.dumps(fields | {"dtype": "|O", "filters": [{"id": "pickle"}], "fill_value": None}))
    (tmp_path / "x.zarr" / "0.0").write_bytes(b"cos\nabort\n(tR.")
    assert main(["add", str(tmp_path / "x.zarr"), "-o", str(tmp_path / "y.zarr")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def _version_2() -> dict[str, Any]:
    return {"zarr_format": 2} if ZARR_3 else {}


def test_without_zarr(store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "zarr", None)
    assert main(["add", str(store), "--in-place", "--key", "tokens"]) == 2
    error = capsys.readouterr().err
    assert error == "fastpe: zarr stores need zarr; install it with: pip install zarr\n"


@pytest.mark.skipif(os.name != "posix", reason="this signal is POSIX's")
@pytest.mark.usefixtures("interruptible_children")
def test_a_stopped_change_in_place_says_so(tmp_path: Path) -> None:
    source = tmp_path / "x.zarr"
    zarr.open(str(source), mode="w", shape=(4000, 256), chunks=(1, 256), dtype="f4")
    program = (
        "import sys; from fastpe.__main__ import main; from fastpe._cli.files import blocks; blocks.block_bytes = 1;"
    )
    command = [sys.executable, "-c", program + "sys.exit(main(sys.argv[1:]))", "add", str(source), "--in-place"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while sum(path.is_file() for path in source.rglob("*")) < 20:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        error = process.stderr.read()
    assert process.returncode == 130, error
    assert error.startswith(f"fastpe: {source} may be partly changed: the first ")
    assert error.endswith("fastpe: interrupted\n"), error
    assert error.count("\n") == 2


@pytest.mark.skipif(not ZARR_3, reason="zarr 2 writes chunks in one thread")
def test_a_full_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "x.zarr"
    zarr.open(str(source), mode="w", shape=(6, 4), chunks=(1, 4), dtype="f4")[...] = 1.0
    begun, written = [], []

    def write_slowly(chunk: Path) -> None:
        begun.append(chunk)
        time.sleep(0.02)
        chunk.parent.mkdir(parents=True, exist_ok=True)
        chunk.touch()
        written.append(chunk)

    async def fail_first(store: Any, key: str, *_: Any) -> None:
        if key.endswith("0/0"):
            while len(begun) < 5:
                await asyncio.sleep(0.001)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        await asyncio.to_thread(write_slowly, store.root / key)

    monkeypatch.setattr(zarr.storage.LocalStore, "set", fail_first)
    target = tmp_path / "y.zarr"
    assert main(["add", str(source), "-o", str(target), "-q"]) == 1
    assert capsys.readouterr().err == f"fastpe: {target}: {os.strerror(errno.ENOSPC)}\n"
    assert len(written) == 5
    time.sleep(0.05)
    assert list(tmp_path.iterdir()) == [source]


def test_a_disk_that_is_full_while_the_rest_is_copied_is_reported_in_one_line(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), source, None, target)

    monkeypatch.setattr(shutil, "copy2", full)
    target = store.with_name("y.zarr")
    assert main(["add", str(store), "--key", "tokens", "-o", str(target), "-q"]) == 1
    assert capsys.readouterr().err == f"fastpe: {target}: {os.strerror(errno.ENOSPC)}\n"
    assert list(store.parent.iterdir()) == [store]


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
def test_an_unfinished_store_is_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "x.zarr"
    zarr.open(str(source), mode="w", shape=(4, 4), chunks=(2, 2), dtype="f4")
    source.chmod(0o700)
    modes = []
    copy = shutil.copytree

    def record(*arguments: Any, **options: Any) -> None:
        modes.append(arguments[1].stat().st_mode & 0o777)
        copy(*arguments, **options)

    monkeypatch.setattr(shutil, "copytree", record)
    assert main(["add", str(source), "-o", str(tmp_path / "y.zarr"), "-q"]) == 0
    assert modes == [0o700]
    assert (tmp_path / "y.zarr").stat().st_mode & 0o777 == 0o700
