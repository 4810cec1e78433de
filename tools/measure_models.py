# SPDX-License-Identifier: BSD-3-Clause
"""Measure the models of the installed transformers: python tools/measure_models.py [--write] [MODEL_TYPE ..].

What is measured is python/fastpe/_config/measured.json: rotation and layers, the way to the language model, how tokens are
numbered, the inputs of exported graphs, sinusoids, learned tables, biases, and what says positions in models that rotate
nothing; and what quick tests compare: tests/data/graph_inputs.json and positions.json. Without --write, or with --check, the
tool says what differs. It prints what it could not measure: that belongs into written.json, by hand and with its source,
whose rows, and fields of models and sinusoids, count before those of measured.json. With the names of model types it
measures only these; all of them take about six minutes of a processor. It needs `pip install --group peers`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import pathlib
import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import transformers

from fastpe._config.file import table, written
from fastpe._config.model_type import row_of
from fastpe._graph.model import graphs as graph_rows
from tools.measures import added, biases, graphs, ids, rotation, tiny, unrotated

MEASURED = pathlib.Path(__file__).parents[1] / "python" / "fastpe" / "_config" / "measured.json"
# A type with a row of one of these needs no row of what rotates nothing.
ANSWERED = ("models", "parts", "layouts", "told", "grids", "learned")
SEEN = pathlib.Path(__file__).parents[1] / "tests" / "data" / "positions.json"
NOTE = "What transformers computes for tiny models of these types: tools/measure_models.py writes it."


class Measured(NamedTuple):
    """The content of measured.json; what quick tests compare; and what could not be measured: table, model_type and why."""

    data: dict[str, Any]
    seen: dict[str, Any]
    missing: list[tuple[str, str, str]]


def measure(rotaries: Iterable[rotation.Rotary], kinds: Mapping[str, type]) -> Measured:
    """Measure classes that make tables, and configurations by their model_type."""
    known, by_hand = table(), written()
    models, parts, without_rotation = rotation.measure(rotaries, kinds)
    same = {name: kind for name, kind in transformers.CONFIG_MAPPING.items() if kind in kinds.values()}
    of_ids, seen_ids, without_ids = ids.measure({**kinds, **same})
    of_graphs, without_graphs = graphs.measure(kinds)
    whole = {name for name, row in by_hand["sinusoids"].items() if "convention" in row}
    answered = {*models, *whole} | {name for kind in ANSWERED for name in by_hand[kind]}
    unknown = {*kinds} - answered - {*parts, *known["without"]}
    of_sinusoids, seen_sinusoids, without_sinusoids = added.measure_sinusoids(
        {name: kinds[name] for name in {*kinds} & ({*known["sinusoids"]} | unknown) - whole}
    )
    of_learned, seen_learned = added.measure_learned(
        {
            name: kinds[name]
            for name in {*kinds} & ({*known["learned"]} | unknown - {*of_sinusoids}) - {*by_hand["learned"]}
        }
    )
    of_biases, seen_biases = biases.measure({name: kinds[name] for name in {*kinds} - answered - {*by_hand["biases"]}})
    reasons = {
        "models": {name: "; ".join(each) for name, each in without_rotation.items()},
        "ids": without_ids,
        "graphs": without_graphs,
        "sinusoids": without_sinusoids,
        "without": {},
    }
    without = {}
    for name in sorted({*kinds} - answered - {*of_learned, *of_sinusoids}):
        try:
            found = unrotated.positions(kinds[name])
        except Exception as error:  # noqa: BLE001  # a class without defaults, or without a package that it needs
            found, why = None, tiny.reason(error)
        else:
            why = "no table has it, and its code has a word of rotation"
        if found is not None:
            without[name] = found
        elif name not in parts:
            reasons["without"][name] = why
    release = transformers.__version__
    source = f"huggingface/transformers, version {release}: src/transformers, and there the folder that a row names"
    data = {"source": source, "models": models, "parts": parts, "ids": of_ids, "graphs": of_graphs, "without": without}
    data |= {"sinusoids": of_sinusoids, "learned": of_learned, "biases": of_biases}
    seen = {"ids": seen_ids, "sinusoids": seen_sinusoids, "learned": seen_learned, "biases": seen_biases}
    missing = [(kind, name, why) for kind, rows in reasons.items() for name, why in rows.items()]
    return Measured(data, {"note": NOTE, **seen}, missing)


def with_rows(stored: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The stored tables with the rows that were found."""
    return {
        kind: dict(sorted((stored.get(kind, {}) | rows).items())) if isinstance(rows, dict) else rows
        for kind, rows in found.items()
    }


def text_of(data: dict[str, Any]) -> str:
    """The file: a line for each row."""
    lines = []
    for name, value in data.items():
        text = json.dumps(value)
        if isinstance(value, dict):
            text = "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(each)}" for key, each in value.items()) + "\n}"
        lines.append(f"{json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def differences(stored: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """What a release changes, row by row."""
    return [
        f"{kind}, {name}: {json.dumps(stored[kind].get(name))}, measured: {json.dumps(rows.get(name))}"
        for kind, rows in found.items()
        if isinstance(rows, dict)
        for name in sorted({*stored[kind], *rows})
        if stored[kind].get(name) != rows.get(name)
    ]


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write measured.json and the two files in tests/data")
    parser.add_argument("--check", action="store_true", help="say what differs from them, as without --write")
    parser.add_argument("types", nargs="*", metavar="MODEL_TYPE", help="only these")
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    importlib.import_module("torch").set_num_threads(1)
    kinds = rotation.configurations()
    if unknown := {*options.types} - {*kinds}:
        parser.error(f"the installed transformers has no model_type {', '.join(sorted(unknown))}")
    if options.types:
        kinds = {name: kinds[name] for name in options.types}
    found = measure((each for each in rotation.classes() if each.config.model_type in kinds), kinds)
    changed = []
    for path, rows in ((MEASURED, found.data), (SEEN, found.seen)):
        stored = json.loads(path.read_text("utf-8"))
        data = with_rows(stored if options.types else {}, rows)
        changed += differences(stored, data)
        if options.write:
            path.write_text(text_of(data), "utf-8")
    if options.write:
        for cached in (table, graph_rows, row_of):
            cached.cache_clear()
    changed += graphs.store(write=options.write, names=options.types)
    print("\n".join(changed), end="\n" if changed else "")
    print(f"transformers {transformers.__version__}: {len(kinds)} model types, {len(changed)} differences")
    for kind, name, why in sorted(found.missing):
        if name not in written()[kind] and not (kind == "models" and name in written()["parts"]):
            print(f"not measured, {kind}: {name or 'a class without a model_type'}: {why}")
    return int(bool(changed) and not options.write)


if __name__ == "__main__":
    sys.exit(main())
