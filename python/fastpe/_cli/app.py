# SPDX-License-Identifier: BSD-3-Clause
"""The commands and their options."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console

import fastpe
from fastpe import _core
from fastpe._arguments import nearest
from fastpe._cli.errors import CommandError, WrongUsage
from fastpe._cli.output import require_targets

app = typer.Typer(
    name="fastpe",
    help="Compute exact sinusoidal positional encodings and rotary embeddings on the CPU.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"fastpe {fastpe.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def _integer(name: str, at_least: int | None = None) -> Callable[[str | int], int]:
    """Make a parser of integers on the command line, since typer's own messages are those of its libraries."""

    def parse(text: str | int) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or (at_least is not None and number < at_least):
            least = "" if at_least is None else f" that is at least {at_least}"
            raise WrongUsage(f"{name} is {text}, expected an integer{least}")
        return number

    return parse


def _number(name: str, *, above_zero: bool = False) -> Callable[[str | float], float]:
    """Make a parser of numbers on the command line."""

    def parse(text: str | float) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or (above_zero and number <= 0.0):
            raise WrongUsage(f"{name} is {text}, expected a finite number{' above 0' if above_zero else ''}")
        return number

    return parse


@app.command("demo")
def _demo(
    batch: Annotated[
        int, typer.Option(parser=_integer("--batch", 1), metavar="B", help="Number of sequences in the batch.")
    ] = 32,
    seq_len: Annotated[
        int, typer.Option(parser=_integer("--seq-len", 1), metavar="L", help="Number of positions in a sequence.")
    ] = 512,
    d_model: Annotated[
        int, typer.Option(parser=_integer("--d-model", 1), metavar="D", help="Width of the embeddings.")
    ] = 768,
) -> None:
    """Encode, add, check and time a built-in batch.

    The command exits with 1 if a value is further from a float64 NumPy reference than rounding explains.
    """
    from fastpe._cli.commands import demo

    if not demo.run(Console(), batch=batch, seq_len=seq_len, d_model=d_model):
        raise typer.Exit(1)


def _examples(*lines: str) -> str:
    # \b keeps the lines as they are.
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def _convention_names(incomplete: str) -> list[str]:
    return [name for name in fastpe.conventions if name.startswith(incomplete)]


_Output = Annotated[str, typer.Option("-o", "--output", metavar="OUT", help="The file to write, or - for a pipe.")]
_Convention = Annotated[
    str, typer.Option(autocompletion=_convention_names, metavar="NAME", help="A name that `fastpe conventions` lists.")
]
_base = _number("--base", above_zero=True)
_Base = Annotated[
    float | None,
    typer.Option(parser=_base, metavar="B", help="Base of the wavelengths, which replaces that of the convention."),
]
_Offset = Annotated[
    int, typer.Option(parser=_integer("--offset"), metavar="POSITION", help="Position of the first row.")
]
_Dtype = Annotated[str, typer.Option(metavar="DTYPE", help="float16, bfloat16, float32 or float64.")]
_Config = Annotated[str | None, typer.Option(metavar="FILE", help="A model's config.json.")]
_LayerType = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Type of layers, by its name in the config; needed if the types differ."),
]
_Interleaved = Annotated[
    bool | None,
    typer.Option(
        "--interleaved/--no-interleaved",
        help="Pairing of a model that fastpe does not know; cosines and sines do not depend on it.",
    ),
]
_Threads = Annotated[
    int | None, typer.Option(parser=_integer("--threads", 1), metavar="N", help="Largest number of threads.")
]
_NoClobber = Annotated[bool, typer.Option("--no-clobber", help="Refuse to replace a file that exists.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


@app.command(
    "encode",
    epilog=_examples(
        "fastpe encode --seq-len 512 --d-model 768 -o pe.npy",
        "fastpe encode --seq-len 512 --d-model 768 --convention fairseq -o pe.npy",
    ),
)
def _encode(
    output: _Output,
    seq_len: Annotated[int, typer.Option(parser=_integer("--seq-len", 0), metavar="L", help="Number of positions.")],
    d_model: Annotated[int, typer.Option(parser=_integer("--d-model", 1), metavar="D", help="Width of the encoding.")],
    convention: _Convention = "vaswani",
    base: _Base = None,
    offset: _Offset = 0,
    dtype: _Dtype = "float32",
    threads: _Threads = None,
    no_clobber: _NoClobber = False,
    quiet: _Quiet = False,
) -> None:
    """Write the encoding of positions to a .npy file."""
    from fastpe._cli.commands import encode
    from fastpe._cli.options import EncodingOptions, dtype_of

    options = EncodingOptions(convention, base, offset, threads)
    require_targets([output], no_clobber=no_clobber)
    encode.run(
        options,
        output,
        seq_len=seq_len,
        d_model=d_model,
        dtype=dtype_of(dtype),
        no_clobber=no_clobber,
        quiet=quiet,
    )


def _forms(incomplete: str) -> list[str]:
    return [name for name in _core.table_forms if name.startswith(incomplete)]


@app.command(
    "rotary",
    epilog=_examples(
        "fastpe rotary --config config.json --seq-len 4096 --dtype float16 -o a.npz",
        "fastpe rotary --config gemma3.json --layer-type sliding_attention --seq-len 512 -o b.npz",
        "fastpe rotary --dim 128 --base 1e6 --seq-len 4096 -o c.safetensors",
        "fastpe rotary --dim 64 --seq-len 10 --offset 1000 --form angles -o d.npy",
    ),
)
def _rotary(
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT",
            help="A .npz or .safetensors file; for forms of one array, also a .npy file or -.",
        ),
    ],
    seq_len: Annotated[
        int,
        typer.Option(
            parser=_integer("--seq-len", 0),
            metavar="L",
            help="Number of positions; a scaling that depends on a length takes the last position plus 1.",
        ),
    ],
    config: _Config = None,
    layer_type: _LayerType = None,
    interleaved: _Interleaved = None,
    dim: Annotated[
        int | None,
        typer.Option(
            parser=_integer("--dim", 2),
            metavar="D",
            help="Number of columns that are rotated; needed without --config.",
        ),
    ] = None,
    base: Annotated[
        float | None,
        typer.Option(parser=_base, metavar="B", help="Base of the frequencies without --config.", show_default="10000"),
    ] = None,
    offset: _Offset = 0,
    form: Annotated[
        str | None,
        typer.Option(
            autocompletion=_forms,
            metavar="FORM",
            help=f"{', '.join(_core.table_forms)}; the default is that of the model's own module, or halves.",
        ),
    ] = None,
    dtype: _Dtype = "float32",
    threads: _Threads = None,
    no_clobber: _NoClobber = False,
    quiet: _Quiet = False,
) -> None:
    """Write the cosines and sines of a rotary embedding.

    A config.json describes the embedding, or else --dim and --base do, without a scaling.
    """
    from fastpe._cli.commands import rotary
    from fastpe._cli.options import RotaryOptions, dtype_of

    options = RotaryOptions(config, layer_type, interleaved, dim, base)
    require_targets([output], no_clobber=no_clobber)
    # The longest sequence that has all its positions in the file.
    length = max(offset + seq_len, 0)
    rotary.run(
        options.embedding(length),
        output,
        seq_len=seq_len,
        offset=offset,
        form=form,
        dtype=dtype_of(dtype),
        num_threads=threads,
        no_clobber=no_clobber,
        quiet=quiet,
    )


