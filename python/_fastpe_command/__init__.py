# SPDX-License-Identifier: BSD-3-Clause
"""The command ``fastpe``.

It is not in the package because a wrong ``FASTPE_*`` variable fails the package's import, which comes before any module
of the package: only from outside can the command say so in one line.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator

_interrupted = "fastpe: interrupted"


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        try:
            with _ended_by_ctrl_c():
                from fastpe.__main__ import main

                with contextlib.suppress(ModuleNotFoundError):  # which main() reports
                    import fastpe._cli.run  # noqa: F401
        except ValueError as error:
            print(f"fastpe: error: {error}", file=sys.stderr)
            return 2
        return main()
    except KeyboardInterrupt:
        # It came just before or after the imports; the command line itself reports later ones.
        print(_interrupted, file=sys.stderr)
        return 130


@contextlib.contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """End the process at once: raised in the middle of an import, an interrupt may be lost, or become an ImportError."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def end(_number: int, _frame: object) -> None:
        os.write(2, f"{_interrupted}\n".encode())
        os._exit(130)

    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
