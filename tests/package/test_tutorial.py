# SPDX-License-Identifier: BSD-3-Clause
"""The tutorial, from a config to equal logits in ONNX Runtime."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"


def test_the_tutorial_gives_equal_logits() -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    names: dict[str, Any] = {}
    for code in re.findall(r"^```python[^\n]*\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102
    assert "as_initializers" in names
