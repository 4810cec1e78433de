# SPDX-License-Identifier: BSD-3-Clause
"""The position ids of the projects: which coordinates the rows of a sequence of text and images have.

A sequence is a list of segments: an int for so many tokens of text, a tuple for the lengths of a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastpe._arguments import integer, number
from fastpe._errors import refused
from fastpe._layouts.numbering import Array, Piece, blocks, cells, grid, lines, placed, text, times_of

Grid = tuple[int, ...]
Segments = Sequence[int | Grid]

# Z-Image fills its texts and images up to a multiple of this.
_z_image_multiple = 32
# Where the images of Ideogram 4 begin, behind every text.
_ideogram4_start = 65536


class Rule(NamedTuple):
    """How one project numbers its tokens."""

    # From the segments and the options to arrays of ids that follow each other.
    function: Callable[..., Iterable[Array]]
    grid: tuple[str, ...]  # what the lengths of a grid are
    text: bool = False  # whether a segment may be text
    options: tuple[str, ...] = ()


_defaults = {"merge_size": 2, "start": 0, "time_interval": 1.0, "trained_shape": None}


def position_ids(layout: str, rule_name: str, segments: Sequence[Any], **options: Any) -> Array:
    """The ids of all segments, one after the other; `layout` is named in errors, and None stands for no option."""
    rule = rules[rule_name]
    chosen: dict[str, Any] = {name: _defaults[name] for name in rule.options}
    for name, value in options.items():
        if value is not None and name not in rule.options:
            found = f"was given, but the ids of layout {layout!r} do not depend on it"
            known = f"it takes {', '.join(rule.options)}" if rule.options else "leave it out"
            raise refused(ValueError, name, found, "", known)
        if value is not None:
            chosen[name] = _option(name, value)
    if not segments:
        raise refused(ValueError, "segments", "are missing", _expected(rule))
    merge_size = chosen.get("merge_size", 1)
    checked = [_segment(f"segments[{i}]", each, rule, layout, merge_size) for i, each in enumerate(segments)]
    return np.concatenate([*rule.function(checked, **chosen)])


def segments_text(rule_name: str) -> str:
    """What a sequence may consist of."""
    rule = rules[rule_name]
    return f"{'tokens of text and ' if rule.text else ''}grids ({', '.join(rule.grid)})"


def _segment(name: str, segment: Any, rule: Rule, layout: str, merge_size: int) -> int | Grid:
    if isinstance(segment, (tuple, list, np.ndarray)):
        if len(segment) != len(rule.grid):
            raise refused(ValueError, name, f"is {segment!r}", f"{_expected(rule)} for layout {layout!r}")
        grid = tuple(integer(f"{name}[{i}]", length, 1) for i, length in enumerate(segment))
        if any(length % merge_size for length in grid[-2:]):
            expected = f"heights and widths that are multiples of merge_size, {merge_size}"
            raise refused(ValueError, name, f"is {grid}", f"{expected}: the ids are those of whole blocks")
        return grid
    if not rule.text:
        raise refused(TypeError, name, f"is {segment!r}", f"{_expected(rule)}: layout {layout!r} has no ids for text")
    return integer(name, segment, 0)


def _expected(rule: Rule) -> str:
    grid = f"the lengths of a grid, ({', '.join(rule.grid)})"
    return f"an int, tokens of text, or {grid}" if rule.text else grid


def _option(name: str, value: Any) -> Any:
    if name == "trained_shape":
        try:
            height, width = value
        except (TypeError, ValueError):
            raise refused(TypeError, name, f"is {value!r}", "two ints, (height, width)") from None
        return integer(f"{name}[0]", height, 1), integer(f"{name}[1]", width, 1)
    if name == "time_interval":
        return number(name, value, above_zero=True)
    return integer(name, value, 1 if name == "merge_size" else 0)


def _cells_at(axes: list[Array]) -> Array:
    """Every cell of a grid, row by row, whose coordinates along each axis are given."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


# Rules of sequences, in which a segment depends on the others


