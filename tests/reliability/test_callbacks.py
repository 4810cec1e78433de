# SPDX-License-Identifier: BSD-3-Clause
"""Callers' code that runs in the midst of a call: it may reshape every array, and its errors are its own."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.reference import Array
from ..oracles.refusals import naming

Change = Callable[[], None]


class Acting:
    """What a caller may give in place of a value, and that does something first."""

    def __init__(self, change: Change, value: Any = 1) -> None:
        self.change, self.value = change, value


class Number(Acting):
    """A number, and an index."""

    def __float__(self) -> float:
        self.change()
        return float(self.value)

    def __index__(self) -> int:
        self.change()
        return int(self.value)


class AsArray(Acting):
    """An array-like that does something when it is converted."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        self.change()
        return np.asarray(self.value)


class WithInterface(Acting):
    """An array that does something whenever its interface is read."""

    @property
    def __array_interface__(self) -> Any:
        self.change()
        return self.value.__array_interface__


class Tuple(Acting):
    """A sequence of numbers that does something when it is read."""

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, at: int) -> Any:
        self.change()
        return self.value[at]


class Subclass(np.ndarray):
    """Does something whenever a function of NumPy takes it."""

    change: Change

    def __array_function__(self, *arguments: Any) -> Any:
        self.change()
        return super().__array_function__(*arguments)

    @property
    def __class__(self) -> Any:
        self.change()
        return Subclass

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise TypeError


# What a caller's code may do to an array: another shape, other strides, another dtype.
CHANGES: list[Callable[[Any], tuple[str, Any]]] = [
    lambda array: ("shape", (array.size, 1)),
    lambda array: ("shape", (1, array.size)),
    lambda array: ("shape", (array.size,)),
    lambda array: ("shape", (1, 1, 1, array.size)),
    lambda array: ("dtype", np.int8),
    lambda array: ("dtype", np.complex64 if array.itemsize == 8 else np.bool_),
    lambda array: ("strides", (0,) * array.ndim),
]


# Each array is the start of one that goes on, so that what is read beyond it is known: NaN, or an id out of range.
class Arrays:
    def __init__(self) -> None:
        self.x = self._start(np.ones((4, 8, 16), np.float32), np.nan)
        self.out = self._start(np.zeros((4, 8, 16), np.float32), 7.0)
        self.table = self._start(np.ones((64, 16), np.float32), np.nan)
        self.cos = self._start(np.ones((64, 8), np.float32), np.nan)
        self.ids = self._start(np.arange(32, dtype=np.int64).reshape(4, 8), 10**12)
        self.positions = self._start(np.arange(32, dtype=np.float64).reshape(4, 8), np.nan)
        self.valid = self._start(np.ones((4, 8), np.bool_), False)
        self.lengths = self._start(np.full(4, 8, np.int64), 10**12)
        self.offset = self._start(np.zeros(4, np.int64), 10**12)
        self.cu_seqlens = self._start(np.array([0, 8], np.int64), 10**12)

    def _start(self, values: Any, beyond: Any) -> Any:
        memory = np.full(16 * values.size, beyond, values.dtype)
        memory[: values.size] = values.ravel()
        return memory[: values.size].reshape(values.shape)

    def memory(self, name: str) -> Any:
        return getattr(self, name).base


NAMES = list(vars(Arrays()))
encoding: Any = fastpe.PositionalEncoding(16, max_len=64)
rope: Any = fastpe.RotaryEmbedding(16, interleaved=True, max_len=64)
rotate_ = functools.partial(rope.rotate_, seq_axis=-2)
spatial: Any = fastpe.RotaryEmbedding(16, interleaved=False, frequency_axes=[0, 0, 0, 0, 1, 1, 1, 1], max_len=64)

