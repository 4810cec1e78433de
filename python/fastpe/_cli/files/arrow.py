# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on the embeddings in an Arrow IPC file or stream, a record batch at a time."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fastpe._cli.errors import damage_in_one_line
from fastpe._cli.files import columns
from fastpe._cli.files.addition import Addition
from fastpe._cli.files.task import Task
from fastpe._cli.progress import Progress

if TYPE_CHECKING:
    import pyarrow

_magic = b"ARROW1"


@dataclasses.dataclass(frozen=True)
class ArrowWork:
    """A file whose schema was read and found good."""

    task: Task
    embeddings: columns.Embeddings
    compression: str | None
    known_size = 0  # It depends on the compression.

    @property
    def byte_count(self) -> int:
        """Bytes of the whole file, since those of its columns are not known before it is read."""
        return os.path.getsize(self.task.source)

    def run(self, progress: Progress) -> int:
        """Write the target, batch by batch, in the form and with the compression of the source."""
        from pyarrow import ipc

        source = self.task.source
        writer_of = ipc.new_file if _is_file(source) else ipc.new_stream
        options = ipc.IpcWriteOptions(compression=self.compression)
        with _opened(source) as (schema, batches), self.task.open_target() as target:
            first_row = written = 0
            with writer_of(target, schema, options=options) as writer:
                for batch, file_bytes in batches:
                    added, byte_count = self.embeddings.added_to(batch, first_row)
                    writer.write_batch(added)
                    first_row += len(batch)
                    written += byte_count
                    progress(file_bytes)
        return written


def check(task: Task, addition: Addition, keys: Sequence[str]) -> ArrowWork:
    """Read the schema."""
    columns.require_pyarrow("Arrow files")
    with _opened(task.source) as (schema, batches):
        embeddings = columns.choose(
            schema, addition, keys, task.source, lambda name: (batch.column(name) for batch, _ in batches)
        )
        # Their number is known when they have been read.
        embeddings.require_positions(1)
        compression = _compression(task.source)
    return ArrowWork(task, embeddings, compression)


def _is_file(source: str) -> bool:
    """Whether it is the file format, which has an index at its end, or the stream format."""
    with open(source, "rb") as stream:
        return stream.read(len(_magic)) == _magic


_Batches = Iterator[tuple["pyarrow.RecordBatch", int]]


@contextlib.contextmanager
def _opened(source: str) -> Iterator[tuple[pyarrow.Schema, _Batches]]:
    """The schema, and the batches with the share of the file's bytes that each of them is."""
    import pyarrow
    from pyarrow import ipc

    size = os.path.getsize(source)

    def checked(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        # Arrow believes the offsets in a file, and ends the process where it follows them out of the array.
        batch.validate(full=True)
        return batch

    def of_file(reader: ipc.RecordBatchFileReader) -> _Batches:
        count = reader.num_record_batches
        for index in range(count):
            yield checked(reader.get_batch(index)), size * (index + 1) // count - size * index // count

    def of_stream(reader: ipc.RecordBatchStreamReader, file: pyarrow.NativeFile) -> _Batches:
        before = 0
        for batch in reader:
            now = file.tell()
            yield checked(batch), now - before
            before = now

    # Arrow's own errors about damage may be OSErrors without a number.
    damage = damage_in_one_line(
        source, "an Arrow file or stream", (pyarrow.ArrowException, OSError, struct.error), " with pyarrow.ipc"
    )
    with damage, pyarrow.OSFile(source) as file:
        if _is_file(source):
            with ipc.open_file(file) as reader:
                yield reader.schema, of_file(reader)
        else:
            with ipc.open_stream(file) as reader:
                yield reader.schema, of_stream(reader, file)


def _compression(source: str) -> str | None:
    """The compression of the first batch, which pyarrow reads but does not show."""
    import pyarrow
    from pyarrow import ipc

    with pyarrow.OSFile(source) as file:
        if _is_file(source):
            place = _first_batch_in_file(file)
            if place is None:
                return None
            file.seek(place)
            return _compression_in(_Flatbuffer(ipc.read_message(file).metadata))
        for message in ipc.MessageReader.open_stream(file):
            if message.type == "record batch":
                return _compression_in(_Flatbuffer(message.metadata))
    return None


class _Flatbuffer(bytes):
    """Arrow's metadata, in which fields are looked up by their numbers in Arrow's schemas."""

    def number(self, format: str, place: int) -> int:
        value: int = struct.unpack_from(format, self, place)[0]
        return value

    def field(self, table: int | None, index: int) -> int | None:
        if table is None:
            return None
        fields = table - self.number("<i", table)
        slot = 4 + 2 * index
        place = self.number("<H", fields + slot) if slot < self.number("<H", fields) else 0
        return table + place if place else None

    def target(self, reference: int | None) -> int | None:
        return None if reference is None else reference + self.number("<I", reference)


def _first_batch_in_file(file: pyarrow.NativeFile) -> int | None:
    """Footer.recordBatches[0].offset; what lies before it need not be a stream, and in polars' files it is none."""
    tail = struct.Struct(f"<i{len(_magic)}s")
    file.seek(file.size() - tail.size)
    footer_bytes, _ = tail.unpack(file.read(tail.size))
    file.seek(file.size() - tail.size - footer_bytes)
    footer = _Flatbuffer(file.read(footer_bytes))
    batches = footer.target(footer.field(footer.target(0), 3))
    return None if batches is None or not footer.number("<I", batches) else footer.number("<q", batches + 4)


def _compression_in(message: _Flatbuffer) -> str | None:
    """Message.header.compression.codec."""
    header = message.target(message.field(message.target(0), 2))
    compression = message.target(message.field(header, 3))
    if compression is None:
        return None
    codec = message.field(compression, 0)
    return "zstd" if codec is not None and message.number("<b", codec) == 1 else "lz4"
