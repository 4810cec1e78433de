# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe info``: the build, the machine, and the limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import fastpe


def collect() -> dict[str, Any]:
    """`fastpe.show_config`, the caches, and the limits."""
    return {
        **fastpe.show_config(),
        "caches": _caches(),
        "largest_position": 2**53,
        "dtypes": ["float16", "bfloat16", "float32", "float64"],
    }


def _caches() -> dict[str, str]:
    # Linux alone says this in files.
    sizes = {}
    for cache in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((cache / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            sizes[f"L{level}"] = size
    return sizes


def run(console: Console, *, as_json: bool) -> None:
    """Print it, as a table or as JSON."""
    facts = collect()
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    table = Table(box=None, show_header=False)
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), f"{value:,}" if type(value) is int else _as_text(value))
    console.print(table, highlight=False)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {content}" for name, content in value.items()) or "none"
    return str(value)
