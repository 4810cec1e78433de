# SPDX-License-Identifier: BSD-3-Clause
"""`rotary_frequencies`: the formulas' values to the last bit, each scaling at its thresholds, and every refusal."""

from __future__ import annotations

import math
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpe
from fastpe import _core
from fastpe._rotary.scaling import read_scaling

from ..oracles.refusals import naming
from . import oracle

LLAMA: dict[str, Any] = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
YARN: dict[str, Any] = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
GPT_OSS: dict[str, Any] = {**YARN, "factor": 32.0, "original_max_position_embeddings": 4096, "truncate": False}
DEEPSEEK: dict[str, Any] = {
    **YARN,
    "factor": 40.0,
    "original_max_position_embeddings": 4096,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
}
LONGROPE: dict[str, Any] = {
    "rope_type": "longrope",
    "original_max_position_embeddings": 4096,
    "max_position_embeddings": 131072,
    "short_factor": [1 + k / 64 for k in range(48)],
    "long_factor": [1.08 * 1.09**k for k in range(48)],
}
DYNAMIC: dict[str, Any] = {"rope_type": "dynamic", "factor": 2.0, "max_position_embeddings": 2048}
PROPORTIONAL: dict[str, Any] = {"rope_type": "proportional", "partial_rotary_factor": 0.25}

# rotary_dim, base, scaling, seq_len
CASES: dict[str, tuple[int, float, dict[str, Any], int | None]] = {
    "default": (128, 500000.0, {"rope_type": "default"}, None),
    "default, narrow": (2, 10000.0, {"rope_type": "default"}, None),
    "default, odd half": (50, 1e6, {"rope_type": "default"}, None),
    "default, base 1": (8, 1.0, {"rope_type": "default"}, None),
    "default, wide": (4096, 1e8, {"rope_type": "default"}, None),
    "linear": (256, 1e6, {"rope_type": "linear", "factor": 8.0}, None),
    "linear, below 1": (64, 10000.0, {"rope_type": "linear", "factor": 0.3}, None),
    "ntk": (128, 10000.0, {"rope_type": "ntk", "factor": 8.0}, None),
    "ntk, 1": (128, 10000.0, {"rope_type": "ntk", "factor": 1.0}, None),
    "ntk, below 1": (128, 10000.0, {"rope_type": "ntk", "factor": 0.125}, None),
    "ntk, narrow": (2, 10000.0, {"rope_type": "ntk", "factor": 8.0}, None),
    "dynamic, short": (128, 10000.0, DYNAMIC, 2048),
    "dynamic, one more": (128, 10000.0, DYNAMIC, 2049),
    "dynamic, long": (96, 500000.0, {**DYNAMIC, "factor": 3.7}, 1000003),
    "dynamic, alpha": (128, 10000.0, {"rope_type": "dynamic", "alpha": 1000.0}, None),
    "yarn": (128, 1e6, YARN, None),
    "yarn, gpt_oss": (64, 150000.0, GPT_OSS, None),
    "yarn, DeepSeek V3": (64, 10000.0, DEEPSEEK, None),
    "yarn, DeepSeek V2": (64, 10000.0, {**DEEPSEEK, "mscale": 0.707, "mscale_all_dim": 0.707}, None),
    "yarn, unequal mscale": (64, 10000.0, {**DEEPSEEK, "mscale": 0.5, "mscale_all_dim": 1.25}, None),
    "yarn, mscale_all_dim 0": (64, 10000.0, {**DEEPSEEK, "mscale_all_dim": 0.0}, None),
    "yarn, factor 1": (64, 10000.0, {**DEEPSEEK, "factor": 1.0}, None),
    "yarn, factor below 1": (64, 10000.0, {**YARN, "factor": 0.5}, None),
    "yarn, no factor": (
        128,
        10000.0,
        {"rope_type": "yarn", "max_position_embeddings": 5000, "original_max_position_embeddings": 3000},
        None,
    ),
    "yarn, attention_factor": (64, 10000.0, {**DEEPSEEK, "attention_factor": 0.7}, None),
    "yarn, betas": (64, 10000.0, {**YARN, "beta_fast": 20.5, "beta_slow": 0.25}, None),
    "yarn, low == high": (64, 10000.0, {**YARN, "beta_fast": 5.0, "beta_slow": 5.0, "truncate": False}, None),
    "yarn, one step": (64, 10000.0, {**YARN, "beta_fast": 5.0, "beta_slow": 5.0}, None),
    "yarn, low == high == 0": (64, 10000.0, {**YARN, "beta_fast": 6000.0, "beta_slow": 6000.0}, None),
    "yarn, high below 0": (64, 10000.0, {**YARN, "beta_fast": 100000.0, "beta_slow": 50000.0}, None),
    "yarn, low beyond the end": (8, 2.0, {**YARN, "beta_fast": 1.0, "beta_slow": 0.5}, None),
    "longrope, short": (96, 10000.0, LONGROPE, 4096),
    "longrope, long": (96, 10000.0, LONGROPE, 4097),
    "longrope, factor": (96, 10000.0, {**LONGROPE, "factor": 2.5}, 1),
    "longrope, factor below 1": (96, 10000.0, {**LONGROPE, "factor": 0.5}, 1),
    "longrope, attention_factor": (96, 10000.0, {**LONGROPE, "attention_factor": 1.25}, 1),
    "llama3": (128, 500000.0, LLAMA, None),
    "llama3, Scout": (128, 500000.0, {**LLAMA, "factor": 16.0, "high_freq_factor": 1.0}, None),
    "proportional": (512, 1e6, PROPORTIONAL, None),
    "proportional, factor": (128, 1e6, {**PROPORTIONAL, "factor": 8.0, "partial_rotary_factor": 0.7}, None),
    "proportional, whole": (128, 1e6, {"rope_type": "proportional"}, None),
    "proportional, none": (128, 1e6, {"rope_type": "proportional", "partial_rotary_factor": 0.0}, None),
}


