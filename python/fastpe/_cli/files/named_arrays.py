# SPDX-License-Identifier: BSD-3-Clause
"""The formats that ``fastpe rotary`` writes: a few arrays with names.

Safetensors is written here, since its whole format is the JSON of a header in front of the elements:
huggingface/safetensors:README.md, "Format".
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy.typing as npt

from fastpe._cli.errors import CommandError
from fastpe._cli.files import npy_stream
from fastpe._cli.output import descriptor_of

Arrays = Mapping[str, npt.NDArray[Any]]
Writer = Callable[[IO[bytes], Arrays], None]

safetensors_types = {
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
}


def writer_of(name: str, arrays: Arrays) -> Writer:
    """What writes these arrays to a file of this name; ``-`` stands for one array in .npy format."""
    suffix = ".npy" if descriptor_of(name) is not None else Path(name).suffix.lower()
    if suffix not in _writers:
        raise CommandError(f"-o is {name}, expected a name that ends in {', '.join(_writers)}")
    if suffix == ".npy" and len(arrays) > 1:
        raise CommandError(
            f"-o is {name}, which has room for one array, and there are {' and '.join(arrays)}; write a .npz or "
            f".safetensors file, or choose a --form of one array"
        )
    if suffix == ".safetensors":
        for array in arrays.values():
            if array.dtype.name not in safetensors_types:
                raise CommandError(
                    f"-o is {name}, and safetensors has no {array.dtype.name}; write a .npy or .npz file, or choose "
                    f"--dtype float32"
                )
    return _writers[suffix]


def _write_npy(target: IO[bytes], arrays: Arrays) -> None:
    (array,) = arrays.values()
    npy_stream.write_header(target, npy_stream.Header(array.shape, False, array.dtype))
    npy_stream.write_elements(target, array)


def _write_npz(target: IO[bytes], arrays: Arrays) -> None:
    with zipfile.ZipFile(target, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                _write_npy(member, {name: array})


def _write_safetensors(target: IO[bytes], arrays: Arrays) -> None:
    header, end = {}, 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        header[name] = {
            "dtype": safetensors_types[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header).encode()
    # The elements begin at a multiple of 8 bytes.
    text += b" " * (-len(text) % 8)
    target.write(len(text).to_bytes(8, "little") + text)
    for array in arrays.values():
        npy_stream.write_elements(target, array.astype(array.dtype.newbyteorder("<"), copy=False))


_writers: dict[str, Writer] = {".npy": _write_npy, ".npz": _write_npz, ".safetensors": _write_safetensors}
