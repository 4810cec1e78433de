# SPDX-License-Identifier: BSD-3-Clause
"""Inputs of exported graphs beside those that transformers computed: tools/measure_models.py stores and compares them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import fastpe


def check(stored: Mapping[str, Any], kind: str, name: str) -> None:
    """Compare what fastpe gives for this model type with its stored row, which may be that of another type."""
    row = stored[name][kind]
    _checks[kind](name, stored[row][kind] if isinstance(row, str) else row)


def check_prompts(name: str, row: Any) -> None:
    for prompt in row["prompts"]:
        given = dict(prompt)
        tokens, ids, deltas = (given.pop(key, None) for key in ("input_ids", "position_ids", "rope_deltas"))
        found = fastpe.text_inputs({"model_type": name, **row["config"]}, tokens, **given)
        # transformers adds times that are fractions to the start in float32.
        rounding = np.spacing(np.float32(ids)) / 2 if found["position_ids"].dtype.kind == "f" else 0
        assert found["position_ids"].shape == np.shape(ids)
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


def check_images(name: str, row: Any) -> None:
    for case in row["cases"]:
        given = {key: case[key] for key in ("grid_thw", "target_sizes", "merge_sizes") if key in case}
        expected = dict(case["inputs"])
        found = fastpe.vision_inputs({"model_type": name, "vision_config": case["config"]}, **given)
        if sums := expected.pop("sums", None):
            indices, weights = found.pop("interp_indices"), found.pop("interp_weights")
            of_cells = np.cos(0.7 * indices) * weights.astype(np.float64)
            np.testing.assert_allclose(of_cells.sum(axis=1), sums, atol=5e-5)
        check_equal(found, expected)


def check_sound(name: str, row: Any) -> None:
    for case in row["cases"]:
        config = {"model_type": name, "audio_config": case["config"]}
        check_equal(fastpe.audio_inputs(config, feature_lens=case["feature_lens"]), case["inputs"])


_checks: dict[str, Callable[[str, Any], None]] = {"text": check_prompts, "vision": check_images, "audio": check_sound}
