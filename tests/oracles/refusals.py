# SPDX-License-Identifier: BSD-3-Clause
"""Calls that are refused: by an error of exactly one type that names the argument, before anything is written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

# The type of error and the arguments that its message must name, separated by spaces; and expressions that raise it.
Refused = Mapping[tuple[type[Exception], str], Sequence[str]]


def rows(refused: Refused) -> list[Any]:
    """For parametrize: an expression, its error, the arguments that are named."""
    return [pytest.param(call, error, named, id=call) for (error, named), calls in refused.items() for call in calls]


def each(call: str, values: str) -> list[str]:
    """The expression with each of the values, which are separated by bars, in place of "{}"."""
    return [call.replace("{}", value) for value in values.split(" | ")]


def naming(arguments: str) -> str:
    """A pattern for messages that name all these arguments as words, whatever else they say."""
    return "(?s)^" + "".join(rf"(?=.*(?<![\w.]){re.escape(name)}(?!\w))" for name in arguments.split())


def check_refused(call: str, error: type[Exception], arguments: str, names: dict[str, Any]) -> None:
    """The expression `call` raises `error`, which names `arguments`, and leaves every array in `names` as it was."""
    if re.search(r"\[\[[^\]]*\], \[", call) and np.lib.NumpyVersion(np.__version__) < "1.24.0":
        pytest.skip("this NumPy makes an array of objects out of rows of different lengths")
    before = [(array, array.tobytes()) for array in _arrays_in([*names.values()])]
    with pytest.raises(error, match=naming(arguments)) as caught:
        eval(call, names)
    assert caught.type is error
    assert all(array.tobytes() == data for array, data in before)


def _arrays_in(value: Any) -> Iterator[npt.NDArray[Any]]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _arrays_in(item)
    elif isinstance(value, dict):
        yield from _arrays_in([*value.values()])


class Tensor:
    """As of a library whose tensors NumPy makes no array of."""

    requires_grad = True

    def __array__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError("a message of its own")

    def __dlpack__(self, **_: Any) -> None:
        raise BufferError("another one")

    def numpy(self) -> None:
        raise NotImplementedError


class Module:
    """As of a library whose modules hold tables."""

    weight = Tensor()

    def state_dict(self) -> None:
        raise NotImplementedError
