# SPDX-License-Identifier: BSD-3-Clause
"""Arrays with names in .npz and .safetensors files, which ``rotary`` writes and ``identify`` reads, as it reads .npy.

Safetensors is JSON in front of the elements (huggingface/safetensors:README.md, "Format"); its own library maps files.
"""

from __future__ import annotations

import functools
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np

from fastpe._cli.files import npy
from fastpe._cli.files.addition import Array
from fastpe._cli.files.npy import Header
from fastpe._cli.messages import CommandError, reading

Arrays = Mapping[str, Array]
Loaders = Mapping[str, Callable[[], Array]]

_safetensors = {"float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64", "complex64": "C64"}
_longest_header = 100_000_000  # as in safetensors itself


def loaders(stream: IO[bytes], name: str) -> Loaders:
    """How to load each array of an open file, by its name; a .npy file's has none."""
    start, suffix = stream.read(6), os.path.splitext(name)[1].lower()
    stream.seek(0)
    if start == np.lib.format.MAGIC_PREFIX or suffix == ".npy":
        return {"": lambda: npy.read_array(stream, npy.read_header(stream, name), name)}
    if start[:2] == b"PK" or suffix == ".npz":
        with reading(name, "a .npz archive"):
            archive: Any = np.lib.npyio.NpzFile(stream, allow_pickle=False)
            members = [member for member in archive.zip.namelist() if member.endswith(".npy")]
        return {each.removesuffix(".npy"): functools.partial(_member, archive, each, name) for each in members}
    if suffix == ".safetensors":
        with reading(name, "a safetensors file"):
            return _in_safetensors(stream, name)
    raise CommandError(
        f"{name} is not a .npy, .npz or .safetensors file, expected one; write the table with numpy.save"
    )


def _member(archive: Any, key: str, name: str) -> Array:
    with reading(name, "a .npz archive"):
        return np.asarray(archive[key])


def _in_safetensors(stream: IO[bytes], name: str) -> Loaders:
    size = os.fstat(stream.fileno()).st_size
    start = 8 + int.from_bytes(stream.read(8), "little")
    if start > min(size, _longest_header):
        raise ValueError(f"its header would end at byte {start} of {size}, expected at most {_longest_header}")
    entries = json.loads(stream.read(start - 8))
    entries.pop("__metadata__", None)
    # bfloat16 is not a type of NumPy's.
    types = {stored: np.dtype("V2" if stored == "BF16" else dtype) for dtype, stored in _safetensors.items()}

    def load(entry: dict[str, Any]) -> Array:
        with reading(name, "a safetensors file"):
            header = Header(tuple(map(int, entry["shape"])), False, types[entry["dtype"]].newbyteorder("<"))
            first, end = entry["data_offsets"]
            if (
                not 0 <= first <= end <= size - start
                or min(header.shape, default=0) < 0
                or end - first != header.byte_count
            ):
                raise ValueError(
                    f"an array of shape {header.shape} would be in bytes {first} to {end} of {size - start}"
                )
            stream.seek(start + first)
        return npy.read_array(stream, header, name)

    return {key: functools.partial(load, entry) for key, entry in entries.items()}


def _write_npy(target: IO[bytes], arrays: Arrays) -> None:
    if len(arrays) > 1:
        raise CommandError(
            f"a .npy file has room for one array, and there are {' and '.join(arrays)}; write a .npz file"
        )
    for array in arrays.values():
        npy.write(target, Header(array.shape, False, array.dtype), [array])


def _write_npz(target: IO[bytes], arrays: Arrays) -> None:
    with zipfile.ZipFile(target, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                _write_npy(member, {name: array})


def _write_safetensors(target: IO[bytes], arrays: Arrays) -> None:
    header, end = {}, 0
    for name, array in arrays.items():
        if (dtype := array.dtype.name) not in _safetensors:
            raise CommandError(f"safetensors has no {dtype}; write a .npz file, or choose another --dtype")
        start, end = end, end + array.nbytes
        header[name] = {"dtype": _safetensors[dtype], "shape": list(array.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the elements begin at a multiple of 8 bytes
    target.write(len(text).to_bytes(8, "little") + text)
    for array in arrays.values():
        target.write(npy.bytes_of(array.astype(array.dtype.newbyteorder("<"), copy=False)))


writers = {".npy": _write_npy, ".npz": _write_npz, ".safetensors": _write_safetensors}
