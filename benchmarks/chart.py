# SPDX-License-Identifier: BSD-3-Clause
"""The charts: speed against size, on logarithmic axes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from xml.sax.saxutils import escape

from benchmarks import parts
from benchmarks.cases import encode
from benchmarks.peers import float32_idiom, float64_idiom, numpy_add, torch_add
from benchmarks.results import CaseResult, MachineResult

Point = tuple[float, float]  # bytes, GB/s

_width, _height = 900, 480
_left, _right, _top, _bottom = 60, 620, 50, 420

# Okabe and Ito's palette, which colour-blind readers tell apart; dashes and markers say the same again.
_Style = tuple[str, str, str]
_grey, _fastpe, _fastpe_alone = ("#bbbbbb", "", ""), ("#d55e00", "", "circle"), ("#d55e00", "2 3", "circle")


@dataclasses.dataclass(frozen=True)
class Chart:
    """One chart: the cases it takes, and its lines. The fastest of `limits` is one line, the widest."""

    title: str
    size_label: str
    takes: Callable[[CaseResult], bool]
    limit: str
    limits: Sequence[str]
    styles: Mapping[str, _Style]


encode_chart = Chart(
    title="Sinusoidal encodings: GB/s written into an array at hand (higher is better)",
    size_label="bytes of the float32 table",
    takes=lambda case: case.name.startswith("encode") and case.time(float64_idiom) is not None,
    limit="memory limit: the fastest fill",
    limits=(encode.fill, parts.plain_fill, parts.streaming_fill),
    styles={
        "fastpe": _fastpe,
        "fastpe, 1 thread": _fastpe_alone,
        "torch.compile": ("#009e73", "2 3", "triangle"),
        "torch eager": ("#009e73", "", "triangle"),
        "numba parallel": ("#cc79a7", "", "diamond"),
        float32_idiom: ("#0072b2", "", "square"),
        float64_idiom: ("#56b4e9", "6 3", "square"),
    },
)
add_chart = Chart(
    title="Encodings added to batches of 8 or more: GB/s read and written (higher is better)",
    size_label="bytes read and written: twice those of the float32 batch",
    takes=lambda case: case.name.startswith("add_") and any(bar.rival == parts.increment for bar in case.bars),
    limit="memory limit: x + 1",
    limits=(parts.increment,),
    styles={
        "fastpe": _fastpe,
        "fastpe, 1 thread": _fastpe_alone,
        torch_add: ("#009e73", "", "triangle"),
        f"{torch_add}, 1 thread": ("#009e73", "2 3", "triangle"),
        numpy_add: ("#0072b2", "", "square"),
    },
)

_markers = {
    "circle": '<circle cx="{x}" cy="{y}" r="4"/>',
    "square": '<rect x="{x}" y="{y}" width="7" height="7" transform="translate(-3.5 -3.5)"/>',
    "diamond": '<rect x="{x}" y="{y}" width="7" height="7" transform="rotate(45 {x} {y}) translate(-3.5 -3.5)"/>',
    "triangle": '<path d="M{x} {y}m-4 3.5h8l-4 -8z"/>',
    "": "",
}


def _lines(result: MachineResult, chart: Chart) -> dict[str, list[Point]]:
    """Points by name, of the first instruction set: with all threads, and those that the chart has with one."""
    instruction_set = result.settings[0].instruction_set
    names = [chart.limit, *chart.styles]
    lines: dict[str, list[Point]] = {}
    for index, setting in enumerate(s for s in result.settings if s.instruction_set == instruction_set):
        for case in filter(chart.takes, setting.cases):
            for name, point in _points(case, chart).items():
                lines.setdefault(name if index == 0 else f"{name}, 1 thread", []).append(point)
    return {name: sorted(lines[name]) for name in names if name in lines}


def _points(case: CaseResult, chart: Chart) -> dict[str, Point]:
    points = {t.contender: (case.bytes_moved, case.bytes_moved / t.seconds.median / 1e9) for t in case.times}
    return {**points, chart.limit: max(points[name] for name in chart.limits if name in points)}


def _ticks(lowest: float, highest: float) -> Sequence[float]:
    steps = (digit * 10.0**power for power in range(-3, 4) for digit in (1, 3))
    return [step for step in steps if lowest <= step <= highest]


def _size(size: float) -> str:
    return f"{size / 2**10:.0f} KiB" if size < 2**20 else f"{size / 2**20:.3g} MiB"


def drawn(chart: Chart, result: MachineResult) -> str:
    """The chart as SVG."""
    styles = {chart.limit: _grey, **chart.styles}
    lines = _lines(result, chart)
    sizes = sorted({size for points in lines.values() for size, _ in points})
    speeds = [speed for points in lines.values() for _, speed in points]
    first, last = math.log(sizes[0]), math.log(sizes[-1])
    low, high = math.log(min(speeds) / 1.3), math.log(max(speeds) * 1.3)

    def x(size: float) -> str:
        return f"{_left + 20 + (math.log(size) - first) / max(last - first, 1e-9) * (_right - _left - 40):.0f}"

    def y(speed: float) -> str:
        return f"{_bottom - (math.log(speed) - low) / (high - low) * (_bottom - _top):.0f}"

    def text(content: str, x: object, y: object, anchor: str = "start", more: str = "") -> str:
        return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{more}>{escape(content)}</text>'

    machine = result.machine
    caption = f"{machine['processor']}; {result.settings[0]}; {machine['beside it']}; {machine['date']}"
    pieces = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_width} {_height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_width}" height="{_height}" fill="#fff"/>',
        text(chart.title, _left, 28, more=' font-size="15"'),
        text(chart.size_label, (_left + _right) // 2, _bottom + 36, "middle"),
        text(caption, _left, _height - 8, more=' font-size="10" fill="#555"'),
    ]
    for speed in _ticks(math.exp(low), math.exp(high)):
        pieces.append(f'<path d="M{_left} {y(speed)}H{_right}" stroke="#ddd"/>')
        pieces.append(text(f"{speed:g}", _left - 6, int(y(speed)) + 4, "end"))
    labelled = -math.inf
    for size in sizes:
        pieces.append(f'<path d="M{x(size)} {_top}V{_bottom}" stroke="#ddd"/>')
        if float(x(size)) >= labelled + 55:
            labelled = float(x(size))
            pieces.append(text(_size(size), x(size), _bottom + 16, "middle"))
    for row, (name, points) in enumerate(lines.items()):
        colour, dashes, marker = styles[name]
        width = 6 if name == chart.limit else 2
        key_y = _top + 12 + 22 * row
        stroke = f'fill="none" stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes}"'
        path = "L".join(f"{x(size)} {y(speed)}" for size, speed in points)
        pieces.append(f'<path d="M{path}" {stroke}/><path d="M{_right + 20} {key_y}h30" {stroke}/>')
        places = [(x(size), y(speed)) for size, speed in points] + [(str(_right + 35), str(key_y))]
        if marker:
            shapes = "".join(_markers[marker].format(x=at_x, y=at_y) for at_x, at_y in places)
            pieces.append(f'<g fill="{colour}">{shapes}</g>')
        pieces.append(text(name, _right + 58, key_y + 4))
    return "\n".join([*pieces, "</svg>"]) + "\n"
