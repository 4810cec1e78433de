# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe tables`` and ``fastpe identify``: whole arrays, with names in .npz and .safetensors files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import IO, Annotated, Any

import numpy as np
import typer

import fastpe
from fastpe import _core
from fastpe._cli import npy, options
from fastpe._cli.messages import CommandError, OptionError, library, naming
from fastpe._cli.target import new_file, open_regular

# Parts of names that tables of positions have in checkpoints.
_usual_parts = ("pos", "pe", "rope", "rotary", "cos", "sin", "freq")
_forms = ", ".join(_core.table_forms)


def tables(
    output: Annotated[str, options.option("A .npz or .safetensors file; .npy for one array.", "OUT", "-o", "--output")],
    rows: options.Rows,
    config: options.Config = None,
    layer: options.Layer = None,
    layer_type: options.LayerType = None,
    interleaved: options.Interleaved = None,
    rotary_dim: Annotated[int | None, options.option("Number of rotated columns.", "D", min=2)] = None,
    base: options.Base = None,
    scaling: Annotated[
        Any, options.option("As in a config.json: '{\"rope_type\": .., ..}'.", "JSON", parser=options.mapping)
    ] = None,
    offset: options.Offset = 0,
    form: Annotated[
        str, options.option(f"{_forms}.", "FORM", autocompletion=options.among(_core.table_forms))
    ] = "halves",
    dtype: options.Dtype = "float32",
    no_clobber: options.NoClobber = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the cosines and sines of a rotary embedding.

    A config.json describes the embedding, or else --rotary-dim, --base and --scaling do, which also replace what a config
    says. If its layers are not alike, --layer or --layer-type says which are meant. A scaling that depends on a length takes
    the last position plus 1.
    """
    chosen = {"rotary_dim": rotary_dim, "base": base, "scaling": scaling, "interleaved": interleaved}
    rope: Any = embedding(config, layer, layer_type, **chosen, seq_len=max(offset + rows, 0))
    made = rope.tables(rows, offset=offset, form=form, dtype=options.dtype_of(dtype))
    arrays = {"cos": made[0], "sin": made[1]} if isinstance(made, tuple) else {form: made}
    with new_file(output, [".npy", ".npz", ".safetensors"], no_clobber, quiet) as target:
        write_arrays(target, os.path.splitext(output)[1].lower(), arrays)


def write_arrays(target: IO[bytes], suffix: str, arrays: dict[str, Any]) -> None:
    """Write arrays in the format of a suffix, with their names but in a .npy file."""
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
        raise OptionError(f"a .npy file has room for one array, not for {' and '.join(arrays)}; write a .npz file")
    else:
        np.save(target, next(iter(arrays.values())), allow_pickle=False)


def embedding(
    config: str | None, layer: int | None, layer_type: str | None, *, rotary_dim: int | None, **more: Any
) -> fastpe.RotaryEmbedding:
    """The embedding that options describe."""
    if layer is not None and config is not None:
        if layer_type is not None:
            raise OptionError("--layer and --layer-type both say which layers are meant; give one of them")
        layers = fastpe.RotaryEmbedding.layers_from_config(config, rotary_dim=rotary_dim, **more)
        if layer >= len(layers):
            raise OptionError(
                f"--layer is {layer}, and the model has {len(layers)} layers; give 0 to {len(layers) - 1}"
            )
        rope = layers[layer]
        if rope is None:
            raise OptionError(
                f"--layer is {layer}, and this layer is not rotated; leave its queries and keys as they are"
            )
        return rope
    if config is not None:
        return fastpe.RotaryEmbedding.from_config(config, layer_type=layer_type, rotary_dim=rotary_dim, **more)
    if rotary_dim is None or layer is not None or layer_type is not None:
        if layer is None and layer_type is None:
            raise OptionError("neither --config nor --rotary-dim was given; give one of them")
        raise OptionError(f"{'--layer-type' if layer is None else '--layer'} was given without --config; give both")
    # Tables do not depend on the pairing.
    return fastpe.RotaryEmbedding(rotary_dim, **{**more, "interleaved": bool(more.get("interleaved"))})


def identify(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A .npy, .npz or .safetensors file.")],
    key: Annotated[list[str] | None, options.option("Name of the array; twice for cosines and sines.", "NAME")] = None,
) -> None:
    """Find the call that makes a table.

    TABLE has an encoding, the cells of a grid, or cosines and sines. The command exits with 1 if no call that it knows makes the table.
    """
    with open_regular(table) as stream:
        names, load = named_arrays(stream, table)
        chosen = _chosen(table, names, key or [])
        with naming(table, "a file of arrays"):
            arrays = [np.asarray(load(name)) for name in chosen]
    found = fastpe.identify(*arrays)
    print(found)
    if not found:
        raise typer.Exit(1)


def named_arrays(stream: IO[bytes], name: str) -> tuple[list[str], Callable[[str], Any]]:
    """The names of the arrays in an open file, and what loads one of them; a .npy file's has none."""
    start, suffix = stream.read(6), os.path.splitext(name)[1].lower()
    stream.seek(0)
    if start == np.lib.format.MAGIC_PREFIX or suffix == ".npy":
        return [""], lambda _: npy.load(stream, name)
    if start[:2] == b"PK" or suffix == ".npz":
        with naming(name, "a .npz archive"):
            archive: Any = np.lib.npyio.NpzFile(stream, allow_pickle=False)
        if suffix == ".npz" or all(each.endswith(".npy") for each in archive.zip.namelist()):  # others are torch's
            return archive.files, archive.get
    if suffix == ".safetensors":
        safetensors = library("safetensors", name)
        with naming(name, "a safetensors file"):
            # The open file itself: its name may lead to another one by now. Others may truncate a file that is mapped.
            opened = f"/dev/fd/{stream.fileno()}" if os.path.exists("/dev/fd") else name
            file = safetensors.safe_open(opened, "numpy", backend="pread")
            names = [*file.keys()]
            if any(file.get_slice(each).get_dtype() == "BF16" for each in names):
                library("ml_dtypes", name)  # which registers the dtype
        return names, file.get_tensor
    raise CommandError(f"{name} is not a .npy, .npz or .safetensors file, expected one; write it with numpy.save")


def _chosen(file: str, names: list[str], keys: Sequence[str]) -> Sequence[str]:
    """The keys of one array, or of cosines and sines."""
    if len(keys) in (1, 2) and set(keys) <= set(names) - {""}:
        return keys
    if not keys and len(names) == 1:
        return names
    pair = sorted(names, key=lambda name: "cos" not in name)
    if not keys and len(names) == 2 and pair[1] == pair[0].replace("cos", "sin") != pair[0]:
        return pair
    likely = sorted(names, key=lambda name: not any(part in name.lower() for part in _usual_parts))
    given = f"--key is {' and '.join(keys)}, and {file}" if keys else file
    if names == [""]:
        raise CommandError(f"{given} has one array without a name; leave --key out")
    some = f"{len(names)} arrays ({', '.join(likely)})"
    raise CommandError(f"{given} has {some}; choose with --key NAME, or cosines and sines with --key COS --key SIN")
