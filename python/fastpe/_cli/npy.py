# SPDX-License-Identifier: BSD-3-Clause
"""The .npy format, a block at a time. Nothing is mapped: others may truncate a file."""

from __future__ import annotations

import contextlib
import io
import math
import os
from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from fastpe._cli.messages import CommandError, progress, reading, say
from fastpe._cli.options import Addition, Array, Block
from fastpe._cli.target import new_file

# More than NumPy's own limit for headers that it does not trust.
_longest_header = 1 << 14
# Small enough for the cache between reading and writing, large enough for threads.
block_bytes = 4 << 20


class Header(NamedTuple):
    """What a .npy file says about its elements."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]

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
        size = os.fstat(stream.fileno()).st_size - start.tell()
        np.broadcast_to(np.empty((), header.dtype), header.shape)  # which checks the shape
        if header.dtype.hasobject or header.dtype.itemsize == 0 or header.byte_count != size:
            raise ValueError(f"it has {size} bytes of {header.dtype}, and is of shape {header.shape}")
        stream.seek(start.tell())
    return header


def read_array(stream: IO[bytes], header: Header, name: str) -> Array:
    """Read elements of the shape and type that a header says."""
    with reading(name, "an array"):
        count = math.prod(header.shape)
        elements = np.fromfile(stream, header.dtype, count)
        if elements.size < count:
            raise CommandError(f"{name} is truncated: it promises more elements than follow; write it anew")
        return elements.reshape(header.shape, order="F" if header.fortran_order else "C")


def read_blocks(stream: IO[bytes], header: Header, name: str, element_limit: int) -> Iterator[tuple[Array, Block]]:
    """Read an array in C order in contiguous blocks, each with its range on each axis."""
    for ranges in blocks(header.shape, element_limit):
        shape = tuple(stop - start for start, stop in ranges)
        yield read_array(stream, header._replace(shape=shape), name), ranges


def blocks(shape: tuple[int, ...], element_limit: int) -> Iterator[Block]:
    """Cut an array in C order into contiguous blocks of at most `element_limit` elements."""
    row = math.prod(shape[1:])
    step = max(1, element_limit // max(row, 1))
    # A file may claim any shape: the blocks are made one by one.
    for start in range(0, shape[0] if row else 0, step):
        for rest in blocks(shape[1:], element_limit) if row > element_limit else [tuple((0, n) for n in shape[1:])]:
            yield ((start, min(start + step, shape[0])), *rest)


def as_dtype(elements: Array, dtype: np.dtype[Any]) -> Array:
    """Elements as another dtype; only the name of the type is missing in what NumPy saves of bfloat16."""
    if elements.dtype.kind != "V":
        return elements.astype(dtype, copy=False)
    if elements.dtype.str[1:] != "V2" or dtype.name != "bfloat16":
        raise CommandError(f"--dtype is {dtype}, and the elements are {elements.dtype}; convert them first")
    return elements.view(dtype)


def _bytes(elements: Array) -> memoryview:
    """The memory of a contiguous array; bfloat16 has no buffer of its own."""
    return elements.reshape(-1).view(np.uint8).data


def write(output: str, header: Header, elements: Iterable[Array], no_clobber: bool, quiet: bool) -> None:
    """Write a file of format version 1 from contiguous arrays of elements."""
    with new_file(output, [".npy"], no_clobber, quiet) as target:
        fields = {**header._asdict(), "descr": np.lib.format.dtype_to_descr(header.dtype)}
        del fields["dtype"]
        np.lib.format.write_array_header_1_0(target, fields)
        for each in progress(elements, header.byte_count, quiet):
            target.write(_bytes(each))


def add(stream: IO[bytes], addition: Addition) -> None:
    """Add to a file's array, in the file itself or in a new one."""
    name = addition.source
    if addition.keys:
        raise CommandError(f"--key is {addition.keys[0]}, and {name} is one array; leave it out")
    header = read_header(stream, name)
    result = header._replace(dtype=addition.result_dtype(header.dtype))
    add_to = addition.adder(header.shape, result.dtype)
    # In the file, an array in Fortran order is its transpose in C order.
    axes = slice(None, None, -1 if header.fortran_order else 1)
    stored = Header(header.shape[axes], False, header.dtype)

    def added() -> Iterator[Array]:
        for block, ranges in read_blocks(
            stream, stored, name, block_bytes // max(header.dtype.itemsize, result.dtype.itemsize)
        ):
            block = as_dtype(block, result.dtype)
            add_to(block.T if header.fortran_order else block, ranges[axes])
            yield block

    if addition.output is not None:
        write(addition.output, result, added(), addition.no_clobber, addition.quiet)
    elif header.dtype.kind != "V" and header.dtype != result.dtype:
        raise CommandError(f"{name} has {header.dtype}, and {result.dtype} needs a new file; write one with -o")
    else:
        _require_lock(stream, name)
        _replace(stream, progress(added(), result.byte_count, addition.quiet), name)
        if not addition.quiet:
            say(f"added to {name}")


def _require_lock(stream: IO[bytes], name: str) -> None:
    """Refuse a file that another run is changing. Windows and some file systems have no such locks."""
    with contextlib.suppress(ModuleNotFoundError, OSError):
        import fcntl

        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(f"{name} is being changed in place by another run; wait until it has ended") from None


def _replace(stream: IO[bytes], elements: Iterable[Array], name: str) -> None:
    done = 0
    try:
        for block in elements:
            stream.seek(-block.nbytes, os.SEEK_CUR)
            stream.write(_bytes(block))
            done += block.nbytes
        stream.flush()
        os.fsync(stream.fileno())
    except BaseException:
        say(f"{name} may be partly changed: the first {done} bytes, and perhaps more; restore it from a copy")
        raise
