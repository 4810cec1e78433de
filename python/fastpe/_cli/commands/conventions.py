# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe conventions``: what the conventions are, who uses them, and where that was read."""

from __future__ import annotations

import fastpe


def run(name: str | None) -> None:
    """Print one of them, or all."""
    chosen = list(fastpe.conventions.values()) if name is None else [fastpe.conventions.find(name)]
    print("\n\n".join(map(str, chosen)))
