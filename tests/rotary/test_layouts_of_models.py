# SPDX-License-Identifier: BSD-3-Clause
"""`rotary_layouts`: the formulas of the models, their position ids, and calls that several parts of a head share.

The comparison with the models' own modules is tests/peers/test_rotary_layouts.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

import fastpe

from ..oracles.refusals import Refused, check_refused, each, rows
from .oracle import Array

LAYOUTS: Any = fastpe.rotary_layouts


# The formulas, as plainly as possible. A formula gives (coordinate, frequency) of each pair.


def geometric(count: int, theta: float) -> list[Any]:
    return [mpmath.power(theta, -mpmath.mpf(k) / count) for k in range(count)]


def runs(*sections: int) -> Callable[..., Any]:
    def formula(head_dim: int, theta: float) -> list[tuple[int, Any]]:
        owners = [axis for axis, count in enumerate(sections) for _ in range(count)]
        return list(zip(owners, geometric(sum(sections), theta), strict=True))

    return formula


def strides(*sections: int) -> Callable[..., Any]:
    def owner(k: int) -> int:
        return k % 3 if k % 3 and k < 3 * sections[k % 3] else 0

    return lambda head_dim, theta: [(owner(k), w) for k, w in enumerate(geometric(sum(sections), theta))]


def ernie(head_dim: int, theta: float) -> list[tuple[int, Any]]:
    return [(0 if k >= 44 else 1 + k % 2, w) for k, w in enumerate(geometric(64, theta))]


def pixtral(head_dim: int, theta: float) -> list[tuple[int, Any]]:
    shared = geometric(head_dim // 2, theta)
    return [(0, w) for w in shared[0::2]] + [(1, w) for w in shared[1::2]]


def blocks(*counts: int, scale: Any = 1) -> Callable[..., Any]:
    return lambda head_dim, theta: [
        (axis, scale * w) for axis, count in enumerate(counts) for w in geometric(count, theta)
    ]


def kimi(head_dim: int, theta: float) -> list[tuple[int, Any]]:
    return [(axis, w) for w in geometric(head_dim // 4, theta) for axis in (1, 0)]


def pixels(head_dim: int, theta: float) -> list[tuple[int, Any]]:
    count = head_dim // 4
    bands = [mpmath.pi * (1 + (mpmath.mpf(theta) / 2 - 1) * k / (count - 1)) for k in range(count)]
    return [(axis, w) for axis in (0, 1) for w in bands]


class Case(NamedTuple):
    head_dim: int
    theta: float
    formula: Callable[..., Any]
    interleaved: bool
    form: str
    # Some row of a sequence.
    position: tuple[float, ...]
    width: int | None = None


TURN = 2 * mpmath.pi
CASES = {
    "qwen2_vl": Case(128, 1e6, runs(16, 24, 24), False, "tile", (7, 19, 1033)),
    "qwen3_vl": Case(128, 5e6, strides(24, 20, 20), False, "tile", (7, 19, 1033)),
    "qwen3_5": Case(256, 1e7, strides(11, 11, 10), False, "tile", (7, 19, 1033), 64),
    "glm4v": Case(128, 1e4, runs(8, 12, 12), True, "repeat", (7, 19, 1033), 64),
    "glm4v_moe": Case(128, 1e4, runs(8, 12, 12), False, "tile", (7, 19, 1033), 64),
    "ernie4_5_vl": Case(128, 5e5, ernie, True, "repeat", (7, 19, 1033)),
    "hy_v4_vl": Case(64, 1e7, strides(12, 10, 10), True, "tile", (7, 19, 1033)),
    "qwen2_vl_vision": Case(80, 1e4, blocks(20, 20), False, "tile", (3, 250)),
    "kimi_k25_vision": Case(72, 1e4, kimi, False, "tile", (3, 63)),
    "minimax_m3_vl_vision": Case(80, 1e4, blocks(13, 13, 13), False, "tile", (3, 5, 63), 78),
    "pixtral": Case(64, 1e4, pixtral, False, "tile", (3, 63)),
    "llama4_vision": Case(88, 1e4, blocks(22, 22), True, "complex", (3, 24)),
    "gemma4_vision": Case(72, 100, blocks(18, 18), False, "gemma4", (3, 250)),
    "dinov3": Case(64, 100, blocks(16, 16, scale=TURN), False, "tile", (-0.75, 0.96875)),
    "timm_dinov3": Case(64, 100, blocks(16, 16, scale=TURN), False, "sin_cos_tile", (-0.75, 0.96875)),
    "timm": Case(64, 1e4, blocks(16, 16), True, "sin_cos_repeat", (3.25, 15)),
    "timm_pixel": Case(64, 224, pixels, True, "sin_cos_repeat", (-0.75, 0.96875)),
    "sam2": Case(256, 1e4, blocks(64, 64), True, "repeat", (3, 63)),
    "flux": Case(128, 1e4, blocks(8, 28, 28), True, "repeat", (1, 3, 127)),
    "flux2": Case(128, 2000, blocks(16, 16, 16, 16), True, "repeat", (10, 3, 127, 511)),
    "qwen_image": Case(128, 1e4, blocks(8, 28, 28), True, "complex", (1, -32, 1031)),
    "hunyuan_video": Case(128, 256, blocks(8, 28, 28), True, "repeat", (32, 3, 79)),
    "wan": Case(128, 1e4, blocks(22, 21, 21), True, "repeat", (20, 3, 79)),
    "cogvideox": Case(64, 1e4, blocks(8, 12, 12), True, "repeat", (12, 3.625, 44)),
    "lumina2": Case(96, 1e4, blocks(16, 16, 16), True, "complex", (255, 3, 63)),
    "z_image": Case(128, 256, blocks(16, 24, 24), True, "complex", (513, 3, 63)),
}


def arranged(form: str, cosines: Array, sines: Array) -> Array | tuple[Array, Array]:
    """Cosines and sines [pairs], as the form puts them into columns."""
    if form == "complex":
        return np.array([complex(c, s) for c, s in zip(cosines, sines, strict=True)])
    if form == "tile":
        return np.tile(cosines, 2), np.tile(sines, 2)
    if form == "repeat":
        return np.repeat(cosines, 2), np.repeat(sines, 2)
    if form == "gemma4":
        order = np.concatenate([np.tile(np.arange(18), 2), 18 + np.tile(np.arange(18), 2)])
        return cosines[order], sines[order]
    assert form in ("sin_cos_tile", "sin_cos_repeat")
    spread = np.tile if form == "sin_cos_tile" else np.repeat
    return np.concatenate([spread(sines, 2), spread(cosines, 2)])


def pair_columns(case: Case, name: str) -> tuple[Array, Array]:
    k = np.arange((case.width or case.head_dim) // 2)
    if case.interleaved:
        return 2 * k, 2 * k + 1
    if name == "gemma4_vision":
        first = np.where(k < 18, k, k + 18)
        return first, first + 18
    return k, k + len(k)


def options_of(name: str) -> dict[str, Any]:
    return {"theta": CASES[name].theta} if LAYOUTS[name].theta is None else {}


def test_one_coordinate_has_one_name() -> None:
    names = {name for layout in LAYOUTS.values() for name in layout.coordinates}
    assert names == {"image", "text", "time", "height", "width"}


def test_every_layout_has_a_formula() -> None:
    assert list(CASES) == list(LAYOUTS)


@pytest.mark.parametrize("name", CASES)
def test_tables_and_rotations_are_the_formula(name: str) -> None:
    case, layout = CASES[name], LAYOUTS[name]
    with mpmath.workdps(40):
        angles = [mpmath.mpf(case.position[axis]) * w for axis, w in case.formula(case.head_dim, case.theta)]
        exact = [mpmath.cos_sin(angle) for angle in angles]
        cosines, sines = (np.array([float(pair[i]) for pair in exact]) for i in (0, 1))
    # A frequency is rounded to float64, that of DINOv3 and of pixels a few times.
    bound = float(max(map(abs, angles))) * 2.0**-51 + 2.0**-52
    for dtype, rounding in ((np.float64, 2.0**-53), (np.float32, 2.0**-24)):
        tables = layout.tables([case.position], case.head_dim, dtype=dtype, **options_of(name))
        expected = arranged(case.form, cosines, sines)
        assert isinstance(tables, tuple) == isinstance(expected, tuple)
        for ours, truth in zip(
            tables if isinstance(tables, tuple) else (tables,),
            expected if isinstance(expected, tuple) else (expected,),
            strict=True,
        ):
            assert ours.shape == (1, *truth.shape)
            assert np.abs(ours[0] - truth).max() <= (bound + rounding) * (2 if case.form == "complex" else 1)

    x = np.random.default_rng(0).standard_normal((2, 1, case.head_dim))
    first, second = pair_columns(case, name)
    expected_x = x.copy()
    expected_x[..., first] = x[..., first] * cosines - x[..., second] * sines
    expected_x[..., second] = x[..., second] * cosines + x[..., first] * sines
    result = layout.rotate(x, positions=[case.position], **options_of(name))
    np.testing.assert_allclose(result, expected_x, rtol=0, atol=5 * (2 * bound + 2.0**-51))
    untouched = np.setdiff1d(np.arange(case.head_dim), np.concatenate([first, second]))
    assert len(untouched) == case.head_dim - 2 * len(first)
    np.testing.assert_array_equal(result[..., untouched], x[..., untouched])
    again = layout.rotate(result, positions=[case.position], inverse=True, **options_of(name))
    np.testing.assert_allclose(again, x, rtol=0, atol=1e-14)
    assert layout.rotate_(x, positions=[case.position], **options_of(name)) is x
    np.testing.assert_array_equal(x, result)


@pytest.mark.parametrize("name", ["qwen2_vl", "qwen3_vl", "ernie4_5_vl"])
def test_text_alone_has_the_bits_of_one_coordinate(name: str) -> None:
    layout = LAYOUTS[name]
    ids = layout.positions(9, start=100)
    one = fastpe.RotaryEmbedding(128, interleaved=layout.interleaved, base=5e5, form=layout.form)
    for ours, expected in zip(layout.tables(ids, 128, theta=5e5), one.tables(9, offset=100), strict=True):
        np.testing.assert_array_equal(ours, expected)


# Options


def test_other_sections_and_bases() -> None:
    flux = LAYOUTS["flux"]
    krea = dataclasses.replace(flux, name="krea", theta=1000.0, sections=(16, 24, 24))
    ids = flux.positions((2, 3))
    for called, replaced in zip(
        flux.tables(ids, 128, theta=1000, sections=[16, 24, 24]), krea.tables(ids, 128), strict=True
    ):
        np.testing.assert_array_equal(called, replaced)
    assert "changed from the preset" not in str(krea)
    assert "sections=(16, 24, 24)" in str(dataclasses.replace(flux, sections=(16, 24, 24)))
    ((columns, rope, coordinates),) = flux.parts(128, sections=(16, 24, 24))
    assert rope.axes == (0,) * 16 + (1,) * 24 + (2,) * 24
    assert (columns, coordinates, rope.form) == (slice(0, 128), (0, 1, 2), "repeat")
    ((narrow, _, _),) = LAYOUTS["glm4v"].parts(128, theta=1e4)
    assert narrow == slice(0, 64)


def test_parts_rotate_their_columns() -> None:
    layout = LAYOUTS["gemma4_vision"]
    ids = layout.positions((3, 4))
    x = np.random.default_rng(1).standard_normal((2, 12, 64), dtype=np.float32)
    expected = x.copy()
    for columns, rope, coordinates in layout.parts(64):
        rope.rotate_(expected[..., columns], positions=ids[:, coordinates])
    np.testing.assert_array_equal(layout.rotate(x, positions=ids), expected)
    batched = np.stack([ids, ids[::-1]])
    result = layout.rotate(x[:, None], positions=batched, lengths=[12, 5])
    np.testing.assert_array_equal(result[0, 0], expected[0])
    np.testing.assert_array_equal(result[1, 0, 5:], x[1, 5:])
    out = np.full_like(x, 7)
    assert layout.rotate(x, positions=ids, out=out) is out
    np.testing.assert_array_equal(out, expected)
    assert layout.rotate(x, positions=ids, out=x) is x
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("name", ["gemma4_vision", "timm", "flux"])
def test_tables_go_into_arrays_that_are_given(name: str) -> None:
    layout, case = LAYOUTS[name], CASES[name]
    ids = layout.positions((3, 4))
    for dtype in (np.float16, np.float64):
        expected = layout.tables(ids, case.head_dim, dtype=dtype)
        pair = expected if isinstance(expected, tuple) else (expected,)
        given = tuple(np.full_like(table, 7) for table in pair)
        out = given if isinstance(expected, tuple) else given[0]
        result = layout.tables(ids, case.head_dim, out=out)
        for table, own, truth in zip(result if isinstance(result, tuple) else (result,), given, pair, strict=True):
            assert table is own
            np.testing.assert_array_equal(own, truth)
    halves = layout.tables(ids, case.head_dim, form="halves")[0]
    assert halves.shape == (12, case.head_dim // 2)


@pytest.mark.parametrize("form", ["halves", "repeat", "cos_sin", "pairs", "complex", "angles", "sin_cos_repeat"])
def test_other_forms_of_several_parts_have_the_frequencies_in_their_order(form: str) -> None:
    layout = LAYOUTS["gemma4_vision"]
    ids = layout.positions((2, 3))
    frequencies = np.concatenate([rope.frequencies for _, rope, _ in layout.parts(64)])
    whole = fastpe.RotaryEmbedding(64, interleaved=False, freqs=frequencies, axes=np.repeat([0, 1], 16))
    if form == "sin_cos_repeat":
        expected: Any = np.concatenate(whole.tables(ids, form="repeat")[::-1], axis=-1)
    else:
        expected = whole.tables(ids, form=form)
    np.testing.assert_array_equal(layout.tables(ids, 64, form=form), expected)


# Position ids: (layout, segments, options, one line per coordinate)


IDS: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    (
        "qwen2_vl",
        (2, (1, 4, 6), 2),
        {},
        [[0, 1, 2, 2, 2, 2, 2, 2, 5, 6], [0, 1, 2, 2, 2, 3, 3, 3, 5, 6], [0, 1, 2, 3, 4, 2, 3, 4, 5, 6]],
    ),
    ("qwen2_vl", ((3, 2, 2), 1), {"time_interval": 2.5}, [[0, 2, 5, 6], [0, 0, 0, 6], [0, 0, 0, 6]]),
    ("qwen2_vl", (1, (1, 1, 2)), {"start": 7, "merge_size": 1}, [[7, 8, 8], [7, 8, 8], [7, 8, 9]]),
    ("qwen3_vl", (1, (1, 2, 4), 1, (1, 2, 4)), {}, [[0, 1, 1, 3, 4, 4], [0, 1, 1, 3, 4, 4], [0, 1, 2, 3, 4, 5]]),
    ("qwen2_vl_vision", ((1, 2, 4),), {}, [[0, 0, 1, 1, 0, 0, 1, 1], [0, 1, 0, 1, 2, 3, 2, 3]]),
    ("qwen2_vl_vision", ((2, 1, 2),), {"merge_size": 1}, [[0, 0, 0, 0], [0, 1, 0, 1]]),
    ("kimi_k25_vision", ((2, 1, 2),), {}, [[0, 0, 0, 0], [0, 1, 0, 1]]),
    (
        "minimax_m3_vl_vision",
        ((2, 2, 2), (1, 2, 2)),
        {},
        [[0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1] * 3, [0, 1, 0, 1] * 3],
    ),
    ("pixtral", ((1, 2), (2, 1)), {}, [[0, 0, 0, 1], [0, 1, 0, 0]]),
    ("llama4_vision", ((2, 2),), {}, [[1, 2, 1, 2, 0], [1, 1, 2, 2, 0]]),
    ("gemma4_vision", ((2, 3),), {}, [[0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1]]),
    ("dinov3", ((2, 4),), {}, [[-0.5] * 4 + [0.5] * 4, [-0.75, -0.25, 0.25, 0.75] * 2]),
    ("timm", ((2, 4),), {"trained_shape": (1, 1)}, [[0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5], [0, 0.25, 0.5, 0.75] * 2]),
    ("timm_pixel", ((2, 3),), {}, [[-1, -1, -1, 1, 1, 1], [-1, 0, 1, -1, 0, 1]]),
    ("sam2", ((2, 4),), {"trained_shape": (1, 2)}, [[0, 0.5, 1, 1.5] * 2, [0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5]]),
    ("flux", (1, (2, 2)), {}, [[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 1, 0, 1]]),
    (
        "flux2",
        (2, (1, 2), (1, 1), (1, 1)),
        {},
        [[0, 0, 0, 0, 10, 20], [0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 0]],
    ),
    (
        "qwen_image",
        (2, (1, 2, 3)),
        {},
        [[1, 2, 0, 0, 0, 0, 0, 0], [1, 2, -1, -1, -1, 0, 0, 0], [1, 2, -2, -1, 0, -2, -1, 0]],
    ),
    ("qwen_image", ((1, 1, 1), (1, 1, 2)), {}, [[0, 1, 1], [-1, -1, -1], [-1, -1, 0]]),
    ("qwen_image", (2,), {}, [[0, 1], [0, 1], [0, 1]]),
    ("wan", ((2, 1, 2),), {}, [[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 1]]),
    ("cogvideox", ((1, 2, 2),), {"trained_shape": (4, 8)}, [[0, 0, 0, 0], [0, 0, 2, 2], [2, 3, 2, 3]]),
    ("lumina2", (2, (1, 2)), {}, [[0, 1, 2, 2], [0, 0, 0, 0], [0, 0, 0, 1]]),
]


@pytest.mark.parametrize(("name", "segments", "options", "expected"), IDS)
def test_position_ids(name: str, segments: Any, options: Any, expected: Any) -> None:
    ids = LAYOUTS[name].positions(*segments, **options)
    np.testing.assert_array_equal(ids.T, expected)
    is_fractional = "trained_shape" in options or name in ("dinov3", "timm_pixel")
    assert ids.dtype == (np.float64 if is_fractional else np.int64)
    assert ids.shape[1] == len(LAYOUTS[name].coordinates)


def test_times_of_frames_are_rounded_as_in_transformers() -> None:
    # 45 * 1.4 is 63 in float32, and a little less in float64.
    assert LAYOUTS["qwen2_vl"].positions((46, 2, 2), time_interval=1.4)[45, 0] == 63


def test_z_image_fills_up_to_multiples_of_32() -> None:
    ids = LAYOUTS["z_image"].positions((1, 5, 7), 33)
    assert ids.shape == (64 + 64, 3)
    np.testing.assert_array_equal(ids[:2], [[65, 0, 0], [65, 0, 1]])
    np.testing.assert_array_equal(ids[34:65], [[65, 4, 6]] + [[0, 0, 0]] * 29 + [[1, 0, 0]])
    np.testing.assert_array_equal(ids[64:, 0], np.arange(1, 65))


# Wrong calls: refused before anything is written, some only because of the second part of a head or the second array


REFUSED: Refused = {
    # ---- Segments
    (ValueError, "segments"): [
        *each("layouts['flux'].positions({})", "1, (2, 2, 2) | -1 | 1, (0, 3)"),
        "layouts['qwen2_vl'].positions((1, 4, 5))",
        "layouts['qwen3_vl'].positions((3, 4, 4))",
        "layouts['lumina2'].positions((2, 2), 3)",
        "layouts['z_image'].positions(3, (1, 2, 2))",
    ],
    (ValueError, "merge_size"): ["layouts['flux'].positions(1, merge_size=2)"],
    (ValueError, "time_interval"): [
        "layouts['qwen2_vl'].positions(1, time_interval=0)",
        "layouts['qwen3_vl'].positions(1, time_interval=2.0)",
    ],
    (TypeError, "trained_shape"): ["layouts['timm'].positions((2, 2), trained_shape=3)"],
    # ---- Widths and options
    (ValueError, "head_dim"): [
        *each("layouts['flux'].parts({})", "64 | 256 | 128, sections=(16, 56, 56)"),
        "layouts['glm4v'].parts(48, theta=1e4)",
        "layouts['sam2'].parts(66)",
        "layouts['cogvideox'].parts(72)",
        *each("layouts['wan'].parts({})", "65 | 4"),
        "gemma.rotate_(q[..., :63], positions=ids)",
    ],
    (TypeError, "head_dim"): ["layouts['wan'].parts(64.0)"],
    (ValueError, "sections"): [
        "layouts['flux'].parts(128, sections=(32, 32))",
        "layouts['ernie4_5_vl'].parts(128, theta=1e4, sections=(24, 20, 20))",
    ],
    (TypeError, "sections"): ["layouts['flux'].parts(128, sections=64)"],
    (ValueError, "theta"): ["layouts['qwen2_vl'].parts(128)", "layouts['qwen2_vl'].parts(128, theta=0.5)"],
    # ---- Rotations
    (ValueError, "positions"): [
        *each("gemma.rotate_(q, k, positions={})", "nan | np.zeros((6, 3)) | np.arange(6) | ids[:5]"),
        *each("gemma.rotate(q, positions={}, out=out)", "nan | ids[:5]"),
        *each("gemma.tables({}, 64, out=pair)", "np.zeros((6, 3)) | nan"),
        "layouts['timm'].tables(nan, 64, out=np.ones((6, 128), 'f4'))",
        "layouts['timm'].tables(6, 64)",
    ],
    (ValueError, "others"): [
        "gemma.rotate_(q, k[..., :60], positions=ids)",
        "gemma.rotate_(q, readonly, positions=ids)",
    ],
    (TypeError, "others"): ["gemma.rotate_(q, k.astype('f8'), positions=ids)"],
    # The parts of each array lie apart from each other; the arrays do not.
    (ValueError, "x others"): ["gemma.rotate_(wide[:, :64], wide[:, 32:96], positions=ids)"],
    (ValueError, "x"): ["gemma.rotate_(q[0, 0], positions=ids)"],
    (TypeError, "x"): ["gemma.rotate_(q.tolist(), positions=ids)"],
    (ValueError, "mask"): ["gemma.rotate_(q, k, positions=ids, mask=np.ones((1, 5), bool))"],
    (ValueError, "out x"): ["gemma.rotate(wide[:, :64], positions=ids, out=wide[:, 8:72])"],
    (ValueError, "out"): [
        "gemma.rotate(q, positions=ids, out=out[:1])",
        "layouts['timm'].tables(ids, 64, out=pair[0])",
    ],
    (TypeError, "out"): each("gemma.rotate(q, positions=ids, out=out.astype({}))", "complex | object | np.longdouble"),
    (ValueError, "form"): ["gemma.tables(ids, 64, form='tiles')"],
    # ---- Fields
    **{
        (ValueError, name): each("replace(layouts['flux'], {})", changes)
        for name, changes in {
            "division": "division='run' | division='parity' | coordinates=('x', 'y'), division='turns'",
            "ids": "ids='grid'",
            "coordinates": "coordinates=('x',)",
            "freq_scale": "division='runs', freq_scale=2.0",
            "proportions": "proportions=(1, 2)",
        }.items()
    },
    (TypeError, "interleaved"): ["replace(layouts['flux'], interleaved=1)"],
    # ---- Names
    (KeyError, "flux"): ["layouts['fluxx']", "layouts['Chroma']"],
    (KeyError, "pixtral"): ["layouts['pixtrl']"],
    (KeyError, "qwen2_vl"): ["layouts['qwen2.vl']", "layouts['']"],
    (KeyError, "timm"): ["layouts['EVA-02']"],
    (ValueError, "layout flux"): ["layouts.find('flx')"],
    (KeyError, "vjepa2"): ["layouts['vjepa2']"],
}


def names() -> dict[str, Any]:
    gemma = LAYOUTS["gemma4_vision"]
    ids = gemma.positions((2, 3)).astype(float)
    not_finite = ids.copy()
    not_finite[5, 1] = np.nan
    arrays = {"q": (2, 6, 64), "k": (1, 6, 64), "out": (2, 6, 64), "wide": (6, 96), "readonly": (1, 6, 64)}
    found: dict[str, Any] = {name: np.ones(shape, np.float32) for name, shape in arrays.items()}
    found["readonly"].flags.writeable = False
    pair = np.ones((6, 64), np.float32), np.ones((6, 64), np.float32)
    found |= {"layouts": LAYOUTS, "gemma": gemma, "ids": ids, "nan": not_finite, "pair": pair}
    return found | {"np": np, "replace": dataclasses.replace}


@pytest.mark.parametrize(("call", "error", "arguments"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], arguments: str) -> None:
    check_refused(call, error, arguments, names())


class Once:
    """A value that can be converted once: an argument whose own code raises later."""

    def __init__(self, value: Any) -> None:
        self._values = [value]

    def __index__(self) -> int:
        return int(self._next())

    def __array__(self, *_: Any, **__: Any) -> Array:
        return np.asarray(self._next())

    def _next(self) -> Any:
        if not self._values:
            raise MemoryError
        return self._values.pop()


@pytest.mark.parametrize(
    ("argument", "value"),
    [("num_threads", 1), ("seq_axis", 1), ("mask", [[1, 0, 1, 1, 0, 1]]), ("lengths", [4]), ("positions", None)],
)
def test_arguments_are_converted_once(argument: str, value: Any) -> None:
    layout = LAYOUTS["gemma4_vision"]
    ids = layout.positions((2, 3))
    given = {argument: ids if value is None else value}
    options = {"positions": ids, **given}
    q, k = (names()[name] + np.arange(64, dtype=np.float32) for name in "qk")
    q, k = q[None], k[None]
    if argument == "seq_axis":
        q, k = q[:, 0, :, None], k[:, 0, :, None]
    expected = [layout.rotate(each, **options) for each in (q, k)]
    once = {**options, argument: Once(given[argument])}
    np.testing.assert_array_equal(layout.rotate(q, **once), expected[0])
    layout.rotate_(q, k, **{**options, argument: Once(given[argument])})
    np.testing.assert_array_equal(q, expected[0])
    np.testing.assert_array_equal(k, expected[1])


@pytest.mark.parametrize("call", ["rotate_", "rotate"])
def test_a_rotation_of_parts_that_fails_leaves_arrays_as_they_are(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = LAYOUTS["gemma4_vision"]
    q, k = (names()[name] for name in "qk")
    ids = layout.positions((2, 3))
    rotate_ = fastpe.RotaryEmbedding.rotate_

    def failing(rope: Any, *arrays: Array, **options: Any) -> Any:
        rotate_(rope, *arrays, **options)
        if rope.frequencies.any():  # else the call only checks
            raise MemoryError

    monkeypatch.setattr(fastpe.RotaryEmbedding, "rotate_", failing)
    with pytest.raises(MemoryError):
        layout.rotate_(q, k, positions=ids) if call == "rotate_" else layout.rotate(q, positions=ids, out=q)
    assert (q == 1).all()
    assert (k == 1).all()
