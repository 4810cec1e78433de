# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of positional encodings and rotary embeddings, as functions that draw into matplotlib axes.

They need matplotlib: ``pip install matplotlib``. People with colour-blindness can tell the colours apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastpe._errors import a_type, refused
from fastpe._extras import needed
from fastpe._rotary.embedding import RotaryEmbedding
from fastpe._rotary.scaling import Scaling
from fastpe._sinusoid.conventions import conventions
from fastpe._sinusoid.encoder import PositionalEncoding

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["float32_error", "heatmap", "rotary_wavelengths", "similarity", "waves"]

# Okabe and Ito's palette, without the yellow that white swallows; for dark backgrounds, with lighter shades.
_colors = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_light_colors = ("#56B4E9", "#E69F00", "#2FC79B", "#E8A6CB", "#F0E442", "#FF8A5B", "#FFFFFF")


def heatmap(encoding: PositionalEncoding, rows: int = 100, *, ax: Axes | None = None, colorbar: bool = True) -> Axes:
    """Draw the encoding itself: one row per position, one column per dimension.

    Parameters
    ----------
    encoding : PositionalEncoding
        What to draw.
    rows : int, optional
        Number of rows, from the first position on.
    ax : Axes, optional
        The axes to draw into, which are returned; those of a new figure by default.
    colorbar : bool, optional
        Whether to draw the bar that says which colour is which value.

    Examples
    --------
    >>> import fastpe, fastpe.plotting
    >>> fastpe.plotting.heatmap(fastpe.PositionalEncoding(64), 50).get_xlabel()
    'dimension'
    """
    ax, first = _axes(ax, encoding), encoding.convention.first_position
    limit = encoding.convention._numbers(encoding.d_model).scale
    options = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit, "aspect": "auto"}
    extent = (-0.5, encoding.d_model - 0.5, first + rows - 0.5, first - 0.5)
    _image(ax, encoding.encode(_shown(encoding, rows)), "value", colorbar, extent=extent, **options)
    return _labelled(ax, "Encoding", encoding, "dimension", "position")


