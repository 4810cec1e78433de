# SPDX-License-Identifier: BSD-3-Clause
"""Programs of examples/ beside the models of transformers and diffusers that they are for.

Run it with ``pytest -m peers tests/peers/test_examples.py``.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from ..oracles.examples import example

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize(("name", "kind"), [("SMOLLM3", "SmolLM3"), ("GEMMA3", "Gemma3Text")])
def test_a_decode_loop_has_the_logits_of_the_model(name: str, kind: str) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    program = example("masked_decoder")
    config = getattr(program, name)
    made = getattr(transformers, f"{kind}Config")(**config, tie_word_embeddings=False, pad_token_id=0)
    made._attn_implementation = "eager"
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind.removesuffix('Text')}ForCausalLM")(made).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    ids = np.random.default_rng(1).integers(1, config["vocab_size"], size=(2, 24))
    valid = (np.arange(24) >= np.array([[7], [0]])).astype(int)
    with torch.no_grad():
        tensors: dict[str, Any] = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(valid)}
        positions = torch.from_numpy(np.maximum(valid.cumsum(axis=1) - 1, 0))
        expected = model(**tensors, position_ids=positions, use_cache=False).logits.numpy()
    found = program.decoded(config, weights, ids, valid, prompt=16)
    assert np.abs(found - expected)[valid == 1].max() < 1e-4 * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize(("name", "prefix"), [("QWEN2_5_VL", "Qwen2_5_VL"), ("QWEN3_5", "Qwen3_5")])
def test_printed_calls_give_what_the_model_computes(name: str, prefix: str) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    program = example("calls_of_a_config")
    config = getattr(program, name)
    module = importlib.import_module(f"transformers.models.{config['model_type']}.modeling_{config['model_type']}")
    made = getattr(transformers, f"{prefix}Config")(**config)
    with torch.device("meta"):
        model = getattr(module, f"{prefix}Model")(made)
    ids, grid = torch.from_numpy(program.PROMPT), torch.from_numpy(program.GRID)
    expected, deltas = model.get_rope_index(ids, (ids == config["image_token_id"]).int(), grid)
    ours = program.Model(config)
    np.testing.assert_array_equal(ours.position_ids, expected)
    assert (ours.next_ids == ids.shape[1] + int(deltas)).all()
    rotary = next(
        each for key, each in vars(module).items() if key.endswith(("VLRotaryEmbedding", "TextRotaryEmbedding"))
    )
    cos, sin = rotary(made.get_text_config())(torch.zeros(1), expected)
    for own, other in zip(ours.tables(), (cos, sin), strict=True):
        np.testing.assert_allclose(own, other[..., : own.shape[-1]], rtol=0, atol=1e-6)


def test_printed_calls_of_cosmos() -> None:
    torch, program = pytest.importorskip("torch"), example("calls_of_a_config")
    module = pytest.importorskip("diffusers.models.transformers.transformer_cosmos")
    width, scale = program.COSMOS["attention_head_dim"], program.COSMOS["rope_scale"]
    expected = module.CosmosRotaryPosEmbed(width, rope_scale=scale)(torch.zeros(1, 4, 3, 8, 12), fps=16)
    host = program.Host(program.COSMOS, frames=3, H=4, W=6, fps=16)
    (rope,), (position_ids,) = host.get("rope", "model", "rotates"), host.get("position_ids", "model", "ids")
    tables = rope.tables(position_ids, form=rope.form)
    for own, other in zip(tables, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=1e-5)
