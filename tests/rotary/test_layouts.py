# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of heads as projects have them; tests/composed tries arrays of any layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.reference import assert_same_bits, bits, values

pytestmark = pytest.mark.usefixtures("instruction_set")

FLOAT32 = np.dtype(np.float32)


ROPE = fastpe.RotaryEmbedding(8, interleaved=False)


@pytest.mark.parametrize("offset", [7, [7, 100]])
def test_one_key_without_an_axis_of_heads(offset: Any) -> None:
    """Multi-head latent attention: the parts in the rear of queries, and one key that all heads share."""
    q, k = values((2, 3, 5, 20), FLOAT32, seed=8), values((2, 5, 8), FLOAT32, seed=9)
    q_before, k_before = q.copy(), k.copy()
    ROPE.rotate_(q[..., 12:], k, offset=offset, seq_axis=-2)
    np.testing.assert_array_equal(bits(q[..., :12]), bits(q_before[..., :12]))
    assert_same_bits(q[..., 12:], ROPE.rotate(q_before[..., 12:], offset=offset, seq_axis=-2))
    assert_same_bits(k, ROPE.rotate(k_before[:, None], offset=offset, seq_axis=-2)[:, 0])
    # With another axis of the sequence, the missing axis is given.
    q, k = q_before.transpose(0, 2, 1, 3).copy(), k_before.copy()
    ROPE.rotate_(q[..., 12:], k[:, :, None], offset=offset, seq_axis=-3)
    assert_same_bits(k, ROPE.rotate(k_before[:, None], offset=offset, seq_axis=-2)[:, 0])


@pytest.mark.parametrize("num_threads", [1, 2])
def test_heads_are_shared_out_within_an_axis(num_threads: int) -> None:
    """Threads take about 4 MiB at a time: here as many heads as the inner axis has, from the middle of one on."""
    rope = fastpe.RotaryEmbedding(2048, interleaved=False)
    rows, groups, heads = 20, 3, 25
    q = np.zeros((1, rows, 1, 7, 2048), np.float32)
    wide = np.zeros((1, rows, 2 * groups, heads, 2048), np.float32)
    k = wide[:, :, ::2]
    # Each head has one value, and its second partners have none.
    k[..., :1024] = np.arange(1, groups * heads + 1, dtype=np.float32).reshape(1, 1, groups, heads, 1)
    rope.rotate_(q, k, seq_axis=1, num_threads=num_threads)
    cos, sin = rope.tables(rows)
    for g in range(groups):
        for h in range(heads):
            value = np.float32(g * heads + h + 1)
            np.testing.assert_array_equal(k[0, :, g, h, :1024], value * cos)
            np.testing.assert_array_equal(k[0, :, g, h, 1024:], value * sin)
    assert not wide[:, :, 1::2].any()
    assert not q.any()


@pytest.mark.parametrize(
    "given", [{}, {"offset": 7}, {"positions": np.arange(5) * 3}, {"valid": [1, 0, 1, 1, 0]}], ids=str
)
def test_arrays_have_batches_of_their_own_where_all_rows_are_alike(given: Any) -> None:
    arrays = [values(shape, FLOAT32, seed=4) for shape in ((4, 3, 5, 8), (1, 2, 5, 8), (5, 8))]
    expected = [ROPE.rotate(each, seq_axis=-2, **given) for each in arrays]
    for order in ([0, 1, 2], [1, 0, 2], [2, 1, 0]):
        found = ROPE.rotate_(*(arrays[i].copy() for i in order), seq_axis=-2, **given)
        for i, each in zip(order, found, strict=True):
            assert_same_bits(each, expected[i])
