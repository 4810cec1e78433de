# SPDX-License-Identifier: BSD-3-Clause
"""The command line: ``fastpe`` or ``python -m fastpe``."""

import sys

from _fastpe_command import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
