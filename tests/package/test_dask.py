# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

pytest.importorskip("dask")

import itertools
import os
import sys
from collections.abc import Iterator
from typing import Any

import dask
import dask.array
import distributed
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
    (TypeError, "offset"): [f"add(lazy, offset={each})" for each in ("1.5", "np.array([5])", "[0, 3]")],
    (ValueError, "offset"): ["add(lazy, offset=2**53 - 1)"],
    (TypeError, "mask"): ["add(lazy, mask=[True] * 6)"],
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


@pytest.mark.parametrize("chunks", list(itertools.product((1, 2, 5), (3, 40), (1, 4, 7, 9))))
@pytest.mark.parametrize(
    "seq_axis", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(-2, marks=pytest.mark.slow)]
)
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


def test_native_byte_order_by_its_letter_as_zarr_has_it() -> None:
    x = embeddings(3, 20, 8)
    x = x.view(x.dtype.newbyteorder("<" if sys.byteorder == "little" else ">"))
    assert x.dtype.byteorder != "="
    native = x.view(np.float32)
    lazy = fastpe.dask.add(dask.array.from_array(x, chunks=(2, 7, 3)))
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), fastpe.add(native))
    np.testing.assert_array_equal(fastpe.add(x, out=np.empty_like(x)), fastpe.add(native))
    assert fastpe.add_(x) is x


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


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_schedulers(scheduler: str) -> None:
    x = embeddings(6, 64, 32)
    lazy = fastpe.dask.add(dask.array.from_array(x, chunks=(2, 20, 32)))
    np.testing.assert_array_equal(lazy.compute(scheduler=scheduler, num_workers=2), fastpe.add(x))


def test_it_is_lazy() -> None:
    @dask.delayed  # type: ignore[untyped-decorator]
    def never() -> npt.NDArray[np.float32]:
        raise AssertionError

    array = dask.array.from_delayed(never(), (4, 6), np.float32)
    assert fastpe.dask.add(array).chunks == ((4,), (6,))


@pytest.mark.parametrize("shape", [(0, 4), (3, 0, 4), (3, 4, 0)])
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    assert fastpe.dask.add(dask.array.zeros(shape, dtype=np.float32)).compute(scheduler="synchronous").shape == shape


def test_unknown_sizes_on_other_axes_are_fine() -> None:
    x = embeddings(6, 5, 4)
    array = dask.array.from_array(x, chunks=(2, 3, 4))
    some = array[array[:, 0, 0] > -10]
    np.testing.assert_array_equal(fastpe.dask.add(some).compute(scheduler="synchronous"), fastpe.add(x))


# ---- processes on their own, that get their blocks by network


@pytest.fixture(scope="module")
def client() -> Iterator[distributed.Client]:
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit="1GiB",
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": ":0"},  # its server has a port without a dashboard, too
            processes=True,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(np.float16, marks=pytest.mark.slow),
        np.float32,
        pytest.param(ml_dtypes.bfloat16, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("chunks", [(1, 40, 9), (5, 7, 9), (5, 40, 4), (2, 16, 5)], ids=["batch", "seq", "d", "all"])
def test_a_distributed_cluster(client: distributed.Client, chunks: tuple[int, ...], dtype: npt.DTypeLike) -> None:
    x = embeddings(5, 40, 9, dtype=dtype)
    array = client.persist(dask.array.from_array(x, chunks=chunks))
    y = client.persist(fastpe.dask.add(array, offset=70_000))
    assert y.chunks == array.chunks
    assert y.compute().tobytes() == fastpe.add(x, offset=70_000).tobytes()
    # The blocks are still held by the workers, which made the result from them.
    assert array.compute().tobytes() == x.tobytes()


def test_workers_are_processes_of_one_thread(client: distributed.Client) -> None:
    # Defined here, so that it is sent by value: workers cannot import tests.
    def threads() -> tuple[int, str | None, int]:
        return os.getpid(), os.environ.get("OMP_NUM_THREADS"), fastpe.show_config()["threads"]

    found = list(client.run(threads).values())
    assert len({process for process, _, _ in found} | {os.getpid()}) == 3
    # Set by Dask before each worker starts: workers do not oversubscribe, whatever num_threads says.
    assert [rest for _, *rest in found] == [["1", 1]] * 2
