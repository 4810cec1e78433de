# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add``: which file, in which format."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from fastpe._cli import columns, npy, options, zarr_array
from fastpe._cli.messages import CommandError
from fastpe._cli.target import open_regular


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
    no_clobber: options.NoClobber = False,
    quiet: options.Quiet = False,
) -> None:
    """Add the encoding to embeddings in a file.

    The file may be larger than memory. A new file appears when it is complete. A run with --in-place that is stopped leaves the file partly changed.
    """
    if in_place == (output is not None) or (in_place and no_clobber):
        found = "the target is missing or given twice, expected -o OUT, also with --no-clobber, or --in-place"
        raise CommandError(f"{found}; give one of them")
    if output is not None and os.path.exists(output) and os.path.samefile(source, output):
        raise CommandError(f"-o is {output}, the input; name another file, or change a .npy file with --in-place")
    addition = options.Addition(
        *(source, output, key or [], seq_axis, scale, alpha, convention, base, offset),
        *(dtype and options.dtype_of(dtype), no_clobber, quiet),
    )
    if os.path.isdir(source):
        zarr_array.add(addition)
        return
    with open_regular(source, writable=in_place) as stream:
        start, suffix = stream.read(6), os.path.splitext(source)[1].lower()
        stream.seek(0)
        if start[:4] == b"PAR1" or start == b"ARROW1" or suffix in (".parquet", ".arrow", ".feather"):
            columns.add(stream, addition)
        elif suffix == ".npy":
            npy.add(stream, addition)
        else:
            raise CommandError(f"{source} is not a .npy, .parquet or .arrow file, expected one; save it as .npy")
