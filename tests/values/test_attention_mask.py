# SPDX-License-Identifier: BSD-3-Clause
"""Masks of attention, and tables of relative positions, against their definitions element by element."""

from __future__ import annotations

import itertools
import math
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import fastpe

from ..oracles.refusals import Refused, check_refused, each, rows

Array = npt.NDArray[Any]


def lowest_of(dtype: Any) -> Any:
    finfo: Any = ml_dtypes.finfo
    return finfo(dtype).min


def visible(
    length: int,
    *,
    causal: bool,
    past: int = 0,
    window: int | None = None,
    chunk: int | None = None,
    valid: Array | None = None,
    cu_seqlens: list[int] | None = None,
    groups: Array | None = None,
) -> Array:
    keys = past + length
    batch = max(len(each) if each is not None and each.ndim == 2 else 0 for each in (valid, groups))
    q, j = past + np.arange(length)[:, None], np.arange(keys)
    result = np.zeros((batch or 1, length, keys), bool)
    for b in range(len(result)):
        its_valid, its_groups = (each[b] if each is not None and each.ndim == 2 else each for each in (valid, groups))
        seen = np.full((length, keys), True)
        start = np.zeros(keys, int)
        if causal:
            same = np.zeros((length, keys), bool)
            if its_groups is not None:
                same = (its_groups[q] == its_groups[j]) & (its_groups[q] >= 0)
            seen &= (j <= q) | same
        if window is not None:
            seen &= j > q - window if causal else abs(q - j) <= window
        if its_valid is not None:
            seen &= its_valid[j]
            start[:] = np.argmax(its_valid) if its_valid.any() else 0
        if cu_seqlens is not None:
            sequence = np.searchsorted(cu_seqlens, np.arange(keys), side="right") - 1
            seen &= sequence[q] == sequence[j]
            start = np.asarray(cu_seqlens)[sequence]
        if chunk is not None:
            seen &= (q - start[q]) // chunk == (j - start[q]) // chunk
        result[b] = seen
    return result[:, None] if batch else result[0]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("past", [0, 3])
