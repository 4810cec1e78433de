# SPDX-License-Identifier: BSD-3-Clause
"""The cases of what exported graphs take as inputs, beside the functions of transformers that compute it."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np

import fastpe
from benchmarks.answers import equals
from benchmarks.harness import Bar, Case, Contender, Shape
from benchmarks.rivals import module

_image, _grid = 9, (1, 56, 56)  # of 784 tokens
_grids = np.array([(1, 32, 48)] * 4 + [(8, 28, 28)] * 2)


def _next_token(shape: Shape) -> Iterator[Contender]:
    """Behind a prompt among images, with a config that is read once; the limit only writes an array."""
    batch, length = shape
    config = fastpe.ModelConfig({"model_type": "qwen2_vl", "image_token_id": _image, "vision_config": {}})
    names = {"text_inputs": fastpe.text_inputs, "config": config, "tokens": np.ones(shape, np.int64)}
    names |= {"past": np.full(batch, 7), "deltas": np.full((batch, 1), -2)}
    work = 'text_inputs(config, tokens, past=past, rope_deltas=deltas)["position_ids"]'
    yield Contender(name="fastpe", work=work, names=names, check=equals(np.full((3, batch, length), 5)), kind="fastpe")
    names = {"full": np.full, "shape": (3, batch, length)}
    yield Contender(name="np.full", work="full(shape, 5)", names=names, check=equals(5), kind="limit")


def _prompts(shape: Shape) -> Iterator[Contender]:
    """Prompts with four images each."""
    batch, length = shape
    row = np.ones(length, np.int64)
    for first in range(100, 4 * 950, 950):
        row[first : first + 784] = _image
    tokens, grids, mask = np.tile(row, (batch, 1)), np.tile(_grid, (4 * batch, 1)), np.ones(shape, np.int64)
    config = {"model_type": "qwen2_vl", "image_token_id": _image, "vision_config": {}}
    own: dict[str, Any] = {"text_inputs": fastpe.text_inputs, "config": fastpe.ModelConfig(config)}
    own |= {"tokens": tokens, "grids": grids, "mask": mask}
    work = 'text_inputs(config, tokens, image_grid_thw=grids, attention_mask=mask)["position_ids"]'
    check = equals(fastpe.text_inputs(config, tokens, image_grid_thw=grids)["position_ids"])
    yield Contender(name="fastpe", work=work, names=own, check=check, kind="fastpe")
    torch = module("torch")
    if torch is None or module("transformers") is None:
        return
    model = _without_weights()
    names = {"rope_index": model.get_rope_index, "tokens": torch.from_numpy(tokens), "grids": torch.from_numpy(grids)}
    names |= {"mask": torch.from_numpy(mask), "kinds": torch.from_numpy((tokens == _image).astype(int))}
    work = "rope_index(tokens, mm_token_type_ids=kinds, image_grid_thw=grids, attention_mask=mask)[0]"
    yield Contender(name="transformers", work=work, names=names, check=check)


def _without_weights() -> Any:
    """The model of Qwen2-VL with a config, and nothing else."""
    modeling = importlib.import_module("transformers.models.qwen2_vl.modeling_qwen2_vl")
    configuration = importlib.import_module("transformers.models.qwen2_vl.configuration_qwen2_vl")
    model = modeling.Qwen2VLModel.__new__(modeling.Qwen2VLModel)
    module("torch").nn.Module.__init__(model)
    model.config, model.rope_deltas = configuration.Qwen2VLConfig(), None
    return model


def _images(shape: Shape, *, model_type: str) -> Iterator[Contender]:
    """Four images and two videos, by an encoder without weights."""
    config = {"model_type": model_type, "vision_config": {}}
    own = {"vision_inputs": fastpe.vision_inputs, "config": fastpe.ModelConfig(config), "grids": _grids}
    check = equals(fastpe.vision_inputs(config, grid_thw=_grids)["position_ids"])
    yield Contender(
        name="fastpe",
        work='vision_inputs(config, grid_thw=grids)["position_ids"]',
        names=own,
        check=check,
        kind="fastpe",
    )
    torch = module("torch")
    if torch is None or module("transformers") is None:
        return
    modeling = importlib.import_module(f"transformers.models.{model_type}.modeling_{model_type}")
    configuration = importlib.import_module(f"transformers.models.{model_type}.configuration_{model_type}")
    kind = {"qwen2_vl": "Qwen2VisionTransformerPretrainedModel", "qwen3_vl": "Qwen3VLVisionModel"}[model_type]
    settings = {"qwen2_vl": "Qwen2VLVisionConfig", "qwen3_vl": "Qwen3VLVisionConfig"}[model_type]
    with torch.device("meta"):
        encoder = getattr(modeling, kind)(getattr(configuration, settings)(depth=1))
    encoder.config._attn_implementation = "flash_attention_2"  # else it computes no lengths
    prepare = importlib.import_module("transformers.exporters.utils").precompute_export_inputs
    names = {"prepare": functools.partial(_prepared, prepare, encoder), "grids": torch.from_numpy(_grids)}
    yield Contender(name="transformers", work="prepare(grids)", names=names, check=check)


def _prepared(prepare: Any, encoder: Any, grids: Any) -> Any:
    inputs = {"grid_thw": grids}
    prepare(encoder, inputs)
    return inputs["position_ids"]


def graph_cases() -> list[Case]:
    """In the order of the records."""
    texts = "text_inputs {}, qwen2_vl".format
    images = [
        Case(
            "graph inputs",
            f"vision_inputs of 18688 patches, {name}",
            "new",
            "computed",
            (18_688, 2),
            functools.partial(_images, model_type=name),
            [Bar(["transformers"], 5, 5)],
        )
        for name in ("qwen2_vl", "qwen3_vl")
    ]
    one = [Bar(["np.full"], 1 / 15, 1 / 15)]
    return [
        Case("graph inputs", texts("of the next token [8, 1]"), "new", "computed", (8, 1), _next_token, one),
        Case(
            "graph inputs",
            texts("[4, 4000] among 16 images"),
            "new",
            "computed",
            (4, 4000),
            _prompts,
            [Bar(["transformers"], 4, 4)],
        ),
        *images,
    ]
