# SPDX-License-Identifier: BSD-3-Clause
"""Position ids of text among images, videos and audio, from the tokens of a batch of prompts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from fastpe._arguments import integer, integers, largest_position, shown
from fastpe._errors import refused
from fastpe._graph.canvas import Crop, number_canvas
from fastpe._graph.model import Array, Model, grids_of, integer_array
from fastpe._layouts.numbering import Piece, grid, lines, placed, text, times_of

# Kinds of tokens. Marks are tokens around images: only the canvas of MiniCPM-V reads them.
text_kind, image_kind, video_kind, audio_kind, mark_kind, slice_mark_kind = range(6)
_words = {image_kind: "image", video_kind: "video"}
_downsample_modes = {"16x": 4, "4x": 2}
_seconds_of = "second_per_grid"


class Run(NamedTuple):
    """Neighbouring tokens of one kind, in one row of the batch."""

    kind: int
    begin: int
    end: int


class Rule(NamedTuple):
    """How one model numbers its tokens: its row, with the numbers of a config."""

    # "whole": from where the text before ends. "frames": likewise, and each frame of a video is a grid of its own among
    # text. "lines": likewise, each line has one more token at its end, and times are as far apart as a frame is wide.
    # "plane": from 0, while the sequence counts on. "canvas": slices of an image share the coordinates of the whole image.
    grid: str
    merge: int
    merge_name: str
    temporal_merge: int
    per_second: float | None
    audio: str  # "", or whether the two tokens at each end of a video with audio are "apart" or "together"
    fractional: bool  # whether times are not cut off
    adjacent: bool  # whether images may follow each other without text between them
    padding: int  # the position of padding
    coordinates: int
    line_ends: int


class Visuals:
    """The grids of an argument, which the runs of its tokens take one after the other."""

    def __init__(self, rule: Rule, name: str, kind: int, value: Any, seconds: Any) -> None:
        self.name, self.kind, self._rule = name, kind, rule
        columns = 2 if rule.grid == "canvas" and np.ndim(value) == 2 and np.shape(value)[1] == 2 else 3
        empty = value is None or np.size(value) == 0
        given = np.zeros((0, columns), np.int64) if empty else value
        grids = grids_of(name, given, rule.merge, rule.merge_name, columns=columns)
        self._given = grids.tolist()
        self._seconds = self._checked_seconds(seconds) if kind == video_kind else None
        self._left = self._frames()

    def __len__(self) -> int:
        return len(self._given)

    def _checked_seconds(self, seconds: Any) -> Any:
        count = len(self)
        if self._rule.per_second is None:
            if seconds is not None:
                found = "is given, but the ids of this model do not depend on it"
                raise refused(ValueError, _seconds_of, found, remedy="leave it out")
            return None
        if seconds is None:
            if not count:
                return None
            remedy = "pass the second_per_grid_ts or video_second_per_grid of the processor"
            raise refused(ValueError, _seconds_of, "is missing", "the seconds between two times of each video", remedy)
        expected = f"one number for each of {count} videos"
        array = integer_array(_seconds_of, seconds, (), (count,), expected=expected, kinds="iuf")
        if not np.all((array >= 0.0) & (array < np.inf)):
            raise refused(ValueError, _seconds_of, f"is {shown(array.tolist())}", "finite numbers of at least 0")
        return np.broadcast_to(array, count)

    def _frames(self) -> Iterator[tuple[int, int, int, int]]:
        """Which grid, and times, height and width in tokens: a video may have a grid for each frame."""
        rule = self._rule
        for index, lengths in enumerate(self._given):
            time = 1 if len(lengths) == 2 else lengths[0]
            time = time // rule.temporal_merge if self.kind == video_kind else time
            height, width = (length // rule.merge for length in lengths[-2:])
            count = time if rule.grid == "frames" and self.kind == video_kind else 1
            for _ in range(count):
                yield index, time // count, height, width

    def take(self, room: int, place: str) -> tuple[int, int, int, int, int]:
        """The next grid: which one, times, height, width, and how many tokens there are, of the `room` from `place` on."""
        word, rule = _words[self.kind], self._rule
        taken = next(self._left, None)
        if taken is None:
            raise refused(ValueError, self.name, f"has no grid for the {word} tokens {place}", f"one for each {word}")
        index, time, height, width = taken
        count = time * height * (width + rule.line_ends)
        fits = count <= room if rule.adjacent else count == room or (rule.grid == "plane" and count + 2 == room)
        if not fits:
            raise self._no_fit(index, count, f"{room}, as there are {word} tokens {place}")
        return index, time, height, width, count

    def all_taken(self) -> None:
        """Refuse grids that have no tokens."""
        for index, time, height, width in self._left:
            word = _words[self.kind]
            raise self._no_fit(
                index, time * height * (width + self._rule.line_ends), f"no grid, since there are no more {word} tokens"
            )

    def _no_fit(self, index: int, count: int, expected: str) -> Exception:
        of_frame = " in each frame" if self._rule.grid == "frames" and self.kind == video_kind else ""
        found = f"is {tuple(self._given[index])}, which makes {count} tokens{of_frame} with {self._rule.merge_name} "
        return refused(ValueError, f"{self.name}[{index}]", f"{found}{self._rule.merge}", expected)

    def times(self, index: int, count: int) -> Array:
        """How far the frames of a grid are from its start."""
        rule = self._rule
        if self._seconds is None or rule.per_second is None:
            return np.arange(count)
        with np.errstate(over="ignore"):
            seconds, per_second = np.float32(self._seconds[index]), np.float32(rule.per_second)
            # In the order of each model's code.
            factors = [seconds, per_second] if rule.audio else [seconds * per_second]
        times = times_of(count, *factors, name=f"{_seconds_of}[{index}]")
        is_whole = not rule.fractional or (times == np.trunc(times)).all()
        return times.astype(np.int64 if is_whole else np.float64)


def _rule(model: Model, has_grids: bool) -> Rule:
    row = model.row
    kind = row.get("grid", "whole")
    if has_grids and kind != "canvas":
        inner = [key for key in model.defaults if key in model.config]
        if "vision_config" not in model.config and (inner or str(model.config.get("model_type")).endswith("_text")):
            found = "is a part of one, with no vision_config"
            raise refused(ValueError, "config", found, remedy="pass the whole config.json")
    merge_name = "downsample_mode" if kind == "canvas" else "spatial_merge_size"
    merge: Any = model.value(merge_name) if has_grids else 1
    if has_grids and kind == "canvas":
        if merge not in _downsample_modes:
            raise refused(ValueError, merge_name, f"is {shown(merge)}", " or ".join(_downsample_modes))
        merge = _downsample_modes[merge]
    per_second = row.get("per_second")
    return Rule(
        kind,
        integer(merge_name, merge, 1),
        merge_name,
        model.integer(row["temporal_merge"]) if has_grids and "temporal_merge" in row else 1,
        model.number(per_second) if per_second else None,
        row.get("audio", ""),
        row.get("fractional", False),
        row.get("adjacent", False),
        row.get("padding", 0),
        _coordinates(model) if kind == "plane" else 3,
        1 if kind in ("lines", "plane") else 0,
    )


def _coordinates(model: Model) -> int:
    """How many sections HunYuan-VL divides a head into: 4 in published files."""
    for level in (model.config.get("text_config"), model.config):
        for outer in ("rope_parameters", "rope_scaling"):
            rope = level.get(outer) if isinstance(level, Mapping) else None
            for key in ("mrope_section", "xdrope_section"):
                sections = rope.get(key) if isinstance(rope, Mapping) else None
                if sections is not None:
                    if len(integers(key, sections, "(16, 16, 16, 16)")) < 3:
                        raise refused(ValueError, key, f"is {shown(sections)}", "at least 3 sections")
                    return len(sections)
    return 4


class Prompt:
    """The images and videos of a batch of prompts, in the order of its tokens."""

    def __init__(self, model: Model, image_grid_thw: Any, video_grid_thw: Any, second_per_grid: Any) -> None:
        self.has_grids = any(each is not None and np.size(each) for each in (image_grid_thw, video_grid_thw))
        self._model, self._rule = model, _rule(model, self.has_grids)
        self._visuals = {
            image_kind: Visuals(self._rule, "image_grid_thw", image_kind, image_grid_thw, None),
            video_kind: Visuals(self._rule, "video_grid_thw", video_kind, video_grid_thw, second_per_grid),
        }

    @property
    def counts_through(self) -> bool:
        """Whether images are numbered from the start of a batch."""
        return self._rule.grid == "plane"

    def number(self, tokens: Array, valid: Array, starts: Array) -> tuple[Array, Array]:
        """The ids [coordinates, B, L] of rows that begin at `starts`, and where each row goes on."""
        rule, kinds = self._rule, kinds_of(self._model, tokens)
        numbered = [self._row(row, kinds[row], valid[row], starts[row].item()) for row in range(len(tokens))]
        for visuals in self._visuals.values():
            visuals.all_taken()
        is_whole = all(each.dtype.kind == "i" for each in numbered) and starts.dtype.kind == "i"
        ids = np.zeros((rule.coordinates, *tokens.shape), np.int64 if is_whole else np.float64)
        for row, each in enumerate(numbered):
            ids[:, row, valid[row]] = each
        ends = [each.max() + 1 if each.size else start for each, start in zip(numbered, starts, strict=True)]
        if rule.padding or (rule.audio and not self.has_grids):
            np.copyto(ids, 1, where=~valid)
        return ids, np.array(ends, ids.dtype)

    def _row(self, row: int, kinds: Array, valid: Array, start: Any) -> Array:
        rule = self._rule
        places = np.flatnonzero(valid)
        kinds = kinds[places]
        runs = _runs(kinds, bool(rule.audio))
        beyond = _seconds_of if rule.per_second is not None and self.has_grids else "past"
        if rule.grid == "canvas":
            crops = []
            for run in runs:
                if run.kind in _words:
                    where = _place(row, places[run.begin])
                    _, _, height, width, _ = self._visuals[run.kind].take(run.end - run.begin, where)
                    crops.append(Crop(run.begin, run.end, height, width))
            ids = number_canvas(kinds >= mark_kind, kinds == slice_mark_kind, crops, start)
            if ids.max(initial=0) > largest_position:
                raise refused(ValueError, beyond, "leads to a position beyond 2**53", "a smaller number")
            return ids
        if rule.grid == "plane":
            ids = np.concatenate([*placed([text(len(kinds), rule.coordinates)], start, beyond)], axis=1)
            for run in runs:
                if run.kind in _words:
                    index, _, height, width, count = self._visuals[run.kind].take(
                        run.end - run.begin, _place(row, places[run.begin])
                    )
                    # One more token may stand on each side of a grid.
                    first = run.begin + (run.end - run.begin - count) // 2
                    line, column = np.indices((height, width + 1)).reshape(2, -1)
                    ids[-3:, first : first + count] = column, line, np.full_like(line, index)
            return ids
        pieces = self._pieces(runs, kinds, row, places)
        return np.concatenate([np.zeros((3, 0), np.int64), *placed(pieces, start, beyond)], axis=1)

    def _pieces(self, runs: list[Run], kinds: Array, row: int, places: Array) -> Iterator[Piece]:
        is_video_with_audio = [
            bool((kinds[run.begin : run.end] == audio_kind).any()) and run.kind == video_kind for run in runs
        ]
        for number, run in enumerate(runs):
            count = run.end - run.begin
            if run.kind not in _words:
                shares = self._rule.audio == "together" and count > 1
                before, after = (
                    shares and 0 <= other < len(runs) and is_video_with_audio[other]
                    for other in (number + 1, number - 1)
                )
                yield _marked(text(count), before, after)
            elif is_video_with_audio[number]:
                yield self._with_audio(kinds[run.begin : run.end], _place(row, places[run.begin]))
            else:
                while count:
                    place = _place(row, places[run.end - count])
                    piece, taken = self._grid(run.kind, count, place)
                    yield piece
                    count -= taken

    def _grid(self, kind: int, room: int, place: str) -> tuple[Piece, int]:
        visuals = self._visuals[kind]
        index, time, height, width, count = visuals.take(room, place)
        if self._rule.grid == "lines":
            return lines(time, height, width), count
        return grid(visuals.times(index, time), height, width), count

    def _with_audio(self, kinds: Array, place: str) -> Piece:
        """A video and its audio, whose tokens alternate: each is numbered by itself, and the last one's kind goes on."""
        is_video = kinds == video_kind
        video, _ = self._grid(video_kind, int(is_video.sum()), place)
        audio = text(int((~is_video).sum()))
        offsets = np.empty((3, len(kinds)), video.offsets.dtype)
        offsets[:, is_video], offsets[:, ~is_video] = video.offsets, audio.offsets
        return Piece(offsets, video.length if is_video[-1] else audio.length)


