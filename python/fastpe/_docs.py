# SPDX-License-Identifier: BSD-3-Clause
"""Docstrings of the compiled methods, which have their signatures already."""

from __future__ import annotations

from fastpe import _core
from fastpe._sinusoid.functions import add, add_, embed, encode

_of_a_function = """{summary}

Refer to `fastpe.{name}` for the arguments, the result and the errors.

Examples
--------
>>> import numpy as np, fastpe
>>> encoding = fastpe.PositionalEncoding(4)
{example}
"""
_examples = {
    encode: ">>> encoding.encode([0])\narray([[0., 1., 0., 1.]], dtype=float32)",
    add_: ">>> x = np.zeros((2, 3, 4), np.float32)\n>>> encoding.add_(x, offset=[0, 7]) is x\nTrue",
    add: ">>> encoding.add(np.ones((1, 4)), scale=2.0)\narray([[2., 3., 2., 3.]])",
    embed: ">>> encoding.embed([1], np.ones((2, 4)))\narray([[1., 2., 1., 2.]])",
}

_encoder = {
    "warm_up": """Compute in advance what later calls read: the tables of one dtype, and all rows of `max_len`.

A server calls it before its first request, so that no request spends time on them. Results are the same without it.

Parameters
----------
dtype : dtype, optional
    The dtype of the arrays in later calls; float32 by default. Rows are kept in float32 and float64, and 16-bit arrays
    read those of float32.
num_threads : int, optional
    The largest number of threads.

Raises
------
MemoryError
    If there is no memory for the rows. Calls would also raise it: choose a smaller `max_len`.

Examples
--------
>>> import numpy as np, fastpe
>>> encoding = fastpe.PositionalEncoding(768, max_len=512)
>>> encoding.warm_up()
>>> fastpe.show_config("dicts")["kept_row_bytes"] >= 512 * 768 * 4
True
"""
}

