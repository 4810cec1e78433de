# SPDX-License-Identifier: BSD-3-Clause
"""Tables of systems, and as projects make them in float32, are known as what they are, or not at all."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.systems import SYSTEMS
from ..oracles.wild_tables import WILD_TABLES

# What the formulas of systems take, where the result is a table of positions or cells.
SIZES: dict[str, Any] = {
    "L": 40, "d": 32, "H": 9, "W": 12, "T": 3, "shape": (9, 12), "start": 3, "start_index": 4, "padding_idx": 1,
    "min_timescale": 2.0, "max_timescale": 5e3, "base_size": 16, "interpolation_scale": 2.0, "spatial": 2.0,
    "temporal": 4.0, "positions": np.arange(40.0), "timesteps": np.arange(40.0),
}  # fmt: skip
# No convention has their columns, or they are far from each other on the circle.
UNKNOWN = {
    "code with tensor2tensor's frequencies in neighbouring columns",
    "loops that divide by `10000 ** (i / d)` in every column `i`; caffe2 SinusoidPositionEncoding",
    "keras-hub Flux",
    "DETR PositionEmbeddingSine, normalize=False",
    "LoFTR and kornia PositionEncodingSine, temp_bug_fix=False",
}


def parameters(name: str) -> list[str]:
    return [*inspect.signature(SYSTEMS[name].reference).parameters]


def check_call(found: fastpe.Identification, arrays: tuple[Any, ...]) -> None:
    """The call, as a reader would paste it, makes the arrays' last rows."""
    again = eval(found.code, {"fastpe": fastpe})
    for given, array in zip(arrays, again if isinstance(again, tuple) else (again,), strict=True):
        cells = given.reshape(-1, *array.shape[1:]) if given.ndim != array.ndim else given
        assert np.abs(cells[-len(array) :] - array).max() <= found.tolerance


# One system of each formula.
TABLES = {SYSTEMS[name].reference: name for name in SYSTEMS if {*parameters(name)} <= {*SIZES}}


@pytest.mark.parametrize("name", TABLES.values())
def test_tables_of_systems(name: str) -> None:
    table = SYSTEMS[name].reference(**{each: SIZES[each] for each in parameters(name)}).astype(np.float32)
    found = fastpe.identify(table)
    assert bool(found) == (name not in UNKNOWN)
    if found:
        check_call(found, (table,))


@pytest.mark.parametrize("name", list(WILD_TABLES))
def test_tables_of_projects(name: str) -> None:
    expected = WILD_TABLES[name]
    made = expected.make()
    arrays = made if isinstance(made, tuple) else (made,)
    found = fastpe.identify(*arrays)
    assert found.code.startswith(expected.code)
    assert bool(found.code) == bool(expected.code) == found.matches
    if expected.code:
        check_call(found, arrays)
    else:
        assert str(found).startswith("no known convention")
