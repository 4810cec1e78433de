# SPDX-License-Identifier: BSD-3-Clause
"""The commands of ``fastpe``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, get_args

import typer

import fastpe
from fastpe._cli import options
from fastpe._cli.commands import add, demo, encode, identify, plot, rotary


def info(as_json: Annotated[bool, options.option("Print JSON for other programs.", None, "--json")] = False) -> None:
    """Show the build, the machine and the limits."""
    dtypes = list(get_args(options.DtypeName))
    facts: dict[str, Any] = {**fastpe.show_config(), "largest_position": 2**53, "dtypes": dtypes}
    lines = (f"{name}: {', '.join(value) if isinstance(value, list) else value}" for name, value in facts.items())
    print(json.dumps(facts, indent=2) if as_json else "\n".join(lines))


def conventions(
    name: Annotated[str | None, typer.Argument(metavar="NAME", autocompletion=options.complete_conventions)] = None,
) -> None:
    """List the conventions, or show the one called NAME."""
    found = [str(preset) for preset in fastpe.conventions.values() if name in (None, preset.name)]
    found += [f"grid {preset}" for preset in fastpe.grid_conventions.values() if name in (None, preset.name)]
    if not found:
        fastpe.conventions.find(name)  # which says what is probably meant
    print("\n\n".join(found))


app = typer.Typer(
    name="fastpe",
    help="Compute exact sinusoidal positional encodings and rotary embeddings on the CPU.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_examples: dict[Callable[..., None], str] = {
    encode.encode: "encode --seq-len 512 --d-model 768 --convention fairseq -o pe.npy",
    encode.embed: "embed ids.npy vocabulary.npy --scale 27.71 -o embeddings.npy",
    add.add: "add rows.parquet --key embeddings -o rows-with-positions.parquet",
    rotary.rotary: "rotary --config config.json --seq-len 4096 --dtype float16 -o cache.npz",
    identify.identify: "identify model.safetensors --key encoder.embed_positions.weight",
    plot.plot: "plot heatmap --convention vaswani --convention mlx -o both.svg",
    info: "info --json",
    demo.demo: "demo --batch 8",
    conventions: "conventions mlx",
}
for _command, _example in _examples.items():
    app.command(epilog=f"\b\nExample:\n  fastpe {_example}")(_command)  # \b keeps the lines as they are


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version or context.invoked_subcommand is None:
        print(f"fastpe {fastpe.__version__}" if version else context.get_help())
        raise typer.Exit
