# SPDX-License-Identifier: BSD-3-Clause
"""What a model's config.json says about its sinusoidal encoding: a row for each `model_type` names its convention.

What the fields of a row there mean:

* convention, width: the convention, and the key of the width.
* first_position: where counting starts, if not where the convention says.
* padding: the key of the id of padding, which is not counted: positions start behind it.
* scale, scale_key: embeddings are multiplied by the root of this key's value, or only where the second key is true.
* timescales: the keys of the shortest and of the longest wavelength over 2 pi.
* requires: values of a key without which the model's table is learned, or, if otherwise is "none", it has none.
* defaults, source: as in a row of a rotary embedding. note: what differs in other parts of the model.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from typing import Any

from fastpe._arguments import integer, number, shown
from fastpe._config.file import table
from fastpe._config.model import ModelConfig, model_of
from fastpe._config.refusals import refusal, unmet
from fastpe._errors import refused
from fastpe._sinusoid.convention import Convention
from fastpe._sinusoid.conventions import conventions

Source = Mapping[str, Any] | str | os.PathLike[str] | ModelConfig


def read_config(config: Source) -> tuple[int, Convention, int | None, float]:
    """The width, the convention, the id of padding and the factor of embeddings that `config` means."""
    whole, rows = model_of(config), table()["sinusoids"]
    levels = [*whole._to_text(must_end=False)]
    part = next((each for each in (*levels, whole.audio) if each is not None and each._known_type in rows), None)
    if part is None:
        raise refusal(levels[-1], "sinusoids")
    row, written = rows[part._known_type], part._json
    values = {**row["defaults"], **written}  # null counts, as in transformers
    if key := unmet(part, row.get("requires", {}), row["defaults"]):
        what, remedy = "adds no positions", f"write {json.dumps({key: row['requires'][key][0]})} if yours does"
        if row.get("otherwise") != "none":
            what, call = "has a learned table", table()["learned"].get(part._known_type, "offset=0")
            remedy = f"use fastpe.add_(x, table=table, {call})"
        raise refused(ValueError, part._place(key), f"is {shown(written.get(key))}: this model {what}", remedy=remedy)
    key = row["width"]
    other = {each["width"] for each in rows.values()} - {key, row.get("scale")}
    if key not in written and (name := next((name for name in written if name in other), "")):
        found = f"is missing, and {name} is not read in models of this type"
        raise refused(ValueError, part._place(key), found, remedy=f"write {key}")

    def size(key: str, least: int = 1) -> int:
        return integer(part._place(key), values.get(key), least)

    width, padding_idx, scale = size(key), None, 1.0
    changes: dict[str, Any] = {key: row[key] for key in ("first_position",) if key in row}
    if "padding" in row:
        padding_idx = size(row["padding"], 0)
        changes["first_position"] = padding_idx + 1
    if "timescales" in row:
        least, most = (number(part._place(key), values.get(key), above_zero=True) for key in row["timescales"])
        changes |= {"freq_scale": least, "base": most / least}
    if "scale" in row and ("scale_key" not in row or values.get(row["scale_key"])):
        scale = math.sqrt(size(row["scale"]))
    return width, dataclasses.replace(conventions[row["convention"]], **changes), padding_idx, scale
