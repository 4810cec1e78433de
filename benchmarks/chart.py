# SPDX-License-Identifier: BSD-3-Clause
"""The chart of the page."""

from __future__ import annotations

import pathlib
from typing import Any

from benchmarks.page import rows_of
from benchmarks.record import Record


def draw(record: Record, path: pathlib.Path) -> None:
    """How many times as fast as the fastest alternative, on a logarithmic axis."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = rows_of(record, "page", "page and README")
    times = [[figure.times for _, figure in row.alternatives] for row in rows]
    lowest, highest = min(min(map(min, times)) / 1.2, 0.7), max(map(max, times)) * 1.2
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "fastpe", "font.size": 9}):
        figure = Figure(figsize=(9, 0.27 * len(rows) + 1.2), layout="constrained")
        axes = figure.add_subplot()
        axes.set_xscale("log")
        for place, values in enumerate(times):
            axes.plot(values, [place] * len(values), color="#bbbbbb", linewidth=2, zorder=1)
        for index, (threads, _) in enumerate(record.best()):
            face, label = ("white", "1 thread") if threads == 1 else ("C1", f"{threads} threads")
            style: Any = {"s": 36, "facecolor": face, "edgecolor": f"C{index}", "zorder": 2 + index, "label": label}
            axes.scatter([values[index] for values in times], range(len(rows)), **style)
        axes.axvline(1, color="black", linewidth=1, zorder=1.9)
        axes.set_xlim(lowest, highest)
        ticks = [tick for tick in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if lowest <= tick <= highest]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
        axes.set_yticks(range(len(rows)), [f"{row.case.work} ({row.case.array}, {row.case.encoding})" for row in rows])
        axes.invert_yaxis()
        axes.grid(axis="x", color="#dddddd")
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.set_xlabel("times as fast as the fastest alternative")
        axes.legend(loc="lower right")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
