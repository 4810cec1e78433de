# SPDX-License-Identifier: BSD-3-Clause
"""What a model's config.json says about its sinusoidal encoding: written.json names the convention of each `model_type`.

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
from fastpe._config.model import ModelConfig, model_of
from fastpe._config.refusals import refusal
from fastpe._config.tables import table
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

    def value(key: str) -> Any:
        # Null counts, as in transformers.
        return written.get(key, row["defaults"].get(key))

    for key, allowed in row.get("requires", {}).items():
        if value(key) not in allowed:
            found = "this model's table is learned"
            remedy = f"use fastpe.add_(x, table=table, {table()['learned'].get(part._known_type, 'offset=0')})"
            if row.get("otherwise") == "none":
                found, remedy = "this model adds no positions", f"write {json.dumps({key: allowed[0]})} if yours does"
            raise refused(ValueError, part._place(key), f"is {shown(written.get(key))}: {found}", remedy=remedy)
    key = row["width"]
    other = {each["width"] for each in rows.values()} - {key, row.get("scale")}
    if key not in written and (names := [name for name in written if name in other]):
        found, remedy = f"is missing, and {names[0]} is not read in models of this type", f"write {key}"
        raise refused(ValueError, part._place(key), found, remedy=remedy)
    width = integer(part._place(key), value(key), 1)
    changes: dict[str, Any] = {}
    padding_idx = None
    if "padding" in row:
        padding_idx = integer(part._place(row["padding"]), value(row["padding"]), 0)
        changes["first_position"] = padding_idx + 1
    if "first_position" in row:
        changes["first_position"] = row["first_position"]
    if "timescales" in row:
        least, most = (number(part._place(key), value(key), above_zero=True) for key in row["timescales"])
        changes |= {"freq_scale": least, "base": most / least}
    scale = 1.0
    if "scale" in row and ("scale_key" not in row or value(row["scale_key"])):
        scale = math.sqrt(integer(part._place(row["scale"]), value(row["scale"]), 1))
    return width, dataclasses.replace(conventions[row["convention"]], **changes), padding_idx, scale