def _marked(piece: Piece, before: bool, after: bool) -> Piece:
    """Text whose last two tokens, or first two, are at one position."""
    offsets = piece.offsets.copy()
    if after:
        offsets[:, 1:] -= 1
    if before:
        offsets[:, -1] -= 1
    return Piece(offsets, piece.length - before - after)


def _place(row: int, column: Any) -> str:
    return f"from row {row}, column {int(column)} on"


def _runs(kinds: Array, has_audio: bool) -> list[Run]:
    """Runs of one kind. Audio next to a video belongs to its run; otherwise, it is numbered as text is."""
    joined = np.where(kinds == audio_kind, video_kind, kinds) if has_audio else kinds
    bounds = [0, *(np.flatnonzero(np.diff(joined)) + 1).tolist(), len(kinds)]
    runs = [Run(int(joined[begin]), begin, end) for begin, end in itertools.pairwise(bounds) if end > begin]
    return [run if (kinds[run.begin : run.end] != audio_kind).any() else run._replace(kind=text_kind) for run in runs]


def kinds_of(model: Model, tokens: Array) -> Array:
    """The kind of each token, by the ids that a config.json has."""
    kinds = np.zeros(tokens.shape, np.int64)
    for kind, ids in _special_tokens(model):
        kinds[np.isin(tokens, ids)] = kind
    if marks := model.row.get("marks"):
        # The frames of a video have the tokens of images, between two marks.
        start, end = (_token(model.config, key) for key in marks)
        inside = np.cumsum(tokens == start, axis=-1) > np.cumsum(tokens == end, axis=-1)
        kinds[(kinds == image_kind) & inside] = video_kind
    return kinds


def _special_tokens(model: Model) -> Iterator[tuple[int, list[int]]]:
    names = {"image": image_kind, "video": video_kind} | ({"audio": audio_kind} if model.row.get("audio") else {})
    for name, kind in names.items():
        keys = [key for key in (f"{name}_token_id", f"{name}_token_index") if model.config.get(key) is not None]
        if keys or kind == image_kind:
            yield kind, [_token(model.config, [*keys, f"{name}_token_id"][0])]
    if model.row.get("grid") == "canvas":
        marks = ("image_start_id", "image_end_id", "slice_end_id", "newline_id")
        yield mark_kind, [_token(model.config, key) for key in marks]
        yield slice_mark_kind, [_token(model.config, "slice_start_id")]


def _token(config: Mapping[str, Any], key: str) -> int:
    if config.get(key) is None:
        expected, remedy = "the config.json of the model", "it says which tokens are images"
        raise refused(ValueError, "config", f"has no {key}", expected, remedy)
    return integer(key, config[key], 0)
