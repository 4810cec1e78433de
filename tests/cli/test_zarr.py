# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on arrays of zarr stores, and stores that somebody else wrote."""

from __future__ import annotations

import pytest

pytest.importorskip("typer")
pytest.importorskip("zarr", minversion="3.1")
numcodecs = pytest.importorskip("numcodecs")

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import zarr

import fastpe
from fastpe._cli import npy

from .support import PICKLE as PICKLED
from .support import Array, Capture, contents, embeddings, refused, run

formats = pytest.mark.parametrize("zarr_format", [2, 3])
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    # Some chunks per block, and many blocks per array.
    monkeypatch.setattr(npy, "block_bytes", 500)


def make(path: str, x: Array, chunks: tuple[int, ...], zarr_format: Any, **options: Any) -> None:
    """An array in a group, of which it is one."""
    directory, _, name = path.rpartition("/")
    group = zarr.open_group(directory, mode="a", zarr_format=zarr_format)
    group.create_array(name, shape=x.shape, chunks=chunks, dtype=x.dtype, **options)[...] = x


def opened(path: str) -> Any:
    return zarr.open(path, mode="r")


@formats
def test_one_array_of_a_group(zarr_format: int) -> None:
    x = embeddings(5, 11, 8)
    make("x.zarr/more/tokens", x, (2, 4, 3), zarr_format)
    make("x.zarr/more/ids", np.arange(5), (2,), zarr_format)
    zarr.open("x.zarr/more/tokens", mode="r+").attrs["unit"] = "none"
    before = contents()
    assert run("add x.zarr --key more/tokens -o y.zarr --offset 70000 --scale 2 -q") == 0
    after = contents()
    assert {name: after.pop(name) for name in before} == before
    inside = {name[len("x.zarr/more/tokens/") :] for name in before if name.startswith("x.zarr/more/tokens/")}
    assert {name[len("y.zarr/") :] for name in after if name != "y.zarr"} == inside
    np.testing.assert_array_equal(opened("y.zarr")[...], fastpe.add(x, offset=70000, scale=2))
    assert dict(opened("y.zarr").attrs) == {"unit": "none"}


@formats
@pytest.mark.parametrize(
    ("chunks", "seq_axis", "dtype"), [((5, 11, 8), 0, np.float16), ((1, 2, 3), 1, np.float64), ((2, 11, 8), -2, ">f4")]
)
def test_any_chunks_and_dtype(chunks: tuple[int, ...], seq_axis: int, dtype: Any, zarr_format: int) -> None:
    x = embeddings(5, 11, 8, dtype=dtype)
    make("x.zarr/x", x, chunks, zarr_format)
    os.chmod("x.zarr/x", 0o750)
    assert run(f"add x.zarr/x -o y.zarr --seq-axis {seq_axis} -q") == 0
    result = opened("y.zarr")
    np.testing.assert_array_equal(result[...], fastpe.add(x.astype(x.dtype.newbyteorder("=")), seq_axis=seq_axis))
    assert result.dtype == opened("x.zarr/x").dtype
    assert os.stat("y.zarr").st_mode & 0o777 == 0o750 or os.name != "posix"


def test_shards() -> None:
    x = embeddings(6, 11, 8)
    make("g.zarr/x", x, (1, 2, 4), 3, shards=(2, 4, 8))
    assert run("add g.zarr/x -o y.zarr -q") == 0
    np.testing.assert_array_equal(opened("y.zarr")[...], fastpe.add(x))
    assert sorted(os.listdir("y.zarr")) == sorted(os.listdir("g.zarr/x"))


def test_chunks_that_were_never_written_and_empty_arrays() -> None:
    zarr.open("x.zarr", mode="w", shape=(6, 8), chunks=(2, 8), dtype="f4", fill_value=3)[:2] = 1
    assert run("add x.zarr -o y.zarr -q") == 0
    x = np.repeat(np.array([1, 3, 3], np.float32), 2)[:, None] + np.zeros(8, np.float32)
    np.testing.assert_array_equal(opened("y.zarr")[...], fastpe.add(x))
    zarr.open("empty.zarr", mode="w", shape=(3, 0, 4), chunks=(3, 1, 4), dtype="f4")
    assert run("add empty.zarr -o z.zarr -q") == 0
    assert opened("z.zarr").shape == (3, 0, 4)


