# SPDX-License-Identifier: BSD-3-Clause
"""A file that is changed in place is changed by one run at a time."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import IO

from fastpe._cli.errors import CommandError

if sys.platform == "win32":
    import ctypes
    import msvcrt

    def _lock(stream: IO[bytes]) -> None:
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(stream.fileno()))
        # A byte far behind the end, since nobody else can read what is locked.
        if not kernel.LockFile(handle, 0, 1 << 30, 1, 0):
            raise ctypes.WinError(ctypes.get_last_error())
else:
    import fcntl

    def _lock(stream: IO[bytes]) -> None:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def locked(path: str, name: str) -> Iterator[None]:
    """Refuse a file that another run is changing, and let others refuse this one. Some file systems have no locks."""
    with open(path, "r+b" if os.access(path, os.W_OK) else "rb") as stream:
        try:
            _lock(stream)
        except (BlockingIOError, PermissionError):
            raise CommandError(f"{name} is being changed in place by another run; wait until it has ended") from None
        except OSError:
            pass
        yield
