# SPDX-License-Identifier: BSD-3-Clause
"""A short run of the fuzzer, with and without stores past the caches; CONTRIBUTING.md has the command for a longer one."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

pytest.importorskip("ml_dtypes")  # which the fuzzer imports

FUZZ = pathlib.Path(__file__).parents[2] / "tools" / "fuzz.py"


@pytest.mark.parametrize("case_count", [120, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("streaming_bytes", ["0", "100000000"])
def test_fuzz(streaming_bytes: str, case_count: int, run_file: Callable[..., str]) -> None:
    printed = run_file(
        FUZZ,
        f"--cases={case_count}",
        "--seconds=500",
        f"--seed={streaming_bytes}",
        timeout_seconds=600,
        FASTPE_STREAMING_BYTES=streaming_bytes,
    )
    assert f"{case_count} cases, none failed" in printed
