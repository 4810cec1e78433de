# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe info`` and ``fastpe conventions``: what there is."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

import fastpe
from fastpe._cli import options


def info(as_json: Annotated[bool, options.option("Print JSON for other programs.", None, "--json")] = False) -> None:
    """Show the build, the machine and the limits."""
    dtypes = ["float16", "bfloat16", "float32", "float64"]
    facts: dict[str, Any] = {**fastpe.show_config(), "largest_position": 2**53, "dtypes": dtypes}
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    for name, value in facts.items():
        print(f"{name}: {', '.join(value) if isinstance(value, list) else value}")


def conventions(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", autocompletion=options.among(fastpe.conventions))
    ] = None,
) -> None:
    """List the conventions, or show the one called NAME."""
    found = [str(preset) for preset in fastpe.conventions.values() if name in (None, preset.name)]
    found += [f"grid {preset}" for preset in fastpe.grid_conventions.values() if name in (None, preset.name)]
    if not found:
        fastpe.conventions.find(name)  # which says what is probably meant
    print("\n\n".join(found))
