# SPDX-License-Identifier: BSD-3-Clause
"""Encodings of model configurations beside the modules of transformers, and the first rows of learned tables.

Run it with ``pytest -m peers tests/peers/test_sinusoidal_configs.py``.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import re
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastpe
from fastpe._config.file import table, written

from .conftest import modeling

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

Array = npt.NDArray[Any]

WIDTH, LENGTH = 32, 24
# Tokens, where padding has the ids 0 and 1.
IDS = np.arange(5, 5 + LENGTH)[None]


def tensor(array: Any) -> Any:
    return importlib.import_module("torch").from_numpy(np.array(array))


def of_fsmt(made: Any, ids: Array) -> Any:
    table = made(64, WIDTH, 1)
    table.make_weight(64, WIDTH, 1)
    return table(tensor(ids))[0]


def of_out(made: Any, ids: Array) -> Any:
    out = tensor(np.zeros((ids.shape[1], WIDTH), np.float32))
    made(ids.shape[1], WIDTH, out=out)
    return out


def of_config(made: Any, ids: Array) -> Any:
    config = types.SimpleNamespace(hidden_size=WIDTH, max_position_embeddings=64, min_timescale=1, max_timescale=10000)
    length = ids.shape[1]
    return made(config)(length)[0] if made.__name__.startswith("TimesFm") else made(config)(tensor(np.arange(length)))


def of_embeddings(*arguments: Any) -> Callable[..., Any]:
    return lambda made, ids: made(*arguments)(tensor(np.zeros((1, ids.shape[1], WIDTH), np.float32))).reshape(-1, WIDTH)


def of_positions(*arguments: Any) -> Callable[..., Any]:
    """Takes the positions themselves."""
    return lambda made, ids: made(64, WIDTH, *arguments)(tensor(np.arange(ids.shape[1]))[None])[0]


# How a class or function makes rows; a frozen table's first row belongs to position 0.
HOW: dict[str, Callable[[Any, Array], Any]] = {
    "weight": lambda made, ids: made(ids.shape[1], WIDTH).create_weight(),
    "ids": lambda made, ids: made(64, WIDTH, 1)(tensor(ids))[0],
    "ids, padded with 0": lambda made, ids: made(64, WIDTH, 0)(tensor(ids))[0],
    "codebooks": lambda made, ids: made(64, WIDTH)(tensor(ids[:, None])),
    "buffer": lambda made, ids: made(ids.shape[1], WIDTH).positional_embedding,
    "function": lambda made, ids: made(ids.shape[1], WIDTH).reshape(-1, WIDTH),
    "function of a dtype": lambda made, ids: made(ids.shape[1], WIDTH, None),
    "config": of_config,
    "embeddings": of_embeddings(WIDTH),
    "embeddings of 64": of_embeddings(64, WIDTH),
    "fsmt": of_fsmt,
    "out": of_out,
    "positions": of_positions(),
    "positions, padded with 1": of_positions(1),
}
# The folder, the class or function in it, and how it makes rows.
MADE = {
    "autoformer": ("autoformer", "AutoformerSinusoidalPositionalEmbedding", "weight"),
    "informer": ("informer", "InformerSinusoidalPositionalEmbedding", "weight"),
    "time_series_transformer": ("time_series_transformer", "TimeSeriesSinusoidalPositionalEmbedding", "weight"),
    "marian": ("marian", "MarianSinusoidalPositionalEmbedding", "weight"),
    "pegasus": ("pegasus", "PegasusSinusoidalPositionalEmbedding", "weight"),
    "fsmt": ("fsmt", "SinusoidalPositionalEmbedding", "fsmt"),
    "m2m_100": ("m2m_100", "M2M100SinusoidalPositionalEmbedding", "ids"),
    "nllb-moe": ("nllb_moe", "NllbMoeSinusoidalPositionalEmbedding", "ids"),
    "kosmos_2_text_model": ("kosmos2", "Kosmos2TextSinusoidalPositionalEmbedding", "ids"),
    "kosmos_2_5_text_model": ("kosmos2_5", "Kosmos2_5TextSinusoidalPositionalEmbedding", "ids"),
    "speech_to_text": ("speech_to_text", "Speech2TextSinusoidalPositionalEmbedding", "ids"),
    "speecht5": ("speecht5", "SpeechT5SinusoidalPositionalEmbedding", "ids"),
    "trocr": ("trocr", "TrOCRSinusoidalPositionalEmbedding", "ids"),
    "seamless_m4t": ("seamless_m4t", "SeamlessM4TSinusoidalPositionalEmbedding", "ids, padded with 0"),
    "seamless_m4t_v2": ("seamless_m4t_v2", "SeamlessM4Tv2SinusoidalPositionalEmbedding", "ids, padded with 0"),
    "xglm": ("xglm", "XGLMSinusoidalPositionalEmbedding", "positions, padded with 1"),
    "canary_decoder": ("canary", "CanaryPositionalEmbedding", "positions"),
    "musicgen_decoder": ("musicgen", "MusicgenSinusoidalPositionalEmbedding", "codebooks"),
    "musicgen_melody_decoder": ("musicgen_melody", "MusicgenMelodySinusoidalPositionalEmbedding", "embeddings of 64"),
    "pegasus_x": ("pegasus_x", "PegasusXSinusoidalPositionalEmbedding", "embeddings"),
    "fun_asr_nano_encoder": ("fun_asr_nano", "FunAsrNanoPositionEmbedding", "embeddings of 64"),
    "qwen2_5_omni_audio_encoder": ("qwen2_5_omni", "SinusoidsPositionEmbedding", "buffer"),
    "qwen3_asr_encoder": ("qwen3_asr", "SinusoidsPositionEmbedding", "buffer"),
    "qwen3_omni_moe_audio_encoder": ("qwen3_omni_moe", "SinusoidsPositionEmbedding", "buffer"),
    "xlm": ("xlm", "create_sinusoidal_embeddings", "out"),
    "flaubert": ("flaubert", "create_sinusoidal_embeddings", "out"),
    "distilbert": ("distilbert", "_create_sinusoidal_embeddings", "out"),
    "ctrl": ("ctrl", "positional_encoding", "function of a dtype"),
    "whisper": ("whisper", "sinusoids", "function"),
    "videomae": ("videomae", "get_sinusoid_encoding_table", "function"),
    "videoprism_text_model": ("videoprism", "create_sinusoidal_positions", "function"),
    "tipsv2_text_model": ("tipsv2", "Tipsv2SinusoidalPositionalEmbedding", "config"),
    "timesfm": ("timesfm", "TimesFmPositionalEmbedding", "config"),
}


def rows_of(model_type: str, ids: Array) -> Array:
    folder, name, how = MADE[model_type]
    return np.asarray(HOW[how](getattr(modeling(folder), name), ids).detach())


def config_of(model_type: str) -> dict[str, Any]:
    row = table()["sinusoids"][model_type]
    required = {key: words[0] for key, words in row.get("requires", {}).items()}
    return {"model_type": model_type, row["width"]: WIDTH, **required}


def test_every_type_is_compared() -> None:
    assert {*MADE} == {*table()["sinusoids"]}


@pytest.mark.parametrize("model_type", MADE)
def test_rows(model_type: str) -> None:
    encoding = fastpe.PositionalEncoding.from_config(config_of(model_type))
    # Angles of LENGTH positions are rounded to float32.
    np.testing.assert_allclose(encoding.encode(LENGTH), rows_of(model_type, IDS), rtol=0, atol=LENGTH * 2.0**-22)


PADDED = [model_type for model_type, row in table()["sinusoids"].items() if "padding" in row]


@pytest.mark.parametrize("model_type", PADDED)
def test_padding_is_not_counted(model_type: str) -> None:
    encoding = fastpe.PositionalEncoding.from_config(config_of(model_type))
    for where in (slice(0, 5), slice(-5, None)):
        ids = IDS.copy()
        ids[:, where] = encoding.padding_idx
        ours = encoding.add(np.zeros((1, LENGTH, WIDTH), np.float32), valid=ids != encoding.padding_idx)
        np.testing.assert_allclose(ours[0], rows_of(model_type, ids), rtol=0, atol=LENGTH * 2.0**-22)


def test_defaults_and_scales_of_the_classes() -> None:
    """Every key that a row reads has the default of the configuration's class."""
    modeling("whisper")
    kinds = importlib.import_module("tools.measures.rotation").configurations()
    for model_type, row in table()["sinusoids"].items():
        config = kinds[model_type]()
        for key, value in row["defaults"].items():
            assert getattr(config, key, None) == value, (model_type, key)


