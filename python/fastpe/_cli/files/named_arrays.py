# SPDX-License-Identifier: BSD-3-Clause
"""Whole arrays, with names in .npz and .safetensors files, which ``rotary`` writes and ``identify`` reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import IO, Any

import numpy as np

from fastpe._cli.files import npy
from fastpe._cli.files.addition import Array
from fastpe._cli.messages import CommandError, library, reading

_safetensors = "safetensors", "0.8.0"


def loaders(stream: IO[bytes], name: str) -> Mapping[str, Callable[[], Array]]:
    """How to load each array of an open file, by its name; a .npy file's has none."""
    start, suffix = stream.read(6), os.path.splitext(name)[1].lower()
    stream.seek(0)
    if start == np.lib.format.MAGIC_PREFIX or suffix == ".npy":
        return {"": lambda: npy.read_array(stream, npy.read_header(stream, name), name)}
    if start[:2] == b"PK" or suffix == ".npz":
        with reading(name, "a .npz archive"):
            archive: Any = np.lib.npyio.NpzFile(stream, allow_pickle=False)
            members = [member for member in archive.zip.namelist() if member.endswith(".npy")]
        return {each.removesuffix(".npy"): partial(_loaded, archive.get, each, name) for each in members}
    if suffix == ".safetensors":
        safetensors = library(*_safetensors, name)
        with reading(name, "a safetensors file"):
            # The open file itself: its name may lead to another one by now. Others may truncate a file that is mapped.
            opened = f"/dev/fd/{stream.fileno()}" if os.path.exists("/dev/fd") else name
            file = safetensors.safe_open(opened, "numpy", backend="pread")
            names = [*file.keys()]
            if any(file.get_slice(each).get_dtype() == "BF16" for each in names):
                library("ml_dtypes", "0.4.0", name)  # which registers the dtype
            return {each: partial(_loaded, file.get_tensor, each, name) for each in names}
    raise CommandError(f"{name} is not a .npy, .npz or .safetensors file, expected one; write it with numpy.save")


def _loaded(load: Callable[[str], Any], key: str, name: str) -> Array:
    with reading(name, "a file of arrays"):
        return np.asarray(load(key))


def _write_npy(target: IO[bytes], arrays: dict[str, Array]) -> None:
    if len(arrays) > 1:
        raise CommandError(f"a .npy file has room for one array, not for {' and '.join(arrays)}; write a .npz file")
    for array in arrays.values():
        np.save(target, array, allow_pickle=False)


def _write_npz(target: IO[bytes], arrays: dict[str, Any]) -> None:
    np.savez(target, **arrays)


def _write_safetensors(target: IO[bytes], arrays: dict[str, Array]) -> None:
    library(*_safetensors, "-o .safetensors")
    from safetensors import SafetensorError, numpy

    try:
        target.write(numpy.save(arrays))
    except SafetensorError as error:
        raise CommandError(f"safetensors: {error}; write a .npz file, or choose another --dtype") from None


writers = {".npy": _write_npy, ".npz": _write_npz, ".safetensors": _write_safetensors}
