# SPDX-License-Identifier: BSD-3-Clause
"""Layouts whose heads consist of parts rotate all of them, or none: an argument's own code runs before the first write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastpe

_layout = fastpe.rotary_layouts["gemma4_vision"]


class _Once:
    """Converts once; a second conversion raises."""

    def __init__(self, value: Any) -> None:
        self._value, self._is_converted = value, False

    def _converted(self) -> Any:
        if self._is_converted:
            raise MemoryError("converted twice")
        self._is_converted = True
        return self._value

    def __index__(self) -> int:
        return int(self._converted())

    def __array__(self, dtype: Any = None, copy: Any = None) -> npt.NDArray[Any]:
        return np.array(self._converted(), dtype)


_arguments: dict[str, tuple[Callable[[], Any], Any]] = {
    "mask": (lambda: _Once([True, False, True, True, True, True]), [True, False, True, True, True, True]),
    "lengths": (lambda: _Once(4), 4),
    "num_threads": (lambda: _Once(1), 1),
    "seq_axis": (lambda: _Once(-2), -2),
    "positions": (lambda: _Once(_layout.positions((2, 3))), _layout.positions((2, 3))),
}


@pytest.mark.parametrize("argument", _arguments)
def test_each_argument_is_converted_once(argument: str) -> None:
    make, plain = _arguments[argument]
    q = np.random.default_rng(0).standard_normal((1, 4, 6, 64)).astype(np.float32)
    expected, options = q.copy(), {"positions": _layout.positions((2, 3))}
    _layout.rotate_(expected, **{**options, argument: plain})
    assert not np.array_equal(q[..., 32:], expected[..., 32:])
    given = {**options, argument: make()}
    np.testing.assert_array_equal(_layout.rotate(q, **{**options, argument: make()}), expected)
    assert _layout.rotate_(q, **given) is q
    np.testing.assert_array_equal(q, expected)


@pytest.mark.parametrize("argument", _arguments)
def test_a_conversion_that_fails_leaves_every_part(argument: str) -> None:
    q = np.ones((1, 4, 6, 64), np.float32)
    failing = _arguments[argument][0]()
    failing._is_converted = True
    with pytest.raises((MemoryError, TypeError)):
        _layout.rotate_(q, **{"positions": _layout.positions((2, 3)), argument: failing})
    assert (q == 1).all()