@formats
def test_what_is_refused(zarr_format: int, capsys: Capture) -> None:
    for name, x in (
        ("x.zarr/x", embeddings(4, 6)),
        ("x.zarr/ids", np.arange(8).reshape(2, 4)),
        ("other.zarr/x", embeddings(4, 6)),
        ("x.zarr/more/x", embeddings(4, 6)),
    ):
        make(name, x, (2, 4), zarr_format)
    os.mkdir("there.zarr")
    for code, options, named in (
        (1, "-o y.zarr", "--key NAME"),
        (2, "-o y.zarr --key more", "--key more/NAME"),
        (2, "-o y.zarr --key none", "--key NAME"),
        (2, "-o y.zarr --key ../other.zarr/x", "--key NAME"),
        (2, "-o y.zarr --key x --key ids", "--key NAME"),
        (1, "-o y.zarr --key ids", "fastpe embed"),
        (2, "-o y.zarr --key x --dtype float16", "--dtype"),
        (2, "-o y.zarr --key x --seq-axis 2", "--seq-axis"),
        (1, "-o there.zarr --key x", "there.zarr"),
        (1, "-o none/y.zarr --key x", "none"),
        (2, "--in-place --key x", "-o"),
    ):
        refused(f"add x.zarr {options}", capsys, named, code=code)
    refused("add x.zarr -o y.npy --key x", capsys, ".zarr", code=2)


@pytest.mark.parametrize("trials", [2, pytest.param(60, marks=pytest.mark.slow)])
@formats
def test_damaged_stores_are_one_line_and_leave_nothing(zarr_format: int, trials: int, capsys: Capture) -> None:
    make("x.zarr/x", embeddings(6, 8), (3, 8), zarr_format)
    rng, codes = np.random.default_rng(0), []
    for name in sorted(path for path in Path("x.zarr/x").rglob("*") if path.is_file()):
        whole = name.read_bytes()
        for _ in range(trials):
            data = bytearray(whole)
            for _ in range(3):
                data[rng.integers(len(data))] = rng.integers(256)
            name.write_bytes(data if rng.integers(4) else data[: rng.integers(len(data))])
            codes.append(run("add x.zarr/x -o y.zarr -q"))
            error = capsys.readouterr().err
            assert error.count("\n") == codes[-1], error
            assert set(os.listdir()) == {"x.zarr"} | ({"y.zarr"} if codes[-1] == 0 else set())
            shutil.rmtree("y.zarr", ignore_errors=True)
        name.write_bytes(whole)
    assert codes.count(1) >= trials


