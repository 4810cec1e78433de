# SPDX-License-Identifier: BSD-3-Clause
"""`text_inputs`; the comparison with transformers is tests/peers/test_text_inputs.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._graph.model import graphs

from ..oracles.refusals import Refused, check_refused, each, rows

# A token of each kind: text, image, video, audio, a mark of an image, and one that begins a slice.
TOKENS = np.array([1, 11, 12, 13, 14, 15])
CONFIG = {"image_token_id": 11, "video_token_id": 12, "audio_token_id": 13, "image_start_id": 14, "slice_start_id": 15}
CONFIG |= {"image_end_id": 14, "slice_end_id": 14, "newline_id": 14}


def tokens_of(text: str) -> Any:
    return TOKENS[[[int(each) for each in text]]]


def config_of(folder: str, more: Any = None) -> Any:
    return {"model_type": folder, **CONFIG, **(more or {})}


def numbered(folder: str, tokens: Any, config: Any = None, **given: Any) -> tuple[Any, Any]:
    inputs = fastpe.text_inputs(config_of(folder, config), tokens, **given)
    return inputs["position_ids"], inputs["rope_deltas"]


def test_cells_of_a_whole_image_are_rounded_as_torch_does() -> None:
    """torch.linspace(0, 31, 15).round(), which counts its second half from the end."""
    tokens = tokens_of("04" + "1" * 15 + "45" + "1" * 16 + "445" + "1" * 16 + "4")
    ids, _ = numbered("minicpmv4_7", tokens, image_grid_thw=[[60, 4], [64, 4], [64, 4]])
    assert (ids[1, 0, 2:17] - 1).tolist() == [0, 2, 4, 7, 9, 11, 13, 16, 18, 20, 22, 24, 27, 29, 31]


def test_times_that_are_not_cut_off() -> None:
    ids, deltas = numbered("qwen3_omni_moe", tokens_of("0220"), video_grid_thw=[[2, 2, 2]], second_per_grid=0.1)
    np.testing.assert_array_equal(ids[0, 0], [0, 1, 3.5, 4.5])
    assert (ids.dtype, deltas.tolist()) == (np.float64, [[1.5]])
    still, _ = numbered("qwen2_5_vl", tokens_of("0222200"), video_grid_thw=[[4, 2, 2]], second_per_grid=[0])
    assert still[:, 0].tolist() == [[0, 1, 1, 1, 1, 2, 3]] * 3
    # The token that follows, by one coordinate and by three
    config = {"model_type": "qwen3_omni_moe_text", "head_dim": 128, "rope_theta": 1e6, "hidden_size": 128}
    config["rope_scaling"] = {"rope_type": "default", "mrope_section": [24, 20, 20]}
    decoder, rope = (fastpe.RotaryEmbedding.from_config(config, mrope=mrope) for mrope in (False, True))
    q = np.random.default_rng(0).standard_normal((1, 2, 1, 128), dtype=np.float32)
    one, _ = numbered("qwen3_omni_moe", [[1]], past=4, rope_deltas=deltas)
    same = rope.rotate(q, positions=np.moveaxis(one, 0, -1), seq_axis=-2)
    np.testing.assert_array_equal(decoder.rotate(q, positions=4 + deltas, seq_axis=-2), same)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.float32, np.int64])
def test_ids_in_the_dtype_of_a_graph(dtype: Any) -> None:
    tokens, given = tokens_of("0011110"), {"image_grid_thw": [[1, 4, 4]]}
    layout = fastpe.rotary_layouts["qwen2_vl"]
    memory = np.full((2, 7, 3), 77, dtype).T  # arrays with gaps
    outs = (memory[..., 1:].swapaxes(1, 2), memory[0, :, :1].T, memory[..., 0].T)
    calls: list[Any] = [
        lambda **options: numbered("qwen2_vl", tokens, **given, **options)[0],
        lambda **options: fastpe.text_inputs({"model_type": "llama"}, tokens, **options)["position_ids"],
        lambda **options: layout.positions(2, (1, 4, 4), 1, **options),
    ]
    for call, place in zip(calls, outs, strict=True):
        same = call()
        found = call(dtype=dtype)
        assert (found.dtype, found.tolist()) == (dtype, same.tolist())
        assert call(out=place) is place
        np.testing.assert_array_equal(place, same)


def test_the_last_position() -> None:
    ids, deltas = numbered("qwen2_vl", [[1]], past=2**53, rope_deltas=0)
    assert (ids.tolist(), deltas.tolist()) == ([[[2**53]]] * 3, [[0]])
    assert fastpe.text_inputs({"model_type": "llama"}, [[1]], past=2**53)["position_ids"].tolist() == [[2**53]]


def test_a_sequence_goes_on() -> None:
    grid = [[1, 4, 4]]
    tokens = np.concatenate([tokens_of("00111100"), tokens_of("00011110")])
    mask = np.array([[1] * 8, [0] * 2 + [1] * 6])
    ids, deltas = numbered("qwen2_vl", tokens, image_grid_thw=grid * 2, attention_mask=mask)
    past = mask.sum(axis=1)
    one, same = numbered("qwen2_vl", [[1], [1]], past=past, rope_deltas=deltas)
    np.testing.assert_array_equal(one[..., 0], ids[..., -1] + 1)
    np.testing.assert_array_equal(same, deltas)
    # As hosts have it: a mask of all tokens
    whole_mask = np.concatenate([mask, np.ones((2, 1), int)], axis=1)
    of_mask, _ = numbered("qwen2_vl", [[1], [1]], attention_mask=whole_mask, rope_deltas=deltas)
    np.testing.assert_array_equal(of_mask, one)
    # Another image, in a later turn.
    more, _ = numbered("qwen2_vl", tokens[:1], image_grid_thw=grid, past=past[:1], rope_deltas=deltas[:1])
    whole, _ = numbered("qwen2_vl", np.concatenate([tokens[:1]] * 2, axis=1), image_grid_thw=grid * 2)
    np.testing.assert_array_equal(more, whole[:, :, 8:])
    # Nothing, and rows of nothing but padding.
    assert numbered("qwen2_vl", np.zeros((2, 0), int))[0].shape == (3, 2, 0)
    assert numbered("qwen2_vl", [[1, 1]], attention_mask=[[0, 0]])[1].tolist() == [[0]]


@pytest.mark.parametrize(
    ("folder", "grid", "config", "after"),
    [
        ("qwen2_5_vl", (30, 36, 54), {"vision_config": {"tokens_per_second": 2}}, 62),
        ("qwen2_5_vl", (60, 18, 26), {"vision_config": {"tokens_per_second": 2}}, 122),
        ("qwen2_vl", (60, 18, 26), None, 63),
        ("qwen2_vl", (3, 18, 26), None, 16),
        ("ernie4_5_vl_moe", (60, 18, 26), None, 33),
    ],
)
def test_text_after_a_video(folder: str, grid: tuple[int, int, int], config: Any, after: int) -> None:
    """It continues behind the largest coordinate, and so do a later turn and segments."""
    frames, height, width = grid
    times = frames // 2 if folder == "ernie4_5_vl_moe" else frames
    tokens = TOKENS[np.array([[0] * 3 + [2] * (times * height * width // 4) + [0] * 2])]
    given = {"video_grid_thw": [grid]} | ({"second_per_grid": 1} if folder == "qwen2_5_vl" else {})
    ids, deltas = numbered(folder, tokens, config, **given)
    assert ids[:, 0, -2:].tolist() == [[after, after + 1]] * 3
    assert deltas.tolist() == [[after + 2 - tokens.shape[1]]]
    later, _ = numbered(folder, tokens, config, past=tokens.shape[1], rope_deltas=deltas, **given)
    np.testing.assert_array_equal(later, ids + after + 2)
    interval: Any = {"time_interval": 2.0} if folder == "qwen2_5_vl" else {}
    layout = fastpe.RotaryLayout.from_config({"model_type": folder})
    segments = layout.positions(3, (times, height, width), 2, **interval)
    np.testing.assert_array_equal(segments.T, ids[:, 0])


@pytest.mark.parametrize(
    ("tokens", "given", "expected"),
    [
        ([[7, 8, 9]], {}, [[0, 1, 2]]),
        ([[0, 0, 9], [7, 8, 9]], {"attention_mask": [[0, 0, 1], [1, 1, 1]]}, [[1, 1, 0], [0, 1, 2]]),
        ([[7, 0], [7, 8]], {"attention_mask": [[1, 0], [1, 1]]}, [[0, 1], [0, 1]]),
        # The mask of all tokens, of which two are new; and the same without it
        ([[7, 8], [7, 8]], {"attention_mask": [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]}, [[1, 2], [3, 4]]),
        ([[7, 8], [7, 8]], {"past": [1, 3]}, [[1, 2], [3, 4]]),
        ([[7, 8]], {"past": 5}, [[5, 6]]),
        ([[7, 0]], {"past": [[3]], "attention_mask": [[True, False]]}, [[3, 1]]),
        (np.zeros((2, 0), int), {}, np.zeros((2, 0))),
    ],
)
def test_models_that_count_tokens(tokens: Any, given: Any, expected: Any) -> None:
    configs: list[Any] = [
        ({"model_type": "llama"}, {}),
        ({"model_type": "llava", "text_config": {"model_type": "llama"}}, {"first_position": 0}),
        (fastpe.ModelConfig({"model_type": "llava"}), {}),
        ({"hidden_size": 8}, {"first_position": 0}),
        ({"model_type": "qwen9_vl"}, {"first_position": 0}),
        ({"model_type": "bert", "is_decoder": True}, {}),
    ]
    for config, also in configs:
        for types in (np.array, list):
            inputs = fastpe.text_inputs(config, types(tokens), **given, **also)
            assert inputs.keys() == {"position_ids"}
            np.testing.assert_array_equal(inputs["position_ids"], expected)
            assert inputs["position_ids"].dtype == np.int64


@pytest.mark.parametrize(
    ("config", "given", "expected"),
    [
        # All columns count in encoders.
        ({"model_type": "bert"}, {"attention_mask": [[0, 0, 1, 1]]}, [[0, 1, 2, 3]]),
        ({"model_type": "bert"}, {"attention_mask": [[0, 0, 1, 1, 1, 1]]}, [[2, 3, 4, 5]]),
        ({"model_type": "bert"}, {"past": 5}, [[5, 6, 7, 8]]),
        ({"model_type": "fnet"}, {"attention_mask": [[0, 1, 1, 1]]}, [[0, 1, 2, 3]]),
        ({"model_type": "mra"}, {}, [[2, 3, 4, 5]]),
        # Behind the position of padding, which is found by its token
        ({"model_type": "roberta"}, {}, [[1, 2, 1, 3]]),
        ({"model_type": "roberta", "pad_token_id": 8}, {}, [[9, 10, 11, 12]]),
        ({"model_type": "roberta", "pad_token_id": 7}, {}, [[8, 7, 9, 10]]),
        ({"model_type": "roberta"}, {"attention_mask": [[0, 1, 0, 1]]}, [[1, 2, 1, 3]]),
        ({"model_type": "roberta"}, {"past": 3}, [[1, 5, 1, 6]]),
        ({"model_type": "markuplm"}, {}, [[1, 2, 3, 4]]),
        ({"model_type": "paligemma"}, {"attention_mask": [[0, 1, 1, 1]]}, [[1, 1, 2, 3]]),
        ({"model_type": "paligemma"}, {"past": 3}, [[4, 5, 6, 7]]),
        ({"model_type": "paligemma", "text_config": {"model_type": "gemma"}}, {}, [[1, 2, 3, 4]]),
        ({"model_type": "new"}, {"first_position": 2, "attention_mask": [[0, 1, 1, 1]]}, [[1, 2, 3, 4]]),
        ({"model_type": "new"}, {"first_position": 3, "attention_mask": [[0, 1, 1, 1]]}, [[2, 3, 4, 5]]),
        ({"model_type": "opt"}, {"attention_mask": [[0, 1, 1, 1]]}, [[1, 0, 1, 2]]),
    ],
)
def test_other_rules_of_text(config: Any, given: Any, expected: Any) -> None:
    """tools/measure_models.py measures which models have which."""
    tokens = np.array([[1, 7, 1, 9]])
    found = fastpe.text_inputs(config, tokens, **given)
    assert found["position_ids"].tolist() == expected
    same = fastpe.text_inputs(fastpe.ModelConfig(config), tokens, **{"first_position": None, **given})
    assert same["position_ids"].tolist() == expected


@pytest.mark.parametrize("rows_of", [1, 3])
@pytest.mark.parametrize("folder", [name for name, kinds in graphs().items() if "text" in kinds] + ["llama", "bert"])
def test_the_next_token(folder: str, rows_of: int) -> None:
    """By a route of its own, which gives what a mask of all tokens gives, for numbers and arrays of every form."""
    config = fastpe.ModelConfig(config_of(folder, {"video_start_token_id": 7, "video_end_token_id": 6}))
    deltas: Any = {} if folder in ("llama", "bert") else {"rope_deltas": np.arange(rows_of)[:, None] - 1}
    for length in (1, 3):
        tokens = np.ones((rows_of, length), np.int32)
        whole = fastpe.text_inputs(config, tokens, attention_mask=np.ones((rows_of, 5 + length), int), **deltas)
        forms: list[Any] = [5, np.full(rows_of, 5), np.full((rows_of, 1), 5), [5] * rows_of, np.int32(5)]
        for past in forms:
            found = fastpe.text_inputs(config, tokens, past=past, **deltas)
            assert found.keys() == whole.keys()
            for name, same in whole.items():
                np.testing.assert_array_equal(found[name], same)
                assert (found[name].dtype, found[name].shape) == (same.dtype, same.shape)
                assert found[name].flags.writeable
    if deltas:
        assert found["rope_deltas"] is not deltas["rope_deltas"]
        with pytest.raises(ValueError, match="image_grid_thw"):
            fastpe.text_inputs(config, np.full((rows_of, 1), 11), past=5, **deltas)
        with pytest.raises(ValueError, match="rope_deltas"):
            fastpe.text_inputs(config, np.ones((rows_of, 1), int), past=5, rope_deltas=np.full((rows_of, 1), -6))


def test_rows_of_text() -> None:
    """The positions of text alone, in front of the coordinates of a graph or behind them."""
    tokens, given = tokens_of("0011110"), {"image_grid_thw": [[1, 4, 4]]}
    mask = {"attention_mask": [[0, 1, 1, 1, 1, 1, 1]]}
    for folder in ("qwen2_vl", "qwen3_omni_moe"):
        ids, deltas = numbered(folder, tokens, **given, **mask)
        first, same = numbered(folder, tokens, **given, **mask, text_row="first")
        last, _ = numbered(folder, tokens, **given, **mask, text_row="last")
        np.testing.assert_array_equal(first[1:], ids)
        np.testing.assert_array_equal(last[:3], ids)
        assert first[0].tolist() == last[3].tolist() == [[1, 0, 1, 2, 3, 4, 5]]
        np.testing.assert_array_equal(same, deltas)
        one, _ = numbered(folder, [[1]], past=6, rope_deltas=deltas, text_row="first")
        assert one[:, 0, 0].tolist() == [6, *[6 + int(deltas[0, 0])] * 3]


def test_masks_of_visual_tokens() -> None:
    tokens = tokens_of("0110220")
    for folder in ("qwen3_vl", "qwen3_vl_moe", "qwen3_omni_moe", "cohere_compass", "cosmos3_omni"):
        also = {"second_per_grid": 1} if folder == "qwen3_omni_moe" else {}
        given: Any = {"image_grid_thw": [[1, 2, 4]], "video_grid_thw": [[1, 2, 4]], **also}
        mask = fastpe.text_inputs(config_of(folder), tokens, **given)["visual_pos_masks"]
        assert mask.dtype == np.bool_
        assert mask.tolist() == [[False, True, True, False, True, True, False]]
    assert "visual_pos_masks" not in fastpe.text_inputs(config_of("qwen3_5"), tokens_of("000"))


def test_text_alone_and_defaults_of_classes() -> None:
    """A checkpoint of text has no ids of image tokens, and a file that leaves them out has those of its class."""
    for name in ("qwen3_5_text", "qwen3_vl_text", "qwen2_vl_text", "qwen2_5_vl_text"):
        ids = fastpe.text_inputs({"model_type": name}, [[5, 6, 7]])["position_ids"]
        assert ids.tolist() == [[[0, 1, 2]]] * 3
    tokens = np.array([[5, *[151655] * 4, 6]])
    ids = fastpe.text_inputs({"model_type": "qwen2_vl"}, tokens, image_grid_thw=[[1, 4, 4]])["position_ids"]
    assert ids[:, 0].tolist() == [[0, 1, 1, 1, 1, 3], [0, 1, 1, 2, 2, 3], [0, 1, 2, 1, 2, 3]]
    tokens = np.array([[5, 151656, 151656, 6]])
    ids = fastpe.text_inputs({"model_type": "qwen2_vl"}, tokens, video_grid_thw=[[2, 2, 2]])["position_ids"]
    assert ids[:, 0].tolist() == [[0, 1, 2, 3], [0, 1, 1, 3], [0, 1, 1, 3]]


def test_a_config_around_the_model() -> None:
    inner = config_of("qwen2_vl", {"vision_config": {"spatial_merge_size": 2}})
    tokens = tokens_of("0011110")
    given: Any = {"image_grid_thw": [[1, 4, 4]]}
    expected = fastpe.text_inputs(inner, tokens, **given)
    found = fastpe.text_inputs({"model_type": "colqwen2", "vlm_config": inner}, tokens, **given)
    for name, same in expected.items():
        np.testing.assert_array_equal(found[name], same)


def test_names_of_parts_and_keys() -> None:
    inside = {"image_token_index": 11, "video_token_index": 12, "audio_token_index": 13}
    config = {"model_type": "qwen2_5_omni", "thinker_config": {"model_type": "qwen2_5_omni_thinker", **inside}}
    ids = fastpe.text_inputs(config, [[1, 11, 1]], image_grid_thw=[[1, 2, 2]])["position_ids"]
    assert ids[:, 0].tolist() == [[0, 1, 2]] * 3
    sections = {"text_config": {"rope_scaling": {"xdrope_section": [16, 16, 32]}}}
    assert numbered("hunyuan_vl", [[1]], sections)[0].shape == (3, 1, 1)


def text_inputs(folder: str, tokens: Any, config: Any = None, **given: Any) -> Any:
    """With the tokens of kinds."""
    return fastpe.text_inputs(config_of(folder, config), TOKENS[np.array(tokens)], **given)


QWEN = "text('qwen2_vl', {})"
QWEN_2_5 = "text('qwen2_5_vl', [[2, 2]], video_grid_thw=[[2, 2, 2]], second_per_grid={})"
LLAMA = "fastpe.text_inputs(dict(model_type='llama'), {})"
REFUSED: Refused = {
    (ValueError, "image_grid_thw[1]"): each(
        QWEN,
        "[[1, 0, 1]], image_grid_thw=[[1, 2, 2], [1, 4, 4]] | [[1, 0]], image_grid_thw=[[1, 2, 2], [1, 2, 2]] | "
        "[[1, 0, 1]], image_grid_thw=[[1, 2, 2], [1, 0, 2]]",
    ),
    (ValueError, "image_grid_thw[0]"): each(QWEN, "[[1] * 4], image_grid_thw=[[1, 5, 4]]"),
    (ValueError, "video_grid_thw[0]"): [
        "text('qwen3_vl', [[2, 0, 2, 2]], video_grid_thw=[[2, 2, 2]])",
        "text('qwen2_5_omni', [[2, 3, 2]], video_grid_thw=[[3, 2, 2]], second_per_grid=1)",
        # More frames than there is memory for
        "text('qwen3_vl', [[2, 0, 2]], video_grid_thw=[[2**40, 2, 2]])",
    ],
    (ValueError, "image_grid_thw"): [
        *each(QWEN, "[[1, 0, 1]], image_grid_thw=[[1, 2, 2]] | [[1, 1]] | [[1]], image_grid_thw=[[2, 2]]"),
        LLAMA.format("[[0]], image_grid_thw=[[1, 2, 2]]"),
    ],
    (TypeError, "image_grid_thw"): [QWEN.format("[[1]], image_grid_thw=[[1.0, 2.0, 2.0]]")],
    (ValueError, "input_ids"): [
        "fastpe.text_inputs(dict(model_type='llama'), [1, 2])",
        *each("text('minicpmv4_7', {}, image_grid_thw=[[4, 4]])", "[[1]] | [[0, 1]]"),
    ],
    (TypeError, "input_ids"): each(LLAMA, "[['a']] | [[0.5]]"),
    (ValueError, "attention_mask"): each(
        "fastpe.text_inputs(dict(model_type='roberta'), {})", "[[1, 5]], attention_mask=[[1, 1]]"
    )
    + each(LLAMA, "[[0]], attention_mask=[[1, 1]] * 2 | [[0]], attention_mask=[[2]] | [[0, 0]], attention_mask=[[1]]"),
    (ValueError, "second_per_grid"): [
        *each(QWEN_2_5, "[1, 2] | -1 | np.nan | np.inf | None"),
        QWEN.format("[[0]], second_per_grid=1"),
        LLAMA.format("[[0]], second_per_grid=1"),
    ],
    # No position is beyond 2**53.
    (ValueError, "second_per_grid[0]"): each(QWEN_2_5, "1e308 | 1e17"),
    (ValueError, "time_interval"): each("layouts['qwen2_vl'].positions((2, 2, 2), time_interval={})", "1e308 | 1e17"),
    (ValueError, "start"): ["layouts['qwen2_vl'].positions(2, start=2**53)"],
    (ValueError, "past"): [
        *each(QWEN, "[[0]], past=2**54, rope_deltas=0 | [[0, 0]], past=2**53, rope_deltas=0 | [[0]], rope_deltas=2"),
        *each(QWEN, "[[0]], past=[1, 2], rope_deltas=0 | [[0]], past=-1, rope_deltas=2"),
        *each(LLAMA, "[[0, 0]], past=2**53 | [[0]], past=-1 | [[0]], past=1, attention_mask=[[1, 1]]"),
        "text('hunyuan_vl', [[1, 1]], image_grid_thw=[[1, 2, 2]], past=1, rope_deltas=0)",
    ],
    (ValueError, "rope_deltas"): [
        *each(QWEN, "[[0]], past=1, rope_deltas=-2 | [[0]], past=1 | [[0]], past=1, rope_deltas=[[1, 2]]"),
        QWEN.format("[[0]], attention_mask=[[1, 1]]"),
        LLAMA.format("[[0]], past=1, rope_deltas=0"),
    ],
    # No dtype holds other ids than those that are meant.
    (ValueError, "dtype"): each(LLAMA, "[[0]], past=2**31, dtype='int32' | [[0]], past=2**24 + 1, dtype='float32'"),
    (TypeError, "dtype"): [LLAMA.format("[[0]], dtype=bool")],
    (ValueError, "out"): each(LLAMA, "[[0]], out=np.zeros(1) | [[0]], past=256, out=np.zeros((1, 1), np.uint8)"),
    (TypeError, "out"): each(LLAMA, "[[0]], out=[[0]] | [[0]], dtype='int32', out=np.zeros((1, 1))"),
    # Parts of a config, other models and misspelt keys would leave the defaults in silence.
    (ValueError, "config"): [
        *each("text('qwen2_vl_text', [[1]], {}, image_grid_thw=[[1, 2, 2]])", "{}"),
        *each("text('qwen2_vl', [[1]], {}, image_grid_thw=[[1, 2, 2]])", "{'spatial_merge_size': 2}"),
        *each(
            "text('qwen2_5_vl', [[2]], {}, video_grid_thw=[[1, 2, 2]], second_per_grid=1)",
            "{'tokens_per_second': 2} | {'vision_config': {'token_per_second': 2}}",
        ),
        "text('qwen2_5_omni', [[0]], {'position_id_per_second': 2})",
        "text('qwen2_vl', [[0]], {'image_token_id': None})",
        "text('minicpmv4_7', [[0]], {'slice_start_id': None})",
        # Ids that count otherwise
        "fastpe.text_inputs(dict(model_type='new_vl', rope_scaling=dict(mrope_section=[2, 3, 3])), [[0]])",
        "fastpe.text_inputs(dict(llm_config=dict(rope_scaling=dict(mrope_section=[2, 3, 3]))), [[0]])",
    ],
    # What is not known, and what has no position ids of tokens
    (ValueError, "model_type"): [
        *each(
            "fastpe.text_inputs(dict(model_type={}), [[0]])",
            "'qwen9_vl' | 't5' | 'bloom' | 'm2m_100' | 'fsmt' | 'speech_to_text' | 'pixtral' | 'clip_vision_model' | "
            "'qwen2_5_omni_talker' | 'qwen2_vl_vision' | 'whisper' | 'musicgen' | 'kosmos_2_text_model' | None",
        ),
        "fastpe.text_inputs(dict(model_type='qwen9_vl', image_token_id=4), [[0]])",
        "fastpe.text_inputs(dict(model_type='qwen9_vl', text_config=dict(model_type='qwen2_vl_text')), [[0]])",
        "fastpe.text_inputs(dict(model_type='t5'), [[0]], first_position=0)",
        "fastpe.text_inputs(dict(model_type='llava', text_config=dict(model_type='new')), [[0]])",
    ],
    (ValueError, "first_position"): [
        *each("fastpe.text_inputs(dict(model_type={}), [[0]], first_position=1)", "'llama' | 'qwen2_vl' | 'roberta'"),
        "fastpe.text_inputs(dict(), [[0]], first_position=-1)",
    ],
    (TypeError, "first_position"): ["fastpe.text_inputs(dict(), [[0]], first_position=1.5)"],
    (ValueError, "text_row"): [LLAMA.format("[[0]], text_row='first'"), QWEN.format("[[0]], text_row='middle'")],
    (TypeError, "pad_token_id"): ["fastpe.text_inputs(dict(model_type='roberta', pad_token_id=None), [[0]])"],
    # Words of other libraries
    (TypeError, "attention_mask"): each(LLAMA, "[[0, 0]], attention_mask=[[-1e9, 0]] | [[0]], mask=[[1]]"),
    (TypeError, "past"): [
        QWEN.format("[[0]], past=1.5, rope_deltas=0"),
        *each(LLAMA, "[[0]], past_key_values_length=3 | [[0]], offset=3 | [[0]], start_pos=3"),
    ],
    (TypeError, "vision_config"): [QWEN.format("[[0]], {'vision_config': 3}")],
    (ValueError, "downsample_mode"): [
        "text('minicpmv4_7', [[4, 1]], {'downsample_mode': '8x'}, image_grid_thw=[[4, 4]])"
    ],
    (TypeError, "spatial_merge_size"): [
        QWEN.format("[[1]], {'vision_config': {'spatial_merge_size': None}}, image_grid_thw=[[1, 2, 2]]")
    ],
    (ValueError, "spatial_merge_size"): [
        QWEN.format("[[1]], {'vision_config': {'spatial_merge_size': 0}}, image_grid_thw=[[1, 2, 2]]")
    ],
}


@pytest.mark.parametrize(("call", "error", "arguments"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], arguments: str) -> None:
    names = {"text": text_inputs, "layouts": fastpe.rotary_layouts, "fastpe": fastpe, "np": np}
    check_refused(call, error, arguments, names)


def test_a_dtype_of_another_library_is_named_as_numpy_names_it() -> None:
    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        def __repr__(self) -> str:
            return f"torch.{self.name}"

    vision = {"model_type": "qwen2_vl", "vision_config": {}}
    calls: list[tuple[str, Any]] = [
        ("float32", lambda dtype: fastpe.text_inputs({"model_type": "llama"}, [[5]], dtype=dtype)["position_ids"]),
        ("float32", lambda dtype: fastpe.rotary_layouts["flux"].positions(2, dtype=dtype)),
        ("", lambda dtype: fastpe.vision_inputs(vision, grid_thw=[[1, 4, 4]], dtype=dtype)["position_ids"]),
    ]
    for taken, call in calls:
        for dtype in ("no", complex, "bfloat16", Named("bfloat16"), Named("int32"), Named("float32")):
            with pytest.raises(TypeError, match=r"^dtype is") as raised:
                call(dtype)
            remedy = vars(raised.value)["_fields"]["remedy"]
            name = dtype.name if isinstance(dtype, Named) else ""
            assert remedy == (f"pass '{name}'" if name in ("int32", taken) and name else "")
            if remedy:
                assert call(name).dtype == name
