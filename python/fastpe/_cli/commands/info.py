# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe info`` and ``fastpe conventions``: what there is."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import fastpe
from fastpe._cli import options
from fastpe._cli.messages import CommandError


def info(as_json: Annotated[bool, options.option("Print JSON for other programs.", None, "--json")] = False) -> None:
    """Show the build, the machine and the limits."""
    facts: dict[str, Any] = {
        **fastpe.show_config(),
        "largest_position": 2**53,
        "dtypes": ["float16", "bfloat16", "float32", "float64"],
    }
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    table = Table(box=None, show_header=False)
    for name, value in facts.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if isinstance(value, dict):
            text = ", ".join(f"{key} {content}" for key, content in value.items())
        table.add_row(name.replace("_", " "), text)
    Console().print(table, highlight=False)


def conventions(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", autocompletion=options.among(fastpe.conventions))
    ] = None,
) -> None:
    """List the conventions, or show the one called NAME."""
    found = [
        f"{kind}{preset}"
        for kind, presets in (("", fastpe.conventions), ("grid ", fastpe.grid_conventions))
        for preset in presets.values()
        if name in (None, preset.name)
    ]
    if not found:
        known = ", ".join([*fastpe.conventions, *fastpe.grid_conventions])
        raise CommandError(f"NAME is {name}, expected one of {known}")
    print("\n\n".join(found))
