# SPDX-License-Identifier: BSD-3-Clause
"""Small C helpers, compiled when they are needed."""

from __future__ import annotations

import os
import pathlib
import shlex
import shutil
import subprocess
from collections.abc import Sequence


def compile_library(source: pathlib.Path, library: pathlib.Path, flag_choices: Sequence[Sequence[str]]) -> bool:
    """Make a shared library with the first flags that work; False where there is no compiler, or none work."""
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    if shutil.which(compiler[0]) is None:
        return False
    for flags in flag_choices:
        command = [*compiler, "-O3", "-shared", "-fPIC", *flags, str(source), "-o", str(library)]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return True
    return False
