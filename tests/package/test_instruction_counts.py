# SPDX-License-Identifier: BSD-3-Clause
"""Speed, guarded by a measure that a busy machine does not change: instructions executed in the compiled module."""

from __future__ import annotations

import json
import sysconfig

import pytest

from . import instruction_counts

_allowed_growth = 1.05


@pytest.mark.slow
@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    reason="counts are stored for Pythons with a global interpreter lock; without it, counting references costs more",
)
def test_no_small_call_executes_more_instructions_than_stored() -> None:
    stored = json.loads(instruction_counts.stored_file.read_text(encoding="utf-8"))
    counted = instruction_counts.count()
    if "unavailable" in counted:
        pytest.skip(f"instructions cannot be counted: {counted['unavailable']}")
    if counted["compiler"] != stored["compiler"]:
        pytest.skip(f"built by {counted['compiler']}; counts are stored for {stored['compiler']}")
    grown = {
        name: f"{now} instructions, {now / stored['instructions'][name] - 1:+.1%} of the stored count"
        for name, now in counted["instructions"].items()
        if now > stored["instructions"][name] * _allowed_growth
    }
    assert grown == {}, "if that is meant, run python tests/package/instruction_counts.py --update"
