# SPDX-License-Identifier: BSD-3-Clause
"""How text, images and videos are numbered in one sequence: pieces that follow each other, and the cells of grids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import dtype_of, largest_position
from fastpe._arrays import returned
from fastpe._errors import refused

Array = npt.NDArray[Any]


class Piece(NamedTuple):
    """Tokens that are numbered from where the piece starts."""

    offsets: Array  # [coordinates, n]
    length: Any  # how far behind the start the next piece begins


def text(length: int, coordinates: int = 3) -> Piece:
    """Tokens whose coordinates are equal."""
    return Piece(np.broadcast_to(np.arange(length, dtype=np.int64), (coordinates, length)), length)


def grid(times: Array, height: int, width: int) -> Piece:
    """The tokens of an image or a video, whose frames are at these times; what follows is behind its largest coordinate."""
    offsets = np.empty((3, len(times), height, width), times.dtype)
    offsets[0] = times[:, None, None]
    offsets[1] = np.arange(height)[:, None]
    offsets[2] = np.arange(width)
    return Piece(offsets.reshape(3, -1), max(times[-1].item(), height - 1, width - 1) + 1)


def lines(count: int, height: int, width: int) -> Piece:
    """The tokens of frames whose lines each have one more token at their end, and that lie as far apart as one is wide."""
    width += 1
    offsets = grid(np.arange(count) * max(height, width), height, width).offsets
    offsets[1:] += offsets[0]
    return Piece(offsets, offsets.max().item() + 1)


def placed(pieces: Iterable[Piece], start: Any, beyond: str) -> Iterator[Array]:
    """The ids of pieces that follow each other; `beyond` is the argument to refuse where they go beyond 2**53."""
    for piece in pieces:
        if start + piece.length - 1 > largest_position:
            raise refused(ValueError, beyond, "leads to a position beyond 2**53", "a smaller number")
        yield start + piece.offsets
        start += piece.length


def times_of(count: int, *factors: Any, name: str) -> Array:
    """The times of frames, in float32 as models compute them: what is cut off of a fraction depends on the rounding."""
    times = np.arange(count).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for factor in factors:
            times = times * np.float32(factor)
    if not times[-1] <= largest_position:
        raise refused(ValueError, name, "leads to a position beyond 2**53", "a smaller number")
    return times


def stored(ids: Array, dtype: npt.DTypeLike | None, out: Any) -> Array:
    """The ids in a dtype of a graph, or in `out`: integers exactly, and fractions rounded once where it has fractions."""
    if out is None and dtype is None:
        return ids
    name, wanted, target = "dtype", dtype_of(dtype, "iuf"), ids
    if out is not None:
        target = _core.array(out, "out", in_place=True)
        if not target.flags.writeable:
            raise refused(ValueError, "out", "is read-only", "a writable array")
        if target.shape != ids.shape:
            raise refused(ValueError, "out", f"has shape {list(target.shape)}", f"{list(ids.shape)}")
        if dtype is not None and target.dtype != wanted:
            raise refused(TypeError, "out", f"has dtype {target.dtype}", f"{wanted}", "leave dtype out")
        name, wanted = "out", target.dtype
    if wanted.kind not in "iuf":
        raise refused(TypeError, name, f"is {wanted}", "integers, float16, float32 or float64")
    with np.errstate(over="ignore", invalid="ignore"):
        new: Array = ids.astype(wanted)
    is_lost = (new != ids) & ((ids % 1 == 0) if wanted.kind == "f" else True)
    if is_lost.any():
        raise refused(ValueError, name, f"is {wanted}, which does not have {ids[is_lost][0]}", "a wider dtype")
    if out is None:
        return new
    target[...] = new
    return returned(out, target)


def cells(shape: tuple[int, ...], *first: int) -> Array:
    """Every cell of a grid, row by row; the first one is at `first`, or at 0."""
    result: Array = np.indices(shape, dtype=np.int64).reshape(len(shape), -1).T
    return result + np.array(first) if first else result


def blocks(shape: tuple[int, ...], size: int, *, with_time: bool = False) -> Array:
    """The (height, width) of the patches of (time, height, width), block by block of size * size; or with the time."""
    time, height, width = shape
    result = np.empty((time, height // size, width // size, size, size, 3 if with_time else 2), np.int64)
    if with_time:
        result[..., 0] = np.arange(time).reshape(-1, 1, 1, 1, 1)
    result[..., -2] = np.arange(height).reshape(-1, 1, size, 1)
    result[..., -1] = np.arange(width).reshape(-1, 1, size)
    return result.reshape(-1, result.shape[-1])
