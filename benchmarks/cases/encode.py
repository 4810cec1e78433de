# SPDX-License-Identifier: BSD-3-Clause
"""Tables into an array at hand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import fastpe
from benchmarks import machine, oracle, parts, peers
from benchmarks.answers import Answers, is_constant
from benchmarks.harness import Bar, Case, Contender, Factory, Selection

Array = npt.NDArray[Any]

fill = "NumPy out.fill(1.5)"
_own_rows = "fastpe, rows that it keeps"

_shapes = ((64, 64), (128, 256), (512, 512), (512, 768), (2048, 768), (8192, 1024), (65_536, 1024))
_largest = _shapes[-1]


def _fill(out: Array) -> Contender:
    def work() -> Array:
        out.fill(1.5)
        return out

    return Contender(name=fill, work=work, check=is_constant(1.5), encoding="none")


def _encode(selection: Selection, *, seq_len: int, d_model: int) -> Case:
    out = np.zeros((seq_len, d_model), np.float32)
    encoder = fastpe.PositionalEncoding(d_model, max_len=0)
    keeping = fastpe.PositionalEncoding(d_model)
    answers = Answers(np.arange(seq_len), d_model)
    contenders = [
        Contender(name="fastpe", work=lambda: encoder.encode(seq_len, out=out), check=answers.promised),
        Contender(
            name=_own_rows, work=lambda: keeping.encode(seq_len, out=out), check=answers.promised, encoding="own"
        ),
    ]
    if selection.rivals:
        contenders += [
            Contender(
                name="fastpe, new array",
                work=lambda: encoder.encode(seq_len),
                check=answers.promised,
                output="fresh",
            ),
            _fill(out),
            *parts.fills(out),
            *peers.encoders(out, answers, compiled=selection.compiled),
        ]
        waves = parts.Waves.of_encoding(d_model)
        contenders += parts.careful_expansions(seq_len, waves, answers.within(1e-7))
    return Case(
        name=f"encode [{seq_len}, {d_model}]",
        bytes_moved=out.nbytes,
        contenders=contenders,
        bars=_bars(seq_len, d_model),
    )


def _has_streaming_target(seq_len: int, d_model: int) -> bool:
    return (seq_len, d_model) == _largest and fastpe.show_config()["threads"] == 1


def _bars(seq_len: int, d_model: int) -> list[Bar]:
    config = fastpe.show_config()
    one_thread, is_avx512 = config["threads"] == 1, config["instruction_set"] == "avx512"
    in_cache = machine.is_in_cache(seq_len * d_model * 4)
    # NumPy's float32 sines are twice as fast on Intel's AVX-512.
    fast_sines = machine.is_intel() and "avx512" in config["available_instruction_sets"]
    is_hard = one_thread or (seq_len, d_model) == (64, 64)
    float32_times = (5 if is_hard else 6) if fast_sines else (8 if is_hard else 10)
    careful_loops = [parts.careful, parts.careful_streaming]
    bar = functools.partial(Bar, contender=_own_rows, limits=careful_loops)
    bars = [
        bar(requirement="beside NumPy's float32 idiom", rivals=[peers.float32_idiom], at_least=float32_times),
        bar(
            requirement="beside NumPy's float64 idiom", rivals=[peers.float64_idiom], at_least=30 if fast_sines else 50
        ),
    ]
    if seq_len * d_model >= 512 * 512:
        if is_avx512:
            share = (0.7 if in_cache else 0.9) if one_thread else 1
        else:
            share = (0.55 if one_thread else 0.7) if in_cache else (0.7 if one_thread else 1)
        bars.insert(0, bar(requirement="beside out.fill(1.5)", rivals=[fill], at_least=share))
    if _has_streaming_target(seq_len, d_model):
        requirement = "one thread, beside streaming stores of a constant"
        bars.append(bar(requirement=requirement, rivals=[parts.streaming_fill], at_least=0.9))
    return bars


def _other(
    selection: Selection,
    *,
    name: str,
    positions: Array | int,
    d_model: int,
    dtype: npt.DTypeLike = np.float32,
    convention: str = "vaswani",
    table: Callable[[Array, int], Array] = oracle.encoding,
) -> Case:
    encoder = fastpe.PositionalEncoding(d_model, convention=convention)
    rows = np.arange(positions) if isinstance(positions, int) else positions
    out = np.zeros((*rows.shape, d_model), dtype)
    answers = Answers(rows, d_model, table=table)
    contenders = [Contender(name="fastpe", work=lambda: encoder.encode(positions, out=out), check=answers.promised)]
    if selection.rivals:
        contenders.append(_fill(out))
    return Case(name=name, bytes_moved=out.nbytes, contenders=contenders)


def factories() -> dict[str, Factory]:
    random = np.random.default_rng(11)
    others: dict[str, dict[str, Any]] = {
        "encode [16384, 1024] float64": {"positions": 16_384, "d_model": 1024, "dtype": np.float64},
        "encode [512, 768], sines before cosines": {
            "positions": 512,
            "d_model": 768,
            "convention": "tensor2tensor",
            "table": functools.partial(oracle.encoding, concatenated=True, shift=1.0),
        },
        "encode [512, 765]": {"positions": 512, "d_model": 765},
        "encode [8, 512, 1024], each row shuffled": {
            "positions": np.stack([random.permutation(512) for _ in range(8)]),
            "d_model": 1024,
        },
        "encode [8, 512, 1024], positions anywhere below 2^20": {
            "positions": random.permutation(1 << 20)[:4096].reshape(8, 512),
            "d_model": 1024,
        },
    }
    return {
        **{
            f"encode [{seq_len}, {d_model}]": functools.partial(_encode, seq_len=seq_len, d_model=d_model)
            for seq_len, d_model in _shapes
        },
        **{name: functools.partial(_other, name=name, **keywords) for name, keywords in others.items()},
    }
