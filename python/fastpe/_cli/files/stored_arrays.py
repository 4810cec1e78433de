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
from fastpe._cli.files.formats import by_suffix, npy_array, refuse_foreign
from fastpe._cli.files.named_arrays import safetensors_types
from fastpe._cli.files.npz import archive_in

Loaders = Mapping[str, Callable[[], npt.NDArray[Any]]]


def loaders(name: str) -> Loaders:
    """How to load each array of a file, by its name; a .npy file's has none."""
    suffix = Path(name).suffix.lower()
    if name == "-":
        raise CommandError(
            "TABLE is -, expected the name of a file: identify reads no pipe; write the table into a file"
        )
    other = None if suffix in (".npy", ".npz") else by_suffix(name)
    if other or os.path.isdir(name):
        raise CommandError(
            f"{name} is {other.description if other else 'a directory'}, expected a .npy, .npz or .safetensors file; "
            f"write the table with numpy.save"
        )
    with open(name, "rb") as stream:
        start = stream.read(4)
    refuse_foreign(name)
    if suffix == ".safetensors":
        return _in_safetensors(name)
    if start == b"PK\x03\x04" or suffix == ".npz":
        return _in_npz(name)
    if suffix != ".npy" and not npy_array.magic.startswith(start):
        raise CommandError(f"{name} is no .npy, .npz or .safetensors file; write the table with numpy.save")
    return {"": lambda: npy.load(name)}


def _in_npz(name: str) -> Loaders:
    with open(name, "rb") as stream, archive_in(stream, name) as archive:
        names = [member.removesuffix(".npy") for member in archive.namelist() if member.endswith(".npy")]
    return {key: functools.partial(_load_member, name, key) for key in names}


def _load_member(name: str, key: str) -> npt.NDArray[Any]:
    label = f"{name}:{key}"
    with open(name, "rb") as stream, archive_in(stream, name) as archive, archive.open(f"{key}.npy") as member:
        return npy_stream.read_array(member, npy_stream.read_header(member, label), label)


def _in_safetensors(name: str) -> Loaders:
    size = os.path.getsize(name)
    with (
        open(name, "rb") as stream,
        damage_in_one_line(
            name, "a safetensors file", (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
        ),
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
    with open(name, "rb") as stream:
        stream.seek(first)
        return npy_stream.read_array(stream, npy_stream.Header(shape, False, dtype), f"{name}:{key}")
