# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add``: which file, in which format."""

from __future__ import annotations

import functools
import os
from typing import Annotated

import typer

from fastpe._cli import options
from fastpe._cli.files import columns, npy, zarr_array
from fastpe._cli.files.addition import Addition
from fastpe._cli.files.target import open_regular
from fastpe._cli.messages import CommandError, report

_tables = (".parquet", ".arrow", ".feather")


def add(
    source: Annotated[str, typer.Argument(metavar="IN", help="A .npy, .parquet or .arrow file, or a .zarr store.")],
    output: Annotated[str | None, options.option("The file to write.", "OUT", "-o", "--output")] = None,
    in_place: Annotated[bool, options.option("Change the .npy file itself.", None, "--in-place")] = False,
    key: Annotated[list[str] | None, options.option("A table's column, or a store's array.", "NAME")] = None,
    seq_axis: Annotated[int, options.option("The axis of the sequence.", "AXIS")] = -2,
    scale: options.Scale = 1.0,
    alpha: options.Alpha = 1.0,
    convention: options.Convention = "vaswani",
    base: options.Base = None,
    offset: options.Offset = 0,
    dtype: options.NewDtype = None,
    threads: options.Threads = None,
    no_clobber: options.NoClobber = False,
    quiet: options.Quiet = False,
) -> None:
    """Add the encoding to embeddings in a file.

    The file may be larger than memory. A new file appears when it is complete. A run with --in-place that is stopped leaves the file partly changed.
    """
    if in_place == (output is not None) or (in_place and no_clobber):
        raise CommandError(
            "the target is missing or given twice, expected -o OUT, also with --no-clobber, or --in-place; give one of them"
        )
    if output is not None and os.path.exists(output) and os.path.samefile(source, output):
        raise CommandError(f"-o is {output}, the input; name another file, or change a .npy file with --in-place")
    encoder = functools.partial(options.encoder_of, convention=convention, base=base, offset=offset)
    new, more = dtype and options.dtype_of(dtype), {"scale": scale, "alpha": alpha, "num_threads": threads}
    addition = Addition(source, output, key or [], encoder, offset, seq_axis, new, no_clobber, quiet, more)
    if os.path.isdir(source):
        byte_count = zarr_array.add(addition)
    else:
        with open_regular(source, writable=in_place) as stream:
            start, suffix = stream.read(6), os.path.splitext(source)[1].lower()
            stream.seek(0)
            is_table = start[:4] == b"PAR1" or start == b"ARROW1" or suffix in _tables
            if not is_table and suffix != ".npy":
                raise CommandError(f"{source} is not a .npy, .parquet or .arrow file, expected one; save it as .npy")
            byte_count = (columns if is_table else npy).add(stream, addition)
    report(f"added to {source}" if output is None else f"wrote {output}", byte_count, quiet=quiet)
