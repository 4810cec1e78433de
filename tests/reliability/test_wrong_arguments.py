# SPDX-License-Identifier: BSD-3-Clause
"""Arguments by the names of other libraries, in wrong functions, too many or missing: what is said, and what follows it."""

from __future__ import annotations

import copy
import dataclasses
import gc
import inspect
import pickle
import pydoc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe import _core

from ..oracles.remedies import check_remedy, evaluating

LINEAR = {"rope_type": "linear", "factor": 4.0}
LLAMA = {"model_type": "llama", "head_dim": 8}


def timing_signal(length: int, channels: int, min_timescale: float, max_timescale: float) -> Any:
    """As get_timing_signal_1d of tensor2tensor makes it."""
    count = channels // 2
    increment = np.log(max_timescale / min_timescale) / (count - 1)
    angles = np.arange(length)[:, None] * (min_timescale * np.exp(-increment * np.arange(count)))
    return np.hstack([np.sin(angles), np.cos(angles)])


def cosines_first(length: int, channels: int) -> Any:
    """As SinusoidalPositionalEncoding of mlx makes it with cos_first."""
    count = channels // 2
    angles = np.arange(length)[:, None] * np.exp(np.linspace(0.0, np.log(1e-4), count))
    return np.hstack([np.cos(angles), np.sin(angles)]) * (2 / channels) ** 0.5


def names() -> dict[str, Any]:
    return {name: getattr(fastpe, name) for name in fastpe.__all__} | {
        "fastpe": fastpe,
        "np": np,
        "replace": dataclasses.replace,
        "x": np.ones((2, 3, 8), np.float32),
        "ids": np.array([[1, 2, 0], [3, 0, 0]]),
        "enc": fastpe.PositionalEncoding(8),
        "rope": fastpe.RotaryEmbedding(8, interleaved=False),
        "wan": fastpe.rotary_layouts["wan"],
        "flux": fastpe.rotary_layouts["flux"],
        "q": np.ones((4, 128), np.float32),
        "tables": {"cos": np.ones((9, 4), np.float32), "sin": np.zeros((9, 4), np.float32)},
        "halves": dict(zip(("cos", "sin"), fastpe.RotaryEmbedding(8, interleaved=False).tables(3), strict=True)),
        "tiled": fastpe.RotaryEmbedding(8, interleaved=True).tables(4, form="tile"),
        "repeated": fastpe.RotaryEmbedding(8, interleaved=True).tables(4, form="repeat"),
        "wide": np.ones((2, 3, 16), np.float32),
        "timing": timing_signal(3, 8, 2.0, 8.0),
        "timing_signal": timing_signal,
        "mlx": cosines_first(3, 8),
        "freqs_cis": fastpe.RotaryEmbedding(8, interleaved=True).tables(3, form="complex"),
        "complex_q": np.ones((2, 3, 4), np.complex64),
        "LINEAR": LINEAR,
        "LLAMA": LLAMA,
    }


