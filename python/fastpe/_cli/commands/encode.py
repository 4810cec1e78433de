# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe encode``: the encoding of positions as a .npy file, a block at a time."""

from __future__ import annotations

from typing import IO, Any

import numpy as np

from fastpe._cli.errors import CommandError
from fastpe._cli.files import blocks, npy_stream
from fastpe._cli.options import EncodingOptions
from fastpe._cli.output import is_named_otherwise, open_target
from fastpe._cli.progress import Progress, Summary, progress_bar


def run(
    options: EncodingOptions,
    output: str,
    *,
    seq_len: int,
    d_model: int,
    dtype: np.dtype[Any],
    no_clobber: bool,
    quiet: bool,
) -> None:
    """Write the encoding of `seq_len` positions."""
    if is_named_otherwise(output, [".npy"]):
        raise CommandError(f"-o is {output}, expected a name that ends in .npy: that is what encode writes")
    header = npy_stream.Header((seq_len, d_model), False, dtype)
    summary = Summary(quiet=quiet)
    with (
        open_target(output, header.byte_count, no_clobber=no_clobber) as target,
        progress_bar(header.byte_count, quiet=quiet) as progress,
    ):
        write(options, header, target, progress)
    summary.report(f"encoded {seq_len} positions", header.byte_count)


def write(options: EncodingOptions, header: npy_stream.Header, target: IO[bytes], progress: Progress) -> None:
    """Write a .npy stream that has this header."""
    seq_len, d_model = header.shape
    encoder = options.encoder(d_model)
    options.require_positions(encoder, seq_len)
    npy_stream.write_header(target, header)
    for (start, stop), channels in blocks.blocks(header.shape, blocks.block_bytes // header.dtype.itemsize):
        block = encoder.encode(
            stop - start,
            offset=options.offset + start,
            channels=channels,
            dtype=header.dtype,
            num_threads=options.num_threads,
        )
        npy_stream.write_elements(target, block)
        progress(block.nbytes)
