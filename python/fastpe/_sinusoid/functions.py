# SPDX-License-Identifier: BSD-3-Clause
"""The functions: each looks its encoder up in a small cache and calls the method of the same name."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._names import ConventionName
from fastpe._sinusoid.convention import Convention
from fastpe._sinusoid.encoder import cached_encoding

# What is written to in place: an array of NumPy, or the memory of one.
_Array = TypeVar("_Array", bound="npt.NDArray[Any] | _core._HasArrayInterface | memoryview[Any]")


def _width(x: Any, d_model: int | None) -> int:
    if d_model is not None:
        return d_model
    shape = getattr(x, "shape", None)
    if not isinstance(shape, tuple) or not shape:
        # Not an array of rows: any encoder's own check says what is wrong.
        return 1
    return max(int(shape[-1]), 1)


def _readable(x: Any, name: str) -> Any:
    """An array that is only read, or what NumPy makes one of: the width of a list is known only then."""
    return x if isinstance(x, np.ndarray) else _core.array(x, name)


def encode(
    positions: int | npt.ArrayLike,
    d_model: int,
    *,
    convention: ConventionName | str | Convention = "vaswani",
    base: float | None = None,
    freq_scale: float | None = None,
    freqs: npt.ArrayLike | None = None,
    dtype: npt.DTypeLike | None = None,
    offset: int | npt.ArrayLike | None = None,
    mask: npt.ArrayLike | None = None,
    lengths: npt.ArrayLike | None = None,
    channels: tuple[int, int] | None = None,
    num_threads: int | None = None,
    out: npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """Encode positions.

    Parameters
    ----------
    positions : int or array_like of int, float32 or float64
        An int is a number of positions, counted from the convention's first one. Anything else is an array of
        positions of any shape; negative and fractional ones are fine.
    d_model : int
        Width of the encoding, from 1 to 2**20.
    convention : str or Convention, optional
        A name in `fastpe.conventions`, or one of your own.
    base, freq_scale : float, optional
        They replace the convention's.
    freqs : array_like of float64, optional
        The frequencies themselves, in radians per position.
    dtype : dtype, optional
        float32 (default), float64, float16 or ml_dtypes.bfloat16; `out`'s where that is given.
    offset : int or int array [B] or [B, 1], optional
        Added to counted positions; with an array the result is ``[B, positions, d_model]``.
    mask : bool array [L], [1, L] or [B, L], optional
        Rows that are False, or 0 among integers 0 and 1, become zero, and only the others are counted.
    lengths : int, or int array [B] or [B, 1], optional
        Rows from ``lengths[b]`` on become zero.
    channels : tuple of int, optional
        ``(first, end)``: only these columns.
    num_threads : int, optional
        At most this many threads.
    out : ndarray, optional
        A writable array of exactly the result's shape and dtype.

    Returns
    -------
    ndarray
        ``positions.shape + (d_model,)``, or ``[positions, d_model]`` for an int; `out` where it is given.

    Raises
    ------
    ValueError
        For a position that is not finite or beyond 2**53, a negative count, an unknown convention, or an `out` that has
        another shape or is read-only, overlapping or misaligned.
    TypeError
        For a dtype that does not fit.

    Notes
    -----
    float32, float16 and bfloat16 values are the exact ones rounded once (within 0.5 ulp + 1e-15); float64 values are
    within 1 ulp + 2e-16. Formula of the default convention: ``PE[p, 2k] = sin(p / 10000**(2k / d_model))``,
    ``PE[p, 2k + 1] = cos(..)``, Vaswani et al., "Attention Is All You Need", 2017, section 3.5.

    Examples
    --------
    >>> import fastpe
    >>> fastpe.encode(2, 4)
    array([[0.        , 1.        , 0.        , 1.        ],
           [0.84147096, 0.5403023 , 0.00999983, 0.99995   ]], dtype=float32)
    >>> fastpe.encode([-1, 0.5, 10**12], 4, dtype="float64").shape
    (3, 4)
    """
    return cached_encoding(d_model, convention, base, freq_scale, freqs).encode(
        positions,
        dtype=dtype,
        offset=offset,
        mask=mask,
        lengths=lengths,
        channels=channels,
        num_threads=num_threads,
        out=out,
    )


def add_(
    x: _Array,
    *,
    convention: ConventionName | str | Convention = "vaswani",
    base: float | None = None,
    freq_scale: float | None = None,
    freqs: npt.ArrayLike | None = None,
    offset: int | npt.ArrayLike | None = None,
    positions: npt.ArrayLike | None = None,
    mask: npt.ArrayLike | None = None,
    lengths: npt.ArrayLike | None = None,
    cu_seqlens: npt.ArrayLike | None = None,
    scale: float = 1.0,
    alpha: float = 1.0,
    seq_axis: int = -2,
    channels: tuple[int, int] | None = None,
    d_model: int | None = None,
    table: npt.ArrayLike | None = None,
    num_threads: int | None = None,
) -> _Array:
    """Add the encoding to embeddings, in place.

    Parameters
    ----------
    x : ndarray [L, C], [B, L, C] or [B, .., L, C]
        float32, float64, float16 or ml_dtypes.bfloat16; any strides; writable, aligned, without overlap.
    convention : str or Convention, optional
        A name in `fastpe.conventions`, or one of your own.
    base, freq_scale : float, optional
        They replace the convention's.
    freqs : array_like of float64, optional
        The frequencies themselves, in radians per position.
    offset : int or int array [B] or [B, 1], optional
        Added to the counted positions 0 .. L-1 (from the convention's first one): one for all rows, or one per batch
        row. With `cu_seqlens`, one per sequence.
    positions : int or float array [L], [1, L] or [B, L], optional
        Explicit positions instead; negative and fractional ones are fine.
    mask : bool array [L], [1, L] or [B, L], optional
        Rows that are False, or 0 among integers 0 and 1, are left as they are, bit for bit. Without `positions`,
        positions count the other rows only, which makes left padding right.
    lengths : int, or int array [B] or [B, 1], optional
        Rows from ``lengths[b]`` on are left as they are.
    cu_seqlens : int array [sequences + 1], optional
        Packed rows ``x [N, C]``: where each sequence starts, and N. Positions start again in each.
    scale, alpha : float, optional
        ``x * scale + alpha * PE``, in one pass.
    seq_axis : int, optional
        Which axis of `x` is the sequence.
    channels : tuple of int, optional
        `x` holds columns ``first`` to ``end`` of an encoding `d_model` wide.
    d_model : int, optional
        Width of the encoding; ``x.shape[-1]`` by default.
    table : array_like [max_len, C], [1, max_len, C] or [max_len, 1, C], optional
        A learned position table of `x`'s dtype, instead of sinusoids.
    num_threads : int, optional
        At most this many threads.

    Returns
    -------
    ndarray
        `x` itself.

    Raises
    ------
    TypeError
        For an `x` that is no array, or of another dtype or byte order.
    ValueError
        For an `x` that is read-only, misaligned or overlapping, for shapes that do not match, for positions that are
        not finite or beyond 2**53, and for an unknown convention. Nothing has been written then.
    IndexError
        For a position outside `table`.

    Notes
    -----
    In float32 and float64 the result is, bit for bit, NumPy's ``x * scale + alpha * encode(..)``; in the 16-bit types
    the arithmetic is float32, rounded once. Formula: see `encode`.

    Examples
    --------
    >>> import numpy as np, fastpe
    >>> x = np.zeros((2, 3, 4), np.float32)
    >>> fastpe.add_(x) is x
    True
    >>> bool((x == fastpe.encode(3, 4)).all())
    True
    """
    return cached_encoding(_width(x, d_model), convention, base, freq_scale, freqs).add_(
        x,
        offset=offset,
        positions=positions,
        mask=mask,
        lengths=lengths,
        cu_seqlens=cu_seqlens,
        scale=scale,
        alpha=alpha,
        seq_axis=seq_axis,
        channels=channels,
        table=table,
        num_threads=num_threads,
    )


def add(
    x: npt.ArrayLike,
    *,
    convention: ConventionName | str | Convention = "vaswani",
    base: float | None = None,
    freq_scale: float | None = None,
    freqs: npt.ArrayLike | None = None,
    offset: int | npt.ArrayLike | None = None,
    positions: npt.ArrayLike | None = None,
    mask: npt.ArrayLike | None = None,
    lengths: npt.ArrayLike | None = None,
    cu_seqlens: npt.ArrayLike | None = None,
    scale: float = 1.0,
    alpha: float = 1.0,
    seq_axis: int = -2,
    channels: tuple[int, int] | None = None,
    d_model: int | None = None,
    table: npt.ArrayLike | None = None,
    num_threads: int | None = None,
    out: npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """Add the encoding to embeddings, into another array: one pass that reads `x` and writes `out`.

    Parameters
    ----------
    x : array_like [L, C], [B, L, C] or [B, .., L, C]
        float32, float64, float16 or ml_dtypes.bfloat16; any strides, read-only and broadcast ones included. It is only
        read, so it may be whatever NumPy takes as an array: a list, a tensor of torch or jax, an object with DLPack.
    convention, base, freq_scale, freqs, offset, positions, mask, lengths, cu_seqlens, scale, alpha, seq_axis, channels, \
d_model, table, num_threads
        As in `add_`. Rows that are left alone are copied.
    out : ndarray, optional
        A writable array of exactly `x`'s shape and dtype: `x` itself, or apart from it.

    Returns
    -------
    ndarray
        `out`, or a new array.

    Raises
    ------
    TypeError, ValueError, IndexError
        As `add_`, and for an `out` that overlaps `x` in part.

    Notes
    -----
    Formula: see `encode`.

    Examples
    --------
    >>> import numpy as np, fastpe
    >>> fastpe.add(np.ones((2, 4)), scale=2.0)
    array([[2.        , 3.        , 2.        , 3.        ],
           [2.84147098, 2.54030231, 2.00999983, 2.99995   ]])
    """
    x = _readable(x, "x")
    return cached_encoding(_width(x, d_model), convention, base, freq_scale, freqs).add(
        x,
        offset=offset,
        positions=positions,
        mask=mask,
        lengths=lengths,
        cu_seqlens=cu_seqlens,
        scale=scale,
        alpha=alpha,
        seq_axis=seq_axis,
        channels=channels,
        table=table,
        num_threads=num_threads,
        out=out,
    )


def embed(
    ids: npt.ArrayLike,
    table: npt.ArrayLike,
    *,
    convention: ConventionName | str | Convention = "vaswani",
    base: float | None = None,
    freq_scale: float | None = None,
    freqs: npt.ArrayLike | None = None,
    offset: int | npt.ArrayLike | None = None,
    positions: npt.ArrayLike | None = None,
    mask: npt.ArrayLike | None = None,
    lengths: npt.ArrayLike | None = None,
    cu_seqlens: npt.ArrayLike | None = None,
    scale: float = 1.0,
    alpha: float = 1.0,
    position_table: npt.ArrayLike | None = None,
    num_threads: int | None = None,
    out: npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """Gather embeddings and add the encoding: ``table[ids] * scale + alpha * PE`` in one pass.

    Parameters
    ----------
    ids : int array_like, any shape S
        Rows of `table`; the last axis is the sequence.
    table : array_like [vocabulary, d_model]
        float32, float64, float16 or ml_dtypes.bfloat16, rows contiguous.
    convention, base, freq_scale, freqs, offset, positions, mask, lengths, cu_seqlens, scale, alpha, num_threads
        As in `add_`; a row that is left alone is ``table[id]`` as it is.
    position_table : array_like [max_len, d_model], [1, max_len, d_model] or [max_len, 1, d_model], optional
        A learned position table of `table`'s dtype, instead of sinusoids.
    out : ndarray, optional
        A writable array of shape ``S + (d_model,)`` and `table`'s dtype.

    Returns
    -------
    ndarray
        ``S + (d_model,)``, of `table`'s dtype; `out` where it is given.

    Raises
    ------
    IndexError
        For an id outside `table`, or a position outside `position_table`, naming its place and value. Nothing has been
        written then.
    TypeError, ValueError
        As `add_`.

    Notes
    -----
    Formula: see `encode`.

    Examples
    --------
    >>> import numpy as np, fastpe
    >>> fastpe.embed([1, 0], np.arange(8.0).reshape(2, 4))
    array([[4.        , 6.        , 6.        , 8.        ],
           [0.84147098, 1.54030231, 2.00999983, 3.99995   ]])
    """
    table = _readable(table, "table")
    return cached_encoding(_width(table, None), convention, base, freq_scale, freqs).embed(
        ids,
        table,
        offset=offset,
        positions=positions,
        mask=mask,
        lengths=lengths,
        cu_seqlens=cu_seqlens,
        scale=scale,
        alpha=alpha,
        position_table=position_table,
        num_threads=num_threads,
        out=out,
    )
