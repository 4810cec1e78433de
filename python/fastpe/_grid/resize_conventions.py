# SPDX-License-Identifier: BSD-3-Clause
"""How models resize learned grids. A new preset is an entry here: data, with the project's file as its source."""

# Annotations are evaluated here: libraries that build dataclasses from configurations read them.
import dataclasses
from typing import Any, Literal

from fastpe._errors import refused
from fastpe._registry import Preset, Registry

ResizeMode = Literal["nearest", "nearest-exact", "linear", "bilinear", "bicubic", "tile"]
PaddingMode = Literal["border", "zeros"]

# The cell that is taken, where there is only one.
_single_cells = {"nearest": "floor(i * {step})", "nearest-exact": "floor((i + 1/2) * {step})", "tile": "i mod side"}


@dataclasses.dataclass(frozen=True, repr=False)
class ResizeConvention(Preset):
    """How a model makes the cells of a new grid of those of a learned one, along each axis.

    Attributes
    ----------
    name : str
        Its name in `resize_conventions`.
    mode : str
        How new cells are made of learned ones: "nearest", "nearest-exact", "linear" (of one axis), "bilinear" or "bicubic",
        as in ``torch.nn.functional.interpolate``; or "tile", which repeats the learned grid.
    align_corners : bool
        Whether the outermost cells of both grids lie at the same places, and not their outer edges.
    antialias : bool
        Whether cells are averaged where the new grid is smaller. In mode "bicubic", the kernel has a = -1/2 instead of
        -3/4 then.
    padding_mode : str
        What is beyond the learned grid: with "border", its outermost cells, and with "zeros", zeros.
    size_offset : float
        The number that is added to a new length where places are computed.
    square : bool
        Whether the grid is resized to a square of its longer side, and then cropped.
    keeps_equal : bool
        Whether a grid that has the new shape already is left as it is.
    serves : tuple of str
        Systems that use it. Comparisons ignore them.
    source : str
        Where the convention was read. Comparisons ignore it.

    Raises
    ------
    TypeError, ValueError
        For a field of another type, a text that is not one of the above, and fields that exclude each other.

    Examples
    --------
    >>> import fastpe
    >>> print(fastpe.resize_conventions["vilt"])
    vilt: bilinear, cell i from i * (side - 1) / (n - 1)
        outside are the outermost cells
        serves: transformers ViLT
        source: huggingface/transformers:models/vilt/modeling_vilt.py, version 5.24
    """

    name: str
    mode: ResizeMode
    align_corners: bool = False
    antialias: bool = False
    padding_mode: PaddingMode = "border"
    size_offset: float = 0.0
    square: bool = False
    keeps_equal: bool = False
    serves: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    source: str = dataclasses.field(default="", compare=False)

    def _checked_fields(self) -> dict[str, Any]:
        single, zeros = self.mode in _single_cells, self.padding_mode == "zeros"
        for name, given in (("align_corners", self.align_corners), ("antialias", self.antialias), ("zeros", zeros)):
            if single and given:
                field = "padding_mode" if name == "zeros" else name
                found, expected = ("is 'zeros'", "'border'") if name == "zeros" else ("is True", "False")
                raise refused(ValueError, field, found, f"{expected} in mode {self.mode!r}, which takes single cells")
        if self.antialias and (self.align_corners or zeros):
            other = "align_corners" if self.align_corners else "padding_mode='zeros'"
            raise refused(ValueError, "antialias", f"and {other} were both given", "one of them")
        if self.size_offset and (self.align_corners or self.mode == "tile"):
            found = f"is {self.size_offset:g}"
            raise refused(ValueError, "size_offset", found, "0 where the ratio of the lengths does not count")
        return {}

    @property
    def formula(self) -> str:
        """The kernel and the place of a cell in one line."""
        step = f"side / (n + {self.size_offset:g})" if self.size_offset else "side / n"
        if self.mode in _single_cells:
            return f"cell i is cell {_single_cells[self.mode].format(step=step)}"
        kernel = f"bicubic, a = {'-1/2' if self.antialias else '-3/4'}" if self.mode == "bicubic" else self.mode
        place = "i * (side - 1) / (n - 1)" if self.align_corners else f"(i + 1/2) * {step} - 1/2"
        details = ", antialiased" * self.antialias + ", zeros outside" * (self.padding_mode == "zeros")
        return f"{kernel}{details}, cell i from {place}{', n of the longer side' * self.square}"

    def _counting(self) -> str:
        if self.mode in _single_cells:
            text = "no weights"
        elif self.antialias:
            text = "weights of cells outside are left out, and the others scaled to a sum of 1"
        else:
            text = f"outside are {'zeros' if self.padding_mode == 'zeros' else 'the outermost cells'}"
        kept = "a grid of the new shape" if self.keeps_equal else "an axis of the new length"
        return f"{text}{f'; {kept} is left as it is' if self.keeps_equal or self.size_offset else ''}"


