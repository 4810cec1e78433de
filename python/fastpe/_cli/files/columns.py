# SPDX-License-Identifier: BSD-3-Clause
"""Embeddings in columns, as Parquet and Arrow files hold them: one of lists, or one of floats for each dimension."""

from __future__ import annotations

import dataclasses
import fnmatch
import glob
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from fastpe._cli.errors import CommandError, MissingLibrary, needs, with_options
from fastpe._cli.files.addition import Addition

if TYPE_CHECKING:
    import pyarrow


def require_pyarrow(what: str) -> None:
    """Refuse to read `what` without pyarrow, or with one that unpickles the types in a file."""
    with needs("pyarrow", what):
        import pyarrow
    version = tuple(int(number) for number in re.findall(r"\d+", pyarrow.__version__)[:3])
    if version < (14, 0, 1):
        raise MissingLibrary(
            f"pyarrow {pyarrow.__version__} can run code that is in a file, expected at least 14.0.1; install it with: "
            f"pip install 'pyarrow>=14.0.1'"
        )


class Embeddings(Protocol):
    """The columns of a table that hold its embeddings."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""
        ...

    def require_positions(self, row_count: int) -> None:
        """Refuse positions that cannot be encoded; the lengths of sequences are known when they are read."""
        ...

    def added_to(self, batch: pyarrow.RecordBatch, first_row: int) -> tuple[pyarrow.RecordBatch, int]:
        """Rows with the encoding added, and the bytes of their vectors; the other columns are those of `batch`."""
        ...


def choose(
    schema: pyarrow.Schema,
    addition: Addition,
    keys: Sequence[str],
    source: str,
    arrays_of: Callable[[str], Iterable[pyarrow.Array]],
) -> Embeddings:
    """Find the columns that the command line means; one of lists is read as far as its first vector, for the width."""
    if addition.dtype is not None or addition.seq_axis != -2:
        raise CommandError(f"--dtype and --seq-axis are for arrays, and {source} is a table; leave them out")
    places = _named(schema, keys, source) if keys else _vector_columns(schema)
    if keys and all(_is_float(schema.field(place).type) for place in places):
        return _dimensions(schema, places, addition, source)
    if not keys and len(places) != 1:
        raise CommandError(_several_or_none(schema, places, source))
    for place in places:
        if _vector_type(schema.field(place).type) is None:
            raise CommandError(
                f"{source}'s column {schema.field(place).name} has type {schema.field(place).type}, expected lists of "
                f"floats, or lists of those; cast it with pyarrow.compute.cast"
            )
    if len(places) > 1:
        raise CommandError(f"--key names {len(places)} columns of lists in {source}, expected one of them")
    field = schema.field(places[0])
    vector_type = _vector_type(field.type)
    d_model = _fixed_size(vector_type) or _first_length(arrays_of(field.name), vector_type)
    return Column(field.name, places[0], d_model, vector_type != field.type, addition, source)


def _named(schema: pyarrow.Schema, keys: Sequence[str], source: str) -> list[int]:
    """The places of the columns that have one of these names, and of those of floats that match a pattern."""
    chosen = set()
    for key in keys:
        exact = [place for place, name in enumerate(schema.names) if name == key]
        matching = [
            place
            for place, name in enumerate(schema.names)
            if fnmatch.fnmatchcase(name, key) and _is_float(schema.field(place).type)
        ]
        if len(exact) > 1 or not (exact or matching):
            raise CommandError(f"--key is {key}, expected one of {source}'s columns: {', '.join(schema.names[:8])}")
        chosen.update(exact or matching)
    return sorted(chosen)


def _vector_columns(schema: pyarrow.Schema) -> list[int]:
    return [place for place, field in enumerate(schema) if _vector_type(field.type) is not None]


def _several_or_none(schema: pyarrow.Schema, vectors: Sequence[int], source: str) -> str:
    """The message if no column is named and the table does not have exactly one column of lists."""
    dimensions = [field.name for field in schema if _is_float(field.type)]
    if vectors:
        some = ", ".join(schema.names[place] for place in vectors[:8])
        return f"{source} has {len(vectors)} columns of lists of floats ({some}); choose with --key NAME"
    if not dimensions:
        some = ", ".join(f"{field.name} of {field.type}" for field in list(schema)[:8]) or "none"
        return (
            f"{source} has no column of floats, or of lists of them; its columns are: {some}; if one holds numbers, cast it "
            f"with pyarrow.compute.cast"
        )
    first, last = min(dimensions), max(dimensions)
    common = next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), 0)
    pattern = glob.escape(first[:common]) + "*"
    return (
        f"{source} has no column of lists of floats, but {len(dimensions)} of floats ({', '.join(dimensions[:4])} ..); "
        f"if each is one dimension, choose them with --key {shlex.quote(pattern)}"
    )


def _dimensions(schema: pyarrow.Schema, places: Sequence[int], addition: Addition, source: str) -> Dimensions:
    types = {schema.field(place).type for place in places}
    if len(types) > 1:
        raise CommandError(
            f"--key names columns of {source} of the types {', '.join(sorted(map(str, types)))}, expected one type"
        )
    return Dimensions(tuple(schema.names[place] for place in places), tuple(places), addition, source)


def _is_float(kind: pyarrow.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_floating(kind))


def _vector_type(kind: pyarrow.DataType) -> pyarrow.DataType | None:
    """The type of the vectors in a column, whose rows are vectors or lists of vectors; None in other columns."""
    from pyarrow import types

    def is_list(kind: pyarrow.DataType) -> bool:
        return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))

    for vector in (kind, kind.value_type) if is_list(kind) else ():
        if is_list(vector) and types.is_floating(vector.value_type):
            return vector
    return None


def _fixed_size(kind: pyarrow.DataType) -> int | None:
    from pyarrow import types

    return kind.list_size if types.is_fixed_size_list(kind) else None


def _first_length(arrays: Iterable[pyarrow.Array], vector_type: pyarrow.DataType) -> int:
    for array in arrays:
        vectors = array if array.type == vector_type else array.flatten()
        lengths = _lengths(vectors)[_valid(vectors)]
        if lengths.any():
            return int(lengths[np.argmax(lengths > 0)])
    return 0


def _require_positions(addition: Addition, d_model: int, row_count: int, source: str) -> None:
    encoding = addition.encoding
    try:
        encoding.require_positions(encoding.encoder(max(d_model, 1)), row_count)
    except ValueError as error:
        raise CommandError(f"{source}: {with_options(error, ('convention', 'base', 'offset'))}") from None


@dataclasses.dataclass(frozen=True)
class Dimensions:
    """Columns of floats, one for each dimension: each row is a vector, a position of the one sequence that the file is."""

    names: tuple[str, ...]
    places: tuple[int, ...]
    addition: Addition
    source: str

    def require_positions(self, row_count: int) -> None:
        """Refuse positions that cannot be encoded."""
        _require_positions(self.addition, len(self.places), row_count, self.source)

    def added_to(self, batch: pyarrow.RecordBatch, first_row: int) -> tuple[pyarrow.RecordBatch, int]:
        """Rows of the table with the encoding added, and the bytes of their vectors."""
        import pyarrow

        arrays = batch.columns
        for place, name in zip(self.places, self.names, strict=True):
            if arrays[place].null_count:
                raise CommandError(f"{self.source}'s column {name} has nulls; fill or drop them first")
        x = np.stack([arrays[place].to_numpy() for place in self.places], axis=1)
        y = self.addition.added(x, offset=self.addition.encoding.offset + first_row)
        for index, place in enumerate(self.places):
            arrays[place] = pyarrow.array(np.ascontiguousarray(y[:, index]))
        return pyarrow.RecordBatch.from_arrays(arrays, schema=batch.schema), y.nbytes


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of embeddings.

    Either each row is a vector, and the rows of the file are the positions of one sequence; or each row is a list of
    vectors, and a sequence of its own. All vectors have one length, by their type or by what they hold. Rows that are
    null stay null, and a null vector keeps its position. Nulls inside of rows are refused.
    """

    name: str
    place: int
    d_model: int
    rows_are_sequences: bool
    addition: Addition
    source: str

    @property
    def names(self) -> tuple[str]:
        """The name of the column."""
        return (self.name,)

    def require_positions(self, row_count: int) -> None:
        """Refuse positions that cannot be encoded; the lengths of sequences are known when they are read."""
        _require_positions(
            self.addition, self.d_model, min(row_count, 1) if self.rows_are_sequences else row_count, self.source
        )

    def added_to(self, batch: pyarrow.RecordBatch, first_row: int) -> tuple[pyarrow.RecordBatch, int]:
        """Rows of the table with the encoding added, and the bytes of their vectors."""
        import pyarrow

        arrays = batch.columns
        arrays[self.place] = floats = self.added(arrays[self.place], first_row)
        while pyarrow.types.is_nested(floats.type):
            floats = floats.values
        return pyarrow.RecordBatch.from_arrays(arrays, schema=batch.schema), floats.nbytes

    def added(self, array: pyarrow.Array, first_row: int) -> pyarrow.Array:
        """One array of the column with the encoding added; a new one of the same type."""
        encoding = self.addition.encoding
        if not self.rows_are_sequences:
            floats = self._floats(array, np.zeros(len(array), bool))
            first = encoding.offset + first_row
            if len(floats) == len(array):
                return _with_child(array, self._add(floats, offset=first))
            first += encoding.encoder(floats.shape[1]).convention.first_position
            return _with_child(array, self._add(floats, positions=first + np.flatnonzero(_lengths(array))))
        starts = _starts(array)
        vectors = array.values.slice(starts[0], starts[-1] - starts[0])
        starts -= starts[0]
        hidden = np.repeat(~_valid(array), np.diff(starts))
        if (~_valid(vectors) & ~hidden).any():
            raise self._nulls_inside()
        floats = self._floats(vectors, hidden)
        # Vectors behind a null row may take no place among the floats.
        places = np.concatenate([[0], np.cumsum(_lengths(vectors) > 0)])
        y = self._add(floats, offset=encoding.offset, cu_seqlens=places[starts])
        return _with_child(array, _with_child(vectors, y))

    def _floats(self, vectors: pyarrow.Array, hidden: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        """The floats of the vectors, null ones included if they have any, [N, d_model] without a copy."""
        starts = _starts(vectors)
        valid = _valid(vectors)
        lengths = np.diff(starts)
        wrong = (lengths != self.d_model) & ((lengths != 0) | valid)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise CommandError(
                f"{self.source}'s column {self.name} has a vector of length {lengths[row]}, expected {self.d_model} as "
                f"the first one has; make them equally long"
            )
        child = vectors.values.slice(starts[0], starts[-1] - starts[0])
        if child.null_count:
            seen = np.repeat(valid & ~hidden, lengths)
            if (~_valid(child) & seen).any():
                raise self._nulls_inside()
        # This reads null vectors, too, which have some value in memory.
        raw = np.frombuffer(child.buffers()[1] or b"", child.type.to_pandas_dtype())
        return raw[child.offset : child.offset + len(child)].reshape(-1, max(self.d_model, 1))

    def _add(self, floats: npt.NDArray[Any], **where: Any) -> pyarrow.Array:
        import pyarrow

        return pyarrow.array(self.addition.added(floats, **where).reshape(-1))

    def _nulls_inside(self) -> CommandError:
        return CommandError(
            f"{self.source}'s column {self.name} has nulls inside of its rows; fill or drop them first (rows that are null "
            f"themselves stay so)"
        )


def _valid(array: pyarrow.Array) -> npt.NDArray[np.bool_]:
    if not array.null_count:
        return np.ones(len(array), bool)
    valid: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _starts(lists: pyarrow.Array) -> npt.NDArray[np.int64]:
    """Where each list starts among the values, and where the last one ends."""
    size = _fixed_size(lists.type)
    if size is not None:
        return np.arange(lists.offset, lists.offset + len(lists) + 1, dtype=np.int64) * size
    starts: npt.NDArray[np.int64] = lists.offsets.to_numpy().astype(np.int64)
    return starts


def _lengths(lists: pyarrow.Array) -> npt.NDArray[np.int64]:
    return np.diff(_starts(lists))


def _with_child(lists: pyarrow.Array, child: pyarrow.Array) -> pyarrow.Array:
    """Lists like `lists`, with the same nulls, whose values are those of `child`."""
    import pyarrow

    validity = lists.is_valid().buffers()[1] if lists.null_count else None
    buffers = [validity]
    if _fixed_size(lists.type) is None:
        starts = _starts(lists)
        width = np.int64 if pyarrow.types.is_large_list(lists.type) else np.int32
        buffers.append(pyarrow.py_buffer((starts - starts[0]).astype(width)))
    return pyarrow.Array.from_buffers(lists.type, len(lists), buffers, children=[child])
