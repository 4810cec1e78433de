# SPDX-License-Identifier: BSD-3-Clause
"""Commands that messages print, with names that somebody else has chosen, do what they say in a shell."""

from __future__ import annotations

import pytest

pytest.importorskip("typer")

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np

from fastpe.__main__ import main

pytestmark = pytest.mark.skipif(os.name != "posix", reason="such names, and this shell, are POSIX's")

NAMES = [
    "$(touch ran)",
    "`touch ran`",
    'a"; touch ran; "',
    "a'; touch ran; '",
    "', open('ran', 'w'), '",
    "a  b\\c\\",
    "new\nline\ttab",
    "$HOME !! %PATH%",
    "\u202eä\u201d",
    "model (1)",
]
# What can be printed is pasted as it is.
PRINTED = [name for name in NAMES if name.isprintable() and "  " not in name]

# It gives the bytes of the file as an array.
_torch = """
import numpy
class Tensor:
    def __init__(self, name): self.name = name
    def detach(self): return self
    def float(self): return self
    def numpy(self): return numpy.fromfile(self.name, numpy.uint8)
def load(name, map_location, weights_only):
    assert weights_only
    return {"NAME": Tensor(name)}
"""


def in_shell(command: str) -> str:
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", NAMES)
def test_the_command_that_exports_a_table(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("torch.py").write_text(_torch)
    Path(f"{name}.pt").write_bytes(name.encode())
    assert main(["identify", f"{name}.pt"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    commands = re.search(r'(python -c "import torch, .*), where NAME is a name that (python -c .*) prints', error)
    assert commands
    python = f'python() {{ {shlex.quote(sys.executable)} "$@"; }}; '
    in_shell(python + commands[1])
    assert np.load("table.npy").tobytes() == name.encode()
    assert in_shell(python + commands[2]) == "['NAME']\n"
    assert not Path("ran").exists()


@pytest.mark.parametrize("name", PRINTED)
def test_the_option_that_chooses_columns(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.chdir(tmp_path)
    parquet.write_table(pa.table({f"{name}{i}": np.ones(3, np.float32) for i in range(4)}), "x.parquet")
    assert main(["add", "x.parquet", "-o", "y.parquet"]) == 1
    options = re.search(r"choose them with (--key .*)$", capsys.readouterr().err, re.MULTILINE)
    assert options
    arguments = in_shell(f"printf '%s\\n' {options[1]}").splitlines()
    assert main(["add", "x.parquet", "-o", "y.parquet", "-q", *arguments]) == 0
    assert not Path("ran").exists()


@pytest.mark.parametrize("name", PRINTED)
def test_the_command_that_was_left_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).touch()
    assert main([name]) == 2
    command = re.search(r"did you mean fastpe (.*)\? See", capsys.readouterr().err)
    assert command
    assert in_shell(f"printf '%s\\n' {command[1]}").splitlines() == ["add", name]
    assert not Path("ran").exists()
