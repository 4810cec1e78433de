# SPDX-License-Identifier: BSD-3-Clause
"""What a command says: while it works, at its end, and when it cannot do its work."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.filesize import decimal
from rich.progress import Progress

from fastpe._extras import needed

# Takes how much was done since the last call.
Advance = Callable[[int], None]


class CommandError(Exception):
    """One line for the user: what was found, what was expected, and the remedy."""


def say(message: str) -> None:
    """Print one line, with escapes for what would move a terminal's cursor, colour it or turn its text around."""
    line = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in message)
    # What a file says may be of any length.
    print("fastpe:", line if len(line) <= 1000 else f"{line[:600]} .. {line[-300:]}", file=sys.stderr)


def library(name: str, least: str, what: str) -> Any:
    """Import a library of at least this version, which `what` needs."""
    with needed(what, name, f"'{name}>={least}'"):
        module = importlib.import_module(name)
    if np.lib.NumpyVersion(module.__version__) < least:
        raise ImportError(f"{name} is {module.__version__}, expected at least {least}; pip install '{name}>={least}'")
    return module


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
        reason = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise CommandError(f"{name} cannot be used as {what}: {reason}; write it anew") from None


@contextlib.contextmanager
def progress(total: int | None, *, quiet: bool) -> Iterator[Advance]:
    """A bar, if standard error is a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:  # some versions of rich print an empty line for a disabled bar
        yield lambda _: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)


def report(what: str, byte_count: int, *, quiet: bool) -> None:
    """Say what was written."""
    if not quiet:
        say(f"{what}: {decimal(byte_count)}")
