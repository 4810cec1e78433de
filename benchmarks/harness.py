# SPDX-License-Identifier: BSD-3-Clause
"""Interleaved timing: all contenders of a case take turns, so that what disturbs one disturbs all."""

from __future__ import annotations

import dataclasses
import random
import statistics
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from benchmarks.answers import Check

Shape = tuple[int, ...]
Array = Literal["new", "given", "in place"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contender:
    """One way to do the work of a case.

    `work` is an expression over `names`. A new array that it makes is freed before the next call. An `alternative` does the
    same work in the same state, a `limit` only writes or changes the array, and a `reference` is fastpe at other work.
    """

    name: str
    work: str
    names: dict[str, Any]
    check: Check
    kind: Literal["fastpe", "alternative", "limit", "reference"] = "alternative"

    def answer(self) -> Any:
        return eval(self.work, self.names)


@dataclasses.dataclass(frozen=True)
class Bar:
    """How many times as fast as the fastest of these contenders fastpe has to be; None is no bar."""

    rivals: Sequence[str]
    one_thread: float | None
    all_threads: float | None
    obstacle: str = ""  # where a machine misses it by more than a tenth


@dataclasses.dataclass(frozen=True)
class Case:
    """Contenders for the same work in the same state; the first one is fastpe, and is made before the others."""

    group: str
    work: str
    array: Array
    encoding: Literal["computed", "kept", "against a table"]
    shape: Shape
    build: Callable[[Shape], Iterator[Contender]]
    bars: Sequence[Bar] = ()
    page: Literal["no", "page", "page and README"] = "page"

    @property
    def name(self) -> str:
        return f"{self.work}; {self.array}; {self.encoding}"


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long to measure: a contender's rounds are batches of about `batch_seconds`, within `contender_seconds`."""

    rounds: int
    batch_seconds: float
    contender_seconds: float
    fewest_rounds: int = 5


class Batches:
    """Repeated calls of one contender, after some that are not timed: arrays and rows are then where they will be."""

    def __init__(self, contender: Contender, effort: Effort) -> None:
        self._seconds = timeit.Timer(contender.work, globals=contender.names).timeit
        once = min(self._seconds(1) for _ in range(3))
        if once < 0.02:
            once = min(self._seconds(1) for _ in range(6))  # fastpe has then kept the rows that it keeps
        # One call is a poor estimate of a short one.
        sample = max(1, min(20, round(effort.batch_seconds / once)))
        once = self._seconds(sample) / sample
        self._is_slow = once > 0.02
        self._calls = max(1, round(effort.batch_seconds / once))
        affordable = int(effort.contender_seconds / (once * (self._calls + 1)))
        self.rounds = min(effort.rounds, max(effort.fewest_rounds, affordable))

    def seconds_per_call(self) -> float:
        if not self._is_slow:
            self._seconds(1)  # brings the arrays back into the caches
        return self._seconds(self._calls) / self._calls


def checked(case: Case, shape: Shape) -> list[tuple[Contender, float]]:
    """The contenders, with the largest error of each one's answer."""
    found = []
    for contender in case.build(shape):
        try:
            found.append((contender, contender.check(contender.answer())))
        except AssertionError as error:
            raise AssertionError(f"{case.name}: {contender.name} is wrong: {error}") from error
    return found


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What one process measured of one contender: seconds per call, round by round."""

    kind: str
    error: float
    seconds: list[float]


def measure(case: Case, effort: Effort, *, pause_seconds: float) -> dict[str, Measurement]:
    """Of each contender; `pause_seconds` is until the idle threads of the one before have stopped spinning."""
    contenders = checked(case, case.shape)
    found = {contender.name: Measurement(contender.kind, error, []) for contender, error in contenders}
    batches = {contender.name: Batches(contender, effort) for contender, _ in contenders}
    for round_index in range(max(batch.rounds for batch in batches.values())):
        # In a new order each round: nobody profits from what the same neighbour leaves in the caches.
        for name in random.Random(round_index).sample([*batches], len(batches)):
            if round_index < batches[name].rounds:
                time.sleep(pause_seconds)
                found[name].seconds.append(batches[name].seconds_per_call())
    return found


@dataclasses.dataclass(frozen=True)
class Figure:
    """A contender in all processes: median seconds, and how many times as fast fastpe was, with the quartiles of that."""

    kind: str
    error: float
    seconds: float
    times: float
    low: float
    high: float


def figures(processes: Sequence[dict[str, Measurement]]) -> dict[str, Figure]:
    """Of each contender of a case; ratios are of one round of one process: slow drifts of the machine cancel."""
    found = {}
    for name, first in processes[0].items():
        runs = [(process["fastpe"].seconds, process[name].seconds) for process in processes]
        ratios = [other / own for pair in runs for own, other in zip(*pair, strict=False)]
        seconds = statistics.median(each for _, others in runs for each in others)
        low, times, high = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist()
        found[name] = Figure(first.kind, first.error, seconds, times, low, high)
    return found
