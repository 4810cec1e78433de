# SPDX-License-Identifier: BSD-3-Clause
"""The same bits in every state: random calls, where outputs go past the caches and where they do not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ..reliability.conftest import run_python

pytest.importorskip("ml_dtypes")
pytest.importorskip("mpmath")
ROOT = str(Path(__file__).parents[2])


@pytest.mark.parametrize("calls", [300, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("streaming_bytes", ["", "1"])
def test_every_state(streaming_bytes: str, calls: int) -> None:
    options = [f"--calls={calls}", "--seconds=500", f"--seed={streaming_bytes or 0}"]
    path = os.pathsep.join([ROOT, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {"FASTPE_STREAMING_BYTES": streaming_bytes, "PYTHONPATH": path}
    assert run_python(["-m", "tests.composed.states", *options], 600, environment).startswith(f"{calls} calls")
