# SPDX-License-Identifier: BSD-3-Clause
"""Large arrays a block at a time: memory does not grow with the file."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

# Small enough for the cache between reading and writing, large enough for threads.
block_bytes = 4 << 20

Block = tuple[tuple[int, int], ...]


def blocks(shape: tuple[int, ...], element_limit: int) -> Iterator[Block]:
    """Cut an array in C order into contiguous blocks of at most `element_limit` elements.

    Yields
    ------
    tuple of (start, stop)
        One range per axis: single indices, then one range, then whole axes.

    Examples
    --------
    >>> list(blocks((2, 3), 2))
    [((0, 1), (0, 2)), ((0, 1), (2, 3)), ((1, 2), (0, 2)), ((1, 2), (2, 3))]
    """
    if 0 in shape:
        return
    split = next(axis for axis in range(len(shape)) if math.prod(shape[axis + 1 :]) <= element_limit)
    step = max(1, element_limit // math.prod(shape[split + 1 :]))
    whole = tuple((0, extent) for extent in shape[split + 1 :])
    for prefix in itertools.product(*map(range, shape[:split])):
        single = tuple((index, index + 1) for index in prefix)
        for start in range(0, shape[split], step):
            yield (*single, (start, min(start + step, shape[split])), *whole)
