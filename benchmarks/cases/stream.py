# SPDX-License-Identifier: BSD-3-Clause
"""A chunk of a stream."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

import fastpe
from benchmarks import oracle, peers
from benchmarks.answers import Answers, InPlace
from benchmarks.harness import Bar, Case, Contender, Factory, Selection


def _chunk(selection: Selection, *, name: str) -> Case:
    """600 ms of speech features: 10 frames of 560, at the start of the stream and 10^7 frames into it."""
    buffer = InPlace.of((1, 10, 560))
    x = buffer.x
    encoder = fastpe.PositionalEncoding(560, convention="tensor2tensor", max_len=0)
    table = functools.partial(oracle.encoding, concatenated=True, shift=1.0)

    def answers(position: int) -> Answers:
        return dataclasses.replace(buffer.answers(position + np.arange(10)), table=table)

    def contender(position: int) -> Contender:
        return Contender(
            name=f"fastpe, position {position}",
            work="add_(x, offset=position)",
            names={"add_": encoder.add_, "x": x, "position": position},
            check=answers(position).promised,
            output="in place",
        )

    late, late_enough = 10_000_000, 30_000
    contenders = [contender(0), contender(late)]
    if selection.rivals:
        contenders.append(
            Contender(
                name=f"NumPy, rebuilt from 0, position {late_enough}",
                work=lambda: peers.rebuilt_chunk(late_enough, x),
                check=answers(late_enough).float32_angles(),
                output="fresh",
            )
        )
    bar = Bar(
        requirement="at position 10^7, of the time at 0",
        contender=f"fastpe, position {late}",
        rivals=["fastpe, position 0"],
        at_most=1.05,
    )
    return Case(name=name, bytes_moved=2 * x.nbytes, contenders=contenders, bars=[bar], reset=buffer.reset)


def factories() -> dict[str, Factory]:
    name = "add_ a chunk of a stream, [1, 10, 560]"
    return {name: functools.partial(_chunk, name=name)}