@pytest.mark.parametrize(
    "codecs",
    [
        {"compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}},
        {"compressor": {"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None}},
        {"compressor": {"id": "zlib", "level": 1}, "filters": [{"id": "shuffle", "elementsize": 4}, {"id": "crc32"}]},
        {"compressor": {"id": "zstd", "level": 1}},
    ],
)
def test_codecs_of_numbers_are_kept(codecs: dict[str, Any]) -> None:
    write_store({".zarray": array_of(2, order="F", **codecs)}, None)
    zarr.open("x.zarr", mode="r+")[...] = x = embeddings(4, 4)
    assert run("add x.zarr -o y.zarr -q") == 0
    np.testing.assert_array_equal(opened("y.zarr")[...], fastpe.add(x))
    assert Path("y.zarr/.zarray").read_bytes() == Path("x.zarr/.zarray").read_bytes()


# ---- stores that somebody else wrote


def array_of(zarr_format: int, **fields: Any) -> dict[str, Any]:
    """The metadata of an array of zeros."""
    if zarr_format == 2:
        sizes = {"shape": [4, 4], "chunks": [2, 2], "dtype": "<f4", "order": "C"}
        return {"zarr_format": 2, **sizes, "compressor": None, "filters": None, "fill_value": 0} | fields
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 4],
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": fields.pop("chunks", [2, 2])}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [BYTES],
    } | fields


def write_store(metadata: dict[str, Any], chunk: bytes | None = PICKLED) -> None:
    """Write metadata, and a chunk for each array."""
    for name, content in metadata.items():
        path = Path("x.zarr", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
        for key in ("0.0", "c/0/0") if chunk else ():
            (path.parent / key).parent.mkdir(parents=True, exist_ok=True)
            (path.parent / key).write_bytes(chunk or b"")


BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
PICKLE = {"id": "pickle", "protocol": 0}
NAMED_PICKLE = {"name": "numcodecs.pickle", "configuration": {"protocol": 0}}
AWAY = "/../../others/"


def shards(inner: Any, **codecs: Any) -> dict[str, Any]:
    configuration = {"chunk_shape": inner, "codecs": [BYTES], "index_codecs": [BYTES]} | codecs
    return {"codecs": [{"name": "sharding_indexed", "configuration": configuration}]}


ODD_CHUNKS: list[Any] = [[-1, 2], [2.5, 2], ["2", 2], [2], [2**40, 2], None, {}]
ODD_SHAPES: list[Any] = [[2**60, 2**60], [-1, 4], [4] * 70, "44", {}, None]
HOSTILE: list[tuple[int, dict[str, Any]]] = [
    # Codecs that may run code, and elements that are not numbers.
    (2, {"compressor": PICKLE}),
    (2, {"filters": [{"id": "shuffle", "elementsize": 4}, PICKLE]}),
    *((2, {"dtype": "|O", "filters": [each]}) for each in (PICKLE, {"id": "json2"}, {"id": "vlen-utf8"})),
    (2, {"compressor": {"id": "n5_wrapper", "compressor_config": PICKLE}}),
    (2, {"compressor": {"id": "of_somebody_else"}}),
    (3, {"codecs": [BYTES, NAMED_PICKLE]}),
    (3, {"codecs": [BYTES, {"name": "numcodecs.zlib", "configuration": PICKLE}]}),
    (3, {"codecs": ["numcodecs.pickle"]}),
    (3, shards([1, 2], codecs=[BYTES, NAMED_PICKLE])),
    (3, shards([1, 2], index_codecs=[BYTES, NAMED_PICKLE])),
    (3, shards([2, 2], **shards([1, 2]))),
    *((2, {"dtype": dtype}) for dtype in ("|O", [["a", "<f4"]], "<f4,<f4", "f4," * 10**6, None)),
    (3, {"data_type": "f4," * 10**6}),
    (2, {"filters": [{"id": "astype", "encode_dtype": "|O", "decode_dtype": "<f4"}]}),
    (2, {"filters": [{"id": "delta", "dtype": "<f4", "astype": "|O"}]}),
    (2, {"filters": [{"id": "bitround", "keepbits": 10**9}]}),
    (2, {"filters": [{"id": "quantize", "digits": 10**6, "dtype": "<f4"}]}),
    # Chunks in other places.
    (2, {"dimension_separator": AWAY}),
    (2, {"dimension_separator": AWAY, "chunk_key_encoding": {"name": "v2"}}),
    (3, {"chunk_key_encoding": {"name": "default", "configuration": {"separator": AWAY}}}),
    (3, {"chunk_key_encoding": {"name": "default", "separator": AWAY}}),
    (3, {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": AWAY}}}),
    (3, {"chunk_key_encoding": {"name": "suffix", "configuration": {"suffix": AWAY + "x"}}}),
    (3, {"storage_transformers": [{"name": "of_somebody_else"}]}),
    # Chunks, shards and shapes of odd sizes.
    *((each, {"chunks": chunks}) for each in (2, 3) for chunks in ODD_CHUNKS),
    (2, {"chunks": [2**16, 2**16], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}}}),
    *((3, shards(inner)) for inner in ([0, 2], [-1, 2], [2**40, 2], "22")),
    (3, {"shape": [1024, 1024], "chunks": [1024, 1024], **shards([1, 1])}),
    *((each, {"shape": shape}) for each in (2, 3) for shape in ODD_SHAPES),
]


@pytest.mark.parametrize(("zarr_format", "fields"), HOSTILE, ids=lambda value: str(value)[:70])
def test_hostile_metadata_are_refused_before_a_chunk_is_read(
    zarr_format: int, fields: dict[str, Any], capsys: Capture
) -> None:
    for directory in ("x.zarr/c", "others", "out"):
        os.makedirs(directory)
    write_store({"zarr.json" if zarr_format == 3 else ".zarray": array_of(zarr_format, **fields)})
    refused("add x.zarr -o out/y.zarr", capsys, "" if "shape" in fields or "chunks" in fields else "x.zarr")


class Codec2(numcodecs.abc.Codec):  # type: ignore[name-defined, misc]
    codec_id = "runs"

    def decode(self, *_: Any) -> None:
        os.mkdir("ran")

    encode = decode


METHODS = {"to_dict": lambda _: {"name": "pickle"}, "from_dict": classmethod(lambda cls, _: cls())}
Codec3: Any = type("Codec3", (zarr.codecs.Crc32cCodec,), METHODS)


@pytest.mark.parametrize(
    ("zarr_format", "name", "fields"),
    [
        *((2, "runs", fields) for fields in ({"compressor": {"id": "runs"}}, {"filters": [{"id": "runs"}]})),
        (3, "pickle", {"codecs": [BYTES, {"name": "pickle"}]}),
        *((3, "pickle", shards([1, 2], **{key: [BYTES, {"name": "pickle"}]})) for key in ("codecs", "index_codecs")),
    ],
    ids=str,
)
def test_a_codec_that_zarr_knows_is_refused_by_name(
    zarr_format: int, name: str, fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(numcodecs.registry.codec_registry, "runs", Codec2)
    zarr.registry.register_codec("pickle", Codec3)
    write_store({"zarr.json" if zarr_format == 3 else ".zarray": array_of(zarr_format, **fields)})
    refused("add x.zarr -o y.zarr", capsys, f"x.zarr has the codec {name}, expected")


GROUP_2, GROUP = {"zarr_format": 2}, {"zarr_format": 3, "node_type": "group"}
OTHERS = {".zgroup": GROUP_2, "a/.zarray": array_of(2, compressor=PICKLE)}
INLINE = {"kind": "inline", "must_understand": False, "metadata": {"a": array_of(2, compressor=PICKLE)}}


@pytest.mark.parametrize(
    "metadata",
    [
        # Both formats at once.
        {".zarray": array_of(2, compressor=PICKLE), "zarr.json": array_of(3)},
        {".zarray": array_of(2, compressor=PICKLE), "zarr.json": GROUP, "a/zarr.json": array_of(3)},
        {".zarray": array_of(2, compressor=PICKLE), ".zgroup": GROUP_2, "a/.zarray": array_of(2)},
        # What a group says about its arrays, and what they say themselves.
        {
            ".zgroup": GROUP_2,
            "a/.zarray": array_of(2),
            ".zmetadata": {"zarr_consolidated_format": 1, "metadata": OTHERS},
        },
        {"zarr.json": {**GROUP, "consolidated_metadata": INLINE}, "a/zarr.json": array_of(3)},
    ],
)
def test_no_metadata_make_a_store_run_code(metadata: dict[str, Any]) -> None:
    write_store(metadata)
    run("add x.zarr --key a -o y.zarr")
    run("add x.zarr -o z.zarr")
    assert "ran" not in os.listdir()


@pytest.mark.parametrize(
    "metadata",
    [
        {"zarr.json": array_of(2)},  # of the other format
        {".zattrs": array_of(2)},
        {".zarray": array_of(2), ".zattrs": {"a": "x" * 2**24}},  # too large to be copied
        {".zarray": array_of(2), ".zattrs": [1]},
    ],
    ids=str,
)
def test_files_that_are_not_metadata(metadata: dict[str, Any], capsys: Capture) -> None:
    write_store(metadata)
    refused("add x.zarr -o y.zarr", capsys, "x.zarr")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and pipes are POSIX's")
@formats
@pytest.mark.parametrize("place", ["chunk", "metadata", ".zattrs", "directory", "beside"])
def test_only_files_and_directories_are_read(place: str, zarr_format: int, capsys: Capture) -> None:
    make("x.zarr/x", embeddings(4, 6), (2, 6), zarr_format)
    os.makedirs("others")
    array = Path("x.zarr/x")
    chunk = array / ("0.0" if zarr_format == 2 else "c/0/0")
    name = "zarr.json" if zarr_format == 3 else ".zarray"
    path = {"chunk": chunk, "metadata": array / name, "directory": array}.get(place, array / place)
    if place == "directory" or path.exists():
        os.rename(path, "others/x")
    else:
        Path("others/x").write_text("{}")
    for target in (Path("others/x").resolve(), "/dev/zero", "pipe"):
        os.mkfifo(path) if target == "pipe" else os.symlink(target, path)
        refused("add x.zarr --key x -o y.zarr", capsys, code=2 if place == "directory" and target != "pipe" else 1)
        os.unlink(path)
    if place == "chunk":
        path.mkdir()  # the chunk would count as missing
        refused("add x.zarr --key x -o y.zarr", capsys)


def test_a_full_disk_leaves_nothing(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    zarr.open("x.zarr", mode="w", shape=(6, 4), chunks=(1, 4), dtype="f4")[...] = 1.0

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for owner, name in ((Path, "write_bytes"), (zarr.storage.LocalStore, "set")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, full)
            refused("add x.zarr -o y.zarr -q", capsys, f"y.zarr: {os.strerror(errno.ENOSPC)}")


@pytest.mark.skipif(not hasattr(os, "sync"), reason="the other one comes while everything is put on the disk")
@pytest.mark.parametrize("other", ["y.zarr", "y.zarr/zarr.json"])
def test_what_appears_meanwhile_is_kept(other: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    zarr.open("x.zarr", mode="w", shape=(6, 4), chunks=(1, 4), dtype="f4")

    def come() -> None:
        Path(other).parent.mkdir(exist_ok=True)
        Path(other).write_bytes(b"of somebody else")

    monkeypatch.setattr(os, "sync", come)
    assert run("add x.zarr -o y.zarr") == 1
    assert "y.zarr" in capsys.readouterr().err
    assert Path(other).read_bytes() == b"of somebody else"
    assert set(os.listdir()) == {"x.zarr", "y.zarr"}


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
def test_an_unfinished_store_is_closed_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    zarr.open("x.zarr", mode="w", shape=(4, 4), chunks=(2, 2), dtype="f4")
    modes, write = [], Path.write_bytes

    def record(path: Path, content: bytes) -> int:
        modes.append(path.parent.stat().st_mode & 0o777)
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", record)
    assert run("add x.zarr -o y.zarr -q") == 0
    assert set(modes) == {0o700}
