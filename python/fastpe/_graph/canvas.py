# SPDX-License-Identifier: BSD-3-Clause
"""The canvas of MiniCPM-V 4.7: an image and the slices of it have the coordinates of one grid."""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import numpy as np

from fastpe._errors import refused
from fastpe._layouts.numbering import Array


class Crop(NamedTuple):
    """The tokens of an image, of a frame or of a slice of one."""

    start: int
    stop: int
    height: int
    width: int


def number_canvas(is_mark: Array, is_slice_mark: Array, crops: list[Crop], position: int) -> Array:
    """The ids [3, L] of one row, whose first token is at `position`."""
    length = len(is_mark)
    ids = np.empty((3, length), np.int64)
    for crop in crops:
        if crop.start == 0 or not is_mark[crop.start - 1]:
            found = f"holds tokens of an image from place {crop.start} on, with no mark in front of them"
            raise refused(ValueError, "input_ids", found, "the tokens of image_start_id or slice_start_id")
    # Where the marks that follow each token end.
    ends = np.minimum.accumulate(np.where(is_mark, length, np.arange(length))[::-1])[::-1]
    frames: list[list[Crop]] = []
    for crop in crops:
        if frames and is_slice_mark[crop.start - 1]:
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
        stop = int(ends[stop]) if stop < length else length
        height, width = _number_frame(ids, frame, begin, stop, position)
        cursor, position = stop, position + max(height, width) + 1
    count_to(length)
    return ids


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
    rows, across = ids[1], ids[2]
    ids[:, begin:stop] = origin
    rows[begin] = across[begin] = max(origin - 1, 0)
    if whole.stop < stop:
        rows[whole.stop], across[whole.stop] = origin + height, origin + width
    cells = _spread(whole.height, whole.width, height, width)
    np.add(cells, origin, out=ids[1:, whole.start : whole.stop])
    for k, crop in enumerate(slices):
        top, left = origin + k // columns * slices[0].height, origin + k % columns * slices[0].width
        rows[crop.start - 1], across[crop.start - 1] = top, left
        if crop.stop < stop:
            rows[crop.stop], across[crop.stop] = top + crop.height - 1, left + crop.width - 1
        own_rows, own_columns = _spread(crop.height, crop.width, crop.height, crop.width)
        np.add(own_rows, top, out=rows[crop.start : crop.stop])
        np.add(own_columns, left, out=across[crop.start : crop.stop])
    for k, (before, after) in enumerate(itertools.pairwise(slices)):
        if after.start - before.stop > 2:
            rows[before.stop + 1 : after.start - 1] = origin + (k // columns + 1) * slices[0].height - 1
            across[before.stop + 1 : after.start - 1] = origin + columns * slices[0].width
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
