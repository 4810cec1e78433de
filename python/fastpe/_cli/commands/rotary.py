# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe rotary``: the cosines and sines of a rotary embedding as a file."""

from __future__ import annotations

from typing import Any

import numpy as np

import fastpe
from fastpe._cli.files import named_arrays
from fastpe._cli.output import open_target
from fastpe._cli.progress import Summary


def run(
    rope: fastpe.RotaryEmbedding,
    output: str,
    *,
    seq_len: int,
    offset: int,
    form: str | None,
    dtype: np.dtype[Any],
    num_threads: int | None,
    no_clobber: bool,
    quiet: bool,
) -> None:
    """Write the tables of `seq_len` positions."""

    def arrays(rows: int) -> named_arrays.Arrays:
        tables = rope.tables(rows, offset=offset, form=form, dtype=dtype, num_threads=num_threads)
        if isinstance(tables, tuple):
            return dict(zip(("cos", "sin"), tables, strict=True))
        return {form or rope.form: tables}

    summary = Summary(quiet=quiet)
    # Tables without rows show whether the file can hold them.
    write = named_arrays.writer_of(output, arrays(0))
    whole = arrays(seq_len)
    byte_count = sum(array.nbytes for array in whole.values())
    with open_target(output, byte_count, no_clobber=no_clobber) as target:
        write(target, whole)
    summary.report(f"wrote {' and '.join(whole)} of {seq_len} positions", byte_count)
