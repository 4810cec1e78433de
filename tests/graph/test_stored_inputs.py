# SPDX-License-Identifier: BSD-3-Clause
"""Each row of the table of graphs against what transformers computed, as tools/measure_models.py stored it."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from fastpe._config.tables import graphs

from ..oracles.stored_inputs import check

STORED = json.loads((pathlib.Path(__file__).parents[1] / "data" / "graph_inputs.json").read_text("utf-8"))


def rows_of(kind: str) -> list[Any]:
    return [pytest.param(name, id=name) for name, kinds in graphs().items() if kind in kinds]


@pytest.mark.parametrize("name", rows_of("text"))
def test_prompts(name: str) -> None:
    check(STORED, "text", name)


@pytest.mark.parametrize("name", rows_of("vision"))
def test_images(name: str) -> None:
    check(STORED, "vision", name)


@pytest.mark.parametrize("name", rows_of("audio"))
def test_sound(name: str) -> None:
    check(STORED, "audio", name)
