# SPDX-License-Identifier: BSD-3-Clause
"""Scaled rotary frequencies beside those that transformers computes in float32.

Run it with ``pytest -m peers tests/peers/test_rotary_frequencies.py``.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest

from ..rotary.test_frequencies import CASES, frequencies
from .conftest import Measured

pytestmark = pytest.mark.peers

# transformers has no "ntk"; HunYuan's alpha is the same formula.
NAMES = [name for name, (_, _, scaling, _) in CASES.items() if scaling["rope_type"] != "ntk"]


def theirs(d: int, base: float, scaling: dict[str, Any], seq_len: int | None) -> tuple[Any, float]:
    """Frequencies and attention factor of the function that transformers has for the type."""
    rope_type, is_alpha = scaling["rope_type"], "alpha" in scaling
    # Its configurations want a factor even where it is not used, or is to be derived.
    wanted = {} if rope_type in ("default", "proportional") else {"factor": 1.0 if is_alpha else None}
    transformers = importlib.import_module("transformers")
    config = (transformers.HunYuanDenseV1Config if is_alpha else transformers.LlamaConfig)(
        head_dim=d,
        hidden_size=4 * d,
        num_attention_heads=4,
        max_position_embeddings=scaling.get("max_position_embeddings", 2048),
        rope_parameters={**wanted, **scaling, "rope_theta": base},
    )
    result: tuple[Any, float]
    if is_alpha:
        module = importlib.import_module("transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense")
        result = module.HunYuanDenseV1RotaryEmbedding.compute_ntk_alpha_rope_parameters(config)
    elif rope_type == "default":
        module = importlib.import_module("transformers.models.llama.modeling_llama")
        result = module.LlamaRotaryEmbedding.compute_default_rope_parameters(config)
    else:
        functions = importlib.import_module("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS
        result = functions[rope_type](config, "cpu", seq_len=seq_len)
    return result


@pytest.mark.parametrize("name", NAMES)
def test_frequencies_are_transformers_within_float32(name: str, measured: Measured) -> None:
    d, base, scaling, seq_len = CASES[name]
    inv_freq, attention_factor = theirs(d, base, scaling, seq_len)
    expected = np.asarray(inv_freq).astype(np.float64)
    freqs, factor = frequencies(d, base=base, scaling=scaling, seq_len=seq_len)
    assert freqs.shape == expected.shape
    assert ((freqs == 0) == (expected == 0)).all()
    difference = float((np.abs(freqs - expected)[freqs > 0] / freqs[freqs > 0]).max(initial=0.0))
    # The exponent's rounding counts log(base) times; there are a power, a few divisions and products besides.
    stretch = scaling.get("alpha", max(scaling.get("factor", 1.0), 1.0))
    bound = (math.log(base * stretch) + 4.0) * 2.0**-24
    measured.append((name, f"d = {d}", difference, bound))
    assert difference <= bound
    assert factor == pytest.approx(attention_factor, rel=1e-15)
