# SPDX-License-Identifier: BSD-3-Clause
"""Dask adds positions to embeddings in a zarr store that is chunked along batch, sequence and channels.

The result has the same bits as one call for the whole array.

    pip install '.[dask,zarr]'
    python examples/dask_zarr.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import fastpe

try:
    import dask.array
    import zarr

    import fastpe.dask
except ImportError as error:
    raise SystemExit(f"{error}: pip install '.[dask,zarr]'") from None


def main() -> None:
    """Make a store, add positions chunk by chunk, and compare with one call for the whole array."""
    x = np.random.default_rng(0).standard_normal((64, 256, 384), dtype=np.float32)
    with tempfile.TemporaryDirectory() as directory:
        source, target = (str(Path(directory, name)) for name in ("embeddings.zarr", "with-positions.zarr"))
        chunks = (16, 100, 128)
        store = zarr.open(source, mode="w", shape=x.shape, chunks=chunks, dtype=x.dtype)
        store[:] = x

        lazy = fastpe.dask.add(dask.array.from_zarr(source), convention="tensor2tensor")
        lazy.to_zarr(target)

        result = zarr.open(target, mode="r")[:]
    assert np.array_equal(result, fastpe.add(x, convention="tensor2tensor"))
    print(f"{list(x.shape)} in chunks of {list(chunks)}: the bits of the whole array")


if __name__ == "__main__":
    main()