def exact(name: str) -> tuple[list[float], float]:
    """Every number of a case, computed with 90 digits and rounded once."""
    d, base, scaling, seq_len = CASES[name]
    freqs, factor = oracle.frequencies(d, base, scaling, seq_len or 0)
    return [float(w) for w in freqs], float(factor)


def found(name: str) -> tuple[list[float], float]:
    d, base, scaling, seq_len = CASES[name]
    freqs, factor = fastpe.rotary_frequencies(d, base=base, scaling=scaling, seq_len=seq_len)
    assert freqs.dtype == np.float64
    assert freqs.shape == (d // 2,)
    assert type(factor) is float
    return freqs.tolist(), factor


@pytest.mark.parametrize("name", CASES)
def test_every_number_is_its_formulas_rounded_once(name: str) -> None:
    assert found(name) == exact(name)


def powers_of_2(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda exponent: 2.0**exponent)


def rising(low: str, high: str) -> st.SearchStrategy[dict[str, Any]]:
    pairs = st.tuples(powers_of_2(-6, 10), powers_of_2(-6, 10))
    return pairs.map(lambda pair: {low: min(pair), high: max(pair)})


@st.composite
def scalings(draw: st.DrawFn, d: int) -> dict[str, Any]:
    factor = {"factor": draw(powers_of_2(-8, 12))}
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
    scaling = data.draw(scalings(d))
    seq_len = data.draw(st.integers(0, 2**22))
    freqs, factor = fastpe.rotary_frequencies(d, base=base, scaling=scaling, seq_len=seq_len)
    expected, expected_factor = oracle.frequencies(d, base, scaling, seq_len)
    assert freqs.tolist() == [float(w) for w in expected]
    assert factor == float(expected_factor)


@pytest.mark.parametrize("ulps", [1, 2, 3, 2**26 + 1])
def test_a_quotient_that_is_almost_a_tie(ulps: int) -> None:
    # 1 / (1 - x) is 1 + x + x**2 + ..: of one ulp, its first 106 bits are a tie.
    factor = 1 - ulps * 2.0**-53
    freqs, _ = fastpe.rotary_frequencies(2, base=2.0, scaling={"rope_type": "linear", "factor": factor})
    assert freqs[0] == 1 / factor


def test_without_a_scaling_they_are_the_encodings() -> None:
    freqs, factor = fastpe.rotary_frequencies(128, base=5e5)
    assert (freqs == fastpe.PositionalEncoding(128, base=5e5).frequencies).all()
    assert factor == 1.0
    assert (fastpe.rotary_frequencies(128)[0] == fastpe.PositionalEncoding(128).frequencies).all()


def test_the_result_is_the_callers() -> None:
    freqs = fastpe.rotary_frequencies(8)[0]
    assert freqs.flags.writeable
    assert freqs.flags.owndata
    freqs[:] = 0
    assert fastpe.rotary_frequencies(8)[0][0] == 1


# Thresholds


def test_a_dynamic_scaling_begins_beyond_the_trained_length() -> None:
    ideal = fastpe.rotary_frequencies(128)[0].tolist()
    assert found("dynamic, short")[0] == ideal
    assert fastpe.rotary_frequencies(128, scaling=DYNAMIC, seq_len=0)[0].tolist() == ideal
    longer = found("dynamic, one more")[0]
    assert longer[0] == 1
    assert all(a < b for a, b in zip(longer[1:], ideal[1:], strict=True))


def test_the_lowest_frequency_is_divided_by_ntks_factor() -> None:
    ideal = fastpe.rotary_frequencies(128)[0]
    np.testing.assert_allclose(found("ntk")[0][-1], ideal[-1] / 8, rtol=1e-15)
    assert found("ntk, 1")[0] == ideal.tolist()


def test_longrope_changes_between_the_trained_length_and_one_more() -> None:
    ideal = fastpe.rotary_frequencies(96)[0]
    short, factor = fastpe.rotary_frequencies(96, scaling=LONGROPE, seq_len=4096)
    long, same = fastpe.rotary_frequencies(96, scaling=LONGROPE, seq_len=4097)
    np.testing.assert_allclose(short, ideal / LONGROPE["short_factor"], rtol=1e-15)
    np.testing.assert_allclose(long, ideal / LONGROPE["long_factor"], rtol=1e-15)
    assert factor == same == pytest.approx(math.sqrt(1 + math.log(32) / math.log(4096)), rel=1e-15)


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
        scaling = {**LLAMA, key: beside, other: beside * 4 if other == "high_freq_factor" else beside / 4}
        freqs = fastpe.rotary_frequencies(d, base=base, scaling=scaling)[0]
        assert freqs.tolist() == [float(w) for w in oracle.frequencies(d, base, scaling)[0]]
        ideal = fastpe.rotary_frequencies(d, base=base)[0]
        # From either side: all of the way to one end.
        np.testing.assert_allclose(freqs[k], ideal[k] / 8 if key == "low_freq_factor" else ideal[k], rtol=1e-14)


def test_llama3_has_frequencies_in_all_three_ranges() -> None:
    ideal = fastpe.rotary_frequencies(128, base=5e5)[0]
    scaled = np.array(found("llama3")[0])
    assert (scaled == ideal).sum() > 20
    assert (scaled == ideal / 8).sum() > 20
    assert ((scaled < ideal) & (scaled > ideal / 8)).sum() > 5


def test_llama3_without_a_range_between() -> None:
    ideal = fastpe.rotary_frequencies(128, base=5e5)[0]
    scaled = np.array(found("llama3, Scout")[0])
    assert ((scaled == ideal) | (scaled == ideal / 16)).all()


@pytest.mark.parametrize("truncate", [True, False])
def test_yarns_ramp_begins_and_ends_where_it_should(truncate: bool) -> None:
    scaling = {**GPT_OSS, "truncate": truncate}
    low, high = oracle.yarn_range(64, 150000.0, scaling)
    assert (low == int(low)) == (high == int(high)) == truncate
    ideal = fastpe.rotary_frequencies(64, base=150000.0)[0]
    scaled = fastpe.rotary_frequencies(64, base=150000.0, scaling=scaling)[0]
    k = np.arange(32)
    assert (scaled[k <= low] == ideal[k <= low]).all()
    assert (scaled[k >= high] == ideal[k >= high] / 32).all()
    between = (k > low) & (k < high)
    assert between.sum() > 5
    assert (scaled[between] < ideal[between]).all()
    assert (scaled[between] > ideal[between] / 32).all()


def test_yarns_thresholds_may_be_one() -> None:
    ideal = fastpe.rotary_frequencies(64)[0]
    low, high = oracle.yarn_range(64, 10000.0, CASES["yarn, low == high"][2])
    assert low == high
    assert 0 < low < 31
    # Truncated outwards, equal turns are one step apart.
    begin, end = oracle.yarn_range(64, 10000.0, CASES["yarn, one step"][2])
    assert begin < low < end == begin + 1
    for name in ("yarn, low == high", "yarn, one step"):
        assert found(name)[0] == np.where(np.arange(32) < low, ideal, ideal / 4).tolist()
    low, high = oracle.yarn_range(64, 10000.0, CASES["yarn, low == high == 0"][2])
    assert low == high == 0
    assert found("yarn, low == high == 0")[0] == [ideal[0], *(ideal[1:] / 4).tolist()]


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("yarn", 0.1 * math.log(4) + 1),
        ("yarn, gpt_oss", 0.1 * math.log(32) + 1),
        ("yarn, DeepSeek V3", 1.0),
        ("yarn, DeepSeek V2", 1.0),
        ("yarn, unequal mscale", (0.05 * math.log(40) + 1) / (0.125 * math.log(40) + 1)),
        ("yarn, mscale_all_dim 0", 0.1 * math.log(40) + 1),
        ("yarn, factor 1", 1.0),
        ("yarn, factor below 1", 1.0),
        ("yarn, no factor", 0.1 * math.log(5 / 3) + 1),
        ("yarn, attention_factor", 0.7),
        ("longrope, short", math.sqrt(1 + 5 / 12)),
        ("longrope, factor", math.sqrt(1 + math.log(2.5) / math.log(4096))),
        ("longrope, factor below 1", 1.0),
        ("longrope, attention_factor", 1.25),
        ("linear", 1.0),
        ("llama3", 1.0),
        ("proportional", 1.0),
    ],
)
def test_attention_factors(name: str, factor: float) -> None:
    assert found(name)[1] == pytest.approx(factor, rel=1e-15)


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_a_yarn_that_does_not_extend_has_no_attention_factor(factor: float) -> None:
    freqs, attention_factor = fastpe.rotary_frequencies(64, scaling={**YARN, "factor": factor})
    ideal = fastpe.rotary_frequencies(64)[0]
    assert attention_factor == 1.0
    assert (freqs == ideal).all() == (factor == 1.0)


