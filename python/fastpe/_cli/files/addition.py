# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on one array, a block at a time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import IO, Any

import numpy as np
import numpy.typing as npt

import fastpe
from fastpe._cli.errors import CommandError, with_options
from fastpe._cli.files import blocks, npy_stream
from fastpe._cli.options import EncodingOptions
from fastpe._cli.progress import Progress


@dataclasses.dataclass(frozen=True)
class Addition:
    """What ``fastpe add`` does to one array."""

    encoding: EncodingOptions
    seq_axis: int = -2
    scale: float = 1.0
    alpha: float = 1.0
    dtype: np.dtype[Any] | None = None

    def check(self, header: npy_stream.Header, name: str) -> ArrayWork:
        """Check everything that can be checked without reading an element."""
        dtype = self._result_dtype(header, name)
        axes = len(header.shape)
        if axes < 2:
            raise CommandError(
                f"{name} has shape {list(header.shape)}, expected at least two axes, [.., L, d_model]; save x[None] "
                f"for one row"
            )
        seq_axis = self.seq_axis + axes if self.seq_axis < 0 else self.seq_axis
        if not 0 <= seq_axis < axes - 1:
            raise CommandError(
                f"--seq-axis is {self.seq_axis}, expected an axis of {name}, {list(header.shape)}, other than the last"
            )
        result = npy_stream.Header(header.shape, header.fortran_order, dtype)
        if not math.prod(header.shape):
            return ArrayWork(self, header, result, seq_axis, None, name)
        try:
            encoder = self.encoding.encoder(header.shape[-1])
            self.encoding.require_positions(encoder, header.shape[seq_axis])
            work = ArrayWork(self, header, result, seq_axis, encoder, name)
            # The core checks the axes of an array without elements, too.
            nothing = np.empty((0,) * (axes - 1) + header.shape[-1:], dtype)
            work.add_(nothing, tuple((0, extent) for extent in nothing.shape))
        except ValueError as error:
            raise CommandError(f"{name}: {with_options(error, ('convention', 'base', 'offset'))}") from None
        return work

    def added(self, vectors: npt.NDArray[Any], **where: Any) -> npt.NDArray[Any]:
        """A new array of vectors [N, d_model] with the encoding added, at the positions that `where` says."""
        return self.encoding.encoder(vectors.shape[1]).add(
            vectors, scale=self.scale, alpha=self.alpha, num_threads=self.encoding.num_threads, **where
        )

    def _result_dtype(self, header: npy_stream.Header, name: str) -> np.dtype[Any]:
        found = header.dtype
        if self.dtype is not None and found.kind == "V" and found.names is None and found.itemsize == 2:
            # NumPy saves bfloat16 as two nameless bytes.
            if self.dtype.name != "bfloat16":
                raise CommandError(
                    f"{name} holds 2-byte elements without a type; if they are bfloat16, give --dtype bfloat16"
                )
            return self.dtype
        if found.kind != "f" or found.itemsize not in (2, 4, 8):
            is_short = found.kind == "V" and found.itemsize == 2
            hint = "if it is bfloat16, give --dtype bfloat16" if is_short else "save it with .astype('float32')"
            raise CommandError(f"{name} has dtype {found}, expected float16, float32 or float64; {hint}")
        return found.newbyteorder("=") if self.dtype is None else self.dtype


@dataclasses.dataclass(frozen=True)
class ArrayWork:
    """One array's work, checked: what is read, what is written."""

    addition: Addition
    source: npy_stream.Header
    result: npy_stream.Header
    seq_axis: int
    encoder: fastpe.PositionalEncoding | None
    name: str

    def run(self, source: IO[bytes], target: IO[bytes], progress: Progress) -> None:
        """Read the elements of `source`, write `target` whole."""
        npy_stream.write_header(target, self.result)
        self._each_block(source, lambda block: npy_stream.write_elements(target, block), progress)
        if source.read(1):
            raise CommandError(f"{self.name} has bytes after its array, expected one array per file")

    def require_same_dtype(self, why: str) -> None:
        """Refuse what would change the size or the header."""
        if self.source.dtype != self.result.dtype and self.source.dtype.kind != "V":
            raise CommandError(
                f"{self.name} holds {self.source.dtype.str}, and {self.result.dtype.str} would be written: {why}"
            )

    def run_in_place(self, stream: IO[bytes], progress: Progress) -> None:
        """Replace the elements of one file, which a kill leaves partly done."""

        def write_back(block: npt.NDArray[Any]) -> None:
            stream.seek(-block.nbytes, 1)
            npy_stream.write_elements(stream, block)

        self._each_block(stream, write_back, progress)

    def _each_block(self, source: IO[bytes], write: Callable[[npt.NDArray[Any]], object], progress: Progress) -> None:
        dtype = self.source.dtype
        element_limit = blocks.block_bytes // max(dtype.itemsize, self.result.dtype.itemsize)
        # One buffer for all blocks, made by the first, which is the largest.
        elements: npt.NDArray[Any] | None = None
        for block in blocks.blocks(self.source.disk_shape, element_limit):
            shape = tuple(stop - start for start, stop in block)
            count = math.prod(shape)
            if elements is None:
                elements = np.empty(count, dtype)
            raw = elements[:count]
            npy_stream.read_elements(source, raw, self.name)
            converted = self.converted(raw)
            view = converted.reshape(shape)
            if self.source.fortran_order:
                self.add_(view.T, block[::-1])
            else:
                self.add_(view, block)
            write(converted)
            progress(raw.nbytes)

    def converted(self, raw: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Elements as the result's dtype: the same memory if only the type's name is missing."""
        if raw.dtype == self.result.dtype:
            return raw
        return raw.view(self.result.dtype) if raw.dtype.kind == "V" else raw.astype(self.result.dtype)

    def add_(self, view: npt.NDArray[Any], ranges: blocks.Block) -> None:
        """Add to a part of the array, in memory, that covers these ranges of its axes."""
        assert self.encoder is not None
        encoding = self.addition.encoding
        self.encoder.add_(
            view,
            seq_axis=self.seq_axis,
            offset=encoding.offset + ranges[self.seq_axis][0],
            channels=ranges[-1],
            scale=self.addition.scale,
            alpha=self.addition.alpha,
            num_threads=encoding.num_threads,
        )
