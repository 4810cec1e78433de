# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import copy
import dataclasses
import importlib
import pickle
import subprocess
import sys
import typing
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe import Convention, GridConvention, _names

from ..oracles.refusals import naming


def test_presets_are_frozen_hashable_and_picklable() -> None:
    for preset in (*fastpe.conventions.values(), *fastpe.grid_conventions.values()):
        field = "name"
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(preset, field, "other")
        assert pickle.loads(pickle.dumps(preset)) == preset
        assert str(pickle.loads(pickle.dumps(preset))) == str(preset)
        assert hash(copy.deepcopy(preset)) == hash(preset)


def test_the_mapping_is_read_only() -> None:
    presets: Any = fastpe.conventions
    with pytest.raises(TypeError):
        presets["mine"] = fastpe.conventions["vaswani"]
    assert {name: preset.name for name, preset in fastpe.conventions.items()} == {n: n for n in fastpe.conventions}


def test_pickles_name_nothing_but_public_classes() -> None:
    for value in (
        fastpe.conventions["vaswani"],
        fastpe.grid_conventions["detr"],
        fastpe.PositionalEncoding(8, max_len=3),
        fastpe.identify(fastpe.encode(9, 8)),
    ):
        pickled = pickle.dumps(value)
        assert pickle.loads(pickled) == value
        assert b"fastpe" in pickled
        assert b"fastpe._" not in pickled


def test_what_a_preset_says_of_itself_is_not_compared() -> None:
    preset = fastpe.conventions["concat"]
    other = dataclasses.replace(preset, serves=("mine",), source="here")
    assert other == preset
    assert hash(other) == hash(preset)
    assert "mine" not in repr(other)


def test_what_is_shown_of_a_convention_makes_an_equal_one() -> None:
    names: dict[str, Any] = {"Convention": Convention, "GridConvention": GridConvention}
    for preset in (*fastpe.conventions.values(), *fastpe.grid_conventions.values()):
        assert eval(repr(preset), names) == preset
    changed = dataclasses.replace(fastpe.conventions["mlx"], base=500.0, first_position=-3, denominator=2.5)
    assert eval(repr(changed), names) == changed
    assert repr(fastpe.conventions["vaswani"]) == "Convention('vaswani')"
    assert repr(fastpe.grid_conventions["mae2d"]) == (
        "GridConvention('mae2d', axis=Convention('concat', layout='concatenated'), axis_order=(1, 0))"
    )


def test_a_preset_prints_its_systems_formula_and_source() -> None:
    for preset in fastpe.conventions.values():
        text = str(preset)
        assert text.startswith(f"{preset.name}: {preset.formula}")
        assert all(system in text for system in preset.serves)
        assert preset.source in text
        assert preset.__doc__ == text
        assert dataclasses.replace(preset, base=3.0).__doc__ == Convention.__doc__
    *listed, call = repr(fastpe.conventions).splitlines()
    assert [line.split()[0] for line in listed] == list(fastpe.conventions)
    assert "fastpe.encode" in call


def test_a_changed_preset_prints_what_was_changed_and_serves_nobody() -> None:
    text = str(dataclasses.replace(fastpe.conventions["concat"], base=500.0, first_position=1))
    assert "base=500.0, first_position=1" in text
    assert "serves" not in text
    grid = dataclasses.replace(fastpe.grid_conventions["detr"], normalize=False)
    assert "changed from the preset: normalize=False" in str(grid)


def test_the_formula_of_a_grid_has_the_factor_and_the_order_of_its_axis() -> None:
    mlx = dataclasses.replace(fastpe.conventions["mlx"], cosine_first=True)
    expected = (
        "axis 0 sqrt(2/d) * (cos | sin), axis 1 sqrt(2/d) * (cos | sin), ..; w_k = 10000^(-k / (n - 1)), n per axis"
    )
    assert GridConvention("mine", mlx).formula == expected
    by_function = GridConvention("mine", mlx, outermost="function", axis_order=(1, 0)).formula
    assert by_function.startswith("sqrt(2/d) * cosines of axis 1, 0, then their sines; ")


