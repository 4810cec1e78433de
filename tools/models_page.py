# SPDX-License-Identifier: BSD-3-Clause
"""The tables of docs/models.md, from the tables of models; reference.py writes them.

The names of models and the remarks of the first table are the page's own; a model type without a row gets one.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastpe
from fastpe._config.file import table
from fastpe._config.model_type import row_of

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.oracles.configs import with_layers

HEADS = {
    "| Model | `model_type` | Layers | Pairs | Table | Watch out |": lambda rows: rotated(rows),
    "| `model_type` | Call |": lambda _: images(),
    "| `model_type` | Convention | Padding | Factor of embeddings | Watch out |": lambda _: sinusoids(),
    "| `model_type` | Arguments |": lambda _: learned(),
}


def names(types: Any) -> str:
    """Model types as the page shows them."""
    return ", ".join(f"`{name}`" for name in types)


def grouped(rows: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    """The types of each text, by the text."""
    for text, pairs in itertools.groupby(sorted(rows.items(), key=lambda row: row[::-1]), lambda row: row[1]):
        yield text, [name for name, _ in pairs]


def config_of(model_type: str) -> dict[str, Any]:
    """A file of a model with the defaults of its class, which is rotated."""
    row = row_of(model_type)
    config: dict[str, Any] = {key: allowed[0] for key, allowed in row.requires.items()}
    if row.nested and not row.layers:
        config["rope_parameters"] = {"full_attention": {"rope_theta": 10000.0}}
    return with_layers({"model_type": model_type, **config})


def facts(model_type: str) -> tuple[str, str, str]:
    """Whether its layers are alike, its pairs, and the form of its table."""
    layers = fastpe.RotaryEmbedding.layers_from_config(config_of(model_type), seq_len=4096)
    ropes = {layer for layer in layers if layer is not None}
    differ = ["several types"] if len(ropes) > 1 or len(row_of(model_type).layers) > 1 else []
    differ += ["not all rotated"] if None in layers else []
    (pairs,) = {"neighbours" if rope.interleaved else "halves apart" for rope in ropes}
    (form,) = {rope.form for rope in ropes}
    return ", ".join(differ) or "alike", pairs, form


def rotated(rows: list[list[str]]) -> Iterator[str]:
    """The rows of rotary embeddings: names, types and remarks as they are, and what the tables say."""
    known = table()["models"]
    kept = [(model, re.findall("`([^`]+)`", types), remark) for model, types, *_, remark in rows]
    have = {name for _, types, _ in kept for name in types}
    kept += [(known[name]["source"].removeprefix("models/"), [name], "") for name in known if name not in have]
    for model, types, remark in kept:
        said = {name: facts(name) for name in types if name in known}
        for pairs, form in dict.fromkeys(each[1:] for each in said.values()):
            same = {name: each[0] for name, each in said.items() if each[1:] == (pairs, form)}
            usual = max(same.values(), key=[*same.values()].count)
            others = {name: layers for name, layers in same.items() if layers != usual}
            layers = "; ".join([usual, *(f"{names(types)}: {text}" for text, types in grouped(others))])
            yield f"| {model} | {names(same)} | {layers} | {pairs} | {form} | {remark}{' ' * bool(remark)}|"


def images() -> Iterator[str]:
    """The rows of encoders of images."""
    for layout, types in grouped({name: "; ".join(row) for name, row in table()["layouts"].items()}):
        found, _, remark = layout.partition("; ")
        call = f'`fastpe.RotaryEmbedding.from_layout("{found}", head_dim)`{"; " * bool(remark)}{remark}'
        if found == "gemma4_vision":
            call = "`fastpe.RotaryEmbedding(head_dim // 2, interleaved=False, base=100.0)`; for each half of a head: the first "
            call += "by `ids[:, 0]`, the second by `ids[:, 1]`"
        yield f"| {names(types)} | {call} |"


def sinusoids() -> Iterator[str]:
    """The rows of sinusoidal encodings."""
    rows = {}
    for name, row in table()["sinusoids"].items():
        first = f", from {row['first_position']}" if "first_position" in row else ""
        padding = f"not counted (`{row['padding']}`)" if "padding" in row else "counted"
        scale = f"√`{row['scale']}`" if "scale" in row else "1"
        scale += f" if `{row['scale_key']}`" if "scale_key" in row else ""
        values = (f"`{key}` {str(allowed[0]).lower()}" for key, allowed in row.get("requires", {}).items())
        notes = [f"With {', '.join(values)}, else {row.get('otherwise', 'learned')}."] if "requires" in row else []
        notes += [f"{row['note'][0].upper()}{row['note'][1:]}."] if "note" in row else []
        rows[name] = f"{row['convention']}{first} | {padding} | {scale} | {' '.join(notes)}{' ' * bool(notes)}|"
    for text, types in grouped(rows):
        yield f"| {names(types)} | {text}"


def learned() -> Iterator[str]:
    """The rows of learned tables."""
    for arguments, types in grouped(table()["learned"]):
        if arguments != "offset=0":
            yield f"| {names(types)} | `{arguments}` |"
    yield "| other models | `offset=0` |"


def written() -> Iterator[tuple[str, str]]:
    """The pages with the tables, and with the number of model types, by their paths from docs/."""
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    for head, lines in HEADS.items():
        before, after = page.split(f"{head}\n", 1)
        rule, *rest = after.split("\n")
        old = [*itertools.takewhile(lambda line: line.startswith("|"), rest)]
        cells = [[cell.strip() for cell in line.strip("|").split(" |")] for line in old]
        page = f"{before}{head}\n" + "\n".join([rule, *lines(cells), *rest[len(old) :]])
    yield "models.md", page
    count = len(table()["models"])
    for name in ("rotary.md", "../README.md", "../CHANGELOG.md"):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        text = re.sub(r"\d+ model types,", f"{count} model types,", text)
        yield name, re.sub(r"over \d+ (?=models?\b)", f"over {count // 50 * 50} ", text)
