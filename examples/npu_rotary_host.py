# SPDX-License-Identifier: BSD-3-Clause
"""The host of an accelerator whose compiled graph takes one row of cosines and one of sines per token.

Compiled graphs have static shapes: position_ids_cos and position_ids_sin are [1, 1, 1, 64] in a graph that decodes
one token, and the host fills them before each step. Nothing is allocated after the start. Quantised graphs take the
same rows as uint16.

    python examples/npu_rotary_host.py
"""

from __future__ import annotations

import numpy as np

import fastpe

ROTARY_DIM, BASE, LONGEST = 128, 1e6, 512  # as in Qwen2.5 and Qwen3

# The quantiser's encoding of values from -1 to 1: value = (code - ZERO_POINT) * SCALE. QNN's offset is -ZERO_POINT.
SCALE, ZERO_POINT = 2 / 65535, 32768


class Host:
    """Owns the graph's inputs, cos and sin [1, 1, 1, d/2]."""

    def __init__(self, dtype: type = np.float32, rotary_dim: int = ROTARY_DIM, longest: int = LONGEST) -> None:
        # The graph decides which columns are pairs; the tables are the same.
        self.rope = fastpe.RotaryEmbedding(rotary_dim, interleaved=False, base=BASE, max_len=longest)
        self.cos, self.sin = (np.empty((1, 1, 1, rotary_dim // 2), dtype) for _ in range(2))
        # The same memory, in the shape of one row.
        self.rows = self.cos.reshape(1, -1), self.sin.reshape(1, -1)
        # The embedding keeps the rows that it has computed: compute all of them before the first token.
        for position in range(longest):
            self.step(position)

    def step(self, position: int) -> None:
        """Fill the inputs for the token at this position."""
        self.rope.tables(1, offset=position, out=self.rows)


class QuantisedHost(Host):
    """The same with inputs in uint16."""

    def __init__(self, rotary_dim: int = ROTARY_DIM, longest: int = LONGEST) -> None:
        # In float64, so that each code is the nearest one to the exact value.
        self.exact = np.empty((2, 1, rotary_dim // 2))
        self.exact_rows = tuple(self.exact)
        super().__init__(np.uint16, rotary_dim, longest)

    def step(self, position: int) -> None:
        """Fill the inputs for the token at this position."""
        exact = self.exact
        self.rope.tables(1, offset=position, out=self.exact_rows)
        np.divide(exact, SCALE, out=exact)
        np.rint(exact, out=exact)
        np.add(exact, ZERO_POINT, out=exact)
        # A cosine of 1 would be code 65536. The quantiser clamps it, and so must the host.
        np.minimum(exact, 65535, out=exact)
        for row, codes in zip(self.rows, self.exact_rows, strict=True):
            np.copyto(row, codes, casting="unsafe")


def main() -> None:
    """Fill the inputs of both hosts for some tokens, and compare with NumPy's float64 cosines and sines."""
    host, quantised = Host(), QuantisedHost()
    frequencies = BASE ** (-2.0 * np.arange(ROTARY_DIM // 2) / ROTARY_DIM)
    largest = largest_quantised = 0.0
    for position in range(LONGEST):
        host.step(position)
        quantised.step(position)
        for function, row, codes in ((np.cos, host.cos, quantised.cos), (np.sin, host.sin, quantised.sin)):
            expected = function(position * frequencies)
            largest = max(largest, float(np.abs(row - expected).max()))
            decoded = (codes.astype(np.float64) - ZERO_POINT) * SCALE
            largest_quantised = max(largest_quantised, float(np.abs(decoded - expected).max()))
    # Half a unit in the last place below 1, and half a step of the codes, or one where the quantiser clamps.
    assert largest <= 2.0**-25 + 1e-12
    assert largest_quantised <= SCALE + 1e-12
    shape = list(host.cos.shape)
    print(f"{LONGEST} tokens, cos and sin {shape} {host.cos.dtype}: largest error {largest:.2g}")
    print(f"{LONGEST} tokens, cos and sin {shape} {quantised.cos.dtype}: largest error {largest_quantised:.2g}")


if __name__ == "__main__":
    main()
