# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on an array of a zarr store, format 2 or 3, some chunks at a time."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from fastpe._cli.files import addition as arrays
from fastpe._cli.files.addition import Addition
from fastpe._cli.files.target import new_directory, open_regular
from fastpe._cli.messages import CommandError, progress, reading, short
from fastpe._extras import needed

_what = "a zarr array"
_largest_chunk_bytes, _largest_metadata_bytes = 1 << 30, 1 << 24
# Codecs that only decode numbers. Others, such as "pickle", can run code that a chunk holds.
_codecs = (
    *("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd", "shuffle", "crc32", "crc32c"),
    *("bytes", "sharding_indexed", "transpose"),
)
# What the metadata of each format may say: a field that only another reader knows could say something else than was checked.
_fields = {
    2: "zarr_format shape chunks dtype compressor fill_value order filters dimension_separator",
    3: "zarr_format node_type shape data_type chunk_grid chunk_key_encoding fill_value codecs attributes dimension_names "
    "storage_transformers",
}
_most_chunks = 10_000  # that are read at once, and that one shard has
_file_bytes = 4096  # what a file takes beyond its contents


def add(addition: Addition) -> int:
    """Write a new store with the array that --key names, or the one that the store is; the bytes of its elements."""
    name, output, store = addition.source, addition.output, Path(addition.source).resolve()
    with needed(name, "zarr"):
        import zarr  # noqa: F401
    if output is None:
        raise CommandError(f"{name} cannot be changed in place, as only .npy files can; write a new store with -o")
    if Path(output).resolve().is_relative_to(store):
        raise CommandError(f"-o is {output}, in the store that is read; name another directory")
    root = store.joinpath(*addition.keys)
    files = [root / file for file in ("zarr.json", ".zarray", ".zattrs")]
    files = [file for file in files if file.is_file() and not file.is_symlink()]
    if len(addition.keys) > 1 or root.resolve() != root or not root.is_relative_to(store) or not files:
        raise CommandError(f"{root} is not an array behind no link, expected one; choose an array with one --key NAME")
    with reading(name, _what):
        text = {file.name: _text(file) for file in (files[:1] if files[0].name == "zarr.json" else files)}
        metadata = json.loads(text[files[0].name])
        if "shape" not in metadata:
            raise CommandError(f"{name} is a group, expected an array; choose one of its arrays with --key NAME")
        shape, unit, dtype, inner_chunks = _checked(metadata, 3 if "zarr.json" in text else 2, addition)
        unit_bytes, byte_count = math.prod(unit) * dtype.itemsize, math.prod(shape) * dtype.itemsize
        _require_plain_files(root, 2 * unit_bytes + _largest_metadata_bytes)
        source = _opened(root, metadata)
    add_to = addition.adder(shape, dtype)
    grid = tuple(-(-extent // size) for extent, size in zip(shape, unit, strict=True))
    room = math.prod(grid) * (unit_bytes + _file_bytes)
    at_once = max(1, min(arrays.block_bytes // unit_bytes, _most_chunks // inner_chunks))
    with new_directory(output, room) as directory, progress(byte_count, quiet=addition.quiet) as advance:
        for file_name, content in text.items():
            (directory / file_name).write_bytes(content)
        target = _opened(directory, metadata)
        for block in arrays.blocks(grid, at_once):
            sides = zip(block, unit, shape, strict=True)
            ranges = tuple((start * size, min(stop * size, extent)) for (start, stop), size, extent in sides)
            place = tuple(slice(*span) for span in ranges)
            with reading(name, _what):
                values = np.require(_done(source, "getitem", place), dtype, ["C", "W"])
            add_to(values, ranges)
            with reading(output, _what):
                _done(target, "setitem", place, values)
            advance(values.nbytes)
        directory.chmod(root.stat().st_mode & 0o777)
    return byte_count


def _opened(directory: Path, metadata: dict[str, Any]) -> Any:
    """The array with exactly these metadata, whatever else the store says about it."""
    import zarr

    if not hasattr(zarr, "AsyncArray"):  # zarr 2
        return zarr.Array({".zarray": json.dumps(metadata).encode()}, chunk_store=zarr.DirectoryStore(str(directory)))
    from zarr.storage import LocalStore, StorePath

    return zarr.AsyncArray.from_dict(StorePath(LocalStore(directory)), metadata)


def _done(array: Any, method: str, *arguments: Any) -> Any:
    """Read or write a part of an array; however this ends, no thread of zarr's goes on with it."""
    if not hasattr(array, "getitem"):
        return getattr(array, f"__{method}__")(*arguments)

    async def run() -> Any:
        return await getattr(array, method)(*arguments)

    return asyncio.run(run())


def _text(file: Path) -> bytes:
    with open_regular(str(file)) as stream:
        text = stream.read(_largest_metadata_bytes + 1)
    if len(text) > _largest_metadata_bytes:
        raise ValueError(f"{file.name} has more than {_largest_metadata_bytes} bytes")
    return text


def _require_plain_files(root: Path, largest: int) -> None:
    """Refuse links, pipes and devices below an array: some lead elsewhere, and others are never read to their end."""
    for path in root.rglob("*"):
        is_plain = path.is_dir() or (path.is_file() and path.stat().st_size <= largest)
        if path.is_symlink() or not is_plain:
            raise CommandError(f"{path} is not a file of at most {largest} bytes, or a directory; write the store anew")


def _checked(
    metadata: dict[str, Any], zarr_format: int, addition: Addition
) -> tuple[tuple[int, ...], tuple[int, ...], np.dtype[Any], int]:
    """Shape, shape of chunks, dtype, chunks in a shard. Refuses codecs that run code, and chunks of odd sizes or places."""
    unknown = metadata.keys() - set(_fields[zarr_format].split())
    if unknown or metadata.get("zarr_format") != zarr_format or metadata.get("storage_transformers"):
        raise ValueError(f"its metadata of format {zarr_format} have the fields {short(', '.join(sorted(metadata)))}")
    if zarr_format == 2:
        codecs = [metadata.get("compressor") or "bytes", *(metadata.get("filters") or [])]
        type_name, unit, keys = (
            metadata["dtype"],
            metadata["chunks"],
            {"separator": metadata.get("dimension_separator")},
        )
        is_regular = True
    else:
        codecs, type_name, keys = metadata["codecs"], metadata["data_type"], metadata["chunk_key_encoding"]
        is_regular = metadata["chunk_grid"]["name"] == "regular" and keys["name"] in ("default", "v2")
        unit = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    inner = _smallest_chunk(codecs, "id" if zarr_format == 2 else "name", addition.source)
    # Some versions of zarr take any separator, which becomes a part of the names of files.
    if not is_regular or {keys.get("separator"), (keys.get("configuration") or {}).get("separator")} - {None, ".", "/"}:
        raise ValueError(f"its chunks have the keys {short(keys)}")
    found = np.dtype(str(type_name)[:100])  # NumPy takes long lists of them, and long for them
    dtype = addition.result_dtype(found)
    if dtype != found.newbyteorder("="):
        raise CommandError(f"--dtype is {dtype}, and {addition.source} has {found}, which is kept; leave --dtype out")
    shape = metadata["shape"]
    if (
        len(shape) != len(unit)
        or len(unit) > 32
        or any(type(each) is not int or not 0 <= each <= 2**53 for each in [*shape, *unit])
        or not 0 < math.prod(unit) * dtype.itemsize <= _largest_chunk_bytes
        or math.prod(unit) > inner * _most_chunks
    ):
        raise ValueError(f"its shape is {shape}, and that of its chunks {unit}")
    return tuple(shape), tuple(unit), dtype, max(1, math.prod(unit) // inner)


def _smallest_chunk(codecs: list[Any], key: str, name: str) -> int:
    """The elements of the smallest chunk in a shard. Refuses codecs that may run code, also those in shards."""
    fewest = _largest_chunk_bytes
    for codec in codecs:
        codec_name = codec if isinstance(codec, str) else codec[key]
        if codec_name not in _codecs:
            found = (
                f"{name} has the codec {short(codec_name, 60)}, expected one that only decodes numbers, such as zstd"
            )
            raise CommandError(f"{found}: others can run code that a chunk holds; write the array anew")
        if codec_name == "sharding_indexed":
            shard = codec["configuration"]
            sizes = shard["chunk_shape"]
            if not all(type(size) is int and size > 0 for size in sizes):
                raise ValueError(f"its shards have chunks of shape {short(sizes)}")
            inner = [*shard["codecs"], *shard.get("index_codecs", [])]
            fewest = min(math.prod(sizes), _smallest_chunk(inner, key, name))
    return fewest
