# SPDX-License-Identifier: BSD-3-Clause
"""Tables as projects make them are known as what they are, or not at all."""

from __future__ import annotations

import numpy as np
import pytest

import fastpe
from tests.oracles.wild_tables import WILD_TABLES


@pytest.mark.parametrize("name", list(WILD_TABLES))
def test_tables_of_projects(name: str) -> None:
    expected = WILD_TABLES[name]
    made = expected.make()
    arrays = made if isinstance(made, tuple) else (made,)
    found = fastpe.identify(*arrays)
    assert found.code.startswith(expected.code)
    assert bool(found.code) == bool(expected.code) == found.matches
    for part in expected.notes:
        assert any(part in note for note in found.notes), found
    if not expected.code:
        assert str(found).startswith("no known convention")
        return
    # The call as a reader would paste it.
    again = eval(found.code, {"fastpe": fastpe})
    for given, array in zip(arrays, again if isinstance(again, tuple) else (again,), strict=True):
        cells = given.reshape(-1, *array.shape[1:])[-len(array) :] if given.ndim != array.ndim else given
        assert np.abs(cells[-len(array) :] - array).max() <= found.tolerance
