# SPDX-License-Identifier: BSD-3-Clause
"""The order of windows, in which some encoders of images attend to their patches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastpe._errors import refused
from fastpe._rotary.token_rules import Array, check_blocks, checked


class Windows(NamedTuple):
    """The order of windows, and where windows and frames begin: see `RotaryLayout.windows`."""

    window_index: Array
    cu_window_seqlens: Array
    cu_seqlens: Array


def windows(grid_thw: Any, window: int, merge_size: int) -> Windows:
    """The windows of all grids, one after the other."""
    grids = checked("grid_thw", grid_thw, (None, 3), expected="rows of (time, height, width), in patches")
    wrong = np.flatnonzero((grids < 1).any(axis=1))
    if len(wrong):
        found = f"is {tuple(grids[wrong[0]].tolist())}"
        raise refused(ValueError, f"grid_thw[{wrong[0]}]", found, "lengths from 1")
    check_blocks("grid_thw", grids, merge_size, "merge_size")
    order, lengths, first = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for time, height, width in grids.tolist():
        rows, columns = (np.arange(length // merge_size) for length in (height, width))
        across = -(-len(columns) // window)
        # The window of each block of a frame. Sorting keeps the order of the blocks in it.
        owners = ((rows // window)[:, None] * across + columns // window).ravel()
        frame = np.argsort(owners, kind="stable")
        order.append((np.arange(time)[:, None] * len(owners) + frame + first).ravel())
        lengths.append(np.tile(np.bincount(owners) * merge_size**2, time))
        first += time * len(owners)
    frames = np.repeat(grids[:, 1] * grids[:, 2], grids[:, 0])
    return Windows(np.concatenate(order), _ends(np.concatenate(lengths)), _ends(frames))


def _ends(lengths: Array) -> Array:
    """Where things of these lengths begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
