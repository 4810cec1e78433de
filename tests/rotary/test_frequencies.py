# SPDX-License-Identifier: BSD-3-Clause
"""Scaled frequencies: the formulas' values to the last bit, each scaling at its thresholds, and every refusal."""

from __future__ import annotations

import math
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpe
from fastpe._rotary.scaling import read_scaling

from ..oracles.configs import LLAMA3
from ..oracles.refusals import Refused, check_refused, each, naming, rows
from . import oracle

YARN: dict[str, Any] = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
TRAINED = {"original_max_position_embeddings": 4096}
GPT_OSS: dict[str, Any] = {**YARN, "factor": 32.0, **TRAINED, "truncate": False}
DEEPSEEK: dict[str, Any] = {**YARN, "factor": 40.0, **TRAINED, "mscale": 1.0, "mscale_all_dim": 1.0}
LONGROPE: dict[str, Any] = {
    "rope_type": "longrope",
    "original_max_position_embeddings": 4096,
    "max_position_embeddings": 131072,
    "short_factor": [1 + k / 64 for k in range(48)],
    "long_factor": [1.08 * 1.09**k for k in range(48)],
}
DYNAMIC: dict[str, Any] = {"rope_type": "dynamic", "factor": 2.0, "max_position_embeddings": 2048}
PROPORTIONAL: dict[str, Any] = {"rope_type": "proportional", "partial_rotary_factor": 0.25}


def without(scaling: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in scaling.items() if key not in keys}


# rotary_dim, base, scaling, seq_len: thresholds and special values; hypothesis draws the others.
CASES: dict[str, tuple[int, float, dict[str, Any], int | None]] = {
    "default": (128, 500000.0, {"rope_type": "default"}, None),
    "default, narrow": (2, 10000.0, {"rope_type": "default"}, None),
    "default, base 1": (8, 1.0, {"rope_type": "default"}, None),
    "ntk, narrow": (2, 10000.0, {"rope_type": "ntk", "factor": 8.0}, None),
    "dynamic, short": (128, 10000.0, DYNAMIC, 2048),
    "dynamic, one more": (128, 10000.0, DYNAMIC, 2049),
    "yarn, gpt_oss": (64, 150000.0, GPT_OSS, None),
    "yarn, DeepSeek V3": (64, 10000.0, DEEPSEEK, None),
    "yarn, unequal mscale": (64, 10000.0, {**DEEPSEEK, "mscale": 0.5, "mscale_all_dim": 1.25}, None),
    "yarn, mscale alone": (64, 10000.0, {**YARN, "factor": 40.0, **TRAINED, "mscale": 0.5}, None),
    "yarn, high beyond the end": (64, 10000.0, {**YARN, "beta_slow": 1e-6}, None),
    "yarn, no factor": (128, 10000.0, {**without(YARN, "factor"), "max_position_embeddings": 50000}, None),
    "yarn, attention_factor": (64, 10000.0, {**DEEPSEEK, "attention_factor": 0.7}, None),
    "yarn, low == high": (64, 10000.0, {**YARN, "beta_fast": 5.0, "beta_slow": 5.0, "truncate": False}, None),
    "yarn, one step": (64, 10000.0, {**YARN, "beta_fast": 5.0, "beta_slow": 5.0}, None),
    "yarn, low == high == 0": (64, 10000.0, {**YARN, "beta_fast": 6000.0, "beta_slow": 6000.0}, None),
    "yarn, high below 0": (64, 10000.0, {**YARN, "beta_fast": 100000.0, "beta_slow": 50000.0}, None),
    "yarn, low beyond the end": (8, 2.0, {**YARN, "beta_fast": 1.0, "beta_slow": 0.5}, None),
    "longrope, short": (96, 10000.0, LONGROPE, 4096),
    "longrope, long": (96, 10000.0, LONGROPE, 4097),
    "longrope, longest below trained": (96, 10000.0, {**without(LONGROPE, "factor"), "max_position_embeddings": 9}, 1),
    "proportional": (512, 1e6, PROPORTIONAL, None),
    "proportional, none": (128, 1e6, {"rope_type": "proportional", "partial_rotary_factor": 0.0}, None),
}


def frequencies(rotary_dim: Any, **arguments: Any) -> tuple[Any, float]:
    """Those of a rotary embedding, and its attention factor."""
    rope = fastpe.RotaryEmbedding(rotary_dim, interleaved=False, **arguments)
    return rope.frequencies, rope.attention_factor


