# SPDX-License-Identifier: BSD-3-Clause
"""`text_inputs` against every `get_rope_index` of transformers, on random prompts."""

from __future__ import annotations

import functools
import importlib
import inspect
import pathlib
import re
import types
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastpe
from fastpe._graph.model import models, text_model
from fastpe._graph.tokens import SpecialTokens

pytestmark = pytest.mark.peers

PROMPTS = 40
OMNI = ("qwen2_5_omni", "qwen3_omni_moe")
WITH_LINE_ENDS = ("hunyuan_vl", "hy_v4_vl")
IMAGES_ONLY = ("glm_image", "hunyuan_vl")


def folders_with(pattern: str) -> list[str]:
    try:
        folder = pathlib.Path(pytest.importorskip("transformers").__file__).parent / "models"
    except pytest.skip.Exception:
        return []
    files = sorted(folder.glob("*/modeling_*.py"))
    return [file.parent.name for file in files if re.search(pattern, file.read_text("utf-8"))]


FOLDERS = folders_with(r"def get_rope_index\b")


def test_every_folder_has_a_rule() -> None:
    rows = {name for name, kinds in models().items() if "text" in kinds}
    assert sorted(rows - {"glmga"}) == FOLDERS  # which has the class of glm46v


class Peer(NamedTuple):
    """A model without weights, and its config."""

    model: Any
    config: Any


@functools.cache
def peer(folder: str) -> Peer:
    torch = pytest.importorskip("torch")
    module = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
    needed = ("get_rope_index", "compute_3d_position_ids")
    classes = [each for each in vars(module).values() if inspect.isclass(each) and "Talker" not in each.__name__]
    owner: Any = next(each for each in classes if all(hasattr(each, name) for name in needed))
    configuration = importlib.import_module(f"transformers.models.{folder}.configuration_{folder}")
    suffix = "ThinkerConfig" if folder in OMNI else "Config"
    kinds = {each.model_type: each for each in vars(configuration).values() if hasattr(each, "model_type")}
    config = kinds[f"{folder}_thinker" if suffix == "ThinkerConfig" else folder]()
    if folder == "minicpmv4_7":
        names = ("image_token_id", "video_token_id", "image_start_id", "image_end_id", "slice_start_id", "slice_end_id")
        for token, name in enumerate((*names, "newline_id"), start=2000):
            setattr(config, name, token)
    if folder == "hunyuan_vl":
        config.text_config.rope_parameters = {"rope_type": "default", "mrope_section": [16, 16, 16, 16]}
    if folder in OMNI:
        config.vision_start_token_id = 151652  # what the config classes leave to published files
    model = owner.__new__(owner)
    torch.nn.Module.__init__(model)
    model.config, model.rope_deltas, model.spatial_merge_size = config, None, 2
    return Peer(model, config)


class Prompt(NamedTuple):
    tokens: Any
    mask: Any
    grids: dict[str, Any]  # the arguments of text_inputs
    audio: Any
    audio_in_video: bool
    grids_per_row: Any


def text(rng: Any, least: int = 1, most: int = 12) -> list[int]:
    return rng.integers(300, 1000, rng.integers(least, most)).tolist()  # type: ignore[no-any-return]


