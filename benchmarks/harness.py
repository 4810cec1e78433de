# SPDX-License-Identifier: BSD-3-Clause
"""Interleaved timing: all contenders of a case take turns, so that what disturbs one disturbs all."""

from __future__ import annotations

import dataclasses
import random
import timeit
from collections.abc import Callable, Sequence
from typing import Any, Literal

from benchmarks.results import BarResult, CaseResult, Spread, Time

# Asserts that an answer is right and returns its largest absolute error.
Check = Callable[[Any], float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contender:
    """One way to do the work of a case.

    `work` is a function that returns the answer, or a statement over `names` that leaves it in ``x``: statements are
    timed without the cost of a Python function around them. `times`, where there is one, does the work so many times
    without Python in between.
    """

    name: str
    work: Callable[[], Any] | str
    check: Check
    encoding: Literal["computed", "own", "cached", "none"] = "computed"
    output: Literal["in place", "warm out", "fresh"] = "warm out"
    names: dict[str, Any] = dataclasses.field(default_factory=dict)
    times: Callable[[int], None] | None = None

    def answer(self) -> Any:
        if callable(self.work):
            return self.work()
        self._timer().timeit(1)
        return self.names["x"]

    def _timer(self) -> timeit.Timer:
        if callable(self.work):
            return timeit.Timer(self.work)
        # A local name: statements such as ``x += row`` assign it.
        return timeit.Timer(self.work, setup="x = array", globals={**self.names, "array": self.names["x"]})

    def stopwatch(self) -> Callable[[int], float]:
        """The seconds that so many calls take."""
        times = self.times
        if times is None:
            return self._timer().timeit
        return lambda calls: timeit.timeit(lambda: times(calls), number=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bar:
    """A target: how long the contender may take, compared with the fastest of its rivals.

    The bar is the least quotient of the rival's time and the contender's, or the largest quotient of the contender's
    time and the rival's. `limits` are loops that show what the machine allows for the same work. The ratio that the
    fastest of them has says whether the machine or the contender misses the bar.
    """

    requirement: str
    contender: str = "fastpe"
    rivals: Sequence[str]
    at_least: float | None = None
    at_most: float | None = None
    limits: Sequence[str] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """Contenders for the same work, on the same buffers."""

    name: str
    bytes_moved: int
    contenders: Sequence[Contender]
    bars: Sequence[Bar] = ()
    reset: Callable[[], None] = lambda: None  # the inputs, before an answer is checked
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Selection:
    """Which contenders take part."""

    rivals: bool = True  # anything but fastpe
    compiled: bool = False  # torch.compile, which takes seconds for each shape


Factory = Callable[[Selection], Case]


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long to measure: a contender's rounds are batches of about `batch_seconds`, within `contender_seconds`."""

    rounds: int
    batch_seconds: float
    contender_seconds: float
    fewest_rounds: int = 5


class Batches:
    """Repeated calls of one contender, after some that are not timed.

    They warm the caches that it will find warm, and let an encoder find out that the same rows are asked for again.
    """

    _warming_calls = 5

    def __init__(self, contender: Contender, effort: Effort) -> None:
        self._seconds = contender.stopwatch()
        once = min(self._seconds(1) for _ in range(self._warming_calls))
        # One call alone is a poor estimate of a short one.
        sample = max(1, min(20, round(effort.batch_seconds / once)))
        once = self._seconds(sample) / sample
        self._is_slow = once > 0.05
        self._calls = max(1, round(effort.batch_seconds / once))
        affordable = int(effort.contender_seconds / (once * (self._calls + 1)))
        self.rounds = min(effort.rounds, max(effort.fewest_rounds, affordable))

    def seconds_per_call(self) -> float:
        if not self._is_slow:
            self._seconds(1)
        return self._seconds(self._calls) / self._calls


def check_answers(case: Case) -> list[float]:
    """The largest error of each contender."""
    errors = []
    for contender in case.contenders:
        case.reset()
        try:
            errors.append(contender.check(contender.answer()))
        except AssertionError as error:
            raise AssertionError(f"{case.name}: {contender.name} is wrong: {error}") from error
    return errors


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What one process measured of a case."""

    errors: dict[str, float]  # of each contender, the largest
    seconds: dict[str, list[float]]  # of each contender's calls, round by round


def measure(case: Case, effort: Effort) -> Measurement:
    errors = check_answers(case)
    case.reset()
    batches = [Batches(contender, effort) for contender in case.contenders]
    names = [contender.name for contender in case.contenders]
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for round_index in range(max(batch.rounds for batch in batches)):
        # In a new order each round: nobody profits from what the same neighbour leaves in the caches.
        for index in random.Random(round_index).sample(range(len(batches)), len(batches)):
            if round_index < batches[index].rounds:
                seconds[names[index]].append(batches[index].seconds_per_call())
    return Measurement(dict(zip(names, errors, strict=True)), seconds)


def result_of(case: Case, measurements: Sequence[Measurement]) -> CaseResult:
    runs = [measurement.seconds for measurement in measurements]
    times = [
        Time(
            contender.name,
            contender.encoding,
            contender.output,
            _spread(runs, contender.name),
            max(measurement.errors[contender.name] for measurement in measurements),
        )
        for contender in case.contenders
    ]
    bars = [result for bar in case.bars if (result := bar_result(bar, runs)) is not None]
    return CaseResult(case.name, case.bytes_moved, times, bars, case.note)


def _spread(runs: Sequence[dict[str, list[float]]], name: str) -> Spread:
    return Spread.of([seconds for run in runs for seconds in run[name]])


def bar_result(bar: Bar, runs: Sequence[dict[str, list[float]]]) -> BarResult | None:
    """Of processes' seconds. None where no rival is installed."""

    def fastest(names: Sequence[str]) -> str | None:
        found = [name for name in names if all(name in run for run in runs)]
        return min(found, key=lambda name: _spread(runs, name).median) if found else None

    rival = fastest(bar.rivals)
    if rival is None:
        return None

    def ratios(contender: str) -> Spread:
        # Of times from the same round: slow drifts of the machine cancel.
        pairs = [pair for run in runs for pair in zip(run[contender], run[rival], strict=False)]
        return Spread.of([r / c if bar.at_least is not None else c / r for c, r in pairs])

    limit = fastest(bar.limits)
    return BarResult(
        bar.requirement,
        ratios(bar.contender),
        bar.at_least,
        bar.at_most,
        rival=rival,
        limit=limit or "",
        value_at_limit=ratios(limit).median if limit is not None else None,
    )
