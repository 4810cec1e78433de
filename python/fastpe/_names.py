# SPDX-License-Identifier: BSD-3-Clause
"""Names of presets and of forms of tables, for editors to offer and type checkers to know; tests compare them."""

from __future__ import annotations

from typing import Literal, TypeAlias

ConventionName: TypeAlias = Literal[
    "vaswani",
    "concat",
    "x_transformers",
    "tensor2tensor",
    "fairseq",
    "opennmt_tf",
    "musicgen",
    "ddpm",
    "timestep",
    "mlx",
    "depthcharge",
    "positional_encodings",
    "nerf",
    "doubled_exponent",
    "stable_audio3",
]
GridConventionName: TypeAlias = Literal[
    "mae2d",
    "hf2d",
    "diffusers3d",
    "timm2d",
    "detr",
    "deformable_detr",
    "loftr",
    "pcp_mae",
    "tensor2tensor",
    "positional_encodings",
    "sam",
    "nerf",
    "mip_nerf",
    "pytorch3d",
]
ResizeConventionName: TypeAlias = Literal[
    "vit",
    "dinov2",
    "dinov2_2023",
    "timm",
    "qwen3_vl",
    "vilt",
    "paddleocr_vl",
    "hy_v4_vl",
    "muse",
    "radio",
    "siglip2",
    "idefics2",
    "sam3",
    "sam_relative",
]
RotaryLayoutName: TypeAlias = Literal[
    "qwen2_vl", "qwen3_vl", "qwen3_5", "glm4v", "glm4v_moe", "ernie4_5_vl", "hy_v4_vl", "qwen2_vl_vision", "kimi_k25_vision",
    "moonvit", "minimax_m3_vl_vision", "pixtral", "llama4_vision", "gemma4_vision", "rope2d", "dinov3", "timm_dinov3", "timm",
    "timm_pixel", "sam2", "flux", "flux2", "flux3", "qwen_image", "qwen_image_2_1", "ideogram4", "hunyuan_video", "wan",
    "cosmos", "kandinsky", "cogview4", "cogvideox", "lumina2", "z_image",
]  # fmt: skip
TableForm: TypeAlias = Literal[
    "halves", "tile", "repeat", "cos_sin", "sin_cos", "pairs", "matrices", "angles", "complex"
]
