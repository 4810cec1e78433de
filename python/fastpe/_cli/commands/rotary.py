# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe rotary``: the cosines and sines of a rotary embedding."""

from __future__ import annotations

import functools
import json
import os
from typing import Annotated, Any

import fastpe
from fastpe import _core
from fastpe._cli import options
from fastpe._cli.files import named_arrays
from fastpe._cli.files.target import new_file, open_regular
from fastpe._cli.messages import CommandError, reading, report

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
    threads: options.Threads = None,
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
    with new_file(output, named_arrays.writers, no_clobber) as target:
        tables = make(seq_len, num_threads=threads)
        arrays = {"cos": tables[0], "sin": tables[1]} if isinstance(tables, tuple) else {form or rope.form: tables}
        named_arrays.writers[os.path.splitext(output)[1].lower()](target, arrays)
    report(f"wrote {output}", sum(array.nbytes for array in arrays.values()), quiet=quiet)


def embedding(config: str | None, dim: int | None, base: float | None, **more: Any) -> fastpe.RotaryEmbedding:
    """The embedding that options describe."""
    if config is None:
        if dim is None or more["layer_type"] is not None:
            raise CommandError("there is no --config, expected one, or --dim without --layer-type; give one of them")
        # Tables do not depend on the pairing.
        return fastpe.RotaryEmbedding(dim, interleaved=bool(more["interleaved"]), base=base)
    if dim is not None or base is not None:
        raise CommandError("--config describes the embedding, and so do --dim and --base; give one of them")
    described: Any = config
    if os.path.exists(config) and not os.path.isdir(config):
        with open_regular(config) as stream, reading(config, "a model's config.json"):
            described = json.loads(stream.read(1 << 26))
            if not isinstance(described, dict):
                raise TypeError("it is not a mapping")
    return fastpe.RotaryEmbedding.from_config(described, **more)
