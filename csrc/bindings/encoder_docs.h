// SPDX-License-Identifier: BSD-3-Clause
// Docstrings of the compiled methods; the first line is the signature that inspect reads.
#pragma once

#include <string>

namespace fastpe::bindings {

constexpr const char* encode_doc =
    R"doc(encode($self, /, positions, *, dtype=None, offset=None, mask=None, lengths=None, channels=None, num_threads=None, out=None)
--

Encode positions.

Parameters
----------
positions : int or array_like of int, float32 or float64
    An int is a number of positions, counted from the convention's first one. Anything else is an array of positions,
    in positions (not radians), of any shape; negative and fractional ones are fine.
dtype : dtype, optional
    float32 (default), float64, float16 or ml_dtypes.bfloat16; ``out``'s where that is given.
offset : int or int array [B], optional
    Added to counted positions; with an array the result is ``[B, positions, d_model]``.
mask : bool array [L] or [B, L], optional
    Rows that are False become zero; counted positions count the others.
lengths : int array [B], optional
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
    ``positions.shape + (d_model,)``, or ``[positions, d_model]`` for an int; ``out`` where it is given.

Raises
------
ValueError
    For a position that is not finite or beyond 2**53, a negative count, or an ``out`` of another shape, that is
    read-only, overlapping or misaligned.
TypeError
    For a dtype that does not fit.

Notes
-----
float32, float16 and bfloat16 values are the exact ones rounded once (within 0.5 ulp + 1e-15); float64 values are within
1 ulp + 2e-16. Formula: Vaswani et al., "Attention Is All You Need", 2017, section 3.5.

Examples
--------
>>> import fastpe
>>> fastpe.PositionalEncoding(4).encode(2)
array([[0.        , 1.        , 0.        , 1.        ],
       [0.84147096, 0.5403023 , 0.00999983, 0.99995   ]], dtype=float32)
)doc";

constexpr const char* row_arguments_doc = R"doc(offset : int or int array [B], optional
    Added to the counted positions 0 .. L-1 (from the convention's first one): one for all rows, or one per batch row.
    With ``cu_seqlens``, one per sequence.
positions : int or float array [L] or [B, L], optional
    Explicit positions instead, in positions.
mask : bool array [L] or [B, L], optional
    Rows that are False are left as they are. Without ``positions``, positions count the other rows only.
lengths : int array [B], optional
    Rows from ``lengths[b]`` on are left as they are.
cu_seqlens : int array [sequences + 1], optional
    Packed rows ``[N, d_model]``: where each sequence starts, and N. Positions start again in each.
scale, alpha : float, optional
    ``x * scale + alpha * PE``, in one pass; 1 by default.
)doc";

inline const char* add_in_place_doc() {
  static const std::string doc =
      std::string(
          R"doc(add_($self, /, x, *, offset=None, positions=None, mask=None, lengths=None, cu_seqlens=None, scale=1.0, alpha=1.0, seq_axis=-2, channels=None, table=None, num_threads=None)
--

Add the encoding to embeddings, in place.

Parameters
----------
x : ndarray [L, d_model], [B, L, d_model] or [B, .., L, d_model]
    float32, float64, float16 or ml_dtypes.bfloat16; any strides; writable, aligned, without overlap.
)doc") +
      row_arguments_doc + R"doc(seq_axis : int, optional
    Which axis of ``x`` is the sequence.
channels : tuple of int, optional
    ``x`` holds columns ``first`` to ``end`` of an encoding ``d_model`` wide.
table : ndarray [max_len, d_model], optional
    A learned position table of ``x``'s dtype, instead of sinusoids.
num_threads : int, optional
    At most this many threads.

Returns
-------
ndarray
    ``x`` itself.

Raises
------
TypeError
    For an ``x`` that is no array or has another dtype or byte order.
ValueError
    For an ``x`` that is read-only, misaligned or overlapping, for shapes that do not match, and for positions that are
    not finite or beyond 2**53. Nothing has been written then.
IndexError
    For a position outside ``table``.

Examples
--------
>>> import numpy as np, fastpe
>>> x = np.zeros((2, 3, 4), np.float32)
>>> fastpe.PositionalEncoding(4).add_(x, offset=np.array([0, 7])) is x
True
>>> x[:, 0]
array([[0.        , 1.        , 0.        , 1.        ],
       [0.6569866 , 0.75390226, 0.06994285, 0.997551  ]], dtype=float32)
)doc";
  return doc.c_str();
}

inline const char* add_doc() {
  static const std::string doc =
      std::string(
          R"doc(add($self, /, x, *, offset=None, positions=None, mask=None, lengths=None, cu_seqlens=None, scale=1.0, alpha=1.0, seq_axis=-2, channels=None, table=None, num_threads=None, out=None)
--

Add the encoding to embeddings, into another array: one pass that reads ``x`` and writes ``out``.

Parameters
----------
x : ndarray [L, d_model], [B, L, d_model] or [B, .., L, d_model]
    float32, float64, float16 or ml_dtypes.bfloat16; any strides, read-only and broadcast ones included.
)doc") +
      row_arguments_doc + R"doc(seq_axis, channels, table, num_threads
    As in ``add_``. Rows that are left alone are copied.
out : ndarray, optional
    A writable array of exactly ``x``'s shape and dtype; ``x`` itself, or apart from it.

Returns
-------
ndarray
    ``out``, or a new array.

Raises
------
TypeError, ValueError, IndexError
    As ``add_``, and for an ``out`` that overlaps ``x`` in part.

Examples
--------
>>> import numpy as np, fastpe
>>> fastpe.PositionalEncoding(4).add(np.ones((2, 4)), scale=2.0)
array([[2.        , 3.        , 2.        , 3.        ],
       [2.84147098, 2.54030231, 2.00999983, 2.99995   ]])
)doc";
  return doc.c_str();
}

inline const char* embed_doc() {
  static const std::string doc =
      std::string(
          R"doc(embed($self, /, ids, table, *, offset=None, positions=None, mask=None, lengths=None, cu_seqlens=None, scale=1.0, alpha=1.0, position_table=None, num_threads=None, out=None)
--

Gather embeddings and add the encoding: ``table[ids] * scale + alpha * PE`` in one pass.

Parameters
----------
ids : int array_like, any shape S
    Rows of ``table``; the last axis is the sequence.
table : ndarray [vocabulary, d_model]
    float32, float64, float16 or ml_dtypes.bfloat16, rows contiguous.
)doc") +
      row_arguments_doc + R"doc(position_table : ndarray [max_len, d_model], optional
    A learned position table of ``table``'s dtype, instead of sinusoids.
num_threads : int, optional
    At most this many threads.
out : ndarray, optional
    A writable array of shape ``S + (d_model,)`` and ``table``'s dtype.

Returns
-------
ndarray
    ``S + (d_model,)``, of ``table``'s dtype; ``out`` where it is given.

Raises
------
IndexError
    For an id outside ``table``, or a position outside ``position_table``, naming its place and value. Nothing has been
    written then.
TypeError, ValueError
    As ``add_``.

Examples
--------
>>> import numpy as np, fastpe
>>> table = np.arange(8.0).reshape(2, 4)
>>> fastpe.PositionalEncoding(4).embed([1, 0], table)
array([[4.        , 6.        , 6.        , 8.        ],
       [0.84147098, 1.54030231, 2.00999983, 3.99995   ]])
)doc";
  return doc.c_str();
}

}  // namespace fastpe::bindings
