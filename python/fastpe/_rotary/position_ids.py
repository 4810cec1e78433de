# SPDX-License-Identifier: BSD-3-Clause
"""The position ids of the projects: which coordinates the rows of a sequence of text and images have.

A sequence is a list of segments: an int for so many tokens of text, a tuple for the lengths of a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpe._arguments import integer, number
from fastpe._errors import refused

Array = npt.NDArray[Any]
Grid = tuple[int, ...]
Segments = Sequence[int | Grid]

largest_position = 2**53
# Z-Image fills its texts and images up to a multiple of this.
_z_image_multiple = 32


class Rule(NamedTuple):
    """How one project numbers its tokens.

    Attributes
    ----------
    function : callable
        From the segments and the options to the ids, [N, coordinates].
    grid : tuple of str
        What the lengths of a grid are.
    text : bool
        Whether a segment may be text.
    options : tuple of str
        The options that it takes.
    """

    function: Callable[..., Array]
    grid: tuple[str, ...]
    text: bool = False
    options: tuple[str, ...] = ()


def position_ids(layout: str, rule_name: str, segments: Sequence[Any], options: dict[str, Any]) -> Array:
    """The ids of all segments, one after the other; `layout` is named in errors."""
    rule = rules[rule_name]
    for name in options:
        if name not in rule.options:
            known = f"it takes {', '.join(rule.options)}" if rule.options else "leave it out"
            raise refused(
                ValueError, name, f"was given, but the ids of layout {layout!r} do not depend on it", "", known
            )
    if not segments:
        raise refused(ValueError, "segments", "are missing", _expected(rule))
    checked = [_segment(f"segments[{i}]", segment, rule, layout) for i, segment in enumerate(segments)]
    return rule.function(checked, **{name: _option(name, value) for name, value in options.items()})


def segments_text(rule_name: str) -> str:
    """What a sequence may consist of."""
    rule = rules[rule_name]
    if rule_name == "tokens":
        return "types of tokens"
    return f"{'tokens of text and ' if rule.text else ''}grids ({', '.join(rule.grid)})"


def _segment(name: str, segment: Any, rule: Rule, layout: str) -> int | Grid:
    if isinstance(segment, (tuple, list, np.ndarray)):
        if len(segment) != len(rule.grid):
            raise refused(ValueError, name, f"is {segment!r}", f"{_expected(rule)} for layout {layout!r}")
        return tuple(integer(f"{name}[{i}]", length, 1) for i, length in enumerate(segment))
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


def _diagonal(start: int, count: int) -> Array:
    """Tokens of text whose three coordinates are equal."""
    return np.repeat(np.arange(start, start + count, dtype=np.int64)[:, None], 3, axis=1)


def _merged_size(segment: Grid, merge_size: int) -> tuple[int, int]:
    height, width = segment[-2:]
    if height % merge_size or width % merge_size:
        raise refused(
            ValueError,
            "segments",
            f"hold the grid {segment}",
            f"heights and widths that are multiples of merge_size, {merge_size}: the ids are those of whole blocks",
        )
    return height // merge_size, width // merge_size


def _mrope(segments: Segments, merge_size: int = 2, start: int = 0, time_interval: float = 1.0) -> Array:
    rows = []
    for segment in segments:
        if isinstance(segment, int):
            rows.append(_diagonal(start, segment))
            start += segment
        else:
            height, width = _merged_size(segment, merge_size)
            cells = _cells((segment[0], height, width))
            # In float32, as transformers computes it: the fraction that is cut off depends on the rounding.
            with np.errstate(over="ignore", invalid="ignore"):
                times = cells[:, 0].astype(np.float32) * np.float32(time_interval)
            if not start + float(times[-1]) <= largest_position:
                found = f"is {time_interval}, which leads to a position beyond 2**53"
                raise refused(ValueError, "time_interval", found, "a smaller number")
            cells[:, 0] = times
            rows.append(cells + start)
            start += max(height, width)
    if start > largest_position + 1:
        raise refused(ValueError, "start", "leads to a position beyond 2**53", "a smaller number")
    return np.concatenate(rows)


def _of_tokens(segments: Segments) -> Array:
    raise refused(
        ValueError,
        "segments",
        "do not say which of these tokens are at one position in this model",
        "the types of its tokens",
        "call position_ids(token_types, ..)",
    )


def _mrope_frames(segments: Segments, merge_size: int = 2, start: int = 0) -> Array:
    for segment in segments:
        if isinstance(segment, tuple) and segment[0] != 1:
            raise refused(
                ValueError,
                "segments",
                f"hold the grid {segment}",
                "a time of 1: a time stamp stands before each frame of a video",
                "pass the text and the frames as segments of their own",
            )
    return _mrope(segments, merge_size, start)


def _merge_blocks(segments: Sequence[Grid], merge_size: int = 2) -> Array:
    rows = []
    for segment in segments:
        blocks = _cells((segment[0], *_merged_size(segment, merge_size), merge_size, merge_size))
        rows.append(blocks[:, 1:3] * merge_size + blocks[:, 3:])
    return np.concatenate(rows)


def _merge_blocks_with_time(segments: Sequence[Grid], merge_size: int = 2) -> Array:
    times = [np.repeat(np.arange(segment[0]), segment[1] * segment[2]) for segment in segments]
    return np.column_stack([np.concatenate(times), _merge_blocks(segments, merge_size)])


def _frames(segments: Sequence[Grid]) -> Array:
    return _grids(segments)[:, 1:]


def _grids(segments: Sequence[Grid]) -> Array:
    return np.concatenate([_cells(segment) for segment in segments])


def _columns_first(segments: Sequence[Grid]) -> Array:
    return _grids(segments)[:, ::-1]


def _llama4(segments: Sequence[Grid]) -> Array:
    class_token = [[0, 0]]
    return np.concatenate([part for segment in segments for part in (_columns_first([segment]) + 1, class_token)])


def _centres(segments: Sequence[Grid]) -> Array:
    return np.concatenate([2.0 * ((_cells(segment) + 0.5) / segment) - 1.0 for segment in segments])


def _rescaled(segments: Sequence[Grid], trained_shape: Grid | None = None) -> Array:
    if trained_shape is None:
        return _grids(segments)
    return np.concatenate([_cells(segment) / segment * trained_shape for segment in segments])


def _rescaled_columns_first(segments: Sequence[Grid], trained_shape: Grid | None = None) -> Array:
    return _rescaled(segments, trained_shape)[:, ::-1]


def _from_minus_one_to_one(segments: Sequence[Grid]) -> Array:
    rows = []
    for segment in segments:
        axes = [np.linspace(-1.0, 1.0, length) for length in segment]
        rows.append(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes)))
    return np.concatenate(rows)


def _flux(segments: Segments) -> Array:
    rows = []
    for segment in segments:
        rows.append(np.zeros((segment, 3), np.int64) if isinstance(segment, int) else _cells((1, *segment)))
    return np.concatenate(rows)


def _flux2(segments: Segments) -> Array:
    rows, time = [], 0
    for segment in segments:
        if isinstance(segment, int):
            rows.append(_cells((1, 1, 1, segment)))
        else:
            # The image is at time 0, and the images that it refers to are at 10, 20, ..
            rows.append(_cells((1, *segment, 1), time, 0, 0, 0))
            time += 10
    return np.concatenate(rows)


def _qwen_image(segments: Segments) -> Array:
    # Text continues along the diagonal, behind the largest coordinate of an image.
    text = max((max(segment[1:]) // 2 for segment in segments if isinstance(segment, tuple)), default=0)
    rows, time = [], 0
    for segment in segments:
        if isinstance(segment, int):
            rows.append(_diagonal(text, segment))
            text += segment
        else:
            _, height, width = segment
            rows.append(_cells(segment, time, height // 2 - height, width // 2 - width))
            time += 1
    return np.concatenate(rows)


def _cogvideox(segments: Sequence[Grid], trained_shape: Grid | None = None) -> Array:
    rows = []
    for segment in segments:
        axes: list[Array] = [np.arange(length) for length in segment]
        if trained_shape is not None:
            for axis, (first, stop) in enumerate(_crop(segment[1:], trained_shape), start=1):
                length = segment[axis]
                axes[axis] = np.linspace(first, stop * (length - 1) / length, length)
        rows.append(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3))
    return np.concatenate(rows)


def _crop(grid: Grid, trained_shape: Grid) -> list[tuple[int, int]]:
    """Where a grid that is resized to fit into another one begins and ends there, for each axis."""
    (height, width), (trained_height, trained_width) = grid, trained_shape
    if height / width > trained_height / trained_width:
        sizes = trained_height, round(trained_height / height * width)
    else:
        sizes = round(trained_width / width * height), trained_width
    starts = [round((trained - size) / 2.0) for trained, size in zip(trained_shape, sizes, strict=True)]
    return [(start, start + size) for start, size in zip(starts, sizes, strict=True)]


def _lumina2(segments: Segments) -> Array:
    if [type(segment) for segment in segments] != [int, tuple]:
        raise refused(ValueError, "segments", f"are {segments}", "the tokens of one text, then one grid")
    text, grid = segments
    assert isinstance(text, int)
    assert isinstance(grid, tuple)
    return np.concatenate([_cells((text, 1, 1)), _cells((1, *grid), text, 0, 0)])


def _z_image(segments: Segments) -> Array:
    if [type(segment) for segment in segments] != [tuple, int]:
        raise refused(ValueError, "segments", f"are {segments}", "one grid, then the tokens of one text")
    grid, text = segments
    assert isinstance(text, int)
    assert isinstance(grid, tuple)
    # Both are filled up with tokens: those of the text count on, and those of the image are at 0.
    text += -text % _z_image_multiple
    cells = _cells(grid, text + 1, 0, 0)
    filling = np.zeros((-len(cells) % _z_image_multiple, 3), np.int64)
    return np.concatenate([cells, filling, _cells((text, 1, 1), 1, 0, 0)])


_plane = ("height", "width")
_volume = ("time", "height", "width")

rules = {
    "mrope": Rule(_mrope, _volume, text=True, options=("merge_size", "start", "time_interval")),
    "mrope_frames": Rule(_mrope_frames, _volume, text=True, options=("merge_size", "start")),
    "tokens": Rule(_of_tokens, _volume, text=True),
    "merge_blocks": Rule(_merge_blocks, _volume, options=("merge_size",)),
    "merge_blocks_with_time": Rule(_merge_blocks_with_time, _volume, options=("merge_size",)),
    "frames": Rule(_frames, _volume),
    "plane": Rule(_grids, _plane),
    "plane_columns_first": Rule(_columns_first, _plane),
    "volume": Rule(_grids, _volume),
    "llama4": Rule(_llama4, _plane),
    "centres": Rule(_centres, _plane),
    "rescaled": Rule(_rescaled, _plane, options=("trained_shape",)),
    "rescaled_columns_first": Rule(_rescaled_columns_first, _plane, options=("trained_shape",)),
    "from_minus_one_to_one": Rule(_from_minus_one_to_one, _plane),
    "flux": Rule(_flux, _plane, text=True),
    "flux2": Rule(_flux2, _plane, text=True),
    "qwen_image": Rule(_qwen_image, _volume, text=True),
    "cogvideox": Rule(_cogvideox, _volume, options=("trained_shape",)),
    "lumina2": Rule(_lumina2, _plane, text=True),
    "z_image": Rule(_z_image, _volume, text=True),
}
