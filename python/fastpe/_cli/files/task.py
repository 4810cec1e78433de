# SPDX-License-Identifier: BSD-3-Clause
"""What ``fastpe add`` does to one input, whatever its format."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from typing import IO, Protocol

from fastpe._cli.errors import printable
from fastpe._cli.output import open_target
from fastpe._cli.progress import Progress


@dataclasses.dataclass(frozen=True)
class Task:
    """One input and where its result goes; None is the input itself."""

    source: str
    target: str | None
    no_clobber: bool = False

    def open_target(self, byte_count: int = 0) -> contextlib.AbstractContextManager[IO[bytes]]:
        """Open the target for at least `byte_count` bytes."""
        assert self.target is not None
        return open_target(self.target, byte_count, no_clobber=self.no_clobber)


class Work(Protocol):
    """A task whose input was looked at and found good."""

    @property
    def task(self) -> Task:
        """The input and the target."""
        ...

    @property
    def byte_count(self) -> int:
        """Bytes of all that is changed, as they are read, for the progress bar."""
        ...

    @property
    def known_size(self) -> int:
        """Bytes that the target has at least, as far as they are known before it is written."""
        ...

    def run(self, progress: Progress) -> int:
        """Do it; the bytes of all that was changed, as they were written."""
        ...


@contextlib.contextmanager
def changed_in_place(name: str, progress: Progress) -> Iterator[Progress]:
    """Count what is changed, and say so if the change does not come to its end."""
    done = 0

    def count(byte_count: int) -> None:
        nonlocal done
        done += byte_count
        progress(byte_count)

    try:
        yield count
    except BaseException:
        message = (
            f"fastpe: {name} may be partly changed: the first {done} bytes of its elements, and perhaps some after "
        )
        message += "them; restore it from a copy"
        print(printable(message), file=sys.stderr)
        raise
