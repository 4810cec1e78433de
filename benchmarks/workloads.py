# SPDX-License-Identifier: BSD-3-Clause
"""The cases: fixed shapes from model front ends, servers and streams, each with its contenders and its bars."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import fastpe
from benchmarks import limits, oracle, peers
from benchmarks.harness import Bar, Case, Check, Contender

Array = npt.NDArray[Any]

values_checked_whole = 1 << 22
rows_sampled = 1024  # of larger answers, spread evenly, the first and the last among them

bfloat16 = np.dtype(ml_dtypes.bfloat16)


@dataclasses.dataclass(frozen=True)
class Selection:
    """Which contenders take part."""

    peers: bool = True  # anything but fastpe
    slow_peers: bool = True  # those that compile for each shape


@dataclasses.dataclass(frozen=True)
class CaseFactory:
    """A case that is not built yet: the large ones hold gigabytes."""

    group: str
    name: str
    build: Callable[[Selection], Case]


def threads() -> int:
    return int(fastpe.show_config()["threads"])


# ---- answers


def _filled(out: Array) -> Array:
    out.fill(1.5)
    return out


def _sampled_rows(rows: int, columns: int) -> Array:
    if rows * columns <= values_checked_whole:
        return np.arange(rows)
    return np.unique(np.linspace(0, rows - 1, rows_sampled).astype(np.int64))


@dataclasses.dataclass(frozen=True)
class Answers:
    """What rows of an answer must be: x * scale + PE(positions), x and PE as float64, one position per row."""

    positions: Array
    d_model: int
    x: Array | None = None  # [rows, d_model], as it was before the call
    scale: float = 1.0
    table: Callable[[Array, int], Array] = oracle.encoding

    def _compare(self, answer: Any, bound: Callable[[Array, Array, Array, np.dtype[Any]], Array]) -> float:
        rows = np.asarray(answer).reshape(-1, self.d_model)
        assert rows.shape[0] == self.positions.size, f"{rows.shape[0]} rows, expected {self.positions.size}"
        chosen = _sampled_rows(*rows.shape)
        exact_encoding = self.table(self.positions.ravel()[chosen], self.d_model)
        x = np.zeros_like(exact_encoding) if self.x is None else self.x[chosen].astype(np.float64)
        exact = x * self.scale + exact_encoding
        error = np.abs(rows[chosen].astype(np.float64) - exact)
        allowed = bound(exact, exact_encoding, x * self.scale, rows.dtype)
        worst = np.unravel_index(int(np.argmax(error - allowed)), error.shape)
        assert (error <= allowed).all(), (
            f"row {chosen[worst[0]]}, column {worst[1]} is off by {error[worst]:.3g}, allowed {allowed[worst]:.3g}"
        )
        return float(error.max(initial=0.0))

    def promised(self, answer: Any) -> float:
        """As exact as fastpe promises."""

        def bound(exact: Array, encoding: Array, scaled: Array, dtype: np.dtype[Any]) -> Array:
            slack = oracle.promised_error + oracle.oracle_error
            if self.x is None:
                return oracle.half_ulp(encoding, dtype) + slack
            # Operands and sum are rounded in the dtype they are computed in; the last rounding is the result's.
            computed = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
            operands = oracle.half_ulp(encoding, computed) + oracle.half_ulp(scaled, computed)
            result = oracle.half_ulp(np.abs(exact) + operands, dtype)
            if computed != dtype:
                operands = operands + oracle.half_ulp(np.abs(exact) + operands, computed)
            return operands + result + slack

        return self._compare(answer, bound)

    def within(self, tolerance: float) -> Check:
        """As exact as this contender can be: an absolute error, beside the rounding of the result."""

        def bound(exact: Array, encoding: Array, scaled: Array, dtype: np.dtype[Any]) -> Array:
            return 2 * oracle.half_ulp(np.abs(exact) + 1.0, dtype) + tolerance

        return lambda answer: self._compare(answer, bound)

    def float32_angles(self) -> Check:
        """Angles in float32 are off by what float32 cannot tell of the position, times the logarithm's own error."""
        return self.within(1e-6 + float(self.positions.max(initial=0)) * 5e-7)

    def float64_angles(self) -> Check:
        return self.within(float(self.positions.max(initial=0)) * 2e-15)


def _is_constant(value: float) -> Check:
    def check(answer: Any) -> float:
        assert (answer == value).all(), f"expected {value} everywhere"
        return 0.0

    return check


def _is_incremented(before: Array, increment: float = 1.0) -> Check:
    def check(answer: Any) -> float:
        assert (answer.reshape(before.shape) == before + before.dtype.type(increment)).all(), "expected x + 1"
        return 0.0

    return check


def _equals(expected: Array) -> Check:
    def check(answer: Any) -> float:
        assert np.array_equal(answer, expected), "expected the gathered rows"
        return 0.0

    return check


