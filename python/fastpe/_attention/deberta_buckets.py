# SPDX-License-Identifier: BSD-3-Clause
"""The buckets of distances of DeBERTa's disentangled attention."""

from __future__ import annotations

import bisect
import math

import numpy as np
import numpy.typing as npt

from fastpe._arguments import integer, names_keywords, whole_numbers
from fastpe._arrays import ArrayLike
from fastpe._errors import refused

_most_buckets = 2**12


@names_keywords
def deberta_buckets(relative_positions: ArrayLike, *, num_buckets: int, max_position: int) -> npt.NDArray[np.int64]:
    """Get the logarithmic buckets of DeBERTa v2 and v3, whose rows of relative embeddings lie ``num_buckets`` further on.

    Parameters
    ----------
    relative_positions : array_like of int
        The position of the query minus that of the key, in an array of any shape; T5's is the negative of it.
    num_buckets, max_position : int
        The config's ``position_buckets`` and ``max_relative_positions``, or ``max_position_embeddings`` where that is below
        1; 256 and 512 in the published models.

    Returns
    -------
    int64 array
        The bucket of each, in the same shape, with the sign of the relative position. Models clip it to
        ``-num_buckets .. num_buckets - 1``.

    Raises
    ------
    TypeError
        For relative positions that are not integers.
    ValueError
        For fewer than 4 buckets, a `max_position` within those of single distances, and distances beyond 2**31.

    Notes
    -----
    With ``m = num_buckets // 2``, distances up to ``m`` have a bucket each. Distance ``r`` beyond has
    ``m + ceil(log(r / m) / log((max_position - 1) / m) * (m - 1))``. The logarithms are compared as powers of integers, so
    that no distance is in the wrong bucket. As in microsoft/DeBERTa, DeBERTa/deberta/disentangled_attention.py and
    da_utils.py.

    Examples
    --------
    >>> import fastpe
    >>> fastpe.deberta_buckets([-2, 0, 128, 129, 511], num_buckets=256, max_position=512)
    array([ -2,   0, 128, 129, 255])
    """
    single = integer("num_buckets", num_buckets, 4, 2**10) // 2
    farthest = integer("max_position", max_position, single + 2, 2**31) - 1
    positions = whole_numbers("relative_positions", relative_positions, "pass the query's position minus the key's")
    far = int(max(positions.max(initial=0), -int(positions.min(initial=0))))
    if far > 2**31:
        raise refused(ValueError, "relative_positions", f"has a distance of {far}", "at most 2**31")
    steps = single - 1
    if steps * math.log(max(far, single) / single) > _most_buckets * math.log(farthest / single):
        expected = f"one that leaves at most {_most_buckets} buckets of distances up to {far}"
        raise refused(ValueError, "max_position", f"is {max_position}", expected, "correct it or num_buckets")
    near = positions.astype(np.int64)
    # The largest distance of each bucket from the last one with a single distance on.
    ends = [single]
    while ends[-1] < far:
        power = farthest ** len(ends) * single ** (max(steps - len(ends), 0))
        divisor = single ** max(len(ends) - steps, 0)
        ends.append(bisect.bisect_right(range(2**31 + 1), power, key=lambda r: r**steps * divisor) - 1)
    distances = abs(near)
    buckets = single + np.searchsorted(np.array(ends), distances, side="left")
    return np.asarray(np.where(distances <= single, near, np.sign(near) * buckets), np.int64)
