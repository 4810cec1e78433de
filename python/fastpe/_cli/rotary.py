# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe rotary``: the cosines and sines of a rotary embedding."""

from __future__ import annotations

import functools
import os
from typing import IO, Annotated, Any

import numpy as np

import fastpe
from fastpe import _core
from fastpe._cli import options
from fastpe._cli.messages import CommandError, library
from fastpe._cli.target import new_file

_forms = ", ".join(_core.table_forms)
Form = Annotated[
    str | None,
    options.option(f"{_forms}; by default the model's.", "FORM", autocompletion=options.among(_core.table_forms)),
]


def rotary(
    output: Annotated[str, options.option("A .npz or .safetensors file; .npy for one array.", "OUT", "-o", "--output")],
    seq_len: options.SeqLen,
    config: options.Config = None,
    layer_type: options.LayerType = None,
    interleaved: options.Interleaved = None,
    dim: Annotated[int | None, options.option("Number of rotated columns, without --config.", "D", min=2)] = None,
    base: options.Base = None,
    offset: options.Offset = 0,
    form: Form = None,
    dtype: options.Dtype = "float32",
    no_clobber: options.NoClobber = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the cosines and sines of a rotary embedding.

    A config.json describes the embedding, or else --dim and --base do. A scaling that depends on a length takes the last
    position plus 1.
    """
    length = max(offset + seq_len, 0)
    rope = embedding(config, dim, base, layer_type=layer_type, interleaved=interleaved, seq_len=length)
    make: Any = functools.partial(rope.tables, offset=offset, form=form, dtype=options.dtype_of(dtype))
    make(0)  # which shows whether there are such tables
    with new_file(output, [".npy", ".npz", ".safetensors"], no_clobber, quiet) as target:
        tables = make(seq_len)
        arrays = {"cos": tables[0], "sin": tables[1]} if isinstance(tables, tuple) else {form or rope.form: tables}
        write_arrays(target, os.path.splitext(output)[1].lower(), arrays)


def write_arrays(target: IO[bytes], suffix: str, arrays: dict[str, Any]) -> None:
    """Write arrays in the format of a suffix."""
    if suffix == ".npz":
        np.savez(target, **arrays)
    elif suffix == ".safetensors":
        library("safetensors", "-o .safetensors")
        from safetensors import SafetensorError, numpy

        try:
            target.write(numpy.save(arrays))
        except SafetensorError as error:
            raise CommandError(f"safetensors: {error}; write a .npz file, or choose another --dtype") from None
    elif len(arrays) > 1:
        raise CommandError(f"a .npy file has room for one array, not for {' and '.join(arrays)}; write a .npz file")
    else:
        np.save(target, next(iter(arrays.values())), allow_pickle=False)


def embedding(config: str | None, dim: int | None, base: float | None, **more: Any) -> fastpe.RotaryEmbedding:
    """The embedding that options describe."""
    if config is not None:
        if dim is not None or base is not None:
            raise CommandError("--config describes the embedding, and so do --dim and --base; give one of them")
        return fastpe.RotaryEmbedding.from_config(config, **more)
    if dim is None or more["layer_type"] is not None:
        raise CommandError("there is no --config, expected one, or --dim without --layer-type; give one of them")
    # Tables do not depend on the pairing.
    return fastpe.RotaryEmbedding(dim, interleaved=bool(more["interleaved"]), base=base)
