# SPDX-License-Identifier: BSD-3-Clause
"""Position ids from the types of tokens: one pass over a whole batch, without a loop over its tokens or images."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastpe._arguments import bools, largest_position, shown
from fastpe._errors import refused
from fastpe._rotary.token_canvas import canvas_ids
from fastpe._rotary.token_rules import (
    Array,
    Sizes,
    TokenRule,
    audio_token,
    check_grids,
    checked,
    image_token,
    padding_token,
    slice_mark,
    text_token,
    video_token,
)

_longest_side = 2**20
_words = {image_token: "image", video_token: "video"}


class Tokens(NamedTuple):
    """The types of a batch, with a type of its own for padding."""

    types: Array  # [B * L]
    shape: tuple[int, int]
    lengths: Array  # [B], without padding


class Runs(NamedTuple):
    """Neighbouring tokens of one type, in one row of the batch."""

    types: Array
    starts: Array
    lengths: Array
    rows: Array


class Grids(NamedTuple):
    """A grid for each run of tokens, in tokens: a video may have one for each frame."""

    owners: Array  # the row of the argument
    times: Array
    heights: Array
    widths: Array
    intervals: Array  # between times

    @property
    def cells(self) -> Array:
        """The number of tokens."""
        return self.times * self.heights * self.widths


class Visuals(NamedTuple):
    """An argument that has grids."""

    name: str
    type: int
    given: Array  # [n, 3], in patches
    grids: Grids


def token_position_ids(
    sizes: Sizes, token_types: Any, image_grid: Any, video_grid: Any, seconds: Any, mask: Any, past: Any, delta: Any
) -> tuple[Array, Array]:
    """The ids [coordinates, B, L], and by how much positions are ahead of the count of tokens, [B]."""
    rule = sizes.rule
    tokens = _tokens(rule, token_types, mask)
    images = _visuals(sizes, "image_grid_thw", image_token, image_grid, None)
    videos = _visuals(sizes, "video_grid_thw", video_token, video_grid, seconds)
    has_grids = len(images.given) > 0 or len(videos.given) > 0
    if (past is None) != (delta is None):
        found, remedy = "is missing", "past and delta together say where a row continues"
        raise refused(ValueError, "past" if past is None else "delta", found, remedy=remedy)
    counted, ahead = (_per_row(name, value, rule, tokens) for name, value in (("past", past), ("delta", delta)))
    if not (counted >= 0).all():
        raise refused(ValueError, "past", f"is {shown(counted.tolist())}", "counts of tokens")
    if rule.grid == "plane" and has_grids and counted.any():
        found = "is given, but the images of this model are numbered from the start of a batch"
        raise refused(ValueError, "past", found, remedy="give the types of the whole sequence, and slice its ids")
    firsts = counted + ahead
    if not (firsts >= 0).all():
        raise refused(ValueError, "delta", f"is {shown(ahead.tolist())}", "numbers that are not less than -past")
    ids = _ids(sizes, tokens, images, videos, firsts)
    ids = ids.reshape(len(ids), *tokens.shape)
    is_padding = tokens.types.reshape(tokens.shape) == padding_token
    np.copyto(ids, 0, where=is_padding)
    ends = np.where(tokens.lengths > 0, ids.max(axis=2, initial=0).max(axis=0) + 1, firsts)
    if rule.padding or (rule.audio and not has_grids):
        np.copyto(ids, 1, where=is_padding)
    return ids, ends - counted - tokens.lengths


def _tokens(rule: TokenRule, token_types: Any, attention_mask: Any) -> Tokens:
    types = checked("token_types", token_types, (None, None), expected="[B, L]")
    most = slice_mark if rule.grid == "canvas" else audio_token if rule.audio else video_token
    if types.size and (types.min() < text_token or types.max() > most):
        found = types[(types < text_token) | (types > most)][0]
        raise refused(ValueError, "token_types", f"holds {found}", f"types from 0 to {most}", "see token_types()")
    lengths = np.full(types.shape[0], types.shape[1])
    if attention_mask is not None:
        mask = bools("attention_mask", attention_mask)
        if mask.shape != types.shape:
            found, expected = f"has shape {list(mask.shape)}", f"{list(types.shape)} as token_types has"
            raise refused(ValueError, "attention_mask", found, expected)
        types, lengths = np.where(mask, types, padding_token), mask.sum(axis=1)
    return Tokens(types.reshape(-1), types.shape, lengths)


def _visuals(sizes: Sizes, name: str, kind: int, value: Any, seconds: Any) -> Visuals:
    rule, is_video = sizes.rule, kind == video_token
    if value is None or (hasattr(value, "__len__") and len(value) == 0):
        value = np.empty((0, 3), np.int64)
    planes = [(None, 2)] if rule.grid == "canvas" else []
    given = checked(name, value, (None, 3), *planes, expected="rows of (time, height, width), in patches")
    given = given if given.shape[1] == 3 else np.insert(given, 0, 1, axis=1)
    check_grids(name, given, sizes.merge, sizes.rule.merge_size[0], _longest_side)
    owners, times = np.arange(len(given)), given[:, 0] // (sizes.temporal_merge if is_video else 1)
    intervals = _intervals(sizes, seconds, len(given)) if is_video else np.ones(len(given), np.float32)
    if is_video and rule.grid == "frames":
        owners, times = np.repeat(owners, times), np.ones(int(times.sum()), np.int64)
    heights, widths = (given[owners, 1:] // sizes.merge).T
    line_ends = 1 if rule.grid in ("lines", "plane") else 0
    return Visuals(name, kind, given, Grids(owners, times, heights, widths + line_ends, intervals[owners]))


def _intervals(sizes: Sizes, second_per_grid: Any, count: int) -> Array:
    """In float32, as transformers computes it: the fraction that is cut off depends on the rounding."""
    seconds = np.ones(count)
    if count and second_per_grid is None and sizes.per_second is not None:
        found, remedy = "is missing", "pass the second_per_grid_ts or video_second_per_grid of the processor"
        raise refused(ValueError, "second_per_grid", found, "the seconds between two times of each video", remedy)
    if second_per_grid is not None and sizes.per_second is None:
        found = "is given, but the ids of this model do not depend on it"
        raise refused(ValueError, "second_per_grid", found, remedy="leave it out")
    if second_per_grid is not None:
        expected = f"one number for each of {count} videos"
        seconds = checked("second_per_grid", second_per_grid, (), (count,), expected=expected, kinds="iuf")
        if not np.all((seconds >= 0.0) & (seconds < np.inf)):
            raise refused(ValueError, "second_per_grid", f"is {shown(seconds.tolist())}", "finite numbers from 0")
    with np.errstate(over="ignore"):
        rounded = np.broadcast_to(seconds, count).astype(np.float32)
        return rounded if sizes.rule.audio or sizes.per_second is None else np.float32(sizes.per_second) * rounded


def _per_row(name: str, value: Any, rule: TokenRule, tokens: Tokens) -> Array:
    """A number for each row of the batch."""
    kinds, count = "iuf" if rule.fractional else "iu", len(tokens.lengths)
    shapes, expected = ((), (count,), (count, 1)), f"[{count}], one per row"
    array = checked(name, 0 if value is None else value, *shapes, expected=expected, kinds=kinds)
    if not np.all(np.abs(array.astype(np.float64)) <= largest_position):
        raise refused(ValueError, name, f"is {shown(array.tolist())}", "numbers up to 2**53")
    return np.broadcast_to(array.reshape(-1), count)


def _runs(types: Array, tokens: Tokens, also: Array | None = None) -> Runs:
    """The runs, which begin where types change and where rows do, and at the tokens `also`."""
    begins = np.empty(len(types), bool)
    begins[1:] = types[1:] != types[:-1]
    begins[:: max(tokens.shape[1], 1)] = True
    if also is not None:
        begins[also] = True
    starts = np.flatnonzero(begins)
    return Runs(types[starts], starts, np.diff(starts, append=len(types)), starts // max(tokens.shape[1], 1))


def _ids(sizes: Sizes, tokens: Tokens, images: Visuals, videos: Visuals, firsts: Array) -> Array:
    rule = sizes.rule
    types, runs, counts = _grouped(rule, tokens, images.grids.cells)
    grids = Grids(*(np.ones(len(runs.starts), each.dtype) for each in images.grids))
    for visuals in (images, videos):
        mine = np.flatnonzero(runs.types == visuals.type)
        _check_fit(sizes, visuals, tokens, runs.starts[mine], counts[mine])
        for of_all, each in zip(grids, visuals.grids, strict=True):
            of_all[mine] = each
    if rule.grid == "canvas":
        is_crop = (runs.types == image_token) | (runs.types == video_token)
        crops = (runs.rows, runs.starts % tokens.shape[1], runs.lengths, grids.heights, grids.widths)
        return canvas_ids(types.reshape(tokens.shape), firsts, np.stack(crops, axis=1)[is_crop])
    last = _last_times(sizes, grids)
    with_audio = np.flatnonzero(counts < runs.lengths).tolist()
    shared = _shared_marks(runs, with_audio) if rule.audio == "together" else []
    advance = _advance(rule, runs, grids, last)
    for run in with_audio:
        if types[runs.starts[run] + runs.lengths[run] - 1] == audio_token:
            advance[run] = runs.lengths[run] - counts[run]
    for run, _ in shared:
        advance[run] -= 1
    totals = np.cumsum(advance) - advance
    starts = totals - totals[np.searchsorted(runs.rows, runs.rows)] + firsts[runs.rows]
    reach = (starts + np.maximum(advance - 1, last))[runs.types != padding_token]
    if np.sum(advance, dtype=np.float64) > 2.0**60 or reach.max(initial=0) > largest_position:
        argument = "past" if firsts.max() > largest_position // 2 else "second_per_grid"
        raise refused(ValueError, argument, "leads to a position beyond 2**53", "smaller numbers")

    # Images that do not change the count of tokens, and videos with audio, are numbered one by one.
    single = np.flatnonzero(runs.types == image_token).tolist() if rule.grid == "plane" else with_audio
    counts_up = (runs.types == text_token) | (runs.types == padding_token)
    counts_up[single] = True
    ids = _lines(sizes, runs, grids, starts, counts_up)
    for run in single:
        part = ids[:, runs.starts[run] : runs.starts[run] + runs.lengths[run]]
        grid = Grids(*(each[run] for each in grids))
        time, row, column = np.indices(tuple(map(int, grid[1:4]))).reshape(3, -1)
        if rule.grid == "plane":
            part[-3:] = column, row, np.full_like(row, grid.owners)
            continue
        is_video = types[runs.starts[run] :][: runs.lengths[run]] == video_token
        part[:, is_video] = starts[run] + np.stack([_times(sizes, time, grid).astype(ids.dtype), row, column])
        part[:, ~is_video] = starts[run] + np.arange(runs.lengths[run] - counts[run])
    for run, late in shared:
        ids[:, runs.starts[run] : runs.starts[run] + runs.lengths[run]][:, late] -= 1
    return ids


def _last_times(sizes: Sizes, grids: Grids) -> Array:
    """The last time of each grid, of the type that ids have."""
    last = _times(sizes, grids.times - 1, grids)
    too_large = np.flatnonzero(~(last <= largest_position))
    if len(too_large):
        argument = f"second_per_grid[{grids.owners[too_large[0]]}]"
        raise refused(ValueError, argument, "leads to a position beyond 2**53", "fewer seconds")
    if sizes.rule.fractional:
        numbers = np.arange(grids.times.max(initial=0))[:, None]
        times = np.where(numbers < grids.times, _times(sizes, numbers, grids), 0.0)
        if (times != np.trunc(times)).any():
            return last.astype(np.float64)
    return last.astype(np.int64)


def _advance(rule: TokenRule, runs: Runs, grids: Grids, last: Array) -> Array:
    """How far behind its start the text after each run begins."""
    sides = np.maximum(grids.heights, grids.widths)
    if rule.after == "token":
        advance = runs.lengths
    else:
        advance = last + sides if rule.grid == "lines" else np.maximum(last, sides - 1) + 1
    advance = np.where(runs.types == text_token, runs.lengths, advance)
    return np.where(runs.types == padding_token, 0, advance)


def _lines(sizes: Sizes, runs: Runs, grids: Grids, starts: Array, counts_up: Array) -> Array:
    """The ids of runs that count up, and of grids line by line: the tokens of a line have one time and one row."""
    lines = np.where(counts_up, 1, grids.times * grids.heights)
    line = np.arange(lines.sum()) - np.repeat(np.cumsum(lines) - lines, lines)
    of_lines = Grids(*(np.repeat(each, lines) for each in grids))
    start, is_counted = np.repeat(starts, lines), np.repeat(counts_up, lines)
    time = line // of_lines.heights
    row = line - time * of_lines.heights
    times = start + _times(sizes, time, of_lines).astype(starts.dtype)
    corner = times if sizes.rule.grid == "lines" else start
    widths = np.where(is_counted, np.repeat(runs.lengths, lines), of_lines.widths)
    tokens = np.cumsum(widths)
    values = np.stack([*[times] * (sizes.coordinates - 2), corner + row, corner - (tokens - widths)])
    ids: Array = np.repeat(values, widths, axis=1)
    ids[-1] += np.arange(ids.shape[1])
    is_counted = np.repeat(is_counted, widths)
    for other in ids[:-1]:
        np.copyto(other, ids[-1], where=is_counted)
    return ids


def _grouped(rule: TokenRule, tokens: Tokens, image_cells: Array) -> tuple[Array, Runs, Array]:
    """The types of tokens, the runs that have a grid each or none, and how many tokens of a run are of its grid."""
    types = tokens.types
    if rule.audio:
        # Audio among the tokens of a video belongs to its run. Otherwise, it is numbered as text is.
        runs = _runs(np.where(types == audio_token, video_token, types), tokens)
        of_video = np.add.reduceat(types == video_token, runs.starts, dtype=np.int64) if len(types) else runs.lengths
        is_audio = (runs.types == video_token) & (of_video == 0)
        runs = runs._replace(types=np.where(is_audio, text_token, runs.types))
        return types, runs, np.where(runs.types == video_token, of_video, runs.lengths)
    if rule.adjacent:
        of_images, ends = np.flatnonzero(types == image_token), np.cumsum(image_cells)
        runs = _runs(types, tokens, of_images[ends[ends < len(of_images)]])
        return types, runs, runs.lengths
    runs = _runs(types, tokens)
    if rule.grid == "plane":
        # One more token may stand on each side of a grid. It is numbered as text is.
        wide = np.flatnonzero(runs.types == image_token)[: len(image_cells)]
        wide = wide[runs.lengths[wide] == image_cells[: len(wide)] + 2]
        types = types.copy()
        types[runs.starts[wide]] = types[runs.starts[wide] + runs.lengths[wide] - 1] = text_token
        runs = _runs(types, tokens)
    return types, runs, runs.lengths


def _check_fit(sizes: Sizes, visuals: Visuals, tokens: Tokens, starts: Array, lengths: Array) -> None:
    """Each grid has the tokens of one run."""
    cells = visuals.grids.cells
    both = min(len(cells), len(lengths))
    wrong = np.flatnonzero(cells[:both] != lengths[:both])
    if not len(wrong) and len(cells) == len(lengths):
        return
    word, index = _words[visuals.type], int(wrong[0]) if len(wrong) else both
    if index == len(cells):
        found = f"leaves {word} tokens without a grid"
        expected = f"one for each {word}: the next tokens of one are {_place(tokens, int(starts[index]))}"
        raise refused(ValueError, visuals.name, found, expected)
    owner = int(visuals.grids.owners[index])
    frame = index - int(np.searchsorted(visuals.grids.owners, owner))
    of_frame = f" in frame {frame}" if sizes.rule.grid == "frames" and visuals.type == video_token else ""
    merged = f" with {sizes.rule.merge_size[0].split('.')[-1] or 'merge_size'} {sizes.merge}"
    found = f"is {tuple(visuals.given[owner].tolist())}, which makes {cells[index]} tokens{of_frame}{merged}"
    expected = f"no grid, since there are no more {word} tokens"
    if index < len(lengths):
        expected = f"{lengths[index]}: so many {word} tokens follow {_place(tokens, int(starts[index]))}"
    raise refused(ValueError, f"{visuals.name}[{owner}]", found, expected)


def _place(tokens: Tokens, token: int) -> str:
    return f"from row {token // tokens.shape[1]}, column {token % tokens.shape[1]} on"


def _times(sizes: Sizes, times: Array, grids: Grids) -> Array:
    """How far these times of a grid are from its start."""
    if sizes.rule.grid == "lines":
        return times * np.maximum(grids.heights, grids.widths)
    if sizes.per_second is None:
        return times
    with np.errstate(over="ignore", invalid="ignore"):
        scaled: Array = times.astype(np.float32) * grids.intervals
        return scaled * np.float32(sizes.per_second) if sizes.rule.audio else scaled


def _shared_marks(runs: Runs, with_audio: list[int]) -> list[tuple[int, slice]]:
    """The runs of text next to a video with audio, and their tokens behind two marks that are at one position."""
    return [
        (other, late)
        for run in with_audio
        for other, late in ((run - 1, slice(-1, None)), (run + 1, slice(1, None)))
        if 0 <= other < len(runs.rows) and runs.rows[other] == runs.rows[run]
        if runs.types[other] == text_token and runs.lengths[other] > 1
    ]