def test_proportional_zeros_are_at_the_end() -> None:
    freqs = np.array(found("proportional")[0])
    assert freqs.shape == (256,)
    assert (freqs[:64] > 0).all()
    assert not freqs[64:].view(np.int64).any()
    assert (freqs[:64] == fastpe.rotary_frequencies(512, base=1e6)[0][:64]).all()
    assert np.count_nonzero(found("proportional, factor")[0]) == 44
    assert np.count_nonzero(found("proportional, whole")[0]) == 64
    assert np.count_nonzero(found("proportional, none")[0]) == 0


def test_the_share_of_a_head_is_rounded_as_in_python() -> None:
    # 0.7 * 20 is 14.0 in float64, though 0.7 is less than seven tenths.
    freqs = fastpe.rotary_frequencies(20, scaling={"rope_type": "proportional", "partial_rotary_factor": 0.7})[0]
    assert np.count_nonzero(freqs) == 7


# Keys


def test_rope_type_beats_type() -> None:
    freqs = fastpe.rotary_frequencies(64, scaling={"type": "yarn", "rope_type": "linear", "factor": 2.0})[0]
    assert (freqs == fastpe.rotary_frequencies(64)[0] / 2).all()
    freqs = fastpe.rotary_frequencies(64, scaling={"type": "linear", "rope_type": None, "factor": 2.0})[0]
    assert (freqs == fastpe.rotary_frequencies(64)[0] / 2).all()


