# SPDX-License-Identifier: BSD-3-Clause
"""What print(ModelConfig(..)) and `fastpe model` say: each call that they name runs as it is written."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._config.file import table
from fastpe._config.masks import masks_of
from fastpe._config.report import report

DATA = json.loads((pathlib.Path(__file__).parents[1] / "data" / "rotary_configs.json").read_text("utf-8"))["models"]
SIZES: dict[str, Any] = {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 12}
VISION: dict[str, Any] = {"hidden_size": 320, "num_heads": 4, "patch_size": 14}
TOKENS = {"image_token_id": 9, "video_token_id": 8, "vision_start_token_id": 7, "vision_end_token_id": 6}
YARN = {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "mscale": 1.0, "mscale_all_dim": 1.0}


def among_images(model_type: str, **more: Any) -> dict[str, Any]:
    text = {**SIZES, "num_attention_heads": 2, **more}
    return {"model_type": model_type, **TOKENS, "text_config": text, "vision_config": {**VISION}}


OMNI = {
    "model_type": "qwen2_5_omni",
    "thinker_config": {"audio_token_index": 3, "image_token_index": 2, "text_config": {**SIZES, "num_attention_heads": 2},
        "vision_config": VISION, "audio_config": {"d_model": 64}},
    "talker_config": {"model_type": "qwen2_5_omni_talker", "head_dim": 128},
    "token2wav_config": {"dit_config": {"model_type": "qwen2_5_omni_dit"}},
}  # fmt: skip

# A config, and the needs of each of its parts.
MODELS: list[tuple[dict[str, Any], str]] = [
    # Rotated
    ({"model_type": "llama", **SIZES}, "model: ids mask rotates tables"),
    ({"model_type": "qwen3", **SIZES}, "model: ids mask rotates tables"),
    ({"model_type": "mistral", **SIZES}, "model: ids mask rotates tables"),
    ({"model_type": "nanochat", **SIZES}, "model: ids mask rotates tables"),
    ({"model_type": "gptj", "n_layer": 4}, "model: ids mask rotates tables"),
    ({"model_type": "cohere2", **SIZES}, "model: ids layers mask rotates tables"),
    ({"model_type": "gemma3_text", **SIZES}, "model: ids mask rotates tables"),
    ({"model_type": "qwen3_next", **SIZES}, "model: ids layers mask rotates tables"),
    ({"model_type": "smollm3", **SIZES}, "model: ids layers mask rotates tables"),
    ({"model_type": "deepseek_v3", "num_hidden_layers": 4, "rope_scaling": YARN}, "model: ids mask order rotates scores tables"),
    ({"model_type": "llama4_text", **SIZES}, "model: ids layers mask rotates scores tables"),
    ({"model_type": "phi3", **SIZES, "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 32, "long_factor": [2.0] *
        32}, "original_max_position_embeddings": 4096}, "model: ids mask rotates tables"),
    ({"model_type": "gpt_oss", "num_hidden_layers": 4}, "model: ids mask rotates tables"),
    ({"model_type": "modernbert", **SIZES}, "model: ids rotates tables"),
    ({"model_type": "t5gemma", "decoder": {"num_hidden_layers": 2}, "encoder": {"model_type": "t5_gemma_module"}},
        "encoder: rotates tables, text: rotates tables"),
    ({"model_type": "dia", "decoder_config": {"num_hidden_layers": 2}, "encoder_config": {"model_type": "dia_encoder"}},
        "encoder_config: mask rotates tables, text: rotates tables"),
    # Among images
    (among_images("qwen2_5_vl"), "images: inputs order rotates, text: ids mask rotates"),
    (among_images("qwen3_vl", head_dim=128), "images: inputs mask rotates, text: ids mask rotates"),
    ({"model_type": "colqwen2", "vlm_config": among_images("qwen2_vl")}, "images: inputs mask rotates, text: ids mask rotates"),
    ({"model_type": "gemma3", "image_token_index": 52, "text_config": SIZES, "vision_config": {"model_type": "siglip_vision_model"}},
        "images: adds, text: ids mask rotates tables"),
    ({"model_type": "llava", "text_config": SIZES, "vision_config": {"model_type": "clip_vision_model"}},
        "images: adds, text: ids mask rotates tables"),
    ({"model_type": "mistral3", "text_config": SIZES, "vision_config": {"model_type": "pixtral", "head_dim": 64}},
        "images: rotates, text: ids mask rotates tables"),
    ({"model_type": "pixtral", "head_dim": 64}, "images: rotates"),
    ({"model_type": "qwen2_5_vl", **VISION}, "images: inputs order rotates"),
    ({"model_type": "minicpmv4_6", "vision_config": {}}, "images: inputs"),
    ({"model_type": "dinov3_vit", "hidden_size": 384, "num_attention_heads": 6}, "images: rotates"),
    # Sound
    (OMNI, "images: inputs order rotates, sound: adds inputs, talker_config: rotates, text: ids mask rotates, token2wav_config.dit_config: order rotates tables"),
    ({"model_type": "qwen3_asr", "text_config": SIZES, "audio_config": {"d_model": 64}}, "sound: adds inputs, text: ids mask rotates tables"),
    ({"model_type": "whisper"}, "model: adds"),
    ({"model_type": "wav2vec2-conformer", "position_embeddings_type": "rotary"}, "model: rotates tables"),
    ({"model_type": "wav2vec2-conformer", "position_embeddings_type": "relative", "hidden_size": 64}, "model: adds"),
    # Sinusoidal, learned, biased, not rotated
    *(({"model_type": name}, "model: adds") for name in ("m2m_100", "marian", "fsmt", "speech_to_text", "bart", "bloom", "t5",
        "mpt", "xlnet", "vit_mae", "detr", "sam_prompt_encoder")),
    *(({"model_type": name}, "model: adds ids") for name in ("bert", "gpt2", "roberta", "opt", "mpnet", "deberta")),
    ({"model_type": "deberta-v2", "position_biased_input": False}, "model: adds ids"),
    ({"model_type": "deberta-v2", "position_biased_input": False, "position_buckets": 256, "max_relative_positions": -1},
        "model: adds ids"),
    ({"model_type": "musicgen", "decoder": {}}, "text: adds"),
    ({"model_type": "mamba"}, "model: positions"),
    ({"model_type": "vision-encoder-decoder", "encoder": {"model_type": "vit"}, "decoder": {"model_type": "trocr",
        "use_learned_position_embeddings": False}}, "encoder: positions, text: adds"),
    # diffusers
    ({"_class_name": "FluxTransformer2DModel", "attention_head_dim": 128, "axes_dims_rope": [16, 56, 56]},
        "model: ids rotates"),
    *(({"_class_name": name}, "model: ids rotates") for name in ("WanTransformer3DModel", "CogView4Transformer2DModel",
        "ZImageTransformer2DModel", "Lumina2Transformer2DModel")),
    # Not known
    ({"model_type": "unheard_of", **SIZES}, ""),
    ({"model_type": "baichuan"}, ""),
    ({"_class_name": "MochiTransformer3DModel"}, ""),
    ({"model": {"type": "phi3", "decoder": {"head_size": 96}}, "search": {}}, ""),
    ({"weight_map": {}}, ""),
]  # fmt: skip


def names(config: fastpe.ModelConfig) -> dict[str, Any]:
    """What a host has that the calls name."""
    x, empty = np.zeros((1, 4, 64), np.float32), np.zeros((0, 3), np.int64)
    ids = np.array([[51, 52, 53, 54]])
    grids = {"image_grid_thw": empty, "video_grid_thw": empty, "second_per_grid": [], "grid_thw": [[1, 16, 16]]}
    rows = {"L": 4, "H": 4, "W": 4, "d": 64, "klen": 4, "qlen": 4, "num_heads": 8, "pad_token_id": 1, "hidden_size": 64}
    return {
        "fastpe": fastpe,
        "np": np,
        "config": config,
        "x": x,
        "table": np.zeros((16, 64), np.float32),
        "ids": ids,
        "input_ids": ids,
        "so_far": ids,
        "text_tokens": 32,
        "frames": 1,
        "fps": 16,
        "rope_axes_dim": [16, 16],
        "attention_mask": ids > 0,
        "positions": 4,
        "seq_len": 4096,
        "merge_sizes": [2],
        **rows,
        **grids,
        "feature_lens": [100],
        "target_sizes": [[16, 16]],
        "past": 4,
        "cached": 0,
        "queries": 4,
        "valid": np.ones((1, 4), bool),
        "rope_deltas": [[0]],
        "d_model": 64,
        "pixel_mask": np.ones((1, 4, 4), bool),
        "points": np.zeros((3, 2)),
        "matrix": np.ones((2, 8), np.float32),
        "key": np.arange(4),
        "query": np.arange(4)[:, None],
        "learned": np.zeros((32, 8)),
    }


def needs(config: dict[str, Any]) -> dict[str, set[str]]:
    """What is said of each part."""
    found: dict[str, set[str]] = {}
    for each in report(fastpe.ModelConfig(config)).needs:
        found.setdefault(each.part, set()).add(each.need)
    return found


DIFFUSERS: list[tuple[dict[str, Any], tuple[Any, ...], dict[str, Any]]] = [
    ({"_class_name": "Krea2Transformer2DModel"}, ("flux", 128), {"sections": (16, 24, 24), "base": 1000.0}),
    ({"_class_name": "Flux2Transformer2DModel", "rope_theta": 2000}, ("flux2", 128), {}),
    ({"_class_name": "Ideogram4Transformer2DModel", "mrope_section": [9, 12, 10], "attention_head_dim": 64,
        "rope_theta": 5000}, ("ideogram4", 64), {"sections": (10, 12, 10), "base": 5000.0}),
    ({"_class_name": "CosmosTransformer3DModel"}, ("cosmos", 128), {"base": [2e4 * 2 ** (1 / 21), 1e4, 1e4]}),
    ({"_class_name": "CosmosTransformer3DModel", "attention_head_dim": 24, "rope_scale": [1, 3.0, 2]}, ("cosmos", 24),
        {"base": [1e4, 1e4 * 3 ** (8 / 6), 1e4 * 2 ** (8 / 6)]}),
    ({"_class_name": "Kandinsky5Transformer3DModel", "axes_dims": [32, 48, 48]}, ("kandinsky", 128), {}),
    ({"_class_name": "CogView4Transformer2DModel"}, ("cogview4", 40), {}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "arguments", "options"), DIFFUSERS)
def test_the_rotation_of_a_config_of_diffusers(given: Any, arguments: Any, options: Any) -> None:
    (call,) = (each for need in report(fastpe.ModelConfig(given)).needs for each in need.calls if "rope = " in each)
    found = eval(call.removeprefix("rope = "), {"fastpe": fastpe})
    expected = fastpe.RotaryEmbedding.from_layout(*arguments, **options)
    np.testing.assert_allclose(found.frequencies, expected.frequencies, rtol=1e-14)
    assert (found.frequency_axes, found.rotary_dim) == (expected.frequency_axes, expected.rotary_dim)


@pytest.mark.parametrize(("given", "expected"), MODELS, ids=[str(given)[:70] for given, _ in MODELS])
def test_each_part_has_its_calls(given: dict[str, Any], expected: str) -> None:
    parts = (part.split(": ") for part in expected.split(", ") if part)
    assert needs(given) == {part: {*said.split()} for part, said in parts}
    found = report(fastpe.ModelConfig(given))
    assert found.needs or found.not_known


@pytest.mark.parametrize(
    "given", [given for given, _ in MODELS] + [model["config"] for model in DATA], ids=lambda c: str(c)[:70]
)
def test_each_call_runs_as_it_is_written(given: dict[str, Any]) -> None:
    config = fastpe.ModelConfig(given)
    known, scope = names(config), report(config)
    for each in scope.needs:
        for call in each.calls:
            if "encoding.add_" in call:
                known["x"] = np.zeros((1, 4, known["encoding"].d_model), np.float32)
            if "rope.rotate_" in call:
                known["q"] = np.ones((1, 2, 4, known["rope"].head_dim or known["rope"].rotary_dim), np.float32)
                known["k"], known["position_ids"] = (
                    known["q"][:, :1].copy(),
                    np.zeros((3,) * ("moveaxis" in call) + (1, 4)),
                )
            exec(call, known)  # noqa: S102
    assert "Traceback" not in str(config)
    assert json.loads(json.dumps(scope.to_dict()))["needs"] == [
        {**each._asdict(), "calls": [*each.calls]} for each in scope.needs
    ]


def test_calls_give_what_is_said() -> None:
    gemma = fastpe.ModelConfig({"model_type": "gemma3_text", **SIZES})
    first, second = (each for each in report(gemma).needs if each.need == "rotates")
    assert "layers 0-4, 6-10: 256 columns, halves apart, base 10,000" in first.says
    assert "layers 5, 11: 256 columns" in second.says
    made: dict[str, Any] = {"fastpe": fastpe, "config": gemma}
    exec(second.calls[0], made)  # noqa: S102
    assert made["rope"] == fastpe.RotaryEmbedding.layers_from_config(gemma)[5]


def scope_of(given: dict[str, Any], title: str, needs: set[str], **more: Any) -> list[dict[str, Any]]:
    """What the calls for these needs of a part make, one after the other."""
    made: list[dict[str, Any]] = []
    scope: dict[str, Any] = {"fastpe": fastpe, "np": np, "config": fastpe.ModelConfig(given), **more}
    for each in report(fastpe.ModelConfig(given)).needs:
        if each.part == title and each.need in needs:
            for call in each.calls:
                exec(call, scope)  # noqa: S102
            made.append({**scope})
    return made


def test_masks_of_images_in_a_step_of_decoding_are_rows_of_the_whole() -> None:
    gemma = {"model_type": "gemma3", "image_token_index": 52, "text_config": SIZES, "vision_config": {}}
    so_far, valid = np.array([[1, 52, 52, 52, 2, 52, 52, 3]]), np.ones((1, 8), bool)
    whole, part = (
        scope_of(gemma, "text", {"mask"}, so_far=so_far, valid=valid, cached=cached, queries=8 - cached)
        for cached in (0, 6)
    )
    for all_rows, rows in zip(whole, part, strict=True):
        assert np.array_equal(rows["mask"], all_rows["mask"][:, :, 6:])
    assert whole[0]["mask"][0, 0, 1, :4].all()
    explained = str(fastpe.ModelConfig(gemma)).partition("\nwhere\n")[2]
    assert all(f"  {name}: " in explained for name in ("so_far", "cached", "queries", "valid"))


@pytest.mark.parametrize("grids", [[[1, 8, 12]], [[2, 4, 6], [1, 12, 4]]])
def test_windows_in_the_order_that_is_printed(grids: Any) -> None:
    config = among_images("qwen2_5_vl")
    config["vision_config"] |= {"window_size": 56, "fullatt_block_indexes": [1]}
    made = scope_of(config, "images", {"inputs", "order", "mask"}, grid_thw=grids)[-1]
    rows = [(image, *row) for image, shape in enumerate(grids) for row in np.ndindex(shape[0], 1)]
    frames = np.concatenate([np.full(grids[image][1] * grids[image][2], at) for at, (image, *_) in enumerate(rows)])
    window = np.c_[frames, made["inputs"]["position_ids"] // 4][made["order"]]
    assert np.array_equal(made["mask"], (window[:, None] == window).all(axis=-1))
    merged = made["order"].reshape(-1, 4)[:, 0] // 4
    assert np.array_equal(merged[made["back"]], np.arange(len(merged)))


def test_every_type_of_the_tables_has_a_report() -> None:
    kinds = ("models", "parts", "layouts", "told", "without", "sinusoids", "grids", "biases", "learned")
    for model_type in {name for kind in kinds for name in table()[kind]}:
        found = report(fastpe.ModelConfig({"model_type": model_type}))
        assert found.needs or found.not_known, model_type


@pytest.mark.parametrize(
    "given",
    [
        {"_class_name": "FluxTransformer2DModel", "rope_theta": "found.append(1)"},
        {"_class_name": "FluxTransformer2DModel", "attention_head_dim": "found.append(1)"},
        {"_class_name": "Lumina2Transformer2DModel", "axes_dim_rope": ["found.append(1)"]},
        {"_class_name": "FluxTransformer2DModel", "axes_dims_rope": 5},
        *(
            {"_class_name": "CosmosTransformer3DModel", "rope_scale": scale}
            for scale in (
                [2.0, 1.0],
                [2.0, 1.0, "found.append(1)"],
                [2.0, 0.0, 1.0],
                [2.0, -1.0, 1.0],
                [1e300, 1.0, 1.0],
                2.0,
            )
        ),
        *({"_class_name": "CosmosTransformer3DModel", "attention_head_dim": width} for width in (2, 12, 22)),
        *(
            {"_class_name": "Ideogram4Transformer2DModel", "mrope_section": sections}
            for sections in ([24, 20], [24, 64, 64])
        ),
        {"_class_name": ["FluxTransformer2DModel"]},
        {"model_type": "dab-detr", "temperature_height": "found.append(1)"},
        {"model_type": "x", 'a"] or found.append(1) or config.parts["b': {"model_type": "llama"}},
        {"model_type": "roberta", "pad_token_id": "found.append(1)"},
        {"model_type": "pixtral", "hidden_size": "found.append(1)", "num_attention_heads": 4},
        {"model_type": "pixtral", "head_dim": -2},
    ],
    ids=str,
)
def test_no_file_says_what_is_run(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    monkeypatch.setattr("builtins.found", found, raising=False)
    config = fastpe.ModelConfig(given)
    for each in report(config).needs:
        for call in each.calls:
            assert "found.append(1)" not in call.replace('a"] or found.append(1) or config.parts["b', "")
    assert str(config)
    assert not found


# A config, and the arguments of each layer's mask besides past, valid and groups; None for a layer without scores.
CAUSAL: dict[str, Any] = {"causal": True}
EIGHT = {**SIZES, "num_hidden_layers": 8}
QWEN = {"model_type": "qwen2", **EIGHT, "sliding_window": 9, "max_window_layers": 6}
FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"
MASKS: list[tuple[dict[str, Any], list[Any]]] = [
    ({"model_type": "llama", **EIGHT, "sliding_window": 9}, [CAUSAL] * 8),
    ({"model_type": "mistral", **EIGHT}, [CAUSAL | {"window": 4096}] * 8),
    ({"model_type": "mistral", **EIGHT, "sliding_window": 9}, [CAUSAL | {"window": 9}] * 8),
    ({"model_type": "mistral", **EIGHT, "sliding_window": None}, [CAUSAL] * 8),
    ({"model_type": "gemma3_text", **EIGHT, "sliding_window": 9},
        [CAUSAL | {"window": 9}] * 5 + [CAUSAL] + [CAUSAL | {"window": 9}] * 2),
    ({"model_type": "gemma2", **EIGHT, "layer_types": [FULL, SLIDING] * 4}, [CAUSAL, CAUSAL | {"window": 4096}] * 4),
    ({"model_type": "llama4_text", **EIGHT, "attention_chunk_size": 5}, ([CAUSAL | {"chunk": 5}] * 3 + [CAUSAL]) * 2),
    ({"model_type": "llama4_text", **EIGHT, "attention_chunk_size": None}, [CAUSAL] * 8),
    (QWEN, [CAUSAL] * 8),
    (QWEN | {"use_sliding_window": True}, [CAUSAL] * 6 + [CAUSAL | {"window": 9}] * 2),
    (QWEN | {"use_sliding_window": True, "sliding_window": None}, [CAUSAL] * 8),
    (QWEN | {"model_type": "qwen3_moe", "use_sliding_window": True}, [CAUSAL | {"window": 9}] * 8),
    ({"model_type": "qwen3_next", **EIGHT}, ([None] * 3 + [CAUSAL]) * 2),
    ({"model_type": "eurobert", **EIGHT}, [{"causal": False}] * 8),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), MASKS)
def test_the_mask_of_each_layer(given: dict[str, Any], expected: Any) -> None:
    found = report(fastpe.ModelConfig(given))
    calls = {need.calls[-1] for need in found.needs if need.need == "mask"}
    assert masks_of(fastpe.ModelConfig(given)) == expected
    for arguments in filter(None, expected):
        cached = ", past=cached" if arguments["causal"] else ""
        named = ", ".join(f"{name}={value}" for name, value in arguments.items())
        assert f"mask = fastpe.attention_mask(queries, {named}{cached}, valid=valid)" in calls
    assert len(calls) == len({str(each) for each in expected if each})


def test_images_see_each_other() -> None:
    """Where they begin and end says which tokens are of one image."""
    config = {"model_type": "gemma3", "image_token_id": 9, "text_config": EIGHT, "vision_config": {}}
    (first, _) = (need for need in report(fastpe.ModelConfig(config)).needs if need.need == "mask")
    made = names(fastpe.ModelConfig(config)) | {"queries": 8, "valid": np.ones((2, 8), bool)}
    made["so_far"] = np.array([[9, 9, 5, 9, 9, 9, 6, 9], [5, 6, 7, 8, 9, 9, 5, 9]])
    for call in first.calls:
        exec(call, made)  # noqa: S102
    assert made["groups"].tolist() == [[0, 0, -1, 1, 1, 1, -1, 2], [-1, -1, -1, -1, 0, 0, -1, 1]]
    assert made["mask"][0, 0, 3].tolist() == [True] * 6 + [False] * 2


@pytest.mark.parametrize(
    "given",
    [
        {"model_type": "modernbert", **EIGHT},
        {"model_type": "deepseek_v32", **EIGHT},
        {"model_type": "gemma3_text", **EIGHT, "use_bidirectional_attention": True},
        {"model_type": "gemma3_text", **EIGHT, "sliding_window": None},
        {"model_type": "gemma3", "text_config": EIGHT, "vision_config": {}},
        {"model_type": "paligemma", "text_config": {"model_type": "gemma", **EIGHT}, "vision_config": {}},
        {"model_type": "smollm3", **EIGHT, "use_sliding_window": True, "sliding_window": 9},
        {**QWEN, "use_sliding_window": True, "sliding_window": "wide"},
        {**QWEN, "use_sliding_window": True, "max_window_layers": "all"},
        {"model_type": "mistral", **EIGHT, "sliding_window": -1},
    ],
)
def test_masks_that_are_not_known(given: dict[str, Any]) -> None:
    found = report(fastpe.ModelConfig(given))
    assert "mask" not in {need.need for need in found.needs}
    assert [each for each in found.not_known if ", mask: " in each]


def test_printed_ids_count_only_what_is_valid() -> None:
    config = fastpe.ModelConfig({"model_type": "llama", "num_hidden_layers": 2, "head_dim": 64})
    (line,) = (line.strip() for line in str(config).splitlines() if line.strip().startswith("inputs = "))
    for tokens, valid, ids in (([[1, 5, 6]], [[0, 1, 1]], [[1, 0, 1]]), ([[7]], [[0, 1, 1, 1]], [[2]])):
        names = {"fastpe": fastpe, "config": config, "input_ids": tokens, "valid": valid}
        exec(line, names)  # noqa: S102
        assert names["inputs"]["position_ids"].tolist() == ids  # type: ignore[index]
