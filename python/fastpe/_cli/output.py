# SPDX-License-Identifier: BSD-3-Clause
"""Where results go: a file that appears when it is complete, or standard output."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import IO

from fastpe._cli.errors import CommandError
from fastpe._cli.progress import in_bytes

_partial_prefix, _partial_suffix = ".fastpe-", ".partial"
_errors_of_writing = (errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.ENOSPC)


class _Forward(io.FileIO):
    """A descriptor that somebody else opened, written from its current place on. Archives cannot seek in it."""

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise io.UnsupportedOperation("tell")


@contextlib.contextmanager
def _open_descriptor(number: int, name: str) -> Iterator[IO[bytes]]:
    """Write to a descriptor that is open already, and leave it open for those who share it."""
    what = {1: "standard output", 2: "standard error"}.get(number, f"descriptor {number}")
    try:
        # If standard output was closed, another file may have its number now.
        copy = os.dup(-1 if number == 1 and sys.__stdout__ is None else number)
    except OSError:
        raise CommandError(f"-o {name} writes to {what}, which is closed; redirect it or name a file") from None
    with io.BufferedWriter(_Forward(copy, "w")) as stream:
        if stream.isatty():
            raise CommandError(f"-o {name} writes binary data, and {what} is a terminal; redirect it or name a file")
        yield stream


def descriptor_of(name: str) -> int | None:
    """The number of this process's own descriptor that a name stands for: -, /dev/stdout, /dev/fd/3, and links to such names.

    The file behind the descriptor must not be found by its name and replaced: the program that opened it would keep the
    old file, or lose the contents.
    """
    if name == "-":
        return 1
    if os.name != "posix":
        return None
    own = [os.path.realpath(directory) for directory in ("/dev/fd", "/proc/self/fd", "/proc/thread-self/fd")]
    for _ in range(40):
        directory = os.path.realpath(os.path.dirname(name) or os.curdir)
        last = os.path.basename(name)
        if directory in own and last.isdecimal():
            return int(last)
        name = os.path.join(directory, last)
        if not os.path.islink(name):
            break
        name = os.path.join(directory, os.readlink(name))
    return None


@contextlib.contextmanager
def _named_in_errors(name: str) -> Iterator[None]:
    """Name the target in errors about writing it: they name no file if it is open, and else the partial file or one in it."""
    try:
        yield
    except OSError as error:
        about_writing = error.errno in _errors_of_writing
        parts = Path(os.fsdecode(error.filename)).parts if isinstance(error.filename, (str, bytes)) else ()
        if about_writing or any(each.startswith(_partial_prefix) and each.endswith(_partial_suffix) for each in parts):
            error.filename = name
        raise


def require_targets(names: Sequence[str], byte_counts: Sequence[int] = (), *, no_clobber: bool = False) -> None:
    """Refuse files that cannot be written, all of them, before the first one is.

    Parameters
    ----------
    names
        Files; descriptors and devices, which are left to those who write to them.
    byte_counts
        The sizes that they will have, as far as they are known.
    no_clobber
        Whether to refuse files that exist, too.
    """
    paths = [Path(name) for name in names if descriptor_of(name) is None and not _is_special(Path(name))]
    for path in paths:
        if no_clobber and os.path.lexists(path):
            raise _kept(path)
        _replaceable(path)
    if paths:
        _require_room(paths[0], sum(byte_counts), len(paths))


def _kept(path: Path) -> CommandError:
    return CommandError(f"{path} exists, and --no-clobber keeps it; name another output, or leave --no-clobber out")


def is_named_otherwise(name: str, suffixes: Collection[str]) -> bool:
    """Whether the name of a target has a suffix, and none of these. Open descriptors, pipes and devices have any name."""
    suffix = Path(name).suffix.lower()
    return bool(suffix) and suffix not in suffixes and descriptor_of(name) is None and not _is_special(Path(name))


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _require_directory(path: Path) -> None:
    if not path.is_dir():
        remedy = (
            "is a file, expected a directory; name another one" if path.exists() else "is no directory; make it first"
        )
        raise CommandError(f"{path} {remedy}")


def _replaceable(path: Path) -> Path:
    """The file that a path leads to, in a directory that exists. The file may exist, too."""
    if path.is_dir():
        raise CommandError(f"{path} is a directory, expected a file to write; add a file name")
    final = Path(os.path.realpath(path))
    _require_directory(final.parent)
    if final.exists() and not os.access(final, os.W_OK):
        # It could be replaced all the same, but somebody did not want it changed.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return final


def _require_room(path: Path, byte_count: int, file_count: int = 1) -> None:
    free = shutil.disk_usage(os.path.dirname(os.path.realpath(path))).free
    if byte_count > free:
        what = f"{path}" if file_count == 1 else f"{path} and the {file_count - 1} other results"
        raise CommandError(f"{what} would take {in_bytes(byte_count)}, and {in_bytes(free)} are free; make room")


@contextlib.contextmanager
def complete_file(path: Path, byte_count: int = 0, *, no_clobber: bool = False) -> Iterator[IO[bytes]]:
    """A new file beside `path` that replaces it once everything is written and on the disk.

    That there is room for `byte_count` bytes is checked first. Whatever ends the work early leaves what `path` was, and no
    other file unless the process was killed outright. With `no_clobber`, so does a file that has appeared by then.
    """
    if _is_special(path):
        # A pipe or a device is not to be replaced.
        with open(path, "wb") as stream:
            yield stream
        return
    final = _replaceable(path)
    _require_room(path, byte_count)
    partial = _partial_name(final)
    try:
        with open(partial, "xb", opener=_closed_to_others if final.exists() else None) as stream:
            if final.exists():
                _copy_access(final, partial)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if no_clobber:
            try:
                _give_name(partial, final)
            except FileExistsError:
                raise _kept(path) from None
        else:
            os.replace(partial, final)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    _sync_directory(final.parent)


def _give_name(partial: Path, final: Path) -> None:
    """Rename a file, unless something has the name."""
    try:
        os.link(partial, final)
    except FileExistsError:
        raise
    except OSError:
        # This file system has no hard links: an empty file reserves the name.
        open(final, "xb").close()
        os.replace(partial, final)
    else:
        partial.unlink()


def _closed_to_others(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _copy_access(source: Path, target: Path) -> None:
    """Give a new file the owner and the permissions of the file that it replaces, as far as the system allows."""
    status = source.stat()
    if hasattr(os, "chown"):
        for user, group in ((-1, status.st_gid), (status.st_uid, -1)):
            # Only root can change the owner, and others can only choose one of their own groups.
            with contextlib.suppress(PermissionError):
                os.chown(target, user, group)
    # This copies the mode, and on Linux the extended attributes, which include access control lists.
    shutil.copystat(source, target)


def require_new_directory(path: Path) -> None:
    """Refuse what is there already: a directory cannot take another one's place in one step."""
    if os.path.lexists(path):
        raise CommandError(f"{path} exists, and only a file is replaced; remove it first, or name another output")
    _require_directory(path.absolute().parent)


