# SPDX-License-Identifier: BSD-3-Clause
"""What mypy finds in a user's program, each time where the call is refused as well: an unused comment is an error there."""

from __future__ import annotations

import inspect
import typing

import numpy as np
import pytest

import fastpe
from fastpe import _core, _names

from ..oracles.dlpack import Producer


def test_misspelt_names_are_errors_of_types() -> None:
    rope = fastpe.RotaryEmbedding(8, interleaved=True)
    with pytest.raises(ValueError, match="vaswani"):
        fastpe.encode(4, 8, convention="vaswni")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="mae2d"):
        fastpe.encode_grid((2, 2), 8, convention="mea2d")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="halves"):
        rope.tables(4, form="half")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="flux"):
        fastpe.RotaryEmbedding.from_layout("fluxx", 128)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="valid"):
        fastpe.add(np.ones((2, 8)), mask=[True, False])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="interleaved"):
        fastpe.RotaryEmbedding(8)  # type: ignore[call-arg]


def test_what_calls_return_is_known() -> None:
    x, rope = np.ones((2, 8), np.float32), fastpe.RotaryEmbedding(8, interleaved=True)
    kept: np.ndarray[tuple[int, int], np.dtype[np.float32]] = np.ones((2, 8), np.float32)
    assert rope.rotate_(kept).shape[1] == 8
    cos, sin = rope.tables(2)
    first, second = rope.rotate_(x, x.copy())
    assert cos.shape == sin.shape == (2, 4)
    assert first.shape == second.shape == rope.tables(2, form="cos_sin").shape
    with pytest.raises(ValueError, match="read-only"):
        rope.frequencies[0] = 2.0


def test_arrays_of_other_libraries_keep_their_type() -> None:
    first, second = (Producer(np.ones((2, 8), np.float32)) for _ in range(2))
    rope = fastpe.RotaryEmbedding(8, interleaved=True)
    added: Producer = fastpe.add_(first, table=second)
    rotated: tuple[Producer, ...] = rope.rotate_(first, second)
    assert (added, *rotated) == (first, first, second)
    fastpe.encode(2, 8, out=first)
    with pytest.raises(TypeError, match="x"):
        fastpe.add_([1.0, 2.0])  # type: ignore[type-var]


def test_annotations_can_be_evaluated_as_frameworks_do() -> None:
    for public in (getattr(fastpe, name) for name in fastpe.__all__ if name != "__version__"):
        members = [each for _, each in inspect.getmembers(public, inspect.isroutine)] if inspect.isclass(public) else []
        for each in (public, *members):
            if inspect.isclass(each) or hasattr(each, "__annotations__"):
                typing.get_type_hints(each)


@pytest.mark.parametrize(
    ("literal", "listed"),
    [
        (_names.ConventionName, fastpe.conventions),
        (_names.GridConventionName, fastpe.grid_conventions),
        (_names.ResizeConventionName, fastpe.resize_conventions),
        (_names.RotaryLayoutName, fastpe.rotary_layouts),
        (_names.TableForm, _core.table_forms),
    ],
)
def test_names_of_types_are_those_of_the_package(literal: object, listed: typing.Iterable[str]) -> None:
    assert {*typing.get_args(literal)} == {*listed}