_rotary = {
    "tables": """Make the cosines and sines of positions.

Each value is the attention factor times the exact cosine or sine, rounded once.

Parameters
----------
positions : int or array_like
    How many positions there are, counted from `offset`; or positions of any shape S, integers or floats, of magnitude
    at most 2**53. With `frequency_axes`, an array S + (coordinates,).
form : str, optional
    How cosines and sines are arranged; "halves" by default. With d = `rotary_dim`:

    - ``"halves"``: a tuple (cos, sin), each S + (d/2,);
    - ``"tile"``: (cos, sin), each S + (d,), the halves twice, one after the other;
    - ``"repeat"``: (cos, sin), each S + (d,), every value twice;
    - ``"cos_sin"``, ``"sin_cos"``: one array S + (d,), both halves side by side;
    - ``"pairs"``: one array S + (d/2, 2) of (cos, sin);
    - ``"matrices"``: one array S + (d/2, 2, 2), [[cos, -sin], [sin, cos]] for each pair;
    - ``"complex"``: one complex array S + (d/2,), cos + i sin;
    - ``"angles"``: one array S + (d/2,) of position times frequency, in radians, without the attention factor.
dtype : dtype, optional
    float32, float64, float16 or ml_dtypes.bfloat16; by default that of `out`, or else float32. For "complex", it is the
    dtype of the parts. "complex" and "angles" only take float32 and float64.
offset : int or int array [B], optional
    The position at which counting starts.
out : ndarray or tuple of ndarrays, optional
    The arrays to write into, of exactly the results' shapes, behind axes of length 1 if there are any.
num_threads : int, optional
    The largest number of threads.

Returns
-------
ndarray or tuple of two ndarrays
    The arrays that `form` names, or `out` if it was given.

Raises
------
ValueError
    For a position that is not finite or beyond 2**53, an unknown form, or an `out` of another shape.
TypeError
    For an argument of another type.

Examples
--------
>>> import fastpe
>>> rope = fastpe.RotaryEmbedding(4, interleaved=False)
>>> cos, sin = rope.tables(2, offset=7)
>>> cos
array([[ 0.75390226,  0.997551  ],
       [-0.14550003,  0.99680173]], dtype=float32)
>>> rope.tables([0.5], form="angles")
array([[0.5  , 0.005]], dtype=float32)
""",
    "rotate_": """Rotate queries and keys, in place.

Parameters
----------
x, *others : ndarray [.., L, .., D]
    One array, or several with the same positions. They have one dtype (float32, float64, float16 or ml_dtypes.bfloat16)
    and one length L, are `head_dim` or `rotary_dim` columns wide, and share no memory. Numbers of heads may differ.
    Columns from `rotary_dim` on are left as they are. To rotate another part, pass a slice:
    ``rope.rotate_(q[..., 128:], seq_axis=-2)``. For an array [B, L, heads * D], pass ``x.reshape(B, L, heads, D)`` with
    ``seq_axis=-3``.
offset : int or int array [B], optional
    The position of the first row: one for all, one for each row of the batch, or one for each sequence of `cu_seqlens`.
positions : array_like [L] or [B, L], optional
    The positions themselves, integers or floats, which are then not counted. With `frequency_axes`, there is one axis more,
    [.., coordinates].
valid : array_like [L] or [B, L] of bool, or of integers 0 and 1, optional
    Which rows are valid. The others are left as they are, and are not counted.
lengths : int array_like [B], optional
    How many leading rows of each sequence are valid.
cu_seqlens : int array_like [number of sequences + 1], optional
    Where sequences of a packed batch start: 0, the running sum of their lengths.
seq_axis : int, optional
    The axis of L, needed for arrays of three axes or more: -2 for [B, H, L, D], -3 for [B, L, H, D], 0 for [L, B, H, D]
    and packed [N, H, D]. Offsets, masks and lengths belong to the first other axis. Further axes are heads, which share
    them.
inverse : bool, optional
    Whether to undo the call with the same other arguments, up to rounding.
num_threads : int, optional
    The largest number of threads.

Returns
-------
ndarray or tuple of ndarrays
    The arrays themselves.

Raises
------
ValueError
    For shapes that do not fit, arrays that share memory or are read-only, or positions that are not finite or beyond
    2**53. Nothing is written then.
TypeError
    For an argument of another type.

Notes
-----
``x1 * cos - x2 * sin`` and ``x2 * cos + x1 * sin`` for each pair (x1, x2), with the tables of `tables`: Su et al.,
"RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021, section 3.4.2. Each operation is rounded, as in
NumPy. In float16 and bfloat16, tables and arithmetic are float32, and the result is rounded once.

Examples
--------
>>> import numpy as np, fastpe
>>> rope = fastpe.RotaryEmbedding(4, interleaved=False)
>>> q, k = np.ones((1, 8, 2, 4), np.float32), np.ones((1, 2, 2, 4), np.float32)
>>> rope.rotate_(q, k, offset=3, seq_axis=-2)[0] is q
True
>>> q[0, 0].round(3)
array([[-1.131,  0.97 , -0.849,  1.03 ],
       [ 0.103,  0.959, -1.41 ,  1.039]], dtype=float32)
""",
    "rotate": """Rotate into another array.

Parameters
----------
x : array_like [.., L, .., D]
    As in `rotate_`, but one array, which is only read.
offset, positions, valid, lengths, cu_seqlens, seq_axis, inverse, num_threads
    As in `rotate_`.
out : ndarray, optional
    The array to write into: `x` itself, or an array apart from it, of its shape and dtype.

Returns
-------
ndarray
    `out`, or a new array. Columns from `rotary_dim` on, and rows that are not valid, are copied.

Raises
------
ValueError, TypeError
    The errors of `rotate_`.

Examples
--------
>>> import numpy as np, fastpe
>>> rope = fastpe.RotaryEmbedding(2, interleaved=True)
>>> rope.rotate(np.array([[1.0, 0.0], [1.0, 0.0]]))
array([[1.        , 0.        ],
       [0.54030231, 0.84147098]])
""",
    "shift_": """Move rotated keys to other positions, in place.

Parameters
----------
x, *others : ndarray [.., L, .., D]
    As in `rotate_`.
by : int, float or array_like [L], [B, L] or [B, 1]
    How many positions to move by, for all rows or for each; it may be fractional. With `frequency_axes`, there is one
    axis more, [.., coordinates].
valid, lengths, seq_axis, num_threads : optional
    As in `rotate_`.

Returns
-------
ndarray or tuple of ndarrays
    The arrays themselves.

Raises
------
ValueError, TypeError
    The errors of `rotate_`.

Notes
-----
The bits are those of `rotate_` with ``positions=by`` and an attention factor of 1, since the keys contain the factor
already. The rounding of 16-bit keys is not undone.

Examples
--------
>>> import numpy as np, fastpe
>>> rope = fastpe.RotaryEmbedding(4, interleaved=False)
>>> k = np.ones((3, 4))
>>> moved = rope.rotate(k, offset=10)
>>> bool(np.allclose(rope.shift_(moved, by=-10), rope.rotate(k)))
True
""",
    "shift": """Move rotated keys to other positions, into another array.

Parameters
----------
x : array_like [.., L, .., D]
    As in `shift_`, but one array, which is only read.
by, valid, lengths, seq_axis, num_threads
    As in `shift_`.
out : ndarray, optional
    The array to write into: `x` itself, or an array apart from it, of its shape and dtype.

Returns
-------
ndarray
    `out`, or a new array. Columns from `rotary_dim` on, and rows that are not valid, are copied.

Raises
------
ValueError, TypeError
    The errors of `shift_`.

Examples
--------
>>> import numpy as np, fastpe
>>> rope = fastpe.RotaryEmbedding(4, interleaved=False)
>>> k = rope.rotate(np.ones((3, 4)), offset=10)
>>> bool(np.allclose(rope.shift(k, by=-10), rope.rotate(np.ones((3, 4)))))
True
""",
    "warm_up": """Compute in advance what later calls read: the tables of one dtype, and all rows of `max_len`.

Refer to `fastpe.PositionalEncoding.warm_up`.
""",
}


def document_methods() -> None:
    """Give the methods their docstrings."""
    for kind, texts in ((_core.Encoding, _encoder), (_core.RotaryEmbedding, _rotary)):
        for name, text in texts.items():
            _core.document(getattr(kind, name), text)
    for function, example in _examples.items():
        name, summary = function.__name__, (function.__doc__ or "").partition("\n")[0]
        text = _of_a_function.format(summary=summary, name=name, example=example)
        _core.document(getattr(_core.Encoding, name), text)
