# SPDX-License-Identifier: BSD-3-Clause
"""What hosts compute besides rotations: buckets, slopes, position ids, frequencies. Exact in C as in Python."""

from __future__ import annotations

from ctypes import byref, c_double, c_int64
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastpe

from .shared_library import CONSTANTS, CError, ConstArray, Library, Rotary, doubles, view

Ints = npt.NDArray[Any]


def buckets(library: Library, relative: Ints, out: Ints, both: int, count: int, farthest: int) -> Ints:
    arrays = byref(view(relative, ConstArray)), byref(view(out))
    library.call("relative_buckets", arrays[0], both, c_int64(count), c_int64(farthest), arrays[1])
    return out


def slopes(library: Library, out: npt.NDArray[Any], max_bias: float = 8.0) -> npt.NDArray[Any]:
    library.call("alibi_slopes", c_double(max_bias), byref(view(out)))
    return out


def position_ids(library: Library, mask: Ints, out: Ints) -> Ints:
    library.call("position_ids", byref(view(mask, ConstArray)), byref(view(out)))
    return out


@pytest.mark.parametrize("both", [0, 1])
@pytest.mark.parametrize(
    ("count", "farthest"), [(32, 128), (4, 3), (4, 2**31), (320, 800), (6, 9), (2048, 4096), (130, 2**31 - 1)]
)
def test_buckets_are_those_of_python(library: Library, both: int, count: int, farthest: int) -> None:
    edges = np.unique(np.geomspace(1, farthest + 5, 400).astype(np.int64)[:, None] + np.arange(-2, 3))
    relative = np.concatenate([np.arange(-1000, 1000), edges, -edges, [2**62, -(2**62), 2**63 - 1, -(2**63)]])
    expected = fastpe.relative_buckets(relative, bidirectional=bool(both), num_buckets=count, max_distance=farthest)
    np.testing.assert_array_equal(buckets(library, relative, np.empty_like(relative), both, count, farthest), expected)


def test_buckets_of_strided_arrays(library: Library) -> None:
    memory = np.zeros((9, 40), np.int32)
    key, query = np.arange(12), np.arange(7)
    relative = (key[None] - query[:, None]).astype(np.int8)[::-1, ::3]
    out = memory[1:8, 5:17:3]
    buckets(library, relative, out, 1, 32, 128)
    np.testing.assert_array_equal(out, fastpe.relative_buckets(relative, bidirectional=True))
    assert np.count_nonzero(memory) == np.count_nonzero(out)


