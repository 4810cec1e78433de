# SPDX-License-Identifier: BSD-3-Clause
"""The calls of docs/conventions.md against the packages that they replace.

With torch installed first, so that nothing else picks its build:

    pip install -e '.[test]' --group peers
    pip install --no-deps timm keras keras-hub      # else they bring torchvision and tensorflow; keras needs the next
    pip install absl-py namex h5py optree
    pytest -m peers tests/peers
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastpe

from ..oracles import docs_pages
from .conftest import imported, modeling, timm_layer

pytestmark = [
    pytest.mark.peers,
    # The packages' own deprecations are not ours to answer for.
    pytest.mark.filterwarnings("ignore"),
]

ROWS = docs_pages.rows()
Table = npt.NDArray[Any]


def _shape_only(*shape: int) -> Any:
    return imported("torch").zeros(shape)


def _keras_hub(module: str) -> Any:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    return imported(f"keras_hub.{module}")


def _tatp22(name: str) -> Callable[..., Any]:
    def encode(d: int, shape: tuple[int, ...] | None = None, L: int = 0) -> Any:
        lengths = (L,) if shape is None else shape
        layer = getattr(imported("positional_encodings.torch_encodings"), f"{name}{len(lengths)}D")(d)
        cells = (1, d, *lengths) if "Permute" in name else (1, *lengths, d)
        return layer(_shape_only(*cells))[0]

    return encode


def _embeddings() -> Any:
    return imported("diffusers.models.embeddings")


def _tensor(values: Table) -> Any:
    return imported("torch").from_numpy(values)


def _timesteps(**knobs: Any) -> Callable[..., Any]:
    return lambda timesteps, d: _embeddings().get_timestep_embedding(_tensor(timesteps), d, **knobs)


def _guidance(w: Table, d: int) -> Any:
    module = imported("diffusers.pipelines.latent_consistency_models.pipeline_latent_consistency_text2img")
    method = module.LatentConsistencyModelPipeline.get_guidance_scale_embedding
    return method(None, _tensor(w), embedding_dim=d)


def _vit_mae(H: int, W: int, d: int) -> Any:
    # With its class token, and the halves swapped as its own initialisation does it.
    table = modeling("vit_mae").build_2d_sinusoidal_position_embedding(H, W, d, cls_token=True)
    return imported("torch").cat([table[:, d // 2 :], table[:, : d // 2]], dim=1)


def _timm(**knobs: Any) -> Callable[..., Any]:
    def encode(H: int, W: int, d: int) -> Any:
        imported("torch")
        return timm_layer("pos_embed_sincos").build_sincos2d_pos_embed([H, W], d, **knobs)

    return encode


def _detr(model: str, name: str, **knobs: Any) -> Callable[..., Any]:
    def encode(H: int, W: int, d: int, valid: Table | None = None) -> Any:
        torch = imported("torch")
        layer = getattr(modeling(model), name)(d // 2, **knobs)
        batch = 1 if valid is None else len(valid)
        given = None if valid is None else torch.from_numpy(valid)
        # Its mask is True for cells that are valid, as fastpe's is.
        table = layer((batch, 3, H, W), torch.device("cpu"), torch.float32, given)
        table = table.reshape(batch, H, W, d).permute(0, 3, 1, 2) if table.ndim == 3 else table
        return table[0] if valid is None else table

    return encode


def _sam(points: Table, matrix: Table) -> Any:
    layer = modeling("sam").SamPositionalEmbedding(types.SimpleNamespace(scale=1.0, num_pos_feats=matrix.shape[1]))
    layer.positional_embedding.data = _tensor(matrix.astype(np.float32))
    return layer(_tensor(points.astype(np.float32))).detach()


def _long(*widths: int) -> list[dict[str, Any]]:
    return [{"L": length, "d": d} for d in widths for length in (2, 1500)]


def _grids(*widths: int) -> list[dict[str, Any]]:
    return [{"H": h, "W": w, "d": d} for d in widths for h, w in ((14, 14), (5, 9))]


_points = np.random.default_rng(4).uniform(0, 1, (2, 3, 5, 2)).astype(np.float32)
_matrix = np.random.default_rng(5).standard_normal((2, 128)).astype(np.float32).astype(np.float64)
_images = np.ones((2, 12, 17), bool)
_images[1, 7:, :] = _images[1, :, 11:] = False
# Every row and column has a cell that counts: Deformable DETR divides by almost nothing in the others.
_corners = np.ones((2, 12, 17), bool)
_corners[1, 7:, 8:] = False

PEERS: dict[str, list[tuple[str, Callable[..., Any], list[dict[str, Any]]]]] = {
    "keras-hub SinePositionEncoding": [("keras-hub",
        lambda L, d, start_index: _keras_hub("layers").SinePositionEncoding()(_shape_only(1, L, d), start_index=start_index)[0].cpu(),
        [{**example, "start_index": 4} for example in _long(2, 7, 256)])],
    "diffusers StableAudio3ExpoFourierFeatures": [("Stable Audio 3",
        lambda timesteps, d: imported("diffusers.models.transformers.transformer_stable_audio3")
        .StableAudio3ExpoFourierFeatures(d)(_tensor(timesteps.astype(np.float32))),
        [{"timesteps": np.linspace(0.0, 1.0, 65), "d": d} for d in (4, 256)])],
    "get_1d_sine_pe of SAM 2, SAM 3 and EdgeTAM": [(model,
        lambda positions, d, model=model: modeling(model).get_1d_sine_pe(_tensor(positions), d),
        [{"positions": np.linspace(0.0, 1.0, 16, dtype=np.float32), "d": d} for d in (8, 256)])
        for model in ("sam2_video", "sam3_tracker_video", "edgetam_video")],
    "keras-hub Flux": [("keras-hub Flux",
        lambda timesteps, d: _keras_hub("src.models.flux.flux_maths").TimestepEmbedding()(
            _tensor(timesteps.astype(np.float32)), dim=d).cpu(),
        [{"timesteps": np.linspace(0.0, 1.0, 65), "d": d} for d in (2, 5, 256)])],
    "RT-DETR and D-FINE before transformers 5; keras-hub D-FINE": [("keras-hub D-FINE",
        lambda H, W, d: _keras_hub("src.models.d_fine.d_fine_hybrid_encoder").DFineHybridEncoder
        .build_2d_sincos_position_embedding(W, H, d)[0].cpu(), _grids(4, 256))],
    "x-transformers ScaledSinusoidalEmbedding": [("x_transformers",
        lambda L, d: imported("x_transformers.x_transformers").ScaledSinusoidalEmbedding(d)(_shape_only(1, L, d)).detach(),
        _long(2, 256))],
    "diffusers SinusoidalPositionalEmbedding": [("diffusers 1-D",
        lambda L, d: _embeddings().SinusoidalPositionalEmbedding(d, max_seq_length=L).pe[0],
        [*_long(2, 256), {"L": 5000, "d": 512}])],
    "positional-encodings PositionalEncoding1D": [
        ("positional-encodings 1-D", _tatp22("PositionalEncoding"), _long(2, 7, 256))],
    "positional-encodings PositionalEncoding2D and 3D": [("positional-encodings 2-D, 3-D", _tatp22("PositionalEncoding"),
        [{"shape": shape, "d": d} for d in (2, 7, 60) for shape in ((9, 30), (4, 5, 6))])],
    "positional-encodings PositionalEncodingPermute2D and 3D": [("positional-encodings Permute",
        _tatp22("PositionalEncodingPermute"), [{"shape": shape, "d": d} for d in (7, 60) for shape in ((9, 30), (4, 5, 6))])],
    "diffusers get_timestep_embedding, its defaults; DDPM": [("diffusers timestep", _timesteps(),
        [{"timesteps": np.linspace(0.0, 999.0, 200), "d": d} for d in (4, 5, 320)])],
    "diffusers UNets; GLIDE; DiT; ggml": [("diffusers timestep, UNets",
        _timesteps(flip_sin_to_cos=True, downscale_freq_shift=0),
        [{"timesteps": np.linspace(0.0, 999.0, 200), "d": d} for d in (2, 5, 320)])],
    "diffusers get_guidance_scale_embedding (LCM)": [("diffusers LCM", _guidance,
        [{"w": np.linspace(0.0, 15.0, 40), "d": d} for d in (4, 5, 256)])],
    "diffusers get_2d_sincos_pos_embed": [("diffusers 2-D",
        lambda H, W, d, **scales: _embeddings().get_2d_sincos_pos_embed(d, (H, W), **scales, output_type="pt"),
        [{"H": 32, "W": 32, "d": 1152, "base_size": 32, "interpolation_scale": 1.0},
         {"H": 8, "W": 24, "d": 4, "base_size": 16, "interpolation_scale": 1.0},
         {"H": 64, "W": 48, "d": 64, "base_size": 16, "interpolation_scale": 2.0}])],
    # What MAE and DiT have: steps of one cell and a class token. base_size is a number, so only square grids.
    "MAE and DiT get_2d_sincos_pos_embed; llama.cpp clip": [("diffusers 2-D, class token",
        lambda H, W, d: _embeddings().get_2d_sincos_pos_embed(
            d, (H, W), cls_token=True, extra_tokens=1, base_size=H, output_type="pt"),
        [{"H": 14, "W": 14, "d": d} for d in (4, 768)]), ("ViT-MAE", _vit_mae, _grids(4, 768))],
    "diffusers get_3d_sincos_pos_embed": [("diffusers 3-D",
        lambda T, H, W, d, spatial, temporal: _embeddings().get_3d_sincos_pos_embed(
            d, (W, H), T, spatial_interpolation_scale=spatial, temporal_interpolation_scale=temporal, output_type="pt"),
        [{"T": 13, "H": 8, "W": 12, "d": 64, "spatial": 1.0, "temporal": 1.0},
         {"T": 5, "H": 30, "W": 45, "d": 16, "spatial": 1.875, "temporal": 1.0}])],
    "transformers build_2d_sinusoidal_position_embedding": [(f"transformers 2-D, {model}",
        lambda H, W, d, model=model: modeling(model).build_2d_sinusoidal_position_embedding(H, W, d),
        _grids(4, 64)) for model in ("vit_mae", "aimv2", "rt_detr")],
    "timm build_sincos2d_pos_embed": [("timm", _timm(), _grids(4, 768))],
    "timm build_sincos2d_pos_embed, interleave_sin_cos": [
        ("timm, interleave_sin_cos", _timm(interleave_sin_cos=True), _grids(4, 768))],
    "DETR PositionEmbeddingSine, normalize=True; transformers DETR": [(f"{name}, valid",
        _detr(model, f"{name}SinePositionEmbedding", normalize=True),
        [{"valid": _images, "H": 12, "W": 17, "d": d} for d in (8, 256)])
        for model, name in (("detr", "Detr"), ("conditional_detr", "ConditionalDetr"))],
    "Deformable DETR PositionEmbeddingSine, normalize=True; transformers Deformable DETR": [("DeformableDetr",
        _detr("deformable_detr", "DeformableDetrSinePositionEmbedding", normalize=True),
        [{"valid": valid, "H": 12, "W": 17, "d": d} for d in (8, 256) for valid in (_corners, None)])],
    "SAM PositionEmbeddingRandom, forward_with_coords; nerfstudio RFFEncoding": [
        ("Sam", _sam, [{"points": _points, "matrix": _matrix}])],
    "DETR PositionEmbeddingSine, normalize=False": [("Detr, normalize=False",
        _detr("detr", "DetrSinePositionEmbedding", normalize=False), _grids(8, 256))],
    "transformers encode_sinusoidal_position_embedding": [("ConditionalDetr anchors",
        lambda x, y, d: modeling("conditional_detr").encode_sinusoidal_position_embedding(
            _tensor(np.stack([x, y], -1).astype(np.float32)), d // 2),
        [{"x": np.linspace(0, 1, 50), "y": np.linspace(1, 0.25, 50), "d": d} for d in (4, 256)])],
}  # fmt: skip


def _cases() -> list[Any]:
    cases = []
    for system, peers in PEERS.items():
        for peer, reference, examples in peers:
            for example in examples:
                shape = ", ".join(f"{k}={v}" for k, v in example.items() if not isinstance(v, np.ndarray))
                cases.append(pytest.param(system, reference, example, id=f"{peer}, {shape}"))
    return cases


@pytest.mark.parametrize(("system", "reference", "example"), _cases())
def test_the_documented_call_replaces_the_package(
    system: str, reference: Callable[..., Any], example: dict[str, Any]
) -> None:
    theirs = np.asarray(reference(**example))
    ours = ROWS[system].run(**example)
    assert ours.shape == theirs.shape
    difference = np.abs(theirs.astype(np.float64) - ours)
    if ROWS[system].angles == "float64":
        bounds = np.spacing(np.abs(ours))
        if "base_size" in example or "spatial" in example:
            # Its coordinates are float32 numbers, after three roundings.
            bounds = bounds + np.float32(3.0 * 2.0**-24 * max(example["H"], example["W"], example.get("T", 0)))
    else:
        amplitude = min(1.0, float(np.abs(ours).max()))
        bounds = np.full(ours.shape, amplitude * (2.0**-22 + 2.5e-7 * _largest_angle(system, example)))
    assert (difference <= bounds).all()


def test_a_buffer_with_a_padding_row_is_identified() -> None:
    layer = modeling("m2m_100").M2M100SinusoidalPositionalEmbedding(500, 64, 1)
    found = fastpe.identify(layer.weights)
    assert (found.convention, found.zero_rows) == (fastpe.conventions["fairseq"], (1,))
    assert found.code == "fastpe.encode(500, 64, convention='fairseq')"


def _largest_angle(system: str, example: dict[str, Any]) -> float:
    if "matrix" in example:
        return float(2.0 * np.pi * np.abs((2 * example["points"] - 1) @ example["matrix"]).max())
    if "normalize=True" in system or "encode_sinusoidal" in system:
        return 2.0 * np.pi
    if "w" in example:
        return float(example["w"].max()) * 1000.0
    if "timesteps" in example:
        # Stable Audio's frequencies are exponentials of float32 numbers up to 9.
        scales = {"keras-hub Flux": 1000.0, "diffusers StableAudio3ExpoFourierFeatures": 8e4 * np.pi}
        return float(example["timesteps"].max()) * scales.get(system, 1.0)
    if "positions" in example:
        return float(example["positions"].max())
    if "shape" in example:
        return float(max(example["shape"]))
    return float(max(example.get("L", 0) + example.get("start_index", 0), example.get("H", 0), example.get("W", 0)))