# ---- arrays


def _embeddings(shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> Array:
    """Values of about 1, in a pattern that no row repeats soon."""
    pattern = np.random.default_rng(7).standard_normal(65_521).astype(dtype)
    return np.resize(pattern, shape)


def _exact_table(rows: int, d_model: int, dtype: npt.DTypeLike = np.float32) -> Array:
    return fastpe.encode(rows, d_model, dtype=dtype)


@dataclasses.dataclass(frozen=True)
class InPlace:
    """x, and how to put it back."""

    before: Array
    x: Array

    @classmethod
    def of(cls, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> InPlace:
        before = _embeddings(shape, dtype)
        return cls(before, before.copy())

    def reset(self) -> None:
        np.copyto(self.x, self.before)

    def answers(self, positions: Array, scale: float = 1.0) -> Answers:
        d_model = self.x.shape[-1]
        return Answers(positions, d_model, self.before.reshape(-1, d_model), scale)


def _present(*contenders: Contender | None) -> list[Contender]:
    return [contender for contender in contenders if contender is not None]


def _optional(name: str, work: Callable[[], Any] | None, check: Check, **keywords: Any) -> Contender | None:
    return None if work is None else Contender(name, work, check, **keywords)


# ---- encode

_encode_shapes = (
    (64, 64),
    (128, 256),
    (512, 512),
    (512, 768),
    (2048, 768),
    (8192, 1024),
    (65_536, 1024),
)


def _encode(seq_len: int, d_model: int, selection: Selection) -> Case:
    out = np.empty((seq_len, d_model), np.float32)
    out.fill(0.0)
    encoder = fastpe.PositionalEncoding(d_model)
    answers = Answers(np.arange(seq_len), d_model)
    many = threads()
    contenders = [
        Contender("fastpe", lambda: encoder.encode(seq_len, out=out), answers.promised, many),
        Contender("fastpe, 1 thread", lambda: encoder.encode(seq_len, out=out, num_threads=1), answers.promised),
        Contender("fastpe, new array", lambda: encoder.encode(seq_len), answers.promised, many, output="fresh"),
    ]
    bars: list[Bar] = []
    if selection.peers:
        contenders += [
            Contender("NumPy out.fill(1.5)", lambda: _filled(out), _is_constant(1.5), encoding="none"),
            Contender(
                "NumPy np.full, new array",
                lambda: np.full((seq_len, d_model), 1.5, np.float32),
                _is_constant(1.5),
                encoding="none",
                output="fresh",
            ),
            Contender("NumPy float32 idiom", lambda: peers.numpy_float32_idiom(out), answers.float32_angles()),
            Contender("NumPy float64 idiom", lambda: peers.numpy_float64_idiom(out), answers.float64_angles()),
            *_store_limits(out),
            *_arithmetic_limits(seq_len, d_model),
            _one_row(d_model),
            *_present(
                _optional(
                    "torch eager",
                    peers.torch_encode(out, compiled=False),
                    answers.float32_angles(),
                    threads=peers.torch_threads(),
                ),
                _optional(
                    "numba parallel", peers.numba_encode(out), answers.float64_angles(), threads=peers.numba_threads()
                ),
            ),
        ]
        stores = "streaming" if out.nbytes > _last_level_cache_bytes() and limits.has_streaming_stores() else "plain"
        count = many if out.nbytes >= 2**20 else 1  # fewer bytes are not worth a second thread

        def parts(count: int) -> list[str]:
            return [_of_threads(name, count) for name in (_arithmetic_name, f"{stores} stores of a constant")]

        idioms = [("float32", 10.0), ("float64", 50.0)]
        bars += [
            Bar(
                f">= {times:g}x NumPy's {kind} idiom",
                "fastpe",
                f"NumPy {kind} idiom",
                at_least=times,
                parts=[_one_row_name, *parts(count)],
            )
            for kind, times in idioms
        ]
        if seq_len * d_model >= 512 * 512:
            fill = "NumPy out.fill(1.5)"
            bars.insert(0, Bar("at least as fast as out.fill(1.5)", "fastpe", fill, at_least=1, parts=parts(count)))
        if seq_len * d_model == 65_536 * 1024:
            rival = "streaming stores of a constant, 1 thread"
            if not limits.has_streaming_stores():
                rival = "NumPy out.fill(1.5)"
            requirement = f"one thread: >= 0.9 of {rival}"
            bars.append(Bar(requirement, "fastpe, 1 thread", rival, at_least=0.9, parts=parts(1)))
    if selection.slow_peers:
        contenders += _present(
            _optional(
                "torch.compile",
                peers.torch_encode(out, compiled=True),
                answers.float32_angles(),
                threads=peers.torch_threads(),
            ),
            _optional("JAX jit", peers.jax_encode(out), answers.float32_angles(), threads=many, output="fresh"),
        )
    return Case("encode", f"[{seq_len}, {d_model}] float32", out.nbytes, contenders, bars)


_one_row_name = "fastpe, one row: the call, and the sines that all rows come from"


def _one_row(d_model: int) -> Contender:
    out = np.empty((1, d_model), np.float32)
    encoder = fastpe.PositionalEncoding(d_model)
    return Contender(_one_row_name, lambda: encoder.encode(1, out=out), Answers(np.arange(1), d_model).promised)


def _of_threads(name: str, count: int) -> str:
    return f"{name}, {count} thread{'s' if count > 1 else ''}"


def _native(name: str, loop: limits.Loop, check: Check, count: int = 1, **keywords: Any) -> Contender:
    return Contender(_of_threads(name, count), loop, check, count, "none", times=loop.times, **keywords)


_arithmetic_name = "arithmetic alone"
_tile_name = "arithmetic into a tile"
_fused_name = "arithmetic and x in one loop"
_sums_name = "x + tile, batch by batch"


def _limit_threads() -> list[int]:
    return sorted({1, threads() if limits.has_threads() else 1})


def _is_rotated(answer: Array) -> float:
    assert np.isin(answer, [0.0, 0.125, 0.375]).all()
    assert answer.any()
    return 0.0


def _arithmetic_limits(rows: int, d_model: int) -> Iterator[Contender]:
    """What computing so many rows of an encoding takes, written nowhere but into the first-level cache."""
    if not limits.has_native_loops():
        return
    for count in _limit_threads():
        yield _native(_arithmetic_name, limits.rotate(rows, d_model, count), _is_rotated, count)


def _sum_limits(buffer: InPlace) -> Iterator[Contender]:
    """The plainest loops for x + PE: for one sequence, arithmetic and x in one; for a batch, a tile and its sums."""
    if not limits.has_native_loops():
        return
    x, before = buffer.x, buffer.before
    batch, seq_len, d_model = x.shape
    count = _limit_threads()[-1]

    # 0.25 everywhere, or 0.125 more or less.
    beside = 0.125 if batch == 1 else 0.0

    def is_sum(answer: Array) -> float:
        added = answer.reshape(before.shape) - before
        assert (np.abs(np.abs(added - 0.25) - beside) < 1e-6).all()
        return 0.0

    if batch == 1:
        yield _native(_fused_name, limits.rotate_into(x[0], count, adds=True), is_sum, count, output="in place")
    else:
        yield _native(_tile_name, limits.rotate_tile(seq_len, d_model, count), _is_rotated, count)
        yield _native(_sums_name, limits.add_tile(x, count), is_sum, count, output="in place")


def fills() -> list[str]:
    """Names of the contenders that write a constant into an array that was written before."""
    stores = [f"{kind} stores of a constant" for kind in ("plain", "streaming")]
    return ["NumPy out.fill(1.5)", *(_of_threads(name, count) for name in stores for count in (1, threads()))]


def _store_limits(out: Array) -> Iterator[Contender]:
    if not limits.has_native_loops():
        return
    check = _is_constant(1.5)
    for count in _limit_threads():
        yield _native("plain stores of a constant", limits.store(out, count), check, count)
        if limits.has_streaming_stores():
            yield _native("streaming stores of a constant", limits.stream(out, count), check, count)


def _encode_other(
    name: str,
    positions: Array | int,
    d_model: int,
    selection: Selection,
    *,
    dtype: npt.DTypeLike = np.float32,
    convention: str = "vaswani",
    table: Callable[[Array, int], Array] = oracle.encoding,
    bars: Sequence[Bar] = (),
) -> Case:
    encoder = fastpe.PositionalEncoding(d_model, convention=convention)
    rows = np.arange(positions) if isinstance(positions, int) else positions
    out = np.empty((*rows.shape, d_model), dtype)
    out.fill(0)
    answers = Answers(rows, d_model, table=table)
    contenders = [
        Contender("fastpe", lambda: encoder.encode(positions, out=out), answers.promised, threads()),
        Contender("fastpe, 1 thread", lambda: encoder.encode(positions, out=out, num_threads=1), answers.promised),
    ]
    if selection.peers:
        contenders.append(Contender("NumPy out.fill(1.5)", lambda: _filled(out), _is_constant(1.5), encoding="none"))
    return Case("encode", name, out.nbytes, contenders, bars)


# ---- add_

_add_shapes = (
    (1, 512, 768),
    (1, 8192, 1024),
    (8, 64, 768),
    (8, 512, 768),
    (32, 512, 768),
    (32, 512, 1024),
    (8, 8192, 1024),
)


def _last_level_cache_bytes() -> int:
    # What fastpe takes it to be: larger outputs bypass it.
    return int(fastpe.show_config()["streaming_bytes"])


def _add(shape: tuple[int, int, int], selection: Selection) -> Case:
    batch, seq_len, d_model = shape
    buffer = InPlace.of(shape)
    x = buffer.x
    answers = buffer.answers(np.tile(np.arange(seq_len), batch))
    computed = fastpe.PositionalEncoding(d_model)
    cached = fastpe.PositionalEncoding(d_model, max_len=seq_len)
    many = threads()
    contenders = [
        Contender("fastpe add_", lambda: computed.add_(x), answers.promised, many, "computed", "in place"),
        Contender("fastpe add_, max_len", lambda: cached.add_(x), answers.promised, many, "cached", "in place"),
        Contender(
            "fastpe add_, 1 thread",
            lambda: computed.add_(x, num_threads=1),
            answers.promised,
            1,
            "computed",
            "in place",
        ),
        Contender("fastpe add, new array", lambda: computed.add(x), answers.promised, many, "computed", "fresh"),
    ]
    bars: list[Bar] = []
    if selection.peers:
        table = _exact_table(seq_len, d_model)
        float32_table = answers.within(1e-7)
        contenders += [
            Contender("NumPy np.add(out=x)", lambda: np.add(x, table, out=x), float32_table, 1, "cached", "in place"),
            Contender("NumPy x + table", lambda: x + table, float32_table, 1, "cached", "fresh"),
            *_increment_limits(buffer),
            *_arithmetic_limits(seq_len, d_model),
            *_sum_limits(buffer),
            _one_row(d_model),
            *_present(
                _optional(
                    "torch add_",
                    peers.torch_add(x, table, compiled=False),
                    float32_table,
                    threads=peers.torch_threads(),
                    encoding="cached",
                    output="in place",
                ),
                _optional(
                    "numba parallel",
                    peers.numba_add(x, table),
                    float32_table,
                    threads=peers.numba_threads(),
                    encoding="cached",
                    output="in place",
                ),
            ),
        ]
        if shape == (8, 512, 768):
            rebuilt = np.empty_like(table)
            contenders.append(
                Contender(
                    "NumPy, table rebuilt (float64)",
                    lambda: np.add(x, peers.numpy_float64_idiom(rebuilt), out=x),
                    answers.float64_angles(),
                    1,
                    "computed",
                    "in place",
                )
            )
        increment = _increment_name(many)
        # Loops that fetch nothing ahead are no limit where x comes from memory.
        loops = [_arithmetic_name, _increment_base]
        if x.nbytes <= _last_level_cache_bytes() // 2:
            loops = [_fused_name] if batch == 1 else [_tile_name, _sums_name]
        parts = [_one_row_name, *(_of_threads(name, _limit_threads()[-1]) for name in loops)]

        def bar(requirement: str, rival: str, at_least: float) -> Bar:
            return Bar(requirement, "fastpe add_", rival, at_least=at_least, parts=parts)

        bars += [
            bar("faster than np.add(x, table, out=x)", "NumPy np.add(out=x)", 1),
            bar("faster than torch add_", "torch add_", 1),
        ]
        if batch >= 8 and x.nbytes >= 2 * _last_level_cache_bytes():
            bars.append(bar("out of cache: >= 0.9 of x + 1, same threads", increment, 0.9))
        if shape == (1, 8192, 1024):
            bars.append(bar(">= 1.2x a cached-table add", "NumPy np.add(out=x)", 1.2))
    if selection.slow_peers:
        table = _exact_table(seq_len, d_model)
        contenders += _present(
            _optional(
                "torch.compile add_",
                peers.torch_add(x, table, compiled=True),
                answers.within(1e-7),
                threads=peers.torch_threads(),
                encoding="cached",
                output="in place",
            ),
            _optional(
                "JAX jit x + table, x from NumPy",
                peers.jax_add(x, table),
                answers.within(1e-7),
                threads=many,
                encoding="cached",
                output="fresh",
            ),
        )
    return Case("add_", f"{list(shape)} float32", 2 * x.nbytes, contenders, bars, buffer.reset)


_increment_base = "x + 1 in place"


def _increment_name(count: int) -> str:
    if count > 1 and not limits.has_threads():
        return _increment_name(1)
    return _of_threads(_increment_base, count)


def _increment_limits(buffer: InPlace) -> Iterator[Contender]:
    check = _is_incremented(buffer.before)
    x = buffer.x
    if limits.has_native_loops():
        for count in _limit_threads():
            yield _native(_increment_base, limits.add_one(x, count), check, count, output="in place")
    else:
        yield Contender(_increment_name(1), lambda: np.add(x, 1, out=x), check, 1, "none", "in place")


def _add_half(shape: tuple[int, int, int], selection: Selection) -> Case:
    """The 16-bit types beside float32, on arrays of their own."""
    batch, seq_len, d_model = shape
    positions = np.tile(np.arange(seq_len), batch)
    encoder = fastpe.PositionalEncoding(d_model)
    many = threads()
    buffers: list[InPlace] = []
    contenders: list[Contender] = []
    bars: list[Bar] = []

    def add_contenders(dtype: np.dtype[Any], peer: str) -> None:
        buffer = InPlace.of(shape, dtype)
        x = buffer.x
        answers = buffer.answers(positions)
        buffers.append(buffer)
        contenders.append(
            Contender(f"fastpe add_ {dtype}", lambda: encoder.add_(x), answers.promised, many, "computed", "in place")
        )
        if selection.peers:
            table = _exact_table(seq_len, d_model, dtype)
            tolerance = answers.within(float(oracle.half_ulp(np.float64(1.0), dtype)))
            work = functools.partial(np.add, x, table, out=x)
            contenders.append(Contender(f"{peer} np.add(out=x) {dtype}", work, tolerance, 1, "cached", "in place"))

    add_contenders(np.dtype(np.float32), "NumPy")
    count = _limit_threads()[-1]
    memory, sums = "float32 x + 1 in place, as many bytes", "bfloat16 sums alone"
    if selection.peers and limits.has_native_loops():
        # Ones stay finite however often they are incremented.
        same_bytes = InPlace.of((batch, seq_len, d_model // 2))
        buffers.append(same_bytes)
        increment = limits.add_one(same_bytes.x, count)
        contenders += [
            _native(memory, increment, _is_incremented(same_bytes.before), count, output="in place"),
            _native(sums, limits.add_bfloat16(math.prod(shape), count), _is_constant(0), count, output="in place"),
        ]
    for dtype, peer in ((np.dtype(np.float16), "NumPy"), (bfloat16, "ml_dtypes")):
        add_contenders(dtype, peer)
        rival = f"{peer} np.add(out=x) {dtype}"
        parts = [_of_threads(name, count) for name in ((memory, sums) if dtype == bfloat16 else (memory,))]
        bars.append(Bar(f"{dtype}: >= 20x {peer}", f"fastpe add_ {dtype}", rival, at_least=20, parts=parts))
        if buffers[-1].x.nbytes >= 2 * _last_level_cache_bytes():
            requirement = f"{dtype} out of cache: <= 0.6 of the float32 time"
            float32 = "fastpe add_ float32"
            bars.append(Bar(requirement, f"fastpe add_ {dtype}", float32, at_most=0.6, parts=parts))

    def reset() -> None:
        for buffer in buffers:
            buffer.reset()

    note = "GB/s are those of the 16-bit arrays"
    return Case("add_ 16-bit", str(list(shape)), 2 * buffers[-1].x.nbytes, contenders, bars, reset, note)


def _add_scaled(shape: tuple[int, int, int], selection: Selection) -> Case:
    batch, seq_len, d_model = shape
    buffer = InPlace.of(shape)
    x = buffer.x
    encoder = fastpe.PositionalEncoding(d_model)
    scale = 0.5  # repeated calls stay finite
    positions = np.tile(np.arange(seq_len), batch)
    plain, scaled = buffer.answers(positions), buffer.answers(positions, scale)
    contenders = [
        Contender(
            "fastpe add_(scale=)",
            lambda: encoder.add_(x, scale=scale),
            scaled.promised,
            threads(),
            "computed",
            "in place",
        ),
        Contender("fastpe add_", lambda: encoder.add_(x), plain.promised, threads(), "computed", "in place"),
    ]
    if selection.peers:
        table = _exact_table(seq_len, d_model)
        factor = np.float32(scale)
        torch = peers.module("torch")
        contenders += [
            Contender(
                "NumPy multiply, add, both out=x",
                lambda: np.add(np.multiply(x, factor, out=x), table, out=x),
                scaled.within(1e-7),
                1,
                "cached",
                "in place",
            ),
            Contender("NumPy x * scale + table", lambda: x * factor + table, scaled.within(1e-7), 1, "cached", "fresh"),
        ]
        if torch is not None:
            tensor, rows = torch.from_numpy(x), torch.from_numpy(table)
            contenders.append(
                Contender(
                    "torch mul_, add_",
                    lambda: tensor.mul_(scale).add_(rows).numpy(),
                    scaled.within(1e-7),
                    peers.torch_threads(),
                    "cached",
                    "in place",
                )
            )
    bars = [Bar("fused scale within 5 % of add_", "fastpe add_(scale=)", "fastpe add_", at_most=1.05)]
    return Case("x * scale + PE", f"{list(shape)} float32", 2 * x.nbytes, contenders, bars, buffer.reset)


def _packed(lengths: list[int], d_model: int, selection: Selection) -> Case:
    """A packed batch: rows of all sequences, one after another."""
    starts = np.cumsum([0, *lengths])
    positions = np.concatenate([np.arange(length) for length in lengths])
    buffer = InPlace.of((positions.size, d_model))
    x = buffer.x
    answers = buffer.answers(positions)
    cached = fastpe.PositionalEncoding(d_model, max_len=max(lengths))
    many = threads()
    contenders = [
        Contender(
            "fastpe add_(cu_seqlens=)",
            lambda: cached.add_(x, cu_seqlens=starts),
            answers.promised,
            many,
            "cached",
            "in place",
        ),
        Contender(
            "fastpe add_(positions=)",
            lambda: cached.add_(x, positions=positions),
            answers.promised,
            many,
            "cached",
            "in place",
        ),
    ]
    if selection.peers:
        table = _exact_table(max(lengths), d_model)
        contenders.append(
            Contender(
                "NumPy x += table[positions]",
                lambda: np.add(x, table[positions], out=x),
                answers.within(1e-7),
                1,
                "cached",
                "in place",
            )
        )
    return Case("packed", f"[{positions.size}, {d_model}] float32", 2 * x.nbytes, contenders, (), buffer.reset)


def _padded(batch: int, seq_len: int, d_model: int, selection: Selection) -> Case:
    """A padded batch, half full: rows from lengths[b] on stay as they are."""
    lengths = np.linspace(1, seq_len, batch).astype(np.int64)
    valid = np.arange(seq_len) < lengths[:, None]
    buffer = InPlace.of((batch, seq_len, d_model))
    x = buffer.x

    def encoding_of_valid_rows(positions: Array, width: int) -> Array:
        return np.where(positions[:, None] >= 0, oracle.encoding(np.maximum(positions, 0), width), 0.0)

    positions = np.where(valid, np.arange(seq_len), -1)
    answers = dataclasses.replace(buffer.answers(positions), table=encoding_of_valid_rows)
    encoder = fastpe.PositionalEncoding(d_model)
    name = "fastpe add_(lengths=)"
    contenders = [
        Contender(name, lambda: encoder.add_(x, lengths=lengths), answers.promised, threads(), output="in place")
    ]
    if selection.peers:
        table = _exact_table(seq_len, d_model)
        rounded = answers.within(1e-7)
        contenders += [
            Contender(
                "NumPy np.add(out=x, where=mask)",
                lambda: np.add(x, table, out=x, where=valid[:, :, None]),
                rounded,
                1,
                "cached",
                "in place",
            ),
            Contender(
                "NumPy x += table * mask",
                lambda: np.add(x, table * valid[:, :, None], out=x),
                rounded,
                1,
                "cached",
                "in place",
            ),
        ]
    moved = 2 * int(lengths.sum()) * d_model * 4
    return Case("padded", f"[{batch}, {seq_len}, {d_model}] float32", moved, contenders, (), buffer.reset)


# ---- embed


def _embed(batch: int, seq_len: int, d_model: int, vocabulary: int, selection: Selection) -> Case:
    table = _embeddings((vocabulary, d_model))
    ids = np.random.default_rng(3).integers(0, vocabulary, (batch, seq_len))
    out = np.zeros((batch, seq_len, d_model), np.float32)
    scale = float(np.float32(np.sqrt(d_model)))  # what every contender multiplies with
    encoder = fastpe.PositionalEncoding(d_model)
    gathered = table[ids]
    answers = Answers(np.tile(np.arange(seq_len), batch), d_model, gathered.reshape(-1, d_model), scale)
    contenders = [
        Contender(
            "fastpe embed(scale=, out=)",
            lambda: encoder.embed(ids, table, scale=scale, out=out),
            answers.promised,
            threads(),
        ),
        Contender(
            "fastpe embed(scale=, out=), 1 thread",
            lambda: encoder.embed(ids, table, scale=scale, out=out, num_threads=1),
            answers.promised,
        ),
    ]
    bars: list[Bar] = []
    if selection.peers:
        rows = _exact_table(seq_len, d_model)
        factor = np.float32(scale)
        loose = answers.within(2e-5)  # x * sqrt(d) is of the order of 100
        contenders += [
            Contender(
                "NumPy np.take(out=), no scale, no encoding",
                lambda: np.take(table, ids, axis=0, out=out),
                _equals(gathered),
                encoding="none",
            ),
            Contender(
                "NumPy np.take(out=, mode='clip'), no scale, no encoding",
                lambda: np.take(table, ids, axis=0, out=out, mode="clip"),
                _equals(gathered),
                encoding="none",
            ),
            Contender(
                "NumPy table[ids] * scale + rows", lambda: table[ids] * factor + rows, loose, 1, "cached", "fresh"
            ),
        ]
        torch = peers.module("torch")
        if torch is not None:
            weights, tensor_ids, tensor_rows = (torch.from_numpy(array) for array in (table, ids, rows))
            contenders.append(
                Contender(
                    "torch embedding, mul_, add_",
                    lambda: torch.nn.functional.embedding(tensor_ids, weights).mul_(scale).add_(tensor_rows).numpy(),
                    loose,
                    peers.torch_threads(),
                    "cached",
                    "fresh",
                )
            )
        bars += [
            Bar(
                "within 10 % of np.take(table, ids, axis=0, out=out)",
                "fastpe embed(scale=, out=)",
                "NumPy np.take(out=), no scale, no encoding",
                at_most=1.1,
            ),
            Bar(
                ">= 3x the three-pass NumPy idiom",
                "fastpe embed(scale=, out=)",
                "NumPy table[ids] * scale + rows",
                at_least=3,
            ),
        ]
    return Case("embed", f"[{batch}, {seq_len}, {d_model}] of {vocabulary}", 2 * out.nbytes, contenders, bars)


# ---- streams and small calls


def _streamed_chunk(selection: Selection) -> Case:
    """600 ms of speech features: 10 frames of 560, at the start of the stream and 10^7 frames into it."""
    buffer = InPlace.of((1, 10, 560))
    x = buffer.x
    encoder = fastpe.PositionalEncoding(560, convention="tensor2tensor")
    table = functools.partial(oracle.encoding, concatenated=True, shift=1.0)

    def answers(position: int) -> Answers:
        return dataclasses.replace(buffer.answers(position + np.arange(10)), table=table)

    def contender(position: int) -> Contender:
        names = {"add_": encoder.add_, "x": x, "position": position}
        name = f"fastpe add_, position {position}"
        return Contender(name, "add_(x, offset=position)", answers(position).promised, 1, "computed", "in place", names)

    late, late_enough = 10_000_000, 30_000
    contenders = [contender(0), contender(late)]
    if selection.peers:
        contenders.append(
            Contender(
                f"NumPy, rebuilt from 0, position {late_enough}",
                lambda: peers.numpy_rebuilt_chunk(late_enough, x),
                answers(late_enough).float32_angles(),
                1,
                "computed",
                "fresh",
            )
        )
    bars = [
        Bar(
            "at position 10^7 the same time as at 0 (within 5 %)",
            f"fastpe add_, position {late}",
            "fastpe add_, position 0",
            at_most=1.05,
        )
    ]
    return Case("stream", "[1, 10, 560] float32", 2 * x.nbytes, contenders, bars, buffer.reset)


def _decode(batch: int, d_model: int, selection: Selection) -> Case:
    """One token per sequence: an int offset for one sequence, one offset per row for more."""
    max_len = 4096
    buffer = InPlace.of((batch, 1, d_model))
    encoder = fastpe.PositionalEncoding(d_model, max_len=max_len)
    computed = fastpe.PositionalEncoding(d_model)
    past = np.random.default_rng(5).integers(0, max_len, batch)
    offset = int(past[0]) if batch == 1 else past
    answers = buffer.answers(past)
    names: dict[str, Any] = {"np": np, "fastpe": fastpe, "x": buffer.x, "offset": offset}

    def contender(name: str, statement: str, check: Check, encoding: Any = "cached", **more: Any) -> Contender:
        count = peers.torch_threads() if name.startswith("torch") else 1
        return Contender(name, statement, check, count, encoding, "in place", {**names, **more})

    contenders = [
        contender("encoder.add_, max_len", "add_(x, offset=offset)", answers.promised, add_=encoder.add_),
        contender("encoder.add_", "add_(x, offset=offset)", answers.promised, "computed", add_=computed.add_),
        contender("fastpe.add_", "fastpe.add_(x, offset=offset)", answers.promised, "computed"),
    ]
    bars: list[Bar] = []
    if selection.peers:
        table = _exact_table(max_len, d_model)
        row = "table[offset]" if batch == 1 else "table[offset][:, None]"
        rounded = answers.within(1e-7)
        gathered, call_alone = "x += its row, a native loop", "encoder.add_, one value: the call alone"
        one: dict[str, Any] = {"x": np.zeros((1, 1, 1), np.float32), "offset": 0 if batch == 1 else past[:1] * 0}
        one["add_"] = fastpe.PositionalEncoding(1, max_len=1).add_
        contenders.append(
            Contender(call_alone, "add_(x, offset=offset)", _is_constant(0), 1, "cached", "in place", one)
        )
        if limits.has_native_loops():
            loop = limits.add_table_rows(buffer.x, table, past)
            contenders.append(_native(gathered, loop, rounded, output="in place"))
        contenders += [
            contender(f"NumPy x += {row}", f"x += {row}", rounded, table=table),
            contender(f"NumPy np.add(x, {row}, out=x)", f"np.add(x, {row}, out=x)", rounded, table=table),
        ]
        torch = peers.module("torch")
        if torch is not None:
            resident = {"table": torch.from_numpy(table), "tensor": torch.from_numpy(buffer.x)}
            if batch > 1:
                resident["offset"] = torch.from_numpy(past)
            contenders += [
                contender(f"torch tensor.add_({row})", f"tensor.add_({row})", rounded, **resident),
                contender(
                    f"torch from_numpy(x).add_({row})",
                    f"from_numpy(x).add_({row})",
                    rounded,
                    **resident,
                    from_numpy=torch.from_numpy,
                ),
            ]
        parts = [_of_threads(gathered, 1), call_alone]
        if (batch, d_model) == (1, 768):
            requirement = "<= 0.7x NumPy's x += table[p]"
            bars.append(Bar(requirement, "encoder.add_, max_len", f"NumPy x += {row}", at_most=0.7, parts=parts))
        if (batch, d_model) == (64, 1024):
            requirement = ">= 2x NumPy's x += table[pos][:, None]"
            bars.append(Bar(requirement, "encoder.add_, max_len", f"NumPy x += {row}", at_least=2, parts=parts))
    return Case("decode", f"[{batch}, 1, {d_model}] float32", 2 * buffer.x.nbytes, contenders, bars, buffer.reset)


def _timesteps(count: int, d_model: int, selection: Selection) -> Case:
    """Of a diffusion model: a few floats, cosines before sines, a new array for each step."""
    steps = np.linspace(981, 1, count).astype(np.int64).astype(np.float32)
    encoder = fastpe.PositionalEncoding(d_model, convention="timestep")

    def cosines_first(positions: Array, width: int) -> Array:
        return np.roll(oracle.encoding(positions, width, concatenated=True), width // 2, axis=1)

    answers = Answers(steps, d_model, table=cosines_first)
    contenders = [Contender("fastpe encode", lambda: encoder.encode(steps), answers.promised, output="fresh")]
    if selection.peers:
        work = functools.partial(peers.numpy_timesteps, steps, d_model)
        contenders.append(Contender("NumPy float32 idiom", work, answers.float32_angles(), output="fresh"))
    return Case("timesteps", f"[{count}, {d_model}] float32", count * d_model * 4, contenders)


# ---- all of them


def factories() -> list[CaseFactory]:
    def named(group: str, name: str, function: Callable[..., Case], *arguments: Any, **keywords: Any) -> CaseFactory:
        return CaseFactory(group, name, lambda selection: function(*arguments, selection=selection, **keywords))

    half_fill = Bar("float64: >= 0.5 of out.fill(1.5)", "fastpe", "NumPy out.fill(1.5)", at_least=0.5)
    concatenated = functools.partial(oracle.encoding, concatenated=True, shift=1.0)
    random = np.random.default_rng(11)
    shuffled = np.stack([random.permutation(512) for _ in range(8)])
    anywhere = random.permutation(1 << 20)[:4096].reshape(8, 512)
    rate = Bar("one thread: >= 1.5 G values/s", "fastpe, 1 thread", at_least=1.5, values=anywhere.size * 1024)

    def other(name: str, *arguments: Any, **keywords: Any) -> CaseFactory:
        return named("encode", name, _encode_other, name, *arguments, **keywords)

    return [
        *(named("encode", f"{seq_len}x{d_model}", _encode, seq_len, d_model) for seq_len, d_model in _encode_shapes),
        other("[16384, 1024] float64", 16_384, 1024, dtype=np.float64, bars=[half_fill]),
        other("[512, 768] float32, sines before cosines", 512, 768, convention="tensor2tensor", table=concatenated),
        other("[512, 765] float32", 512, 765),
        other("[8, 512, 1024] float32, each row shuffled", shuffled, 1024, bars=[rate]),
        other("[8, 512, 1024] float32, positions anywhere below 2^20", anywhere, 1024),
        *(named("add_", "x".join(map(str, shape)), _add, shape) for shape in _add_shapes),
        named("add_ 16-bit", "8x512x768", _add_half, (8, 512, 768)),
        named("add_ 16-bit", "8x8192x1024", _add_half, (8, 8192, 1024)),
        named("x * scale + PE", "8x8192x1024", _add_scaled, (8, 8192, 1024)),
        named("packed", "16 sequences", _packed, [1024, 17, 300, 2048, 5, 800, 1500, 64] * 2, 1024),
        named("padded", "8x512x768", _padded, 8, 512, 768),
        named("embed", "32x512x768", _embed, 32, 512, 768, 30_522),
        named("stream", "10x560", _streamed_chunk),
        named("timesteps", "8x320", _timesteps, 8, 320),
        *(
            named("decode", f"{batch}x1x{d_model}", _decode, batch, d_model)
            for batch, d_model in ((1, 64), (1, 768), (8, 768), (64, 1024))
        ),
    ]
