# SPDX-License-Identifier: BSD-3-Clause
"""What models add, bias and number, against what transformers computed, as tools/measure_models.py stored it."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._config.file import table, written

STORED = json.loads((pathlib.Path(__file__).parents[1] / "data" / "positions.json").read_text("utf-8"))
WHOLE, PADDED, LEFT = np.full(5, 7), np.array([1, 1, 7, 7, 7]), np.array([0, 0, 1, 1, 1])


@pytest.mark.parametrize("kind", ["sinusoids", "learned", "biases"])
def test_every_row_is_measured_or_written(kind: str) -> None:
    by_hand = {name for name, row in written()[kind].items() if not isinstance(row, dict) or "source" in row}
    assert {*STORED[kind]} == {*table()[kind]} - by_hand


@pytest.mark.parametrize("name", STORED["sinusoids"])
def test_sinusoids(name: str) -> None:
    """What the first layer takes for the last token, by a small config; and the defaults."""
    row = STORED["sinusoids"][name]
    encoding = fastpe.PositionalEncoding.from_config({"model_type": name, **row["config"]})
    x = np.full((1, 5, encoding.d_model), row["embedding"], np.float32)
    valid = None if encoding.padding_idx is None else np.array([row["tokens"]]) != encoding.padding_idx
    last = encoding.add(x, scale=encoding.embedding_scale, valid=valid)[0, -1]
    np.testing.assert_allclose([*last[:4], *last[-4:]], row["last"], atol=1e-4)
    given = {"model_type": name, **row["required"]}
    usual = fastpe.PositionalEncoding.from_config(given)
    assert repr(usual) == repr(fastpe.PositionalEncoding.from_config({**row["defaults"], **given}))


@pytest.mark.parametrize("name", STORED["learned"])
def test_learned_tables(name: str) -> None:
    offset, _, valid = table()["learned"][name].partition(", valid=")
    runs = {
        "whole": (WHOLE, 1, WHOLE),
        "padding 3": (WHOLE, 3, WHOLE),
        "left": (PADDED, 1, LEFT),
        "left, no mask": (PADDED, 1, WHOLE),
    }
    for run, (ids, padding, mask) in runs.items():
        names = {"ids": ids, "pad_token_id": padding, "attention_mask": mask}
        counted = np.broadcast_to(eval(valid, names) if valid else True, 5) > 0
        rows = eval(offset.removeprefix("offset="), names) + np.cumsum(counted) - 1
        np.testing.assert_array_equal(rows[counted], np.array(STORED["learned"][name][run])[counted], run)


@pytest.mark.parametrize("name", STORED["biases"])
def test_biases(name: str) -> None:
    call, stored = table()["biases"][name], dict(STORED["biases"][name])
    if slopes := stored.pop("slopes", None):
        assert eval(call, {"fastpe": fastpe, "num_heads": len(slopes)}).tolist() == slopes
        return
    far = np.array(stored.pop("key - query"))
    assert re.match(r"learned\[fastpe.relative_buckets\(key - query, bidirectional=True\)\]", call)
    assert re.findall("bidirectional=(\\w+)", call) == [*stored]
    for both, buckets in stored.items():
        assert fastpe.relative_buckets(far, bidirectional=both == "True").tolist() == buckets


@pytest.mark.parametrize("name", [name for name in STORED["ids"] if name not in written()["ids"]])
def test_numbers_of_tokens(name: str) -> None:
    padding, *expected = STORED["ids"][name]
    ids = np.array([[padding, padding, padding, 20, 21, 22]])
    config: dict[str, Any] = {"model_type": name, "pad_token_id": padding}
    with contextlib.nullcontext() if expected else pytest.raises(ValueError, match="takes no position ids"):
        found = fastpe.text_inputs(config, ids, attention_mask=(ids >= 20).astype(int))
        assert found["position_ids"][0, 3:].tolist() == expected
