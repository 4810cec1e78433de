# SPDX-License-Identifier: BSD-3-Clause
"""Hypothesis strategies: arrays with any strides, and the arguments that go with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .reference import DTYPES, Array

dtypes = st.sampled_from(DTYPES)
seeds = st.integers(0, 2**32 - 1)
# Every tail around 4, 8, 16 and 32 lanes.
widths = st.integers(1, 33)
small_offsets = st.integers(-2000, 2000)
offsets = small_offsets | st.integers(-(2**53) + 100, 2**53 - 100)
factors = st.sampled_from([1.0, 0.0, -1.0, 0.5, 27.712812921102035, 1e-3, 3.0])


def values(shape: Sequence[int], dtype: np.dtype[Any], seed: int) -> Array:
    """Embeddings: ordinary ones, and now and then an extreme one."""
    rng = np.random.default_rng(seed)
    result = np.asarray(rng.standard_normal(tuple(shape))).astype(dtype)
    if result.size:
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 6e-8, 60000.0]).astype(dtype)
        flat = result.reshape(-1)
        flat[rng.integers(0, flat.size, 2)] = special[rng.integers(0, special.size, 2)]
    return result


@st.composite
def strided(draw: st.DrawFn, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """A writable view of this shape into a larger array: any order of axes, steps and directions."""
    axes = len(shape)
    order = draw(st.permutations(range(axes)))
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 2, 3]), min_size=axes, max_size=axes))
    reverse = draw(st.lists(st.booleans(), min_size=axes, max_size=axes))
    margins = draw(st.lists(st.integers(0, 2), min_size=axes, max_size=axes))
    lengths = [shape[axis] * steps[axis] + 2 * margins[axis] for axis in range(axes)]
    memory = values([lengths[axis] for axis in order], dtype, draw(seeds))
    view: Array = memory.transpose(np.argsort(order))
    for axis in range(axes):
        start = margins[axis]
        index: list[slice] = [slice(None)] * axes
        index[axis] = slice(start, start + shape[axis] * steps[axis], steps[axis])
        view = view[tuple(index)]
        if reverse[axis]:
            view = np.flip(view, axis)
    assert view.shape == tuple(shape)
    return view


@st.composite
def integer_arrays(draw: st.DrawFn, shape: Sequence[int], low: int, high: int) -> Array:
    """Integers of any integer type that holds the range, with any strides."""
    types = [t for t in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8") if _holds(t, low, high)]
    dtype = np.dtype(draw(st.sampled_from(types)))
    rng = np.random.default_rng(draw(seeds))
    result = rng.integers(low, high, tuple(shape), dtype=np.int64, endpoint=True).astype(dtype)
    if result.ndim and draw(st.booleans()):
        wide = np.zeros((*result.shape[:-1], 2 * result.shape[-1]), dtype)
        wide[..., ::2] = result
        result = wide[..., ::2]
    return result


def _holds(name: str, low: int, high: int) -> bool:
    limits = np.iinfo(name)
    return bool(limits.min <= low and high <= limits.max)
