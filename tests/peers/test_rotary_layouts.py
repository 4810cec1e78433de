# SPDX-License-Identifier: BSD-3-Clause
"""Layouts of several coordinates beside the modules that they are named after: ids, tables and rotations.

Those of text among images have the frequencies of their models' configurations, which test_rotary_configs.py compares,
and the ids of test_text_inputs.py.

Run it with ``pytest -m peers tests/peers/test_rotary_layouts.py``.
"""

from __future__ import annotations

import functools
import inspect
import json
import pathlib
import re
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import fastpe

from .conftest import imported, modeling, timm_layer

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

Array = npt.NDArray[Any]


def transformer(name: str) -> Any:
    return imported(f"diffusers.models.transformers.transformer_{name}")


def numpy_of(value: Any) -> Any:
    """Tensors as arrays; tuples of them as tuples."""
    return tuple(map(numpy_of, value)) if isinstance(value, tuple) else np.asarray(value.detach().cpu())


class Peer(NamedTuple):
    """What a project has of its own for one sequence."""

    # The arguments of the layout.
    layout: str
    head_dim: int
    segments: tuple[Any, ...]
    # Cosines and sines, or what the layout's form is.
    tables: Any
    # From arrays [1, heads, N, head_dim] to such arrays.
    rotate: Callable[..., Any]
    options: Mapping[str, Any] = types.MappingProxyType({})
    id_options: Mapping[str, Any] = types.MappingProxyType({})
    ids: Any = None
    divided_by: Any = 1
    # In which angles are computed.
    angle_dtype: Any = np.float32


def check(peer: Peer) -> None:
    torch = imported("torch")
    layout = fastpe.rotary_layouts[peer.layout]
    ids = layout.positions(*peer.segments, **peer.id_options)
    assert ids.shape[1] == len(layout.coordinates)
    ids = ids if peer.divided_by == 1 else ids / peer.divided_by
    if peer.ids is not None:
        theirs = np.asarray(peer.ids)
        if ids.dtype.kind == "i":
            np.testing.assert_array_equal(ids, theirs)
        else:
            # A few roundings to float32.
            np.testing.assert_allclose(ids, theirs, rtol=0, atol=2.0**-22 * max(1.0, np.abs(ids).max()))

    rope = fastpe.RotaryEmbedding.from_layout(layout, peer.head_dim, **peer.options)
    angles = rope.tables(ids, form="angles", dtype=np.float64)
    # A power, its inverse and the angle are rounded (the power is off by up to one unit), and then the table itself.
    unit = float(np.finfo(peer.angle_dtype).eps)
    expected = numpy_of(peer.tables)
    parts = expected if isinstance(expected, tuple) else (expected,)
    wide = parts[0].dtype in (np.float64, np.complex128)
    bound = 2 * unit * float(np.abs(angles).max()) + 2.0 ** (-51 if wide else -23)
    ours = rope.tables(ids, form=rope.form, dtype=np.float64 if wide else np.float32)
    if isinstance(ours, tuple) and not isinstance(expected, tuple):
        ours = np.concatenate(ours[::-1], axis=-1)  # timm has the sines in front of the cosines
    for own, other in zip(ours if isinstance(ours, tuple) else (ours,), parts, strict=True):
        assert own.dtype == other.dtype
        assert own.shape == other.shape
        assert np.abs(own - other).max() <= bound

    rng = np.random.default_rng(1)
    q = rng.standard_normal((1, 4, len(ids), peer.head_dim), dtype=np.float32)
    k = rng.standard_normal((1, 2, len(ids), peer.head_dim), dtype=np.float32)
    # Two products of a value and its table, and the roundings of both results.
    bound = float(max(np.abs(q).max(), np.abs(k).max())) * (2 * bound + 4 * 2.0**-23)
    rotated = numpy_of(tuple(peer.rotate(torch.from_numpy(q.copy()), torch.from_numpy(k.copy()))))
    for own, other in zip(rope.rotate_(q, k, positions=ids, seq_axis=-2), rotated, strict=True):
        assert np.abs(own - other.reshape(own.shape)).max() <= bound


