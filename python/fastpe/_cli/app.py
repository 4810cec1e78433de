# SPDX-License-Identifier: BSD-3-Clause
"""The commands of ``fastpe``; here are those without files."""

from __future__ import annotations

import json
import re
import timeit
from collections.abc import Callable
from typing import Annotated, Any, get_args

import numpy as np
import typer

import fastpe
from fastpe._arguments import shown
from fastpe._cli import embeddings, options, plot, tables
from fastpe._cli.add import add
from fastpe._errors import refused


def info(as_json: Annotated[bool, options.option("Print JSON for other programs.", None, "--json")] = False) -> None:
    """Show the build, the machine and the limits."""
    dtypes = list(get_args(options.DtypeName))
    facts: dict[str, Any] = {**fastpe.show_config("dicts"), "largest_position": 2**53, "dtypes": dtypes}
    lines = (f"{name}: {', '.join(value) if isinstance(value, list) else value}" for name, value in facts.items())
    print(json.dumps(facts, indent=2) if as_json else "\n".join(lines))


def model(
    config: Annotated[str, typer.Argument(metavar="CONFIG", help="The config.json of a model.")],
    as_json: Annotated[bool, options.option("Print JSON for other programs.", None, "--json")] = False,
) -> None:
    """List the calls for a model, by its config.json.

    It says what is known of a model's positions, and which call serves which need. In the calls, `config` is
    fastpe.ModelConfig(CONFIG).
    """
    from fastpe._config.report import report

    known = report(fastpe.ModelConfig(config))
    known = known._replace(
        not_known=tuple(re.sub(options.printed_presets, "fastpe conventions", each) for each in known.not_known)
    )
    print(json.dumps(known.to_dict(), indent=2) if as_json else known.text())


def conventions(
    name: Annotated[str | None, typer.Argument(metavar="NAME", autocompletion=options.complete_presets)] = None,
) -> None:
    """List the conventions and the layouts, or show those called NAME."""
    kinds: dict[str, Any] = {
        "": fastpe.conventions,
        "grid ": fastpe.grid_conventions,
        "resize ": fastpe.resize_conventions,
        "layout ": fastpe.rotary_layouts,
    }
    presets = ((word, preset) for word, kind in kinds.items() for preset in kind.values())
    found = [f"{word}{preset}" for word, preset in presets if name in (None, preset.name)]
    if name is not None and not found:
        serving = [each for kind in kinds.values() for each in kind._serving(name)]
        guess = next(filter(None, (kind._guess(name) for kind in kinds.values())), "fastpe conventions lists all")
        raise refused(ValueError, "name", f"is {shown(name)}, which is not known", remedy="; ".join(serving) or guess)
    print("\n\n".join(found))


def demo(
    batch: Annotated[int, options.option("Number of sequences.", "B", min=1)] = 32,
    rows: Annotated[int, options.option("Number of rows of each.", "N", min=1)] = 512,
    d_model: options.DModel = 768,
) -> None:
    """Encode, add, check and time a built-in batch.

    The command exits with 1 if a value is further from a float64 NumPy reference than rounding explains.
    """
    x = np.random.default_rng(0).standard_normal((batch, rows, d_model), dtype=np.float32)
    columns, positions = np.arange(d_model), np.arange(rows)[:, None]
    divisors = np.power(10000, 2 * (columns // 2) / d_model)
    exact = np.where(columns % 2, np.cos(positions / divisors), np.sin(positions / divisors))
    table, pe, y, z = exact.astype(np.float32), fastpe.encode(rows, d_model), fastpe.add_(x.copy()), x.copy()
    # The reference's own angles are rounded, to float64.
    half_ulp = 0.5 * np.spacing(np.abs(table)) + 4 * rows * 2.0**-53
    half_ulp_of_sum = 0.5 * np.maximum(np.spacing(np.abs(y)), np.spacing(np.abs(x + table)))
    error, error_of_sum = np.abs(pe - exact), np.abs(y - (x + exact))
    passed = (error <= half_ulp).all() and (error_of_sum <= half_ulp + half_ulp_of_sum).all()

    positions_32, frequencies, rival = positions.astype(np.float32), np.float32(1 / divisors[::2]), np.empty_like(table)

    def compute_by_numpy() -> None:
        angles = positions_32 * frequencies
        np.sin(angles, out=rival[:, 0::2])
        np.cos(angles[:, : d_model // 2], out=rival[:, 1::2])

    heading = "fastpe {version} ({compiler}), {instruction_set}, threads: {threads}, NumPy {numpy}, {machine}"
    print(heading.format(**fastpe.show_config("dicts")))
    print(f"\nx [{batch}, {rows}, {d_model}] float32, medians\n")
    print(f"{'work':<12}  largest error       fastpe        NumPy  NumPy / fastpe")
    for work, largest, ours, theirs in (
        ("encode", error.max(), lambda: fastpe.encode(rows, d_model, out=pe), compute_by_numpy),
        ("add in place", error_of_sum.max(), lambda: fastpe.add_(y), lambda: np.add(z, table, out=z)),
    ):
        # In turns, so that a slow moment of the machine falls on both.
        times = [(timeit.timeit(ours, number=1), timeit.timeit(theirs, number=1)) for _ in range(16)][1:]
        ms, numpy_ms = np.median(times, axis=0) * 1e3
        print(f"{work:<12}  {largest:>13.3g}  {ms:>8.3f} ms  {numpy_ms:>8.3f} ms  {numpy_ms / ms:>14.1f}")
    print("\nNumPy computes with float32 angles, which is less exact, and adds a table that it already has.")
    outcome = "passed: no" if passed else "FAILED: a"
    print(f"check {outcome} value is further from the float64 reference than its rounding to float32")
    if not passed:
        raise typer.Exit(1)


app = typer.Typer(
    name="fastpe",
    help="Compute exact sinusoidal positional encodings and rotary embeddings on the CPU.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_examples: dict[Callable[..., None], str] = {
    embeddings.encode: "encode --rows 512 --d-model 768 --convention fairseq -o pe.npy",
    embeddings.embed: "embed ids.npy vocabulary.npy --scale 27.71 -o embeddings.npy",
    add: "add rows.parquet --key embeddings -o rows-with-positions.parquet",
    embeddings.resize: "resize table.npy --shape 24x24 --convention dinov2 --class-tokens 1 -o resized.npy",
    tables.tables: "tables --config config.json --rows 4096 --dtype float16 -o cache.npz",
    tables.identify: "identify model.safetensors --key encoder.embed_positions.weight",
    plot.plot: "plot heatmap --convention vaswani --convention mlx -o both.svg",
    model: "model config.json",
    info: "info --json",
    demo: "demo --batch 8",
    conventions: "conventions mlx",
}
for _command, _example in _examples.items():
    app.command(epilog=f"\b\nExample:\n  fastpe {_example}")(
        options.named_in_errors(_command)
    )  # \b keeps the lines as they are


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version or context.invoked_subcommand is None:
        print(f"fastpe {fastpe.__version__}" if version else context.get_help())
        raise typer.Exit
