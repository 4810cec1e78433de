# SPDX-License-Identifier: BSD-3-Clause
"""The page about the C library shows the example as it is built."""

from __future__ import annotations

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_page_shows_the_example() -> None:
    page = (ROOT / "docs" / "c-library.md").read_text()
    assert f"```c\n{(ROOT / 'examples' / 'c_library' / 'example.c').read_text()}```" in page
