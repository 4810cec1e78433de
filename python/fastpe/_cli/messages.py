# SPDX-License-Identifier: BSD-3-Clause
"""What a command says: while it works, at its end, and when it cannot do its work."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.filesize import decimal
from rich.progress import Progress

# Takes how much was done since the last call.
Advance = Callable[[int], None]


class CommandError(Exception):
    """One line for the user: what was found, what was expected, and the remedy."""


def say(message: str) -> None:
    """Print one line, with escapes for what would move a terminal's cursor, colour it or turn its text around."""
    line = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in message)
    print(f"fastpe: {line}", file=sys.stderr)


def short(value: object, limit: int = 200) -> str:
    """A text out of a file, which may be of any length."""
    text = str(value)
    return text if len(text) <= limit else f"{text[:limit]}.."


@contextlib.contextmanager
def reading(name: str, what: str) -> Iterator[None]:
    """Turn whatever libraries raise about the content of a file into one line: codecs and parsers have errors of any type."""
    try:
        yield
    except (CommandError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            error.filename = error.filename or name
            raise
        reason = short((str(error).splitlines() or [""])[0] or type(error).__name__)
        raise CommandError(f"{name} cannot be used as {what}: {reason}; write it anew") from None


@contextlib.contextmanager
def progress(total: int | None, *, quiet: bool) -> Iterator[Advance]:
    """A bar, if standard error is a terminal."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)


def report(what: str, byte_count: int, *, quiet: bool) -> None:
    """Say what was written."""
    if not quiet:
        say(f"{what}: {decimal(byte_count)}")
