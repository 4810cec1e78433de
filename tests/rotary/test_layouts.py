# SPDX-License-Identifier: BSD-3-Clause
"""Rotation in every layout: the oracle's row after row, bit for bit, whatever the strides and however rows are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpe

from ..oracles.reference import DTYPES, assert_same_bits, bits
from ..oracles.strategies import dtypes, integer_arrays, seeds, strided, values
from .calls import expected
from .oracle import Array

pytestmark = pytest.mark.usefixtures("instruction_set")

FLOAT32 = np.dtype(np.float32)

# Letters of the axes, and the axis of L: a name without B has no batch axis.
LAYOUTS = [
    ("LD", -2),
    ("BLD", -2),
    ("BHLD", -2),
    ("BGHLD", -2),
    ("BLHD", -3),
    ("BLHD", 1),
    ("BLGHD", 1),
    ("LBHD", 0),
    ("LBGHD", 0),
    ("LHD", 0),
    ("LHD", -3),
]


def sizes_of(layout: str, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(sizes[axis] for axis in layout)


@st.composite
def embeddings(draw: st.DrawFn) -> dict[str, Any]:
    """Options of an embedding; some frequencies are 0 and some negative."""
    pairs = draw(st.integers(1, 12) | st.sampled_from([16, 17, 31, 40]))
    options: dict[str, Any] = {
        "rotary_dim": 2 * pairs,
        "interleaved": draw(st.booleans()),
        "conjugate": draw(st.booleans()),
        "max_len": draw(st.sampled_from([0, 7, 1000])),
    }
    factor = draw(st.sampled_from([None, None, 1.25, 0.3]))
    if factor is not None:
        options["attention_factor"] = factor
    if draw(st.integers(0, 3)) == 0:
        options["freqs"] = draw(
            st.lists(st.sampled_from([0.0, 0.0, 1.0, -0.25, 1e-4, 2.5]), min_size=pairs, max_size=pairs)
        )
    return options


@st.composite
def row_arguments(draw: st.DrawFn, batch: int | None, length: int) -> dict[str, Any]:
    """Which rows there are and where, for a batch of rows or for arrays without one."""
    rows = 1 if batch is None else batch
    per_row = [(length,), (1, length), (rows, length)]
    kind = draw(st.sampled_from(["counted", "offset", "offsets", "positions", "fractions"]))
    call: dict[str, Any] = {}
    if kind == "offset":
        call["offset"] = draw(st.integers(-20, 20) | st.sampled_from([2**53 - 50, -(2**53), 10**9]))
    elif kind == "offsets":
        call["offset"] = draw(integer_arrays(draw(st.sampled_from([(rows,), (rows, 1)])), 0, 9))
    elif kind == "positions":
        call["positions"] = draw(integer_arrays(draw(st.sampled_from(per_row)), -9, 20))
    elif kind == "fractions":
        shape = draw(st.sampled_from(per_row))
        rng = np.random.default_rng(draw(seeds))
        call["positions"] = (rng.integers(-90, 90, shape) / 8).astype(draw(st.sampled_from(["f4", "f8"])))
    limit = draw(st.sampled_from([None, None, "mask", "lengths"]))
    if limit == "mask":
        shape = draw(st.sampled_from(per_row))
        call["mask"] = np.random.default_rng(draw(seeds)).integers(0, 3, shape) > 0
    elif limit == "lengths":
        call["lengths"] = draw(integer_arrays((rows,), 0, length))
    return call


def assert_rotated(x: Array, before: Array, rope: fastpe.RotaryEmbedding, options: dict[str, Any], call: Any) -> None:
    """x has been rotated in place."""
    assert_same_bits(x, expected(before, options, **call))
    d = rope.rotary_dim
    np.testing.assert_array_equal(bits(x[..., d:]), bits(before[..., d:]))


@given(options=embeddings(), dtype=dtypes, data=st.data())
def test_any_layout_with_any_strides(options: dict[str, Any], dtype: np.dtype[Any], data: st.DataObject) -> None:
    layout, seq_axis = data.draw(st.sampled_from(LAYOUTS))
    few = st.integers(1, 3)
    sizes = {axis: data.draw(few, label=axis) for axis in "BGH"} | {"L": data.draw(st.integers(0, 7), label="L")}
    sizes["D"] = options["rotary_dim"] + data.draw(st.sampled_from([0, 0, 1, 5]))
    call = data.draw(row_arguments(sizes["B"] if "B" in layout else None, sizes["L"]))
    call |= {"seq_axis": seq_axis, "inverse": data.draw(st.booleans())}
    rope = fastpe.RotaryEmbedding(**options)
    # Queries and keys: their numbers of heads differ.
    q = data.draw(strided(sizes_of(layout, sizes), dtype))
    k = data.draw(strided(sizes_of(layout, sizes | {"H": data.draw(st.integers(0, 2))}), dtype))
    q_before, k_before = q.copy(), k.copy()
    out = data.draw(strided(q.shape, dtype))
    assert rope.rotate(q, out=out, **call) is out
    np.testing.assert_array_equal(bits(q), bits(q_before))
    assert_rotated(out, q_before, rope, options, call)
    assert_rotated(rope.rotate(q, **call), q_before, rope, options, call)
    both = rope.rotate_(q, k, **call)
    assert isinstance(both, tuple)
    assert [id(array) for array in both] == [id(q), id(k)]
    assert_rotated(q, q_before, rope, options, call)
    assert_rotated(k, k_before, rope, options, call)


@given(options=embeddings(), dtype=dtypes, data=st.data())
def test_packed_sequences(options: dict[str, Any], dtype: np.dtype[Any], data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    starts = np.cumsum([0, *lengths])
    shape = (int(starts[-1]), *data.draw(st.sampled_from([(), (2,), (2, 3)])), options["rotary_dim"] + 1)
    call: dict[str, Any] = {"cu_seqlens": starts, "seq_axis": 0, "inverse": data.draw(st.booleans())}
    if data.draw(st.booleans()):
        call["offset"] = data.draw(integer_arrays((len(lengths),), -9, 9) | st.integers(-9, 9).map(np.asarray))
    x = data.draw(strided(shape, dtype))
    before = x.copy()
    rope = fastpe.RotaryEmbedding(**options)
    keywords = dict(call)
    if isinstance(keywords.get("offset"), np.ndarray) and keywords["offset"].ndim == 0:
        keywords["offset"] = int(keywords["offset"])
    assert rope.rotate_(x, **keywords) is x
    assert_rotated(x, before, rope, options, call)


@given(options=embeddings(), dtype=dtypes, data=st.data())
def test_several_coordinates(options: dict[str, Any], dtype: np.dtype[Any], data: st.DataObject) -> None:
    pairs, count = options["rotary_dim"] // 2, data.draw(st.integers(1, 3))
    axes = data.draw(st.lists(st.integers(0, count - 1), min_size=pairs, max_size=pairs))
    axes[0] = count - 1
    options["axes"] = axes
    layout, seq_axis = data.draw(st.sampled_from(LAYOUTS))
    sizes = {"B": 2, "G": 2, "H": 3, "L": data.draw(st.integers(0, 5)), "D": options["rotary_dim"] + 1}
    batch = 2 if "B" in layout else 1
    shape = data.draw(st.sampled_from([(sizes["L"],), (1, sizes["L"]), (batch, sizes["L"])]))
    positions = data.draw(integer_arrays((*shape, count), -5, 12))
    if data.draw(st.booleans()):
        positions = positions * 0.25
    call: dict[str, Any] = {"positions": positions, "seq_axis": seq_axis, "inverse": data.draw(st.booleans())}
    limit = data.draw(st.sampled_from(["", "mask", "lengths"]))
    if limit == "mask":
        call["mask"] = np.random.default_rng(data.draw(seeds)).integers(0, 3, shape) > 0
    elif limit == "lengths":
        call["lengths"] = data.draw(integer_arrays((batch,), 0, sizes["L"]))
    x = data.draw(strided(sizes_of(layout, sizes), dtype))
    before = x.copy()
    rope = fastpe.RotaryEmbedding(**options)
    assert_rotated(rope.rotate(x, **call), before, rope, options, call)
    rope.rotate_(x, **call)
    assert_rotated(x, before, rope, options, call)


# ---- layouts that projects have


def halves_rotated(x: Array, tables: tuple[Array, Array]) -> Array:
    """NumPy's expression; the tables broadcast against [.., d/2]."""
    cos, sin = tables
    d = 2 * cos.shape[-1]
    x1, x2 = x[..., : d // 2], x[..., d // 2 : d]
    return np.concatenate([x1 * cos - x2 * sin, x2 * cos + x1 * sin, x[..., d:]], -1)


ROPE = fastpe.RotaryEmbedding(8, interleaved=False)


def test_heads_before_or_after_the_sequence() -> None:
    x = values((2, 3, 5, 8), FLOAT32, seed=1)  # [B, H, L, D]
    cos, sin = ROPE.tables(5, offset=4)
    rotated = halves_rotated(x, (cos, sin))
    assert_same_bits(ROPE.rotate(x, offset=4), rotated)
    for order, seq_axis in (((0, 2, 1, 3), -3), ((2, 0, 1, 3), 0), ((2, 1, 0, 3), 0)):
        copied = x.transpose(order).copy()
        assert_same_bits(ROPE.rotate_(copied, offset=4, seq_axis=seq_axis), rotated.transpose(order))
        # A transposed view of an array in the other layout.
        view = copied.copy().transpose(np.argsort(order))
        view[...] = x
        assert_same_bits(ROPE.rotate_(view, offset=4), rotated)


def test_what_is_per_row_goes_with_the_batch() -> None:
    x = values((2, 3, 5, 8), FLOAT32, seed=2)
    cos, sin = ROPE.tables(5, offset=[3, 50])
    rotated = halves_rotated(x, (cos[:, None], sin[:, None]))
    for call in (
        {"offset": [3, 50]},
        {"offset": np.array([[3], [50]])},
        {"positions": np.array([[3], [50]]) + np.arange(5)},
    ):
        assert_same_bits(ROPE.rotate(x, **call), rotated)
        across = x.transpose(2, 0, 1, 3).copy()
        assert_same_bits(ROPE.rotate_(across, seq_axis=0, **call), rotated.transpose(2, 0, 1, 3))


def test_one_row_of_positions_is_that_of_all() -> None:
    x = values((2, 3, 5, 8), FLOAT32, seed=3)
    positions = np.array([[9, 1, 4, 0, 2]])
    assert_same_bits(ROPE.rotate(x, positions=positions), ROPE.rotate(x, positions=positions[0]))
    mask = np.array([[True, False, True, True, False]])
    assert_same_bits(ROPE.rotate(x, mask=mask), ROPE.rotate(x, mask=mask[0]))


@pytest.mark.parametrize("seq_axis", [0, -3])
def test_packed_sequences_count_from_their_own_starts(seq_axis: int) -> None:
    x = values((9, 3, 8), FLOAT32, seed=4)  # [N, H, D]
    y = ROPE.rotate(x, seq_axis=seq_axis, cu_seqlens=[0, 4, 4, 9], offset=[10, 0, 7])
    for begin, end, start in ((0, 4, 10), (4, 9, 7)):
        cos, sin = ROPE.tables(end - begin, offset=start)
        assert_same_bits(y[begin:end], halves_rotated(x[begin:end], (cos[:, None], sin[:, None])))
    positions = [10, 11, 12, 13, 7, 8, 9, 10, 11]
    assert_same_bits(ROPE.rotate(x, seq_axis=seq_axis, positions=positions), y)


def test_queries_and_keys_within_a_packed_projection() -> None:
    heads, key_heads, width = 4, 2, 8
    qkv = values((2, 5, (heads + 2 * key_heads) * width), FLOAT32, seed=5)
    before = qkv.copy()
    q = qkv[..., : heads * width].reshape(2, 5, heads, width)
    k = qkv[..., heads * width : (heads + key_heads) * width].reshape(2, 5, key_heads, width)
    assert np.shares_memory(q, qkv)
    assert ROPE.rotate_(q, k, seq_axis=-3, offset=[3, 8])[0] is q
    cos, sin = ROPE.tables(5, offset=[3, 8])
    for part, head_count, first in ((q, heads, 0), (k, key_heads, heads * width)):
        old = before[..., first : first + head_count * width].reshape(2, 5, head_count, width)
        assert_same_bits(part, halves_rotated(old, (cos[:, :, None], sin[:, :, None])))
    # The values are left as they were.
    np.testing.assert_array_equal(bits(qkv[..., -key_heads * width :]), bits(before[..., -key_heads * width :]))


def test_queries_and_keys_that_alternate_in_one_buffer() -> None:
    both = values((2, 3, 5, 2, 8), FLOAT32, seed=6)
    before = both.copy()
    ROPE.rotate_(both[..., 0, :], both[..., 1, :])
    assert_same_bits(both[..., 0, :], ROPE.rotate(before[..., 0, :]))
    assert_same_bits(both[..., 1, :], ROPE.rotate(before[..., 1, :]))
    # The parts of each head.
    columns = values((5, 16), FLOAT32, seed=7)
    before = columns.copy()
    ROPE.rotate_(columns[:, ::2], columns[:, 1::2])
    assert_same_bits(columns[:, ::2], ROPE.rotate(before[:, ::2]))


def test_many_heads_of_queries_share_few_of_keys() -> None:
    q, k, one = (values((2, heads, 5, 8), FLOAT32, seed=heads) for heads in (6, 2, 1))
    rotated = [ROPE.rotate(x, offset=[3, 4]) for x in (q, k, one)]
    for found, same in zip(ROPE.rotate_(q, k, one, offset=[3, 4]), rotated, strict=True):
        assert_same_bits(found, same)


@pytest.mark.parametrize("offset", [7, [7, 100]])
def test_one_key_without_an_axis_of_heads(offset: Any) -> None:
    """Multi-head latent attention: the parts in the rear of queries, and one key that all heads share."""
    q, k = values((2, 3, 5, 20), FLOAT32, seed=8), values((2, 5, 8), FLOAT32, seed=9)
    q_before, k_before = q.copy(), k.copy()
    ROPE.rotate_(q[..., 12:], k, offset=offset)
    np.testing.assert_array_equal(bits(q[..., :12]), bits(q_before[..., :12]))
    assert_same_bits(q[..., 12:], ROPE.rotate(q_before[..., 12:], offset=offset))
    assert_same_bits(k, ROPE.rotate(k_before[:, None], offset=offset)[:, 0])
    # With another axis of the sequence, the missing axis is given.
    q, k = q_before.transpose(0, 2, 1, 3).copy(), k_before.copy()
    ROPE.rotate_(q[..., 12:], k[:, :, None], offset=offset, seq_axis=-3)
    assert_same_bits(k, ROPE.rotate(k_before[:, None], offset=offset)[:, 0])


def test_arrays_of_other_batches_where_nothing_is_per_row() -> None:
    arrays = [values(shape, FLOAT32, seed=10) for shape in ((2, 3, 5, 8), (4, 5, 8), (5, 8), (1, 1, 5, 9))]
    rotated = [ROPE.rotate(x, offset=3) for x in arrays]
    for found, same in zip(ROPE.rotate_(*arrays, offset=3), rotated, strict=True):
        assert_same_bits(found, same)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("step", [1, 2, -1, -3])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_strided_last_axis(dtype: np.dtype[Any], step: int, interleaved: bool) -> None:
    rope = fastpe.RotaryEmbedding(12, interleaved=interleaved)
    memory = values((2, 7, abs(step) * 15), dtype, seed=11)
    x = memory[..., ::step]
    elsewhere = memory.copy()
    elsewhere[..., ::step] = rope.rotate(x.copy(), lengths=[7, 4])
    rope.rotate_(x, lengths=[7, 4])
    assert_same_bits(memory, elsewhere)
    # Out of place: only one of both is strided.
    for out in (x, np.empty((2, 7, 15), dtype)):
        source = values((2, 7, 15), dtype, seed=12)
        rope.rotate(source, out=out)
        assert_same_bits(out, rope.rotate(source))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "shape", [(0, 8), (5, 8), (0, 5, 8), (2, 0, 8), (2, 0, 5, 8), (1, 2, 1, 2, 1, 2, 1, 2, 5, 8), (3, 2, 2, 5, 9)]
)
def test_two_to_ten_axes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    x = values(shape, dtype, seed=13)
    before = x.copy()
    options: dict[str, Any] = {"rotary_dim": 8, "interleaved": True}
    assert fastpe.RotaryEmbedding(**options).rotate_(x) is x
    assert_same_bits(x, expected(before, options))


def test_arrays_without_heads_beside_others() -> None:
    q, k = values((2, 3, 5, 8), FLOAT32, seed=14), np.empty((2, 0, 5, 8), np.float32)
    rotated = ROPE.rotate(q, offset=[1, 2])
    assert_same_bits(ROPE.rotate_(k, q, offset=[1, 2])[1], rotated)


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
