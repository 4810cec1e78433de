# SPDX-License-Identifier: BSD-3-Clause
"""Every call of docs/coming-from.md runs, with the names that the page gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..oracles.systems import timing_signal

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text("utf-8")
ROWS = re.findall(r"^\| (.+) \| `([^`]+)` \|$", PAGE, re.MULTILINE)


def run(call: str) -> Any:
    names: dict[str, Any] = {}
    exec(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0], names)  # noqa: S102
    return eval(call, names)


def test_every_row_has_a_call() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and line != "| there | here |"]
    assert len(ROWS) == len(lines) > 80


@pytest.mark.parametrize(("theirs", "call"), ROWS)
def test_every_call_runs(theirs: str, call: str) -> None:
    result = run(call)
    for array in result if isinstance(result, tuple) else (result,):
        assert not isinstance(array, np.ndarray) or (array.size and np.isfinite(array).all())


def test_rows_about_chunks_mean_the_same() -> None:
    # FunASR's code: positions 1 .. start_idx + L of everything heard so far, of which a chunk takes the tail.
    x = np.ones((2, 16, 64), np.float32)
    table = timing_signal(range(1, 57), 64)
    (call,) = {call for theirs, call in ROWS if "Online" in theirs}
    np.testing.assert_allclose(run(call), x + table[40:], rtol=0, atol=1e-6)
    (call,) = {call for theirs, call in ROWS if "encoder_output_size" in theirs}
    np.testing.assert_allclose(run(call), x * 512**0.5 + table[40:], rtol=0, atol=1e-5)
