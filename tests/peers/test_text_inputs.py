# SPDX-License-Identifier: BSD-3-Clause
"""`text_inputs` against every `get_rope_index` of transformers, on random prompts."""

from __future__ import annotations

import importlib
import types
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._graph.model import graphs, text_model
from fastpe._graph.tokens import SpecialTokens

from ..oracles.graph_peers import IMAGES_ONLY, Prompt, drawn, folders_with, peer, rope_index

pytestmark = pytest.mark.peers

PROMPTS = 40
FOLDERS = folders_with(r"def get_rope_index\b")


def test_every_folder_has_a_rule() -> None:
    rows = {name for name, kinds in graphs().items() if "text" in kinds}
    assert sorted(rows - {"glmga"}) == FOLDERS  # which has the class of glm46v


def kinds(folder: str, tokens: Any) -> Any:
    """0 text, 1 image, 2 video, 3 audio, and more for marks of MiniCPM-V."""
    model = text_model(fastpe.ModelConfig(peer(folder).config.to_dict()))
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
