# SPDX-License-Identifier: BSD-3-Clause
"""Resized grids beside torch's functions, and beside each model's own method.

Run it with ``pytest -m peers tests/peers/test_resize.py``.
"""

from __future__ import annotations

import ast
import functools
import importlib
import itertools
import math
import pathlib
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastpe

from .conftest import modeling, timm_layer

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

Array = npt.NDArray[Any]
MODELS = pathlib.Path(transformers.__file__).parent / "models"
F = torch.nn.functional
SIDE, PATCH, WIDTH, NEW = 8, 4, 6, (5, 9)

# Models that resize otherwise than ViT.
CONVENTIONS = {
    **dict.fromkeys(["dinov2_with_registers", "rf_detr", "deepseek_ocr2", "unlimited_ocr"], "timm"),
    **dict.fromkeys(["tipsv2", "videoprism"], "siglip2"),
    **dict.fromkeys(["step3p7", "hunyuan_vl"], "paddleocr_vl"),
    "hy_v4_vl": "hy_v4_vl",
    "dinov2": "dinov2",
    "pixio": "dinov2",
}
# Methods of this name that resize no grid of positions: a table's columns too, tables of each axis, the patches' own
# shape, and fixed sines and cosines.
OTHERS = {"VideoPrismTemporalEmbeddings", "TvpVisualInputEmbedding", "PvtPatchEmbeddings", "ViTMAEDecoder"}
# How encoders whose taps are computed outside of a graph take them.
PACKED = {"kimi_k25": "vit", "paddleocr_vl": "paddleocr_vl", "muse_spark": "muse", "muse_glimmer": "muse"}


