# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def commands_built_once() -> Iterator[None]:
    """Typer builds its commands anew in each call of `main`, which takes longer than most of the runs themselves."""
    typer = pytest.importorskip("typer")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def a_library_of_its_own(request: pytest.FixtureRequest) -> None:
    """The extra `cli` has no safetensors: tests that are named after it are skipped without it."""
    if "safetensors" in request.node.name:
        pytest.importorskip("safetensors")
