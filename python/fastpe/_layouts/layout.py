# SPDX-License-Identifier: BSD-3-Clause
"""A layout: how one kind of model counts the positions of images and videos, and rotates by them."""

# Annotations are evaluated here: libraries that build dataclasses from configurations read them.
import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from fastpe._arguments import flag, names_keywords
from fastpe._arrays import WritableArray
from fastpe._config.file import table
from fastpe._config.model import ModelConfig, model_of
from fastpe._config.refusals import refusal
from fastpe._errors import refused
from fastpe._layouts.numbering import stored
from fastpe._layouts.positions import position_ids, rules, segments_text
from fastpe._layouts.rotation import Rotation
from fastpe._registry import Preset, listed


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

    @classmethod
    @names_keywords
    def from_config(
        cls, config: Mapping[str, Any] | str | os.PathLike[str] | ModelConfig, *, vision: bool = False
    ) -> "RotaryLayout":
        """Find the layout by which the model of a config.json rotates.

        Parameters
        ----------
        config : mapping, path or ModelConfig
            The dictionary of a config.json or its ``vision_config``, or the path of this file.
        vision : bool, optional
            Whether the encoder of images is meant, and not the text among them.

        Returns
        -------
        RotaryLayout
            One of `rotary_layouts`.

        Raises
        ------
        ValueError
            For a ``model_type`` that has no layout, or whose positions differ from those of a layout: the error says how.
        TypeError, OSError
            For a value of another type, and for a file that cannot be read.

        Examples
        --------
        >>> import fastpe
        >>> config = {"model_type": "qwen2_5_vl", "vision_config": {"model_type": "qwen2_5_vl_vision"}}
        >>> fastpe.RotaryLayout.from_config(config), fastpe.RotaryLayout.from_config(config, vision=True)
        (fastpe.rotary_layouts['qwen2_vl'], fastpe.rotary_layouts['qwen2_vl_vision'])
        """
        given, data = model_of(config), table()
        row = data["diffusers"].get(str(given._json.get("_class_name")), {}) if given.model_type is None else {}
        if "layout" in row and not flag("vision", vision):
            return listed(cls, row["layout"])
        encoder = given.vision if flag("vision", vision) or given.vision is given else None
        if encoder is None and vision:
            raise refused(ValueError, given._place(), "has no vision_config", "the config.json of a model with images")
        if encoder is not None:
            # Some files name the whole model there.
            own = encoder._known_type or ""
            names = [own, f"{own}_vision"]
            found, levels = data["layouts"], [encoder]
        else:
            found, levels = data["text_layouts"], [*given._to_text(must_end=False)]
            names = [(level._known_type or "").removesuffix("_text") for level in levels]
        layout, *remarks = next(([*found[name]] for name in names if name in found), [""])
        if remarks:
            remedy = f"use fastpe.rotary_layouts[{layout!r}], {', '.join(remarks)}"
            raise refused(ValueError, levels[0]._place("model_type"), f"is {names[0]!r}", remedy=remedy)
        if not layout:
            raise refusal(levels[-1], "layout")
        return listed(cls, layout)

    def positions(
        self,
        *segments: int | Sequence[int],
        merge_size: int | None = None,
        start: int | None = None,
        time_interval: float | None = None,
        trained_shape: Sequence[int] | None = None,
        dtype: npt.DTypeLike | None = None,
        out: WritableArray | None = None,
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
        dtype : dtype, optional
            That of the ids, such as an engine's int32 or float32; one that does not have an id is refused.
        out : ndarray [N, coordinates], optional
            Where to write them, instead of `dtype`.

        Returns
        -------
        ndarray [N, coordinates]
            The ids: int64, or float64 if coordinates are fractional, unless said otherwise; or `out`.

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
        return stored(position_ids(self.name, self._ids, segments, **options), dtype, out)

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

    @property
    def _grid(self) -> tuple[str, ...]:
        """What the lengths of a grid are."""
        return rules[self._ids].grid

    def _counting(self) -> str:
        return f"coordinates: {', '.join(self.coordinates)}; ids of {segments_text(self._ids)}"
