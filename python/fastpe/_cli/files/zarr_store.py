# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on arrays in zarr stores on disk, format 2 and 3, a few chunks at a time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
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


def is_store(directory: Path) -> bool:
    """Whether a directory is a group or an array."""
    return any((directory / name).is_file() for name in ("zarr.json", ".zgroup", ".zarray"))


@dataclasses.dataclass(frozen=True)
class ZarrWork:
    """A store whose metadata were read and found good; arrays that no work is named for are copied."""

    task: Task
    # By path in the store; an array that is the store itself has the path "".
    arrays: dict[str, ArrayWork]
    known_size = 0  # It depends on the compression.

    @property
    def byte_count(self) -> int:
        """Bytes of all arrays that are changed."""
        return sum(array.source.byte_count for array in self.arrays.values())

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
        import zarr

        with _writer(str(target)) as write:
            for path, work in self.arrays.items():
                with _damage(self.task.source), _undisturbed():
                    source_array = _node(zarr.open(self.task.source, mode="r"), path)
                for ranges in _ranges(source_array):
                    place = tuple(slice(*span) for span in ranges)
                    with _damage(self.task.source), _undisturbed():
                        raw = np.require(source_array[place], work.source.dtype, ["C", "W"])
                    work.add_(work.converted(raw), ranges)
                    with _undisturbed():
                        write(path, place, raw)
                    progress(raw.nbytes)


def check(task: Task, addition: Addition, keys: Sequence[str]) -> ZarrWork:
    """Read the metadata."""
    with needs("zarr", "zarr stores"):
        import zarr
    with _damage(task.source), _undisturbed():
        store = zarr.open(task.source, mode="r")
        arrays = dict(_arrays(store, ""))
    some = ", ".join(list(arrays)[:8])
    if not keys and len(arrays) != 1:
        raise CommandError(f"{task.source} holds {len(arrays)} arrays ({some}); choose with --key NAME")
    unknown = [key for key in keys if key not in arrays]
    if unknown:
        raise CommandError(
            f"--key is {unknown[0]}, expected one of {task.source}'s arrays: {some or 'it is one array'}"
        )
    works = {}
    for path in keys or arrays:
        array = arrays[path]
        header = npy_stream.Header(tuple(array.shape), False, np.dtype(array.dtype).newbyteorder("="))
        works[path] = addition.check(header, f"{task.source}:{path}" if path else task.source)
        works[path].require_same_dtype("a zarr array keeps its type; leave --dtype out")
    if task.target is not None:
        if task.target == "-":
            raise CommandError(f"{task.source} is a zarr store, a directory, which no pipe can take; name another one")
        require_new_directory(Path(task.target))
    return ZarrWork(task, works)


def _arrays(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    if hasattr(node, "shape"):
        yield path, node
        return
    for name, array in sorted(node.arrays()):
        yield path + name, array
    for name, group in sorted(node.groups()):
        yield from _arrays(group, f"{path}{name}/")


def _node(store: Any, path: str) -> Any:
    return store[path] if path else store


def _ranges(array: Any) -> Iterator[blocks.Block]:
    """Cut an array into blocks of whole chunks, as many as make a block of the usual size."""
    # If there are shards, each is written at once.
    unit = getattr(array, "shards", None) or array.chunks
    grid = tuple(-(-extent // size) if extent else 0 for extent, size in zip(array.shape, unit, strict=True))
    unit_bytes = math.prod(unit) * array.dtype.itemsize
    for block in blocks.blocks(grid, max(1, blocks.block_bytes // unit_bytes)):
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
def _writer(store: str) -> Iterator[Callable[[str, tuple[slice, ...], Any], None]]:
    """Write parts of a store's arrays. zarr's threads end with the context.

    After an error, a chunk that they still write would outlive the store's removal.
    """
    try:
        from zarr.api import asynchronous
    except ImportError:  # zarr 2 has no such threads
        import zarr

        node = zarr.open(store, mode="r+")
        yield lambda path, place, values: _node(node, path).__setitem__(place, values)
        return

    async def write(path: str, place: tuple[slice, ...], values: Any) -> None:
        node = await asynchronous.open(store=store, mode="r+")
        await (await node.getitem(path) if path else node).setitem(place, values)

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
