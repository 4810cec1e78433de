# SPDX-License-Identifier: BSD-3-Clause
"""A layout: how one kind of model counts the positions of images and videos, and rotates by them."""

# Annotations are evaluated here: libraries that build dataclasses from configurations read them.
import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe._arguments import integer
from fastpe._errors import refused
from fastpe._registry import Preset
from fastpe._rotary.config_file import Json, load
from fastpe._rotary.layout_rotation import Rotation
from fastpe._rotary.position_ids import Windows, position_ids, segments_text, windows
from fastpe._rotary.token_ids import token_position_ids
from fastpe._rotary.token_rules import TokenRule, part_of, sizes_of, token_rules, token_types


@dataclasses.dataclass(frozen=True, repr=False)
class RotaryLayout(Preset):
    """How an image, video or diffusion model counts its positions, which have several coordinates.

    `rotary_layouts` has them by name, and `RotaryEmbedding.from_layout` makes the embedding that rotates by them.

    Attributes
    ----------
    name : str
        Its name in `rotary_layouts`.
    coordinates : tuple of str
        The names of the coordinates of a position, in their order.
    serves : tuple of str
        Systems that use it.
    source : str
        Where the layout was read.

    Examples
    --------
    >>> import fastpe
    >>> print(fastpe.rotary_layouts["flux"])
    flux: 8 + 28 + 28 frequencies of 10000^(-2k / d), d per coordinate; pairs (2k, 2k + 1); form "repeat"
        coordinates: image, height, width; ids of tokens of text and grids (height, width)
        serves: Flux and Chroma in diffusers; tables of LongCat-Image and Ovis-Image
        source: huggingface/diffusers:models/transformers/transformer_flux.py, version 0.42.1
    >>> flux = fastpe.rotary_layouts["flux"]
    >>> ids = flux.positions(512, (64, 64))  # 512 tokens of text, and an image of 64 x 64 latent cells
    >>> rope = fastpe.RotaryEmbedding.from_layout("flux", 128)
    >>> cos, sin = rope.tables(ids, form=rope.form)
    >>> cos.shape
    (4608, 128)
    """

    name: str
    coordinates: tuple[str, ...]
    _rotation: Rotation
    _ids: str  # how `positions` counts, in position_ids.rules
    _tokens: str = ""  # the folder of transformers whose numbering of tokens `position_ids` follows
    serves: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    source: str = dataclasses.field(default="", compare=False)

    def _checked_fields(self) -> dict[str, Any]:
        return {}

    def __repr__(self) -> str:
        """What makes an equal one."""
        return f"fastpe.rotary_layouts[{self.name!r}]"

    def __getstate__(self) -> dict[str, Any]:
        """Only data: the place of a file is not kept in a pickle."""
        return super().__getstate__() | {"_rotation": tuple(self._rotation)}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        """Set the fields of a copy."""
        super().__setstate__(fields | {"_rotation": Rotation(*fields["_rotation"])})

    def positions(
        self,
        *segments: int | Sequence[int],
        merge_size: int | None = None,
        start: int | None = None,
        time_interval: float | None = None,
        trained_shape: Sequence[int] | None = None,
    ) -> npt.NDArray[Any]:
        """Give the position ids of a sequence, as the project counts them.

        Parameters
        ----------
        *segments : int or tuple of int
            What the sequence consists of, in its order: an int is a number of tokens of text, and a tuple has the
            lengths of a grid in patches, (height, width) or (time, height, width).
        merge_size : int, optional
            The number of patches along each side of a block that is merged into one token, if the project merges
            them; 2 by default.
        start : int, optional
            The first position of text, for a sequence that is continued; 0 by default.
        time_interval : float, optional
            The distance between the frames of a video (Qwen2.5-VL: ``tokens_per_second`` times the seconds per frame).
        trained_shape : (int, int), optional
            The height and width of the grid that the model was trained with, to which grids are resized.

        Returns
        -------
        ndarray [N, coordinates]
            The ids: int64, or float64 if coordinates are fractional.

        Raises
        ------
        ValueError, TypeError
            For segments and options that the layout does not have, and a grid that its blocks do not divide.

        Examples
        --------
        >>> import fastpe
        >>> fastpe.rotary_layouts["qwen2_vl"].positions(2, (1, 4, 4), 1).T  # an image of 4 x 4 patches, 2 x 2 tokens
        array([[0, 1, 2, 2, 2, 2, 4],
               [0, 1, 2, 2, 3, 3, 4],
               [0, 1, 2, 3, 2, 3, 4]])
        """
        options: dict[str, Any] = {"merge_size": merge_size, "start": start}
        options |= {"time_interval": time_interval, "trained_shape": trained_shape}
        return position_ids(self.name, self._ids, segments, **options)

    def token_types(self, input_ids: npt.ArrayLike, config: Json | str | os.PathLike[str]) -> npt.NDArray[np.int64]:
        """Give the type of each token, by the ids of special tokens in a config.json.

        Parameters
        ----------
        input_ids : array_like of int [.., L]
            The tokens of the prompt, in which each image and video has as many tokens as the model has of it.
        config : mapping or path
            The config.json of the model.

        Returns
        -------
        ndarray of int64, of the shape of `input_ids`
            0 for text, 1 for images, 2 for videos, and 3 for audio; for MiniCPM-V 4.7, 4 for marks of images and 5 for
            those that begin a slice.

        Raises
        ------
        ValueError, TypeError
            For a config that does not have the ids or is of another model, and a layout without such tokens.

        Examples
        --------
        >>> import fastpe
        >>> config = {"image_token_id": 9, "video_token_id": 8}
        >>> fastpe.rotary_layouts["qwen2_vl"].token_types([[5, 9, 9, 7]], config)
        array([[0, 1, 1, 0]])
        """
        rule = self._token_rule()
        return token_types(rule, part_of(rule, self._tokens, load(config)), input_ids)

    def position_ids(
        self,
        token_types: npt.ArrayLike,
        *,
        image_grid_thw: npt.ArrayLike | None = None,
        video_grid_thw: npt.ArrayLike | None = None,
        second_per_grid: npt.ArrayLike | None = None,
        attention_mask: npt.ArrayLike | None = None,
        config: Json | str | os.PathLike[str] | None = None,
        past: npt.ArrayLike | None = None,
        delta: npt.ArrayLike | None = None,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Give the position ids of a batch of prompts, as `get_rope_index` in transformers does.

        Parameters
        ----------
        token_types : array_like of int [B, L]
            The result of `token_types`, or the ``mm_token_type_ids`` of a processor: 0 text, 1 image, 2 video, 3 audio.
        image_grid_thw, video_grid_thw : array_like of int [images, 3], [videos, 3], optional
            Times, heights and widths in patches, before patches are merged, in the order of the batch.
        second_per_grid : float or array_like [videos], optional
            The seconds between two times of a video, where a model has positions per second.
        attention_mask : array_like of int or bool [B, L], optional
            0 for padding, on the left or the right, which is not counted. Without a mask, every token is counted.
        config : mapping or path, optional
            The whole config.json of the model, for the sizes that numbering depends on. It is required for videos
            of models that have positions per second; otherwise, the defaults of the model's class in transformers count
            if there is none.
        past, delta : int or array_like [B] or [B, 1], optional
            How many tokens a row has had, without padding, and by how much its next position is ahead of them: the ids
            continue those of a prompt. Both are integers; where ids may be float64, delta may be too. With the
            ``rope_deltas`` of transformers 4, which count padding, `past` counts it as well.

        Returns
        -------
        ids : ndarray [coordinates, B, L]
            int64, or float64 if a model does not cut off times that are fractions, as Qwen3-Omni. Its padding is what
            transformers has there.
        delta : ndarray [B]
            The ``rope_deltas`` of transformers 5, which are [B, 1] there, of the dtype of ids: the number of tokens of a row
            plus this number is the largest of its positions plus 1.

        Raises
        ------
        ValueError, TypeError
            For a grid that does not have the tokens of its image or video, or that blocks of patches do not divide, a
            type of token that the model does not have, a config of another model or a part of one, a float mask, a position
            beyond 2**53, and a layout without such tokens.

        Examples
        --------
        >>> import fastpe
        >>> layout = fastpe.rotary_layouts["qwen2_vl"]
        >>> ids, delta = layout.position_ids([[0, 0, 1, 1, 1, 1, 0]], image_grid_thw=[[1, 4, 4]])
        >>> ids[:, 0]
        array([[0, 1, 2, 2, 2, 2, 4],
               [0, 1, 2, 2, 3, 3, 4],
               [0, 1, 2, 3, 2, 3, 4]])
        >>> layout.position_ids([[0]], past=7, delta=delta)[0].ravel()  # the first token that is generated
        array([5, 5, 5])
        """
        rule = self._token_rule()
        if config is None and rule.per_second is not None and video_grid_thw is not None:
            expected, remedy = "the config.json of the model for its videos", f"it has {rule.per_second[0]}"
            raise refused(ValueError, "config", "is missing", expected, remedy)
        part = {} if config is None else part_of(rule, self._tokens, load(config))
        grids = image_grid_thw, video_grid_thw, second_per_grid
        return token_position_ids(sizes_of(rule, part), token_types, *grids, attention_mask, past, delta)

    def _token_rule(self) -> TokenRule:
        if not self._tokens:
            found = f"of layout {self.name!r} are not known from tokens"
            raise refused(ValueError, "ids", found, remedy="call positions(..) with the segments of a sequence")
        return token_rules[self._tokens]

    def windows(self, grid_thw: npt.ArrayLike, *, window: int, merge_size: int = 2) -> Windows:
        """Return the order of windows, for image encoders that attend within windows.

        Parameters
        ----------
        grid_thw : array_like of int [images, 3]
            Times, heights and widths in patches.
        window : int
            How many blocks of patches a side of a window has: ``window_size // patch_size // spatial_merge_size`` of
            config.json.
        merge_size : int
            How many patches a side of a block has.

        Returns
        -------
        window_index : ndarray of int64 [blocks]
            The block of each place in this order. The result is a named tuple.
        cu_window_seqlens, cu_seqlens : ndarray of int32 [windows + 1], [frames + 1]
            Where windows and frames begin, in patches. The last number is how many patches there are.

        Raises
        ------
        ValueError, TypeError
            For grids that blocks do not divide, and a layout whose patches are not in blocks.

        Examples
        --------
        >>> import fastpe
        >>> vision = fastpe.rotary_layouts["qwen2_vl_vision"]
        >>> index, cu_window_seqlens, cu_seqlens = vision.windows([[1, 4, 12]], window=4)
        >>> index, cu_window_seqlens, cu_seqlens
        (array([ 0,  1,  2,  3,  6,  7,  8,  9,  4,  5, 10, 11]), array([ 0, 32, 48], dtype=int32), array([ 0, 48], dtype=int32))
        """
        if self._ids != "merge_blocks":
            found = f"{self.name!r} has no patches in blocks"
            raise refused(ValueError, "layout", found, remedy="use fastpe.rotary_layouts['qwen2_vl_vision']")
        return windows(grid_thw, integer("window", window, 1), integer("merge_size", merge_size, 1))

    @property
    def formula(self) -> str:
        """Frequencies, pairs and form in one line.

        Examples
        --------
        >>> import fastpe
        >>> fastpe.rotary_layouts["wan"].formula
        '(1 : 1 : 1) frequencies of 10000^(-2k / d), d per coordinate; pairs (2k, 2k + 1); form "repeat"'
        """
        return self._rotation.formula(len(self.coordinates))

    def _counting(self) -> str:
        return f"coordinates: {', '.join(self.coordinates)}; ids of {segments_text(self._ids)}"
