# SPDX-License-Identifier: BSD-3-Clause
"""A short run of the fuzzer, with and without streaming stores; CONTRIBUTING.md has the command for a longer one."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

pytest.importorskip("ml_dtypes")  # which the fuzzer imports

FUZZ = pathlib.Path(__file__).parents[2] / "tools" / "fuzz.py"


@pytest.mark.parametrize("case_count", [200, pytest.param(1500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("streaming_bytes", ["0", pytest.param("100000000", marks=pytest.mark.slow)])
def test_fuzz(streaming_bytes: str, case_count: int, run_file: Callable[..., str]) -> None:
    printed = run_file(
        FUZZ,
        f"--cases={case_count}",
        "--seconds=20",
        "--seed=1",
        timeout_seconds=90,
        FASTPE_STREAMING_BYTES=streaming_bytes,
    )
    assert "none failed" in printed
