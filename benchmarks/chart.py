# SPDX-License-Identifier: BSD-3-Clause
"""The chart of the page."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

from benchmarks.page import label, rows_of
from benchmarks.record import Record


def draw(records: Sequence[Record], path: pathlib.Path) -> None:
    """How many times as fast as the fastest alternative, on a logarithmic axis, side by side for each machine."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = rows_of(records, "page", "page and README")
    every = [figure.times for row in rows for figure in row.alternatives]
    lowest, highest = min(min(every) / 1.2, 0.7), max(every) * 1.2
    fonts: Any = {"svg.fonttype": "none", "svg.hashsalt": "fastpe", "font.size": 9}
    # Viewers may have wider fonts.
    with mpl.rc_context({**fonts, "figure.constrained_layout.w_pad": 0.15}):
        figure = Figure(figsize=(5.5 + 3.5 * len(records), 0.27 * len(rows) + 1.4), layout="constrained")
        for number, (record, axes) in enumerate(
            zip(records, figure.subplots(1, len(records), sharey=True, squeeze=False)[0], strict=True)
        ):
            axes.set_title(label(record))
            axes.set_xscale("log")
            times = [[found.times for _, found in row.rows[number].alternatives] for row in rows]
            for place, values in enumerate(times):
                axes.plot(values, [place] * len(values), color="#bbbbbb", linewidth=2, zorder=1)
            for index, (threads, _) in enumerate(record.best()):
                face, name = ("white", "1 thread") if threads == 1 else ("C1", f"{threads} threads")
                style: Any = {"s": 36, "facecolor": face, "edgecolor": f"C{index}", "zorder": 2 + index, "label": name}
                points = [(values[index], place) for place, values in enumerate(times) if values]
                axes.scatter(*zip(*points, strict=True), **style)
            axes.axvline(1, color="black", linewidth=1, zorder=1.9)
            axes.set_xlim(lowest, highest)
            ticks = [tick for tick in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if lowest <= tick <= highest]
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.set_xticks([], minor=True)
            axes.grid(axis="x", color="#dddddd")
            axes.spines[["top", "right", "left"]].set_visible(False)
            axes.set_xlabel("times as fast as the fastest alternative")
        axes.set_yticks(range(len(rows)), [f"{row.case.work} ({row.case.array}, {row.case.encoding})" for row in rows])
        axes.invert_yaxis()
        axes.legend(loc="lower right")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
