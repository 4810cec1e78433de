# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe identify``: the convention that a table in a file was made with."""

from __future__ import annotations

import fastpe
from fastpe._cli.files import npy


def run(name: str) -> bool:
    """Print what is found; whether anything is."""
    table = npy.load(name)
    if table.ndim > 2:
        # As buffers of modules have it: [1, L, d_model] or [L, 1, d_model].
        table = table.reshape([extent for extent in table.shape if extent != 1])
    found = fastpe.identify(table)
    print(found)
    return bool(found.matches)
