# SPDX-License-Identifier: BSD-3-Clause
"""The formats that ``fastpe add`` reads and writes: one row each."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from fastpe._cli.errors import CommandError
from fastpe._cli.files import arrow, npy, npz, parquet, zarr_store
from fastpe._cli.files.addition import Addition
from fastpe._cli.files.task import Task, Work
from fastpe._identify.files import foreign, reading_of


class Format(NamedTuple):
    """How to recognise a format, and the function that checks an input before anything is written."""

    description: str
    suffixes: tuple[str, ...]
    # The first bytes of such a file, if no other format has the same.
    magic: bytes
    in_place: bool
    check: Callable[[Task, Addition, Sequence[str]], Work]


npy_array = Format("one .npy array", (".npy",), b"\x93NUMPY", True, npy.check)
_npz_archive = Format("a .npz archive", (".npz",), b"PK\x03\x04", False, npz.check)
_zarr = Format("a zarr store", (".zarr",), b"", True, zarr_store.check)
formats = (
    npy_array,
    _npz_archive,
    Format("a Parquet file", (".parquet",), b"PAR1", False, parquet.check),
    Format("an Arrow file", (".arrow", ".feather"), b"ARROW1", False, arrow.check),
    _zarr,
)


def by_suffix(name: str) -> Format | None:
    """The format that a name's suffix says."""
    suffix = Path(name).suffix.lower()
    return next((entry for entry in formats if suffix in entry.suffixes), None)


def is_one_input(path: Path) -> bool:
    """Whether a directory is an input itself, rather than a place where inputs are."""
    return path.is_dir() and zarr_store.is_store(path)


def of_input(name: str) -> Format:
    """The format of what is there: by its first bytes if they are known, else by its name."""
    if is_one_input(Path(name)):
        return _zarr
    with open(name, "rb") as stream:
        start = stream.read(8)
    by_content = (entry for entry in formats if entry.magic and start.startswith(entry.magic))
    found = next(by_content, None) or by_suffix(name)
    if found in (None, _npz_archive):  # PyTorch's files are zip archives, too
        refuse_foreign(name)
    if found is None:
        raise CommandError(
            f"{name} has none of the formats that are read: {all_suffixes()}; write its array with numpy.save"
        )
    return found


def inputs_in(directory: Path) -> list[str]:
    """The files and stores in a directory that have a format's suffix."""
    return sorted(
        os.fspath(path)
        for path in directory.iterdir()
        if by_suffix(path.name) is not None and (path.is_file() or is_one_input(path))
    )


def all_suffixes() -> str:
    """The suffixes of all formats, as messages list them."""
    return ", ".join(suffix for entry in formats for suffix in entry.suffixes)


def refuse_foreign(name: str) -> None:
    """Refuse a file of another library by its name, with the command that exports a table from it."""
    if Path(name).suffix.lower() not in foreign:
        return
    reading = reading_of(name)
    raise CommandError(
        f'{name} is {reading.description}, which is not read here; export the table: python -c "import {reading.module}, '
        f"numpy; numpy.save('table.npy', {reading.array})\", where NAME is a name that python -c \"import "
        f'{reading.module}; print({reading.names})" prints{reading.remark}'
    )
