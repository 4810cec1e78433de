# SPDX-License-Identifier: BSD-3-Clause
"""RESULTS.md and the chart."""

from __future__ import annotations

import importlib
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import tables, workloads
from benchmarks.harness import BarResult, CaseResult

directory = pathlib.Path(__file__).parent

_how_to_read = """\
Written by `python -m benchmarks report`. Read ratios, not figures: they are what carries over to another machine.

* Contenders of a table took turns in a random order, on the same arrays; times are medians over rounds, with quartiles.
  A ratio is the median of the ratios within rounds.
* Every answer was compared with the exact one before it was timed; `largest error` is what was found, over all values,
  or over 1024 rows of an answer of more than 4 million values.
* `encoding`: computed in the call, read from a cached table, or none (a limit, not a peer). `output`: in place, into an
  array that was written before (warm out), or into a new one (fresh: the operating system's page faults dominate).
* GB/s count what has to move: bytes written, and for everything but `encode` as many read.
* torch, numba and JAX work on resident tensors; what converts on each call says so.
"""

_about_reasons = """\
The parts of the same work, each measured alone in the same run: the call; the arithmetic, with its tables where they fit;
reading and writing the array: the plainest native loops that do it (`limits.c`). A call that let none of them overlap
would take their sum. `ratio at the parts` is what the bar would then read."""

_about_elsewhere = """\
Medians of shorter runs, a process each: `python -m benchmarks bars`, twice with nothing changed, then with FASTPE_ISA or
FASTPE_NUM_THREADS=1 set, which holds for torch, numba and the memory limits too. Where an array's pages lie in memory, and
so in the caches, is another matter in each process: a bar near its limit may hold in one and not in the next. Bold: does
not hold."""


def _title(text: str) -> str:
    return text[:1].upper() + text[1:]


def results_text(
    machine: Mapping[str, str],
    warning: str | None,
    bars: Sequence[BarResult],
    elsewhere: Mapping[str, Mapping[str, float]],
    results: Sequence[CaseResult],
) -> str:
    held = sum(bar.holds for bar in bars)
    parts = ["# Benchmark results", _how_to_read.rstrip()]
    if warning is not None:
        parts.append(f"**Warning:** {warning}.")
    parts += [
        tables.table(("machine", ""), machine.items()),
        "![Speed against size](encode.svg)",
        f"## Bars: {held} of {len(bars)} hold",
        tables.bars_table(bars),
        "### Bars that do not hold, and the parts of their work",
        _about_reasons,
        tables.reasons_table(bars),
        "### The same bars in other processes, with other instruction sets, and on one thread",
        _about_elsewhere,
        tables.bars_elsewhere_table(bars, elsewhere),
        "## Call overhead",
        "One token per sequence. NumPy and torch gather each position's `row` from a cached table, as part of the call.",
        tables.calls_table([r for r in results if r.case.group == "decode"]),
    ]
    group = ""
    for result in results:
        if result.case.group != group:
            group = result.case.group
            parts.append(f"## {_title(group)}" if group.isalpha() else f"## `{group}`")
        parts.append(f"### {result.case.name}" + (f" ({result.case.note})" if result.case.note else ""))
        parts.append(tables.case_table(result))
    return "\n\n".join(parts) + "\n"


# Okabe and Ito's palette, which colour-blind readers tell apart; line styles and markers say the same again.
_lines: Mapping[str, dict[str, Any]] = {
    "fastpe": {"color": "#D55E00", "marker": "o", "linewidth": 2.5, "zorder": 5},
    "fastpe, 1 thread": {"color": "#D55E00", "marker": "o", "linestyle": ":", "markerfacecolor": "white", "zorder": 4},
    "NumPy out.fill(1.5)": {"color": "#000000", "linestyle": "--", "linewidth": 1.5},
    "NumPy float32 idiom": {"color": "#0072B2", "marker": "s"},
    "NumPy float64 idiom": {"color": "#56B4E9", "marker": "s", "linestyle": "-."},
    "torch eager": {"color": "#009E73", "marker": "^"},
    "torch.compile": {"color": "#009E73", "marker": "^", "linestyle": ":"},
    "numba parallel": {"color": "#CC79A7", "marker": "D"},
    "JAX jit": {"color": "#E69F00", "marker": "v"},
}
_memory_limit = "memory limit: the fastest fill"


def _encode_points(results: Sequence[CaseResult]) -> dict[str, list[tuple[float, float]]]:
    """Per contender: (MiB written, GB/s). The memory limit is the fastest of the loops that store a constant."""
    points: dict[str, list[tuple[float, float]]] = {}
    for result in results:
        if result.case.group != "encode" or result.of("NumPy float32 idiom") is None:
            continue
        size = result.case.bytes_moved / 2**20
        limits = []
        for measurement in result.measurements:
            speed = result.case.bytes_moved / measurement.time.median / 1e9
            points.setdefault(measurement.contender.name, []).append((size, speed))
            if measurement.contender.name in workloads.fills():
                limits.append(speed)
        points.setdefault(_memory_limit, []).append((size, max(limits)))
    return points


def draw_chart(results: Sequence[CaseResult], machine: Mapping[str, str], path: pathlib.Path) -> None:
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("agg")
    matplotlib.rcParams.update({"font.size": 11, "svg.hashsalt": "fastpe", "svg.fonttype": "path"})
    plt = importlib.import_module("matplotlib.pyplot")
    figure, axes = plt.subplots(figsize=(9.2, 5), layout="constrained")
    points = _encode_points(results)
    limit = zip(*points[_memory_limit], strict=True)
    axes.plot(*limit, color="#666666", linewidth=6, alpha=0.35, label=_memory_limit, zorder=1)
    for name, style in _lines.items():
        if name in points:
            axes.plot(*zip(*points[name], strict=True), label=name, markersize=6, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = _apart(sorted({size for line in points.values() for size, _ in line}))
    axes.set_xticks(sizes, [f"{size * 1024:.0f} KiB" if size < 1 else f"{size:g} MiB" for size in sizes])
    lowest = min(speed for line in points.values() for _, speed in line)
    speeds = [speed for speed in (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300) if speed > lowest / 4]
    axes.set_yticks(speeds, [f"{speed:g}" for speed in speeds])
    axes.minorticks_off()
    axes.grid(visible=True, color="#dddddd")
    axes.set_axisbelow(True)
    axes.set_xlabel("float32 table, bytes written")
    axes.set_ylabel("GB/s written")
    figure.suptitle("Sinusoidal encodings: speed against size (output array reused; higher is better)", fontsize=12)
    figure.legend(loc="outside right center", frameon=False, fontsize=9.5)
    figure.supxlabel(
        f"{machine['processor']}, processors: {machine['processors']}; {machine['beside it']}; {machine['date']}",
        fontsize=8,
        color="#555555",
    )
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _apart(sizes: Sequence[float]) -> list[float]:
    """Those that leave room for each other's labels on a logarithmic axis."""
    kept: list[float] = []
    for size in sizes:
        if not kept or size >= 2 * kept[-1]:
            kept.append(size)
    return kept
