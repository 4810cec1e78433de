# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on the embeddings in a Parquet file, a row group at a time."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fastpe._cli.errors import damage_in_one_line
from fastpe._cli.files import columns
from fastpe._cli.files.addition import Addition
from fastpe._cli.files.task import Task
from fastpe._cli.progress import Progress

if TYPE_CHECKING:
    from pyarrow import parquet


@dataclasses.dataclass(frozen=True)
class ParquetWork:
    """A file whose schema was read and found good."""

    task: Task
    embeddings: columns.Embeddings
    byte_count: int
    known_size = 0  # It depends on the compression.

    def run(self, progress: Progress) -> int:
        """Write the target, row group by row group; the other columns are copied."""
        import pyarrow
        from pyarrow import parquet

        with (
            _opened(self.task.source) as source,
            self.task.open_target() as target,
            parquet.ParquetWriter(target, source.schema_arrow, compression=_compression(source)) as writer,
        ):
            first_row = written = 0
            for index in range(source.num_row_groups):
                table = source.read_row_group(index)
                batches = []
                for batch in table.to_batches():
                    added, byte_count = self.embeddings.added_to(batch, first_row)
                    batches.append(added)
                    first_row += len(batch)
                    written += byte_count
                result = pyarrow.Table.from_batches(batches, table.schema)
                writer.write_table(result, row_group_size=max(len(table), 1))
                progress(_column_bytes(source, index, self.embeddings.names))
        return written


def check(task: Task, addition: Addition, keys: Sequence[str]) -> ParquetWork:
    """Read the schema."""
    columns.require_pyarrow("Parquet files")
    with _opened(task.source) as file:
        embeddings = columns.choose(
            file.schema_arrow,
            addition,
            keys,
            task.source,
            lambda name: (batch.column(0) for batch in file.iter_batches(1024, columns=[name])),
        )
        embeddings.require_positions(file.metadata.num_rows)
        byte_count = sum(_column_bytes(file, index, embeddings.names) for index in range(file.num_row_groups))
    return ParquetWork(task, embeddings, byte_count)


@contextlib.contextmanager
def _opened(source: str) -> Iterator[parquet.ParquetFile]:
    from pyarrow import ArrowException, parquet

    with damage_in_one_line(source, "a Parquet file", (ArrowException, OSError)), parquet.ParquetFile(source) as file:
        yield file


def _compression(file: Any) -> str | dict[str, str]:
    if not file.num_row_groups:
        return "snappy"
    group = file.metadata.row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    return {
        chunk.path_in_schema: "NONE" if chunk.compression == "UNCOMPRESSED" else chunk.compression for chunk in chunks
    }


def _column_bytes(file: Any, row_group: int, names: Sequence[str]) -> int:
    group = file.metadata.row_group(row_group)
    chunks = [group.column(index) for index in range(group.num_columns)]
    # The path of a list goes on below the name of its column.
    wanted = set(names)
    return sum(
        chunk.total_uncompressed_size
        for chunk in chunks
        if wanted.intersection((chunk.path_in_schema, chunk.path_in_schema.partition(".")[0]))
    )
