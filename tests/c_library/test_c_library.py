# SPDX-License-Identifier: BSD-3-Clause
"""The C library makes what Python makes, and refuses what it refuses; tests/composed compares the results of calls."""

from __future__ import annotations

import functools
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from ctypes import byref, c_int64
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numpy.lib.stride_tricks import as_strided

import fastpe

from ..composed.calls import Draw
from ..oracles.reference import DTYPES, assert_same_bits
from .shared_library import CONSTANTS, CError, Encoding, Library, Rotary, Rows, add_table, rotate_by_tables, view

if "FASTPE_TEST_C_LIBRARY" not in os.environ:
    pytest.skip("the C library is not installed for tests; run: .ci/run c-library", allow_module_level=True)

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLOAT32 = np.dtype(np.float32)
LENGTH, HEAD = 12, 16


def values(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int = 0) -> npt.NDArray[Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def test_versions_agree(library: Library) -> None:
    version = library.c.fastpe_version()
    assert version == CONSTANTS["FASTPE_VERSION"]
    assert f"{version // 10000}.{version // 100 % 100}.{version % 100}" == fastpe.__version__


def test_only_the_header_is_exported(shared_library: pathlib.Path) -> None:
    table = subprocess.run(
        ["nm", "-D", "--defined-only", str(shared_library)], check=True, capture_output=True, text=True
    ).stdout
    header = (ROOT / "csrc" / "include" / "fastpe" / "fastpe.h").read_text()
    declared = re.findall(r"^FASTPE_API \S.*?\b(fastpe_\w+)\(", header, re.MULTILINE)
    symbols = [line.split()[-1].partition("@")[0] for line in table.splitlines() if " A " not in line]  # A: the version
    assert sorted(symbols) == sorted(declared)


# ---- What handles are made of


@pytest.mark.parametrize(
    "frequencies", [{"base": 500.0}, {"freq_scale": 0.25}, {"frequencies": [0.5, -0.25, 3.0, 0.0]}], ids=str
)
def test_frequencies_can_be_given(library: Library, frequencies: dict[str, Any]) -> None:
    found = Encoding(library, 8, "timestep", **frequencies).encode(np.empty((9, 8)))
    assert_same_bits(found, fastpe.encode(9, 8, convention="timestep", dtype=np.float64, **frequencies))


SHORT, LONG = [1.0, 1.5, 2.0, 2.5], [1.0, 4.0, 8.0, 16.0]
YARN: dict[str, Any] = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
LLAMA3 = {**YARN, "type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LONGROPE = {**YARN, "type": "longrope"}
DYNAMIC = {"type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 2048}
# What the C library takes, and the keys of Python's scaling that have other names there.
SCALINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "linear", "factor": 2.5}, {}),
    ({"type": "ntk", "factor": 2.5}, {}),
    ({**DYNAMIC, "seq_len": 5000}, {}),
    ({**DYNAMIC, "seq_len": 100}, {}),
    (YARN, {}),
    ({**YARN, "beta_fast": 16.0, "beta_slow": 2.0, "truncate": CONSTANTS["FASTPE_TRUNCATE_NO"]}, {"truncate": False}),
    ({**YARN, "mscale": 0.5, "mscale_all_dim": 1.0}, {}),
    ({**LONGROPE, "divisors": LONG}, {"short_factor": SHORT, "long_factor": LONG, "seq_len": 5000}),
    ({**LONGROPE, "divisors": SHORT}, {"short_factor": SHORT, "long_factor": LONG, "seq_len": 4096}),
    (LLAMA3, {}),
    ({"type": "proportional", "factor": 2.0, "rotated_count": 3}, {"partial_rotary_factor": 0.75}),
]


