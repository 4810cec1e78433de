# SPDX-License-Identifier: BSD-3-Clause
"""The array contract: what is taken in place, what is refused, and that a refusal changes nothing."""

from __future__ import annotations

import array
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import fastpe

from ..oracles.reference import DTYPES, Array, assert_same_bits
from ..oracles.refusals import naming


def ordinary(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def read_only(*shape: int) -> Array:
    result = ordinary(*shape)
    result.flags.writeable = False
    return result


class WithInterface:
    def __init__(self, data: Array, is_read_only: bool = False) -> None:
        self._kept = data
        self.shape = data.shape
        pointer, _ = data.__array_interface__["data"]
        self.__array_interface__ = {**data.__array_interface__, "data": (pointer, is_read_only)}


@pytest.mark.parametrize(
    "x",
    [
        read_only(3, 4),
        np.broadcast_to(ordinary(4), (2, 3, 4)),
        sliding_window_view(ordinary(8, 4), 3, axis=0).transpose(0, 2, 1),
        WithInterface(ordinary(3, 4), True),
    ],
    ids=["read-only", "broadcast", "overlapping", "read-only interface"],
)
def test_add_only_reads_its_input(x: Any) -> None:
    plain = np.asarray(x)
    expected = plain + fastpe.encode(plain.shape[-2], 4)
    assert_same_bits(fastpe.add(x), expected)
    out = np.empty_like(expected)
    assert fastpe.add(x, out=out) is out
    assert_same_bits(out, expected)


# ---- out


def is_refused(call: Callable[..., Any], *arguments: Any, **keywords: Any) -> bool:
    try:
        call(*arguments, **keywords)
    except ValueError:
        return True
    return False


def random_view(rng: np.random.Generator, memory: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """A view of this shape that lies within the memory, its strides short and of either sign."""
    item = np.dtype(dtype).itemsize
    strides = item * rng.integers(-9, 10, len(shape))
    reach = strides * (np.array(shape) - 1)
    low, high = -int(reach[reach < 0].sum()), int(reach[reach > 0].sum()) + item
    start = item * int(rng.integers(low // item, (memory.nbytes - high) // item + 1))
    view: Array = np.ndarray(shape, dtype, memory.data, start, tuple(strides))
    return view


@pytest.mark.parametrize("count", [40, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int64])
def test_overlap_is_told_as_numpy_tells_it(dtype: Any, count: int) -> None:
    rng = np.random.default_rng(5)
    memory = np.zeros(256, np.float32)
    told = {True: 0, False: 0}
    while min(told.values()) < count:
        axes = rng.integers(2, 5 if dtype == np.float32 else 4)
        shape = tuple(rng.integers(1, 5, axes).tolist())
        out = random_view(rng, memory, shape, np.float32)
        if is_refused(fastpe.add_, out):
            continue
        places = np.tensordot(out.strides, np.indices(shape), 1)
        assert len(np.unique(places)) == out.size, "its own elements share memory"
        memory[:] = 0
        if dtype == np.float32:
            other = random_view(rng, memory, shape, dtype)
            found = is_refused(fastpe.add, other, out=out)
        else:
            other = random_view(rng, memory, shape[:-1], dtype)
            found = is_refused(fastpe.add_, out, positions=other)
        ours, theirs = ((each.ctypes.data, each.strides, each.dtype) for each in (out, other))
        is_shared = np.shares_memory(other, out) and ours != theirs
        assert found == is_shared, (other.__array_interface__, out.strides)
        told[is_shared] += 1


def test_strides_too_irregular_for_a_quick_answer_are_refused() -> None:
    # Columns of out lie at multiples of 8 and beside them, those of x at 5, 6 and 7 more: no two meet, but to know, each
    # pair of x's rows must be tried, as their strides alone would let them meet.
    shape = (2, 300, 300, 2)
    memory = np.zeros(3_000_000, np.float32)
    out = as_strided(memory, shape, (4 * 16 * 300 * 300, 4 * 16 * 300, 4 * 16, 4))
    x = as_strided(memory[8005:], shape, (4 * 9, 4 * 40, 4 * 24, 4))
    with pytest.raises(ValueError, match=naming("out x")):
        fastpe.add(x, out=out)
    assert not memory.any()
    # The same rows are told at once where they do meet, or where they are too far away to.
    with pytest.raises(ValueError, match=naming("out x")):
        fastpe.add(as_strided(memory[8000:], shape, x.strides), out=out)
    fastpe.add(as_strided(memory[2_960_000:], shape, x.strides), out=out)


# ---- what works in place


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_memory_mapped_files(tmp_path: pathlib.Path, dtype: Any) -> None:
    path = tmp_path / "x.npy"
    x = ordinary(5, 7, 12, dtype=dtype)
    np.save(path, x)
    mapped = np.load(path, mmap_mode="r+")
    assert fastpe.add_(mapped) is mapped
    mapped.flush()
    del mapped
    assert_same_bits(np.load(path), fastpe.add(x))
    stored = path.read_bytes()
    with pytest.raises(ValueError, match=naming("x")):
        fastpe.add_(np.load(path, mmap_mode="r"))
    assert path.read_bytes() == stored
    assert_same_bits(fastpe.add(np.load(path, mmap_mode="r")), fastpe.add(fastpe.add(x)))
    copy_on_write = np.load(path, mmap_mode="c")
    fastpe.add_(copy_on_write)
    assert path.read_bytes() == stored


def test_buffers_and_interfaces_in_place() -> None:
    expected = fastpe.encode(3, 4)
    memory = bytearray(48)
    view = memoryview(memory).cast("f", (3, 4))
    assert fastpe.add_(view) is view
    assert bytes(memory) == expected.tobytes()
    x = np.zeros((3, 4), np.float32)
    wrapped = WithInterface(x)
    assert fastpe.PositionalEncoding(4).add_(wrapped) is wrapped
    assert_same_bits(x, expected)
    numbers = array.array("d", [0.0] * 12)
    fastpe.add_(np.frombuffer(numbers).reshape(3, 4))
    assert numbers.tolist() == fastpe.encode(3, 4, dtype=np.float64).ravel().tolist()
    with pytest.raises(ValueError, match=naming("x")):
        fastpe.add_(memoryview(bytes(48)).cast("f", (3, 4)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_wide_rows_of_elements_that_lie_far_apart(dtype: np.dtype[Any]) -> None:
    rows, d_model, first = 40, 5000, 7
    encoding, wider = (fastpe.PositionalEncoding(d_model + more, max_len=20) for more in (0, 10))

    def far_apart() -> Any:  # [rows, d_model], the columns 4000 bytes from each other
        return np.zeros((d_model, 4000 // dtype.itemsize), dtype)[:, :rows].T

    values = ((np.arange(rows * d_model) * 37 % 101 - 50) / 8).astype(dtype).reshape(rows, d_model)
    table = values[::-1].copy()
    for offset in (-20, 0):
        expected = encoding.encode(rows, offset=offset, dtype=dtype, num_threads=2)
        assert_same_bits(encoding.encode(rows, offset=offset, out=far_apart(), num_threads=2), expected)
        keywords: dict[str, Any] = {"offset": offset, "scale": 1.5, "num_threads": 2}
        expected = encoding.add(values, **keywords)
        x = far_apart()
        x[...] = values
        assert_same_bits(encoding.add(x, out=far_apart(), **keywords), expected)
        padded = np.pad(values, [(0, 0), (first, 10 - first)])
        columns = wider._add_part(x, first, out=far_apart(), **keywords)
        assert_same_bits(columns, wider.add(padded, **keywords)[:, first : first + d_model])
        assert_same_bits(encoding.add_(x, **keywords), expected)
    for beyond in (-1, 11):
        with pytest.raises(ValueError, match=naming("first_column")):
            wider._add_part(values, beyond)
    ids = np.arange(rows) * 7 % rows
    for learned in (None, table):
        found = encoding.embed(ids, values, position_table=learned, lengths=30, out=far_apart())
        assert_same_bits(found, encoding.embed(ids, values, position_table=learned, lengths=30))


# ---- sizes


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_axes_of_length_1_may_stand_in_front_of_encoded_rows(dtype: np.dtype[Any]) -> None:
    out = np.zeros((1, 1, 3, 8, 2), dtype)[..., 0]
    assert fastpe.encode(3, 8, out=out) is out
    assert_same_bits(out[0, 0].copy(), fastpe.encode(3, 8, dtype=dtype))
    for shape in ((2, 3, 8), (1, 3, 8, 1), (1, 3, 9)):
        with pytest.raises(ValueError, match=r"^out has shape"):
            fastpe.encode(3, 8, out=np.zeros(shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_size_zero_is_fine_everywhere(dtype: np.dtype[Any]) -> None:
    assert fastpe.encode([], 5, dtype=dtype).shape == (0, 5)
    assert fastpe.encode(np.zeros((3, 0, 2)), 5, dtype=dtype).shape == (3, 0, 2, 5)
    assert fastpe.encode(4, 5, dtype=dtype, offset=np.zeros(0, int)).shape == (0, 4, 5)
    for shape in [(0, 4), (4, 0), (0, 0), (2, 3, 0), (2, 3, 0, 0)]:
        x = np.zeros(shape, dtype)
        assert fastpe.add_(x, positions=np.zeros(shape[-2])) is x
        assert fastpe.add(x, table=np.zeros((9, shape[-1]), dtype)).shape == shape
    fastpe.add_(np.zeros((0, 4), dtype), cu_seqlens=[0], offset=np.zeros(0, int))
    fastpe.add_(np.zeros((0, 4), dtype), table=np.zeros((0, 4), dtype))
    for rows in (0, 7):
        assert fastpe.embed(np.zeros((2, 0, 4), np.int64), np.zeros((rows, 6), dtype)).shape == (2, 0, 4, 6)
    assert fastpe.embed([[0, 0]], np.zeros((3, 0), dtype)).shape == (1, 2, 0)


# ---- other arguments


def test_the_cache_of_encoders_does_not_blur_types() -> None:
    fastpe.encode(3, 12)
    with pytest.raises(TypeError, match=naming("d_model")):
        fastpe.encode(3, 12.0)  # type: ignore[arg-type]
    fastpe.encode(3, 1)
    with pytest.raises(TypeError, match=naming("d_model")):
        fastpe.encode(3, True)
