# SPDX-License-Identifier: BSD-3-Clause
"""The canvas of MiniCPM-V 4.7: an image and the slices of it have the coordinates of one grid."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpe._errors import refused
from fastpe._rotary.token_rules import image_token, mark, padding_token, slice_mark, video_token

if TYPE_CHECKING:
    from fastpe._rotary.token_ids import Grids, Runs, Tokens

Array = npt.NDArray[Any]


class Crop(NamedTuple):
    """The tokens of an image, of a frame or of a slice of one."""

    start: int
    stop: int
    height: int
    width: int


def canvas_ids(tokens: Tokens, firsts: Array, runs: Runs, grids: Grids) -> Array:
    """The ids [3, N] of all tokens."""
    ids = np.zeros((3, len(tokens.types)), np.int64)
    is_crop = (runs.types == image_token) | (runs.types == video_token)
    columns = (runs.starts, runs.starts + runs.lengths, grids.heights, grids.widths)
    crops = [Crop(*each) for each in zip(*(column[is_crop].tolist() for column in columns), strict=True)]
    row_of_crop = runs.rows[is_crop]
    length = tokens.shape[1]
    for row, first in enumerate(firsts.tolist()):
        types = tokens.types[row * length : (row + 1) * length]
        counts = types != padding_token
        # Where each token is among those that count.
        place = (np.cumsum(counts) - 1).tolist()
        mine = crops[slice(*np.searchsorted(row_of_crop, [row, row + 1]))]
        starts = [place[crop.start - row * length] for crop in mine]
        moved = [
            crop._replace(start=start, stop=start + crop.stop - crop.start)
            for crop, start in zip(mine, starts, strict=True)
        ]
        part = np.empty((3, int(counts.sum())), np.int64)
        _number_row(part, types[counts], moved, first)
        ids[:, row * length : (row + 1) * length][:, counts] = part
    return ids


def _number_row(ids: Array, types: Array, crops: list[Crop], position: int) -> None:
    """Write the ids of one row, whose first token is at `position`."""
    length = len(types)
    is_mark = types >= mark
    # Where the marks that follow each token end.
    ends = np.minimum.accumulate(np.where(is_mark, length, np.arange(length))[::-1])[::-1].tolist()
    frames: list[list[Crop]] = []
    for crop in crops:
        if crop.start == 0 or not is_mark[crop.start - 1]:
            found = f"hold tokens of an image at {crop.start} of a row that no mark precedes"
            raise refused(ValueError, "token_types", found, "types 4 and 5 of marks", "make them by token_types()")
        if frames and types[crop.start - 1] == slice_mark:
            frames[-1].append(crop)
        else:
            frames.append([crop])

    cursor = 0

    def count_to(stop: int) -> None:
        nonlocal cursor, position
        ids[:, cursor:stop] = np.arange(position, position + stop - cursor)
        cursor, position = stop, position + stop - cursor

    for frame in frames:
        begin, stop = frame[0].start - 1, frame[-1].stop
        # Frames of a clip have only marks between them, which are those of the frame before.
        if begin > cursor:
            count_to(begin)
        stop = ends[stop] if stop < length else length
        height, width = _number_frame(ids, frame, begin, stop, position)
        cursor, position = stop, position + max(height, width) + 1
    count_to(length)


def _number_frame(ids: Array, frame: list[Crop], begin: int, stop: int, origin: int) -> tuple[int, int]:
    """Write the ids of an image, its slices and their marks, and return the size of its canvas."""
    whole, *slices = frame
    height, width = whole.height, whole.width
    columns = len(slices)
    if slices:
        # The first gap that is more than the marks of two slices is the end of a line.
        gaps = [after.start - before.stop for before, after in itertools.pairwise(slices)]
        columns = next((k + 1 for k, gap in enumerate(gaps) if gap > 2), columns)
        columns = columns if len(slices) % columns == 0 else len(slices)
        height, width = len(slices) // columns * slices[0].height, columns * slices[0].width
    ids[:, begin:stop] = origin
    ids[1:, begin] = max(origin - 1, 0)
    if whole.stop < stop:
        ids[1:, whole.stop] = origin + height, origin + width
    ids[1:, whole.start : whole.stop] = origin + _spread(whole.height, whole.width, height, width)
    for k, part in enumerate(slices):
        corner = np.array([k // columns * slices[0].height, k % columns * slices[0].width]) + origin
        ids[1:, part.start - 1] = corner
        if part.stop < stop:
            ids[1:, part.stop] = corner + np.array([part.height - 1, part.width - 1])
        cells = _spread(part.height, part.width, part.height, part.width)
        ids[1:, part.start : part.stop] = corner[:, None] + cells
    for k, (before, after) in enumerate(itertools.pairwise(slices)):
        if after.start - before.stop > 2:
            line_end = (k // columns + 1) * slices[0].height - 1, columns * slices[0].width
            ids[1:, before.stop + 1 : after.start - 1] = origin + np.array(line_end)[:, None]
    return height, width


@functools.lru_cache(maxsize=256)
def _spread(height: int, width: int, to_height: int, to_width: int) -> Array:
    """The rows and columns of a grid, [2, height * width], that is spread over a larger one."""
    rows, columns = _rounded(height, to_height), _rounded(width, to_width)
    return np.stack([np.repeat(rows, width), np.tile(columns, height)])


def _rounded(count: int, to: int) -> Array:
    """What torch.linspace(0, to - 1, count) rounds to: it counts from both ends, in float32."""
    if count == 1:
        return np.zeros(1, np.int64)
    last, index = np.float32(to - 1), np.arange(count)
    step = last / np.float32(count - 1)
    from_start, from_end = step * index.astype(np.float32), last - step * (count - 1 - index).astype(np.float32)
    rounded: Array = np.rint(np.where(index < count // 2, from_start, from_end)).astype(np.int64)
    return rounded
