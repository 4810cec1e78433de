# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe conventions``: what the conventions are, who uses them, and where that was read."""

from __future__ import annotations

import fastpe
from fastpe._cli.errors import CommandError


def run(name: str | None) -> None:
    """Print one of them, or all."""
    try:
        chosen = list(fastpe.conventions.values()) if name is None else [fastpe.conventions.find(name)]
    except ValueError as error:
        raise CommandError(f"NAME{str(error).removeprefix('convention')}") from None
    print("\n\n".join(map(str, chosen)))
