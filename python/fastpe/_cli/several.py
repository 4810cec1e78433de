# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on several files: each is done or as it was, however a run ends."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from fastpe._cli.messages import CommandError, OptionError, naming, progress, say
from fastpe._cli.options import Addition
from fastpe._cli.target import require_only_run, sync_directory

AddToFile = Callable[[Addition], None]


def add_into(
    directory: str, sources: Sequence[str], addition: Addition, add_to_file: AddToFile, *, skip_existing: bool
) -> None:
    """Write a file for each into a directory, under the same name."""
    targets = {os.path.join(directory, os.path.basename(os.path.normpath(source))): source for source in sources}
    if len(targets) < len(sources):
        raise OptionError("two files have one name, and --output-dir needs different ones; run once for each folder")
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise OptionError(f"--output-dir is {directory}, which is a file; name a folder")
    if not os.path.isdir(os.path.dirname(os.path.abspath(directory))):
        raise OptionError(f"--output-dir is {directory}, in a folder that does not exist; make that one first")
    with naming(directory):
        os.makedirs(directory, exist_ok=True)
    todo = [target for target in targets if not (skip_existing and os.path.lexists(target))]

    def add_one(target: str) -> None:
        add_to_file(addition._replace(source=targets[target], output=target, quiet=True))

    _for_each(todo, targets.__getitem__, add_one, addition.quiet)
    if not addition.quiet:
        say(f"wrote {_files(len(todo))} into {directory}{_left_out(len(targets) - len(todo), 'were there')}")


def add_in_place(sources: Sequence[str], addition: Addition, add_to_file: AddToFile, journal_name: str | None) -> None:
    """Replace each file by what is written beside it. A journal has those that are done."""
    _require_different(sources)
    with contextlib.ExitStack() as opened:
        journal = None
        if journal_name is not None:
            with naming(journal_name):
                stream = opened.enter_context(open(journal_name, "a+b"))
            require_only_run(stream, journal_name)
            stream.seek(0)
            journal = _Journal(journal_name, stream, addition)
        todo = [source for source in sources if journal is None or not journal.has(source)]

        def add_one(source: str) -> None:
            final = Path(os.path.realpath(source))  # behind links
            partial = final.with_name(f".fastpe-{secrets.token_hex(8)}.partial{final.suffix}")
            try:
                with naming(source), open(final, "rb") as held:
                    require_only_run(held, source)
                    add_to_file(addition._replace(source=source, output=str(partial), quiet=True))
                    os.chmod(partial, final.stat().st_mode & 0o777)
                with naming(source), journal.recorded(source, partial) if journal else contextlib.nullcontext():
                    os.replace(partial, final)
                    sync_directory(final.parent)
            finally:
                partial.unlink(missing_ok=True)

        _for_each(todo, str, add_one, addition.quiet)
    if not addition.quiet:
        say(f"added to {_files(len(todo))}{_left_out(len(sources) - len(todo), f'{journal_name} has')}")


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"


def _left_out(count: int, why: str) -> str:
    return f", and left out {count} that {why}" if count else ""


def _require_different(sources: Iterable[str]) -> None:
    """Refuse one file under two names: it would be added to twice."""
    names: dict[tuple[int, int], str] = {}
    for source in sources:
        with contextlib.suppress(OSError):  # which its own turn will tell
            status = os.stat(source)
            other = names.setdefault((status.st_dev, status.st_ino), source)
            if other is not source:
                raise OptionError(f"{source} and {other} are one file; name it once")


def _for_each(todo: Sequence[str], name_of: Callable[[str], str], add_one: Callable[[str], None], quiet: bool) -> None:
    """Do each one; what fails is told at the end, when the others are done."""
    failures: list[str] = []
    finished = ""
    try:
        for each in progress(todo, quiet):
            try:
                add_one(each)
                finished = name_of(each)
            except (CommandError, ImportError, OSError, ValueError, TypeError) as error:
                text = str(getattr(error, "strerror", None) or error)
                failures.append(text if name_of(each) in text else f"{name_of(each)}: {text}")
    except BaseException:
        done = f"the files up to {finished} are done" if finished else "no file is done"
        say(f"{done}{', but for those that failed' if failures else ''}, and the others are as they were")
        raise
    finally:
        for failure in failures:
            say(f"failed: {failure}")
    if failures:
        others = "; the others are done" if len(failures) < len(todo) else ""
        raise CommandError(f"{len(failures)} of {_files(len(todo))} failed, as told above{others}")


class _Journal:
    """Which files are done, for the next run.

    The first line has the options. A file has a line ``replacing INODE TIME NAME`` before what was written gets its name, from
    which the next run knows whether it did, and ``done NAME`` after that. Names are relative to the journal's folder.
    """

    def __init__(self, name: str, stream: IO[bytes], addition: Addition) -> None:
        self._stream = stream
        self._folder = os.path.dirname(os.path.realpath(name))
        self._done: set[str] = set()
        options = {"seq_axis": addition.seq_axis, **addition.factors, "convention": addition.convention}
        options |= {"base": addition.base, "offset": addition.offset, "dtype": addition.dtype and addition.dtype.name}
        first = f"fastpe add {json.dumps(options)}"
        # A run that was killed may have left half of a line.
        *lines, rest = os.fsdecode(stream.read()).split("\n")
        if not lines and first.startswith(rest):
            stream.truncate(0)
            self._append(first)
        else:
            if not lines or not lines[0].startswith("fastpe add {"):
                raise OptionError(f"--journal is {name}, which is not a journal of fastpe's; name a new file")
            if lines[0] != first:
                found = f"--journal is {name}, of a run with other options: {lines[0]}"
                raise OptionError(f"{found}; give the same ones, or name a new file")
            stream.truncate(stream.tell() - len(os.fsencode(rest)))
            self._take(lines)

    def _take(self, lines: list[str]) -> None:
        replacing: dict[str, str] = {}
        for kind, _, rest in (line.partition(" ") for line in lines[1:]):
            if kind == "done":
                self._done.add(rest)
            else:
                inode, time_ns, name = rest.split(" ", 2)
                replacing[name] = f"{inode} {time_ns}"
        for name, identity in replacing.items():
            path = os.path.join(self._folder, name)
            if name not in self._done and os.path.exists(path) and _identity(path) == identity:
                self._done.add(name)
                self._append(f"done {name}")

    def _append(self, line: str) -> None:
        self._stream.write(os.fsencode(line + "\n"))
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def _name_of(self, source: str) -> str:
        if "\n" in source:
            raise OptionError(f"{source!r} has a line break in its name, which a journal cannot hold; rename the file")
        return os.path.relpath(os.path.realpath(source), self._folder)

    def has(self, source: str) -> bool:
        """Whether an earlier run is done with the file."""
        return self._name_of(source) in self._done

    @contextlib.contextmanager
    def recorded(self, source: str, partial: Path) -> Iterator[None]:
        """Give `partial` its name in here, and the next run knows whether that was done, whenever this one ends."""
        name = self._name_of(source)
        self._append(f"replacing {_identity(partial)} {name}")
        yield
        self._append(f"done {name}")


def _identity(path: str | Path) -> str:
    """What stays the same when a file gets another name."""
    status = os.stat(path)
    return f"{status.st_ino} {status.st_mtime_ns}"
