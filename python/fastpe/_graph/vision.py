# SPDX-License-Identifier: BSD-3-Clause
"""What the exported encoder of images takes besides their patches."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe._arguments import integers, names_keywords, shown
from fastpe._arrays import ArrayLike, WritableArray
from fastpe._config.file import Json, path_text, wrong
from fastpe._config.model import ModelConfig, model_of
from fastpe._errors import refused
from fastpe._graph.arrays import Array, boundaries, delivered, grids_of, integer_array, require_int32
from fastpe._graph.model import Model, encoder
from fastpe._grid.resize import resize_taps
from fastpe._layouts.numbering import blocks

_most_patches = 65_536  # of a frame
_meanings = {
    "grid_thw": "the (time, height, width) of each image, in patches",
    "target_sizes": "the (height, width) of each image, in patches",
    "merge_sizes": "how many patches of each image are merged along a side",
}


@names_keywords
def vision_inputs(
    config: Json | str | os.PathLike[str] | ModelConfig,
    *,
    grid_thw: ArrayLike | None = None,
    target_sizes: ArrayLike | None = None,
    merge_sizes: ArrayLike | None = None,
    dtype: npt.DTypeLike | None = None,
    out: Mapping[str, WritableArray] | None = None,
) -> dict[str, Any]:
    """Compute what the exported vision encoder of a model takes besides patches, by the names of its inputs.

    Parameters
    ----------
    config : mapping, path or ModelConfig
        The config.json of the model, or its ``vision_config``.
    grid_thw : array_like of int [images, 3]
        Times, heights and widths in patches, of images and videos; in tokens of text for Inkling 2, as its processor has it.
    target_sizes : array_like of int [images, 2]
        Heights and widths in patches instead, for MiniCPM, Idefics, SmolVLM and Phi-4-multimodal.
    merge_sizes : array_like of int [images]
        How many patches along each side become one token, for VideoLLaMA 3, which has them per image.
    dtype : dtype, optional
        That of arrays of integers, such as a graph's int32; one that does not have a value is refused.
    out : mapping of str to ndarray, optional
        Where to write inputs of these names, in the dtypes of the arrays.

    Returns
    -------
    dict of str to ndarray, int or tuple
        Those of the following that the model has. Indices are int64, boundaries int32.

        - ``"position_ids"`` [patches, 2], or [patches, 3] with the time; [patches] for packed images, which are rows of the
          learned grid; [images, most patches] for padded ones, with 0 for padding;
        - ``"patch_attention_mask"`` bool [images, height, width], for Idefics, SmolVLM and Phi-4-multimodal;
        - ``"cu_seqlens"`` [segments + 1], ``"max_seqlen"``: where frames or clips begin, and the longest one;
        - ``"window_index"``, ``"cu_window_seqlens"``, ``"max_window_seqlen"``: the order of windows, and where they begin;
        - ``"interp_indices"``, ``"interp_weights"`` [patches, 4 or 16]: rows of the learned grid, and float32 weights;
        - ``"frame_index"``, ``"temporal_merge_index"`` for Kimi K2.5, and ``"pixel_shuffle_index"`` for Muse;
        - ``"patch_index"`` for Inkling 2: the places of patches behind the class token of each image, which has position 0
          where patches have those of `position_ids` + 1.

    Raises
    ------
    ValueError, TypeError
        For a model that is not known, and grids that it cannot divide.

    Notes
    -----
    The names and integers are those of ``precompute_export_inputs`` in transformers 5.24 (exporters/utils.py,
    vision_utils.py), or those of the models' own code (modeling_idefics2.py, modeling_inkling2.py; for MiniCPM-V up to 4.5
    and MiniCPM-o openbmb's modeling_navit_siglip.py). For Muse, the learned grid is resized as the model itself does it, by
    (width, height).

    Examples
    --------
    >>> import fastpe
    >>> config = {"model_type": "qwen2_vl", "vision_config": {"spatial_merge_size": 2}}
    >>> inputs = fastpe.vision_inputs(config, grid_thw=[[1, 4, 4]])
    >>> inputs["position_ids"].T
    array([[0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3],
           [0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3]])
    >>> inputs["cu_seqlens"], inputs["max_seqlen"]
    (array([ 0, 16], dtype=int32), 16)
    """
    whole = model_of(config)
    model = whole._keep("vision_inputs", lambda: encoder("vision", whole))
    given = {"grid_thw": grid_thw, "target_sizes": target_sizes, "merge_sizes": merge_sizes}
    wanted = ["target_sizes"] if "fractions" in model.row else ["grid_thw"]
    wanted += ["merge_sizes"] * (model.row.get("merge") == "merge_sizes")
    for name, value in given.items():
        if value is None and name in wanted:
            raise refused(TypeError, name, "is missing", f"{_meanings[name]}, for model {model.name!r}")
        if value is not None and name not in wanted:
            expected = f"only {' and '.join(wanted)} for model {model.name!r}"
            raise refused(ValueError, name, "was given", expected, "leave it out")
    if "fractions" in model.row:
        return delivered(_of_sizes(model, target_sizes), dtype, out)
    return delivered(_of_grids(model, grid_thw, merge_sizes), dtype, out)


def _of_sizes(model: Model, target_sizes: Any) -> dict[str, Any]:
    """Images that have a grid of their own each, without frames, and whose patches are rows of a learned grid."""
    window = _window(model, 1) if "windows" in model.row else 1
    sizes = grids_of("target_sizes", target_sizes, 1, "", columns=2)
    require_int32("target_sizes", map(math.prod, sizes.tolist()))
    side, fractions = _side(model), model.row["fractions"]
    rows = [_cells(fractions, h, side)[:, None] * side + _cells(fractions, w, side) for h, w in sizes.tolist()]
    if "padded" in model.row:
        return _padded(rows, sizes, as_grid=model.row["padded"] == "grid")
    inputs: dict[str, Any] = {"position_ids": _joined([each.ravel() for each in rows])}
    inputs |= _windows(np.insert(sizes, 0, 1, axis=1), window, 1)
    if len(sizes) and (sizes == sizes[0]).all():
        inputs["merged_shape"] = (int(sizes[0, 0]) // window, int(sizes[0, 1]) // window)
    return {**inputs, "max_seqlen": int(sizes.prod(axis=1).max(initial=0))}


def _padded(rows: list[Array], sizes: Array, *, as_grid: bool) -> dict[str, Any]:
    """Images side by side, in a corner of the largest height and width, or one patch after the other."""
    if as_grid:
        height, width = sizes.max(axis=0, initial=0).tolist()
        ids, valid = np.zeros((len(rows), height, width), np.int64), np.zeros((len(rows), height, width), np.bool_)
        for image, each in enumerate(rows):
            ids[image, : each.shape[0], : each.shape[1]] = each
            valid[image, : each.shape[0], : each.shape[1]] = True
        return {"position_ids": ids.reshape(len(rows), height * width), "patch_attention_mask": valid}
    ids = np.zeros((len(rows), max((each.size for each in rows), default=0)), np.int64)
    for image, each in enumerate(rows):
        ids[image, : each.size] = each.ravel()
    return {"position_ids": ids}


def _of_grids(model: Model, grid_thw: Any, merge_sizes: Any) -> dict[str, Any]:
    row, key = model.row, model.row.get("merge")
    merge: Any = 1 if key is None else model.integer(key) if merge_sizes is None else None
    if merge is None:
        count = len(integer_array("grid_thw", grid_thw, (None, 3), expected="rows of (time, height, width)"))
        merge = integer_array("merge_sizes", merge_sizes, (count,), expected=f"[{count}], one per image")
        if (merge < 1).any():
            raise refused(ValueError, "merge_sizes", f"is {shown(merge.tolist())}", "numbers of at least 1")
    grids = grids_of("grid_thw", grid_thw, 1 if row.get("in_tokens") else merge, key or "")
    if row.get("in_tokens"):  # of text, each of which is a block of patches
        grids = grids * (1, merge, merge)
    _refuse_pixels(model, grids)
    require_int32("grid_thw", map(math.prod, grids.tolist()))
    of_each = [*zip(map(tuple, grids.tolist()), np.broadcast_to(merge, len(grids)).tolist(), strict=True)]
    of_kinds = {kind: blocks(*kind, with_time=row.get("time", False)) for kind in {*of_each}}
    positions = [of_kinds[kind] for kind in of_each]
    clips = grids.prod(axis=1)
    segments = clips if row.get("per_clip") else np.repeat(grids[:, 1] * grids[:, 2], grids[:, 0])
    segments = segments + row.get("class_tokens", 0)
    inputs: dict[str, Any] = {
        "position_ids": _joined(positions, 3 if row.get("time") else 2),
        "cu_seqlens": boundaries(segments),
        "max_seqlen": int(segments.max(initial=0)),
    }
    if "windows" in row:
        inputs |= _windows(grids, _window(model, merge), merge)
        lengths = np.diff(inputs["cu_window_seqlens"])
        inputs["max_window_seqlen"] = int(lengths.max(initial=0))
    if "resized_as" in row:
        inputs["interp_indices"], inputs["interp_weights"] = _resized(model, grids, merge)
    if "class_tokens" in row:
        inputs["patch_index"] = np.arange(clips.sum()) + np.repeat(np.arange(1, len(clips) + 1), clips)
    if row.get("frames"):
        # A table of times has a row of zeros in front, for images.
        frames = [np.repeat(np.arange(time) + (time > 1), height * width) for time, height, width in grids.tolist()]
        inputs["frame_index"] = _joined(frames)
    if "temporal_merge" in row:
        height, width = _pair(model, row["temporal_merge"])
        grids_of("grid_thw", grids, [[height, width]], row["temporal_merge"])
        inputs["temporal_merge_index"] = _temporal_merge(grids, height, width)
    if "pixel_shuffle" in row:
        size = model.integer(row["pixel_shuffle"])
        grids_of("grid_thw", grids, size, row["pixel_shuffle"])
        orders = [_block_order(height, width, size) for _, height, width in grids.tolist()]
        starts = np.cumsum(clips) - clips
        indices = [
            (first + np.arange(time)[:, None] * len(order) + order).ravel()
            for first, time, order in zip(starts.tolist(), grids[:, 0].tolist(), orders, strict=True)
        ]
        inputs["pixel_shuffle_index"] = _joined(indices)
    return inputs


def _refuse_pixels(model: Model, grids: Array) -> None:
    """Refuse lengths that no processor of the model makes: they were counted in pixels."""
    # Processors of all models make at most 16384 * 28 * 28 pixels of an image or a frame.
    if (frames := grids[:, 1:].prod(axis=1)).max(initial=0) > _most_patches:
        row = int(frames.argmax())
        found = f"is {tuple(grids[row].tolist())}, {frames[row]} patches"
        remedy = "divide pixels by the patch_size"
        raise refused(ValueError, f"grid_thw[{row}]", found, f"at most {_most_patches} patches of a frame", remedy)


def _joined(arrays: list[Array], columns: int = 0) -> Array:
    empty = np.zeros((0, columns) if columns else 0, np.int64)
    return np.concatenate([empty, *arrays])


def _pair(model: Model, key: str) -> tuple[int, int]:
    value, path = model.value(key)
    pair = integers(path_text(path), [value, value] if isinstance(value, int) else value, "(2, 2)")
    if len(pair) != 2 or min(pair) < 1:
        raise wrong(path, f"is {shown(value)}", "two numbers of at least 1")
    return pair


def _side(model: Model) -> int:
    """The side of the learned grid, which is a square."""
    key = model.row["resized_from"]
    value = model.integer(key)
    if key == "image_size":
        return value // model.integer("patch_size")
    if key == "num_position_embeddings":
        side = math.isqrt(value)
        if side * side != value:
            raise wrong(model.value(key).path, f"is {value}", "the number of cells of a square")
        return side
    return value


def _window(model: Model, merge: int) -> int:
    """How many blocks of patches a side of a window has."""
    key = model.row["windows"]
    if key == "window_kernel_size":
        height, width = _pair(model, key)
        if height != width:
            raise wrong(model.value(key).path, f"is {(height, width)}", "a square")
        return height
    window = model.integer(key)
    if key == "window_size":  # in pixels
        window = window // merge // model.integer("patch_size")
    if window < 1:
        given, path = model.value(key)
        raise wrong(path, f"is {given}", "at least the side of a block of patches")
    return window


def _windows(grids: Array, window: int, merge: int) -> dict[str, Array]:
    """The order of blocks window by window, and where windows begin, in patches."""
    order, lengths, first = [], [], 0
    for time, height, width in grids.tolist():
        rows, columns = (np.arange(length // merge) for length in (height, width))
        across = -(-len(columns) // window)
        owners = ((rows // window)[:, None] * across + columns // window).ravel()
        frame = np.argsort(owners, kind="stable")  # which keeps the order of the blocks in a window
        order.append((np.arange(time)[:, None] * len(owners) + frame + first).ravel())
        lengths.append(np.tile(np.bincount(owners) * merge**2, time))
        first += time * len(owners)
    return {"window_index": _joined(order), "cu_window_seqlens": boundaries(_joined(lengths))}


def _resized(model: Model, grids: Array, merge: int) -> tuple[Array, Array]:
    """Where each patch takes its row of the learned grid from; frames of a video have the same rows."""
    side, convention = _side(model), model.row["resized_as"]
    # The model itself passes (width, height) here, and takes the result in the order of (height, width).
    shapes = grids[:, 2:0:-1] if model.row.get("transposed") else grids[:, 1:]
    of_shapes = {
        shape: resize_taps(shape, (side, side), convention=convention, merge_size=merge)
        for shape in {*map(tuple, shapes.tolist())}
    }
    none = of_shapes or {(): resize_taps((1, 1), (side, side), convention=convention)}
    taps = next(iter(none.values()))[0].shape[1]
    count = int(grids.prod(axis=1).sum())
    indices, weights = np.empty((count, taps), np.int64), np.empty((count, taps), np.float32)
    first = 0
    for shape, time in zip(shapes.tolist(), grids[:, 0].tolist(), strict=True):
        of_frame = of_shapes[tuple(shape)]
        place = slice(first, first + time * len(of_frame[0]))
        indices[place].reshape(time, -1, taps)[...] = of_frame[0]
        weights[place].reshape(time, -1, taps)[...] = of_frame[1]
        first = place.stop
    return indices, weights


def _cells(fractions: str, length: int, side: int) -> Array:
    """The cell of the learned grid that has each patch of an axis, by places in float32 as the code of the models has them."""
    index, step = np.arange(length).astype(np.float32), np.float32(1) / np.float32(length)
    if fractions == "quotient":
        places = index / np.float32(length)
    elif fractions == "product":
        places = np.minimum(index * step, np.float32(1 - 1e-6))
    else:
        places = _arange(0, float(step), length)
    cells: Array = np.searchsorted(_arange(1 / side, 1 / side, side - 1), places, side="right")
    return cells


def _arange(start: float, step: float, count: int) -> Array:
    """What torch.arange gives in float32 on x86: of each whole 16 numbers, every 8 begin at one that is rounded."""
    index = np.arange(count)
    first = index - index % 8
    begun = (start + step * first).astype(np.float32) + (index - first) * step
    return np.where(index < count - count % 16, begun, start + step * index).astype(np.float32)


def _block_order(height: int, width: int, size: int) -> Array:
    """The patches of a frame, block by block."""
    rows, columns = blocks((1, height, width), size).T
    order: Array = rows * width + columns
    return order


def _temporal_merge(grids: Array, height: int, width: int) -> tuple[Array, Array, int]:
    """For each patch, its place in the blocks of all frames together and its weight; and how many blocks there are."""
    places, weights, first = [], [], 0
    for time, rows, columns in grids.tolist():
        row, column = np.indices((rows, columns)).reshape(2, -1)
        block = (row // height) * (columns // width) + column // width
        places.append(np.tile((first + block) * height * width + row % height * width + column % width, time))
        weights.append(np.full(time * rows * columns, np.float32(1) / np.float32(time)))
        first += (rows // height) * (columns // width)
    return _joined(places), np.concatenate([np.zeros(0, np.float32), *weights]), first