@pytest.mark.parametrize(("scaling", "others"), SCALINGS, ids=str)
def test_scalings_are_those_of_python(library: Library, scaling: dict[str, Any], others: dict[str, Any]) -> None:
    ours = ("seq_len", "truncate", "divisors", "rotated_count")
    python = {"rope_type" if name == "type" else name: value for name, value in scaling.items() if name not in ours}
    python |= {name: value for name, value in others.items() if name != "seq_len"}
    length = others.get("seq_len", scaling.get("seq_len"))
    rope = fastpe.RotaryEmbedding(8, interleaved=False, base=5e5, scaling=python, seq_len=length)
    rotary = Rotary(library, 8, base=5e5, scaling=scaling)
    (radians,) = rotary.tables("angles", np.empty((1, 4)), offset=1)
    assert_same_bits(radians[0], rope.frequencies)
    (at_zero,) = rotary.tables("cos_sin", np.empty((1, 8)))
    assert at_zero[0, 0] == rope.attention_factor
    cos, sin = rotary.tables("halves", *np.empty((2, 20, 4), np.float32), offset=4000)
    for ours_, theirs in zip((cos, sin), rope.tables(20, offset=4000), strict=True):
        assert_same_bits(ours_, theirs)


@pytest.mark.parametrize(
    ("argument", "scaling"),
    [
        ("type", {"type": 9, "factor": 2.0}),
        ("truncate", {**YARN, "truncate": -1}),
        ("truncate", {"type": "linear", "factor": 2.0, "truncate": CONSTANTS["FASTPE_TRUNCATE_NO"]}),
        ("original_max_position_embeddings", {**LONGROPE, "divisors": SHORT, "original_max_position_embeddings": 1}),
        ("type", {"type": 0, "factor": 2.0}),
        ("factor", {"type": "linear"}),
        ("factor", {"type": "linear", "factor": 0.5}),
        ("factor", {**YARN, "factor": float("nan")}),
        ("original_max_position_embeddings", {**YARN, "type": "linear"}),
        ("original_max_position_embeddings", {**YARN, "original_max_position_embeddings": -1}),
        ("low_freq_factor", {**LLAMA3, "low_freq_factor": 5.0}),
        ("low_freq_factor", {**LLAMA3, "low_freq_factor": 0.0}),
        ("beta_fast", {**YARN, "beta_fast": 0.5}),
        ("divisor_count", {**LONGROPE, "divisors": [1.0]}),
        ("divisors", LONGROPE),
        ("divisors", {"type": "linear", "factor": 4.0, "divisors": [1.0, 1.0, 1.0, 1.0]}),
        ("divisors", {**LONGROPE, "divisors": [1.0, 1.0, 0.0, 1.0]}),
        ("rotated_count", {"type": "proportional", "rotated_count": 5}),
        ("rotated_count", {"type": "proportional", "factor": 2.0}),
    ],
)
def test_wrong_scalings_are_refused(library: Library, argument: str, scaling: dict[str, Any]) -> None:
    check_not_made(library, argument, Rotary, 8, scaling=scaling)


def check_not_made(library: Library, argument: str, kind: Any, width: int, **options: Any) -> None:
    with pytest.raises(CError) as refused:
        kind(library, width, **options)
    assert (refused.value.status, refused.value.argument) == (CONSTANTS["FASTPE_INVALID_VALUE"], argument)


def test_wrong_options_are_refused(library: Library) -> None:
    for argument, width, options in (
        *(("d_model", 0, {}), ("max_len", 8, {"max_len": -1}), ("base", 8, {"base": -2.0})),
        ("frequency_count", 8, {"frequencies": [1.0]}),
        ("frequencies", 4, {"base": 2.0, "frequencies": [1.0, 0.5]}),
        ("frequencies", 4, {"freq_scale": 2.0, "frequencies": [1.0, 0.5]}),
    ):
        check_not_made(library, argument, Encoding, width, **options)
    for argument, width, options in (
        *(("rotary_dim", 7, {}), ("base", 8, {"base": 0.0}), ("head_dim", 8, {"head_dim": 6})),
        ("frequencies", 4, {"base": 2.0, "frequencies": [1.0, 0.5]}),
        ("frequencies", 4, {"base": 0.0, "frequencies": [1.0, 0.5], "scaling": {"type": "linear", "factor": 2.0}}),
        ("attention_factor", 4, {"attention_factor": -1.0}),
        ("frequency_count", 4, {"base": 0.0, "frequency_count": 2}),
    ):
        check_not_made(library, argument, Rotary, width, **options)