REMEDIED: list[tuple[str, str, str]] = [
    # Names of other libraries
    (
        "RotaryEmbedding(8, interleaved=True, theta=5e5)",
        "'theta'; did you mean 'base'?",
        "RotaryEmbedding(8, interleaved=True, base=5e5)",
    ),
    (
        "RotaryEmbedding(dim=8, interleaved=True)",
        "did you mean 'rotary_dim'?",
        "RotaryEmbedding(rotary_dim=8, interleaved=True)",
    ),
    (
        "encode(3, 8, seq_len=3)",
        "encode() got an unexpected keyword argument 'seq_len'; 'positions', which was given, serves in its place: leave it out",
        "encode(3, 8)",
    ),
    *(
        (
            wrong,
            "; 'rotary_dim', which was given, serves in its place: leave it out",
            "RotaryEmbedding(8, interleaved=True).rotate(np.ones((3, 16), np.float32))",
        )
        for wrong in (
            "RotaryEmbedding(8, head_dim=16, interleaved=True)",
            "RotaryEmbedding(head_dim=16, rotary_dim=8, interleaved=True)",
        )
    ),
    (
        "RotaryEmbedding(8, is_neox_style=True)",
        "did you mean 'interleaved', which is False for that style?",
        "RotaryEmbedding(8, interleaved=False)",
    ),
    ("RotaryEmbedding(8, traditional=True)", "did you mean 'interleaved'?", "RotaryEmbedding(8, interleaved=True)"),
    (
        "RotaryEmbedding(8, interleaved=True, rope_scaling=LINEAR)",
        'did you mean \'scaling\', such as scaling={"rope_type": .., "factor": ..}?',
        "RotaryEmbedding(8, interleaved=True, scaling=LINEAR)",
    ),
    (
        "RotaryEmbedding.from_config(LLAMA, freq_scale=0.25)",
        'write "rope_scaling": {"rope_type": "linear", "factor": 1 / freq_scale} into the config',
        "RotaryEmbedding.from_config({**LLAMA, 'rope_scaling': LINEAR})",
    ),
    *(
        (
            f"RotaryEmbedding(8, interleaved=True, {name}=0.25)",
            'did you mean \'scaling\', such as scaling={"rope_type": "linear", "factor": 1 / freq_scale}?',
            "np.testing.assert_array_equal(RotaryEmbedding(8, interleaved=True, scaling=LINEAR).frequencies, rope.frequencies * 0.25)",
        )
        for name in ("freq_scale", "rope_freq_scale", "scale")
    ),
    (
        "RotaryEmbedding(8, interleaved=True, max_position_embeddings=9)",
        "did you mean 'max_len'?",
        "RotaryEmbedding(8, interleaved=True, max_len=9)",
    ),
    ("PositionalEncoding(embed_dim=8)", "did you mean 'd_model'?", "PositionalEncoding(d_model=8)"),
    ("PositionalEncoding(8, seq_len=9)", "did you mean 'max_len'?", "PositionalEncoding(8, max_len=9)"),
    ("PositionalEncoding(8, dropout=0.1)", "fastpe has no dropout: leave it out", "PositionalEncoding(8)"),
    (
        "PositionalEncoding(8, dtype='f8')",
        "an argument of each call: give it there",
        "PositionalEncoding(8).encode(3, dtype='f8')",
    ),
    ("rotary_frequencies(8, rope_theta=5e5)", "did you mean 'base'?", "rotary_frequencies(8, base=5e5)"),
    ("encode(seq_len=3, d_model=8)", "did you mean 'positions'?", "encode(positions=3, d_model=8)"),
    ("add_(x, attention_mask=ids != 0)", "did you mean 'mask', which is True, or 1, where", "add_(x, mask=ids != 0)"),
    ("add_(x, key_padding_mask=ids == 0)", "did you mean 'mask', the contrary", "add_(x, mask=~(ids == 0))"),
    ("add_(x, padding_idx=0)", "such as mask=ids != padding_idx, and offset=", "add_(x, mask=ids != 0)"),
    ("add_(x, axis=1)", "did you mean 'seq_axis'?", "add_(x, seq_axis=1)"),
    ("add_(x, batch_first=False)", "did you mean 'seq_axis', which is 0 for [L, B, ..], -2", "add_(x, seq_axis=0)"),
    ("add_(x, position_ids=[1, 2, 3])", "did you mean 'positions'?", "add_(x, positions=[1, 2, 3])"),
    ("add_(x, seq_len=3)", "the length is that of the array, along seq_axis: leave it out", "add_(x)"),
    ("embed(ids, encode(9, 8), start_pos=3)", "did you mean 'offset'?", "embed(ids, encode(9, 8), offset=3)"),
    ("rope.rotate_(x, start_pos=3)", "did you mean 'offset'?", "rope.rotate_(x, offset=3)"),
    ("rope.shift_(x, offset=3)", "did you mean 'by'?", "rope.shift_(x, by=3)"),
    ("enc.shift(x, by=3)", "did you mean 'k'?", "enc.shift(x, k=3)"),
    (
        "encode_grid((2, 3), 8, convention='mae2d', cls_token=1)",
        "did you mean 'class_tokens'?",
        "encode_grid((2, 3), 8, convention='mae2d', class_tokens=1)",
    ),
    (
        "encode_coordinates(coords=[[0, 1]], d_model=8, convention='mae2d')",
        "did you mean 'coordinates'?",
        "encode_coordinates(coordinates=[[0, 1]], d_model=8, convention='mae2d')",
    ),
    (
        "timestep_embedding(t=[1], embedding_dim=8)",
        "did you mean 'timesteps'?",
        "timestep_embedding(timesteps=[1], embedding_dim=8)",
    ),
    (
        "wan.rotate_(q, position_ids=np.zeros((4, 3)))",
        "did you mean 'positions'?",
        "wan.rotate_(q, positions=np.zeros((4, 3)))",
    ),
    (
        "wan.tables((1, 4, 6), 128)",
        "pass layout.positions((1, 4, 6)) for the cells of a grid, or [(1, 4, 6)] for one point",
        "(wan.tables(wan.positions((1, 4, 6)), 128), wan.tables([(1, 4, 6)], 128))",
    ),
    ("wan.parts(128, base=1e4)", "did you mean 'theta'?", "wan.parts(128, theta=1e4)"),
    (
        "flux.tables(np.zeros((4, 3)), 128, axes_dim=(16, 56, 56))",
        "did you mean 'sections', which has half of each number?",
        "flux.tables(np.zeros((4, 3)), 128, sections=(8, 28, 28))",
    ),
    (
        "flux.tables(np.zeros((4, 3)), 128, mrope_section=(8, 28, 28))",
        "did you mean 'sections'?",
        "flux.tables(np.zeros((4, 3)), 128, sections=(8, 28, 28))",
    ),
    (
        "RotaryEmbedding(8, layout='neox')",
        "did you mean 'interleaved', which is True for neighbours, and False for columns that are half of the width",
        "RotaryEmbedding(8, interleaved=False)",
    ),
    ("identify(tables=encode(40, 8))", "did you mean 'table'?", "identify(table=encode(40, 8))"),
    # Arguments of other functions
    (
        "add_(x, out=x)",
        "writes into x itself: leave it out, or pass x.copy()",
        "(add_(x), add_(x.copy()), add(x, out=x))",
    ),
    ("add_(x, device='cpu')", "fastpe computes on the CPU: leave it out", "add_(x)"),
    ("add_(x, dtype='f8')", "pass np.asarray(x, dtype)", "add_(np.asarray(x, 'f8'))"),
    ("add(x, inplace=True)", "functions whose name ends in _ work in place", "add_(x)"),
    ("add_(x, max_len=9)", "rows are kept by PositionalEncoding(..)", "PositionalEncoding(8, max_len=9).add_(x)"),
    (
        "enc.add_(x, convention='concat')",
        "give it to PositionalEncoding(..), and call its methods",
        "PositionalEncoding(8, convention='concat').add_(x)",
    ),
    (
        "enc.encode(3, base=5.0)",
        "frequencies belong to PositionalEncoding(..)",
        "PositionalEncoding(8, base=5.0).encode(3)",
    ),
    (
        "rope.rotate_(x, scaling=LINEAR)",
        "give it to RotaryEmbedding(..), and call its methods",
        "RotaryEmbedding(8, interleaved=False, scaling=LINEAR).rotate_(x)",
    ),
    ("rope.rotate_(x, table=x)", "a learned table is added by add_, add and embed", "add_(x, table=x[0].copy())"),
    ("rope.rotate_(x, cls_token=1)", "pass the array without the rows of class tokens", "rope.rotate_(x[:, 1:])"),
    (
        "rotate_(x, **tables, convention='concat')",
        "leave it out, or make a RotaryEmbedding(..)",
        "(rotate_(x, **tables, interleaved=True), rope.rotate_(x))",
    ),
    (
        "RotaryEmbedding.from_config(LLAMA, rope_theta=5e5)",
        "it belongs to the config: write it there",
        "RotaryEmbedding.from_config({**LLAMA, 'rope_theta': 5e5})",
    ),
    (
        "RotaryEmbedding.from_config(LLAMA, base=5e5)",
        "it belongs to the config: write it there, as rope_theta",
        "RotaryEmbedding.from_config({**LLAMA, 'rope_theta': 5e5})",
    ),
    (
        "RotaryEmbedding.from_config(LLAMA, scaling={'rope_type': 'linear', 'factor': 2.0})",
        "it belongs to the config: write it there, as rope_scaling",
        "RotaryEmbedding.from_config({**LLAMA, 'rope_scaling': {'rope_type': 'linear', 'factor': 2.0}})",
    ),
    (
        "RotaryEmbedding(80, partial_rotary_factor=0.4, interleaved=False)",
        "did you mean 'rotary_dim', which is this share of the head's columns?",
        "RotaryEmbedding(int(0.4 * 80), interleaved=False)",
    ),
    ("add_(x, backend=1)", "expected one of x, convention, base", "add_(x, base=5.0)"),
    (
        "rope.rotate(x, layout='neox')",
        "give interleaved= to RotaryEmbedding(..), and call its methods",
        "RotaryEmbedding(8, interleaved=False).rotate(x)",
    ),
    (
        "rope.rotate_(x[None], layout='bshd')",
        "the order of axes is seq_axis=, such as -3 for [.., L, heads, D]",
        "rope.rotate_(x[None], seq_axis=-3)",
    ),
    *(
        (
            f"rope.rotate_(x[None], {name}='bshd')",
            "did you mean 'seq_axis', which is 0 for [L, B, ..], -2 for [.., L, D], and -3 for [.., L, heads, D]?",
            "rope.rotate_(x[None], seq_axis=-3)",
        )
        for name in ("tensor_format", "qkv_format")
    ),
    (
        "rotate_(x[None], **tables, interleaved=False, layout='bshd')",
        "the order of axes is seq_axis=, such as -3 for [.., L, heads, D]; which columns are pairs is interleaved=",
        "rotate_(x[None], **tables, interleaved=False, seq_axis=-3)",
    ),
    *(
        (
            f"rotate_(x[None], **tables, interleaved=False, {name}='bshd')",
            "did you mean 'seq_axis', which is 0 for [L, B, ..], -2 for [.., L, D], and -3 for [.., L, heads, D]?",
            "rotate_(x[None], **tables, interleaved=False, seq_axis=-3)",
        )
        for name in ("tensor_format", "qkv_format", "unsqueeze_dim")
    ),
    (
        "rotate_(x, **tables, style='neox')",
        "did you mean 'interleaved', which is True for neighbours",
        "rotate_(x, **tables, interleaved=False)",
    ),
    *(
        (f"{call}, seqlen_offsets=[2, 5])", "did you mean 'offset'?", f"{call}, offset=[2, 5])")
        for call in ("rope.rotate_(x", "rotate_(x, **tables, interleaved=False")
    ),
    (
        "rope.rotate_(x, position_embeddings=(halves['cos'], halves['sin']))",
        "the embedding makes its own: leave it out, or call fastpe.rotate_(q, k, cos=.., sin=.., interleaved=..)",
        "(rope.rotate_(x), rotate_(x, **halves, interleaved=False))",
    ),
    (
        "rope.rotate_(x, is_neox_style=True)",
        "give interleaved= to RotaryEmbedding(..), and call its methods",
        "RotaryEmbedding(8, interleaved=False).rotate_(x)",
    ),
    (
        "RotaryEmbedding(128, interleaved=True, axes_dim=(16, 56, 56))",
        "give half of each number as sections= to the methods of fastpe.rotary_layouts[..]",
        "fastpe.rotary_layouts['flux'].tables(np.zeros((4, 3)), 128, sections=(8, 28, 28))",
    ),
    (
        "RotaryEmbedding(128, interleaved=False, mrope_section=(16, 24, 24))",
        "give it as sections= to the methods of fastpe.rotary_layouts[..]",
        "fastpe.rotary_layouts['qwen2_vl'].tables(np.zeros((4, 3)), 128, sections=(16, 24, 24), theta=1e6)",
    ),
    # Fields of presets
    ("Convention()", "Convention() is missing its argument 'name'", "Convention(name='mine')"),
    (
        "replace(conventions['vaswani'], shiftt=1)",
        "Convention() got an unexpected keyword argument 'shiftt'; did you mean 'shift'?",
        "replace(conventions['vaswani'], shift=1)",
    ),
    ("Convention('mine', theta=5e5)", "did you mean 'base'?", "Convention('mine', base=5e5)"),
    (
        "Convention('mine', d_model=8)",
        "give it to PositionalEncoding(..), and call its methods",
        "PositionalEncoding(8, convention=Convention('mine'))",
    ),
    (
        "GridConvention('mine')",
        "is missing its argument 'axis'",
        "GridConvention('mine', axis=conventions['concat'])",
    ),
    ("replace(flux, section=(8, 28, 28))", "did you mean 'sections'?", "replace(flux, sections=(8, 28, 28))"),
    # Names of other libraries for functions, classes and attributes
    ("enc(x)", "call add(x), or add_(x), which writes into x", "(enc.add(x), enc.add_(x))"),
    ("enc.forward(x)", "call add(x), or add_(x), which writes into x", "(enc.add(x), enc.encode(9))"),
    ("enc.pe", "call encode(length), which makes the table", "enc.encode(9)"),
    ("enc.embedding_dim", "read d_model", "enc.d_model"),
    ("enc.inv_freq", "read frequencies", "enc.frequencies"),
    ("enc.max_seq_len", "read max_len", "enc.max_len"),
    ("enc.base", "read it from convention", "enc.convention.base"),
    ("enc.eval()", "leave it out: fastpe computes on the CPU", "enc.add(x)"),
    (
        "rope(x)",
        "call rotate_(q, k), which writes into them, or rotate(x), or tables(length)",
        "(rope.rotate_(x, x.copy()), rope.rotate(x), rope.tables(9))",
    ),
    ("rope.rotate_queries_or_keys(x)", "call rotate_(q, k), which writes into them", "rope.rotate_(x, x.copy())"),
    ("rope.inv_freq", "read frequencies", "rope.frequencies"),
    ("rope.cos_cached[:9]", "call tables(length), which makes the cosines and sines", "rope.tables(9)"),
    ("rope.attention_scaling", "read attention_factor", "rope.attention_factor"),
    ("rope.head_dim", "read rotary_dim", "rope.rotary_dim"),
    ("rope.max_seq_len_cached", "read max_len", "rope.max_len"),
    ("rope.theta", "print the embedding, which shows its arguments", "repr(rope)"),
    ("rope.to('cuda')", "fastpe computes on the CPU, and has no parameters to train", "rope.rotate_(x)"),
    (
        "RotaryEmbedding.from_pretrained('organisation/model')",
        "call from_config(..) with the model's config.json",
        "RotaryEmbedding.from_config(LLAMA)",
    ),
    (
        "flux(np.zeros((4, 3)))",
        "call rotate_(q, k, positions=ids), or tables(ids, head_dim)",
        "(flux.rotate_(q, q.copy(), positions=np.zeros((4, 3))), flux.tables(np.zeros((4, 3)), 128))",
    ),
    ("flux.axes_dim", "read sections, which has half of each number", "flux.sections"),
    ("flux.cuda()", "fastpe computes on the CPU", "flux.parts(128)"),
    (
        "fastpe.rotate(x)",
        "make a RotaryEmbedding(..) and call its rotate(x), or call fastpe.rotate_(x, cos=.., sin=.., interleaved=..)",
        "(RotaryEmbedding(8, interleaved=False).rotate(x), fastpe.rotate_(x, **tables, interleaved=True))",
    ),
    (
        "fastpe.apply_rotary_pos_emb(x, x, **tables)",
        "or call fastpe.rotate_(q, k, cos=.., sin=.., interleaved=..) with tables [rows, pairs]",
        "(rope.rotate_(x, x.copy()), fastpe.rotate_(x, x.copy(), **tables, interleaved=False))",
    ),
    (
        "fastpe.RotaryPositionalEmbedding(8)",
        "use fastpe.RotaryEmbedding",
        "fastpe.RotaryEmbedding(8, interleaved=False)",
    ),
    (
        "fastpe.from_pretrained('organisation/model')",
        "call fastpe.RotaryEmbedding.from_config(..) with a model's config.json",
        "fastpe.RotaryEmbedding.from_config(LLAMA)",
    ),
    (
        "fastpe.precompute_freqs_cis(8, 9)",
        "make a RotaryEmbedding(..) and call its tables(length)",
        "RotaryEmbedding(8, interleaved=True).tables(9)",
    ),
    (
        "fastpe.SinusoidalPositionalEmbedding(8)",
        "use fastpe.PositionalEncoding(d_model, convention=..), and print(fastpe.conventions)",
        "fastpe.PositionalEncoding(8, convention='concat')",
    ),
    (
        "fastpe.sinusoidal_embedding(3, 8)",
        "call fastpe.encode(length, d_model, convention=..), and print(fastpe.conventions)",
        "fastpe.encode(3, 8, convention='concat')",
    ),
    (
        "fastpe.get_1d_sincos_pos_embed(8, 3)",
        "call fastpe.encode(length, d_model, convention='concat')",
        "fastpe.encode(3, 8, convention='concat')",
    ),
    (
        "fastpe.sinusoids(3, 8)",
        "call fastpe.encode(length, d_model, convention='tensor2tensor')",
        "fastpe.encode(3, 8, convention='tensor2tensor')",
    ),
    (
        "fastpe.get_2d_sincos_pos_embed(8, 3)",
        "call fastpe.encode_grid(shape, d_model, convention=..)",
        "fastpe.encode_grid((3, 3), 8, convention='mae2d')",
    ),
    (
        "fastpe.get_timestep_embedding([1], 8)",
        "call fastpe.timestep_embedding(timesteps, embedding_dim)",
        "fastpe.timestep_embedding([1], 8)",
    ),
    (
        "fastpe.build_sincos2d_pos_embed([2, 3], 8)",
        "call fastpe.encode_grid(",
        "encode_grid((2, 3), 8, convention='timm2d')",
    ),
    (
        "fastpe.RotaryEmbeddingCat(8)",
        "the methods of fastpe.rotary_layouts[..]",
        "fastpe.rotary_layouts['timm'].parts(128)",
    ),
    (
        "fastpe.FluxPosEmbed(10000, [16, 56, 56])",
        "the methods of fastpe.rotary_layouts[..]",
        "fastpe.rotary_layouts['flux'].parts(128)",
    ),
    (
        "fastpe.ScaledSinusoidalEmbedding(8)",
        "use fastpe.PositionalEncoding(d_model, convention='x-transformers')",
        "fastpe.PositionalEncoding(8, convention='x-transformers')",
    ),
    (
        "fastpe.AbsolutePositionalEmbedding(8, 9)",
        "call fastpe.add_(x, table=.., alpha=d_model**-0.5) with its emb.weight",
        "np.testing.assert_array_equal(add_(x - 1, table=x[0] * 3, alpha=8**-0.5), x * 3 * np.float32(8**-0.5))",
    ),
    (
        "fastpe.LearnedPositionalEmbedding(9, 8, 1)",
        "call fastpe.add_(x, table=..) with its weight, and with mask=ids != padding_idx and offset=padding_idx + 1",
        "fastpe.add_(x, table=np.ones((9, 8), 'f4'), mask=ids != 0, offset=0 + 1)",
    ),
    (
        "fastpe.WhisperPositionalEmbedding(9, 8)",
        "call fastpe.add_(x, table=..) with its weight",
        "fastpe.add_(x, table=np.ones((9, 8), 'f4'))",
    ),
    *(
        (
            f"fastpe.{name}SinusoidalPositionalEmbedding(9, 8, 0)",
            (
                "use fastpe.PositionalEncoding(d_model, convention='fairseq'), with mask=ids != padding_idx and "
                "offset=padding_idx - 1 in its calls"
            ),
            "fastpe.PositionalEncoding(8, convention='fairseq').add_(x, mask=ids != 0, offset=0 - 1)",
        )
        for name in ("M2M100", "NllbMoe", "Speech2Text", "TrOCR")
    ),
    (
        "fastpe.get_timing_signal_1d(3, 8)",
        "call fastpe.encode(length, d_model, convention='tensor2tensor')",
        "np.testing.assert_allclose(fastpe.encode(3, 8, convention='tensor2tensor'), timing_signal(3, 8, 1.0, 1e4), 0, 1e-7)",
    ),
    (
        "fastpe.get_sinusoid_encoding_table(3, 8)",
        "call fastpe.encode(length, d_model, convention='vaswani')",
        "fastpe.encode(3, 8, convention='vaswani')",
    ),
    (
        "fastpe.SinusoidalPosEmb(8)(ids[0])",
        "call fastpe.timestep_embedding(timesteps, embedding_dim), with the scale= of its forward, if it has one",
        "(fastpe.timestep_embedding(ids[0], 8), fastpe.timestep_embedding(ids[0], 8, scale=1000))",
    ),
    ("fastpe.AlibiPositionalBias(8, 8)", "fastpe makes no biases of scores", "x.copy()"),
    ("fastpe.set_num_threads(1)", "give num_threads= to each call", "fastpe.add_(x, num_threads=1)"),
    (
        "PositionalEncoding.from_config(LLAMA)",
        "call PositionalEncoding(d_model, convention=..)",
        "PositionalEncoding(8, convention='concat')",
    ),
    ("conventions.vaswani", "write ['vaswani'] in place of .vaswani", "conventions['vaswani']"),
    # Keywords of other libraries
    ("encode(3, 8, max_wavelength=5e3)", "did you mean 'base'?", "encode(3, 8, base=5e3)"),
    (
        "encode(3, 8, min_timescale=2.0, max_timescale=8.0)",
        "did you mean 'freq_scale', the same number, with base=max_timescale / min_timescale and convention='tensor2tensor'?",
        "np.testing.assert_allclose(encode(3, 8, freq_scale=2.0, base=8.0 / 2.0, convention='tensor2tensor'), timing, 0, 1e-7)",
    ),
    ("PositionalEncoding(8, batch_first=True)", "give seq_axis= there", "PositionalEncoding(8).add_(x, seq_axis=1)"),
    ("RotaryEmbedding(8, interleaved=True, sequence_axis=1)", "give seq_axis= there", "rope.rotate_(x, seq_axis=1)"),
    ("add_(x, emb_scale=3.0)", "did you mean 'scale'?", "add_(x, scale=3.0)"),
    ("embed(ids, encode(9, 8), emb_scale=3.0)", "did you mean 'scale'?", "embed(ids, encode(9, 8), scale=3.0)"),
    ("PositionalEncoding(8, emb_scale=3.0)", "give scale= there", "PositionalEncoding(8).add_(x, scale=3.0)"),
    ("timestep_embedding([1], 8, timescale=3.0)", "did you mean 'scale'", "timestep_embedding([1], 8, scale=3.0)"),
    *(
        (
            wrong,
            "scale= of add_, add and embed is a factor of x, freq_scale= of the frequencies, alpha= of a Convention of the encoding",
            "(add_(x, scale=3.0), add_(x, freq_scale=3.0), add_(x, convention=replace(conventions['concat'], alpha=3.0)))",
        )
        for wrong in (
            "add_(x, pe_scale=3.0)",
            "enc.add_(x, res_scale=3.0)",
            "encode(3, 8, timescale=3.0)",
            "encode(3, 8, scale=3.0)",
            "enc.encode(3, scale=3.0)",
        )
    ),
    ("add_(x, scale_embeddings=True)", "such as scale=d_model ** 0.5", "add_(x, scale=8 ** 0.5)"),
    ("PositionalEncoding(8, scale_embeddings=True)", "give scale= there", "PositionalEncoding(8).add_(x, scale=3.0)"),
    (
        "RotaryEmbedding(4, interleaved=True, inv_freq=[1.0, 0.1])",
        "did you mean 'freqs'?",
        "RotaryEmbedding(4, interleaved=True, freqs=[1.0, 0.1])",
    ),
    *(
        (
            f"RotaryEmbedding(interleaved=True, {name}=0.5)",
            "did you mean 'rotary_dim', which is this share of the head's columns?",
            "RotaryEmbedding(interleaved=True, rotary_dim=4)",
        )
        for name in ("partial_rotary_factor", "rotary_emb_fraction")
    ),
    ("RotaryEmbedding(dims=8, interleaved=True)", "did you mean 'rotary_dim'?", "RotaryEmbedding(8, interleaved=True)"),
    (
        "timestep_embedding([1], num_channels=8)",
        "did you mean 'embedding_dim'?",
        "timestep_embedding([1], embedding_dim=8)",
    ),
    ("embed(ids, embedding=encode(9, 8))", "did you mean 'table'?", "embed(ids, table=encode(9, 8))"),
    (
        "encode(3, 8, cos_first=True)",
        "give convention=dataclasses.replace(preset, cosine_first=True) with a preset, such as fastpe.conventions['mlx']",
        "np.testing.assert_allclose(encode(3, 8, convention=replace(conventions['mlx'], cosine_first=True)), mlx, 0, 1e-7)",
    ),
    *(
        (
            f"encode_grid((2, 3), {name}=4, convention='detr')",
            "did you mean 'd_model', which is twice this number for two axes?",
            "encode_grid((2, 3), d_model=8, convention='detr')",
        )
        for name in ("num_pos_feats", "num_position_features")
    ),
    (
        "encode_grid((2, 3), 8, convention='detr', normalize=False)",
        ("give convention=dataclasses.replace(fastpe.grid_conventions['detr'], normalize=False) and freq_scale=1"),
        "encode_grid((2, 3), 8, convention=replace(fastpe.grid_conventions['detr'], normalize=False), freq_scale=1)",
    ),
    (
        "encode_grid((2, 3), 8, convention='mae2d', interpolation_scale=2.0)",
        "did you mean 'spacing', which is base_size / length / interpolation_scale for each axis?",
        "encode_grid((2, 3), 8, convention='mae2d', spacing=(16 / 2 / 2.0, 16 / 3 / 2.0))",
    ),
    (
        "RotaryEmbedding(8, interleaved=True, interpolate_factor=4.0)",
        'such as scaling={"rope_type": "linear", "factor": ..}',
        "RotaryEmbedding(8, interleaved=True, scaling=LINEAR)",
    ),
    ("RotaryEmbedding(8, interleaved=True, use_xpos=True)", "leave it out", "RotaryEmbedding(8, interleaved=True)"),
    (
        "RotaryEmbedding(config=LLAMA)",
        "RotaryEmbedding.from_config(config, ..): call that",
        "RotaryEmbedding.from_config(LLAMA)",
    ),
    (
        "encode([5], 8, flip_sin_to_cos=True)",
        "it belongs to fastpe.timestep_embedding(timesteps, embedding_dim, ..): call that",
        "timestep_embedding([5], 8, flip_sin_to_cos=True)",
    ),
    (
        "embed(ids, q[:, :8], dtype='f2')",
        "the dtype is that of the table: pass np.asarray(table, dtype)",
        "embed(ids, np.asarray(q[:, :8], 'f2'))",
    ),
    ("rotary_frequencies(8, dtype='f4')", "'dtype'; leave it out", "rotary_frequencies(8)"),
    ("identify(x[0], dtype='f4')", "'dtype'; leave it out", "identify(x[0])"),
    (
        "RotaryEmbedding(8, interleaved=True, dtype='f4')",
        "the dtype is an argument of each call: give it there",
        "RotaryEmbedding(8, interleaved=True).tables(3, dtype='f4')",
    ),
    (
        "encode(3, 8, convention='fairseq', padding_idx=2)",
        "such as mask=ids != padding_idx, and offset=padding_idx - 1 with 'fairseq'?",
        "encode(3, 8, convention='fairseq', mask=ids[0] != 2, offset=2 - 1)",
    ),
    (
        "PositionalEncoding(8, padding_idx=0)",
        "padding belongs to each call: give mask= there",
        "PositionalEncoding(8).add_(x, mask=ids != 0)",
    ),
    ("encode(3, 8, alpha=2.0)", "it is a factor of add_, add and embed: give it there", "add_(x, alpha=2.0)"),
    ("rope.rotate_(x, cache_position=range(3))", "did you mean 'positions'?", "rope.rotate_(x, positions=range(3))"),
    (
        "rope.rotate_(np.ones((2, 3, 32), 'f4'), num_heads=4)",
        "heads are an axis: pass x.reshape(B, L, num_heads, -1) with seq_axis=-3",
        "rope.rotate_(np.ones((2, 3, 32), 'f4').reshape(2, 3, 4, -1), seq_axis=-3)",
    ),
    (
        "rope.rotate_(np.ones((2, 3, 4, 8), 'f4'), batch_first=True)",
        "which is 0 for [L, B, ..], -2 for [.., L, D], and -3 for [.., L, heads, D]?",
        "rope.rotate_(np.ones((2, 3, 4, 8), 'f4'), seq_axis=-3)",
    ),
    (
        "encode(3, 8, interleaved=True)",
        "did you mean 'convention', such as 'vaswani' for sines and cosines in turn, or 'concat' for halves?",
        "(encode(3, 8, convention='vaswani'), encode(3, 8, convention='concat'))",
    ),
    ("embed(ids, q[:, :8], scale=True)", "scale is True, expected a number", "embed(ids, q[:, :8], scale=8**0.5)"),
    ("add_(x, alpha=np.True_)", "expected a number", "add_(x, alpha=1.0)"),
    # Arrays in the wrong place
    ("add_(x, scale=np.ones((3, 8)))", "scale is a numpy.ndarray, expected a number", "add_(x, scale=2.0)"),
    ("PositionalEncoding(x)", "d_model is a ndarray of shape [2, 3, 8], expected an int", "PositionalEncoding(8)"),
    (
        "rope.rotate_(x, np.arange(3))",
        "others[0] has dtype int64, expected float32 as x has; give positions=, offset=, by= and the like by their names",
        "rope.rotate_(x, positions=np.arange(3))",
    ),
    ("rope.rotate_(x, [0, 1, 2])", "others[0] is a list of integers, expected", "rope.rotate_(x, positions=[0, 1, 2])"),
    (
        "rope.rotate_(x, [[0, 1, 2]])",
        "others[0] is a list of integers, expected",
        "rope.rotate_(x, positions=[[0, 1, 2]])",
    ),
    ("rope.rotate_(x, np.int64(3))", "and the like by their names", "rope.rotate_(x, offset=np.int64(3))"),
    (
        "rope.rotate_(x, np.ones((2, 3), bool))",
        "others[0] has dtype bool, expected float32 as x has; give positions=",
        "rope.rotate_(x, mask=np.ones((2, 3), bool))",
    ),
    *(
        (
            f"rope.rotate_(x, x.copy(), *rope.tables(3, form={form!r}))",
            "others[1] and others[2] are cosines and sines, expected queries and keys alone; leave them out of the call",
            "(rope.rotate_(x, x.copy()), rotate_(x, x.copy(), **halves, interleaved=False))",
        )
        for form in ("tile", "repeat", "halves")
    ),
    (
        "rope.rotate_(x, *rope.tables(3))",
        "others[0] and others[1] are cosines and sines",
        "rope.rotate_(x)",
    ),
    # Complex numbers
    (
        "rotate_(x, cos=freqs_cis, interleaved=True)",
        "which are table.real and table.imag of a complex table",
        "rotate_(x, cos=freqs_cis.real.copy(), sin=freqs_cis.imag.copy(), interleaved=True)",
    ),
    *(
        (
            f"rotate_(x, {wrong}, interleaved=True)",
            f"; pass cos and sin = np.stack([{name}.real, {name}.imag])",
            "rotate_(x, **dict(zip(('cos', 'sin'), np.stack([freqs_cis.real, freqs_cis.imag]))), interleaved=True)",
        )
        for wrong, name in (("cos=freqs_cis, sin=freqs_cis", "cos"), ("freqs_cis=freqs_cis", "freqs_cis"))
    ),
    ("rope.rotate_(x, freqs_cis=freqs_cis)", "the embedding makes its own: leave it out", "rope.rotate_(x)"),
    (
        "rope.rotate_(x, cos=halves['cos'], sin=halves['sin'])",
        "or call fastpe.rotate_(q, k, cos=.., sin=.., interleaved=..)",
        "rotate_(x, **halves, interleaved=False)",
    ),
    (
        "rope.rotate_(x, freqs_cis)",
        "; leave complex cosines and sines out, or pass others[0].view(np.float32) of queries or keys",
        "(rope.rotate_(x), rope.rotate_(x, complex_q.view(np.float32)))",
    ),
    (
        "rope.rotate_(complex_q.astype('c16'))",
        "; pass x.view(np.float64), which has real and imaginary parts as neighbours, or np.real(x)",
        "rope.rotate_(complex_q.astype('c16').view(np.float64))",
    ),
    ("add(complex_q)", "or np.real(x)", "(add(np.real(complex_q)), add(complex_q.view(np.float32)))"),
    (
        "add_(x, table=freqs_cis)",
        "expected float32 as x has; pass table.view(np.float32)",
        "add_(x, table=freqs_cis.view(np.float32))",
    ),
    (
        "encode(freqs_cis[0], 8)",
        "; pass np.asarray(np.real(positions), np.float64)",
        "encode(np.asarray(np.real(freqs_cis[0]), np.float64), 8)",
    ),
    # Tables in other forms
    (
        "rotate_(wide, cos=tiled[0], sin=tiled[1], interleaved=True)",
        "cos and sin have each column twice, expected [rows, pairs]; pass cos[:, :4] and sin[:, :4]",
        "rotate_(wide, cos=tiled[0][:, :4], sin=tiled[1][:, :4], interleaved=True)",
    ),
    (
        "rotate_(wide, cos=repeated[0], sin=repeated[1], interleaved=True)",
        "pass np.ascontiguousarray(cos[:, ::2]) and np.ascontiguousarray(sin[:, ::2])",
        "rotate_(wide, **{name: np.ascontiguousarray(table[:, ::2]) for name, table in zip(('cos', 'sin'), repeated)}, interleaved=True)",
    ),
    (
        "rotate_(x, cos=tiled[0][None], sin=tiled[1][None], interleaved=True)",
        "cos has shape [1, 4, 8], expected [rows, pairs], one pair or more; pass cos[0], or cos[0, :, :4] of a tiled one, or np.ascontiguousarray(cos[0, :, ::2]) of a repeated one, and the same of sin",
        "rotate_(x, cos=tiled[0][None][0, :, :4], sin=tiled[1][None][0, :, :4], interleaved=True)",
    ),
    (
        "rope.rotate_(x, positions=np.zeros((2, 3, 3)))",
        "or a RotaryEmbedding with axes, such as from_config(.., axes=True)",
        "RotaryEmbedding(8, interleaved=False, axes=[0, 1, 1, 2]).rotate_(x, positions=np.zeros((2, 3, 3)))",
    ),
    # Too many, and missing
    (
        "add_(x, 'concat')",
        "takes 1 positional argument(s), found 2; pass all but x by keyword: convention, base, freq_scale, freqs, offset,",
        "add_(x, convention='concat')",
    ),
    (
        "PositionalEncoding(8, 512)",
        "pass all but d_model by keyword: max_len, convention, base, freq_scale, freqs",
        "PositionalEncoding(8, max_len=512)",
    ),
    (
        "PositionalEncoding(5000, 64)",
        "found 2; pass all but d_model by keyword: max_len,",
        "PositionalEncoding(64, max_len=5000)",
    ),
    (
        "encode_grid((2, 3), 8, 'mae2d')",
        "print(fastpe.grid_conventions) lists its values; what has no name was not taken: write convention=..",
        "encode_grid((2, 3), 8, convention='mae2d')",
    ),
    (
        "rope.tables(3, 2)",
        "pass all but positions by keyword: form, dtype, offset, out, num_threads",
        "rope.tables(3, offset=2)",
    ),
    ("identify(x[0], x[0] / 2, 1)", "found 3; leave the others out", "identify(x[0], x[0] / 2)"),
    ("rope.warm_up('float32')", "found 1; pass all by keyword: dtype,", "rope.warm_up(dtype='float32')"),
    ("encode(3)", "encode() is missing its argument 'd_model'", "encode(3, d_model=8)"),
    (
        "encode_grid((2, 3), 8)",
        "print(fastpe.grid_conventions) lists its values",
        "encode_grid((2, 3), 8, convention=str(next(iter(grid_conventions))))",
    ),
    ("rotate_(x, offset=3)", "or make a RotaryEmbedding(..) and call its rotate_", "rope.rotate_(x, offset=3)"),
    # Values
    ("add_(x, alpha=None)", "alpha is None, expected a number", "add_(x, alpha=1.0)"),
    ("add_(x, seq_axis=None)", "seq_axis is None, expected an int", "add_(x, seq_axis=-2)"),
    ("rope.rotate_(x, inverse=None)", "inverse is None, expected True or False", "rope.rotate_(x, inverse=False)"),
    (
        "add_(x, mask=np.ones((2, 1, 3, 3), bool))",
        "pass the last query's row, mask[:, 0, -1]",
        "add_(x, mask=np.ones((2, 1, 3, 3), bool)[:, 0, -1])",
    ),
    (
        "add_(x, mask=np.ones((2, 3, 3), bool))",
        "pass the last query's row, mask[:, -1]",
        "add_(x, mask=np.ones((2, 3, 3), bool)[:, -1])",
    ),
    ("add_(x, pad_mask=ids != 0)", "did you mean 'mask', which is True, or 1, where", "add_(x, mask=ids != 0)"),
    ("add_(x, past_len=3)", "did you mean 'offset'?", "add_(x, offset=3)"),
    ("add_(x, copy=True)", "functions whose name ends in _ work in place, and others do not: leave it out", "add(x)"),
    (
        "encode_grid((2, 3), 8, convention='detr', pixel_mask=ids != 0)",
        "did you mean 'mask', which is True, or 1, where",
        "encode_grid((2, 3), 8, convention='detr', mask=ids != 0)",
    ),
    (
        "encode(3, 8, cosine_first=True)",
        "give convention=dataclasses.replace(preset, cosine_first=True)",
        "encode(3, 8, convention=replace(fastpe.conventions['mlx'], cosine_first=True))",
    ),
    (
        "RotaryEmbedding(8, interleaved=True, max_position=9)",
        "did you mean 'max_len'?",
        "RotaryEmbedding(8, interleaved=True, max_len=9)",
    ),
    (
        "RotaryEmbedding.from_config(LLAMA, form='tile')",
        "it belongs to tables(..): give it there",
        "RotaryEmbedding.from_config(LLAMA).tables(3, form='tile')",
    ),
    (
        "rope.rotate_(x, positions=np.zeros((3, 3), int))",
        "a RotaryEmbedding with axes, such as from_config(.., axes=True)",
        "RotaryEmbedding(8, interleaved=False, axes=[0, 1, 2, 2]).rotate_(x, positions=np.zeros((3, 3), int))",
    ),
    ("fastpe.rope(8)", "use fastpe.RotaryEmbedding", "fastpe.RotaryEmbedding(8, interleaved=False)"),
    ("fastpe.sinusoidal(3, 8)", "call fastpe.encode(length, d_model, convention=..)", "fastpe.encode(3, 8)"),
    ("fastpe.add_positional_encoding(x)", "call fastpe.add(x, convention=..), or add_", "fastpe.add(x)"),
    (
        "fastpe.encode_2d(3, 3, 8)",
        "call fastpe.encode_grid(shape, d_model, convention=..)",
        "fastpe.encode_grid((3, 3), 8, convention='mae2d')",
    ),
    ("rope.cos_sin(3)", "call tables(length), which makes the cosines and sines", "rope.tables(3)"),
    ("rope.encode(3)", "call tables(length), which makes the cosines and sines", "rope.tables(3)"),
    ("rope.add_(x)", "call rotate_(q, k), which writes into them", "rope.rotate_(x)"),
    ("enc.tables(3)", "call encode(length), which makes the table", "enc.encode(3)"),
]


