# SPDX-License-Identifier: BSD-3-Clause
"""What was measured, as it is kept: one JSON file a machine."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

directory = pathlib.Path(__file__).parent / "results"


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
class Time:
    """What a contender took."""

    contender: str
    encoding: str
    output: str
    seconds: Spread
    largest_error: float


@dataclasses.dataclass(frozen=True)
class BarResult:
    requirement: str
    value: Spread  # a ratio of times, where there is a rival
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "x"
    rival: str = ""
    # A loop that shows what the machine allows, and what the bar would read if the contender took as long. For memory,
    # they are what the second figure leaves out, and that figure.
    limit: str = ""
    value_at_limit: float | None = None

    def meets(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    @property
    def holds(self) -> bool:
        return self.meets(self.value.median)

    @property
    def bar(self) -> str:
        return f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"

    @property
    def verdict(self) -> str:
        text = "holds" if self.holds else "does not hold"
        if self.meets(self.value.low) != self.meets(self.value.high):
            text += ", within the spread"
        return text


@dataclasses.dataclass(frozen=True)
class CaseResult:
    name: str
    bytes_moved: int
    times: Sequence[Time]
    bars: Sequence[BarResult]
    note: str = ""

    def time(self, contender: str) -> Time | None:
        return next((time for time in self.times if time.contender == contender), None)


@dataclasses.dataclass(frozen=True)
class SettingResult:
    """All cases with one instruction set and number of threads."""

    instruction_set: str
    threads: int
    cases: Sequence[CaseResult]

    def __str__(self) -> str:
        return f"{self.instruction_set}, {self.threads} thread{'s' if self.threads > 1 else ''}"

    def case(self, name: str) -> CaseResult | None:
        return next((case for case in self.cases if case.name == name), None)


@dataclasses.dataclass(frozen=True)
class MachineResult:
    machine: Mapping[str, str]
    warnings: list[str]
    settings: Sequence[SettingResult]
    processes: Sequence[BarResult]  # what only fresh processes show

    def bars(self) -> list[BarResult]:
        return [*(bar for setting in self.settings for case in setting.cases for bar in case.bars), *self.processes]

    def noise(self) -> float:
        """How far apart quartiles are, of the median: half of all contenders' are further."""
        spreads = [time.seconds for setting in self.settings for case in setting.cases for time in case.times]
        return statistics.median((spread.high - spread.low) / spread.median for spread in spreads)

    @property
    def file(self) -> pathlib.Path:
        name = f"{self.machine['processor']} {self.machine['family, model, stepping']}"
        return directory / (re.sub("[^a-z0-9]+", "-", name.lower()).strip("-") + ".json")

    def to_json(self) -> str:
        """Four digits of each figure, a line for each case."""
        text = json.dumps(dataclasses.asdict(self))
        text = json.dumps(json.loads(text, parse_float=lambda digits: float(f"{float(digits):.4g}")))
        return re.sub(r' ?(?=\{"(name|instruction_set)": )', "\n", text) + "\n"

    @classmethod
    def from_json(cls, text: str) -> MachineResult:
        values = json.loads(text)
        return cls(
            values["machine"],
            values["warnings"],
            [
                SettingResult(s["instruction_set"], s["threads"], [case_from(case) for case in s["cases"]])
                for s in values["settings"]
            ],
            [bar_from(bar) for bar in values["processes"]],
        )


def bar_from(values: dict[str, Any]) -> BarResult:
    return BarResult(**{**values, "value": Spread(**values["value"])})


def case_from(values: dict[str, Any]) -> CaseResult:
    times = [Time(**{**time, "seconds": Spread(**time["seconds"])}) for time in values["times"]]
    return CaseResult(**{**values, "times": times, "bars": [bar_from(bar) for bar in values["bars"]]})


def stored() -> list[MachineResult]:
    """All machines', the last one measured first; of one day, those with most instruction sets."""
    found = [MachineResult.from_json(path.read_text(encoding="utf-8")) for path in sorted(directory.glob("*.json"))]
    return sorted(found, key=lambda result: (result.machine["date"], len(result.settings)), reverse=True)
