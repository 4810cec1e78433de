# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import fastpe
from fastpe import plotting

from ..oracles.refusals import Refused, check_refused, rows

PICTURES: list[Callable[..., Axes]] = [
    plotting.heatmap,
    plotting.waves,
    plotting.similarity,
    plotting.float32_error,
]


def draw(picture: Callable[..., Axes], drawn: Any, *arguments: Any, **keywords: Any) -> Axes:
    ax = Figure(figsize=(6, 3.6), layout="constrained").subplots()
    assert picture(drawn, *arguments, ax=ax, **keywords) is ax
    return ax


def check_whole(ax: Axes) -> None:
    """Nothing sticks out of the figure, in inches."""
    figure = ax.get_figure()
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert 0 <= box.x0 < box.x1 <= width
    assert 0 <= box.y0 < box.y1 <= height
    assert ax.get_xlabel()
    assert ax.get_ylabel()


@pytest.mark.parametrize("convention", ["vaswani", "nerf", "fairseq", "mlx"])
@pytest.mark.parametrize("picture", PICTURES)
def test_every_picture_is_labelled_and_whole(picture: Callable[..., Axes], convention: str) -> None:
    ax = draw(picture, fastpe.PositionalEncoding(32, convention=convention))
    check_whole(ax)
    first = {"fairseq": ", first position 2"}.get(convention, "")
    assert ax.get_title().endswith(f": {convention}, d_model 32{first}")


@pytest.mark.parametrize("d_model", [1, 2, 5])
@pytest.mark.parametrize("picture", PICTURES)
def test_narrow_encodings(picture: Callable[..., Axes], d_model: int) -> None:
    draw(picture, fastpe.PositionalEncoding(d_model))


def test_the_title_says_what_is_unusual() -> None:
    ax = draw(plotting.waves, fastpe.PositionalEncoding(16, convention="fairseq", base=500))
    assert ax.get_title() == "Waves: fairseq, d_model 16, base 500, first position 2"


def test_heatmap_shows_the_encoding_where_it_is() -> None:
    encoding = fastpe.PositionalEncoding(16, convention="fairseq")
    image = draw(plotting.heatmap, encoding, 9).images[0]
    np.testing.assert_array_equal(np.asarray(image.get_array()), encoding.encode(9))
    assert tuple(image.get_extent()) == (-0.5, 15.5, 10.5, 1.5)
    # A picture has fewer pixels than this table has rows.
    (image,) = draw(plotting.heatmap, encoding, 10**6, colorbar=False).images
    shown = np.asarray(image.get_array())
    assert len(shown) == 2000
    np.testing.assert_array_equal(shown[-1], encoding.encode([10**6 + 1])[0])


@pytest.mark.parametrize("convention", ["vaswani", "concat", "timestep"])
def test_waves_are_sines_by_default(convention: str) -> None:
    ax = draw(plotting.waves, fastpe.PositionalEncoding(64, convention=convention), 100)
    assert 2 <= len(ax.lines) <= 4
    for line in ax.lines:
        assert np.asarray(line.get_ydata())[0] == 0


def test_similarity_is_one_on_the_diagonal() -> None:
    image = draw(plotting.similarity, fastpe.PositionalEncoding(16, convention="mlx"), 9).images[0]
    values = np.asarray(image.get_array())
    np.testing.assert_allclose(values.diagonal(), 1, rtol=1e-15)
    np.testing.assert_allclose(values[0, 3], values[5, 8], rtol=1e-13)


def test_float32_error_grows_and_fastpes_does_not() -> None:
    usual, own = draw(plotting.float32_error, fastpe.PositionalEncoding(64), 10**6).lines
    usual_error, own_error = (np.asarray(line.get_ydata()) for line in (usual, own))
    assert usual_error[0] < 1e-6
    assert usual_error[-1] > 1e-2
    # Half a unit in the last place below 1.
    assert own_error.max() <= 2.0**-25 * 1.000001


@pytest.mark.parametrize(
    ("arguments", "labels"),
    [
        ({}, ["without scaling"]),
        ({"scaling": {"rope_type": "linear", "rope_theta": 500000.0, "factor": 8.0}}, ["without scaling", "linear"]),
        (
            {"scaling": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25}},
            ["without scaling", "proportional; 12 of 16 do not turn"],
        ),
        ({"freqs": np.linspace(1.0, -0.45, 16)}, ["given frequencies"]),
    ],
    ids=["without", "linear", "proportional", "given"],
)
def test_rotary_wavelengths(arguments: dict[str, Any], labels: list[str]) -> None:
    rope = fastpe.RotaryEmbedding(32, interleaved=False, **arguments)
    ax = draw(plotting.rotary_wavelengths, rope)
    check_whole(ax)
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == labels
    lines = {line.get_label(): line for line in ax.lines}
    assert set(lines) == set(labels)
    turning = rope.frequencies != 0
    np.testing.assert_array_equal(lines[labels[-1]].get_xdata(), np.flatnonzero(turning))
    np.testing.assert_array_equal(lines[labels[-1]].get_ydata(), np.abs(rope.wavelengths[turning]))
    if len(labels) == 2:
        plain = fastpe.RotaryEmbedding(32, interleaved=False, base=arguments["scaling"]["rope_theta"])
        np.testing.assert_array_equal(lines["without scaling"].get_ydata(), plain.wavelengths)


@pytest.mark.parametrize(("background", "labels"), [("white", "black"), ("#1e1e1e", "#dddddd")])
def test_colours_stand_out_and_grid_lines_do_not(background: str, labels: str) -> None:
    def luminance(color: Any) -> float:
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in to_rgb(color)]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    with rc_context({"axes.facecolor": background, "axes.labelcolor": labels}):
        ax = draw(plotting.waves, fastpe.PositionalEncoding(16), dimensions=range(7))
    for line in ax.lines:
        darker, lighter = sorted([luminance(line.get_color()), luminance(background)])
        # WCAG's contrast ratio; 3 is asked of graphics, and the lightest two of the palette have a little less on white.
        assert (lighter + 0.05) / (darker + 0.05) > 2
    assert (ax.xaxis.get_gridlines()[0].get_alpha() or 1) < 0.2


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match="pip install matplotlib"):
        plotting.waves(fastpe.PositionalEncoding(8))


REFUSED: Refused = {
    (TypeError, "encoding"): ["plotting.heatmap()", "plotting.heatmap(encoding.encode(9))"],
    (TypeError, "rope"): ["plotting.rotary_wavelengths()", "plotting.rotary_wavelengths(encoding)"],
    (ValueError, "dimensions"): [
        "plotting.waves(encoding, dimensions=[0, 8])",
        "plotting.waves(encoding, dimensions=[0] * 8)",
    ],
    (ValueError, "last_position"): ["plotting.float32_error(encoding, 9)"],
}


@pytest.mark.parametrize(("call", "error", "arguments"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], arguments: str) -> None:
    check_refused(call, error, arguments, {"plotting": plotting, "encoding": fastpe.PositionalEncoding(8)})
