# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on a column of embeddings in a Parquet file, a row group at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import fastpe
from fastpe._cli.errors import CommandError
from fastpe._cli.target import open_target
from fastpe._cli.transform import Addition, Progress

if TYPE_CHECKING:
    import pyarrow

suffix = ".parquet"


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of embeddings, by the type of its rows.

    A row is one position (``fixed_size_list<float>[C]``: the rows of the file are one sequence), or a sequence, of equal
    lengths (``fixed_size_list<fixed_size_list<float>[C]>[L]``) or of its own (``list<fixed_size_list<float>[C]>``).
    """

    name: str
    d_model: int
    rows_are_sequences: bool

    @classmethod
    def of(cls, field: pyarrow.Field) -> Column | None:
        """None for a column that holds no embeddings."""
        from pyarrow import types

        inner, nested = field.type, False
        if types.is_list(inner) or (types.is_fixed_size_list(inner) and types.is_fixed_size_list(inner.value_type)):
            inner, nested = inner.value_type, True
        if not types.is_fixed_size_list(inner) or not types.is_floating(inner.value_type):
            return None
        return cls(field.name, inner.list_size, nested)


@dataclasses.dataclass(frozen=True)
class ParquetWork:
    """A file whose schema was read and found good."""

    source: str
    target: str
    column: Column
    addition: Addition
    encoder: fastpe.PositionalEncoding
    byte_count: int

    def run(self, progress: Progress) -> None:
        """Write the target, row group by row group; the other columns are copied."""
        from pyarrow import ArrowException, parquet

        try:
            with (
                parquet.ParquetFile(self.source) as source,
                open_target(self.target) as target,
                parquet.ParquetWriter(target, source.schema_arrow, compression=_compression(source)) as writer,
            ):
                first_row = 0
                for index in range(source.num_row_groups):
                    table = source.read_row_group(index)
                    place = table.schema.get_field_index(self.column.name)
                    array = _one_array(table.column(place))
                    table = table.set_column(place, table.schema.field(place), self._added(array, first_row))
                    writer.write_table(table, row_group_size=max(len(table), 1))
                    first_row += len(table)
                    progress(_column_bytes(source, index, self.column.name))
        except ArrowException as error:
            raise _damaged(self.source, error) from None

    def _added(self, array: pyarrow.Array, first_row: int) -> pyarrow.Array:
        import pyarrow

        column = self.column
        # Per sequence, where rows are sequences of their own length.
        starts: npt.NDArray[Any] | None = None
        inner = array
        _require_no_nulls(array, self.source, column.name)
        if column.rows_are_sequences:
            inner = array.flatten()
            _require_no_nulls(inner, self.source, column.name)
            if pyarrow.types.is_list(array.type):
                starts = array.offsets.to_numpy().astype(np.int64)
                starts -= starts[0]
            else:
                starts = np.arange(len(array) + 1) * array.type.list_size
        values = inner.flatten()
        _require_no_nulls(values, self.source, column.name)
        x = values.to_numpy().reshape(-1, column.d_model)
        encoding = self.addition.encoding
        y = self.encoder.add(
            x,
            offset=encoding.offset + (0 if column.rows_are_sequences else first_row),
            cu_seqlens=starts,
            scale=self.addition.scale,
            num_threads=encoding.num_threads,
        )
        result = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(y.reshape(-1)), type=inner.type)
        if not column.rows_are_sequences:
            return result
        if pyarrow.types.is_list(array.type):
            assert starts is not None
            return pyarrow.ListArray.from_arrays(starts.astype(np.int32), result, type=array.type)
        return pyarrow.FixedSizeListArray.from_arrays(result, type=array.type)


def check(source: str, target: str | None, addition: Addition, keys: Sequence[str]) -> ParquetWork:
    """Read the schema and refuse what cannot be done, before anything is written."""
    try:
        from pyarrow import ArrowException, parquet
    except ModuleNotFoundError:
        raise CommandError("Parquet files need pyarrow; install it with: pip install 'fastpe[parquet]'") from None
    if target is None:
        raise CommandError(f"{source} is a Parquet file, which cannot be changed in place; write one with -o")
    if target != "-" and not target.endswith(suffix):
        raise CommandError(f"{source} is a Parquet file, and so is its result; give {target} the suffix {suffix}")
    if addition.dtype is not None or addition.seq_axis != -2:
        raise CommandError("--dtype and --seq-axis are for arrays; a Parquet column keeps its type")
    if len(keys) > 1:
        raise CommandError(f"--key is given {len(keys)} times, expected one column of {source}")
    try:
        with parquet.ParquetFile(source) as file:
            schema = file.schema_arrow
            columns = {field.name: column for field in schema if (column := Column.of(field)) is not None}
            if keys and keys[0] not in columns:
                raise CommandError(_no_column(source, schema, keys[0]))
            if not keys and len(columns) != 1:
                some = ", ".join(columns) or "none"
                raise CommandError(
                    f"{source} has {len(columns)} columns of fixed-size lists of floats ({some}); --key NAME"
                )
            column = columns[keys[0] if keys else next(iter(columns))]
            encoder = addition.encoding.encoder(max(column.d_model, 1))
            # The lengths of sequences are known when they are read.
            addition.encoding.require_positions(encoder, 1 if column.rows_are_sequences else file.metadata.num_rows)
            byte_count = sum(_column_bytes(file, index, column.name) for index in range(file.num_row_groups))
    except ArrowException as error:
        raise _damaged(source, error) from None
    return ParquetWork(source, target, column, addition, encoder, byte_count)


def _no_column(source: str, schema: pyarrow.Schema, key: str) -> str:
    if key not in schema.names:
        return f"--key is {key}, expected one of {source}'s columns: {', '.join(schema.names[:8])}"
    return (
        f"{source}'s column {key} has type {schema.field(key).type}, expected fixed-size lists of floats, or lists of those; "
        f"cast it with pyarrow.compute.cast"
    )


def _damaged(source: str, error: Exception) -> CommandError:
    reason = (str(error).splitlines() or [""])[0]
    return CommandError(f"{source} is not a Parquet file, or damaged: {reason}; write it anew")


def _one_array(column: pyarrow.ChunkedArray) -> pyarrow.Array:
    import pyarrow

    return pyarrow.concat_arrays(column.chunks) if column.num_chunks else pyarrow.array([], type=column.type)


def _require_no_nulls(array: pyarrow.Array, source: str, name: str) -> None:
    if array.null_count:
        raise CommandError(f"{source}'s column {name} has {array.null_count} nulls; fill or drop them first")


def _compression(file: Any) -> str | dict[str, str]:
    if not file.num_row_groups:
        return "snappy"
    group = file.metadata.row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    return {
        chunk.path_in_schema: "NONE" if chunk.compression == "UNCOMPRESSED" else chunk.compression for chunk in chunks
    }


def _column_bytes(file: Any, row_group: int, name: str) -> int:
    group = file.metadata.row_group(row_group)
    chunks = [group.column(index) for index in range(group.num_columns)]
    return sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema.split(".")[0] == name)
