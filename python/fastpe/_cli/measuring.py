# SPDX-License-Identifier: BSD-3-Clause
"""Times of two or more ways of doing one thing, comparable with each other, and what they depend on."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence

import fastpe


def median_seconds(ways: Sequence[Callable[[], object]], *, rounds: int) -> list[float]:
    """Median time of each way over `rounds`, after one round that is not counted.

    The ways take turns within a round, so that a slow moment of the machine falls on all of them.
    """
    seconds: list[list[float]] = [[] for _ in ways]
    for counted in [False] + [True] * rounds:
        for way, times in zip(ways, seconds, strict=True):
            start = time.perf_counter()
            way()
            elapsed = time.perf_counter() - start
            if counted:
                times.append(elapsed)
    return [statistics.median(times) for times in seconds]


def in_units(seconds: float) -> str:
    """A time as text, in the unit that suits it."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds * 1e6:.1f} µs"


def configuration() -> str:
    """The configuration that times depend on, in one line."""
    config = fastpe.show_config()
    threads = config["threads"]
    return (
        f"fastpe {config['version']} ({config['compiler']}), {config['instruction_set']}, "
        f"{threads} thread{'' if threads == 1 else 's'}, NumPy {config['numpy']}, {config['machine']}"
    )


def busy_note() -> str | None:
    """A warning about times where other programs compete for the processors."""
    processors = os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load < 0.75 * processors:
        return None
    return (
        f"The machine is busy (load {load:.1f} on {processors} processors): threads wait for one, and times say little."
    )
