# SPDX-License-Identifier: BSD-3-Clause
"""The position ids of the projects: which coordinates the rows of a sequence of text and images have.

A sequence is a list of segments: an int for so many tokens of text, a tuple for the lengths of a grid. Some encoders of
images attend to their patches in windows, whose order is here also.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastpe._arguments import integer, largest_position, number
from fastpe._errors import refused
from fastpe._rotary.token_rules import Array, check_grids, checked

Grid = tuple[int, ...]
Segments = Sequence[int | Grid]

# Z-Image fills its texts and images up to a multiple of this.
_z_image_multiple = 32


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
    if rule_name == "tokens":
        return "types of tokens"
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


def _cells(grid: Grid, *first: int) -> Array:
    """Every cell of a grid, row by row; the first one is at `first`, or at 0."""
    cells: Array = np.indices(grid, dtype=np.int64).reshape(len(grid), -1).T
    return cells + np.array(first) if first else cells


def _cells_at(axes: list[Array]) -> Array:
    """Every cell of a grid, row by row, whose coordinates along each axis are given."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _diagonal(start: int, count: int) -> Array:
    """Tokens of text whose three coordinates are equal."""
    return np.repeat(np.arange(start, start + count, dtype=np.int64)[:, None], 3, axis=1)


# Rules of sequences, in which a segment depends on the others


def _mrope(segments: Segments, merge_size: int, start: int, time_interval: float = 1.0) -> Iterator[Array]:
    for segment in segments:
        if isinstance(segment, int):
            yield _diagonal(start, segment)
            start += segment
        else:
            time, height, width = segment[0], segment[1] // merge_size, segment[2] // merge_size
            cells = _cells((time, height, width))
            # In float32, as transformers computes it: the fraction that is cut off depends on the rounding.
            with np.errstate(over="ignore", invalid="ignore"):
                times = cells[:, 0].astype(np.float32) * np.float32(time_interval)
            if not start + float(times[-1]) <= largest_position:
                found = f"is {time_interval}, which leads to a position beyond 2**53"
                raise refused(ValueError, "time_interval", found, "a smaller number")
            cells[:, 0] = times
            yield cells + start
            start += max(int(cells[-1, 0]) + 1, height, width)
    if start > largest_position + 1:
        raise refused(ValueError, "start", "leads to a position beyond 2**53", "a smaller number")


def _mrope_frames(segments: Segments, merge_size: int, start: int) -> Iterator[Array]:
    for segment in segments:
        if isinstance(segment, tuple) and segment[0] != 1:
            expected = "a time of 1: a time stamp stands before each frame of a video"
            remedy = "pass the text and the frames as segments of their own"
            raise refused(ValueError, "segments", f"hold the grid {segment}", expected, remedy)
    return _mrope(segments, merge_size, start)


def _of_tokens(segments: Segments) -> Iterator[Array]:
    found, expected = "do not say which of these tokens are at one position in this model", "the types of its tokens"
    raise refused(ValueError, "segments", found, expected, "call position_ids(token_types, ..)")


def _flux2(segments: Segments) -> Iterator[Array]:
    time = 0
    for segment in segments:
        if isinstance(segment, int):
            yield _cells((1, 1, 1, segment))
        else:
            # The image is at time 0, and the images that it refers to are at 10, 20, ..
            yield _cells((1, *segment, 1), time, 0, 0, 0)
            time += 10


