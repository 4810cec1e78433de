# SPDX-License-Identifier: BSD-3-Clause
"""The .npy format, a block at a time; and whole arrays, which ``rotary`` writes and ``identify`` reads.

Nothing is mapped: others may truncate a file.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import sys
from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from fastpe._cli.files.addition import Addition, Array, block_bytes, blocks
from fastpe._cli.files.target import new_file
from fastpe._cli.messages import Advance, CommandError, progress, reading, say

# More than NumPy's own limit for headers that it does not trust.
_longest_header = 1 << 14


class Header(NamedTuple):
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
    """Read the header of a file, which must be as long as the header says."""
    with reading(name, "a .npy file"):
        start = io.BytesIO(stream.read(_longest_header))
        major, _ = np.lib.format.read_magic(start)
        read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        header = Header(*read(start))
        extents, size = header.shape, os.fstat(stream.fileno()).st_size - start.tell()
        if len(extents) > 32 or any(isinstance(each, bool) or not 0 <= each <= sys.maxsize for each in extents):
            raise ValueError(f"its shape is {extents}")
        if header.dtype.hasobject or header.dtype.itemsize == 0 or header.byte_count != size:
            raise ValueError(f"it has {size} bytes of {header.dtype}, and is of shape {extents}")
        stream.seek(start.tell())
    return header


def read_array(stream: IO[bytes], header: Header, name: str) -> Array:
    """Read elements of the shape and type that a header says."""
    with reading(name, "an array"):
        count = math.prod(header.shape)
        elements = np.fromfile(stream, header.dtype, count)
        if elements.size < count:
            raise CommandError(f"{name} is truncated: it promises more elements than follow; write it anew")
        elements = elements.reshape(header.disk_shape)
    return elements.T if header.fortran_order else elements


def as_dtype(elements: Array, dtype: np.dtype[Any]) -> Array:
    """Elements as another dtype; only the name of the type is missing in what NumPy saves of bfloat16."""
    if elements.dtype.kind != "V":
        return elements.astype(dtype, copy=False)
    if elements.dtype.str[1:] != "V2" or dtype.name != "bfloat16":
        raise CommandError(f"--dtype is {dtype}, and the elements are {elements.dtype}; convert them first")
    return elements.view(dtype)


def bytes_of(elements: Array) -> memoryview:
    """The memory of a contiguous array; bfloat16 has no buffer of its own."""
    return elements.reshape(-1, order="A").view(np.uint8).data


def write(stream: IO[bytes], header: Header, elements: Iterable[Array], advance: Advance = lambda _: None) -> None:
    """Write a header, format version 1, and contiguous arrays of elements."""
    fields = {**header._asdict(), "descr": np.lib.format.dtype_to_descr(header.dtype)}
    del fields["dtype"]
    np.lib.format.write_array_header_1_0(stream, fields)
    for each in elements:
        stream.write(bytes_of(each))
        advance(each.nbytes)


def add(stream: IO[bytes], addition: Addition) -> int:
    """Add to a file's array, in the file itself or in a new one; the bytes that were written."""
    name = addition.source
    if addition.keys:
        raise CommandError(f"--key is {addition.keys[0]}, and {name} is one array; leave it out")
    header = read_header(stream, name)
    result = header._replace(dtype=addition.result_dtype(header.dtype))
    add_to = addition.adder(header.shape, result.dtype)

    def added() -> Iterator[Array]:
        limit = block_bytes // max(header.dtype.itemsize, result.dtype.itemsize)
        for ranges in blocks(header.disk_shape, limit):
            shape = tuple(stop - start for start, stop in ranges)
            block = as_dtype(read_array(stream, Header(shape, False, header.dtype), name), result.dtype)
            add_to(*((block.T, ranges[::-1]) if header.fortran_order else (block, ranges)))
            yield block

    with progress(result.byte_count, quiet=addition.quiet) as advance:
        if addition.output is not None:
            with new_file(addition.output, [".npy"], addition.no_clobber, result.byte_count) as target:
                write(target, result, added(), advance)
        elif header.dtype.kind != "V" and header.dtype != result.dtype:
            raise CommandError(f"{name} has {header.dtype}, and {result.dtype} needs a new file; write one with -o")
        else:
            _require_lock(stream, name)
            _replace(stream, added(), name, advance)
    return result.byte_count


def _require_lock(stream: IO[bytes], name: str) -> None:
    """Refuse a file that another run is changing. Windows and some file systems have no such locks."""
    with contextlib.suppress(ModuleNotFoundError, OSError):
        import fcntl

        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(f"{name} is being changed in place by another run; wait until it has ended") from None


def _replace(stream: IO[bytes], elements: Iterable[Array], name: str, advance: Advance) -> None:
    done = 0
    try:
        for block in elements:
            stream.seek(-block.nbytes, os.SEEK_CUR)
            stream.write(bytes_of(block))
            done += block.nbytes
            advance(block.nbytes)
        stream.flush()
        os.fsync(stream.fileno())
    except BaseException:
        say(f"{name} may be partly changed: the first {done} bytes, and perhaps more; restore it from a copy")
        raise
