# SPDX-License-Identifier: BSD-3-Clause
"""Interleaved timing: all contenders of a case take turns, so that what disturbs one disturbs all."""

from __future__ import annotations

import dataclasses
import math
import random
import statistics
import timeit
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

# Asserts that an answer is right and returns its largest absolute error.
Check = Callable[[Any], float]


@dataclasses.dataclass(frozen=True)
class Contender:
    """One way to do the work of a case.

    `work` is a function that returns the answer, or a statement over `names` that leaves it in ``x``: statements are
    timed without the cost of a Python function around them. `times`, where there is one, does the work so many times
    without Python in between.
    """

    name: str
    work: Callable[[], Any] | str
    check: Check
    threads: int = 1
    encoding: Literal["computed", "cached", "none"] = "computed"
    output: Literal["in place", "warm out", "fresh"] = "warm out"
    names: dict[str, Any] = dataclasses.field(default_factory=dict)
    times: Callable[[int], None] | None = None

    def answer(self) -> Any:
        if callable(self.work):
            return self.work()
        self.timer().timeit(1)
        return self.names["x"]

    def timer(self) -> timeit.Timer:
        if callable(self.work):
            return timeit.Timer(self.work)
        # A local name: statements such as ``x += row`` assign it.
        return timeit.Timer(self.work, setup="x = array", globals={**self.names, "array": self.names["x"]})

    def stopwatch(self) -> Callable[[int], float]:
        """The seconds that so many calls take."""
        times = self.times
        if times is None:
            return self.timer().timeit
        return lambda calls: timeit.timeit(lambda: times(calls), number=1)


@dataclasses.dataclass(frozen=True)
class Bar:
    """`contender` against `rival`: rival's time over contender's at least, or contender's over rival's at most.

    With `values`, instead of a rival: 10^9 of them a second at least.

    `parts` are contenders that do parts of the same work and nothing else: together they take as long as all of it takes
    where nothing overlaps.
    """

    requirement: str
    contender: str
    rival: str = ""
    at_least: float | None = None
    at_most: float | None = None
    parts: Sequence[str] = ()
    values: int | None = None


@dataclasses.dataclass(frozen=True)
class Case:
    """Contenders for the same work, on the same buffers."""

    group: str
    name: str
    bytes_moved: int
    contenders: Sequence[Contender]
    bars: Sequence[Bar] = ()
    reset: Callable[[], None] = lambda: None  # the inputs, before an answer is checked
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Spread:
    """A median with its quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        low, high = np.quantile(values, [0.25, 0.75]).tolist()
        return cls(statistics.median(values), low, high)


@dataclasses.dataclass(frozen=True)
class Measurement:
    contender: Contender
    seconds: Sequence[float]  # per call, one figure a round
    largest_error: float

    @property
    def time(self) -> Spread:
        return Spread.of(self.seconds)


@dataclasses.dataclass(frozen=True)
class Reason:
    """What a bar's ratio would be if the contender took as long as its parts one after the other."""

    parts: Sequence[Measurement]
    contender: Measurement
    ratio: float


