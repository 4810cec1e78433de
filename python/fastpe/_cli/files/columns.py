# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on a column of a Parquet or Arrow file: lists of floats, or lists of such lists."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from fastpe._cli.files.addition import Addition
from fastpe._cli.files.target import new_file
from fastpe._cli.messages import CommandError, library, progress, reading

# Larger row groups are read and written in parts.
_group_bytes = 64 << 20


def add(stream: IO[bytes], addition: Addition) -> int:
    """Add a record batch at a time; the bytes of the vectors."""
    name, output = addition.source, addition.output
    pyarrow = library("pyarrow", "15.0.0", name)  # older ones may run code that is in a file
    if output is None or addition.dtype is not None or addition.seq_axis != -2:
        raise CommandError(f"{name} is a table, without --in-place, --dtype and --seq-axis; write a new one with -o")
    start = stream.read(6)
    stream.seek(0)
    is_parquet = start[:4] == b"PAR1"
    with reading(name, "a Parquet or Arrow file"):
        schema, rows, batches, writer_of = _parquet(stream) if is_parquet else _arrow(stream, start == b"ARROW1")
    column = _Column(schema, addition)
    suffixes = (".parquet",) if is_parquet else (".arrow", ".feather")
    with (
        new_file(output, suffixes, addition.no_clobber) as target,
        writer_of(target) as writer,
        progress(rows, quiet=addition.quiet) as advance,
    ):
        while True:
            with reading(name, "a table"):
                batch = next(batches, None)
                if batch is None:
                    return column.byte_count
                # Arrow believes the offsets in a file, and ends the process where it follows them out of the array.
                batch.validate(full=True)
            arrays = batch.columns
            arrays[column.place] = column.added(arrays[column.place])
            writer.write_batch(pyarrow.RecordBatch.from_arrays(arrays, schema=batch.schema))
            advance(len(batch))


def _parquet(stream: IO[bytes]) -> Any:
    """The schema, the number of rows, the batches, and what opens a file to write the same."""
    from pyarrow import parquet

    file = parquet.ParquetFile(stream)
    groups = [file.metadata.row_group(index) for index in range(file.num_row_groups)]

    def batches() -> Iterator[Any]:
        for index, group in enumerate(groups):
            rows = min(_group_bytes * group.num_rows // max(group.total_byte_size, 1), group.num_rows)
            yield from file.iter_batches(max(rows, 1), row_groups=[index])

    rest = batches()
    first = list(itertools.islice(rest, 1))
    # Damaged metadata of a column end the process, unless that column was read before.
    group = next(group for group in groups if group.num_rows) if first else None
    chunks = [group.column(index) for index in range(group.num_columns)] if group else []
    compression = {chunk.path_in_schema: chunk.compression.replace("UNCOMPRESSED", "NONE") for chunk in chunks}

    def writer_of(target: IO[bytes]) -> Any:
        return parquet.ParquetWriter(target, file.schema_arrow, compression=compression or "snappy")

    return file.schema_arrow, file.metadata.num_rows, itertools.chain(first, rest), writer_of


def _arrow(stream: IO[bytes], is_file: bool) -> Any:
    from pyarrow import ipc

    reader = ipc.open_file(stream) if is_file else ipc.open_stream(stream)
    batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else iter(reader)
    maker = ipc.new_file if is_file else ipc.new_stream
    return reader.schema, None, batches, lambda target: maker(target, reader.schema)


class _Column:
    """A column of embeddings.

    Either each row is a vector, and the rows of the file are the positions of one sequence; or each row is a list of
    vectors, and a sequence of its own. Rows that are null stay null, and a null vector keeps its position.
    """

    def __init__(self, schema: Any, addition: Addition) -> None:
        keys, levels = addition.keys, [_levels(kind) for kind in schema.types]
        places = [place for place, name in enumerate(schema.names) if (name in keys if keys else levels[place])]
        if len(places) != 1 or len(keys) > 1 or not levels[places[0]]:
            columns = ", ".join(f"{field.name} of {field.type}" for field in schema)
            given = f"--key is {' and '.join(keys)}, and " if keys else ""
            expected = "expected one of lists of floats; choose with --key NAME"
            raise CommandError(f"{given}{addition.source} has the columns {columns}, {expected}")
        self.place, self.levels, self.addition = places[0], levels[places[0]], addition
        self.row = self.byte_count = self.d_model = 0

    def added(self, column: Any) -> Any:
        """The next rows with the encoding added: lists keep their lengths and nulls, and get other floats."""
        import pyarrow
        from pyarrow import compute

        rows, vectors = self.row + np.flatnonzero(column.is_valid()), column
        self.row += len(column)
        if self.levels == 2:
            lengths = compute.list_value_length(column.drop_null()).to_numpy()
            rows, vectors = (
                np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths),
                column.flatten(),
            )
        widths, floats = compute.list_value_length(vectors.drop_null()).to_numpy(), vectors.flatten()
        width = self.d_model = self.d_model or int(widths.max(initial=0))
        if not (len(rows) and width):
            return column
        if len(widths) != len(rows) or (widths != width).any() or floats.null_count:
            found = f"{self.addition.source} has nulls inside of rows, or not only vectors of {width} floats"
            raise CommandError(f"{found}, expected vectors of one length; fill or drop them first")
        encoder = self.addition.encoder(width, int(rows.max()) + 1)
        positions = encoder.convention.first_position + self.addition.offset + rows
        y = encoder.add(floats.to_numpy().reshape(-1, width), positions=positions, **self.addition.options)
        self.byte_count += y.nbytes
        return _with_floats(column, pyarrow.array(y.reshape(-1)))


def _levels(kind: Any) -> int:
    """1 if the rows of a column are vectors, 2 if they are lists of vectors, and 0 in other columns."""
    from pyarrow import types

    levels = 0
    while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        if getattr(kind, "list_size", 1) == 0:  # pyarrow divides by it
            return 0
        kind, levels = kind.value_type, levels + 1
    return levels if levels <= 2 and types.is_floating(kind) else 0


def _with_floats(lists: Any, floats: Any) -> Any:
    """Lists of the same lengths, with nulls in the same places, and these innermost values."""
    import pyarrow
    from pyarrow import compute

    if pyarrow.types.is_floating(lists.type):
        return floats
    ends = np.cumsum(compute.list_value_length(lists).fill_null(0), dtype=np.int64)
    values = _with_floats(lists.flatten(), floats)
    return pyarrow.LargeListArray.from_arrays(np.r_[0, ends], values, mask=lists.is_null()).cast(lists.type)
