# SPDX-License-Identifier: BSD-3-Clause
"""Positions in every form: offsets, explicit ones, packed sequences, decoding and streaming."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpe

from ..oracles import reference
from ..oracles.reference import Array, Rows, assert_same_bits, bits
from ..oracles.refusals import naming
from ..oracles.strategies import dtypes, factors, integer_arrays, offsets, seeds, small_offsets, strided, values, widths

pytestmark = pytest.mark.usefixtures("instruction_set")

CONVENTION_KNOBS = {
    "vaswani": reference.VASWANI,
    "fairseq": reference.Knobs(interleaved=False, shift=1.0, pads_odd=True),
    "timestep": reference.Knobs(interleaved=False, cosine_first=True, pads_odd=True),
}


def rows_of(d_model: int, dtype: np.dtype[Any], convention: str = "vaswani") -> Rows:
    encode = functools.partial(fastpe.encode, d_model=d_model, convention=convention)
    return Rows(encode, d_model, dtype, CONVENTION_KNOBS[convention])


def first_of(convention: str) -> int:
    return fastpe.conventions[convention].first_position


conventions = st.sampled_from([*CONVENTION_KNOBS])


@given(
    dtype=dtypes,
    shape=st.tuples(st.integers(1, 4), st.integers(0, 40), st.integers(4, 24)),
    convention=conventions,
    scale=factors,
    data=st.data(),
)
def test_one_offset_per_row(
    dtype: np.dtype[Any], shape: tuple[int, int, int], convention: str, scale: float, data: st.DataObject
) -> None:
    x = data.draw(strided(shape, dtype))
    offset = data.draw(integer_arrays(shape[:1], -1000, 1000) | integer_arrays((), 0, 100))
    first = first_of(convention)
    expected = reference.add(x, rows_of(shape[-1], dtype, convention), offset=offset, first=first, scale=scale)
    assert_same_bits(fastpe.add(x, offset=offset, convention=convention, scale=scale), expected)
    fastpe.add_(x, offset=offset.tolist(), convention=convention, scale=scale)
    assert_same_bits(x, expected)


@given(
    dtype=dtypes,
    shape=st.tuples(st.integers(1, 4), st.integers(0, 30), st.integers(4, 24)),
    per_batch=st.booleans(),
    is_float=st.booleans(),
    convention=conventions,
    data=st.data(),
)
def test_explicit_positions(
    dtype: np.dtype[Any],
    shape: tuple[int, int, int],
    per_batch: bool,
    is_float: bool,
    convention: str,
    data: st.DataObject,
) -> None:
    x = data.draw(strided(shape, dtype))
    wanted = shape[:2] if per_batch else shape[1:2]
    # Runs, repetitions, both directions; fractions too where they are floats.
    if is_float:
        rng = np.random.default_rng(data.draw(seeds))
        positions: Array = rng.integers(-200, 200, wanted) / data.draw(st.sampled_from([1, 2, 3]))
        positions = positions.astype(data.draw(st.sampled_from(["f4", "f8"])))
    else:
        positions = data.draw(integer_arrays(wanted, -100, 100) | integer_arrays(wanted, 0, 3))
    if data.draw(st.booleans()):
        positions = np.sort(positions, axis=-1)
    expected = reference.add(x, rows_of(shape[-1], dtype, convention), positions=positions)
    assert_same_bits(fastpe.add(x, positions=positions, convention=convention), expected)
    fastpe.add_(x, positions=positions, convention=convention)
    assert_same_bits(x, expected)


@given(
    dtype=dtypes,
    shape=st.lists(st.integers(0, 4), max_size=4).map(tuple),
    d_model=widths,
    is_float=st.booleans(),
    seed=seeds,
    data=st.data(),
)
def test_encode_positions_of_any_shape(
    dtype: np.dtype[Any], shape: tuple[int, ...], d_model: int, is_float: bool, seed: int, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    positions = np.asarray(rng.integers(-300, 300, shape) / (4 if is_float else 1))
    if not is_float:
        positions = positions.astype(np.int32)
    positions = np.array(positions, order=data.draw(st.sampled_from(["C", "F"])))
    table = fastpe.encode(positions, d_model, dtype=dtype)
    assert table.shape == (*shape, d_model)
    for index in np.ndindex(shape):
        expected = fastpe.encode([positions[index].item()], d_model, dtype=dtype)[0]
        assert_same_bits(table[index], expected)
    out = data.draw(strided((*shape, d_model), dtype))
    assert fastpe.encode(positions, d_model, out=out) is out
    assert_same_bits(out, table)


@given(
    dtype=dtypes,
    lengths=st.lists(st.integers(0, 20), max_size=6),
    d_model=st.integers(4, 20),
    convention=conventions,
    has_offsets=st.booleans(),
    scale=factors,
    data=st.data(),
)
def test_packed_sequences(
    dtype: np.dtype[Any],
    lengths: list[int],
    d_model: int,
    convention: str,
    has_offsets: bool,
    scale: float,
    data: st.DataObject,
) -> None:
    cu_seqlens = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(
        data.draw(st.sampled_from(["i4", "i8", "u8"]))
    )
    x = data.draw(strided((sum(lengths), d_model), dtype))
    offset = data.draw(integer_arrays((len(lengths),), -50, 50)) if has_offsets else None
    first = first_of(convention)
    expected = reference.add(
        x,
        rows_of(d_model, dtype, convention),
        first=first,
        cu_seqlens=cu_seqlens.tolist(),
        offset=offset,
        scale=scale,
    )
    keywords: dict[str, Any] = {"offset": offset, "convention": convention, "scale": scale}
    assert_same_bits(fastpe.add(x, cu_seqlens=cu_seqlens, **keywords), expected)
    # The same rows by explicit positions.
    within = np.concatenate([np.arange(n) for n in [0, *lengths]])
    added = 0 if offset is None else np.repeat(offset.astype(np.int64), lengths)
    explicit = within + added + first
    assert_same_bits(fastpe.add(x, positions=explicit, convention=convention, scale=scale), expected)
    fastpe.add_(x, cu_seqlens=cu_seqlens.tolist(), **keywords)
    assert_same_bits(x, expected)


def test_packed_sequences_over_two_threads() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 40, 300)
    cu_seqlens = np.concatenate([[0], np.cumsum(lengths)])
    x = values((int(cu_seqlens[-1]), 256), np.dtype(np.float32), seed=0)
    positions = np.concatenate([np.arange(n) for n in lengths])
    expected = x + fastpe.encode(positions, 256)
    assert_same_bits(fastpe.add_(x, cu_seqlens=cu_seqlens, num_threads=2), expected)


@pytest.mark.parametrize("dtype", reference.DTYPES, ids=str)
@pytest.mark.parametrize("max_len", [0, 64, 4096])
def test_decoding_one_token_per_row(dtype: np.dtype[Any], max_len: int) -> None:
    encoding = fastpe.PositionalEncoding(48, max_len=max_len)
    past = np.array([0, 63, 17, 17, 5000, -3, 2**40])
    x = values((7, 1, 48), dtype, seed=1)
    expected = reference.combine(
        x, encoding.encode(past, dtype=np.float64 if dtype == np.float64 else np.float32)[:, None], 1.0, 1.0
    )
    within = past < max(max_len, 1)
    assert_same_bits(encoding.add(x, offset=past), expected)
    assert_same_bits(encoding.add_(x[within], offset=past[within]), expected[within])


@pytest.mark.parametrize("start", [0, 10**7, 2**53 - 10_000])
def test_streaming_in_chunks(start: int) -> None:
    x = values((1, 600, 80), np.dtype(np.float32), seed=2)
    whole = fastpe.add(x, offset=start)
    at = 0
    for chunk in (1, 60, 60, 61, 31, 7, 380):
        part = x[:, at : at + chunk].copy()
        fastpe.add_(part, offset=start + at)
        assert_same_bits(part, whole[:, at : at + chunk])
        at += chunk
    assert at == 600


@given(offset=offsets, count=st.integers(1, 5))
def test_far_positions_are_the_neighbours_of_their_neighbours(offset: int, count: int) -> None:
    if abs(offset) + count > 2**53:
        return
    encoding = fastpe.PositionalEncoding(16)
    table = encoding.encode(count, offset=offset, dtype=np.float64)
    moved = encoding.shift(table, 1)
    np.testing.assert_allclose(moved, encoding.encode(count, offset=offset + 1, dtype=np.float64), rtol=0, atol=2e-15)


LARGEST = 2**53
BAD_POSITIONS: list[Any] = [
    [LARGEST + 1],
    [0, -LARGEST - 1],
    [0.0, float(LARGEST + 2)],
    [np.nan],
    [1.0, np.inf],
    [-np.inf, 1.0],
    [1e300],
    np.array([2**64 - 1], np.uint64),
    np.array([np.iinfo(np.int64).max]),
    np.array([np.iinfo(np.int64).min]),
    np.array([[0, 1], [2, LARGEST + 5]]),
    np.array([[[0, 1]], [[2, LARGEST + 5]]]),
]


@pytest.mark.parametrize("positions", BAD_POSITIONS)
def test_positions_beyond_the_range_are_refused(positions: Any) -> None:
    shape = (*np.shape(positions), 4)
    out = values(shape, np.dtype(np.float32), seed=0)
    before = out.copy()
    with pytest.raises(ValueError, match=naming("positions")):
        fastpe.encode(positions, 4, out=out)
    if len(shape) in (2, 3):
        with pytest.raises(ValueError, match=naming("positions")):
            fastpe.add_(out, positions=positions)
    np.testing.assert_array_equal(bits(out), bits(before))


@pytest.mark.parametrize("bad", [np.nan, 1e300, np.inf, -1e300, 2.0**62, float(LARGEST + 2)])
@pytest.mark.parametrize("keyword", ["lengths", "mask"])
def test_positions_of_rows_that_are_left_alone_are_not_looked_at(bad: float, keyword: str) -> None:
    x = values((3, 4, 6), np.dtype(np.float32), seed=0)
    valid: dict[str, Any] = {"lengths": [2, 2, 1]} if keyword == "lengths" else {"mask": [True, True, False, False]}
    for positions in ([0.0, 1.0, bad, bad], [[0, 1, bad, bad]] * 3):
        expected = fastpe.add(x, positions=[0, 1, 2, 3], **valid)
        assert_same_bits(fastpe.add(x, positions=positions, **valid), expected)
    huge = np.array([0, 1, 2**64 - 1, 2**63], np.uint64)
    assert_same_bits(fastpe.add(x, positions=huge, **valid), fastpe.add(x, positions=[0, 1, 2, 3], **valid))


@given(offset=small_offsets, count=st.integers(0, 20), batch=st.integers(0, 3), d_model=widths)
def test_encode_with_one_offset_per_row(offset: int, count: int, batch: int, d_model: int) -> None:
    starts = offset + 7 * np.arange(batch)
    table = fastpe.encode(count, d_model, offset=starts)
    assert table.shape == (batch, count, d_model)
    for row, start in enumerate(starts.tolist()):
        assert_same_bits(table[row], fastpe.encode(count, d_model, offset=start))


def test_the_coordinates_of_one_position_may_have_gaps_between_them() -> None:
    rope = fastpe.RotaryEmbedding(4, interleaved=False, axes=[0, 1])
    spread = np.array([3, 2**40, 5, 2**40])[::2]
    for form in ("cos_sin", "angles"):
        np.testing.assert_array_equal(rope.tables(spread, form=form), rope.tables([3, 5], form=form))
