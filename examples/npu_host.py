# SPDX-License-Identifier: BSD-3-Clause
"""The host of an accelerator whose compiled graph has no Gather: it embeds token ids, and a step allocates no memory.

Compilers for NPUs often leave the embedding to the host, and some runtimes take it in float16. `embed` gathers, adds
positions, and writes into the buffer that the runtime reads, in one pass. The positions here are learned, as in many
decoders.

    python examples/npu_host.py
"""

from __future__ import annotations

import numpy as np

import fastpe

VOCABULARY, D_MODEL, LONGEST = 51865, 384, 32


class Host:
    """Owns the graph's input buffer [1, LONGEST, D_MODEL]."""

    def __init__(self, token_table: np.ndarray, position_table: np.ndarray) -> None:
        self.token_table = token_table
        self.position_table = position_table
        self.graph_input = np.zeros((1, LONGEST, D_MODEL), token_table.dtype)
        self.tokens = 0

    def append(self, ids: list[int]) -> np.ndarray:
        """Embed only new tokens; earlier rows stay as they are."""
        end = self.tokens + len(ids)
        fastpe.embed(
            [ids],
            self.token_table,
            position_table=self.position_table,
            offset=self.tokens,
            out=self.graph_input[:, self.tokens : end],
        )
        self.tokens = end
        return self.graph_input


def main() -> None:
    """Decode a few tokens and compare with gathering, adding and padding in NumPy."""
    rng = np.random.default_rng(0)
    token_table = rng.standard_normal((VOCABULARY, D_MODEL), dtype=np.float32).astype(np.float16)
    position_table = rng.standard_normal((LONGEST, D_MODEL), dtype=np.float32).astype(np.float16)

    host = Host(token_table, position_table)
    prompt, generated = [50258, 50259, 50359, 50363], [2425, 11, 1002, 13]
    host.append(prompt)
    for token in generated:
        graph_input = host.append([token])

    ids = np.array(prompt + generated)
    expected = np.zeros((1, LONGEST, D_MODEL), np.float16)
    # float16 sums are rounded once, from float32.
    expected[0, : len(ids)] = token_table[ids].astype(np.float32) + position_table[: len(ids)].astype(np.float32)
    assert np.array_equal(graph_input, expected)
    print(f"{len(ids)} tokens into {list(graph_input.shape)} {graph_input.dtype}: as gathered and added in NumPy")


if __name__ == "__main__":
    main()
