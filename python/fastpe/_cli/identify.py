# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe identify``: the call that makes a table in a file."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import IO, Annotated, Any

import numpy as np
import typer

import fastpe
from fastpe._cli import npy, options
from fastpe._cli.messages import CommandError, library, reading
from fastpe._cli.target import open_regular

# Parts of names that tables of positions have in checkpoints.
_usual_parts = ("pos", "pe", "rope", "rotary", "cos", "sin", "freq")


def identify(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A .npy, .npz or .safetensors file.")],
    key: Annotated[list[str] | None, options.option("Name of the array; twice for cosines and sines.", "NAME")] = None,
) -> None:
    """Find the call that makes a table.

    TABLE has an encoding, the cells of a grid, or cosines and sines. The command exits with 1 if no call that it knows makes the table.
    """
    with open_regular(table) as stream:
        loaders = loaders_of(stream, table)
        chosen = _chosen(table, list(loaders), key or [])
        with reading(table, "a file of arrays"):
            arrays = [np.asarray(loaders[name]()) for name in chosen]
    found = fastpe.identify(*arrays)
    print(found)
    if not found:
        raise typer.Exit(1)


def loaders_of(stream: IO[bytes], name: str) -> dict[str, Callable[[], Any]]:
    """How to load each array of an open file, by its name; a .npy file's has none."""
    start, suffix = stream.read(6), os.path.splitext(name)[1].lower()
    stream.seek(0)
    if start == np.lib.format.MAGIC_PREFIX or suffix == ".npy":
        return {"": lambda: npy.read_array(stream, npy.read_header(stream, name), name)}
    if start[:2] == b"PK" or suffix == ".npz":
        with reading(name, "a .npz archive"):
            archive: Any = np.lib.npyio.NpzFile(stream, allow_pickle=False)
        return {each: functools.partial(archive.get, each) for each in archive.files}
    if suffix == ".safetensors":
        safetensors = library("safetensors", name)
        with reading(name, "a safetensors file"):
            # The open file itself: its name may lead to another one by now. Others may truncate a file that is mapped.
            opened = f"/dev/fd/{stream.fileno()}" if os.path.exists("/dev/fd") else name
            file = safetensors.safe_open(opened, "numpy", backend="pread")
            if any(file.get_slice(each).get_dtype() == "BF16" for each in file.keys()):  # noqa: SIM118
                library("ml_dtypes", name)  # which registers the dtype
            return {each: functools.partial(file.get_tensor, each) for each in file.keys()}  # noqa: SIM118
    raise CommandError(f"{name} is not a .npy, .npz or .safetensors file, expected one; write it with numpy.save")


def _chosen(file: str, names: list[str], keys: Sequence[str]) -> Sequence[str]:
    """The keys of one array, or of cosines and sines."""
    if len(keys) in (1, 2) and set(keys) <= set(names) - {""}:
        return keys
    if not keys and len(names) == 1:
        return names
    pair = sorted(names, key=lambda name: "cos" not in name)
    if not keys and len(names) == 2 and pair[1] == pair[0].replace("cos", "sin") != pair[0]:
        return pair
    likely = sorted(names, key=lambda name: not any(part in name.lower() for part in _usual_parts))
    given = f"--key is {' and '.join(keys)}, and {file}" if keys else file
    some = f"{len(names)} arrays ({', '.join(likely)})" if names != [""] else "one array without a name"
    raise CommandError(f"{given} has {some}; choose with --key NAME, or cosines and sines with --key COS --key SIN")
