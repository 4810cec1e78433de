# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

Measured = list[tuple[str, str, float, float]]

_measured: Measured = []


@pytest.fixture
def measured() -> Measured:
    """Where a test notes (system, shape, largest difference, bound)."""
    return _measured


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _measured:
        return
    terminalreporter.section("largest differences")
    width = max(len(system) for system, *_ in _measured)
    for system, shape, difference, bound in _measured:
        terminalreporter.write_line(f"{system:{width}}  {shape:22}  {difference:8.2g}  of {bound:8.2g}")