@pytest.mark.parametrize(("wrong", "remedy", "remedied"), REMEDIED, ids=[wrong for wrong, *_ in REMEDIED])
def test_the_remedy_works(wrong: str, remedy: str, remedied: str) -> None:
    check_remedy(evaluating(names), wrong, remedy, remedied)


OTHER_NAMES = [
    ("enc", "forward"),
    ("enc", "cuda"),
    ("rope", "inv_freq"),
    ("RotaryEmbedding", "from_pretrained"),
    ("flux", "axes_dim"),
    ("fastpe", "rotate"),
]


@pytest.mark.parametrize(("owner", "name"), OTHER_NAMES)
def test_other_names_are_not_there(owner: str, name: str) -> None:
    found = names()[owner]
    assert not hasattr(found, name)
    assert name not in dir(found)
    assert name not in dir(type(found))
    assert not hasattr(found, "_repr_html_")


@pytest.mark.parametrize("owner", ["enc", "rope", "flux"])
def test_objects_with_other_names_are_copied(owner: str) -> None:
    found = names()[owner]
    assert pickle.loads(pickle.dumps(found)) == copy.copy(found) == copy.deepcopy(found) == found
    page = pydoc.render_doc(type(found))
    assert "__call__" not in page
    assert "forward" not in page


def test_a_subclass_may_have_other_names() -> None:
    class Module(fastpe.PositionalEncoding):
        def forward(self, x: Any) -> Any:
            return self.add(x)

        __call__ = forward

    module = Module(8)
    module_dict = vars(module)
    module_dict["note"] = 3
    assert module(np.zeros((3, 8))).shape == (3, 8)
    assert {"forward", "note", "add_"} <= {*dir(module)}
    assert "forward" in dir(Module)


