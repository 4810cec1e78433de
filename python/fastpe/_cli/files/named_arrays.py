# SPDX-License-Identifier: BSD-3-Clause
"""Arrays with names in .npz and .safetensors files, which ``rotary`` writes and ``identify`` reads, as it reads .npy."""

from __future__ import annotations

import functools
import os
import zipfile
from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np

from fastpe._cli.files import npy
from fastpe._cli.files.addition import Array
from fastpe._cli.files.npy import Header
from fastpe._cli.messages import CommandError, reading
from fastpe._extras import needed

Arrays = Mapping[str, Array]
Loaders = Mapping[str, Callable[[], Array]]


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
        return {each.removesuffix(".npy"): functools.partial(_loaded, archive.get, each, name) for each in members}
    if suffix == ".safetensors":
        with needed(name, "safetensors", "'safetensors>=0.8'"):
            import safetensors
        with reading(name, "a safetensors file"):
            # The open file itself: its name may lead to another one by now. Others may truncate a file that is mapped.
            opened = f"/dev/fd/{stream.fileno()}" if os.path.exists("/dev/fd") else name
            file: Any = safetensors.safe_open(opened, "numpy", backend="pread")
            keys = file.keys()
            return {each: functools.partial(_loaded, file.get_tensor, each, name) for each in keys}
    raise CommandError(
        f"{name} is not a .npy, .npz or .safetensors file, expected one; write the table with numpy.save"
    )


def _loaded(load: Callable[[str], Any], key: str, name: str) -> Array:
    with reading(name, "a file of arrays"):
        return np.asarray(load(key))


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
    with needed("-o .safetensors", "safetensors", "'safetensors>=0.8'"):
        import safetensors.numpy
    try:
        target.write(safetensors.numpy.save(dict(arrays)))
    except safetensors.SafetensorError as error:
        raise CommandError(f"safetensors: {error}; write a .npz file, or choose another --dtype") from None


writers = {".npy": _write_npy, ".npz": _write_npz, ".safetensors": _write_safetensors}
