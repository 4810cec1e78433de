# SPDX-License-Identifier: BSD-3-Clause
"""The .npy format, some rows at a time. Nothing is mapped: others may truncate a file."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy as np

from fastpe._cli.messages import CommandError, OptionError, naming, progress, say
from fastpe._cli.options import Addition, Array
from fastpe._cli.target import new_file, require_only_run

# More than NumPy's own limit for headers that it does not trust.
_longest_header = 1 << 14
# Small enough for the cache between reading and writing, large enough for threads.
block_bytes = 4 << 20


def read_header(stream: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape, whether it is in Fortran order, and the dtype of a file, which must be as long as its header says."""
    with naming(name, "a .npy file"):
        start = io.BytesIO(stream.read(_longest_header))
        major, _ = np.lib.format.read_magic(start)
        read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, fortran_order, dtype = read(start)
        np.broadcast_to(np.empty((), dtype), shape)  # which checks the shape
        size = os.fstat(stream.fileno()).st_size - start.tell()
        if dtype.hasobject:
            raise CommandError(f"{name} has Python objects, expected numbers; save an array of floats")
        if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != size:
            raise ValueError(f"it has {size} bytes of {dtype}, and is of shape {shape}")
        stream.seek(start.tell())
    return shape, fortran_order, dtype


def read(stream: IO[bytes], name: str, dtype: np.dtype[Any], count: int) -> Array:
    """Read the next elements."""
    with naming(name, "an array"):
        elements = np.fromfile(stream, dtype, count)
        if elements.size < count:
            raise CommandError(f"{name} is truncated: it promises more elements than follow; save it again")
        return elements


def load(stream: IO[bytes], name: str) -> Array:
    """Read the whole array."""
    shape, fortran_order, dtype = read_header(stream, name)
    return read(stream, name, dtype, math.prod(shape)).reshape(shape, order="F" if fortran_order else "C")


def as_dtype(elements: Array, dtype: np.dtype[Any]) -> Array:
    """Elements as another dtype; only the name of the type is missing in what NumPy saves of bfloat16."""
    if elements.dtype.kind != "V":
        return elements.astype(dtype, copy=False)
    if elements.dtype.str[1:] != "V2" or dtype.name != "bfloat16":
        raise CommandError(f"--dtype is {dtype}, and the elements are {elements.dtype}; convert them first")
    return elements.view(dtype)


def blocks(rows: int, row_bytes: int, quiet: bool) -> Iterator[range]:
    """Cut rows into blocks that fit into the cache, with a bar."""
    step = max(1, block_bytes // row_bytes)
    for start in progress(range(0, rows, step), quiet):
        yield range(start, min(start + step, rows))


def write(
    output: str, shape: tuple[int, ...], dtype: Any, pieces: Iterable[Array], no_clobber: bool, quiet: bool
) -> None:
    """Write a file of format version 1 from contiguous pieces of an array."""
    with new_file(output, [".npy"], no_clobber, quiet) as target:
        fields = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(target, fields)
        for piece in pieces:
            target.write(piece.tobytes())


def add(stream: IO[bytes], addition: Addition) -> None:
    """Add to a file's array, in the file itself or in a new one."""
    name, quiet = addition.source, addition.quiet
    if addition.keys:
        raise OptionError(f"--key is {addition.keys[0]}, and {name} is one array; leave --key out")
    shape, fortran_order, dtype = read_header(stream, name)
    if fortran_order:
        remedy = f"run numpy.save({name!r}, numpy.ascontiguousarray(numpy.load({name!r})))"
        raise CommandError(f"{name} is in Fortran order, expected C order; {remedy}")
    encoder, axis, result = addition.prepared(shape, dtype)
    first = encoder.convention.first_position + addition.offset

    def added() -> Iterator[Array]:
        for rows in blocks(math.prod(shape[:-1]), shape[-1] * max(dtype.itemsize, result.itemsize), quiet):
            x = as_dtype(read(stream, name, dtype, len(rows) * shape[-1]), result).reshape(-1, shape[-1])
            steps = np.arange(rows.start, rows.stop) // math.prod(shape[axis + 1 : -1]) % shape[axis]
            yield encoder.add_(x, positions=first + steps, **addition.factors)

    if addition.in_place and dtype.kind != "V" and dtype != result:
        raise OptionError(f"--in-place would change {name} from {dtype} to {result}; write a new file with -o")
    if addition.output is not None:
        write(addition.output, shape, result, added(), addition.no_clobber, quiet)
    else:
        _replace(stream, added(), name)
        if not quiet:
            say(f"added to {name}")


def _replace(stream: IO[bytes], pieces: Iterable[Array], name: str) -> None:
    """Change a file itself."""
    require_only_run(stream, name)
    done = 0
    try:
        for piece in pieces:
            stream.seek(-piece.nbytes, os.SEEK_CUR)
            stream.write(piece.tobytes())
            done += piece.nbytes
        stream.flush()
        os.fsync(stream.fileno())
    except BaseException:
        say(f"{name} may be partly changed: the first {done} bytes, and perhaps more; restore it from a copy")
        raise
