# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

pytest.importorskip("dask")

import sys
from typing import Any

import dask
import dask.array
import ml_dtypes
import numpy as np
import numpy.typing as npt

import fastpe
import fastpe.dask

from ..oracles.refusals import Refused, check_refused, rows


def embeddings(*shape: int, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


UNKNOWN = dask.array.ones((6, 8), chunks=3, dtype="f4")
UNKNOWN = UNKNOWN[UNKNOWN[:, 0] > 0]

REFUSED: Refused = {
    (TypeError, "array"): ["add(x)", "add(lazy.astype(int))"],
    (ValueError, "array"): ["add(unknown)"],
    (ValueError, "seq_axis"): ["add(lazy, seq_axis=-1)", "add(lazy, seq_axis=1)", "add(lazy[0])"],
    (TypeError, "seq_axis"): ["add(lazy, seq_axis='0')"],
    (TypeError, "x"): ["fastpe.add_(lazy)"],
    (TypeError, "offset"): ["add(lazy, offset=1.5)", "add(lazy, offset=[0, 3])"],
    (ValueError, "offset"): ["add(lazy, offset=2**53 - 1)"],
    (TypeError, "valid"): ["add(lazy, valid=[True] * 6)"],
    (ValueError, "convention"): ["add(lazy, convention='fairsec')"],
    (ValueError, "num_threads"): ["add(lazy, num_threads=0)"],
}


def test_without_dask_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'dask\[array\]'") as caught:
        fastpe.dask.add(np.ones((3, 8)))
    assert caught.value.name == "dask"


@pytest.mark.parametrize(("call", "error", "arguments"), rows(REFUSED))
def test_refused_before_anything_is_computed(call: str, error: type[Exception], arguments: str) -> None:
    def uncomputed(block: Any) -> Any:
        raise AssertionError("a block was computed")

    x = embeddings(6, 8)
    lazy = dask.array.from_array(x, chunks=3).map_blocks(uncomputed, dtype=x.dtype, meta=x)
    names = {"fastpe": fastpe, "add": fastpe.dask.add, "x": x, "lazy": lazy, "unknown": UNKNOWN, "np": np}
    check_refused(call, error, arguments, names)


@pytest.mark.parametrize("chunks", [(2, 7, 4), (5, 40, 1)])
@pytest.mark.parametrize("seq_axis", [0, 1, -2])
def test_any_chunking_gives_the_bits_of_the_whole(chunks: tuple[int, ...], seq_axis: int) -> None:
    x = embeddings(5, 40, 9)
    x.flags.writeable = False
    lazy = fastpe.dask.add(dask.array.from_array(x, chunks=chunks), seq_axis=seq_axis, offset=70_000)
    assert lazy.dtype == x.dtype
    result = lazy.compute(scheduler="synchronous")
    np.testing.assert_array_equal(result, fastpe.add(x, seq_axis=seq_axis, offset=70_000))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_dtypes_and_knobs(dtype: npt.DTypeLike) -> None:
    x = embeddings(3, 20, 8, dtype=dtype)
    knobs: dict[str, Any] = {"convention": "fairseq", "base": 500.0, "scale": 2.0, "alpha": 0.5}
    lazy = fastpe.dask.add(dask.array.from_array(x, chunks=(2, 7, 3)), **knobs)
    result = lazy.compute(scheduler="synchronous")
    assert result.dtype == x.dtype
    assert result.tobytes() == fastpe.add(x, **knobs).tobytes()


def test_blocks_are_not_changed() -> None:
    x = embeddings(4, 6, 8)
    before = x.copy()
    # From delayed values, so that blocks are the caller's memory.
    blocks = [dask.array.from_delayed(dask.delayed(part), part.shape, part.dtype) for part in (x[:2], x[2:])]
    array = dask.array.concatenate(blocks)
    y, again = dask.compute(fastpe.dask.add(array), array, scheduler="threads")
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(again, before)
    np.testing.assert_array_equal(y, fastpe.add(before))


@pytest.mark.parametrize("scheduler", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
@pytest.mark.timed
def test_schedulers(scheduler: str) -> None:
    x = embeddings(6, 64, 32)
    lazy = fastpe.dask.add(dask.array.from_array(x, chunks=(2, 20, 32)))
    np.testing.assert_array_equal(lazy.compute(scheduler=scheduler, num_workers=2), fastpe.add(x))
