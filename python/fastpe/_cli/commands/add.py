# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add``: checks all inputs, then writes all results."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from fastpe._cli.errors import CommandError, printable
from fastpe._cli.files import formats, npy, pairing
from fastpe._cli.files.addition import Addition
from fastpe._cli.files.lock import locked
from fastpe._cli.files.task import Task
from fastpe._cli.files.zarr_store import ZarrWork
from fastpe._cli.output import require_targets
from fastpe._cli.progress import Summary, progress_bar


def run(
    addition: Addition,
    inputs: Sequence[str],
    output: str | None,
    *,
    in_place: bool,
    keys: Sequence[str],
    no_clobber: bool,
    quiet: bool,
) -> None:
    """Add to the arrays or columns `keys` of the inputs."""
    summary = Summary(quiet=quiet)
    with pairing.tasks(inputs, output, in_place=in_place, no_clobber=no_clobber) as tasks:
        if pairing.is_pipe(tasks[0].source):
            byte_count = _run_pipe(tasks[0], addition, keys, no_clobber=no_clobber, quiet=quiet)
        else:
            byte_count = _run_files(tasks, addition, keys, no_clobber=no_clobber, quiet=quiet)
    summary.report(f"added to {len(tasks)} file{'' if len(tasks) == 1 else 's'}", byte_count)


def _run_pipe(task: Task, addition: Addition, keys: Sequence[str], *, no_clobber: bool, quiet: bool) -> int:
    if keys:
        raise CommandError("--key chooses one of several arrays or columns, and a pipe has one array; leave it out")
    assert task.target is not None
    pairing.require_name(task, formats.npy_array)
    require_targets([task.target], no_clobber=no_clobber)
    with progress_bar(None, quiet=quiet) as progress:
        return npy.run_pipe(task, addition, progress)


def _run_files(tasks: Sequence[Task], addition: Addition, keys: Sequence[str], *, no_clobber: bool, quiet: bool) -> int:
    work = [pairing.check(task, addition, keys) for task in tasks]
    # Stores are new directories, which their own check requires.
    files = [item for item in work if item.task.target is not None and not isinstance(item, ZarrWork)]
    require_targets(
        [str(item.task.target) for item in files],
        [item.known_size for item in files],
        no_clobber=no_clobber,
    )
    written = 0
    with contextlib.ExitStack() as locks, progress_bar(sum(item.byte_count for item in work), quiet=quiet) as progress:
        for item in work:
            if item.task.target is None:
                for path in item.metadata_files if isinstance(item, ZarrWork) else (item.task.source,):
                    locks.enter_context(locked(path, item.task.source))
        done = 0
        try:
            for item in work:
                written += item.run(progress)
                done += 1
        except BaseException:
            if len(work) > 1 and done < len(work) and work[done].task.target is None:
                name, rest = work[done].task.source, len(work) - done - 1
                state = f"{done} before {name} {_are(done)} changed, and {rest} after it {_are(rest)} not"
                print(printable(f"fastpe: of {len(work)} inputs, {state}"), file=sys.stderr)
            raise
    return written


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
