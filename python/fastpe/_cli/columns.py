# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on a column of a Parquet or Arrow file: lists of floats, or lists of such lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import pyarrow
from pyarrow import compute, ipc, parquet, types

from fastpe._cli.messages import CommandError, OptionError, naming, progress
from fastpe._cli.options import Addition
from fastpe._cli.target import new_file

# Larger row groups are read and written in parts.
_group_bytes = 32 << 20


def add(stream: IO[bytes], addition: Addition) -> None:
    """Add a record batch at a time."""
    name, output = addition.source, addition.output
    if output is None or addition.in_place or addition.dtype is not None or addition.seq_axis != -2:
        found = f"{name} is a table, for which --in-place, --dtype and --seq-axis cannot be given"
        raise OptionError(f"{found}; write a new one with -o, or with --output-dir")
    with naming(name, "a Parquet or Arrow file"):
        schema, batches, writer_of, suffixes = _opened(stream, addition.quiet)
    place, levels = _column(schema, addition)
    with new_file(output, suffixes, addition.no_clobber, addition.quiet) as target, writer_of(target, schema) as writer:
        for batch in _added(batches, place, levels, addition):
            writer.write_batch(batch)


def _opened(stream: IO[bytes], quiet: bool) -> Any:
    """The schema, the batches, and what opens a file to write the same, with its suffixes."""
    start = stream.read(6)
    stream.seek(0)
    if start[:4] == b"PAR1":
        # Without a buffer's size, a whole row group is read into memory.
        file = parquet.ParquetFile(stream, pre_buffer=False, buffer_size=1 << 20)
        return file.schema_arrow, _row_groups(file, quiet), parquet.ParquetWriter, (".parquet",)
    if start == b"ARROW1":
        reader = ipc.open_file(stream)
        batches = map(reader.get_batch, progress(range(reader.num_record_batches), quiet))
        return reader.schema, batches, ipc.new_file, (".arrow", ".feather")
    reader = ipc.open_stream(stream)
    return reader.schema, iter(progress(reader, quiet)), ipc.new_stream, (".arrow", ".feather")


def _row_groups(file: Any, quiet: bool) -> Iterator[Any]:
    for index in progress(range(file.num_row_groups), quiet):
        group = file.metadata.row_group(index)
        rows = min(_group_bytes * group.num_rows // max(group.total_byte_size, 1), group.num_rows)
        yield from file.iter_batches(max(rows, 1), row_groups=[index])


def _column(schema: Any, addition: Addition) -> tuple[int, int]:
    """The place of the column of embeddings, and its levels of lists."""
    keys, levels = addition.keys, [_levels(kind) for kind in schema.types]
    places = [place for place, name in enumerate(schema.names) if (name in keys if keys else levels[place])]
    if len(places) != 1 or len(keys) > 1 or not levels[places[0]]:
        columns = ", ".join(f"{field.name} of {field.type}" for field in schema)
        given = f"--key is {' and '.join(keys)}, and " if keys else ""
        found = f"{given}{addition.source} has the columns {columns}, expected one that has lists of floats"
        if not any(levels):
            raise (OptionError if keys else CommandError)(f"{found}; write the embeddings as such a column")
        choice = " or ".join(f"--key {name}" for name, level in zip(schema.names, levels, strict=True) if level)
        raise (OptionError if keys else CommandError)(f"{found}; give {choice}")
    return places[0], levels[places[0]]


def _levels(kind: Any) -> int:
    """1 if the rows of a column are vectors, 2 if they are lists of vectors, and 0 in other columns."""
    levels = 0
    while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        if getattr(kind, "list_size", 1) == 0:  # pyarrow divides by it
            return 0
        kind, levels = kind.value_type, levels + 1
    return levels if levels <= 2 and types.is_floating(kind) else 0


def _added(batches: Iterator[Any], place: int, levels: int, addition: Addition) -> Iterator[Any]:
    """The batches with the encoding added to a column.

    Either each row is a vector, and the rows of the file are the positions of one sequence; or each row is a list of
    vectors, and a sequence of its own. Rows that are null stay null, and a null vector keeps its position.
    """
    name, next_row, d_model = addition.source, 0, 0
    while True:
        with naming(name, "a table"):
            batch = next(batches, None)
            if batch is None:
                return
            # Arrow believes the offsets in a file, and ends the process where it follows them out of the array.
            batch.validate(full=True)
        arrays = batch.columns
        column = vectors = arrays[place]
        rows = next_row + np.flatnonzero(column.is_valid())
        next_row += len(column)
        if levels == 2:
            lengths = compute.list_value_length(column.drop_null()).to_numpy()
            rows = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            vectors = column.flatten()
        widths, floats = compute.list_value_length(vectors.drop_null()).to_numpy(), vectors.flatten()
        d_model = d_model or int(widths.max(initial=0))
        if len(rows) and d_model:
            if len(widths) != len(rows) or (widths != d_model).any() or floats.null_count:
                found = f"{name} has nulls inside of rows, or not only vectors of {d_model} floats"
                raise CommandError(f"{found}, expected vectors of one length; fill or drop them first")
            x = floats.to_numpy().reshape(-1, d_model)
            encoder, *_ = addition.prepared((int(np.max(rows)) + 1, d_model), x.dtype)
            positions = encoder.convention.first_position + addition.offset + rows
            y = encoder.add(x, positions=positions, **addition.factors)
            arrays[place] = _with_floats(column, pyarrow.array(y.reshape(-1)))
        yield pyarrow.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _with_floats(lists: Any, floats: Any) -> Any:
    """Lists of the same lengths, with nulls in the same places, and these innermost values."""
    if types.is_floating(lists.type):
        return floats
    ends = np.cumsum(compute.list_value_length(lists).fill_null(0), dtype=np.int64)
    values = _with_floats(lists.flatten(), floats)
    return pyarrow.LargeListArray.from_arrays(np.r_[0, ends], values, mask=lists.is_null()).cast(lists.type)