@pytest.mark.parametrize("scaling", [{}, {"rope_type": "default"}, {"type": "default"}, {"factor": None}])
def test_no_type_is_the_default(scaling: dict[str, Any]) -> None:
    assert (fastpe.rotary_frequencies(64, scaling=scaling)[0] == fastpe.rotary_frequencies(64)[0]).all()


def test_rope_theta_is_the_base() -> None:
    expected = fastpe.rotary_frequencies(64, base=5e5)[0]
    assert (fastpe.rotary_frequencies(64, scaling={"rope_theta": 5e5})[0] == expected).all()
    assert (fastpe.rotary_frequencies(64, base=5e5, scaling={"rope_theta": 500000})[0] == expected).all()


@pytest.mark.parametrize("scaling", [LLAMA, YARN, {"rope_type": "default"}, {"rope_type": "linear", "factor": 2.0}])
def test_the_share_of_a_head_counts_for_proportional_alone(scaling: dict[str, Any]) -> None:
    freqs = fastpe.rotary_frequencies(64, scaling={**scaling, "partial_rotary_factor": 0.5})[0]
    assert (freqs == fastpe.rotary_frequencies(64, scaling=scaling)[0]).all()


@pytest.mark.parametrize("scaling", [None, LLAMA, YARN, PROPORTIONAL, {"rope_type": "dynamic", "alpha": 2.0}])
def test_a_length_that_is_not_needed_changes_nothing(scaling: dict[str, Any] | None) -> None:
    first = read_scaling(64, base=None, scaling=scaling, seq_len=None)
    assert read_scaling(64, base=None, scaling=scaling, seq_len=123456) == first


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


