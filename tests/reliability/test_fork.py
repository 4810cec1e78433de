# SPDX-License-Identifier: BSD-3-Clause
"""Children of a process that used threads run, and run correctly."""

from __future__ import annotations

import importlib.util
import os
import pathlib
from collections.abc import Callable

import pytest

pytestmark = [pytest.mark.timed, pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")]

HERE = pathlib.Path(__file__).parent
needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="looks into /proc")


def with_others(packages: str, order: str) -> object:
    missing = [name for name in packages.split("+") if importlib.util.find_spec(name) is None]
    skip = pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")
    return pytest.param(["others", packages, order], marks=[skip, needs_proc])


@pytest.mark.parametrize(
    "scenario",
    [
        ["fork"],
        ["fork_from_thread"],
        pytest.param(["fork_during_calls"], marks=pytest.mark.slow),
        pytest.param(["fork_during_first_calls"], marks=pytest.mark.slow),
        ["fork_while_rows_are_kept"],
        ["pool", "fork"],
        pytest.param(["pool", "forkserver"], marks=pytest.mark.slow),
        pytest.param(["pool", "spawn"], marks=pytest.mark.slow),
        *(
            with_others(packages, order)
            for packages in ("torch", "sklearn")
            for order in ("fastpe-first", "fastpe-last", "fastpe-in-child")
        ),
    ],
    ids="-".join,
)
def test_fork(scenario: list[str], run_file: Callable[..., str]) -> None:
    run_file(HERE / "fork_scenarios.py", *scenario, timeout_seconds=300)
