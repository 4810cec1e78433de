# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import fastpe
from fastpe import plotting

from ..oracles.refusals import Refused, check_refused, naming, rows

PICTURES: list[Callable[..., Axes]] = [
    plotting.heatmap,
    plotting.wavelengths,
    plotting.waves,
    plotting.similarity,
    plotting.float32_error,
]


def draw(picture: Callable[..., Axes], encoding: fastpe.PositionalEncoding, *arguments: Any, **keywords: Any) -> Axes:
    ax = Figure(figsize=(6, 3.6), layout="constrained").subplots()
    assert picture(encoding, *arguments, ax=ax, **keywords) is ax
    return ax


@pytest.mark.parametrize(
    "convention",
    [
        "vaswani",
        pytest.param("nerf", marks=pytest.mark.slow),
        pytest.param("fairseq", marks=pytest.mark.slow),
        pytest.param("mlx", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("picture", PICTURES)
def test_every_picture_of_every_convention_is_labelled_and_whole(picture: Callable[..., Axes], convention: str) -> None:
    ax = draw(picture, fastpe.PositionalEncoding(32, convention=convention))
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert convention in ax.get_title()
    figure = ax.get_figure()
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    # Nothing sticks out of the figure, in inches.
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert 0 <= box.x0 < box.x1 <= width
    assert 0 <= box.y0 < box.y1 <= height


@pytest.mark.parametrize("d_model", [1, 2, 5])
@pytest.mark.parametrize("picture", PICTURES)
def test_narrow_encodings(picture: Callable[..., Axes], d_model: int) -> None:
    draw(picture, fastpe.PositionalEncoding(d_model))


def test_heatmap_shows_the_encoding_where_it_is() -> None:
    encoding = fastpe.PositionalEncoding(16, convention="fairseq")
    image = draw(plotting.heatmap, encoding, 9).images[0]
    np.testing.assert_array_equal(np.asarray(image.get_array()), encoding.encode(9))
    assert tuple(image.get_extent()) == (-0.5, 15.5, 10.5, 1.5)


def test_wavelengths_are_the_encodings() -> None:
    encoding = fastpe.PositionalEncoding(16)
    line = draw(plotting.wavelengths, encoding).lines[0]
    np.testing.assert_array_equal(line.get_ydata(), encoding.wavelengths)


@pytest.mark.parametrize("convention", ["vaswani", "concat", "timestep"])
def test_waves_are_sines_by_default(convention: str) -> None:
    ax = draw(plotting.waves, fastpe.PositionalEncoding(64, convention=convention), 100)
    assert 2 <= len(ax.lines) <= 4
    for line in ax.lines:
        assert np.asarray(line.get_ydata())[0] == 0


def test_similarity_is_one_on_the_diagonal() -> None:
    image = draw(plotting.similarity, fastpe.PositionalEncoding(16), 9).images[0]
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


SCALINGS: dict[str, dict[str, Any] | None] = {
    "without": None,
    "llama3": {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    "proportional": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25},
}


@pytest.mark.parametrize("name", SCALINGS)
def test_rotary_wavelengths_are_beside_the_unscaled_ones(name: str) -> None:
    scaling = SCALINGS[name]
    rope = fastpe.RotaryEmbedding(32, interleaved=False, scaling=scaling)
    ax = Figure(figsize=(6, 3.6), layout="constrained").subplots()
    assert plotting.rotary_wavelengths(rope, ax=ax) is ax
    *unscaled, scaled = ax.lines
    # Those of frequency 0 are left out.
    turning = rope.frequencies != 0
    np.testing.assert_array_equal(scaled.get_xdata(), np.flatnonzero(turning))
    np.testing.assert_array_equal(scaled.get_ydata(), rope.wavelengths[turning])
    assert [line.get_label() for line in ax.lines] == {
        "without": ["without scaling"],
        "llama3": ["without scaling", "llama3"],
        "proportional": ["without scaling", "proportional; 12 of 16 do not turn"],
    }[name]
    if scaling is not None:
        plain = fastpe.RotaryEmbedding(32, interleaved=False, base=scaling["rope_theta"])
        np.testing.assert_array_equal(unscaled[0].get_ydata(), plain.wavelengths)
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert "rotary_dim 32" in ax.get_title()


def test_given_frequencies_have_no_unscaled_ones() -> None:
    rope = fastpe.RotaryEmbedding(4, interleaved=False, freqs=[1.0, -0.5])
    ax = Figure().subplots()
    plotting.rotary_wavelengths(rope, ax=ax)
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_ydata(), np.abs(rope.wavelengths))


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda e: plotting.waves(e, dimensions=[0, 16]), "dimensions"),
        (lambda e: plotting.waves(e, dimensions=range(8)), "dimensions"),
        (lambda e: plotting.float32_error(e, 9), "last_position"),
    ],
)
def test_errors(call: Callable[[fastpe.PositionalEncoding], Axes], argument: str) -> None:
    with pytest.raises(ValueError, match=naming(argument)):
        call(fastpe.PositionalEncoding(16))


def title_of(encoding: fastpe.PositionalEncoding) -> str:
    return draw(plotting.wavelengths, encoding).get_title()


def test_the_title_says_what_is_unusual() -> None:
    assert title_of(fastpe.PositionalEncoding(16)) == "Wavelengths: vaswani, d_model 16"
    fairseq = fastpe.PositionalEncoding(16, convention="fairseq", base=500)
    assert title_of(fairseq) == "Wavelengths: fairseq, d_model 16, base 500, first position 2"


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
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(ModuleNotFoundError, match="pip install matplotlib"):
        plotting.waves(fastpe.PositionalEncoding(8))


REFUSED: Refused = {
    (TypeError, "convention"): ["plotting.heatmap(convention='mlx')"],
    (TypeError, "colourbar"): ["plotting.heatmap(encoding, colourbar=False)"],
    (TypeError, "encoding"): ["plotting.heatmap()", "plotting.heatmap(encoding.encode(9))"],
    (TypeError, "rope"): ["plotting.rotary_wavelengths()", "plotting.rotary_wavelengths(encoding)"],
    (TypeError, "base"): ["plotting.rotary_wavelengths(base=5e5)"],
}


@pytest.mark.parametrize(("call", "error", "arguments"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], arguments: str) -> None:
    check_refused(call, error, arguments, {"plotting": plotting, "encoding": fastpe.PositionalEncoding(8)})
