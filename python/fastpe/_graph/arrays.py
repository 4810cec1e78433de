# SPDX-License-Identifier: BSD-3-Clause
"""What the inputs of all graphs share: checks of arrays that are given, and how results are delivered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import dtype_of, shown
from fastpe._arrays import WritableArray
from fastpe._errors import refused

Array = npt.NDArray[Any]


def integer_array(name: str, value: Any, *shapes: tuple[int | None, ...], expected: str, kinds: str = "iu") -> Array:
    """An int64 array of one of these shapes, whose lengths are given or None; or of numbers of other kinds."""
    array: Array = _core.array(value, name)
    if array.shape == (0,) and all(len(shape) > 1 for shape in shapes):
        array = array.reshape(0, *(length or 0 for length in shapes[0][1:]))  # an empty list
    if array.dtype.kind not in kinds and array.size:
        expected, remedy = "numbers", ""
        if kinds == "iu":
            expected, remedy = "integers", "convert it to int64 first, if all numbers are whole"
        raise refused(TypeError, name, f"has dtype {array.dtype}", expected, remedy)
    if not any(_fits(shape, array.shape) for shape in shapes):
        missing = [shape[1:] for shape in shapes if len(shape) == array.ndim + 1 and _fits(shape[1:], array.shape)]
        remedy = f"pass [{name}]" if missing else ""
        raise refused(ValueError, name, f"has shape {list(array.shape)}", expected, remedy)
    return array.astype(np.float64 if array.dtype.kind == "f" and "f" in kinds else np.int64, copy=False)


def _fits(wanted: tuple[int | None, ...], shape: tuple[int, ...]) -> bool:
    return len(wanted) == len(shape) and all(a in (None, b) for a, b in zip(wanted, shape, strict=True))


def grids_of(name: str, value: Any, merge_sizes: Any, merge_name: str, *, columns: int = 3) -> Array:
    """Lengths in patches, [n, 3] or [n, 2], from 1, that blocks of merged patches divide: of one side, [n] or [1, 2]."""
    expected = f"rows of ({'time, ' * (columns == 3)}height, width), in patches"
    grids = integer_array(name, value, (None, columns), expected=expected)
    merge = np.broadcast_to(
        _core.array(merge_sizes, merge_name).reshape(-1, 2 if np.ndim(merge_sizes) == 2 else 1), (len(grids), 2)
    )
    for row in np.flatnonzero(np.any(grids < 1, axis=1))[:1]:
        raise refused(ValueError, f"{name}[{row}]", f"is {tuple(grids[row].tolist())}", "lengths of at least 1")
    for row in np.flatnonzero(np.any(grids[:, -2:] % merge != 0, axis=1))[:1]:
        sides = " and ".join(map(str, dict.fromkeys(merge[row].tolist())))
        expected = f"a height and a width that are multiples of {merge_name}, {sides}"
        raise refused(ValueError, f"{name}[{row}]", f"is {tuple(grids[row].tolist())}", expected)
    return grids


def require_int32(name: str, counts: Iterable[int]) -> None:
    """Refuse what has more places than boundaries can count."""
    if (total := sum(counts)) > np.iinfo(np.int32).max:
        raise refused(ValueError, name, f"has {total} in all", "less than 2**31", "make several calls")


def boundaries(lengths: Any) -> Array:
    """Where things of these lengths begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def delivered(
    inputs: dict[str, Any], dtype: npt.DTypeLike | None, out: Mapping[str, WritableArray] | None
) -> dict[str, Any]:
    """The inputs in a dtype of integers, and in the arrays of a mapping: all is checked before any is written."""
    wanted = None if dtype is None else dtype_of(dtype, "iu")
    targets: dict[str, Array] = {}
    for name, given in (out or {}).items():
        if not isinstance(inputs.get(name), np.ndarray):
            arrays = [key for key, each in inputs.items() if isinstance(each, np.ndarray)]
            raise refused(ValueError, "out", f"has the name {shown(name)}", f"names of {', '.join(arrays)}")
        array = targets[name] = _core.array(given, f"out[{name!r}]", in_place=True)
        if not array.flags.writeable:
            raise refused(ValueError, f"out[{name!r}]", "is read-only", "a writable array")
        if array.shape != inputs[name].shape:
            found = f"has shape {list(array.shape)}"
            raise refused(ValueError, f"out[{name!r}]", found, f"{list(inputs[name].shape)}")
    new = {}
    for name, value in inputs.items():
        is_integers = isinstance(value, np.ndarray) and value.dtype.kind in "iu"
        if name in targets:
            new[name] = _exact(f"out[{name!r}]", value, targets[name].dtype)
        else:
            new[name] = _exact("dtype", value, wanted) if wanted is not None and is_integers else value
    for name, target in targets.items():
        target[...] = new[name]
    return {**new, **(out or {})}


def _exact(name: str, values: Array, dtype: np.dtype[Any]) -> Array:
    """The values in another dtype; floating-point numbers are rounded."""
    new: Array = values.astype(dtype)
    if values.dtype.kind in "iub" and (dtype.kind not in f"iuf{values.dtype.kind}" or (new != values).any()):
        raise refused(ValueError, name, f"is {dtype}, which does not have all values", "a wider dtype of integers")
    if values.dtype.kind == "f" and dtype.kind != "f":
        raise refused(TypeError, name, f"is {dtype}", "a dtype of floating-point numbers")
    return new