def each(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function of one array, for queries and keys."""
    return lambda q, k: (function(q), function(k))


def rows_first(function: Callable[..., Any]) -> Callable[..., Any]:
    """For functions that take [1, N, heads, D]."""
    return lambda q, k: [result.transpose(1, 2) for result in function(q.transpose(1, 2), k.transpose(1, 2))]


def inner_function(method: Callable[..., Any], name: str, module: Any) -> Callable[..., Any]:
    """A function that is defined inside of a method and uses nothing of it."""
    constants = inspect.unwrap(method).__code__.co_consts
    (code,) = (constant for constant in constants if inspect.iscode(constant) and constant.co_name == name)
    return types.FunctionType(code, vars(module))


# Images


def axial(head_dim: int, theta: float = 10000.0, **more: Any) -> Any:
    """A configuration."""
    return types.SimpleNamespace(head_dim=head_dim, rope_parameters={"rope_type": "axial", "rope_theta": theta}, **more)


def vision_rotary(module: Any) -> Any:
    """The module's one class of tables for images."""
    names = [name for name in vars(module) if name.endswith(("VisionRotaryEmbedding", "MLCDRotaryEmbedding"))]
    (name,) = [name for name in names if vars(module)[name].__module__ == module.__name__]
    return getattr(module, name)


VISION = [
    *("qwen2_vl", "qwen2_5_vl", "qwen2_5_omni", "qwen3_vl", "qwen3_vl_moe", "qwen3_omni_moe", "qwen3_5", "qwen3_5_moe"),
    *("glm4v", "glm4v_moe", "glm_ocr", "ernie4_5_vl_moe", "exaone4_5", "paddleocr_vl", "video_llama_3", "mlcd"),
    *("cohere_compass", "dots3_note", "glm5_next", "lfm3_vl", "muse_glimmer", "muse_spark", "qwen4_exp"),
    *("kimi_k25", "minimax_m3_vl"),  # whose layouts are their own
]


@pytest.mark.parametrize("model", VISION)
def test_vision(model: str) -> None:
    torch, module = imported("torch"), modeling(model)
    utilities = imported("transformers.vision_utils")
    grids = ((1, 8, 12), (3, 4, 6))
    is_kimi, has_own = model == "kimi_k25", model in VISION[-2:]
    options = {"include_temporal": not is_kimi} if has_own else {}
    position_ids = utilities.get_vision_position_ids(torch.tensor(grids), 1 if is_kimi else 2, **options)
    cos, sin = vision_rotary(module)(axial(80))(torch.zeros(1), position_ids)

    def rotate(q: Any, k: Any) -> Any:
        # [N, heads, D]
        rotated = module.apply_rotary_pos_emb_vision(q[0].transpose(0, 1), k[0].transpose(0, 1), cos, sin)
        return [turned.transpose(0, 1) for turned in rotated]

    layout = f"{model}_vision" if has_own else "qwen2_vl_vision"
    check(Peer(layout, 80, grids, (cos, sin), rotate, ids=position_ids))


# What the table says of the order of their coordinates.
SWAPPED: dict[str, Any] = {"step3p7": "qwen2_vl_vision", "inkling2": "sam2"}


@pytest.mark.parametrize("model", SWAPPED)
def test_vision_whose_width_comes_first(model: str) -> None:
    torch, module, rope = imported("torch"), modeling(model), fastpe.RotaryEmbedding.from_layout(SWAPPED[model], 80)
    ids = np.array([(h, w) for h in range(5) for w in range(7)])
    cos, sin = vision_rotary(module)(axial(80))(torch.zeros(1), torch.from_numpy(ids))
    swapped = np.ascontiguousarray(ids[:, ::-1])
    for our, their in zip(rope.tables(swapped, form=rope.form), (cos, sin), strict=True):
        np.testing.assert_allclose(our, their, rtol=0, atol=2.0**-21)
    x = np.random.default_rng(1).standard_normal((1, 2, len(ids), 80)).astype(np.float32)
    rows = torch.from_numpy(x[0]).transpose(0, 1)
    theirs = module.apply_rotary_pos_emb_vision(rows, rows, cos, sin)[0].transpose(0, 1)[None]
    np.testing.assert_allclose(rope.rotate(x, positions=swapped, seq_axis=-2), theirs, rtol=0, atol=1e-5)


def test_blocks_of_another_size() -> None:
    torch, utilities = imported("torch"), imported("transformers.vision_utils")
    for merge_size in (1, 3):
        expected = utilities.get_vision_position_ids(torch.tensor([[2, 6, 9]]), merge_size)
        ids = fastpe.rotary_layouts["qwen2_vl_vision"].positions((2, 6, 9), merge_size=merge_size)
        np.testing.assert_array_equal(ids, expected)


def test_pixtral() -> None:
    torch, transformers, module = imported("torch"), imported("transformers"), modeling("pixtral")
    config = transformers.PixtralVisionConfig(
        hidden_size=128, num_attention_heads=2, num_hidden_layers=1, intermediate_size=8, image_size=96, patch_size=8
    )
    model = module.PixtralVisionModel(config).eval()
    seen: list[Any] = []
    model.patch_positional_embedding.register_forward_hook(lambda module, inputs, result: seen.append((inputs, result)))
    with torch.no_grad():
        model(torch.zeros(2, 3, 96, 80), image_sizes=[(96, 80), (40, 64)])
    (_, position_ids), (cos, sin) = seen[0]
    rotate = functools.partial(module.apply_rotary_pos_emb, cos=cos[None], sin=sin[None])
    check(Peer("pixtral", 64, ((12, 10), (5, 8)), (cos, sin), rotate, ids=position_ids))


def test_llama4_vision() -> None:
    torch, transformers, module = imported("torch"), imported("transformers"), modeling("llama4")
    config = transformers.Llama4VisionConfig(hidden_size=176, num_attention_heads=2, image_size=84, patch_size=14)
    frequencies = module.Llama4VisionRotaryEmbedding(config)(torch.zeros(1))
    rotate = rows_first(functools.partial(module.vision_apply_rotary_emb, freqs_ci=frequencies))
    check(Peer("llama4_vision", 88, ((6, 6),), frequencies[:, 0], rotate))


def test_gemma4_vision() -> None:
    torch, module = imported("torch"), modeling("gemma4")
    processor = imported("transformers.models.gemma4.image_processing_pil_gemma4").Gemma4ImageProcessorPil
    steps = dict.fromkeys(("do_resize", "do_rescale", "do_normalize"), False)
    unused = dict.fromkeys(("resample", "rescale_factor", "image_mean", "image_std", "return_tensors"))
    batch = processor._preprocess(
        None, [np.zeros((3, 96, 160))], patch_size=16, max_soft_tokens=70, pooling_kernel_size=3, **steps, **unused
    )
    # It pads with -1.
    position_ids = torch.from_numpy(batch["image_position_ids"][:, :60])
    cos, sin = module.Gemma4VisionRotaryEmbedding(axial(72, 100.0))(torch.zeros(1), position_ids)

    def turned(x: Any) -> Any:
        return module.apply_multidimensional_rope(x.transpose(1, 2), cos, sin, position_ids).transpose(1, 2)

    ids = fastpe.rotary_layouts["gemma4_vision"].positions((6, 10))
    np.testing.assert_array_equal(ids, position_ids[0])
    rope = fastpe.RotaryEmbedding(36, interleaved=False, base=100.0)  # for each half of a head
    for ours, theirs in zip(rope.tables(ids, form="tile"), (cos[0], sin[0]), strict=True):
        np.testing.assert_allclose(ours.reshape(60, 72), theirs, rtol=0, atol=10 * 2.0**-22)
    q = np.random.default_rng(1).standard_normal((1, 4, 60, 72), dtype=np.float32)
    expected = turned(torch.from_numpy(q.copy()))
    rope.rotate_(q[..., :36], positions=ids[:, 0], seq_axis=-2)
    rope.rotate_(q[..., 36:], positions=ids[:, 1], seq_axis=-2)
    np.testing.assert_allclose(q, expected, rtol=0, atol=1e-5)


def test_dinov3() -> None:
    torch, transformers, module = imported("torch"), imported("transformers"), modeling("dinov3_vit")
    config = transformers.DINOv3ViTConfig(hidden_size=128, num_attention_heads=2, patch_size=16)
    cos, sin = module.DINOv3ViTRopePositionEmbedding(config).eval()(torch.zeros(1, 3, 96, 160))
    centres = module.get_patches_center_coordinates(6, 10, torch.float32, torch.device("cpu"))
    rotate = functools.partial(module.apply_rotary_pos_emb, cos=cos, sin=sin)
    check(Peer("dinov3", 64, ((6, 10),), (cos, sin), rotate, ids=centres))


TIMM: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "lang": ("timm", {"in_pixels": False}, {}),
    "eva02": ("timm", {"in_pixels": False, "ref_feat_shape": [16, 16]}, {"trained_shape": (16, 16)}),
    "pixel": ("timm_pixel", {"in_pixels": True, "linear_bands": True}, {}),
    "pixel, max_res": ("timm_pixel", {"in_pixels": True, "linear_bands": True, "max_res": 64}, {}),
}