def _mrope(segments: Segments, merge_size: int, start: int, time_interval: float = 1.0) -> Iterator[Array]:
    def piece(segment: int | Grid) -> Piece:
        if isinstance(segment, int):
            return text(segment)
        times = times_of(segment[0], time_interval, name="time_interval").astype(np.int64)
        return grid(times, segment[1] // merge_size, segment[2] // merge_size)

    return (ids.T for ids in placed(map(piece, segments), start, "start"))


def _mrope_lines(segments: Segments, merge_size: int, start: int) -> Iterator[Array]:
    def piece(segment: int | Grid) -> Piece:
        if isinstance(segment, int):
            return text(segment)
        return lines(segment[0], segment[1] // merge_size, segment[2] // merge_size)

    return (ids.T for ids in placed(map(piece, segments), start, "start"))


def _mrope_frames(segments: Segments, merge_size: int, start: int) -> Iterator[Array]:
    for segment in segments:
        if isinstance(segment, tuple) and segment[0] != 1:
            expected = "a time of 1: a time stamp stands before each frame of a video"
            remedy = "pass the text and the frames as segments of their own"
            raise refused(ValueError, "segments", f"hold the grid {segment}", expected, remedy)
    return _mrope(segments, merge_size, start)


def _flux2(segments: Segments) -> Iterator[Array]:
    time = 0
    for segment in segments:
        if isinstance(segment, int):
            yield cells((1, 1, 1, segment))
        else:
            # The image is at time 0, and the images that it refers to are at 10, 20, ..
            yield cells((1, *segment, 1), time, 0, 0, 0)
            time += 10


def _flux3(segments: Segments) -> Iterator[Array]:
    image = 0
    for segment in segments:
        if isinstance(segment, int):
            yield cells((1, 1, 1, segment))
        else:
            # Its cells are half a step apart, and the images that it refers to are at -1, -2, ..
            yield cells((1, *segment, 1), 0, 0, 0, image) * (1, 0.5, 0.5, 1)
            image -= 1


def _ideogram4(segments: Segments) -> Iterator[Array]:
    tokens, shape = _two(segments, int, tuple, "the tokens of one text, then one grid")
    yield text(tokens).offsets.T
    yield cells((1, *shape)) + _ideogram4_start


def _qwen_image_2_1(segments: Segments) -> Iterator[Array]:
    start = 0
    for segment in segments:
        if isinstance(segment, int):
            yield text(segment).offsets.T + start
            start += segment
        else:
            height, width = segment
            yield cells((1, *segment), start, height // 2 - height, width // 2 - width)
            start += max(segment)


def _qwen_image(segments: Segments) -> Iterator[Array]:
    # Text continues along the diagonal, behind the largest coordinate of an image.
    behind = max((max(segment[1:]) // 2 for segment in segments if isinstance(segment, tuple)), default=0)
    time = 0
    for segment in segments:
        if isinstance(segment, int):
            yield text(segment).offsets.T + behind
            behind += segment
        else:
            _, height, width = segment
            yield cells(segment, time, height // 2 - height, width // 2 - width)
            time += 1


def _lumina2(segments: Segments) -> Iterator[Array]:
    tokens, shape = _two(segments, int, tuple, "the tokens of one text, then one grid")
    yield cells((tokens, 1, 1))
    yield cells((1, *shape), tokens, 0, 0)


def _z_image(segments: Segments) -> Iterator[Array]:
    shape, tokens = _two(segments, tuple, int, "one grid, then the tokens of one text")
    # Both are filled up with tokens: those of the text count on, and those of the image are at 0.
    tokens += -tokens % _z_image_multiple
    image = cells(shape, tokens + 1, 0, 0)
    yield image
    yield np.zeros((-len(image) % _z_image_multiple, 3), np.int64)
    yield cells((tokens, 1, 1), 1, 0, 0)


def _two(segments: Any, first: type, second: type, expected: str) -> Any:
    """The segments, if they are two of these types."""
    if [type(segment) for segment in segments] != [first, second]:
        raise refused(ValueError, "segments", f"are {segments}", expected)
    return segments


# Rules of single segments


def _each(function: Callable[..., Array]) -> Callable[..., Iterator[Array]]:
    return lambda segments, **options: (function(segment, **options) for segment in segments)


def _flux(segment: int | Grid) -> Array:
    return np.zeros((segment, 3), np.int64) if isinstance(segment, int) else cells((1, *segment))


def _llama4(grid: Grid) -> Array:
    class_token = [[0, 0]]
    return np.concatenate([cells(grid)[:, ::-1] + 1, class_token])


def _rescaled(grid: Grid, trained_shape: Grid | None) -> Array:
    return cells(grid) if trained_shape is None else cells(grid) / grid * trained_shape


def _volume_in_time(grid: Grid, time_interval: float) -> Array:
    return cells(grid) if time_interval == 1.0 else cells(grid) * (time_interval, 1.0, 1.0)


def _cogview4(grid: Grid, trained_shape: Grid | None) -> Array:
    if trained_shape is None:
        raise refused(ValueError, "trained_shape", "is missing", "(height, width), the rope_axes_dim of the config")
    return cells(grid) * trained_shape // grid


def _cogvideox(grid: Grid, trained_shape: Grid | None) -> Array:
    axes: list[Array] = [np.arange(length) for length in grid]
    if trained_shape is not None:
        for axis, (first, stop) in enumerate(_crop(grid[1:], trained_shape), start=1):
            axes[axis] = np.linspace(first, stop * (grid[axis] - 1) / grid[axis], grid[axis])
    return _cells_at(axes)


def _crop(grid: Grid, trained_shape: Grid) -> list[tuple[int, int]]:
    """Where a grid that is resized to fit into another one begins and ends there, for each axis."""
    (height, width), (trained_height, trained_width) = grid, trained_shape
    if height / width > trained_height / trained_width:
        sizes = trained_height, round(trained_height / height * width)
    else:
        sizes = round(trained_width / width * height), trained_width
    starts = [round((trained - size) / 2.0) for trained, size in zip(trained_shape, sizes, strict=True)]
    return [(start, start + size) for start, size in zip(starts, sizes, strict=True)]


_plane = ("height", "width")
_volume = ("time", "height", "width")

rules = {
    "mrope": Rule(_mrope, _volume, text=True, options=("merge_size", "start", "time_interval")),
    "mrope_frames": Rule(_mrope_frames, _volume, text=True, options=("merge_size", "start")),
    "mrope_lines": Rule(_mrope_lines, _volume, text=True, options=("merge_size", "start")),
    "merge_blocks": Rule(_each(lambda grid, merge_size: blocks(grid, merge_size)), _volume, options=("merge_size",)),
    "merge_blocks_with_time": Rule(
        _each(lambda grid, merge_size: blocks(grid, merge_size, with_time=True)), _volume, options=("merge_size",)
    ),
    "frames": Rule(_each(lambda grid: cells(grid)[:, 1:]), _volume),
    "plane": Rule(_each(cells), _plane),
    "plane_columns_first": Rule(_each(lambda grid: cells(grid)[:, ::-1]), _plane),
    "volume": Rule(_each(cells), _volume),
    "volume_in_time": Rule(_each(_volume_in_time), _volume, options=("time_interval",)),
    "llama4": Rule(_each(_llama4), _plane),
    "centres": Rule(_each(lambda grid: 2.0 * ((cells(grid) + 0.5) / grid) - 1.0), _plane),
    "rescaled": Rule(_each(_rescaled), _plane, options=("trained_shape",)),
    "rescaled_columns_first": Rule(
        _each(lambda grid, trained_shape: _rescaled(grid, trained_shape)[:, ::-1]), _plane, options=("trained_shape",)
    ),
    "from_minus_one_to_one": Rule(
        _each(lambda grid: _cells_at([np.linspace(-1.0, 1.0, length) for length in grid])), _plane
    ),
    "flux": Rule(_each(_flux), _plane, text=True),
    "flux2": Rule(_flux2, _plane, text=True),
    "flux3": Rule(_flux3, _plane, text=True),
    "ideogram4": Rule(_ideogram4, _plane, text=True),
    "qwen_image": Rule(_qwen_image, _volume, text=True),
    "qwen_image_2_1": Rule(_qwen_image_2_1, _plane, text=True),
    "cogview4": Rule(_each(_cogview4), _plane, options=("trained_shape",)),
    "cogvideox": Rule(_each(_cogvideox), _volume, options=("trained_shape",)),
    "lumina2": Rule(_lumina2, _plane, text=True),
    "z_image": Rule(_z_image, _volume, text=True),
}
