# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on arrays in a .npz archive."""

from __future__ import annotations

import contextlib
import dataclasses
import lzma
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import IO

from fastpe._cli.errors import CommandError, damage_in_one_line
from fastpe._cli.files import npy_stream
from fastpe._cli.files.addition import Addition, ArrayWork
from fastpe._cli.files.task import Task
from fastpe._cli.progress import Progress

# The last two are about compressions that this Python cannot read, and about passwords.
_errors_of_archives = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError)


@dataclasses.dataclass(frozen=True)
class NpzWork:
    """An archive whose headers were read and found good; arrays that no work is named for are copied."""

    task: Task
    arrays: dict[str, ArrayWork]
    known_size: int

    @property
    def byte_count(self) -> int:
        """Bytes of all arrays that are changed."""
        return sum(array.source.byte_count for array in self.arrays.values())

    def run(self, progress: Progress) -> int:
        """Write the target."""
        name = self.task.source
        with (
            open(name, "rb") as stream,
            self.task.open_target(self.known_size) as target,
            archive_in(stream, name) as archive,
            zipfile.ZipFile(target, "w") as result,
        ):
            for member in archive.infolist():
                copy = zipfile.ZipInfo(member.filename, member.date_time)
                copy.compress_type = member.compress_type
                copy.external_attr = member.external_attr
                array = self.arrays.get(member.filename.removesuffix(".npy"))
                # The size is not known before it is written, so the header has room for more than 4 GB.
                with archive.open(member) as source, result.open(copy, "w", force_zip64=True) as sink:
                    if array is None:
                        shutil.copyfileobj(source, sink, 1 << 20)
                    else:
                        npy_stream.read_header(source, array.name)
                        array.run(source, sink, progress)
        return sum(array.result.byte_count for array in self.arrays.values())


def check(task: Task, addition: Addition, keys: Sequence[str]) -> NpzWork:
    """Read the headers of the arrays in question."""
    name = task.source
    with open(name, "rb") as stream, archive_in(stream, name) as archive:
        members = archive.namelist()
        twice = {member for member in members if members.count(member) > 1}
        if twice:
            raise CommandError(f"{name} has two members {min(twice)}; write it anew with numpy.savez")
        names = [member.removesuffix(".npy") for member in members if member.endswith(".npy")]
        if not names:
            raise CommandError(f"{name} holds no .npy array; write it with numpy.savez")
        if not keys and len(names) != 1:
            raise CommandError(f"{name} holds {len(names)} arrays ({', '.join(names[:8])}); choose with --key NAME")
        unknown = [key for key in keys if key not in names]
        if unknown:
            raise CommandError(f"--key is {unknown[0]}, expected one of {name}'s arrays: {', '.join(names[:8])}")
        arrays = {}
        for key in keys or names:
            with archive.open(f"{key}.npy") as member:
                label = f"{name}:{key}"
                arrays[key] = addition.check(npy_stream.read_header(member, label), label)
        known_size = 0
        for info in archive.infolist():
            array = arrays.get(info.filename.removesuffix(".npy"))
            if info.compress_type != zipfile.ZIP_STORED:
                # How long it will be is not known.
                continue
            known_size += info.file_size if array is None else _size(array, info.file_size)
    return NpzWork(task, arrays, known_size)


def _size(array: ArrayWork, file_size: int) -> int:
    """Bytes of the result, of no more elements than the archive has, whatever the header says."""
    return min(array.result.byte_count, file_size * array.result.dtype.itemsize // array.source.dtype.itemsize)


@contextlib.contextmanager
def archive_in(stream: IO[bytes], name: str) -> Iterator[zipfile.ZipFile]:
    """The archive in a file; damage becomes one line."""
    with damage_in_one_line(name, "a .npz archive", _errors_of_archives), zipfile.ZipFile(stream) as archive:
        yield archive