# Refusals


def refuses(
    arguments: str,
    rotary_dim: Any = 64,
    scaling: Any = None,
    *,
    error: type[Exception] = ValueError,
    base: Any = None,
    seq_len: Any = None,
) -> None:
    with pytest.raises(error, match=naming(arguments)) as caught:
        fastpe.rotary_frequencies(rotary_dim, base=base, scaling=scaling, seq_len=seq_len)
    assert type(caught.value) is error


@pytest.mark.parametrize("rotary_dim", [7, 0, -2, 2**21])
def test_a_wrong_width_is_refused(rotary_dim: int) -> None:
    refuses("rotary_dim", rotary_dim)


@pytest.mark.parametrize("rotary_dim", [8.0, "8", None, True])
def test_a_width_that_is_no_int_is_refused(rotary_dim: Any) -> None:
    refuses("rotary_dim", rotary_dim, error=TypeError)


@pytest.mark.parametrize("base", [0.0, 0.5, -1e4, math.inf, math.nan, 10**400])
def test_a_base_out_of_range_is_refused(base: float) -> None:
    refuses("base", base=base)
    refuses("rope_theta", scaling={"rope_theta": base})


def test_frequencies_too_small_for_an_encoding_are_refused() -> None:
    refuses("base", base=1e300)
    # The ideal frequencies are usable, the scaled ones are not.
    assert fastpe.rotary_frequencies(64, base=6e28)[0][-1] > 2**-96
    refuses("base scaling", base=6e28, scaling={"rope_type": "linear", "factor": 1e6})
    refuses("base scaling", base=6e28, scaling={"rope_type": "ntk", "factor": 1e6})