def waves(
    encoding: PositionalEncoding, rows: int = 100, *, dimensions: Sequence[int] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw single dimensions against position.

    Parameters
    ----------
    encoding, rows, ax
        As in `heatmap`.
    dimensions : sequence of int, optional
        The dimensions to draw, at most 7; by default sines whose wavelengths can be seen within `rows`.

    Examples
    --------
    >>> import fastpe, fastpe.plotting
    >>> ax = fastpe.plotting.waves(fastpe.PositionalEncoding(64), dimensions=[4, 5])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['dimension 4', 'dimension 5']
    """
    ax, first = _axes(ax, encoding), encoding.convention.first_position
    chosen = _visible_dimensions(encoding, max(rows, 2)) if dimensions is None else list(dimensions)
    if len(chosen) > len(_colors) or not all(0 <= dimension < encoding.d_model for dimension in chosen):
        expected = f"at most {len(_colors)} of the dimensions from 0 to {encoding.d_model - 1}"
        raise refused(ValueError, "dimensions", f"is {chosen}", expected)
    # Fractional positions, so that fast waves are waves.
    position = np.linspace(first, first + max(rows - 1, 1), min(20 * max(rows, 2), 40_000))
    for dimension, color in zip(chosen, _palette(ax), strict=False):
        column = np.zeros((len(position), 1), np.float32)
        encoding._add_part(column, dimension, positions=position, out=column)
        ax.plot(position, column[:, 0], color=color, label=f"dimension {dimension}")
    ax.margins(x=0.01)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return _labelled(ax, "Waves", encoding, "position", "value", grid=True)


def similarity(encoding: PositionalEncoding, rows: int = 100, *, ax: Axes | None = None, colorbar: bool = True) -> Axes:
    """Draw the dot product of the encodings of every two positions, divided by its largest value.

    Parameters
    ----------
    encoding, rows, ax, colorbar
        As in `heatmap`.

    Examples
    --------
    >>> import fastpe, fastpe.plotting
    >>> fastpe.plotting.similarity(fastpe.PositionalEncoding(64), 50).get_ylabel()
    'position'
    """
    ax, first = _axes(ax, encoding), encoding.convention.first_position
    values, span = encoding.encode(_shown(encoding, rows), dtype=np.float64), (first - 0.5, first + rows - 0.5)
    products = values @ values.T / np.square(values).sum(axis=1).max(initial=1e-300)
    _image(ax, products, "dot product / largest", colorbar, cmap="cividis", vmax=1.0, extent=(*span, *span[::-1]))
    return _labelled(ax, "Similarity", encoding, "position", "position")


def float32_error(encoding: PositionalEncoding, last_position: int = 10**6, *, ax: Axes | None = None) -> Axes:
    """Draw how far the usual float32 code is from the exact values, against position, and how far fastpe is.

    The usual code computes everything in float32: ``sin(position * exp(k * -log(base) / n))``.

    Parameters
    ----------
    encoding, ax
        As in `heatmap`; of the encoding, the frequencies are used.
    last_position : int, optional
        The position at which the picture stops, at least 10.

    Examples
    --------
    >>> import fastpe, fastpe.plotting
    >>> fastpe.plotting.float32_error(fastpe.PositionalEncoding(64), 10000).get_yscale()
    'log'
    """
    if last_position < 10:
        raise refused(ValueError, "last_position", f"is {last_position}", "at least 10")
    ax = _axes(ax, encoding)
    # The largest error of a few neighbours depends on where they are, not on luck.
    starts = np.unique(np.geomspace(1, last_position, 120).astype(np.int64))
    neighbours = starts[:, None] - np.minimum(np.arange(32), starts[:, None] // 8)
    plain = PositionalEncoding(2 * len(encoding.frequencies), convention="concat", frequencies=encoding.frequencies)
    exact = plain.encode(neighbours, dtype=np.float64)
    usual, own = _usual_float32(encoding, neighbours), plain.encode(neighbours)
    for name, values, color, style in (("usual float32 code", usual, 1, "-"), ("fastpe, float32", own, 0, "--")):
        ax.plot(starts, np.abs(values - exact).max(axis=(1, 2)), style, color=_palette(ax)[color], label=name)
    ax.set(xscale="log", yscale="log")
    ax.legend(loc="upper left", frameon=False)
    return _labelled(ax, "Error of float32 values", encoding, "position", "largest absolute error", grid=True)


def rotary_wavelengths(rope: RotaryEmbedding, *, ax: Axes | None = None) -> Axes:
    """Draw the wavelength of each frequency of a rotary embedding, with its scaling and without.

    Parameters
    ----------
    rope : RotaryEmbedding
        What to draw. Frequencies of 0 have no wavelength: the legend counts them.
    ax : Axes, optional
        As in `heatmap`.

    Examples
    --------
    >>> import fastpe, fastpe.plotting
    >>> rope = fastpe.RotaryEmbedding(64, interleaved=False, scaling={"rope_type": "linear", "factor": 4.0})
    >>> ax = fastpe.plotting.rotary_wavelengths(rope)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['without scaling', 'linear']
    """
    ax = _axes(ax, rope, "rope", RotaryEmbedding)
    scaling, drawn = rope._scaling, [(rope, "given frequencies")]
    if isinstance(scaling, Scaling):
        plain = RotaryEmbedding(rope.rotary_dim, interleaved=rope.interleaved, base=scaling.base)
        drawn = [(plain, "without scaling"), (rope, scaling.rope_type)][: 1 + (scaling.rope_type != "default")]
    # The first markers of two are rings, so that the points can be seen inside of them.
    styles: list[dict[str, Any]] = [{"markersize": 7, "fillstyle": "none"}, {"markersize": 4}]
    for (each, label), style, color in zip(drawn[::-1], styles[::-1], _palette(ax), strict=False):
        turning = each.frequencies != 0
        if still := len(turning) - np.count_nonzero(turning):
            label += f"; {still} of {len(turning)} do not turn"
        ax.plot(np.flatnonzero(turning), np.abs(each.wavelengths[turning]), "o", label=label, color=color, **style)
    ax.set_yscale("log")
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], labels[::-1], loc="upper left", frameon=False)
    base = "" if rope.base is None else f", base {rope.base:,.15g}"
    title = f"Rotary wavelengths: rotary_dim {rope.rotary_dim}{base}"
    return _labelled(ax, title, None, "pair of columns k", "wavelength (positions per turn)", grid=True)


def _usual_float32(encoding: PositionalEncoding, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    convention = encoding.convention
    k = np.arange(len(encoding.frequencies), dtype=np.float32)
    step = np.float32(-math.log(convention.base) / convention._numbers(encoding.d_model).denominator)
    angles = positions.astype(np.float32)[..., None] * (np.exp(k * step) * np.float32(convention.freq_scale))
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)


def _visible_dimensions(encoding: PositionalEncoding, rows: int) -> list[int]:
    """Sines whose wavelengths are spread over what `rows` positions can show."""
    sines = range(encoding.d_model)[encoding.convention._columns(encoding.d_model)[0]]
    wanted = np.geomspace(rows / 10, rows * 2, 4)
    nearest = [int(np.argmin(np.abs(np.log(encoding.wavelengths / wavelength)))) for wavelength in wanted]
    return sorted({sines[min(k, len(sines) - 1)] for k in nearest} if sines else {0})


def _shown(encoding: PositionalEncoding, rows: int) -> npt.NDArray[np.int64]:
    """The positions that are drawn: a picture has fewer pixels than some tables have rows."""
    first = encoding.convention.first_position
    shown: npt.NDArray[Any] = np.linspace(first, first + rows - 1, min(rows, 2000)).round()
    return shown.astype(np.int64)


def _axes(ax: Axes | None, drawn: Any, name: str = "encoding", kind: type = PositionalEncoding) -> Axes:
    """The axes to draw into, once what is to be drawn is what it should be."""
    if not isinstance(drawn, kind):
        raise refused(TypeError, name, f"is {a_type(drawn)}", f"a fastpe.{kind.__name__}", "make one")
    if ax is not None:
        return ax
    with needed("fastpe.plotting", "matplotlib"):
        from matplotlib import pyplot
    return pyplot.subplots(layout="constrained")[1]


def _image(ax: Axes, values: npt.NDArray[Any], label: str, colorbar: bool, **options: Any) -> None:
    image = ax.imshow(values, interpolation="nearest", label=label, **options)
    if colorbar:
        ax.figure.colorbar(image, ax=ax, label=label)


def _palette(ax: Axes) -> tuple[str, ...]:
    """The colours that stand out from the background, which may be transparent: labels show what it is."""
    from matplotlib.colors import to_rgb

    return _light_colors if sum(to_rgb(ax.xaxis.label.get_color())) > 1.5 else _colors


def _labelled(ax: Axes, title: str, encoding: PositionalEncoding | None, x: str, y: str, *, grid: bool = False) -> Axes:
    """Label axes, and say in the title what is drawn, of which convention, and with which unusual numbers."""
    from matplotlib.ticker import MaxNLocator

    if encoding is not None:
        convention = encoding.convention
        title += f": {convention.name}, d_model {encoding.d_model}"
        usual_base = conventions.get(convention.name, convention).base
        title += f", base {convention.base:g}" if convention.base != usual_base else ""
        title += f", first position {convention.first_position}" if convention.first_position else ""
    if grid:
        ax.grid(visible=True, color=ax.xaxis.label.get_color(), alpha=0.15, linewidth=0.6)
    ax.set(xlabel=x, ylabel=y, title=title)
    for axis, label in ((ax.xaxis, x), (ax.yaxis, y)):
        if label in ("position", "dimension", "pair of columns k") and axis.get_scale() == "linear":
            axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    return ax