@pytest.mark.parametrize(
    "name",
    [
        "informer",
        "transformer-xl",
        "transformer_xl",
        "conformer",
        "mask2former",
        "table-transformer",
        "iddpm",
        "dab_detr",
    ],
)
def test_a_name_that_is_only_similar_is_not_led_to_a_preset(name: str) -> None:
    calls: list[tuple[Any, Any]] = [(fastpe.encode, 3), (fastpe.encode_grid, (2, 3))]
    for function, size in calls:
        messages = []
        for unknown in (name, "zzzzzzzz"):
            with pytest.raises(ValueError, match=naming("convention")) as caught:
                function(size, 8, convention=unknown)
            messages.append(str(caught.value).replace(unknown, "*"))
        assert messages[0] == messages[1]


@pytest.mark.parametrize("name", ["mamba2", "voxtral", "glm4v_vision", "llama4_vision_model"])
def test_a_layout_that_is_only_similar_is_not_suggested(name: str) -> None:
    with pytest.raises(KeyError, match=naming(name)):
        fastpe.rotary_layouts[name]


@pytest.mark.parametrize(
    ("name", "presets"),
    [
        ("vaswni", "vaswani"),
        ("Vaswani", "vaswani"),
        ("tensor-2-tensor", "tensor2tensor"),
        ("whisper", "tensor2tensor"),
        ("marian", "concat tensor2tensor"),  # whose ports disagree
        ("", " ".join(fastpe.conventions)),
        ("gpt", " ".join(fastpe.conventions)),
        ("LoFTR", "loftr"),
    ],
)
def test_an_unknown_name_is_led_to_presets(name: str, presets: str) -> None:
    with pytest.raises(ValueError, match=naming(presets)):
        fastpe.encode(3, 8, convention=name)
    with pytest.raises(KeyError, match=naming(presets)):
        fastpe.conventions[name]
    assert name not in fastpe.conventions
    assert fastpe.conventions.get(name) is None


@pytest.mark.parametrize(
    ("registry", "names"),
    [(fastpe.conventions, _names.ConventionName), (fastpe.grid_conventions, _names.GridConventionName)],
)
def test_editors_and_notebooks_offer_the_names(registry: Any, names: Any) -> None:
    assert list(typing.get_args(names)) == list(registry) == registry._ipython_key_completions_()