def check_every_number(d: int, base: float, scaling: dict[str, Any], seq_len: int | None) -> None:
    """Each is computed with 90 digits and rounded once."""
    freqs, factor = frequencies(d, base=base, scaling=scaling, seq_len=seq_len)
    expected, expected_factor = oracle.frequencies(d, base, scaling, seq_len or 0)
    assert freqs.dtype == np.float64
    assert type(factor) is float
    assert freqs.tolist() == [float(w) for w in expected]
    assert factor == float(expected_factor)


@pytest.mark.parametrize("name", CASES)
def test_every_number_is_its_formulas_rounded_once(name: str) -> None:
    check_every_number(*CASES[name])


def powers_of_2(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda exponent: 2.0**exponent)


def rising(low: str, high: str) -> st.SearchStrategy[dict[str, Any]]:
    pairs = st.tuples(powers_of_2(-6, 10), powers_of_2(-6, 10))
    return pairs.map(lambda pair: {low: min(pair), high: max(pair)})


@st.composite
def scalings(draw: st.DrawFn, d: int) -> dict[str, Any]:
    factor = {"factor": draw(powers_of_2(0, 12))}
    trained = {"original_max_position_embeddings": draw(st.integers(2, 2**20))}
    divisors = st.lists(powers_of_2(-3, 6), min_size=d // 2, max_size=d // 2)
    mscale = powers_of_2(-3, 3) | st.just(0.0)
    kinds: dict[str, st.SearchStrategy[dict[str, Any]]] = {
        "linear": st.just(factor),
        "ntk": st.just(factor),
        "dynamic": st.just({**factor, **trained}) | st.just({"alpha": factor["factor"]}),
        "yarn": st.builds(
            lambda betas, more: {**factor, **trained, **betas, **more},
            rising("beta_slow", "beta_fast"),
            st.fixed_dictionaries({}, optional={"truncate": st.booleans(), "mscale": mscale, "mscale_all_dim": mscale}),
        ),
        "longrope": st.fixed_dictionaries({"short_factor": divisors, "long_factor": divisors}).map(
            lambda lists: {**factor, **trained, **lists}
        ),
        "llama3": rising("low_freq_factor", "high_freq_factor").map(lambda turns: {**factor, **trained, **turns}),
        "proportional": st.floats(0, 1).map(lambda share: {**factor, "partial_rotary_factor": share}),
    }
    rope_type = draw(st.sampled_from(sorted(kinds)))
    return {"rope_type": rope_type, **draw(kinds[rope_type])}


@given(data=st.data(), d=st.integers(1, 40).map(lambda half: 2 * half), base=powers_of_2(1, 40))
def test_every_number_of_any_scaling_is_its_formulas_rounded_once(data: st.DataObject, d: int, base: float) -> None:
    check_every_number(d, base, data.draw(scalings(d)), data.draw(st.integers(0, 2**22)))


@pytest.mark.parametrize("ulps", [1, 2, 3, 2**26 + 1])
def test_a_quotient_that_is_almost_a_tie(ulps: int) -> None:
    # 2 / (2 - x) is 1 + x/2 + x**2/4 + ..: of one ulp, its first 106 bits are a tie.
    factor = 2 - ulps * 2.0**-52
    freqs, _ = frequencies(2, base=2.0, scaling={"rope_type": "linear", "factor": factor})
    assert freqs[0] == 1 / factor


@pytest.mark.parametrize("k", [20, 40])
@pytest.mark.parametrize("ulps", [-1, 1])
def test_llama3_at_both_wavelengths(k: int, ulps: int) -> None:
    """A threshold at the float64 on either side of where frequency k is."""
    d, base = 128, 500000.0
    turns = 8192 * oracle.frequencies(d, base)[0][k] / (2 * mpmath.pi)
    at = float(turns)
    beside = float(np.nextafter(at, at + ulps))
    assert (beside > turns) == (ulps > 0)
    for key, other in (("low_freq_factor", "high_freq_factor"), ("high_freq_factor", "low_freq_factor")):
        scaling = {**LLAMA3, key: beside, other: beside * 4 if other == "high_freq_factor" else beside / 4}
        freqs = frequencies(d, base=base, scaling=scaling)[0]
        assert freqs.tolist() == [float(w) for w in oracle.frequencies(d, base, scaling)[0]]
        ideal = frequencies(d, base=base)[0]
        # From either side: all of the way to one end.
        np.testing.assert_allclose(freqs[k], ideal[k] / 8 if key == "low_freq_factor" else ideal[k], rtol=1e-14)


def test_the_share_of_a_head_is_rounded_as_in_python() -> None:
    # 0.7 * 20 is 14.0 in float64, though 0.7 is less than seven tenths.
    freqs = frequencies(20, scaling={"rope_type": "proportional", "partial_rotary_factor": 0.7})[0]
    assert np.count_nonzero(freqs) == 7


# Keys


def test_rope_type_beats_type() -> None:
    freqs = frequencies(64, scaling={"type": "yarn", "rope_type": "linear", "factor": 2.0})[0]
    assert (freqs == frequencies(64)[0] / 2).all()
    freqs = frequencies(64, scaling={"type": "linear", "rope_type": None, "factor": 2.0})[0]
    assert (freqs == frequencies(64)[0] / 2).all()


def test_dynamic_takes_either_name_of_its_length() -> None:
    first = read_scaling(64, base=None, scaling=DYNAMIC, seq_len=5000)
    other = {"rope_type": "dynamic", "factor": 2, "original_max_position_embeddings": 2048}
    assert read_scaling(64, base=None, scaling=other, seq_len=5000) == first
    assert read_scaling(64, base=None, scaling={**DYNAMIC, **other}, seq_len=5000) == first
    assert read_scaling(64, base=None, scaling=other, seq_len=5001) != first


def test_values_may_be_numpys() -> None:
    scaling = {
        **LONGROPE,
        "original_max_position_embeddings": np.int64(4096),
        "factor": np.float32(32),
        "short_factor": np.array(LONGROPE["short_factor"]),
        "long_factor": tuple(LONGROPE["long_factor"]),
    }
    assert read_scaling(96, base=None, scaling=scaling, seq_len=5000) == read_scaling(
        96, base=None, scaling={**LONGROPE, "factor": 32}, seq_len=5000
    )


# Refusals: of scalings with one thing changed, named by the keys


REFUSED: Refused = {
    (ValueError, "rotary_dim"): each("freqs({})", "7 | 0 | -2 | 2**21"),
    (TypeError, "rotary_dim"): each("freqs({})", "8.0 | '8' | None | True"),
    (ValueError, "base"): [
        *each("freqs(64, base={})", "0.0 | 0.5 | -1e4 | np.inf | np.nan | 10**400 | 1e300"),
        "freqs(64, base=1.5, scaling=YARN)",
    ],
    (ValueError, "rope_theta"): each("freqs(64, scaling={'rope_theta': {}})", "0.0 | 0.5 | np.nan | 10**400"),
    (ValueError, "base rope_theta"): ["freqs(64, base=1e4, scaling={'rope_theta': 5e5})"],
    # The ideal frequencies are usable, the scaled ones are not.
    (ValueError, "base scaling"): [
        *each("freqs(64, base=6e28, scaling={'rope_type': '{}', 'factor': 1e6})", "linear | ntk"),
        # It would be 0 in float64.
        "freqs(2**20, base=1.7e308, scaling={'rope_type': 'ntk', 'factor': 2.0**31})",
    ],
    # As ggml writes 4
    (ValueError, "factor"): each(
        "freqs(64, scaling={**{}, 'factor': 0.25}, seq_len=5000)", "YARN | LLAMA3 | DYNAMIC | LINEAR"
    ),
    (ValueError, "max_position_embeddings"): [
        "freqs(96, scaling=without(DYNAMIC, 'max_position_embeddings'), seq_len=5)",
        "freqs(64, scaling={**without(YARN, 'factor'), 'max_position_embeddings': 32767})",
    ],
    # ---- Types and keys that are unknown
    **{
        (ValueError, f"rope_type {name}"): [f"freqs(64, scaling={{'rope_type': '{name}'}})"]
        for name in ("yarm", "xpos", "deepseek_yarn", "mrope")
    },
    (ValueError, "type LLAMA3"): ["freqs(64, scaling={'type': 'LLAMA3'})"],
    (ValueError, "rope_type"): ["freqs(64, scaling={'rope_type': ['yarn']})"],
    (ValueError, "facter"): ["freqs(64, scaling={'rope_type': 'linear', 'facter': 2.0})"],
    (ValueError, "beta_fast"): ["freqs(64, scaling={'rope_type': 'linear', 'factor': 2.0, 'beta_fast': 32})"],
    (ValueError, "attn_factor"): ["freqs(64, scaling={**YARN, 'attn_factor': 1.0})"],
    (ValueError, "llama_4_scaling_beta"): ["freqs(64, scaling={**YARN, 'llama_4_scaling_beta': 0.1})"],
    (ValueError, "factor rope_type"): ["freqs(64, scaling={'factor': 2.0})"],
    (ValueError, "full_attention"): ["freqs(64, scaling={'full_attention': {'rope_theta': 1e6}})"],
    (TypeError, "scaling"): each("freqs(64, scaling={})", "'linear' | 4.0 | [('rope_type', 'linear')]"),
    # ---- Keys that are missing
    (ValueError, "factor max_position_embeddings"): ["freqs(96, scaling=without(YARN, 'factor'), seq_len=5000)"],
    (ValueError, "factor max_position_embeddings attention_factor"): [
        "freqs(96, scaling=without(LONGROPE, 'max_position_embeddings'), seq_len=5000)"
    ],
    # ---- Lengths
    (ValueError, "seq_len"): [
        "freqs(64, scaling=DYNAMIC)",
        "freqs(96, scaling=LONGROPE)",
        *each("freqs(64, scaling=DYNAMIC, seq_len={})", "-1 | 2**31 + 1"),
    ],
    (TypeError, "seq_len"): each("freqs(64, seq_len={})", "4096.0 | '4096' | True | np.array([4096])"),
    # ---- Values that contradict each other, or are not what they should be
    (ValueError, "beta_fast beta_slow"): ["freqs(64, scaling={**YARN, 'beta_fast': 1, 'beta_slow': 32})"],
    (ValueError, "low_freq_factor high_freq_factor"): [
        "freqs(64, scaling={**LLAMA3, 'low_freq_factor': 4.0, 'high_freq_factor': 1.0})"
    ],
    (ValueError, "alpha factor"): [
        "freqs(64, scaling={'rope_type': 'dynamic', 'alpha': 1000.0, 'factor': 1.0}, seq_len=5)"
    ],
    (ValueError, "max_position_embeddings original_max_position_embeddings"): [
        "freqs(64, scaling={**DYNAMIC, 'original_max_position_embeddings': 4096}, seq_len=5)"
    ],
    (ValueError, "partial_rotary_factor"): each(
        "freqs(64, scaling={**PROPORTIONAL, 'partial_rotary_factor': {}})", "-0.1 | 1.5 | np.nan"
    ),
    (TypeError, "truncate"): ["freqs(64, scaling={**YARN, 'truncate': 1})"],
    (ValueError, "short_factor"): each(
        "freqs(96, scaling={**LONGROPE, 'short_factor': {}}, seq_len=1)", "[1.0] * 32 | [0] * 48"
    ),
    (TypeError, "long_factor"): each(
        "freqs(96, scaling={**LONGROPE, 'long_factor': {}}, seq_len=1)",
        "[None] * 48 | 1.5 | np.array(1.5) | {'x': 1.0} | np.ones((48, 1)) | 'x' * 48",
    ),
    (ValueError, "attention_factor"): each(
        "freqs(64, scaling={**YARN, 'attention_factor': {}})", "0.0 | -1.0 | np.nan"
    ),
}
NAMES = {"freqs": frequencies, "np": np, "without": without}
NAMES |= {"LLAMA3": LLAMA3, "YARN": YARN, "LONGROPE": LONGROPE, "DYNAMIC": DYNAMIC, "PROPORTIONAL": PROPORTIONAL}
NAMES |= {"LINEAR": {"rope_type": "linear"}}


@pytest.mark.parametrize(("call", "error", "arguments"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], arguments: str) -> None:
    check_refused(call, error, arguments, NAMES)


@pytest.mark.parametrize("scaling", [LLAMA3, YARN, LONGROPE, {"rope_type": "ntk", "factor": 2.0}])
def test_missing_keys_are_named(scaling: dict[str, Any]) -> None:
    for key in scaling.keys() - {"rope_type", "max_position_embeddings"}:
        with pytest.raises(ValueError, match=naming(key)):
            frequencies(96, scaling=without(scaling, key, "max_position_embeddings"), seq_len=5000)


@pytest.mark.parametrize(
    ("scaling", "key"),
    [
        ({"rope_type": "linear"}, "factor"),
        ({"rope_type": "ntk"}, "factor"),
        ({"rope_type": "dynamic"}, "alpha"),
        (DYNAMIC, "factor"),
        *((YARN, key) for key in ("factor", "beta_fast", "beta_slow")),
        *((LLAMA3, key) for key in ("factor", "low_freq_factor", "high_freq_factor")),
        (PROPORTIONAL, "factor"),
    ],
)
def test_numbers_out_of_range_are_refused(scaling: dict[str, Any], key: str) -> None:
    for number in (0, -1.0, math.inf, math.nan, 2.0**32, 2.0**-32, 10**400, "8", True, [8.0], 8j):
        error = ValueError if type(number) in (int, float) else TypeError
        with pytest.raises(error, match=naming(key)):
            frequencies(64, scaling={**scaling, key: number}, seq_len=5000)
