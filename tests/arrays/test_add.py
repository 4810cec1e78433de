# SPDX-License-Identifier: BSD-3-Clause
"""What tests/composed, which compares whole calls with NumPy, does not draw."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.model import combine, wide_type
from ..oracles.reference import DTYPES, Array, assert_same_bits, values

pytestmark = pytest.mark.usefixtures("instruction_set")

LENGTH, WIDTH = 6, 16
ROPE = fastpe.RotaryEmbedding(WIDTH, interleaved=False)
of_sums_and_rotations = pytest.mark.parametrize("call", [fastpe.add, ROPE.rotate], ids=["add", "rotate"])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_extreme_factors_behave_as_numpy(dtype: np.dtype[Any]) -> None:
    x, pe = values((2, 9, 11), dtype, seed=4), fastpe.encode(9, 11, dtype=wide_type(dtype))
    for factor in (np.inf, -np.inf, 1e300, -0.0, 1e-300, 5):
        with np.errstate(all="ignore"):
            there = float(wide_type(dtype).type(factor))
        assert_same_bits(fastpe.add(x, scale=factor), combine(x, pe, there, 1.0))
        assert_same_bits(fastpe.add(x, alpha=factor), combine(x, pe, 1.0, there))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_out_may_be_x_itself(dtype: np.dtype[Any]) -> None:
    x = values((3, 20, 21), dtype, seed=2)
    expected = fastpe.add(x, lengths=[20, 3, 0])
    assert fastpe.add(x, lengths=[20, 3, 0], out=x) is x
    assert_same_bits(x, expected)


def test_float64_never_appears_unless_asked_for() -> None:
    x = np.zeros((2, 3, 4), np.float32)
    assert fastpe.encode(3, 4).dtype == np.float32
    assert fastpe.encode(np.arange(3.0), 4).dtype == np.float32
    assert fastpe.add(x, scale=np.float64(2.0)).dtype == np.float32
    assert fastpe.add(x, positions=np.arange(3.0)).dtype == np.float32
    assert fastpe.embed([0, 1], x[0]).dtype == np.float32


def test_packed_sequences_over_two_threads() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 40, 300)
    cu_seqlens = np.concatenate([[0], np.cumsum(lengths)])
    x = values((int(cu_seqlens[-1]), 256), np.dtype(np.float32), seed=0)
    positions = np.concatenate([np.arange(n) for n in lengths])
    expected = x + fastpe.encode(positions, 256)
    assert_same_bits(fastpe.add_(x, cu_seqlens=cu_seqlens, num_threads=2), expected)


@pytest.mark.parametrize("alpha", [1.0, 0.0, -1000.0])
@pytest.mark.parametrize("convention", ["vaswani", "concat", "musicgen", "mlx"])
def test_shift_is_a_linear_function_of_the_encoding(convention: str, alpha: float) -> None:
    chosen = fastpe.conventions[convention]
    chosen = chosen if alpha == 1.0 else dataclasses.replace(chosen, alpha=alpha)
    encoding = fastpe.PositionalEncoding(128, convention=chosen)
    atol = 2e-15 * max(1.0, abs(alpha))
    positions = np.array([0, 1, 2, 3, 17, 500, 4999, 65536, 10**6, 10**7])
    a, b = encoding.encode([3, 8], dtype=np.float64)
    for k in (0, 1, -1, 7, -1000, 12345, 10**6, -(10**6)):
        shifted = encoding.shift(encoding.encode(positions, dtype=np.float64), by=k)
        np.testing.assert_allclose(shifted, encoding.encode(positions + k, dtype=np.float64), rtol=0, atol=atol)
        # Linear: what it does to a sum is the sum of what it does.
        sums = encoding.shift(a, by=k) + 2 * encoding.shift(b, by=k)
        np.testing.assert_allclose(encoding.shift(a + 2 * b, by=k), sums, atol=atol)


@of_sums_and_rotations
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_ten_axes(call: Callable[..., Array], dtype: np.dtype[Any]) -> None:
    x = values((1, 2, 1, 2, 1, 2, 1, 2, LENGTH, WIDTH), dtype, seed=0)
    each = [call(one, seq_axis=-2) for one in x.reshape(-1, LENGTH, WIDTH)]
    assert_same_bits(call(x, seq_axis=-2), np.stack(each).reshape(x.shape))


@of_sums_and_rotations
@pytest.mark.parametrize("start", [0, 10**7, 2**53 - 10_000])
def test_streaming_in_chunks(call: Callable[..., Array], start: int) -> None:
    x, at = values((1, 600, WIDTH), np.dtype(np.float32), seed=3), 0
    whole = call(x, offset=start, seq_axis=-2)
    for chunk in (1, 60, 60, 61, 31, 7, 380):
        part = call(x[:, at : at + chunk], offset=start + at, seq_axis=-2)
        assert_same_bits(part, whole[:, at : at + chunk])
        at += chunk
    assert at == 600


@pytest.mark.parametrize("axis", [0, 1])
def test_learned_tables_may_have_an_axis_of_length_1(axis: int) -> None:
    table = values((9, WIDTH), np.dtype(np.float32), seed=2)
    ids, x = np.zeros((2, 5), int), values((3, LENGTH, WIDTH), np.dtype(np.float32), seed=3)
    for layout in (table, np.repeat(table, 2, axis=0)[::-2]):
        wide = np.expand_dims(layout, axis)
        assert_same_bits(fastpe.add(x, table=wide, offset=2), fastpe.add(x, table=layout, offset=2))
        found = fastpe.embed(ids, table, position_table=wide, offset=2)
        assert_same_bits(found, fastpe.embed(ids, table, position_table=layout, offset=2))
    assert_same_bits(fastpe.add(x[0, :1], table=table[None, :1]), x[0, :1] + table[:1])


@pytest.mark.parametrize("placed", ["offset", "positions"])
@pytest.mark.parametrize("valid", ["", "lengths", "valid"])
@pytest.mark.parametrize("convention", ["vaswani", "fairseq"])
def test_one_row_of_each_sequence(convention: Any, valid: str, placed: str) -> None:
    """Decoding: as many sequences as are done in several parts, each as in a call of its own."""
    rng, count = np.random.default_rng(9), 300
    encoding = fastpe.PositionalEncoding(WIDTH, convention=convention, max_len=200)
    encoding.warm_up()
    given: dict[str, Any] = {placed: rng.integers(0, 150, count if placed == "offset" else (count, 1))}
    given |= {valid: rng.integers(0, 2, count if valid == "lengths" else (count, 1))} if valid else {}
    x, ids = values((count, 1, WIDTH), np.dtype(np.float32), seed=9), np.arange(count)[:, None] % 50
    if placed == "offset" and not valid:
        rows = encoding.encode(encoding.convention.first_position + given["offset"])
        assert_same_bits(encoding.add(x, **given), x + rows[:, None])
    rope = ROPE if convention == "vaswani" else fastpe.RotaryEmbedding(WIDTH, interleaved=True, max_len=200)
    calls: list[Callable[..., Array]] = [
        lambda at, **given: encoding.add(x[at], **given),
        lambda at, **given: encoding.embed(ids[at], x[:, 0], **given),
        lambda at, **given: rope.rotate(np.stack([x[at]] * 2, 1), seq_axis=-2, **given),
        lambda at, **given: fastpe.add(x[at], table=x[:, 0], **given),
    ]
    for call in calls:
        each = [
            call(slice(b, b + 1), **{name: value[b : b + 1] for name, value in given.items()}) for b in range(count)
        ]
        assert_same_bits(call(slice(None), **given), np.concatenate(each))


@pytest.mark.parametrize("max_len", [0, 40])
def test_one_position_for_all_rows(max_len: int) -> None:
    encoding, position = fastpe.PositionalEncoding(WIDTH, max_len=max_len), np.broadcast_to(np.int64(7), 30)
    x, plain = values((1, 30, WIDTH), np.dtype(np.float32), seed=1), np.full(30, 7)
    for valid in (None, np.arange(30) % 4 > 1):
        for _ in range(2):
            found = encoding.encode(position, valid=valid)
            assert_same_bits(found, encoding.encode(plain, valid=valid))
            assert_same_bits(
                encoding.add(x, positions=position, valid=valid), encoding.add(x, positions=plain, valid=valid)
            )
    assert_same_bits(encoding.encode(position), np.repeat(encoding.encode([7]), 30, 0))


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("placed", ["offset", "valid", "positions"])
def test_columns_that_lie_far_apart(placed: str, step: int) -> None:
    """So many that one call of the core does a part of them: rows are made, then read, or learned."""
    rng, length, width = np.random.default_rng(6), 70, 2100
    given = {"offset": [3, 80], "valid": rng.random((2, length)) < 0.6, "positions": rng.integers(0, 150, (2, length))}
    where: dict[str, Any] = {placed: given[placed]}
    x, table = (values(shape, np.dtype(np.float32), seed=6) for shape in ((2, length, width), (150, width)))
    encoder = fastpe.PositionalEncoding(width, max_len=150)
    memory = np.zeros((2, width, 1100), np.float32)
    apart = memory[..., : length * step : step].swapaxes(1, 2)
    calls: list[dict[str, Any]] = [{}, {}, {"table": table}]
    for options in calls:
        apart[...] = x
        expected = encoder.add(x, **where, **options)
        assert_same_bits(encoder.add_(apart, num_threads=2, **where, **options), expected)
        assert_same_bits(encoder.add(x, out=apart, **where, **options), expected)
    positions = where.pop("positions", length)
    assert_same_bits(encoder.encode(positions, out=apart, **where), encoder.encode(positions, **where))
    assert not memory[..., length * step :].any()
