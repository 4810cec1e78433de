# SPDX-License-Identifier: BSD-3-Clause
"""docs/models.md: its tables are those of the tables of models, and the calls of other systems run."""

from __future__ import annotations

import importlib
import pathlib
from typing import Any

import pytest

import fastpe

from ..oracles import docs_pages
from ..oracles.refusals import naming

DOCS = pathlib.Path(__file__).parents[2] / "docs"


def rows() -> list[list[str]]:
    """The rows of the table of other systems."""
    lines = (DOCS / "models.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return [row for row in cells if len(row) == 3 and row[0] != "Model"]


def test_the_page_is_made_from_the_tables() -> None:
    page: Any = importlib.import_module("tools.models_page")
    for name, text in page.written():
        assert (DOCS / name).read_text(encoding="utf-8") == text, "run python tools/reference.py"


def test_sinusoidal_calls_are_those_of_the_conventions_page() -> None:
    proven = {row.call for row in docs_pages.rows().values()}
    found = rows()
    assert len(found) > 5
    for _, types, call in found:
        assert call.strip("`") in proven
        for model_type in filter(None, types.replace("`", "").split(", ")):
            with pytest.raises(ValueError, match=naming("model_type")):
                fastpe.RotaryEmbedding.from_config({"model_type": model_type})