PYTHON = [name for name in fastpe.__all__ if inspect.isfunction(getattr(fastpe, name)) and name != "show_config"]


@pytest.mark.parametrize("name", [*PYTHON, "PositionalEncoding", "RotaryEmbedding"])
def test_every_function_in_python_explains_wrong_calls(name: str) -> None:
    known = next(iter(inspect.signature(getattr(fastpe, name)).parameters))
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected .* 'zzz'; expected one of {known}, "):
        getattr(fastpe, name)(zzz=1)


def test_an_error_from_within_stays_what_it_is() -> None:
    with pytest.raises(TypeError, match=r"^positions is None, expected an int"):
        fastpe.encode(None, 8)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^add\(\) got multiple values for argument 'x'$"):
        fastpe.add(np.ones((3, 8)), x=np.ones((3, 8)))  # type: ignore[misc]


def test_functions_that_explain_wrong_calls_are_what_they_were() -> None:
    assert str(inspect.signature(fastpe.identify)).startswith("(table: ")
    assert list(inspect.signature(fastpe.RotaryEmbedding).parameters)[:2] == ["rotary_dim", "interleaved"]
    assert inspect.isroutine(fastpe.add_)
    assert pydoc.render_doc(fastpe.add_).startswith("Python Library Documentation: function in module fastpe\n")
    assert list(inspect.signature(fastpe.Convention).parameters)[:2] == ["name", "layout"]
    assert repr(fastpe.add_).startswith("<function add_ at ")
    for function in (fastpe.add_, fastpe.RotaryLayout.rotate_):
        assert copy.deepcopy(function) is pickle.loads(pickle.dumps(function)) is function


