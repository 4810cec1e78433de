# SPDX-License-Identifier: BSD-3-Clause
"""Random calls, checked against a naive model and against every instruction set and thread count.

python fuzz.py --seconds 600 --seed 1     random calls; a failing one prints its number, and --only NUMBER repeats it
python fuzz.py --atheris [libFuzzer's]    the same calls, chosen by Atheris (pip install atheris); see fuzz_guided.sh

Values are compared bit for bit with a model in NumPy that adds or rotates by rows of one position at a time, and some of
them with sines and cosines of 60 digits. Arrays lie in larger ones, whose other elements must not change.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import itertools
import sys
import time
import types
from typing import Any, cast

import fuzz_cases
import fuzz_rotary
import numpy as np
from fuzz_cases import (
    DTYPES,
    LARGEST,
    Array,
    Case,
    Choices,
    RandomChoices,
    check_only_written,
    check_value,
    is_allowed,
    mpmath,
    wide_type,
)

from fastpe import PositionalEncoding, _core, conventions


def an_encoding(case: Case) -> PositionalEncoding:
    """A PositionalEncoding; ValueError where the convention has none of that width or base."""
    max_len = case.pick([0, 0, 1, 40, 200])
    keywords: dict[str, Any] = {}
    d_model = max(case.size(), 1)
    if case.chance(10):
        keywords["base"] = case.pick([2.0, 0.5, 500000.0, 1e8, 1.0, 1e300, -1.0, float("nan")])
    if case.chance(10):
        keywords["freq_scale"] = case.pick([-1.0, 1000.0, 2 * np.pi, 1e-20, 0.0, 1e30])
    if not keywords and case.chance(10):
        count = conventions["vaswani"].frequency_count(d_model)
        return PositionalEncoding(
            d_model, max_len=max_len, freqs=[case.pick([0.0, 1.0, -0.3, 1e-9, 1e6]) for _ in range(count)]
        )
    return PositionalEncoding(d_model, max_len=max_len, convention=case.pick(list(conventions)), **keywords)


def some_channels(case: Case, encoding: PositionalEncoding) -> tuple[int, int]:
    """First and end of the columns wanted: mostly all."""
    if case.chance(80):
        return 0, encoding.d_model
    first = case.integer(0, encoding.d_model)
    return first, case.integer(first, encoding.d_model)


def check_exact(case: Case, encoding: PositionalEncoding, position: float, row: Array) -> None:
    """Compare some values of one row with 60 digits."""
    convention = encoding.convention
    n = convention.frequency_count(encoding.d_model)
    scale = mpmath.mpf(convention.output_scale(encoding.d_model))
    for column in {case.integer(0, encoding.d_model - 1) for _ in range(3)}:
        if convention.layout == "interleaved":
            k, second = divmod(column, 2)
        else:
            second, k = divmod(column, n) if n else (2, 0)
        found = float(row[column])
        if second > 1:
            assert found == 0.0
            continue
        with mpmath.workdps(60):
            if encoding._freqs:
                frequency = mpmath.mpf(encoding._freqs[k])
            else:
                exponent = mpmath.mpf(-k) / mpmath.mpf(convention.exponent_denominator(encoding.d_model))
                frequency = mpmath.mpf(convention.freq_scale) * mpmath.mpf(convention.base) ** exponent
            phase = frequency * mpmath.mpf(float(position))
            exact = scale * (mpmath.cos(phase) if bool(second) != convention.cosine_first else mpmath.sin(phase))
            check_value(found, exact, row.dtype, max(float(scale), 1.0), f"position {position!r}, column {column}")


def rows_at(encoding: PositionalEncoding, positions: Array, dtype: np.dtype[Any]) -> Array:
    """PE of positions, each in a call of its own, without cached rows, on the baseline."""
    active = _core.instruction_set()
    _core.use_instruction_set("baseline")
    plain = PositionalEncoding(encoding.d_model, convention=encoding.convention, freqs=encoding._freqs or None)
    rows = np.zeros((positions.size, encoding.d_model), dtype)
    for row, position in zip(rows, positions.ravel(), strict=True):
        plain.encode(np.asarray([position]), out=row[None])
    _core.use_instruction_set(active)
    return rows.reshape((*positions.shape, encoding.d_model))


def fuzz_rows(case: Case, encoding: PositionalEncoding) -> str:
    """encode() of an array of positions."""
    shape = tuple(case.integer(0, 6) for _ in range(case.integer(0, 3))) if case.chance(50) else (case.size(),)
    positions = case.laid_out(case.positions(int(np.prod(shape))).reshape(shape))
    dtype = case.pick(DTYPES)
    first, end = channels = some_channels(case, encoding)
    out, whole = case.place((*shape, end - first), dtype)
    before = whole.copy()
    threads = case.integer(1, 4)
    if not is_allowed(positions):
        try:
            encoding.encode(positions, out=out, channels=channels, num_threads=threads)
        except ValueError:
            assert whole.tobytes() == before.tobytes()
            return "positions refused"
        raise AssertionError(f"not refused: {positions!r}")
    assert encoding.encode(positions, out=out, channels=channels, num_threads=threads) is out
    expected = rows_at(encoding, positions, dtype)
    assert out.tobytes() == expected[..., first:end].tobytes()
    check_only_written(out, whole)
    if positions.size:
        at = case.integer(0, positions.size - 1)
        check_exact(case, encoding, positions.ravel()[at], expected.reshape(-1, encoding.d_model)[at])
    return "encode positions"


def fuzz_count(case: Case, encoding: PositionalEncoding) -> str:
    """encode() of a number of positions."""
    count, offset = case.size(), case.integer(-400, 10**6)
    dtype = case.pick(DTYPES)
    found = encoding.encode(count, offset=offset, dtype=dtype, num_threads=case.integer(1, 4))
    first = encoding.convention.first_position + offset
    assert found.tobytes() == rows_at(encoding, np.arange(first, first + count), dtype).tobytes()
    return "encode count"


def fuzz_threads(case: Case, encoding: PositionalEncoding) -> str:
    """encode() and add() of so many rows that several threads make them, beside those that one thread makes."""
    dtype, others = case.pick(DTYPES), case.pick([1, 1, 2, 5])
    length = case.rows_for_threads(max(encoding.d_model, 1) * dtype.itemsize) // others + 1
    few = case.positions(case.integer(1, 300))
    if not is_allowed(few):
        return "positions refused"
    positions = np.resize(few, length)
    keywords: dict[str, Any] = case.pick([{"offset": case.integer(-400, 10**6)}, {"positions": positions}])
    x = np.resize(np.linspace(-2.0, 2.0, 997).astype(dtype), (others, length, encoding.d_model))
    one, several = 1, case.integer(2, 4)
    sums = [encoding.add(x, num_threads=threads, **keywords) for threads in (one, several)]
    assert sums[0].tobytes() == sums[1].tobytes(), f"threads: add {keywords} {x.shape} {dtype}"
    rows = [encoding.encode(positions, dtype=dtype, num_threads=threads) for threads in (one, several)]
    assert rows[0].tobytes() == rows[1].tobytes(), f"threads: encode {length} rows {encoding.d_model} {dtype}"
    return "threads: add, encode"


def model(x: Array, pe: Array, valid: Array, scale: float, alpha: float) -> Array:
    """X * scale + alpha * PE, as NumPy computes it; x is [rows, others, L, C], pe is [rows, L, C], valid [rows, L]."""
    wide = wide_type(x.dtype)
    with np.errstate(all="ignore"):
        sums = x.astype(wide) * wide.type(scale) + wide.type(alpha) * pe[:, None]
        return np.where(valid[:, None, :, None], sums.astype(x.dtype), x)


def fuzz_add(case: Case, encoding: PositionalEncoding) -> str:
    """add_(), add() or embed() with positions, offsets, masks, lengths or packed sequences."""
    dtype = case.pick(DTYPES)
    seq_len = case.size()
    operation = case.pick(["add_", "add_", "add", "embed"])
    batch = tuple(case.integer(0 if case.chance(3) else 1, 5) for _ in range(case.pick([0, 0, 1, 1, 1, 2, 3])))
    rows = batch[0] if batch else 1
    others = int(np.prod(batch[1:]))
    keywords: dict[str, Any] = {"num_threads": case.integer(1, 4)}
    first = encoding.convention.first_position
    positions = np.tile(np.arange(first, first + seq_len), (rows, 1))
    valid = np.ones((rows, seq_len), bool)
    kind = case.pick(["plain", "offset", "offsets", "positions", "mask", "lengths", "packed"])
    if kind == "packed" and not batch:
        cuts = sorted(case.integer(0, seq_len) for _ in range(case.integer(0, 4)))
        starts = [0, *cuts, seq_len]
        keywords["cu_seqlens"] = case.laid_out(np.array(starts, case.pick([np.int32, np.int64])))
        for begin, end in itertools.pairwise(starts):
            positions[0, begin:end] = first + np.arange(end - begin)
    elif kind in ("offset", "mask", "lengths"):
        offset = case.pick([0, 1, -7, 10**6, LARGEST - 1000, LARGEST])
        keywords["offset"] = offset
        if kind == "mask":
            valid = np.array([[case.chance(70) for _ in range(seq_len)] for _ in range(rows)], bool).reshape(
                rows, seq_len
            )
            keywords["mask"] = case.laid_out(valid if batch else valid[0])
            positions = first + np.cumsum(valid, axis=1) - valid
        elif kind == "lengths":
            lengths = [case.integer(0, seq_len) for _ in range(rows)]
            keywords["lengths"] = lengths
            valid = np.arange(seq_len) < np.array(lengths, np.int64)[:, None]
        positions = positions + offset
    elif kind == "offsets":
        offsets = [case.integer(-50, 10**7) for _ in range(rows)]
        keywords["offset"] = case.laid_out(np.array(offsets, np.int64))
        positions = positions + np.array(offsets, np.int64)[:, None]
    elif kind == "positions":
        if batch and case.chance(50):
            positions = case.positions(rows * seq_len).reshape(rows, seq_len)
            keywords["positions"] = case.laid_out(positions)
        else:
            shared = case.positions(seq_len)
            positions = np.tile(shared, (rows, 1))
            as_batch = batch and case.chance(20)
            keywords["positions"] = np.broadcast_to(shared, positions.shape) if as_batch else case.laid_out(shared)
    scale = case.pick([1.0, 1.0, 0.5, 27.712812921102035, -1.7])
    alpha = case.pick([1.0, 1.0, 0.3, -2.0, 0.0])
    if case.chance(50):
        keywords |= {"scale": scale, "alpha": alpha}
    else:
        scale = alpha = 1.0

    learned = None
    first_column, end_column = 0, encoding.d_model
    if case.chance(15):
        learned = np.full((case.integer(1, 300), end_column + case.integer(0, 3)), 1.5, dtype)[:, :end_column]
        learned[...] = (np.arange(learned.size) * 41 % 1013 - 500).astype(dtype).reshape(learned.shape) / dtype.type(32)
        keywords["position_table" if operation == "embed" else "table"] = learned
    elif operation != "embed":
        first_column, end_column = keywords["channels"] = some_channels(case, encoding)
    columns = end_column - first_column
    grid = (rows, others, seq_len, columns)
    values = ((np.arange(np.prod(grid)) * 37 % 1009 - 500) / 16).astype(dtype).reshape(grid)
    shape = (*batch, seq_len, columns)
    axis = 0
    if operation == "embed":
        table = values.reshape(-1, columns) if values.size else np.zeros((1, columns), dtype)
        ids = np.array([case.integer(0, len(table) - 1) for _ in range(int(np.prod(shape[:-1])))], np.int64)
        values = table[ids].reshape(grid)
        x, inputs = case.laid_out(ids.reshape(shape[:-1])), table
    else:
        x, inputs = case.place(shape, dtype)
        x[...] = values.reshape(shape)
        axis = case.integer(0, len(batch))
        x = np.moveaxis(x, -2, axis)
        keywords["seq_axis"] = axis if case.chance(50) else axis - x.ndim
    out, whole = (x, inputs) if operation == "add_" else case.place((*x.shape[:-1], columns), dtype)
    if operation == "embed":
        out, whole = case.place(shape, dtype)
    before, inputs_before = whole.copy(), inputs.copy()

    def call() -> Any:
        if operation == "add_":
            return encoding.add_(x, **keywords)
        if operation == "add":
            return encoding.add(x, out=out, **keywords)
        return encoding.embed(x, inputs, out=out, **keywords)

    # Positions of rows that are left alone are not looked at. Without a batch, anything may happen to wrong ones.
    is_empty = rows * others == 0
    wanted = positions[valid]
    in_table = learned is None or bool(((wanted >= 0) & (wanted < len(learned)) & (wanted == np.floor(wanted))).all())
    if is_empty or not is_allowed(wanted) or not in_table:
        try:
            call()
            assert is_empty, f"not refused: {wanted!r}"
        except (ValueError, IndexError):
            assert whole.tobytes() == before.tobytes()
        return "positions refused"
    known = np.where(valid, positions, 0)
    if learned is not None:
        pe = learned.astype(wide_type(dtype))[known.astype(np.int64)]
    else:
        pe = rows_at(encoding, known, wide_type(dtype))[..., first_column:end_column]
    expected = model(values, pe, valid, scale, alpha).reshape(shape)
    assert call() is out
    found = out if operation == "embed" else np.moveaxis(out, axis, -2)
    assert found.tobytes() == expected.tobytes(), f"{operation} {kind} {keywords} {shape} {dtype}"
    if operation != "add_":
        assert inputs.tobytes() == inputs_before.tobytes(), "an input was written"
    check_only_written(out, whole)
    return f"{operation} {kind}"


def run_case(choices: Choices) -> str:
    """Make one call on one of the instruction sets; return what it was."""
    case = Case(choices)
    _core.use_instruction_set(case.pick(_core.available_instruction_sets()))
    if case.chance(50):
        return fuzz_rotary.run_case(case)
    try:
        encoding = an_encoding(case)
    except ValueError:
        return "encoding refused"
    if case.chance(2):
        return fuzz_threads(case, encoding)
    return cast(str, case.pick([fuzz_rows, fuzz_count, fuzz_add, fuzz_add, fuzz_add])(case, encoding))


def run_with_atheris(arguments: list[str]) -> None:
    """Let Atheris choose."""
    atheris = importlib.import_module("atheris")

    class AtherisChoices:
        def __init__(self, data: bytes) -> None:
            self._provider = atheris.FuzzedDataProvider(data)
            # Where the input ends: the provider itself would go on with the lowest numbers.
            self._further = RandomChoices("further")

        def integer(self, low: int, high: int) -> int:
            if self._provider.remaining_bytes() == 0:
                return self._further.integer(low, high)
            return int(self._provider.ConsumeIntInRange(low, high))

    def one_input(data: bytes) -> None:
        run_case(AtherisChoices(data))

    modules = [sys.modules[__name__], fuzz_cases, fuzz_rotary]
    for function in [*vars(Case).values(), *(value for module in modules for value in vars(module).values())]:
        if isinstance(function, types.FunctionType) and function.__module__ in {module.__name__ for module in modules}:
            atheris.instrument_func(function)
    atheris.Setup([sys.argv[0], *arguments], one_input)
    atheris.Fuzz()


def main() -> None:
    """Run cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long")
    parser.add_argument("--cases", type=int, default=10**9, help="at most this many")
    parser.add_argument("--seed", type=int, default=1, help="which cases")
    parser.add_argument("--only", type=int, help="repeat one case")
    parser.add_argument("--atheris", action="store_true", help="cases chosen by Atheris")
    options, others = parser.parse_known_args()
    if options.atheris:
        run_with_atheris(others)
        return
    counts: collections.Counter[str] = collections.Counter()
    end = time.monotonic() + options.seconds
    number = options.only or 0
    while time.monotonic() < end and number < options.cases:
        try:
            counts[run_case(RandomChoices(f"{options.seed}/{number}"))] += 1
        except BaseException:
            print(f"case {number} of seed {options.seed} failed")
            raise
        if options.only is not None:
            break
        number += 1
    for name, count in sorted(counts.items()):
        print(f"{count:8d} {name}")
    print(f"{counts.total():8d} cases, none failed")


if __name__ == "__main__":
    main()
