# SPDX-License-Identifier: BSD-3-Clause
"""The .npy format as a stream: a header, then the elements."""

from __future__ import annotations

import dataclasses
import io
import math
import sys
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from fastpe._cli.errors import CommandError, first_line

_format = np.lib.format

# NumPy's own limit for headers that it does not trust.
_longest_header = 10000


@dataclasses.dataclass(frozen=True)
class Header:
    """What a .npy file says about its elements."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]

    @property
    def disk_shape(self) -> tuple[int, ...]:
        """The shape whose C order is the order of the elements in the file."""
        return self.shape[::-1] if self.fortran_order else self.shape

    @property
    def byte_count(self) -> int:
        """Bytes after the header."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes], name: str) -> Header:
    """Read a header and leave the stream at the first element; objects are refused, never unpickled."""
    start = stream.read(8)
    if start[:6] != _format.MAGIC_PREFIX or len(start) < 8:
        raise CommandError(f"{name} is not a .npy file: it starts with {start!r}; write it with numpy.save")
    version = start[6], start[7]
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise CommandError(
            f"{name} has .npy version {version[0]}.{version[1]}, expected 1.0, 2.0 or 3.0; write it anew"
        )
    length_bytes = stream.read(2 if version == (1, 0) else 4)
    length = int.from_bytes(length_bytes, "little")
    if length > _longest_header:
        raise CommandError(f"{name} has a header of {length} bytes, expected at most {_longest_header}; write it anew")
    # Version 3 differs from 2 in the encoding of field names alone, and arrays with fields are refused later.
    read = _format.read_array_header_1_0 if version == (1, 0) else _format.read_array_header_2_0
    try:
        shape, fortran_order, dtype = read(io.BytesIO(length_bytes + stream.read(length)))
    except Exception as error:  # noqa: BLE001
        # NumPy evaluates the header as a Python literal, and hostile ones fail in more ways than it names.
        raise CommandError(f"{name} has a damaged header: {first_line(error)}; write it anew") from None
    if any(extent < 0 or isinstance(extent, bool) for extent in shape):
        raise CommandError(f"{name} has a damaged header: shape {list(shape)}; write it anew")
    if math.prod(max(extent, 1) for extent in shape) * max(dtype.itemsize, 1) > sys.maxsize:
        raise CommandError(f"{name} has shape {list(shape)}, which no array can have; write it anew")
    if dtype.hasobject:
        raise CommandError(f"{name} holds Python objects, expected numbers; save it as a numeric array")
    return Header(shape, fortran_order, dtype)


def write_header(stream: IO[bytes], header: Header) -> None:
    """Write a header, format version 1."""
    fields = {
        "descr": _format.dtype_to_descr(header.dtype),
        "fortran_order": header.fortran_order,
        "shape": header.shape,
    }
    _format.write_array_header_1_0(stream, fields)


def read_elements(stream: IO[bytes], elements: npt.NDArray[Any], name: str) -> None:
    """Fill a contiguous array from the stream."""
    unread = elements.reshape(-1).view(np.uint8).data
    while len(unread):
        count = stream.readinto(unread)  # type: ignore[attr-defined]
        if not count:
            raise CommandError(f"{name} is truncated: its header promises more elements than follow; write it anew")
        unread = unread[count:]


def read_array(stream: IO[bytes], header: Header, name: str) -> npt.NDArray[Any]:
    """Read the elements that follow a header into a new array."""
    elements = np.empty(header.disk_shape, header.dtype)
    read_elements(stream, elements, name)
    return elements.T if header.fortran_order else elements


def write_elements(stream: IO[bytes], elements: npt.NDArray[Any]) -> None:
    """Write all bytes of a contiguous array."""
    stream.write(elements.reshape(-1).view(np.uint8).data)
