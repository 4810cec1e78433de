# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe identify``: the call that makes a table in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

import fastpe
from fastpe._cli import options
from fastpe._cli.files import named_arrays
from fastpe._cli.files.target import open_regular
from fastpe._cli.messages import CommandError

# Parts of names that tables of positions have in checkpoints.
_usual_parts = ("pos", "pe", "rope", "rotary", "cos", "sin", "freq")


def identify(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A .npy, .npz or .safetensors file.")],
    key: Annotated[list[str] | None, options.option("Name of the array; twice for cosines and sines.", "NAME")] = None,
) -> None:
    """Find the call that makes a table.

    TABLE has an encoding, the cells of a grid, or cosines and sines. The command exits with 1 if no call that it knows makes the table.
    """
    with open_regular(table) as stream:
        loaders = named_arrays.loaders(stream, table)
        found = fastpe.identify(*[loaders[name]() for name in _chosen(table, list(loaders), key or [])])
    print(found)
    if not found:
        raise typer.Exit(1)


def _chosen(file: str, names: list[str], keys: Sequence[str]) -> Sequence[str]:
    """The keys of one array, or of cosines and sines."""
    if len(keys) in (1, 2) and set(keys) <= set(names) - {""}:
        return keys
    if not keys and len(names) == 1:
        return names
    pair = sorted(names, key=lambda name: "cos" not in name)
    if not keys and len(names) == 2 and pair[1] == pair[0].replace("cos", "sin") != pair[0]:
        return pair
    likely = sorted(names, key=lambda name: not any(part in name.lower() for part in _usual_parts))
    given = f"--key is {' and '.join(keys)}, and {file}" if keys else file
    some = f"{len(names)} arrays ({', '.join(likely)})" if names != [""] else "one array without a name"
    raise CommandError(f"{given} has {some}; choose with --key NAME, or cosines and sines with --key COS --key SIN")
