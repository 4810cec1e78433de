# SPDX-License-Identifier: BSD-3-Clause
"""The stored sums on every instruction set, and on an emulated processor that has none of them."""

from __future__ import annotations

import os
import pathlib
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

import fastpe

CHECK = pathlib.Path(__file__).parents[2] / "tools" / "check_package.py"


def test_stored_sums(run_file: Callable[..., str]) -> None:
    names = ", ".join(fastpe.show_config()["available_instruction_sets"])
    assert run_file(CHECK).endswith(f" sums checked on {names}, 0 wrong\n")


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="emulates an x86-64 processor of 2008")
@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="qemu-user is not installed")
def test_processor_without_avx() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "FASTPE_ISA"}
    environment["OPENBLAS_CORETYPE"] = "Nehalem"  # NumPy's OpenBLAS may take it for a processor with AVX
    command = ["qemu-x86_64", "-cpu", "Nehalem", sys.executable, str(CHECK)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert " sums checked on baseline, 0 wrong" in process.stdout
