# SPDX-License-Identifier: BSD-3-Clause
"""`vision_inputs` and `audio_inputs` against what the exporters of transformers compute, for every encoder there is."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._graph.model import graphs

from ..oracles.examples import example
from ..oracles.graph_peers import encoder, expected_of, folders_with, inkling_inputs, padded_ids, ranged_ids

pytestmark = pytest.mark.peers

PADDED = ("idefics2", "idefics3", "smolvlm", "phi4_multimodal")
VISION = folders_with(r"from \.\.\.vision_utils import")
AUDIO = folders_with(r"def get_audio_cu_seqlens\b")


def test_every_encoder_has_a_row() -> None:
    rows = {kind: {name for name, kinds in graphs().items() if kind in kinds} for kind in ("vision", "audio")}
    # These have the encoders of other folders.
    rows["vision"] -= {"cosmos3_omni", "glm46v", "glmga", "hyperclovax_vision_v2"}
    assert rows["vision"] - {*PADDED, "minicpmv", "minicpmo"} == {*VISION} - {"step3p7"}
    assert rows["audio"] == {*AUDIO}


@pytest.mark.parametrize("name", graphs())
def test_stored_inputs_are_those_of_the_exporters(name: str) -> None:
    """The quick tests compare with these, by defaults and by other numbers, prompts of text too."""
    tool = pytest.importorskip("tools.measures.graphs")
    assert tool.store(write=False, names=[name]) == []


def check_equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        theirs, ours = (each if isinstance(each, tuple) else (each,) for each in (value, found[name]))
        assert len(theirs) == len(ours)
        for one, other in zip(theirs, ours, strict=True):
            np.testing.assert_array_equal(other, one, err_msg=name)
            dtype = one.numpy().dtype if hasattr(one, "numpy") else getattr(one, "dtype", int)
            assert getattr(other, "dtype", int) == dtype, name


@pytest.mark.parametrize("folder", [each for each in VISION if "fractions" in graphs().get(each, {}).get("vision", {})])
def test_images_of_one_size_have_a_shape(folder: str) -> None:
    model, sizes = encoder(folder, "target_sizes"), np.array([[4, 8]] * 3)
    found = fastpe.vision_inputs(model.config.to_dict(), target_sizes=sizes)
    check_equal(found, expected_of(model, {"target_sizes": sizes}))


def random_sizes(rng: Any) -> tuple[Any, int]:
    """Sizes of images, and the side of a learned grid, which most images do not divide."""
    return rng.integers(1, 80, (rng.integers(1, 5), 2)), int(rng.integers(2, 75))


@pytest.mark.parametrize("folder", PADDED)
def test_padded_images(folder: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        sizes, side = random_sizes(rng)
        ids, mask = padded_ids(folder, 4 * side, 4, sizes)
        config = {"model_type": folder, "vision_config": {"image_size": 4 * side, "patch_size": 4}}
        check_equal(
            fastpe.vision_inputs(config, target_sizes=sizes), {"position_ids": ids, "patch_attention_mask": mask}
        )


def test_images_of_minicpm() -> None:
    utilities, torch = importlib.import_module("transformers.vision_utils"), pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    for _ in range(200):
        sizes, side = random_sizes(rng)
        vision = {"image_size": 14 * side, "patch_size": 14, "window_kernel_size": [1, 1]}
        for name in ("minicpmv", "minicpmo"):
            found = fastpe.vision_inputs({"model_type": name, "vision_config": vision}, target_sizes=sizes)
            check_equal(found, {"position_ids": ranged_ids(side, sizes)})
        newer = fastpe.vision_inputs({"model_type": "minicpmv4_6", "vision_config": vision}, target_sizes=sizes)
        expected = utilities.get_vision_nearest_position_ids(torch.from_numpy(sizes), side)
        np.testing.assert_array_equal(newer["position_ids"], expected)


def test_inkling() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        grids = np.column_stack([np.ones(3, int), rng.integers(1, 6, (3, 2))])
        merge, side = int(rng.integers(1, 4)), int(rng.integers(3, 9))
        expected = inkling_inputs(grids, merge, side)
        config = {"model_type": "inkling2", "vision_config": {"spatial_merge_size": merge, "posemb_grid_size": side}}
        found = fastpe.vision_inputs(config, grid_thw=grids)
        for name in ("cu_seqlens", "patch_index"):
            np.testing.assert_array_equal(found[name], expected[name])
        positions = np.zeros_like(expected["positions"])  # of class tokens
        positions[found["patch_index"]] = found["position_ids"] + 1
        np.testing.assert_array_equal(positions, expected["positions"])
        sums = np.cos(0.7 * found["interp_indices"]) * found["interp_weights"]
        np.testing.assert_allclose(sums.sum(axis=1), expected["sums"], atol=1e-5)


def test_a_host_of_an_exported_encoder() -> None:
    """A config.json, weights and sizes of images: ONNX Runtime with fastpe's inputs gives what torch gives by itself."""
    torch, host = pytest.importorskip("torch"), example("vision_encoder_host")
    configuration = importlib.import_module("transformers.models.qwen3_vl.configuration_qwen3_vl")
    modeling = importlib.import_module("transformers.models.qwen3_vl.modeling_qwen3_vl")
    config = host.CONFIG["vision_config"]
    weights = host.random_weights(config)
    model = modeling.Qwen3VLVisionModel(configuration.Qwen3VLVisionConfig(**config)).eval()
    model.load_state_dict({name: torch.from_numpy(each) for name, each in weights.items()})
    session, rng = host.Host(host.Graph(config, weights).encoder(), host.CONFIG), np.random.default_rng(4)
    for _ in range(10):
        grids = rng.integers(1, (4, 9, 9), (rng.integers(1, 4), 3)) * (1, 2, 2)
        patches = rng.standard_normal((grids.prod(axis=1).sum(), 96), dtype=np.float32)
        with torch.no_grad():
            expected = model(torch.from_numpy(patches), grid_thw=torch.from_numpy(grids)).pooler_output.numpy()
        np.testing.assert_allclose(session.run(patches, grids), expected, atol=2e-5 * np.abs(expected).max())
