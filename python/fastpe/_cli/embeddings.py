# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe encode``, ``embed`` and ``add``, which make arrays a block at a time, and ``fastpe resize``."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import typer

from fastpe import resize_conventions, resize_table
from fastpe._cli import npy, options
from fastpe._cli.messages import CommandError, OptionError, library
from fastpe._cli.target import open_regular


def encode(
    output: options.Output,
    rows: options.Rows,
    d_model: options.DModel,
    convention: options.Convention = "vaswani",
    base: options.Base = None,
    offset: options.Offset = 0,
    dtype: options.Dtype = "float32",
    no_clobber: options.NoClobber = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the encoding of positions to a .npy file."""
    encoder, kind = options.encoder_of(d_model, rows, convention, base, offset), options.dtype_of(dtype)
    pieces = (
        encoder.encode(len(block), dtype=kind, offset=offset + block.start)
        for block in npy.blocks(rows, d_model * kind.itemsize, quiet)
    )
    npy.write(output, (rows, d_model), kind, pieces, no_clobber, quiet)


def embed(
    ids: Annotated[str, typer.Argument(metavar="IDS", help="A .npy file of token ids [.., L].")],
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A .npy file of embeddings [V, D].")],
    output: options.Output,
    scale: options.Scale = 1.0,
    alpha: options.Alpha = 1.0,
    convention: options.Convention = "vaswani",
    base: options.Base = None,
    offset: options.Offset = 0,
    dtype: options.NewDtype = None,
    no_clobber: options.NoClobber = False,
    quiet: options.Quiet = False,
) -> None:
    """Embed token ids and add the encoding.

    The .npy file OUT has the rows TABLE[IDS] * S + A * encoding. TABLE is read into memory; IDS and the result may be larger than memory.
    """
    with open_regular(table) as stream:
        vectors = npy.load(stream, table)
    vectors = vectors if dtype is None else npy.as_dtype(vectors, options.dtype_of(dtype))
    with open_regular(ids) as stream:
        shape, fortran_order, kind = npy.read_header(stream, ids)
        if kind.kind not in "iu" or not shape or fortran_order or vectors.ndim != 2:
            found = f"{ids} has {kind} of shape {shape}, and {table} shape {vectors.shape}"
            swapped = vectors.dtype.kind in "iu" and kind.kind not in "iu"
            remedy = f"give {table} and then {ids}" if swapped else "save them so"
            raise CommandError(f"{found}, expected integers [.., L] in C order and [V, D]; {remedy}")
        d_model = vectors.shape[1]
        encoder = options.encoder_of(d_model, shape[-1], convention, base, offset)
        first = encoder.convention.first_position + offset

        def pieces() -> Iterator[options.Array]:
            for rows in npy.blocks(math.prod(shape), d_model * vectors.itemsize, quiet):
                some = npy.read(stream, ids, kind, len(rows))
                if some.min() < 0 or some.max() >= len(vectors):
                    raise CommandError(
                        f"{ids} has ids {some.min()} to {some.max()}, and {table} only rows 0 to {len(vectors) - 1}"
                    )
                positions = first + np.arange(rows.start, rows.stop) % shape[-1]
                yield encoder.embed(some, vectors, positions=positions, scale=scale, alpha=alpha)

        npy.write(output, (*shape, d_model), vectors.dtype, pieces(), no_clobber, quiet)


def resize(
    source: Annotated[str, typer.Argument(metavar="TABLE", help="A .npy file of a learned grid, [N, D] or [1, N, D].")],
    output: options.Output,
    shape: Annotated[str, options.option("The new grid, such as 24x24.", "HxW", parser=options.grid_shape)],
    convention: Annotated[
        str, options.option("See `fastpe conventions`.", "NAME", autocompletion=options.among(resize_conventions))
    ],
    class_tokens: Annotated[int, options.option("Rows in front that belong to no cell.", "N", min=0)] = 0,
    trained_shape: Annotated[
        str | None, options.option("The grid of TABLE, if it is no square.", "HxW", parser=options.grid_shape)
    ] = None,
    dtype: options.NewDtype = None,
    no_clobber: options.NoClobber = False,
    quiet: options.Quiet = False,
) -> None:
    """Resize a learned grid of positions.

    The .npy file OUT has the class tokens and then the new cells, in the dtype of TABLE or of --dtype.
    """
    with open_regular(source) as stream:
        table = npy.load(stream, source)
    table = table if dtype is None else npy.as_dtype(table, options.dtype_of(dtype))
    grid: Any = shape  # its parser has made numbers of it
    trained: Any = trained_shape
    name: Any = convention
    resized = resize_table(table, grid, convention=name, trained_shape=trained, class_tokens=class_tokens)
    npy.write(output, resized.shape, resized.dtype, [resized], no_clobber, quiet)


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
        given = "--no-clobber was given, and it is for -o" if output is None else "-o and --in-place were both given"
        given = given if in_place else "neither -o OUT nor --in-place was given"
        raise OptionError(f"{given}; give {'only --in-place' if in_place and output is None else 'one of them'}")
    if output is not None and os.path.exists(output) and os.path.samefile(source, output):
        raise OptionError(f"-o is {output}, the input; name another file, or change a .npy file with --in-place")
    factors, new_dtype = {"scale": scale, "alpha": alpha}, dtype and options.dtype_of(dtype)
    addition = options.Addition(
        source, output, key or [], seq_axis, factors, convention, base, offset, new_dtype, no_clobber, quiet
    )
    if os.path.isdir(source):
        library("zarr", source)
        from fastpe._cli import zarr_array

        return zarr_array.add(addition)
    with open_regular(source, writable=in_place) as stream:
        start, suffix = stream.read(6), os.path.splitext(source)[1].lower()
        stream.seek(0)
        if start[:4] == b"PAR1" or start == b"ARROW1" or suffix in (".parquet", ".arrow", ".feather"):
            library("pyarrow", source)
            from fastpe._cli import columns

            return columns.add(stream, addition)
        if suffix == ".npy":
            return npy.add(stream, addition)
    raise CommandError(f"{source} is not a .npy, .parquet, .arrow or .feather file; save its array with numpy.save")
