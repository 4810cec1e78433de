# SPDX-License-Identifier: BSD-3-Clause
"""The presets: who uses each, and the project's file and commit as its source. Their numbers are in the core."""

from __future__ import annotations

from fastpe import _core
from fastpe._registry import Registry
from fastpe._sinusoid.convention import Convention


def _named(name: str, *, serves: tuple[str, ...], source: str) -> Convention:
    return Convention(name, **_core.conventions[name], serves=serves, source=source)


conventions = Registry(
    Convention,
    (
        _named(
            "vaswani",
            serves=(
                "PyTorch tutorial and word_language_model PositionalEncoding",
                "The Annotated Transformer",
                "fairseq PositionalEncoding",
                "ESPnet PositionalEncoding",
                "WeNet PositionalEncoding",
                "OpenNMT-py SinusoidalInterleaved",
                "XLM, and transformers XLM and DistilBERT",
                "keras-hub SinePositionEncoding",
                "flax nlp_seq example",
                "diffusers SinusoidalPositionalEmbedding",
            ),
            source="pytorch/tutorials:beginner_source/transformer_tutorial.py @00109f5a",
        ),
        _named(
            "concat",
            serves=(
                "transformers Marian and Pegasus",
                "transformers CTRL",
                "Sockeye",
                "CTranslate2 models converted from marian-nmt",
                "get_1d_sine_pe of SAM 2, SAM 3 and EdgeTAM, of half the width, with each column repeated",
            ),
            source="huggingface/transformers:models/marian/modeling_marian.py @00b676f8",
        ),
        _named(
            "x_transformers",
            serves=("x-transformers ScaledSinusoidalEmbedding, at its initial scale",),
            source="lucidrains/x-transformers:x_transformers/x_transformers.py @9252ed7",
        ),
        _named(
            "tensor2tensor",
            serves=(
                "tensor2tensor get_timing_signal_1d",
                "TensorFlow Model Garden RelativePositionEmbedding, for even d",
                "openai/whisper, transformers Whisper and PegasusX, and whisper.cpp, for even d",
                "marian-nmt, for even d",
                "flax lm1b and wmt examples",
                "OpenNMT-py SinusoidalConcat, for even d",
                "PyG PositionalEncoding, for even d",
            ),
            source="tensorflow/tensor2tensor:layers/common_attention.py @bafdc1b6",
        ),
        _named(
            "fairseq",
            serves=(
                "fairseq SinusoidalPositionalEmbedding",
                "transformers M2M100 and NLLB-MoE",
                "transformers Speech2Text (speech_to_text) and TrOCR",
            ),
            source="facebookresearch/fairseq:modules/sinusoidal_positional_embedding.py @3d262bb2",
        ),
        _named(
            "opennmt_tf",
            serves=(
                "OpenNMT-tf SinusoidalPositionEncoder",
                "CTranslate2 SinusoidalPositionEncoder",
                "FunASR SinusoidalPositionEncoder",
            ),
            source="OpenNMT/CTranslate2:src/layers/common.cc @0d8bcd36",
        ),
        _named(
            "musicgen",
            serves=("transformers MusicGen (musicgen_decoder)",),
            source="huggingface/transformers:models/musicgen/modeling_musicgen.py @00363c36",
        ),
        _named(
            "ddpm",
            serves=(
                "DDPM",
                "diffusers get_timestep_embedding, its defaults",
                "diffusers get_guidance_scale_embedding (LCM), of w * 1000",
            ),
            source="huggingface/diffusers:models/embeddings.py @58eb52c0",
        ),
        _named(
            "timestep",
            serves=(
                "GLIDE timestep_embedding",
                "DiT timestep_embedding",
                "ggml_timestep_embedding",
                "diffusers get_timestep_embedding, as its Stable Diffusion UNets call it",
                "keras-hub Flux, with freq_scale=1000",
            ),
            source="openai/glide-text2im:glide_text2im/nn.py",
        ),
        _named(
            "mlx",
            serves=("mlx.nn.SinusoidalPositionalEncoding",),
            source="ml-explore/mlx:python/mlx/nn/layers/positional_encoding.py @846d1762",
        ),
        _named(
            "depthcharge",
            serves=("depthcharge FloatEncoder, for even d, with wavelengths 0.001 to 10000",),
            source="wfondrie/depthcharge:depthcharge/encoders/sinusoidal.py",
        ),
        _named(
            "positional_encodings",
            serves=("positional-encodings PositionalEncoding1D (tatp22/multidim-positional-encoding)",),
            source="tatp22/multidim-positional-encoding:positional_encodings/torch_encodings.py @efeb8d9",
        ),
        _named(
            "nerf",
            serves=("NeRF positional encoding of one coordinate, log_sampling",),
            source="bmild/nerf:run_nerf_helpers.py",
        ),
        _named(
            "doubled_exponent",
            serves=("the NumPy loop that divides by 10000 ** (2 * i / d) with i = 0, 2, 4, ..",),
            source="w_k = 10000^(-4k / d): the 2 stands in the loop's step and in the exponent",
        ),
        _named(
            "stable_audio3",
            serves=("diffusers StableAudio3ExpoFourierFeatures, for even d, with frequencies 0.5 to 10000",),
            source="huggingface/diffusers:models/transformers/transformer_stable_audio3.py, version 0.42.1",
        ),
    ),
    word="convention",
    call="fastpe.encode, add_, add, embed or PositionalEncoding with convention=NAME",
)
