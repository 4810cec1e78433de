# SPDX-License-Identifier: BSD-3-Clause
"""What a rotation leaves alone, and its special values. tests/composed compares all others with NumPy's expression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.model import Array, pair_columns
from ..oracles.reference import DTYPES, assert_same_bits, bits
from ..reliability.conftest import run_python

pytestmark = pytest.mark.usefixtures("instruction_set")

FLOAT32, FLOAT64, FLOAT16 = DTYPES[:3]
PAIRINGS = pytest.mark.parametrize("interleaved", [False, True])
ALL_DTYPES = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def with_nan_payloads(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Every element is a NaN with bits of its own."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    count = int(np.prod(shape))
    exponent = bits(np.array([np.inf]).astype(dtype))[0]
    signs = (np.arange(count) % 2).astype(unsigned) << unsigned.type(8 * dtype.itemsize - 1)
    payloads = (np.arange(count) % 61 + 1).astype(unsigned)
    result: Array = (exponent | signs | payloads).reshape(shape).view(dtype)
    return result


ZEROS = {"rope_type": "proportional", "partial_rotary_factor": 0.5}


@PAIRINGS
@ALL_DTYPES
@pytest.mark.parametrize(("d", "step"), [(8, 1), (64, 2), (72, 1)])
def test_frequencies_of_0_keep_bits(d: int, step: int, dtype: np.dtype[Any], interleaved: bool) -> None:
    rope = fastpe.RotaryEmbedding(d, interleaved=interleaved, scaling=ZEROS, max_len=2)
    assert (rope.frequencies[d // 4 :] == 0).all()
    first, second = pair_columns(d, interleaved)
    still = np.concatenate([first[d // 4 :], second[d // 4 :]])
    turned = np.concatenate([first[: d // 4], second[: d // 4]])
    x = with_nan_payloads((4, d * step), dtype)[:, ::step]
    x[:, turned] = 1
    before = x.copy()
    outs = [
        rope.rotate(x, seq_axis=-2),
        rope.rotate(x, out=np.zeros_like(x), seq_axis=-2),
        rope.rotate(x, inverse=True, seq_axis=-2),
    ]
    rope.rotate_(x, seq_axis=-2)
    rope.shift_(x, by=3, seq_axis=-2)
    for result in (*outs, x):
        np.testing.assert_array_equal(bits(result[:, still]), bits(before[:, still]))
        assert (result[1:, turned] != before[1:, turned]).any()


def test_frequencies_of_0_are_multiplied_where_there_is_a_factor() -> None:
    rope = fastpe.RotaryEmbedding(8, interleaved=False, scaling=ZEROS, attention_factor=1.5)
    x = np.ones((3, 8), np.float32)
    x[0, 3] = np.inf
    y = rope.rotate(x, seq_axis=-2)
    assert (y[1:, [2, 3, 6, 7]] == 1.5).all()
    assert y[0, 3] == np.inf
    assert np.isnan(y[0, 7])
    # A shift has no factor.
    assert_same_bits(rope.shift_(x.copy(), by=[4, 5, 6], seq_axis=-2)[:, [2, 3, 6, 7]], x[:, [2, 3, 6, 7]])


@PAIRINGS
@ALL_DTYPES
@pytest.mark.parametrize("max_len", [0, 4])
def test_position_0_is_no_exception(max_len: int, dtype: np.dtype[Any], interleaved: bool) -> None:
    rope = fastpe.RotaryEmbedding(4, interleaved=interleaved, max_len=max_len)
    x = np.ones((2, 4), dtype)
    x[0, 0] = np.inf
    y = rope.rotate(x, positions=[0, 0], seq_axis=-2)
    partner = 1 if interleaved else 2
    assert y[0, 0] == np.inf
    assert np.isnan(y[0, partner])  # inf * 0
    assert_same_bits(y[1], x[1])


PAST_THE_CACHES = """
import itertools
import numpy as np
import fastpe

draw = np.random.default_rng(0)
for dtype, interleaved, width, gap in itertools.product(("f4", "f8"), (False, True), (64, 32), (0, 16)):
    rope = fastpe.RotaryEmbedding(width, interleaved=interleaved, head_dim=64)
    x = draw.standard_normal((2, 3, 300, 64)).astype(dtype)
    for positions, threads in itertools.product((None, draw.permutation(300)), (1, 2)):
        out = np.zeros((2, 3, 300, 64 + gap), dtype)
        options = {"positions": positions, "seq_axis": -2, "num_threads": threads}
        rope.rotate(x, out=out[..., :64], **options)
        assert out[..., :64].tobytes() == rope.rotate_(x.copy(), **options).tobytes(), (dtype, interleaved, width, gap)
        assert not out[..., 64:].any()
"""


def test_an_out_that_goes_past_the_caches_has_the_bits_of_the_rotation_in_place(instruction_set: str) -> None:
    run_python(["-c", PAST_THE_CACHES], 120, {"FASTPE_STREAMING_BYTES": "1", "FASTPE_ISA": instruction_set})
