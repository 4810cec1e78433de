# SPDX-License-Identifier: BSD-3-Clause
"""What all tests share: the instruction sets of this machine, each forced in turn."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import numpy as np
import numpy.typing as npt
import pytest

import fastpe
from fastpe import _core

hypothesis.settings.register_profile("fastpe", deadline=None, max_examples=20, print_blob=True)
hypothesis.settings.register_profile("thorough", hypothesis.settings.get_profile("fastpe"), max_examples=100)
hypothesis.settings.load_profile("fastpe")


def pytest_report_header() -> list[str]:
    config = fastpe.show_config()
    tested = ", ".join(config["available_instruction_sets"])
    return [f"fastpe {config['version']}: instruction sets tested: {tested}; threads {config['threads']}"]


@pytest.fixture(scope="module", params=_core.available_instruction_sets())
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each instruction set that this machine has; the tests that use it run once on each."""
    before = _core.instruction_set()
    name: str = request.param
    _core.use_instruction_set(name)
    assert _core.instruction_set() == name
    yield name
    assert _core.instruction_set() == name
    _core.use_instruction_set(before)


@pytest.fixture
def interruptible_children() -> Iterator[None]:
    """Processes that the test starts can be interrupted, also where a job runner started pytest with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


_measured: dict[str, tuple[float, float]] = {}


@pytest.fixture(scope="session")
def record_error() -> Callable[[np.dtype[Any], npt.NDArray[Any], npt.NDArray[Any]], None]:
    """Takes a table's absolute errors and ulps; the largest ones go into the terminal summary."""

    def record(dtype: np.dtype[Any], error: npt.NDArray[Any], ulp: npt.NDArray[Any]) -> None:
        beyond = float((error - (1.0 if dtype == np.float64 else 0.5) * ulp).max())
        before = _measured.get(str(dtype), (-np.inf, 0.0))
        _measured[str(dtype)] = (max(before[0], beyond), max(before[1], float(error.max())))

    return record


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for dtype, (beyond, error) in _measured.items():
        allowed = "1 ulp" if dtype == "float64" else "0.5 ulp"
        terminalreporter.write_line(f"largest error measured, {dtype}: {allowed} {beyond:+.2g}; absolute {error:.2g}")
