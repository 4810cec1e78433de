# SPDX-License-Identifier: BSD-3-Clause
"""Encodings of model configurations beside the modules of transformers, and the first rows of learned tables.

Run it with ``pytest -m peers tests/peers/test_sinusoidal_configs.py``.
"""

from __future__ import annotations

import functools
import importlib
import logging
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastpe
from fastpe._rotary.config_models import table

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

Array = npt.NDArray[Any]

WIDTH, LENGTH = 32, 24
# Tokens, where padding has the ids 0 and 1.
IDS = np.arange(5, 5 + LENGTH)[None]


def modeling(folder: str) -> Any:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    logging.disable(logging.WARNING)
    return importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")


def tensor(array: Any) -> Any:
    return importlib.import_module("torch").from_numpy(np.ascontiguousarray(array))


def of_weight(module: Any, name: str, ids: Array) -> Any:
    """A frozen table whose first row belongs to position 0."""
    return getattr(module, name)(ids.shape[1], WIDTH).create_weight()


def of_ids(module: Any, name: str, ids: Array, padding: int = 1) -> Any:
    return getattr(module, name)(64, WIDTH, padding)(tensor(ids))[0]


def of_fsmt(module: Any, name: str, ids: Array) -> Any:
    made = getattr(module, name)(64, WIDTH, 1)
    made.make_weight(64, WIDTH, 1)
    return made(tensor(ids))[0]


def of_positions(module: Any, name: str, ids: Array, *arguments: Any) -> Any:
    """Takes the positions themselves."""
    made = getattr(module, name)(64, WIDTH, *arguments)
    rows = made(tensor(np.arange(ids.shape[1]))[None])
    return rows[0]


def of_embeddings(module: Any, name: str, ids: Array, *arguments: Any) -> Any:
    made = getattr(module, name)(*arguments)
    rows = made(tensor(np.zeros((1, ids.shape[1], WIDTH), np.float32)))
    return rows.reshape(-1, WIDTH)


def of_codebooks(module: Any, name: str, ids: Array) -> Any:
    return getattr(module, name)(64, WIDTH)(tensor(ids[:, None]))


def of_buffer(module: Any, name: str, ids: Array) -> Any:
    return getattr(module, name)(ids.shape[1], WIDTH).positional_embedding


def of_out(module: Any, name: str, ids: Array) -> Any:
    out = tensor(np.zeros((ids.shape[1], WIDTH), np.float32))
    getattr(module, name)(ids.shape[1], WIDTH, out=out)
    return out


def of_function(module: Any, name: str, ids: Array) -> Any:
    return getattr(module, name)(ids.shape[1], WIDTH).reshape(-1, WIDTH)


def of_config(module: Any, name: str, ids: Array) -> Any:
    config = types.SimpleNamespace(hidden_size=WIDTH, max_position_embeddings=64, min_timescale=1, max_timescale=10000)
    made = getattr(module, name)(config)
    return made(ids.shape[1])[0] if name.startswith("TimesFm") else made(tensor(np.arange(ids.shape[1])))