@pytest.mark.parametrize("kind", TIMM)
def test_timm_rotary_embedding_cat(kind: str) -> None:
    imported("torch")
    module = timm_layer("pos_embed_sincos")
    layout, arguments, id_options = TIMM[kind]
    rotary = module.RotaryEmbeddingCat(64, **arguments).eval()
    table = rotary.get_embed([6, 9])
    grid = module._build_grid([6, 9], grid_type=rotary.grid_type, ref_feat_shape=rotary.ref_feat_shape).flatten(0, 1)
    rotate = each(lambda x: module.apply_rot_embed_cat(x, table))
    options = {"base": 64} if "max_res" in arguments else {}
    check(Peer(layout, 64, ((6, 9),), table, rotate, ids=grid, id_options=id_options, options=options))


def test_timm_dinov3() -> None:
    imported("torch")
    module = timm_layer("pos_embed_sincos")
    table = module.RotaryEmbeddingDinoV3(64).eval().get_embed([6, 9])
    rotate = each(lambda x: module.apply_rot_embed_cat(x, table, half=True))
    check(Peer("timm_dinov3", 64, ((6, 9),), table, rotate))


@pytest.mark.parametrize("model", ["sam2_video", "sam3_tracker_video", "edgetam_video"])
def test_memory_attention_of_sam(model: str) -> None:
    torch, module = imported("torch"), modeling(model)
    sizes: dict[str, Any] = {"hidden_size": 256, "downsample_rate": 1, "num_attention_heads": 1}
    sizes["rope_feat_sizes"] = (10, 7)
    config = axial(256, **{f"memory_attention_{name}": size for name, size in sizes.items()})
    owners = (value for name, value in vars(module).items() if name.endswith("MemoryAttention"))
    (owner,) = (value for value in owners if hasattr(value, "precompute_positions"))
    position_ids = owner.precompute_positions(config)
    cos, sin = vision_rotary(module)(config)(torch.zeros(1), position_ids)
    name = "apply_rotary_pos_emb_2d_self_attn" if model == "edgetam_video" else "apply_rotary_pos_emb_2d"
    rotate = functools.partial(getattr(module, name), cos=cos, sin=sin)
    check(Peer("sam2", 256, ((7, 10),), (cos[0], sin[0]), rotate, ids=position_ids))


