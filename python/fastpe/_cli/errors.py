# SPDX-License-Identifier: BSD-3-Clause
"""What a command says when it cannot do its work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class CommandError(Exception):
    """One line for the user: what was found, what was expected, and the remedy."""


class MissingLibrary(CommandError):
    """A library of an extra is not installed."""


class ReaderGone(Exception):
    """The reader of standard output has what it wants; no reason to say anything."""


@contextlib.contextmanager
def needs(library: str, what: str, extra: str) -> Iterator[None]:
    """Turn a failed import of a library into what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library:
            raise
        raise MissingLibrary(f"{what} need {library}; install it with: pip install 'fastpe[{extra}]'") from None
