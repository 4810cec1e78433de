# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` over files: which ones, what each becomes, and the arrays of .npz archives."""

from __future__ import annotations

import contextlib
import dataclasses
import glob
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

from fastpe._cli import npy, parquet
from fastpe._cli.errors import CommandError
from fastpe._cli.target import open_target
from fastpe._cli.transform import Addition, Plan, Progress

_zip_magic = b"PK"
_suffixes = (".npy", ".npz", parquet.suffix)


@dataclasses.dataclass(frozen=True)
class Job:
    """One input and where its result goes; None is the input itself."""

    source: str
    target: str | None


def jobs(inputs: Sequence[str], output: str | None, *, in_place: bool) -> list[Job]:
    """Pair inputs with outputs; patterns and directories become the files in them."""
    if in_place == (output is not None):
        raise CommandError("expected one of -o OUT and --in-place: where does the result go?")
    sources = [source for name in inputs for source in _expanded(name)]
    if "-" in sources and (in_place or len(sources) > 1):
        raise CommandError("- is a pipe: expected it as the only input, with -o")
    if output is None:
        return [Job(source, None) for source in sources]
    if sources == list(inputs) and len(sources) == 1 and not Path(output).is_dir():
        targets = [output]
    else:
        targets = _targets_in_directory(sources, output)
    for source, target in zip(sources, targets, strict=True):
        if source != "-" and Path(target).exists() and os.path.samefile(source, target):
            raise CommandError(f"{target} is the input itself; change it with --in-place, or name another output")
    return [Job(source, target) for source, target in zip(sources, targets, strict=True)]


def _expanded(name: str) -> list[str]:
    if name == "-":
        return [name]
    path = Path(name)
    if path.is_dir():
        found = sorted(str(file) for file in path.iterdir() if file.suffix in _suffixes and file.is_file())
        if not found:
            raise CommandError(f"{name} has no .npy, .npz or .parquet file in it")
        return found
    if not path.exists() and glob.has_magic(name):
        # Where the shell does not expand patterns.
        found = sorted(glob.glob(name, recursive=True))
        if not found:
            raise CommandError(f"{name} matches no file")
        return found
    return [name]


def _targets_in_directory(sources: list[str], output: str) -> list[str]:
    directory = Path(output)
    if output == "-" or (directory.exists() and not directory.is_dir()):
        raise CommandError(f"-o is {output}, expected a directory for {len(sources)} files")
    if "-" in sources:
        raise CommandError(f"-o is {output}, a directory, expected a file name for what comes through a pipe")
    names = [Path(source).name for source in sources]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise CommandError(f"{min(twice)} is the name of several inputs; add to them one directory at a time")
    directory.mkdir(exist_ok=True)
    return [str(directory / name) for name in names]


@dataclasses.dataclass(frozen=True)
class Work:
    """A job whose headers were read and found good."""

    job: Job
    plans: tuple[Plan, ...]
    is_archive: bool

    @property
    def byte_count(self) -> int:
        """Bytes of all arrays that are changed."""
        return sum(plan.source.byte_count for plan in self.plans)


def check(job: Job, addition: Addition, keys: Sequence[str]) -> Work | parquet.ParquetWork:
    """Read the headers of one file and refuse what cannot be done, before anything is written."""
    if job.source.endswith(parquet.suffix):
        return parquet.check(job.source, job.target, addition, keys)
    with open(job.source, "rb") as stream:
        is_archive = stream.read(2) == _zip_magic
        stream.seek(0)
        if is_archive:
            with _archive(stream, job.source) as archive:
                plans = tuple(_archive_plans(archive, addition, keys, job.source).values())
        else:
            plans = (_checked_plan(stream, addition, keys, job.source),)
    work = Work(job, plans, is_archive)
    if job.target is None:
        if is_archive:
            raise CommandError(f"{job.source} is a .npz archive, which cannot be changed in place; write one with -o")
        for plan in plans:
            plan.require_in_place()
    elif Path(job.target).suffix == (".npy" if is_archive else ".npz"):
        kind = "a .npz archive" if is_archive else "one .npy array"
        raise CommandError(f"{job.source} is {kind}, and so is its result; give {job.target} the same suffix")
    return work