def test_vision_of_sam3() -> None:
    torch, module = imported("torch"), modeling("sam3")
    config = axial(64, image_size=336, patch_size=14, window_size=9)
    rotary = module.Sam3ViTRotaryEmbedding(config)
    for window_size, segments, id_options in ((9, ((9, 9),), {}), (0, ((24, 24),), {"trained_shape": (9, 9)})):
        position_ids = module.Sam3ViTLayer.precompute_positions(config, window_size)
        cos, sin = rotary(torch.zeros(1), position_ids)
        rotate = functools.partial(module.apply_rotary_pos_emb_2d, cos=cos, sin=sin)
        check(Peer("sam2", 64, segments, (cos[0], sin[0]), rotate, ids=position_ids, id_options=id_options))


# Diffusion


def diffusers_rotate(tables: Any, **options: Any) -> Callable[..., Any]:
    embeddings = imported("diffusers.models.embeddings")
    return each(lambda x: embeddings.apply_rotary_emb(x, tables, **options))


FLUX = {
    "flux": ("flux", "FluxPosEmbed"),
    "chroma": ("chroma", "FluxPosEmbed"),
    "longcat": ("longcat_image", "LongCatImagePosEmbed"),
    "ovis": ("ovis_image", "OvisImagePosEmbed"),
}


