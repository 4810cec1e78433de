# SPDX-License-Identifier: BSD-3-Clause
"""Calls about conventions, grids and layouts that are wrong, what they are told, and the calls that follow it."""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fastpe

from ..oracles.remedies import check_remedy, evaluating

REMEDIED: list[tuple[str, str, str]] = [
    ("encode(3, 8, convention='vaswni')", "did you mean 'vaswani'?", "encode(3, 8, convention='vaswani')"),
    (
        "encode(3, 8, convention='whisper')",
        "'tensor2tensor' serves openai/whisper",
        "encode(3, 8, convention='tensor2tensor')",
    ),
    ("encode(3, 8, convention='trocr')", "'fairseq' serves", "encode(3, 8, convention='fairseq')"),
    ("conventions['whisper']", "'tensor2tensor' serves openai/whisper", "conventions['tensor2tensor']"),
    (
        "encode(3, 8, convention='mae2d')",
        "convention is 'mae2d', which is a convention of grids, for fastpe.encode_grid and encode_coordinates",
        "(encode_grid((2, 3), 8, convention='mae2d'), encode_coordinates([[0, 1]], 8, convention='mae2d'))",
    ),
    (
        "encode(3, 8, convention=mae2d)",
        "for fastpe.encode_grid and encode_coordinates",
        "encode_grid((2, 3), 8, convention=mae2d)",
    ),
    (
        "encode_grid((2, 3), 8, convention=vaswani)",
        "for fastpe.encode, add_, add and embed",
        "encode(3, 8, convention=vaswani)",
    ),
    (
        "fastpe.rotary_layouts['flux'].tables(np.zeros((4, 3)), 128, sections=(16, 56, 56))",
        "give half of each number of columns, sections=(8, 28, 28)",
        "fastpe.rotary_layouts['flux'].tables(np.zeros((4, 3)), 128, sections=(8, 28, 28))",
    ),
    (
        "fastpe.timestep_embedding(np.array([[1.0], None], object)[:1], 8)",
        "timesteps has dtype object, expected integers, float32 or float64; its elements are arrays: pass np.stack(timesteps)",
        "fastpe.timestep_embedding(np.stack(np.array([[1.0], None], object)[:1]), 8)",
    ),
    (
        "identify(np.array([*encode(40, 8), None], object)[:-1])",
        "table has dtype object, expected numbers; its elements are arrays: pass np.stack(table)",
        "identify(np.stack(np.array([*encode(40, 8), None], object)[:-1]))",
    ),
    (
        "encode_coordinates([['0', '1']], 8, convention='mae2d')",
        "np.asarray(coordinates, np.float64) where the text is digits",
        "encode_coordinates(np.asarray([['0', '1']], np.float64), 8, convention='mae2d')",
    ),
    (
        "embed([1], Embedding())",
        "table is a Embedding, expected an array, or what np.asarray makes an array of numbers; pass table.weight.detach().numpy()",
        "embed([1], Embedding().weight.detach().numpy())",
    ),
    (
        "identify([Embedding()])",
        "its elements are modules: pass an array of one, such as table[0].weight.detach().numpy()",
        "identify([Embedding()][0].weight.detach().numpy())",
    ),
    *(
        (
            wrong,
            "pass an array of it, such as table.pe.detach().numpy()",
            "(identify(Module().pe.detach().numpy()), add(x, table=Module().pe.detach().numpy()))",
        )
        for wrong in ("identify(Module())", "add(x, table=Module())")
    ),
    *(
        (
            wrong,
            "its elements are modules: pass an array of one, such as table[0].weight.detach().numpy()",
            "add(x, table=[Embedding()][0].weight.detach().numpy())",
        )
        for wrong in ("add(x, table=[Embedding()])", "add_(x, table=[Embedding()])")
    ),
    ("identify(Embedding())", "pass table.weight.detach().numpy()", "identify(Embedding().weight.detach().numpy())"),
    ("identify(Tensor())", "pass table.detach().float().numpy()", "identify(Tensor().detach().float().numpy())"),
    (
        "encode_grid((2, 3), 8, convention='fairseq')",
        "for fastpe.encode, add_, add and embed",
        "(encode(3, 8, convention='fairseq'), add_(x, convention='fairseq'), embed([1], x[0], convention='fairseq'))",
    ),
    (
        "encode(3, 8, convention='detr')",
        "a convention of grids, for fastpe.encode_grid and encode_coordinates; call one of these",
        "encode_grid((2, 3), 8, convention='detr')",
    ),
    (
        "conventions['mae2d']",
        "'mae2d' is a convention of grids, for fastpe.encode_grid",
        "encode_grid((2, 3), 8, convention='mae2d')",
    ),
    (
        "encode(3, 8, convention='flux')",
        "a layout of images and videos, for the methods of fastpe.rotary_layouts[..]; call one of these",
        "fastpe.rotary_layouts['flux'].parts(128)",
    ),
    (
        "encode(3, 8, convention='rope')",
        "which RotaryEmbedding.from_config(config) makes",
        "fastpe.RotaryEmbedding.from_config({'model_type': 'llama', 'head_dim': 8})",
    ),
    (
        "encode(3, 8, convention='default')",
        "give 'vaswani', which is the default",
        "encode(3, 8, convention='vaswani')",
    ),
    (
        "encode(3, 8, convention='interleaved')",
        "or a Convention(.., layout='interleaved')",
        "encode(3, 8, convention=fastpe.Convention('mine', layout='interleaved'))",
    ),
    (
        "encode(3, 8, convention='BERT')",
        "a learned table is added by fastpe.add_(x, table=..)",
        "add_(x, table=np.ones((9, 8), 'f4'))",
    ),
    (
        "encode_grid((2, 3), 8, convention='timm')",
        "call one of these, or give 'timm2d'",
        "encode_grid((2, 3), 8, convention='timm2d')",
    ),
    (
        "add_(np.zeros((2, 8), ml_dtypes.float8_e4m3fn))",
        (
            "x has dtype float8_e4m3fn, expected float32, float64, float16 or ml_dtypes.bfloat16; pass np.asarray(x, np.float32) "
            "and keep that array: the result is written into it"
        ),
        "add_(np.asarray(np.zeros((2, 8), ml_dtypes.float8_e4m3fn), np.float32))",
    ),
    (
        "identify(encode(40, 8).astype(ml_dtypes.float8_e4m3fn))",
        "expected numbers; pass np.asarray(table, np.float32)",
        "identify(np.asarray(encode(40, 8).astype(ml_dtypes.float8_e4m3fn), np.float32))",
    ),
    (
        "add_(np.zeros((2, 8), [('a', 'f4')]))",
        "pass one field of it, such as x['field']",
        "add_(np.zeros((2, 8), [('a', 'f4')])['a'])",
    ),
    (
        "add_(np.zeros((2, 8), 'V4'))",
        "pass x.view(np.float32) of raw bytes",
        "add_(np.zeros((2, 8), 'V4').view(np.float32))",
    ),
    (
        "identify(np.where(np.eye(40, 8) + np.eye(40, 8, -9) > 0, np.nan, encode(40, 8))[9:])",
        "the first of 8 is table[0, 0], nan: pass np.where(np.isfinite(table), table, 0) to see what the rest is",
        "identify(np.where(np.eye(40, 8) + np.eye(40, 8, -9) > 0, 0, encode(40, 8))[9:])",
    ),
    (
        "identify(encode(40, 8), encode(40, 8))",
        "give an array that has both alone",
        "identify(encode(40, 8))",
    ),
    ("encode_grid((2, 3), 8, convention='LoFTR')", "'loftr' serves", "encode_grid((2, 3), 8, convention='loftr')"),
    ("fastpe.rotary_layouts['fluxx']", "did you mean 'flux'?", "fastpe.rotary_layouts['flux']"),
    *(
        (
            f"fastpe.rotary_layouts[{unknown!r}]",
            f"{known!r} is known, and may be another model: before you take it, compare how both rotate queries and keys",
            f"fastpe.rotary_layouts[{known!r}]",
        )
        for unknown, known in (
            ("flux3", "flux"),
            ("cogview4", "cogvideox"),
            ("qwen3_6", "qwen3_5"),
            ("kimi_k3_vision", "kimi_k25_vision"),
            ("gemma5_vision", "gemma4_vision"),
        )
    ),
    (
        "fastpe.rotary_layouts['glm4_5v']",
        "'glm4v_moe' serves GLM-4V-MoE (GLM-4.5V)",
        "fastpe.rotary_layouts['glm4v_moe']",
    ),
    ("fastpe.rotary_layouts['eva02']", "'timm' serves timm RotaryEmbeddingCat", "fastpe.rotary_layouts['timm']"),
    (
        "fastpe.rotary_layouts['dinov2']",
        "a learned table is added by fastpe.add_(x, table=..)",
        "add_(x, table=np.ones((9, 8), 'f4'))",
    ),
    ("replace(vaswani, layout='interleave')", "did you mean 'interleaved'?", "replace(vaswani, layout='interleaved')"),
    ("replace(vaswani, alpha='1/sqrt(D)')", "did you mean '1/sqrt(d)'?", "replace(vaswani, alpha='1/sqrt(d)')"),
    (
        "fastpe.GridConvention('mine', 'concat')",
        "such as fastpe.conventions['concat']",
        "fastpe.GridConvention('mine', conventions['concat'])",
    ),
    (
        "replace(mae2d, axis=vaswani, outermost='pair', proportions=(1, 1))",
        "give axis a concatenated layout and leave proportions out",
        "replace(mae2d, axis=replace(vaswani, layout='concatenated'), outermost='pair')",
    ),
    ("replace(mae2d, axis_order=(0, 0))", "such as (1, 0)", "replace(mae2d, axis_order=(1, 0))"),
    ("encode_grid((2, 3), 6, convention='mae2d')", "a multiple of 4", "encode_grid((2, 3), 8, convention='mae2d')"),
    *(
        (
            wrong,
            (
                "2 axes were given, expected 128, half of d_model: convention 'sam' is for points times the model's matrix; "
                "give these to fastpe.encode_coordinates, with d_model=2 * matrix.shape[1]: SAM PositionEmbeddingRandom, of "
                "(2 * points - 1) @ matrix"
            ),
            "encode_coordinates((2 * points - 1) @ np.ones((2, 128)), d_model=2 * 128, convention='sam')",
        )
        for wrong in (
            "encode_grid((4, 4), 256, convention='sam')",
            "encode_coordinates(points, 256, convention='sam')",
        )
    ),
    (
        "encode_grid((4, 4), 7, convention='sam')",
        "d_model is 7, expected 4, twice the number of axes: convention 'sam' is for points times the model's matrix",
        "encode_coordinates(points @ np.ones((2, 2)), d_model=4, convention='sam')",
    ),
    ("encode_grid(5, 8, convention='mae2d')", "such as (height, width)", "encode_grid((5, 5), 8, convention='mae2d')"),
    (
        "encode_grid((2, 3), 8, convention='detr', mask=np.ones((2, 3)))",
        "give mask != 0",
        "encode_grid((2, 3), 8, convention='detr', mask=np.ones((2, 3)) != 0)",
    ),
    (
        "encode_grid((2, 3), 8, convention='detr', mask=[[2, 1, 0]] * 2)",
        "pass a condition, such as mask != 0",
        "encode_grid((2, 3), 8, convention='detr', mask=np.array([[2, 1, 0]] * 2) != 0)",
    ),
    (
        "encode_grid((2, 3), 8, convention='mae2d', freqs=[1.0, 0.1], base=5.0)",
        "freqs are the frequencies themselves",
        "encode_grid((2, 3), 8, convention='mae2d', freqs=[1.0, 0.1])",
    ),
    (
        "encode_coordinates([[0, 1]], 8, convention='mae2d', freqs=['1', '2'])",
        "np.asarray(freqs, np.float64) where the text is digits",
        "encode_coordinates([[0, 1]], 8, convention='mae2d', freqs=np.asarray(['1', '2'], np.float64))",
    ),
    (
        "fastpe.PositionalEncoding(7).shift(np.zeros((3, 7)), 1)",
        "use an even width, or encode the positions",
        "(fastpe.PositionalEncoding(8).shift(np.zeros((3, 8)), 1), encode([1, 2, 3], 7))",
    ),
    (
        "fastpe.PositionalEncoding(8).shift(np.zeros((3, 8), 'f2'), 1)",
        "pass np.asarray(pe, np.float32)",
        "fastpe.PositionalEncoding(8).shift(np.asarray(np.zeros((3, 8), 'f2'), np.float32), 1)",
    ),
    (
        "encode_coordinates(np.zeros((4, 3)), 63, convention='nerf', include_input=True)",
        "the 3 columns of the input are not counted in d_model",
        "encode_coordinates(np.zeros((4, 3)), 60, convention='nerf', include_input=True)",
    ),
    (
        "encode_coordinates([[1, 2, 3]], 60, convention='mae2d')",
        "3 axes were given, expected 2",
        "encode_coordinates([[1, 2]], 60, convention='mae2d')",
    ),
    (
        "fastpe.timestep_embedding(['7'], 8)",
        "np.asarray(timesteps, np.float64) where the text is digits",
        "fastpe.timestep_embedding(np.asarray(['7'], np.float64), 8)",
    ),
    (
        "fastpe.timestep_embedding([5], 8, max_period=1e-300)",
        "check embedding_dim, max_period, scale and freqs",
        "fastpe.timestep_embedding([5], 8, max_period=1e4)",
    ),
    (
        "fastpe.timestep_embedding([5], 320, downscale_freq_shift=160)",
        "downscale_freq_shift is 160.0, expected less than the 160",
        "fastpe.timestep_embedding([5], 320, downscale_freq_shift=1)",
    ),
    (
        "fastpe.timestep_embedding(8, [5])",
        "embedding_dim is [5], expected an int",
        "fastpe.timestep_embedding([5], 8)",
    ),
    (
        "identify('t.safetensors')",
        "safetensors.numpy.load_file('t.safetensors')['NAME'], where NAME is one of",
        "identify(encode(40, 8))",
    ),
    (
        "add(x, table=x[0], base=5.0)",
        "table and base were both given, expected one; a learned table has no frequencies",
        "add(x, table=x[0])",
    ),
    (
        "embed([1], x[0], position_table=x[0], freqs=[1.0])",
        "position_table and freqs were both given, expected one",
        "embed([1], x[0], position_table=x[0])",
    ),
    (
        "fastpe.rotary_layouts['wan'].rotate_(np.ones((3, 128)), np.zeros((3, 3)))",
        "missing its argument 'positions'; what has no name is another array: write positions=..",
        "fastpe.rotary_layouts['wan'].rotate_(np.ones((3, 128)), positions=np.zeros((3, 3)))",
    ),
    (
        "fastpe.RotaryEmbedding(8, interleaved=True, axes=[1, 3])",
        "of sections, give np.repeat(range(len(sections)), sections)",
        "fastpe.RotaryEmbedding(8, interleaved=True, axes=np.repeat(range(2), [1, 3]))",
    ),
    (
        "fastpe.RotaryEmbedding(8, interleaved=True).tables(3, form='complex', dtype=np.complex64)",
        "dtype is complex64, expected float32 or float64, the dtype of the parts, for form='complex'",
        "fastpe.RotaryEmbedding(8, interleaved=True).tables(3, form='complex', dtype=np.float32)",
    ),
    (
        "fastpe.RotaryEmbedding(8, interleaved=True).tables(3, form='cos_sin', out=(x[0], x[0]))",
        "give the array, or a form of two arrays, such as 'halves'",
        "fastpe.RotaryEmbedding(8, interleaved=True).tables(3, form='cos_sin', out=x[0])",
    ),
    (
        "fastpe.RotaryEmbedding(8, interleaved=True).rotate_(x[0, 0])",
        "expected at least two axes, [L, head_dim] or [B, .., L, head_dim]; use x[None] for one row",
        "fastpe.RotaryEmbedding(8, interleaved=True).rotate_(x[0, 0][None])",
    ),
    (
        "add_(np.array(3.0))",
        "use x[None, None] for one number",
        "add_(np.array(3.0)[None, None])",
    ),
    (
        "fastpe.RotaryEmbedding(8, interleaved=True).tables(length=3)",
        "did you mean 'positions'?",
        "fastpe.RotaryEmbedding(8, interleaved=True).tables(positions=3)",
    ),
    ("encode(3, 200, convention='nerf')", "check d_model, base, freq_scale", "encode(3, 20, convention='nerf')"),
    (
        "fastpe.rotary_layouts['wan'].rotate_(np.ones((3, 128)).tolist(), positions=np.zeros((3, 3)))",
        "pass np.asarray(x, np.float32) and keep that array",
        "fastpe.rotary_layouts['wan'].rotate_(np.asarray(np.ones((3, 128)).tolist(), np.float32), positions=np.zeros((3, 3)))",
    ),
    *(
        (
            f"fastpe.rotary_layouts[{name!r}].rotate_(np.ones((3, 128)), None, positions=np.zeros((3, {axes})))",
            "others[0] is None, expected a numpy.ndarray; check the call that made it",
            f"fastpe.rotary_layouts[{name!r}].rotate_(*np.ones((2, 3, 128)), positions=np.zeros((3, {axes})))",
        )
        for name, axes in (("wan", 3), ("gemma4_vision", 2))
    ),
]


