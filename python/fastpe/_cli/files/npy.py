# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on .npy files, and on .npy data in a pipe."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy.typing as npt

from fastpe._cli.errors import CommandError
from fastpe._cli.files import npy_stream
from fastpe._cli.files.addition import Addition, ArrayWork
from fastpe._cli.files.task import Task, changed_in_place
from fastpe._cli.progress import Progress


@dataclasses.dataclass(frozen=True)
class NpyWork:
    """A file whose header was read and found good."""

    task: Task
    array: ArrayWork
    header: npy_stream.Header

    @property
    def byte_count(self) -> int:
        """Bytes of the array."""
        return self.array.source.byte_count

    @property
    def known_size(self) -> int:
        """Bytes of the result."""
        return self.array.result.byte_count

    def run(self, progress: Progress) -> int:
        """Write the target, or change the file."""
        name = self.task.source
        if self.task.target is not None:
            with open(name, "rb") as source, self.task.open_target(self.known_size) as target:
                self._require_same_header(source)
                self.array.run(source, target, progress)
            return self.known_size
        with open(name, "r+b") as stream:
            self._require_same_header(stream)
            with changed_in_place(name, progress) as count:
                self.array.run_in_place(stream, count)
                stream.flush()
                os.fsync(stream.fileno())
        return self.known_size

    def _require_same_header(self, stream: IO[bytes]) -> None:
        if _checked_header(stream, self.task.source) != self.header:
            raise CommandError(f"{self.task.source} is another file than before; start again")


def check(task: Task, addition: Addition, keys: Sequence[str]) -> NpyWork:
    """Read the header."""
    if keys:
        raise CommandError(
            f"--key chooses one of several arrays or columns, and {task.source} is one array; leave it out"
        )
    with open(task.source, "rb") as stream:
        header = _checked_header(stream, task.source)
    array = addition.check(header, task.source)
    if task.target is None:
        array.require_same_dtype("not possible in place; write a new file with -o")
    return NpyWork(task, array, header)


def _checked_header(stream: IO[bytes], name: str) -> npy_stream.Header:
    header = npy_stream.read_header(stream, name)
    status = os.fstat(stream.fileno())
    expected = stream.tell() + header.byte_count
    if Path(name).is_file() and status.st_size != expected:
        fault = "truncated" if status.st_size < expected else "followed by something else"
        raise CommandError(f"{name} has {status.st_size} bytes, expected {expected}: it is {fault}; write it anew")
    return header


def load(name: str) -> npt.NDArray[Any]:
    """The array in a .npy file. It is not mapped: if somebody truncated the file, the system would end the process."""
    with open(name, "rb") as stream:
        return npy_stream.read_array(stream, _checked_header(stream, name), name)


def run_pipe(task: Task, addition: Addition, progress: Progress) -> int:
    """Add to the one array that comes through a pipe; the number of bytes that were written."""
    name = task.source
    label = "standard input" if name == "-" else name
    if name == "-" and sys.stdin is None:
        raise CommandError("standard input is closed; redirect it or name a file")
    with contextlib.nullcontext(sys.stdin.buffer) if name == "-" else open(name, "rb") as stream:
        array = addition.check(npy_stream.read_header(stream, label), label)
        with task.open_target(array.result.byte_count) as target:
            array.run(stream, target, progress)
    return array.result.byte_count