@pytest.mark.parametrize(
    ("scaling", "named"),
    [
        ({"rope_type": "yarm"}, "rope_type yarm"),
        ({"type": "LLAMA3"}, "type LLAMA3"),
        ({"rope_type": "xpos"}, "rope_type xpos"),
        ({"type": "su"}, "type su"),
        ({"type": "mrope", "mrope_section": [16, 24, 24]}, "type mrope"),
        ({"rope_type": "deepseek_yarn"}, "rope_type deepseek_yarn"),
        ({"rope_type": ["yarn"]}, "rope_type"),
        ({**YARN, "attn_factor": 1.0}, "attn_factor"),
        ({"rope_type": "linear", "facter": 2.0}, "facter"),
        ({"rope_type": "linear", "factor": 2.0, "beta_fast": 32}, "beta_fast"),
        ({"factor": 2.0}, "factor rope_type"),
        ({"base": 5e5}, "base"),
        ({**YARN, "llama_4_scaling_beta": 0.1}, "llama_4_scaling_beta"),
        ({"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}, "full_attention"),
    ],
)
def test_unknown_types_and_keys_are_refused(scaling: dict[str, Any], named: str) -> None:
    refuses(named, scaling=scaling)


@pytest.mark.parametrize(
    ("rope_type", "missing"),
    [
        ("linear", "factor"),
        ("ntk", "factor"),
        ("dynamic", "factor alpha"),
        ("yarn", "original_max_position_embeddings"),
        ("longrope", "original_max_position_embeddings short_factor long_factor"),
        ("llama3", "factor low_freq_factor high_freq_factor original_max_position_embeddings"),
    ],
)
def test_a_type_alone_lacks_keys(rope_type: str, missing: str) -> None:
    refuses(missing, scaling={"type": rope_type})


def without(scaling: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in scaling.items() if key not in keys}


@pytest.mark.parametrize(
    ("scaling", "missing"),
    [
        *((without(LLAMA, key), key) for key in LLAMA if key != "rope_type"),
        (without(YARN, "factor"), "factor max_position_embeddings"),
        (without(YARN, "original_max_position_embeddings"), "original_max_position_embeddings"),
        (without(LONGROPE, "original_max_position_embeddings"), "original_max_position_embeddings"),
        (without(LONGROPE, "short_factor"), "short_factor"),
        (without(LONGROPE, "long_factor"), "long_factor"),
        (without(LONGROPE, "max_position_embeddings"), "factor max_position_embeddings attention_factor"),
        (without(DYNAMIC, "max_position_embeddings"), "max_position_embeddings"),
        (without(DYNAMIC, "factor"), "factor alpha"),
        ({**LLAMA, "factor": None}, "factor"),
    ],
)
def test_missing_keys_are_named(scaling: dict[str, Any], missing: str) -> None:
    refuses(missing, 96, scaling, seq_len=5000)


@pytest.mark.parametrize(("scaling", "d"), [(DYNAMIC, 64), (LONGROPE, 96)])
def test_a_scaling_that_needs_a_length_and_has_none_is_refused(scaling: dict[str, Any], d: int) -> None:
    refuses("seq_len", d, scaling)


@pytest.mark.parametrize("seq_len", [-1, 2**31 + 1])
def test_a_length_out_of_range_is_refused(seq_len: int) -> None:
    for scaling in (None, DYNAMIC):
        refuses("seq_len", scaling=scaling, seq_len=seq_len)


@pytest.mark.parametrize("seq_len", [4096.0, "4096", True, np.array([4096])])
def test_a_length_that_is_no_int_is_refused(seq_len: Any) -> None:
    refuses("seq_len", seq_len=seq_len, error=TypeError)


NUMBER_KEYS = [
    ({"rope_type": "linear"}, "factor"),
    ({"rope_type": "ntk"}, "factor"),
    ({"rope_type": "dynamic"}, "alpha"),
    (DYNAMIC, "factor"),
    (YARN, "factor"),
    (YARN, "beta_fast"),
    (YARN, "beta_slow"),
    (LLAMA, "factor"),
    (LLAMA, "low_freq_factor"),
    (LLAMA, "high_freq_factor"),
    (PROPORTIONAL, "factor"),
]


@pytest.mark.parametrize(("scaling", "key"), NUMBER_KEYS)
def test_numbers_out_of_range_are_refused(scaling: dict[str, Any], key: str) -> None:
    for number in (0, -1.0, math.inf, math.nan, 2.0**32, 2.0**-32, 10**400):
        refuses(key, scaling={**scaling, key: number}, seq_len=5000)
    for other in ("8", True, [8.0], 8j):
        refuses(key, scaling={**scaling, key: other}, seq_len=5000, error=TypeError)


@pytest.mark.parametrize("key", ["mscale", "mscale_all_dim"])
def test_mscales_out_of_range_are_refused(key: str) -> None:
    refuses(key, scaling={**YARN, key: -0.5})
    refuses(key, scaling={**YARN, key: "1"}, error=TypeError)


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_attention_factors_out_of_range_are_refused(value: float) -> None:
    refuses("attention_factor", scaling={**YARN, "attention_factor": value})
    refuses("attention_factor", 96, {**LONGROPE, "attention_factor": value}, seq_len=1)


@pytest.mark.parametrize("value", [-0.1, 1.5, math.nan])
def test_shares_out_of_range_are_refused(value: float) -> None:
    refuses("partial_rotary_factor", scaling={**PROPORTIONAL, "partial_rotary_factor": value})


def test_truncate_is_a_bool() -> None:
    refuses("truncate", scaling={**YARN, "truncate": 1}, error=TypeError)


@pytest.mark.parametrize(
    ("scaling", "key"),
    [
        (YARN, "original_max_position_embeddings"),
        (LLAMA, "original_max_position_embeddings"),
        (DYNAMIC, "max_position_embeddings"),
        (without(YARN, "factor"), "max_position_embeddings"),
    ],
)
def test_lengths_are_checked(scaling: dict[str, Any], key: str) -> None:
    refuses(key, scaling={**scaling, key: 0}, seq_len=1)
    refuses(key, scaling={**scaling, key: 4096.0}, seq_len=1, error=TypeError)


def test_longrope_takes_the_logarithm_of_its_length() -> None:
    refuses("original_max_position_embeddings", 96, {**LONGROPE, "original_max_position_embeddings": 1}, seq_len=1)


@pytest.mark.parametrize("key", ["short_factor", "long_factor"])
def test_longropes_lists_are_checked(key: str) -> None:
    for numbers in ([1.0] * 32, [1.0] * 47 + [0]):
        refuses(key, 96, {**LONGROPE, key: numbers}, seq_len=1)
    others: list[Any] = [[None] * 48, 1.5, np.array(1.5), {"x": 1.0}, np.ones((48, 1)), "x" * 48]
    for other in others:
        refuses(key, 96, {**LONGROPE, key: other}, seq_len=1, error=TypeError)


@pytest.mark.parametrize("scaling", ["linear", 4.0, [("rope_type", "linear")]])
def test_what_is_no_mapping_is_refused(scaling: Any) -> None:
    refuses("scaling", scaling=scaling, error=TypeError)


@pytest.mark.parametrize(
    ("scaling", "named"),
    [
        ({**YARN, "beta_fast": 1, "beta_slow": 32}, "beta_fast beta_slow"),
        ({**LLAMA, "low_freq_factor": 4.0, "high_freq_factor": 1.0}, "low_freq_factor high_freq_factor"),
        ({"rope_type": "dynamic", "alpha": 1000.0, "factor": 1.0}, "alpha factor"),
        (
            {**DYNAMIC, "original_max_position_embeddings": 4096},
            "max_position_embeddings original_max_position_embeddings",
        ),
    ],
)
def test_numbers_that_contradict_each_other_are_refused(scaling: dict[str, Any], named: str) -> None:
    refuses(named, scaling=scaling, seq_len=5000)


def test_two_bases_are_refused() -> None:
    refuses("base rope_theta", base=1e4, scaling={"rope_theta": 5e5})


def test_a_base_whose_logarithm_is_nearly_0_is_refused_by_yarn() -> None:
    refuses("base", base=1.5, scaling=YARN)


@pytest.mark.parametrize("rotated_count", [-1, 5, 2**62])
def test_the_core_refuses_a_number_of_frequencies_that_there_is_not(rotated_count: int) -> None:
    with pytest.raises(ValueError, match=naming("rotated_count")):
        _core.rotary_frequencies(8, 10000.0, "proportional", factor=1.0, rotated_count=rotated_count)
