# SPDX-License-Identifier: BSD-3-Clause
"""Options that several commands have, and what they stand for."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import typer

from fastpe import PositionalEncoding, conventions, grid_conventions, resize_conventions, rotary_layouts
from fastpe._cli.messages import CommandError, OptionError, library
from fastpe._errors import refused


def option(help: str, metavar: str | None, *names: str, **more: Any) -> Any:
    """An option whose help shows `metavar` instead of a type of Python's."""
    return typer.Option(*names, metavar=metavar, help=help, **more)


def among(names: Iterable[str]) -> Callable[[str], list[str]]:
    """What a shell completes."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


Array = npt.NDArray[Any]

_files = {"--config", "CONFIG", "IDS", "TABLE"}
printed_presets = r"print\(fastpe\.\w+\)"
# What remedies of the library are at a prompt.
_at_prompt = {
    r"give huggingface_hub\.hf_hub_download\('(.+)', 'config.json'\)": r"run hf download \1 config.json --local-dir . and give config.json",
    r"use RotaryEmbedding\.layers_from_config\(config\), which has an entry for each layer": "give layer=, from 0 on",
    printed_presets: "fastpe conventions",
    r"use RotaryEmbedding\.from_config\(config, layer_type=\.\., base=\.\.\) for each type of layers": "give layer_type= and base=",
    r"use fastpe\.RotaryEmbedding$": "fastpe tables writes rotary tables",
}
_argument = r"fastpe\.\w+\([^()]*\)|\b(?P<name>\w+)(=(['\"]?)(?P<value>[\w.]*)\3)?"  # as the library's messages have it; calls stay
complete_conventions = among(conventions)
complete_presets = among([*conventions, *grid_conventions, *resize_conventions, *rotary_layouts])
DtypeName = Literal["float16", "bfloat16", "float32", "float64"]
Output = Annotated[str, option("The file to write.", "OUT", "-o", "--output")]
Rows = Annotated[int, option("Number of rows.", "N", min=0)]
DModel = Annotated[int, option("Width of the encoding.", "D", min=1)]
Convention = Annotated[str, option("See `fastpe conventions`.", "NAME", autocompletion=complete_conventions)]
Base = Annotated[float | None, option("Base of the wavelengths.", "B")]
Offset = Annotated[int, option("Added to the first position.", "N")]
Scale = Annotated[float, option("S in x * S + A * encoding.", "S")]
Alpha = Annotated[float, option("A in x * S + A * encoding.", "A")]
Dtype = Annotated[DtypeName, option("float16, bfloat16, float32 or float64.", "DTYPE")]
NewDtype = Annotated[
    DtypeName | None, option("Convert to this dtype first; bfloat16 names what NumPy saves as V2.", "DTYPE")
]
NoClobber = Annotated[bool, option("Refuse to replace a file.", None, "--no-clobber")]
Quiet = Annotated[bool, option("Print only errors and warnings.", None, "-q", "--quiet")]
Config = Annotated[str | None, option("A model's config.json.", "FILE")]
Layer = Annotated[int | None, option("Number of a layer in the config, from 0 on.", "N", min=0)]
LayerType = Annotated[str | None, option("Type of layers in the config, if they differ.", "NAME")]
Interleaved = Annotated[
    bool | None, option("Pairing, if fastpe does not know the model.", None, "--interleaved/--no-interleaved")
]


def grid_shape(text: str) -> tuple[int, ...]:
    """The lengths of a grid, as in 24x24."""
    if not re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8})?", text):
        raise typer.BadParameter(f"{text!r} is not a height and a width; write them as in 24x24")
    return tuple(map(int, text.split("x")))


def mapping(text: str) -> dict[str, Any]:
    """A mapping written as JSON."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{text!r} is not a mapping; write it as in a config.json")
    return value


def dtype_of(name: DtypeName) -> np.dtype[Any]:
    """A dtype from its name."""
    if name == "bfloat16":
        library("ml_dtypes", "--dtype bfloat16")  # which registers the name
    return np.dtype(name)


def encoder_of(d_model: int, rows: int, convention: Any, base: float | None, offset: int) -> PositionalEncoding:
    """The encoder, at positions that it can encode: that is known before anything is written."""
    encoder = PositionalEncoding(d_model, convention=convention, base=base)
    for row in (0, rows - 1) if rows else ():
        encoder.encode(1, offset=offset + row)
    return encoder


