# SPDX-License-Identifier: BSD-3-Clause
"""The C library by ctypes: the header's constants, its structs, and NumPy arrays as its arrays."""

from __future__ import annotations

import ctypes
import pathlib
import re
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_int64, c_void_p
from typing import Any

import numpy as np
import numpy.typing as npt

HEADER = pathlib.Path(__file__).resolve().parents[2] / "csrc" / "include" / "fastpe" / "fastpe.h"
CONSTANTS = {
    name: int(value)
    for name, value in re.findall(r"^(?:#define | *)(FASTPE_\w+) (?:= )?(-?\d+)\b", HEADER.read_text(), re.MULTILINE)
}


TYPES: dict[str, Any] = {"void*": c_void_p, "int64_t": c_int64, "int32_t": c_int32, "double": c_double}


def struct(name: str) -> Any:
    """A struct of the header as a class; those that it points at come before it."""
    body = re.search(rf"typedef struct {name} {{(.*?)\n}} {name};", HEADER.read_text(), re.DOTALL)
    assert body is not None
    fields = re.findall(r"^  (?:const )?(\w+\*?) (\w+)(?:\[(\d+)\])?;", body[1], re.MULTILINE)
    types = [(field, TYPES[kind] * int(count) if count else TYPES[kind]) for kind, field, count in fields]
    made = type(name, (ctypes.Structure,), {"_fields_": types})
    TYPES[name + "*"] = POINTER(made)
    return made


TYPES |= {f"{name}*": POINTER(TYPES[name]) for name in ("int64_t", "int32_t", "double")}
STRUCTS = [
    f"fastpe_{name}" for name in ("array", "const_array", "rows", "encoding_options", "scaling", "rotary_options")
]
Array, ConstArray, Rows, EncodingOptions, Scaling, RotaryOptions = map(struct, STRUCTS)


class CError(Exception):
    """A status, the argument that is named, and the message."""

    def __init__(self, status: int, argument: str, message: str) -> None:
        super().__init__(message)
        self.status, self.argument = status, argument


def view(array: npt.NDArray[Any], kind: Any = Array) -> Any:
    """What the header calls an array; it keeps its lengths alive."""
    name = "BOOL" if array.dtype == np.bool_ else array.dtype.name.upper()
    integers = c_int64 * array.ndim
    result = kind(
        array.ctypes.data, integers(*array.shape), integers(*array.strides), array.ndim, CONSTANTS[f"FASTPE_{name}"]
    )
    result.owner = array
    return result


def rows_of(**given: Any) -> Any:
    rows = Rows(offset=given.pop("offset", 0))
    for name, array in given.items():
        setattr(rows, name, ctypes.pointer(view(np.asarray(array), ConstArray)))
    return rows


def doubles(values: npt.ArrayLike) -> Any:
    array = np.asarray(values, np.float64)
    return (c_double * array.size)(*array)


class Library:
    """libfastpe: calls raise a CError for every status but FASTPE_OK."""

    def __init__(self, path: pathlib.Path) -> None:
        self.c = ctypes.CDLL(str(path))
        self.c.fastpe_error_message.restype = self.c.fastpe_error_argument.restype = c_char_p
        self.c.fastpe_instruction_set.restype = c_char_p
        for name in ("fastpe_encoding_destroy", "fastpe_rotary_destroy"):
            getattr(self.c, name).restype = None

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.c, f"fastpe_{name}")(*arguments)
        if status != CONSTANTS["FASTPE_OK"]:
            raise CError(status, self.c.fastpe_error_argument().decode(), self.c.fastpe_error_message().decode())


class _Handle:
    _kind: str

    def __init__(self, library: Library, options: ctypes.Structure) -> None:
        self.shared_library, self.handle = library, c_void_p()
        library.call(f"{self._kind}_create", byref(options), byref(self.handle))

    def __del__(self) -> None:
        getattr(self.shared_library.c, f"fastpe_{self._kind}_destroy")(self.handle)

    def warm_up(self, dtype: str = "FLOAT32", threads: int = 1) -> None:
        self.shared_library.call(f"{self._kind}_warm_up", self.handle, CONSTANTS[f"FASTPE_{dtype}"], threads)


