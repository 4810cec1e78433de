# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe encode`` and ``embed``, which make arrays a block at a time, and ``fastpe resize``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import typer

from fastpe import resize_conventions, resize_table
from fastpe._cli import npy, options
from fastpe._cli.messages import CommandError
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
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A .npy file of a learned grid, [N, D] or [1, N, D].")],
    output: options.Output,
    shape: Annotated[str, options.option("The new grid, such as 24x24.", "HxW", parser=options.grid_shape)],
    convention: Annotated[
        str | None,
        options.option("See `fastpe conventions`.", "NAME", autocompletion=options.among(resize_conventions)),
    ] = None,
    mode: Annotated[str | None, options.option("In torch's words, instead of --convention.", "MODE")] = None,
    align_corners: Annotated[
        bool | None, options.option("With --mode, as in torch.", None, "--align-corners/--no-align-corners")
    ] = None,
    antialias: Annotated[
        bool | None, options.option("With --mode, as in torch.", None, "--antialias/--no-antialias")
    ] = None,
    class_tokens: Annotated[int, options.option("Rows in front that belong to no cell.", "N", min=0)] = 0,
    trained_shape: Annotated[
        Any, options.option("The grid of TABLE, if it is not a square.", "HxW", parser=options.grid_shape)
    ] = None,
    dtype: options.NewDtype = None,
    no_clobber: options.NoClobber = False,
    quiet: options.Quiet = False,
) -> None:
    """Resize a learned grid of positions.

    The .npy file OUT has the class tokens and then the new cells, in the dtype of TABLE or of --dtype.
    """
    with open_regular(table) as stream:
        cells = npy.load(stream, table)
    cells = cells if dtype is None else npy.as_dtype(cells, options.dtype_of(dtype))
    words: dict[str, Any] = {
        "convention": convention,
        "mode": mode,
        "align_corners": align_corners,
        "antialias": antialias,
    }
    grid: Any = shape  # its parser has made numbers of it
    resized = resize_table(cells, grid, **words, trained_shape=trained_shape, class_tokens=class_tokens)
    npy.write(output, resized.shape, resized.dtype, [resized], no_clobber, quiet)
