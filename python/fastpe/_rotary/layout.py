# SPDX-License-Identifier: BSD-3-Clause
"""What a layout says: how the coordinates of a position share the columns of a head."""

# Annotations are evaluated here: libraries that build dataclasses from configurations read them.
import dataclasses
import os
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import asked_once, choice, integer, integers, number, shown
from fastpe._errors import refused
from fastpe._registry import Preset
from fastpe._rotary.config_file import Json, load
from fastpe._rotary.layout_plan import Part, Plan, bits, own_frequencies, planned, sines_first
from fastpe._rotary.position_ids import Windows, position_ids, rules, segments_text, windows
from fastpe._rotary.token_ids import token_position_ids
from fastpe._rotary.token_rules import TokenRule, part_of, sizes_of, token_rules, token_types

Division = Literal["runs", "strides", "turns", "parity", "blocks", "mixed", "parts", "doubled"]
Frequencies = Literal["geometric", "linear"]
Remainder = Literal["error", "first", "keep"]

_forms = (*_core.table_forms, *sines_first)


@dataclasses.dataclass(frozen=True, repr=False)
class RotaryLayout(Preset):
    """A rotary embedding of several coordinates: how an image, video or diffusion model rotates its heads.

    Attributes
    ----------
    name : str
        Its name in `rotary_layouts`.
    coordinates : tuple of str
        The names of the coordinates of a position, in their order.
    division : {"runs", "strides", "turns", "parity", "blocks", "mixed", "parts", "doubled"}
        Which frequencies belong to which coordinate. Four values divide one sequence of frequencies,
        ``theta**(-2k / d)`` over all ``d`` columns. With "runs", each coordinate has a run of neighbours. With
        "strides", the second and third coordinate have every third frequency, and the first one has the others. With
        "turns", the second and third coordinate alternate, and the first one has the rest. With "parity", the
        first coordinate has the even frequencies, and then the second one has the odd ones. With the other values, each
        coordinate has a sequence over its own columns. With "blocks", the sequences follow each other, and are paired
        across the head. With "mixed", each k has the frequencies of all coordinates, the last coordinate first. With
        "parts", the sequences are blocks, each paired in itself. With "doubled", the columns are divided, and not the
        frequencies: that is not a rotation, so there are only position ids.
    interleaved : bool
        Which columns are pairs: neighbours, or columns that are half of the width apart.
    form : str
        The form of the tables that the project's own module gives: a form of `RotaryEmbedding.tables`, or
        "sin_cos_tile" or "sin_cos_repeat": one array with all sines in front, and tiled or repeated.
    ids : str
        How `positions` counts: "plane" and "volume" count cells row by row, others are named after a project.
    theta : float, optional
        The base of the frequencies, or, for linear ones, the resolution in pixels. It is None if models differ, and
        each call has to give it.
    sections : tuple of int, optional
        How many frequencies each coordinate has, as in the project's ``mrope_section``: half of its ``axes_dim``.
    proportions : tuple of int, optional
        The coordinates' shares of the frequencies if there are no sections; equal by default.
    remainder : {"error", "first", "keep"}
        What is done with columns that cannot be shared: "error" refuses them, "first" gives them to the first
        coordinate, and "keep" leaves them as they are.
    frequencies : {"geometric", "linear"}
        "geometric" is ``theta**(-2k / d)``, and "linear" is evenly spaced from pi to ``pi * theta / 2``.
    freq_scale : float
        The factor of the frequencies.
    partial : bool
        Whether a head may have more columns than are rotated.
    tokens : str
        The folder of transformers whose numbering of tokens `position_ids` follows; empty if there is none.
    serves : tuple of str
        Systems that use it. Comparisons ignore them.
    source : str
        Where the layout was read. Comparisons ignore it.

    Raises
    ------
    TypeError, ValueError
        For a field of another type, a text that is not one of the above, and numbers that are not one per coordinate.

    Notes
    -----
    Values are exact, as those of `RotaryEmbedding`. Frequencies over all columns are the ideal ones. All others are
    float64 numbers that are taken as they are.

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
    >>> cos, sin = flux.tables(ids, 128)
    >>> cos.shape
    (4608, 128)
    """

    name: str
    coordinates: tuple[str, ...]
    division: Division
    interleaved: bool
    form: str
    ids: str
    theta: float | None = 10000.0
    sections: tuple[int, ...] | None = None
    proportions: tuple[int, ...] | None = None
    remainder: Remainder = "error"
    frequencies: Frequencies = "geometric"
    freq_scale: float = 1.0
    partial: bool = False
    tokens: str = ""
    serves: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    source: str = dataclasses.field(default="", compare=False)

    def _checked_fields(self) -> dict[str, Any]:
        count, division, frequencies = len(self.coordinates), self.division, self.frequencies
        if not 2 <= count <= _core.max_coordinates:
            raise self._wrong_coordinates(f"2 to {_core.max_coordinates} of them")
        required = {"strides": 3, "turns": 3, "parity": 2, "mixed": 2}.get(division, count)
        if count != required:
            raise self._wrong_coordinates(f"{required} of them for division {division!r}")
        freq_scale = number("freq_scale", self.freq_scale, above_zero=True)
        if (frequencies != "geometric" or freq_scale != 1.0) and division not in own_frequencies:
            found = f"is {frequencies!r} and freq_scale {freq_scale!r}"
            expected = f"'geometric' and 1.0 for division {division!r}, whose frequencies are those of one sequence"
            raise refused(ValueError, "frequencies", found, expected)
        sections = self._one_per_coordinate("sections", self.sections)
        if sections is not None and division in ("turns", "parity", "mixed") and sections[0] != sections[1]:
            expected = f"the first two to be equal for division {division!r}"
            raise refused(ValueError, "sections", f"is {sections}", expected)
        return {
            "form": choice("form", self.form, _forms),
            "ids": choice("ids", self.ids, tuple(rules)),
            "theta": None if self.theta is None else _theta(self.theta),
            "sections": sections,
            "proportions": self._one_per_coordinate("proportions", self.proportions),
            "tokens": choice("tokens", self.tokens, ("", *token_rules)),
        }

    def _wrong_coordinates(self, expected: str) -> Exception:
        return refused(ValueError, "coordinates", f"is {self.coordinates}", expected)

    def _one_per_coordinate(self, name: str, values: Any) -> tuple[int, ...] | None:
        if values is None:
            return None
        result = integers(name, values, "(16, 24, 24)")
        if len(result) != len(self.coordinates) or min(result) < 1:
            expected = f"{len(self.coordinates)} numbers from 1: one per coordinate of layout {self.name!r}, "
            raise refused(ValueError, name, f"is {result}", expected + ", ".join(self.coordinates))
        return result

    def parts(
        self, head_dim: int, *, theta: float | None = None, sections: Sequence[int] | None = None
    ) -> tuple[Part, ...]:
        """Get the rotary embeddings that the layout consists of.

        Parameters
        ----------
        head_dim : int
            Columns of a head.
        theta, sections : optional
            The numbers of your model, which replace those of the layout.

        Returns
        -------
        tuple of (columns, rope, coordinates)
            Each part is a slice of the columns, the `RotaryEmbedding` of them, and the coordinates that it takes, a
            tuple of int. Most layouts have one part. There are several if pairs lie inside parts of the head. The
            form of an embedding is that of the layout, or of its cosines and sines if the layout has them in one array.

        Raises
        ------
        ValueError
            For a width that the coordinates cannot share, and a theta that is missing.

        Examples
        --------
        >>> import fastpe
        >>> for columns, rope, coordinates in fastpe.rotary_layouts["gemma4_vision"].parts(64):
        ...     print(columns, rope.rotary_dim, coordinates)
        slice(0, 32, None) 32 (0,)
        slice(32, 64, None) 32 (1,)
        """
        return self._plan(head_dim, theta, sections).parts

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
        return position_ids(self.name, self.ids, segments, **options)

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
        return token_types(rule, part_of(rule, self.tokens, load(config)), input_ids)

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
        part = {} if config is None else part_of(rule, self.tokens, load(config))
        grids = image_grid_thw, video_grid_thw, second_per_grid
        return token_position_ids(sizes_of(rule, part), token_types, *grids, attention_mask, past, delta)

    def _token_rule(self) -> TokenRule:
        if not self.tokens:
            found = f"of layout {self.name!r} are not known from tokens"
            raise refused(ValueError, "ids", found, remedy="call positions(..) with the segments of a sequence")
        return token_rules[self.tokens]

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
        if self.ids != "merge_blocks":
            found = f"{self.name!r} has no patches in blocks"
            raise refused(ValueError, "layout", found, remedy="use fastpe.rotary_layouts['qwen2_vl_vision']")
        return windows(grid_thw, integer("window", window, 1), integer("merge_size", merge_size, 1))

    def tables(
        self,
        positions: npt.ArrayLike,
        head_dim: int,
        *,
        theta: float | None = None,
        sections: Sequence[int] | None = None,
        form: str | None = None,
        dtype: npt.DTypeLike | None = None,
        out: Any = None,
        num_threads: int | None = None,
    ) -> Any:
        """Give cosines and sines as the project's own module does.

        Parameters
        ----------
        positions : array_like [.., coordinates]
            An array of any shape S with an axis of coordinates at its end: that of `positions`, or your own. A tuple of
            ints is refused, since it may be the shape of a grid.
        head_dim : int
            Columns of a head.
        theta, sections : optional
            The numbers of your model, which replace those of the layout.
        form : str, optional
            A form that replaces that of the layout.
        dtype, out, num_threads : optional
            As in `RotaryEmbedding.tables`; "sin_cos_tile" and "sin_cos_repeat" have one array, S + [2 d] for d columns.

        Returns
        -------
        tuple of ndarrays, or ndarray
            The result of `RotaryEmbedding.tables`. Axes of length one that a project adds are left out.

        Raises
        ------
        ValueError, TypeError
            The errors of `parts` and `RotaryEmbedding.tables`. Nothing has been written then.

        Examples
        --------
        >>> import fastpe
        >>> vision = fastpe.rotary_layouts["qwen2_vl_vision"]
        >>> cos, sin = vision.tables(vision.positions((1, 16, 24)), 80)
        >>> cos.shape
        (384, 80)
        """
        if isinstance(positions, tuple) and positions and all(isinstance(each, int) for each in positions):
            given = shown(positions)
            remedy = f"pass layout.positions({given}) for the cells of a grid, or [{given}] for one point"
            raise refused(TypeError, "positions", f"is {given}", "an array [.., coordinates]", remedy)
        plan = self._plan(head_dim, theta, sections)
        name = self.form if form is None else choice("form", form, _forms)
        options: dict[str, Any] = {"dtype": dtype, "num_threads": num_threads}
        if name in sines_first:
            width = plan.whole.rotary_dim
            array = _core.array(positions, "positions")
            positions = array if array.ndim else positions  # of an int, the core says that nothing can be counted
            result = _core.output(out, dtype, (*array.shape[:-1], 2 * width))
            plan.tables(positions, sines_first[name], (result[..., width:], result[..., :width]), options)
            return result if out is None else out
        return plan.tables(positions, name, out, options)

    def rotate_(
        self,
        x: npt.NDArray[Any],
        *others: npt.NDArray[Any],
        positions: npt.ArrayLike,
        theta: float | None = None,
        sections: Sequence[int] | None = None,
        mask: npt.ArrayLike | None = None,
        lengths: npt.ArrayLike | None = None,
        seq_axis: int = -2,
        inverse: bool = False,
        num_threads: int | None = None,
    ) -> Any:
        """Rotate queries and keys in place, all parts of their heads.

        Parameters
        ----------
        x, *others : ndarray [.., L, .., head_dim]
            One array, or several with the same positions and the same width.
        positions : array_like [L, coordinates] or [B, L, coordinates]
            The coordinates of each row.
        theta, sections : optional
            The numbers of your model, which replace those of the layout.
        mask, lengths, seq_axis, inverse, num_threads : optional
            As in `RotaryEmbedding.rotate_`.

        Returns
        -------
        ndarray or tuple of ndarrays
            The arrays themselves.

        Raises
        ------
        ValueError, TypeError
            The errors of `parts` and `RotaryEmbedding.rotate_`. Nothing has been written then.

        Examples
        --------
        >>> import numpy as np, fastpe
        >>> layout = fastpe.rotary_layouts["gemma4_vision"]
        >>> q = np.ones((1, 4, 6, 64), np.float32)  # [B, heads, L, D]
        >>> rotated = layout.rotate_(q, positions=layout.positions((2, 3)))
        >>> bool(np.isclose(q[0, 0, 1, 0], np.cos(1) - np.sin(1)))  # the second patch is at x = 1
        True
        """
        given = (x, *others)
        arrays = self._arrays(given)
        plan = self._plan(arrays[0].shape[-1], theta, sections)
        options: dict[str, Any] = {"positions": positions, "mask": mask, "lengths": lengths, "seq_axis": seq_axis}
        options |= {"inverse": inverse, "num_threads": num_threads}
        if plan.checker is None:
            return plan.whole.rotate_(*given, **options)
        options = _converted(**options)
        plan.checker.rotate_(*arrays, **options)
        plan.rotate_(arrays, options)
        return given if others else x

    def rotate(
        self,
        x: npt.ArrayLike,
        *,
        positions: npt.ArrayLike,
        theta: float | None = None,
        sections: Sequence[int] | None = None,
        mask: npt.ArrayLike | None = None,
        lengths: npt.ArrayLike | None = None,
        seq_axis: int = -2,
        inverse: bool = False,
        num_threads: int | None = None,
        out: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]:
        """Rotate one array into a new one, or into `out`.

        Parameters
        ----------
        x : array_like [.., L, .., head_dim]
            Queries or keys.
        positions, theta, sections, mask, lengths, seq_axis, inverse, num_threads
            As in `rotate_`.
        out : ndarray, optional
            The array to write into: `x` itself, or an array apart from it.

        Returns
        -------
        ndarray
            The rotated array.

        Raises
        ------
        ValueError, TypeError
            The errors of `rotate_`. Nothing has been written then.

        Examples
        --------
        >>> import numpy as np, fastpe
        >>> layout = fastpe.rotary_layouts["wan"]
        >>> q = np.ones((1, 4, 24, 128), np.float32)
        >>> layout.rotate(q, positions=layout.positions((2, 3, 4))).shape
        (1, 4, 24, 128)
        """
        x = _core.array(x, "x")
        plan = self._plan(self._arrays((x,))[0].shape[-1], theta, sections)
        options: dict[str, Any] = {"positions": positions, "mask": mask, "lengths": lengths, "seq_axis": seq_axis}
        options |= {"inverse": inverse, "num_threads": num_threads}
        if plan.checker is None:
            return plan.whole.rotate(x, out=out, **options)
        options = _converted(**options)
        rotated = plan.checker.rotate(x, **options)
        plan.rotate_([rotated], options)
        if out is None:
            return rotated
        target = written = _core.array(out, "out", in_place=True)
        if target.dtype == rotated.dtype:  # else the next call says what is expected
            written, rotated = bits(target), bits(rotated)
        plan.checker.rotate(x, out=target, **options)
        written[...] = rotated
        return out

    def _arrays(self, given: tuple[Any, ...]) -> tuple[npt.NDArray[Any], ...]:
        """The arrays, which have the same width."""
        arrays: list[npt.NDArray[Any]] = []
        for i, each in enumerate(given):
            name = f"others[{i - 1}]" if i else "x"
            # An error for what cannot be written into.
            array = each if isinstance(each, np.ndarray) else _core.array(each, name, in_place=True)
            if array.ndim < 2:
                raise refused(ValueError, name, f"has shape {list(array.shape)}", "[.., L, .., head_dim]")
            arrays.append(array)
            if array.shape[-1] != arrays[0].shape[-1]:
                found, expected = f"has {array.shape[-1]} columns", f"{arrays[0].shape[-1]} as x has"
                raise refused(ValueError, name, found, expected, "rotate arrays of other widths in a call of their own")
        return tuple(arrays)

    def _plan(self, head_dim: Any, theta: Any, sections: Any) -> Plan:
        return planned(
            self,
            integer("head_dim", head_dim, 2),
            None if theta is None else _theta(theta),
            None if sections is None else integers("sections", sections, "(16, 24, 24)"),
        )

    @property
    def formula(self) -> str:
        """Frequencies, pairs and form in one line.

        Examples
        --------
        >>> import fastpe
        >>> fastpe.rotary_layouts["wan"].formula
        '(1 : 1 : 1) frequencies of 10000^(-2k / d), d per coordinate; pairs (2k, 2k + 1); form "repeat"'
        """
        if self.division == "doubled":
            return "only position ids"
        if self.sections is None:
            shares = self.proportions or (1,) * len(self.coordinates)
            counts = f"({' : '.join(map(str, shares))})"
        else:
            counts = " + ".join(map(str, self.sections))
        own = self.division in own_frequencies
        half = "d / 2 columns of their own part" if self.division == "parts" else "d / 2"
        pairs = "(2k, 2k + 1)" if self.interleaved else f"(k, k + {half})"
        where = "d per coordinate" if own else f"d for all, divided in {self.division}"
        scale = "" if self.freq_scale == 1.0 else f"{self.freq_scale:g} * "
        theta = "theta" if self.theta is None else f"{self.theta:g}"
        each = f"pi * linspace(1, {theta} / 2)" if self.frequencies == "linear" else f"{theta}^(-2k / d)"
        return f'{counts} frequencies of {scale}{each}, {where}; pairs {pairs}; form "{self.form}"'

    def _counting(self) -> str:
        return f"coordinates: {', '.join(self.coordinates)}; ids of {segments_text(self.ids)}"


def _converted(positions: Any, mask: Any, lengths: Any, **others: Any) -> dict[str, Any]:
    """The options of several calls of the core, converted once: a conversion may run the caller's code."""
    if mask is not None:
        mask = _core.mask(mask, "mask")
    if lengths is not None:
        array = _core.array(lengths, "lengths")
        lengths = array if array.size else lengths  # the core takes an empty list, whose dtype is float64, for integers
    rest = {name: asked_once(value) for name, value in others.items()}
    return {"positions": _core.array(positions, "positions"), "mask": mask, "lengths": lengths, **rest}


def _theta(value: Any) -> float:
    theta = number("theta", value)
    if theta < 1.0:
        raise refused(ValueError, "theta", f"is {shown(value)}", "at least 1")
    return theta
