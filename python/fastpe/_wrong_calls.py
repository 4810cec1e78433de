# SPDX-License-Identifier: BSD-3-Clause
"""What functions say of a call that does not fit their signature: in Python, as in the core."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from fastpe import _core

_Function = TypeVar("_Function", bound=Callable[..., Any])


def explained(function: _Function) -> _Function:
    """Decorate a function so that a call with wrong arguments tells which ones are meant."""
    return cast(_Function, functools.update_wrapper(_core.Explained(function, _explanation), function))


def _explanation(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str | None:
    """What is wrong with the arguments; None if the error says it, or comes from within."""
    signature = inspect.signature(function)
    with contextlib.suppress(TypeError):
        signature.bind(*arguments, **keywords)
        return None
    owner, _, name = function.__qualname__.rpartition(".")
    name = owner if name == "__init__" else name
    parameters = list(signature.parameters.values())[1 if owner else 0 :]
    given = arguments[1 if owner else 0 :]
    known = [each.name for each in parameters if each.kind is not each.VAR_POSITIONAL]
    unexpected = next((keyword for keyword in keywords if keyword not in known), None)
    if unexpected is not None:
        return _core.unexpected_argument(name, unexpected, known)
    has_others = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    by_place = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    required = [each.name for each in parameters if each.default is each.empty and each.name in known]
    missing = next((each for each in required if each not in {*by_place[: len(given)], *keywords}), None)
    if missing is not None:
        message = _core.missing_argument(name, missing)
        if has_others and len(given) > len(by_place):
            message += f"; what has no name is another array: write {missing}=.."
        return message
    if len(given) > len(by_place):
        return _core.too_many_arguments(name, len(by_place), len(given))
    return None