# Each with one array to reshape, and one argument for the code that does it.
CALLS: dict[str, Callable[[Arrays, Change], Any]] = {
    "add_ scale": lambda a, c: encoding.add_(a.x, scale=Number(c)),
    "add_ offsets": lambda a, c: encoding.add_(a.x, lengths=a.lengths, offset=AsArray(c, [0, 1, 2, 3])),
    "add_ sequence": lambda a, c: encoding.add_(a.x, offset=Tuple(c, [0, 1, 2, 3])),
    "add_ positions": lambda a, c: encoding.add_(a.x, valid=a.valid, positions=AsArray(c, np.arange(8.0))),
    "add_ cu_seqlens": lambda a, c: encoding.add_(a.x[0], offset=a.offset[:1], cu_seqlens=AsArray(c, [0, 8])),
    "add_ seq_axis": lambda a, c: encoding.add_(a.x, offset=a.offset, seq_axis=Number(c)),
    "add_ table": lambda a, c: encoding.add_(a.x, offset=a.offset, table=WithInterface(c, a.table)),
    "add_ x": lambda a, c: encoding.add_(WithInterface(c, a.x), table=a.table),
    "add scale out": lambda a, c: encoding.add(a.x, scale=Number(c), out=a.out),
    "add out": lambda a, c: encoding.add(a.x, out=WithInterface(c, a.out)),
    "add subclass": lambda a, c: encoding.add(a.x, out=subclass(a.out, c)),
    "add x": lambda a, c: encoding.add(WithInterface(c, a.x), table=a.table, out=a.out),
    "encode positions": lambda a, c: encoding.encode(AsArray(c, np.ones((4, 8))), valid=a.valid, out=a.out),
    "encode count": lambda a, c: encoding.encode(Number(c, 8), offset=a.offset, lengths=a.lengths, out=a.out),
    "encode out": lambda a, c: encoding.encode(a.positions, lengths=a.lengths, out=WithInterface(c, a.out)),
    "encode subclass": lambda a, c: encoding.encode(a.positions, out=subclass(a.out, c)),
    "embed ids": lambda a, c: encoding.embed(AsArray(c, np.zeros((4, 8), int)), a.table, valid=a.valid, out=a.out),
    "embed table": lambda a, c: encoding.embed(a.ids, WithInterface(c, a.table), lengths=a.lengths),
    "embed position_table": lambda a, c: encoding.embed(a.ids, a.table, position_table=WithInterface(c, a.table)),
    "rotate_ x": lambda a, c: rotate_(WithInterface(c, a.x), a.out, positions=a.positions, valid=a.valid),
    "rotate_ other": lambda a, c: rotate_(a.x, WithInterface(c, a.out), offset=a.offset, lengths=a.lengths),
    "rotate_ offsets": lambda a, c: rotate_(a.x, a.out, lengths=a.lengths, offset=AsArray(c, [0, 1, 2, 3])),
    "rotate_ coordinates": lambda a, c: spatial.rotate_(a.x, a.out, positions=AsArray(c, np.ones((8, 2))), seq_axis=-2),
    "rotate out": lambda a, c: rope.rotate(a.x, positions=a.positions, out=WithInterface(c, a.out), seq_axis=-2),
    "rotate subclass": lambda a, c: rope.rotate(a.x, out=subclass(a.out, c), seq_axis=-2),
    "shift_ by": lambda a, c: rope.shift_(a.x, a.out, by=AsArray(c, [[3]] * 4), valid=a.valid, seq_axis=-2),
    "shift_ one": lambda a, c: rope.shift_(a.x, a.out, by=Number(c), lengths=a.lengths, seq_axis=-2),
    "rotate_ by tables": lambda a, c: by_tables(a, a.x, WithInterface(c, a.out), positions=a.ids, offset=None),
    "rotate_ by cos": lambda a, c: by_tables(a, a.x, cos=WithInterface(c, a.cos)),
    "tables positions": lambda a, c: rope.tables(AsArray(c, np.arange(32.0).reshape(4, 8)), out=halves(a)),
    "tables out": lambda a, c: rope.tables(a.positions, form="cos_sin", out=WithInterface(c, a.out)),
    "tables of two": lambda a, c: rope.tables(
        a.positions, form="tile", out=(WithInterface(c, a.x), WithInterface(c, a.out))
    ),
    "tables subclass": lambda a, c: rope.tables(a.positions, form="sin_cos", out=subclass(a.out, c)),
    "tables count": lambda a, c: rope.tables(Number(c, 8), offset=a.offset, form="cos_sin", out=a.out),
}


def by_tables(arrays: Arrays, *rotated: Any, **keywords: Any) -> Any:
    tables = {"cos": arrays.cos, "sin": arrays.cos, "interleaved": False, "offset": arrays.offset}
    return fastpe.rotate_by_tables_(*rotated, seq_axis=-2, **{**tables, **keywords})


def halves(arrays: Arrays) -> Any:
    return arrays.out[..., :8], arrays.out[..., 8:]


def subclass(array: Array, change: Change) -> Any:
    result = array.view(Subclass)
    result.change = change
    return result


