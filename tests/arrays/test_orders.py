# SPDX-License-Identifier: BSD-3-Clause
"""Every order of the elements of each array, with those of the others: the values are those of contiguous arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.reference import DTYPES, Array, assert_same_bits

ORDERS: dict[str, Callable[[Array], Array]] = {  # memory of the shape of [B, H, L, C], with other axes
    "rows": lambda x: x.copy(),
    "columns": lambda x: x.swapaxes(2, 3).copy().swapaxes(2, 3),
    "columns far apart": lambda x: np.pad(x.swapaxes(2, 3), [(0, 0)] * 3 + [(0, 1024 - x.shape[2])])[..., : x.shape[2]].swapaxes(2, 3),
    "gaps": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "inside": lambda x: x.swapaxes(1, 2).copy().swapaxes(1, 2),
}  # fmt: skip
of_all_orders = pytest.mark.parametrize("orders", [*itertools.product(ORDERS, ORDERS)], ids="-".join)
sizes = pytest.mark.parametrize(
    ("length", "pairs", "dtype"), [(20, 21, DTYPES[0]), (256, 5, DTYPES[1]), (70, 19, DTYPES[2])]
)
VALID: dict[str, Any] = {"lengths": [3, 17]}


def numbers(shape: tuple[int, ...], dtype: Any) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


@sizes
@of_all_orders
def test_rotations(orders: tuple[str, str], length: int, pairs: int, dtype: np.dtype[Any]) -> None:
    first, second = (ORDERS[order] for order in orders)
    some = 1.0 / np.arange(1.0, pairs + 1) * (np.arange(pairs) % 7 > 1)  # some pairs of frequency 0
    for interleaved, more, frequencies, given in itertools.product([False, True], [0, 3], [None, some], [{}, VALID]):
        options: dict[str, Any] = {"interleaved": interleaved, "head_dim": 2 * pairs + more, "frequencies": frequencies}
        rope = fastpe.RotaryEmbedding(2 * pairs, **options, max_len=length * (len(given) + more > 0))
        x = numbers((2, 3, length, 2 * pairs + more), dtype)
        expected = rope.rotate(x, seq_axis=2, **given)
        out = second(np.zeros_like(x))
        assert rope.rotate(first(x), out=out, seq_axis=2, **given) is out
        assert_same_bits(out.copy(), expected)
        q, k = rope.rotate_(first(x), second(x[:, :2]), seq_axis=2, **given)
        assert_same_bits(q.copy(), expected)
        assert_same_bits(k.copy(), expected[:, :2])
