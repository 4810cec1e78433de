# SPDX-License-Identifier: BSD-3-Clause
"""The order of columns, from one pairing to the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fastpe._arguments import flag, integer, names_keywords
from fastpe._errors import refused


@names_keywords
def pair_order(rotary_dim: int, *, to_interleaved: bool, head_dim: int | None = None) -> npt.NDArray[np.int64]:
    """Get the order of a head's columns that turns one pairing into the other.

    Parameters
    ----------
    rotary_dim : int
        The columns of a head that are rotated, an even number.
    to_interleaved : bool
        True if pairs are columns ``k`` and ``k + rotary_dim / 2`` now, and are to be neighbours, as llama.cpp has Llama's; and
        False for the opposite, as transformers has Llama's.
    head_dim : int, optional
        All columns of a head, `rotary_dim` by default. The others stay where they are.

    Returns
    -------
    int64 array [head_dim]
        An index: ``q[.., index]`` of queries or keys, ``weight.reshape(heads, head_dim, -1)[:, index]`` of the projection that
        makes them, and ``bias.reshape(heads, head_dim)[:, index]``. Both queries and keys need it.

    Raises
    ------
    ValueError, TypeError
        For a `rotary_dim` that is odd or below 2, and a `head_dim` below it.

    Notes
    -----
    Scores do not change, since both sides of a dot product are reordered in the same way. ``to_interleaved=False`` is
    ``permute`` of huggingface/transformers, models/llama/convert_llama_weights_to_hf.py; ``to_interleaved=True`` is
    ``permute`` of ggml-org/llama.cpp, convert_hf_to_gguf.py.

    Examples
    --------
    >>> import fastpe
    >>> fastpe.pair_order(6, to_interleaved=True, head_dim=8)
    array([0, 3, 1, 4, 2, 5, 6, 7])
    """
    rotary_dim = integer("rotary_dim", rotary_dim, 2)
    if rotary_dim % 2:
        raise refused(ValueError, "rotary_dim", f"is {rotary_dim}", "an even number")
    head_dim = rotary_dim if head_dim is None else integer("head_dim", head_dim, rotary_dim)
    order = np.arange(head_dim, dtype=np.int64)
    by_pairs = (2, -1) if flag("to_interleaved", to_interleaved) else (-1, 2)
    order[:rotary_dim] = order[:rotary_dim].reshape(by_pairs).T.ravel()
    return order
