# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe conventions``: what the conventions are, who uses them, and where that was read."""

from __future__ import annotations

import fastpe
from fastpe._arguments import nearest
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
        try:
            fastpe.conventions.find(name)
        except ValueError as error:
            message = with_options(error, ()).removeprefix("convention")
            # The command knows the names of grids, too.
            near = nearest(str(name), fastpe.grid_conventions)
            names = f"expected one of {', '.join(fastpe.conventions)}"
            all_names = ", ".join(dict.fromkeys([*fastpe.conventions, *fastpe.grid_conventions]))
            message = message.replace(names, f"did you mean {near!r}?" if near else f"expected one of {all_names}")
            raise CommandError(f"NAME{message}") from None
    print("\n\n".join(f"{kind}{preset}" for kind, preset in found))
