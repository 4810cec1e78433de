# SPDX-License-Identifier: BSD-3-Clause
"""Conventions, grids, timesteps and tables to identify that are refused, before anything is written."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fastpe

from ..oracles.reference import FOREIGN
from ..oracles.refusals import Module, Refused, Tensor, check_refused, each, naming, rows

REFUSED: Refused = {
    # ---- Names
    (ValueError, "convention"): [
        *each("encode(3, 8, convention='{}')", "vaswni | whisper | "),
        # of another kind
        *each("encode(3, 8, convention='{}')", "mae2d | detr | flux"),
        *each("grid(convention='{}')", "fairseq | LoFTR"),
    ],
    (TypeError, "convention"): [
        *each("encode(3, 8, convention={})", "None | 3 | ['vaswani'] | mae2d"),
        "grid(convention=vaswani)",
    ],
    (KeyError, "whisper"): ["conventions['whisper']", "grid_conventions['whisper']"],
    (KeyError, "mae2d"): ["conventions['mae2d']"],
    (KeyError, "fluxx"): ["layouts['fluxx']"],
    # ---- Grids and points
    (TypeError, "shape"): each("grid(shape={})", "5 | (2.7, 2) | ('2', 3) | None"),
    (ValueError, "shape"): ["grid(shape=())", "grid(shape=(2, -1))"],
    (ValueError, "d_model"): [
        *each("grid(d_model={})", "6 | 0, convention='positional_encodings' | 7, convention='sam'"),
        "points(coordinates=[[0.25, 0.5]], d_model=256, convention='sam')",
        "points(coordinates=np.zeros((4, 3)), d_model=63, convention='nerf', include_input=True)",
        "encode(3, 200, convention='nerf')",
    ],
    (ValueError, "sin table"): ["identify(table, table)"],
    (ValueError, "convention axes"): [
        "grid(shape=(2, 3, 4), out=None)",
        "grid(shape=(2, 3, 4), out=None, convention=replace(mae2d, axis_order=None, proportions=(1, 1)))",
        "points(coordinates=[[1, 2, 3]])",
    ],
    (TypeError, "spacing"): ["grid(spacing='1')"],
    (ValueError, "spacing"): each(
        "grid(spacing={})",
        "(1.0, 2.0, 3.0) | np.nan | [[1.0], [2.0, 3.0]] | (1, 1e16) | (1, 1e16), valid=np.ones((2, 3), bool)",
    ),
    (TypeError, "valid"): ["grid(convention='detr', valid=np.ones((2, 3)))"],
    (ValueError, "valid"): [
        "grid(convention='detr', valid=[[2, 1, 0]] * 2)",
        *each("grid(convention='detr', valid=np.ones({}, bool))", "(3, 2) | (2, 2, 2, 3)"),
    ],
    (ValueError, "class_tokens"): ["grid(class_tokens=-1)"],
    (ValueError, "class_tokens channels_first"): ["grid(class_tokens=1, channels_first=True)"],
    (ValueError, "base"): ["grid(base=-1.0)"],
    (ValueError, "frequencies"): ["grid(frequencies=[1.0, 2.0, 3.0])"],
    (TypeError, "frequencies"): ["points(frequencies=['1', '2'])"],
    (ValueError, "frequencies base"): ["grid(frequencies=[1.0, 0.1], base=5.0)"],
    (TypeError, "out"): [
        "grid(out=[[7.0]])",
        "grid(out=out.astype('i8'))",
        "grid(out=out.astype('f8'), dtype='f4')",
        f"grid(out=out.astype('{FOREIGN}f4'))",
    ],
    (ValueError, "out"): ["grid(out=out[..., :4])", "grid(out=readonly)", "grid(out=overlapping)"],
    (TypeError, "coordinates"): [
        "points(coordinates=[['0', '1']])",
        *each("points(coordinates=np.zeros((3, 2), {}), out=out[0])", "complex | bool"),
    ],
    (ValueError, "coordinates"): [
        *each("points(coordinates={})", "np.float64(1.0) | np.zeros((3, 0))"),
        "points(coordinates=np.full((3, 2), np.inf), out=out[0])",
        "points(coordinates=np.concatenate([np.zeros((20_000, 2)), [[0.0, -(2.0**54)]]]), out=many)",
        "points(coordinates=np.array([[1, -2**63], [0, 0], [0, 0]]), out=out[0])",
    ],
    (ValueError, "base freq_scale"): ["encode(4, 1000, base=1e308, freq_scale=2.0**-90)"],
    # ---- Timesteps
    (TypeError, "timesteps"): ["timestep(timesteps=['7'])", "timestep(timesteps=lists)"],
    (TypeError, "embedding_dim"): ["timestep(embedding_dim=[5])"],
    (TypeError, "flip_sin_to_cos"): ["timestep(flip_sin_to_cos='no')"],
    (TypeError, "scale"): ["timestep(scale=None)"],
    (TypeError, "downscale_freq_shift"): ["timestep(downscale_freq_shift='1')"],
    (ValueError, "downscale_freq_shift"): ["timestep(embedding_dim=320, downscale_freq_shift=160)"],
    (ValueError, "max_period"): ["timestep(max_period=0)", "timestep(max_period=1e-300)"],
    # ---- Tables to identify
    (TypeError, "table"): [
        *each("identify({})", "'pe.npy' | Path('pe.npy') | {'pe': table} | Module() | [Module()] | Tensor()"),
        *each("identify({})", "[['a', 'b']] | [[None, 1]] | table.astype(float8) | lists"),
    ],
    (ValueError, "table"): [
        *each("identify({})", "table * 0 | table[0] | table[:0] | table * np.nan | [[1.0], [1.0, 2.0]]")
    ],
    (ValueError, "sin"): ["identify(table, table[:3])"],
    # ---- Fields that contradict each other
    (ValueError, "denominator_offset"): [
        "encode(3, 8, convention=replace(vaswani, denominator=None, denominator_offset=4.0))"
    ],
    (ValueError, "outermost"): ["replace(mae2d, axis=vaswani, outermost='pair', proportions=(1, 1))"],
}

# Fields of the presets below, and values that they do not take; fields of one type are checked by one function.
FIELDS: dict[tuple[str, type[Exception]], dict[str, list[Any]]] = {
    ("vaswani", ValueError): {
        "layout": ["interleave"],
        "denominator_offset": [np.inf],
        "denominator": [0],
        "base": [-1.0, 10**400],
        "first_position": [2**53 + 1, -(2**53) - 1],
        "alpha": ["1/sqrt(D)", np.inf],
    },
    ("mae2d", ValueError): {"axis_order": [(0, 0), (1, 2), ()], "proportions": [(1,), (1, 0)]},
}
PRESETS: dict[str, Any] = {"vaswani": fastpe.conventions["vaswani"], "mae2d": fastpe.grid_conventions["mae2d"]}


def names() -> dict[str, Any]:
    out = np.full((2, 3, 8), np.float32(7))
    readonly = out.copy()
    readonly.flags.writeable = False
    arrays = {
        "out": out,
        "readonly": readonly,
        "many": np.full((20_001, 8), np.float32(7)),
        "overlapping": np.lib.stride_tricks.as_strided(np.zeros((2, 8), np.float32), (2, 3, 8), (32, 0, 4)),
    }

    def grid(**given: Any) -> Any:
        return fastpe.encode_grid(**{"shape": (2, 3), "d_model": 8, "convention": "mae2d", "out": out, **given})

    def points(**given: Any) -> Any:
        return fastpe.encode_coordinates(**{"coordinates": [[0, 1]], "d_model": 8, "convention": "mae2d", **given})

    def timestep(**given: Any) -> Any:
        return fastpe.timestep_embedding(
            **{"timesteps": [1], "embedding_dim": 8, "flip_sin_to_cos": True, "downscale_freq_shift": 1, **given}
        )

    functions = {"grid": grid, "points": points, "timestep": timestep}
    return {**functions, **arrays, **PRESETS} | {
        **{name: getattr(fastpe, name) for name in ("encode", "identify", "conventions", "grid_conventions")},
        "layouts": fastpe.rotary_layouts,
        "replace": dataclasses.replace,
        "np": np,
        "Path": Path,
        "Module": Module,
        "Tensor": Tensor,
        "float8": ml_dtypes.float8_e4m3fn,
        "table": fastpe.encode(40, 8),
        "lists": np.array([*([1.0] * 8 for _ in range(3)), None], object)[:3],
    }


@pytest.mark.parametrize(("call", "error", "arguments"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], arguments: str) -> None:
    check_refused(call, error, arguments, names())


def test_the_calls_are_right_but_for_what_is_refused() -> None:
    for call in ("grid()", "points()", "timestep()", "grid(convention='detr', valid=np.ones((2, 3), bool), out=None)"):
        eval(call, names())


@pytest.mark.parametrize(
    ("preset", "error", "field", "value"),
    [
        pytest.param(preset, error, field, value, id=f"{preset}-{field}-{value!r}")
        for (preset, error), fields in FIELDS.items()
        for field, values in fields.items()
        for value in values
    ],
)
def test_a_wrong_field_is_refused(preset: str, error: type[Exception], field: str, value: Any) -> None:
    with pytest.raises(error, match=naming(field)) as caught:
        dataclasses.replace(PRESETS[preset], **{field: value})
    assert caught.type is error
    # So it is where it comes out of a file.
    pickled = copy.copy(PRESETS[preset])
    object.__setattr__(pickled, field, value)
    with pytest.raises(error):
        pickle.loads(pickle.dumps(pickled))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_field_is_checked(preset: str) -> None:
    for field in dataclasses.fields(PRESETS[preset]):
        with pytest.raises(TypeError, match=naming(field.name)):
            dataclasses.replace(PRESETS[preset], **{field.name: object()})


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        ("fastpe.encode(3, 8, bas=3)", "base"),
        ("fastpe.RotaryEmbedding(8, interleavd=True)", "interleaved"),
        ("fastpe.PositionalEncoding(8).encode(3, ofset=1)", "offset"),
    ],
)
def test_a_misspelt_keyword_is_told_the_nearest_one(call: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"Did you mean '{meant}'"):
        eval(call)


def test_a_choice_that_is_missing_is_explained() -> None:
    with pytest.raises(TypeError, match=r"'convention'; print\(fastpe\.grid_conventions\)"):
        fastpe.encode_grid((2, 3), 8)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'causal'; True if queries see no later keys"):
        fastpe.attention_mask(4)  # type: ignore[call-arg]
