# SPDX-License-Identifier: BSD-3-Clause
"""The call that makes a table is found, is right, and is left out where nothing known makes the table."""

from __future__ import annotations

import contextlib
import functools
import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastpe

from ..oracles.configs import LLAMA3

ROPE = fastpe.RotaryEmbedding(64, interleaved=False, base=500000.0)
TWO_PAIRINGS = "interleaved= may be"


def made(found: fastpe.Identification) -> Any:
    """What a reader of the answer gets."""
    return eval(found.code, {"fastpe": fastpe})


def preset(found: fastpe.Identification) -> set[str]:
    """The preset that was found, and those that it was not told from."""
    return {found.convention.name, *found.equivalents} if found.convention else set()


def check_call(found: fastpe.Identification, table: npt.NDArray[Any]) -> None:
    """The call makes the table to the last bit, as it does in float32."""
    assert found
    np.testing.assert_array_equal(made(found), table)
    assert found.largest_difference == 0.0 <= found.tolerance


# ---- Sequences


@pytest.mark.parametrize(
    ("rows", "widths"), [(40, (2, 3, 16, 65)), pytest.param(1500, (2, 3, 5, 16, 65, 512), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", fastpe.conventions)
def test_every_preset_is_found_in_its_own_table(name: Any, rows: int, widths: tuple[int, ...]) -> None:
    for d_model in widths:
        with contextlib.suppress(ValueError):  # not every convention defines odd widths
            table = fastpe.encode(rows, d_model, convention=name)
            found = fastpe.identify(table)
            check_call(found, table)
            assert name in preset(found)
            assert (found.d_model, found.rows, found.rotary) == (d_model, rows, None)


@pytest.mark.parametrize(
    ("name", "knobs"),
    [
        ("vaswani", {"base": 500.0}),
        ("tensor2tensor", {"base": 500.0}),
        ("tensor2tensor", {"base": 12000.0, "offset": 7}),
        ("concat", {"freq_scale": 0.25}),
        ("concat", {"freq_scale": np.pi, "base": 100.0}),
        ("timestep", {"freq_scale": 0.001, "base": 1e5}),
        ("ddpm", {"offset": 1000}),
        ("vaswani", {"offset": -3}),
        ("vaswani", {"offset": 10**6}),
        ("mlx", {"base": 200.0, "offset": 3}),
    ],
)
@pytest.mark.parametrize("d_model", [12, pytest.param(64, marks=pytest.mark.slow)])
def test_numbers_are_found(name: Any, knobs: dict[str, Any], d_model: int) -> None:
    table = fastpe.encode(300, d_model, convention=name, **knobs)
    found = fastpe.identify(table)
    check_call(found, table)
    assert name in preset(found)
    own = fastpe.conventions[name]
    assert found.base == knobs.get("base", own.base)
    assert found.freq_scale == knobs.get("freq_scale", own.freq_scale)
    convention: Any = found.convention
    assert found.first_position == convention.first_position
    np.testing.assert_array_equal(fastpe.encode(300, d_model, convention=convention), table)


@pytest.mark.parametrize("factor", [0.3, 512**0.5])
def test_a_factor_is_found(factor: float) -> None:
    table = fastpe.encode(100, 64, convention="concat", dtype="float64") * factor
    found = fastpe.identify(table.astype(np.float32))
    assert "concat" in preset(found)
    assert found.alpha == pytest.approx(factor, rel=1e-6)
    np.testing.assert_allclose(made(found), table, rtol=0, atol=1e-6 * factor)


@pytest.mark.parametrize("name", ["vaswani", "fairseq"])
def test_angles_in_float32_are_tolerated(name: Any) -> None:
    encoding = fastpe.PositionalEncoding(64, convention=name)
    exact = encoding.encode(3000)
    table = exact.copy()
    positions = np.arange(3000, dtype=np.float32) + encoding.convention.first_position
    angles = positions[:, None] * encoding.frequencies.astype(np.float32)
    for function, columns in zip((np.sin, np.cos), encoding.convention._columns(64), strict=True):
        table[:, columns] = function(angles)
    assert np.abs(table - exact).max() > 1e-5, "the table should have an error that is worth tolerating"
    found = fastpe.identify(table)
    assert found.convention == fastpe.conventions[name]
    assert 1e-5 < found.largest_difference <= found.tolerance < 2e-3


def test_of_positions_that_fit_the_simplest_is_found() -> None:
    # Positions 1000 further have much the same angles.
    assert "offset=2)" in fastpe.identify(fastpe.encode(300, 8, freq_scale=2 * np.pi, offset=2)).code


def test_the_factor_of_a_transposed_table_is_that_of_its_own_width() -> None:
    assert fastpe.identify(fastpe.encode(50, 16, convention="x_transformers").T).alpha == 0.25


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize("widened", [False, True])
@pytest.mark.parametrize("name", ["vaswani", pytest.param("musicgen", marks=pytest.mark.slow)])
def test_dtypes_of_checkpoints(name: Any, dtype: str, widened: bool) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    changes: list[dict[str, Any]] = [{}, {"base": 500.0, "offset": 40}]
    for knobs in changes:
        table = fastpe.encode(200, 64, convention=name, dtype=kind, **knobs)
        found = fastpe.identify(table.astype(np.float32) if widened else table)
        assert name in preset(found)
        assert found.base == knobs.get("base", 10000.0)
        assert any(dtype in note for note in found.notes) != (widened and dtype == "float64")
    if dtype == "bfloat16":
        assert fastpe.identify(table.view("V2")).code == found.code  # as NumPy saves it


def test_what_a_small_table_does_not_tell_apart_is_said() -> None:
    found = fastpe.identify(fastpe.encode(50, 2))
    assert preset(found) >= {"vaswani", "concat", "tensor2tensor", "ddpm", "positional_encodings", "doubled_exponent"}
    assert "the same as concat" in str(found)
    # Of two frequencies, 1 and 1 / 50: concat with base 2500, or tensor2tensor with base 50.
    found = fastpe.identify(fastpe.encode(50, 4, convention="concat", base=2500.0))
    assert preset(found) >= {"concat", "tensor2tensor"}


@pytest.mark.parametrize("arranged", ["transposed", "reversed"])
@pytest.mark.parametrize("knobs", [{}, {"base": 500.0, "offset": -20}])
@pytest.mark.parametrize("name", ["vaswani", pytest.param("fairseq", marks=pytest.mark.slow)])
def test_columns_and_rows_in_another_order(name: Any, knobs: dict[str, Any], arranged: str) -> None:
    table = fastpe.encode(50, 64, convention=name, **knobs)
    given = table.T if arranged == "transposed" else table[::-1]
    found = fastpe.identify(given)
    check_call(found, given)
    assert name in preset(found)


@pytest.mark.parametrize(("zero", "first"), [([0], 1), ([1], 2), ([3], 4), ([0, 1], 2)])
def test_the_call_makes_the_rows_that_tokens_read(zero: list[int], first: int) -> None:
    whole = fastpe.encode(60, 32, convention="tensor2tensor")
    table = whole.copy()
    table[zero] = 0.0
    found = fastpe.identify(table)
    assert (found.first_position, found.rows, found.zero_rows) == (first, 60, tuple(zero))
    assert f"tokens start at row {first}" in found.notes[0]
    np.testing.assert_array_equal(made(found), whole[first:])
    expected = {1: "opennmt_tf", 2: "fairseq"}.get(first, "tensor2tensor")
    assert found.convention is not None
    assert found.convention.name == expected
    # The rows before the padding index are compared too.
    table[0] = whole[7]
    assert not fastpe.identify(table)


def test_other_zero_rows_are_not_compared() -> None:
    table = fastpe.encode(50, 32, convention="concat")
    table[[4, 7]] = table[45:] = 0.0
    found = fastpe.identify(table)
    assert (found.first_position, found.zero_rows) == (0, (4, 7, 45, 46, 47, 48, 49))
    assert "concat" in preset(found)


@pytest.mark.parametrize("start", [0, 600])
def test_a_stream_goes_on_with_the_call_in_the_notes(start: int) -> None:
    # FunASR counts from 1, and its chunks are 10 frames of 560 features.
    position = np.arange(1 + start, 11 + start, dtype=np.float32)[:, None]
    frequency = np.exp(np.arange(280, dtype=np.float32) * np.float32(-np.log(10000) / 279))
    table = np.concatenate([np.sin(position * frequency), np.cos(position * frequency)], axis=1)
    found = fastpe.identify(table[None])
    assert "opennmt_tf" in preset(found)
    np.testing.assert_allclose(made(found), table, rtol=0, atol=found.tolerance)
    assert "FunASR" in str(fastpe.conventions["opennmt_tf"])
    (note,) = (note for note in found.notes if "stream" in note)
    following = eval(note.partition("goes on with ")[2].partition(";")[0], {"fastpe": fastpe})
    np.testing.assert_array_equal(following, fastpe.encode(10, 560, convention="opennmt_tf", offset=start + 10))


# ---- Grids

SHAPES: dict[str, tuple[int, ...]] = {"diffusers3d": (3, 8, 10)}
GRIDS = [name for name, each in fastpe.grid_conventions.items() if not each.projected]


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize(
    "arranged",
    [
        "cells",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("grid", "channels first", "behind class tokens")),
    ],
)
def test_every_grid_is_found(name: Any, arranged: str) -> None:
    shape = SHAPES.get(name, (9, 16))
    options: dict[str, Any] = {"channels_first": True} if arranged == "channels first" else {}
    options |= {"class_tokens": 2} if arranged == "behind class tokens" else {}
    table = fastpe.encode_grid(shape, 32, convention=name, **options)
    table = table.reshape(-1, 32) if arranged == "cells" else table
    found = fastpe.identify(table[None])
    check_call(found, table)
    assert name in preset(found)
    assert str(shape) in found.code
    assert isinstance(found.convention, fastpe.GridConvention)


@pytest.mark.parametrize("given", [(-1, 48), (3, -1, 48), pytest.param((-1, 7, 48), marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name", ["diffusers3d", *(pytest.param(n, marks=pytest.mark.slow) for n in ("pcp_mae", "detr"))]
)
@pytest.mark.parametrize("dtype", ["float16", pytest.param("float32", marks=pytest.mark.slow)])
def test_cells_of_three_axes(name: Any, given: tuple[int, ...], dtype: str) -> None:
    table = fastpe.encode_grid((3, 5, 7), 48, convention=name, dtype=dtype).reshape(given)
    found = fastpe.identify(table)
    assert name in preset(found)
    assert made(found).shape == table.shape
    np.testing.assert_allclose(made(found), table, rtol=0, atol=found.tolerance)


@pytest.mark.parametrize(
    "knobs", [{"base": 500.0}, {"spacing": 0.5}, {"spacing": (0.5, 2 / 3)}, {"base": 100.0, "spacing": 2 / 3}]
)
@pytest.mark.parametrize("name", ["mae2d", pytest.param("timm2d", marks=pytest.mark.slow)])
def test_base_and_spacing_of_a_grid_are_found(name: Any, knobs: dict[str, Any]) -> None:
    table = fastpe.encode_grid((12, 20), 32, convention=name, **knobs).reshape(-1, 32)
    found = fastpe.identify(table)
    check_call(found, table)
    assert all(f"{key}={value!r}" in found.code for key, value in knobs.items())
    assert found.base == knobs.get("base", 10000.0)


def test_the_base_of_a_grid_whose_last_columns_are_cut_off_is_found() -> None:
    table = fastpe.encode_grid((3, 8, 10), 16, convention="positional_encodings", base=12000.0)
    check_call(fastpe.identify(table), table)


def test_the_simplest_spacing_of_a_coarse_grid_is_found() -> None:
    table = fastpe.encode_grid((3, 8, 10), 96, convention="diffusers3d", base=100.0, spacing=2 / 3, dtype="float16")
    assert "base=100.0, spacing=0.6666666666666666)" in fastpe.identify(table).code


def test_the_scale_of_a_normalized_grid_is_found() -> None:
    table = fastpe.encode_grid((12, 20), 32, convention="detr", freq_scale=1.0, base=500.0)
    found = fastpe.identify(table)
    check_call(found, table)
    assert (found.base, found.freq_scale) == (500.0, 1.0)


# ---- Rotary embeddings


@pytest.mark.parametrize("offset", [7, pytest.param(0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", ["halves", "tile", "repeat", "cos_sin", "sin_cos", "pairs", "matrices", "complex"])
def test_every_form_of_rotary_tables(form: Any, offset: int) -> None:
    tables = ROPE.tables(200, form=form, offset=offset)
    found = fastpe.identify(*(tables if isinstance(tables, tuple) else (tables,)))
    given = "" if form == "halves" else f", form={form!r}"
    call = f"fastpe.{ROPE!r}.tables(200{given}{f', offset={offset}' if offset else ''})"
    if form in ("cos_sin", "sin_cos"):
        # An encoding has the same values, and each is named.
        assert preset(found) & {"concat", "timestep"}
        assert f"as the cache of a rotary embedding, it is {call}" in found.notes
        return
    assert (found.code, found.convention) == (call, None)
    assert found.rotary is not None
    assert (found.rotary.form, found.rotary.frequencies.tolist()) == (form, ROPE.frequencies.tolist())
    assert TWO_PAIRINGS in str(found)


def test_cosines_and_sines_in_one_array() -> None:
    found = fastpe.identify(np.stack(ROPE.tables(200))[None])
    assert found.code == "fastpe.RotaryEmbedding(64, interleaved=False, base=500000.0).tables(200)"


@pytest.mark.parametrize(
    "form", ["tile", *(pytest.param(each, marks=pytest.mark.slow) for each in ("halves", "repeat"))]
)
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("scaling", [None, {"rope_type": "linear", "factor": 4.0}])
def test_cosines_or_sines_without_the_others(which: int, form: Any, scaling: Any) -> None:
    rope = fastpe.RotaryEmbedding(128, interleaved=False, base=20000.0, scaling=scaling)
    table = rope.tables(100, form=form)[which]
    found = fastpe.identify(table)
    check_call(found, table)
    assert found.rotary == rope
    assert found.title.startswith(("cosines", "sines")[which])


@pytest.mark.parametrize(
    "scaling",
    [
        {"rope_type": "linear", "factor": 4.0},
        {"rope_type": "linear", "factor": 2.5},
        LLAMA3,
        pytest.param({**LLAMA3, "factor": 32.0}, marks=pytest.mark.slow),
        {**LLAMA3, "factor": 16.0, "high_freq_factor": 1.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("base", [500000.0, *(pytest.param(each, marks=pytest.mark.slow) for each in (1e4, 150000.0))])
@pytest.mark.parametrize("form", ["complex", pytest.param("tile", marks=pytest.mark.slow)])
def test_scalings_are_found_with_their_numbers(scaling: dict[str, Any], base: float, form: Any) -> None:
    rope = fastpe.RotaryEmbedding(128, interleaved=False, base=base, scaling=scaling)
    tables = rope.tables(2048, form=form)
    found = fastpe.identify(*(tables if isinstance(tables, tuple) else (tables,)))
    assert found.rotary is not None
    np.testing.assert_array_equal(made(found), tables)
    assert f"scaling={scaling!r}" in found.code


def test_the_coarser_of_two_arrays_says_the_rounding() -> None:
    cos, sin = ROPE.tables(200)
    found = fastpe.identify(cos, sin.astype(np.float16).astype(np.float32))
    assert found.rotary == ROPE


# ---- What nothing known makes: silent rather than wrong


@functools.cache
def unknown() -> dict[str, tuple[npt.NDArray[Any], ...]]:
    random = np.random.default_rng(1)
    noise = random.normal(size=(60, 32))
    known = fastpe.encode(60, 32, dtype="float64")
    late, damaged, scaled = (fastpe.encode(5000, 16) for _ in range(3))
    late[4321, 5] += np.float32(0.01)
    damaged[2, 3] *= -1
    scaled[:, 3] *= np.float32(1.01)
    grid = fastpe.encode_grid((14, 14), 32, convention="mae2d")
    cos, sin = ROPE.tables(300)
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    freqs = 10.0 ** -np.sort(random.uniform(0, 4, 32))
    return {
        "noise": (noise,),
        "a learned table": (0.02 * noise.astype(np.float32),),
        "a learned table with padding": (np.r_[np.zeros((1, 32)), noise],),
        "a trained table": (known + 0.01 * noise,),
        "columns moved": (np.roll(known, 1, axis=1),),
        "columns in a random order": (known[:, random.permutation(32)],),
        "rows in a random order": (known[random.permutation(60)],),
        "one value late in the table": (late,),
        "one sign": (damaged,),
        "one column scaled": (scaled,),
        "noise on a grid": (random.uniform(-1, 1, (14, 14, 32)),),
        "a grid whose columns are moved": (np.roll(grid, 1, axis=-1),),
        "a grid of which one cell is damaged": (grid + (np.indices((14, 14, 32)).sum(axis=0) == 20),),
        "random phases": (np.exp(1j * random.uniform(-3, 3, (60, 16))),),
        "cosines of another embedding": (fastpe.RotaryEmbedding(64, interleaved=False).tables(300)[0], sin),
        "sines and cosines in the wrong order": (sin, cos),
        "yarn": fastpe.RotaryEmbedding(64, interleaved=False, scaling=yarn).tables(300),
        "frequencies that follow no base": fastpe.RotaryEmbedding(64, interleaved=False, frequencies=freqs).tables(300),
        "an encoding of such frequencies": (fastpe.encode(300, 64, frequencies=freqs),),
        "a base that nobody chooses": (fastpe.encode(300, 64, base=12345.678),),
        "a slow frequency of two": (
            fastpe.encode(40, 4, convention="ddpm", base=20000.0, freq_scale=0.1, offset=7, dtype="float64"),
        ),
        "one row of position 0, repeated": (np.tile(known[:1], (60, 1)),),
        "ones": (np.ones((60, 32)),),
        "integers": (np.round(known * 9).astype(np.int8),),
        "huge values": (noise * 1e150,),
        "the largest values": (np.array([[1e308, -1e308] * 2] * 4),),
        "tiny values": (noise * 1e-300,),
        "steps of time": (np.cumsum(np.abs(noise), axis=0),),
    }


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", list(unknown()))
def test_nothing_known_is_said_so(name: str) -> None:
    given = unknown()[name]
    found = fastpe.identify(*given)
    assert not found, found
    assert (found.code, found.convention, found.rotary, found.equivalents) == ("", None, None, ())
    assert found.largest_difference == np.inf
    assert str(found).startswith("no known convention")


def test_an_unknown_table_is_used_as_the_note_says() -> None:
    noise = np.random.default_rng(1).normal(size=(60, 32)).astype(np.float32)
    names: dict[str, Any] = {"fastpe": fastpe, "x": np.zeros((2, 60, 32), np.float32), "table": noise}
    eval(fastpe.identify(noise).notes[-1].partition(" adds")[0], names)
    np.testing.assert_array_equal(names["x"][1], noise)
    names |= {"q": np.ones((60, 64), np.float32), "k": np.ones((60, 64), np.float32), "cos": noise, "sin": -noise}
    eval(fastpe.identify(noise, -noise).notes[-1].partition(" rotates")[0].replace("..", "True"), names)
    np.testing.assert_array_equal(names["q"][:, ::2], 2 * noise)


@pytest.mark.parametrize("known", [True, False])
def test_a_large_table_takes_little_memory(known: bool) -> None:
    table = fastpe.encode(40_000, 256)
    table[-1, 0] += np.float32(0 if known else 1)
    tracemalloc.start()
    try:
        assert fastpe.identify(table).matches == known
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < table.nbytes
