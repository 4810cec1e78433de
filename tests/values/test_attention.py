# SPDX-License-Identifier: BSD-3-Clause
"""Slopes, buckets and orders of columns, beside slow formulas of integers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import mpmath  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
import pytest

import fastpe

from ..oracles.reference import assert_same_bits
from ..oracles.refusals import Refused, check_refused, each, rows

Array = npt.NDArray[Any]


def exact_slopes(num_heads: int, max_bias: float) -> list[Any]:
    """As the authors of ALiBi write it: those of a power of 2, and then every other one of twice as many."""
    if num_heads & (num_heads - 1) == 0:
        return [mpmath.mpf(2) ** (-mpmath.mpf(max_bias) * (i + 1) / num_heads) for i in range(num_heads)]
    power = 2 ** (num_heads.bit_length() - 1)
    return exact_slopes(power, max_bias) + exact_slopes(2 * power, max_bias)[0::2][: num_heads - power]


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64], ids=lambda d: np.dtype(d).name
)
@pytest.mark.parametrize(("num_heads", "max_bias"), [(n, 8.0) for n in (1, 2, 3, 12, 16, 56, 71, 112)] + [(40, 10.5)])
def test_slopes_are_the_exact_ones_rounded_once(num_heads: int, max_bias: float, dtype: Any) -> None:
    slopes = fastpe.alibi_slopes(num_heads, max_bias=max_bias, dtype=dtype)
    assert slopes.dtype == dtype
    with mpmath.workdps(60):
        for slope, exact in zip(slopes, exact_slopes(num_heads, max_bias), strict=True):
            ends = [np.array(end, dtype) for end in (0, 2)]
            others = [mpmath.mpf(float(np.nextafter(slope, end))) for end in ends]
            assert all(abs(mpmath.mpf(float(slope)) - exact) <= abs(other - exact) for other in others)
    out = np.full((num_heads, 2), np.array(7, dtype))
    assert fastpe.alibi_slopes(num_heads, max_bias=max_bias, out=out[:, 0]).base is out
    assert_same_bits(out[:, 0], slopes)
    assert (out[:, 1] == 7).all()


@pytest.mark.parametrize("settings", [(32, 128), (320, 800), (64, 256), (31, 100), (4, 3)], ids=str)
@pytest.mark.parametrize("bidirectional", [True, False])
def test_a_bucket_begins_where_its_power_is_reached(bidirectional: bool, settings: tuple[int, int]) -> None:
    num_buckets, farthest = settings
    count = num_buckets // 2 if bidirectional else num_buckets
    single = count // 2
    limit = farthest + 3
    distances = np.arange(-limit, limit + 1)
    buckets = fastpe.relative_buckets(
        distances, bidirectional=bidirectional, num_buckets=num_buckets, max_distance=farthest
    )
    assert buckets.dtype == np.int64
    for distance, bucket in zip(distances.tolist(), buckets.tolist(), strict=True):
        if bidirectional and distance > 0:
            bucket -= count
        away = abs(distance) if bidirectional else max(-distance, 0)
        if away < single:
            assert bucket == away
            continue
        step, steps = bucket - single, count - single
        # farthest / single to the power of step / steps is not exceeded, and that of the next step is.
        reached = [Fraction(away, single) ** steps >= Fraction(farthest, single) ** each for each in (step, step + 1)]
        assert reached[0]
        assert not reached[1] or bucket == count - 1


def test_buckets_of_any_shape_and_integers() -> None:
    far = np.array([[-(2**63), 2**63 - 1], [-(10**6), 0]])
    assert fastpe.relative_buckets(far, bidirectional=True).tolist() == [[15, 31], [15, 0]]
    assert fastpe.relative_buckets(far, bidirectional=False).tolist() == [[31, 0], [31, 0]]
    assert fastpe.relative_buckets(np.array([3, 2**64 - 1], np.uint64), bidirectional=True).tolist() == [19, 31]
    near = np.arange(-100, 101, dtype=np.int8)
    assert (
        fastpe.relative_buckets(near, bidirectional=True) == fastpe.relative_buckets(near.tolist(), bidirectional=True)
    ).all()
    assert fastpe.relative_buckets(-5, bidirectional=False).shape == ()


@pytest.mark.parametrize(("rotary_dim", "head_dim"), [(64, None), (64, 96), (2, 2)])
def test_reordered_weights_make_heads_of_the_other_pairing(rotary_dim: int, head_dim: int | None) -> None:
    random, width, heads = np.random.default_rng(0), head_dim or rotary_dim, 3
    to_pairs = fastpe.pair_order(rotary_dim, to_interleaved=True, head_dim=head_dim)
    to_halves = fastpe.pair_order(rotary_dim, to_interleaved=False, head_dim=head_dim)
    assert (to_pairs[to_halves] == np.arange(width)).all()
    weight, x = random.standard_normal((heads * width, 32)), random.standard_normal((5, 32))
    q = (x @ weight.T).reshape(5, heads, width)
    reordered = (x @ weight.reshape(heads, width, -1)[:, to_pairs].reshape(weight.shape).T).reshape(q.shape)
    halves, pairs = (
        fastpe.RotaryEmbedding(rotary_dim, interleaved=interleaved, head_dim=head_dim) for interleaved in (False, True)
    )
    rotated = pairs.rotate_(reordered, seq_axis=0)
    assert np.allclose(rotated, halves.rotate_(q, seq_axis=0)[..., to_pairs], rtol=0, atol=1e-12)


REFUSED: Refused = {
    (ValueError, "num_heads"): ["alibi(0)"],
    (TypeError, "num_heads"): ["alibi(8.0)"],
    (ValueError, "max_bias"): each("alibi(8, max_bias={})", "0 | -8.0 | np.nan"),
    (ValueError, "out"): ["alibi(8, out=np.zeros(7, np.float32))"],
    (TypeError, "bidirectional"): ["buckets([1], bidirectional=1)", "buckets([1])"],
    (TypeError, "relative_positions"): ["buckets([1.5], bidirectional=True)", "buckets([True], bidirectional=True)"],
    (ValueError, "num_buckets"): ["buckets([1], bidirectional=True, num_buckets=3)", "buckets([1], bidirectional=False, num_buckets=1)"],
    (ValueError, "max_distance"): ["buckets([1], bidirectional=True, max_distance=8)"],
    (ValueError, "rotary_dim"): ["order(63, to_interleaved=True)", "order(0, to_interleaved=True)"],
    (ValueError, "head_dim"): ["order(64, to_interleaved=True, head_dim=32)"],
    (TypeError, "to_interleaved"): ["order(64)", "order(64, to_interleaved=None)"],
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "named"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], named: str) -> None:
    names = {"alibi": fastpe.alibi_slopes, "buckets": fastpe.relative_buckets, "order": fastpe.pair_order, "np": np}
    check_refused(call, error, named, names)