@pytest.mark.parametrize("model", FLUX)
def test_flux(model: str) -> None:
    torch = imported("torch")
    module_name, class_name = FLUX[model]
    pipeline = imported("diffusers.pipelines.flux.pipeline_flux").FluxPipeline
    image = pipeline._prepare_latent_image_ids(1, 6, 9, torch.device("cpu"), torch.float32)
    # The ids of text are written so in encode_prompt.
    ids = torch.cat([torch.zeros(11, 3), image])
    tables = getattr(transformer(module_name), class_name)(10000, [16, 56, 56])(ids)
    check(Peer("flux", 128, (11, (6, 9)), tables, diffusers_rotate(tables), ids=ids, angle_dtype=np.float64))


def test_krea2() -> None:
    pipeline = imported("diffusers.pipelines.krea2.pipeline_krea2").Krea2Pipeline
    ids = pipeline.prepare_position_ids(11, 6, 9, imported("torch").device("cpu"))
    tables = transformer("krea2").Krea2RotaryPosEmbed(1000, [32, 48, 48])(ids)
    options = {"base": 1000.0, "sections": (16, 24, 24)}
    rotate = diffusers_rotate(tables)
    check(Peer("flux", 128, (11, (6, 9)), tables, rotate, options=options, ids=ids, angle_dtype=np.float64))


def test_flux2() -> None:
    torch, module = imported("torch"), transformer("flux2")
    pipeline = imported("diffusers.pipelines.flux2.pipeline_flux2").Flux2Pipeline
    text = pipeline._prepare_text_ids(torch.zeros(1, 11, 4))[0]
    image = pipeline._prepare_latent_ids(torch.zeros(1, 4, 6, 9))[0]
    references = pipeline._prepare_image_ids([torch.zeros(1, 4, 3, 5), torch.zeros(1, 4, 2, 7)])[0]
    ids = torch.cat([text, image, references])
    tables = module.Flux2PosEmbed(2000, [32, 32, 32, 32])(ids)
    segments = (11, (6, 9), (3, 5), (2, 7))
    check(Peer("flux2", 128, segments, tables, diffusers_rotate(tables), ids=ids, angle_dtype=np.float64))


def test_flux3() -> None:
    torch, module = imported("torch"), transformer("flux3")
    steps = imported("diffusers.modular_pipelines.flux3.before_denoise")
    owner = next(each for each in vars(steps).values() if hasattr(each, "_prepare_text_ids"))
    text = owner._prepare_text_ids(torch.zeros(1, 11, 4))
    images = [steps._prepare_image_ids(*grid, 0.5, -at) for at, grid in enumerate([(6, 9), (3, 5), (2, 7)])]
    ids = torch.cat([text, *images])
    tables = module.Flux3PosEmbed(10000, [32, 32, 32, 32])(ids)
    segments = (11, (6, 9), (3, 5), (2, 7))
    check(Peer("flux3", 128, segments, tables, diffusers_rotate(tables), ids=ids, angle_dtype=np.float64))


