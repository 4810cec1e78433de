# SPDX-License-Identifier: BSD-3-Clause
"""Rotation by tables that the caller has."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import names_keywords


@names_keywords
def rotate_(
    x: npt.NDArray[Any],
    *others: npt.NDArray[Any],
    cos: npt.ArrayLike,
    sin: npt.ArrayLike,
    interleaved: bool,
    conjugate: bool = False,
    offset: int | npt.ArrayLike | None = None,
    positions: npt.ArrayLike | None = None,
    mask: npt.ArrayLike | None = None,
    lengths: npt.ArrayLike | None = None,
    cu_seqlens: npt.ArrayLike | None = None,
    seq_axis: int = -2,
    num_threads: int | None = None,
) -> Any:
    """Rotate queries and keys in place, by cosines and sines that are given.

    It is for an engine's own tables, whose rounding is to be reproduced, and for learned angles.

    Parameters
    ----------
    x, *others : ndarray [.., L, .., D]
        One array, or several with the same positions, as `RotaryEmbedding.rotate_` takes them. The first ``2 * pairs``
        columns are rotated.
    cos, sin : array_like [rows, pairs]
        One row for each position, from position 0 on, in float32 or the arrays' dtype. They share no memory with the
        arrays. Of tables [rows, d] that have each column twice, as transformers makes them, pass one half:
        ``cos[:, : d // 2]`` of a tiled one, and ``np.ascontiguousarray(cos[:, ::2])`` of a repeated one, as Flux and
        Cohere have it. Whole ones are refused, but fewer than three rows, as for one token, are not noticed if heads
        have more than d columns. Rows whose columns are all alike, as at position 0, do not count.
    interleaved : bool
        Which columns are pairs: (2k, 2k + 1) if True, else (k, k + pairs).
    conjugate : bool, optional
        Whether to rotate by the negative angles.
    offset, positions, mask, lengths, cu_seqlens, seq_axis, num_threads
        As in `RotaryEmbedding.rotate_`. Positions are integers, and each has a row in the tables.

    Returns
    -------
    ndarray or tuple of ndarrays
        The arrays themselves.

    Raises
    ------
    IndexError
        For a position that has no row in the tables. Nothing is written then.
    ValueError, TypeError
        The errors of `RotaryEmbedding.rotate_`.

    Notes
    -----
    Each pair (x1, x2) becomes ``x1 * cos - x2 * sin`` and ``x2 * cos + x1 * sin``. Each operation is rounded. float16
    and bfloat16 are computed in float32, and the results are rounded once. They equal an engine's results only if it
    computes in float32 too: torch in bfloat16 rounds after each operation. Su et al., "RoFormer", 2021, section 3.4.2.

    Examples
    --------
    >>> import numpy as np, fastpe
    >>> q = np.ones((3, 2), np.float32)
    >>> cos = np.array([[1.0], [0.0], [-1.0]], np.float32)
    >>> sin = np.array([[0.0], [1.0], [0.0]], np.float32)
    >>> fastpe.rotate_(q, cos=cos, sin=sin, interleaved=True)
    array([[ 1.,  1.],
           [-1.,  1.],
           [-1., -1.]], dtype=float32)
    """
    return _core.rotate_by_tables(
        x,
        *others,
        cos=cos,
        sin=sin,
        interleaved=interleaved,
        conjugate=conjugate,
        offset=offset,
        positions=positions,
        mask=mask,
        lengths=lengths,
        cu_seqlens=cu_seqlens,
        seq_axis=seq_axis,
        num_threads=num_threads,
    )
