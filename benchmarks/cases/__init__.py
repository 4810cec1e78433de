# SPDX-License-Identifier: BSD-3-Clause
"""The cases: fixed shapes from model front ends, servers and streams, each with its contenders and its bars."""

from __future__ import annotations

from benchmarks.cases import add, decode, embed, encode, rotary, stream
from benchmarks.harness import Factory


def factories() -> dict[str, Factory]:
    """Cases by name, not built yet: the large ones hold gigabytes."""
    return {
        name: factory
        for part in (encode, add, embed, stream, decode, rotary)
        for name, factory in part.factories().items()
    }
