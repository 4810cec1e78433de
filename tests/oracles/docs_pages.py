# SPDX-License-Identifier: BSD-3-Clause
"""The calls of docs/conventions.md and docs/engines.md, and the recipes of other pages."""

from __future__ import annotations

import dataclasses
import math
import pathlib
import re
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

import fastpe

DOCS = pathlib.Path(__file__).parents[2] / "docs"


@dataclasses.dataclass(frozen=True)
class Row:
    call: str
    angles: Literal["float32", "float64"]

    def run(self, **variables: Any) -> npt.NDArray[Any]:
        names = {"np": np, "math": math, "fastpe": fastpe, "dataclasses": dataclasses}
        return np.asarray(eval(self.call, names | variables))


def cells_of(page: str, columns: int) -> list[list[str]]:
    """The rows below the head of each table with this number of columns."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")]
    return [row for row in cells if len(row) == columns and row[0] not in ("System", "Engine", "Model")]


def rows() -> dict[str, Row]:
    result: dict[str, Row] = {}
    for system, call, angles, _ in cells_of("conventions.md", 4):
        assert system not in result, f"{system} has two rows"
        assert call.startswith("`fastpe.")
        assert call.endswith("`")
        assert angles in ("float32", "float64"), angles
        result[system] = Row(call.strip("`"), cast('Literal["float32", "float64"]', angles))
    return result


def engine_calls() -> dict[str, str]:
    """The call of each engine of docs/engines.md."""
    result: dict[str, str] = {}
    for engine, call, *_ in cells_of("engines.md", 6):
        assert engine not in result, f"{engine} has two rows"
        assert "`" not in call[1:-1], call
        result[engine.replace("`", "")] = call.strip("`")
    return result


def recipe(library: str) -> str:
    """The pages' snippets that the default tests leave out because they need this library, one after the other."""
    pages = [path.read_text("utf-8") for path in sorted(DOCS.glob("*.md"))]
    title = re.compile(rf'^```python title="needs {library}"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
    found = [snippet for page in pages for snippet in title.findall(page)]
    assert found, library
    return "\n".join(found)