def test_ideogram4() -> None:
    torch, module = imported("torch"), transformer("ideogram4")
    pipeline = imported("diffusers.pipelines.ideogram4.pipeline_ideogram4").Ideogram4Pipeline
    ids, _, _ = pipeline._prepare_ids([11], 6, 9, 11, torch.device("cpu"))
    cos, sin = module.Ideogram4MRoPE(256, 5_000_000, (24, 20, 20))(ids)
    rotate = each(lambda x: x * cos[:, None] + module._rotate_half(x) * sin[:, None])
    check(Peer("ideogram4", 256, (11, (6, 9)), (cos[0], sin[0]), rotate, ids=ids[0]))


@pytest.mark.parametrize("segments", [(11, (6, 9)), (4, (7, 4), (3, 8), 2, (5, 12), 3)])
def test_qwen_image_2_1(segments: tuple[Any, ...]) -> None:
    torch, module = imported("torch"), transformer("qwenimage21")
    mask = [not isinstance(each, int) for each in segments for _ in range(int(np.prod(each)))]
    grids = [(1, *each) for each in segments if not isinstance(each, int)]
    rotary = module.QwenImage21Rope(10000, [16, 56, 56])
    table = rotary(grids, torch.tensor(mask), torch.device("cpu"))
    rotate = rows_first(each(functools.partial(module.apply_rotary_emb_qwen, freqs_cis=table, use_real=False)))
    check(Peer("qwen_image_2_1", 128, segments, table, rotate))


@pytest.mark.parametrize("grids", [[(1, 6, 9)], [(1, 7, 4), (1, 5, 12)]])
def test_qwen_image(grids: list[tuple[int, int, int]]) -> None:
    torch, module = imported("torch"), transformer("qwenimage")
    rotary = module.QwenEmbedRope(10000, [16, 56, 56], scale_rope=True)
    video, text = rotary([grids], max_txt_seq_len=11, device=torch.device("cpu"))
    # The joint attention has text in front.
    table = torch.cat([text, video])
    rotate = rows_first(each(functools.partial(module.apply_rotary_emb_qwen, freqs_cis=table, use_real=False)))
    check(Peer("qwen_image", 128, (11, *grids), table, rotate))


HUNYUAN = {"hunyuan_video": np.float32, "hunyuan_video15": np.float32, "motif_video": np.float64}


@pytest.mark.parametrize("model", HUNYUAN)
def test_hunyuan_video(model: str) -> None:
    torch, module = imported("torch"), transformer(model)
    (name,) = (name for name in vars(module) if name.endswith(("VideoRotaryPosEmbed", "15RotaryPosEmbed")))
    tables = getattr(module, name)(2, 1, [16, 56, 56], 256.0)(torch.zeros(1, 4, 3, 8, 10))
    check(Peer("hunyuan_video", 128, ((3, 4, 5),), tables, diffusers_rotate(tables), angle_dtype=HUNYUAN[model]))


WAN = {
    "Wan": ("wan", "WanRotaryPosEmbed", "WanAttnProcessor"),
    "SkyReels-V2": ("skyreels_v2", "SkyReelsV2RotaryPosEmbed", "SkyReelsV2AttnProcessor"),
    "ChronoEdit": ("chronoedit", "ChronoEditRotaryPosEmbed", "WanAttnProcessor"),
}


