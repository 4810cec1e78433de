# SPDX-License-Identifier: BSD-3-Clause
"""Results as Markdown tables, which also read well on a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.harness import BarResult, CaseResult, Spread


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right_aligned: Iterable[int] = ()) -> str:
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    right = set(right_aligned)

    def text(cells: Sequence[str]) -> str:
        padded = (c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True)))
        return f"| {' | '.join(padded)} |"

    rule = "|".join("-" * (w + 1) + ":" if i in right else "-" * (w + 2) for i, w in enumerate(widths))
    return "\n".join([text(lines[0]), f"|{rule}|", *(text(line) for line in lines[1:])])


def seconds_text(seconds: float) -> str:
    if seconds < 1e-5:
        return f"{seconds * 1e9:.0f} ns"
    if seconds < 1e-2:
        return f"{seconds * 1e6:.4g} us"
    return f"{seconds * 1e3:.4g} ms"


def _spread_text(spread: Spread) -> str:
    return f"{seconds_text(spread.low)} .. {seconds_text(spread.high)}"


def bars_table(bars: Sequence[BarResult]) -> str:
    rows = [
        (
            bar.work,
            bar.requirement,
            f"{bar.ratio.median:.3g} {bar.unit}",
            f"{bar.ratio.low:.3g} .. {bar.ratio.high:.3g}",
            f"{bar.best:.3g}",
            bar.bar,
            bar.verdict,
        )
        for bar in bars
    ]
    return table(("work", "requirement", "median", "quartiles", "best", "bar", "verdict"), rows, (2, 3, 4, 5))


def reasons_table(bars: Sequence[BarResult]) -> str:
    """The bars that do not hold, with the parts of the work measured beside them."""
    rows = []
    for bar in bars:
        reason = bar.reason
        if bar.holds or reason is None:
            continue
        seconds = sum(part.time.median for part in reason.parts)
        rows.append(
            (
                bar.work,
                bar.requirement,
                bar.bar,
                f"{bar.ratio.median:.3g}",
                seconds_text(reason.contender.time.median),
                " + ".join(f"{seconds_text(m.time.median)} ({m.contender.name})" for m in reason.parts),
                f"{seconds / reason.contender.time.median:.2f}",
                f"{reason.ratio:.3g}",
            )
        )
    header = ("work", "requirement", "bar", "median", "took", "its parts alone", "parts / took", "ratio at the parts")
    return table(header, rows, (2, 3, 4, 6, 7))


def bars_elsewhere_table(bars: Sequence[BarResult], elsewhere: Mapping[str, Mapping[str, float]]) -> str:
    """Medians of the same bars in other configurations; those that do not hold are bold."""

    def cell(bar: BarResult, value: float | None) -> str:
        if value is None or math.isnan(value):
            return ""
        return f"{value:.3g}" if bar.meets(value) else f"**{value:.3g}**"

    rows = [
        [bar.work, bar.requirement, bar.bar]
        + [cell(bar, median) for median in (bar.ratio.median, *(values.get(bar.name) for values in elsewhere.values()))]
        for bar in bars
        if any(bar.name in values for values in elsewhere.values())
    ]
    header = ("work", "requirement", "bar", "as above", *elsewhere)
    return table(header, rows, range(2, len(header)))


def case_table(result: CaseResult) -> str:
    reference = result.measurements[0].time.median
    rows = [
        (
            m.contender.name,
            str(m.contender.threads),
            m.contender.encoding,
            m.contender.output,
            seconds_text(m.time.median),
            _spread_text(m.time),
            f"{result.case.bytes_moved / m.time.median / 1e9:.3g}",
            f"{m.time.median / reference:.3g}",
            f"{m.largest_error:.1e}",
        )
        for m in result.measurements
    ]
    header = (
        "contender",
        "threads",
        "encoding",
        "output",
        "time",
        "quartiles",
        "GB/s",
        "time / first",
        "largest error",
    )
    return table(header, rows, (1, 4, 5, 6, 7, 8))


def calls_table(results: Sequence[CaseResult]) -> str:
    """Nanoseconds per call, one column a shape."""
    names = list(dict.fromkeys(_call_name(m.contender.name) for result in results for m in result.measurements))
    rows = []
    for name in names:
        cells = []
        for result in results:
            found = [m for m in result.measurements if _call_name(m.contender.name) == name]
            cells.append(f"{found[0].time.median * 1e9:.0f}" if found else "")
        rows.append((name, *cells))
    return table(("ns per call", *(r.case.name for r in results)), rows, range(1, len(results) + 1))


def _call_name(name: str) -> str:
    return name.replace("table[offset][:, None]", "row").replace("table[offset]", "row")
