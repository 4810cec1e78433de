# SPDX-License-Identifier: BSD-3-Clause
"""Rows gathered, scaled and encoded in one pass."""

from __future__ import annotations

import functools

import numpy as np

import fastpe
from benchmarks import parts, peers
from benchmarks.answers import Answers, embeddings, equals
from benchmarks.harness import Bar, Case, Contender, Factory, Selection

take, three_passes = "NumPy np.take(out=), no scale, no encoding", "NumPy table[ids] * scale + rows"


def _embed(selection: Selection, *, shape: tuple[int, int, int], vocabulary: int, name: str) -> Case:
    batch, seq_len, d_model = shape
    table = embeddings((vocabulary, d_model))
    ids = np.random.default_rng(3).integers(0, vocabulary, (batch, seq_len))
    out = np.zeros(shape, np.float32)
    scale = float(np.float32(np.sqrt(d_model)))  # what every contender multiplies with
    encoder = fastpe.PositionalEncoding(d_model)
    gathered = table[ids]
    answers = Answers(np.tile(np.arange(seq_len), batch), d_model, gathered.reshape(-1, d_model), scale)
    contenders = [
        Contender(name="fastpe", work=lambda: encoder.embed(ids, table, scale=scale, out=out), check=answers.promised)
    ]
    if selection.rivals:
        rows = fastpe.encode(seq_len, d_model)
        factor = np.float32(scale)
        loose = answers.within(2e-5)  # x * sqrt(d) is of the order of 100
        contenders += [
            Contender(
                name=take,
                work=lambda: np.take(table, ids, axis=0, out=out),
                check=equals(gathered),
                encoding="none",
            ),
            Contender(
                name=three_passes,
                work=lambda: table[ids] * factor + rows,
                check=loose,
                encoding="cached",
                output="fresh",
            ),
            *parts.careful_embed(out, table, ids, rows, scale, loose),
        ]
        torch = peers.module("torch")
        if torch is not None:
            weights, tensor_ids, tensor_rows = (torch.from_numpy(array) for array in (table, ids, rows))
            contenders.append(
                Contender(
                    name="torch embedding, mul_, add_",
                    work=lambda: (
                        torch.nn.functional.embedding(tensor_ids, weights).mul_(scale).add_(tensor_rows).numpy()
                    ),
                    check=loose,
                    encoding="cached",
                    output="fresh",
                )
            )
    bar = functools.partial(Bar, limits=[parts.careful])
    return Case(
        name=name,
        bytes_moved=2 * out.nbytes,
        contenders=contenders,
        bars=[
            bar(requirement="beside np.take alone", rivals=[take], at_least=3),
            bar(requirement="beside NumPy's three passes", rivals=[three_passes], at_least=5),
        ],
    )


def factories() -> dict[str, Factory]:
    name = "embed [32, 512, 768] of 30522"
    return {name: functools.partial(_embed, shape=(32, 512, 768), vocabulary=30_522, name=name)}
