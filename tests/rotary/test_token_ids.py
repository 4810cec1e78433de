# SPDX-License-Identifier: BSD-3-Clause
"""Position ids from types of tokens; the comparison with transformers is tests/peers/test_rotary_token_ids.py."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastpe

from ..oracles.refusals import Refused, check_refused, each, rows

LAYOUTS: Any = fastpe.rotary_layouts


class Case(NamedTuple):
    """A character is a type of a token, and then an id, in base 36."""

    folder: str
    types: str
    ids: tuple[str, ...]
    delta: int
    images: Any = None
    videos: Any = None
    seconds: Any = None
    config: Any = None


CASES = [
    Case(
        "qwen2_vl", "0011110220", ("0122224567", "0122334557", "0123234557"), -2, images=[[1, 4, 4]], videos=[[2, 2, 2]]
    ),
    # The text behind a video begins behind its last time.
    Case("qwen2_vl", "02220", ("01234", "01114", "01114"), 0, videos=[[3, 2, 2]]),
    Case("qwen2_5_vl", "0222200", ("01369ab", "01111ab", "01111ab"), 5, videos=[[4, 2, 2]], seconds=[0.7], config={}),
    Case("qwen3_vl", "02200220", ("01134557", "01134557", "01234567"), 0, videos=[[2, 2, 4]]),
    Case("ernie4_5_vl_moe", "0220", ("0123", "0113", "0113"), 0, videos=[[4, 2, 2]]),
    Case("hy_v4_vl", "022222200", ("011144478", "011144478", "012345678"), 0, videos=[[2, 2, 4]]),
    # The first image has a token more on each side than its grid has.
    Case(
        "hunyuan_vl",
        "01111111100110",
        ("0123456789abcd", "0101201289a01d", "0100011189a00d", "0100000089a11d"),
        0,
        images=[[1, 4, 4], [1, 2, 2]],
    ),
    # There is no text between the images.
    Case("glm_image", "0111100", ("0113356", "0113456", "0123356"), 0, images=[[1, 1, 2], [1, 2, 1]]),
    # The marks at each end of a video with audio are at one position. The last frame is behind the audio.
    Case(
        "qwen2_5_omni",
        "0033000233200001100",
        ("0123455667bccdeffhi", "01234556676ccdeffhi", "01234556676ccdefghi"),
        0,
        images=[[1, 2, 4]],
        videos=[[2, 2, 2]],
        seconds=[2.5],
        config={"thinker_config": {"position_id_per_seconds": 2}},
    ),
    Case(
        "qwen3_omni_moe",
        "0033000233200001100",
        ("01234567789abcdeegh", "01234567787abcdeegh", "01234567787abcdefgh"),
        -1,
        images=[[1, 2, 4]],
        videos=[[2, 2, 2]],
        seconds=0.08,
        config={"position_id_per_seconds": 25},
    ),
    # An image with two lines of two slices each.
    Case(
        "minicpmv4_7",
        "004111145114511445111451140",
        ("012222222222222222222222227", "011223342222222223333333337", "011252562233445562234444557"),
        -19,
        images=[[8, 8], [4, 8], [4, 8], [4, 12], [4, 8]],
    ),
]


def types_of(text: str) -> Any:
    return np.array([[int(each) for each in text]])


def arguments_of(case: Case) -> dict[str, Any]:
    given = {"image_grid_thw": case.images, "video_grid_thw": case.videos, "second_per_grid": case.seconds}
    return given | {"config": case.config}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.folder}-{case.types}")
def test_stored_ids(case: Case) -> None:
    ids, delta = LAYOUTS[case.folder].position_ids(types_of(case.types), **arguments_of(case))
    np.testing.assert_array_equal(ids[:, 0], [[int(each, 36) for each in row] for row in case.ids])
    assert (ids.dtype, delta.tolist()) == (np.int64, [case.delta])


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.folder}-{case.types}")
def test_padding_is_not_counted(case: Case) -> None:
    types = types_of(case.types)
    layout, padding = LAYOUTS[case.folder], np.zeros((1, 3), np.int64)
    # The plane of HunYuan-VL counts images through the batch.
    rows_of = 1 if case.folder == "hunyuan_vl" else 2
    rows_ = [np.concatenate([padding, types], axis=1), np.concatenate([types, padding], axis=1)][:rows_of]
    masks = [np.arange(rows_[0].shape[1])[None] >= 3, np.arange(rows_[0].shape[1])[None] < types.shape[1]][:rows_of]
    given = arguments_of(case)
    for name in ("image_grid_thw", "video_grid_thw"):
        given[name] = given[name] and given[name] * rows_of
    if isinstance(case.seconds, list):
        given["second_per_grid"] = case.seconds * rows_of
    ids, delta = layout.position_ids(np.concatenate(rows_), attention_mask=np.concatenate(masks), **given)
    alone, _ = layout.position_ids(types, **arguments_of(case))
    assert delta.tolist() == [case.delta] * rows_of
    for row, mask in enumerate(masks):
        np.testing.assert_array_equal(ids[:, row, mask[0]], alone[:, 0])
        assert len({*ids[:, row, ~mask[0]].ravel().tolist()}) == 1


def test_times_that_are_not_cut_off() -> None:
    ids, delta = LAYOUTS["qwen3_omni_moe"].position_ids(
        [[0, 2, 2, 0]], video_grid_thw=[[2, 2, 2]], second_per_grid=0.1, config={}
    )
    np.testing.assert_array_equal(ids[0, 0], [0, 1, 3.5, 4.5])
    assert (ids.dtype, delta.tolist()) == (np.float64, [1.5])
    # The token that follows, by one coordinate and by three
    config = {"model_type": "qwen3_omni_moe_text", "head_dim": 128, "rope_theta": 1e6, "hidden_size": 128}
    config["rope_scaling"] = {"rope_type": "default", "mrope_section": [24, 20, 20]}
    decoder, rope = (fastpe.RotaryEmbedding.from_config(config, mrope=mrope) for mrope in (False, True))
    q = np.random.default_rng(0).standard_normal((1, 2, 1, 128), dtype=np.float32)
    one, _ = LAYOUTS["qwen3_omni_moe"].position_ids([[0]], past=4, delta=delta)
    np.testing.assert_array_equal(
        decoder.rotate(q, positions=(4 + delta)[:, None]), rope.rotate(q, positions=np.moveaxis(one, 0, -1))
    )


def test_the_last_position() -> None:
    ids, delta = LAYOUTS["qwen2_vl"].position_ids([[0]], past=2**53, delta=0)
    assert (ids.tolist(), delta.tolist()) == ([[[2**53]]] * 3, [0])


def test_a_sequence_goes_on() -> None:
    layout, grid = LAYOUTS["qwen2_vl"], [[1, 4, 4]]
    types, mask = types_of("00111100")[[0, 0]], np.array([[1] * 8, [0] * 2 + [1] * 6])
    types[1] = [0, 0, 1, 1, 1, 1, 0, 0]
    ids, delta = layout.position_ids(types, image_grid_thw=grid * 2, attention_mask=mask)
    past = mask.sum(axis=1)
    one, same = layout.position_ids(np.zeros((2, 1), int), past=past, delta=delta)
    np.testing.assert_array_equal(one[..., 0], ids[..., -1] + 1)
    np.testing.assert_array_equal(same, delta)
    # Another image, in a later turn.
    more, _ = layout.position_ids(types[:1], image_grid_thw=grid, past=past[:1], delta=delta[:1])
    whole, _ = layout.position_ids(np.concatenate([types[:1]] * 2, axis=1), image_grid_thw=grid * 2)
    np.testing.assert_array_equal(more, whole[:, :, 8:])
    # Nothing, and rows of nothing but padding.
    assert layout.position_ids(np.zeros((2, 0), int))[0].shape == (3, 2, 0)
    assert layout.position_ids([[0, 0]], attention_mask=[[0, 0]])[1].tolist() == [0]


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
    types = np.array([[0] * 3 + [2] * (times * height * width // 4) + [0] * 2])
    given = {"config": config} | ({"second_per_grid": 1} if folder == "qwen2_5_vl" else {})
    layout = LAYOUTS[folder]
    ids, delta = layout.position_ids(types, video_grid_thw=[grid], **given)
    assert ids[:, 0, -2:].tolist() == [[after, after + 1]] * 3
    assert delta.tolist() == [after + 2 - types.shape[1]]
    later, _ = layout.position_ids(types, video_grid_thw=[grid], past=types.shape[1], delta=delta, **given)
    np.testing.assert_array_equal(later, ids + after + 2)
    interval = {"time_interval": 2.0} if folder == "qwen2_5_vl" else {}
    np.testing.assert_array_equal(layout.positions(3, (times, height, width), 2, **interval).T, ids[:, 0])


def test_types_of_tokens() -> None:
    config = {"image_token_id": 9, "video_token_id": 8, "video_start_token_id": 7, "video_end_token_id": 6}
    tokens = [[1, 9, 7, 9, 9, 6, 9, 8]]
    assert LAYOUTS["qwen3_vl"].token_types(tokens, config).tolist() == [[0, 1, 0, 1, 1, 0, 1, 2]]
    # The frames of videos have the tokens of images.
    assert LAYOUTS["glm4v"].token_types(tokens, config).tolist() == [[0, 1, 0, 2, 2, 0, 1, 2]]
    inside = {"thinker_config": {"image_token_index": 1, "video_token_index": 2, "audio_token_index": 3}}
    assert LAYOUTS["qwen2_5_omni"].token_types([[0, 1, 2, 3]], inside).tolist() == [[0, 1, 2, 3]]
    keys = ("image_token_id", "video_token_id", "image_start_id", "image_end_id", "slice_start_id", "slice_end_id")
    marks = {key: 10 + number for number, key in enumerate((*keys, "newline_id"))}
    types = LAYOUTS["minicpmv4_7"].token_types([[1, *range(10, 17)]], marks).tolist()
    assert types == [[0, 1, 2, 4, 4, 5, 4, 4]]


def test_sizes_of_a_config() -> None:
    layout, types = LAYOUTS["qwen2_5_vl"], types_of("02222")
    config = {"model_type": "qwen2_5_vl", "vision_config": {"spatial_merge_size": 4, "tokens_per_second": 2}}
    ids, _ = layout.position_ids(types, video_grid_thw=[[2, 4, 8]], second_per_grid=1, config=config)
    assert ids[:, 0].tolist() == [[0, 1, 1, 3, 3], [0, 1, 1, 1, 1], [0, 1, 2, 1, 2]]
    sections = {"text_config": {"rope_scaling": {"xdrope_section": [16, 16, 32]}}}
    assert LAYOUTS["hunyuan_vl"].position_ids([[0]], config=sections)[0].shape == (3, 1, 1)


def test_names_of_models() -> None:
    assert LAYOUTS["qwen2_5_vl_text"] is LAYOUTS["qwen2_5_vl"] or LAYOUTS["qwen2_5_vl_text"] == LAYOUTS["qwen2_5_vl"]
    assert LAYOUTS["qwen2_vl_text"] is LAYOUTS["qwen2_vl"]
    ropes = [fastpe.RotaryEmbedding.from_layout(LAYOUTS[name], 128, base=1e6) for name in ("qwen3_vl_moe", "qwen3_vl")]
    assert ropes[0] == ropes[1]
    assert LAYOUTS["glm4v_vision"] is LAYOUTS["qwen2_vl_vision"]
    assert "paddleocr_vl_vision" not in LAYOUTS  # its positions need an option
    assert "hunyuan_vl" in LAYOUTS
    spellings = {
        "qwen2_5_vl": "Qwen2.5-VL qwen2_5vl qwen25_vl qwen2.5_vl",
        "qwen3_omni_moe": "qwen3_omni",
        "glm46v": "glm4.6v",
    }
    for meant, names in spellings.items():
        for name in names.split():
            with pytest.raises(KeyError, match=rf"mean '{meant}'"):
                LAYOUTS[name]
    omni = LAYOUTS["qwen2_5_omni"]
    assert pickle.loads(pickle.dumps(omni)) == omni
    assert eval(repr(omni)) == omni


def test_windows() -> None:
    index, cu_window_seqlens, cu_seqlens = LAYOUTS["qwen2_vl_vision"].windows([[1, 4, 6], [2, 2, 2]], window=2)
    assert index.tolist() == [0, 1, 3, 4, 2, 5, 6, 7]
    assert cu_window_seqlens.tolist() == [0, 16, 24, 28, 32]
    assert cu_seqlens.tolist() == [0, 24, 28, 32]
    assert (index.dtype, cu_window_seqlens.dtype, cu_seqlens.dtype) == (np.int64, np.int32, np.int32)


QWEN = "layouts['qwen2_vl'].position_ids({})"
QWEN_2_5 = "layouts['qwen2_5_vl'].position_ids([[2, 2]], video_grid_thw=[[2, 2, 2]], second_per_grid={}, config=dict())"
REFUSED: Refused = {
    (ValueError, "image_grid_thw[1]"): each(
        QWEN,
        "[[1, 0, 1]], image_grid_thw=[[1, 2, 2], [1, 4, 4]] | [[1, 0]], image_grid_thw=[[1, 2, 2], [1, 2, 2]] | "
        "[[1, 0, 1]], image_grid_thw=[[1, 2, 2], [1, 0, 2]]",
    ),
    (ValueError, "image_grid_thw[0]"): each(QWEN, "[[1] * 4], image_grid_thw=[[1, 5, 4]]"),
    (ValueError, "video_grid_thw[0]"): [
        "layouts['qwen3_vl'].position_ids([[2, 0, 2, 2]], video_grid_thw=[[2, 2, 2]])",
        "layouts['qwen2_5_omni'].position_ids([[2, 3, 2]], video_grid_thw=[[3, 2, 2]], second_per_grid=1, config={})",
    ],
    (ValueError, "image_grid_thw"): each(
        QWEN, "[[1, 0, 1]], image_grid_thw=[[1, 2, 2]] | [[1, 1]] | [[1]], image_grid_thw=[[2, 2]]"
    ),
    (TypeError, "image_grid_thw"): [QWEN.format("[[1]], image_grid_thw=[[1.0, 2.0, 2.0]]")],
    (ValueError, "token_types"): [
        *each(QWEN, "[0, 0] | [[0, 3]] | [[-1]]"),
        *each("layouts['minicpmv4_7'].position_ids({}, image_grid_thw=[[4, 4]])", "[[1]] | [[0, 1]] | [[6]]"),
    ],
    (TypeError, "token_types"): [QWEN.format("[[0.0]]")],
    (TypeError, "attention_mask"): each(
        QWEN, "[[0, 0]], attention_mask=[[-1e9, 0]] | [[0]], attention_mask=np.ones((1, 1), np.float32)"
    ),
    (ValueError, "attention_mask"): each(QWEN, "[[0]], attention_mask=[[1, 1]] | [[0]], attention_mask=[[2]]"),
    (ValueError, "second_per_grid"): [
        *each(QWEN_2_5, "[1, 2] | -1 | np.nan | np.inf | None"),
        QWEN.format("[[0]], second_per_grid=1"),
    ],
    # No position is beyond 2**53.
    (ValueError, "second_per_grid[0]"): each(QWEN_2_5, "1e308 | 1e17"),
    (ValueError, "time_interval"): each("layouts['qwen2_vl'].positions((2, 2, 2), time_interval={})", "1e308 | 1e17"),
    (ValueError, "start"): ["layouts['qwen2_vl'].positions(2, start=2**53)"],
    (ValueError, "past"): [
        *each(QWEN, "[[0]], past=2**54, delta=0 | [[0, 0]], past=2**53, delta=0 | [[0]], past=[1, 2], delta=0"),
        *each(QWEN, "[[0]], past=-1, delta=2 | [[0]], delta=2"),
        "layouts['hunyuan_vl'].position_ids([[1, 1]], image_grid_thw=[[1, 2, 2]], past=1, delta=0)",
        "layouts['hunyuan_vl'].position_ids([[2, 2]], video_grid_thw=[[1, 2, 2]], past=1, delta=0)",
    ],
    (TypeError, "past"): [QWEN.format("[[0]], past=1.5, delta=0")],
    (ValueError, "delta"): each(QWEN, "[[0]], past=1, delta=-2 | [[0]], past=1 | [[0]], past=1, delta=[[1, 2]]"),
    # Parts of a config, other models and misspelt keys would leave the defaults in silence.
    (ValueError, "config"): [
        *each(
            "layouts['{}'].position_ids([[2]], video_grid_thw=[[1, 2, 2]], second_per_grid=1)",
            "qwen2_5_vl | qwen2_5_omni",
        ),
        *each(QWEN, "[[0]], config={'model_type': 'qwen2_5_vl'} | [[0]], config={'spatial_merge_size': 2}"),
        *each(
            "layouts['qwen2_5_vl'].position_ids([[0]], config={})",
            "{'tokens_per_second': 2} | {'model_type': 'qwen2_5_vl_text'} | {'vision_configs': {}} | "
            "{'vision_config': {'token_per_second': 2}}",
        ),
        "layouts['qwen2_5_omni'].position_ids([[0]], config={'thinker_config': {'position_id_per_second': 2}})",
        *each(
            "layouts['qwen2_vl'].token_types([[0]], {})",
            "{} | {'model_type': 'glm4v', 'image_token_id': 1} | {'model_type': 'llama', 'image_token_id': 1}",
        ),
        "layouts['glm4v'].token_types([[0]], {'image_token_id': 1})",  # its frames have the tokens of images
        "layouts['minicpmv4_7'].token_types([[0]], {'image_token_id': 1})",
    ],
    (TypeError, "input_ids"): ["layouts['qwen2_vl'].token_types([['a']], {'image_token_id': 1})"],
    (TypeError, "vision_config"): each(
        QWEN, "[[0]], config={'vision_config': None} | [[0]], config={'vision_config': 3}"
    ),
    (ValueError, "downsample_mode"): ["layouts['minicpmv4_7'].position_ids([[0]], config={'downsample_mode': '8x'})"],
    (ValueError, "vision_config.spatial_merge_size"): [
        QWEN.format("[[0]], config={'vision_config': {'spatial_merge_size': 0}}")
    ],
    (ValueError, "ids"): ["layouts['flux'].position_ids([[0]])"],
    (ValueError, "segments"): ["layouts['qwen2_5_omni'].positions(1)"],
    (ValueError, "layout"): [
        "fastpe.RotaryEmbedding.from_layout(layouts['hunyuan_vl'], 128)",
        "layouts['flux'].windows([[1, 2, 2]], window=2)",
    ],
    (ValueError, "grid_thw[1]"): ["vision.windows([[1, 2, 2], [1, 3, 2]], window=2)"],
    (ValueError, "grid_thw"): ["vision.windows([1, 2, 2], window=2)"],
    (ValueError, "window"): ["vision.windows([[1, 2, 2]], window=0)"],
    (KeyError, "qwen2_vl_vision"): ["layouts['paddleocr_vl_vision']"],
}


@pytest.mark.parametrize(("call", "error", "arguments"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], arguments: str) -> None:
    names = {"layouts": LAYOUTS, "vision": LAYOUTS["qwen2_vl_vision"], "np": np, "fastpe": fastpe}
    check_refused(call, error, arguments, names)