@pytest.mark.parametrize("heads", [1, 2, 6, 8, 12, 20, 71, 112, 128])
@pytest.mark.parametrize("max_bias", [8.0, 1.0, 5.3, 99.9])
def test_slopes_are_those_of_python(library: Library, heads: int, max_bias: float) -> None:
    for dtype in (np.float32, np.float64):
        found = slopes(library, np.zeros(2 * heads, dtype)[::-2], max_bias)
        np.testing.assert_array_equal(found, fastpe.alibi_slopes(heads, max_bias=max_bias, dtype=dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("kind", [bool, np.int64, np.int32, np.uint8])
def test_position_ids(library: Library, dtype: Any, kind: Any) -> None:
    mask = np.array([[0, 0, 1, 1, 1], [1, 1, 0, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]])
    expected = np.where(mask, np.cumsum(mask, axis=1) - 1, 1)  # transformers, generation/utils.py
    for columns in (5, 2, 1, 0):
        for order in ("C", "F"):
            given, out = np.array(mask.astype(kind), order=order), np.full((4, columns), -7, dtype, order)
            np.testing.assert_array_equal(position_ids(library, given, out), expected[:, 5 - columns :])
    np.testing.assert_array_equal(position_ids(library, mask[1].astype(kind), np.empty(3, dtype)), expected[1, 2:])
    text = fastpe.text_inputs({"model_type": "llama"}, mask, attention_mask=mask)["position_ids"]
    np.testing.assert_array_equal(position_ids(library, mask.astype(kind), np.empty((4, 5), dtype)), text)


def test_frequencies_of_a_handle(library: Library) -> None:
    scaling = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
    rotary = Rotary(library, 8, base=5e5, scaling=scaling)
    python = {**scaling, "rope_type": scaling["type"]}
    del python["type"]
    rope = fastpe.RotaryEmbedding(8, interleaved=False, base=5e5, scaling=python)
    found, factor = doubles(np.zeros(4)), c_double()
    library.call("rotary_frequencies", rotary.handle, found, c_int64(4), byref(factor))
    assert list(found) == list(rope.frequencies)
    assert factor.value == rope.attention_factor
    assert Fraction(found[0]) == 1
    library.call("rotary_frequencies", rotary.handle, None, c_int64(0), None)
    for name, handle, count in (("count", rotary.handle, 3), ("rotary", None, 4)):
        with pytest.raises(CError) as refused:
            library.call("rotary_frequencies", handle, found, c_int64(count), None)
        assert refused.value.argument == name


RELATIVE, OUT = np.arange(-3, 3), np.full(6, -7)
MASK, IDS = np.ones((2, 6), np.int64), np.full((2, 6), -7)
REFUSED: dict[str, tuple[str, str, Any]] = {
    "too few buckets": ("VALUE", "num_buckets", lambda c: buckets(c, RELATIVE, OUT, 1, 3, 128)),
    "too many buckets": ("VALUE", "num_buckets", lambda c: buckets(c, RELATIVE, OUT, 0, 4097, 10**6)),
    "a distance within single ones": ("VALUE", "max_distance", lambda c: buckets(c, RELATIVE, OUT, 0, 32, 16)),
    "neither 0 nor 1": ("VALUE", "bidirectional", lambda c: buckets(c, RELATIVE, OUT, 2, 32, 128)),
    "fractional positions": ("TYPE", "relative_positions", lambda c: buckets(c, RELATIVE / 2, OUT, 0, 32, 128)),
    "another shape": ("VALUE", "out", lambda c: buckets(c, RELATIVE, OUT[1:], 0, 32, 128)),
    "16 bits": ("TYPE", "out", lambda c: buckets(c, RELATIVE, OUT.astype(np.int16), 0, 32, 128)),
    "the same memory": ("VALUE", "out", lambda c: buckets(c, OUT[::-1], OUT, 0, 32, 128)),
    "one element for all": ("VALUE", "out", lambda c: buckets(c, RELATIVE, np.broadcast_to(OUT[:1], 6), 0, 32, 128)),
    "no bias": ("VALUE", "max_bias", lambda c: slopes(c, np.ones(4), 0.0)),
    "nan": ("VALUE", "max_bias", lambda c: slopes(c, np.ones(4), float("nan"))),
    "no heads": ("VALUE", "out", lambda c: slopes(c, np.ones(0))),
    "integer slopes": ("TYPE", "out", lambda c: slopes(c, OUT)),
    "a mask of lengths": ("VALUE", "mask", lambda c: position_ids(c, 2 * MASK, IDS)),
    "a mask of fractions": ("TYPE", "mask", lambda c: position_ids(c, MASK / 1, IDS)),
    "a mask of one number": ("VALUE", "mask", lambda c: position_ids(c, MASK[0, 0, ...], IDS)),
    "a shorter mask": ("VALUE", "out", lambda c: position_ids(c, MASK[:, 1:].copy(), IDS)),
    "another batch": ("VALUE", "out", lambda c: position_ids(c, MASK[:1], IDS)),
    "a mask in the memory of ids": ("VALUE", "out", lambda c: position_ids(c, IDS, IDS)),
}  # fmt: skip


@pytest.mark.parametrize(("status", "argument", "call"), REFUSED.values(), ids=list(REFUSED))
def test_refused_calls_write_nothing(library: Library, status: str, argument: str, call: Any) -> None:
    with pytest.raises(CError) as refused:
        call(library)
    assert (refused.value.status, refused.value.argument) == (CONSTANTS[f"FASTPE_INVALID_{status}"], argument)
    assert (OUT == -7).all()
    assert (IDS == -7).all()