def named_in_errors(command: Callable[..., None]) -> Callable[..., None]:
    """The command, whose errors name its options instead of the library's arguments."""
    names: dict[str, str] = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        (info,) = parameter.annotation.__metadata__
        option = (info.param_decls or [f"--{name.replace('_', '-')}"])[0].partition("/")[0]
        names[name] = info.metavar if isinstance(info, type(typer.Argument())) else option

    def typed(found: re.Match[str]) -> str:
        name, value = found["name"], found["value"]
        if name not in names or (value is None and "_" not in name):  # another word that is spelt so
            return found[0]
        flags = {"True": names[name], "False": names[name].replace("--", "--no-"), "": names[name], None: names[name]}
        return flags.get(value) or f"{names[name]} {value}"

    @functools.wraps(command)
    def named(**arguments: Any) -> None:
        try:
            command(**arguments)
        except (ValueError, TypeError, OSError) as error:
            fields = getattr(error, "_fields", None)
            if fields is None:
                raise
            argument, expected, remedy = fields["argument"], fields["expected"], fields["remedy"]
            for pattern, text in _at_prompt.items():
                remedy = re.sub(pattern, text, remedy)
            found = re.sub(r"\band (\w+) (?=were)", lambda word: f"and {names.get(word[1], word[1])} ", fields["found"])
            if argument == "convention" and found.startswith("is ") and not remedy.endswith("?"):
                served = remedy if re.match("'|systems|fastpe tables", remedy) else ""
                expected, remedy = "", f"{served}{'; ' if served else ''}see fastpe conventions"
            expected, remedy = (re.sub(_argument, typed, text) for text in (expected, remedy))
            if not argument.startswith("config["):  # keys of the file are shown as Python writes them
                argument = re.sub(r"\w+", lambda word: names.get(word[0], word[0]), argument)
            kind = OptionError if argument in {*names.values()} - _files else CommandError
            raise refused(kind, argument, found, expected, remedy) from None

    return named


class Addition(NamedTuple):
    """What ``fastpe add`` does to an array, whatever file it is in."""

    source: str
    output: str | None  # or the file itself
    in_place: bool
    keys: Sequence[str]
    seq_axis: int
    factors: dict[str, Any]  # scale and alpha
    convention: str
    base: float | None
    offset: int
    dtype: np.dtype[Any] | None
    no_clobber: bool
    quiet: bool

    def prepared(self, shape: Sequence[int], found: np.dtype[Any]) -> tuple[PositionalEncoding, int, np.dtype[Any]]:
        """An array's encoder, the axis of its positions, and the dtype to add in, after all checks that need no element."""
        axis = self.seq_axis + len(shape) if self.seq_axis < 0 else self.seq_axis
        if not 0 <= axis < len(shape) - 1:
            wrong = f"{self.source} has shape {list(shape)}, and --seq-axis is {self.seq_axis}"
            if len(shape) < 2:
                raise CommandError(f"{wrong}, expected rows and columns; save x[None] for a single row")
            axes = ", ".join(map(str, range(len(shape) - 1)))
            raise OptionError(f"{wrong}, expected an axis in front of the columns; give one of {axes}")
        is_bits, is_bfloat16 = found.str[1:] == "V2", self.dtype is not None and self.dtype.name == "bfloat16"
        if found.str[1:] not in ("f2", "f4", "f8") and not (is_bits and is_bfloat16):
            remedies = {"i": "token ids need fastpe embed", "u": "token ids need fastpe embed", "c": "save its .real"}
            remedy = remedies.get(found.kind, "save it with .astype('float32')")
            remedy = "if it is bfloat16, give --dtype bfloat16" if is_bits else remedy
            raise CommandError(f"{self.source} has dtype {found}, expected float16, float32 or float64; {remedy}")
        dtype = self.dtype or found.newbyteorder("=")
        encoder = encoder_of(shape[-1], shape[axis], self.convention, self.base, self.offset)
        # The library checks arrays without elements as it does all others.
        encoder.add_(np.empty((0, shape[-1]), dtype), offset=self.offset, **self.factors)
        return encoder, axis, dtype
