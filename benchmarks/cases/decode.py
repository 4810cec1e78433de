# SPDX-License-Identifier: BSD-3-Clause
"""One token per sequence: what a call costs beside its work."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

import fastpe
from benchmarks import parts, peers
from benchmarks.answers import Answers, InPlace
from benchmarks.harness import Bar, Case, Check, Contender, Factory, Selection

Array = npt.NDArray[Any]

_max_len = 4096
_bars = {(1, 768): 0.3, (64, 1024): 0.5}


def _decode(selection: Selection, *, batch: int, d_model: int) -> Case:
    """An int offset for one sequence, one offset per row for more."""
    buffer = InPlace.of((batch, 1, d_model))
    x = buffer.x
    past = np.random.default_rng(5).integers(0, _max_len, batch)
    offset = int(past[0]) if batch == 1 else past
    answers = buffer.answers(past)

    def contender(name: str, statement: str, check: Check, *, cached: bool = True, **names: Any) -> Contender:
        return Contender(
            name=name,
            work=statement,
            names={"x": x, "offset": offset, **names},
            check=check,
            encoding="cached" if cached else "own",
            output="in place",
        )

    keeping = fastpe.PositionalEncoding(d_model, max_len=_max_len)
    encoder = fastpe.PositionalEncoding(d_model)
    statement = "add_(x, offset=offset)"
    contenders = [
        contender("fastpe, max_len", statement, answers.promised, add_=keeping.add_),
        contender("fastpe", statement, answers.promised, cached=False, add_=encoder.add_),
        contender("fastpe.add_", statement, answers.promised, cached=False, add_=fastpe.add_),
    ]
    row = "table[offset]" if batch == 1 else "table[offset][:, None]"
    numpy_row = f"NumPy x += {row}"
    if selection.rivals:
        table = fastpe.encode(_max_len, d_model)
        rounded = answers.within(1e-7)
        contenders += [
            contender(numpy_row, f"x += {row}", rounded, table=table),
            contender(f"NumPy np.add(x, {row}, out=x)", f"np.add(x, {row}, out=x)", rounded, table=table, np=np),
            *parts.careful_rows(x, table, past, rounded),
        ]
        torch = peers.module("torch")
        if torch is not None:
            names = {"table": torch.from_numpy(table), "tensor": torch.from_numpy(x)}
            if batch > 1:
                names["offset"] = torch.from_numpy(past)
            contenders.append(contender(f"torch tensor.add_({row})", f"tensor.add_({row})", rounded, **names))
    bars = []
    if (batch, d_model) in _bars:
        bars.append(
            Bar(
                requirement=f"within max_len, of the time of NumPy's x += {row}",
                contender="fastpe, max_len",
                rivals=[numpy_row],
                at_most=_bars[batch, d_model],
                limits=[parts.careful],
            )
        )
    return Case(
        name=f"decode [{batch}, 1, {d_model}]",
        bytes_moved=2 * x.nbytes,
        contenders=contenders,
        bars=bars,
        reset=buffer.reset,
    )


def _one_row(selection: Selection, *, name: str) -> Case:
    """A row of 64 columns, as rotary tables are asked for, beside a row of 768 that NumPy adds."""
    out = np.zeros((1, 64), np.float32)
    encoder = fastpe.PositionalEncoding(64, max_len=_max_len)
    position = 1234
    contenders = [
        Contender(
            name="fastpe, max_len",
            work="x = encode(1, offset=position, out=x)",
            names={"encode": encoder.encode, "x": out, "position": position},
            check=Answers(np.array([position]), 64).promised,
            encoding="cached",
        )
    ]
    numpy_row = "NumPy x += table[offset], [1, 1, 768]"
    if selection.rivals:
        buffer = InPlace.of((1, 1, 768))
        contenders.append(
            Contender(
                name=numpy_row,
                work="x += table[position]",
                names={"x": buffer.x, "table": fastpe.encode(_max_len, 768), "position": position},
                check=buffer.answers(np.array([position])).within(1e-7),
                encoding="cached",
                output="in place",
            )
        )
    bar = Bar(
        requirement="of the time of NumPy's x += table[offset], [1, 1, 768]",
        contender="fastpe, max_len",
        rivals=[numpy_row],
        at_most=0.4,
    )
    return Case(name=name, bytes_moved=out.nbytes, contenders=contenders, bars=[bar])


def factories() -> dict[str, Factory]:
    one_row = "encode one row of 64, out="
    return {
        **{
            f"decode [{batch}, 1, {d_model}]": functools.partial(_decode, batch=batch, d_model=d_model)
            for batch, d_model in ((1, 64), (1, 768), (8, 768), (64, 1024))
        },
        one_row: functools.partial(_one_row, name=one_row),
    }
