# SPDX-License-Identifier: BSD-3-Clause
"""The buckets of distances of T5's relative attention bias."""

from __future__ import annotations

import bisect

import numpy as np
import numpy.typing as npt

from fastpe._arguments import flag, integer, names_keywords, whole_numbers
from fastpe._arrays import ArrayLike


@names_keywords
def relative_buckets(
    relative_positions: ArrayLike, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128
) -> npt.NDArray[np.int64]:
    """Get the rows of T5's table of relative attention biases, which WavLM, LayoutLM, MPNet and others also have.

    Parameters
    ----------
    relative_positions : array_like of int
        The position of the key minus that of the query, in an array of any shape.
    bidirectional : bool
        Whether keys after the query have buckets of their own, as in encoders; otherwise all have bucket 0.
    num_buckets, max_distance : int, optional
        The config's ``relative_attention_num_buckets`` and ``relative_attention_max_distance`` in T5, ``num_buckets`` and
        ``max_bucket_distance`` in WavLM (320 and 800).

    Returns
    -------
    int64 array
        The bucket of each, in the same shape.

    Raises
    ------
    TypeError
        For relative positions that are not integers.
    ValueError
        For too few buckets, and a `max_distance` within those of single distances.

    Notes
    -----
    Of the ``n`` buckets of one direction, the first ``m = n // 2`` have one distance each. Distance ``r`` from ``m`` on has
    bucket ``m + floor(log(r / m) / log(max_distance / m) * (n - m))``, or the last one. The logarithms are compared as
    powers of integers, so that no distance is in the wrong bucket. As in google-research/text-to-text-transfer-transformer,
    whose code is in Mesh TensorFlow, mesh_tensorflow/transformer/transformer_layers.py.

    Examples
    --------
    >>> import numpy as np, fastpe
    >>> query, key = np.ogrid[:3, :3]
    >>> fastpe.relative_buckets(key - query, bidirectional=True)
    array([[ 0, 17, 18],
           [ 1,  0, 17],
           [ 2,  1,  0]])
    """
    both = flag("bidirectional", bidirectional)
    count = integer("num_buckets", num_buckets, 4 if both else 2, 2**12) // (2 if both else 1)
    single = count // 2
    farthest = integer("max_distance", max_distance, single + 1, 2**31)
    remedy = "pass the key's position minus the query's, as integers"
    positions = whole_numbers("relative_positions", relative_positions, remedy)
    # The least distance of each bucket but the first.
    steps, powers = count - single, range(1, count - single)
    starts = [*range(1, single + 1)]
    starts += [
        bisect.bisect_left(range(farthest), farthest**t * single ** (steps - t), single, key=lambda r: r**steps)
        for t in powers
    ]
    near = np.clip(positions, -farthest, farthest).astype(np.int64)
    distances = abs(near) if both else -np.minimum(near, 0)
    buckets = np.searchsorted(np.array(starts), distances, side="right")
    return np.asarray(buckets + count * (near > 0) if both else buckets, np.int64)
