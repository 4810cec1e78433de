# SPDX-License-Identifier: BSD-3-Clause
"""docs/models.md: every call runs, and gives what the row says."""

from __future__ import annotations

import pathlib
from typing import Any, NamedTuple

import pytest

import fastpe
from fastpe._config.tables import table as _table

from ..oracles import docs_pages
from ..oracles.configs import with_layers
from ..oracles.refusals import naming

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "models.md"


class Row(NamedTuple):
    model: str
    model_types: list[str]
    layers: str  # or the call, in the table of other systems
    pairs: str = ""
    form: str = ""
    remark: str = ""


def rows(columns: int) -> list[Row]:
    """The rows of the table with this number of columns."""
    result = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == columns and cells[0] != "Model":
            types = [word.strip("`") for word in cells[1].split(", ") if word]
            result.append(Row(cells[0], types, cells[2].strip("`"), *cells[3:]))
    return result


ROTARY = [(model_type, row) for row in rows(6) for model_type in row.model_types]


def config_of(model_type: str) -> dict[str, Any]:
    data = _table()["models"][model_type]
    config: dict[str, Any] = {key: words[0] for key, words in data.get("requires", {}).items()}
    if data.get("nested") and "layers" not in data:
        config["rope_parameters"] = {"full_attention": {"rope_theta": 10000.0}}
    return {"model_type": model_type, **config}


@pytest.mark.parametrize(("model_type", "row"), ROTARY, ids=[name for name, _ in ROTARY])
def test_the_row_says_what_the_config_gives(model_type: str, row: Row) -> None:
    data = _table()["models"][model_type]
    layers = fastpe.RotaryEmbedding.layers_from_config(with_layers(config_of(model_type)), seq_len=4096)
    ropes = {layer for layer in layers if layer is not None}
    found = ["several types"] if len(ropes) > 1 or len(data.get("layers", {})) > 1 else []
    found += ["not all rotated"] if None in layers else []
    said = next((part for part in row.layers.split("; ") if f"`{model_type}`" in part), row.layers.split("; ")[0])
    assert said.split(": ")[-1] == (", ".join(found) or "alike")
    for rope in ropes:
        assert row.pairs == ("neighbours" if rope.interleaved else "halves apart")
        assert row.form == rope.form
        assert ("conjugate" in row.remark) == rope.conjugate
    # Some rows name the whole family, of which one model does this.
    assert data.get("reorders", False) == ("another order" in row.remark)


def test_every_model_type_is_on_the_page() -> None:
    assert {model_type for model_type, _ in ROTARY} == {*_table()["models"]}
    for page in ("docs/rotary.md", "CHANGELOG.md"):
        text = (PAGE.parents[1] / page).read_text(encoding="utf-8")
        assert f"{len(_table()['models'])} model types" in text, page


def test_sinusoidal_calls_are_those_of_the_conventions_page() -> None:
    proven = {row.call for row in docs_pages.rows().values()}
    found = rows(3)
    assert len(found) > 5
    for row in found:
        assert row.layers in proven
        for model_type in row.model_types:
            with pytest.raises(ValueError, match=naming("model_type")):
                fastpe.RotaryEmbedding.from_config({"model_type": model_type})
