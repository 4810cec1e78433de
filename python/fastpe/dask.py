# SPDX-License-Identifier: BSD-3-Clause
"""Add encodings to chunked dask arrays, lazily.

This module needs dask: ``pip install 'dask[array]'``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastpe import Convention, PositionalEncoding
from fastpe._arguments import integer
from fastpe._arrays import ArrayLike
from fastpe._errors import a_type, refused, renamed
from fastpe._extras import needed
from fastpe._names import ConventionName

if TYPE_CHECKING:
    import dask.array

__all__ = ["add"]


def add(
    array: dask.array.Array,
    *,
    seq_axis: int = -2,
    convention: ConventionName | Convention = "vaswani",
    base: float | None = None,
    freq_scale: float | None = None,
    frequencies: ArrayLike | None = None,
    offset: int = 0,
    scale: float = 1.0,
    alpha: float = 1.0,
    num_threads: int = 1,
) -> dask.array.Array:
    """Add the encoding to a dask array. The result has the bits of `fastpe.add` of the whole array.

    Any axis may be chunked, the sequence and the last one included; no chunk is moved or merged, and none is changed.

    Parameters
    ----------
    array : dask.array.Array [.., L, d_model]
        float32, float64, float16 or ml_dtypes.bfloat16.
    seq_axis : int, optional
        Which axis is the sequence; not the last one.
    convention, base, freq_scale, frequencies, scale, alpha
        As in `fastpe.add_`.
    offset : int, optional
        Added to the counted positions, the same for all rows.
    num_threads : int, optional
        The largest number of threads for each chunk. Dask's workers run chunks at the same time.

    Returns
    -------
    dask.array.Array
        A new lazy array of the same shape, chunks and dtype.

    Raises
    ------
    TypeError
        For an argument that is not a dask array, or has another dtype.
    ValueError
        For a `seq_axis` that does not exist, chunks of unknown size along the sequence or the last axis, and as
        `fastpe.add_`. All errors are raised by the call, and not when the result is computed.

    Examples
    --------
    >>> import dask.array, fastpe.dask
    >>> x = dask.array.zeros((8, 100, 64), chunks=(3, 33, 50), dtype="float32")
    >>> y = fastpe.dask.add(x)
    >>> bool((y[5].compute() == fastpe.encode(100, 64)).all())
    True
    """
    with needed("fastpe.dask", "dask", "'dask[array]'"):
        import dask.array

    if not isinstance(array, dask.array.Array):
        found, remedy = f"is {a_type(array)}", "for other arrays, use fastpe.add"
        raise refused(TypeError, "array", found, "a dask array", remedy)
    seq_axis, offset = integer("seq_axis", seq_axis), integer("offset", offset)
    axis = seq_axis + array.ndim if seq_axis < 0 else seq_axis
    if not 0 <= axis < array.ndim - 1:
        expected = f"an axis of array, {list(array.shape)}, other than the last"
        raise refused(ValueError, "seq_axis", f"is {seq_axis}", expected)
    seq_len, d_model = array.shape[axis], array.shape[-1]
    if math.isnan(seq_len) or math.isnan(d_model):
        found = "has chunks of unknown size along the sequence or the last axis"
        raise refused(ValueError, "array", found, remedy="call array.compute_chunk_sizes() first")
    encoding = PositionalEncoding(
        max(d_model, 1), convention=convention, base=base, freq_scale=freq_scale, frequencies=frequencies
    )
    options: dict[str, Any] = {"scale": scale, "alpha": alpha, "num_threads": num_threads}
    try:
        # Only the first and the last row, so that a wrong argument is an error here and not in a worker.
        for start in (offset, offset + max(seq_len - 1, 0)):
            encoding._add_part(np.zeros((1, 1), array.dtype), 0, offset=start, **options)
    except TypeError as error:
        raise renamed(error, {"x": "array"}) from None
    return dask.array.map_blocks(
        _add_block,
        array,
        dtype=array.dtype,
        meta=np.empty((0,) * array.ndim, array.dtype),
        name=None,
        encoding=encoding,
        axis=axis,
        offset=offset,
        options=options,
    )


def _add_block(
    block: npt.NDArray[Any],
    *,
    encoding: PositionalEncoding,
    axis: int,
    offset: int,
    options: dict[str, Any],
    block_info: Any = None,
) -> npt.NDArray[Any]:
    location = block_info[0]["array-location"]
    # A block that came from another worker lies in the message, wherever that put it.
    aligned = np.require(block, requirements="A")
    start = offset + location[axis][0]
    return encoding._add_part(aligned, location[-1][0], seq_axis=axis, offset=start, **options)
