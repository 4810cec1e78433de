# SPDX-License-Identifier: BSD-3-Clause
"""Options that several commands have, and what they stand for."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

import numpy as np
import typer

import fastpe
from fastpe._extras import needed


def option(help: str, metavar: str | None, *names: str, **more: Any) -> Any:
    """An option whose help shows `metavar` instead of a type of Python's."""
    return typer.Option(*names, metavar=metavar, help=help, **more)


def among(names: Iterable[str]) -> Callable[[str], list[str]]:
    """What a shell completes."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


complete_conventions = among(fastpe.conventions)
DtypeName = Literal["float16", "bfloat16", "float32", "float64"]
Output = Annotated[str, option("The file to write.", "OUT", "-o", "--output")]
SeqLen = Annotated[int, option("Number of positions.", "L", min=0)]
DModel = Annotated[int, option("Width of the encoding.", "D", min=1)]
Convention = Annotated[str, option("See `fastpe conventions`.", "NAME", autocompletion=complete_conventions)]
Base = Annotated[float | None, option("Base of the wavelengths.", "B")]
Offset = Annotated[int, option("Position of the first row.", "POSITION")]
Scale = Annotated[float, option("S in x * S + A * encoding.", "S")]
Alpha = Annotated[float, option("A in x * S + A * encoding.", "A")]
Dtype = Annotated[DtypeName, option("float16, bfloat16, float32 or float64.", "DTYPE")]
NewDtype = Annotated[
    DtypeName | None, option("Convert to this dtype first; bfloat16 names what NumPy saves as V2.", "DTYPE")
]
Threads = Annotated[int | None, option("Largest number of threads.", "N", min=1)]
NoClobber = Annotated[bool, option("Refuse to replace a file.", None, "--no-clobber")]
Quiet = Annotated[bool, option("Print only errors.", None, "-q", "--quiet")]
Config = Annotated[str | None, option("A model's config.json.", "FILE")]
LayerType = Annotated[str | None, option("Type of layers in the config, if they differ.", "NAME")]
Interleaved = Annotated[
    bool | None, option("Pairing, if fastpe does not know the model.", None, "--interleaved/--no-interleaved")
]


def dtype_of(name: DtypeName) -> np.dtype[Any]:
    """A dtype from its name."""
    if name == "bfloat16":
        with needed("--dtype bfloat16", "ml_dtypes"):
            importlib.import_module("ml_dtypes")  # which registers the name
    return np.dtype(name)


def encoder_of(
    d_model: int, seq_len: int, convention: str, base: float | None, offset: int
) -> fastpe.PositionalEncoding:
    """The encoder, at positions that it can encode: that is known before anything is written."""
    encoder = fastpe.PositionalEncoding(d_model, convention=convention, base=base)
    for row in (0, seq_len - 1) if seq_len else ():
        encoder.encode(1, offset=offset + row, channels=(0, 1))
    return encoder