def _checked_plan(stream: IO[bytes], addition: Addition, keys: Sequence[str], name: str) -> Plan:
    if keys:
        raise CommandError(f"--key names arrays of .npz archives, and {name} is one array; leave it out")
    return addition.plan(_checked_header(stream, name), name)


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


def run(work: Work | parquet.ParquetWork, progress: Progress) -> None:
    """Do one job."""
    if isinstance(work, parquet.ParquetWork):
        work.run(progress)
        return
    job = work.job
    if job.target is None:
        _run_in_place(work, progress)
        return
    with open(job.source, "rb") as source, open_target(job.target) as target:
        if work.is_archive:
            with _archive(source, job.source) as archive:
                _rewrite_archive(archive, {plan.name: plan for plan in work.plans}, target, job.source, progress)
        else:
            npy.read_header(source, job.source)
            work.plans[0].run(source, target, progress)


def run_pipe(stream: IO[bytes], output: str, addition: Addition, progress: Progress) -> int:
    """Add to the one array that comes through a pipe; the number of bytes."""
    plan = addition.plan(npy.read_header(stream, "standard input"), "standard input")
    with open_target(output) as target:
        plan.run(stream, target, progress)
    return plan.source.byte_count


def _run_in_place(work: Work, progress: Progress) -> None:
    done = 0

    def count(byte_count: int) -> None:
        nonlocal done
        done += byte_count
        progress(byte_count)

    with open(work.job.source, "r+b") as stream:
        npy.read_header(stream, work.job.source)
        try:
            work.plans[0].run_in_place(stream, count)
            stream.flush()
            os.fsync(stream.fileno())
        except BaseException:
            print(
                f"fastpe: {work.job.source} may be partly changed, after {done} bytes; restore it from a copy",
                file=sys.stderr,
            )
            raise


# ---- archives


@contextlib.contextmanager
def _archive(stream: IO[bytes], name: str) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(stream) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise CommandError(f"{name} is a damaged or unusual .npz archive: {error}; write it anew") from None


def _archive_plans(archive: zipfile.ZipFile, addition: Addition, keys: Sequence[str], name: str) -> dict[str, Plan]:
    arrays = [member.removesuffix(".npy") for member in archive.namelist() if member.endswith(".npy")]
    if not keys and len(arrays) != 1:
        raise CommandError(f"{name} holds {len(arrays)} arrays ({', '.join(arrays[:8])}); choose with --key NAME")
    unknown = [key for key in keys if key not in arrays]
    if unknown:
        raise CommandError(f"--key is {unknown[0]}, expected one of {name}'s arrays: {', '.join(arrays[:8])}")
    plans = {}
    for key in keys or arrays:
        with archive.open(f"{key}.npy") as member:
            label = _member_name(name, key)
            plans[key] = addition.plan(npy.read_header(member, label), label)
    return plans


def _member_name(archive_name: str, key: str) -> str:
    return f"{archive_name}:{key}"


def _rewrite_archive(
    archive: zipfile.ZipFile, plans: dict[str, Plan], target: IO[bytes], name: str, progress: Progress
) -> None:
    with zipfile.ZipFile(target, "w") as result:
        for member in archive.infolist():
            copy = zipfile.ZipInfo(member.filename, member.date_time)
            copy.compress_type = member.compress_type
            copy.external_attr = member.external_attr
            label = _member_name(name, member.filename.removesuffix(".npy"))
            # The size is not known before it is written: room for more than 4 GB.
            with archive.open(member) as source, result.open(copy, "w", force_zip64=True) as sink:
                if label in plans:
                    npy.read_header(source, label)
                    plans[label].run(source, sink, progress)
                else:
                    shutil.copyfileobj(source, sink, 1 << 20)
