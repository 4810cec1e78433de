# SPDX-License-Identifier: BSD-3-Clause
"""What a long command shows while it works, and at its end."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from fastpe._cli.errors import printable

# Takes the number of bytes that were done since the last call.
Progress = Callable[[int], None]

_long_work_bytes = 64 << 20


@contextlib.contextmanager
def progress_bar(total_bytes: int | None, *, quiet: bool) -> Iterator[Progress]:
    """A function to report bytes to: a bar on standard error if that is a terminal and the work is long."""
    if quiet or not sys.stderr.isatty() or (total_bytes is not None and total_bytes < _long_work_bytes):
        yield lambda _: None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total_bytes)
        yield lambda byte_count: bar.advance(task, byte_count)


class Summary:
    """One line on standard error about what was written, with the time if the work took most of it."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._start = time.perf_counter()

    def report(self, what: str, byte_count: int) -> None:
        """Print ``what: bytes``, and for much work ``in seconds (bytes per second)``."""
        if self._quiet:
            return
        line = f"{what}: {in_bytes(byte_count)}"
        if byte_count >= _long_work_bytes:
            seconds = max(time.perf_counter() - self._start, 1e-9)
            line += f" in {seconds:.2f} s ({in_bytes(byte_count / seconds)}/s)"
        print(printable(line), file=sys.stderr)


def in_bytes(count: float) -> str:
    """A number of bytes as text, in powers of 1000."""
    for unit, factor in (("EB", 1e18), ("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.2f} {unit}"
    return f"{count:.0f} B"
