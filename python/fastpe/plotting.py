# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of positional encodings and rotary embeddings, as functions that draw into matplotlib axes.

They need matplotlib: ``pip install matplotlib``. People with colour-blindness can tell the colours and colour maps
apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastpe import PositionalEncoding, RotaryEmbedding, conventions
from fastpe._extras import needed
from fastpe._rotary.scaling import Scaling

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["float32_error", "heatmap", "rotary_wavelengths", "similarity", "wavelengths", "waves"]

# Okabe and Ito's palette, without the yellow that white swallows; for dark backgrounds, with lighter shades.
_colors = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_light_colors = ("#56B4E9", "#E69F00", "#2FC79B", "#E8A6CB", "#F0E442", "#FF8A5B", "#FFFFFF")
_signed_map = "RdBu_r"
_plain_map = "cividis"
# This is more than a picture has pixels, and what cannot be seen need not be computed.
_most_rows = 2000
_most_points = 40_000


def heatmap(encoding: PositionalEncoding, seq_len: int = 100, *, ax: Axes | None = None, colorbar: bool = True) -> Axes:
    """Draw the encoding itself: one row per position, one column per dimension.

    Parameters
    ----------
    encoding : PositionalEncoding
        What to draw.
    seq_len : int, optional
        Number of positions.
    ax : Axes, optional
        The axes to draw into; those of a new figure by default.
    colorbar : bool, optional
        Whether to draw the bar that says which colour is which value.

    Returns
    -------
    Axes
        `ax`, or the new axes.

    Examples
    --------
    >>> import fastpe, fastpe.plotting
    >>> ax = fastpe.plotting.heatmap(fastpe.PositionalEncoding(64), 50)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('dimension', 'position')
    """
    _require_encoding(encoding)
    ax = _axes(ax)
    first = encoding.convention.first_position
    values = encoding.encode(_positions_to_show(encoding, seq_len))
    limit = encoding.convention.output_scale(encoding.d_model)
    image = ax.imshow(
        values,
        cmap=_signed_map,
        vmin=-limit,
        vmax=limit,
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, encoding.d_model - 0.5, first + seq_len - 0.5, first - 0.5),
        label="value",
    )
    if colorbar:
        ax.figure.colorbar(image, ax=ax, label=image.get_label())
    _label(ax, "Encoding", encoding, "dimension", "position")
    return ax


def wavelengths(encoding: PositionalEncoding, *, ax: Axes | None = None) -> Axes:
    """Draw the wavelength of every frequency: how many positions one turn takes.

    Parameters
    ----------
    encoding : PositionalEncoding
        What to draw.
    ax : Axes, optional
        The axes to draw into; those of a new figure by default.

    Returns
    -------
    Axes
        `ax`, or the new axes.

    Examples
    --------
    >>> import fastpe, fastpe.plotting
    >>> fastpe.plotting.wavelengths(fastpe.PositionalEncoding(64)).get_yscale()
    'log'
    """
    _require_encoding(encoding)
    ax = _axes(ax)
    values = encoding.wavelengths
    ax.plot(np.arange(len(values)), values, "o", color=_palette(ax)[0], markersize=3)
    ax.set_yscale("log")
    _grid(ax)
    _label(ax, "Wavelengths", encoding, "pair of dimensions k", "wavelength (positions per turn)")
    return ax


