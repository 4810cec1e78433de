# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe conventions``: what the conventions are, who uses them, and where that was read."""

from __future__ import annotations

import fastpe
from fastpe._cli.errors import CommandError, with_options


def run(name: str | None) -> None:
    """Print those of this name, or all: those of one coordinate, then those of grids."""
    found = [
        (kind, preset)
        for kind, registry in (("", fastpe.conventions), ("grid ", fastpe.grid_conventions))
        for preset in registry.values()
        if name in (None, preset.name)
    ]
    if not found:
        wrong = fastpe.conventions.refusal(str(name), fastpe.grid_conventions)
        raise CommandError(f"NAME {with_options(wrong, ())}")
    print("\n\n".join(f"{kind}{preset}" for kind, preset in found))
