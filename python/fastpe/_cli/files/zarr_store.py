# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on arrays in zarr stores on disk, format 2 and 3, a few chunks at a time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import math
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from fastpe._cli.errors import CommandError, damage_in_one_line, needs
from fastpe._cli.files import blocks, npy_stream
from fastpe._cli.files.addition import Addition, ArrayWork
from fastpe._cli.files.task import Task, changed_in_place
from fastpe._cli.output import complete_directory, require_new_directory
from fastpe._cli.progress import Progress

_metadata_of_arrays = {"zarr.json", ".zarray", ".zattrs"}
# Codecs that only decode numbers, in format 2 and, with a prefix, in format 3. Others, such as "pickle", can run code that
# a chunk holds.
_codecs_of_numcodecs = (
    *("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"),
    *("astype", "bitround", "delta", "fixedscaleoffset", "quantize", "shuffle"),
    *("adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3"),
)
_codecs = {
    *_codecs_of_numcodecs,
    *(f"numcodecs.{name}" for name in _codecs_of_numcodecs),
    *("bytes", "endian", "sharding_indexed", "transpose"),
}

Metadata = dict[str, Any]


def is_store(directory: Path) -> bool:
    """Whether a directory is a group or an array."""
    return any((directory / name).is_file() for name in ("zarr.json", ".zgroup", ".zarray"))


def _metadata_file(directory: Path) -> Path:
    """The file that describes an array; a group of format 2 has none."""
    return directory / ("zarr.json" if (directory / "zarr.json").is_file() else ".zarray")


@dataclasses.dataclass(frozen=True)
class ZarrWork:
    """A store whose metadata were read and found good; arrays that no work is named for are copied."""

    task: Task
    # By path in the store; an array that is the store itself has the path "". zarr opens arrays with these metadata, which
    # were checked, whatever else the store says about them.
    arrays: dict[str, tuple[ArrayWork, Metadata]]
    known_size = 0  # It depends on the compression.

    @property
    def byte_count(self) -> int:
        """Bytes of all arrays that are changed."""
        return sum(array.source.byte_count for array, _ in self.arrays.values())

    @property
    def metadata_files(self) -> list[str]:
        """One file for each array that is changed."""
        return [str(_metadata_file(Path(self.task.source, path))) for path in self.arrays]

    def run(self, progress: Progress) -> int:
        """Write a new store, or change this one."""
        if self.task.target is None:
            with changed_in_place(self.task.source, progress) as count:
                self._add(Path(self.task.source), count)
            return self.byte_count
        with complete_directory(Path(self.task.target)) as partial:
            self._copy_the_rest(partial)
            self._add(partial, progress)
        return self.byte_count

    def _copy_the_rest(self, partial: Path) -> None:
        """Copy all but the chunks that will be written."""
        source = os.path.realpath(self.task.source)
        changed = {os.path.normpath(os.path.join(source, path)) for path in self.arrays}

        def chunks(directory: str, names: list[str]) -> set[str]:
            for name in names:
                link = os.path.join(directory, name)
                if os.path.islink(link) and _holds(link, directory, partial):
                    raise CommandError(
                        f"{link} is a link to {os.path.realpath(link)}, which holds the store or its copy; remove the link"
                    )
            return set(names) - _metadata_of_arrays if os.path.normpath(directory) in changed else set()

        failures: list[OSError] = []

        def copy(name: str, copied: str) -> None:
            try:
                shutil.copy2(name, copied)
            except OSError as error:
                failures.append(error)
                raise

        try:
            shutil.copytree(source, partial, ignore=chunks, copy_function=copy, dirs_exist_ok=True)
        except shutil.Error:
            # It lists all failures in one text.
            if not failures:
                raise
            raise failures[0] from None

    def _add(self, target: Path, progress: Progress) -> None:
        with _writer() as write:
            for path, (work, metadata) in self.arrays.items():
                with _damage(self.task.source), _undisturbed():
                    source_array = _opened(Path(self.task.source, path), metadata)
                for ranges in _ranges(source_array):
                    place = tuple(slice(*span) for span in ranges)
                    with _damage(self.task.source), _undisturbed():
                        raw = np.require(source_array[place], work.source.dtype, ["C", "W"])
                    work.add_(work.converted(raw), ranges)
                    with _undisturbed():
                        write(target / path, metadata, place, raw)
                    progress(raw.nbytes)


def check(task: Task, addition: Addition, keys: Sequence[str]) -> ZarrWork:
    """Read the metadata."""
    with needs("zarr", "zarr stores"):
        import zarr  # noqa: F401
    with _damage(task.source):
        found = dict(sorted(_arrays(Path(task.source), ""), key=lambda entry: entry[0].count("/")))
    some = ", ".join(list(found)[:8])
    if not keys and len(found) != 1:
        raise CommandError(f"{task.source} holds {len(found)} arrays ({some}); choose with --key NAME")
    unknown = [key for key in keys if key not in found]
    if unknown:
        raise CommandError(
            f"--key is {unknown[0]}, expected one of {task.source}'s arrays: {some or 'it is one array'}"
        )
    works = {}
    for path in keys or found:
        name = f"{task.source}:{path}" if path else task.source
        with _damage(task.source), _undisturbed():
            _require_numbers(name, found[path])
            array = _opened(Path(task.source, path), found[path])
            _unit(array)
            header = npy_stream.Header(tuple(array.shape), False, np.dtype(array.dtype).newbyteorder("="))
        work = addition.check(header, name)
        work.require_same_dtype("a zarr array keeps its type; leave --dtype out")
        works[path] = work, found[path]
    if task.target is not None:
        if task.target == "-":
            raise CommandError(f"{task.source} is a zarr store, a directory, which no pipe can take; name another one")
        require_new_directory(Path(task.target))
    return ZarrWork(task, works)