@pytest.mark.parametrize("given", [{}, {"use_positional_embedding": True}], ids=str)
def test_timesfm_adds_positions_only_where_the_config_says_so(given: dict[str, Any]) -> None:
    config = importlib.import_module("transformers").TimesFmConfig(num_hidden_layers=1, **given)
    with contextlib.nullcontext() if given else pytest.raises(ValueError, match="adds no positions"):
        fastpe.PositionalEncoding.from_config({"model_type": "timesfm", **given})
    assert hasattr(modeling("timesfm").TimesFmModel(config), "position_emb") == bool(given)


def test_the_encoding_of_patchtst_is_normalised() -> None:
    with pytest.raises(ValueError, match="less its mean and divided by 10 times its standard deviation"):
        fastpe.PositionalEncoding.from_config({"model_type": "patchtst"})
    config = importlib.import_module("transformers").PatchTSTConfig(d_model=WIDTH)
    theirs = modeling("patchtst").PatchTSTPositionalEncoding._init_pe(config, LENGTH).numpy()
    ours = fastpe.encode(LENGTH, WIDTH)
    ours = (ours - ours.mean()) / (10 * ours.std(ddof=1))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=LENGTH * 2.0**-22)


def test_rows_name_the_factor_of_embeddings() -> None:
    for model_type, row in table()["sinusoids"].items():
        source = inspect.getsource(modeling(row["source"].removeprefix("models/")))
        if re.search(r"\* self\.embed_scale|self\.embed_scale \*|embed_scale=embed_scale", source):
            assert "scale_key" in row, model_type


