# SPDX-License-Identifier: BSD-3-Clause
"""The command ``fastpe``.

It is not in the package because a wrong ``FASTPE_*`` variable fails the package's import, which comes before any module
of the package: only from outside can the command say so in one line.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        0 for success, 1 for a failed check or file, 2 for wrong usage or a missing library, 130 after Ctrl-C, 141 where
        the reader of standard output has left.

    Examples
    --------
    >>> from fastpe.__main__ import main
    >>> main(["--version"])  # doctest: +ELLIPSIS
    fastpe ...
    0
    """
    # Raised in the middle of an import, an interrupt may be lost, or become an ImportError: it ends the process instead.
    is_main = threading.current_thread() is threading.main_thread()
    raises_interrupt = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if raises_interrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        from fastpe._cli.run import run
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in ("typer", "rich"):
            raise
        print(f"fastpe: error: the command line needs {library}; pip install {library}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"fastpe: error: {error}", file=sys.stderr)
        return 2
    finally:
        if raises_interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    return run(arguments)
