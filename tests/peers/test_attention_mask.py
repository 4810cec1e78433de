# SPDX-License-Identifier: BSD-3-Clause
"""Masks of attention beside the functions of transformers, on random lengths, paddings and pasts.

What is compared are the calls that the report of a config prints.

Run it with ``pytest -m peers tests/peers/test_attention_mask.py``.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._config.file import table
from fastpe._config.report import report

from . import test_rotary_layers as tiny

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
masking_utils: Any = pytest.importorskip("transformers.masking_utils")

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

RANDOM = np.random.default_rng(11)
TRIALS = 40
LAYERS = 6


def config(kind: str, **numbers: Any) -> Any:
    made = getattr(transformers, kind)(num_hidden_layers=LAYERS, **numbers)
    made._attn_implementation = "eager"
    return made


def cache_of(past: int, batch: int) -> Any:
    """A cache of this many keys."""
    cache = transformers.DynamicCache()
    if past:
        keys = torch.zeros(batch, 1, past, 4)
        cache.update(keys, keys, 0)
    return cache


def batches() -> list[tuple[int, int, Any]]:
    """Lengths, pasts, and masks of tokenizers with padding on either side."""
    made = []
    for _ in range(TRIALS):
        length, past = int(RANDOM.integers(1, 24)), int(RANDOM.integers(1, 20)) * int(RANDOM.integers(2))
        padding = RANDOM.integers(0, past + length, (3, 1))
        valid = np.arange(past + length) >= padding
        made.append((length, past, valid[:, ::-1].copy() if not past and RANDOM.random() < 0.3 else valid))
    return made


def layers_in(says: str, count: int) -> list[int]:
    """The numbers of the layers that the report names."""
    if says.startswith("all layers"):
        return [*range(count)]
    words = says.partition(":")[0].partition(" ")[2].split(", ")
    if words[-1].startswith(".. "):
        return [*range(int(words[0]), int(words[-1][3:]) + 1, int(words[1]) - int(words[0]))]
    bounds = ([*map(int, word.split("-"))] for word in words)
    return [at for ends in bounds for at in range(ends[0], ends[-1] + 1)]


def printed(file: dict[str, Any], count: int, part: str = "", **names: Any) -> dict[int, Any]:
    """The mask of each layer, by the calls that the report prints."""
    made: dict[int, Any] = {}
    scope = {"fastpe": fastpe, "np": np, **names}
    found = report(fastpe.ModelConfig(file))
    needs = [need for need in found.needs if need.need == "mask" and part in ("", need.part)]
    assert needs, found.not_known
    for need in needs:
        for call in need.calls:
            exec(call, scope)  # noqa: S102
        made |= dict.fromkeys(layers_in(need.says, count), scope["mask"])
    return made


def assert_hides(found: Any, expected: Any) -> None:
    """Whether they hide the same keys."""
    assert np.array_equal(found, np.broadcast_to(expected == 0, found.shape))


@pytest.mark.parametrize(
    ("kind", "function", "layer", "keys"),
    [
        ("LlamaConfig", "create_causal_mask", 0, {}),
        ("MistralConfig", "create_sliding_window_causal_mask", 0, {"sliding_window": 6}),
        ("MistralConfig", "create_causal_mask", 0, {"sliding_window": None}),
        ("Gemma3TextConfig", "create_causal_mask", 5, {"sliding_window": 5}),
        ("Gemma3TextConfig", "create_sliding_window_causal_mask", 0, {"sliding_window": 5}),
        ("Llama4TextConfig", "create_chunked_causal_mask", 0, {"attention_chunk_size": 7}),
        ("Llama4TextConfig", "create_causal_mask", 3, {"attention_chunk_size": 7}),
    ],
)
def test_of_a_layer(kind: str, function: str, layer: int, keys: dict[str, Any]) -> None:
    model = config(kind, **keys)
    for length, past, valid in batches():
        expected = getattr(masking_utils, function)(
            config=model,
            inputs_embeds=torch.zeros(len(valid), length, 8),
            attention_mask=torch.from_numpy(valid.astype(np.int64)),
            cache=cache_of(past, len(valid)),
        )
        found = printed(model.to_dict(), LAYERS, queries=length, cached=past, valid=valid)[layer]
        assert_hides(found, expected.numpy())
        added = np.where(found, np.float32(0), np.finfo(np.float32).min)
        assert np.array_equal(added, expected.numpy()), (length, past)


def test_images_of_gemma_3() -> None:
    module: Any = pytest.importorskip("transformers.models.gemma3.modeling_gemma3")
    model = config("Gemma3TextConfig", sliding_window=5)
    whole = {"model_type": "gemma3", "image_token_index": 9, "text_config": model.to_dict(), "vision_config": {}}
    for length, _, _ in batches():
        is_image = RANDOM.integers(0, 2, (3, length)).repeat(3, axis=1)[:, :length]
        blocks = module.get_block_sequence_ids_for_mask(torch.from_numpy(is_image))
        valid = np.arange(length) >= RANDOM.integers(0, length, (3, 1))
        expected = module.create_masks_for_vision_model(
            model, torch.zeros(3, length, 8), torch.from_numpy(valid.astype(np.int64)), None, None, blocks
        )
        so_far = np.where(is_image, 9, RANDOM.integers(10, 99, (3, length)))
        found = printed(whole, LAYERS, queries=length, cached=0, valid=valid, so_far=so_far)
        for layer, kind in enumerate(model.layer_types):
            assert_hides(found[layer], expected[kind].numpy())


def test_an_encoder_of_gemma_3() -> None:
    """|q - k| < sliding_window there: one less than the window here."""
    module: Any = pytest.importorskip("transformers.models.gemma3.modeling_gemma3")
    overlay = module._bidirectional_window_overlay(5)
    place = np.arange(20)
    expected = overlay(0, 0, place[:, None], place)
    assert np.array_equal(fastpe.attention_mask(20, causal=False, window=4), expected)


def test_bidirectional_windows() -> None:
    place = np.arange(20)
    expected = masking_utils.sliding_window_bidirectional_overlay(5)(0, 0, place[:, None], place)
    assert np.array_equal(fastpe.attention_mask(20, causal=False, window=5), expected)


@pytest.mark.parametrize("model", ["qwen2_vl", "qwen2_5_vl"])
def test_the_encoder_of_qwen_vl(model: str) -> None:
    """Its eager path takes sequences apart by the boundaries that a block is given: with the mask, all at once is the same."""
    module: Any = pytest.importorskip(f"transformers.models.{model}.modeling_{model}")
    kind = {"qwen2_vl": transformers.Qwen2VLConfig, "qwen2_5_vl": transformers.Qwen2_5_VLConfig}[model]
    sizes = {"embed_dim": 32, "hidden_size": 32, "num_heads": 2, "intermediate_size": 8, "out_hidden_size": 16}
    text = {"hidden_size": 256, "num_attention_heads": 2}
    vision = kind(vision_config={**sizes, "depth": 4, "fullatt_block_indexes": [1, 3]}).vision_config
    vision._attn_implementation = "eager"
    encoder = next(each for name, each in vars(module).items() if name.endswith("VisionTransformerPretrainedModel"))
    torch.manual_seed(0)
    tower = encoder(vision).eval()
    seen: list[tuple[Any, Any, Any]] = []

    def watch(block: Any, arguments: Any, given: Any, result: Any) -> None:
        seen.append((block, arguments[0] if arguments else given["hidden_states"], given["cu_seqlens"]))

    for block in tower.blocks:
        block.attn.register_forward_hook(watch, with_kwargs=True)
    for _ in range(4):
        seen.clear()
        grid_thw = np.stack([RANDOM.integers(1, 3, 2), *(2 * RANDOM.integers(1, 9, (2, 2)))], axis=-1)
        rows = int(grid_thw.prod(axis=-1).sum())
        with torch.no_grad():
            tower(torch.randn(rows, 3 * 2 * 14 * 14), grid_thw=torch.from_numpy(grid_thw))
        file = {"model_type": model, "text_config": text, "vision_config": vision.to_dict()}
        inputs = fastpe.vision_inputs(file, grid_thw=grid_thw)
        masks = printed_of_encoder(file, inputs)
        assert len(seen) == 4
        for layer, (block, hidden, cu_seqlens) in enumerate(seen[:]):
            mask = masks[model == "qwen2_5_vl" and layer not in (1, 3)]
            turn = (torch.ones(rows, 16), torch.zeros(rows, 16))
            with torch.no_grad():
                expected = block(hidden, cu_seqlens=cu_seqlens, position_embeddings=turn)
                q, k, v = block.qkv(hidden).reshape(rows, 3, 2, 16).permute(1, 2, 0, 3)
                scores = (q @ k.mT / 16**0.5).masked_fill(~torch.from_numpy(mask), -torch.inf)
                found = block.proj((scores.softmax(-1) @ v).transpose(0, 1).reshape(rows, 32))
            assert torch.allclose(found, expected, atol=1e-5)


def printed_of_encoder(file: dict[str, Any], inputs: dict[str, Any]) -> list[Any]:
    """The masks of layers that see whole images, and of the others."""
    made: list[Any] = []
    for need in report(fastpe.ModelConfig(file)).needs:
        if (need.part, need.need) == ("images", "mask"):
            scope: dict[str, Any] = {"fastpe": fastpe, "inputs": inputs}
            exec(need.calls[0], scope)  # noqa: S102
            assert need.says.startswith(("layers 1, 3:", "the other layers:")[len(made)]) or "all layers" in need.says
            made.append(scope["mask"])
    return made


MASKS = table()["masks"]
DECODERS = [name for rule in ("full", "encoder", "layer_types", "window", "use_sliding_window") for name in MASKS[rule]]
CASES: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in DECODERS if name not in tiny.NOT_RUN]
CASES += [(name, given) for name, given in tiny.GIVEN if name in DECODERS]
CASES += [(name, {"sliding_window": None}) for name in MASKS["window"] if name != "ministral"]
CASES += [
    (name, {"use_sliding_window": True, **({"max_window_layers": 3} if first else {})})
    for name, (_, first) in MASKS["use_sliding_window"].items()
    if first is not None
]
QUICK = ("llama", "mistral", "gemma3_text", "llama4_text", "qwen2", "qwen3_5_text", "eurobert", "smollm3")


def masks_of_a_model(config: Any, valid: Any) -> dict[int, Any]:
    """What each layer is given as its mask."""
    config._attn_implementation = "eager"
    ids = torch.arange(valid.shape[1])[None].repeat(len(valid), 1) + 3
    failed: Exception | None = None
    for _, kind in tiny.candidates(config):
        found: dict[int, Any] = {}

        def watch(layer: Any, arguments: Any, given: Any, at: int, found: dict[int, Any] = found) -> None:
            tensors = [each for each in (given.get("attention_mask"), *arguments[1:]) if torch.is_tensor(each)]
            found[at] = next((each for each in tensors if each.ndim == 4), None)

        try:
            model = kind(config).eval()
            lists = [each for each in model.modules() if isinstance(each, torch.nn.ModuleList)]
            for at, layer in enumerate(next(each for each in lists if len(each) == tiny.LAYERS)):
                layer.register_forward_pre_hook(
                    lambda *given, at=at, watch=watch: watch(*given, at=at), with_kwargs=True
                )
            mask = torch.from_numpy(valid.astype(np.int64))
            with torch.no_grad():
                try:
                    model(ids, attention_mask=mask, use_cache=False)
                except (TypeError, AttributeError, IndexError):
                    hidden = torch.randn(*ids.shape, config.hidden_size)
                    model(inputs_embeds=hidden, attention_mask=mask, use_cache=False)
        except Exception as error:  # noqa: BLE001  # models refuse in many ways what is not for them
            failed = error
        else:
            return found
    raise failed or LookupError("no model takes this configuration")


@pytest.mark.parametrize(
    ("model_type", "given"),
    [pytest.param(*case, marks=[] if case[1] or case[0] in QUICK else pytest.mark.slow) for case in CASES],
    ids=[f"{name}-{','.join(given)}" for name, given in CASES],
)
def test_each_layer_of_a_model(model_type: str, given: dict[str, Any]) -> None:
    """The masks that each layer of a tiny model is given, and those of the calls that the report of its file prints."""
    made, written = tiny.configured(model_type, given)
    saved = [json.loads(made.to_json_string(use_diff=use_diff)) for use_diff in (True, False)]
    valid = np.arange(tiny.LENGTH) >= np.array([[3], [0]])
    theirs = masks_of_a_model(made, valid)
    for file in (written, *saved) if model_type not in tiny.NOT_SAVED else (written,):
        masks = printed({**file, "model_type": model_type}, tiny.LAYERS, queries=tiny.LENGTH, cached=0, valid=valid)
        assert {*masks} == {at for at, mask in theirs.items() if mask is not None} != set()
        for at, found in masks.items():
            theirs_hide = theirs[at].numpy()
            assert_hides(found, theirs_hide if theirs_hide.dtype != bool else ~theirs_hide)


@pytest.mark.parametrize(("count", "longest"), [(256, 512), (32, 128), (50, 600), (8, 512)])
def test_debertas_buckets(count: int, longest: int) -> None:
    module: Any = pytest.importorskip("transformers.models.deberta_v2.modeling_deberta_v2")
    distances = np.arange(-(10**4), 10**4 + 1)
    expected = module.make_log_bucket_position(torch.from_numpy(distances), count, longest).long()
    assert np.array_equal(fastpe.deberta_buckets(distances, num_buckets=count, max_position=longest), expected)
    # sew_d has a copy of it.
    sew_d: Any = pytest.importorskip("transformers.models.sew_d.modeling_sew_d")
    query, key = np.ogrid[:40, :50]
    expected = sew_d.build_relative_position(40, 50, bucket_size=count, max_position=longest, device="cpu")[0]
    found = fastpe.deberta_buckets(query - key, num_buckets=count, max_position=longest)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("shape", [(7, 7), (3, 5), (1, 4)])
def test_windows_of_swin(shape: tuple[int, int]) -> None:
    swin: Any = pytest.importorskip("transformers.models.swin.modeling_swin")
    swinv2: Any = pytest.importorskip("transformers.models.swinv2.modeling_swinv2")
    module = SimpleNamespace(window_size=shape)
    expected = swin.SwinRelativePositionBias._create_relative_position_index(module)
    assert np.array_equal(fastpe.window_relative_index(shape), expected)
    for pretrained in (None, (12, 6)):
        own = swinv2.Swinv2SelfAttention(transformers.Swinv2Config(), 16, 2, shape, pretrained or (0, 0))
        coordinates, index = own.create_coords_table_and_index()
        found = fastpe.window_relative_coordinates(shape, pretrained_shape=pretrained)
        if 1 not in shape or pretrained:  # transformers divides 0 by 0 there
            assert np.abs(found - coordinates[0].numpy()).max() < 1e-6
        assert np.array_equal(fastpe.window_relative_index(shape), index)
