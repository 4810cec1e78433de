# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add``: checks all inputs, then writes all results."""

from __future__ import annotations

from collections.abc import Sequence

from fastpe._cli.errors import CommandError
from fastpe._cli.files import npy, pairing
from fastpe._cli.files.addition import Addition
from fastpe._cli.progress import Throughput, progress_bar


def run(
    addition: Addition, inputs: Sequence[str], output: str | None, *, in_place: bool, keys: Sequence[str], quiet: bool
) -> None:
    """Add to the arrays or columns `keys` of the inputs."""
    tasks = pairing.tasks(inputs, output, in_place=in_place)
    throughput = Throughput(quiet=quiet)
    if pairing.is_pipe(tasks[0].source):
        if keys:
            raise CommandError("--key chooses one of several arrays or columns, and a pipe has one array; leave it out")
        with progress_bar(None, quiet=quiet) as progress:
            byte_count = npy.run_pipe(tasks[0], addition, progress)
    else:
        work = [pairing.check(task, addition, keys) for task in tasks]
        byte_count = sum(item.byte_count for item in work)
        with progress_bar(byte_count, quiet=quiet) as progress:
            for item in work:
                item.run(progress)
    throughput.report(f"added to {len(tasks)} file{'' if len(tasks) == 1 else 's'}", byte_count)
