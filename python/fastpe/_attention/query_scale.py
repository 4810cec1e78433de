# SPDX-License-Identifier: BSD-3-Clause
"""What queries are multiplied by beyond 1 / sqrt(d), by their positions."""

from __future__ import annotations

import decimal
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import integer, names_keywords, numbers
from fastpe._arrays import ArrayLike
from fastpe._config.file import Value, read_number, wrong
from fastpe._config.layer_types import Found, LayerType, layer_types
from fastpe._config.layers import find
from fastpe._config.model import ModelConfig
from fastpe._config.rope import entry_of, trained_length
from fastpe._errors import refused

_exact = decimal.Context(prec=60)


@names_keywords
def query_scale(
    config: Mapping[str, Any] | str | os.PathLike[str] | ModelConfig, positions: ArrayLike, *, layer: int | None = None
) -> npt.NDArray[np.float64]:
    """Compute the factor of a model's queries beyond ``1 / sqrt(d)``, where it depends on lengths or positions.

    A host that computes attention itself multiplies each query, or its scores, by this number.

    Parameters
    ----------
    config : mapping, path or ModelConfig
        The dictionary of a model's config.json, or the path of this file.
    positions : int or array_like
        The positions of the queries; an int is a number of positions, from 0 on.
    layer : int, optional
        The number of the layer, from 0 on. It is needed where layers differ.

    Returns
    -------
    ndarray of float64
        One number for each position; 1 where a model has none.

    Raises
    ------
    ValueError
        For layers that differ and no `layer`, a layer that the model does not have, a key that is missing or cannot be
        read, and what `RotaryEmbedding.from_config` refuses.
    TypeError
        For a value of another type.
    OSError
        For a file that cannot be read.

    Notes
    -----
    Each value is that of its formula, rounded once:

    * ``(0.1 * mscale_all_dim * log(factor) + 1)**2`` where the rope mapping has an ``mscale_all_dim`` that is not 0 and the
      factor is above 1, in DeepSeek V2 and V3 and models of their kind (transformers, models/deepseek_v3,
      yarn_apply_mscale).
    * ``1 + llama_4_scaling_beta * log(1 + floor(p / original_max_position_embeddings))`` in Ministral 3 and Mistral Small 4
      (models/ministral3, get_llama_4_attn_scale).
    * ``1 + attn_scale * log(1 + floor((p + 1) / floor_scale))`` in the layers of Llama 4 that are not rotated, with
      ``attn_temperature_tuning`` (models/llama4).

    Numbers that do not depend on lengths, as ``query_pre_attn_scalar`` of Gemma and ``attention_multiplier`` of Granite,
    are not part of it, nor is the attention factor of cosines and sines, which `RotaryEmbedding` has.

    Examples
    --------
    >>> import fastpe
    >>> yarn = {"rope_type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "mscale": 1.0,
    ...         "mscale_all_dim": 1.0}
    >>> fastpe.query_scale({"model_type": "deepseek_v3", "rope_scaling": yarn}, [0, 100_000])
    array([1.87385421, 1.87385421])
    >>> llama4 = {"model_type": "llama4_text", "num_hidden_layers": 48}
    >>> fastpe.query_scale(llama4, [0, 8191, 100_000], layer=3)
    array([1.        , 1.06931472, 1.25649494])
    """
    found = find(config, {}, "scores")
    layers = layer_types(found)
    is_count = isinstance(positions, int)
    given = np.arange(integer("positions", positions, 0)) if is_count else _core.array(positions, "positions")
    where = numbers("positions", given, "numbers", dtype="int64" if given.dtype.kind in "iu" else "float64")
    if not (np.isfinite(where) & (where >= 0)).all():
        raise refused(ValueError, "positions", "is empty, or has a number below 0", "positions of at least 0")
    # One layer, or one that is rotated and one that is not.
    kinds = {each.is_rotated: each for each in layers}
    at = None if layer is None else integer("layer", layer, 0, len(layers) - 1)
    made = [_scale(found, each, where) for each in ([*kinds.values()] if at is None else [layers[at]])]
    if any(not np.array_equal(each, made[0]) for each in made):
        remedy = f"give layer=, from 0 to {len(layers) - 1}"
        raise refused(ValueError, "layer", "was not given, and the layers of this model are not alike", remedy=remedy)
    return made[0]


def _scale(found: Found, layer: LayerType, positions: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The scale of one layer, at these positions."""
    kinds, part = found.row.query_scale, found.part
    factor, strength, length, shift = decimal.Decimal(1), decimal.Decimal(0), decimal.Decimal(1), 0
    with decimal.localcontext(_exact):
        if "mscale" in kinds:
            entry = entry_of(found, layer)
            if entry.rope_type != "default" and entry.inner("mscale_all_dim").found:
                scaled, mscale = (_number(entry.inner(key)) for key in ("factor", "mscale_all_dim"))
                factor = (decimal.Decimal("0.1") * mscale * scaled.ln() + 1) ** 2 if scaled > 1 else factor
        if "llama_4" in kinds:
            entry = entry_of(found, layer)
            strength = _number(entry.inner("llama_4_scaling_beta"))
            length = _number(trained_length(entry), above_zero=True)
        if "temperature" in kinds and not layer.is_rotated and part._json.get("attn_temperature_tuning", True):
            strength, shift = _number(part._value("attn_scale", 0.1)), 1
            length = _number(part._value("floor_scale", 8192), above_zero=True)
        steps = np.zeros(positions.shape, np.int64)
        if strength:
            steps = ((positions + shift) // (int(length) if length % 1 == 0 else float(length))).astype(np.int64)
        different, places = np.unique(steps, return_inverse=True)
        scales = [float(factor * (1 + strength * decimal.Decimal(1 + step).ln())) for step in different.tolist()]
    return np.array(scales, np.float64)[places].reshape(positions.shape)


def _number(value: Value, *, above_zero: bool = False) -> decimal.Decimal:
    if value.found is None or (read_number(value) <= 0.0 and above_zero):
        raise wrong(value.path, f"is {value.found}", "a number above 0" if above_zero else "a number")
    return decimal.Decimal(read_number(value))
