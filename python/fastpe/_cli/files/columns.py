# SPDX-License-Identifier: BSD-3-Clause
"""Embeddings in columns of Arrow lists, as Parquet and Arrow files hold them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastpe._cli.errors import CommandError
from fastpe._cli.files.addition import Addition

if TYPE_CHECKING:
    import pyarrow


def choose(
    schema: pyarrow.Schema,
    addition: Addition,
    keys: Sequence[str],
    source: str,
    arrays_of: Callable[[str], Iterable[pyarrow.Array]],
) -> Column:
    """Find the column that the command line means; its arrays are read as far as its first vector, for the width."""
    if addition.dtype is not None or addition.seq_axis != -2:
        raise CommandError(f"--dtype and --seq-axis are for arrays; leave them out: {source} is a table")
    if len(keys) > 1:
        raise CommandError(f"--key is given {len(keys)} times, expected one column of {source}")
    candidates = [field.name for field in schema if _vector_type(field.type) is not None]
    if keys and schema.names.count(keys[0]) != 1:
        raise CommandError(f"--key is {keys[0]}, expected one of {source}'s columns: {', '.join(schema.names[:8])}")
    if keys and keys[0] not in candidates:
        raise CommandError(
            f"{source}'s column {keys[0]} has type {schema.field(keys[0]).type}, expected lists of floats, or lists of "
            f"those; cast it with pyarrow.compute.cast"
        )
    if not keys and len(candidates) != 1:
        some = ", ".join(candidates[:8]) or "none"
        raise CommandError(
            f"{source} has {len(candidates)} columns of lists of floats ({some}); choose with --key NAME"
        )
    name = keys[0] if keys else candidates[0]
    place = schema.names.index(name)
    vector_type = _vector_type(schema.field(place).type)
    d_model = _fixed_size(vector_type) or _first_length(arrays_of(name), vector_type)
    return Column(name, place, d_model, vector_type != schema.field(place).type, addition, source)


def _vector_type(kind: pyarrow.DataType) -> pyarrow.DataType | None:
    """The list of floats in a column's type: its rows, or what its rows are lists of."""
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


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of embeddings.

    A row is a vector, a position of the one sequence that the file is; or a list of vectors, a sequence of its own. Lists
    are of one size by their type or, vectors, by what they hold. Rows that are null stay null, and a null vector keeps its
    position; nulls inside of rows are refused.
    """

    name: str
    place: int
    d_model: int
    rows_are_sequences: bool
    addition: Addition
    source: str

    def require_positions(self, row_count: int) -> None:
        """Refuse positions that cannot be encoded; the lengths of sequences are known when they are read."""
        encoding = self.addition.encoding
        encoding.require_positions(
            encoding.encoder(max(self.d_model, 1)), min(row_count, 1) if self.rows_are_sequences else row_count
        )

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
        # Past the nulls, which have some value in memory.
        raw = np.frombuffer(child.buffers()[1] or b"", child.type.to_pandas_dtype())
        return raw[child.offset : child.offset + len(child)].reshape(-1, max(self.d_model, 1))

    def _add(self, floats: npt.NDArray[Any], **where: Any) -> pyarrow.Array:
        import pyarrow

        encoding = self.addition.encoding
        y = encoding.encoder(floats.shape[1]).add(
            floats, scale=self.addition.scale, num_threads=encoding.num_threads, **where
        )
        return pyarrow.array(y.reshape(-1))

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
    """The same lists, null where they were null, of other values: those from the first list's to the last one's."""
    import pyarrow

    validity = lists.is_valid().buffers()[1] if lists.null_count else None
    buffers = [validity]
    if _fixed_size(lists.type) is None:
        starts = _starts(lists)
        width = np.int64 if pyarrow.types.is_large_list(lists.type) else np.int32
        buffers.append(pyarrow.py_buffer((starts - starts[0]).astype(width)))
    return pyarrow.Array.from_buffers(lists.type, len(lists), buffers, children=[child])
