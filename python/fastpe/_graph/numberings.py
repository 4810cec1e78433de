# SPDX-License-Identifier: BSD-3-Clause
"""How the tokens of a batch of prompts are numbered, text among images, videos and audio: one class for each way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from fastpe._arguments import integers, largest_position, shown
from fastpe._config.file import wrong
from fastpe._errors import refused
from fastpe._graph.arrays import Array, grids_of, integer_array
from fastpe._graph.canvas import Crop, number_canvas
from fastpe._graph.model import Model, is_text_alone
from fastpe._graph.tokens import (
    Run,
    audio_kind,
    image_kind,
    mark_kind,
    runs_of,
    slice_mark_kind,
    text_kind,
    video_kind,
    visual_words,
)
from fastpe._layouts.numbering import Piece, grid, lines, placed, text, times_of

_seconds_of = "second_per_grid"
_merges_of_modes = {"16x": 4, "4x": 2}
_grid_names = {image_kind: "image_grid_thw", video_kind: "video_grid_thw"}


class Cells(NamedTuple):
    """A grid of tokens, or a frame of one: which grid of its argument it is, and its lengths."""

    grid_number: int
    times: int
    height: int
    width: int


class Row(NamedTuple):
    """The tokens of a prompt that are not padding."""

    number: int
    kinds: Array
    columns: Array  # of the batch

    def place(self, begin: int) -> str:
        """Where tokens begin, for errors."""
        return f"from row {self.number}, column {int(self.columns[begin])} on"


class Whole:
    """An image or a video begins where the text in front of it ends, and text goes on behind its largest coordinate."""

    coordinates = 3
    merge_name = "spatial_merge_size"
    line_ends = 0  # tokens behind each line of a grid
    of_frame = ""  # what errors say of a grid that is taken in parts
    counts_through = False  # whether images are numbered from the start of a batch

    def __init__(self, model: Model, images: Any, videos: Any, seconds: Any) -> None:
        self.has_grids = any(each is not None and np.size(each) for each in (images, videos))
        self.merge = self._merge(model) if self.has_grids else 1
        in_time = model.row.get("temporal_merge") if self.has_grids else None
        self._temporal_merge = model.integer(in_time) if in_time else 1
        per_second = model.row.get("per_second")
        self._per_second = model.number(per_second) if per_second else None
        self._has_fractions = model.row.get("fractional", False)
        self._adjacent = model.row.get("adjacent", False)  # whether images need no text between them
        self.padding = model.row.get("padding", 0)
        self._grids = {image_kind: self._checked(image_kind, images), video_kind: self._checked(video_kind, videos)}
        self._seconds = self._checked_seconds(seconds)
        self._left = {kind: self._cells(kind) for kind in self._grids}

    def ids(self, kinds: Array, valid: Array, starts: Array) -> tuple[Array, Array]:
        """The ids [coordinates, B, L] of rows that begin at `starts`, and where each row goes on."""
        numbered = []
        for row, columns in enumerate(map(np.flatnonzero, valid)):
            numbered.append(self.number(Row(row, kinds[row][columns], columns), starts[row].item()))
        for kind, left in self._left.items():
            if (cells := next(left, None)) is not None:
                raise self._no_fit(kind, cells, f"no grid, since there are no more {visual_words[kind]} tokens")
        is_whole = all(each.dtype.kind == "i" for each in numbered) and starts.dtype.kind == "i"
        ids = np.zeros((self.coordinates, *kinds.shape), np.int64 if is_whole else np.float64)
        for row, each in enumerate(numbered):
            ids[:, row, valid[row]] = each
        if self.padding:
            np.copyto(ids, self.padding, where=~valid)
        ends = [each.max() + 1 if each.size else start for each, start in zip(numbered, starts, strict=True)]
        return ids, np.array(ends, ids.dtype)

    def take(self, kind: int, room: int, place: str) -> tuple[Cells, int]:
        """The next grid of this kind, and how many tokens it has, of the `room` that there is."""
        cells, word = next(self._left[kind], None), visual_words[kind]
        if cells is None:
            name = _grid_names[kind]
            raise refused(ValueError, name, f"has no grid for the {word} tokens {place}", f"one for each {word}")
        if not self.fit(self._count(cells), room):
            raise self._no_fit(kind, cells, f"{room}, as there are {word} tokens {place}")
        return cells, self._count(cells)

    def fit(self, count: int, room: int) -> bool:
        """Whether neighbouring tokens are those of a grid that has so many, or, where images follow each other, begin so."""
        return count <= room if self._adjacent else count == room

    def number(self, row: Row, start: Any) -> Array:
        """The ids [coordinates, n] of a row."""
        placed_pieces = placed(self._pieces(row), start, self._beyond())
        return np.concatenate([np.zeros((self.coordinates, 0), np.int64), *placed_pieces], axis=1)

    def _merge(self, model: Model) -> int:
        inner = [key for key in model.defaults if key in model.config._json]
        if "vision_config" not in model.config._json and (inner or is_text_alone(model.config)):
            found = "is a part of one, with no vision_config"
            raise refused(ValueError, "config", found, remedy="pass the whole config.json")
        return model.integer(self.merge_name)

    def _checked(self, kind: int, given: Any) -> list[list[int]]:
        given = np.zeros((0, 3), np.int64) if given is None or np.size(given) == 0 else given
        columns = self._columns(given)
        return grids_of(_grid_names[kind], given, self.merge, self.merge_name, columns=columns).tolist()  # type: ignore[no-any-return]

    def _columns(self, given: Any) -> int:
        return 3

    def _checked_seconds(self, seconds: Any) -> Any:
        count = len(self._grids[video_kind])
        if self._per_second is None:
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

    def _cells(self, kind: int) -> Iterator[Cells]:
        """What the runs of tokens take, one after the other."""
        for index, lengths in enumerate(self._grids[kind]):
            time = lengths[0] if len(lengths) == 3 else 1
            height, width = (length // self.merge for length in lengths[-2:])
            yield Cells(index, time // self._temporal_merge if kind == video_kind else time, height, width)

    def _count(self, cells: Cells) -> int:
        return cells.times * cells.height * (cells.width + self.line_ends)

    def _no_fit(self, kind: int, cells: Cells, expected: str) -> Exception:
        name, lengths = f"{_grid_names[kind]}[{cells.grid_number}]", tuple(self._grids[kind][cells.grid_number])
        made = f"{self._count(cells)} tokens{self.of_frame if kind == video_kind else ''}"
        found = f"is {lengths}, which makes {made} with {self.merge_name} {self.merge}"
        return refused(ValueError, name, found, expected)

    def _beyond(self) -> str:
        """The argument that leads to a position which is too large."""
        return _seconds_of if self._per_second is not None and self.has_grids else "past"

    def _pieces(self, row: Row) -> Iterator[Piece]:
        for run in runs_of(row.kinds):
            yield from self._visual(row, run) if run.kind in visual_words else [text(run.end - run.begin)]

    def _visual(self, row: Row, run: Run) -> Iterator[Piece]:
        begin = run.begin
        while begin < run.end:
            cells, count = self.take(run.kind, run.end - begin, row.place(begin))
            yield self._piece(run.kind, cells)
            begin += count

    def _piece(self, kind: int, cells: Cells) -> Piece:
        return grid(self._times(kind, cells), cells.height, cells.width)

    def _times(self, kind: int, cells: Cells) -> Array:
        """How far the frames of a grid are from its start."""
        if self._seconds is None or kind != video_kind:
            return np.arange(cells.times)
        with np.errstate(over="ignore"):
            factors = self._factors(np.float32(self._seconds[cells.grid_number]), np.float32(self._per_second))
        times = times_of(cells.times, *factors, name=f"{_seconds_of}[{cells.grid_number}]")
        is_whole = not self._has_fractions or (times == np.trunc(times)).all()
        return times.astype(np.int64 if is_whole else np.float64)

    def _factors(self, seconds: Any, per_second: Any) -> list[Any]:
        """What times are multiplied by in float32, one after the other: in the order of each model's code."""
        return [seconds * per_second]


