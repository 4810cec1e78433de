# SPDX-License-Identifier: BSD-3-Clause
"""What all tests of the command line share. They run in a directory of their own: see conftest.py."""

from __future__ import annotations

import os
import pickle
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fastpe.__main__ import main

Array = npt.NDArray[Any]
Capture = pytest.CaptureFixture[str]


class Code:
    """What pickle calls when it reads one of these."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("ran",)


PICKLE = pickle.dumps(Code(), protocol=0)


def embeddings(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def run(command: str) -> int:
    return main(shlex.split(command))


def contents() -> dict[str, bytes | None]:
    """All files and directories below the current one; what is neither has no content."""
    found: dict[str, bytes | None] = {}
    for directory, directories, files in os.walk("."):
        for path in (Path(directory, name) for name in (*directories, *files)):
            found[str(path)] = path.read_bytes() if path.is_file() and not path.is_symlink() else None
    return found


def refused(command: str, capsys: Capture, *named: str, code: int = 1) -> str:
    """Run a command that must end with one line of error that names these, and change nothing; return the line."""
    before = contents()
    capsys.readouterr()
    assert run(command) == code
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("fastpe: error: ")
    assert error.count("\n") == 1
    assert len(error) < 2000
    for each in named:
        assert each in error, error
    assert contents() == before
    return error
