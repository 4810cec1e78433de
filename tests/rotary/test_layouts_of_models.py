# SPDX-License-Identifier: BSD-3-Clause
"""`rotary_layouts`: the formulas of the models, the embeddings made of them, and their position ids.

The comparison with the models' own modules is tests/peers/test_rotary_layouts.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

import fastpe
from fastpe._config.file import table

from ..oracles.refusals import Refused, check_refused, each, rows
from .oracle import Array

LAYOUTS: Any = fastpe.rotary_layouts
MODELS = table()


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
    base: float
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
    "moonvit": Case(72, 1e4, kimi, True, "complex", (3, 63)),
    "minimax_m3_vl_vision": Case(80, 1e4, blocks(13, 13, 13), False, "tile", (3, 5, 63), 78),
    "pixtral": Case(64, 1e4, pixtral, False, "tile", (3, 63)),
    "llama4_vision": Case(88, 1e4, blocks(22, 22), True, "complex", (3, 24)),
    "dinov3": Case(64, 100, blocks(16, 16, scale=TURN), False, "tile", (-0.75, 0.96875)),
    "timm_dinov3": Case(64, 100, blocks(16, 16, scale=TURN), False, "tile", (-0.75, 0.96875)),
    "timm": Case(64, 1e4, blocks(16, 16), True, "repeat", (3.25, 15)),
    "timm_pixel": Case(64, 224, pixels, True, "repeat", (-0.75, 0.96875)),
    "sam2": Case(256, 1e4, blocks(64, 64), True, "repeat", (3, 63)),
    "flux": Case(128, 1e4, blocks(8, 28, 28), True, "repeat", (1, 3, 127)),
    "flux2": Case(128, 2000, blocks(16, 16, 16, 16), True, "repeat", (10, 3, 127, 511)),
    "flux3": Case(128, 1e4, blocks(16, 16, 16, 16), True, "repeat", (0, 3.5, 127, -2)),
    "qwen_image_2_1": Case(128, 1e4, blocks(8, 28, 28), True, "complex", (517, -32, 31)),
    "ideogram4": Case(256, 5e6, strides(88, 20, 20), False, "tile", (65536, 65539, 65663)),
    "cosmos": Case(128, 1e4, blocks(22, 21, 21), False, "tile", (12.8, 3, 79)),
    "kandinsky": Case(64, 1e4, blocks(8, 12, 12), True, "matrices", (20, 3.5, 79)),
    "cogview4": Case(40, 1e4, blocks(10, 10), False, "tile", (3, 255)),
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
    if form == "matrices":
        return np.array([[[c, -s], [s, c]] for c, s in zip(cosines, sines, strict=True)])
    spread: Any = {"tile": np.tile, "repeat": np.repeat}[form]
    return spread(cosines, 2), spread(sines, 2)


def rope_of(name: Any, **options: Any) -> Any:
    """The embedding of a layout, with a base where the layout has none."""
    case = CASES[name]
    try:
        return fastpe.RotaryEmbedding.from_layout(name, case.head_dim, **options)
    except ValueError as error:
        if "give base=" not in str(error):
            raise
        return fastpe.RotaryEmbedding.from_layout(name, case.head_dim, base=case.base, **options)


def test_one_coordinate_has_one_name() -> None:
    names = {name for layout in LAYOUTS.values() for name in layout.coordinates}
    assert names == {"image", "text", "time", "height", "width"}


def test_every_layout_has_a_formula() -> None:
    assert sorted([*CASES, "gemma4_vision", "rope2d"]) == sorted(LAYOUTS)


@pytest.mark.parametrize("name", CASES)
def test_tables_and_rotations_are_the_formula(name: str) -> None:
    case, rope = CASES[name], rope_of(name)
    assert (rope.interleaved, rope.form, rope.head_dim) == (case.interleaved, case.form, case.head_dim)
    with mpmath.workdps(40):
        angles = [mpmath.mpf(case.position[axis]) * w for axis, w in case.formula(case.head_dim, case.base)]
        exact = [mpmath.cos_sin(angle) for angle in angles]
        cosines, sines = (np.array([float(pair[i]) for pair in exact]) for i in (0, 1))
    # A frequency is rounded to float64, that of DINOv3 and of pixels a few times.
    bound = float(max(map(abs, angles))) * 2.0**-51 + 2.0**-52
    for dtype, rounding in ((np.float64, 2.0**-53), (np.float32, 2.0**-24)):
        tables = rope.tables([case.position], form=rope.form, dtype=dtype)
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
    k = np.arange((case.width or case.head_dim) // 2)
    first, second = (2 * k, 2 * k + 1) if case.interleaved else (k, k + len(k))
    expected_x = x.copy()
    expected_x[..., first] = x[..., first] * cosines - x[..., second] * sines
    expected_x[..., second] = x[..., second] * cosines + x[..., first] * sines
    result = rope.rotate(x, positions=[case.position], seq_axis=-2)
    np.testing.assert_allclose(result, expected_x, rtol=0, atol=5 * (2 * bound + 2.0**-51))
    np.testing.assert_array_equal(result[..., 2 * len(k) :], x[..., 2 * len(k) :])


@pytest.mark.parametrize("name", ["gemma4_vision", "rope2d"])
def test_the_remedy_for_halves_of_a_head_rotates_them(name: Any) -> None:
    """Each half by one coordinate, whose frequencies are those of its own columns."""
    ids = LAYOUTS[name].positions((3, 5))
    q = np.random.default_rng(1).standard_normal((2, 15, 72))
    angles = ids[:, :, None] * 100.0 ** (-np.arange(18) / 18)  # [N, 2, 18]
    halves = q.reshape(2, 15, 2, 2, 18)
    first, second = halves[..., 0, :], halves[..., 1, :]
    cos, sin = np.cos(angles), np.sin(angles)
    expected = np.stack([first * cos - second * sin, second * cos + first * sin], axis=-2).reshape(q.shape)
    with pytest.raises(ValueError, match="rotate the halves: ") as refused:
        fastpe.RotaryEmbedding.from_layout(name, 72)
    given = {"fastpe": fastpe, "q": q, "ids": ids}
    for statement in str(refused.value).partition("rotate the halves: ")[2].split("; "):
        exec(statement, given)  # noqa: S102
    np.testing.assert_allclose(q, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ["qwen2_vl", "qwen3_vl", "ernie4_5_vl"])
def test_text_alone_has_the_bits_of_one_coordinate(name: str) -> None:
    ids, rope = LAYOUTS[name].positions(9, start=100), rope_of(name)
    one = fastpe.RotaryEmbedding(128, interleaved=rope.interleaved, base=CASES[name].base)
    for ours, expected in zip(rope.tables(ids, form="halves"), one.tables(9, offset=100), strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_other_sections_and_bases() -> None:
    krea = fastpe.RotaryEmbedding.from_layout(LAYOUTS["flux"], 128, base=1000, sections=[16, 24, 24], max_len=9)
    assert (krea.frequency_axes, krea.max_len) == ((0,) * 16 + (1,) * 24 + (2,) * 24, 9)
    np.testing.assert_array_equal(
        krea.frequencies[:16], fastpe.RotaryEmbedding(32, interleaved=True, base=1000).frequencies
    )
    assert fastpe.RotaryEmbedding.from_layout("flux", 128).frequencies[1] == pytest.approx(1e4 ** (-1 / 8), rel=1e-15)


# Position ids: (layout, segments, options, one line per coordinate)


IDS: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("qwen2_vl", (2, (1, 4, 6), 2), {}, [[0, 1, 2, 2, 2, 2, 2, 2, 5, 6], [0, 1, 2, 2, 2, 3, 3, 3, 5, 6], [0, 1, 2, 3,
        4, 2, 3, 4, 5, 6]]),
    ("qwen2_vl", ((3, 2, 2), 1), {"time_interval": 2.5}, [[0, 2, 5, 6], [0, 0, 0, 6], [0, 0, 0, 6]]),
    ("qwen2_vl", (1, (1, 1, 2)), {"start": 7, "merge_size": 1}, [[7, 8, 8], [7, 8, 8], [7, 8, 9]]),
    ("qwen3_vl", (1, (1, 2, 4), 1, (1, 2, 4)), {}, [[0, 1, 1, 3, 4, 4], [0, 1, 1, 3, 4, 4], [0, 1, 2, 3, 4, 5]]),
    ("qwen2_vl_vision", ((1, 2, 4),), {}, [[0, 0, 1, 1, 0, 0, 1, 1], [0, 1, 0, 1, 2, 3, 2, 3]]),
    ("qwen2_vl_vision", ((2, 1, 2),), {"merge_size": 1}, [[0, 0, 0, 0], [0, 1, 0, 1]]),
    ("kimi_k25_vision", ((2, 1, 2),), {}, [[0, 0, 0, 0], [0, 1, 0, 1]]),
    ("minimax_m3_vl_vision", ((2, 2, 2), (1, 2, 2)), {}, [[0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1] * 3, [0,
        1, 0, 1] * 3]),
    ("pixtral", ((1, 2), (2, 1)), {}, [[0, 0, 0, 1], [0, 1, 0, 0]]),
    ("llama4_vision", ((2, 2),), {}, [[1, 2, 1, 2, 0], [1, 1, 2, 2, 0]]),
    ("gemma4_vision", ((2, 3),), {}, [[0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1]]),
    ("dinov3", ((2, 4),), {}, [[-0.5] * 4 + [0.5] * 4, [-0.75, -0.25, 0.25, 0.75] * 2]),
    ("timm", ((2, 4),), {"trained_shape": (1, 1)}, [[0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5], [0, 0.25, 0.5, 0.75] * 2]),
    ("timm_pixel", ((2, 3),), {}, [[-1, -1, -1, 1, 1, 1], [-1, 0, 1, -1, 0, 1]]),
    ("sam2", ((2, 4),), {"trained_shape": (1, 2)}, [[0, 0.5, 1, 1.5] * 2, [0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5]]),
    ("flux", (1, (2, 2)), {}, [[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 1, 0, 1]]),
    ("flux2", (2, (1, 2), (1, 1), (1, 1)), {}, [[0, 0, 0, 0, 10, 20], [0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 1, 0,
        0, 0, 0]]),
    ("flux3", (2, (1, 2), (1, 1), (2, 1)), {}, [[0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0.5], [0, 0, 0, 0.5, 0, 0, 0], [0, 1,
        0, 0, -1, -2, -2]]),
    ("ideogram4", (2, (1, 2)), {}, [[0, 1, 65536, 65536], [0, 1, 65536, 65536], [0, 1, 65536, 65537]]),
    ("qwen_image_2_1", (2, (2, 3), 1), {}, [[0, 1, 2, 2, 2, 2, 2, 2, 5], [0, 1, -1, -1, -1, 0, 0, 0, 5], [0, 1, -2, -1, 0, -2, -1,
        0, 5]]),
    ("cosmos", ((2, 1, 2),), {"time_interval": 1.5}, [[0, 0, 1.5, 1.5], [0, 0, 0, 0], [0, 1, 0, 1]]),
    ("wan", ((2, 1, 1),), {"time_interval": 7}, [[0, 7], [0, 0], [0, 0]]),
    ("cogview4", ((1, 3),), {"trained_shape": (4, 8)}, [[0, 0, 0], [0, 2, 5]]),
    ("moonvit", ((1, 2),), {}, [[0, 0], [0, 1]]),
    ("rope2d", ((2, 1),), {}, [[0, 1], [0, 0]]),
    ("kandinsky", ((1, 1, 2),), {}, [[0, 0], [0, 0], [0, 1]]),
    ("qwen_image", (2, (1, 2, 3)), {}, [[1, 2, 0, 0, 0, 0, 0, 0], [1, 2, -1, -1, -1, 0, 0, 0], [1, 2, -2, -1, 0, -2,
        -1, 0]]),
    ("qwen_image", ((1, 1, 1), (1, 1, 2)), {}, [[0, 1, 1], [-1, -1, -1], [-1, -1, 0]]),
    ("qwen_image", (2,), {}, [[0, 1], [0, 1], [0, 1]]),
    ("wan", ((2, 1, 2),), {}, [[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 1]]),
    ("cogvideox", ((1, 2, 2),), {"trained_shape": (4, 8)}, [[0, 0, 0, 0], [0, 0, 2, 2], [2, 3, 2, 3]]),
    ("lumina2", (2, (1, 2)), {}, [[0, 1, 2, 2], [0, 0, 0, 0], [0, 0, 0, 1]]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "segments", "options", "expected"), IDS)
def test_position_ids(name: str, segments: Any, options: Any, expected: Any) -> None:
    ids = LAYOUTS[name].positions(*segments, **options)
    np.testing.assert_array_equal(ids.T, expected)
    may_be_fractional = options or name in ("dinov3", "timm_pixel", "flux3")
    assert ids.dtype == np.int64 or (may_be_fractional and ids.dtype == np.float64)
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


# Wrong calls


REFUSED: Refused = {
    # ---- Segments
    (ValueError, "segments"): [
        *each("layouts['flux'].positions({})", "1, (2, 2, 2) | -1 | 1, (0, 3)"),
        "layouts['qwen2_vl'].positions((1, 4, 5))",
        "layouts['qwen3_vl'].positions((3, 4, 4))",
        "layouts['lumina2'].positions((2, 2), 3)",
        "layouts['z_image'].positions(3, (1, 2, 2))",
        *each("layouts['ideogram4'].positions({})", "(2, 2), 3 | 3 | 3, (2, 2), 4"),
    ],
    (ValueError, "merge_size"): ["layouts['flux'].positions(1, merge_size=2)"],
    (ValueError, "time_interval"): [
        "layouts['qwen2_vl'].positions(1, time_interval=0)",
        "layouts['qwen3_vl'].positions(1, time_interval=2.0)",
        "layouts['hunyuan_video'].positions((1, 2, 2), time_interval=2.0)",
    ],
    (ValueError, "trained_shape"): ["layouts['cogview4'].positions((2, 2))"],
    (TypeError, "trained_shape"): ["layouts['timm'].positions((2, 2), trained_shape=3)"],
    # ---- Embeddings
    (ValueError, "head_dim"): [
        *each("rope('flux', {})", "64 | 256 | 128, sections=(16, 56, 56)"),
        "rope('glm4v', 48, base=1e4)",
        "rope('sam2', 66)",
        "rope('gemma4_vision', 66)",
        "rope('cogvideox', 72)",
        *each("rope('wan', {})", "65 | 4"),
    ],
    (TypeError, "head_dim"): ["rope('wan', 64.0)"],
    (ValueError, "sections"): [
        "rope('flux', 128, sections=(32, 32))",
        "rope('ernie4_5_vl', 128, base=1e4, sections=(24, 20, 20))",
    ],
    (TypeError, "sections"): ["rope('flux', 128, sections=64)"],
    (ValueError, "base"): [
        "rope('qwen2_vl', 128)",
        "rope('cosmos', 128)",
        "rope('qwen2_vl', 128, base=0.5)",
        "rope('timm_pixel', 64, base=-1)",
        # one for each coordinate
        *each(
            "rope({})",
            "'wan', 128, base=[1e4] * 2 | 'wan', 128, base=[1e4, 1e4, 0.0] | 'qwen2_vl', 128, base=[1e6] * 3",
        ),
        "rope('timm_pixel', 64, base=[224.0] * 2)",
    ],
    (ValueError, "layout flux"): ["rope('flx', 128)"],
    (TypeError, "layout"): ["rope(3, 128)"],
    # ---- Names
    (KeyError, "flux"): ["layouts['fluxx']", "layouts['Chroma']"],
    (KeyError, "pixtral"): ["layouts['pixtrl']"],
    (KeyError, "qwen2_vl"): ["layouts['qwen2.vl']", "layouts['']", "layouts['qwen2_5_vl_text']"],
    (KeyError, "timm"): ["layouts['EVA-02']"],
    (KeyError, "vjepa2"): ["layouts['vjepa2']"],
    (KeyError, "not a rotation"): ["layouts['ernie_image']", "layouts['ERNIE-Image']"],
    **{
        (KeyError, f"'{layout}'"): each("layouts['{}']", names)
        for layout, names in {
            "hunyuan_video": "HunyuanVideo 1.5 | hunyuan_video15 | motif_video | Motif",
            "wan": "skyreels_v2 | SkyReels | chronoedit",
            "cosmos": "Cosmos Predict | cosmos_predict",
            "rope2d": "croco | DUSt3R | vggt | mast3r",
            "moonvit": "kimi_vl | Kimi-VL | MoonViT",
            "kandinsky": "kandinsky5 | Kandinsky 5",
            "cogview4": "CogView 4",
            "ideogram4": "Ideogram 4",
            "qwen_image_2_1": "qwen_image_21 | Qwen-Image 2.1 | qwenimage21",
            "flux3": "Flux 3",
        }.items()
    },
    (KeyError, "dinov3"): ["layouts['dinov3_vit']"],
    # ---- Configs
    (ValueError, "model_type"): each(
        "of({'model_type': '{}'})", "llama | dinov3_vit | vjepa2 | lightglue | bert | minicpmv4_6 | unheard_of"
    ),
    (ValueError, "config"): ["of({'model_type': 'qwen2_vl'}, vision=True)"],
    (TypeError, "config"): ["of(3)"],
    (TypeError, "vision"): ["of({'model_type': 'qwen2_vl'}, vision='no')"],
}


TEXT_ROWS = {name: MODELS["models"].get(f"{name}_text", {"nested": True}) for name in MODELS["text_layouts"]}


@pytest.mark.parametrize("name", [name for name, row in TEXT_ROWS.items() if not row.get("nested")])
def test_the_layout_of_a_config_divides_frequencies_as_its_embedding(name: str) -> None:
    row = TEXT_ROWS[name]
    head_dim = int(2 * sum(row["mrope"][1]) / (row.get("partial_rotary_factor") or 1))
    config = {"model_type": f"{name}_text", "rope_parameters": {"rope_theta": 5e5}, "num_hidden_layers": 4}
    config |= {"head_dim": head_dim, "hidden_size": 2 * head_dim, "num_attention_heads": 2}
    rope = next(each for each in fastpe.RotaryEmbedding.layers_from_config(config, mrope=True) if each)
    layout = fastpe.RotaryLayout.from_config(config)
    assert layout is fastpe.RotaryLayout.from_config({"model_type": name})
    made = fastpe.RotaryEmbedding.from_layout(layout, head_dim, base=5e5)
    assert (made.frequency_axes, made.interleaved, made.form) == (rope.frequency_axes, rope.interleaved, rope.form)
    np.testing.assert_array_equal(made.frequencies, rope.frequencies)


def test_the_layout_of_the_encoder_of_images() -> None:
    def of(config: dict[str, Any]) -> str:
        return fastpe.RotaryLayout.from_config(config, vision=True).name

    for own in ({}, {"model_type": "qwen2_5_vl"}, {"model_type": "qwen2_5_vl_vision"}):
        assert of({"model_type": "qwen2_5_vl", "vision_config": own}) == "qwen2_vl_vision"
    assert of({"model_type": "llava", "vision_config": {"model_type": "pixtral"}}) == "pixtral"
    # The vision_config itself
    encoder = {"model_type": "qwen3_vl", "hidden_size": 1152, "num_heads": 16, "patch_size": 16}
    assert of(encoder) == fastpe.RotaryLayout.from_config(encoder).name == "qwen2_vl_vision"


@pytest.mark.parametrize("name", MODELS["diffusers"])
def test_the_layout_of_a_config_of_diffusers(name: str) -> None:
    config, row = {"_class_name": name, "_diffusers_version": "0.42.1"}, MODELS["diffusers"][name]
    if "layout" in row:
        assert fastpe.RotaryLayout.from_config(config).name == row["layout"]
    else:
        with pytest.raises(ValueError, match=re.escape(row["told"])):
            fastpe.RotaryLayout.from_config(config)
    with pytest.raises(ValueError, match="_class_name"):
        fastpe.RotaryLayout.from_config({"_class_name": f"{name}V2"})


@pytest.mark.parametrize(("call", "error", "arguments"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], arguments: str) -> None:
    names = {"layouts": LAYOUTS, "rope": fastpe.RotaryEmbedding.from_layout, "of": fastpe.RotaryLayout.from_config}
    check_refused(call, error, arguments, names)


@pytest.mark.parametrize("layout", ["wan", "flux", "hunyuan_video", "moonvit"])
def test_a_base_for_each_coordinate(layout: str) -> None:
    """As in NTK-scaled video models, whose rows, columns and frames grow by different factors."""
    bases = [10000.0, 25000.0, 40000.0]
    usual = fastpe.RotaryEmbedding.from_layout(layout, 128)  # type: ignore[arg-type]
    axes = np.asarray(usual.arguments["frequency_axes"])
    counts = np.bincount(axes)
    found = fastpe.RotaryEmbedding.from_layout(layout, 128, base=bases[: len(counts)])  # type: ignore[arg-type]
    for axis, count in enumerate(counts):
        expected = bases[axis] ** (-np.arange(count) / count)
        assert np.abs(found.frequencies[axes == axis] / expected - 1).max() < 1e-15
    same = fastpe.RotaryEmbedding.from_layout(layout, 128, base=[10000.0] * len(counts))  # type: ignore[arg-type]
    assert np.array_equal(same.frequencies, fastpe.RotaryEmbedding.from_layout(layout, 128, base=10000.0).frequencies)  # type: ignore[arg-type]
