# SPDX-License-Identifier: BSD-3-Clause
"""What calls take for an array, for type checkers: NumPy's, and those of other libraries in the processor's memory."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, TypeVar, cast

import numpy.typing as npt


class HasDLPack(Protocol):
    """As tensors of torch, arrays of JAX and OrtValues of ONNX Runtime."""

    def __dlpack__(self, *args: Any, **options: Any) -> Any: ...


class HasArrayInterface(Protocol):
    """As images of Pillow."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


class HasBuffer(Protocol):
    """As memoryviews and array.array."""

    def __buffer__(self, flags: int, /) -> memoryview: ...


ArrayLike: TypeAlias = npt.ArrayLike | HasDLPack  # what is only read
WritableArray: TypeAlias = npt.NDArray[Any] | HasDLPack | HasArrayInterface | HasBuffer  # what is written to
Given = TypeVar("Given", bound=WritableArray)  # such an object, which a call returns


def returned(out: WritableArray | None, result: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """What a call returns: the very object that it was given, or the array that it made. Its type is that of NumPy's."""
    return result if out is None else cast("npt.NDArray[Any]", out)
