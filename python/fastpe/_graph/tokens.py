# SPDX-License-Identifier: BSD-3-Clause
"""Which tokens of a prompt are those of images, videos and audio, by the ids that a config.json has."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fastpe._arguments import integer
from fastpe._errors import refused
from fastpe._graph.arrays import Array
from fastpe._graph.model import Model

# Kinds of tokens. Marks are tokens around images: only the canvas of MiniCPM-V reads them.
text_kind, image_kind, video_kind, audio_kind, mark_kind, slice_mark_kind = range(6)
visual_words = {image_kind: "image", video_kind: "video"}


class Run(NamedTuple):
    """Neighbouring tokens of one kind, in one row of the batch."""

    kind: int
    begin: int
    end: int


class SpecialTokens:
    """The tokens of a model that are not text."""

    def __init__(self, model: Model) -> None:
        self._ids = [*_ids(model)]
        self._video_marks = [_token(model, key) for key in model.row.get("marks", ())]
        self.all = frozenset(token for _, tokens in self._ids for token in tokens)

    def kinds_of(self, tokens: Array) -> Array:
        """The kind of each token [B, L]."""
        kinds = np.zeros(tokens.shape, np.int64)
        for kind, ids in self._ids:
            for token in ids:
                kinds[tokens == token] = kind
        if self._video_marks:
            # The frames of a video have the tokens of images, between two marks.
            start, end = self._video_marks
            inside = np.cumsum(tokens == start, axis=-1) > np.cumsum(tokens == end, axis=-1)
            kinds[(kinds == image_kind) & inside] = video_kind
        return kinds


def runs_of(kinds: Array) -> list[Run]:
    """The runs of one kind in a row."""
    bounds = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
    return [Run(int(kinds[begin]), begin, end) for begin, end in itertools.pairwise(bounds) if end > begin]


def _ids(model: Model) -> Iterator[tuple[int, list[int]]]:
    names = {"image": image_kind, "video": video_kind} | ({"audio": audio_kind} if model.row.get("audio") else {})
    for name, kind in names.items():
        keys = [f"{name}_token_id", f"{name}_token_index"]
        key = next((key for key in keys if model.config._json.get(key) is not None), keys[0])
        if kind == image_kind or key in model.config._json or key in model.tokens:
            yield kind, [_token(model, key)]
    if model.row.get("grid") == "canvas":
        marks = ("image_start_id", "image_end_id", "slice_end_id", "newline_id")
        yield mark_kind, [_token(model, key) for key in marks]
        yield slice_mark_kind, [_token(model, "slice_start_id")]


def _token(model: Model, key: str) -> int:
    """The id that the config has, or else that of its class."""
    token = model.config._json.get(key, model.tokens.get(key))
    if token is None:
        expected, remedy = "the config.json of the model", "it says which tokens are images"
        raise refused(ValueError, "config", f"has no {key}", expected, remedy)
    return integer(model.config._place(key), token, 0)
