# SPDX-License-Identifier: BSD-3-Clause
"""The command line: ``fastpe`` or ``python -m fastpe``."""

from __future__ import annotations

import sys
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
    try:
        from fastpe._cli.run import run
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in ("typer", "rich"):
            raise
        print(
            f"fastpe: error: the command line needs {library}; install it with: pip install {library}", file=sys.stderr
        )
        return 2
    return run(arguments)


if __name__ == "__main__":
    import _fastpe_command  # which reports Ctrl-C while the rest is imported

    sys.exit(_fastpe_command.main())
