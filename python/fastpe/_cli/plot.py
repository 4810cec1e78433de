# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe plot``: pictures of encodings and of rotary embeddings."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args

import numpy as np
import typer

import fastpe
from fastpe import plotting
from fastpe._cli import options
from fastpe._cli.messages import OptionError
from fastpe._cli.tables import embedding
from fastpe._cli.target import new_file
from fastpe._extras import needed

Picture = Literal["heatmap", "waves", "similarity", "float32_error", "rotary_wavelengths"]


def plot(
    picture: Annotated[Picture, typer.Argument(metavar="PICTURE", help=", ".join(get_args(Picture)))],
    output: options.Output,
    rows: Annotated[int | None, options.option("Number of rows; 100, or 10**6 of float32_error.", "N", min=2)] = None,
    d_model: Annotated[int | None, options.option("Width of the encoding; 128.", "D", min=1)] = None,
    convention: Annotated[list[str] | None, options.option("Conventions to draw side by side.", "NAME")] = None,
    base: options.Base = None,
    config: options.Config = None,
    layer: options.Layer = None,
    layer_type: options.LayerType = None,
    interleaved: options.Interleaved = None,
    dark: Annotated[bool, options.option("Draw on a dark background.", None, "--dark")] = False,
    no_clobber: options.NoClobber = False,
    quiet: options.Quiet = False,
) -> None:
    """Draw an encoding, or the frequencies of a rotary embedding.

    "waves" has single dimensions, "similarity" the dot products of two positions, "float32_error" the error of the usual
    code, and "rotary_wavelengths" the wavelengths of the model of --config, with its scaling and without.
    """
    if (picture == "rotary_wavelengths") != (config is not None):
        remedy = "give it" if config is None else "leave it out"
        raise OptionError(f"rotary_wavelengths needs --config FILE, and no other picture takes it; {remedy}")
    if picture == "float32_error" and rows is not None and rows < 10:
        raise OptionError(f"--rows is {rows}, expected at least 10 for float32_error")
    subjects: list[Any]
    lengths = [] if rows is None or config is not None else [rows]
    draw: Callable[..., Any] = getattr(plotting, picture)
    if config is not None:
        _leave_out(picture, {"--d-model": d_model, "--convention": convention})
        subjects = [_embedding(config, layer, layer_type, base, {"--interleaved": interleaved, "--rows": rows})]
    else:
        _leave_out(picture, {"--layer": layer, "--layer-type": layer_type, "--interleaved": interleaved})
        names: list[Any] = list(convention or ["vaswani"])
        columns = 128 if d_model is None else d_model
        subjects = [fastpe.PositionalEncoding(columns, convention=each, base=base) for each in names]
    with needed("fastpe plot", "matplotlib"):
        from matplotlib import style
        from matplotlib.figure import Figure
    width, height = (5.0, 4.2) if picture == "similarity" else (6.0, 3.6)  # a square with its bar of colours
    with (
        new_file(output, [".png", ".svg", ".pdf"], no_clobber, quiet) as target,
        style.context("dark_background" if dark else "default"),
    ):
        figure = Figure(figsize=(width * len(subjects), height), layout="constrained")
        for subject, ax in zip(subjects, figure.subplots(1, len(subjects), squeeze=False)[0], strict=True):
            draw(subject, *lengths, ax=ax)
            if config is not None:
                which = "" if layer is None else f", layer {layer}"
                which = which if layer_type is None else f", {layer_type}"
                ax.set_title(f"{fastpe.ModelConfig(config).model_type or config}{which}\n{ax.get_title()}")
        figure.savefig(target, format=os.path.splitext(output)[1][1:].lower(), dpi=150)


def _leave_out(picture: str, given: dict[str, Any]) -> None:
    for name, value in given.items():
        if value is not None:
            raise OptionError(f"{name} was given, and changes nothing in {picture}; leave it out")


def _embedding(
    config: str, layer: int | None, layer_type: str | None, base: float | None, given: dict[str, Any]
) -> fastpe.RotaryEmbedding:
    """The embedding of a config, all of whose options count: some models need no pairing, and some scalings no length."""

    def made(interleaved: bool | None, rows: int | None) -> fastpe.RotaryEmbedding:
        return embedding(config, layer, layer_type, rotary_dim=None, base=base, interleaved=interleaved, seq_len=rows)

    result = made(*given.values())
    for name, value in given.items():
        if value is None:
            continue
        with contextlib.suppress(ValueError, TypeError):  # without it, no embedding is made
            if np.array_equal(made(*{**given, name: None}.values()).frequencies, result.frequencies):
                _leave_out("the wavelengths of this config", {name: value})
    return result