def test_every_combination_is_its_definition(causal: bool, past: int) -> None:
    random = np.random.default_rng(7)
    for length, window, chunk in itertools.product((1, 9, 130, 0), (None, 1, 4, 50), (None, 1, 4)):
        keys = past + length
        padded = np.arange(keys) >= random.integers(0, keys + 1, (2, 1))
        members = np.repeat(random.integers(-1, 3, (2, keys // 2 + 1)), 2, axis=1)[:, :keys]
        for valid, groups in itertools.product(
            (None, padded, padded[0], random.random((2, keys)) < 0.6), (None, members, members[0])
        ):
            has_gaps = valid is not None and valid.ndim == 2 and valid is not padded
            if (groups is not None and not causal) or (has_gaps and not (window is chunk is None)):
                continue
            given: dict[str, Any] = {"causal": causal, "past": past, "window": window, "chunk": chunk}
            given |= {"valid": valid, "groups": groups}
            expected = visible(length, **given)
            found = fastpe.attention_mask(length, **given)
            assert found.dtype == bool
            assert np.array_equal(found, expected), given
            added = fastpe.attention_mask(length, **given, dtype=np.float32)
            assert np.array_equal(added, np.where(expected, 0, np.finfo(np.float32).min)), given
    for cu_seqlens, window, chunk in itertools.product(([0, 9], [0, 2, 2, 9], [0, 1, 5, 9]), (None, 2), (None, 3)):
        given = {"causal": causal, "window": window, "chunk": chunk, "cu_seqlens": cu_seqlens}
        assert np.array_equal(fastpe.attention_mask(9, **given), visible(9, **given)), given


@pytest.mark.parametrize("dtype", [np.bool_, np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_out_and_dtypes(dtype: Any) -> None:
    valid = np.arange(7) >= np.array([[2], [0]])
    expected = fastpe.attention_mask(5, causal=True, past=2, valid=valid)
    out = np.full((2, 1, 5, 14), 7).astype(dtype)[..., ::2]
    for given in (dtype, None):
        assert fastpe.attention_mask(5, causal=True, past=2, valid=valid.astype(int), dtype=given, out=out) is out
        lowest = False if dtype is np.bool_ else lowest_of(dtype)
        seen = True if dtype is np.bool_ else 0
        assert (out == np.where(expected, np.array(seen, dtype), np.array(lowest, dtype))).all()
    hides = np.array([[False]]) if dtype is np.bool_ else np.array([[lowest_of(dtype)]], dtype)
    assert (fastpe.attention_mask(1, causal=True, valid=[0], dtype=dtype) == hides).all()  # finite


def test_out_may_be_what_says_which_keys_are_valid() -> None:
    """The masks of its arguments are read before the first write."""
    random = np.random.default_rng(3)
    out = random.random((2, 1, 6, 6)) < 0.6
    valid, expected = out[:, 0, 2], fastpe.attention_mask(6, causal=True, valid=out[:, 0, 2].copy())
    assert fastpe.attention_mask(6, causal=True, valid=valid, out=out) is out
    assert np.array_equal(out, expected)
    floats = random.integers(0, 2, (2, 1, 6, 24), np.uint8).view(np.float32)
    inside = floats.view(np.bool_)[:, 0, 1, ::4]
    assert 0 < inside.sum() < inside.size
    expected = fastpe.attention_mask(6, causal=True, valid=inside.copy(), dtype=np.float32)
    assert np.array_equal(fastpe.attention_mask(6, causal=True, valid=inside, dtype=None, out=floats), expected)


@pytest.mark.parametrize("given", [{}, {"dtype": np.int8}], ids=str)
@pytest.mark.parametrize("out", [np.ones((3, 3), kind) for kind in (np.int8, np.float32, ml_dtypes.bfloat16, np.int64)])
def test_the_dtype_that_an_error_names_is_taken(out: Array, given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"^(out|dtype) ") as raised:
        fastpe.attention_mask(3, causal=True, out=out, **given)
    remedy = vars(raised.value)["_fields"]["remedy"]
    if "None" in remedy:
        assert fastpe.attention_mask(3, causal=True, out=out, dtype=None) is out
        assert (out == fastpe.attention_mask(3, causal=True, dtype=out.dtype)).all()
    elif "view" in remedy:
        fastpe.attention_mask(3, causal=True, out=out.view(np.bool_))
        assert (out == np.tri(3)).all()
    else:
        assert "convert" in remedy


def test_sequences_of_different_pasts_share_keys_that_are_padded_on_the_left() -> None:
    with pytest.raises(
        TypeError, match=r"^past is .* call once for each sequence, or have the padding of all on the left"
    ):
        fastpe.attention_mask(2, causal=True, past=np.array([3, 1]), window=2)  # type: ignore[arg-type]
    valid = np.array([[1] * 5, [0, 0, 1, 1, 1]])
    together = fastpe.attention_mask(2, causal=True, past=3, window=2, valid=valid)
    for row, past in zip(together[:, 0], (3, 1), strict=True):
        assert np.array_equal(row[:, 3 - past :], fastpe.attention_mask(2, causal=True, past=past, window=2))


@pytest.mark.parametrize("limit", [{"window": 2}, {"chunk": 2}])
def test_padding_between_keys_is_refused_where_keys_are_counted(limit: dict[str, Any]) -> None:
    valid = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 1]])
    with pytest.raises(ValueError, match=r"^valid\[1\] has padding between"):
        fastpe.attention_mask(1, causal=True, past=4, valid=valid, **limit)
    assert fastpe.attention_mask(1, causal=True, past=4, valid=valid)[1, 0, 0].tolist() == [
        True,
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("given", [{"dtype": int}, {"dtype": "no"}, {"dtype": None, "out": np.zeros((3, 3), int)}])
def test_an_error_about_the_dtype_lists_all_that_are_taken(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="expected bool, float32, float64, float16 or bfloat16"):
        fastpe.attention_mask(3, causal=True, **given)


REFUSED: Refused = {
    (ValueError, "seq_len"): ["mask(-1, causal=True)"],
    (TypeError, "seq_len"): ["mask(1.5, causal=True)"],
    (TypeError, "causal"): ["mask(3)", "mask(3, causal=1)", "mask(3, cu_seqlens=[0, 3])"],
    (ValueError, "past"): ["mask(3, causal=True, past=-1)"],
    (ValueError, "window"): ["mask(3, causal=True, window=0)", "mask(3, causal=False, window=-1)"],
    (ValueError, "chunk"): ["mask(3, causal=True, chunk=0)"],
    (ValueError, "valid"): each("mask(3, causal=True, valid={})", "[1, 1] | [[[1, 1, 1]]] | [1, 2, 1]"),
    (TypeError, "valid"): ["mask(3, causal=True, valid=[1.0, 1.0, 0.0])"],
    (ValueError, "groups"): [
        "mask(3, causal=True, groups=[1])",
        "mask(3, causal=False, groups=[1, 1, 1])",
        "mask(3, causal=True, groups=[[1, 1, 1]], valid=[[1, 1, 1]] * 2)",
    ],
    (TypeError, "groups"): ["mask(3, causal=True, groups=[1.0, 1.0, 1.0])"],
    (ValueError, "cu_seqlens"): each("mask(3, causal=True, cu_seqlens={})", "[0, 2] | [1, 3] | [0, 2, 1, 3] | [] | [[0, 3]]"),
    (ValueError, "cu_seqlens past"): ["mask(3, causal=True, cu_seqlens=[0, 3], past=1)"],
    (ValueError, "cu_seqlens valid"): ["mask(3, causal=True, cu_seqlens=[0, 3], valid=[1, 1, 1])"],
    (ValueError, "out"): ["mask(3, causal=True, out=out[:2])", "mask(3, causal=True, out=readonly)"],
    (TypeError, "out"): ["mask(3, causal=True, out=out.astype('f4'))", "mask(3, causal=True, out=[[7]])"],
    (TypeError, "dtype"): each("mask(3, causal=True, dtype={})", "'i4' | 'no' | 3"),
    (ValueError, "num_buckets"): ["buckets([1], num_buckets=2, max_position=512)"],
    (ValueError, "max_position"): each("buckets([9 ** 9], num_buckets={})", "256, max_position=129 | 1024, max_position=514"),
    (TypeError, "relative_positions"): ["buckets([1.5], num_buckets=256, max_position=512)"],
    (ValueError, "shape"): each("fastpe.window_relative_index({})", "(0, 2) | () | (2, 2, 2, 2)"),
    (ValueError, "pretrained_shape"): ["fastpe.window_relative_coordinates((2, 2), pretrained_shape=(3,))"],
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "arguments"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], arguments: str) -> None:
    out, readonly = np.ones((3, 3), bool), np.ones((3, 3), bool)
    readonly.flags.writeable = False
    names = {"mask": fastpe.attention_mask, "buckets": fastpe.deberta_buckets, "fastpe": fastpe, "out": out}
    check_refused(call, error, arguments, {**names, "readonly": readonly})


@pytest.mark.parametrize(("count", "longest"), [(256, 512), (32, 128), (8, 4096), (51, 60)])
def test_debertas_buckets(count: int, longest: int) -> None:
    half, distances = count // 2, np.arange(-3000, 3001)
    for r, found in zip(
        distances.tolist(), fastpe.deberta_buckets(distances, num_buckets=count, max_position=longest), strict=True
    ):
        expected: float = r
        if abs(r) > half:
            exact = math.log(abs(r) / half) / math.log((longest - 1) / half) * (half - 1)
            near = round(exact)
            expected = math.copysign(half + (near if abs(exact - near) < 1e-9 else math.ceil(exact)), r)
        assert found == expected
    assert fastpe.deberta_buckets([], num_buckets=count, max_position=longest).dtype == np.int64


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (1, 5)])
def test_indices_in_windows(shape: tuple[int, ...]) -> None:
    found, places = fastpe.window_relative_index(shape), list(np.ndindex(*shape))
    for (i, query), (j, key) in itertools.product(enumerate(places), repeat=2):
        difference = [a - b + n - 1 for a, b, n in zip(query, key, shape, strict=True)]
        assert found[i, j] == np.ravel_multi_index(difference, [2 * n - 1 for n in shape])


def test_coordinates_in_windows() -> None:
    found = fastpe.window_relative_coordinates((8, 3), pretrained_shape=(12, 6))
    assert found.shape == (15, 5, 2)
    for i, j in np.ndindex(15, 5):
        for x, size, got in zip((i - 7, j - 2), (12, 6), found[i, j], strict=True):
            expected = math.copysign(math.log2(abs(x) * 8 / (size - 1) + 1) / 3, x)
            assert abs(got - expected) < 1e-7
    assert not fastpe.window_relative_coordinates((1, 1)).any()
