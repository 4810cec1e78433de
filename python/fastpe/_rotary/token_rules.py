# SPDX-License-Identifier: BSD-3-Clause
"""How models number text among images, videos and audio: a row of data for each folder of transformers."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import integer, integers, likely, number, shown
from fastpe._errors import refused
from fastpe._rotary.config_file import Json

Array = npt.NDArray[Any]

# Types of tokens. Marks are tokens around images: only the canvas of MiniCPM-V reads them.
padding_token, text_token, image_token, video_token, audio_token, mark, slice_mark = range(-1, 6)


@dataclasses.dataclass(frozen=True)
class TokenRule:
    """What `get_rope_index` of one folder does."""

    layout: str  # that its model of text rotates by
    names: tuple[str, ...] = ()  # its other model types
    # How the tokens of a grid are numbered. "whole": from where its text ends. "frames": likewise, and each frame of a
    # video is a grid of its own among text. "lines": likewise, each line has one more token at its end, and times are as
    # far apart as a frame is wide. "plane": from 0, while the sequence counts on. "canvas": slices of an image share the
    # coordinates of the whole image.
    grid: Literal["whole", "frames", "lines", "plane", "canvas"] = "whole"
    # What the text after a grid continues: the largest coordinate, or the count of tokens.
    after: Literal["largest", "token"] = "largest"
    # Keys of the config, and the defaults of its class.
    merge_size: tuple[str, int | str] = ("vision_config.spatial_merge_size", 2)
    temporal_merge_size: tuple[str, int] | None = None
    per_second: tuple[str, float] | None = None
    # Keys of the tokens around a video, whose frames have the tokens of images.
    marks: tuple[str, str] | None = None
    # Whether there is audio, and whether the two tokens at each end of a video with audio are at one position.
    audio: Literal["", "apart", "together"] = ""
    fractional: bool = False  # whether times are not cut off
    adjacent: bool = False  # whether images may follow each other without text between them
    part: str = ""  # where the config is, if it may be part of another one
    padding: int = 0  # the position of padding, 0 or 1

    @property
    def has_segments(self) -> bool:
        """Whether segments, as `RotaryLayout.positions` takes them, are numbered likewise."""
        return self.grid in ("whole", "frames") and not self.adjacent and not self.audio


_frames = functools.partial(TokenRule, grid="frames")
_frames_between_marks = functools.partial(_frames, marks=("video_start_token_id", "video_end_token_id"))
_omni = functools.partial(TokenRule, per_second=("position_id_per_seconds", 25.0), part="thinker_config")

token_rules: dict[str, TokenRule] = {
    "cohere_compass": _frames("qwen3_vl", ("cohere_compass_text",)),
    "cosmos3_edge": _frames("qwen3_vl", ("cosmos3_edge_text",)),
    "cosmos3_omni": _frames("qwen3_vl"),
    "ernie4_5_vl_moe": TokenRule(
        "ernie4_5_vl", ("ernie4_5_vl_moe_text",), temporal_merge_size=("vision_config.temporal_merge_size", 2)
    ),
    "glm46v": _frames_between_marks("glm4v", ("glmga",)),
    "glm4v": _frames_between_marks("glm4v", ("glm4v_text",)),
    "glm4v_moe": _frames_between_marks("glm4v_moe", ("glm4v_moe_text",)),
    "glm_image": TokenRule("glm4v_moe", ("glm_image_text",), merge_size=("", 1), adjacent=True, padding=1),
    "glm_ocr": _frames_between_marks("glm4v", ("glm_ocr_text",)),
    "hunyuan_vl": TokenRule("hunyuan_vl", ("hunyuan_vl_text",), "plane", "token"),
    "hy_v4_vl": TokenRule("hy_v4_vl", ("hy_v4_vl_text",), "lines"),
    "minicpmv4_7": TokenRule("qwen3_5", grid="canvas", merge_size=("downsample_mode", "16x")),
    "paddleocr_vl": TokenRule("qwen2_vl", ("paddleocr_vl_text",)),
    "qwen2_5_omni": _omni("qwen2_vl", ("qwen2_5_omni_thinker", "qwen2_5_omni_text"), audio="together", padding=1),
    "qwen2_5_vl": TokenRule("qwen2_vl", ("qwen2_5_vl_text",), per_second=("vision_config.tokens_per_second", 4.0)),
    "qwen2_vl": TokenRule("qwen2_vl", ("qwen2_vl_text",)),
    "qwen3_5": _frames("qwen3_5", ("qwen3_5_text",)),
    "qwen3_5_moe": _frames("qwen3_5", ("qwen3_5_moe_text",)),
    "qwen3_omni_moe": _omni(
        "qwen3_vl", ("qwen3_omni_moe_thinker", "qwen3_omni_moe_text"), audio="apart", fractional=True
    ),
    "qwen3_vl": _frames("qwen3_vl", ("qwen3_vl_text",)),
    "qwen3_vl_moe": _frames("qwen3_vl", ("qwen3_vl_moe_text",)),
    "qwen4_exp": _frames("qwen3_5", ("qwen4_exp_text",)),
}

folders: dict[str, str] = {name: folder for folder, rule in token_rules.items() for name in (folder, *rule.names)}


_downsample_modes = {"16x": 4, "4x": 2}


class Sizes(NamedTuple):
    """A rule with the numbers of one config."""

    rule: TokenRule
    merge: int
    temporal_merge: int
    per_second: float | None
    coordinates: int


def sizes_of(rule: TokenRule, config: Json) -> Sizes:
    """What the config says, or else the defaults of its class."""
    merge_size: Any = _value(config, *rule.merge_size)
    if rule.grid == "canvas":
        if merge_size not in _downsample_modes:
            raise refused(ValueError, rule.merge_size[0], f"is {shown(merge_size)}", " or ".join(_downsample_modes))
        merge_size = _downsample_modes[merge_size]
    temporal, per_second = 1, None
    if rule.temporal_merge_size is not None:
        temporal = integer(rule.temporal_merge_size[0], _value(config, *rule.temporal_merge_size), 1)
    if rule.per_second is not None:
        per_second = number(rule.per_second[0], _value(config, *rule.per_second), above_zero=True)
    coordinates = _coordinates(config) if rule.grid == "plane" else 3
    return Sizes(rule, integer(rule.merge_size[0], merge_size, 1), temporal, per_second, coordinates)


def _coordinates(config: Json) -> int:
    """How many sections HunYuan-VL divides a head into: 4 in published files."""
    for level in (_value(config, "text_config", {}), config):
        for path in ("rope_parameters.mrope_section", "rope_scaling.mrope_section", "rope_scaling.xdrope_section"):
            if (sections := _value(level, path, None)) is not None:
                if len(integers(path, sections, "(16, 16, 16, 16)")) < 3:
                    raise refused(ValueError, path, f"is {shown(sections)}", "at least 3 sections")
                return len(sections)
    return 4


def part_of(rule: TokenRule, folder: str, config: Json) -> Json:
    """The level of `config` that has the ids of the special tokens."""
    model_type = config.get("model_type") or folder
    other = folders.get(str(model_type))
    if other is None or (other != folder and _content(token_rules[other]) != _content(rule)):
        found = f"has the model_type {shown(model_type)}, whose ids are not those of {folder!r}"
        remedy = f"use fastpe.rotary_layouts[{other!r}]" if other else f"pass the config.json of {folder!r}, all of it"
        raise refused(ValueError, "config", found, remedy=remedy)
    part = config.get(rule.part)
    part = part if isinstance(part, Mapping) else config
    _check_vision(part, {key for key, _ in filter(None, (rule.merge_size, rule.temporal_merge_size, rule.per_second))})
    return part


def _check_vision(config: Json, paths: set[str]) -> None:
    """A part of a config, or a key that is misspelt, would leave the defaults in silence."""
    inner = {path.partition(".")[2] for path in paths} - {""}
    vision = config.get("vision_config", {})
    if inner and not isinstance(vision, Mapping):
        raise refused(TypeError, "vision_config", f"is {shown(vision)}", "a mapping")
    is_part = not inner.isdisjoint(config) or str(config.get("model_type")).endswith("_text")
    if inner and is_part and "vision_config" not in config:
        found = "is a part of one, with no vision_config"
        raise refused(ValueError, "config", found, remedy="pass the whole config.json")
    for level, keys in ((config, {path.partition(".")[0] for path in paths} - {""}), (vision, inner)):
        for key in sorted(keys.difference(level)):
            if near := likely(key, map(str, level)):
                raise refused(ValueError, "config", f"has the key {near!r}", f"{key!r}")


def _content(rule: TokenRule) -> TokenRule:
    return dataclasses.replace(rule, layout="", names=())


def special_tokens(rule: TokenRule, config: Json) -> Iterator[tuple[int, list[int]]]:
    """The types of tokens, and the ids of each; a later type counts."""
    names = {"image": image_token, "video": video_token} | ({"audio": audio_token} if rule.audio else {})
    for name, kind in names.items():
        keys = [key for key in (f"{name}_token_id", f"{name}_token_index") if config.get(key) is not None]
        if keys or kind == image_token:
            yield kind, [_token(config, [*keys, f"{name}_token_id"][0])]
    if rule.grid == "canvas":
        marks = ("image_start_id", "image_end_id", "slice_end_id", "newline_id")
        yield mark, [_token(config, key) for key in marks]
        yield slice_mark, [_token(config, "slice_start_id")]


def token_types(rule: TokenRule, config: Json, input_ids: Any) -> Array:
    """The type of each token, of the shape of `input_ids`."""
    tokens = checked("input_ids", input_ids)
    types = np.zeros(tokens.shape, np.int64)
    for kind, ids in special_tokens(rule, config):
        types[np.isin(tokens, ids)] = kind
    if rule.marks is not None:
        start, end = (_token(config, key) for key in rule.marks)
        inside = np.cumsum(tokens == start, axis=-1) > np.cumsum(tokens == end, axis=-1)
        types[(types == image_token) & inside] = video_token
    return types


def checked(name: str, value: Any, *shapes: tuple[int | None, ...], expected: str = "", kinds: str = "iu") -> Array:
    """An array of one of these shapes, whose lengths are given or None, of these kinds of numbers; integers are int64."""
    array: Array = _core.array(value, name)
    if array.dtype.kind not in kinds:
        raise refused(TypeError, name, f"has dtype {array.dtype}", "integers" if kinds == "iu" else "numbers")
    same = [len(shape) == array.ndim and all(map(_fits, shape, array.shape)) for shape in shapes]
    if shapes and not any(same):
        short = shapes[0][:1] == (None,) and array.ndim == 1 and _fits(shapes[0][1], len(array))
        whole = [array.tolist()] if array.size <= 3 else f"{name}[None]"
        raise refused(ValueError, name, f"has shape {list(array.shape)}", expected, f"pass {whole}" if short else "")
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64, copy=False)


def _fits(wanted: int | None, length: int) -> bool:
    return wanted is None or wanted == length


def check_grids(name: str, grids: Array, merge: int, merge_name: str, longest: int | None = None) -> None:
    """Lengths are at least 1, and patches are merged in whole blocks."""
    lengths = f"lengths from 1{'' if longest is None else f' to {longest}'}"
    blocks = f"heights and widths that are multiples of {merge_name}, {merge}"
    is_short_or_long = (grids < 1) | (grids > (np.inf if longest is None else longest))
    for is_wrong, expected in ((is_short_or_long, lengths), (grids[:, 1:] % merge != 0, blocks)):
        wrong = np.flatnonzero(is_wrong.any(axis=1))
        if len(wrong):
            raise refused(ValueError, f"{name}[{wrong[0]}]", f"is {tuple(grids[wrong[0]].tolist())}", expected)


def _token(config: Json, key: str) -> int:
    if config.get(key) is None:
        expected, remedy = "the config.json of the model", "it says which tokens are images"
        raise refused(ValueError, "config", f"has no {key}", expected, remedy)
    return integer(key, config[key], 0)


def _value(config: Any, path: str, default: Any) -> Any:
    """The value of a key, which may be in a part of the config, or else the default."""
    for key in path.split("."):
        config = config.get(key) if isinstance(config, Mapping) else None
    return default if config is None else config
