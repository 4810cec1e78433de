# SPDX-License-Identifier: BSD-3-Clause
"""Opening what is read, and new files and directories, which get their names when they are complete and on the disk."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from rich.filesize import decimal

from fastpe._cli.messages import CommandError


@contextlib.contextmanager
def open_regular(name: str, *, writable: bool = False) -> Iterator[IO[bytes]]:
    """Open a file to read or to change it, once: what is checked is what is read. Pipes and devices are refused."""
    # Opening a pipe that nobody writes would wait for ever.
    flags = (os.O_RDWR if writable else os.O_RDONLY) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with _named(name):
        descriptor = os.open(name, flags)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise CommandError(f"{name} is not a regular file, expected one; write what it has into a file")
        with os.fdopen(descriptor, "r+b" if writable else "rb") as stream:
            yield stream


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """Give errors of the system, which some calls raise without the file's name, this name."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and ".fastpe-" in os.fsdecode(error.filename or ".fastpe-"):
            error.filename = name
        raise


def require_target(name: str, suffixes: Iterable[str], no_clobber: bool) -> Path:
    """Refuse what cannot be written, before anything is; the path that is written, behind links."""
    final = Path(os.path.realpath(name))
    # A name that ends in a separator has no suffix here.
    if os.path.splitext(name)[1].lower() not in suffixes:
        raise CommandError(f"-o is {name}, expected a name that ends in {' or '.join(suffixes)}; correct the name")
    if no_clobber and os.path.lexists(name):
        raise _kept(name)
    if not final.parent.is_dir():
        raise CommandError(f"-o is {name}, and {final.parent} is not a directory; make it first")
    if final.exists():
        # Another program holds the file behind /dev/stdout open, and would not see that it is replaced.
        if not final.is_file() or any(os.path.samestat(each, final.stat()) for each in _open_files()):
            raise CommandError(f"-o is {name}, expected a file that may be replaced; name another one")
        open(name, "r+b").close()  # A file that somebody did not want changed could be replaced all the same.
    return final


def _open_files() -> Iterator[os.stat_result]:
    for number in os.listdir("/dev/fd") if os.path.isdir("/dev/fd") else ():
        with contextlib.suppress(OSError):
            yield os.fstat(int(number))


def _kept(name: str) -> CommandError:
    return CommandError(
        f"-o is {name}, which exists: --no-clobber keeps files, and stores are never replaced; name another one"
    )


@contextlib.contextmanager
def _completed(name: str, final: Path, byte_count: int) -> Iterator[Path]:
    """Where to write what is to be complete later, of at least `byte_count` bytes; an error leaves nothing of it."""
    free = shutil.disk_usage(final.parent).free
    if byte_count > free:
        raise CommandError(f"-o {name} would take {byte_count:,} bytes, and {decimal(free)} are free; make room")
    partial = final.with_name(f".fastpe-{secrets.token_hex(8)}.partial")
    try:
        with _named(name):
            yield partial
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        partial.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # others cannot open directories, and do not need this
        descriptor = os.open(final.parent, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


@contextlib.contextmanager
def new_file(name: str, suffixes: Iterable[str], no_clobber: bool, byte_count: int = 0) -> Iterator[IO[bytes]]:
    """Write a file, with the permissions of the one that it replaces."""
    final = require_target(name, suffixes, no_clobber)
    mode = final.stat().st_mode & 0o777 if final.exists() else None
    with _completed(name, final, byte_count) as partial:
        with open(partial, "xb", opener=lambda path, flags: os.open(path, flags, mode or 0o666)) as stream:
            if mode is not None:
                os.chmod(partial, mode)  # whatever the umask is
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if no_clobber:
            try:
                with contextlib.suppress(PermissionError, NotImplementedError):  # of a file system without hard links
                    os.link(partial, final)
                    partial.unlink()
                    return
                open(final, "xb").close()  # which reserves the name
            except FileExistsError:
                raise _kept(name) from None
        os.replace(partial, final)


@contextlib.contextmanager
def new_directory(name: str, byte_count: int) -> Iterator[Path]:
    """Fill a zarr store, which is closed to others until it is complete."""
    final = require_target(name.rstrip("/"), [".zarr"], True)
    with _completed(name, final, byte_count) as partial:
        partial.mkdir(0o700)
        yield partial
        if hasattr(os, "sync"):
            os.sync()
        if os.path.lexists(final):
            raise _kept(name)
        os.rename(partial, final)
