# SPDX-License-Identifier: BSD-3-Clause
"""`PositionalEncoding` as a value: immutable, hashable, picklable, shared between threads."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe import _core

from ..oracles.reference import assert_same_bits
from ..oracles.refusals import naming

ENCODINGS: list[dict[str, Any]] = [
    {"d_model": 8},
    {"d_model": 8, "max_len": 16},
    {"d_model": 8, "base": 500.0},
    {"d_model": 8, "freq_scale": 2.0},
    {"d_model": 8, "freqs": [1.0, 0.5, 0.25, 0.125]},
    {"d_model": 9},
    {"d_model": 8, "convention": "fairseq"},
    {"d_model": 8, "convention": dataclasses.replace(fastpe.conventions["fairseq"], first_position=5)},
    {"d_model": 8, "convention": "mlx"},
]


@pytest.mark.parametrize("arguments", ENCODINGS, ids=str)
def test_equality_hash_and_copies(arguments: dict[str, Any]) -> None:
    encoding = fastpe.PositionalEncoding(**arguments)
    others = [fastpe.PositionalEncoding(**other) for other in ENCODINGS if other is not arguments]
    for same in (
        fastpe.PositionalEncoding(**arguments),
        copy.copy(encoding),
        copy.deepcopy(encoding),
        *(pickle.loads(pickle.dumps(encoding, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)),
    ):
        assert same == encoding
        assert hash(same) == hash(encoding)
        assert {encoding: 1}[same] == 1
        assert repr(same) == repr(encoding)
        assert eval(repr(same), {name: getattr(fastpe, name) for name in fastpe.__all__}) == encoding
        assert_same_bits(same.encode(30, offset=-3), encoding.encode(30, offset=-3))
        assert_same_bits(same.frequencies, encoding.frequencies)
    assert all(encoding != other for other in others)
    assert len({encoding, *others}) == len(ENCODINGS)
    assert encoding != "PositionalEncoding"


class Subclass(fastpe.PositionalEncoding):
    pass


def test_copies_of_a_subclass_are_of_it() -> None:
    encoding = Subclass(8, max_len=3, base=100.0)
    for same in (copy.copy(encoding), copy.deepcopy(encoding), pickle.loads(pickle.dumps(encoding))):
        assert type(same) is Subclass
        assert same == encoding


def test_pickles_hold_no_tables() -> None:
    encoding = fastpe.PositionalEncoding(768, max_len=4096)
    encoding.encode(10)
    assert len(pickle.dumps(encoding)) < 1000


def test_immutable() -> None:
    encoding: Any = fastpe.PositionalEncoding(8, max_len=4)
    for name in ("d_model", "max_len", "convention", "_freqs", "anything", "frequencies"):
        with pytest.raises(AttributeError, match=naming(name)):
            setattr(encoding, name, 1)
    with pytest.raises(AttributeError, match=naming("d_model")):
        del encoding.d_model
    with pytest.raises(dataclasses.FrozenInstanceError):
        encoding.convention.base = 5.0
    with pytest.raises(TypeError):
        fastpe.conventions["mine"] = encoding.convention  # type: ignore[index]
    # What it hands out is a copy.
    encoding.frequencies[:] = 0
    assert encoding.frequencies[0] == 1
    encoding.encode(4)[:] = 7
    encoding.encode(2)[:] = 7
    assert_same_bits(encoding.encode(4), fastpe.encode(4, 8))


def test_attributes() -> None:
    encoding = fastpe.PositionalEncoding(6, max_len=3, base=100.0)
    assert (encoding.d_model, encoding.max_len, encoding.convention.base) == (6, 3, 100.0)
    np.testing.assert_allclose(encoding.frequencies, [1, 100 ** (-1 / 3), 100 ** (-2 / 3)], rtol=1e-15)
    np.testing.assert_array_equal(encoding.wavelengths, 2 * np.pi / encoding.frequencies)
    given = fastpe.PositionalEncoding(4, freqs=np.array([0.0, -2.0], np.float32))
    assert given.frequencies.tolist() == [0.0, -2.0]
    assert given.wavelengths.tolist() == [np.inf, -np.pi]


def test_the_sixteen_bit_encoding_within_max_len_is_rounded_once() -> None:
    # Cached rows are float32 or float64: a 16-bit encoding must not be made from them.
    encoding = fastpe.PositionalEncoding(512, max_len=4096)
    plain = fastpe.PositionalEncoding(512)
    for count in (1, 4, 8, 4096):
        assert_same_bits(encoding.encode(count, dtype=np.float16), plain.encode(count, dtype=np.float16))


def test_results_of_more_axes_than_arrays_have_are_refused() -> None:
    with pytest.raises(ValueError, match="67"):
        _core.output(None, None, [1] * 67)


def test_initialising_again_is_refused() -> None:
    encoding = fastpe.PositionalEncoding(8)
    with pytest.raises(AttributeError):
        encoding.__init__(6)  # type: ignore[misc]
    assert encoding.encode(2).shape == (2, 8)
