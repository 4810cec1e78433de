# SPDX-License-Identifier: BSD-3-Clause
"""The functions: each looks its encoder up in a small cache and calls the method of the same name."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import leave_out, names_keywords
from fastpe._arrays import ArrayLike, Given, WritableArray
from fastpe._names import ConventionName
from fastpe._sinusoid.convention import Convention
from fastpe._sinusoid.encoder import PositionalEncoding, cached_encoding


def _encoding_for(
    x: Any, learned_name: str, learned: Any, convention: Any, base: Any, freq_scale: Any, frequencies: Any
) -> PositionalEncoding:
    """The encoder as wide as `x`, to which its own rows are added, or those of a learned table."""
    if learned is not None:
        why = "a learned table has no frequencies"
        leave_out(learned_name, why, base=base, freq_scale=freq_scale, frequencies=frequencies)
    shape = getattr(x, "shape", None)
    if not isinstance(shape, tuple) and hasattr(x, "__dlpack__"):
        shape = _core.array(x, "x").shape
    # Of what is not an array of rows, any encoder's own check says what is wrong.
    width = max(int(shape[-1]), 1) if isinstance(shape, tuple) and shape else 1
    return cached_encoding(width, convention, base, freq_scale, frequencies)


@names_keywords
def encode(
    positions: int | ArrayLike,
    d_model: int,
    *,
    convention: ConventionName | Convention = "vaswani",
    base: float | None = None,
    freq_scale: float | None = None,
    frequencies: ArrayLike | None = None,
    dtype: npt.DTypeLike | None = None,
    offset: int | ArrayLike | None = None,
    valid: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    num_threads: int | None = None,
    out: WritableArray | None = None,
) -> npt.NDArray[Any]:
    """Encode positions.

    Parameters
    ----------
    positions : int or array_like of int, float32 or float64
        An int is a number of positions, counted from the convention's first one. Anything else is an array of
        positions of any shape, which may be negative or fractional.
    d_model : int
        Width of the encoding, from 1 to 2**20.
    convention : str or Convention, optional
        A name in `fastpe.conventions`, or one of your own.
    base, freq_scale : float, optional
        Numbers that replace those of the convention.
    frequencies : array_like of float64, optional
        The frequencies themselves, in radians per position.
    dtype : dtype, optional
        float32, float64, float16 or ml_dtypes.bfloat16; by default that of `out`, or else float32.
    offset : int or int array [B] or [B, 1], optional
        The number that is added to counted positions. With an array, the result is ``[B, positions, d_model]``.
    valid : bool array [L], [1, L] or [B, L], optional
        Which rows are valid, as True or 1. The others become zero, and are not counted.
    lengths : int, or int array [B] or [B, 1], optional
        Rows from ``lengths[b]`` on become zero.
    num_threads : int, optional
        The largest number of threads.
    out : ndarray, optional
        A writable array of exactly the result's dtype and shape, behind axes of length 1 if there are any.

    Returns
    -------
    ndarray
        An array ``positions.shape + (d_model,)``, or ``[positions, d_model]`` for an int; or `out` if it was given.

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
    within 1 ulp + 2e-16. The formula of the default convention is ``PE[p, 2k] = sin(p / 10000**(2k / d_model))``,
    ``PE[p, 2k + 1] = cos(..)``: Vaswani et al., "Attention Is All You Need", 2017, section 3.5.

    Examples
    --------
    >>> import fastpe
    >>> fastpe.encode(2, 4)
    array([[0.        , 1.        , 0.        , 1.        ],
           [0.84147096, 0.5403023 , 0.00999983, 0.99995   ]], dtype=float32)
    >>> fastpe.encode([-1, 0.5, 10**12], 4, dtype="float64").shape
    (3, 4)
    """
    return cached_encoding(d_model, convention, base, freq_scale, frequencies).encode(
        positions, dtype=dtype, offset=offset, valid=valid, lengths=lengths, num_threads=num_threads, out=out
    )


@names_keywords
def add_(
    x: Given,
    *,
    convention: ConventionName | Convention = "vaswani",
    base: float | None = None,
    freq_scale: float | None = None,
    frequencies: ArrayLike | None = None,
    offset: int | ArrayLike | None = None,
    positions: ArrayLike | None = None,
    valid: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    cu_seqlens: ArrayLike | None = None,
    scale: float = 1.0,
    alpha: float = 1.0,
    seq_axis: int = -2,
    table: ArrayLike | None = None,
    num_threads: int | None = None,
) -> Given:
    """Add the encoding to embeddings, in place.

    Parameters
    ----------
    x : ndarray [L, C], [B, L, C] or [B, .., L, C]
        A writable, aligned array without overlap, of float32, float64, float16 or ml_dtypes.bfloat16, with any strides.
    convention, base, freq_scale, frequencies : optional
        As in `encode`.
    offset : int or int array [B] or [B, 1], optional
        What is added to counted positions, which begin at the convention's first one: one number for all rows, one per
        batch row, or one per sequence of `cu_seqlens`.
    positions : int or float array [L], [1, L] or [B, L], optional
        The positions themselves, which are then not counted; they may be negative or fractional.
    valid : bool array [L], [1, L] or [B, L], optional
        Which rows are valid, as True or 1. The others are left as they are, bit for bit, and are not counted, so
        padding may be on the left.
    lengths : int, or int array [B] or [B, 1], optional
        Rows from ``lengths[b]`` on are left as they are.
    cu_seqlens : int array [sequences + 1], optional
        For packed rows ``x [N, C]``, the row where each sequence starts, and N. Positions start again in each sequence.
    scale, alpha : float, optional
        The factors in ``x * scale + alpha * PE``, which is computed in one pass.
    seq_axis : int, optional
        Which axis of `x` is the sequence.
    table : array_like [max_len, C], [1, max_len, C] or [max_len, 1, C], optional
        A learned position table of `x`'s dtype, instead of sinusoids.
    num_threads : int, optional
        The largest number of threads.

    Returns
    -------
    ndarray
        `x` itself.

    Raises
    ------
    TypeError
        For an `x` that is not an array, or has another dtype or byte order.
    ValueError
        For an `x` that is read-only, misaligned or overlapping, for shapes that do not match, for positions that are
        not finite or beyond 2**53, and for an unknown convention. Nothing has been written then.
    IndexError
        For a position outside `table`.

    Notes
    -----
    In float32 and float64 the result is, bit for bit, NumPy's ``x * scale + alpha * encode(..)`` with Python floats for
    `scale` and `alpha`. In the 16-bit types the arithmetic is float32, and the result is rounded once. `encode` has the
    formula.

    Examples
    --------
    >>> import numpy as np, fastpe
    >>> x = np.zeros((2, 3, 4), np.float32)
    >>> fastpe.add_(x) is x
    True
    >>> bool((x == fastpe.encode(3, 4)).all())
    True
    """
    return _encoding_for(x, "table", table, convention, base, freq_scale, frequencies).add_(
        x,
        offset=offset,
        positions=positions,
        valid=valid,
        lengths=lengths,
        cu_seqlens=cu_seqlens,
        scale=scale,
        alpha=alpha,
        seq_axis=seq_axis,
        table=table,
        num_threads=num_threads,
    )


@names_keywords
def add(
    x: ArrayLike,
    *,
    convention: ConventionName | Convention = "vaswani",
    base: float | None = None,
    freq_scale: float | None = None,
    frequencies: ArrayLike | None = None,
    offset: int | ArrayLike | None = None,
    positions: ArrayLike | None = None,
    valid: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    cu_seqlens: ArrayLike | None = None,
    scale: float = 1.0,
    alpha: float = 1.0,
    seq_axis: int = -2,
    table: ArrayLike | None = None,
    num_threads: int | None = None,
    out: WritableArray | None = None,
) -> npt.NDArray[Any]:
    """Add the encoding to embeddings, into another array, in one pass that reads `x` and writes `out`.

    Parameters
    ----------
    x : array_like [L, C], [B, L, C] or [B, .., L, C]
        An array of float32, float64, float16 or ml_dtypes.bfloat16, with any strides, read-only or broadcast. It is
        only read, so it may be whatever NumPy takes as an array: a list, a tensor of torch or jax, an object with
        DLPack.
    convention, base, freq_scale, frequencies, offset, positions, valid, lengths, cu_seqlens, scale, alpha, seq_axis, table, \
