# SPDX-License-Identifier: BSD-3-Clause
"""What a command says: while it works, at its end, and when it cannot do its work."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from fastpe._extras import needed

# Older versions of pyarrow may run code that is in a file, and those of safetensors map files, or cannot read bfloat16.
_least_versions = {"pyarrow": "15.0.0", "zarr": "3.1.0", "safetensors": "0.8.0", "ml_dtypes": "0.4.0"}


class CommandError(Exception):
    """One line for the user: what was found, what was expected, and the remedy."""


class OptionError(CommandError):
    """The same of options that are wrong, whatever the files have."""


def say(message: str) -> None:
    """Print one line, with escapes for what would move a terminal's cursor, colour it or turn its text around."""
    line = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in message)
    # What a file says may be of any length.
    print("fastpe:", line if len(line) <= 1000 else f"{line[:600]} .. {line[-300:]}", file=sys.stderr)


def library(name: str, what: str) -> Any:
    """Import a library that `what` needs."""
    requirement = f"'{name}>={_least_versions[name]}'"
    with needed(what, name, requirement):
        module = importlib.import_module(name)
    if np.lib.NumpyVersion(module.__version__) < _least_versions[name]:
        raise ImportError(f"{what} needs {requirement}, and {name} is {module.__version__}; pip install {requirement}")
    return module


@contextlib.contextmanager
def naming(name: str, what: str = "") -> Iterator[None]:
    """Give errors of the system the name of their file, which some lack.

    If `what` says what the file should be, whatever libraries raise about its content becomes one line: codecs and parsers
    have errors of any type.
    """
    try:
        yield
    except (CommandError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            if ".fastpe-" in os.fsdecode(error.filename or ".fastpe-"):  # the name of an unfinished file
                error.filename = name
        elif what:
            reason = (str(error).splitlines() or [""])[0] or type(error).__name__
            raise CommandError(f"{name} cannot be used as {what}: {reason}; save it again") from None
        raise


def progress(steps: Iterable[Any], quiet: bool, total: int | None = None) -> Iterable[Any]:
    """The steps, with a bar if standard error is a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:  # some versions of rich print an empty line for a disabled bar
        return steps
    return track(steps, "", total, console=console, transient=True)
