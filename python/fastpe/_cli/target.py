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
from typing import IO, Any

from fastpe._cli.messages import CommandError, OptionError, naming, say


@contextlib.contextmanager
def open_regular(name: str, *, writable: bool = False) -> Iterator[IO[bytes]]:
    """Open a file to read or to change it, once: what is checked is what is read. Pipes and devices are refused."""
    # Opening a pipe that nobody writes would wait for ever.
    flags = (os.O_RDWR if writable else os.O_RDONLY) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with naming(name):
        descriptor = os.open(name, flags)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise CommandError(f"{name} is not a regular file, expected one; write what it has into a file")
        with os.fdopen(descriptor, "r+b" if writable else "rb") as stream:
            yield stream


def require_only_run(stream: IO[Any], name: str) -> None:
    """Keep other runs from a file as long as it is open. Windows and some file systems have no such locks."""
    with contextlib.suppress(ModuleNotFoundError, OSError):
        import fcntl

        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(f"{name} is being changed by another run; wait until it has ended") from None


def sync_directory(directory: Path) -> None:
    """Have names on the disk. Only POSIX can open directories, and needs this."""
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def _is_held(name: str, final: Path) -> bool:
    """Whether the program that started this one has the file open, and would not see that it is replaced."""
    standard = (path for path in map(Path, ("/dev/fd/0", "/dev/fd/1", "/dev/fd/2")) if path.exists())
    while os.path.islink(name):
        if os.path.realpath(os.path.dirname(name)) == os.path.realpath("/dev/fd"):
            return True
        name = os.path.join(os.path.dirname(name), os.readlink(name))
    return any(path.samefile(final) for path in standard)


@contextlib.contextmanager
def _completed(name: str, suffixes: Iterable[str], kept: str, quiet: bool) -> Iterator[Path]:
    """Check what is to be replaced, and give where to write; nothing else is left, however it ends.

    `kept` is empty, or says why what exists is not replaced.
    """
    final = Path(os.path.realpath(name))  # behind links
    # A name that ends in a separator has no suffix here.
    if os.path.splitext(name)[1].lower() not in suffixes:
        raise OptionError(f"-o is {name}, expected a name that ends in {' or '.join(suffixes)}")
    if not final.parent.is_dir():
        raise CommandError(f"-o is {name}, and the folder {os.path.dirname(name)} does not exist; make it first")
    if kept and os.path.lexists(name):
        raise CommandError(f"-o is {name}, which exists, and {kept}; name another one")
    if final.exists():
        if _is_held(name, final) or not final.is_file():
            raise CommandError(f"-o is {name}, expected a file that may be replaced; name another one")
        open(name, "r+b").close()  # A file that somebody did not want changed could be replaced all the same.
    partial = final.with_name(f".fastpe-{secrets.token_hex(8)}.partial")
    try:
        with naming(name):
            yield partial
            if kept and partial.is_file():
                try:
                    os.link(partial, final)  # unlike a rename, it fails if another file has appeared
                except (PermissionError, NotImplementedError):  # of a file system without hard links
                    open(final, "xb").close()  # which reserves the name
                    os.replace(partial, final)
            else:
                os.replace(partial, final)  # which replaces no directory, unless it is empty
            sync_directory(final.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        partial.unlink(missing_ok=True)
    if not quiet:
        say(f"wrote {name}")


@contextlib.contextmanager
def new_file(name: str, suffixes: Iterable[str], no_clobber: bool, quiet: bool) -> Iterator[IO[bytes]]:
    """Write a file, with the permissions of the one that it replaces."""
    mode = os.stat(name).st_mode & 0o777 if os.path.exists(name) else None
    kept = "--no-clobber keeps it" if no_clobber else ""
    with (
        _completed(name, suffixes, kept, quiet) as partial,
        open(partial, "xb", opener=lambda path, flags: os.open(path, flags, mode or 0o666)) as stream,
    ):
        if mode is not None:
            os.chmod(partial, mode)  # whatever the umask is
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


@contextlib.contextmanager
def new_directory(name: str, quiet: bool) -> Iterator[Path]:
    """Fill a zarr store, which is closed to others until it is complete."""
    with _completed(name.rstrip("/"), [".zarr"], "stores are never replaced", quiet) as partial:
        partial.mkdir(0o700)
        yield partial
        if hasattr(os, "sync"):
            os.sync()
