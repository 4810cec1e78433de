# SPDX-License-Identifier: BSD-3-Clause
"""The layouts. A new one is an entry here: data, with the project's file and version as its source."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from fastpe._arguments import model_guess
from fastpe._config.tables import table
from fastpe._layouts.layout import RotaryLayout
from fastpe._layouts.rotation import Rotation
from fastpe._registry import Registry, plain

_volume = ("time", "height", "width")
_image = ("image", "height", "width")


class LayoutRegistry(Registry[RotaryLayout]):
    """Layouts by name, which cannot be changed. `print` shows one line for each.

    Examples
    --------
    >>> import fastpe
    >>> "flux" in fastpe.rotary_layouts
    True
    >>> fastpe.rotary_layouts["fluxx"]
    Traceback (most recent call last):
    KeyError: "'fluxx' is not a layout; did you mean 'flux'?"
    """

    def __init__(self, layouts: Iterable[RotaryLayout], not_expressible: Mapping[str, str]) -> None:
        self._not_expressible = dict(not_expressible)
        super().__init__(
            RotaryLayout,
            layouts,
            word="layout",
            call="fastpe.RotaryEmbedding.from_layout",
        )

    def _hint(self, name: str) -> str:
        """Another spelling of a name is that name: systems that a layout serves may have other position ids."""
        near = next((known for known in self if plain(known) in (plain(name), plain(f"{name}_moe"))), None)
        if near is None and (named := self._of_model_type(name)):
            return f"fastpe.RotaryLayout.from_config finds the layout of this model_type, {named!r}"
        return f"did you mean {near!r}?" if near else self._told(name) or super()._hint(name)

    def _told(self, name: str) -> str:
        return next((why for known, why in self._not_expressible.items() if plain(known) == plain(name)), "")

    def _of_model_type(self, name: str) -> str:
        """The layout of a model type, under any spelling; empty for others."""
        known = table()["text_layouts"] | {each: layout for each, (layout, *_) in table()["layouts"].items()}
        return next((known[each] for each in known if plain(each) == plain(name.removesuffix("_text"))), "")

    def _guess(self, name: str) -> str:
        return self._told(name) or model_guess(name, self)


def _transformers(*models: str) -> str:
    return "; ".join(f"huggingface/transformers:models/{name}/modeling_{name}.py" for name in models) + ", version 5.24"


_timm = "huggingface/pytorch-image-models:timm/layers/pos_embed_sincos.py, version 1.0.31"


def _layout(
    name: str,
    source: str,
    serves: tuple[str, ...],
    coordinates: tuple[str, ...],
    ids: str,
    **rotation: Any,
) -> RotaryLayout:
    return RotaryLayout(name, coordinates, Rotation(**rotation), ids, serves, source)


def _text(
    name: str, *serves: str, row: str = "", models: tuple[str, ...] = (), ids: str = "mrope_frames"
) -> RotaryLayout:
    """Text among images and videos: a model type of the table, whose configs have the base."""
    fields = table()["models"][f"{row or name}_text"]
    division, sections = fields["mrope"]
    shared = {key: fields[key] for key in ("interleaved", "form")} | {"partial": bool(fields.get("partial"))}
    rotation = {"division": division, "sections": tuple(sections), "base": None, **shared}
    return _layout(name, _transformers(*models or (row or name,)), serves, _volume, ids, **rotation)


def _vision(name: str, source: str, *serves: str, **fields: Any) -> RotaryLayout:
    """The patches of an image."""
    usual = {"coordinates": ("height", "width"), "division": "blocks", "interleaved": False, "form": "tile"}
    return _layout(name, source, serves, **{**usual, **fields})


def _diffusion(name: str, path: str, *serves: str, **fields: Any) -> RotaryLayout:
    """The latent cells of an image or a video, as in a file of diffusers."""
    usual = {"division": "blocks", "interleaved": True, "form": "repeat"}
    return _layout(name, f"huggingface/diffusers:{path}, version 0.42.1", serves, **{**usual, **fields})


rotary_layouts = LayoutRegistry(
    (
        _text(
            "qwen2_vl",
            "Qwen2-VL and PaddleOCR-VL, text",
            "Qwen2.5-VL and Qwen2.5-Omni, text",
            models=("qwen2_vl", "qwen2_5_vl"),
            ids="mrope",
        ),
        _text("qwen3_vl", "Qwen3-VL, Qwen3-VL-MoE, Qwen3-Omni, Cohere Compass and Cosmos 3, text"),
        _text("qwen3_5", "Qwen3.5 and Qwen3.5-MoE, text"),
        _text("glm4v", "GLM-4V (GLM-4.1V) and GLM-OCR, text", models=("glm4v", "glm_ocr")),
        _text("glm4v_moe", "GLM-4V-MoE (GLM-4.5V), text"),
        _text(
            "ernie4_5_vl",
            "Ernie 4.5 VL, text; the time of its videos is what is left after they are merged",
            row="ernie4_5_vl_moe",
            ids="mrope",
        ),
        _text("hy_v4_vl", "Hy-V4-VL, text", ids="mrope_lines"),
        _vision(
            "qwen2_vl_vision",
            _transformers("qwen2_vl") + "; vision_utils.py, get_vision_position_ids",
            "Qwen2-VL, Qwen2.5-VL, Qwen3-VL, Qwen3.5, Qwen2.5-Omni and Qwen3-Omni, vision",
            "GLM-4V, GLM-OCR, Ernie 4.5 VL, EXAONE 4.5 and VideoLLaMA 3, vision",
            "PaddleOCR-VL, vision, with merge_size=1",
            ids="merge_blocks",
        ),
        _vision(
            "kimi_k25_vision",
            _transformers("kimi_k25"),
            "Kimi K2.5, vision, in transformers, which moves the columns of the authors' weights",
            division="mixed",
            ids="frames",
        ),
        _vision(
            "moonvit",
            "moonshotai/Kimi-VL-A3B-Instruct:modeling_kimi_vl.py, Rope2DPosEmb; "
            "vllm-project/vllm:vllm/model_executor/models/moonvit.py",
            "MoonViT, the vision of Kimi-VL, in the authors' weights",
            division="mixed",
            interleaved=True,
            form="complex",
            ids="plane",
        ),
        _vision(
            "minimax_m3_vl_vision",
            _transformers("minimax_m3_vl"),
            "MiniMax-M3-VL, vision",
            coordinates=_volume,
            ids="merge_blocks_with_time",
            remainder="keep",
        ),
        _vision(
            "pixtral", _transformers("pixtral"), "Pixtral, and vision in Mistral 3", division="parity", ids="plane"
        ),
        _vision(
            "llama4_vision",
            _transformers("llama4"),
            "Llama 4, vision",
            coordinates=("width", "height"),
            interleaved=True,
            form="complex",
            ids="llama4",
        ),
        _vision(
            "gemma4_vision",
            _transformers("gemma4"),
            "Gemma 4, vision",
            coordinates=("width", "height"),
            division="halves",
            ids="plane_columns_first",
            base=100.0,
        ),
        _vision(
            "rope2d",
            "naver/croco:models/pos_embed.py, RoPE2D; facebookresearch/vggt:vggt/layers/rope.py",
            "CroCo v2, DUSt3R and MASt3R, RoPE100",
            "VGGT, with ids + 1, and 0 for tokens that are not patches",
            division="halves",
            ids="plane",
            base=100.0,
        ),
        _vision(
            "dinov3",
            _transformers("dinov3_vit"),
            "DINOv3 in transformers",
            ids="centres",
            base=100.0,
            freq_scale=2.0 * math.pi,
        ),
        _vision(
            "timm_dinov3",
            _timm,
            "timm RotaryEmbeddingDinoV3",
            ids="centres",
            base=100.0,
            freq_scale=2.0 * math.pi,
        ),
        _vision(
            "timm",
            _timm,
            "timm RotaryEmbeddingCat, in_pixels=False; EVA-02 with trained_shape",
            interleaved=True,
            form="repeat",
            ids="rescaled",
        ),
        _vision(
            "timm_pixel",
            _timm,
            "timm RotaryEmbeddingCat, in_pixels=True and linear_bands=True",
            interleaved=True,
            form="repeat",
            ids="from_minus_one_to_one",
            base=224.0,
            linear=True,
        ),
        _vision(
            "sam2",
            _transformers("sam2_video", "sam3"),
            "SAM 2, SAM 3 and EdgeTAM, memory attention",
            "SAM 3, vision",
            coordinates=("width", "height"),
            interleaved=True,
            form="repeat",
            ids="rescaled_columns_first",
        ),
        _diffusion(
            "flux",
            "models/transformers/transformer_flux.py",
            "Flux and Chroma in diffusers",
            "tables of LongCat-Image and Ovis-Image",
            coordinates=_image,
            ids="flux",
            sections=(8, 28, 28),
        ),
        _diffusion(
            "flux2",
            "models/transformers/transformer_flux2.py, pipelines/flux2/pipeline_flux2.py",
            "Flux 2 in diffusers",
            coordinates=(*_image, "text"),
            ids="flux2",
            base=2000.0,
            sections=(16, 16, 16, 16),
        ),
        _diffusion(
            "flux3",
            "models/transformers/transformer_flux3.py, modular_pipelines/flux3/before_denoise.py",
            "Flux 3 in diffusers",
            coordinates=(*_image, "text"),
            ids="flux3",
            sections=(16, 16, 16, 16),
        ),
        _diffusion(
            "qwen_image",
            "models/transformers/transformer_qwenimage.py",
            "Qwen-Image in diffusers, with scale_rope=True",
            coordinates=_image,
            form="complex",
            ids="qwen_image",
            sections=(8, 28, 28),
        ),
        _diffusion(
            "qwen_image_2_1",
            "models/transformers/transformer_qwenimage21.py",
            "Qwen-Image 2.1 in diffusers",
            coordinates=_image,
            form="complex",
            ids="qwen_image_2_1",
            sections=(8, 28, 28),
        ),
        _diffusion(
            "ideogram4",
            "models/transformers/transformer_ideogram4.py, pipelines/ideogram4/pipeline_ideogram4.py",
            "Ideogram 4 in diffusers",
            coordinates=_volume,
            division="strides",
            interleaved=False,
            form="tile",
            ids="ideogram4",
            base=5e6,
            sections=(88, 20, 20),
        ),
        _diffusion(
            "hunyuan_video",
            "models/transformers/transformer_hunyuan_video.py, transformer_hunyuan_video15.py, transformer_motif_video.py",
            "HunyuanVideo, HunyuanVideo 1.5 and Motif-Video in diffusers; their text is not rotated",
            coordinates=_volume,
            ids="volume",
            base=256.0,
            sections=(8, 28, 28),
        ),
        _diffusion(
            "wan",
            "models/transformers/transformer_wan.py, transformer_skyreels_v2.py, transformer_chronoedit.py",
            "Wan and SkyReels-V2 in diffusers",
            "ChronoEdit in diffusers, whose two frames have a time_interval of rope_temporal_skip_len - 1",
            coordinates=_volume,
            ids="volume_in_time",
            remainder="first",
        ),
        _diffusion(
            "cosmos",
            "models/transformers/transformer_cosmos.py",
            "Cosmos Predict 1, 2 and 2.5 in diffusers; videos have a time_interval of 24 / fps",
            coordinates=_volume,
            interleaved=False,
            form="tile",
            ids="volume_in_time",
            remainder="first",
            base=None,
            base_is="one for each coordinate, 10000 * rope_scale ** (d / (d - 2)), d being its columns",
        ),
        _diffusion(
            "kandinsky",
            "models/transformers/transformer_kandinsky.py, transformer_kandinsky6.py",
            "Kandinsky 5 and 6 in diffusers, with ids / scale_factor",
            coordinates=_volume,
            form="matrices",
            ids="volume",
            proportions=(2, 3, 3),
        ),
        _diffusion(
            "cogview4",
            "models/transformers/transformer_cogview4.py",
            "CogView 4 in diffusers, with rope_axes_dim as trained_shape; its text is not rotated",
            coordinates=("height", "width"),
            interleaved=False,
            form="tile",
            ids="cogview4",
        ),
        _diffusion(
            "cogvideox",
            "models/embeddings.py, get_3d_rotary_pos_embed; pipelines/cogvideo/pipeline_cogvideox.py",
            "CogVideoX in diffusers, 1.0 with trained_shape and 1.5 without; its text is not rotated",
            coordinates=_volume,
            ids="cogvideox",
            proportions=(2, 3, 3),
        ),
        _diffusion(
            "lumina2",
            "models/transformers/transformer_lumina2.py",
            "Lumina 2 in diffusers, whose tables are float64",
            coordinates=("text", "height", "width"),
            form="complex",
            ids="lumina2",
        ),
        _diffusion(
            "z_image",
            "models/transformers/transformer_z_image.py",
            "Z-Image in diffusers",
            coordinates=("text", "height", "width"),
            form="complex",
            ids="z_image",
            base=256.0,
            sections=(16, 24, 24),
        ),
    ),
    not_expressible={
        "vjepa2": (
            "V-JEPA 2 pairs neighbours, but its tables are tiled, so the two columns of a pair have different angles. "
            "That is not a rotation; write x * cos + y * sin in NumPy, as modeling_vjepa2.py does"
        ),
        "hunyuan_vl": (
            "HunYuan-VL divides its columns, and not its frequencies, among the coordinates, so the two columns of a "
            "pair have different angles. That is not a rotation; text_inputs gives its position ids"
        ),
        "ernie_image": (
            "ERNIE-Image has each angle twice in turn, and pairs half of the width apart, so the two columns of a pair have "
            "different angles. That is not a rotation; write x * cos + y * sin in NumPy, as transformer_ernie_image.py does"
        ),
        "ltx2": (
            "LTX-2, with rope_type=split, divides its frequencies among the heads. Rotate each head by its own tables: "
            "fastpe.rotate_by_tables_(q[:, h], cos=cos[h], sin=sin[h], interleaved=False, seq_axis=-2)"
        ),
        "ltx_video": (
            "LTX-Video rotates queries and keys before they are divided into heads, and its frequencies depend on their "
            "number. Make RotaryEmbedding(width, frequencies=, frequency_axes=), as the page about layouts shows"
        ),
        "mochi": (
            "Mochi's frequencies are learned for each head. Rotate each head by tables of its own: "
            "fastpe.rotate_by_tables_(q[:, h], cos=cos[:, h], sin=sin[:, h], interleaved=True, seq_axis=-2)"
        ),
        "timm_mixed": (
            "timm's RotaryEmbeddingMixed learns frequencies for each layer and head. Rotate each head by tables of its "
            "own: fastpe.rotate_by_tables_(q[:, h], cos=cos[h], sin=sin[h], interleaved=True, seq_axis=-2)"
        ),
        "lightglue": (
            "LightGlue's angles are a learned projection of its points. Rotate by tables of them: "
            "fastpe.rotate_by_tables_(q, cos=np.cos(angles), sin=np.sin(angles), interleaved=True, seq_axis=-2)"
        ),
    },
)
