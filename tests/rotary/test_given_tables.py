# SPDX-License-Identifier: BSD-3-Clause
"""`fastpe.rotate_`: rotation by cosines and sines that the caller has."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpe

from ..oracles.reference import BFLOAT16, DTYPES, assert_same_bits, bits
from ..oracles.refusals import naming
from ..oracles.strategies import integer_arrays, seeds, strided, values
from . import oracle
from .oracle import Array

pytestmark = pytest.mark.usefixtures("instruction_set")

FLOAT32, FLOAT64, FLOAT16 = DTYPES[:3]
TABLE_DTYPES = [
    (FLOAT32, FLOAT32),
    (FLOAT64, FLOAT64),
    (FLOAT64, FLOAT32),
    (FLOAT16, FLOAT16),
    (FLOAT16, FLOAT32),
    (BFLOAT16, BFLOAT16),
    (BFLOAT16, FLOAT32),
]


def expected(x: Array, cos: Array, sin: Array, *, interleaved: bool, conjugate: bool = False, **call: Any) -> Array:
    wide = oracle.arithmetic_dtype(x.dtype)

    def row_of(position: Any) -> tuple[Array, Array]:
        assert 0 <= position < len(cos)
        return cos[int(position)].astype(wide), sin[int(position)].astype(wide)

    return oracle.rotate(x, row_of, rotary_dim=2 * cos.shape[1], interleaved=interleaved, conjugate=conjugate, **call)


@given(
    dtypes=st.sampled_from(TABLE_DTYPES),
    pairs=st.integers(1, 20),
    interleaved=st.booleans(),
    conjugate=st.booleans(),
    seed=seeds,
    data=st.data(),
)
def test_any_tables(
    dtypes: tuple[Any, Any], pairs: int, interleaved: bool, conjugate: bool, seed: int, data: st.DataObject
) -> None:
    dtype, table_dtype = dtypes
    rows, length = 12, data.draw(st.integers(0, 6))
    # No cosines and sines: learned ones are any numbers.
    cos, sin = values((rows, pairs), table_dtype, seed), values((rows, pairs), table_dtype, seed + 1)
    if data.draw(st.booleans()):
        wide = np.zeros((rows, 2, pairs + 3), table_dtype)
        wide[:, 0, 1 : pairs + 1], wide[::-1, 1, 1 : pairs + 1] = cos, sin
        cos, sin = wide[:, 0, 1 : pairs + 1], wide[::-1, 1, 1 : pairs + 1]
    call: dict[str, Any] = {}
    kind = data.draw(st.sampled_from(["counted", "offset", "offsets", "positions", "packed"]))
    layout: tuple[int, ...] = (2, 3, length)
    if kind == "offset":
        call["offset"] = data.draw(st.integers(0, rows - length))
    elif kind == "offsets":
        call["offset"] = data.draw(integer_arrays((2,), 0, rows - length))
    elif kind == "positions":
        call["positions"] = data.draw(integer_arrays(data.draw(st.sampled_from([(length,), (2, length)])), 0, rows - 1))
    elif kind == "packed":
        layout = (length, 3)
        call = {"cu_seqlens": [0, length // 2, length], "seq_axis": 0, "offset": np.array([5, 0])}
    if kind != "packed" and data.draw(st.booleans()):
        call["mask"] = np.random.default_rng(seed).integers(0, 2, (2, length)) > 0
    x = data.draw(strided((*layout, 2 * pairs + data.draw(st.integers(0, 2))), dtype))
    same = expected(x, cos, sin, interleaved=interleaved, conjugate=conjugate, **call)
    result = fastpe.rotate_(x, cos=cos, sin=sin, interleaved=interleaved, conjugate=conjugate, **call)
    assert result is x
    assert_same_bits(x, same)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tables_of_an_embedding_rotate_as_it_does(dtype: np.dtype[Any], interleaved: bool) -> None:
    rope = fastpe.RotaryEmbedding(36, interleaved=interleaved, attention_factor=1.2)
    cos, sin = rope.tables(20, dtype=oracle.arithmetic_dtype(dtype))
    q, k = values((2, 4, 5, 40), dtype, seed=1), values((2, 5, 36), dtype, seed=2)
    same = rope.rotate(q, offset=[3, 15]), rope.rotate(k, offset=[3, 15])
    result = fastpe.rotate_(q, k, cos=cos, sin=sin, interleaved=interleaved, offset=[3, 15])
    assert type(result) is tuple
    for found, array, expected_one in zip(result, (q, k), same, strict=True):
        assert found is array
        assert_same_bits(array, expected_one)


def test_the_conjugate_takes_the_sines_with_the_other_sign() -> None:
    cos, sin = values((5, 4), FLOAT32, seed=3), values((5, 4), FLOAT32, seed=4)
    x = values((2, 5, 8), FLOAT32, seed=5)
    back = fastpe.rotate_(x.copy(), cos=cos, sin=sin, interleaved=False, conjugate=True)
    assert_same_bits(back, fastpe.rotate_(x.copy(), cos=cos, sin=-sin, interleaved=False))


def test_every_pair_is_multiplied() -> None:
    x = np.array([[np.inf, 2.0, 1.0, 3.0]], np.float32)
    one, zero = np.ones((1, 2), np.float32), np.zeros((1, 2), np.float32)
    fastpe.rotate_(x, cos=one, sin=zero, interleaved=False)
    assert np.isnan(x[0, 2])
    assert x[0, [0, 1, 3]].tolist() == [np.inf, 2, 3]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_nan_in_a_table_stays_one(dtype: np.dtype[Any]) -> None:
    # All of its bits but the sign are ones: rounded as a number is, it would be -0.
    nan = np.array(-1, np.int64 if dtype.itemsize == 8 else np.int32).view(oracle.arithmetic_dtype(dtype))
    table = np.full((1, 20), np.copysign(nan, 1))
    x = np.ones((1, 40), dtype)
    fastpe.rotate_(x, cos=table, sin=np.zeros_like(table), interleaved=True)
    assert np.isnan(x).all()


def test_one_row_may_be_given_for_many_positions() -> None:
    row = values((1, 4), FLOAT32, seed=6)
    table = np.broadcast_to(row, (10, 4))
    x = values((2, 10, 8), FLOAT32, seed=7)
    same = fastpe.rotate_(x.copy(), cos=table.copy(), sin=table.copy(), interleaved=True)
    assert_same_bits(fastpe.rotate_(x, cos=table, sin=table, interleaved=True), same)


GRID = np.indices((3, 3)).reshape(2, -1).T


@pytest.mark.parametrize("angles", [GRID, GRID[4:5], GRID[::4], np.zeros((4, 2)), np.ones((4, 2))], ids=str)
@pytest.mark.parametrize("repeated", [False, True])
def test_axes_may_share_frequencies(angles: Array, repeated: bool) -> None:
    """Cells on the diagonal have each column twice, and so have rows whose columns are all alike."""
    frequencies = np.array([1.0, 0.3, 0.1]) if len(angles) != 4 else np.ones(3)
    both = angles[:, :, None] * frequencies
    table = (both.swapaxes(1, 2) if repeated else both).reshape(len(angles), -1)
    cos, sin = np.cos(table).astype(np.float32), np.sin(table).astype(np.float32)
    x = values((2, len(angles), 16), FLOAT32, seed=12)
    same = expected(x, cos, sin, interleaved=True)
    assert_same_bits(fastpe.rotate_(x, cos=cos, sin=sin, interleaved=True), same)


@pytest.mark.parametrize("shape", [(2, 2), (4, 4), (2, 6), (6, 2)])
@pytest.mark.parametrize(
    ("name", "head_dim"),
    [("gemma4_vision", 72), ("qwen2_vl_vision", 80), ("llama4_vision", 88), ("kimi_k25_vision", 72), ("sam2", 64)],
)
def test_tables_of_images_are_taken(name: str, head_dim: int, shape: tuple[int, int]) -> None:
    """Two axes that have the same frequencies, in parts of a head or side by side."""
    layout = fastpe.rotary_layouts[name]
    ids = np.indices(shape).reshape(2, -1).T
    x = values((len(ids), head_dim), FLOAT32, seed=13)
    whole = layout.rotate(x, positions=ids)
    for columns, rope, coordinates in layout.parts(head_dim):
        cos, sin = rope.tables(ids[:, coordinates], form="halves")
        fastpe.rotate_(x[:, columns], cos=cos, sin=sin, interleaved=layout.interleaved)
    assert_same_bits(x, whole)


def test_fewer_than_three_tiled_rows_are_not_noticed() -> None:
    cos, sin = fastpe.RotaryEmbedding(8, interleaved=False).tables([5, 6, 7], form="tile")
    x = values((3, 16), FLOAT32, seed=14)
    fastpe.rotate_(x[:2], cos=cos[:2], sin=sin[:2], interleaved=False)
    with pytest.raises(ValueError, match=naming("cos")):
        fastpe.rotate_(x, cos=cos, sin=sin, interleaved=False)


@pytest.mark.parametrize("form", ["tile", "repeat"])
@pytest.mark.parametrize("head_dim", [8, 16, 24])
@pytest.mark.parametrize("positions", [[0, 0, 1, 2, 3], [1, 0, 1, 2], [3, 2, 1, 0], [1, 2, 3, None, None]], ids=str)
def test_rows_of_padding_do_not_hide_columns_that_are_there_twice(
    positions: list[int | None], head_dim: int, form: Literal["tile", "repeat"]
) -> None:
    rope = fastpe.RotaryEmbedding(8, interleaved=False)
    cos, sin = rope.tables([position or 0 for position in positions], form=form)
    cos[[position is None for position in positions]] = 0  # a table that ends in zeros
    x = values((len(positions), head_dim), FLOAT32, seed=14)
    with pytest.raises(ValueError, match=naming("cos")):
        fastpe.rotate_(x, cos=cos, sin=sin, interleaved=False)


@pytest.mark.parametrize(
    ("of_cos", "of_sin"),
    [([0, 1, 0, 1, 2], [0, 1, 0, 1, 2]), ([0, 1, 0, 1], [0, 1, 2, 3]), ([0, 1, 2, 3], [0, 1, 0, 1])],
)
def test_some_columns_may_be_there_twice(of_cos: list[int], of_sin: list[int]) -> None:
    columns = values((5, 4), FLOAT32, seed=13)
    cos, sin = (np.ascontiguousarray(columns[:, each]) for each in (of_cos, of_sin))
    x = values((2, 5, 12), FLOAT32, seed=14)
    same = expected(x, cos, sin, interleaved=True)
    assert_same_bits(fastpe.rotate_(x, cos=cos, sin=sin, interleaved=True), same)


NO_CIRCLES = [np.ones(8), np.zeros(8), np.full(8, np.nan), np.linspace(0.1, 0.9, 8), np.linspace(1.0, 1.001, 8)]


@pytest.mark.parametrize("key", NO_CIRCLES, ids=str)
def test_keys_and_their_latent_part_are_no_tables(key: Array) -> None:
    rope = fastpe.RotaryEmbedding(8, interleaved=True)
    q, k, latent = np.ones((2, 4, 3, 8)), np.tile(key, (2, 3, 1)), np.zeros((2, 3, 8))
    assert rope.rotate_(q, k, latent)[2] is latent


def test_tables_may_be_read_only() -> None:
    cos, sin = fastpe.RotaryEmbedding(4, interleaved=True).tables(3)
    for table in (cos, sin):
        table.flags.writeable = False
    x = values((3, 4), FLOAT32, seed=8)
    same = fastpe.RotaryEmbedding(4, interleaved=True).rotate(x)
    assert_same_bits(fastpe.rotate_(x, cos=cos, sin=sin, interleaved=True), same)


@pytest.mark.parametrize(
    "call",
    [
        {"offset": 3},
        {"offset": -1},
        {"offset": [0, 4]},
        {"offset": 2**53 - 9},
        {"offset": 5, "mask": [True] * 4},
        {"positions": [0, 1, 2, 6]},
        {"positions": [[0, 1, 2, 3], [0, -2, 0, 0]]},
        {"positions": [0, 1, 1.5, 3]},
    ],
)
def test_rows_that_do_not_exist_are_index_errors(call: dict[str, Any]) -> None:
    cos, sin = fastpe.RotaryEmbedding(6, interleaved=False).tables(6)
    q, k = values((2, 3, 4, 6), FLOAT32, seed=9), values((2, 1, 4, 6), FLOAT32, seed=10)
    before = q.copy(), k.copy()
    with pytest.raises(IndexError, match=naming(next(iter(call)))):
        fastpe.rotate_(q, k, cos=cos, sin=sin, interleaved=False, **call)
    for array, old in zip((q, k), before, strict=True):
        np.testing.assert_array_equal(bits(array), bits(old))


def test_rows_that_do_not_count_need_no_row() -> None:
    cos, sin = fastpe.RotaryEmbedding(6, interleaved=False).tables(3)
    x = values((2, 5, 6), FLOAT32, seed=11)
    before = x.copy()
    fastpe.rotate_(x, cos=cos, sin=sin, interleaved=False, lengths=[3, 0])
    assert_same_bits(x[0, :3], fastpe.RotaryEmbedding(6, interleaved=False).rotate(before[0, :3]))
    np.testing.assert_array_equal(bits(x[0, 3:]), bits(before[0, 3:]))
    np.testing.assert_array_equal(bits(x[1]), bits(before[1]))
    none = np.empty((0, 3), np.float32)
    empty = np.empty((2, 0, 6), np.float32)
    assert fastpe.rotate_(empty, cos=none, sin=none, interleaved=False) is empty
