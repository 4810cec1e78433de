# SPDX-License-Identifier: BSD-3-Clause
"""The arrays in files that ``fastpe identify`` reads, each loaded when it is asked for.

Safetensors is read here, since its whole format is the JSON of a header in front of the elements:
huggingface/safetensors:README.md, "Format".
"""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe._cli.errors import CommandError, damage_in_one_line
from fastpe._cli.files import npy, npy_stream
from fastpe._cli.files.formats import by_suffix
from fastpe._cli.files.named_arrays import safetensors_types
from fastpe._cli.files.npz import archive_in

Loaders = Mapping[str, Callable[[], npt.NDArray[Any]]]

_torch = (
    "a PyTorch file, which is not read here; export the table: python -c \"import torch, numpy; numpy.save('table.npy', "
    "torch.load('{file}', map_location='cpu')['NAME'].float().numpy())\", where NAME is the table's name in the file"
)
_onnx = (
    "an ONNX model, which is not read here; export the table: python -c \"import onnx, numpy; numpy.save('table.npy', "
    "next(onnx.numpy_helper.to_array(t) for t in onnx.load('{file}').graph.initializer if t.name == 'NAME'))\", where "
    "NAME is the initializer's name"
)
_exports = {".pt": _torch, ".pth": _torch, ".bin": _torch, ".ckpt": _torch, ".onnx": _onnx}


def loaders(name: str) -> Loaders:
    """How to load each array of a file, by its name; a .npy file's has none."""
    suffix = Path(name).suffix.lower()
    other = None if suffix in (".npy", ".npz") else by_suffix(name)
    if other or os.path.isdir(name):
        raise CommandError(
            f"{name} is {other.description if other else 'a directory'}, expected a .npy, .npz or .safetensors file; "
            f"write the table with numpy.save"
        )
    with open(name, "rb") as stream:
        start = stream.read(4)
    if suffix in _exports:
        raise CommandError(f"{name} is {_exports[suffix].format(file=name)}")
    if suffix == ".safetensors":
        return _in_safetensors(name)
    return _in_npz(name) if start == b"PK\x03\x04" or suffix == ".npz" else {"": lambda: _typed(npy.load(name))}


def _in_npz(name: str) -> Loaders:
    with open(name, "rb") as stream, archive_in(stream, name) as archive:
        names = [member.removesuffix(".npy") for member in archive.namelist() if member.endswith(".npy")]
    return {key: functools.partial(_load_member, name, key) for key in names}


def _load_member(name: str, key: str) -> npt.NDArray[Any]:
    label = f"{name}:{key}"
    with open(name, "rb") as stream, archive_in(stream, name) as archive, archive.open(f"{key}.npy") as member:
        header = npy_stream.read_header(member, label)
        elements = np.empty(header.disk_shape, header.dtype)
        npy_stream.read_elements(member, elements, label)
    return _typed(elements.T if header.fortran_order else elements)


def _in_safetensors(name: str) -> Loaders:
    size = os.path.getsize(name)
    with (
        open(name, "rb") as stream,
        damage_in_one_line(name, "a safetensors file", (ValueError, KeyError, TypeError, AttributeError)),
    ):
        start = 8 + int.from_bytes(stream.read(8), "little")
        if not 8 < start <= size:
            raise ValueError(f"its header would end at byte {start} of {size}")
        entries = json.loads(stream.read(start - 8))
        entries.pop("__metadata__", None)
        result = {}
        for key, entry in entries.items():
            first, end = (start + int(offset) for offset in entry["data_offsets"])
            shape = [int(extent) for extent in entry["shape"]]
            if not start <= first <= end <= size or min(shape, default=0) < 0:
                raise ValueError(f"{key} would lie at bytes {first} to {end} of {size}")
            result[key] = functools.partial(_load_tensor, name, key, str(entry["dtype"]), tuple(shape), first, end)
    return result


def _load_tensor(name: str, key: str, type_name: str, shape: tuple[int, ...], first: int, end: int) -> npt.NDArray[Any]:
    types = {stored: dtype for dtype, stored in safetensors_types.items()}
    if type_name not in types:
        raise CommandError(f"{name}:{key} has type {type_name}, expected one of {', '.join(types)}; convert it")
    # bfloat16 is no dtype of NumPy's.
    dtype = np.dtype("V2") if types[type_name] == "bfloat16" else np.dtype(types[type_name]).newbyteorder("<")
    if end - first != math.prod(shape) * dtype.itemsize:
        raise CommandError(f"{name}:{key} has {end - first} bytes, which are not those of its shape; write it anew")
    elements = np.fromfile(name, dtype, math.prod(shape), offset=first)
    return _typed(elements.reshape(shape))


def _typed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """With two nameless bytes for an element, as NumPy saves bfloat16, as the float32 numbers that they are."""
    if array.dtype.kind != "V" or array.dtype.names is not None or array.dtype.itemsize != 2:
        return array
    bits = np.ascontiguousarray(array).view("<u2").astype(np.uint32) << 16
    return bits.view(np.float32)