class Encoding(_Handle):
    _kind = "encoding"

    def __init__(
        self, library: Library, d_model: int, convention: str = "vaswani", *, frequencies: Any = None, **options: Any
    ) -> None:
        number = CONSTANTS["FASTPE_" + convention.upper().replace("-", "_")]
        if frequencies is not None:
            options |= {"frequencies": doubles(frequencies), "frequency_count": len(frequencies)}
        super().__init__(library, EncodingOptions(d_model=d_model, convention=number, **options))

    def encode(self, out: npt.NDArray[Any], *, threads: int = 1, **rows: Any) -> npt.NDArray[Any]:
        self.shared_library.call("encode", self.handle, byref(view(out)), byref(rows_of(**rows)), threads)
        return out

    def add(self, x: npt.NDArray[Any], out: npt.NDArray[Any] | None = None, **options: Any) -> npt.NDArray[Any]:
        self.shared_library.call("add", self.handle, *added(x, out, **options))
        return x if out is None else out


class Rotary(_Handle):
    _kind = "rotary"

    def __init__(
        self,
        library: Library,
        rotary_dim: int,
        pairing: str = "HALVES",
        *,
        frequencies: Any = None,
        scaling: dict[str, Any] | None = None,
        frequency_axes: Any = None,
        **options: Any,
    ) -> None:
        if frequencies is not None:
            options |= {"frequencies": doubles(frequencies), "frequency_count": len(frequencies)}
        elif "base" not in options:
            options["base"] = 10000.0
        if frequency_axes is not None:
            options["frequency_axes"] = (c_int32 * len(frequency_axes))(*frequency_axes)
        if scaling is not None:
            numbers = dict(scaling)
            if "divisors" in numbers:
                numbers |= {"divisors": doubles(numbers["divisors"]), "divisor_count": len(numbers["divisors"])}
            if isinstance(numbers["type"], str):
                numbers["type"] = CONSTANTS["FASTPE_SCALING_" + numbers["type"].upper()]
            options["scaling"] = ctypes.pointer(Scaling(**numbers))
        super().__init__(
            library,
            RotaryOptions(rotary_dim=rotary_dim, pairing=CONSTANTS[f"FASTPE_PAIRING_{pairing.upper()}"], **options),
        )

    def tables(self, form: str, *out: npt.NDArray[Any], threads: int = 1, **rows: Any) -> tuple[npt.NDArray[Any], ...]:
        views = [byref(view(array)) for array in out] + [None] * (2 - len(out))
        number = CONSTANTS[f"FASTPE_TABLES_{form.upper()}"]
        self.shared_library.call("tables", self.handle, number, *views, byref(rows_of(**rows)), threads)
        return out

    def rotate(self, *x: npt.NDArray[Any], inverse: int = 0, **options: Any) -> None:
        arrays, rows, threads = rotated(x, **options)
        self.shared_library.call("rotate", self.handle, *arrays, rows, inverse, threads)

    def shift(self, *x: npt.NDArray[Any], by: npt.ArrayLike, **options: Any) -> None:
        arrays, rows, threads = rotated(x, **options)
        self.shared_library.call("shift", self.handle, *arrays, byref(view(np.asarray(by))), rows, threads)


def rotated(
    x: tuple[npt.NDArray[Any], ...], *, out: Any = None, seq_axis: int = -2, threads: int = 1, **rows: Any
) -> tuple[tuple[Any, ...], Any, int]:
    """The arrays of a rotation, its rows, and the number of threads."""
    views = (Array * len(x))(*(view(array) for array in x))
    outs = None if out is None else (Array * len(out))(*(view(array) for array in out))
    return (views, outs, len(x), seq_axis), byref(rows_of(**rows)), threads


def rotate_by_tables(
    library: Library, *x: npt.NDArray[Any], cos: Any, sin: Any, interleaved: bool, inverse: int = 0, head_dim: int = 0, **options: Any
) -> None:  # fmt: skip
    pairing = CONSTANTS["FASTPE_PAIRING_INTERLEAVED" if interleaved else "FASTPE_PAIRING_HALVES"]
    arrays, rows, threads = rotated(x, **options)
    tables = byref(view(cos)), byref(view(sin))
    library.call("rotate_by_tables", *tables, pairing, c_int64(head_dim), *arrays, rows, inverse, threads)


def add_table(library: Library, table: npt.NDArray[Any], x: npt.NDArray[Any], out: Any = None, **options: Any) -> None:
    library.call("add_table", byref(view(table)), *added(x, out, **options))


def added(
    x: npt.NDArray[Any],
    out: npt.NDArray[Any] | None = None,
    *,
    seq_axis: int = -2,
    scale: float = 1.0,
    alpha: float = 1.0,
    threads: int = 1,
    **rows: Any,
) -> tuple[Any, ...]:
    """The arguments of a sum."""
    given = None if out is None else byref(view(out))
    return byref(view(x)), given, seq_axis, byref(rows_of(**rows)), c_double(scale), c_double(alpha), threads