# ---- Refusals

TABLES: dict[str, Any] = dict(
    zip(("cos", "sin"), fastpe.RotaryEmbedding(HEAD, interleaved=False).tables(40), strict=True), interleaved=False
)


def with_axes(encoding: Encoding) -> Rotary:
    return Rotary(encoding.shared_library, HEAD, frequency_axes=[0, 1] * (HEAD // 4))


class InPython:
    """The same calls by the Python package."""

    def __init__(self, sinusoids: fastpe.PositionalEncoding, rope: fastpe.RotaryEmbedding) -> None:
        self.sinusoids, self.rope = sinusoids, rope

    @staticmethod
    def called(functions: Any, x: Any, out: Any, threads: int, options: dict[str, Any]) -> None:
        if "offsets" in options:
            options["offset"] = options.pop("offsets")
        in_place, apart = functions
        options["num_threads"] = threads or None
        in_place(*x, **options) if out is None else apart(*x, out=out, **options)

    def add(self, x: Any, out: Any = None, *, threads: int = 1, **options: Any) -> None:
        self.called((self.sinusoids.add_, self.sinusoids.add), (x,), out, threads, options)

    def add_table(self, table: Any, x: Any, out: Any = None, *, threads: int = 1, **options: Any) -> None:
        self.called((fastpe.add_, fastpe.add), (x,), out, threads, {**options, "table": table})

    def rotate(self, *x: Any, out: Any = None, inverse: int = 0, threads: int = 1, **options: Any) -> None:
        options = {"seq_axis": -2, **options, "inverse": bool(inverse)}
        self.called((self.rope.rotate_, self.rope.rotate), x, out[0] if out else None, threads, options)

    def shift(self, *x: Any, out: Any = None, threads: int = 1, **options: Any) -> None:
        options = {"seq_axis": -2, **options}
        self.called((self.rope.shift_, self.rope.shift), x, out[0] if out else None, threads, options)

    def rotate_by_tables(self, *x: Any, out: Any = None, threads: int = 1, **options: Any) -> None:
        options = {"seq_axis": -2, **options, "inverse": bool(options.get("inverse", False))}
        functions = fastpe.rotate_by_tables_, fastpe.rotate_by_tables
        self.called(functions, x, out[0] if out else None, threads, options)


class InC:
    """Calls by the C library, as InPython has them."""

    def __init__(self, sinusoids: Encoding, rotary: Rotary) -> None:
        self.add, self.rotate, self.shift = sinusoids.add, rotary.rotate, rotary.shift
        self.add_table = functools.partial(add_table, sinusoids.shared_library)
        self.rotate_by_tables = functools.partial(rotate_by_tables, sinusoids.shared_library)


STATUSES = {CONSTANTS["FASTPE_INVALID_VALUE"]: "VALUE", CONSTANTS["FASTPE_INVALID_TYPE"]: "TYPE"}
IN_C = {"x": "x[0]", "the second array": "x[1]", "the third array": "x[2]", "out": "out[0]"}


def refusal(call: Callable[[], Any], kind: str) -> tuple[str, str] | None:
    """What is refused: the kind of error, and the argument by one name in both languages."""
    try:
        call()
    except CError as error:
        return STATUSES[error.status], error.argument.replace("offsets", "offset")
    except (TypeError, ValueError, IndexError) as error:
        argument = error._fields["argument"]  # type: ignore[union-attr]
        kind_of_error = "TYPE" if isinstance(error, TypeError) else "VALUE"
        return kind_of_error, argument if kind.startswith("add") else IN_C.get(argument, argument)
    return None


# By both front ends. Random calls have the others, but only strides of whole elements.
WRONG: list[tuple[str, str, str, Callable[[Any, npt.NDArray[Any]], Any]]] = [
    ("VALUE", "x", "add", lambda f, x: f(as_strided(x, (3, HEAD), (4 * HEAD + 2, 4)))),
    ("VALUE", "x", "add", lambda f, x: f(as_strided(x, (3, 8), (4 * HEAD, 6)))),
    ("VALUE", "table", "add_table", lambda f, x: f(np.zeros((LENGTH, 4), np.float32), x)),
    ("TYPE", "table", "add_table", lambda f, x: f(np.zeros((LENGTH, HEAD)), x)),
    ("VALUE", "table", "add_table", lambda f, x: f(np.zeros((2 * LENGTH, 2 * HEAD), np.float32)[::2, ::2], x)),
    ("VALUE", "offset", "add_table", lambda f, x: f(np.zeros((LENGTH, HEAD), np.float32), x, offset=1)),
    ("VALUE", "positions", "add_table", lambda f, x: f(x[0].copy(), x, positions=np.arange(LENGTH) - 1)),
    ("VALUE", "x", "add_table", lambda f, x: f(x[1], x)),
    ("VALUE", "cos", "rotate_by_tables", lambda f, x: f(x, cos=x[0, 0], sin=x[0, 0], interleaved=True)),
    ("VALUE", "cos", "rotate_by_tables", lambda f, x: f(x, cos=x[0].copy(), sin=x[1].copy(), interleaved=True)),
    ("VALUE", "sin", "rotate_by_tables", lambda f, x: f(x, **TABLES | {"sin": TABLES["sin"][1:]})),
    ("TYPE", "sin", "rotate_by_tables", lambda f, x: f(x, **TABLES | {"sin": TABLES["sin"].astype(np.float64)})),
    ("VALUE", "offset", "rotate_by_tables", lambda f, x: f(x, **TABLES, offset=30)),
    ("TYPE", "cos", "rotate_by_tables", lambda f, x: f(x, **TABLES | {n: TABLES[n].astype(np.float64) for n in ("cos", "sin")})),
    ("VALUE", "cos", "rotate_by_tables", lambda f, x: f(x, **{**TABLES, "cos": np.tile(TABLES["cos"], 2), "sin": np.tile(TABLES["sin"], 2)}, head_dim=32)),
]  # fmt: skip


@pytest.mark.parametrize(("status", "argument", "kind", "call"), WRONG)
def test_both_front_ends_refuse_the_same_argument_and_write_nothing(
    library: Library, status: str, argument: str, kind: str, call: Callable[[Any, npt.NDArray[Any]], Any]
) -> None:
    in_python = InPython(fastpe.PositionalEncoding(HEAD), fastpe.RotaryEmbedding(HEAD, interleaved=False))
    for front_end in (InC(Encoding(library, HEAD), Rotary(library, HEAD)), in_python):
        x = values((2, LENGTH, HEAD), FLOAT32)
        before = x.copy()
        assert refusal(lambda: call(getattr(front_end, kind), x), kind) == (status, argument)  # noqa: B023
        np.testing.assert_array_equal(x, before)


REFUSED: list[tuple[str, str, Callable[[Encoding, Rotary, npt.NDArray[Any]], Any]]] = [
    ("VALUE", "num_threads", lambda e, r, x: e.add(x, threads=-1)),
    ("VALUE", "offset", lambda e, r, x: e.add(x, offset=1, offsets=[1, 2])),
    ("VALUE", "out", lambda e, r, x: e.encode(x[None])),
    ("VALUE", "out", lambda e, r, x: e.encode(x[0, 0])),
    ("VALUE", "out", lambda e, r, x: e.encode(x, positions=x[:, :, 0])),
    ("VALUE", "positions", lambda e, r, x: e.encode(x[0], positions=np.zeros((2, LENGTH)))),
    ("VALUE", "x[0]", lambda e, r, x: Rotary(e.shared_library, 4, head_dim=8).rotate(x)),
    ("VALUE", "x[0]", lambda e, r, x: Rotary(e.shared_library, 4).rotate(x)),
    ("VALUE", "inverse", lambda e, r, x: r.rotate(x, inverse=2)),
    ("VALUE", "count", lambda e, r, x: r.rotate()),
    ("VALUE", "head_dim", lambda e, r, x: rotate_by_tables(e.shared_library, x, **TABLES, head_dim=-1)),
    ("VALUE", "lengths", lambda e, r, x: r.tables("cos_sin", x[0], lengths=[LENGTH])),
    ("VALUE", "cu_seqlens", lambda e, r, x: r.shift(x, by=1, cu_seqlens=[0, LENGTH])),
    ("VALUE", "second", lambda e, r, x: r.tables("halves", x[0, :, :8])),
    ("VALUE", "second", lambda e, r, x: r.tables("cos_sin", x[0], x[1])),
    ("VALUE", "second", lambda e, r, x: r.tables("halves", x[0, :, :8], x[1, 1:, :8])),
    ("VALUE", "first", lambda e, r, x: r.tables("pairs", x[0].reshape(LENGTH, 2, 8))),
    ("VALUE", "first", lambda e, r, x: r.tables("halves", x[0, :, :8], x[0, :, 7:15])),
    ("VALUE", "valid", lambda e, r, x: r.tables("cos_sin", x[0], valid=np.ones(LENGTH, bool))),
    ("TYPE", "second", lambda e, r, x: r.tables("halves", x[0, :, :8], np.empty((LENGTH, 8)))),
    ("TYPE", "first", lambda e, r, x: r.tables("angles", np.empty((LENGTH, 8), np.float16))),
    ("TYPE", "valid", lambda e, r, x: e.add(x, valid=np.ones(LENGTH, np.uint8))),
    ("VALUE", "offset", lambda e, r, x: r.shift(x, by=1, offset=1)),
    ("VALUE", "positions", lambda e, r, x: r.shift(x, by=1, positions=np.arange(LENGTH))),
    ("VALUE", "out[1]", lambda e, r, x: r.rotate(x, x + 1, out=[x, x])),
    ("VALUE", "out[1]", lambda e, r, x: r.rotate(x[:, :8].copy(), x[:, 4:].copy(), out=[x[:, :8], x[:, 4:]])),
    ("VALUE", "out[0]", lambda e, r, x: r.rotate(x[0].copy(), x[1], out=[x[1], x[0] + 1])),
    ("VALUE", "positions", lambda e, r, x: with_axes(e).rotate(x)),
    ("VALUE", "offset", lambda e, r, x: with_axes(e).rotate(x, offset=1)),
    ("VALUE", "positions", lambda e, r, x: with_axes(e).rotate(x, positions=np.arange(LENGTH))),
    ("VALUE", "frequency_axes", lambda e, r, x: Rotary(e.shared_library, 4, frequency_axes=[0, -1])),
]  # fmt: skip


@pytest.mark.parametrize(("status", "argument", "call"), REFUSED)
def test_refused_calls_write_nothing(
    library: Library, status: str, argument: str, call: Callable[[Encoding, Rotary, npt.NDArray[Any]], Any]
) -> None:
    x = values((2, LENGTH, HEAD), FLOAT32)
    before = x.copy()
    with pytest.raises(CError) as refused:
        call(Encoding(library, HEAD), Rotary(library, HEAD), x)
    assert refused.value.status == CONSTANTS[f"FASTPE_INVALID_{status}"]
    assert refused.value.argument == argument
    assert argument in str(refused.value)
    np.testing.assert_array_equal(x, before)


def test_tables_that_have_each_column_twice_are_read_through_their_strides(library: Library) -> None:
    rope = fastpe.RotaryEmbedding(HEAD, interleaved=True)
    cos, sin = rope.tables(LENGTH, form="repeat")  # as CTranslate2 has them
    x = values((2, LENGTH, HEAD), FLOAT32)
    expected = rope.rotate(x, seq_axis=-2)
    rotate_by_tables(library, x, cos=cos[:, ::2], sin=sin[:, ::2], interleaved=True)
    assert_same_bits(x, expected)


@pytest.mark.parametrize("shape", [(-1, HEAD), (2**60, HEAD), None], ids=str)
def test_arrays_that_describe_no_memory_are_refused(library: Library, shape: Any) -> None:
    encoding, described = Encoding(library, HEAD), view(values((LENGTH, HEAD), FLOAT32))
    described.strides_bytes = None
    if shape is None:
        described.data = None
    else:
        described.shape = (c_int64 * 2)(*shape)
    with pytest.raises(CError) as refused:
        library.call("encode", encoding.handle, byref(described), None, 1)
    assert (refused.value.status, refused.value.argument) == (CONSTANTS["FASTPE_INVALID_VALUE"], "out")


LAST = {"reserved": (c_int64 * 4)(0, 0, 0, 1)}
INSIDE = {"reserved_int32": -1}


@pytest.mark.parametrize("reserved", [LAST, INSIDE], ids=["last", "inside"])
def test_reserved_fields_are_refused_by_the_names_of_their_structs(library: Library, reserved: dict[str, Any]) -> None:
    x = values((LENGTH, HEAD), FLOAT32)
    calls: dict[str, Callable[[], Any]] = {
        "fastpe_encoding_options": lambda: Encoding(library, 4, **reserved),
        "fastpe_rotary_options": lambda: Rotary(library, 4, **reserved),
    }
    if reserved is LAST:
        rows = Rows(**reserved)
        calls["fastpe_rows"] = lambda: library.call(
            "encode", Encoding(library, HEAD).handle, byref(view(x)), byref(rows), 1
        )
        calls["fastpe_scaling"] = lambda: Rotary(library, 4, scaling={"type": "linear", "factor": 2.0, **reserved})
    for struct, call in calls.items():
        with pytest.raises(CError, match=rf"\b{struct}\b") as refused:
            call()
        assert refused.value.argument == next(iter(reserved))


# ---- Random calls, most of them nearly right


def random_rows(case: Draw, batch: int, length: int) -> dict[str, Any]:
    def integers(low: int, high: int, *shape: int) -> Any:
        kinds = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
        return case.argument(np.abs(integers_of(case, low, high, *nearly(case, shape))).astype(case.pick(kinds)))

    rows: dict[str, Any] = {}
    if case.chance(30):
        rows["offset"] = case.pick([1, -5, 10**6, 2**53, -(2**63), 2**63 - 1])
    if case.chance(20):
        rows["offsets"] = integers(0, 99, batch)
    if case.chance(25):
        shape = case.pick([(length,), (1, length), (batch, length)])
        fractions = case.argument(integers_of(case, -100, 300, *nearly(case, shape)) / 4)
        rows["positions"] = fractions if case.chance(50) else integers(0, 40, *shape)
    if case.chance(16):
        rows["valid"] = integers(0, 1, *case.pick([(length,), (batch, length)])).astype(bool)
    if case.chance(16):
        rows["lengths"] = integers(0, length + case.chance(10), batch)
    if case.chance(12):
        rows["cu_seqlens"] = np.sort(integers(0, length, case.integer(1, 4)))
        rows["cu_seqlens"][-1:] = length
    return rows


def integers_of(case: Draw, low: int, high: int, *shape: int) -> Any:
    return np.array([case.integer(low, high) for _ in range(math.prod(shape))], np.int64).reshape(shape)


def nearly(case: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    at = case.integer(0, len(shape) - 1)
    changed = (*shape[:at], case.integer(0, 3), *shape[at + 1 :]) if case.chance(3) else shape
    return (1, *changed) if case.chance(3) else changed


@pytest.mark.parametrize("seed", range(8))
def test_random_calls_do_the_same_by_both_front_ends_and_change_elements_of_their_outputs_only(
    library: Library, seed: int
) -> None:
    case, counts = Draw(random.Random(f"c/{seed}").randint), {True: 0, False: 0}
    for _ in range(400):
        batch, length, pairs, dtype = case.integer(1, 4), case.integer(0, 40), case.integer(1, 20), case.pick(DTYPES)
        rows, kind = random_rows(case, batch, length), case.pick(["encode", "add", "add_", "tables", "rotate", "shift"])
        leading = case.pick([(length,), (batch, length), (batch, 3, length)])
        columns = pairs if kind == "tables" else 2 * pairs
        outs = [
            case.place(nearly(case, (*leading, columns)), case.pick(DTYPES) if case.chance(2) else dtype)
            for _ in range({"tables": 2, "rotate": case.integer(1, 3), "shift": case.integer(1, 3)}.get(kind, 1))
        ]
        if len(outs) > 1 and case.chance(5):  # in one memory
            outs[1] = outs[0]
        views, x = [out.array for out in outs], case.argument(np.ones(outs[0].array.shape, dtype))
        for array in views:
            array[...] = 3.5
        options = {"threads": case.pick([0, 1, 2, 3, 1, -1]), **rows}
        if kind not in ("encode", "tables"):
            if "offsets" in options:  # Python has one argument for both
                options.pop("offset", None)
            options["seq_axis"] = case.pick([-2, -2, -2, -3, 0, 5])
        if kind == "rotate":
            options["inverse"] = case.pick([0, 1])
        if kind == "shift":
            options = {name: options[name] for name in ("threads", "seq_axis", "valid", "lengths") if name in options}
            options["by"] = rows.get("positions", np.int64(case.integer(-9, 9)))
        max_len, interleaved, name = case.pick([0, 1, 20, 300]), case.chance(50), case.pick([*fastpe.conventions])
        sinusoids = Encoding(library, 2 * pairs, name, max_len=max_len)
        rotary = Rotary(library, 2 * pairs, "interleaved" if interleaved else "halves", max_len=max_len)
        if kind in ("encode", "tables"):
            calls = [sinusoids.encode if kind == "encode" else functools.partial(rotary.tables, "halves")]
        else:
            in_python = InPython(
                fastpe.PositionalEncoding(2 * pairs, convention=name, max_len=max_len),
                fastpe.RotaryEmbedding(2 * pairs, interleaved=interleaved, max_len=max_len),
            )
            calls = [getattr(each, kind.rstrip("_")) for each in (InC(sinusoids, rotary), in_python)]
        memories = [x, *rows.values(), *(out.memory for out in outs)]
        before, done = [np.array(memory) for memory in memories], []
        for call in calls:
            for out, same in zip(outs, before[-len(outs) :], strict=True):
                out.memory[...] = same
            refused = refusal(functools.partial(call, *([x, *views] if kind == "add" else views), **options), kind)
            done.append((refused, [np.array(memory).tobytes() for memory in memories]))
            for array in views if refused is None else ():
                array[...] = 3.5
            for memory, same in zip(memories, before, strict=True):
                np.testing.assert_array_equal(memory, same)
        counts[done[0][0] is None] += 1
        assert done[0] == done[-1], (kind, options)
    assert min(counts.values()) > 40


def test_each_thread_has_its_own_message(library: Library) -> None:
    encoding = Encoding(library, HEAD, max_len=LENGTH)
    start = threading.Barrier(8)
    wrong: list[str] = []
    expected = fastpe.encode(LENGTH, HEAD)

    def work(columns: int) -> None:
        start.wait()
        for _ in range(200):
            if columns == HEAD:
                found = encoding.encode(np.empty((LENGTH, HEAD), np.float32))
                wrong.extend([] if (found == expected).all() else ["values"])
                continue
            try:
                encoding.encode(np.empty((LENGTH, columns), np.float32))
            except CError as error:
                wrong.extend([] if f"[{LENGTH}, {columns}]" in str(error) else [str(error)])

    threads = [threading.Thread(target=work, args=(HEAD + i // 2,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("variable", "value"), [("FASTPE_ISA", "sse9"), ("FASTPE_NUM_THREADS", "many"), ("FASTPE_STREAMING_BYTES", "-1")]
)
def test_a_wrong_environment_is_refused_by_create(shared_library: pathlib.Path, variable: str, value: str) -> None:
    program = (
        "import pathlib, sys; from tests.c_library.shared_library import *\n"
        "try: Encoding(Library(pathlib.Path(sys.argv[1])), 8)\n"
        "except CError as error: print(error.argument)"
    )
    command, environment = [sys.executable, "-c", program, str(shared_library)], {**os.environ, variable: value}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == variable
