# SPDX-License-Identifier: BSD-3-Clause
"""What all tests share: the instruction sets of this machine, each forced in turn; and what they need to be run at all."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

import fastpe
from fastpe import _core

# What the extra `test` adds to NumPy and pytest. Where one of these is not installed, a module that imports it is skipped.
OPTIONAL = {
    *("hypothesis", "mpmath", "ml_dtypes"),  # references, and types
    *("typer", "rich", "matplotlib"),  # the command line and pictures
    *("dask", "pyarrow", "zarr"),  # arrays and tables of others
}

with contextlib.suppress(ModuleNotFoundError):
    import hypothesis

    hypothesis.settings.register_profile("fastpe", deadline=None, max_examples=20, print_blob=True)
    hypothesis.settings.register_profile("thorough", hypothesis.settings.get_profile("fastpe"), max_examples=100)
    hypothesis.settings.load_profile("fastpe")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a module of tests that fails to import an optional package, instead of stopping with an error."""
    report = yield
    call = getattr(report, "call", None)
    cause = call.excinfo.value.__cause__ if call is not None and call.excinfo is not None else None
    missing = (cause.name or "").partition(".")[0] if isinstance(cause, ModuleNotFoundError) else ""
    if missing in OPTIONAL:
        report.outcome = "skipped"
        report.longrepr = (
            str(collector.path),
            0,
            f"Skipped: {missing} is not installed; pip install '.[test]' installs it",
        )
        report.call = None  # type: ignore[attr-defined]
        # What was imported of it: others that import it are to be skipped as well.
        for name, module in [*sys.modules.items()]:
            if getattr(module, "__file__", None) == str(collector.path):
                package, _, last = name.rpartition(".")
                vars(sys.modules.get(package, module)).pop(last, None)
                del sys.modules[name]
    return report


def pytest_report_header() -> list[str]:
    config = fastpe.show_config("dicts")
    tested = ", ".join(config["available_instruction_sets"])
    return [f"fastpe {config['version']}: instruction sets tested: {tested}; threads {config['threads']}"]


@pytest.fixture(scope="module", params=_core.config()["available_instruction_sets"])
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each instruction set that this machine has; the tests that use it run once on each."""
    before = _core.config()["instruction_set"]
    name: str = request.param
    _core.use_instruction_set(name)
    assert _core.config()["instruction_set"] == name
    yield name
    assert _core.config()["instruction_set"] == name
    _core.use_instruction_set(before)


@pytest.fixture
def interruptible_children() -> Iterator[None]:
    """Processes that the test starts can be interrupted, also where a job runner started pytest with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def another_user() -> None:
    """Root can become a user whom modes and limits stop; in some containers there is none."""
    users = Path("/proc/self/uid_map")
    if hasattr(os, "getuid") and os.getuid() == 0 and users.exists():
        ranges = [[int(number) for number in line.split()] for line in users.read_text().splitlines()]
        if not any(first <= 65534 < first + count for first, _, count in ranges):
            pytest.skip("this user namespace has no user but root")
