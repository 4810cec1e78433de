# SPDX-License-Identifier: BSD-3-Clause
"""Which columns of a grid's vectors belong to which axis, and the writing of them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe._arrays import ArrayLike
from fastpe._grid.convention import GridConvention
from fastpe._sinusoid.encoder import PositionalEncoding, cached_encoding

_slab_values = 1 << 16
# Python answers signals between assignments of this size.
_largest_assignment_bytes = 1 << 24
# The largest blocks of a grid fit into the second-level cache. Those below the smallest do not repay a step in Python.
_largest_block_bytes = 1 << 19
_smallest_block_bytes = 1 << 14


@dataclasses.dataclass(frozen=True)
class AxisShare:
    """One axis: its encoder, and pairs of slices: columns of the vector, and the encoder's columns that go there."""

    axis: int
    encoding: PositionalEncoding
    pieces: list[tuple[slice, slice]]

    def rows(self, coordinates: npt.NDArray[Any], dtype: np.dtype[Any], num_threads: int | None) -> npt.NDArray[Any]:
        """The encodings of coordinates, in a dtype that NumPy may not know: bfloat16 of a tensor."""
        out = np.empty((*coordinates.shape, self.encoding.d_model), dtype)
        return self.encoding.encode(coordinates, num_threads=num_threads, out=out)


class SharedColumns:
    """The columns of a vector, shared by the axes; those from `used` on belong to none and are zero."""

    def __init__(
        self, convention: GridConvention, d_model: int, axis_count: int, frequencies: ArrayLike | None
    ) -> None:
        order = convention._order(axis_count)
        widths = convention._widths(d_model, axis_count)
        self.used = min(sum(widths), d_model)
        self.shares: list[AxisShare] = []
        start = 0
        for place, (axis, width) in enumerate(zip(order, widths, strict=True)):
            half = width // 2
            if convention.outermost == "axis":
                starts, step, size = [start], 1, width
            elif convention.outermost == "function":
                starts, step, size = [place * half, (axis_count + place) * half], 1, half
            elif convention.outermost == "function_frequency":
                starts, step, size = [place, axis_count * half + place], axis_count, half
            elif convention.outermost == "frequency":
                starts, step, size = [place, axis_count + place], 2 * axis_count, half
            else:
                starts, step, size = [2 * place, 2 * place + 1], 2 * axis_count, half
            start += width
            pieces = []
            for i, first in enumerate(starts):
                count = len(range(first, self.used, step)[:size])
                if count:
                    pieces.append((slice(first, first + count * step, step), slice(i * size, i * size + count)))
            if pieces:
                encoding = cached_encoding(width, convention.axis, None, None, frequencies)
                self.shares.append(AxisShare(axis, encoding, pieces))

    def spread(self, rows: list[npt.NDArray[Any]], cells: npt.NDArray[Any], first_axis: int = 0) -> None:
        """Write the rows of each axis from `first_axis` on to all cells that share their index; `cells` has those axes."""
        step = max(1, _largest_assignment_bytes // max(1, cells[:1].nbytes))
        for start in range(0, len(cells), step):
            slab = cells[start : start + step]
            for share, table in zip(self.shares, rows, strict=True):
                if share.axis < first_axis:
                    continue
                own = table[start : start + step] if share.axis == first_axis else table
                across = own.reshape(
                    *(-1 if first_axis + i == share.axis else 1 for i in range(cells.ndim - 1)), own.shape[1]
                )
                for target, source in share.pieces:
                    slab[..., target] = across[..., source]
            slab[..., self.used :] = np.zeros((), slab.dtype)

    def spread_by_blocks(self, rows: list[npt.NDArray[Any]], cells: npt.NDArray[Any]) -> None:
        """Put blocks of cells together in the cache and copy them whole.

        Written one axis after the other, a large grid would go through memory once per axis.
        """
        *shape, _ = cells.shape
        outer = len(shape)
        while outer > 0 and math.prod(cells.shape[outer - 1 :]) * cells.itemsize <= _largest_block_bytes:
            outer -= 1
        block_bytes = math.prod(cells.shape[outer:]) * cells.itemsize
        if outer in (0, len(shape)) or block_bytes < _smallest_block_bytes:
            self.spread(rows, cells)
            return
        block = np.empty(cells.shape[outer:], cells.dtype)
        self.spread(rows, block, outer)
        before: tuple[int, ...] = (-1,) * outer
        for index in np.ndindex(*shape[:outer]):
            for share, table in zip(self.shares, rows, strict=True):
                if share.axis < outer and index[share.axis] != before[share.axis]:
                    for target, source in share.pieces:
                        block[..., target] = table[index[share.axis], source]
            cells[index] = block
            before = index

    def write(self, coordinates: dict[int, npt.NDArray[Any]], cells: npt.NDArray[Any], num_threads: int | None) -> None:
        """Encode one coordinate per cell and axis, some of the leading entries at a time."""
        if cells.ndim > 2 and cells[:1].size > _slab_values:
            for i in range(len(cells)):
                self.write({axis: values[i] for axis, values in coordinates.items()}, cells[i], num_threads)
            return
        step = max(1, _slab_values // max(1, cells[:1].size))
        for start in range(0, len(cells), step):
            slab = slice(start, start + step)
            for share in self.shares:
                rows = share.rows(coordinates[share.axis][slab], cells.dtype, num_threads)
                for target, source in share.pieces:
                    cells[slab][..., target] = rows[..., source]
        cells[..., self.used :] = np.zeros((), cells.dtype)
