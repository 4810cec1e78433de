# SPDX-License-Identifier: BSD-3-Clause
"""Rows that encoders keep: which ones, and how many bytes. tests/composed shows that no result depends on it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import fastpe

MIB = 2**20
ENCODER_BUDGET = 8 * MIB
PROCESS_BUDGET = 16 * MIB


def kept_bytes() -> int:
    return int(fastpe.show_config("dicts")["kept_row_bytes"])


Growth: TypeAlias = Callable[[Callable[[], Any]], int]


@pytest.fixture(scope="module")
def growth() -> Growth:
    """The bytes of rows that a call adds to those kept; encoders of other tests have given theirs back."""
    for base in range(2, 34):  # functions keep the last encoders, now these
        fastpe.encode(1, 2, base=float(base))
    gc.collect()

    def measured(call: Callable[[], Any]) -> int:
        before = kept_bytes()
        call()
        return kept_bytes() - before

    return measured


def test_rows_are_kept_when_they_are_asked_for_again(growth: Growth) -> None:
    encoding = fastpe.PositionalEncoding(64)
    asked = [growth(lambda: encoding.encode(8)) for _ in range(4)]
    assert asked[0] == 0
    assert sum(asked) > 0
    assert asked[3] == 0
    assert growth(lambda: encoding.encode(8, offset=10_000)) == 0, "other rows were not asked for before"


def test_a_call_fills_one_block_at_most(growth: Growth) -> None:
    encoding, x = fastpe.PositionalEncoding(1024), np.zeros((2, 1024, 1024), np.float32)
    grown = [growth(lambda: encoding.add_(x)) for _ in range(24)]
    assert sum(grown) == 1024 * 1024 * 4
    assert max(grown) <= MIB


def test_a_small_call_stays_small_where_much_was_promised(growth: Growth) -> None:
    x, positions = np.zeros((2, 1, 1024), np.float32), [0, 2**18 - 1]
    encoding = fastpe.PositionalEncoding(1024, max_len=2**18)
    for _ in range(3):
        assert growth(lambda: encoding.add_(x, offset=positions)) <= MIB
    encoding = fastpe.PositionalEncoding(1024, max_len=1000)
    grown = [growth(lambda: encoding.add_(x, offset=[1, 998])) for _ in range(20)]
    assert max(grown) <= MIB
    assert sum(grown) == 1000 * 1024 * 4


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rotations_keep_the_rows_of_each_coordinate(dtype: str, growth: Growth) -> None:
    rope = fastpe.RotaryEmbedding(64, interleaved=False, frequency_axes=np.arange(32) % 2, max_len=64)
    x = np.zeros((64, 64), dtype)
    grid = np.stack([np.arange(64), np.arange(64)[::-1]], -1)
    # Rotations of 16 bits turn by cosines and sines in float32.
    assert growth(lambda: rope.rotate_(x, positions=grid, seq_axis=-2)) == 64 * 64 * max(4, x.itemsize)
    assert growth(lambda: rope.rotate_(x, positions=grid, seq_axis=-2)) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_encoder_keeps_its_budget_at_most(dtype: str, growth: Growth) -> None:
    encoding = fastpe.PositionalEncoding(1024)

    def ask_for_all() -> None:
        for _ in range(4):
            # So few rows that to read them is faster, however small the processor's second-level cache is.
            for start in range(0, 4096, 16):
                encoding.encode(16, offset=start, dtype=dtype)

    assert growth(ask_for_all) == ENCODER_BUDGET


@pytest.mark.usefixtures("growth")
def test_all_encoders_together_keep_the_process_budget_at_most() -> None:
    before, x = kept_bytes(), np.zeros((2, 1024, 1024), np.float32)
    encoders = [fastpe.PositionalEncoding(1024, base=float(base)) for base in range(2, 9)]
    for encoding in encoders:
        for _ in range(18):
            encoding.add_(x)
    assert PROCESS_BUDGET - MIB <= kept_bytes() <= PROCESS_BUDGET + before
    # Without room, the last one computes its rows, with the same bits.
    expected = fastpe.PositionalEncoding(1024, base=8.0, max_len=0).add(x)
    assert np.array_equal(encoders[-1].add(x), expected)
    del encoders, encoding
    assert kept_bytes() == before, "an encoder gives back what it kept"


@pytest.mark.parametrize("make", [fastpe.PositionalEncoding, fastpe.RotaryEmbedding])
def test_max_len_0_keeps_nothing(make: Any, growth: Growth) -> None:
    encoding = make(64, max_len=0, **({"interleaved": True} if make is fastpe.RotaryEmbedding else {}))
    call = encoding.tables if make is fastpe.RotaryEmbedding else encoding.encode
    assert [growth(lambda: call(8)) for _ in range(5)] == [0] * 5


def test_warm_up_makes_every_row_that_max_len_promises(growth: Growth) -> None:
    for encoding in (
        fastpe.PositionalEncoding(64, max_len=3000),
        fastpe.RotaryEmbedding(64, interleaved=True, max_len=3000),
    ):
        assert growth(encoding.warm_up) == 3000 * 64 * 4
        assert growth(lambda e=encoding: e.warm_up(dtype=np.float16)) == 0, "16-bit arrays read rows of float32"  # type: ignore[misc]
        assert growth(lambda e=encoding: e.warm_up(dtype="float64", num_threads=1)) == 3000 * 64 * 8  # type: ignore[misc]
    first = fastpe.PositionalEncoding(64, max_len=3000)
    first.warm_up()
    assert growth(lambda: first.add_(np.zeros((1, 1, 64), np.float32), offset=2999)) == 0
    assert growth(fastpe.PositionalEncoding(64).warm_up) == 0, "nothing is promised without max_len"


def test_some_columns_of_kept_rows() -> None:
    """As for chunks of a store, which hold a part of the columns."""
    encoding = fastpe.PositionalEncoding(12, max_len=50)
    encoding.warm_up()
    added = encoding._add_part(np.zeros((40, 5), np.float32), 4)
    np.testing.assert_array_equal(added, encoding.encode(40)[:, 4:9])
