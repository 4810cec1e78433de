# SPDX-License-Identifier: BSD-3-Clause
"""Plans that never change: equal by value, and hashable."""

from __future__ import annotations

from typing import Any


class Immutable:
    """An object whose attributes are set once, by ``object.__setattr__``."""

    __slots__ = ()

    def _value(self) -> tuple[Any, ...]:
        """What two equal objects have in common."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Immutable) or not (isinstance(other, type(self)) or isinstance(self, type(other))):
            return NotImplemented
        return self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}; make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot delete {name!r}")
