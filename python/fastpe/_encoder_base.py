# SPDX-License-Identifier: BSD-3-Clause
"""What the two encoders have in common: values that never change, and are compared, copied and shown as such."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt


class EncoderBase:
    """The part in Python of an encoder of the core. Its attributes are set once, by `_set`.

    `_compared` names those that two equal objects have in common. `_arguments` are those of the constructor, the width
    first; copies are made of them. `_defaults` are those that are not None.
    """

    __slots__ = ()
    _compared: tuple[str, ...]
    _arguments: dict[str, Any]
    _defaults: ClassVar[dict[str, Any]]

    if TYPE_CHECKING:

        def _frequencies(self) -> npt.NDArray[np.float64]: ...

    @property
    def arguments(self) -> dict[str, Any]:
        """All arguments of the constructor, in a new dict: an equal encoder is made of them.

        Examples
        --------
        >>> import fastpe
        >>> rope = fastpe.RotaryEmbedding(8, interleaved=True, base=500000)
        >>> fastpe.RotaryEmbedding(**rope.arguments | {"base": 10000.0})
        RotaryEmbedding(8, interleaved=True, base=10000.0)
        """
        return copy.deepcopy(self._arguments)

    @property
    def frequencies(self) -> npt.NDArray[np.float64]:
        """Radians per position, float64 ``[number of frequencies]``, each rounded to nearest; read-only.

        Examples
        --------
        >>> import fastpe
        >>> fastpe.PositionalEncoding(4).frequencies, fastpe.RotaryEmbedding(4, interleaved=True).frequencies
        (array([1.  , 0.01]), array([1.  , 0.01]))
        """
        result = self._frequencies()
        result.flags.writeable = False
        return result

    @property
    def wavelengths(self) -> npt.NDArray[np.float64]:
        """Positions per turn, ``2 pi / frequencies``, float64; infinite for a frequency of 0.

        Examples
        --------
        >>> import fastpe
        >>> fastpe.PositionalEncoding(2).wavelengths, fastpe.RotaryEmbedding(2, interleaved=True).wavelengths
        (array([6.28318531]), array([6.28318531]))
        """
        with np.errstate(divide="ignore"):
            return 2.0 * np.pi / self._frequencies()

    def _require_new(self) -> None:
        """Refuse a second call of ``__init__``."""
        if hasattr(self, self._compared[0]):
            name = type(self).__name__
            raise AttributeError(f"{name} is immutable: it cannot be initialised again; make a new one")

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def _value(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._compared)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EncoderBase) or not (isinstance(other, type(self)) or isinstance(self, type(other))):
            return NotImplemented
        return self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}; make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot delete {name!r}")

    def __repr__(self) -> str:
        (_, width), *others = self._arguments.items()
        given = [f"{name}={value!r}" for name, value in others if value != self._defaults.get(name)]
        return f"{type(self).__name__}({', '.join([repr(width), *given])})"

    def __getstate__(self) -> Any:
        """What it was made with; tables are made again."""
        return self._arguments

    def __setstate__(self, state: Any) -> None:
        """Make the encoder of a copy."""
        self.__init__(**state)  # type: ignore[misc]
