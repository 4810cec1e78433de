# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import dataclasses
import re
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastpe

from ..oracles.refusals import naming


def _made_again(found: fastpe.Identification) -> npt.NDArray[Any]:
    names: dict[str, Any] = {"fastpe": fastpe, "dataclasses": dataclasses, "np": np}
    return np.asarray(eval(found.code, names))


def _preset(found: fastpe.Identification) -> str:
    """The name of the preset that was found."""
    return found.convention.name if found.convention else ""


def _float32_angles(table_rows: int, d_model: int, convention: str, **knobs: Any) -> npt.NDArray[np.float32]:
    """The encoding as most systems compute it: float32 frequencies, float32 angles."""
    encoding = fastpe.PositionalEncoding(d_model, convention=convention, **knobs)
    first = encoding.convention.first_position
    positions = np.arange(first, first + table_rows, dtype=np.float32)
    angles = positions[:, None] * encoding.frequencies.astype(np.float32)
    exact = encoding.encode(table_rows, dtype=np.float64)
    result = exact.astype(np.float32)
    sines, cosines = np.sin(angles), np.cos(angles)
    if encoding.convention.layout == "interleaved":
        result[:, 0::2], result[:, 1::2] = sines, cosines
    else:
        result[:, : d_model // 2], result[:, d_model // 2 :] = sines, cosines
    assert np.abs(result - exact).max() > 1e-6, "the case should carry a float32 error worth tolerating"
    return result


def _defined() -> list[tuple[str, int]]:
    return [
        (name, d_model)
        for name, preset in fastpe.conventions.items()
        for d_model in (2, 3, 16, 65, 512)
        if not (d_model % 2 and preset.odd == "error")
        # Its 256th frequency, 2**255, is beyond what the library multiplies positions with.
        and not (name == "nerf" and d_model == 512)
    ]


@pytest.mark.parametrize("rows", [3, 1500])
@pytest.mark.parametrize(("name", "d_model"), _defined())
def test_every_preset_is_found_in_its_own_table(name: str, d_model: int, rows: int) -> None:
    table = fastpe.encode(rows, d_model, convention=name)
    found = fastpe.identify(table)
    assert found.matches
    assert found.largest_difference < 1e-7
    assert name in (_preset(found), *found.equivalents)
    assert np.abs(_made_again(found) - table).max() < 1e-7


@pytest.mark.parametrize("largest", [24, pytest.param(130, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", list(fastpe.conventions))
def test_every_preset_is_found_at_every_width(name: str, largest: int) -> None:
    for d_model in range(1, largest + 1):
        try:
            table = fastpe.encode(5, d_model, convention=name)
        except ValueError:
            # A width that the convention does not define.
            continue
        if not table.any():
            # One column, of padding.
            continue
        found = fastpe.identify(table)
        assert found.matches
        assert name in (_preset(found), *found.equivalents), d_model


@pytest.mark.parametrize(
    ("name", "knobs"),
    [
        ("vaswani", {"base": 500.0}),
        ("tensor2tensor", {"base": 500.0}),
        ("concat", {"freq_scale": 0.25}),
        ("timestep", {"freq_scale": 0.001, "base": 1e5}),
        ("ddpm", {"offset": 1000}),
        ("vaswani", {"offset": -3}),
        ("mlx", {"base": 200.0, "offset": 3}),
    ],
)
def test_knobs_are_found(name: str, knobs: dict[str, Any]) -> None:
    found = fastpe.identify(fastpe.encode(300, 64, convention=name, **knobs))
    assert found.matches
    assert name in (_preset(found), *found.equivalents)
    preset = fastpe.conventions[name]
    assert found.base == knobs.get("base", preset.base)
    assert found.freq_scale == knobs.get("freq_scale", preset.freq_scale)
    assert found.first_position == preset.first_position + knobs.get("offset", 0)
    assert np.abs(_made_again(found) - fastpe.encode(300, 64, convention=name, **knobs)).max() < 1e-7


def test_an_amplitude_is_found() -> None:
    found = fastpe.identify(fastpe.encode(100, 64, convention="concat") * np.float32(0.3))
    assert (found.matches, _preset(found), found.alpha) == (True, "concat", 0.3)
    assert np.abs(_made_again(found) - 0.3 * fastpe.encode(100, 64, convention="concat")).max() < 1e-7


@pytest.mark.parametrize("name", ["vaswani", "concat", "tensor2tensor"])
def test_float32_angles_are_tolerated(name: str) -> None:
    found = fastpe.identify(_float32_angles(5000, 128, name))
    assert found.matches
    assert found.convention == fastpe.conventions[name]
    assert 1e-6 < found.largest_difference <= found.tolerance < 2e-3


def test_one_frequency_denominator_is_told_from_the_other() -> None:
    # marian-nmt against its ports: the same layout, half - 1 against half.
    tables = [fastpe.encode(512, 512, convention=name) for name in ("tensor2tensor", "concat")]
    assert np.abs(tables[0] - tables[1]).max() > 0.7
    assert [_preset(fastpe.identify(table)) for table in tables] == ["tensor2tensor", "concat"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_dtypes(dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16
    found = fastpe.identify(fastpe.encode(200, 64, convention="musicgen", dtype=kind))
    assert (found.matches, _preset(found)) == (True, "musicgen")


def test_zero_rows_are_left_out_and_named() -> None:
    table = fastpe.encode(50, 32, convention="concat")
    table[[1, 7]] = 0.0
    found = fastpe.identify(table)
    assert (found.matches, _preset(found), found.zero_rows) == (True, "concat", (1, 7))
    assert "rows left at zero: 1, 7" in found.notes
    table[10:14] = 0.0
    assert "rows left at zero: 1, 7, 10, 11, 12, .." in fastpe.identify(table).notes


@pytest.mark.parametrize(
    ("zero", "first", "said"),
    [
        ([1], 2, "row 1 is zero, as for the padding index 1"),
        ([0], 1, "row 0 is zero, as for a padding index or a class token"),
        ([3], 4, "row 3 is zero, as for the padding index 3"),
        ([0, 1], 2, "rows 0 to 1 are zero, as for class tokens"),
    ],
)
def test_the_call_makes_the_rows_that_tokens_read(zero: list[int], first: int, said: str) -> None:
    whole = fastpe.encode(60, 32, convention="tensor2tensor")
    table = whole.copy()
    table[zero] = 0.0
    found = fastpe.identify(table)
    assert (found.first_position, found.rows, found.zero_rows) == (first, 60, tuple(zero))
    np.testing.assert_allclose(_made_again(found), whole[first:], rtol=0, atol=1e-7)
    assert f"{said}: tokens start at row {first}" in found.notes[0]
    assert _preset(found) == {1: "opennmt-tf", 2: "fairseq"}.get(first, "tensor2tensor")


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("padding", [1, 3])
def test_rows_before_a_padding_index_are_compared(padding: int, descending: bool) -> None:
    whole = fastpe.encode(60, 32, convention="tensor2tensor")[:: -1 if descending else 1]
    table = whole.copy()
    table[padding] = 0.0
    found = fastpe.identify(table)
    np.testing.assert_allclose(_made_again(found), whole[padding + 1 :], rtol=0, atol=1e-7)
    first, last = (59, 60 - padding) if descending else (0, padding - 1)
    held = f"position {first}" if padding == 1 else f"positions {first} to {last}"
    assert any(note.endswith(f"{held} of the same encoding") for note in found.notes), found
    table[0] = whole[7]
    assert not fastpe.identify(table)


@pytest.mark.parametrize("shape", [(1, 40, 16), (40, 1, 16)])
def test_axes_of_length_one_are_ignored(shape: tuple[int, ...]) -> None:
    assert fastpe.identify(fastpe.encode(40, 16).reshape(shape)).matches


AS_IT_IS = ("fastpe.add_(x, table=table) adds a table [L, d_model] as it is",)


@pytest.mark.parametrize(
    "table",
    [
        np.random.default_rng(1).normal(size=(60, 32)),
        fastpe.encode(60, 32)[:, np.roll(np.arange(32), 1)],
        np.random.default_rng(1).uniform(-1, 1, (14, 14, 32)),
        np.exp(1j * np.random.default_rng(1).uniform(-3, 3, (60, 16))),
    ],
    ids=["noise", "columns moved", "noise on a grid", "random phases"],
)
def test_nothing_known_is_said_so(table: npt.NDArray[Any]) -> None:
    found = fastpe.identify(table)
    assert not found.matches
    assert (found.convention, found.rotary, found.code, found.notes) == (
        None,
        None,
        "",
        AS_IT_IS[: table.dtype != complex],
    )
    assert not found
    assert found.largest_difference > found.tolerance
    assert str(found) == "\n    ".join(["no known convention", *found.notes])


def test_an_unknown_table_is_used_as_the_note_says() -> None:
    noise = np.random.default_rng(1).normal(size=(60, 32)).astype(np.float32)
    x = np.zeros((2, 60, 32), np.float32)
    eval(fastpe.identify(noise).notes[-1].partition(" adds")[0], {"fastpe": fastpe, "x": x, "table": noise})
    np.testing.assert_array_equal(x[1], noise)
    code = fastpe.identify(noise, noise[::-1]).notes[-1].partition(" rotates")[0].replace("..", "True")
    q, k = np.ones((2, 60, 64), np.float32)
    eval(code, {"fastpe": fastpe, "q": q, "k": k, "cos": noise, "sin": noise[::-1]})
    np.testing.assert_array_equal(q[:, ::2], noise - noise[::-1])


def test_of_equal_sequences_one_is_to_be_given() -> None:
    table = np.stack([fastpe.encode(60, 32)] * 3)
    for given, one in ((table, "table[0]"), (table.swapaxes(0, 1), "table[:, 0]")):
        found = fastpe.identify(given)
        assert (found.matches, found.notes[0]) == (False, f"its sequences are equal: give {one}")
        assert fastpe.identify(eval(one, {"table": given})).matches


def test_what_the_call_makes_otherwise_is_said() -> None:
    table = fastpe.encode(60, 32, dtype="float64")[None]
    found = fastpe.identify(table)
    assert found
    assert "the table has shape [1, 60, 32], and the call makes it without axes of length 1" in found.notes
    assert "the table has dtype float64, which the call makes if it is given as dtype=" in found.notes
    again = eval(found.code.removesuffix(")") + ", dtype='float64')", {"fastpe": fastpe})
    np.testing.assert_array_equal(again[None], table)
    assert not any("the table has" in note for note in fastpe.identify(fastpe.encode(60, 32)).notes)


def test_the_dtype_of_complex_tables_is_that_of_their_parts() -> None:
    table = fastpe.RotaryEmbedding(8, interleaved=True).tables(100, form="complex", dtype="float64")
    found = fastpe.identify(table)
    assert "the table has dtype complex128, which the call makes with dtype='float64', that of its parts" in found.notes
    again = eval(found.code.removesuffix(")") + ", dtype='float64')", {"fastpe": fastpe})
    np.testing.assert_array_equal(again, table)


def test_of_near_presets_with_one_formula_the_plainest_is_named() -> None:
    noise = np.random.default_rng(1).normal(size=(60, 32)) * 0.01
    assert fastpe.identify(fastpe.encode(60, 32) + noise).notes[0].startswith("the nearest is 'vaswani'")


def test_what_is_near_is_named() -> None:
    noise = np.random.default_rng(1).normal(size=(60, 32)) * 0.01
    found = fastpe.identify(fastpe.encode(60, 32, convention="concat") + noise)
    assert not found.matches
    assert found.notes == (f"the nearest is 'concat', off by up to {np.abs(noise).max():.2g}", *AS_IT_IS)


def test_a_single_row_that_stands_out_is_named() -> None:
    table = fastpe.encode(60, 32, convention="tensor2tensor")
    table[1] = 0.0  # as fairseq's padding index
    table += np.random.default_rng(1).normal(size=table.shape) * 1e-3
    near = fastpe.identify(table).notes[0]
    assert re.fullmatch(r"the nearest is 'tensor2tensor', off by up to 0.0\d+, and by 1 in row 1", near), near


def _noisy(*tables: npt.NDArray[Any]) -> tuple[list[npt.NDArray[Any]], str]:
    """The tables with noise, and its largest value, as notes write it."""
    generator = np.random.default_rng(1)
    noises = [generator.normal(size=table.shape) * 0.01 for table in tables]
    return [table + noise for table, noise in zip(tables, noises, strict=True)], f"{np.abs(noises).max():.2g}"


@pytest.mark.parametrize("coarse", [0, 1])
def test_the_coarser_of_cosines_and_sines_says_the_rounding(coarse: int) -> None:
    tables = list(ROPE.tables(200))
    tables[coarse] = tables[coarse].astype(np.float16).astype(np.float32)
    found = fastpe.identify(*tables)
    assert found.rotary is not None
    np.testing.assert_array_equal(found.rotary.frequencies, ROPE.frequencies)
    assert found.notes[0] == "its values are rounded to float16, which leaves few digits to its numbers"


@pytest.mark.parametrize("base", [10000.0, 500000.0, 20000.0])
@pytest.mark.parametrize("form", ["halves", "tile", "repeat", "cos_sin", "sin_cos", "pairs", "complex"])
def test_a_near_rotary_embedding_is_named(form: Any, base: float) -> None:
    tables = fastpe.RotaryEmbedding(64, interleaved=False, base=base).tables(300, form=form)
    given, largest = _noisy(*(tables if isinstance(tables, tuple) else (tables,)))
    found = fastpe.identify(*given)
    assert not found.matches
    name = f"a rotary embedding in form {form!r} with base={base!r}"
    if base == 10000.0:
        # An encoding has the same values.
        name = {"cos_sin": "'timestep'", "sin_cos": "'concat'"}.get(form, name)
    assert found.notes[0] == f"the nearest is {name}, off by up to {largest}"
    assert f"{found.largest_difference:.2g}" == largest


@pytest.mark.parametrize("form", ["halves", "tile", "cos_sin"])
@pytest.mark.parametrize(("base", "factor"), [(10000.0, 8.0), (500000.0, 4.0), (20000.0, 1.5)])
def test_a_near_rotary_embedding_with_a_linear_scaling_is_named(form: Any, base: float, factor: float) -> None:
    scaling = {"rope_type": "linear", "factor": factor}
    tables = fastpe.RotaryEmbedding(64, interleaved=False, base=base, scaling=scaling).tables(300, form=form)
    given, largest = _noisy(*(tables if isinstance(tables, tuple) else (tables,)))
    near = f"the nearest is a rotary embedding in form {form!r} with base={base!r}, scaling={scaling!r}, off by up to"
    assert fastpe.identify(*given).notes[0] == f"{near} {largest}"


def test_slow_frequencies_of_a_changed_table_say_nothing() -> None:
    given, _ = _noisy(*fastpe.RotaryEmbedding(64, interleaved=False, base=20000.0).tables(60))
    assert "with base=20000.0" in fastpe.identify(*given).notes[0]


@pytest.mark.parametrize(
    ("name", "arranged"),
    [
        ("mae2d", {"class_tokens": 1}),
        ("detr", {"channels_first": True}),
        ("tatp22", {}),
        ("diffusers3d", {}),
        ("diffusers3d", {"channels_first": True}),
    ],
)
def test_a_near_grid_is_named(name: str, arranged: dict[str, Any]) -> None:
    shape = GRIDS.get(name, (6, 10))
    (table,), largest = _noisy(fastpe.encode_grid(shape, 32, convention=name, **arranged))
    assert fastpe.identify(table).notes[0] == f"the nearest is grid {name!r} of {shape} cells, off by up to {largest}"


def test_what_is_near_in_its_first_rows_alone_is_not_named() -> None:
    scaling = next(each for each in SCALINGS if each["rope_type"] == "llama3")
    tables = fastpe.RotaryEmbedding(128, interleaved=False, base=500000.0, scaling=scaling).tables(2048)
    given, _ = _noisy(*tables)
    assert "nearest" in str(fastpe.identify(*(table[:100] for table in given)))
    found = fastpe.identify(*given)
    assert (found.largest_difference, len(found.notes)) == (np.inf, 1)


@pytest.mark.parametrize("class_tokens", [0, 1])
def test_zero_rows_of_a_grid_are_left_out_and_named(class_tokens: int) -> None:
    whole = fastpe.encode_grid((14, 14), 32, convention="mae2d", class_tokens=class_tokens).reshape(-1, 32)
    table = whole.copy()
    table[[5, 71]] = 0.0
    found = fastpe.identify(table)
    assert (_preset(found), found.zero_rows) == ("mae2d", (*range(class_tokens), 5, 71))
    assert "rows left at zero: 5, 71" in found.notes
    np.testing.assert_array_equal(_made_again(found), whole)
    (noisy,), _ = _noisy(table)
    noisy[[*found.zero_rows]] = 0.0
    near = fastpe.identify(noisy).notes[0]
    assert re.fullmatch(r"the nearest is grid 'mae2d' .*, off by up to 0.0\d+; rows left at zero: 5, 71", near), near


@pytest.mark.parametrize("class_tokens", [0, 1, 2])
def test_a_grid_is_found_whose_first_cell_is_zero(class_tokens: int) -> None:
    whole = fastpe.encode_grid((14, 14), 32, convention="mae2d", class_tokens=class_tokens).reshape(-1, 32)
    table = whole.copy()
    table[class_tokens] = 0.0
    found = fastpe.identify(table)
    assert (_preset(found), f"rows left at zero: {class_tokens}" in found.notes) == ("mae2d", True)
    np.testing.assert_array_equal(_made_again(found), whole)


@pytest.mark.parametrize(
    ("shape", "row"), [*(((14, 14), row) for row in (0, 1, 4, 14, 70, 195)), ((2, 14), 20), ((4, 14), 20)]
)
def test_a_damaged_row_of_a_grid_is_named(shape: tuple[int, int], row: int) -> None:
    # Also one of the first cells of an axis, which say the encoding of the other.
    table = fastpe.encode_grid(shape, 32, convention="mae2d").reshape(-1, 32)
    table[row] += 1.0
    near = f"a sample of the rows fits fastpe.encode_grid({shape}, 32, convention='mae2d').reshape(-1, 32), but row"
    assert fastpe.identify(table).notes[0] == f"{near} {row} is off by up to 1"


def test_of_a_grid_a_few_cells_may_be_damaged() -> None:
    # The rows and columns that stay say the whole encoding, but there are too many of the others.
    cells = fastpe.encode_grid((14, 14), 32, convention="mae2d")
    changed = [axis for axis in range(14) if axis not in (0, 3, 6, 9, 13)]
    cells[np.ix_(changed, changed)] += 1.0
    assert fastpe.identify(cells).notes == AS_IT_IS


def test_rows_that_barely_turn_are_near_nothing() -> None:
    # As the slow frequencies of every base begin.
    for rows in (1, 4):
        given, _ = _noisy(np.ones((rows, 64)), np.zeros((rows, 64)))
        assert "nearest" not in str(fastpe.identify(*given))


def test_a_rotary_table_of_integers_is_no_bfloat16() -> None:
    cos, sin = (np.round(table * 127).astype(np.int8) for table in ROPE.tables(200))
    found = fastpe.identify(cos, sin)
    assert found.notes[0] == "its values are rounded to integers, which leaves few digits to its numbers"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e150, 1e-300])
def test_sizes_beyond_float32_raise_no_warning(size: float) -> None:
    assert not fastpe.identify(np.random.default_rng(1).normal(size=(60, 32)) * size)


@pytest.mark.parametrize("row", [0, 3])
def test_a_damaged_row_of_a_rotary_table_is_named(row: int) -> None:
    # The sines of row 0 are zero, as rows are that are left out.
    cos, sin = fastpe.RotaryEmbedding(8, interleaved=False).tables(40, form="tile")
    cos[row, 2] += 4.0
    near = f"the nearest is a rotary embedding in form 'tile' with base=10000.0, off by 4 in row {row} alone"
    assert fastpe.identify(cos, sin).notes[0] == near


def test_one_row_among_zeros_is_near_nothing() -> None:
    table = np.zeros((40, 512))
    table[7] = fastpe.encode([7], 512)
    table[7, 3] += 4.0
    assert fastpe.identify(table).notes == AS_IT_IS


@pytest.mark.filterwarnings("error")
def test_frequencies_that_barely_fall_raise_no_warning() -> None:
    frequencies = np.r_[np.ones(60), np.linspace(0.9, 1e-4, 4)]
    assert fastpe.identify(*fastpe.RotaryEmbedding(128, interleaved=False, freqs=frequencies).tables(40))


def test_rows_of_position_0_alone_say_nothing() -> None:
    for form in ("halves", "tile"):
        cos, sin = ROPE.tables(1, form=form)
        for pair in ((cos, sin), (sin, cos)):
            (note,) = fastpe.identify(*pair).notes
            assert note.endswith("as at position 0, which is the same in every embedding: give other rows, too")


def test_rows_left_at_zero_do_not_make_tables_tiled() -> None:
    cos, sin = ROPE.tables(40)
    cos[6:] = sin[6:] = 0.0
    cos[3, 2] += 4.0
    (note,) = fastpe.identify(cos, sin).notes
    assert note.endswith("rotates by tables [L, pairs] as they are")


def test_no_row_stands_out_of_few() -> None:
    cos, sin = fastpe.RotaryEmbedding(8, interleaved=False).tables(10, form="tile")
    cos[3, 2] += 0.25
    assert fastpe.identify(cos, sin).notes[0].endswith(" with base=10000.0, off by up to 0.25")
    cos[3, 2] += 1.0
    assert "nearest" not in str(fastpe.identify(cos, sin))


def test_what_is_near_is_measured_by_the_amplitude() -> None:
    # The amplitude of this convention is 1 / 4 here.
    table = fastpe.encode(30, 16, convention="x-transformers")
    table += np.random.default_rng(1).normal(size=table.shape).astype(np.float32) * 1e-3
    assert fastpe.identify(table).notes[0].startswith("the nearest is 'x-transformers'")
    table[[3, 7], 5] += 0.2
    assert "nearest" not in str(fastpe.identify(table))


def test_tiled_tables_are_to_be_cut() -> None:
    noise = np.tile(np.random.default_rng(1).normal(size=(60, 4)), 2)
    noise[3, 2] = 5.0  # a damaged value
    note = fastpe.identify(noise, noise[::-1]).notes[-1]
    assert note.endswith("rotates by tables [L, pairs] as they are, once they are cut to [:, :4]")


def test_repeated_tables_are_to_be_cut() -> None:
    noise = np.repeat(np.random.default_rng(1).normal(size=(60, 4)), 2, axis=1)
    note = fastpe.identify(noise, noise[::-1]).notes[-1]
    assert note.endswith("as they are, once they are cut to [:, ::2], with np.ascontiguousarray")


def test_a_damaged_row_behind_padding_is_counted_in_the_table() -> None:
    table = fastpe.encode(300, 64, convention="tensor2tensor")
    table[1] = 0.0
    table[100, 5] += np.float32(0.5)
    sample, skipped, *_ = fastpe.identify(table).notes
    assert sample.endswith("fastpe.encode(298, 64, convention='fairseq'), but row 100 is off by up to 0.5")
    assert skipped.startswith("row 1 is zero, as for the padding index 1: tokens start at row 2")


@pytest.mark.parametrize("shape", [(60, 32), (1, 60, 32), (60, 1, 32)])
def test_values_that_are_not_finite_are_found_in_the_array_that_was_given(shape: tuple[int, ...]) -> None:
    values = fastpe.encode(60, 32)
    values[4, 5] = np.nan
    table = values.reshape(shape)
    index = np.argwhere(np.isnan(table))[0].tolist()
    with pytest.raises(ValueError, match=naming("table")) as refused:
        fastpe.identify(table)
    assert Counter(map(str, index)) <= Counter(re.findall(r"\d+", str(refused.value)))
    found = fastpe.identify(np.where(np.isfinite(table), table, 0))
    assert found.notes[0].startswith(
        "a sample of the rows fits fastpe.encode(60, 32, convention='vaswani'), but row 4 is"
    )


def test_learned_rows_behind_padding_are_no_sines() -> None:
    learned = np.random.default_rng(1).normal(size=(60, 32)) * 0.02
    learned[0] = 0.0
    assert fastpe.identify(learned).notes == AS_IT_IS


def test_a_defect_far_down_is_seen() -> None:
    table = fastpe.encode(5000, 16)
    table[4321, 5] += np.float32(0.5)
    found = fastpe.identify(table)
    assert not found.matches
    assert found.largest_difference == pytest.approx(0.5, abs=1e-6)
    assert found.notes == (
        "a sample of the rows fits fastpe.encode(5000, 16, convention='vaswani'), but row 4321 is off by up to 0.5",
        *AS_IT_IS,
    )
    table[4600, 1] += np.float32(0.25)
    assert "but 2 rows, from row 4321 on, are off by up to 0.5" in str(fastpe.identify(table))


def test_integers_are_no_bfloat16() -> None:
    table = np.round(fastpe.encode(300, 64, convention="tensor2tensor") * 127).astype(np.int8)
    found = fastpe.identify(table)
    assert _preset(found) == "tensor2tensor"
    assert found.notes[0] == "its values are rounded to integers"
    assert "the table has dtype int8, and the call makes float32, without that rounding" in found.notes
    assert "its values are rounded to integers" in fastpe.identify(table.astype(np.float32)).notes


def test_zeros_and_ones_are_no_codes() -> None:
    # As every table's first row, which has no rounding.
    assert "integers" not in str(fastpe.identify(fastpe.encode(1, 64)))


def test_integers_with_one_digit_tell_no_convention() -> None:
    assert not fastpe.identify(np.round(fastpe.encode(100, 32) * 9))


@pytest.mark.parametrize("factor", [1000, 4096, 32767, 2**30])
def test_codes_of_any_factor_are_known(factor: int) -> None:
    kind = np.int16 if factor < 2**15 else np.int32
    table, *tables = (np.round(each * factor).astype(kind) for each in (fastpe.encode(300, 64), *ROPE.tables(300)))
    found = fastpe.identify(table)
    assert _preset(found) == "vaswani"
    assert found.alpha == pytest.approx(factor)
    assert found.notes[0] == "its values are rounded to integers"
    assert np.abs(_made_again(found) - table).max() < found.tolerance
    rope = fastpe.identify(*tables).rotary
    assert rope is not None
    assert rope.attention_factor == pytest.approx(factor)
    np.testing.assert_array_equal(rope.frequencies, ROPE.frequencies)


@pytest.mark.parametrize(
    ("d_model", "best", "others"),
    [
        # One frequency, which is 1 in all of them.
        (2, "vaswani", {"concat", "tensor2tensor", "ddpm", "mlx", "tatp22", "nerf", "doubled_exponent"}),
        (64, "vaswani", {"tatp22"}),
    ],
)
def test_presets_that_a_narrow_table_cannot_tell_apart(d_model: int, best: str, others: set[str]) -> None:
    found = fastpe.identify(fastpe.encode(50, d_model))
    assert (_preset(found), set(found.equivalents)) == (best, others)
    assert ("too small or too coarse" in str(found)) == (d_model == 2)
    # At every even width.
    assert "the same formula: tatp22" in str(found)


def test_denominators_that_a_narrow_table_cannot_tell_apart() -> None:
    # Of two frequencies, 1 and 1 / 50: concat with base 2500, or tensor2tensor with base 50.
    found = fastpe.identify(fastpe.encode(50, 4, convention="concat", base=2500.0))
    assert {_preset(found), *found.equivalents} >= {"concat", "tensor2tensor"}
    assert "too small or too coarse to tell it from concat with base=2500.0" in str(found)


def test_a_base_that_nobody_chose_names_no_preset_for_all_widths() -> None:
    found = fastpe.identify(fastpe.encode(300, 64, base=12345.678))
    assert found.matches
    assert found.title == "vaswani, at this width"
    assert "too small or too coarse to tell it from nerf with base=" in str(found)
    assert "base or freq_scale is no round number" in str(found)


@pytest.mark.parametrize("convention", ["vaswani", "tensor2tensor", "timestep"])
@pytest.mark.parametrize(("first", "last"), [(99, 0), (99, -99), (0, 99), (-99, 99), (12, 0)])
def test_rows_run_either_way(convention: str, first: int, last: int) -> None:
    positions = np.arange(first, last - 1, -1) if last < first else np.arange(first, last + 1)
    table = fastpe.encode(positions, 64, convention=convention)
    found = fastpe.identify(table)
    assert (found.matches, _preset(found)) == (True, convention)
    np.testing.assert_array_equal(_made_again(found), table)
    assert (f"its rows run down from position {first} to {last}" in found.notes) == (last < first)


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize("cosine_first", [False, True])
@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("d_model", [63, 64])
def test_every_order_of_the_functions_with_either_denominator(
    layout: Any, cosine_first: bool, shift: float, d_model: int
) -> None:
    preset = fastpe.conventions["tensor2tensor" if shift else "vaswani"]
    convention = dataclasses.replace(preset, layout=layout, cosine_first=cosine_first)
    table = fastpe.encode(200, d_model, convention=convention, base=500.0)
    found = fastpe.identify(table)
    assert found.matches
    np.testing.assert_array_equal(_made_again(found), table)
    # The same call at other widths, too.
    assert isinstance(found.convention, fastpe.Convention)
    wider = d_model + 10
    np.testing.assert_array_equal(
        fastpe.encode(20, wider, convention=found.convention),
        fastpe.encode(20, wider, convention=convention, base=500.0),
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_values_that_were_rounded_and_widened(dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16
    found = fastpe.identify(fastpe.encode(200, 64, convention="concat", dtype=kind).astype(np.float32))
    assert (found.matches, _preset(found)) == (True, "concat")
    assert f"its values are rounded to {dtype}" in found.notes


GRIDS: dict[str, tuple[int, ...]] = {"diffusers3d": (3, 8, 10)}


@pytest.mark.parametrize("name", [name for name, preset in fastpe.grid_conventions.items() if not preset.projected])
@pytest.mark.parametrize("channels_first", [False, True])
def test_every_grid_is_found(name: str, channels_first: bool) -> None:
    shape = GRIDS.get(name, (8, 10))
    table = fastpe.encode_grid(shape, 32, convention=name, channels_first=channels_first)
    found = fastpe.identify(table[None])
    assert found.matches
    assert name in (_preset(found), *found.equivalents)
    np.testing.assert_array_equal(_made_again(found), table)


@pytest.mark.parametrize("name", ["mae2d", "hf2d", "timm2d", "detr", "tensor2tensor", "tatp22"])
@pytest.mark.parametrize("class_tokens", [0, pytest.param(1, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize("shape", [(12, 12), (9, 16), pytest.param((16, 9), marks=pytest.mark.slow)])
def test_cells_in_a_row(name: str, class_tokens: int, shape: tuple[int, int]) -> None:
    table = fastpe.encode_grid(shape, 32, convention=name, class_tokens=class_tokens).reshape(-1, 32)
    found = fastpe.identify(table)
    assert found.matches
    assert name in (_preset(found), *found.equivalents)
    np.testing.assert_array_equal(_made_again(found), table)
    assert str(shape) in found.code


@pytest.mark.parametrize("name", ["diffusers3d", "tensor2tensor", "tatp22", "pcp-mae", "detr", "nerf"])
@pytest.mark.parametrize("given", [(-1, 48), (3, -1, 48), pytest.param((-1, 7, 48), marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float16", marks=pytest.mark.slow)])
def test_cells_of_a_grid_of_three_axes_in_a_row(name: str, given: tuple[int, ...], dtype: str) -> None:
    table = fastpe.encode_grid((3, 5, 7), 48, convention=name, dtype=dtype).reshape(given)
    found = fastpe.identify(table)
    assert name in (_preset(found), *found.equivalents)
    assert "(3, 5, 7)" in found.code
    again = _made_again(found)
    assert again.shape == table.shape
    np.testing.assert_allclose(again, table, rtol=0, atol=found.tolerance)


def test_cells_of_a_grid_of_more_axes_in_a_row() -> None:
    table = fastpe.encode_grid((2, 3, 4, 5), 64, convention="pcp-mae", class_tokens=1)
    found = fastpe.identify(table)
    assert found.code == "fastpe.encode_grid((2, 3, 4, 5), 64, convention='pcp-mae', class_tokens=1)"
    (noisy,), largest = _noisy(table[1:])
    near = f"the nearest is grid 'pcp-mae' of (2, 3, 4, 5) cells, off by up to {largest}"
    assert fastpe.identify(noisy).notes[0] == near


@pytest.mark.parametrize(
    "knobs", [{"base": 500.0}, {"spacing": 0.5}, {"spacing": (0.5, 0.25)}, {"base": 100.0, "spacing": 2 / 3}]
)
def test_base_and_spacing_of_a_grid_are_found(knobs: dict[str, Any]) -> None:
    table = fastpe.encode_grid((12, 20), 32, convention="mae2d", **knobs).reshape(-1, 32)
    found = fastpe.identify(table)
    assert f"convention='mae2d', {', '.join(f'{name}={value!r}' for name, value in knobs.items())}" in found.code
    np.testing.assert_array_equal(_made_again(found), table)


ROPE = fastpe.RotaryEmbedding(64, interleaved=False, base=500000.0)


@pytest.mark.parametrize("form", ["halves", "tile", "repeat", "cos_sin", "sin_cos", "pairs", "complex", "angles"])
@pytest.mark.parametrize("offset", [0, 7])
def test_every_form_of_rotary_tables(form: Any, offset: int) -> None:
    tables = ROPE.tables(200, form=form, offset=offset)
    given = tables if isinstance(tables, tuple) else (tables,)
    found = fastpe.identify(*given)
    assert found.matches
    call = (
        f"fastpe.RotaryEmbedding(64, interleaved=False, base=500000.0{'' if form == 'halves' else f', form={form!r}'})"
    )
    call += f".tables(200{f', offset={offset}' if offset else ''})"
    if form in ("cos_sin", "sin_cos"):
        # An encoding has the same values.
        assert f"as the cache of a rotary embedding, it is {call}" in found.notes
        return
    assert found.code == call
    assert found.rotary is not None
    assert (found.rotary.form, found.convention) == (form, None)
    assert any("what interleaved= should be, the table does not say" in note for note in found.notes)


def test_cosines_and_sines_in_one_array() -> None:
    found = fastpe.identify(np.stack(ROPE.tables(200))[None])
    assert found.code == "np.stack(fastpe.RotaryEmbedding(64, interleaved=False, base=500000.0).tables(200))"


SCALINGS: list[dict[str, Any]] = [
    {"rope_type": "linear", "factor": 4.0},
    {"rope_type": "linear", "factor": 2.5},
    {"rope_type": "ntk", "factor": 8.0},
    {"rope_type": "proportional", "partial_rotary_factor": 0.25},
    {"rope_type": "proportional", "partial_rotary_factor": 0.5, "factor": 8.0},
    {
        "rope_type": "llama3",
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    {
        "rope_type": "llama3",
        "factor": 16.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 1.0,
        "original_max_position_embeddings": 8192,
    },
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
    {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096, "attention_factor": 1.0},
    {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096, "truncate": False},
]


@pytest.mark.parametrize("scaling", SCALINGS, ids=lambda scaling: scaling["rope_type"])
def test_scalings_are_found_with_their_numbers(scaling: dict[str, Any]) -> None:
    rope = fastpe.RotaryEmbedding(128, interleaved=False, base=10000.0, scaling=scaling)
    found = fastpe.identify(*rope.tables(2048))
    assert found.rotary is not None
    np.testing.assert_allclose(found.rotary.frequencies, rope.frequencies, rtol=1e-12)
    assert found.rotary.attention_factor == rope.attention_factor
    written = {key: value for key, value in scaling.items() if key != "attention_factor"}
    assert f"scaling={written!r}" in found.code
    again = _made_again(found)
    assert np.abs(np.stack(rope.tables(2048)) - again).max() < 1e-7


def test_dynamic_is_named_beside_the_base_that_it_makes() -> None:
    scaling = {"rope_type": "dynamic", "factor": 2.0, "max_position_embeddings": 4096}
    rope = fastpe.RotaryEmbedding(128, interleaved=False, scaling=scaling, seq_len=8192)
    found = fastpe.identify(*rope.tables(1024))
    assert "scaling={'rope_type': 'ntk', 'factor': 3.0}" in found.code
    assert any("'dynamic'" in note for note in found.notes)


def test_frequencies_without_a_rule_are_measured() -> None:
    freqs = np.array([1.0, 0.3, 0.0101, 0.00047])
    found = fastpe.identify(*fastpe.RotaryEmbedding(8, interleaved=True, freqs=freqs).tables(1000))
    assert found.rotary is not None
    np.testing.assert_allclose(found.rotary.frequencies, freqs, rtol=1e-7)
    assert "follow no rule that is known here" in str(found)


@pytest.mark.parametrize(("which", "name"), [(0, "cosines"), (1, "sines")])
def test_one_of_cosines_and_sines_asks_for_the_other(which: int, name: str) -> None:
    found = fastpe.identify(ROPE.tables(100)[which])
    assert not found.matches
    assert f"it may be the {name} of a rotary embedding" in str(found)


def test_a_call_that_does_not_make_the_table_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    table = fastpe.encode(300, 64, convention="concat")
    monkeypatch.setattr("fastpe._identify.answer.evaluated", lambda code: np.zeros((300, 64)))
    assert not fastpe.identify(table).matches


def test_elements_without_a_type_are_read_as_bfloat16() -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    table = fastpe.encode(50, 64, dtype=bfloat16)
    found = fastpe.identify(table.view("V2"))
    assert _preset(found) == "vaswani"
    assert "the table was read as bfloat16, which the call makes if it is given as dtype=" in found.notes
    cos, sin = fastpe.RotaryEmbedding(64, interleaved=False).tables(50, dtype=bfloat16)
    assert fastpe.identify(cos.view("V2"), sin.view("V2")).matches
    remedy = "if its integers are the bits of bfloat16, give table.view(ml_dtypes.bfloat16)"
    assert fastpe.identify(table.view(np.uint16)).notes[0] == remedy
    assert remedy in fastpe.identify(cos.view(np.int16), sin.view(np.int16)).notes
    assert remedy not in fastpe.identify(np.random.default_rng(0).random((50, 64))).notes
    assert fastpe.identify(table.view(np.uint16).view(bfloat16)).matches


def test_a_transposed_table_is_named() -> None:
    table = fastpe.encode(50, 64, convention="fairseq")
    found = fastpe.identify(table.T)
    assert not found.matches
    assert found.notes == (f"table has positions as columns, and table.T is made by {fastpe.identify(table).code}",)
    assert "table.T" not in str(fastpe.identify(np.random.default_rng(0).random((64, 50))))


def test_a_vector_of_frequencies_is_told_where_to_go() -> None:
    table = (10000.0 ** (-np.arange(32) / 32)).astype(np.float32)
    with pytest.raises(ValueError, match=naming("table")) as error:
        fastpe.identify(table)
    assert "RotaryEmbedding" in str(error.value)
    for other in (table[::-1], -table, np.arange(5)):
        with pytest.raises(ValueError, match=naming("table")) as error:
            fastpe.identify(other)
        assert "RotaryEmbedding" not in str(error.value)
