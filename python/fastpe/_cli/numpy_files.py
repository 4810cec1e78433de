# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on .npy files and .npz archives."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from fastpe._cli import npy
from fastpe._cli.errors import CommandError
from fastpe._cli.job import Job, changed_in_place
from fastpe._cli.target import open_target
from fastpe._cli.transform import Addition, Plan, Progress


@dataclasses.dataclass(frozen=True)
class ArrayWork:
    """One .npy file."""

    job: Job
    plan: Plan

    @property
    def byte_count(self) -> int:
        """Bytes of the array."""
        return self.plan.source.byte_count

    def run(self, progress: Progress) -> None:
        """Write the target, or change the file."""
        name = self.job.source
        if self.job.target is not None:
            with open(name, "rb") as source, open_target(self.job.target, self.plan.result.byte_count) as target:
                npy.read_header(source, name)
                self.plan.run(source, target, progress)
            return
        with open(name, "r+b") as stream:
            npy.read_header(stream, name)
            with changed_in_place(name, progress) as count:
                self.plan.run_in_place(stream, count)
                stream.flush()
                os.fsync(stream.fileno())


def check_array(job: Job, addition: Addition, keys: Sequence[str]) -> ArrayWork:
    """Read the header."""
    if keys:
        raise CommandError(
            f"--key chooses one of several arrays or columns, and {job.source} is one array; leave it out"
        )
    with open(job.source, "rb") as stream:
        plan = addition.plan(_checked_header(stream, job.source), job.source)
    if job.target is None:
        plan.require_same_dtype("not possible in place; write a new file with -o")
    return ArrayWork(job, plan)


def _checked_header(stream: IO[bytes], name: str) -> npy.Header:
    header = npy.read_header(stream, name)
    status = os.fstat(stream.fileno())
    expected = stream.tell() + header.byte_count
    if Path(name).is_file() and status.st_size != expected:
        fault = "truncated" if status.st_size < expected else "followed by something else"
        raise CommandError(f"{name} has {status.st_size} bytes, expected {expected}: it is {fault}; write it anew")
    return header


def load(name: str) -> npt.NDArray[Any]:
    """The array in a .npy file, mapped into memory."""
    with open(name, "rb") as stream:
        _checked_header(stream, name)
    array: npt.NDArray[Any] = np.load(name, mmap_mode="r", allow_pickle=False)
    return array


def run_pipe(name: str, output: str, addition: Addition, progress: Progress) -> int:
    """Add to the one array that comes through a pipe; the number of bytes."""
    label = "standard input" if name == "-" else name
    if name == "-" and sys.stdin is None:
        raise CommandError("standard input is closed; redirect it or name a file")
    with contextlib.nullcontext(sys.stdin.buffer) if name == "-" else open(name, "rb") as stream:
        plan = addition.plan(npy.read_header(stream, label), label)
        with open_target(output, plan.result.byte_count) as target:
            plan.run(stream, target, progress)
    return plan.source.byte_count


# ---- archives


@dataclasses.dataclass(frozen=True)
class ArchiveWork:
    """One .npz archive; what has no plan is copied."""

    job: Job
    plans: dict[str, Plan]

    @property
    def byte_count(self) -> int:
        """Bytes of all arrays that are changed."""
        return sum(plan.source.byte_count for plan in self.plans.values())

    def run(self, progress: Progress) -> None:
        """Write the target."""
        assert self.job.target is not None
        name = self.job.source
        with (
            open(name, "rb") as stream,
            open_target(self.job.target) as target,
            _archive(stream, name) as archive,
            zipfile.ZipFile(target, "w") as result,
        ):
            for member in archive.infolist():
                copy = zipfile.ZipInfo(member.filename, member.date_time)
                copy.compress_type = member.compress_type
                copy.external_attr = member.external_attr
                plan = self.plans.get(member.filename.removesuffix(".npy"))
                # The size is not known before it is written: room for more than 4 GB.
                with archive.open(member) as source, result.open(copy, "w", force_zip64=True) as sink:
                    if plan is None:
                        shutil.copyfileobj(source, sink, 1 << 20)
                    else:
                        npy.read_header(source, plan.name)
                        plan.run(source, sink, progress)


def check_archive(job: Job, addition: Addition, keys: Sequence[str]) -> ArchiveWork:
    """Read the headers of the arrays in question."""
    name = job.source
    with open(name, "rb") as stream, _archive(stream, name) as archive:
        arrays = [member.removesuffix(".npy") for member in archive.namelist() if member.endswith(".npy")]
        if not arrays:
            raise CommandError(f"{name} holds no .npy array; write it with numpy.savez")
        if not keys and len(arrays) != 1:
            raise CommandError(f"{name} holds {len(arrays)} arrays ({', '.join(arrays[:8])}); choose with --key NAME")
        unknown = [key for key in keys if key not in arrays]
        if unknown:
            raise CommandError(f"--key is {unknown[0]}, expected one of {name}'s arrays: {', '.join(arrays[:8])}")
        plans = {}
        for key in keys or arrays:
            with archive.open(f"{key}.npy") as member:
                label = f"{name}:{key}"
                plans[key] = addition.plan(npy.read_header(member, label), label)
    return ArchiveWork(job, plans)


@contextlib.contextmanager
def _archive(stream: IO[bytes], name: str) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(stream) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise CommandError(f"{name} is a damaged or unusual .npz archive: {error}; write it anew") from None
