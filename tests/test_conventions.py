# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe import Convention, GridConvention


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


def test_what_a_preset_says_of_itself_is_not_compared() -> None:
    preset = fastpe.conventions["concat"]
    other = dataclasses.replace(preset, serves=("mine",), source="here")
    assert other == preset
    assert hash(other) == hash(preset)
    assert "mine" not in repr(other)


def test_a_preset_prints_its_systems_formula_and_source() -> None:
    for preset in fastpe.conventions.values():
        text = str(preset)
        assert text.startswith(f"{preset.name}: {preset.formula}")
        assert all(system in text for system in preset.serves)
        assert preset.source in text
        assert preset.__doc__ == text
        assert dataclasses.replace(preset, base=3.0).__doc__ == Convention.__doc__
    listed = repr(fastpe.conventions).splitlines()
    assert [line.split()[0] for line in listed] == list(fastpe.conventions)


def test_a_changed_preset_prints_what_was_changed_and_serves_nobody() -> None:
    text = str(dataclasses.replace(fastpe.conventions["concat"], base=500.0, first_position=1))
    assert "base=500.0, first_position=1" in text
    assert "serves" not in text


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("vaswni", "did you mean 'vaswani'?"),
        ("Vaswani", "did you mean 'vaswani'?"),
        ("tensor-2-tensor", "did you mean 'tensor2tensor'?"),
        ("whisper", "'tensor2tensor' serves openai/whisper"),
        ("", "expected one of vaswani, concat"),
        ("gpt", "expected one of vaswani, concat"),
    ],
)
def test_an_unknown_name_gets_a_hint(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match="which is not known") as caught:
        fastpe.encode(3, 8, convention=name)
    assert hint in str(caught.value)


def test_a_model_with_disagreeing_ports_gets_all_of_them_named() -> None:
    with pytest.raises(ValueError, match=r"'concat' serves transformers Marian .*'tensor2tensor' serves marian-nmt"):
        fastpe.encode(3, 8, convention="marian")


@pytest.mark.parametrize("convention", [None, 3, fastpe.grid_conventions["detr"]])
def test_what_is_no_convention_is_refused(convention: Any) -> None:
    with pytest.raises(TypeError, match=r"expected a name or a fastpe\.Convention"):
        fastpe.encode(3, 8, convention=convention)


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
        with pytest.raises(ValueError, match=f"d_model is {d_model}, expected an even number.*{name}"):
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


def test_a_shift_that_leaves_no_denominator_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shift is 4"):
        fastpe.encode(3, 8, convention=dataclasses.replace(fastpe.conventions["ddpm"], shift=4.0))


def test_an_own_convention_needs_nothing_but_data() -> None:
    mine = Convention("mine", layout="concatenated", cosine_first=True, denominator=2.0, base=4.0, alpha=0.5)
    table = fastpe.encode([1.0], 4, convention=mine, dtype=np.float64)[0]
    assert np.allclose(table, 0.5 * np.array([np.cos(1.0), np.cos(0.5), np.sin(1.0), np.sin(0.5)]), rtol=0, atol=1e-15)
    grid = GridConvention("mine2d", mine, axis_order=(1, 0))
    cell = fastpe.encode_grid((2, 3), 8, convention=grid, dtype=np.float64)[1, 2]
    assert (cell == fastpe.encode([2.0, 1.0], 4, convention=mine, dtype=np.float64).ravel()).all()