@app.command(
    "add",
    epilog=_examples(
        "fastpe add embeddings.npy -o with-positions.npy",
        "fastpe add embeddings.npy --in-place",
        "fastpe add shards/ -o with-positions/ --convention concat --scale 27.71",
        "fastpe add batch.npz --key inputs -o batch-with-positions.npz",
        "fastpe add rows.parquet --key embeddings -o rows-with-positions.parquet",
        "fastpe add store.zarr --key embeddings --in-place",
        "cat embeddings.npy | fastpe add - -o - > with-positions.npy",
    ),
)
def _add(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="IN",
            hidden=True,
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="OUT", help="The file to write, a directory for several files, or - for a pipe."
        ),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Change the .npy files or .zarr stores themselves.")
    ] = False,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Name of the array, or of the column of a table, to add to; all others are copied."
        ),
    ] = None,
    seq_axis: Annotated[
        int, typer.Option(parser=_integer("--seq-axis"), metavar="AXIS", help="The axis of the sequence.")
    ] = -2,
    scale: Annotated[
        float, typer.Option(parser=_number("--scale"), metavar="S", help="S in x * S + A * encoding.")
    ] = 1.0,
    alpha: Annotated[
        float, typer.Option(parser=_number("--alpha"), metavar="A", help="A in x * S + A * encoding.")
    ] = 1.0,
    convention: _Convention = "vaswani",
    base: _Base = None,
    offset: _Offset = 0,
    dtype: Annotated[
        str | None,
        typer.Option(metavar="DTYPE", help="Convert to float16, bfloat16, float32 or float64, then add."),
    ] = None,
    threads: _Threads = None,
    no_clobber: _NoClobber = False,
    quiet: _Quiet = False,
) -> None:
    """Add the encoding to embeddings in files.

    IN is a .npy, .npz, .parquet or .arrow file, a .zarr store, a directory of these, a pattern, or - for a pipe.

    Files may be larger than memory. A new file appears under its name when it is complete. If it replaces a file, it has the
    same permissions, but other hard links keep the old contents. --in-place is not as safe: if it is stopped in the
    middle, the file is partly changed.
    """
    from fastpe._cli.commands import add
    from fastpe._cli.files.addition import Addition
    from fastpe._cli.options import EncodingOptions, dtype_of

    options = EncodingOptions(convention, base, offset, threads)
    addition = Addition(options, seq_axis, scale, alpha, None if dtype is None else dtype_of(dtype))
    add.run(addition, inputs, output, in_place=in_place, keys=key or [], no_clobber=no_clobber, quiet=quiet)


@app.command("info")
def _info(
    json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
) -> None:
    """Show the build, the machine and the limits."""
    from fastpe._cli.commands import info

    info.run(Console(), as_json=json)