num_threads
        The arguments of `add_`. Rows that are left out are copied.
    out : ndarray, optional
        A writable array of exactly `x`'s shape and dtype: `x` itself, or an array apart from it.

    Returns
    -------
    ndarray
        `out`, or a new array.

    Raises
    ------
    TypeError, ValueError, IndexError
        The errors of `add_`, and for an `out` that overlaps `x` in part.

    Notes
    -----
    `encode` has the formula.

    Examples
    --------
    >>> import numpy as np, fastpe
    >>> fastpe.add(np.ones((2, 4)), scale=2.0)
    array([[2.        , 3.        , 2.        , 3.        ],
           [2.84147098, 2.54030231, 2.00999983, 2.99995   ]])
    """
    x = x if isinstance(x, np.ndarray) else _core.array(x, "x")
    return _encoding_for(x, "table", table, convention, base, freq_scale, frequencies).add(
        x,
        offset=offset,
        positions=positions,
        valid=valid,
        lengths=lengths,
        cu_seqlens=cu_seqlens,
        scale=scale,
        alpha=alpha,
        seq_axis=seq_axis,
        table=table,
        num_threads=num_threads,
        out=out,
    )


@names_keywords
def embed(
    ids: ArrayLike,
    table: ArrayLike,
    *,
    convention: ConventionName | Convention = "vaswani",
    base: float | None = None,
    freq_scale: float | None = None,
    frequencies: ArrayLike | None = None,
    offset: int | ArrayLike | None = None,
    positions: ArrayLike | None = None,
    valid: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    cu_seqlens: ArrayLike | None = None,
    scale: float = 1.0,
    alpha: float = 1.0,
    position_table: ArrayLike | None = None,
    num_threads: int | None = None,
    out: WritableArray | None = None,
) -> npt.NDArray[Any]:
    """Gather embeddings and add the encoding: ``table[ids] * scale + alpha * PE`` in one pass.

    Parameters
    ----------
    ids : int array_like, any shape S
        Rows of `table`; the last axis is the sequence.
    table : array_like [vocabulary, d_model]
        An array of float32, float64, float16 or ml_dtypes.bfloat16 with contiguous rows.
    convention, base, freq_scale, frequencies, offset, positions, valid, lengths, cu_seqlens, scale, alpha, num_threads
        The arguments of `add_`. A row that is left out is ``table[id]`` as it is.
    position_table : array_like [max_len, d_model], [1, max_len, d_model] or [max_len, 1, d_model], optional
        A learned position table of `table`'s dtype, instead of sinusoids.
    out : ndarray, optional
        A writable array of shape ``S + (d_model,)`` and `table`'s dtype.

    Returns
    -------
    ndarray
        An array ``S + (d_model,)`` of `table`'s dtype, or `out` if it was given.

    Raises
    ------
    IndexError
        For an id outside `table`, or a position outside `position_table`, naming its place and value. Nothing has been
        written then.
    TypeError, ValueError
        The errors of `add_`.

    Notes
    -----
    `encode` has the formula.

    Examples
    --------
    >>> import numpy as np, fastpe
    >>> fastpe.embed([1, 0], np.arange(8.0).reshape(2, 4))
    array([[4.        , 6.        , 6.        , 8.        ],
           [0.84147098, 1.54030231, 2.00999983, 3.99995   ]])
    """
    table = table if isinstance(table, np.ndarray) else _core.array(table, "table")
    encoding = _encoding_for(table, "position_table", position_table, convention, base, freq_scale, frequencies)
    return encoding.embed(
        ids,
        table,
        offset=offset,
        positions=positions,
        valid=valid,
        lengths=lengths,
        cu_seqlens=cu_seqlens,
        scale=scale,
        alpha=alpha,
        position_table=position_table,
        num_threads=num_threads,
        out=out,
    )
