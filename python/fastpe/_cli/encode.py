# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe encode`` and ``fastpe embed``, which make arrays a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from fastpe._cli import npy, options
from fastpe._cli.messages import CommandError
from fastpe._cli.target import open_regular


def encode(
    output: options.Output,
    seq_len: options.SeqLen,
    d_model: options.DModel,
    convention: options.Convention = "vaswani",
    base: options.Base = None,
    offset: options.Offset = 0,
    dtype: options.Dtype = "float32",
    no_clobber: options.NoClobber = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the encoding of positions to a .npy file."""
    encoder = options.encoder_of(d_model, seq_len, convention, base, offset)
    result = npy.Header((seq_len, d_model), False, options.dtype_of(dtype))
    rows = (
        encoder.encode(stop - start, dtype=result.dtype, offset=offset + start, channels=channels)
        for (start, stop), channels in npy.blocks(result.shape, npy.block_bytes // result.dtype.itemsize)
    )
    npy.write(output, result, rows, no_clobber, quiet)


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
        vectors = npy.read_array(stream, npy.read_header(stream, table), table)
    vectors = vectors if dtype is None else npy.as_dtype(vectors, options.dtype_of(dtype))
    with open_regular(ids) as stream:
        header = npy.read_header(stream, ids)
        if header.dtype.kind not in "iu" or not header.shape or header.fortran_order or vectors.ndim != 2:
            found = f"{ids} has {header.dtype} of shape {header.shape}, and {table} shape {vectors.shape}"
            raise CommandError(f"{found}, expected integers [.., L] in C order and [V, D]; save them so")
        d_model = vectors.shape[1]
        encoder = options.encoder_of(d_model, header.shape[-1], convention, base, offset)
        limit = max(1, npy.block_bytes // (d_model * vectors.itemsize))

        def rows() -> Iterator[options.Array]:
            for some, ranges in npy.read_blocks(stream, header, ids, limit):
                if some.min() < 0 or some.max() >= len(vectors):
                    raise CommandError(f"{ids} has ids {some.min()} to {some.max()}, and {table} {len(vectors)} rows")
                first = offset + ranges[-1][0]
                yield encoder.embed(some, vectors, offset=first, scale=scale, alpha=alpha)

        npy.write(output, npy.Header((*header.shape, d_model), False, vectors.dtype), rows(), no_clobber, quiet)
