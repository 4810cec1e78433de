# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe plot``: pictures as files, or inline in terminals that can show them."""

from __future__ import annotations

import base64
import functools
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fastpe import PositionalEncoding, RotaryEmbedding, plotting
from fastpe._cli.errors import CommandError, needs
from fastpe._cli.output import open_target
from fastpe._cli.progress import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_formats = (".png", ".svg", ".pdf")
_panel_inches = {"similarity": (4.6, 3.6)}
_usual_panel_inches = (6.0, 3.6)

# These greys glare less than black and white.
_dark_style = {
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "#1e1e1e"),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), "#dddddd"),
    **dict.fromkeys(("xtick.color", "ytick.color", "axes.edgecolor"), "#aaaaaa"),
}

Drawing = Callable[[PositionalEncoding, "Axes"], object]
Panel = Callable[["Axes"], object]


def drawings(seq_len: int, last_position: int) -> dict[str, Drawing]:
    """What each kind of picture draws."""
    return {
        "heatmap": lambda encoding, ax: plotting.heatmap(encoding, seq_len, ax=ax, colorbar=False),
        "wavelengths": lambda encoding, ax: plotting.wavelengths(encoding, ax=ax),
        "waves": lambda encoding, ax: plotting.waves(encoding, seq_len, ax=ax),
        "similarity": lambda encoding, ax: plotting.similarity(encoding, seq_len, ax=ax, colorbar=False),
        "error": lambda encoding, ax: plotting.float32_error(encoding, last_position, ax=ax),
    }


def run(
    picture: str,
    encodings: Sequence[PositionalEncoding],
    output: str | None,
    *,
    seq_len: int,
    last_position: int,
    dark: bool,
    no_clobber: bool,
    quiet: bool,
) -> None:
    """Draw encodings side by side and write or show the picture."""
    draw = drawings(seq_len, last_position)[picture]
    panels = [functools.partial(draw, encoding) for encoding in encodings]
    _write_or_show(
        panels, _panel_inches.get(picture, _usual_panel_inches), output, dark=dark, no_clobber=no_clobber, quiet=quiet
    )


def run_rotary(rope: RotaryEmbedding, output: str | None, *, dark: bool, no_clobber: bool, quiet: bool) -> None:
    """Draw the wavelengths of a rotary embedding and write or show the picture."""
    panels = [lambda ax: plotting.rotary_wavelengths(rope, ax=ax)]
    _write_or_show(panels, _usual_panel_inches, output, dark=dark, no_clobber=no_clobber, quiet=quiet)


def _write_or_show(
    panels: Sequence[Panel],
    panel_inches: tuple[float, float],
    output: str | None,
    *,
    dark: bool,
    no_clobber: bool,
    quiet: bool,
) -> None:
    kind = ".png" if output in (None, "-") else Path(str(output)).suffix.lower()
    if kind not in _formats:
        raise CommandError(f"-o is {output}, expected a name that ends in {', '.join(_formats)}")
    show = _inline_protocol() if output is None else None
    if output is None and show is None:
        raise CommandError("this terminal shows no pictures, as far as its environment says; name a file with -o")
    with needs("matplotlib", "pictures"):
        from matplotlib import style
    with style.context(["default", _dark_style] if dark else "default"):
        figure = _figure(panels, panel_inches)
        # The whole picture is made in memory, so that a picture that cannot be drawn leaves no file.
        stream = io.BytesIO()
        # Without the date, the same picture is the same file.
        metadata = {"Date": None} if kind == ".svg" else {"CreationDate": None} if kind == ".pdf" else None
        figure.savefig(stream, format=kind[1:], dpi=150 if show is None else 100, metadata=metadata)
    if show is not None:
        show(stream.getvalue())
        return
    assert output is not None
    summary = Summary(quiet=quiet)
    with open_target(output, no_clobber=no_clobber) as target:
        target.write(stream.getvalue())
    summary.report(f"wrote {output}", len(stream.getvalue()))


def _figure(panels: Sequence[Panel], panel_inches: tuple[float, float]) -> Figure:
    """Panels with the same axes and colours, so that they can be compared, two in a row."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    column_count = min(len(panels), 2)
    row_count = -(-len(panels) // column_count)
    width, height = panel_inches
    # Margins are in inches, and spaces are parts of a panel.
    margins = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12, wspace=0.03, hspace=0.03)
    figure = Figure(figsize=(width * column_count, height * row_count), layout=margins)
    x_limits, y_limits = [], []
    for index, panel in enumerate(panels):
        first = figure.axes[0] if figure.axes else None
        ax = figure.add_subplot(row_count, column_count, index + 1, sharex=first, sharey=first)
        panel(ax)
        x_limits.append(ax.get_xlim())
        y_limits.append(ax.get_ylim())
        if index + column_count < len(panels):
            ax.set_xlabel("")
        if index % column_count:
            ax.set_ylabel("")
    figure.axes[0].set(xlim=_union(x_limits), ylim=_union(y_limits))
    images = [image for ax in figure.axes for image in ax.images]
    if images:
        lowest, highest = _union([image.get_clim() for image in images])
        for image in images:
            image.set_clim(lowest, highest)
        figure.colorbar(images[0], ax=figure.axes, label=images[0].get_label())
    return figure


def _union(limits: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The limits that contain all of these, in the same direction."""
    starts, ends = zip(*limits, strict=True)
    return (min(starts), max(ends)) if starts[0] < ends[0] else (max(starts), min(ends))


def _inline_protocol() -> Callable[[bytes], None] | None:
    if not sys.stdout.isatty():
        return None
    if "KITTY_WINDOW_ID" in os.environ or os.environ.get("TERM") in ("xterm-kitty", "xterm-ghostty"):
        return lambda png: print(kitty(png))
    if os.environ.get("TERM_PROGRAM") in ("iTerm.app", "WezTerm"):
        return lambda png: print(iterm(png))
    return None


def kitty(png: bytes) -> str:
    """The picture in kitty's graphics protocol, which takes at most 4096 characters at a time."""
    data = base64.b64encode(png).decode()
    parts = [data[start : start + 4096] for start in range(0, len(data), 4096)]
    texts = []
    for index, part in enumerate(parts):
        more = int(index + 1 < len(parts))
        control = f"a=T,f=100,m={more}" if index == 0 else f"m={more}"
        texts.append(f"\x1b_G{control};{part}\x1b\\")
    return "".join(texts)


def iterm(png: bytes) -> str:
    """The picture in iTerm2's inline image protocol."""
    return f"\x1b]1337;File=inline=1;size={len(png)}:{base64.b64encode(png).decode()}\x07"
