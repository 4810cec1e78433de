# SPDX-License-Identifier: BSD-3-Clause
"""What examples/ promise beyond what they check themselves; test_docs.py runs them."""

from __future__ import annotations

import tracemalloc

import pytest

from ..oracles.examples import example


@pytest.mark.parametrize("name", ["Host", "QuantisedHost"])
def test_a_rotary_host_allocates_nothing_after_its_start(name: str) -> None:
    # Rows of 8 kB or more, which cannot be taken for the few objects that a call of Python needs.
    host = getattr(example("npu_rotary_host"), name)(rotary_dim=4096, longest=40)
    addresses = [array.ctypes.data for array in (host.cos, host.sin)]
    host.step(0)
    tracemalloc.start()
    try:
        host.step(0)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for position in range(40):
            host.step(position)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100
    assert peak - before < 1000
    assert addresses == [array.ctypes.data for array in (host.cos, host.sin)]
