# SPDX-License-Identifier: BSD-3-Clause
"""What queries are multiplied by: exact values, by layer and position. tests/peers/test_query_scale.py has the models."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.refusals import naming

YARN = {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096}
DEEPSEEK = {"model_type": "deepseek_v3", "rope_scaling": {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}}
MINISTRAL = {"model_type": "ministral3", "rope_parameters": {**YARN, "rope_theta": 1e6, "llama_4_scaling_beta": 0.1}}
LLAMA_4 = {"model_type": "llama4_text", "num_hidden_layers": 4, "floor_scale": 64}
POSITIONS = np.array([0, 1, 62, 63, 64, 4095, 4096, 131071, 2**40])


def logarithms(numbers: Any, strength: float) -> list[float]:
    """1 + strength * log(1 + n), rounded once."""
    with decimal.localcontext(decimal.Context(prec=60)):
        return [float(1 + decimal.Decimal(strength) * (1 + decimal.Decimal(int(n))).ln()) for n in numbers]


def test_each_value_is_its_formula_rounded_once() -> None:
    with decimal.localcontext(decimal.Context(prec=60)):
        mscale = float((decimal.Decimal("0.1") * decimal.Decimal(40).ln() + 1) ** 2)
    assert fastpe.query_scale(DEEPSEEK, POSITIONS).tolist() == [mscale] * len(POSITIONS)
    assert fastpe.query_scale(MINISTRAL, POSITIONS).tolist() == logarithms(POSITIONS // 4096, 0.1)
    tuned = fastpe.query_scale(LLAMA_4, POSITIONS, layer=3)
    assert tuned.dtype == np.float64
    assert tuned.tolist() == logarithms((POSITIONS + 1) // 64, 0.1)


@pytest.mark.parametrize(
    ("config", "layer"),
    [
        ({"model_type": "llama"}, None),
        ({"model_type": "llama", "rope_scaling": {**YARN, "mscale_all_dim": 1.0}}, None),  # not in its attention
        ({**DEEPSEEK, "rope_scaling": {**YARN, "mscale": 1.0}}, 5),
        ({"model_type": "deepseek_v3"}, None),
        ({**DEEPSEEK, "rope_scaling": {**YARN, "factor": 0.5, "mscale": 1.0, "mscale_all_dim": 1.0}}, None),
        (LLAMA_4, 0),
        ({**LLAMA_4, "attn_temperature_tuning": False}, None),
        ({**LLAMA_4, "no_rope_layers": [1, 1, 1, 1]}, None),
    ],
    ids=str,
)
def test_one_where_a_model_has_none(config: dict[str, Any], layer: int | None) -> None:
    assert fastpe.query_scale(config, POSITIONS, layer=layer).tolist() == [1.0] * len(POSITIONS)


def test_positions_are_a_number_or_an_array_of_any_shape() -> None:
    assert np.array_equal(fastpe.query_scale(MINISTRAL, 8), np.ones(8))
    shaped = fastpe.query_scale(MINISTRAL, POSITIONS.reshape(3, 3))
    assert np.array_equal(shaped.ravel(), fastpe.query_scale(MINISTRAL, POSITIONS))
    assert np.array_equal(fastpe.query_scale(MINISTRAL, [4095.9, 4096.0]), fastpe.query_scale(MINISTRAL, [4095, 4096]))


@pytest.mark.parametrize(
    ("config", "more", "name"),
    [
        (LLAMA_4, {}, "layer"),
        (LLAMA_4, {"layer": 4}, "layer"),
        (LLAMA_4, {"layer": -1}, "layer"),
        (DEEPSEEK, {"positions": [-1]}, "positions"),
        (DEEPSEEK, {"positions": [np.nan]}, "positions"),
        ({**LLAMA_4, "floor_scale": 0}, {"layer": 3}, "floor_scale"),
        ({**MINISTRAL, "rope_parameters": {**YARN, "rope_theta": 1e6}}, {}, "llama_4_scaling_beta"),
        ({**DEEPSEEK, "rope_scaling": {**YARN, "factor": None, "mscale_all_dim": 1.0}}, {}, "factor"),
        ({"model_type": "inkling_text"}, {}, "model_type"),
    ],
    ids=str,
)
def test_what_is_refused(config: dict[str, Any], more: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=naming(name)):
        fastpe.query_scale(config, **{"positions": POSITIONS, **more})
