# SPDX-License-Identifier: BSD-3-Clause
"""What an exported model of text takes besides its tokens."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe._arguments import bools, largest_position, names_keywords, shown
from fastpe._config.file import Json, load
from fastpe._config.tables import table
from fastpe._errors import refused
from fastpe._graph.model import Array, integer_array, text_model
from fastpe._graph.numberings import numberings
from fastpe._graph.tokens import SpecialTokens
from fastpe._layouts.numbering import stored


@names_keywords
def text_inputs(
    config: Json | str | os.PathLike[str],
    input_ids: npt.ArrayLike,
    *,
    attention_mask: npt.ArrayLike | None = None,
    image_grid_thw: npt.ArrayLike | None = None,
    video_grid_thw: npt.ArrayLike | None = None,
    second_per_grid: npt.ArrayLike | None = None,
    past: npt.ArrayLike | None = None,
    rope_deltas: npt.ArrayLike | None = None,
    dtype: npt.DTypeLike | None = None,
    out: npt.NDArray[Any] | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Compute the position ids that an exported language model takes, for text alone and among images and videos.

    Parameters
    ----------
    config : mapping or path
        The config.json of the model, all of it.
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

    Raises
    ------
    ValueError, TypeError
        For a grid that does not have the tokens of its image or video, arguments that the model does not have, a config of a
        model whose positions are counted otherwise, and a position beyond 2**53.

    Notes
    -----
    Positions count the tokens that are not padding, as ``attention_mask.cumsum(-1) - 1`` in transformers
    (generation/utils.py) does; where they are [B, L], padding is at position 1. Those of several coordinates are those
    of ``get_rope_index`` in transformers 5.24, except that text continues after the largest coordinate of a video, as
    in the code of the models' authors.

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
    model = text_model(config)
    tokens = integer_array("input_ids", input_ids, (None, None), expected="[B, L]")
    valid, counted = _counted(tokens.shape, attention_mask, past)
    if model is None:
        visual = {
            "image_grid_thw": image_grid_thw,
            "video_grid_thw": video_grid_thw,
            "second_per_grid": second_per_grid,
        }
        for name, value in {**visual, "rope_deltas": rope_deltas}.items():
            if value is not None:
                found = "was given, but the positions of this model do not depend on it"
                raise refused(ValueError, name, found, remedy="leave it out")
        _check_counts_tokens(load(config))
        ids = np.cumsum(valid, axis=1) - 1 + counted[:, None]
        if ids.max(initial=0) > largest_position:
            raise refused(ValueError, "past", "leads to a position beyond 2**53", "smaller numbers")
        return {"position_ids": stored(np.where(valid, ids, 1), dtype, out)}
    goes_on = past is not None or counted.any()
    if goes_on and rope_deltas is None:
        found, remedy = "are missing", "pass those that the call for the earlier tokens returned"
        raise refused(ValueError, "rope_deltas", found, remedy=remedy)
    if rope_deltas is not None and not goes_on:
        remedy = "pass how many tokens each row has had, or an attention_mask of all tokens"
        raise refused(ValueError, "past", "is missing", remedy=remedy)
    numbering = numberings[model.row.get("grid", "whole")](model, image_grid_thw, video_grid_thw, second_per_grid)
    kinds = "iuf" if model.row.get("fractional") else "iu"
    deltas = _per_row("rope_deltas", 0 if rope_deltas is None else rope_deltas, len(tokens), kinds)
    starts = counted + deltas
    if not (starts >= 0).all():
        raise refused(ValueError, "rope_deltas", f"is {shown(deltas.tolist())}", "numbers of at least -past")
    if numbering.counts_through and counted.any() and numbering.has_grids:
        found = "is given, but the images of this model are numbered from the start of a batch"
        raise refused(ValueError, "past", found, remedy="give all tokens of the sequence, and slice its position ids")
    ids, ends = numbering.ids(SpecialTokens(model).kinds_of(tokens), valid, starts)
    return {"position_ids": stored(ids, dtype, out), "rope_deltas": (ends - counted - valid.sum(axis=1))[:, None]}


def _counted(shape: tuple[int, ...], attention_mask: Any, past: Any) -> tuple[Array, Array]:
    """Which tokens count, [B, L], and how many each row has had, [B]."""
    batch, length = shape
    before: Any = 0
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
    return valid, counted


def _per_row(name: str, value: Any, count: int, kinds: str = "iu") -> Array:
    """A number for each row of the batch."""
    expected = f"[{count}], one per row"
    array = integer_array(name, value, (), (count,), (count, 1), expected=expected, kinds=kinds)
    if not np.all(np.abs(array.astype(np.float64)) <= largest_position):
        raise refused(ValueError, name, f"is {shown(array.tolist())}", "numbers up to 2**53")
    return np.broadcast_to(array.reshape(-1), count)


def _check_counts_tokens(config: Json) -> None:
    """Refuse models whose ids would be wrong: they begin elsewhere, or have several coordinates."""
    levels = [config, *(config[name] for name in table()["text_parts"] if isinstance(config.get(name), Mapping))]
    for level in levels:
        rope = {**(level.get("rope_scaling") or {}), **(level.get("rope_parameters") or {})}
        if "mrope_section" in rope or "mrope_section" in level:
            found = f"has the model_type {shown(level.get('model_type'))}, whose positions have several coordinates"
            remedy = "number its tokens as the model does, such as by rotary_layouts[NAME].positions"
            raise refused(ValueError, "config", found, "a model that fastpe knows", remedy)
    for level in levels:
        begins = table()["learned"].get(level.get("model_type"), "offset=0")
        if begins != "offset=0":
            found = f"has the model_type {level['model_type']!r}, whose positions count otherwise: {begins}"
            raise refused(ValueError, "config", found, remedy="its exported graph computes them, or count them so")
