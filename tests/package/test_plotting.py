# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import fastpe
from fastpe import plotting

from ..oracles.refusals import Refused, check_refused, rows

PICTURES: list[Callable[..., Axes]] = [plotting.heatmap, plotting.waves, plotting.similarity, plotting.float32_error]


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


@pytest.mark.parametrize("convention", ["vaswani", pytest.param("nerf", marks=pytest.mark.slow)])
@pytest.mark.parametrize("picture", PICTURES)
def test_every_picture_is_labelled_and_whole(picture: Callable[..., Axes], convention: Any) -> None:
    ax = draw(picture, fastpe.PositionalEncoding(32, convention=convention))
    check_whole(ax)
    assert convention in ax.get_title()
    for d_model in (1, 2, 5) if convention == "vaswani" else ():
        draw(picture, fastpe.PositionalEncoding(d_model))


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("picture", PICTURES[:3])
def test_few_positions_are_whole_numbers(picture: Callable[..., Axes], rows: int) -> None:
    ax = draw(picture, fastpe.PositionalEncoding(2), rows)
    assert all(tick == round(tick) for tick in ax.get_xticks())
    assert picture is plotting.waves or all(tick == round(tick) for tick in ax.get_yticks())


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
def test_waves_are_sines_by_default(convention: Any) -> None:
    ax = draw(plotting.waves, fastpe.PositionalEncoding(64, convention=convention), 100)
    assert 2 <= len(ax.lines) <= 4
    for line in ax.lines:
        assert np.asarray(line.get_ydata())[0] == 0


def test_float32_error_grows_and_fastpes_does_not() -> None:
    usual, own = draw(plotting.float32_error, fastpe.PositionalEncoding(64), 10**6).lines
    usual_error, own_error = (np.asarray(line.get_ydata()) for line in (usual, own))
    assert usual_error[0] < 1e-6
    assert usual_error[-1] > 1e-2
    # Half a unit in the last place below 1.
    assert own_error.max() <= 2.0**-25 * 1.000001


def test_rotary_wavelengths() -> None:
    scaling = {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25}
    rope = fastpe.RotaryEmbedding(32, interleaved=False, scaling=scaling)
    ax = draw(plotting.rotary_wavelengths, rope)
    check_whole(ax)
    scaled, plain = ax.lines
    np.testing.assert_array_equal(
        plain.get_ydata(), fastpe.RotaryEmbedding(32, interleaved=False, base=1e6).wavelengths
    )
    turning = rope.frequencies != 0
    np.testing.assert_array_equal(scaled.get_xdata(), np.flatnonzero(turning))
    np.testing.assert_array_equal(scaled.get_ydata(), rope.wavelengths[turning])
    given = fastpe.RotaryEmbedding(4, interleaved=False, frequencies=[1.0, -0.5])
    (line,) = draw(plotting.rotary_wavelengths, given).lines
    np.testing.assert_array_equal(line.get_ydata(), np.abs(given.wavelengths))


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
