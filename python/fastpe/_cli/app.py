# SPDX-License-Identifier: BSD-3-Clause
"""The commands and their options."""

from __future__ import annotations

import contextlib
import enum
import math
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.console import Console

import fastpe
from fastpe._cli.errors import CommandError, MissingLibrary, ReaderGone

# Click's own class has no public name in typer.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="fastpe",
    help="Exact sinusoidal positional encodings on the CPU.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


class _Terminated(BaseException):
    """Another process wants this one to end."""


def run(arguments: Sequence[str] | None) -> int:
    """Run the application; every expected failure becomes one line and an exit code."""
    if sys.stderr is None:
        # Where it is closed, print() would turn to standard output, which may be data.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    try:
        with _termination_as_exception():
            result = app(args=None if arguments is None else list(arguments), prog_name="fastpe", standalone_mode=False)
    except _UsageError as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "fastpe"
        return _fail(f"{command}: {error.format_message().rstrip('.')}; see {command} --help", 2)  # type: ignore[attr-defined]
    except (KeyboardInterrupt, typer.Abort):
        return _fail("fastpe: interrupted", 130)
    except _Terminated as end:
        return _fail("fastpe: terminated", 128 + int(end.args[0]))
    except ReaderGone:
        return 141
    except MemoryError as error:
        return _fail(f"fastpe: not enough memory: {error}" if str(error) else "fastpe: not enough memory", 1)
    except OSError as error:
        reason = error.strerror or str(error)
        return _fail(f"fastpe: {error.filename}: {reason}" if error.filename else f"fastpe: {reason}", 1)
    except MissingLibrary as error:
        return _fail(f"fastpe: {error}", 2)
    except (CommandError, ValueError, TypeError) as error:
        return _fail(f"fastpe: {error}", 1)
    if result == 130:
        # Typer's own answer to Ctrl-C.
        return _fail("fastpe: interrupted", 130)
    return result if isinstance(result, int) else 0


@contextlib.contextmanager
def _termination_as_exception() -> Iterator[None]:
    # So that unfinished files are removed; a handler can be set in the main thread alone.
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: object) -> None:
        raise _Terminated(number)

    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    previous = {number: signal.getsignal(number) for number in signals}
    for number in signals:
        # What nohup has switched off stays off.
        if previous[number] == signal.SIG_DFL:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _fail(message: str, exit_code: int) -> int:
    print(" ".join(message.split()), file=sys.stderr)
    return exit_code


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


@app.command()
def demo(
    batch: Annotated[int, typer.Option(min=1, help="Sequences in the batch.")] = 32,
    seq_len: Annotated[int, typer.Option(min=1, help="Positions in a sequence.")] = 512,
    d_model: Annotated[int, typer.Option(min=1, help="Width of the embeddings.")] = 768,
) -> None:
    """Encode, add, check and time a built-in batch.

    Exits with 1 if a value is further from a float64 NumPy reference than rounding explains.
    """
    from fastpe._cli import demo as work

    if not work.run(Console(), batch=batch, seq_len=seq_len, d_model=d_model):
        raise typer.Exit(1)


def _examples(*lines: str) -> str:
    # \b keeps the lines as they are.
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def _convention_names(incomplete: str) -> list[str]:
    return [name for name in fastpe.conventions if name.startswith(incomplete)]


