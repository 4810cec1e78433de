# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` over files: which ones, and where each result goes."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from fastpe._cli.errors import CommandError
from fastpe._cli.files import formats
from fastpe._cli.files.addition import Addition
from fastpe._cli.files.task import Task, Work
from fastpe._cli.output import descriptor_of, is_named_otherwise


@contextlib.contextmanager
def tasks(inputs: Sequence[str], output: str | None, *, in_place: bool, no_clobber: bool) -> Iterator[list[Task]]:
    """Pair inputs with outputs; patterns and directories become the files in them.

    A directory for the results is made, and taken back if an error leaves it empty.
    """
    paired = _paired(inputs, output, in_place=in_place, no_clobber=no_clobber)
    directory = None
    if output is not None and paired[0].target != output and not os.path.exists(output):
        directory = output
        os.mkdir(directory)
    try:
        yield paired
    except BaseException:
        if directory is not None:
            with contextlib.suppress(OSError):
                os.rmdir(directory)
        raise


def _paired(inputs: Sequence[str], output: str | None, *, in_place: bool, no_clobber: bool) -> list[Task]:
    if in_place and output is not None:
        raise CommandError(f"-o is {output} and --in-place was given, expected one of them; leave one out")
    if in_place and no_clobber:
        raise CommandError(
            "--in-place changes the file that exists and --no-clobber keeps it, expected one of them; leave one out"
        )
    if not in_place and output is None:
        raise CommandError(
            "there is no -o and no --in-place, expected one of them; give -o OUT for a new file, or --in-place to change "
            "the input"
        )
    if "" in inputs or output == "":
        raise CommandError("a name is empty, expected names of files or directories")
    sources = [source for name in inputs for source in _expanded(name)]
    for pipe in filter(is_pipe, sources):
        if in_place or len(sources) > 1:
            raise CommandError(f"{pipe} is a pipe, expected it to be the only input, with -o")
    _require_distinct(sources)
    if output is None:
        return [Task(source, None) for source in sources]
    into_directory = Path(output).is_dir() and not formats.is_one_input(Path(output))
    if sources == list(inputs) and len(sources) == 1 and not into_directory:
        targets = [output]
    else:
        targets = _targets_in_directory(sources, output, ", ".join(inputs))
    for target in targets:
        _require_apart(target, sources)
    return [Task(source, target, no_clobber) for source, target in zip(sources, targets, strict=True)]


def _identity(file: str | int) -> tuple[int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        # It does not exist: opening it raises the error.
        return None
    return status.st_dev, status.st_ino


def _require_distinct(sources: Sequence[str]) -> None:
    """Refuse to read a file twice, which would add to it twice in place."""
    seen: dict[tuple[int, int], str] = {}
    for source in sources:
        identity = None if is_pipe(source) else _identity(source)
        if identity is None:
            continue
        if identity in seen:
            raise CommandError(f"{source} and {seen[identity]} are one file; name it once")
        seen[identity] = source


def _require_apart(target: str, sources: Sequence[str]) -> None:
    """Refuse a target that is an input or lies in one."""
    number = descriptor_of(target)
    written = _identity(target if number is None else number)
    places = {_identity(os.fspath(parent)) for parent in Path(os.path.realpath(target)).parents}
    for source in sources:
        identity = None if is_pipe(source) else _identity(source)
        if identity is None:
            continue
        if identity == written:
            raise CommandError(
                f"{target} is the input itself; name another output, or change an .npy file with --in-place"
            )
        if number is None and identity in places:
            raise CommandError(f"{target} lies in the input {source}; name an output outside of it")


def is_pipe(name: str) -> bool:
    """Whether an input can be read only once: standard input, a named pipe, or a shell's ``<(command)``."""
    path = Path(name)
    return name == "-" or (path.exists() and not path.is_file() and not path.is_dir())


def _expanded(name: str) -> list[str]:
    if name == "-":
        return [name]
    path = Path(name)
    if path.is_dir() and not formats.is_one_input(path):
        found = formats.inputs_in(path)
        if not found:
            raise CommandError(f"{name} has no input in it; expected names that end in {formats.all_suffixes()}")
        return found
    if not path.exists() and glob.has_magic(name):
        # Some shells do not expand patterns.
        found = sorted(glob.glob(name, recursive=True))
        if not found:
            raise CommandError(f"{name} matches no file")
        return found
    return [name]


def _targets_in_directory(sources: list[str], output: str, inputs: str) -> list[str]:
    directory = Path(output)
    if output == "-" or (directory.exists() and (not directory.is_dir() or formats.is_one_input(directory))):
        raise CommandError(f"-o is {output}, expected a directory for {len(sources)} files")
    if any(map(is_pipe, sources)):
        raise CommandError(f"-o is {output}, a directory, expected a file name for the array of a pipe")
    if not directory.exists() and formats.by_suffix(output) is not None:
        raise CommandError(f"-o is {output}, the name of a file, expected a directory for the results of {inputs}")
    names = [Path(source).name for source in sources]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise CommandError(f"{min(twice)} is the name of several inputs; add to them one directory at a time")
    return [str(directory / name) for name in names]


def check(task: Task, addition: Addition, keys: Sequence[str]) -> Work:
    """Look at one input and refuse what cannot be done, before anything is written."""
    found = formats.of_input(task.source)
    if task.target is None:
        if not found.in_place:
            raise CommandError(
                f"{task.source} is {found.description}, which cannot be changed in place; write one with -o"
            )
    else:
        require_name(task, found)
    return found.check(task, addition, keys)


def require_name(task: Task, found: formats.Format) -> None:
    """Refuse a target whose name says another format than that of the input, which is that of the result."""
    assert task.target is not None
    # The first bytes decide an input's format. Its name may have a suffix of no format, which the result may have, too.
    own = [] if formats.by_suffix(task.source) else [Path(task.source).suffix.lower()]
    if is_named_otherwise(task.target, [*found.suffixes, *own]):
        name = "standard input" if task.source == "-" else task.source
        suffixes = " or ".join(found.suffixes)
        raise CommandError(
            f"{name} is {found.description}, and so is its result; give {task.target} the suffix {suffixes}"
        )
