# SPDX-License-Identifier: BSD-3-Clause
"""Each row of the table of graphs against what transformers computed, as tools/measure_models.py stored it."""

from __future__ import annotations

import json
import pathlib

import pytest

from fastpe._graph.model import graphs

from ..oracles.stored_inputs import check

STORED = json.loads((pathlib.Path(__file__).parents[1] / "data" / "graph_inputs.json").read_text("utf-8"))


ROWS = [(kind, name) for name, kinds in graphs().items() for kind in ("text", "vision", "audio") if kind in kinds]


@pytest.mark.parametrize(("kind", "name"), ROWS)
def test_inputs(kind: str, name: str) -> None:
    check(STORED, kind, name)