def table_of(rows: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((rows, WIDTH)).astype(np.float32)


def rows_of(value: Any) -> Array:
    return np.asarray(value.detach()).reshape(-1, WIDTH)


class Lengths(int):
    """A size of patches or images, which some models keep as a number and others as a pair."""

    def __getitem__(self, _: int) -> int:
        return int(self)


class Learned(torch.Tensor):  # type: ignore[misc, name-defined]
    """A table, which some models keep as a parameter and others as an embedding."""

    @property
    def weight(self) -> Any:
        return self[0] if self.ndim == 3 else self

    def __call__(self, ids: Any) -> Any:
        return self.weight[ids]


def stand_in(table: Array, tokens: int, **more: Any) -> Any:
    """What methods read of a model."""
    learned = torch.from_numpy(table)[None].as_subclass(Learned)
    names = ("position_embeddings", "position_embedding", "pos_embed")
    cells = len(table) - tokens
    patches = SimpleNamespace(patch_size=(PATCH, PATCH), num_patches=cells, image_size=(SIDE * PATCH,) * 2)
    config = SimpleNamespace(patch_size=Lengths(PATCH), interpolate_mode="bilinear")
    given = {"position_ids": torch.arange(len(table))[None], "patch_embeddings": patches, "config": config}
    given |= {"embed_dim": WIDTH, "_num_channels": WIDTH, "num_positions": len(table), "n_cls_tokens": tokens}
    given |= {"position_edge": SIDE, "num_patches_per_side": SIDE, "num_patches": cells}
    given |= {"patch_stride": (PATCH, PATCH), "patch_size": Lengths(PATCH)}
    return SimpleNamespace(**{**dict.fromkeys(names, learned), **given, **more})


TORCH_OPTIONS: list[dict[str, Any]] = [
    {"mode": "nearest"},
    {"mode": "nearest-exact"},
    *({"mode": mode, **options} for mode in ("bilinear", "bicubic") for options in ({}, {"antialias": True})),
]


@pytest.mark.parametrize("trained", [(7, 7), (16, 16), (5, 9), (1, 4)], ids=str)
@pytest.mark.parametrize("shape", [(7, 7), (20, 30), (3, 5), (1, 1), (64, 2)], ids=str)
def test_modes_are_those_of_torch_in_float64(trained: tuple[int, int], shape: tuple[int, int]) -> None:
    table = table_of(trained[0] * trained[1]).astype(np.float64)
    image = torch.from_numpy(table.reshape(1, *trained, WIDTH)).permute(0, 3, 1, 2)
    for options in [*TORCH_OPTIONS, *({"mode": mode, "align_corners": True} for mode in ("bilinear", "bicubic"))]:
        expected = rows_of(F.interpolate(image, size=shape, **options)[0].permute(1, 2, 0))
        new = fastpe.resize_table(table, shape, trained_shape=trained, **options)
        assert np.abs(new - expected).max() < 1e-12, options
    ends = [(np.arange(n) + 0.5) / n * 2 - 1 for n in shape]
    grid = torch.from_numpy(np.stack(np.meshgrid(*ends, indexing="ij")[::-1], -1))[None]
    for mode, padding in itertools.product(["bilinear", "bicubic"], ["border", "zeros"]):
        options = {"mode": mode, "padding_mode": padding}
        sampled = F.grid_sample(image, grid, align_corners=False, **options)
        new = fastpe.resize_table(table, shape, trained_shape=trained, **options)
        assert np.abs(new - rows_of(sampled[0].permute(1, 2, 0))).max() < 1e-12, options


@pytest.mark.parametrize(("side", "length"), [(127, 27), (27, 127), (5, 5), (1, 4)])
def test_modes_of_one_axis_are_those_of_torch(side: int, length: int) -> None:
    table = table_of(side).astype(np.float64)
    line = torch.from_numpy(table.T)[None]
    for options in [*TORCH_OPTIONS[:2], {"mode": "linear"}, {"mode": "linear", "align_corners": True}]:
        expected = rows_of(F.interpolate(line, size=length, **options)[0].T)
        assert np.abs(fastpe.resize_table(table, (length,), **options) - expected).max() < 1e-12


@pytest.mark.parametrize("shape", [(7, 7), (14, 7), (8, 15), (3, 21)], ids=str)
def test_scale_factors_are_those_of_torch(shape: tuple[int, int]) -> None:
    table = table_of(49).astype(np.float64)
    image = torch.from_numpy(table.reshape(1, 7, 7, WIDTH)).permute(0, 3, 1, 2)
    factors = tuple((length + 0.1) / 7 for length in shape)
    for options in TORCH_OPTIONS:
        expected = rows_of(F.interpolate(image, scale_factor=factors, **options)[0].permute(1, 2, 0))
        new = fastpe.resize_table(table, shape, scale_factor=factors, **options)
        assert np.abs(new - expected).max() < 1e-12, options
    if shape != (7, 7):  # which the authors' code leaves as it is
        expected = rows_of(F.interpolate(image, scale_factor=factors, mode="bicubic")[0].permute(1, 2, 0))
        assert np.abs(fastpe.resize_table(table, shape, convention="dinov2_2023") - expected).max() < 1e-12


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_single_cells_at_a_factor_are_those_of_torch(mode: Any) -> None:
    random = np.random.default_rng(5)
    for _ in range(1500):
        side = int(random.integers(1, 60))
        factor = random.choice(
            [0.1, 0.3, 1.1, (random.integers(1, 60) + random.choice([0, 0.1])) / side, random.uniform(0.1, 2)]
        )
        length = math.floor(side * factor)
        if length:
            line = torch.arange(float(side))[None, None]
            expected = F.interpolate(line, scale_factor=factor, mode=mode).ravel()
            got = fastpe.resize_table(line[0, 0, :, None], (length,), mode=mode, scale_factor=factor)
            assert (got[:, 0] == expected.numpy()).all(), (side, factor)
            expected = F.interpolate(line[..., None], scale_factor=(factor, 1.0), mode=mode).ravel()
            shapes: dict[str, Any] = {"trained_shape": (side, 1), "scale_factor": (factor, 1.0)}
            got = fastpe.resize_table(line[0, 0, :, None], (length, 1), mode=mode, **shapes)
            assert (got[:, 0] == expected.numpy()).all(), (side, factor)


def methods() -> Iterator[tuple[str, str, str]]:
    for file in sorted(MODELS.glob("*/modeling_*.py")):
        text = file.read_text(encoding="utf-8")
        for node in ast.parse(text).body if "def interpolate_pos_encoding" in text else []:
            if isinstance(node, ast.ClassDef) and node.name not in OTHERS:
                for each in node.body:
                    if isinstance(each, ast.FunctionDef) and each.name == "interpolate_pos_encoding":
                        yield file.parent.name, file.stem.removeprefix("modeling_"), node.name


def called(method: Any, table: Array, tokens: int) -> Array:
    names = method.__code__.co_varnames[1 : method.__code__.co_argcount]
    whole = stand_in(table, tokens)
    in_cells = re.match("Perceiver|SegGpt|HunYuan|HYV4|.*Sam", method.__qualname__)
    if "Sam" in method.__qualname__:
        whole.pos_embed = whole.pos_embed.reshape(1, SIDE, SIDE, WIDTH)
    values = {
        "embeddings": torch.zeros(1, NEW[0] * NEW[1] + tokens, WIDTH),
        "pos_embeds": whole.pos_embed,
        "position_embeddings": whole.pos_embed[0],
        "height": NEW[0] * (1 if in_cells else PATCH),
        "width": NEW[1] * (1 if in_cells else PATCH),
    }
    return rows_of(method(whole, *(values[name] for name in names)))


@pytest.mark.parametrize(("model", "file", "name"), list(methods()))
def test_every_method_that_resizes(model: str, file: str, name: str) -> None:
    """A model that is new in transformers is compared as well, and then has a row above."""
    method = getattr(modeling(model, file), name).interpolate_pos_encoding
    for tokens in (1, 0, 2):
        table = table_of(SIDE * SIDE + tokens)
        try:
            got = called(method, table, tokens)
        except RuntimeError:  # of a reshape: it has another number of class tokens
            continue
        if len(got) in (NEW[0] * NEW[1], NEW[0] * NEW[1] + tokens):
            break
    convention = fastpe.resize_conventions[CONVENTIONS.get(model, "vit")]
    new = fastpe.resize_table(table, NEW, convention=convention, class_tokens=tokens)
    assert np.abs(got - new[-len(got) :]).max() < 1e-5


TABLE = table_of(SIDE * SIDE)
GRID = torch.from_numpy(TABLE.reshape(SIDE, SIDE, WIDTH))
SIZES = torch.tensor([NEW])


def packed(model: str) -> Array:
    """The taps of an encoder that has them computed outside of a graph, with what its code says of them."""
    text = (MODELS / model / f"modeling_{model}.py").read_text(encoding="utf-8")
    said = dict(re.findall(r"self\.interpolation_(\w+) = (\S+)", text))
    function = importlib.import_module("transformers.vision_utils").get_vision_interpolation_indices_and_weights
    options = {name: ast.literal_eval(value) for name, value in said.items()}
    indices, weights = function(torch.tensor([[1, *NEW]]), SIDE, **options)
    new: Array = (TABLE[indices] * weights.numpy()[..., None]).sum(1)
    return new


def by_grid_sample(model: str, name: str) -> Array:
    whole = stand_in(TABLE, 0, position_embedding=SimpleNamespace(weight=torch.from_numpy(TABLE)))
    rows, columns = (torch.from_numpy(each.ravel()) for each in np.indices(NEW))
    whole.interpolated_method = {"glm4v": "bicubic", "glm_image": "bilinear"}[model]
    shapes, nothing = torch.tensor([[1, *NEW]]), torch.zeros(NEW[0] * NEW[1], WIDTH)
    return rows_of(getattr(modeling(model), name).forward(whole, nothing, [len(rows)], shapes, rows, columns))


def by_buckets(model: str, name: str) -> Array:
    whole = stand_in(TABLE, 0, num_patches_per_side=SIDE)
    whole.patch_embedding = lambda pixels: torch.zeros(1, WIDTH, *NEW)
    pixels = torch.zeros(1, 3, NEW[0] * PATCH, NEW[1] * PATCH)
    return rows_of(getattr(modeling(model), name).forward(whole, pixels, torch.ones(1, *NEW, dtype=torch.bool)))


def vilt() -> Array:
    table = torch.cat([torch.zeros(1, WIDTH), torch.from_numpy(TABLE)])[None]
    config = SimpleNamespace(image_size=SIDE * PATCH, patch_size=PATCH)
    whole = SimpleNamespace(
        position_embeddings=table, config=config, cls_token=torch.zeros(1, 1, WIDTH), dropout=lambda x: x
    )

    class Patches:
        projection = SimpleNamespace(weight=torch.zeros(WIDTH, 3, PATCH, PATCH))

        def __call__(self, pixels: Any) -> Any:
            return torch.zeros(1, WIDTH, *NEW)

    whole.patch_embeddings = Patches()
    pixels = torch.zeros(1, 3, NEW[0] * PATCH, NEW[1] * PATCH)
    got, _, (places, _) = modeling("vilt").ViltEmbeddings.visual_embed(whole, pixels, pixels[:, 0] == 0, -1)
    order = (places[0, :, 0] * NEW[1] + places[0, :, 1]).argsort()  # the model shuffles the patches
    return rows_of(got[0, 1:][order])


def timesformer() -> Array:
    table, nothing = torch.cat([torch.zeros(1, WIDTH), torch.from_numpy(TABLE)])[None], torch.zeros(1, 1, WIDTH)
    whole = SimpleNamespace(
        position_embeddings=table, cls_token=nothing, pos_drop=lambda x: x, attention_type="space_only"
    )
    whole.patch_embeddings = lambda pixels: (torch.zeros(1, NEW[0] * NEW[1], WIDTH), 1, NEW[1])
    return rows_of(modeling("timesformer").TimesformerEmbeddings.forward(whole, torch.zeros(1))[0, 1:])


def radio() -> Array:
    whole = SimpleNamespace(position_embedding=torch.from_numpy(TABLE)[None], max_rows=SIDE, max_cols=SIDE)
    method = modeling("radio").RadioPatchEmbeddings._interpolate_position_embedding
    return rows_of(method(whole, NEW, torch.float32))


def sam2(window: Array) -> Array:
    grids = (each.reshape(1, n, n, WIDTH) for each, n in ((TABLE, SIDE), (window, 4)))
    table, tile = (torch.from_numpy(grid).permute(0, 3, 1, 2) for grid in grids)
    whole = SimpleNamespace(pos_embed=table, pos_embed_window=tile)
    return rows_of(modeling("sam2").Sam2HieraDetModel._get_pos_embed(whole, (12, 16)))


OWN_METHODS: dict[str, tuple[str, Any]] = {
    **{model: (PACKED.get(model, "qwen3_vl"), functools.partial(packed, model)) for model in sorted(
        file.parent.name
        for file in MODELS.glob("*/modeling_*.py")
        if "self.interpolation_mode = " in file.read_text(encoding="utf-8")
    )},
    "glm4v": ("vit", lambda: by_grid_sample("glm4v", "Glm4vVisionEmbeddings")),
    "glm_image": ("paddleocr_vl", lambda: by_grid_sample("glm_image", "GlmImageVisionEmbeddings")),
    "idefics2": ("idefics2", lambda: by_buckets("idefics2", "Idefics2VisionEmbeddings")),
    "idefics3": ("idefics2", lambda: by_buckets("idefics3", "Idefics3VisionEmbeddings")),
    "smolvlm": ("idefics2", lambda: by_buckets("smolvlm", "SmolVLMVisionEmbeddings")),
    "phi4_multimodal": ("idefics2", lambda: by_buckets("phi4_multimodal", "Phi4MultimodalVisionEmbeddings")),
    "minicpm": ("idefics2", lambda: TABLE[importlib.import_module("transformers.vision_utils").get_vision_nearest_position_ids(SIZES, SIDE)]),
    "siglip2": ("siglip2", lambda: rows_of(modeling("siglip2").Siglip2VisionEmbeddings.resize_positional_embeddings(GRID, SIZES, 45))),
    "lfm2_vl": ("siglip2", lambda: rows_of(modeling("siglip2").Siglip2VisionEmbeddings.resize_positional_embeddings(GRID, SIZES, 45))),
    "dpt": ("paddleocr_vl", lambda: rows_of(modeling("dpt").DPTViTEmbeddings._resize_pos_embed(None, torch.from_numpy(TABLE)[None], *NEW, 0))),
    "radio": ("radio", radio),
    "vilt": ("vilt", vilt),
    "timesformer": ("idefics2", timesformer),
    "vitdet": ("vit", lambda: rows_of(modeling("vitdet").VitDetEmbeddings.get_absolute_positions(None, torch.from_numpy(TABLE)[None], False, *NEW))),
    "sam3": ("sam3", lambda: rows_of(modeling("sam3").Sam3ViTEmbeddings._tile_position_embeddings(None, torch.from_numpy(TABLE)[None], *NEW))),
    "timm": ("timm", lambda: rows_of(timm_layer("pos_embed").resample_abs_pos_embed(torch.from_numpy(TABLE)[None], NEW, num_prefix_tokens=0))),
}  # fmt: skip


@pytest.mark.parametrize("model", OWN_METHODS)
def test_conventions_are_those_of_the_models(model: str) -> None:
    convention, method = OWN_METHODS[model]
    new = fastpe.resize_table(TABLE, NEW, convention=fastpe.resize_conventions[convention])
    assert np.abs(method() - new).max() < 1e-5


def test_tables_that_models_use_in_other_ways() -> None:
    window = table_of(16, seed=1)
    new = fastpe.resize_table(TABLE, (12, 16), convention="vit")
    new += fastpe.resize_table(window, (12, 16), convention="sam3")
    assert np.abs(sam2(window) - new).max() < 1e-5

    method = modeling("cosmos3_edge").Cosmos3EdgeVisionEmbeddings.resize_positional_embeddings
    blocks = method(GRID, torch.tensor([[1, 6, 4]]), 2)
    new = fastpe.resize_table(TABLE, (6, 4), convention="siglip2", merge_size=2)
    assert np.abs(rows_of(blocks) - new).max() < 1e-5

    relative, (queries, keys) = table_of(27), (10, 10)
    resized = fastpe.resize_table(relative, (2 * max(queries, keys) - 1,), convention="sam_relative")
    between = np.arange(queries)[:, None] - np.arange(keys) + keys - 1
    attentions = {"sam": "SamVisionAttention", "seggpt": "SegGptAttention", "sam_hq": "SamHQVisionAttention"}
    for model, attention in attentions.items():
        own = getattr(modeling(model), attention).get_rel_pos(None, queries, keys, torch.from_numpy(relative))
        assert np.abs(own.numpy() - resized[between]).max() < 1e-5
    own = modeling("vitdet").get_rel_pos(queries, keys, torch.from_numpy(relative))
    assert np.abs(own.numpy() - resized[between]).max() < 1e-5
