# SPDX-License-Identifier: BSD-3-Clause
"""`vision_inputs` and `audio_inputs` against loops over patches; tests/peers/test_encoder_inputs.py has transformers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.refusals import Refused, check_refused, each, rows

QWEN = {"model_type": "qwen2_5_vl", "vision_config": {"spatial_merge_size": 2, "window_size": 84, "patch_size": 14}}


def patches_of(grid: tuple[int, int, int], size: int) -> list[tuple[int, int, int]]:
    """(time, row, column) of each patch, block by block."""
    time, height, width = grid
    return [
        (frame, row + i, column + j)
        for frame in range(time)
        for row in range(0, height, size)
        for column in range(0, width, size)
        for i in range(size)
        for j in range(size)
    ]


@pytest.mark.parametrize("shape", [*itertools.product([2, 4, 6, 8, 10, 12], repeat=2)])
def test_windows_of_grids_that_they_do_not_divide(shape: tuple[int, int]) -> None:
    """Windows of 3 x 3 blocks of 2 x 2 patches."""
    grids = [(1, *shape), (2, 6, 4), (1, 2, 2)]
    order, lengths, first = [], [], 0
    for time, height, width in grids:
        blocks = [*itertools.product(range(time), range(height // 2), range(width // 2))]
        windows: dict[Any, list[int]] = {}
        for number, (frame, row, column) in enumerate(blocks):
            windows.setdefault((frame, row // 3, column // 3), []).append(first + number)
        for _, window in sorted(windows.items()):
            order += window
            lengths.append(4 * len(window))
        first += len(blocks)
    inputs = fastpe.vision_inputs(QWEN, grid_thw=grids)
    assert inputs["window_index"].tolist() == order
    assert inputs["cu_window_seqlens"].tolist() == [0, *itertools.accumulate(lengths)]
    assert inputs["max_window_seqlen"] == max(lengths)
    frames = [height * width for time, height, width in grids for _ in range(time)]
    assert inputs["cu_seqlens"].tolist() == [0, *itertools.accumulate(frames)]
    assert inputs["max_seqlen"] == max(frames)
    positions = [patch[1:] for grid in grids for patch in patches_of(grid, 2)]
    assert inputs["position_ids"].tolist() == [list(patch) for patch in positions]
    assert {name: str(np.asarray(each).dtype) for name, each in inputs.items()} == {
        **dict.fromkeys(["position_ids", "window_index", "max_seqlen", "max_window_seqlen"], "int64"),
        **dict.fromkeys(["cu_seqlens", "cu_window_seqlens"], "int32"),
    }


@pytest.mark.parametrize(
    ("config", "size", "side", "transposed"),
    [
        ({"model_type": "qwen3_vl", "vision_config": {"num_position_embeddings": 25}}, 2, 5, False),
        ({"model_type": "muse_spark_vision", "pos_emb_height": 5}, 1, 5, True),
        ({"model_type": "paddleocr_vl", "vision_config": {"image_size": 70, "patch_size": 14}}, 1, 5, False),
        ({"model_type": "kimi_k25", "vision_config": {"pos_emb_height": 5}}, 1, 5, False),
    ],
)
def test_interpolation_is_that_of_a_resized_table(config: Any, size: int, side: int, transposed: bool) -> None:
    """Each patch finds the row of `resize_table` that it has in the raster of its frame."""
    others = {"muse_spark_vision": "muse", "kimi_k25": "vit"}
    convention = others.get(config["model_type"], config["model_type"])
    table, grids = np.random.default_rng(0).standard_normal((side * side, 3)), [(2, 4, 6), (1, 8, 2)]
    inputs = fastpe.vision_inputs(config, grid_thw=grids)
    weights = inputs["interp_weights"].astype(np.float64)
    found = (table[inputs["interp_indices"]] * weights[:, :, None]).sum(axis=1)
    expected = []
    for grid in grids:
        shape = grid[:0:-1] if transposed else grid[1:]
        resized = fastpe.resize_table(table, shape, convention=fastpe.resize_conventions[convention])
        expected += [resized[row * grid[2] + column] for _, row, column in patches_of(grid, size)]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_parts_and_models_of_a_config() -> None:
    grids = [[1, 8, 8]]
    sizes = {"spatial_merge_size": 4}
    configs: list[Any] = [
        {"model_type": "qwen2_vl", "vision_config": sizes},
        {"model_type": "colqwen2", "vision_config": {"model_type": "qwen2_vl", **sizes}},
        {"model_type": "qwen2_vl_vision", **sizes},
        {"model_type": "qwen2_vl", **sizes},
    ]
    by_default = fastpe.vision_inputs({"model_type": "qwen2_vl_vision"}, grid_thw=grids)  # which is a part's name
    np.testing.assert_array_equal(by_default["position_ids"], [patch[1:] for patch in patches_of((1, 8, 8), 2)])
    chunks = fastpe.audio_inputs({"model_type": "qwen2_5_omni_audio_encoder"}, feature_lens=[250])["chunk_lengths"]
    assert chunks.tolist() == [200, 50]
    expected = [patch[1:] for patch in patches_of((1, 8, 8), 4)]
    for config in configs:
        found = fastpe.vision_inputs(config, grid_thw=grids)["position_ids"]
        np.testing.assert_array_equal(found, expected)
    inner = {"model_type": "qwen2_5_omni_thinker", "audio_config": {"n_window": 50}, "vision_config": sizes}
    whole = {"model_type": "qwen2_5_omni", "thinker_config": inner}
    np.testing.assert_array_equal(fastpe.vision_inputs(whole, grid_thw=grids)["position_ids"], expected)
    assert fastpe.audio_inputs(whole, feature_lens=[250])["chunk_lengths"].tolist() == [100, 100, 50]
    packed: Any = {"model_type": "minicpmv4_6", "vision_config": {}}
    assert fastpe.vision_inputs(packed, target_sizes=[[4, 8]] * 2)["merged_shape"] == (2, 4)
    # Nothing is an empty batch.
    empty = fastpe.vision_inputs(QWEN, grid_thw=np.zeros((0, 3), int))
    assert (empty["position_ids"].shape, empty["cu_seqlens"].tolist(), empty["max_seqlen"]) == ((0, 2), [0], 0)


@pytest.mark.parametrize("lengths", [[1], [200], [201, 7], [399, 400, 401, 2]])
def test_chunks_of_sound(lengths: list[int]) -> None:
    config = {"model_type": "qwen2_5_omni", "audio_config": {"n_window": 100}}
    inputs = fastpe.audio_inputs(config, feature_lens=lengths)
    chunks = [min(200, length - first) for length in lengths for first in range(0, length, 200)]
    left = [len(range(0, chunk, 2)) for chunk in chunks]
    assert inputs["chunk_lengths"].tolist() == chunks
    assert inputs["cu_seqlens"].tolist() == [0, *itertools.accumulate(left)]
    width = max(left)
    assert inputs["valid_indices"].tolist() == [row * width + i for row, count in enumerate(left) for i in range(count)]
    counts = [len(range(0, length, 2)) for length in lengths]
    firsts = [0, *itertools.accumulate(counts)]
    pairs = [first + i for first, count in zip(firsts, counts, strict=False) for i in range(0, count - 1, 2)]
    assert inputs["pool_indices"].tolist() == pairs


@pytest.mark.parametrize(
    ("call", "config", "name"),
    [
        (fastpe.vision_inputs, QWEN, "grid_thw"),
        (fastpe.vision_inputs, {"model_type": "kimi_k25", "vision_config": {"pos_emb_height": 5}}, "grid_thw"),
        (fastpe.vision_inputs, {"model_type": "minicpmv4_6", "vision_config": {}}, "target_sizes"),
        (fastpe.vision_inputs, {"model_type": "idefics3", "vision_config": {}}, "target_sizes"),
        (fastpe.vision_inputs, {"model_type": "minicpmv", "vision_config": {}}, "target_sizes"),
        (fastpe.vision_inputs, {"model_type": "inkling2", "vision_config": {}}, "grid_thw"),
        (fastpe.audio_inputs, {"model_type": "qwen2_5_omni"}, "feature_lens"),
        (fastpe.audio_inputs, {"model_type": "qwen3_omni_moe", "audio_config": {}}, "feature_lens"),
    ],
)
def test_dtypes_arrays_of_a_graph_and_empty_batches(call: Any, config: Any, name: str) -> None:
    values: Any = {"grid_thw": [[1, 4, 8], [2, 4, 4]], "target_sizes": [[4, 8], [2, 3]], "feature_lens": [250, 30]}
    config = {**config, "audio_config": {}} if name == "feature_lens" else config
    expected = call(config, **{name: values[name]})
    narrow = call(fastpe.ModelConfig(config), **{name: values[name]}, dtype=np.int32)
    arrays = {key: each for key, each in expected.items() if isinstance(each, np.ndarray)}
    out: Any = {
        key: np.full_like(each, 77, np.int16 if each.dtype.kind in "iu" else None) for key, each in arrays.items()
    }
    written = call(config, **{name: values[name]}, out=out)
    for key, value in arrays.items():
        assert narrow[key].dtype == (np.int32 if value.dtype.kind in "iu" else value.dtype)
        np.testing.assert_array_equal(narrow[key], value)
        assert written[key] is out[key]
        np.testing.assert_array_equal(written[key], value)
    # An empty batch, as a list too, has the dtypes and axes of others.
    empties: Any = [[], np.zeros((0, *np.shape(values[name])[1:]), np.int64)]
    for empty in empties:
        found = call(config, **{name: empty})
        assert found.keys() == expected.keys()
        for key, value in arrays.items():
            assert (found[key].dtype, found[key].ndim) == (value.dtype, value.ndim), key
            assert len(found[key]) == ("cu_" in key), key


def test_nothing_is_written_if_one_array_does_not_fit() -> None:
    given: Any = {"grid_thw": [[1, 4, 4]]}
    same = fastpe.vision_inputs(QWEN, **given)
    out: Any = {name: np.full_like(each, 7) for name, each in same.items() if isinstance(each, np.ndarray)}
    for name, wrong in (
        ("cu_seqlens", np.zeros(5, int)),
        ("cu_window_seqlens", np.zeros(2, bool)),
        ("none", out["cu_seqlens"]),
    ):
        with pytest.raises((ValueError, TypeError), match=name):
            fastpe.vision_inputs(QWEN, **given, out={**out, name: wrong})
    assert all((array == 7).all() for array in out.values())


def test_remedies_lead_to_a_call() -> None:
    """What the errors of a grid without its axis, of a missing size and of pixels say, followed."""
    one = [1, 4, 4]
    with pytest.raises(ValueError, match=r"pass \[grid_thw\]"):
        fastpe.vision_inputs(QWEN, grid_thw=one)
    assert len(fastpe.vision_inputs(QWEN, grid_thw=[one])["position_ids"]) == 16
    assert len(fastpe.vision_inputs(QWEN, grid_thw=[np.array(one)])["position_ids"]) == 16
    with pytest.raises(ValueError, match=r"divide pixels by the patch_size"):
        fastpe.vision_inputs(QWEN, grid_thw=[[1, 448, 448]])
    assert len(fastpe.vision_inputs(QWEN, grid_thw=[[1, 448 // 14, 448 // 14]])["position_ids"]) == 32 * 32
    with pytest.raises(TypeError, match=r'config\["vision_config"\]\["spatial_merge_size"\] is None'):
        fastpe.vision_inputs({"model_type": "qwen2_vl", "vision_config": {"spatial_merge_size": None}}, grid_thw=[one])


GRIDS = "fastpe.vision_inputs(QWEN, grid_thw={})"
PACKED = "fastpe.vision_inputs(dict(model_type='minicpmv4_6', vision_config={}), target_sizes=[[4, 4]])"
REFUSED: Refused = {
    (ValueError, "grid_thw[1]"): each(
        GRIDS, "[[1, 2, 2], [1, 3, 2]] | [[1, 2, 2], [0, 2, 2]] | [[1, 2, 2], [1, 2, -2]]"
    ),
    (ValueError, "grid_thw"): each(GRIDS, "[1, 2, 2] | [[2, 2]] | [[2**15, 2**8, 2**8], [1, 2, 2]]"),
    (ValueError, "grid_thw[0]"): each(
        "fastpe.vision_inputs(dict(model_type='kimi_k25', vision_config=dict(merge_kernel_size=[2, 4])), grid_thw=[{}])",
        "[1, 3, 4] | [2, 4, 6]",
    )
    + each(GRIDS, "[[1, 448, 448]] | [[2, 2**30, 2**20], [1, 2, 2]]"),
    (TypeError, "grid_thw"): each(GRIDS, "None | [[1.0, 2.0, 2.0]]"),
    (ValueError, "target_sizes"): ["fastpe.vision_inputs(QWEN, grid_thw=[[1, 2, 2]], target_sizes=[[2, 2]])"],
    (ValueError, "merge_sizes"): [
        "fastpe.vision_inputs(QWEN, grid_thw=[[1, 2, 2]], merge_sizes=[2])",
        "fastpe.vision_inputs(dict(model_type='video_llama_3'), grid_thw=[[1, 2, 2]], merge_sizes=[1, 2])",
        "fastpe.vision_inputs(dict(model_type='video_llama_3'), grid_thw=[[1, 2, 2]], merge_sizes=[0])",
    ],
    (ValueError, "config"): [
        *each(
            "fastpe.vision_inputs({}, grid_thw=[[1, 2, 2]])",
            "dict(model_type='llama') | dict(hidden_size=8) | dict(model_type='qwen2_vl') | "
            "dict(model_type='qwen2_vl', vision_config=dict(spatial_merge_sizes=2))",
        ),
        "fastpe.audio_inputs(QWEN, feature_lens=[3])",
    ],
    (TypeError, "vision_config"): [
        "fastpe.vision_inputs(dict(model_type='qwen2_vl', vision_config=3), grid_thw=[[1, 2, 2]])"
    ],
    (ValueError, "num_position_embeddings"): [
        "fastpe.vision_inputs(dict(model_type='qwen3_vl_vision', num_position_embeddings=24), grid_thw=[[1, 2, 2]])"
    ],
    (ValueError, "window_size"): [
        "fastpe.vision_inputs(dict(model_type='qwen2_5_vl_vision', window_size=20), grid_thw=[[1, 2, 2]])"
    ],
    (ValueError, "window_kernel_size"): each(
        PACKED, "dict(window_kernel_size=[2, 3]) | dict(window_kernel_size=[2, 2, 2])"
    ),
    (ValueError, "dtype"): [GRIDS.format("[[1, 32, 32]], dtype='int8'")],
    (TypeError, "dtype"): [GRIDS.format("[[1, 2, 2]], dtype='float32'")],
    (ValueError, "feature_lens"): each(
        "fastpe.audio_inputs(dict(model_type='qwen2_5_omni', audio_config=dict()), feature_lens={})",
        "[0] | 3 | [[3]] | [2**32] | [2**31 - 1, 1]",
    ),
}


@pytest.mark.parametrize(("call", "error", "arguments"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], arguments: str) -> None:
    check_refused(call, error, arguments, {"fastpe": fastpe, "QWEN": QWEN, "np": np})