def test_overrides_and_replace_are_the_same() -> None:
    replaced = dataclasses.replace(fastpe.conventions["timestep"], base=500.0, freq_scale=0.5)
    expected = fastpe.encode(20, 16, convention=replaced)
    result = fastpe.encode(20, 16, convention="timestep", base=500.0, freq_scale=0.5)
    assert (result == expected).all()
    frequencies = 0.5 * 500.0 ** (-np.arange(8) / 8)
    assert np.allclose(fastpe.encode(20, 16, convention="timestep", freqs=frequencies), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", list(fastpe.conventions))
@pytest.mark.parametrize("d_model", [1, 2, 3, 4, 5])
def test_narrow_widths(name: str, d_model: int) -> None:
    preset = fastpe.conventions[name]
    if d_model % 2 and preset.odd == "error":
        with pytest.raises(ValueError, match=naming("d_model")):
            fastpe.encode(4, d_model, convention=name)
        return
    table = fastpe.encode(4, d_model, convention=name, dtype=np.float64)
    assert np.isfinite(table).all()
    assert table.shape == (4, d_model)
    if d_model % 2 and preset.odd == "pad":
        assert (table[:, -1] == 0.0).all()
        even = fastpe.encode(4, d_model - 1, convention=name, dtype=np.float64) if d_model > 1 else table[:, :0]
        assert (table[:, :-1] == even).all()
    if preset.odd == "round_up":
        wider = fastpe.encode(4, d_model + d_model % 2, convention=name, dtype=np.float64)
        assert (table == wider[:, :d_model]).all()


@pytest.mark.parametrize(
    ("name", "first"), [("vaswani", 0), ("opennmt-tf", 1), ("fairseq", 2), ("tensor2tensor", 0), ("ddpm", 0)]
)
def test_counted_positions_start_where_the_system_starts(name: str, first: int) -> None:
    counted = fastpe.encode(5, 8, convention=name)
    assert (counted == fastpe.encode(np.arange(first, first + 5), 8, convention=name)).all()


def test_fairseq_padding_is_zero_and_not_counted() -> None:
    mask = np.array([[0, 0, 1, 1], [1, 1, 1, 0]], bool)
    table = fastpe.encode(4, 8, convention="fairseq", mask=mask)
    rows = fastpe.encode([2, 3, 4], 8, convention="fairseq")
    assert (table[0] == [0 * rows[0], 0 * rows[0], rows[0], rows[1]]).all()
    assert (table[1] == [rows[0], rows[1], rows[2], 0 * rows[0]]).all()


def test_an_own_convention_needs_nothing_but_data() -> None:
    mine = Convention("mine", layout="concatenated", cosine_first=True, denominator=2.0, base=4.0, alpha=0.5)
    table = fastpe.encode([1.0], 4, convention=mine, dtype=np.float64)[0]
    assert np.allclose(table, 0.5 * np.array([np.cos(1.0), np.cos(0.5), np.sin(1.0), np.sin(0.5)]), rtol=0, atol=1e-15)
    grid = GridConvention("mine2d", mine, axis_order=(1, 0))
    cell = fastpe.encode_grid((2, 3), 8, convention=grid, dtype=np.float64)[1, 2]
    assert (cell == fastpe.encode([2.0, 1.0], 4, convention=mine, dtype=np.float64).ravel()).all()


def test_the_name_conventions_is_the_mapping_and_no_module() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'fastpe\.conventions'"):
        importlib.import_module("fastpe.conventions")
    program = """
try:
    import fastpe.conventions as c
except ModuleNotFoundError:
    from fastpe import conventions as c
import fastpe
assert c is fastpe.conventions and "vaswani" in c
"""
    subprocess.run([sys.executable, "-c", program], check=True)


VASWANI = fastpe.conventions["vaswani"]
MAE2D = fastpe.grid_conventions["mae2d"]


def test_numbers_of_any_kind_make_the_same_convention() -> None:
    mine = dataclasses.replace(VASWANI, base=500.0, shift=1.0, alpha=2.0, first_position=3, cosine_first=True)
    for kinds in (
        {"base": 500, "shift": True + 0, "alpha": 2, "first_position": np.int8(3), "cosine_first": np.True_},
        {"base": np.float32(500), "shift": Fraction(1), "alpha": np.float16(2)},
        {"base": np.array(500), "shift": np.uint8(1), "denominator": None},
    ):
        same = dataclasses.replace(mine, **kinds)
        assert (same, hash(same), repr(same)) == (mine, hash(mine), repr(mine))
    listed: Any = [1, 0]
    assert hash(dataclasses.replace(MAE2D, axis_order=listed)) == hash(MAE2D)


@pytest.mark.parametrize("name", list(fastpe.conventions))
def test_every_width_is_defined_or_refused_in_words(name: str) -> None:
    preset = fastpe.conventions[name]
    for d_model in range(1, 131):
        if d_model % 2 and preset.odd == "error":
            with pytest.raises(ValueError, match=naming("d_model")):
                fastpe.encode(3, d_model, convention=name)
            continue
        if name == "nerf" and d_model > 90:
            # 2**45 and beyond.
            with pytest.raises(ValueError, match=naming("d_model")):
                fastpe.encode(3, d_model, convention=name)
            continue
        count = preset.frequency_count(d_model)
        k = np.arange(count) / preset.exponent_denominator(d_model)
        angles = (preset.first_position + np.arange(3.0))[:, None] * preset.freq_scale * preset.base**-k
        functions = [np.cos(angles), np.sin(angles)] if preset.cosine_first else [np.sin(angles), np.cos(angles)]
        expected = np.zeros((3, d_model + 1))
        if preset.layout == "interleaved":
            expected[:, 0 : 2 * count : 2], expected[:, 1 : 2 * count : 2] = functions
        else:
            expected[:, : 2 * count] = np.concatenate(functions, axis=1)
        table = fastpe.encode(3, d_model, convention=name, dtype=np.float64)
        sines, cosines = preset.columns(d_model)
        zero = fastpe.encode([0], d_model, convention=name, dtype=np.float64)[0]
        assert (zero[sines] == 0).all()
        assert (zero[cosines] == preset.output_scale(d_model)).all()
        assert len(zero[sines]) + len(zero[cosines]) == min(2 * count, d_model)
        # NumPy rounds its angles, of which depthcharge's and NeRF's are the largest.
        np.testing.assert_allclose(
            table,
            preset.output_scale(d_model) * expected[:, :d_model],
            rtol=0,
            atol=1e-15 + 4 * np.spacing(np.abs(angles).max(initial=1.0)),
        )
