# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on a column of embeddings in a Parquet file, a row group at a time."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fastpe._cli.errors import damage_in_one_line, needs
from fastpe._cli.files import columns
from fastpe._cli.files.addition import Addition
from fastpe._cli.files.task import Task
from fastpe._cli.output import open_target
from fastpe._cli.progress import Progress

if TYPE_CHECKING:
    from pyarrow import parquet


@dataclasses.dataclass(frozen=True)
class ParquetWork:
    """A file whose schema was read and found good."""

    task: Task
    column: columns.Column
    byte_count: int

    def run(self, progress: Progress) -> None:
        """Write the target, row group by row group; the other columns are copied."""
        import pyarrow
        from pyarrow import parquet

        assert self.task.target is not None
        column = self.column
        with (
            _opened(self.task.source) as source,
            open_target(self.task.target) as target,
            parquet.ParquetWriter(target, source.schema_arrow, compression=_compression(source)) as writer,
        ):
            first_row = 0
            for index in range(source.num_row_groups):
                table = source.read_row_group(index)
                arrays = []
                row = first_row
                for array in table.column(column.place).chunks:
                    arrays.append(column.added(array, row))
                    row += len(array)
                field = table.schema.field(column.place)
                table = table.set_column(column.place, field, pyarrow.chunked_array(arrays, field.type))
                writer.write_table(table, row_group_size=max(len(table), 1))
                first_row += len(table)
                progress(_column_bytes(source, index, column.name))


def check(task: Task, addition: Addition, keys: Sequence[str]) -> ParquetWork:
    """Read the schema."""
    with needs("pyarrow", "Parquet files"):
        import pyarrow  # noqa: F401
    with _opened(task.source) as file:
        column = columns.choose(
            file.schema_arrow,
            addition,
            keys,
            task.source,
            lambda name: (batch.column(0) for batch in file.iter_batches(1024, columns=[name])),
        )
        column.require_positions(file.metadata.num_rows)
        byte_count = sum(_column_bytes(file, index, column.name) for index in range(file.num_row_groups))
    return ParquetWork(task, column, byte_count)


@contextlib.contextmanager
def _opened(source: str) -> Iterator[parquet.ParquetFile]:
    from pyarrow import ArrowException, parquet

    with damage_in_one_line(source, "a Parquet file", (ArrowException,)), parquet.ParquetFile(source) as file:
        yield file


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