def _arrays(directory: Path, path: str, above: tuple[Path, ...] = ()) -> Iterator[tuple[str, Metadata]]:
    """The metadata of all arrays in a store, by their paths."""
    if (real := directory.resolve()) in above:
        raise ValueError(f"{path} is a link to a directory that it is in")
    file = _metadata_file(directory)
    metadata = json.loads(file.read_bytes()) if file.is_file() else {}
    if "shape" in metadata:
        yield path, metadata
        return
    for child in sorted(directory.iterdir()):
        if is_store(child):
            yield from _arrays(child, f"{path}/{child.name}" if path else child.name, (*above, real))


def _require_numbers(name: str, metadata: Metadata) -> None:
    """Refuse codecs that may do more than decode numbers, those in shards included, and chunks in odd places."""
    # Some versions of zarr take any text, which becomes a part of the names of files.
    keys = metadata.get("chunk_key_encoding") or {}
    separators = [metadata.get("dimension_separator"), (keys.get("configuration") or {}).get("separator")]
    for separator in (*separators, keys.get("separator")):
        if separator not in (None, ".", "/"):
            raise ValueError(f"its chunks have the separator {separator!r}")
    if keys.get("name") not in (None, "default", "v2"):
        raise ValueError(f"its chunks have keys of the kind {keys.get('name')!r}")
    if min(metadata["shape"], default=0) < 0:
        raise ValueError(f"its shape is {metadata['shape']!r}")
    parts = [metadata.get("compressor"), metadata.get("filters"), metadata.get("codecs")]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            parts += [value for key, value in part.items() if key in ("id", "name") or not isinstance(value, str)]
        elif isinstance(part, list):
            parts += part
        elif isinstance(part, str) and part not in _codecs:
            raise CommandError(
                f"{name} has the codec {part[:60]}, expected one that only decodes numbers, such as zstd: others can run "
                f"code that a chunk holds; write the array anew"
            )


def _async_array(directory: Path, metadata: Metadata) -> Any:
    import zarr
    from zarr.storage import LocalStore, StorePath

    return zarr.AsyncArray.from_dict(StorePath(LocalStore(directory)), metadata)


def _opened(directory: Path, metadata: Metadata) -> Any:
    import zarr

    if hasattr(zarr, "AsyncArray"):
        return zarr.Array(_async_array(directory, metadata))
    # zarr 2
    return zarr.Array({".zarray": json.dumps(metadata).encode()}, chunk_store=zarr.DirectoryStore(os.fspath(directory)))


def _unit(array: Any) -> tuple[int, ...]:
    """The shape of what is written at once: a shard if there are shards, else a chunk."""
    unit: tuple[int, ...] = getattr(array, "shards", None) or array.chunks
    if 0 in unit and 0 not in array.shape:
        raise ValueError(f"its chunks have shape {list(unit)}")
    return unit


def _ranges(array: Any) -> Iterator[blocks.Block]:
    """Cut an array into blocks of whole chunks, as many as make a block of the usual size."""
    unit = _unit(array)
    grid = tuple(-(-extent // size) if extent else 0 for extent, size in zip(array.shape, unit, strict=True))
    unit_bytes = math.prod(unit) * array.dtype.itemsize
    for block in blocks.blocks(grid, max(1, blocks.block_bytes // max(1, unit_bytes))):
        yield tuple(
            (start * size, min(stop * size, extent))
            for (start, stop), size, extent in zip(block, unit, array.shape, strict=True)
        )


def _holds(place: str, *paths: str | Path) -> bool:
    place = os.path.realpath(place)
    return any(os.path.commonpath([place, os.path.realpath(path)]) == place for path in paths)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Delay signals while zarr works: interrupted in its event loop, zarr would report errors when the program ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    of_python = [number for number in numbers if signal.getsignal(number) is not None]
    previous = {number: signal.signal(number, lambda number, _: came.append(number)) for number in of_python}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    for number in came:
        signal.raise_signal(number)


@contextlib.contextmanager
def _writer() -> Iterator[Callable[[Path, Metadata, tuple[slice, ...], Any], None]]:
    """Write parts of a store's arrays. zarr's threads end with the context.

    After an error, a chunk that they still write would outlive the store's removal.
    """
    import zarr

    if not hasattr(zarr, "AsyncArray"):  # zarr 2 has no such threads
        yield lambda directory, metadata, place, values: _opened(directory, metadata).__setitem__(place, values)
        return

    async def write(directory: Path, metadata: Metadata, place: tuple[slice, ...], values: Any) -> None:
        await _async_array(directory, metadata).setitem(place, values)

    async def end() -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await loop.shutdown_default_executor()

    # The loop runs in a thread of its own, beside any loop of the caller's.
    loop = asyncio.new_event_loop()
    with ThreadPoolExecutor(1) as thread:
        try:
            yield lambda *part: thread.submit(loop.run_until_complete, write(*part)).result()
        finally:
            with _undisturbed():
                thread.submit(loop.run_until_complete, end()).result()
            loop.close()


def _damage(source: str) -> contextlib.AbstractContextManager[None]:
    # Codecs and metadata fail in more ways than zarr names.
    return damage_in_one_line(source, "a zarr store", (Exception,))
