# SPDX-License-Identifier: BSD-3-Clause
"""Whether a script's results depend on stores past the caches."""

from __future__ import annotations

import os
import subprocess
import sys

from fastpe import _core


def assert_streaming_keeps_bits(script: str) -> None:
    """The script prints the name of each instruction set and a sum of the bits that it gives."""
    plain, streaming = (
        subprocess.run(
            [sys.executable, "-W", "error", "-c", script],
            env={**os.environ, "FASTPE_STREAMING_BYTES": threshold},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        for threshold in (str(2**60), "0")
    )
    assert plain == streaming
    assert plain[::2] == _core.available_instruction_sets()
    assert len(set(plain[1::2])) == 1
