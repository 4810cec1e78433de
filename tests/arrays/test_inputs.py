# SPDX-License-Identifier: BSD-3-Clause
"""What a call only reads is taken as other libraries hold it; what it writes to is never a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.dlpack import Producer
from ..oracles.reference import Array, assert_same_bits
from ..oracles.refusals import naming


class ByArray:
    """As a tensor of jax: it has a shape and `__array__`."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.shape: Any = array.shape

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return self.array


class ByMethods(ByArray):
    """As a value of ONNX Runtime, whose shape is a method."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.shape: Any = lambda: list(array.shape)


class ByDLPack:
    """An array of which NumPy knows no more than DLPack."""

    def __init__(self, array: Array) -> None:
        self.array = array
        try:
            array.__dlpack__()
        except (BufferError, TypeError) as error:
            pytest.skip(f"this version of NumPy: {error}")

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def on_device(array: Array) -> Any:
    return Producer(array, device=(2, 0))


def as_list(array: Array) -> Any:
    return array.tolist()


rng = np.random.default_rng(7)
x = rng.standard_normal((2, 3, 8))
table = rng.standard_normal((9, 8))
angles = rng.standard_normal((9, 4))
ids = rng.integers(0, 9, (2, 3))
positions = np.array([[0, 5, 2], [1, 1, 7]])
times = np.array([0.5, 999.0])
points = rng.standard_normal((4, 2))
rope: Any = fastpe.RotaryEmbedding(8, interleaved=False)
encoding: Any = fastpe.PositionalEncoding(8)
wan: Any = fastpe.RotaryEmbedding.from_layout("wan", 16)
volume = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8]])
qwen: Any = {"model_type": "qwen2_vl", "image_token_id": 9, "vision_config": {"spatial_merge_size": 2}}
tokens, grids = np.array([[1, 2, 9, 9, 9, 9, 3]]), np.array([[1, 4, 4]])
scores: Any = {
    "rope_type": "default",
    "rope_theta": 1e4,
    "llama_4_scaling_beta": 0.1,
    "original_max_position_embeddings": 4,
}
scores = {"model_type": "ministral3", "rope_parameters": scores}

Taken = Callable[[Array], Any]
READS: dict[str, Callable[[Taken], Any]] = {
    "add x": lambda t: fastpe.add(t(x)),
    "add table": lambda t: fastpe.add(x, table=t(table)),
    "add_ positions": lambda t: fastpe.add_(x.copy(), positions=t(positions)),
    "add_ offset": lambda t: fastpe.add_(x.copy(), offset=t(ids[:, 0])),
    "add_ lengths": lambda t: fastpe.add_(x.copy(), lengths=t(np.array([2, 3]))),
    "add_ valid": lambda t: fastpe.add_(x.copy(), valid=t(positions > 1)),
    "add_ cu_seqlens": lambda t: fastpe.add_(x[0].copy(), cu_seqlens=t(np.array([0, 1, 3]))),
    "encode": lambda t: fastpe.encode(t(positions), 8),
    "encode frequencies": lambda t: fastpe.encode(3, 8, frequencies=t(np.arange(4.0))),
    "embed ids": lambda t: fastpe.embed(t(ids), table),
    "embed table": lambda t: fastpe.embed(ids, t(table)),
    "embed position_table": lambda t: fastpe.embed(ids, table, position_table=t(table)),
    "shift": lambda t: encoding.shift(t(x), by=3),
    "timestep": lambda t: fastpe.timestep_embedding(t(times), 8, flip_sin_to_cos=True, downscale_freq_shift=0),
    "coordinates": lambda t: fastpe.encode_coordinates(t(points), 8, convention="hf2d"),
    "grid valid": lambda t: fastpe.encode_grid((2, 3), 8, convention="detr", valid=t(positions > 1)),
    "grid spacing": lambda t: fastpe.encode_grid((2, 3), 8, convention="hf2d", spacing=t(times)),
    "rotate": lambda t: rope.rotate(t(x), seq_axis=-2),
    "rotate_ positions": lambda t: rope.rotate_(x.copy(), positions=t(positions), seq_axis=-2),
    "shift_ by": lambda t: rope.shift_(x.copy(), by=t(positions), seq_axis=-2),
    "rotate_ cos": lambda t: fastpe.rotate_by_tables_(
        x.copy(), cos=t(angles), sin=angles.copy(), interleaved=True, seq_axis=-2
    ),
    "rotate_ sin": lambda t: fastpe.rotate_by_tables_(
        x.copy(), cos=angles.copy(), sin=t(angles), interleaved=True, seq_axis=-2
    ),
    "tables": lambda t: rope.tables(t(positions))[0],
    "rotary frequencies": lambda t: (
        fastpe.RotaryEmbedding(8, interleaved=True, frequencies=t(np.arange(4.0))).frequencies
    ),
    "rotary axes": lambda t: (
        fastpe.RotaryEmbedding(8, interleaved=True, frequency_axes=t(np.array([0, 0, 1, 1]))).wavelengths
    ),
    "rotate coordinates": lambda t: wan.rotate(np.tile(x, 2), positions=t(volume), seq_axis=-2),
    "tables coordinates": lambda t: wan.tables(t(volume))[0],
    "a learned grid": lambda t: fastpe.resize_table(t(table[:, :4]), (2, 3), mode="bilinear"),
    "identify": lambda t: np.array(fastpe.identify(t(fastpe.encode(32, 8))).matches),
    "buckets": lambda t: fastpe.relative_buckets(t(ids - 4), bidirectional=True, num_buckets=4),
    "deberta": lambda t: fastpe.deberta_buckets(t(ids - 4), num_buckets=4, max_position=8),
    "a mask": lambda t: fastpe.attention_mask(3, causal=True, valid=t(positions > 1), groups=t(np.arange(3) // 2)),
    "packed": lambda t: fastpe.attention_mask(3, causal=True, cu_seqlens=t(np.array([0, 2, 3]))),
    "text": lambda t: fastpe.text_inputs(qwen, t(tokens), attention_mask=t(tokens > 1), image_grid_thw=t(grids))["position_ids"],
    "past": lambda t: fastpe.text_inputs(qwen, t(tokens[:, :1]), past=t(np.array([7])), rope_deltas=t(np.array([[1]])))["position_ids"],
    "grids": lambda t: fastpe.vision_inputs(qwen, grid_thw=t(grids))["position_ids"],
    "query_scale": lambda t: fastpe.query_scale(scores, t(np.arange(20))),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_what_is_only_read_may_be_anything_that_numpy_reads(name: str) -> None:
    expected = READS[name](lambda array: array)
    for form in (ByArray, ByMethods, as_list):
        assert_same_bits(READS[name](form), expected)
    assert_same_bits(READS[name](ByDLPack), expected)
    with pytest.raises(TypeError):  # memory of another device
        READS[name](on_device)


@pytest.mark.parametrize("step", [1, 2, -3])
@pytest.mark.parametrize(
    "dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", ">i2", ">u4", ">f8", "q"]
)
def test_numbers_of_every_dtype_and_stride_mean_the_same(dtype: str, step: int) -> None:
    limits: Any = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else np.finfo(dtype)
    most = int(min(limits.max, 2**53 if np.dtype(dtype) != np.float32 else 2**24))

    def taken(values: Any) -> Array:
        apart = np.full((*np.shape(values)[:-1], np.shape(values)[-1] * abs(step)), 77, dtype)[..., ::step]
        apart[...] = values
        return apart

    positions = np.array([0, 1, most, most - 1, most // 2 + 1, max(int(limits.min), -most), 3])
    expected = np.concatenate([fastpe.encode([position], 6, dtype=np.float64) for position in positions.tolist()])
    assert_same_bits(fastpe.encode(taken(positions), 6, dtype=np.float64), expected)
    assert_same_bits(fastpe.encode(taken([positions] * 2), 6, dtype=np.float64), np.stack([expected] * 2))
    sequences = np.stack([expected, expected[::-1]])
    assert_same_bits(fastpe.add(np.zeros((7, 1, 6)), positions=taken(positions)[:, None]), expected[:, None])
    assert_same_bits(fastpe.add(np.zeros((2, 7, 6)), positions=taken([positions, positions[::-1]])), sequences)
    if np.dtype(dtype).kind == "f":
        return
    ids, rows = np.minimum(positions, 69_999).clip(0), np.arange(70_000.0)[:, None]
    assert_same_bits(fastpe.embed(taken(ids), rows, alpha=0.0), rows[ids])
    x, lengths = np.zeros((3, 130, 2)), np.minimum([129, 0, 3], min(int(limits.max), 130))
    for name, count in (("lengths", 130), ("offset", 130), ("offset", 1)):
        given: Any = {name: taken(lengths)}
        assert_same_bits(fastpe.add(x[:, :count], **given), fastpe.add(x[:, :count], **{name: lengths.tolist()}))
    starts = np.array([0, 5, 5, 127])
    assert_same_bits(
        fastpe.add(x[0, :127], cu_seqlens=taken(starts)), fastpe.add(x[0, :127], cu_seqlens=starts.tolist())
    )


def test_the_stride_of_an_axis_of_one_element_does_not_count() -> None:
    """NumPy calls such a column contiguous, whatever lies between its element and the next one."""
    steps = np.array([[0, 1, 1], [77, 77, 77]])
    column = steps[:1].T
    assert column.flags.c_contiguous
    assert column.strides[1] != column.itemsize
    plain = np.array([[0], [1], [1]])
    assert_same_bits(fastpe.encode(1, 8, valid=column), fastpe.encode(1, 8, valid=plain))
    padded = fastpe.PositionalEncoding(8, padding_idx=1)
    assert_same_bits(padded.embed(column, table), padded.embed(plain, table))


def test_lengths_say_what_is_valid_in_place_of_padding_idx() -> None:
    padded, lengths = fastpe.PositionalEncoding(8, padding_idx=1), [3, 1]
    some = np.array([[1, 0, 1], [2, 1, 1]])
    for ids in (some, some[:, None]):
        assert_same_bits(padded.embed(ids, table, lengths=lengths), encoding.embed(ids, table, lengths=lengths))


def test_an_input_behind_dlpack_is_not_copied() -> None:
    memory = np.zeros((4, 8))
    tensor: Any = ByDLPack(memory[:3])
    with pytest.raises(ValueError, match=naming("x out")):
        fastpe.add(tensor, out=memory[1:])


TARGETS: dict[str, Callable[[Any], Any]] = {
    "add_": fastpe.add_,
    "add out": lambda target: fastpe.add(x, out=target),
    "encode out": lambda target: fastpe.encode(positions, 8, out=target),
    "embed out": lambda target: fastpe.embed(ids, table, out=target),
    "timestep out": lambda t: fastpe.timestep_embedding(positions, 8, flip_sin_to_cos=True, downscale_freq_shift=0, out=t),
    "coordinates out": lambda t: fastpe.encode_coordinates(np.zeros((2, 3, 2)), 8, convention="hf2d", out=t),
    "grid out": lambda target: fastpe.encode_grid((2, 3), 8, convention="hf2d", out=target),
    "rotate_": lambda t: rope.rotate_(t, seq_axis=-2),
    "rotate_ others": lambda target: rope.rotate_(x.copy(), target, seq_axis=-2),
    "shift_": lambda target: rope.shift_(target, by=1, seq_axis=-2),
    "rotate_ by tables": lambda t: fastpe.rotate_by_tables_(t, cos=angles, sin=angles[::-1], interleaved=True, seq_axis=-2),
    "resize out": lambda t: fastpe.resize_table(x[0], (6,), mode="linear", out=t),
    "rotate out": lambda target: rope.rotate(x, out=target, seq_axis=-2),
    "tables out": lambda target: rope.tables(positions, form="cos_sin", out=target),
}  # fmt: skip


def argument_of(target: str) -> str:
    """The argument that is written to."""
    return {"out": "out", "others": "second"}.get(target.split()[-1], "x")


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_written_to_is_never_converted(name: str) -> None:
    memory = np.ones((2, 3, 8))
    for form in (ByArray, ByMethods, as_list, on_device):
        with pytest.raises(TypeError, match=naming(argument_of(name))):
            TARGETS[name](form(memory))
        assert (memory == 1).all()


@pytest.mark.parametrize("number", [500.5, 500, np.float32(500.5), np.array(500.5), ByArray(np.array(500.5))])
def test_a_timestep_may_be_a_number(number: Any) -> None:
    expected = fastpe.timestep_embedding([float(np.asarray(number))], 8, flip_sin_to_cos=True, downscale_freq_shift=1)[
        0
    ]
    assert_same_bits(fastpe.timestep_embedding(number, 8, flip_sin_to_cos=True, downscale_freq_shift=1), expected)
    out = np.zeros(8, np.float32)
    assert fastpe.timestep_embedding(number, 8, flip_sin_to_cos=True, downscale_freq_shift=1, out=out) is out
    assert_same_bits(out, expected)