@contextlib.contextmanager
def complete_directory(path: Path) -> Iterator[Path]:
    """A directory beside `path`, closed to others, which is renamed once everything is written and on the disk."""
    require_new_directory(path)
    partial = _partial_name(path.absolute())
    partial.mkdir(0o700)
    try:
        with _named_in_errors(str(path)):
            yield partial
        if hasattr(os, "sync"):
            # One call for a directory of any number of files.
            os.sync()
        try:
            os.rename(partial, path)
        except OSError:
            # Only an empty directory would have been replaced.
            require_new_directory(path)
            raise
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    _sync_directory(path.absolute().parent)


def _partial_name(final: Path) -> Path:
    return final.with_name(f"{_partial_prefix}{secrets.token_hex(8)}{_partial_suffix}")


def _sync_directory(directory: Path) -> None:
    # Windows cannot open directories, and does not need this.
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def open_target(path: str, byte_count: int = 0, *, no_clobber: bool = False) -> Iterator[IO[bytes]]:
    """The target that a command line names, for at least `byte_count` bytes; ``-`` is standard output."""
    number = descriptor_of(path)
    opened = (
        complete_file(Path(path), byte_count, no_clobber=no_clobber)
        if number is None
        else _open_descriptor(number, path)
    )
    with _named_in_errors("standard output" if path == "-" else path), opened as stream:
        yield stream