def _transformers(model: str, version: str = "version 5.24") -> str:
    return f"huggingface/transformers:models/{model}/modeling_{model}.py, {version}"


resize_conventions = Registry(
    ResizeConvention,
    (
        ResizeConvention(
            "vit",
            "bicubic",
            serves=(
                "transformers ViT, DeiT, BEiT, YOLOS, ViT-MAE, ViT-MSN, IJEPA, ViTDet, SegGPT, LW-DETR",
                "transformers CLIP, SigLIP, AltCLIP, MetaCLIP 2, CLIPSeg, X-CLIP, GroupViT, OWL-ViT, OWLv2, FLAVA, MLCD",
                "transformers BLIP, BLIP-2, InstructBLIP, Kosmos-2, GIT, BridgeTower, InternVL, Janus, Phi-4-multimodal",
                "transformers Swin, Donut, Hiera, ViViT, Perceiver, and SAM 2 without its windows",
                "transformers GLM-4V and Kimi K2.5",
            ),
            source=_transformers("vit"),
        ),
        ResizeConvention(
            "dinov2", "bicubic", serves=("transformers DINOv2 and Pixio",), source=_transformers("dinov2")
        ),
        ResizeConvention(
            "dinov2_2023",
            "bicubic",
            size_offset=0.1,
            keeps_equal=True,
            serves=("the authors' DINO and DINOv2, with scale_factor=(n + 0.1) / side",),
            source="facebookresearch/dinov2:dinov2/models/vision_transformer.py @027a9ac3",
        ),
        ResizeConvention(
            "timm",
            "bicubic",
            antialias=True,
            serves=(
                "timm resample_abs_pos_embed, its defaults",
                "transformers DINOv2 with registers, RF-DETR, and the SAM of DeepSeek-OCR 2",
            ),
            source="huggingface/pytorch-image-models:timm/layers/pos_embed.py",
        ),
        ResizeConvention(
            "qwen3_vl",
            "bilinear",
            align_corners=True,
            serves=("transformers Qwen3-VL, Qwen3.5, Qwen3-Omni and Cohere Compass, with merge_size=2",),
            source=_transformers("qwen3_vl"),
        ),
        ResizeConvention(
            "vilt", "bilinear", align_corners=True, serves=("transformers ViLT",), source=_transformers("vilt")
        ),
        ResizeConvention(
            "paddleocr_vl",
            "bilinear",
            serves=("transformers PaddleOCR-VL, DPT, Step 3.7, GLM-Image and HunyuanVL",),
            source=_transformers("paddleocr_vl"),
        ),
        ResizeConvention(
            "hy_v4_vl",
            "bilinear",
            size_offset=0.1,
            serves=("transformers HY-V4-VL, with scale_factor=(n + 0.1) / side",),
            source=_transformers("hy_v4_vl"),
        ),
        ResizeConvention(
            "muse",
            "bilinear",
            padding_mode="zeros",
            serves=("transformers Muse Spark and Muse Glimmer",),
            source=_transformers("muse_spark"),
        ),
        ResizeConvention(
            "radio", "bilinear", square=True, serves=("transformers RADIO",), source=_transformers("radio")
        ),
        ResizeConvention(
            "siglip2",
            "bilinear",
            antialias=True,
            serves=(
                "transformers SigLIP 2, LFM2-VL, TIPSv2 and VideoPrism",
                "transformers Cosmos 3 Edge, with merge_size=2",
            ),
            source=_transformers("siglip2"),
        ),
        ResizeConvention(
            "idefics2",
            "nearest",
            serves=(
                "transformers Idefics 2, Idefics 3, SmolVLM and Phi-4-multimodal",
                "transformers MiniCPM-V from 4.6 on, and MiniCPM-OCR",
                "transformers TimeSformer",
            ),
            source=_transformers("idefics2"),
        ),
        ResizeConvention(
            "sam3",
            "tile",
            serves=("transformers SAM 3", "transformers SAM 2, the table of a window"),
            source=_transformers("sam3"),
        ),
        ResizeConvention(
            "sam_relative",
            "linear",
            serves=(
                "transformers SAM, SAM-HQ, ViTDet, SegGPT: tables of relative positions, to 2 * max(q, k) - 1 rows",
            ),
            source=_transformers("sam"),
        ),
    ),
    word="convention",
    call="fastpe.resize_table with convention=NAME",
)
