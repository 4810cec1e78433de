# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe info``: the build, the machine, and the limits."""

from __future__ import annotations

import json
import os
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


def configuration() -> str:
    """What matters for a time, in one line."""
    config = fastpe.show_config()
    threads = config["threads"]
    return (
        f"fastpe {config['version']} ({config['compiler']}), {config['instruction_set']}, "
        f"{threads} thread{'' if threads == 1 else 's'}, NumPy {config['numpy']}, {config['machine']}"
    )


def busy_note() -> str | None:
    """A warning about times where other programs compete for the processors."""
    processors = os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load < 0.75 * processors:
        return None
    return (
        f"The machine is busy (load {load:.1f} on {processors} processors): threads wait for one, and times say little."
    )
