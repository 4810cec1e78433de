# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of a config, and errors that name them by their place in the file."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from fastpe._arguments import shown
from fastpe._config.file import Path, path_text
from fastpe._errors import refused

# More columns or heads than any model has: products of such numbers stay exact.
_largest_size = 2**31


class Value(NamedTuple):
    """Something that a config says, and where it says it."""

    found: Any
    path: Path


def wrong(
    path: Path, found: str, expected: str = "", remedy: str = "", kind: type[Exception] = ValueError
) -> Exception:
    """An error to raise about one key of the config."""
    return refused(kind, path_text(path), found, expected, remedy)


def read_number(value: Value) -> float:
    """A finite number of the config."""
    number, path = value
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        remedy = "write it without quotes" if isinstance(number, str) else ""
        raise wrong(path, f"is {shown(number)}", "a number", remedy, TypeError)
    if not abs(number) <= sys.float_info.max:
        raise wrong(path, f"is {shown(number)}", "a finite number")
    return float(number)


def read_size(value: Value, most: int = _largest_size) -> int:
    """An int of the config, from 1."""
    number, path = value
    if isinstance(number, bool) or not isinstance(number, int):
        remedy = "write it without quotes" if isinstance(number, str) else ""
        raise wrong(path, f"is {shown(number)}", "an int", remedy, TypeError)
    if not 1 <= number <= most:
        raise wrong(path, f"is {shown(number)}", f"1 to {most}")
    return number
