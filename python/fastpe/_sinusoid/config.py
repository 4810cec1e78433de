# SPDX-License-Identifier: BSD-3-Clause
"""What a model's config.json says about its sinusoidal encoding: models.json names the convention of each `model_type`.

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
from typing import Any

from fastpe._arguments import integer, nearest, number, shown
from fastpe._config.file import Json, load, path_text
from fastpe._config.model_types import parts_of, refuse_other_code, table, use_of
from fastpe._errors import refused
from fastpe._sinusoid.convention import Convention
from fastpe._sinusoid.conventions import conventions


def read_config(config: Json | str | os.PathLike[str]) -> tuple[int, Convention, int | None, float]:
    """The width, the convention, the id of padding and the factor of embeddings that `config` means."""
    levels = [*parts_of(load(config), table()["sinusoid_parts"])]
    part, model_type = next((level for level in levels if level[1] in table()["sinusoids"]), levels[-1])
    row = table()["sinusoids"].get(model_type)
    if row is None:
        if model_type is not None:
            refuse_other_code(model_type, part)
        raise _refusal(model_type)
    for key, allowed in row.get("requires", {}).items():
        if part.get(key, row["defaults"].get(key)) not in allowed:
            found = "this model's table is learned"
            remedy = f"use fastpe.add_(x, table=table, {table()['learned'].get(model_type, 'offset=0')})"
            if row.get("otherwise") == "none":
                found, remedy = "this model adds no positions", f"write {json.dumps({key: allowed[0]})} if yours does"
            raise refused(ValueError, path_text((key,)), f"is {shown(part.get(key))}: {found}", remedy=remedy)

    def value(key: str) -> Any:
        # Null counts, as in transformers.
        return part.get(key, row["defaults"].get(key))

    other = {each["width"] for each in table()["sinusoids"].values()} - {row["width"], row.get("scale")}
    if row["width"] not in part and (names := [name for name in part if name in other]):
        found, remedy = f"is missing, and {names[0]} is not read in models of this type", f"write {row['width']}"
        raise refused(ValueError, path_text((row["width"],)), found, remedy=remedy)
    width = integer(path_text((row["width"],)), value(row["width"]), 1)
    convention = conventions[row["convention"]]
    changes: dict[str, Any] = {}
    padding_idx = None
    if "padding" in row:
        padding_idx = integer(path_text((row["padding"],)), value(row["padding"]), 0)
        changes["first_position"] = padding_idx + 1
    if "first_position" in row:
        changes["first_position"] = row["first_position"]
    if "timescales" in row:
        least, most = (number(path_text((key,)), value(key), above_zero=True) for key in row["timescales"])
        changes |= {"freq_scale": least, "base": most / least}
    scale = 1.0
    if "scale" in row and ("scale_key" not in row or value(row["scale_key"])):
        scale = math.sqrt(integer(path_text((row["scale"],)), value(row["scale"]), 1))
    return width, dataclasses.replace(convention, **changes), padding_idx, scale


def _refusal(model_type: str | None) -> Exception:
    """Why there is no encoding of this model, and what it has."""
    data = table()
    found = f"is {model_type!r}, a model that adds no sinusoids"
    if model_type in data["models"] or model_type in data["parts"]:
        return refused(ValueError, "model_type", found, remedy="use fastpe.RotaryEmbedding.from_config(config)")
    if model_type in data["layouts"]:
        remedy = f"use fastpe.RotaryEmbedding.from_layout({data['layouts'][model_type][0]!r}, head_dim)"
        return refused(ValueError, "model_type", found, remedy=remedy)
    if model_type is not None and (use := use_of(model_type)):
        return refused(ValueError, "model_type", f"is {model_type!r}", remedy=use)
    if model_type in data["without"]:
        return refused(ValueError, "model_type", found)
    near = nearest(model_type, data["sinusoids"], 0.7) if model_type else None
    guess = f'; "{near}" is known: before you take it, compare what both add to embeddings' if near else ""
    remedy = f"use PositionalEncoding(d_model, convention=..){guess}"
    found = "is missing" if model_type is None else f"is {model_type!r}, which is not known"
    return refused(ValueError, "model_type", found, remedy=remedy)
