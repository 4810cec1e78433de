# SPDX-License-Identifier: BSD-3-Clause
"""Each row of the table of graphs against what transformers computed, as tools/graph_inputs.py stored it."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._graph.model import models

STORED = json.loads((pathlib.Path(__file__).parents[1] / "data" / "graph_inputs.json").read_text("utf-8"))


def row_of(kind: str, name: str) -> Any:
    row = STORED[name][kind]
    return row_of(kind, row) if isinstance(row, str) else row


def names_with(kind: str) -> list[str]:
    return [name for name, kinds in models().items() if kind in kinds]


@pytest.mark.parametrize("name", names_with("text"))
def test_prompts(name: str) -> None:
    row = row_of("text", name)
    for prompt in row["prompts"]:
        given = dict(prompt)
        tokens, ids, deltas = (given.pop(key, None) for key in ("input_ids", "position_ids", "rope_deltas"))
        found = fastpe.text_inputs({"model_type": name, **row["config"]}, tokens, **given)
        # transformers adds times that are fractions to the start in float32.
        rounding = np.spacing(np.float32(ids)) / 2 if found["position_ids"].dtype.kind == "f" else 0
        assert (np.abs(found["position_ids"] - ids) <= rounding).all()
        if deltas is not None:
            np.testing.assert_allclose(found["rope_deltas"][:, 0], deltas, atol=np.max(rounding))


def check_equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        if isinstance(found[key], tuple):
            for one, other in zip(found[key], value, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=key)
        else:
            np.testing.assert_array_equal(found[key], value, err_msg=key)


@pytest.mark.parametrize("name", names_with("vision"))
def test_images(name: str) -> None:
    for case in row_of("vision", name)["cases"]:
        given = {key: case[key] for key in ("grid_thw", "target_sizes", "merge_sizes") if key in case}
        expected = dict(case["inputs"])
        found = fastpe.vision_inputs({"model_type": name, "vision_config": case["config"]}, **given)
        if sums := expected.pop("sums", None):
            indices, weights = found.pop("interp_indices"), found.pop("interp_weights")
            of_cells = np.cos(0.7 * indices) * weights.astype(np.float64)
            np.testing.assert_allclose(of_cells.sum(axis=1), sums, atol=5e-5)
        check_equal(found, expected)


@pytest.mark.parametrize("name", names_with("audio"))
def test_sound(name: str) -> None:
    for case in row_of("audio", name)["cases"]:
        config = {"model_type": name, "audio_config": case["config"]}
        check_equal(fastpe.audio_inputs(config, feature_lens=case["feature_lens"]), case["inputs"])
