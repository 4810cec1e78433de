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


def first(*values: Value) -> Value:
    """The first that is not null, or else the last."""
    return next((value for value in values if value.found is not None), values[-1])


def wrong(
    path: Path, found: str, expected: str = "", remedy: str = "", kind: type[Exception] = ValueError
) -> Exception:
    """An error to raise about one key of the config."""
    return refused(kind, path_text(path), found, expected, remedy)


def not_read(path: Path, value: Any, remedy: str) -> Exception:
    """An error to raise about a value that another system may read."""
    return wrong(path, f"is {shown(value)}, which transformers does not read here", remedy=remedy)


def read_number(value: Value) -> float:
    """A finite number of the config."""
    number = _of_kind(value, (int, float), "a number")
    if not abs(number) <= sys.float_info.max:
        raise wrong(value.path, f"is {shown(number)}", "a finite number")
    return float(number)


def read_size(value: Value, most: int = _largest_size) -> int:
    """An int of the config, from 1."""
    number: int = _of_kind(value, int, "an int")
    if not 1 <= number <= most:
        raise wrong(value.path, f"is {shown(number)}", f"1 to {most}")
    return number


def _of_kind(value: Value, kinds: Any, expected: str) -> Any:
    if isinstance(value.found, bool) or not isinstance(value.found, kinds):
        remedy = "write it without quotes" if isinstance(value.found, str) else ""
        raise wrong(value.path, f"is {shown(value.found)}", expected, remedy, TypeError)
    return value.found
