# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe identify``: the call that makes a table in a file."""

from __future__ import annotations

from collections.abc import Sequence

import fastpe
from fastpe._cli.errors import CommandError
from fastpe._cli.files import stored_arrays

_names_shown = 8
# Parts of names that tables of positions have in checkpoints.
_usual_parts = ("pos", "pe", "rope", "rotary", "cos", "sin", "freq")


def run(name: str, keys: Sequence[str]) -> bool:
    """Print what is found, and return whether anything is."""
    loaders = stored_arrays.loaders(name)
    arrays = [loaders[key]() for key in _chosen(name, list(loaders), keys)]
    found = fastpe.identify(*arrays)
    print(str(found).replace("as fastpe.identify(cos, sin)", "as --key COS --key SIN of one archive"))
    return bool(found.matches)


def _chosen(name: str, names: list[str], keys: Sequence[str]) -> Sequence[str]:
    """The keys of one array, or of cosines and sines."""
    if names == [""]:
        if keys:
            raise CommandError(f"--key chooses one of several arrays, and {name} is one array; leave it out")
        return names
    unknown = [key for key in keys if key not in names]
    if unknown:
        raise CommandError(f"--key is {unknown[0]}, expected one of {name}'s arrays: {_shown(names)}")
    if len(keys) > 2:
        raise CommandError(
            f"--key was given {len(keys)} times, expected once for a table, or twice for cosines and sines"
        )
    if keys or len(names) == 1:
        return keys or names
    if not names:
        raise CommandError(f"{name} holds no array; write it with numpy.savez")
    pairs = [(cos, cos.replace("cos", "sin")) for cos in names if "cos" in cos]
    if len(names) == 2 and pairs and set(pairs[0]) == set(names):
        return pairs[0]
    raise CommandError(
        f"{name} holds {len(names)} arrays ({_shown(names)}); choose with --key NAME, cosines and sines with two: "
        f"--key COS --key SIN"
    )


def _shown(names: list[str]) -> str:
    """The names, those first that a table may have."""
    likely = sorted(names, key=lambda name: not any(part in name.lower() for part in _usual_parts))
    return ", ".join(likely[:_names_shown]) + (", .." if len(names) > _names_shown else "")
