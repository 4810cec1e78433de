# SPDX-License-Identifier: BSD-3-Clause
"""Speed, guarded by a measure that a busy machine does not change: instructions executed in the compiled module."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import sysconfig
from typing import Any

import pytest

_root = pathlib.Path(__file__).parents[2]
_allowed_growth = 1.05


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        reason="counts are stored for Pythons with a global interpreter lock; without it, counting references costs more",
    ),
]


@pytest.fixture(scope="module")
def counted() -> Any:
    command = [sys.executable, "-m", "benchmarks.instruction_counts", "--json"]
    run = subprocess.run(command, cwd=_root, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def _stored() -> Any:
    return json.loads((_root / "tests" / "data" / "instruction_counts.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("workload", _stored()["instructions"])
def test_no_workload_executes_more_instructions_than_stored(workload: str, counted: Any) -> None:
    stored = _stored()
    if "unavailable" in counted:
        pytest.skip(f"instructions cannot be counted: {counted['unavailable']}")
    if counted["compiler"] != stored["compiler"]:
        pytest.skip(f"built by {counted['compiler']}; counts are stored for {stored['compiler']}")
    now, before = counted["instructions"][workload], stored["instructions"][workload]
    assert now <= before * _allowed_growth, (
        f"{workload} executes {now} instructions, {now / before - 1:+.1%} of the stored {before}; if that is meant, run "
        f"python -m benchmarks.instruction_counts --update"
    )