@pytest.mark.filterwarnings("ignore:Setting the (shape|strides|dtype)", "ignore:.*dtype attribute")
@pytest.mark.parametrize(
    ("call", "name"),
    [
        pytest.param(call, name, marks=[] if (i + j) % 3 == 0 else pytest.mark.slow)
        for i, call in enumerate(CALLS)
        for j, name in enumerate(NAMES)
    ],
)
def test_no_call_reads_or_writes_outside_of_an_array_reshaped_meanwhile(call: str, name: str) -> None:
    for kind, changed in enumerate(CHANGES):
        arrays = Arrays()
        array = getattr(arrays, name)
        memory = {each: arrays.memory(each) for each in NAMES}
        sizes = {each: getattr(arrays, each).size for each in NAMES}
        before = {each: memory[each].copy() for each in NAMES}
        done: list[int] = []

        def change(done: list[int] = done, array: Array = array, changed: Any = changed) -> None:
            if not done:
                done.append(1)
                # NumPy itself has none of some changes for some arrays.
                with contextlib.suppress(ValueError, TypeError, AttributeError):
                    setattr(array, *changed(array))

        try:
            result = CALLS[call](arrays, change)
        except (TypeError, ValueError, IndexError):
            # The reshaped array does not fit: nothing was written.
            for each in NAMES:
                np.testing.assert_array_equal(memory[each], before[each], err_msg=f"{each}, change {kind}")
        else:
            assert np.isfinite(np.asarray(getattr(result, "array", result), np.float64)).all(), f"change {kind}"
        for each in NAMES:
            beyond = slice(sizes[each], None)
            np.testing.assert_array_equal(memory[each][beyond], before[each][beyond], err_msg=f"{each}, change {kind}")
        assert done or "subclass" in call, "the code to reshape it did not run"


@pytest.mark.filterwarnings("ignore:Setting the shape")
def test_rows_reshaped_into_many_more_are_not_read_beyond_their_end() -> None:
    memory = np.arange(2**22, dtype=np.float32)
    x: Any = memory[:4096].reshape(4, 1024)
    wide: Any = fastpe.PositionalEncoding(1024)

    def reshape() -> None:
        x.shape = (4096, 1)

    with pytest.raises(ValueError, match=naming("x")):
        wide.add(x, scale=Number(reshape), alpha=0.0)


@pytest.mark.filterwarnings("ignore:Setting the strides")
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("positions", lambda array, number: encoding.encode(array, num_threads=number)),
        ("ids", lambda array, number: encoding.embed(array, np.ones((32, 16)), num_threads=number)),
    ],
)
def test_numbers_that_are_given_other_strides_meanwhile_are_refused(name: str, call: Callable[..., Any]) -> None:
    array: Any = np.arange(32).reshape(4, 8)

    def change() -> None:
        array.strides = np.asfortranarray(array).strides

    with pytest.raises(ValueError, match=naming(name)):
        call(array, Number(change))


ERRORS = [kind("own") for kind in (KeyboardInterrupt, SystemExit, MemoryError, RuntimeError, ZeroDivisionError)]


def raising(error: BaseException) -> Change:
    def change() -> None:
        raise error

    return change


class RaisingAttributes:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        raise self.error

    def __index__(self) -> int:
        return 1


class RaisingRepr(RaisingAttributes):
    def __repr__(self) -> str:
        raise self.error


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_of_callers_code_are_passed_on(error: BaseException) -> None:
    number: Any = Number(raising(error))
    odd: Any = RaisingAttributes(error)
    x = np.ones((2, 3, 16), np.float32)
    calls: list[Callable[[], Any]] = [
        lambda: encoding.add_(x, scale=number),
        lambda: encoding.add_(x, offset=number),
        lambda: encoding.add_(x, seq_axis=number),
        lambda: encoding.encode(number),
        lambda: encoding.embed(AsArray(raising(error), [1]), x[0]),
        lambda: encoding.add_(x, valid=AsArray(raising(error), [True])),
        lambda: encoding.add_(RaisingAttributes(error)),
        lambda: encoding.add(x, out=RaisingAttributes(error)),
        lambda: encoding.add_(x, scale=RaisingRepr(error), num_threads=RaisingRepr(error)),
        lambda: fastpe.PositionalEncoding(16, base=number),
        lambda: fastpe.PositionalEncoding(number),
        lambda: fastpe.PositionalEncoding(2, frequencies=AsArray(raising(error), [1.0])),
        lambda: rope.rotate_(x, RaisingAttributes(error), seq_axis=-2),
        lambda: rope.rotate_(x, positions=AsArray(raising(error), [1]), seq_axis=-2),
        lambda: rope.shift_(x, by=number, seq_axis=-2),
        lambda: rope.tables([1], out=(RaisingAttributes(error), x)),
        lambda: rope.tables([1], form=RaisingRepr(error)),
        lambda: fastpe.rotate_by_tables_(x, cos=odd, sin=x[0], interleaved=True, seq_axis=-2),
        lambda: fastpe.RotaryEmbedding(2, interleaved=True, attention_factor=number),
        lambda: fastpe.RotaryEmbedding(2, interleaved=True, frequency_axes=AsArray(raising(error), [0])),
    ]
    for at, call in enumerate(calls):
        with pytest.raises(type(error)) as caught:
            call()
        assert caught.value is error, at
    assert (x == 1).all()
