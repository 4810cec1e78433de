# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on a column of a Parquet or Arrow file: lists of floats, or lists of such lists."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from fastpe._cli.files.addition import Addition, Array
from fastpe._cli.files.target import new_file
from fastpe._cli.messages import CommandError, progress, reading, short
from fastpe._extras import needed

# Larger row groups are read and written in parts.
_group_bytes = 64 << 20


def add(stream: IO[bytes], addition: Addition) -> int:
    """Add a record batch at a time; the bytes of the vectors."""
    name, output = addition.source, addition.output
    with needed(name, "pyarrow"):
        import pyarrow
    if int(pyarrow.__version__.partition(".")[0]) < 15:  # some of which run code that is in a file
        raise ImportError(f"pyarrow is {pyarrow.__version__}, expected at least 15; pip install 'pyarrow>=15'")
    if output is None or addition.dtype is not None or addition.seq_axis != -2:
        raise CommandError(
            f"{name} is a table, which takes no --in-place, --dtype or --seq-axis; write a new one with -o"
        )
    start = stream.read(6)
    stream.seek(0)
    is_parquet = start[:4] == b"PAR1"
    with reading(name, "a Parquet file" if is_parquet else "an Arrow file or stream"):
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
            columns = short(", ".join(f"{field.name} of {field.type}" for field in schema))
            found = f"--key is {' and '.join(keys)}, and {addition.source}" if keys else addition.source
            raise CommandError(
                f"{found} has the columns {columns}, expected one of lists of floats; choose with --key NAME"
            )
        self.place, self.levels, self.addition = places[0], levels[places[0]], addition
        self.row = self.byte_count = self.d_model = 0

    def added(self, column: Any) -> Any:
        """The next rows with the encoding added: lists keep their offsets and nulls, and get other floats."""
        import pyarrow

        places, vectors = np.flatnonzero(_valid(column)), column
        rows = self.row + places
        self.row += len(column)
        if self.levels == 2:
            (starts, lengths), vectors = _spans(column, places), column.values
            rows = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            places = rows + np.repeat(starts, lengths)
        (starts, lengths), floats = _spans(vectors, places), vectors.values
        width = self.d_model = self.d_model or int(lengths.max(initial=0))
        if not (len(rows) and width):
            return column
        is_whole = (lengths == width).all() and not (starts % width).any() and len(floats) % width == 0
        in_floats = starts // width
        if not (is_whole and _valid(vectors)[places].all() and _valid(floats).reshape(-1, width)[in_floats].all()):
            found = f"{self.addition.source} has nulls inside of rows, or vectors of {width} floats and of others"
            raise CommandError(f"{found}, expected vectors of one length; fill or drop them first")
        # Other vectors are hidden by nulls.
        kind = np.dtype(f"f{floats.type.bit_width // 8}")
        x = np.frombuffer(floats.buffers()[1], kind, len(floats), floats.offset * kind.itemsize).reshape(-1, width)
        encoder = self.addition.encoder(width, int(rows.max()) + 1)
        positions, mask = np.zeros(len(x), np.int64), np.zeros(len(x), bool)
        positions[in_floats], mask[in_floats] = encoder.convention.first_position + self.addition.offset + rows, True
        y = encoder.add(x, positions=positions, mask=mask, **self.addition.options)
        self.byte_count += len(rows) * width * kind.itemsize
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


def _valid(array: Any) -> Array:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), bool)


def _spans(lists: Any, places: Array) -> tuple[Array, Array]:
    """Where some lists begin in their values, and how long they are."""
    size = getattr(lists.type, "list_size", None)
    if size is not None:
        return (lists.offset + places) * size, np.full(len(places), size)
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return offsets[places], offsets[places + 1] - offsets[places]


def _with_floats(lists: Any, floats: Any) -> Any:
    """The same lists with all their innermost values replaced."""
    import pyarrow

    if pyarrow.types.is_floating(lists.type):
        return floats
    own = lists.buffers()[: lists.type.num_buffers]
    values = _with_floats(lists.values, floats)
    return pyarrow.Array.from_buffers(lists.type, len(lists), own, offset=lists.offset, children=[values])