def _qwen_image(segments: Segments) -> Iterator[Array]:
    # Text continues along the diagonal, behind the largest coordinate of an image.
    text = max((max(segment[1:]) // 2 for segment in segments if isinstance(segment, tuple)), default=0)
    time = 0
    for segment in segments:
        if isinstance(segment, int):
            yield _diagonal(text, segment)
            text += segment
        else:
            _, height, width = segment
            yield _cells(segment, time, height // 2 - height, width // 2 - width)
            time += 1


def _lumina2(segments: Segments) -> Iterator[Array]:
    text, grid = _two(segments, int, tuple, "the tokens of one text, then one grid")
    yield _cells((text, 1, 1))
    yield _cells((1, *grid), text, 0, 0)


def _z_image(segments: Segments) -> Iterator[Array]:
    grid, text = _two(segments, tuple, int, "one grid, then the tokens of one text")
    # Both are filled up with tokens: those of the text count on, and those of the image are at 0.
    text += -text % _z_image_multiple
    cells = _cells(grid, text + 1, 0, 0)
    yield cells
    yield np.zeros((-len(cells) % _z_image_multiple, 3), np.int64)
    yield _cells((text, 1, 1), 1, 0, 0)


def _two(segments: Any, first: type, second: type, expected: str) -> Any:
    """The segments, if they are two of these types."""
    if [type(segment) for segment in segments] != [first, second]:
        raise refused(ValueError, "segments", f"are {segments}", expected)
    return segments


# Rules of single segments


def _each(function: Callable[..., Array]) -> Callable[..., Iterator[Array]]:
    return lambda segments, **options: (function(segment, **options) for segment in segments)


def _flux(segment: int | Grid) -> Array:
    return np.zeros((segment, 3), np.int64) if isinstance(segment, int) else _cells((1, *segment))


def _merge_blocks(grid: Grid, merge_size: int) -> Array:
    time, height, width = grid
    blocks = _cells((time, height // merge_size, width // merge_size, merge_size, merge_size))
    return blocks[:, 1:3] * merge_size + blocks[:, 3:]


def _merge_blocks_with_time(grid: Grid, merge_size: int) -> Array:
    return np.column_stack([_cells(grid)[:, 0], _merge_blocks(grid, merge_size)])


def _llama4(grid: Grid) -> Array:
    class_token = [[0, 0]]
    return np.concatenate([_cells(grid)[:, ::-1] + 1, class_token])


def _rescaled(grid: Grid, trained_shape: Grid | None) -> Array:
    return _cells(grid) if trained_shape is None else _cells(grid) / grid * trained_shape


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
    "tokens": Rule(_of_tokens, _volume, text=True),
    "merge_blocks": Rule(_each(_merge_blocks), _volume, options=("merge_size",)),
    "merge_blocks_with_time": Rule(_each(_merge_blocks_with_time), _volume, options=("merge_size",)),
    "frames": Rule(_each(lambda grid: _cells(grid)[:, 1:]), _volume),
    "plane": Rule(_each(_cells), _plane),
    "plane_columns_first": Rule(_each(lambda grid: _cells(grid)[:, ::-1]), _plane),
    "volume": Rule(_each(_cells), _volume),
    "llama4": Rule(_each(_llama4), _plane),
    "centres": Rule(_each(lambda grid: 2.0 * ((_cells(grid) + 0.5) / grid) - 1.0), _plane),
    "rescaled": Rule(_each(_rescaled), _plane, options=("trained_shape",)),
    "rescaled_columns_first": Rule(
        _each(lambda grid, trained_shape: _rescaled(grid, trained_shape)[:, ::-1]), _plane, options=("trained_shape",)
    ),
    "from_minus_one_to_one": Rule(
        _each(lambda grid: _cells_at([np.linspace(-1.0, 1.0, length) for length in grid])), _plane
    ),
    "flux": Rule(_each(_flux), _plane, text=True),
    "flux2": Rule(_flux2, _plane, text=True),
    "qwen_image": Rule(_qwen_image, _volume, text=True),
    "cogvideox": Rule(_each(_cogvideox), _volume, options=("trained_shape",)),
    "lumina2": Rule(_lumina2, _plane, text=True),
    "z_image": Rule(_z_image, _volume, text=True),
}


class Windows(NamedTuple):
    """The order of windows, and where windows and frames begin: see `RotaryLayout.windows`."""

    window_index: Array
    cu_window_seqlens: Array
    cu_seqlens: Array


def windows(grid_thw: Any, window: int, merge_size: int) -> Windows:
    """The windows of all grids, one after the other."""
    grids = checked("grid_thw", grid_thw, (None, 3), expected="rows of (time, height, width), in patches")
    check_grids("grid_thw", grids, merge_size, "merge_size")
    order, lengths, first = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for time, height, width in grids.tolist():
        rows, columns = (np.arange(length // merge_size) for length in (height, width))
        across = -(-len(columns) // window)
        # The window of each block of a frame. Sorting keeps the order of the blocks in it.
        owners = ((rows // window)[:, None] * across + columns // window).ravel()
        frame = np.argsort(owners, kind="stable")
        order.append((np.arange(time)[:, None] * len(owners) + frame + first).ravel())
        lengths.append(np.tile(np.bincount(owners) * merge_size**2, time))
        first += time * len(owners)
    frames = np.repeat(grids[:, 1] * grids[:, 2], grids[:, 0])
    return Windows(np.concatenate(order), _ends(np.concatenate(lengths)), _ends(frames))


def _ends(lengths: Array) -> Array:
    """Where things of these lengths begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
