# SPDX-License-Identifier: BSD-3-Clause
"""The layouts. A new one is an entry here: data, with the project's file and version as its source."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from fastpe._arguments import model_guess
from fastpe._registry import Registry, plain
from fastpe._rotary.config_models import table
from fastpe._rotary.layout import RotaryLayout
from fastpe._rotary.token_rules import folders, token_rules

_volume = ("time", "height", "width")


class LayoutRegistry(Registry[RotaryLayout]):
    """Layouts by name, which cannot be changed. `print` shows one line for each.

    Model types of transformers are names as well: of the layout that the model rotates by, with its own position ids.
    They are not listed.

    Attributes
    ----------
    not_expressible : mapping of str to str
        For models that need something else than a layout, the reason, and what to do.

    Examples
    --------
    >>> import fastpe
    >>> "flux" in fastpe.rotary_layouts
    True
    >>> fastpe.rotary_layouts["qwen2_5_vl_text"].name
    'qwen2_5_vl'
    >>> fastpe.rotary_layouts["fluxx"]
    Traceback (most recent call last):
    KeyError: "'fluxx' is not a layout; did you mean 'flux'?"
    """

    _more = ", or the model_type of a config.json"

    def __init__(self, layouts: Iterable[RotaryLayout], not_expressible: Mapping[str, str]) -> None:
        self.not_expressible = dict(not_expressible)
        super().__init__(
            RotaryLayout,
            layouts,
            word="layout",
            call="the methods of fastpe.rotary_layouts[NAME], such as rotate_ and tables",
        )

    def __getitem__(self, name: str) -> RotaryLayout:
        """Look a layout up by its exact name, or by that of a model."""
        if name in self._presets:
            return self._presets[name]
        if name in folders:
            return self._of_folder(folders[name])
        layout, *remarks = table()["layouts"].get(name, [None])
        if layout and not remarks:
            return self._presets[layout]
        if layout:
            raise KeyError(f"{name!r} is not a layout: use {layout!r}, {', '.join(remarks)}")
        if name in self.not_expressible:
            raise KeyError(f"{name!r} is not a layout: {self.not_expressible[name]}")
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        """Whether there is a layout of this name."""
        return name in self._presets or name in folders or len(table()["layouts"].get(name, ())) == 1

    def _of_folder(self, folder: str) -> RotaryLayout:
        """The layout that a model rotates by, with its own position ids."""
        rule = token_rules[folder]
        preset = _hunyuan_vl if rule.layout == "hunyuan_vl" else self._presets[rule.layout]
        if preset.name == folder or preset.tokens == folder:
            return preset
        return dataclasses.replace(
            preset,
            name=folder,
            ids=preset.ids if rule.has_segments else "tokens",
            tokens=folder,
            serves=(f"{folder} in transformers",),
            source=_transformers(folder),
        )

    def _hint(self, name: str, *also: Registry[Any]) -> str:
        """Another spelling of a name is that name: systems that a layout serves may have other position ids."""
        spelled = {plain(name), plain(f"{name}_moe")}
        near = next((known for known in (*self, *folders, *table()["layouts"]) if plain(known) in spelled), None)
        return f"did you mean {near!r}?" if near else super()._hint(name, *also)

    def _guess(self, name: str, known: list[str]) -> str:
        return model_guess(name, known)


def _transformers(*models: str) -> str:
    return "; ".join(f"huggingface/transformers:models/{name}/modeling_{name}.py" for name in models) + ", version 5.24"


def _diffusers(path: str) -> str:
    return f"huggingface/diffusers:{path}, version 0.42.1"


_timm = "huggingface/pytorch-image-models:timm/layers/pos_embed_sincos.py, version 1.0.31"

_hunyuan_vl = RotaryLayout(
    "hunyuan_vl",
    coordinates=("token", "width", "height", "image"),
    division="doubled",
    interleaved=False,
    form="tile",
    ids="tokens",
    theta=None,
    tokens="hunyuan_vl",
    serves=("position ids of HunYuan-VL",),
    source=_transformers("hunyuan_vl"),
)

rotary_layouts = LayoutRegistry(
    (
        # Text among images and videos
        RotaryLayout(
            "qwen2_vl",
            coordinates=_volume,
            division="runs",
            interleaved=False,
            form="tile",
            ids="mrope",
            theta=None,
            tokens="qwen2_vl",
            sections=(16, 24, 24),
            serves=(
                "Qwen2-VL and PaddleOCR-VL, text",
                "rotation of Qwen2.5-VL and Qwen2.5-Omni, whose ids are those of qwen2_5_vl and qwen2_5_omni",
            ),
            source=_transformers("qwen2_vl", "qwen2_5_vl"),
        ),
        RotaryLayout(
            "qwen3_vl",
            coordinates=_volume,
            division="strides",
            interleaved=False,
            form="tile",
            ids="mrope_frames",
            theta=None,
            tokens="qwen3_vl",
            sections=(24, 20, 20),
            serves=("Qwen3-VL and Qwen3-VL-MoE, text", "tables of Qwen3-Omni and Cosmos 3 Edge"),
            source=_transformers("qwen3_vl"),
        ),
        RotaryLayout(
            "qwen3_5",
            coordinates=_volume,
            division="strides",
            interleaved=False,
            form="tile",
            ids="mrope_frames",
            theta=None,
            tokens="qwen3_5",
            sections=(11, 11, 10),
            partial=True,
            serves=("Qwen3.5 and Qwen3.5-MoE, text",),
            source=_transformers("qwen3_5"),
        ),
        RotaryLayout(
            "glm4v",
            coordinates=_volume,
            division="runs",
            interleaved=True,
            form="repeat",
            ids="mrope_frames",
            theta=None,
            tokens="glm4v",
            sections=(8, 12, 12),
            partial=True,
            serves=("GLM-4V (GLM-4.1V) and GLM-OCR, text",),
            source=_transformers("glm4v", "glm_ocr"),
        ),
        RotaryLayout(
            "glm4v_moe",
            coordinates=_volume,
            division="runs",
            interleaved=False,
            form="tile",
            ids="mrope_frames",
            theta=None,
            tokens="glm4v_moe",
            sections=(8, 12, 12),
            partial=True,
            serves=("GLM-4V-MoE (GLM-4.5V), text",),
            source=_transformers("glm4v_moe"),
        ),
        RotaryLayout(
            "ernie4_5_vl",
            coordinates=_volume,
            division="turns",
            interleaved=True,
            form="repeat",
            ids="mrope",
            theta=None,
            tokens="ernie4_5_vl_moe",
            sections=(22, 22, 20),
            serves=("Ernie 4.5 VL, text; the time of its videos is what is left after they are merged",),
            source=_transformers("ernie4_5_vl_moe"),
        ),
        RotaryLayout(
            "hy_v4_vl",
            coordinates=_volume,
            division="strides",
            interleaved=True,
            form="tile",
            ids="tokens",
            theta=None,
            tokens="hy_v4_vl",
            sections=(12, 10, 10),
            serves=("Hy-V4-VL, text",),
            source=_transformers("hy_v4_vl"),
        ),
        # Images
        RotaryLayout(
            "qwen2_vl_vision",
            coordinates=("height", "width"),
            division="blocks",
            interleaved=False,
            form="tile",
            ids="merge_blocks",
            serves=(
                "Qwen2-VL, Qwen2.5-VL, Qwen3-VL, Qwen3.5, Qwen2.5-Omni and Qwen3-Omni, vision",
                "GLM-4V, GLM-OCR, Ernie 4.5 VL, EXAONE 4.5 and VideoLLaMA 3, vision",
                "PaddleOCR-VL, vision, with merge_size=1",
            ),
            source=_transformers("qwen2_vl") + "; vision_utils.py, get_vision_position_ids",
        ),
        RotaryLayout(
            "kimi_k25_vision",
            coordinates=("height", "width"),
            division="mixed",
            interleaved=False,
            form="tile",
            ids="frames",
            serves=("Kimi K2.5, vision",),
            source=_transformers("kimi_k25"),
        ),
        RotaryLayout(
            "minimax_m3_vl_vision",
            coordinates=_volume,
            division="blocks",
            interleaved=False,
            form="tile",
            ids="merge_blocks_with_time",
            remainder="keep",
            serves=("MiniMax-M3-VL, vision",),
            source=_transformers("minimax_m3_vl"),
        ),
        RotaryLayout(
            "pixtral",
            coordinates=("height", "width"),
            division="parity",
            interleaved=False,
            form="tile",
            ids="plane",
            serves=("Pixtral, and vision in Mistral 3",),
            source=_transformers("pixtral"),
        ),
        RotaryLayout(
            "llama4_vision",
            coordinates=("width", "height"),
            division="blocks",
            interleaved=True,
            form="complex",
            ids="llama4",
            serves=("Llama 4, vision",),
            source=_transformers("llama4"),
        ),
        RotaryLayout(
            "gemma4_vision",
            coordinates=("width", "height"),
            division="parts",
            interleaved=False,
            form="tile",
            ids="plane_columns_first",
            theta=100.0,
            serves=("Gemma 4, vision",),
            source=_transformers("gemma4"),
        ),
        RotaryLayout(
            "dinov3",
            coordinates=("height", "width"),
            division="blocks",
            interleaved=False,
            form="tile",
            ids="centres",
            theta=100.0,
            freq_scale=6.283185307179586,
            serves=("DINOv3 in transformers",),
            source=_transformers("dinov3_vit"),
        ),
        RotaryLayout(
            "timm_dinov3",
            coordinates=("height", "width"),
            division="blocks",
            interleaved=False,
            form="sin_cos_tile",
            ids="centres",
            theta=100.0,
            freq_scale=6.283185307179586,
            serves=("timm RotaryEmbeddingDinoV3",),
            source=_timm,
        ),
        RotaryLayout(
            "timm",
            coordinates=("height", "width"),
            division="blocks",
            interleaved=True,
            form="sin_cos_repeat",
            ids="rescaled",
            serves=("timm RotaryEmbeddingCat, in_pixels=False; EVA-02 with trained_shape",),
            source=_timm,
        ),
        RotaryLayout(
            "timm_pixel",
            coordinates=("height", "width"),
            division="blocks",
            interleaved=True,
            form="sin_cos_repeat",
            ids="from_minus_one_to_one",
            theta=224.0,
            frequencies="linear",
            serves=("timm RotaryEmbeddingCat, in_pixels=True and linear_bands=True",),
            source=_timm,
        ),
        RotaryLayout(
            "sam2",
            coordinates=("width", "height"),
            division="blocks",
            interleaved=True,
            form="repeat",
            ids="rescaled_columns_first",
            serves=("SAM 2, SAM 3 and EdgeTAM, memory attention", "SAM 3, vision"),
            source=_transformers("sam2_video", "sam3"),
        ),
        # Diffusion
        RotaryLayout(
            "flux",
            coordinates=("image", "height", "width"),
            division="blocks",
            interleaved=True,
            form="repeat",
            ids="flux",
            sections=(8, 28, 28),
            serves=("Flux and Chroma in diffusers", "tables of LongCat-Image and Ovis-Image"),
            source=_diffusers("models/transformers/transformer_flux.py"),
        ),
        RotaryLayout(
            "flux2",
            coordinates=("image", "height", "width", "text"),
            division="blocks",
            interleaved=True,
            form="repeat",
            ids="flux2",
            theta=2000.0,
            sections=(16, 16, 16, 16),
            serves=("Flux 2 in diffusers",),
            source=_diffusers("models/transformers/transformer_flux2.py, pipelines/flux2/pipeline_flux2.py"),
        ),
        RotaryLayout(
            "qwen_image",
            coordinates=("image", "height", "width"),
            division="blocks",
            interleaved=True,
            form="complex",
            ids="qwen_image",
            sections=(8, 28, 28),
            serves=("Qwen-Image in diffusers, with scale_rope=True",),
            source=_diffusers("models/transformers/transformer_qwenimage.py"),
        ),
        RotaryLayout(
            "hunyuan_video",
            coordinates=_volume,
            division="blocks",
            interleaved=True,
            form="repeat",
            ids="volume",
            theta=256.0,
            sections=(8, 28, 28),
            serves=("HunyuanVideo in diffusers; its text is not rotated",),
            source=_diffusers("models/transformers/transformer_hunyuan_video.py"),
        ),
        RotaryLayout(
            "wan",
            coordinates=_volume,
            division="blocks",
            interleaved=True,
            form="repeat",
            ids="volume",
            remainder="first",
            serves=("Wan in diffusers",),
            source=_diffusers("models/transformers/transformer_wan.py"),
        ),
        RotaryLayout(
            "cogvideox",
            coordinates=_volume,
            division="blocks",
            interleaved=True,
            form="repeat",
            ids="cogvideox",
            proportions=(2, 3, 3),
            serves=("CogVideoX in diffusers, 1.0 with trained_shape and 1.5 without; its text is not rotated",),
            source=_diffusers(
                "models/embeddings.py, get_3d_rotary_pos_embed; pipelines/cogvideo/pipeline_cogvideox.py"
            ),
        ),
        RotaryLayout(
            "lumina2",
            coordinates=("text", "height", "width"),
            division="blocks",
            interleaved=True,
            form="complex",
            ids="lumina2",
            serves=("Lumina 2 in diffusers, whose tables are float64",),
            source=_diffusers("models/transformers/transformer_lumina2.py"),
        ),
        RotaryLayout(
            "z_image",
            coordinates=("text", "height", "width"),
            division="blocks",
            interleaved=True,
            form="complex",
            ids="z_image",
            theta=256.0,
            sections=(16, 24, 24),
            serves=("Z-Image in diffusers",),
            source=_diffusers("models/transformers/transformer_z_image.py"),
        ),
    ),
    not_expressible={
        "vjepa2": (
            "V-JEPA 2 pairs neighbours, but its tables are tiled, so the two columns of a pair have different angles. "
            "That is no rotation; write x * cos + y * sin in NumPy, as modeling_vjepa2.py does"
        ),
        "hunyuan_vl": (
            "HunYuan-VL divides its columns, and not its frequencies, among the coordinates, so the two columns of a "
            "pair have different angles. That is no rotation; rotary_layouts['hunyuan_vl'] only has its position ids"
        ),
        "ltx2": (
            "LTX-2, with rope_type=split, divides its frequencies among the heads. Rotate each head by its own tables: "
            "fastpe.rotate_(q[:, h], cos=cos[h], sin=sin[h], interleaved=False)"
        ),
        "timm_mixed": (
            "timm's RotaryEmbeddingMixed learns frequencies for each layer and head. Rotate each head by tables of its "
            "own: fastpe.rotate_(q[:, h], cos=cos[h], sin=sin[h], interleaved=True)"
        ),
        "lightglue": (
            "LightGlue's angles are a learned projection of its points. Rotate by tables of them: "
            "fastpe.rotate_(q, cos=np.cos(angles), sin=np.sin(angles), interleaved=True)"
        ),
    },
)