@pytest.mark.parametrize("frames", [3, 2])
@pytest.mark.parametrize(
    # ChronoEdit divides 64 columns otherwise than it makes tables.
    ("model", "head_dim"),
    [(model, width) for model in WAN for width in (128, 64) if (model, width) != ("ChronoEdit", 64)],
)
def test_wan(model: str, frames: int, head_dim: int) -> None:
    torch, module = imported("torch"), transformer(WAN[model][0])
    rotary, processor = (getattr(module, name) for name in WAN[model][1:])
    cos, sin = rotary(head_dim, (1, 2, 2), 64)(torch.zeros(1, 4, frames, 8, 10))
    function = inner_function(processor.__call__, "apply_rotary_emb", module)
    rotate = rows_first(each(lambda x: function(x, cos, sin)))
    # What the class has by itself, of two frames.
    options = {"time_interval": 7.0} if model == "ChronoEdit" and frames == 2 else {}
    tables, segments = (cos[0, :, 0], sin[0, :, 0]), ((frames, 4, 5),)
    check(Peer("wan", head_dim, segments, tables, rotate, id_options=options, angle_dtype=np.float64))


@pytest.mark.parametrize("rope_scale", [(2.0, 1.0, 1.0), (1.0, 3.0, 3.0)])
@pytest.mark.parametrize("fps", [None, 16, 30])
def test_cosmos(rope_scale: tuple[float, ...], fps: int | None) -> None:
    """Its bases are one for each coordinate: those of the call that the report of its config prints."""
    torch, module = imported("torch"), transformer("cosmos")
    tables = module.CosmosRotaryPosEmbed(128, rope_scale=rope_scale)(torch.zeros(1, 4, 5, 8, 12), fps)
    config = {"_class_name": "CosmosTransformer3DModel", "attention_head_dim": 128, "rope_scale": [*rope_scale]}
    (base,) = re.findall(r"base=(\[.*?\])", str(fastpe.ModelConfig(config)))
    rotate = diffusers_rotate(tables, use_real_unbind_dim=-2)
    id_options = {"time_interval": 24 / fps} if fps else {}
    options = {"base": json.loads(base)}
    check(Peer("cosmos", 128, ((5, 4, 6),), tables, rotate, options=options, id_options=id_options))


@pytest.mark.parametrize("grid", [(6, 9), (16, 16), (5, 40)])
def test_cogview4(grid: tuple[int, int]) -> None:
    torch, module = imported("torch"), transformer("cogview4")
    tables = module.CogView4RotaryPosEmbed(40, 2, (16, 24))(torch.zeros(1, 4, 2 * grid[0], 2 * grid[1]))
    rotate = diffusers_rotate(tables, use_real_unbind_dim=-2)
    check(Peer("cogview4", 40, (grid,), tables, rotate, id_options={"trained_shape": (16, 24)}))


KANDINSKY = {"kandinsky": (16, 24, 24), "kandinsky6": (32, 48, 48), "kandinsky6_sr": (16, 24, 24)}


@pytest.mark.parametrize("model", KANDINSKY)
def test_kandinsky(model: str) -> None:
    torch, module = imported("torch"), transformer(model)
    (rotary,) = (getattr(module, name) for name in vars(module) if name.endswith("RoPE3D"))
    pos, scale = tuple(torch.arange(length) for length in (3, 4, 6)), (1.0, 2.0, 3.16)
    shape = () if "6" in model else ((1, 3, 4, 6),)
    matrices = rotary(KANDINSKY[model])(*shape, pos, scale).reshape(72, 1, -1, 2, 2)
    # transformer_kandinsky.py has this function in its processor, and returns bfloat16 from it.
    function = transformer("kandinsky6").apply_rotary
    rotate = rows_first(each(lambda x: function(x, matrices[None])))
    check(Peer("kandinsky", sum(KANDINSKY[model]), ((3, 4, 6),), matrices[:, 0], rotate, divided_by=scale))