class Tensor:
    """Like torch's in bfloat16, of which NumPy makes no array."""

    def __array__(self, *_: Any, **__: Any) -> None:
        raise TypeError("a message of torch's")

    def detach(self) -> Tensor:
        return self

    def float(self) -> Tensor:
        return self

    def numpy(self) -> Any:
        return fastpe.encode(40, 8)


class Embedding:
    """Like torch's, whose table is its weight."""

    weight = Tensor()

    def state_dict(self) -> None:
        pass


class Module:
    """Like a module of torch with a buffer."""

    pe = Tensor()

    def state_dict(self) -> None:
        pass


def names() -> dict[str, Any]:
    return {name: getattr(fastpe, name) for name in fastpe.__all__} | {
        "fastpe": fastpe,
        "np": np,
        "replace": dataclasses.replace,
        "vaswani": fastpe.conventions["vaswani"],
        "mae2d": fastpe.grid_conventions["mae2d"],
        "x": np.ones((2, 3, 8), np.float32),
        "points": np.array([[0.25, 0.5], [1.0, 0.125]]),
        "Tensor": Tensor,
        "Embedding": Embedding,
        "Module": Module,
        "ml_dtypes": ml_dtypes,
    }


@pytest.mark.parametrize(("wrong", "remedy", "remedied"), REMEDIED, ids=[wrong for wrong, *_ in REMEDIED])
def test_the_remedy_works(wrong: str, remedy: str, remedied: str) -> None:
    check_remedy(evaluating(names), wrong, remedy, remedied)
