# SPDX-License-Identifier: BSD-3-Clause
"""What examples/ promise beyond what they check themselves; test_docs.py runs them."""

from __future__ import annotations

import tracemalloc

import numpy as np
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


def test_a_quantised_host_writes_the_nearest_code() -> None:
    module = example("npu_rotary_host")
    host, plain = module.QuantisedHost(longest=20), module.Host(np.float64, longest=20)
    values = (np.arange(65536) - module.ZERO_POINT) * module.SCALE
    for position in range(0, 20, 7):
        host.step(position)
        plain.step(position)
        for codes, exact in ((host.cos, plain.cos), (host.sin, plain.sin)):
            assert codes.dtype == np.uint16
            np.testing.assert_array_equal(codes.ravel(), np.abs(values - exact.reshape(-1, 1)).argmin(axis=1))
