# SPDX-License-Identifier: BSD-3-Clause
"""The presets of grids. A new one is an entry here: data, with the project's file and commit as its source."""

from __future__ import annotations

import dataclasses
import math

from fastpe._grid.convention import GridConvention
from fastpe._registry import Registry
from fastpe._sinusoid.conventions import conventions

_concat = conventions["concat"]
_interleaved = conventions["vaswani"]
_detr = dataclasses.replace(_interleaved, freq_scale=2.0 * math.pi, first_position=1)
_nerf = dataclasses.replace(conventions["nerf"], layout="concatenated")

grid_conventions = Registry(
    GridConvention,
    (
        GridConvention(
            "mae2d",
            _concat,
            axis_order=(1, 0),
            serves=(
                "MAE get_2d_sincos_pos_embed",
                "DiT get_2d_sincos_pos_embed",
                "diffusers get_2d_sincos_pos_embed (SD3, PixArt)",
                "llama.cpp clip get_2d_sincos_pos_embed (MiniCPM-V)",
                "transformers ViT-MAE, and AIMv2 with is_native",
            ),
            source="facebookresearch/mae:util/pos_embed.py",
        ),
        GridConvention(
            "hf2d",
            _concat,
            axis_order=(0, 1),
            serves=("transformers build_2d_sinusoidal_position_embedding (RT-DETR, D-FINE)",),
            source="huggingface/transformers:models/rt_detr/modeling_rt_detr.py, version 5.24",
        ),
        GridConvention(
            "diffusers3d",
            _concat,
            axis_order=(0, 2, 1),
            proportions=(2, 3, 3),
            serves=("diffusers get_3d_sincos_pos_embed (CogVideoX)",),
            source="huggingface/diffusers:models/embeddings.py @58eb52c0",
        ),
        GridConvention(
            "timm2d",
            _concat,
            outermost="function",
            serves=("timm build_sincos2d_pos_embed, its defaults",),
            source="huggingface/pytorch-image-models:timm/layers/pos_embed_sincos.py @aa4b5850",
        ),
        GridConvention(
            "detr",
            _detr,
            normalize=True,
            serves=("DETR PositionEmbeddingSine with normalize=True", "transformers DETR and MaskFormer"),
            source="facebookresearch/detr:models/position_encoding.py @29901c5",
        ),
        GridConvention(
            "deformable_detr",
            _detr,
            normalize=True,
            cell_offset=-0.5,
            serves=("Deformable DETR PositionEmbeddingSine with normalize=True", "transformers Deformable DETR"),
            source="fundamentalvision/Deformable-DETR:models/position_encoding.py @48092c50",
        ),
        GridConvention(
            "loftr",
            dataclasses.replace(_concat, first_position=1),
            outermost="pair",
            axis_order=(1, 0),
            serves=("LoFTR PositionEncodingSine, with temp_bug_fix", "kornia PositionEncodingSine, with temp_bug_fix"),
            source="zju3dv/LoFTR:src/loftr/utils/position_encoding.py @3955e990",
        ),
        GridConvention(
            "pcp_mae",
            _concat,
            serves=("PCP-MAE get_pos_embed, of any number of axes",),
            source="aHapBean/PCP-MAE:models/pos.py",
        ),
        GridConvention(
            "tensor2tensor",
            conventions["tensor2tensor"],
            remainder="pad",
            serves=("tensor2tensor add_timing_signal_nd",),
            source="tensorflow/tensor2tensor:layers/common_attention.py @bafdc1b6",
        ),
        GridConvention(
            "positional_encodings",
            _interleaved,
            remainder="truncate",
            serves=("positional-encodings PositionalEncoding2D and 3D (tatp22/multidim-positional-encoding)",),
            source="tatp22/multidim-positional-encoding:positional_encodings/torch_encodings.py @efeb8d9",
        ),
        GridConvention(
            "sam",
            dataclasses.replace(_concat, freq_scale=2.0 * math.pi),
            outermost="function",
            projected=True,
            serves=(
                "SAM PositionEmbeddingRandom, of (2 * points - 1) @ matrix",
                "nerfstudio RFFEncoding, of points @ matrix",
            ),
            source="facebookresearch/segment-anything:segment_anything/modeling/prompt_encoder.py @1fee4b32",
        ),
        GridConvention(
            "nerf",
            _nerf,
            outermost="frequency",
            serves=("NeRF Embedder, log_sampling",),
            source="bmild/nerf:run_nerf_helpers.py",
        ),
        GridConvention(
            "mip_nerf",
            _nerf,
            outermost="function_frequency",
            serves=("mip-NeRF pos_enc, and integrated_pos_enc without variances",),
            source="google/mipnerf:internal/mip.py @16e73dfd",
        ),
        GridConvention(
            "pytorch3d",
            _nerf,
            outermost="function",
            input_last=True,
            serves=("pytorch3d HarmonicEmbedding", "nerfstudio NeRFEncoding, with freq_scale=2 * pi"),
            source="facebookresearch/pytorch3d:pytorch3d/renderer/implicit/harmonic_embedding.py @176912d9",
        ),
    ),
    word="convention",
    call="fastpe.encode_grid or encode_coordinates with convention=NAME",
)
