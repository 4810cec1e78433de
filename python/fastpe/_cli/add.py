# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add``: one file, or each of several."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from fastpe._cli import npy, options, several
from fastpe._cli.messages import CommandError, OptionError, library
from fastpe._cli.target import open_regular


def add(
    sources: Annotated[
        list[str], typer.Argument(metavar="IN..", help="A .npy, .parquet or .arrow file, or a .zarr store; or several.")
    ],
    output: Annotated[str | None, options.option("The file to write.", "OUT", "-o", "--output")] = None,
    in_place: Annotated[bool, options.option("Change the .npy files themselves.", None, "--in-place")] = False,
    output_dir: Annotated[
        str | None, options.option("A folder for results with the names of the files.", "DIR")
    ] = None,
    journal: Annotated[
        str | None, options.option("With --in-place: has what is done, which the next run leaves out.", "FILE")
    ] = None,
    skip_existing: Annotated[
        bool, options.option("With --output-dir: leave out files that have a result.", None, "--skip-existing")
    ] = False,
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
    """Add the encoding to embeddings in files.

    A file may be larger than memory. A new file appears when it is complete. Several files, and all with --journal, are done or untouched, however the run ends. A single file that is changed without --journal is partly changed when the run is stopped.
    """
    ways = {"-o": output is not None, "--in-place": in_place, "--output-dir": output_dir is not None}
    given = [name for name, is_given in ways.items() if is_given]
    if len(given) != 1:
        found = f"{' and '.join(given)} were given together" if given else f"none of {', '.join(ways)} was given"
        raise OptionError(f"{found}; give one of them")
    for name, is_given, goes_with in (
        ("--journal", journal is not None, ["--in-place"]),
        ("--skip-existing", skip_existing, ["--output-dir"]),
        ("--no-clobber", no_clobber, ["-o", "--output-dir"]),
    ):
        if is_given and given[0] not in goes_with:
            raise OptionError(f"{name} was given, and it is for {' and '.join(goes_with)}; leave it out")
    if skip_existing and no_clobber:
        raise OptionError("--skip-existing and --no-clobber were given together; give one of them")
    factors = {"scale": scale, "alpha": alpha}
    new_dtype = dtype and options.dtype_of(dtype)
    addition = options.Addition(
        sources[0],
        output,
        in_place,
        key or [],
        seq_axis,
        factors,
        convention,
        base,
        offset,
        new_dtype,
        no_clobber,
        quiet,
    )
    options.encoder_of(64, 1, convention, base, offset)  # so that a wrong name is told once, for all files
    if output_dir is not None:
        several.add_into(output_dir, sources, addition, _add_to_file, skip_existing=skip_existing)
    elif len(sources) > 1 and output is not None:
        raise OptionError(f"-o is {output}, and there are {len(sources)} files; give --output-dir DIR, or --in-place")
    elif len(sources) > 1 or journal is not None:
        several.add_in_place(sources, addition, _add_to_file, journal)
    else:
        _add_to_file(addition)


def _add_to_file(addition: options.Addition) -> None:
    """Add to one file, which its content tells from others, into a new one or in the file itself."""
    source, output = addition.source, addition.output
    if output is not None and os.path.exists(output) and os.path.samefile(source, output):
        raise OptionError(f"-o is {output}, the input; name another file, or change a .npy file with --in-place")
    if os.path.isdir(source):
        library("zarr", source)
        from fastpe._cli import zarr_array

        return zarr_array.add(addition)
    with open_regular(source, writable=output is None) as stream:
        start, suffix = stream.read(6), os.path.splitext(source)[1].lower()
        stream.seek(0)
        if start[:4] == b"PAR1" or start == b"ARROW1" or suffix in (".parquet", ".arrow", ".feather"):
            library("pyarrow", source)
            from fastpe._cli import columns

            return columns.add(stream, addition)
        if suffix == ".npy":
            return npy.add(stream, addition)
    expected = "a .npy, .parquet, .arrow or .feather file, or a .zarr store"
    raise CommandError(f"{source} is not {expected}; save its array with numpy.save")
