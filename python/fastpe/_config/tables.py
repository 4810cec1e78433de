# SPDX-License-Identifier: BSD-3-Clause
"""What is known of each `model_type`.

measured.json is what tools/measure_models.py measures with the installed transformers, and written.json what nobody can
measure, by hand and with sources. In what follows "the table" is both: rotation and layers (models), the way to the
language model (parts), how tokens are numbered (ids), inputs of exported graphs (graphs, whose rows name rules in
graph_rules), and what is added or biased (sinusoids, learned, biases).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from fastpe._config.file import Json, packaged


@functools.cache
def table() -> dict[str, Any]:
    """What is measured, and what is written by hand, which counts where both have a row, or a field."""
    data, by_hand = packaged("measured.json"), written()
    rows = {kind: {**data[kind], **by_hand[kind]} for kind in ("parts", "ids", "graphs", "without")}
    for kind in ("models", "sinusoids"):
        names = sorted({*data[kind], *by_hand[kind]})
        rows[kind] = {name: data[kind].get(name, {}) | by_hand[kind].get(name, {}) for name in names}
    for kind in ("learned", "biases"):  # by hand, each row has its source
        rows[kind] = data[kind] | {name: call for name, (call, _) in by_hand[kind].items()}
    return {**by_hand, **rows}


@functools.cache
def written() -> dict[str, Any]:
    """The tables that are written by hand, each with its source."""
    return packaged("written.json")


@functools.cache
def graphs() -> Mapping[str, Mapping[str, Json]]:
    """What exported graphs take, by model: the rule of "text", "vision" and "audio", and the ids of "tokens"."""
    data = table()
    rules = data["graph_rules"]
    return {
        name: {kind: rules[kind][each] if kind in rules else each for kind, each in row.items()}
        for name, row in data["graphs"].items()
    }
