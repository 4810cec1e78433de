# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe bench``: a short side by side with NumPy on this machine."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from rich import box
from rich.console import Console
from rich.table import Table

import fastpe
from fastpe._cli.measuring import busy_note, configuration, in_units, median_seconds

Floats = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class Workload:
    """One piece of work and NumPy's way of doing it; each returns the result."""

    name: str
    numpy_way: str
    own: Callable[[], Floats]
    numpy: Callable[[], Floats]
    # How far NumPy's float32 may be off from the exact values.
    tolerance: float = 0.0


def _encode_in_numpy(out: Floats) -> Floats:
    seq_len, d_model = out.shape
    position = np.arange(seq_len, dtype=np.float32)[:, None]
    frequency = np.exp(np.arange(0, d_model, 2, dtype=np.float32) * np.float32(-math.log(10000.0) / d_model))
    angle = position * frequency
    out[:, 0::2] = np.sin(angle)
    out[:, 1::2] = np.cos(angle)
    return out


def workloads() -> Iterator[Workload]:
    """From one sequence to a batch, in and out of cache, and one step of decoding."""
    for seq_len, d_model in ((512, 768), (8192, 1024)):
        own, other = np.empty((2, seq_len, d_model), np.float32)
        yield Workload(
            f"encode [{seq_len}, {d_model}]",
            "float32 formula",
            lambda out=own: fastpe.encode(*out.shape, out=out),  # type: ignore[misc]
            lambda out=other: _encode_in_numpy(out),  # type: ignore[misc]
            tolerance=3e-7 * seq_len,
        )
    for shape in ((1, 512, 768), (32, 512, 768)):
        own, other = np.zeros((2, *shape), np.float32)
        table = fastpe.encode(*shape[1:])
        yield Workload(
            f"add_ {list(shape)}",
            "x += ready table",
            lambda x=own: fastpe.add_(x),  # type: ignore[misc]
            lambda x=other, table=table: np.add(x, table, out=x),  # type: ignore[misc]
        )
    own, other = np.zeros((2, 64, 1, 1024), np.float32)
    position = np.random.default_rng(0).integers(0, 4096, 64)
    encoding = fastpe.PositionalEncoding(1024, max_len=4096)
    table = encoding.encode(4096)
    yield Workload(
        "decode [64, 1, 1024]",
        "x += ready table[position]",
        lambda: encoding.add_(own, offset=position),
        lambda: np.add(other, table[position][:, None], out=other),
    )


def run(console: Console, *, rounds: int) -> bool:
    """Print times; whether all results agreed."""
    console.print(configuration(), highlight=False, soft_wrap=True)
    if note := busy_note():
        console.print(note, highlight=False, soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("work", "fastpe", "NumPy", "ratio", "NumPy's way"):
        table.add_column(heading, justify="left" if heading in ("work", "NumPy's way") else "right", no_wrap=True)
    agreed = True
    for workload in workloads():
        own_time, numpy_time = median_seconds([workload.own, workload.numpy], rounds=rounds)
        # Both have been called equally often, so sums agree too.
        difference = float(np.abs(workload.own() - workload.numpy()).max())
        ratio = f"{numpy_time / own_time:.1f}"
        if difference > workload.tolerance:
            agreed = False
            ratio = f"differs by {difference:.3g}"
        table.add_row(workload.name, in_units(own_time), in_units(numpy_time), ratio, workload.numpy_way)
    console.print(table)
    console.print(f"Medians of {rounds} rounds in which they take turns; ratio is NumPy / fastpe.", soft_wrap=True)
    return agreed
