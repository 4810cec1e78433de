# SPDX-License-Identifier: BSD-3-Clause
"""Markdown tables, which also read well on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right_aligned: Iterable[int] = ()) -> str:
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    right = set(right_aligned)

    def text(cells: Sequence[str]) -> str:
        padded = (c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True)))
        return f"| {' | '.join(padded)} |"

    rule = "|".join("-" * (w + 1) + ":" if i in right else "-" * (w + 2) for i, w in enumerate(widths))
    return "\n".join([text(lines[0]), f"|{rule}|", *(text(line) for line in lines[1:])])


def seconds_text(seconds: float) -> str:
    if seconds < 1e-5:
        return f"{seconds * 1e9:.0f} ns"
    if seconds < 1e-2:
        return f"{seconds * 1e6:.4g} us"
    return f"{seconds * 1e3:.4g} ms"
