# SPDX-License-Identifier: BSD-3-Clause
"""Rotation by cosines and sines that the caller has."""

from __future__ import annotations

from typing import Any, overload

import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import integer, names_keywords
from fastpe._arrays import ArrayLike, Given, WritableArray


@overload
def rotate_by_tables_(
    x: Given,
    *,
    cos: ArrayLike,
    sin: ArrayLike,
    interleaved: bool,
    inverse: bool = ...,
    head_dim: int | None = ...,
    offset: int | ArrayLike | None = ...,
    positions: ArrayLike | None = ...,
    valid: ArrayLike | None = ...,
    lengths: ArrayLike | None = ...,
    cu_seqlens: ArrayLike | None = ...,
    seq_axis: int | None = ...,
    num_threads: int | None = ...,
) -> Given: ...
@overload
def rotate_by_tables_(
    x: npt.NDArray[Any],
    *others: npt.NDArray[Any],
    cos: ArrayLike,
    sin: ArrayLike,
    interleaved: bool,
    inverse: bool = ...,
    head_dim: int | None = ...,
    offset: int | ArrayLike | None = ...,
    positions: ArrayLike | None = ...,
    valid: ArrayLike | None = ...,
    lengths: ArrayLike | None = ...,
    cu_seqlens: ArrayLike | None = ...,
    seq_axis: int | None = ...,
    num_threads: int | None = ...,
) -> tuple[npt.NDArray[Any], ...]: ...
@names_keywords
def rotate_by_tables_(
    x: Any,
    *others: npt.NDArray[Any],
    cos: ArrayLike,
    sin: ArrayLike,
    interleaved: bool,
    inverse: bool = False,
    head_dim: int | None = None,
    offset: int | ArrayLike | None = None,
    positions: ArrayLike | None = None,
    valid: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    cu_seqlens: ArrayLike | None = None,
    seq_axis: int | None = None,
    num_threads: int | None = None,
) -> Any:
    """Rotate queries and keys in place, by cosines and sines that are given.

    It is for an engine's own tables, whose rounding is to be reproduced, and for learned angles.

    Parameters
    ----------
    x, *others : ndarray [.., L, .., D]
        One array, or several with the same positions, as `RotaryEmbedding.rotate_` takes them.
    cos, sin : array_like [rows, pairs] or [B, L, pairs]
        One row for each position, from position 0 on; or, with a batch axis, one row for each row of the arrays, as
        ``rope.tables(position_ids)`` gives them. They may have any strides; they have float32 or the arrays' dtype, and
        share no memory with the arrays. Of tables that have each column twice, once for each column of a pair, pass one
        of each: ``cos[..., : d // 2]`` of a tiled one, as transformers makes them, and ``cos[..., ::2]`` of a repeated
        one, as Flux and Cohere have it.
    interleaved : bool
        Which columns are pairs: (2k, 2k + 1) if True, else (k, k + pairs).
    inverse : bool, optional
        Whether to rotate by the negative angles.
    head_dim : int, optional
        Columns of a head, where the tables rotate only the first ``2 * pairs``; by default, they rotate all.
    offset, positions, valid, lengths, cu_seqlens, seq_axis, num_threads
        As in `RotaryEmbedding.rotate_`. Positions are integers, and each has a row in the tables. With tables
        [B, L, pairs], there are no positions.

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
    >>> fastpe.rotate_by_tables_(q, cos=cos, sin=sin, interleaved=True)
    array([[ 1.,  1.],
           [-1.,  1.],
           [-1., -1.]], dtype=float32)
    """
    return _core.rotate_by_tables_(
        x,
        *others,
        cos=cos,
        sin=sin,
        interleaved=interleaved,
        inverse=inverse,
        head_dim=None if head_dim is None else integer("head_dim", head_dim, 1),
        offset=offset,
        positions=positions,
        valid=valid,
        lengths=lengths,
        cu_seqlens=cu_seqlens,
        seq_axis=seq_axis,
        num_threads=num_threads,
    )


@names_keywords
def rotate_by_tables(
    x: ArrayLike,
    *,
    cos: ArrayLike,
    sin: ArrayLike,
    interleaved: bool,
    inverse: bool = False,
    head_dim: int | None = None,
    offset: int | ArrayLike | None = None,
    positions: ArrayLike | None = None,
    valid: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    cu_seqlens: ArrayLike | None = None,
    seq_axis: int | None = None,
    num_threads: int | None = None,
    out: WritableArray | None = None,
) -> npt.NDArray[Any]:
    """Rotate into another array, by cosines and sines that are given.

    Parameters
    ----------
    x : array_like [.., L, .., D]
        One array, which is only read.
    cos, sin, interleaved, inverse, head_dim, offset, positions, valid, lengths, cu_seqlens, seq_axis, num_threads
        As in `rotate_by_tables_`.
    out : ndarray, optional
        The array to write into: `x` itself, or an array apart from it, of its shape and dtype.

    Returns
    -------
    ndarray
        `out`, or a new array. Columns that are not rotated, and rows that are not valid, are copied.

    Raises
    ------
    IndexError, ValueError, TypeError
        The errors of `rotate_by_tables_`.

    Examples
    --------
    >>> import numpy as np, fastpe
    >>> rope = fastpe.RotaryEmbedding(4, interleaved=False)
    >>> cos, sin = rope.tables([[7, 8], [0, 1]])  # [B, L, pairs]
    >>> rotated = fastpe.rotate_by_tables(np.ones((2, 2, 4), np.float32), cos=cos, sin=sin, interleaved=False, seq_axis=-2)
    >>> rotated.shape
    (2, 2, 4)
    """
    return _core.rotate_by_tables(
        x,
        cos=cos,
        sin=sin,
        interleaved=interleaved,
        inverse=inverse,
        head_dim=None if head_dim is None else integer("head_dim", head_dim, 1),
        offset=offset,
        positions=positions,
        valid=valid,
        lengths=lengths,
        cu_seqlens=cu_seqlens,
        seq_axis=seq_axis,
        num_threads=num_threads,
        out=out,
    )