def audio_length(folder: str, frames: int) -> int:
    if folder == "qwen2_5_omni":
        return ((frames - 1) // 2 + 1 - 2) // 2 + 1
    rest = (frames % 100 - 1) // 2 + 1
    return ((rest - 1) // 2 + 1 - 1) // 2 + 1 + frames // 100 * 13


def interleaved(folder: str, config: Any, grid: Any, seconds: float, length: int) -> list[int]:
    """The tokens of a video and its audio in the order that the model numbers them in."""
    rate, cells = config.position_id_per_seconds, grid[1] * grid[2] // 4
    times = (np.arange(grid[0], dtype=np.float32) * np.float32(seconds) * np.float32(rate)).repeat(cells)
    video = [(time, 0) for time in (times if folder == "qwen3_omni_moe" else times.astype(int))]
    audio = [(time, 1) for time in range(length)]
    if folder == "qwen2_5_omni":
        chunk = int(rate * config.seconds_per_chunk)
        video, audio = ([(time // chunk, kind) for time, kind in each] for each in (video, audio))
    order = sorted(video + audio)
    return [config.audio_token_id if kind else config.video_token_id for _, kind in order]


def minicpm_image(rng: Any, config: Any, token: int, grids: list[Any]) -> list[int]:
    def crop(start: int, stop: int) -> list[int]:
        height, width = 4 * rng.integers(1, 6), 4 * rng.integers(1, 6)
        grids.append((height, width))
        return [start, *[token] * (height * width // 16), stop]

    tokens = crop(config.image_start_id, config.image_end_id)
    rows, columns = rng.integers(0, 4, 2)
    for row in range(rows if columns else 0):
        if row:
            tokens += [config.newline_id] * rng.integers(1, 3)
        for _ in range(columns):
            tokens += crop(config.slice_start_id, config.slice_end_id)
    return tokens


def drawn(folder: str, rng: Any, *, videos: bool = True, padding: str = "") -> Prompt:
    """A batch of prompts with up to 5 images and videos each."""
    config = peer(folder).config
    audio_in_video = folder in OMNI and bool(rng.integers(2))
    grids: dict[str, list[Any]] = {"image": [], "video": []}
    seconds, audio, rows, per_row = [], [], [], []
    for _ in range(rng.integers(1, 9)):
        tokens, images_before = text(rng, 2), len(grids["image"])
        for _ in range(rng.integers(0, 6)):
            kinds = ["image", "video" if videos and folder not in IMAGES_ONLY else "image"]
            kind = rng.choice(kinds + (["audio"] if folder in OMNI else []))
            if kind == "audio":
                audio.append(int(rng.integers(10, 300)))
                length = audio_length(folder, audio[-1])
                tokens += [config.audio_start_token_id, *[config.audio_token_id] * length, 998]
            elif folder == "minicpmv4_7":
                for _ in range(1 if kind == "image" else rng.integers(1, 4)):
                    tokens += minicpm_image(rng, config, getattr(config, f"{kind}_token_id"), grids[kind])
            else:
                times = 1 if kind == "image" else int(rng.integers(1, 6))
                if folder == "ernie4_5_vl_moe" and kind == "video":
                    times *= 2
                height, width = (2 * rng.integers(1, 7, 2)).tolist()
                grids[kind].append((times, height, width))
                token = getattr(config, f"{kind}_token_id")
                if folder == "glm_image":
                    tokens += [config.image_start_token_id, *[token] * (height * width), config.image_end_token_id]
                elif folder in WITH_LINE_ENDS:
                    more = 2 if folder == "hunyuan_vl" and rng.integers(2) else 0
                    tokens += [token] * (times * height // 2 * (width // 2 + 1) + more)
                elif folder in OMNI:
                    inner = [token] * (times * height * width // 4)
                    if kind == "video":
                        unit = rng.integers(1, 4) if folder == "qwen3_omni_moe" else rng.uniform(0.1, 3)
                        seconds.append(float(np.float32(unit)))
                        if audio_in_video:
                            audio.append(int(rng.integers(10, 600)))
                            length = audio_length(folder, audio[-1])
                            inner = interleaved(folder, config, grids[kind][-1], seconds[-1], length)
                            inner = [config.audio_start_token_id, *inner, 998]
                    tokens += [config.vision_start_token_id, *inner, 997]
                elif kind == "video" and models()[folder]["text"].get("grid") == "frames":
                    marks: list[Any] = [getattr(config, f"video_{end}_token_id", None) for end in ("start", "end")]
                    token = config.image_token_id if marks[0] else token
                    frames = [[*text(rng), *[token] * (height * width // 4)] for _ in range(times)]
                    inner = [each for frame in frames for each in frame] + text(rng)
                    tokens += [marks[0], *inner, marks[1]] if marks[0] else inner
                else:
                    cells = times * height * width // 4 // (2 if folder == "ernie4_5_vl_moe" and kind == "video" else 1)
                    tokens += [token] * cells
                    if folder == "qwen2_5_vl" and kind == "video":
                        seconds.append(float(np.float32(rng.uniform(0.1, 3))))
            tokens += text(rng, 2)
        rows.append(tokens)
        per_row.append(len(grids["image"]) - images_before)
    longest = max(map(len, rows)) + (3 if padding else 0)
    batch, mask = np.full((2, len(rows), longest), 999)
    mask[:] = 0
    for row, tokens in enumerate(rows):
        place = slice(longest - len(tokens), None) if padding == "left" else slice(len(tokens))
        batch[row, place], mask[row, place] = tokens, 1
    arguments: dict[str, Any] = {f"{kind}_grid_thw": np.array(each) for kind, each in grids.items() if each}
    if seconds:
        arguments["second_per_grid"] = np.array(seconds)
    return Prompt(batch, mask, arguments, np.array(audio), audio_in_video, np.array(per_row))


def rope_index(folder: str, prompt: Prompt, token_types: Any) -> tuple[Any, Any]:
    """What transformers gives, [coordinates, B, L] and [B]."""
    torch, model = pytest.importorskip("torch"), peer(folder).model
    given = {name: torch.from_numpy(value) for name, value in prompt.grids.items()}
    seconds = given.pop("second_per_grid", None)
    arguments: dict[str, Any] = {"attention_mask": torch.from_numpy(prompt.mask), **given}
    tokens = torch.from_numpy(prompt.tokens)
    if folder in OMNI:
        arguments |= {"use_audio_in_video": prompt.audio_in_video, "audio_seqlens": torch.from_numpy(prompt.audio)}
        arguments["second_per_grids"] = seconds
    elif folder == "glm_image":
        arguments["images_per_sample"] = torch.from_numpy(prompt.grids_per_row)
    else:
        arguments["mm_token_type_ids"] = torch.from_numpy(np.where(token_types > 3, 0, token_types))
    if folder == "minicpmv4_7":
        names = {"image_grid_thw": "target_sizes", "video_grid_thw": "target_sizes_videos"}
        arguments = {names.get(name, name): value for name, value in arguments.items()}
    if folder == "qwen2_5_vl" and seconds is not None:
        arguments["second_per_grid_ts"] = seconds.float()
    ids, delta = (each.numpy() for each in model.get_rope_index(tokens, **arguments))
    if folder in AFTER_THE_LARGEST:
        return as_its_authors(ids, token_types, prompt.mask)
    return ids, delta.reshape(-1)


# Where transformers 5.3 to 5.24 contradicts the models' authors: there, text continues max(height, width) behind the
# start of a video. The authors, and transformers up to 5.2, continue behind the largest coordinate:
# `st_idx = llm_pos_ids_list[-1].max() + 1` in Qwen's code (huggingface/transformers#32318 and #35569, by its authors) and
# in vLLM, PaddleNLP and the code of PaddleOCR-VL; `cur_position = np.max(pos_ids) + 1` in PaddlePaddle's for ERNIE.
AFTER_THE_LARGEST = ("ernie4_5_vl_moe", "paddleocr_vl", "qwen2_5_vl", "qwen2_vl")


def as_its_authors(ids: Any, token_types: Any, mask: Any) -> tuple[Any, Any]:
    """Ids and deltas in which each run of tokens continues behind the largest coordinate before it."""
    ids, deltas = ids.copy(), np.zeros(len(mask), int)
    for row, (types_of_row, valid) in enumerate(zip(token_types, mask.astype(bool), strict=True)):
        end, here = 0, np.flatnonzero(valid)
        for run in np.split(here, np.flatnonzero(np.diff(types_of_row[here])) + 1):
            ids[:, row, run] += end - ids[0, row, run[0]]
            end = ids[:, row, run].max() + 1
        deltas[row] = end - len(here)
    return ids, deltas


def kinds(folder: str, tokens: Any) -> Any:
    """0 text, 1 image, 2 video, 3 audio, and more for marks of MiniCPM-V."""
    model = text_model(peer(folder).config.to_dict())
    assert model is not None
    return SpecialTokens(model).kinds_of(tokens)


def numbered(folder: str, tokens: Any, **given: Any) -> tuple[Any, Any]:
    inputs = fastpe.text_inputs(peer(folder).config.to_dict(), tokens, **given)
    assert inputs["rope_deltas"].shape == (len(tokens), 1)
    return inputs["position_ids"], inputs["rope_deltas"][:, 0]


def ours(folder: str, prompt: Prompt) -> tuple[Any, Any, Any]:
    ids, delta = numbered(folder, prompt.tokens, attention_mask=prompt.mask, **prompt.grids)
    return ids, delta, kinds(folder, prompt.tokens)


@pytest.mark.parametrize("folder", FOLDERS)
def test_random_prompts(folder: str) -> None:
    rng = np.random.default_rng(7)
    with_grids = 0
    for number in range(PROMPTS):
        prompt = drawn(folder, rng, padding=("", "left", "right")[number % 3])
        ids, delta, token_types = ours(folder, prompt)
        expected, expected_delta = rope_index(folder, prompt, token_types)
        np.testing.assert_array_equal(ids, expected)
        assert ids.dtype == np.int64
        if folder != "glm_image":  # whose delta is always 0 and not read
            np.testing.assert_array_equal(delta, expected_delta)
        with_grids += bool(prompt.grids)
    assert with_grids > PROMPTS // 2


@pytest.mark.parametrize("folder", [each for each in FOLDERS if each not in IMAGES_ONLY])
def test_decoding_after_a_padded_batch_with_images(folder: str) -> None:
    """50 tokens, one at a time and all at once, by the model's own deltas and as `generate` goes on."""
    torch, model = pytest.importorskip("torch"), peer(folder).model
    mixin = importlib.import_module("transformers.generation.utils").GenerationMixin
    prompt = drawn(folder, np.random.default_rng(3), videos=False, padding="left")
    ids, delta, token_types = ours(folder, prompt)
    model.rope_deltas = torch.from_numpy(rope_index(folder, prompt, token_types)[1])[:, None].long()
    batch, length = prompt.mask.shape
    past = prompt.mask.sum(axis=1)
    at_once, _ = numbered(folder, np.full((batch, 50), 500), past=past, rope_deltas=delta)
    state = {"position_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(prompt.mask)}
    generator = types.SimpleNamespace(config=types.SimpleNamespace(is_encoder_decoder=False))
    for step in range(50):
        state = mixin._update_model_kwargs_for_generation(generator, {}, state, num_new_tokens=1)
        by_delta = model.compute_3d_position_ids(
            input_ids=None,
            **({} if folder == "minicpmv4_7" else {"image_grid_thw": None, "video_grid_thw": None}),
            inputs_embeds=torch.zeros(batch, 1, 1),
            attention_mask=state["attention_mask"],
            cache=types.SimpleNamespace(get_seq_length=lambda: length + step),  # noqa: B023
        )
        one, _ = numbered(folder, np.full((batch, 1), 500), past=past + step, rope_deltas=delta)
        np.testing.assert_array_equal(one[..., 0], by_delta[..., -1])
        np.testing.assert_array_equal(one[..., 0], at_once[..., step])
        np.testing.assert_array_equal(one[..., 0], state["position_ids"][..., -1])


@pytest.mark.parametrize("folder", ["ernie4_5_vl_moe", "qwen2_5_vl", "qwen2_vl"])
def test_turns_are_the_whole_conversation(folder: str) -> None:
    rng = np.random.default_rng(17)
    turns = 0
    for prompt in (drawn(folder, rng) for _ in range(PROMPTS * 4)):
        if len(prompt.tokens) > 1:
            continue
        row = ours(folder, prompt)[2]
        expected, _ = rope_index(folder, prompt, row)
        starts = np.flatnonzero(np.diff(row[0], prepend=0))
        for cut in np.flatnonzero((row[0, 1:] == 0) & (row[0, :-1] == 0)) + 1:
            counts = {"image_grid_thw": np.sum(row[0, starts[starts < cut]] == 1)}
            counts["video_grid_thw"] = counts["second_per_grid"] = np.sum(row[0, starts[starts < cut]] == 2)
            before = {name: each[: counts[name]] for name, each in prompt.grids.items()}
            after = {name: each[counts[name] :] for name, each in prompt.grids.items()}
            _, delta = numbered(folder, prompt.tokens[:, :cut], **before)
            more, _ = numbered(folder, prompt.tokens[:, cut:], past=cut, rope_deltas=delta, **after)
            np.testing.assert_array_equal(more, expected[:, :, cut:])
            turns += 1
    assert turns > 0


def test_images_that_glm_image_generates() -> None:
    """The rest of a row's grids are those of images to come, the last one first, and one token follows."""
    torch, model = pytest.importorskip("torch"), peer("glm_image").model
    rng = np.random.default_rng(5)
    for _ in range(10):
        prompt = drawn("glm_image", rng)
        tokens = prompt.tokens[:1, : prompt.mask[0].sum()]
        here = prompt.grids.get("image_grid_thw", np.zeros((0, 3), int))[: prompt.grids_per_row[0]]
        coming = np.array([[1, 4, 6], [1, 3, 2]])
        arguments = {"image_grid_thw": torch.from_numpy(np.concatenate([here, coming]))}
        model.get_rope_index(torch.from_numpy(tokens), images_per_sample=torch.tensor([len(here) + 2]), **arguments)
        image = np.full((1, 6 + 24), peer("glm_image").config.image_token_id)
        whole = np.concatenate([tokens, image, [[500]]], axis=1)
        ids, _ = numbered("glm_image", whole, image_grid_thw=np.concatenate([here, coming[::-1]]))
        np.testing.assert_array_equal(ids[:, 0, tokens.shape[1] :], model._cached_decode_position_ids[0])
