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
from fastpe._errors import refused
from fastpe._extras import needed
from fastpe._names import ConventionName

if TYPE_CHECKING:
    import dask.array

__all__ = ["add"]


def add(
    array: dask.array.Array,
    *,
    seq_axis: int = -2,
    convention: ConventionName | str | Convention = "vaswani",
    base: float | None = None,
    freq_scale: float | None = None,
    freqs: npt.ArrayLike | None = None,
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
    convention, base, freq_scale, freqs, scale, alpha
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
        For an argument that is no dask array, or has another dtype.
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
        raise refused(
            TypeError, "array", f"is a {type(array).__name__}", "a dask array", "for other arrays, use fastpe.add"
        )
    if array.dtype.name not in ("float32", "float64", "float16", "bfloat16"):
        raise refused(
            TypeError,
            "array",
            f"has dtype {array.dtype}",
            "float32, float64, float16 or ml_dtypes.bfloat16",
            "give array.astype(np.float32)",
        )
    seq_axis, offset = integer("seq_axis", seq_axis), integer("offset", offset)
    axes = array.ndim
    axis = seq_axis + axes if seq_axis < 0 else seq_axis
    if not 0 <= axis < axes - 1:
        raise refused(
            ValueError, "seq_axis", f"is {seq_axis}", f"an axis of array, {list(array.shape)}, other than the last"
        )
    seq_len, d_model = array.shape[axis], array.shape[-1]
    if math.isnan(seq_len) or math.isnan(d_model):
        raise refused(
            ValueError,
            "array",
            "has chunks of unknown size along the sequence or the last axis",
            "",
            "call array.compute_chunk_sizes() first",
        )
    encoding = PositionalEncoding(max(d_model, 1), convention=convention, base=base, freq_scale=freq_scale, freqs=freqs)
    _check(encoding, array.dtype, seq_len, offset, scale, alpha, num_threads)
    return dask.array.map_blocks(
        _add_block,
        array,
        dtype=array.dtype,
        meta=np.empty((0,) * axes, array.dtype),
        name=None,
        encoding=encoding,
        axis=axis,
        keywords={"scale": scale, "alpha": alpha, "num_threads": num_threads},
        offset=offset,
    )


def _check(
    encoding: PositionalEncoding,
    dtype: np.dtype[Any],
    seq_len: int,
    offset: int,
    scale: float,
    alpha: float,
    num_threads: int,
) -> None:
    # The first and the last row alone, so that a wrong argument is an error here and not in a worker.
    row = np.zeros((1, 1), dtype)
    for start in (offset, offset + max(seq_len - 1, 0)):
        encoding.add(row, offset=start, channels=(0, 1), scale=scale, alpha=alpha, num_threads=num_threads)


def _add_block(
    block: npt.NDArray[Any],
    *,
    encoding: PositionalEncoding,
    axis: int,
    keywords: dict[str, Any],
    offset: int,
    block_info: Any = None,
) -> npt.NDArray[Any]:
    location = block_info[0]["array-location"]
    # A block that came from another worker lies in the message, wherever that put it.
    aligned = np.require(block, requirements="A")
    return encoding.add(
        aligned, seq_axis=axis, offset=offset + location[axis][0], channels=tuple(location[-1]), **keywords
    )
