# SPDX-License-Identifier: BSD-3-Clause
"""Where results go: a file that appears when it is complete, or standard output."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fastpe._cli.errors import CommandError, ReaderGone
from fastpe._cli.progress import in_bytes

_partial_suffix = ".partial"


@contextlib.contextmanager
def standard_output() -> Iterator[IO[bytes]]:
    """Standard output for binary data, which a terminal cannot show."""
    if sys.stdout is None:
        raise CommandError("-o - writes to standard output, which is closed; redirect it or name a file")
    if sys.stdout.isatty():
        raise CommandError("-o - writes binary data, and standard output is a terminal; redirect it or name a file")
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The interpreter must not try to flush the rest at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise ReaderGone from None


@contextlib.contextmanager
def _named_in_errors(name: str) -> Iterator[None]:
    """Name the target in errors about writing it: those of an open file have no name, others that of a partial file."""
    try:
        yield
    except OSError as error:
        about_space = error.filename is None and error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        if about_space or str(error.filename).endswith(_partial_suffix):
            error.filename = name
        raise


@contextlib.contextmanager
def complete_file(path: Path, byte_count: int = 0) -> Iterator[IO[bytes]]:
    """A new file beside `path` that replaces it once everything is written and on the disk.

    That there is room for `byte_count` bytes is checked first. Whatever ends the work early leaves what `path` was, and no other file unless the process was killed outright.
    """
    if path.is_dir():
        raise CommandError(f"{path} is a directory, expected a file to write; add a file name")
    if path.exists() and not path.is_file():
        # A pipe or a device is not to be replaced.
        with open(path, "wb") as stream:
            yield stream
        return
    final = Path(os.path.realpath(path))
    if not final.parent.is_dir():
        raise CommandError(f"{final.parent} is no directory; make it first")
    if final.exists() and not os.access(final, os.W_OK):
        # It could be replaced all the same, but somebody did not want it changed.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    free = shutil.disk_usage(final.parent).free
    if byte_count > free:
        raise CommandError(f"{path} would have {in_bytes(byte_count)}, and there are {in_bytes(free)} free; make room")
    partial = _partial_name(final)
    try:
        with open(partial, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if final.exists():
            os.chmod(partial, final.stat().st_mode & 0o7777)
        os.replace(partial, final)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    _sync_directory(final.parent)


def require_new_directory(path: Path) -> None:
    """Refuse what is there already: a directory cannot take another one's place in one step."""
    if os.path.lexists(path):
        raise CommandError(f"{path} exists, and only a file is replaced; remove it first, or name another output")
    if not path.absolute().parent.is_dir():
        raise CommandError(f"{path.absolute().parent} is no directory; make it first")


@contextlib.contextmanager
def complete_directory(path: Path) -> Iterator[Path]:
    """A name beside `path` for a directory to make, which is renamed once everything is written and on the disk."""
    require_new_directory(path)
    partial = _partial_name(path.absolute())
    try:
        yield partial
        if hasattr(os, "sync"):
            # One call for a directory of any number of files.
            os.sync()
        os.rename(partial, path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    _sync_directory(path.absolute().parent)


def _partial_name(final: Path) -> Path:
    return final.with_name(f".fastpe-{secrets.token_hex(8)}{_partial_suffix}")


def _sync_directory(directory: Path) -> None:
    # Windows opens no directories, and needs none of this.
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def open_target(path: str, byte_count: int = 0) -> Iterator[IO[bytes]]:
    """The target that a command line names, for at least `byte_count` bytes; ``-`` is standard output."""
    with _named_in_errors(path), standard_output() if path == "-" else complete_file(Path(path), byte_count) as stream:
        yield stream