_pictures = ("heatmap", "wavelengths", "waves", "similarity", "error", "rotary")
# What draws them in Python, where it has another name.
_drawn_by = {"rotary_wavelengths": "rotary", "float32_error": "error"}


def _picture(text: str) -> str:
    if text in _pictures:
        return text
    near = _drawn_by.get(text.replace("-", "_")) or nearest(text, _pictures)
    hint = f"did you mean {near}?" if near else f"expected one of {', '.join(_pictures)}"
    raise WrongUsage(f"PICTURE is {text}, which is not known; {hint}")


def _picture_names(incomplete: str) -> list[str]:
    return [name for name in _pictures if name.startswith(incomplete)]


@app.command(
    "plot",
    epilog=_examples(
        "fastpe plot heatmap -o heatmap.png",
        "fastpe plot heatmap --convention vaswani --convention mlx -o both.svg",
        "fastpe plot error --d-model 512 --dark -o error.png",
        "fastpe plot rotary --config config.json -o rotary.png",
    ),
)
def _plot(
    picture: Annotated[
        str, typer.Argument(parser=_picture, autocompletion=_picture_names, metavar="PICTURE", hidden=True)
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT",
            help="A .png, .svg or .pdf file; without -o, kitty and iTerm2 show the picture.",
        ),
    ] = None,
    seq_len: Annotated[
        int | None,
        typer.Option(
            parser=_integer("--seq-len", 2),
            metavar="L",
            help="Number of positions; for rotary, the length that a scaling may depend on.",
            show_default="100",
        ),
    ] = None,
    d_model: Annotated[
        int, typer.Option(parser=_integer("--d-model", 1), metavar="D", help="Width of the encoding.")
    ] = 128,
    convention: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=_convention_names,
            metavar="NAME",
            help="A name that `fastpe conventions` lists; several are drawn side by side.",
        ),
    ] = None,
    base: _Base = None,
    last_position: Annotated[
        int,
        typer.Option(
            parser=_integer("--last-position", 10), metavar="POSITION", help="Last position in the picture of errors."
        ),
    ] = 1_000_000,
    config: _Config = None,
    layer_type: _LayerType = None,
    interleaved: _Interleaved = None,
    dark: Annotated[bool, typer.Option("--dark", help="Draw light colours on a dark background.")] = False,
    no_clobber: _NoClobber = False,
    quiet: _Quiet = False,
) -> None:
    """Draw an encoding, or the frequencies of a rotary embedding.

    PICTURE is one of these:

    \b
      heatmap      the values of an encoding
      wavelengths  the number of positions in one turn, for each frequency
      waves        the values of single dimensions
      similarity   the dot products of two positions' encodings
      error        how far the usual float32 code is off
      rotary       the wavelengths of the model of --config, with its
                   scaling and without
    """  # noqa: D301
    from fastpe._cli.commands import plot
    from fastpe._cli.options import RotaryOptions

    if output is not None:
        require_targets([output], no_clobber=no_clobber)
    if picture == "rotary":
        if config is None:
            raise CommandError("plot rotary draws the model of a config.json; name the file with --config")
        options = RotaryOptions(config, layer_type, interleaved, base=base)
        plot.run_rotary(options.embedding(seq_len), output, dark=dark, no_clobber=no_clobber, quiet=quiet)
        return
    if config is not None:
        raise CommandError(f"--config is {config}, which plot rotary draws, and not {picture}; leave it out")
    seq_len = 100 if seq_len is None else seq_len
    encodings = [fastpe.PositionalEncoding(d_model, convention=name, base=base) for name in convention or ["vaswani"]]
    plot.run(
        picture,
        encodings,
        output,
        seq_len=seq_len,
        last_position=last_position,
        dark=dark,
        no_clobber=no_clobber,
        quiet=quiet,
    )


@app.command(
    "identify",
    epilog=_examples(
        "fastpe identify pe.npy",
        "fastpe identify model.safetensors --key encoder.embed_positions.weight",
        "fastpe identify rotary.npz --key cos --key sin",
    ),
)
def _identify(
    table: Annotated[str, typer.Argument(metavar="TABLE", hidden=True)],
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Name of the array, if there are several; give it twice for cosines and sines, in this order.",
        ),
    ] = None,
) -> None:
    """Find the call that makes a table.

    TABLE is a .npy, .npz or .safetensors file with an encoding [L, d_model], the cells of a grid, or the cosines and
    sines of a rotary embedding.

    The command exits with 1 if no call that it knows makes the table.
    """
    from fastpe._cli.commands import identify

    if not identify.run(table, key or []):
        raise typer.Exit(1)


@app.command("conventions")
def _conventions(
    name: Annotated[str | None, typer.Argument(metavar="NAME", autocompletion=_convention_names, hidden=True)] = None,
) -> None:
    """List the conventions, or show the one that NAME says.

    For each convention, it prints the formula, the systems that use it, and the source.
    """
    from fastpe._cli.commands import conventions

    conventions.run(name)