# Learned tables

# One layer is enough.
LAYERS = (
    *("num_hidden_layers", "encoder_layers", "decoder_layers", "n_layer", "n_layers", "num_layers"),
    *("num_encoder_layers", "num_decoder_layers", "l_layers", "r_layers", "x_layers"),
)


def tokens() -> Any:
    return importlib.import_module("torch").full((1, 5), 7)


def zeros(*shape: int) -> Any:
    return importlib.import_module("torch").zeros(*shape)


def of_pixels(config: Any) -> dict[str, Any]:
    return {"pixel_values": zeros(1, 3, config.image_size, config.image_size)}


def of_patches(config: Any) -> dict[str, Any]:
    return {"pixel_values": zeros(1, 3, config.patch_size, 16 * config.patch_size), "target_sizes": tensor([[4, 4]])}


def of_layout(config: Any) -> dict[str, Any]:
    # The whole model needs detectron2; its text is encoded by a method of its own.
    return {"input_ids": tokens(), "bbox": zeros(1, 5, 4).long(), "position_ids": None, "token_type_ids": tokens() * 0}


# Models that the tool does not measure: the class, and its inputs.
OTHERS: dict[str, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    "clvp": ("clvp.modeling_clvp.ClvpModelForConditionalGeneration", lambda config: {"input_ids": tokens(),
        "input_features": zeros(1, 80, 20)}),
    "idefics_vision": ("idefics.vision.IdeficsVisionTransformer", of_pixels),
    "layoutlmv2": ("layoutlmv2.modeling_layoutlmv2.LayoutLMv2Embeddings", of_layout),
    "layoutxlm": ("layoutlmv2.modeling_layoutlmv2.LayoutLMv2Embeddings", of_layout),
    "minicpm_ocr_vision": ("minicpm_ocr.modeling_minicpm_ocr.MiniCPMOcrVisionModel", of_patches),
    "minicpmv4_6_vision": ("minicpmv4_6.modeling_minicpmv4_6.MiniCPMV4_6VisionModel", of_patches),
    "minicpmv4_7_vision": ("minicpmv4_7.modeling_minicpmv4_7.MiniCPMV4_7VisionModel", of_patches),
}  # fmt: skip


def first_row(model_type: str) -> int:
    """The row of a learned table that a model of this type looks up first, for tokens or patches."""
    torch = pytest.importorskip("torch")
    kind = importlib.import_module("tools.measures.rotation").configurations()[model_type]
    config = kind()
    for key in {*LAYERS} & {*kind.__dataclass_fields__}:
        setattr(config, key, 1)
    path, inputs = OTHERS[model_type]
    place, _, name = path.rpartition(".")
    module = importlib.import_module(f"transformers.models.{place}")
    model = getattr(module, name)(config).eval()
    run = model
    if name == "LayoutLMv2Embeddings":
        owner = types.SimpleNamespace(embeddings=model)
        run = functools.partial(module.LayoutLMv2Model._calc_text_embeddings, owner)
    rows: list[int] = []
    for of, each in model.named_modules():
        if "Embedding" in type(each).__name__ and hasattr(each, "weight") and "pos" in of.rpartition(".")[2]:
            each.register_forward_pre_hook(lambda _, given: rows.extend(given[0].flatten().tolist()))
    with torch.no_grad(), contextlib.suppress(Exception):  # what follows the table may need more
        run(**inputs(config))
    return rows[0]


def test_every_learned_table_that_is_written_by_hand_is_compared() -> None:
    assert {*OTHERS} == {*written()["learned"]}


@pytest.mark.parametrize("model_type", OTHERS)
def test_first_rows_of_learned_tables(model_type: str) -> None:
    modeling("bert")
    assert table()["learned"][model_type] == f"offset={first_row(model_type)}"