# The folder, the class or function that makes the rows, and how to call it.
MADE: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "autoformer": ("autoformer", "AutoformerSinusoidalPositionalEmbedding", of_weight),
    "informer": ("informer", "InformerSinusoidalPositionalEmbedding", of_weight),
    "time_series_transformer": ("time_series_transformer", "TimeSeriesSinusoidalPositionalEmbedding", of_weight),
    "marian": ("marian", "MarianSinusoidalPositionalEmbedding", of_weight),
    "pegasus": ("pegasus", "PegasusSinusoidalPositionalEmbedding", of_weight),
    "fsmt": ("fsmt", "SinusoidalPositionalEmbedding", of_fsmt),
    "m2m_100": ("m2m_100", "M2M100SinusoidalPositionalEmbedding", of_ids),
    "nllb-moe": ("nllb_moe", "NllbMoeSinusoidalPositionalEmbedding", of_ids),
    "kosmos_2_text_model": ("kosmos2", "Kosmos2TextSinusoidalPositionalEmbedding", of_ids),
    "kosmos_2_5_text_model": ("kosmos2_5", "Kosmos2_5TextSinusoidalPositionalEmbedding", of_ids),
    "speech_to_text": ("speech_to_text", "Speech2TextSinusoidalPositionalEmbedding", of_ids),
    "speecht5": ("speecht5", "SpeechT5SinusoidalPositionalEmbedding", of_ids),
    "trocr": ("trocr", "TrOCRSinusoidalPositionalEmbedding", of_ids),
    "seamless_m4t": (
        "seamless_m4t",
        "SeamlessM4TSinusoidalPositionalEmbedding",
        functools.partial(of_ids, padding=0),
    ),
    "seamless_m4t_v2": (
        "seamless_m4t_v2",
        "SeamlessM4Tv2SinusoidalPositionalEmbedding",
        functools.partial(of_ids, padding=0),
    ),
    "xglm": ("xglm", "XGLMSinusoidalPositionalEmbedding", lambda *call: of_positions(*call, 1)),
    "canary_decoder": ("canary", "CanaryPositionalEmbedding", of_positions),
    "musicgen_decoder": ("musicgen", "MusicgenSinusoidalPositionalEmbedding", of_codebooks),
    "musicgen_melody_decoder": (
        "musicgen_melody",
        "MusicgenMelodySinusoidalPositionalEmbedding",
        lambda *call: of_embeddings(*call, 64, WIDTH),
    ),
    "pegasus_x": ("pegasus_x", "PegasusXSinusoidalPositionalEmbedding", lambda *call: of_embeddings(*call, WIDTH)),
    "fun_asr_nano_encoder": (
        "fun_asr_nano",
        "FunAsrNanoPositionEmbedding",
        lambda *call: of_embeddings(*call, 64, WIDTH),
    ),
    "qwen2_5_omni_audio_encoder": ("qwen2_5_omni", "SinusoidsPositionEmbedding", of_buffer),
    "qwen3_asr_encoder": ("qwen3_asr", "SinusoidsPositionEmbedding", of_buffer),
    "qwen3_omni_moe_audio_encoder": ("qwen3_omni_moe", "SinusoidsPositionEmbedding", of_buffer),
    "xlm": ("xlm", "create_sinusoidal_embeddings", of_out),
    "flaubert": ("flaubert", "create_sinusoidal_embeddings", of_out),
    "distilbert": ("distilbert", "_create_sinusoidal_embeddings", of_out),
    "ctrl": (
        "ctrl",
        "positional_encoding",
        lambda module, name, ids: module.positional_encoding(ids.shape[1], WIDTH, None),
    ),
    "whisper": ("whisper", "sinusoids", of_function),
    "videomae": ("videomae", "get_sinusoid_encoding_table", of_function),
    "videoprism_text_model": ("videoprism", "create_sinusoidal_positions", of_function),
    "tipsv2_text_model": ("tipsv2", "Tipsv2SinusoidalPositionalEmbedding", of_config),
    "timesfm": ("timesfm", "TimesFmPositionalEmbedding", of_config),
}


def config_of(model_type: str) -> dict[str, Any]:
    row = table()["sinusoids"][model_type]
    required = {key: words[0] for key, words in row.get("requires", {}).items()}
    return {"model_type": model_type, row["width"]: WIDTH, **required}


def test_every_type_is_compared() -> None:
    assert {*MADE} == {*table()["sinusoids"]}


@pytest.mark.parametrize("model_type", MADE)
def test_rows(model_type: str) -> None:
    folder, name, made = MADE[model_type]
    theirs = np.asarray(made(modeling(folder), name, IDS).detach())
    encoding = fastpe.PositionalEncoding.from_config(config_of(model_type))
    # Angles of LENGTH positions are rounded to float32.
    np.testing.assert_allclose(encoding.encode(LENGTH), theirs, rtol=0, atol=LENGTH * 2.0**-22)


PADDED = [model_type for model_type, row in table()["sinusoids"].items() if "padding" in row]


@pytest.mark.parametrize("model_type", PADDED)
def test_padding_is_not_counted(model_type: str) -> None:
    folder, name, made = MADE[model_type]
    encoding = fastpe.PositionalEncoding.from_config(config_of(model_type))
    for where in (slice(0, 5), slice(-5, None)):
        ids = IDS.copy()
        ids[:, where] = encoding.padding_idx
        theirs = np.asarray(made(modeling(folder), name, ids).detach())
        mask = ids != encoding.padding_idx
        ours = encoding.add(np.zeros((1, LENGTH, WIDTH), np.float32), mask=mask)
        np.testing.assert_allclose(ours[0], theirs, rtol=0, atol=LENGTH * 2.0**-22)


def test_defaults_and_scales_of_the_classes() -> None:
    """Every key that a row reads has the default of the configuration's class."""
    modeling("whisper")
    kinds = importlib.import_module("tools.rotary_models").configurations()
    for model_type, row in table()["sinusoids"].items():
        config = kinds[model_type]()
        for key, value in row["defaults"].items():
            assert getattr(config, key, None) == value, (model_type, key)
