# SPDX-License-Identifier: BSD-3-Clause
"""Libraries that not every installation has."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def needed(what: str, library: str, requirement: str = "") -> Iterator[None]:
    """Turn a failed import of a library into what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library:
            raise
        message = f"{what} needs {library}; install it with: pip install {requirement or library}"
        raise ModuleNotFoundError(message, name=library) from None
