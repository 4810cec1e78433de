# SPDX-License-Identifier: BSD-3-Clause
"""What ``fastpe add`` does to an array, whatever file it is in, and how an array is cut into blocks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe import PositionalEncoding
from fastpe._cli.messages import CommandError

Array = npt.NDArray[Any]
Block = tuple[tuple[int, int], ...]

# Small enough for the cache between reading and writing, large enough for threads.
block_bytes = 4 << 20


def blocks(shape: tuple[int, ...], element_limit: int) -> Iterator[Block]:
    """Cut an array in C order into contiguous blocks of at most `element_limit` elements: one range for each axis.

    Examples
    --------
    >>> list(blocks((2, 3), 2))
    [((0, 1), (0, 2)), ((0, 1), (2, 3)), ((1, 2), (0, 2)), ((1, 2), (2, 3))]
    """
    row = math.prod(shape[1:])
    step = max(1, element_limit // max(row, 1))
    # A file may claim any shape: the blocks are made one by one.
    for start in range(0, shape[0] if row else 0, step):
        for rest in blocks(shape[1:], element_limit) if row > element_limit else [tuple((0, n) for n in shape[1:])]:
            yield ((start, min(start + step, shape[0])), *rest)


@dataclasses.dataclass(frozen=True)
class Addition:
    """The command line of ``fastpe add``."""

    source: str
    output: str | None
    keys: Sequence[str]
    encoder: Callable[[int, int], PositionalEncoding]  # for so many columns and positions
    offset: int
    seq_axis: int
    dtype: np.dtype[Any] | None
    no_clobber: bool
    quiet: bool
    options: dict[str, Any]  # of the library: scale, alpha, num_threads

    def result_dtype(self, found: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype in which the array is added to."""
        if found.kind == "f" and found.itemsize in (2, 4, 8):
            return found.newbyteorder("=") if self.dtype is None else self.dtype
        remedy = "token ids need fastpe embed" if found.kind in "iu" else "save it with .astype('float32')"
        if found.str[1:] == "V2":
            if self.dtype is not None and self.dtype.name == "bfloat16":
                return self.dtype
            remedy = "if it is bfloat16, give --dtype bfloat16"
        raise CommandError(f"{self.source} has dtype {found}, expected float16, float32 or float64; {remedy}")

    def adder(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[[Array, Block], object]:
        """Check all that can be checked without an element, and return what adds to a part of the array."""
        axis = self.seq_axis + len(shape) if self.seq_axis < 0 else self.seq_axis
        if not 0 <= axis < len(shape) - 1:
            found = f"{self.source} has shape {list(shape)}, and --seq-axis is {self.seq_axis}"
            raise CommandError(f"{found}, expected one of two axes or more, but not the last; save x[None] for a row")
        if 0 in shape:
            return lambda block, ranges: None
        add_, options = self.encoder(shape[-1], shape[axis]).add_, {"seq_axis": axis, **self.options}
        # The library checks arrays without elements as it does all others.
        add_(np.empty((0,) * (len(shape) - 1) + shape[-1:], dtype), offset=self.offset, **options)
        return lambda x, ranges: add_(x, offset=self.offset + ranges[axis][0], channels=ranges[-1], **options)
