# SPDX-License-Identifier: BSD-3-Clause
"""Encodings and embeddings as values: what they are equal to, copies and pickles, and that they stay as they are."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe import PositionalEncoding, RotaryEmbedding

from ..oracles.configs import LLAMA3
from ..oracles.reference import assert_same_bits
from ..oracles.refusals import naming
from ..rotary.test_frequencies import DYNAMIC, LONGROPE, PROPORTIONAL, YARN

OPTIONS: list[dict[str, Any]] = [
    {},
    {"interleaved": True},
    {"base": 500000.0},
    {"base": 500000},
    {"frequencies": np.linspace(0, 1, 48)},
    {"frequencies": [1.0] * 48, "attention_factor": 0.5},
    {"scaling": {"rope_type": "linear", "factor": 4}},
    {"scaling": LLAMA3, "base": 500000.0},
    {"scaling": {**LLAMA3, "rope_theta": 500000.0}},
    {"scaling": {**YARN, "truncate": False, "attention_factor": None}},
    {"scaling": DYNAMIC, "seq_len": 5000},
    {"scaling": LONGROPE, "seq_len": 4097},
    {"scaling": {"type": "linear", "factor": np.float32(2)}},
    {"scaling": PROPORTIONAL},
    {"frequency_axes": np.arange(48) % 3},
    {"conjugate": True},
    {"max_len": 512},
    {"head_dim": 128},
    {"max_len": np.int64(512), "base": np.float64(1e6), "conjugate": np.True_},
]


def make(**options: Any) -> RotaryEmbedding:
    return RotaryEmbedding(96, **{"interleaved": False, **options})


ENCODINGS: list[dict[str, Any]] = [
    {},
    {"max_len": 16},
    {"base": 500.0},
    {"freq_scale": 2.0},
    {"frequencies": [1.0, 0.5, 0.25, 0.125]},
    {"d_model": 9},
    {"convention": "fairseq"},
    {"convention": dataclasses.replace(fastpe.conventions["fairseq"], first_position=5)},
    {"convention": "mlx"},
    {"padding_idx": 1},
    {"embedding_scale": 2.0},
]


def encoding(**options: Any) -> PositionalEncoding:
    return PositionalEncoding(**{"d_model": 8, **options})


class Subclass(PositionalEncoding):
    pass


def results_of(made: Any) -> list[Any]:
    if isinstance(made, PositionalEncoding):
        return [made.encode(30, offset=-3), made.frequencies]
    positions = [[3] * 16] if made.frequency_axes is None else [[[3, 4, 5][: max(made.frequency_axes) + 1]]]
    return [*made.tables(positions, form="halves"), made.frequencies]


def assert_same(found: Any, made: Any) -> None:
    assert type(found) is type(made)
    assert found == made
    assert {made: 1}[found] == 1
    assert repr(found) == repr(made)
    for same, expected in zip(results_of(found), results_of(made), strict=True):
        assert_same_bits(same, expected)


MAKERS = [(make, options) for options in OPTIONS] + [(encoding, options) for options in ENCODINGS]


@pytest.mark.parametrize(("maker", "options"), MAKERS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_copies_pickles_and_reprs_are_the_same(maker: Any, options: dict[str, Any]) -> None:
    made = maker(**options)
    assert_same(maker(**options), made)
    assert_same(type(made)(**made.arguments), made)
    assert_same(copy.copy(made), made)
    assert_same(copy.deepcopy(made), made)
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        assert_same(pickle.loads(pickle.dumps(made, protocol)), made)
    assert_same(eval(repr(made), {name: getattr(fastpe, name) for name in fastpe.__all__}), made)


def test_different_objects_are_unequal() -> None:
    different = [maker(**options) for maker, options in MAKERS]
    same = {(2, 3), (7, 8)}
    for i, a in enumerate(different):
        for j, b in enumerate(different):
            (one, options), (other, others) = MAKERS[i], MAKERS[j]
            is_same = one is other and options | {"max_len": 0} == others | {"max_len": 0}  # which changes no result
            assert (a == b) == (is_same or (min(i, j), max(i, j)) in same), (MAKERS[i], MAKERS[j])
        assert a != repr(a)
        assert a.__eq__(96) is NotImplemented


@pytest.mark.parametrize(
    ("options", "same"),
    [
        ({"base": 10000.0}, {}),
        ({"scaling": {}}, {}),
        ({"scaling": {"rope_theta": 5e5}}, {"base": 5e5}),
        ({"attention_factor": 1.0}, {}),
        ({"seq_len": 7}, {}),
        ({"scaling": {**LLAMA3, "type": "llama3", "partial_rotary_factor": 0.5}}, {"scaling": LLAMA3}),
        ({"scaling": DYNAMIC, "seq_len": 5}, {"scaling": DYNAMIC, "seq_len": 2048}),
        ({"scaling": LONGROPE, "seq_len": 4097}, {"scaling": LONGROPE, "seq_len": 131072}),
        ({"scaling": {**YARN, "beta_fast": 32, "beta_slow": 1.0}}, {"scaling": YARN}),
        ({"frequencies": [0.5] * 48}, {"frequencies": np.full(48, 0.5, np.float32)}),
        ({"frequency_axes": [0, 1] * 24}, {"frequency_axes": np.arange(48, dtype=np.uint8) % 2}),
    ],
)
def test_arguments_that_mean_the_same_are_equal(options: dict[str, Any], same: dict[str, Any]) -> None:
    a, b = make(**options), make(**same)
    assert a == b
    assert hash(a) == hash(b)
    np.testing.assert_array_equal(a.frequencies, b.frequencies)


def test_what_it_was_made_of_may_change_afterwards() -> None:
    scaling: dict[str, Any] = copy.deepcopy(LONGROPE)
    freqs, axes = np.linspace(0.1, 1, 48), np.arange(48) % 2
    ropes = [make(scaling=scaling, seq_len=5000), make(frequencies=freqs), make(frequency_axes=axes)]
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


@pytest.mark.parametrize(
    ("made", "fields"),
    [
        (make(max_len=8), ("rotary_dim", "attention_factor", "form", "frequencies", "anything")),
        (encoding(max_len=8), ("d_model", "max_len", "convention", "_given", "frequencies", "anything")),
    ],
    ids=["RotaryEmbedding", "PositionalEncoding"],
)
def test_objects_are_immutable(made: Any, fields: tuple[str, ...]) -> None:
    expected = results_of(made)
    for name in fields:
        with pytest.raises(AttributeError, match=naming(name)):
            setattr(made, name, 1)
    with pytest.raises(AttributeError, match=naming(fields[0])):
        delattr(made, fields[0])
    with pytest.raises(AttributeError):
        made.__init__(6, **({} if isinstance(made, PositionalEncoding) else {"interleaved": True}))
    # What it hands out is a copy, or cannot be changed.
    made.wavelengths[:] = 7
    made.arguments.clear()
    for result in results_of(made)[:-1]:
        result[:] = 7
    with pytest.raises(ValueError, match="read-only"):
        made.frequencies[:] = 7
    for found, same in zip(results_of(made), expected, strict=True):
        assert_same_bits(found, same)


def test_attributes_of_an_encoding() -> None:
    made = encoding(d_model=6, max_len=3, base=100.0)
    assert (made.d_model, made.max_len, made.convention.base) == (6, 3, 100.0)
    np.testing.assert_allclose(made.frequencies, [1, 100 ** (-1 / 3), 100 ** (-2 / 3)], rtol=1e-15)
    given = encoding(d_model=4, frequencies=np.array([0.0, -2.0], np.float32))
    assert given.frequencies.tolist() == [0.0, -2.0]
    assert given.wavelengths.tolist() == [np.inf, -np.pi]


@pytest.mark.parametrize("by", [3, -2.5, np.arange(4), np.arange(8).reshape(2, 4), [[3], [0.5]]], ids=repr)
def test_encodings_are_moved_by_a_number_or_by_one_for_each_row(by: Any) -> None:
    encoding = fastpe.PositionalEncoding(6)
    places = np.array([[5.0, 0.0, 1.5, 9.0], [2.0, 3.0, 4.0, 5.0]])
    moved = encoding.shift(encoding.encode(places, dtype=np.float64), by=by)
    assert np.abs(moved - encoding.encode(places + np.asarray(by), dtype=np.float64)).max() < 2e-15


@pytest.mark.parametrize("by", [[1.0, 2.0], np.zeros((3, 4)), np.zeros((2, 1, 1)), [np.nan] * 4, 2**53 + 2])
def test_moves_of_another_shape_are_refused(by: Any) -> None:
    with pytest.raises(ValueError, match=r"^by "):
        fastpe.PositionalEncoding(6).shift(np.zeros((2, 4, 6)), by=by)