def waves(
    encoding: PositionalEncoding,
    seq_len: int = 100,
    *,
    dimensions: Sequence[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw single dimensions against position.

    Parameters
    ----------
    encoding : PositionalEncoding
        What to draw.
    seq_len : int, optional
        Number of positions.
    dimensions : sequence of int, optional
        The dimensions to draw, at most 7; by default four whose wavelengths can be seen within `seq_len`.
    ax : Axes, optional
        The axes to draw into; those of a new figure by default.

    Returns
    -------
    Axes
        `ax`, or the new axes.

    Examples
    --------
    >>> import fastpe, fastpe.plotting
    >>> ax = fastpe.plotting.waves(fastpe.PositionalEncoding(64), dimensions=[4, 5])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['dimension 4', 'dimension 5']
    """
    _require_encoding(encoding)
    ax = _axes(ax)
    chosen = _visible_dimensions(encoding, seq_len) if dimensions is None else list(dimensions)
    if len(chosen) > len(_colors):
        raise ValueError(f"dimensions has {len(chosen)} entries, expected at most {len(_colors)}: one per colour")
    for dimension in chosen:
        if not 0 <= dimension < encoding.d_model:
            raise ValueError(f"dimensions has {dimension}, expected 0 to {encoding.d_model - 1}")
    first = encoding.convention.first_position
    # Fractional positions, so that fast waves are waves.
    position = np.linspace(first, first + max(seq_len - 1, 1), min(20 * max(seq_len, 2), _most_points))
    for dimension, color in zip(chosen, _palette(ax), strict=False):
        values = encoding.encode(position, channels=(dimension, dimension + 1))
        ax.plot(position, values[:, 0], color=color, label=f"dimension {dimension}")
    _grid(ax)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    _label(ax, "Waves", encoding, "position", "value")
    return ax


def similarity(
    encoding: PositionalEncoding, seq_len: int = 100, *, ax: Axes | None = None, colorbar: bool = True
) -> Axes:
    """Draw the dot product of every two positions' encodings, divided by that of a position with itself.

    It depends on their distance alone, and mostly falls as the distance grows.

    Parameters
    ----------
    encoding : PositionalEncoding
        What to draw.
    seq_len : int, optional
        Number of positions.
    ax : Axes, optional
        The axes to draw into; those of a new figure by default.
    colorbar : bool, optional
        Whether to draw the bar that says which colour is which value.

    Returns
    -------
    Axes
        `ax`, or the new axes.

    Examples
    --------
    >>> import fastpe, fastpe.plotting
    >>> fastpe.plotting.similarity(fastpe.PositionalEncoding(64), 50).get_ylabel()
    'position'
    """
    _require_encoding(encoding)
    ax = _axes(ax)
    first = encoding.convention.first_position
    values = encoding.encode(_positions_to_show(encoding, seq_len), dtype=np.float64)
    products = values @ values.T / np.square(values).sum(axis=1).max(initial=1e-300)
    span = (first - 0.5, first + seq_len - 0.5)
    image = ax.imshow(
        products,
        cmap=_plain_map,
        interpolation="nearest",
        extent=(*span, *span[::-1]),
        label="dot product (a position with itself: 1)",
    )
    if colorbar:
        ax.figure.colorbar(image, ax=ax, label=image.get_label())
    _label(ax, "Similarity", encoding, "position", "position")
    return ax


def float32_error(encoding: PositionalEncoding, last_position: int = 10**6, *, ax: Axes | None = None) -> Axes:
    """Draw how far the usual float32 code is from the exact values, against position, and how far fastpe is.

    The usual code computes frequencies, angles, sines and cosines in float32: ``sin(position * exp(k * -log(base) /
    n))``.

    Parameters
    ----------
    encoding : PositionalEncoding
        The encoding whose frequencies are used.
    last_position : int, optional
        The position at which the picture stops, at least 10.
    ax : Axes, optional
        The axes to draw into; those of a new figure by default.

    Returns
    -------
    Axes
        `ax`, or the new axes.

    Examples
    --------
    >>> import fastpe, fastpe.plotting
    >>> ax = fastpe.plotting.float32_error(fastpe.PositionalEncoding(64), 10000)
    >>> ax.get_xscale(), ax.get_yscale()
    ('log', 'log')
    """
    _require_encoding(encoding)
    if last_position < 10:
        raise ValueError(f"last_position is {last_position}, expected at least 10")
    ax = _axes(ax)
    # The largest error of a few neighbours depends on where they are, not on luck.
    starts = np.unique(np.geomspace(1, last_position, 120).astype(np.int64))
    neighbours = starts[:, None] - np.minimum(np.arange(32), starts[:, None] // 8)
    plain = PositionalEncoding(2 * len(encoding.frequencies), convention="concat", freqs=encoding.frequencies)
    exact = plain.encode(neighbours, dtype=np.float64)
    usual = _usual_float32(encoding, neighbours)
    own_color, usual_color = _palette(ax)[:2]
    for name, values, color, style in (
        ("usual float32 code", usual, usual_color, "-"),
        ("fastpe, float32", plain.encode(neighbours), own_color, "--"),
    ):
        error = np.abs(values - exact).max(axis=(1, 2))
        ax.plot(starts, error, style, color=color, label=name)
    ax.set_xscale("log")
    ax.set_yscale("log")
    _grid(ax)
    ax.legend(loc="upper left", frameon=False)
    _label(ax, "Error of float32 values", encoding, "position", "largest absolute error")
    return ax


def rotary_wavelengths(rope: RotaryEmbedding, *, ax: Axes | None = None) -> Axes:
    """Draw the wavelength of each frequency of a rotary embedding, with its scaling and without.

    Parameters
    ----------
    rope : RotaryEmbedding
        What to draw. Frequencies of 0 have no wavelength: the legend counts them.
    ax : Axes, optional
        The axes to draw into; those of a new figure by default.

    Returns
    -------
    Axes
        `ax`, or the new axes.

    Examples
    --------
    >>> import fastpe, fastpe.plotting
    >>> rope = fastpe.RotaryEmbedding(64, interleaved=False, scaling={"rope_type": "linear", "factor": 4.0})
    >>> ax = fastpe.plotting.rotary_wavelengths(rope)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['without scaling', 'linear']
    """
    if not isinstance(rope, RotaryEmbedding):
        raise TypeError(
            f"rope is a {type(rope).__name__}, expected a fastpe.RotaryEmbedding; make one, such as "
            f"RotaryEmbedding(64, interleaved=False)"
        )
    ax = _axes(ax)
    scaling = rope._scaling
    name = "without scaling" if isinstance(scaling, Scaling) else "given frequencies"
    if isinstance(scaling, Scaling) and scaling.rope_type != "default":
        plain = RotaryEmbedding(rope.rotary_dim, interleaved=rope.interleaved, base=scaling.base)
        # These markers are rings, so that the points can be seen inside of them.
        _plot_turning(ax, plain, name, color=_palette(ax)[1], markersize=7, fillstyle="none")
        name = scaling.rope_type
    _plot_turning(ax, rope, name, color=_palette(ax)[0], markersize=4)
    ax.set_yscale("log")
    _grid(ax)
    ax.legend(loc="upper left", frameon=False)
    ax.set_xlabel("pair of columns k")
    ax.set_ylabel("wavelength (positions per turn)")
    ax.set_title(f"Rotary wavelengths: rotary_dim {rope.rotary_dim}")
    return ax


def _plot_turning(ax: Axes, rope: RotaryEmbedding, name: str, **style: Any) -> None:
    turning = rope.frequencies != 0
    still = len(turning) - np.count_nonzero(turning)
    label = f"{name}; {still} of {len(turning)} do not turn" if still else name
    ax.plot(np.flatnonzero(turning), np.abs(rope.wavelengths[turning]), "o", label=label, **style)


def _usual_float32(encoding: PositionalEncoding, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    convention = encoding.convention
    k = np.arange(len(encoding.frequencies), dtype=np.float32)
    step = np.float32(-math.log(convention.base) / convention.exponent_denominator(encoding.d_model))
    frequencies = np.exp(k * step) * np.float32(convention.freq_scale)
    angles = positions.astype(np.float32)[..., None] * frequencies
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)


def _visible_dimensions(encoding: PositionalEncoding, seq_len: int) -> list[int]:
    """Sines whose wavelengths are spread over what `seq_len` positions can show."""
    sines = range(encoding.d_model)[encoding.convention.columns(encoding.d_model)[0]]
    if not sines:
        return [0]
    wanted = np.geomspace(max(seq_len, 2) / 10, max(seq_len, 2) * 2, 4)
    nearest = [int(np.argmin(np.abs(np.log(encoding.wavelengths / wavelength)))) for wavelength in wanted]
    return sorted({sines[min(k, len(sines) - 1)] for k in nearest})


def _positions_to_show(encoding: PositionalEncoding, seq_len: int) -> npt.NDArray[np.int64]:
    rows: npt.NDArray[np.int64] = np.linspace(0, seq_len - 1, min(seq_len, _most_rows)).round().astype(np.int64)
    rows += encoding.convention.first_position
    return rows


def _require_encoding(encoding: Any) -> None:
    if not isinstance(encoding, PositionalEncoding):
        raise TypeError(
            f"encoding is a {type(encoding).__name__}, expected a fastpe.PositionalEncoding; make one, such as "
            f"PositionalEncoding(64)"
        )


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    with needed("fastpe.plotting", "matplotlib", "matplotlib"):
        from matplotlib import pyplot
    return pyplot.subplots(layout="constrained")[1]


def _palette(ax: Axes) -> tuple[str, ...]:
    """The colours that can be told from the background, which may be transparent: labels show what it is."""
    from matplotlib.colors import to_rgb

    return _light_colors if sum(to_rgb(ax.xaxis.label.get_color())) > 1.5 else _colors


def _grid(ax: Axes) -> None:
    """Lines that are weaker than the data on any background."""
    ax.grid(visible=True, color=ax.xaxis.label.get_color(), alpha=0.15, linewidth=0.6)


def _label(ax: Axes, picture: str, encoding: PositionalEncoding, x: str, y: str) -> None:
    """Axes, and a title that says what is drawn, of which convention, and what is not as in most conventions."""
    convention = encoding.convention
    title = [f"{picture}: {convention.name}", f"d_model {encoding.d_model}"]
    preset = conventions.get(convention.name, convention)
    title += [f"base {convention.base:g}"] if convention.base != preset.base else []
    title += [f"first position {convention.first_position}"] if convention.first_position else []
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.set_title(", ".join(title))
