# SPDX-License-Identifier: BSD-3-Clause
"""The object: what it is equal to, what it shows, and that it stays as it is."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe import RotaryEmbedding, _core

from ..oracles.reference import assert_same_bits
from ..oracles.refusals import naming
from .oracle import FORMS
from .test_frequencies import DYNAMIC, LLAMA, LONGROPE, PROPORTIONAL, YARN

OPTIONS: list[dict[str, Any]] = [
    {},
    {"interleaved": True},
    {"base": 500000.0},
    {"base": 500000},
    {"freqs": np.linspace(0, 1, 48)},
    {"freqs": [1.0] * 48, "attention_factor": 0.5},
    {"attention_factor": 2},
    {"scaling": {"rope_type": "linear", "factor": 4}},
    {"scaling": LLAMA, "base": 500000.0},
    {"scaling": {**LLAMA, "rope_theta": 500000.0}},
    {"scaling": {**YARN, "truncate": False, "attention_factor": None}},
    {"scaling": YARN, "attention_factor": 1.5},
    {"scaling": DYNAMIC, "seq_len": 5000},
    {"scaling": LONGROPE, "seq_len": 4097},
    {"scaling": {**LONGROPE, "short_factor": np.ones(48), "long_factor": tuple(range(1, 49))}, "seq_len": 1},
    {"scaling": {"type": "linear", "factor": np.float32(2)}},
    {"scaling": PROPORTIONAL},
    {"axes": np.arange(48) % 3},
    {"axes": [0] * 48},
    {"conjugate": True},
    {"form": "sin_cos"},
    {"max_len": 512},
    {"max_len": np.int64(512), "base": np.float64(1e6), "conjugate": np.True_},
]


def make(**options: Any) -> RotaryEmbedding:
    return RotaryEmbedding(96, **{"interleaved": False, **options})


def assert_same(found: RotaryEmbedding, rope: RotaryEmbedding) -> None:
    assert type(found) is RotaryEmbedding
    assert found == rope
    assert hash(found) == hash(rope)
    assert repr(found) == repr(rope)
    positions = [[3] * 16] if rope.axes is None else [[[3, 4, 5][: max(rope.axes) + 1]]]
    for same, table in zip(found.tables(positions, form="halves"), rope.tables(positions, form="halves"), strict=True):
        assert_same_bits(same, table)
    if rope.axes is None:
        x = np.ones((3, 96), np.float32)
        assert_same_bits(found.rotate(x), rope.rotate(x))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_copies_pickles_and_reprs_are_the_same(options: dict[str, Any]) -> None:
    rope = make(**options)
    assert_same(make(**options), rope)
    assert_same(copy.copy(rope), rope)
    assert_same(copy.deepcopy(rope), rope)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert_same(pickle.loads(pickle.dumps(rope, protocol)), rope)
    assert_same(eval(repr(rope), {"RotaryEmbedding": RotaryEmbedding}), rope)


def test_different_embeddings_are_unequal() -> None:
    different = [make(**options) for options in OPTIONS]
    same = {(2, 3), (8, 9)}
    for i, a in enumerate(different):
        for j, b in enumerate(different):
            expected = i == j or (min(i, j), max(i, j)) in same
            assert (a == b) == expected, (OPTIONS[i], OPTIONS[j])
    assert RotaryEmbedding(8, interleaved=False) != RotaryEmbedding(6, interleaved=False)
    assert make() != "RotaryEmbedding(96, interleaved=False)"
    assert make().__eq__(96) is NotImplemented


@pytest.mark.parametrize(
    ("options", "same"),
    [
        ({"base": 10000.0}, {}),
        ({"scaling": {"rope_type": "default"}}, {}),
        ({"scaling": {}}, {}),
        ({"scaling": {"rope_theta": 5e5}}, {"base": 5e5}),
        ({"attention_factor": 1.0}, {}),
        ({"seq_len": 7}, {}),
        ({"scaling": LLAMA, "seq_len": 7}, {"scaling": LLAMA}),
        ({"scaling": {**LLAMA, "type": "llama3", "partial_rotary_factor": 0.5}}, {"scaling": LLAMA}),
        ({"scaling": DYNAMIC, "seq_len": 5}, {"scaling": DYNAMIC, "seq_len": 2048}),
        ({"scaling": LONGROPE, "seq_len": 5}, {"scaling": LONGROPE, "seq_len": 4096}),
        ({"scaling": LONGROPE, "seq_len": 4097}, {"scaling": LONGROPE, "seq_len": 131072}),
        ({"scaling": {**YARN, "beta_fast": 32, "beta_slow": 1.0}}, {"scaling": YARN}),
        ({"freqs": [0.5] * 48}, {"freqs": np.full(48, 0.5, np.float32)}),
        ({"axes": [0, 1] * 24}, {"axes": np.arange(48, dtype=np.uint8) % 2}),
    ],
)
def test_arguments_that_mean_the_same_are_equal(options: dict[str, Any], same: dict[str, Any]) -> None:
    a, b = make(**options), make(**same)
    assert a == b
    assert hash(a) == hash(b)
    np.testing.assert_array_equal(a.frequencies, b.frequencies)


def test_the_repr_names_what_differs_from_the_defaults() -> None:
    assert repr(RotaryEmbedding(8, interleaved=True)) == "RotaryEmbedding(8, interleaved=True)"
    assert repr(RotaryEmbedding(4, interleaved=False, freqs=[1, 0.5], axes=[0, 1], conjugate=True, form="tile")) == (
        "RotaryEmbedding(4, interleaved=False, freqs=[1.0, 0.5], axes=[0, 1], conjugate=True, form='tile')"
    )
    assert repr(
        RotaryEmbedding(4, interleaved=False, scaling={"factor": np.int64(2), "type": "linear"}, max_len=9)
    ) == ("RotaryEmbedding(4, interleaved=False, scaling={'factor': 2, 'type': 'linear'}, max_len=9)")


def test_a_length_that_is_not_needed_is_dropped() -> None:
    assert "seq_len" not in repr(make(seq_len=5000))
    assert "seq_len" not in repr(make(scaling=YARN, seq_len=5000))
    assert "seq_len=5000" in repr(make(scaling=DYNAMIC, seq_len=5000))
    assert "seq_len=5000" in repr(make(scaling=LONGROPE, seq_len=np.int64(5000)))


def test_what_it_was_made_of_may_change_afterwards() -> None:
    scaling: dict[str, Any] = copy.deepcopy(LONGROPE)
    freqs, axes = np.linspace(0.1, 1, 48), np.arange(48) % 2
    ropes = [make(scaling=scaling, seq_len=5000), make(freqs=freqs), make(axes=axes)]
    before = [(repr(rope), hash(rope), rope.frequencies) for rope in ropes]
    scaling["long_factor"][0] = 7.0
    scaling["short_factor"].clear()
    scaling["rope_type"] = "linear"
    freqs[:] = 0.5
    axes[:] = 0
    for rope, (text, value, frequencies) in zip(ropes, before, strict=True):
        assert (repr(rope), hash(rope)) == (text, value)
        np.testing.assert_array_equal(rope.frequencies, frequencies)
        assert_same(pickle.loads(pickle.dumps(rope)), rope)


def test_it_is_immutable() -> None:
    rope = make(max_len=8)
    for name in ("rotary_dim", "attention_factor", "form", "anything"):
        with pytest.raises(AttributeError, match=naming(name)):
            setattr(rope, name, 1)
    with pytest.raises(AttributeError, match=naming("form")):
        del rope.form
    with pytest.raises(AttributeError):
        rope.__init__(8, interleaved=True)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        rope.frequencies = np.ones(48)  # type: ignore[misc]
    # What is returned is a copy.
    rope.frequencies[:] = 7
    rope.wavelengths[:] = 7
    cos, sin = rope.tables(8)
    cos[:], sin[:] = 7, 7
    assert rope == make(max_len=8)
    assert_same(rope, make(max_len=8))


def test_attributes() -> None:
    options: dict[str, Any] = {"interleaved": np.False_, "conjugate": np.True_, "max_len": np.int64(5)}
    rope = RotaryEmbedding(np.int32(8), scaling=YARN, axes=[1, 0, 0, 1], form="pairs", **options)
    assert (rope.rotary_dim, rope.interleaved, rope.axes) == (8, False, (1, 0, 0, 1))
    assert (rope.conjugate, rope.form, rope.max_len) == (True, "pairs", 5)
    assert [type(value) for value in (rope.rotary_dim, rope.interleaved, rope.max_len)] == [int, bool, int]
    frequencies, factor = fastpe.rotary_frequencies(8, scaling=YARN)
    np.testing.assert_array_equal(rope.frequencies, frequencies)
    assert rope.frequencies.dtype == np.float64
    assert rope.attention_factor == factor != 1
    np.testing.assert_array_equal(rope.wavelengths, 2 * np.pi / frequencies)
    assert RotaryEmbedding(8, interleaved=False, scaling=YARN, attention_factor=2).attention_factor == 2
    plain = RotaryEmbedding(8, interleaved=False)
    assert (plain.attention_factor, plain.axes, plain.conjugate, plain.form, plain.max_len) == (
        1.0,
        None,
        False,
        "halves",
        None,
    )
    np.testing.assert_array_equal(plain.frequencies, fastpe.rotary_frequencies(8)[0])


def test_a_frequency_of_0_has_an_infinite_wavelength() -> None:
    rope = RotaryEmbedding(4, interleaved=False, freqs=[0.0, 2.0])
    assert rope.wavelengths.tolist() == [np.inf, np.pi]


def test_frequencies_without_a_scaling_have_more_bits_than_float64() -> None:
    ideal = RotaryEmbedding(128, interleaved=False)
    given = RotaryEmbedding(128, interleaved=False, freqs=ideal.frequencies)
    assert ideal != given
    np.testing.assert_array_equal(ideal.frequencies, given.frequencies)
    assert (ideal.tables([2**53])[0] != given.tables([2**53])[0]).any()


def test_the_scalings_factor_is_in_the_tables() -> None:
    rope = RotaryEmbedding(64, interleaved=False, scaling=YARN)
    c, s = rope.tables(50, dtype=np.float64)
    np.testing.assert_allclose(np.hypot(c, s), rope.attention_factor, rtol=1e-15)
    assert rope.attention_factor > 1.1


def test_the_arguments_are_by_keyword_and_the_pairing_has_no_default() -> None:
    parameters = inspect.signature(RotaryEmbedding).parameters
    assert [p.name for p in parameters.values() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD] == ["rotary_dim"]
    required = [p.name for p in parameters.values() if p.default is inspect.Parameter.empty]
    assert required == ["rotary_dim", "interleaved"]
    assert parameters["form"].default in FORMS


@pytest.mark.parametrize("axes", [[0], [0, 1, 2], [0, -1], [0, 16]])
def test_the_core_refuses_axes_that_there_are_not(axes: list[int]) -> None:
    with pytest.raises(ValueError, match=naming("axes")):
        _core.Rotary(
            rotary_dim=4,
            interleaved=False,
            base=1e4,
            freqs=[],
            attention_factor=1.0,
            axes=axes,
            conjugate=False,
            form="halves",
            max_len=None,
            head_dim=0,
        )
