# SPDX-License-Identifier: BSD-3-Clause
"""`vision_inputs` and `audio_inputs` against what the exporters of transformers compute, for every encoder there is."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._graph.model import models

from ..oracles.examples import example
from ..oracles.graph_peers import CHANGES, encoder, expected_of, folders_with, grid_side, interpolation, sound

pytestmark = pytest.mark.peers

# These compute what they need inside of their graphs, or take other inputs than the exporters prepare.
NOT_PREPARED = {
    "inkling2": "counts grids in tokens of text, as image_grid_thw",
    "step3p7": "computes its positions from the size of the image",
}
# The exporters pass (height, width) where the models' own forward passes (width, height): "ref code passes
# meshgrid(pos_h, pos_w, indexing='xy') to grid_sample", says modeling_muse_glimmer.py.
TRANSPOSED = ("muse_glimmer", "muse_spark")


VISION = folders_with(r"from \.\.\.vision_utils import")
AUDIO = folders_with(r"def get_audio_cu_seqlens\b")


def test_every_encoder_has_a_row() -> None:
    rows = {kind: {name for name, kinds in models().items() if kind in kinds} for kind in ("vision", "audio")}
    # These have the encoders of other folders.
    rows["vision"] -= {"cosmos3_omni", "glm46v", "glmga"}
    assert rows["vision"] == {*VISION} - {*NOT_PREPARED}
    assert rows["audio"] == {*AUDIO}


def check_equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        theirs, ours = (each if isinstance(each, tuple) else (each,) for each in (value, found[name]))
        assert len(theirs) == len(ours)
        for one, other in zip(theirs, ours, strict=True):
            np.testing.assert_array_equal(other, one, err_msg=name)
            assert getattr(other, "dtype", int) == (one.numpy().dtype if hasattr(one, "numpy") else int), name


def dense(inputs: dict[str, Any], side: int) -> Any:
    """The weights of all cells of the learned grid."""
    indices, weights = (np.asarray(inputs.pop(name)) for name in ("interp_indices", "interp_weights"))
    assert [str(each.dtype) for each in (indices, weights)] == ["int64", "float32"]
    result = np.zeros((len(indices), side**2))
    np.add.at(result, (np.arange(len(indices))[:, None], indices), weights)
    return result


def numbers_of(folder: str, config: Any) -> dict[str, Any]:
    return {name: getattr(config, name) for name in models()[folder]["vision"]["config"]}


@pytest.mark.parametrize("changed", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("folder", [each for each in VISION if each not in NOT_PREPARED])
def test_vision(folder: str, changed: bool) -> None:
    row = models()[folder]["vision"]
    packed, per_image = row.get("packed", False), row.get("merge") == "merge_sizes"
    # Numbers that must be equal to those.
    also = {"pos_emb_width": "pos_emb_height" in row["config"], "adapter_merge_size": folder == "dots3_note"}
    keys = (*row["config"], *(key for key, is_one in also.items() if is_one))
    changes = tuple((key, CHANGES[key]) for key in keys if changed and key in CHANGES)
    model = encoder(folder, "target_sizes" if packed else "grid_thw", changes)
    config, rng = model.config.to_dict(), np.random.default_rng(len(folder))
    for number in range(4):
        grids = rng.integers(1, (5, 14, 14), (rng.integers(1, 5), 3)) * (1, 4, 4)
        given: dict[str, Any] = {"target_sizes": grids[:, 1:]} if packed else {"grid_thw": grids}
        if per_image:
            given["merge_sizes"] = rng.integers(1, 3, len(grids))
        if packed and number % 2:
            # Images of different sizes have no shape in common: the exporters give that of the first one, and no graph reads it.
            given["target_sizes"] = np.concatenate([given["target_sizes"], [[4, 8]]])
        elif packed:
            given["target_sizes"][:] = given["target_sizes"][0]
        expected = expected_of(model, given)
        if packed and number % 2:
            expected.pop("merged_shape")
        found = fastpe.vision_inputs(config, **given)
        whole = {"model_type": folder, "vision_config": {**config, "model_type": folder}}
        again = fastpe.vision_inputs(whole, **given)
        if "interp_indices" in expected:
            side = grid_side(model)
            if folder in TRANSPOSED:
                names = ("interp_indices", "interp_weights")
                swapped = interpolation(grids[:, [0, 2, 1]], side)
                expected |= dict(zip(names, swapped, strict=True))
            right, left, same = dense(expected, side), dense(found, side), dense(again, side)
            np.testing.assert_allclose(left, right, rtol=0, atol=2e-5)
            np.testing.assert_array_equal(left, same)
        check_equal(found, expected)
        check_equal(again, expected)
    defaults = numbers_of(folder, type(model.config)())
    assert {key: list(each) if isinstance(each, tuple) else each for key, each in defaults.items()} == row["config"]


@pytest.mark.parametrize("changes", [{}, {"n_window": 40, "n_window_infer": 400}, {"n_window": 25}], ids=str)
@pytest.mark.parametrize("folder", AUDIO)
def test_audio(folder: str, changes: dict[str, int]) -> None:
    masked, rng = bool(models()[folder]["audio"].get("masked")), np.random.default_rng(1)
    known = tuple((key, each) for key, each in changes.items() if key in models()[folder]["audio"]["config"])
    model = encoder(folder, "input_features_mask" if masked else "feature_lens", known)
    for _ in range(20):
        lengths = rng.integers(1, 3000, rng.integers(1, 6))
        given = sound(model, lengths, masked=masked)
        found = fastpe.audio_inputs(model.config.to_dict(), feature_lens=lengths)
        check_equal(found, expected_of(model, given))
    row = models()[folder]["audio"]["config"]
    assert row == {key: getattr(type(model.config)(), key) for key in row}


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