@dataclasses.dataclass(frozen=True)
class BarResult:
    work: str
    requirement: str
    ratio: Spread
    best: float  # the ratio of the fastest rounds: what other programs disturbed least
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "x"
    reason: Reason | None = None

    @property
    def name(self) -> str:
        return f"{self.work}: {self.requirement}"

    def meets(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    @property
    def holds(self) -> bool:
        return self.meets(self.ratio.median)

    @property
    def is_within_spread(self) -> bool:
        """Whether the bar lies between the quartiles: another run may say otherwise."""
        return self.meets(self.ratio.low) != self.meets(self.ratio.high)

    @property
    def verdict(self) -> str:
        if math.isnan(self.ratio.median):
            return "not measured: the peer is not installed"
        return ("holds" if self.holds else "does not hold") + (", within the spread" if self.is_within_spread else "")

    @property
    def bar(self) -> str:
        return f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"


@dataclasses.dataclass(frozen=True)
class CaseResult:
    case: Case
    measurements: Sequence[Measurement]

    def of(self, name: str) -> Measurement | None:
        return next((m for m in self.measurements if m.contender.name == name), None)

    def bar_results(self) -> list[BarResult]:
        results = []
        for bar in self.case.bars:
            contender, rival = self.of(bar.contender), self.of(bar.rival)
            work = f"{self.case.group} {self.case.name}"
            if contender is not None and bar.values is not None:
                rates = [1e-9 * bar.values / seconds for seconds in contender.seconds]
                results.append(BarResult(work, bar.requirement, Spread.of(rates), max(rates), bar.at_least, unit="G/s"))
                continue
            if contender is None or rival is None:
                unknown = Spread(math.nan, math.nan, math.nan)
                results.append(BarResult(work, bar.requirement, unknown, math.nan, bar.at_least, bar.at_most))
                continue
            # Ratios of times from the same round: slow drifts of the machine cancel.
            pairs = list(zip(contender.seconds, rival.seconds, strict=False))
            ratios = [r / c for c, r in pairs] if bar.at_least is not None else [c / r for c, r in pairs]
            best = min(rival.seconds) / min(contender.seconds)
            results.append(
                BarResult(
                    work,
                    bar.requirement,
                    Spread.of(ratios),
                    best if bar.at_least is not None else 1 / best,
                    bar.at_least,
                    bar.at_most,
                    reason=self._reason(bar, contender, rival),
                )
            )
        return results

    def _reason(self, bar: Bar, contender: Measurement, rival: Measurement) -> Reason | None:
        parts = [part for part in map(self.of, bar.parts) if part is not None]
        if not parts:
            return None
        ratio = rival.time.median / sum(part.time.median for part in parts)
        return Reason(parts, contender, ratio if bar.at_least is not None else 1 / ratio)


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long to measure: a contender's rounds are batches of about `batch_seconds`, within `contender_seconds`."""

    rounds: int
    batch_seconds: float
    contender_seconds: float
    fewest_rounds: int = 3


class Batches:
    """Repeated calls of one contender, after one that is not timed (it warms the caches that it will find warm)."""

    def __init__(self, contender: Contender, effort: Effort) -> None:
        self._seconds = contender.stopwatch()
        once = self._seconds(1)
        self._is_slow = once > 0.05
        if not self._is_slow:
            # One call alone is a poor estimate of a short one.
            sample = max(1, min(20, round(effort.batch_seconds / once)))
            once = self._seconds(sample) / sample
        self._calls = max(1, round(effort.batch_seconds / once))
        affordable = int(effort.contender_seconds / (once * (self._calls + 1)))
        self.rounds = min(effort.rounds, max(effort.fewest_rounds, affordable))

    def seconds_per_call(self) -> float:
        if not self._is_slow:
            self._seconds(1)
        return self._seconds(self._calls) / self._calls


def only_for_bars(case: Case) -> Case:
    """Without the contenders that no bar needs."""
    names = {name for bar in case.bars for name in (bar.contender, bar.rival, *bar.parts)}
    return dataclasses.replace(case, contenders=[c for c in case.contenders if c.name in names])


def check_answers(case: Case) -> list[float]:
    errors = []
    for contender in case.contenders:
        case.reset()
        try:
            errors.append(contender.check(contender.answer()))
        except AssertionError as error:
            raise AssertionError(f"{case.group} {case.name}: {contender.name} is wrong: {error}") from error
    return errors


def measure(case: Case, effort: Effort) -> CaseResult:
    errors = check_answers(case)
    case.reset()
    batches = [Batches(contender, effort) for contender in case.contenders]
    seconds: list[list[float]] = [[] for _ in batches]
    for round_index in range(max(batch.rounds for batch in batches)):
        # In a new order each round: nobody profits from what the same neighbour leaves in the caches.
        for index in random.Random(round_index).sample(range(len(batches)), len(batches)):
            if round_index < batches[index].rounds:
                seconds[index].append(batches[index].seconds_per_call())
    return CaseResult(
        case,
        [Measurement(c, s, e) for c, s, e in zip(case.contenders, seconds, errors, strict=True)],
    )
