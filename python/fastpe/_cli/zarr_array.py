# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on an array of a zarr store, format 2 or 3, some chunks at a time."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.storage import LocalStore, StorePath

from fastpe._cli import npy
from fastpe._cli.messages import CommandError, OptionError, naming, progress
from fastpe._cli.options import Addition
from fastpe._cli.target import new_directory

_what = "a zarr array"
_largest_chunk_bytes, _largest_metadata_bytes = 1 << 30, 1 << 24
# Codecs that only decode numbers. Others, such as "pickle", can run code that a chunk holds.
_codecs = ["blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd", "shuffle", "crc32", "crc32c", "bytes", "transpose"]
_most_chunks = 10_000  # that are read at once, and that one shard has


def add(addition: Addition) -> None:
    """Write a new store with the array that --key names, or the one that the store is."""
    name, output, store = addition.source, addition.output, Path(addition.source).resolve()
    if output is None or addition.in_place:
        raise OptionError(f"{name} cannot be changed in place, as only .npy files can; write a new store with -o")
    if Path(output).resolve().is_relative_to(store):
        raise OptionError(f"-o is {output}, in the store that is read; name one outside of it")
    root = store.joinpath(*addition.keys)
    zarr_format = 3 if (root / "zarr.json").is_file() else 2
    names = ["zarr.json"] if zarr_format == 3 else [".zarray", ".zattrs"]
    files = [root / each for each in names if (root / each).is_file() and not (root / each).is_symlink()]
    is_inside = root.resolve() == root and root.is_relative_to(store)
    shown, inside = "/".join([name.rstrip("/"), *addition.keys]), "/".join([*addition.keys, "NAME"])
    kind = OptionError if addition.keys else CommandError
    group = f"{shown} is a group, expected an array; choose one of its arrays with --key {inside}"
    if len(addition.keys) > 1 or not is_inside or not root.exists():
        raise kind(f"{name} has no array {shown}, expected one that no link leads to; choose one with one --key NAME")
    if (root / ".zgroup").is_file():
        raise kind(group)
    if root / names[0] not in files:
        raise CommandError(
            f"{shown} is not a zarr array, or a link leads to it; name a store, and one --key NAME in it"
        )
    with naming(name, _what):
        if any(file.stat().st_size > _largest_metadata_bytes for file in files):
            raise ValueError(f"its metadata have more than {_largest_metadata_bytes} bytes")
        texts = {file.name: file.read_bytes() for file in files}
        metadata, *others = (json.loads(text) for text in texts.values())
        if not all(isinstance(each, dict) for each in (metadata, metadata.get("attributes", {}), *others)):
            raise ValueError("its metadata are not mappings")
        if "shape" not in metadata or metadata["zarr_format"] != zarr_format:
            raise kind(group)
        source = _opened(root, metadata)
        unit, units_at_once = _checked(source, name)
    encoder, axis, dtype = addition.prepared(source.shape, source.dtype)
    if dtype != source.dtype.newbyteorder("="):
        raise OptionError(f"--dtype is {dtype}, and {name} has {source.dtype}, which is kept; leave --dtype out")
    unit_bytes = math.prod(unit) * dtype.itemsize
    _require_plain_files(root, 2 * unit_bytes + _largest_metadata_bytes)
    sides = (unit[0] * max(1, min(npy.block_bytes // unit_bytes, units_at_once)), *unit[1:])
    grid = tuple(-(-extent // side) for extent, side in zip(source.shape, sides, strict=True))
    with new_directory(output, addition.quiet) as directory:
        for file_name, text in texts.items():
            (directory / file_name).write_bytes(text)
        target = _opened(directory, metadata)
        for number in progress(range(math.prod(grid)), addition.quiet):
            start = [int(index) * side for index, side in zip(np.unravel_index(number, grid), sides, strict=True)]
            place = tuple(slice(first, first + side) for first, side in zip(start, sides, strict=True))
            # However a loop of our own ends, no thread of zarr's goes on reading or writing.
            with naming(name, _what):
                x = np.require(asyncio.run(source.getitem(place)), dtype, ["C", "W"])
            offset = addition.offset + start[axis]
            encoder._add_part(x, start[-1], offset=offset, seq_axis=axis, out=x, **addition.factors)
            with naming(output, _what):
                asyncio.run(target.setitem(place, x))
        directory.chmod(root.stat().st_mode & 0o777)


def _opened(directory: Path, metadata: dict[str, Any]) -> Any:
    """The array with exactly these metadata, whatever else the store says about it."""
    return zarr.AsyncArray.from_dict(StorePath(LocalStore(directory)), metadata)


def _require_plain_files(root: Path, largest: int) -> None:
    """Refuse links, pipes and devices below an array: some lead elsewhere, and others are never read to their end."""
    for path in root.rglob("*"):
        if path.is_dir():
            # Another one may stand in the place of a chunk, which would then count as missing.
            is_plain = (path.name == "c" or path.name.isdigit()) and any(path.iterdir())
        else:
            is_plain = path.is_file() and path.stat().st_size <= largest
        if path.is_symlink() or not is_plain:
            found = f"{path} is not a file of at most {largest} bytes, or a directory of such files"
            raise CommandError(f"{found}; copy the store without them")


def _checked(array: Any, name: str) -> tuple[tuple[int, ...], int]:
    """The shape of what one file has, and how many files are read at once. It is checked what zarr has understood."""
    described, chunks = array.metadata.to_dict(), math.prod(array.chunks)
    if "codecs" in described:
        codecs = described["codecs"]
        if [each["name"] for each in codecs] == ["sharding_indexed"]:
            shard = codecs[0]["configuration"]
            codecs = [*shard["codecs"], *shard["index_codecs"]]
        if described.get("storage_transformers") or described["chunk_key_encoding"]["name"] not in ("default", "v2"):
            raise ValueError("its chunks are stored in a way that is not known")
    else:
        codecs = [each for each in (described["compressor"], *(described["filters"] or [])) if each]
    for codec in (each.get("name") or each["id"] for each in codecs):
        if codec not in _codecs:
            found = f"{name} has the codec {codec}, expected one that only decodes numbers, such as zstd"
            raise CommandError(f"{found}: others can run code that a chunk holds; save the array with such a codec")
    unit: tuple[int, ...] = array.shards or array.chunks
    unit_bytes, chunks_of_unit = math.prod(unit) * array.dtype.itemsize, math.prod(unit) // max(chunks, 1)
    if len(unit) > 32 or not 0 < unit_bytes <= _largest_chunk_bytes or not 0 < chunks_of_unit <= _most_chunks:
        raise ValueError(f"its shape is {list(array.shape)}, and that of its chunks {list(unit)}")
    return unit, _most_chunks // chunks_of_unit
