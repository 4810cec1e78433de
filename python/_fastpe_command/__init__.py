# SPDX-License-Identifier: BSD-3-Clause
"""The command ``fastpe``.

It is not in the package because a wrong ``FASTPE_*`` variable fails the package's import, which comes before any module
of the package: only from outside can the command say so in one line.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        try:
            from fastpe.__main__ import main
        except ValueError as error:
            print(f"fastpe: {error}", file=sys.stderr)
            return 2
        return main()
    except KeyboardInterrupt:
        # It came during an import; the command line itself reports later ones.
        print("fastpe: interrupted", file=sys.stderr)
        return 130