class Frames(Whole):
    """Each frame of a video is a grid of its own among text."""

    of_frame = " in each frame"

    def _cells(self, kind: int) -> Iterator[Cells]:
        for cells in super()._cells(kind):
            if kind == video_kind:
                for _ in range(cells.times):
                    yield cells._replace(times=1)
            else:
                yield cells


class Lines(Whole):
    """Each line has one more token at its end, and frames are as far apart as they are wide."""

    line_ends = 1

    def _piece(self, kind: int, cells: Cells) -> Piece:
        return lines(cells.times, cells.height, cells.width)


class Sounds(Whole):
    """Audio is numbered like text. In a video, its tokens and those of the video alternate, and each kind counts by itself."""

    def __init__(self, model: Model, images: Any, videos: Any, seconds: Any) -> None:
        super().__init__(model, images, videos, seconds)
        # Whether the two tokens at each end of a video with audio are at one position.
        self._ends_are_together = model.row["audio"] == "together"
        self.padding = self.padding or int(not self.has_grids)

    def _factors(self, seconds: Any, per_second: Any) -> list[Any]:
        return [seconds, per_second]

    def _pieces(self, row: Row) -> Iterator[Piece]:
        joined = runs_of(np.where(row.kinds == audio_kind, video_kind, row.kinds))
        has_audio = [bool((row.kinds[run.begin : run.end] == audio_kind).any()) for run in joined]
        is_audio = [bool((row.kinds[run.begin : run.end] == audio_kind).all()) for run in joined]
        runs = [run._replace(kind=text_kind) if alone else run for run, alone in zip(joined, is_audio, strict=True)]
        is_mixed = [some and not alone for some, alone in zip(has_audio, is_audio, strict=True)]
        for number, run in enumerate(runs):
            count = run.end - run.begin
            if is_mixed[number]:
                yield self._with_audio(row.kinds[run.begin : run.end], row.place(run.begin))
            elif run.kind in visual_words:
                yield from self._visual(row, run)
            else:
                shares = self._ends_are_together and count > 1
                follows, leads = (
                    shares and number > 0 and is_mixed[number - 1],
                    shares and any(is_mixed[number + 1 :][:1]),
                )
                yield _marked(text(count), follows=follows, leads=leads)

    def _with_audio(self, kinds: Array, place: str) -> Piece:
        is_video = kinds == video_kind
        video = self._piece(video_kind, self.take(video_kind, int(is_video.sum()), place)[0])
        audio = text(int((~is_video).sum()))
        offsets = np.empty((3, len(kinds)), video.offsets.dtype)
        offsets[:, is_video], offsets[:, ~is_video] = video.offsets, audio.offsets
        # Text goes on behind the last token, whichever kind it has.
        return Piece(offsets, video.length if is_video[-1] else audio.length)


