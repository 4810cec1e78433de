# SPDX-License-Identifier: BSD-3-Clause
"""The commands of ``fastpe``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

import fastpe
from fastpe._cli.commands import add, demo, encode, identify, info, plot, rotary

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
    info.info: "info --json",
    demo.demo: "demo --batch 8",
    info.conventions: "conventions mlx",
}
for _command, _example in _examples.items():
    app.command(epilog=f"\b\nExample:\n  fastpe {_example}")(_command)  # \b keeps the lines as they are


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"fastpe {fastpe.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