_Output = Annotated[str, typer.Option("-o", "--output", metavar="OUT", help="The file to write, or - for a pipe.")]
_Convention = Annotated[
    str, typer.Option(autocompletion=_convention_names, help="A name that `fastpe conventions` lists.")
]
_Base = Annotated[float | None, typer.Option(help="Base of the wavelengths, instead of the convention's.")]
_Offset = Annotated[int, typer.Option(help="Position of the first row.")]
_Threads = Annotated[int | None, typer.Option(min=1, help="At most this many threads.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


@app.command(
    epilog=_examples(
        "fastpe encode --seq-len 512 --d-model 768 -o pe.npy",
        "fastpe encode --seq-len 512 --d-model 768 --convention fairseq --dtype float64 -o pe.npy",
    )
)
def encode(
    output: _Output,
    seq_len: Annotated[int, typer.Option(min=0, help="Number of positions.")],
    d_model: Annotated[int, typer.Option(min=1, help="Width of the encoding.")],
    convention: _Convention = "vaswani",
    base: _Base = None,
    offset: _Offset = 0,
    dtype: Annotated[str, typer.Option(help="float16, bfloat16, float32 or float64.")] = "float32",
    threads: _Threads = None,
    quiet: _Quiet = False,
) -> None:
    """Write the encoding of positions to a .npy file."""
    from fastpe._cli import formats, transform
    from fastpe._cli.progress import Throughput, progress_bar
    from fastpe._cli.target import open_target

    encoding = transform.Encoding(convention, base, offset, threads)
    element_type = transform.dtype_of(dtype)
    if (named := formats.by_suffix(output)) is not None and ".npy" not in named.suffixes:
        raise CommandError(f"-o is {output}, expected a name that ends in .npy: that is what encode writes")
    byte_count = seq_len * d_model * element_type.itemsize
    throughput = Throughput(quiet=quiet)
    with open_target(output, byte_count) as target, progress_bar(byte_count, quiet=quiet) as progress:
        transform.encode(
            encoding, seq_len=seq_len, d_model=d_model, dtype=element_type, target=target, progress=progress
        )
    throughput.report(f"encoded {seq_len} positions", byte_count)


@app.command(
    epilog=_examples(
        "fastpe add embeddings.npy -o with-positions.npy",
        "fastpe add embeddings.npy --in-place",
        "fastpe add shards/ -o shards-with-positions/ --convention tensor2tensor --scale 27.71",
        "fastpe add batch.npz --key inputs -o batch-with-positions.npz",
        "fastpe add rows.parquet --key embeddings -o rows-with-positions.parquet",
        "fastpe add store.zarr --key embeddings --in-place",
        "cat embeddings.npy | fastpe add - -o - > with-positions.npy",
    )
)
def add(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="IN",
            help=".npy, .npz, .parquet and .arrow files, .zarr stores, directories of them, patterns, or - for a pipe.",
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="OUT", help="The file to write, a directory for many, or - for a pipe."),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Change the .npy files or .zarr stores themselves.")
    ] = False,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Which array of several, or which column of a table; the others are copied."),
    ] = None,
    seq_axis: Annotated[int, typer.Option(help="Which axis is the sequence.")] = -2,
    scale: Annotated[float, typer.Option(help="x * SCALE + encoding.")] = 1.0,
    convention: _Convention = "vaswani",
    base: _Base = None,
    offset: _Offset = 0,
    dtype: Annotated[
        str | None, typer.Option(help="Convert to float16, bfloat16, float32 or float64, then add.")
    ] = None,
    threads: _Threads = None,
    quiet: _Quiet = False,
) -> None:
    """Add the encoding to embeddings in files.

    Files may be larger than memory. A new file appears under its name when it is complete. --in-place has no such safety: stopped in the middle, it leaves
    a file that is partly changed.
    """
    from fastpe._cli import files, numpy_files, transform
    from fastpe._cli.progress import Throughput, progress_bar

    if not math.isfinite(scale):
        raise CommandError(f"--scale is {scale}, expected a finite number")
    encoding = transform.Encoding(convention, base, offset, threads)
    addition = transform.Addition(encoding, seq_axis, scale, None if dtype is None else transform.dtype_of(dtype))
    jobs = files.jobs(inputs, output, in_place=in_place)
    throughput = Throughput(quiet=quiet)
    if files.is_pipe(jobs[0].source):
        if key:
            raise CommandError("--key chooses one of several arrays or columns, and a pipe has one array; leave it out")
        assert jobs[0].target is not None
        with progress_bar(None, quiet=quiet) as progress:
            byte_count = numpy_files.run_pipe(jobs[0].source, jobs[0].target, addition, progress)
    else:
        work = [files.check(job, addition, key or []) for job in jobs]
        byte_count = sum(item.byte_count for item in work)
        with progress_bar(byte_count, quiet=quiet) as progress:
            for item in work:
                item.run(progress)
    throughput.report(f"added to {len(jobs)} file{'' if len(jobs) == 1 else 's'}", byte_count)


@app.command()
def info(
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")] = False,
) -> None:
    """Show the build, the machine and the limits."""
    from fastpe._cli import info as work

    work.run(Console(), as_json=json)


class Picture(str, enum.Enum):
    """What `plot` draws."""

    heatmap = "heatmap"
    wavelengths = "wavelengths"
    waves = "waves"
    similarity = "similarity"
    error = "error"


@app.command(
    epilog=_examples(
        "fastpe plot heatmap -o heatmap.png",
        "fastpe plot heatmap --convention vaswani --convention tensor2tensor -o side-by-side.svg",
        "fastpe plot error --d-model 512 --dark -o error.png",
    )
)
def plot(
    picture: Annotated[Picture, typer.Argument(help="What to draw: see above.")],
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="OUT", help="A .png, .svg or .pdf file; none shows it, in kitty or iTerm2."
        ),
    ] = None,
    seq_len: Annotated[int, typer.Option(min=2, help="Number of positions.")] = 100,
    d_model: Annotated[int, typer.Option(min=1, help="Width of the encoding.")] = 128,
    convention: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=_convention_names,
            help="A name that `fastpe conventions` lists; several are drawn side by side.",
        ),
    ] = None,
    base: _Base = None,
    last_position: Annotated[int, typer.Option(min=10, help="Where the picture of errors stops.")] = 1_000_000,
    dark: Annotated[bool, typer.Option("--dark", help="Light on dark.")] = False,
) -> None:
    """Draw an encoding.

    heatmap: its values. wavelengths: positions per turn. waves: single dimensions. similarity: dot products of positions.
    error: how far the usual float32 code is off.
    """
    from fastpe._cli import plot as work

    encodings = [fastpe.PositionalEncoding(d_model, convention=name, base=base) for name in convention or ["vaswani"]]
    work.run(picture.value, encodings, output, seq_len=seq_len, last_position=last_position, dark=dark)


@app.command()
def bench(rounds: Annotated[int, typer.Option(min=1, help="Times each is measured.")] = 15) -> None:
    """Time fastpe and NumPy side by side.

    NumPy adds a table that it already has.
    """
    from fastpe._cli import bench as work

    if not work.run(Console(), rounds=rounds):
        raise typer.Exit(1)


@app.command(epilog=_examples("fastpe identify pe.npy"))
def identify(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A .npy file [L, d_model]; axes of 1 are left out.")],
) -> None:
    """Find the convention that a table was made with.

    Exits with 1 if there is none.
    """
    from fastpe._cli import numpy_files

    array = numpy_files.load(table)
    if array.ndim > 2:
        # As buffers of modules have it: [1, L, d_model] or [L, 1, d_model].
        array = array.reshape([extent for extent in array.shape if extent != 1])
    found = fastpe.identify(array)
    print(found)
    if not found.matches:
        raise typer.Exit(1)


@app.command()
def conventions(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", autocompletion=_convention_names, help="Show this one alone.")
    ] = None,
) -> None:
    """List the conventions.

    With their formulas, who uses them, and where they were read.
    """
    from fastpe.conventions import find

    chosen = list(fastpe.conventions.values()) if name is None else [find(name)]
    print("\n\n".join(map(str, chosen)))