def _marked(piece: Piece, *, follows: bool, leads: bool) -> Piece:
    """Text that follows a video with audio, or leads to one, whose two tokens next to it are at one position."""
    offsets = piece.offsets.copy()
    if follows:
        offsets[:, 1:] -= 1
    if leads:
        offsets[:, -1] -= 1
    return Piece(offsets, piece.length - follows - leads)


class Plane(Whole):
    """The sequence counts on through an image, whose cells have coordinates from 0 and the number of the image."""

    line_ends = 1
    counts_through = True

    def __init__(self, model: Model, images: Any, videos: Any, seconds: Any) -> None:
        self.coordinates = _sections(model.config._json)
        super().__init__(model, images, videos, seconds)

    def fit(self, count: int, room: int) -> bool:
        """One more token may stand on each side of a grid."""
        return room in (count, count + 2)

    def number(self, row: Row, start: Any) -> Array:
        """The ids [coordinates, n]: the last three are columns, lines and images."""
        sequence = [text(len(row.kinds), self.coordinates)]
        ids = np.concatenate([*placed(sequence, start, self._beyond())], axis=1)
        for run in runs_of(row.kinds):
            if run.kind in visual_words:
                room = run.end - run.begin
                cells, count = self.take(run.kind, room, row.place(run.begin))
                first = run.begin + (room - count) // 2
                line, column = np.indices((cells.height, cells.width + 1)).reshape(2, -1)
                ids[-3:, first : first + count] = column, line, np.full_like(line, cells.grid_number)
        return ids


def _sections(config: Mapping[str, Any]) -> int:
    """How many sections HunYuan-VL divides a head into: 4 in published files."""
    for level in (config.get("text_config"), config):
        for outer in ("rope_parameters", "rope_scaling"):
            rope = level.get(outer) if isinstance(level, Mapping) else None
            for key in ("mrope_section", "xdrope_section"):
                sections = rope.get(key) if isinstance(rope, Mapping) else None
                if sections is not None:
                    if len(integers(key, sections, "(16, 16, 16, 16)")) < 3:
                        raise refused(ValueError, key, f"is {shown(sections)}", "at least 3 sections")
                    return len(sections)
    return 4


class Canvas(Whole):
    """Slices of an image share the coordinates of the whole image."""

    merge_name = "downsample_mode"

    def number(self, row: Row, start: Any) -> Array:
        """The ids [3, n] by the canvas of each image."""
        crops = []
        for run in runs_of(row.kinds):
            if run.kind in visual_words:
                cells, _ = self.take(run.kind, run.end - run.begin, row.place(run.begin))
                crops.append(Crop(run.begin, run.end, cells.height, cells.width))
        ids = number_canvas(row.kinds >= mark_kind, row.kinds == slice_mark_kind, crops, start)
        if ids.max(initial=0) > largest_position:
            raise refused(ValueError, self._beyond(), "leads to a position beyond 2**53", "a smaller number")
        return ids

    def _merge(self, model: Model) -> int:
        mode, path = model.value(self.merge_name)
        if mode not in _merges_of_modes:
            raise wrong(path, f"is {shown(mode)}", " or ".join(_merges_of_modes))
        return _merges_of_modes[mode]

    def _columns(self, given: Any) -> int:
        return 2 if np.ndim(given) == 2 and np.shape(given)[1] == 2 else 3


numberings: Mapping[str, type[Whole]] = {
    "whole": Whole,
    "frames": Frames,
    "lines": Lines,
    "plane": Plane,
    "canvas": Canvas,
    "sounds": Sounds,
}
