# SPDX-License-Identifier: BSD-3-Clause
"""Remedies that messages name, and what follows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

ERRORS = (TypeError, ValueError, KeyError, IndexError, AttributeError, OSError)


def evaluating(names: Callable[[], Mapping[str, Any]]) -> Callable[[str], str]:
    """What tries an expression, with new names each time, and returns what it was told; nothing if it worked."""

    def attempt(expression: str) -> str:
        try:
            eval(expression, dict(names()))
        except ERRORS as error:
            return str(error)
        return ""

    return attempt


def check_remedy(attempt: Callable[[str], str], wrong: str, remedy: str, remedied: str) -> None:
    """A wrong attempt is told the remedy, in one line, and what follows the remedy works."""
    message = attempt(wrong)
    assert message, f"{wrong} is no error"
    assert remedy in message
    assert "\n" not in message
    assert attempt(remedied) == ""
