# SPDX-License-Identifier: BSD-3-Clause
"""The chart: speed of encode against the size of the table, on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from benchmarks import parts
from benchmarks.cases import encode
from benchmarks.peers import float32_idiom, float64_idiom
from benchmarks.results import CaseResult, MachineResult

Point = tuple[float, float]  # bytes, GB/s

_width, _height = 900, 480
_left, _right, _top, _bottom = 60, 620, 50, 420

_limit = "memory limit: the fastest fill"
# Okabe and Ito's palette, which colour-blind readers tell apart; dashes and markers say the same again.
_styles: Mapping[str, tuple[str, str, str]] = {
    _limit: ("#bbbbbb", "", ""),
    "fastpe": ("#d55e00", "", "circle"),
    "fastpe, 1 thread": ("#d55e00", "2 3", "circle"),
    "torch.compile": ("#009e73", "2 3", "triangle"),
    "torch eager": ("#009e73", "", "triangle"),
    "numba parallel": ("#cc79a7", "", "diamond"),
    float32_idiom: ("#0072b2", "", "square"),
    float64_idiom: ("#56b4e9", "6 3", "square"),
}
_markers = {
    "circle": '<circle cx="{x}" cy="{y}" r="4"/>',
    "square": '<rect x="{x}" y="{y}" width="7" height="7" transform="translate(-3.5 -3.5)"/>',
    "diamond": '<rect x="{x}" y="{y}" width="7" height="7" transform="rotate(45 {x} {y}) translate(-3.5 -3.5)"/>',
    "triangle": '<path d="M{x} {y}m-4 3.5h8l-4 -8z"/>',
    "": "",
}


def _lines(result: MachineResult) -> dict[str, list[Point]]:
    """Points by name, of the first instruction set: all threads, and fastpe's one."""
    instruction_set = result.settings[0].instruction_set
    lines: dict[str, list[Point]] = {}
    for index, setting in enumerate(s for s in result.settings if s.instruction_set == instruction_set):
        for case in setting.cases:
            if not case.name.startswith("encode") or case.time(float64_idiom) is None:
                continue
            for name, point in _points(case).items():
                if index == 0 or name == "fastpe":
                    lines.setdefault(name if index == 0 else f"{name}, 1 thread", []).append(point)
    return {name: sorted(lines[name]) for name in _styles if name in lines}


def _points(case: CaseResult) -> dict[str, Point]:
    points = {t.contender: (case.bytes_moved, case.bytes_moved / t.seconds.median / 1e9) for t in case.times}
    fills = [points[name] for name in (encode.fill, parts.plain_fill, parts.streaming_fill) if name in points]
    return {**points, _limit: max(fills)}


def _ticks(lowest: float, highest: float) -> Sequence[float]:
    steps = (digit * 10.0**power for power in range(-3, 4) for digit in (1, 3))
    return [step for step in steps if lowest <= step <= highest]


def _size(size: float) -> str:
    return f"{size / 2**10:.0f} KiB" if size < 2**20 else f"{size / 2**20:.3g} MiB"


def encode_chart(result: MachineResult) -> str:
    lines = _lines(result)
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
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_width} {_height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_width}" height="{_height}" fill="#fff"/>',
        text(
            "Sinusoidal encodings: GB/s written into an array at hand (higher is better)",
            _left,
            28,
            more=' font-size="15"',
        ),
        text("bytes of the float32 table", (_left + _right) // 2, _bottom + 36, "middle"),
        text(caption, _left, _height - 8, more=' font-size="10" fill="#555"'),
    ]
    for speed in _ticks(math.exp(low), math.exp(high)):
        parts.append(f'<path d="M{_left} {y(speed)}H{_right}" stroke="#ddd"/>')
        parts.append(text(f"{speed:g}", _left - 6, int(y(speed)) + 4, "end"))
    labelled = -math.inf
    for size in sizes:
        parts.append(f'<path d="M{x(size)} {_top}V{_bottom}" stroke="#ddd"/>')
        if float(x(size)) >= labelled + 55:
            labelled = float(x(size))
            parts.append(text(_size(size), x(size), _bottom + 16, "middle"))
    for row, (name, points) in enumerate(lines.items()):
        colour, dashes, marker = _styles[name]
        width = 6 if name == _limit else 2
        key_y = _top + 12 + 22 * row
        stroke = f'fill="none" stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes}"'
        path = "L".join(f"{x(size)} {y(speed)}" for size, speed in points)
        parts.append(f'<path d="M{path}" {stroke}/><path d="M{_right + 20} {key_y}h30" {stroke}/>')
        places = [(x(size), y(speed)) for size, speed in points] + [(str(_right + 35), str(key_y))]
        if marker:
            shapes = "".join(_markers[marker].format(x=at_x, y=at_y) for at_x, at_y in places)
            parts.append(f'<g fill="{colour}">{shapes}</g>')
        parts.append(text(name, _right + 58, key_y + 4))
    return "\n".join([*parts, "</svg>"]) + "\n"