@pytest.mark.parametrize("grid", [(4, 6), (6, 4), (5, 12), (8, 12)])
def test_cogvideox(grid: tuple[int, int]) -> None:
    embeddings = imported("diffusers.models.embeddings")
    crop = imported("diffusers.pipelines.cogvideo.pipeline_cogvideox").get_resize_crop_region_for_grid
    tables = embeddings.get_3d_rotary_pos_embed(64, crop(grid, 12, 8), grid, 3)
    rotate = diffusers_rotate(tables)
    check(Peer("cogvideox", 64, ((3, *grid),), tables, rotate, id_options={"trained_shape": (8, 12)}))
    tables = embeddings.get_3d_rotary_pos_embed(64, None, grid, 3, grid_type="slice", max_size=(8, 12))
    check(Peer("cogvideox", 64, ((3, *grid),), tables, diffusers_rotate(tables)))


def test_lumina2() -> None:
    torch, module = imported("torch"), transformer("lumina2")
    rotary = module.Lumina2RotaryPosEmbed(10000, [32, 32, 32], [300, 64, 64])
    *_, table, _, _ = rotary(torch.zeros(1, 4, 12, 10), torch.ones(1, 9, dtype=torch.int32))
    rotate = rows_first(diffusers_rotate(table, use_real=False))
    check(Peer("lumina2", 96, (9, (6, 5)), table[0], rotate, angle_dtype=np.float64))


@pytest.mark.parametrize("tokens", [9, 64])
def test_z_image(tokens: int) -> None:
    torch, module = imported("torch"), transformer("z_image")
    model = module.ZImageTransformer2DModel
    fake = types.SimpleNamespace()
    for name in ("create_coordinate_grid", "_patchify_image", "_pad_with_ids"):
        value = inspect.getattr_static(model, name)
        setattr(fake, name, value.__func__ if isinstance(value, staticmethod) else functools.partial(value, fake))
    image, text = torch.zeros(4, 1, 10, 14), torch.zeros(tokens, 8)
    result = model.patchify_and_embed(fake, [image], [text], 2, 1)
    tensors = [each[0] for each in result if isinstance(each, list) and torch.is_tensor(each[0])]
    id_lists = [each for each in tensors if each.shape[-1:] == (3,)]
    image_ids, text_ids = sorted(id_lists, key=lambda ids: bool(ids[0, 0] == 1))
    # The text's ids are longer than its features, and are cut to them before they are used.
    ids = torch.cat([image_ids, text_ids[: tokens + -tokens % 32]])
    table = module.RopeEmbedder(256.0, [32, 48, 48], [512, 64, 64])(ids)
    function = inner_function(module.ZSingleStreamAttnProcessor.__call__, "apply_rotary_emb", module)
    rotate = rows_first(each(lambda x: function(x, table[None])))
    check(Peer("z_image", 128, ((1, 5, 7), tokens), table, rotate, ids=ids))


# What is no layout


def test_partners_of_ernie_image_have_different_angles() -> None:
    torch, module = imported("torch"), transformer("ernie_image")
    angles = module.ErnieImageEmbedND3(128, 256, (32, 48, 48))(torch.tensor([[[9.0, 3.0, 5.0]]]))[0, 0, 0]
    assert torch.equal(angles[0::2], angles[1::2])  # each twice in turn
    first, second = angles.chunk(2)  # its processor pairs these
    assert (first != second).all()


def test_ltx_video_rotates_all_heads_as_one() -> None:
    torch, module = imported("torch"), transformer("ltx")
    names: dict[str, Any] = {"np": np, "fastpe": fastpe, "rng": np.random.default_rng(5)}
    page = pathlib.Path(__file__).parents[2] / "docs" / "rotary-layouts.md"
    made, call = re.findall("```python\n(width = 64.*?)(ltx.rotate_.*?)```", page.read_text("utf-8"), re.DOTALL)[0]
    exec(made, names)  # noqa: S102
    rope = module.LTXVideoRotaryPosEmbed(dim=names["width"])
    x = torch.from_numpy(names["queries"].copy())
    expected = module.apply_rotary_emb(x, rope(x, 4, 6, 8, tuple(names["interpolation"].tolist())))
    exec(call, names)  # noqa: S102
    # Its angles are float32 numbers, up to 10000 * pi / 2.
    np.testing.assert_allclose(names["queries"], expected, rtol=0, atol=4e-3)
