# SPDX-License-Identifier: BSD-3-Clause
"""What an exported model of text takes besides its tokens."""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fastpe._arguments import bools, choice, largest_position, names_keywords, shown
from fastpe._arrays import ArrayLike, WritableArray
from fastpe._config.file import Json
from fastpe._config.model import ModelConfig, model_of
from fastpe._errors import refused
from fastpe._graph.arrays import Array, integer_array
from fastpe._graph.counted import Counted, counted_by, rule_of
from fastpe._graph.model import Model, text_model
from fastpe._graph.numberings import numberings
from fastpe._graph.tokens import SpecialTokens, image_kind, video_kind
from fastpe._layouts.numbering import stored


@names_keywords
def text_inputs(
    config: Json | str | os.PathLike[str] | ModelConfig,
    input_ids: ArrayLike,
    *,
    attention_mask: ArrayLike | None = None,
    image_grid_thw: ArrayLike | None = None,
    video_grid_thw: ArrayLike | None = None,
    second_per_grid: ArrayLike | None = None,
    past: ArrayLike | None = None,
    rope_deltas: ArrayLike | None = None,
    first_position: int | None = None,
    text_row: Literal["first", "last"] | None = None,
    dtype: npt.DTypeLike | None = None,
    out: WritableArray | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Compute the position ids that an exported language model takes, for text by itself and among images and videos.

    Parameters
    ----------
    config : mapping, path or ModelConfig
        The config.json of the model, all of it. A `ModelConfig` is read once for all calls, as for one token after another.
    input_ids : array_like of int [B, L]
        The tokens. Each image and video has as many of them as the model makes of it.
    attention_mask : array_like of int or bool [B, L] or [B, S], optional
        0 for padding, on the left or the right, which is not counted. Of a longer mask, the last L columns are those of
        `input_ids`, and the columns before them are tokens that the model has had. Without a mask, every token counts.
    image_grid_thw, video_grid_thw : array_like of int [images, 3], [videos, 3], optional
        Times, heights and widths in patches, before patches are merged, in the order of the batch; ``target_sizes``
        [images, 2] for MiniCPM-V 4.7.
    second_per_grid : float or array_like [videos], optional
        The seconds between two times of each video, which Qwen2.5-VL and the Omni models require.
    past : int or array_like of int [B], optional
        How many tokens each row has had, without padding. A longer mask also says it.
    rope_deltas : array_like [B, 1] or [B], optional
        What an earlier call returned, if a sequence goes on.
    first_position : int, optional
        For a `model_type` that fastpe does not know, whose positions count the tokens that are not padding: that of the
        first one. It is 0, or ``padding_idx + 1`` for models that begin behind the position of padding.
    text_row : {"first", "last"}, optional
        Also give the positions of only the text, as another coordinate: first for graphs of Qwen3.5, last for those of
        openvino.genai.
    dtype : dtype, optional
        That of the position ids, such as a graph's int32 or float32; one that does not have an id is refused.
    out : ndarray, optional
        Where to write the position ids, instead of `dtype`.

    Returns
    -------
    dict of str to ndarray
        - ``"position_ids"``: int64 [B, L], or [coordinates, B, L] for models whose positions have several coordinates;
          float64 if times of Qwen3-Omni are fractions. `dtype` and `out` say otherwise.
        - ``"rope_deltas"`` [B, 1], for these models: the next position of a row, less the number of its tokens.
        - ``"visual_pos_masks"`` bool [B, L], for Qwen3-VL and others with deepstack: True for tokens of images and videos.

    Raises
    ------
    ValueError, TypeError
        For a grid that does not have the tokens of its image or video, arguments that the model does not have, a model whose
        positions are not known or that has none, and a position beyond 2**53.

    Notes
    -----
    Models that generate text count the tokens that are not padding, as ``attention_mask.cumsum(-1) - 1`` in
    transformers (generation/utils.py) does; padding is at position 1. Encoders such as BERT count all columns. Those
    such as RoBERTa count tokens other than padding from ``padding_idx + 1``, with padding at `padding_idx`. Which model
    has which rule is measured, by giving position ids to tiny models, or, where none can be made, that of ``generate``.
    Ids of several coordinates are those of ``get_rope_index`` in transformers 5.24, except that text continues after
    the largest coordinate of a video, as in the code of the models' authors.

    Examples
    --------
    >>> import fastpe
    >>> fastpe.text_inputs({"model_type": "llama"}, [[0, 5, 6], [7, 8, 9]], attention_mask=[[0, 1, 1], [1, 1, 1]])
    {'position_ids': array([[1, 0, 1],
           [0, 1, 2]])}
    >>> config = {"model_type": "qwen2_vl", "image_token_id": 9, "vision_config": {"spatial_merge_size": 2}}
    >>> inputs = fastpe.text_inputs(config, [[5, 6, 9, 9, 9, 9, 7]], image_grid_thw=[[1, 4, 4]])
    >>> inputs["position_ids"][:, 0]
    array([[0, 1, 2, 2, 2, 2, 4],
           [0, 1, 2, 2, 3, 3, 4],
           [0, 1, 2, 3, 2, 3, 4]])
    >>> fastpe.text_inputs(config, [[8]], past=7, rope_deltas=inputs["rope_deltas"])["position_ids"].ravel()
    array([5, 5, 5])
    """
    whole = model_of(config)
    reading = whole._keep(("text_inputs", first_position), lambda: _read(whole, first_position))
    others = (attention_mask, image_grid_thw, video_grid_thw, second_per_grid, text_row, dtype, out)
    if all(each is None for each in others):
        inputs = _next_tokens(reading, input_ids, past, rope_deltas)
        if inputs is not None:
            return inputs
    tokens = integer_array("input_ids", input_ids, (None, None), expected="[B, L]")
    valid, counted, columns = _counted(tokens.shape, attention_mask, past)
    if isinstance(reading, Counted):
        unused = {
            "image_grid_thw": image_grid_thw,
            "video_grid_thw": video_grid_thw,
            "second_per_grid": second_per_grid,
        }
        for name, value in {**unused, "rope_deltas": rope_deltas, "text_row": text_row}.items():
            if value is not None:
                found = "was given, but the positions of this model do not depend on it"
                raise refused(ValueError, name, found, remedy="leave it out")
        ids = reading.ids(tokens, valid, attention_mask is not None, counted, columns)
        reading.require_positions(ids)
        return {"position_ids": stored(ids, dtype, out)}
    goes_on = past is not None or counted.any()
    if goes_on and rope_deltas is None:
        found, remedy = "are missing", "pass those that the call for the earlier tokens returned"
        raise refused(ValueError, "rope_deltas", found, remedy=remedy)
    if rope_deltas is not None and not goes_on:
        remedy = "pass how many tokens each row has had, or an attention_mask of all tokens"
        raise refused(ValueError, "past", "is missing", remedy=remedy)
    model, special = reading
    numbering = numberings[model.row.get("grid", "whole")](model, image_grid_thw, video_grid_thw, second_per_grid)
    number_kinds = "iuf" if model.row.get("fractional") else "iu"
    deltas = _per_row("rope_deltas", 0 if rope_deltas is None else rope_deltas, len(tokens), number_kinds)
    starts = counted + deltas
    if not (starts >= 0).all():
        raise refused(ValueError, "rope_deltas", f"is {shown(deltas.tolist())}", "numbers of at least -past")
    if numbering.counts_through and counted.any() and numbering.has_grids:
        found = "is given, but the images of this model are numbered from the start of a batch"
        raise refused(ValueError, "past", found, remedy="give all tokens of the sequence, and slice its position ids")
    kinds = special.kinds_of(tokens)
    ids, ends = numbering.ids(kinds, valid, starts)
    if text_row is not None:
        of_text = Counted("valid", 0).ids(tokens, valid, False, counted, columns)[None]
        is_first = choice("text_row", text_row, ("first", "last")) == "first"
        ids = np.concatenate([of_text, ids] if is_first else [ids, of_text])
    inputs = {"position_ids": stored(ids, dtype, out), "rope_deltas": (ends - counted - valid.sum(axis=1))[:, None]}
    if model.row.get("visual_mask"):
        inputs["visual_pos_masks"] = (kinds == image_kind) | (kinds == video_kind)
    return inputs


_Among = tuple[Model, SpecialTokens]
_most_next_tokens = 1024


def _read(config: ModelConfig, first_position: int | None) -> Counted | _Among:
    """What a config says of the ids of its text."""
    for level in config._to_text(must_end=False):
        model = text_model(level)
        if model is not None:
            if first_position not in (None, 0):
                found = f"is {shown(first_position)}, but the first token of {level.model_type!r} is at 0"
                raise refused(ValueError, "first_position", found, remedy="leave it out")
            if per_second := model.row.get("per_second"):
                model.number(per_second)
            return model, SpecialTokens(model)
        if rule_of(level).rule or "vlm_config" not in level._json:
            break
    return counted_by(level, first_position)


def _next_tokens(reading: Counted | _Among, tokens: Any, past: Any, deltas: Any) -> dict[str, Array] | None:
    """The inputs of tokens of text that follow others; None where there is more to do, or something to refuse."""
    is_counted = isinstance(reading, Counted)
    if type(tokens) is not np.ndarray or tokens.ndim != 2 or tokens.dtype.kind not in "iu":
        return None
    batch, length = tokens.shape
    if not 0 < tokens.size <= _most_next_tokens or is_counted != (deltas is None):
        return None
    counted, deltas = _column(past, batch), 0 if is_counted else _column(deltas, batch)
    if counted is None or deltas is None:
        return None
    if isinstance(reading, Counted):
        if reading.rule == "padding":
            return None
        starts, coordinates = counted + reading.first, 1
    else:
        model, special = reading
        if model.row.get("grid") == "plane" or not special.all.isdisjoint(tokens.ravel().tolist()):
            return None
        starts, coordinates = counted + deltas, 3
    lowest, largest = (_extremes(each) for each in (counted, starts))
    if lowest[0] < 0 or largest[0] < 0 or largest[1] + length - 1 > largest_position:
        return None
    ids = np.empty((coordinates, batch, length), np.int64)
    np.add(starts, np.arange(length), out=ids)
    if isinstance(reading, Counted):
        return {"position_ids": ids[0]}
    inputs: dict[str, Array] = {"position_ids": ids, "rope_deltas": np.empty((batch, 1), np.int64)}
    inputs["rope_deltas"][...] = deltas
    if model.row.get("visual_mask"):
        inputs["visual_pos_masks"] = np.zeros((batch, length), np.bool_)
    return inputs


def _extremes(value: Any) -> tuple[int, int]:
    """The least and the largest number."""
    if type(value) is int:
        return value, value
    if value.size > 32:
        return value.min().item(), value.max().item()
    numbers = value.ravel().tolist()  # a few are faster so
    return min(numbers), max(numbers)


def _column(value: Any, batch: int) -> Any:
    """An int as it is, int64 numbers as [B, 1], and None for what has to be looked at."""
    if type(value) is int:
        return value if abs(value) <= largest_position else None
    if type(value) is not np.ndarray or value.dtype != np.int64 or value.size != batch or value.ndim > 2:
        return None
    return value.reshape(batch, 1)


def _counted(shape: tuple[int, ...], attention_mask: Any, past: Any) -> tuple[Array, Array, Array]:
    """Which tokens count, [B, L]; how many each row has had, [B]; and these with padding."""
    batch, length = shape
    before: Any = 0
    columns = 0
    valid = np.ones(shape, bool)
    if attention_mask is not None:
        mask = bools("attention_mask", attention_mask)
        if mask.ndim != 2 or mask.shape[0] != batch or mask.shape[1] < length:
            expected = f"[{batch}, {length}], or more columns for tokens that the model has had"
            raise refused(ValueError, "attention_mask", f"has shape {list(mask.shape)}", expected)
        columns = mask.shape[1] - length
        before, valid = mask[:, :columns].sum(axis=1), mask[:, columns:]
        if columns and past is not None:
            found = f"is given, and so is an attention_mask of {columns} more tokens than input_ids"
            raise refused(ValueError, "past", found, "one of them", "leave past out: the mask says it")
    counted = _per_row("past", before if past is None else past, batch)
    if not (counted >= 0).all():
        raise refused(ValueError, "past", f"is {shown(counted.tolist())}", "counts of tokens")
    return valid, counted, np.full(batch, columns) if columns else counted


def _per_row(name: str, value: Any, count: int, kinds: str = "iu") -> Array:
    """A number for each row of the batch."""
    expected = f"[{count}], one per row"
    array = integer_array(name, value, (), (count,), (count, 1), expected=expected, kinds=kinds)
    if not np.all(np.abs(array.astype(np.float64)) <= largest_position):
        raise refused(ValueError, name, f"is {shown(array.tolist())}", "numbers up to 2**53")
    return np.broadcast_to(array.reshape(-1), count)
