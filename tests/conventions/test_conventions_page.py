# SPDX-License-Identifier: BSD-3-Clause
"""docs/conventions.md against the formulas of the systems that it names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ..oracles import docs_pages
from ..oracles.systems import SYSTEMS

ROWS = docs_pages.rows()


def test_the_page_names_exactly_the_systems_that_are_proven() -> None:
    assert sorted(ROWS) == sorted(SYSTEMS)


@pytest.mark.parametrize(
    ("system", "example"), [(name, example) for name in SYSTEMS for example in SYSTEMS[name].examples]
)
def test_the_documented_call_gives_the_systems_values(system: str, example: dict[str, Any]) -> None:
    exact = SYSTEMS[system].reference(**example)
    result = ROWS[system].run(**example)
    assert result.shape == exact.shape
    if result.dtype == np.float32:
        # NeRF's coordinates themselves are rounded to float32 as well.
        tolerance = 0.5 * np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64) + 1e-15
    else:
        tolerance = np.full(exact.shape, 4 * np.spacing(np.abs(exact).max()))
    assert (np.abs(result - exact) <= tolerance).all()
