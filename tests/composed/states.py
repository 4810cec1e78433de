# SPDX-License-Identifier: BSD-3-Clause
"""Does a call with encoders of any past, with one thread and two, on each instruction set, in Python and in C.

python -m tests.composed.states --seconds 60 --seed 1
"""

from __future__ import annotations

import argparse
import collections
import itertools
import os
import pathlib
import pickle
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from fastpe import _core

from ..c_library import shared_library as c_library
from .calls import DRAWS, Call, Draw
from .model import Rotary

LIBRARY = os.environ.get("FASTPE_TEST_C_LIBRARY")


def encoders(call: Call) -> Iterator[tuple[str, Any]]:
    """Encoders of any past, which is not to be seen."""

    def after(*counts: int) -> Any:
        encoder: Any = call.source.make(call.max_len)
        for count in counts:
            if isinstance(call.source, Rotary):
                shape = (count, call.source.coordinate_count) if call.source.coordinate_count else (count,)
                encoder.tables(np.arange(np.prod(shape)).reshape(shape), form="halves", dtype=call.dtype)
            else:
                encoder.encode(count, dtype=call.dtype)
        return encoder

    yield "fresh", after()
    warm = after()
    warm.warm_up(dtype=call.dtype)
    yield "warm", warm
    yield "pickled", pickle.loads(pickle.dumps(warm))
    yield "after shorter calls", after(1, 3, 3, 3)
    longer = after(50, 50, 50, 400)
    yield "after longer calls", longer
    yield "called before", longer


def in_c(call: Call) -> Iterator[tuple[str, Any]]:
    """The C library's handles, fresh and warm."""
    if call.run_in_c is None or LIBRARY is None:
        return
    library = c_library.Library(next(pathlib.Path(LIBRARY).glob("lib*/**/libfastpe.so.*.*")))
    for state in ("fresh", "warm"):
        source = call.source
        handle: c_library.Encoding | c_library.Rotary
        options: dict[str, Any] = {"max_len": call.max_len or 0}
        if isinstance(source, Rotary):
            options |= {"attention_factor": source.attention_factor, "head_dim": source.head_dim or 0}
            options |= {"frequency_axes": source.coordinates, "frequencies": source.frequencies}
            pairing = "INTERLEAVED" if source.interleaved else "HALVES"
            handle = c_library.Rotary(library, source.rotary_dim, pairing, **options)
        else:
            options["frequencies"] = source.frequencies
            handle = c_library.Encoding(library, source.d_model, source.convention, **options)
        if state == "warm":
            handle.warm_up(call.dtype.name.upper())
        yield f"{state} in C", handle


def check(call: Call) -> None:
    """The same bytes in every state, those of the model, and none written beside."""
    wanted = None
    active = _core.config()["instruction_set"]
    memories = [place.memory for place in call.written]
    before, read = [memory.copy() for memory in memories], [array.tobytes() for array in call.read]
    after = [memory.tobytes() for memory in memories]
    if call.is_allowed:
        _core.use_instruction_set("baseline")
        wanted = call.expected()
        after = [place.after(values) for place, values in zip(call.written, wanted, strict=False)]

    def run(function: Callable[[], Any], *state: Any) -> None:
        where = (*state, call.source, call.max_len)
        for memory, earlier in zip(memories, before, strict=True):
            memory[...] = earlier
        try:
            result = function()
        except (ValueError, IndexError, c_library.CError) as error:
            if wanted is not None and not call.is_empty:
                raise AssertionError(f"{call.what()}: {where}") from error
        else:
            assert wanted is not None or call.is_empty, f"{call.what()} was not refused: {where}"
            results = result if isinstance(result, tuple) else (result,) if result is not None else ()
            for found, values in zip(results, wanted or [], strict=False):
                assert np.moveaxis(found, call.axis, -2).tobytes() == values.tobytes(), (
                    f"{call.what()} is wrong: {where}"
                )
        assert [array.tobytes() for array in call.read] == read, f"{call.what()} wrote what it reads: {where}"
        assert [memory.tobytes() for memory in memories] == after, f"{call.what()} wrote what it should not: {where}"

    try:
        for instruction_set in _core.config()["available_instruction_sets"]:
            _core.use_instruction_set(instruction_set)
            for number, (state, encoder) in enumerate(encoders(call)):
                for threads in (1, 2) if call.is_large else (1 + number % 2,):
                    run(partial(call.run, encoder, threads), state, threads, instruction_set)
            for state, handle in in_c(call):
                for threads in (1, 2):
                    run(partial(call.run_in_c or call.run, handle, threads), state, threads, instruction_set)
    finally:
        _core.use_instruction_set(active)


def check_calls(kind: str, seed: str) -> None:
    try:
        check(DRAWS[kind](Draw(random.Random(seed).randint)))
    except AssertionError as error:
        raise AssertionError(f"{kind} {seed}: {error}") from error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--calls", type=int, default=10**9)
    parser.add_argument("--seed", default="1")
    options = parser.parse_args()
    end, counts, kinds = time.monotonic() + options.seconds, collections.Counter[str](), itertools.cycle(DRAWS)
    while counts.total() < options.calls and time.monotonic() < end:
        kind = next(kinds)
        check_calls(kind, f"{options.seed}/{counts.total()}")
        counts[kind] += 1
    print(f"{counts.total()} calls in every state: {dict(counts)}")


if __name__ == "__main__":
    main()
