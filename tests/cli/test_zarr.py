# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

pytest.importorskip("zarr")

import asyncio
import base64
import errno
import json
import os
import pickle
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
    assert refused >= trials


# ---- stores that somebody else wrote


def float_array(zarr_format: int, **fields: Any) -> dict[str, Any]:
    """The metadata of an array of zeros."""
    if zarr_format == 2:
        sizes = {"shape": [4, 4], "chunks": [2, 2], "dtype": "<f4", "order": "C"}
        return {"zarr_format": 2, **sizes, "compressor": None, "filters": None, "fill_value": 0} | fields
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 4],
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    } | fields


class Code:
    """What pickle calls when it reads one of these."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("ran",)


def write_store(files_in_it: dict[str, Any]) -> None:
    """Write metadata, and a chunk that is a pickle for each array."""
    for name, content in files_in_it.items():
        path = Path("x.zarr", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    for directory in {Path("x.zarr", name).parent for name in files_in_it}:
        for chunk in ("0.0", "c/0/0"):
            (directory / chunk).parent.mkdir(parents=True, exist_ok=True)
            (directory / chunk).write_bytes(pickle.dumps(Code(), protocol=0))


PICKLE = {"id": "pickle", "protocol": 0}
NAMED_PICKLE = {"name": "numcodecs.pickle", "configuration": {"protocol": 0}}
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


@pytest.mark.parametrize(
    ("zarr_format", "fields", "codec"),
    [
        (2, {"compressor": PICKLE}, "pickle"),
        (2, {"filters": [PICKLE]}, "pickle"),
        (2, {"filters": [{"id": "shuffle", "elementsize": 4}, PICKLE]}, "pickle"),
        (2, {"dtype": "|O", "filters": [PICKLE]}, "pickle"),
        (2, {"dtype": "|O", "filters": [{"id": "json2"}]}, "json2"),
        (2, {"dtype": "|O", "filters": [{"id": "vlen-utf8"}]}, "vlen-utf8"),
        (2, {"compressor": {"id": "n5_wrapper", "compressor_config": PICKLE}}, "pickle"),
        (2, {"compressor": {"id": "of_somebody_else"}}, "of_somebody_else"),
        (3, {"codecs": [BYTES, NAMED_PICKLE]}, "numcodecs.pickle"),
        (3, {"codecs": [BYTES, {"name": "numcodecs.zlib", "configuration": PICKLE}]}, "pickle"),
        (3, {"codecs": ["numcodecs.pickle"]}, "numcodecs.pickle"),
        (3, {"data_type": "string", "codecs": [{"name": "vlen-utf8"}]}, "vlen-utf8"),
        *(
            (
                3,
                {
                    "codecs": [
                        {
                            "name": "sharding_indexed",
                            "configuration": {"chunk_shape": [1, 2], "codecs": [BYTES], "index_codecs": [BYTES]}
                            | {inner: [BYTES, NAMED_PICKLE]},
                        }
                    ]
                },
                "numcodecs.pickle",
            )
            for inner in ("codecs", "index_codecs")
        ),
    ],
)
@pytest.mark.parametrize("where", [["-o", "y.zarr"], ["--in-place"]])
def test_a_codec_that_may_run_code_is_refused_by_name(
    zarr_format: int,
    fields: dict[str, Any],
    codec: str,
    where: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_store({"zarr.json" if zarr_format == 3 else ".zarray": float_array(zarr_format, **fields)})
    before = files(tmp_path)
    assert main(["add", "x.zarr", *where]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"fastpe: x.zarr has the codec {codec}, expected")
    assert error.count("\n") == 1
    assert files(tmp_path) == before
    assert os.listdir() == ["x.zarr"]


GROUP = {"zarr_format": 3, "node_type": "group"}
OBJECTS = {"dtype": [["a", "|O"]], "filters": [PICKLE]}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("where", [["-o", "y.zarr"], ["--in-place"]])
@pytest.mark.parametrize(
    "metadata",
    [
        # Both formats at once.
        {".zarray": float_array(2, compressor=PICKLE), "zarr.json": float_array(3)},
        {".zarray": float_array(2, compressor=PICKLE), "zarr.json": GROUP, "a/zarr.json": float_array(3)},
        {".zarray": float_array(2, compressor=PICKLE), ".zgroup": {"zarr_format": 2}, "a/.zarray": float_array(2)},
        # What a group says about its arrays, and what they say themselves.
        {
            ".zgroup": {"zarr_format": 2},
            "a/.zarray": float_array(2),
            ".zmetadata": {
                "zarr_consolidated_format": 1,
                "metadata": {".zgroup": {"zarr_format": 2}, "a/.zarray": float_array(2, compressor=PICKLE)},
            },
        },
        {
            "zarr.json": GROUP
            | {
                "consolidated_metadata": {
                    "kind": "inline",
                    "must_understand": False,
                    "metadata": {"a": float_array(2, compressor=PICKLE)},
                }
            },
            "a/zarr.json": float_array(3),
        },
        # Another array, whose fill value zarr 2 decodes when it opens the array.
        {
            ".zgroup": {"zarr_format": 2},
            "a/.zarray": float_array(2),
            "b/.zarray": float_array(2, fill_value=base64.b64encode(pickle.dumps(Code())).decode(), **OBJECTS),
        },
    ],
)
def test_no_metadata_make_a_store_run_code(
    metadata: dict[str, Any], where: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_store(metadata)
    main(["add", "x.zarr", "--key", "a", *where])
    main(["add", "x.zarr", *where])
    assert "ran" not in os.listdir()


@pytest.mark.filterwarnings("default")
def test_a_suffix_of_another_library_does_not_change_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # zarr 2 reads attributes.json in a directory of this name.
    monkeypatch.chdir(tmp_path)
    fields = {"dataType": "float32", "dimensions": [4, 4], "blockSize": [2, 2], "compression": {"type": "pickle"}}
    write_store({".zarray": float_array(2), "attributes.json": {"n5": "2.0.0"} | fields})
    os.rename("x.zarr", "x.n5")
    os.mkdir("x.n5/0")
    Path("x.n5/0/0").write_bytes(b"\0\0\0\2" * 3 + pickle.dumps(Code(), protocol=0))
    main(["add", "x.n5", "--in-place"])
    assert "ran" not in os.listdir()


def test_chunks_are_in_their_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.makedirs("x.zarr/0")
    os.mkdir("others")
    write_store({".zarray": float_array(2, dimension_separator="/../../others/")})
    before = files(tmp_path)
    assert main(["add", "x.zarr", "--in-place"]) == 1
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    "keys",
    [
        {"name": "default", "configuration": {"separator": "/../../others/"}},
        {"name": "default", "separator": "/../../others/"},
        {"name": "v2", "configuration": {"separator": "/../../others/"}},
        {"name": "suffix", "configuration": {"suffix": "/../../others/x"}},
    ],
)
@pytest.mark.parametrize("target", [["--in-place"], ["-o", "out/y.zarr"]])
def test_chunk_keys_of_format_3_stay_in_their_store(
    keys: dict[str, Any], target: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for directory in ("x.zarr/c", "others", "out"):
        os.makedirs(directory)
    write_store({"zarr.json": float_array(3, chunk_key_encoding=keys)})
    before = files(tmp_path)
    assert main(["add", "x.zarr", *target]) == 1
    assert files(tmp_path) == before


def test_links_of_a_group_to_itself_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("x.zarr")
    Path("x.zarr/.zgroup").write_text('{"zarr_format": 2}')
    for link in ("a", "b"):
        os.symlink(".", f"x.zarr/{link}")
    assert main(["add", "x.zarr", "-o", "y.zarr"]) == 1
    assert not Path("y.zarr").exists()


@pytest.mark.parametrize(
    "codecs",
    [
        {"compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}},
        {"compressor": {"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None}},
        {
            "compressor": {"id": "zlib", "level": 1},
            "filters": [{"id": "shuffle", "elementsize": 4}, {"id": "crc32"}],
        },
    ],
)
def test_codecs_of_numbers_are_kept(codecs: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("x.zarr")
    Path("x.zarr/.zarray").write_text(json.dumps(float_array(2, order="F", **codecs)))
    zarr.open("x.zarr", mode="r+")[...] = x = embeddings(4, 4)
    assert main(["add", "x.zarr", "-o", "y.zarr", "-q"]) == 0
    np.testing.assert_array_equal(zarr.open("y.zarr", mode="r")[...], fastpe.add(x))
    assert files(tmp_path / "y.zarr")[".zarray"] == files(tmp_path / "x.zarr")[".zarray"]


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_chunks_of_size_zero_are_one_line(
    zarr_format: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    grid = {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 2]}}}
    fields = {"chunks": [0, 2]} if zarr_format == 2 else grid
    write_store({"zarr.json" if zarr_format == 3 else ".zarray": float_array(zarr_format, **fields)})
    assert main(["add", "x.zarr", "-o", "y.zarr"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert os.listdir() == ["x.zarr"]


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


@pytest.mark.skipif(not hasattr(os, "sync"), reason="the other one comes while everything is put on the disk")
@pytest.mark.parametrize("other", ["y.zarr", "y.zarr/zarr.json"])
def test_what_appears_meanwhile_is_kept(
    other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    zarr.open("x.zarr", mode="w", shape=(6, 4), chunks=(1, 4), dtype="f4")

    def come() -> None:
        Path(other).parent.mkdir(exist_ok=True)
        Path(other).write_bytes(b"of somebody else")

    monkeypatch.setattr(os, "sync", come)
    assert main(["add", "x.zarr", "-o", "y.zarr"]) == 1
    assert capsys.readouterr().err.startswith("fastpe: y.zarr exists, and only a file is replaced")
    assert Path(other).read_bytes() == b"of somebody else"
    assert set(os.listdir()) == {"x.zarr", "y.zarr"}


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
