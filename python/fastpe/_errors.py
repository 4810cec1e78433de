# SPDX-License-Identifier: BSD-3-Clause
"""Errors, worded once: the compiled core words its own in the same way."""

from __future__ import annotations

import re
from collections.abc import Mapping

_longest_found = 1000


def refused(kind: type[Exception], argument: str, found: str, expected: str = "", remedy: str = "") -> Exception:
    """An exception to raise: one sentence of these fields, which are also in its attribute `_fields`.

    `found` may begin with the place of an element, as in "[2, 7] is nan".
    """
    found = found if len(found) <= _longest_found else f"{found[:_longest_found]}.."
    gap = "" if not argument or found.startswith("[") else " "
    error = kind(f"{argument}{gap}{found}{', expected ' if expected else ''}{expected}{'; ' if remedy else ''}{remedy}")
    vars(error)["_fields"] = {"argument": argument, "found": found, "expected": expected, "remedy": remedy}
    return error


def a_type(value: object) -> str:
    """The type of a value, as "an int"."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' or name == 'ndarray' else 'a'} {name}"


def renamed(error: Exception, names: Mapping[str, str]) -> Exception:
    """The same error of a caller whose arguments have other names."""
    fields = getattr(error, "_fields", None)
    if fields is None:
        return error
    argument = re.sub(r"\w+", lambda name: names.get(name[0], name[0]), fields["argument"])
    return refused(type(error), **{**fields, "argument": argument})