def test_a_bound_constructor_shows_its_own_signature() -> None:
    # As inspect of Python 3.13 looks at it.
    rope: Any = fastpe.RotaryEmbedding(8, interleaved=True)
    seen = inspect.unwrap(rope.__init__, stop=lambda each: hasattr(each, "__signature__"))
    assert next(iter(inspect.signature(seen).parameters)) == "rotary_dim"


def test_an_error_in_the_explanation_is_passed_on() -> None:
    def interrupted(*arguments: object) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _core.Explained(len, interrupted)()


def test_errors_of_other_types_are_not_explained() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        _core.Explained(int, lambda *call: "explained")("no digits")


def test_an_explanation_is_given_the_whole_call() -> None:
    calls: list[object] = []
    with pytest.raises(TypeError, match="takes no keyword arguments"):
        _core.Explained(len, lambda *call: calls.append(call))(1, 2, a=3, b=4)
    assert calls == [(len, (1, 2), {"a": 3, "b": 4})]


@pytest.mark.parametrize("cycle", ["none", "through the function", "through its attributes"])
def test_a_function_and_its_explanation_are_let_go_of(cycle: str) -> None:
    def function() -> None:
        pass

    explained, alive = _core.Explained(function, print), weakref.ref(function)
    if cycle == "through the function":
        vars(function)["itself"] = explained
    elif cycle == "through its attributes":
        vars(explained)["itself"] = explained
    del explained, function
    gc.collect()
    assert alive() is None


def test_a_function_that_is_let_go_of_lets_go_of_its_type() -> None:
    count = 100
    references = sys.getrefcount(_core.Explained)
    for _ in range(count):
        _core.Explained(len, print)
    assert sys.getrefcount(_core.Explained) < references + count
