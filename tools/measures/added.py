# SPDX-License-Identifier: BSD-3-Clause
"""What a model adds to its embeddings: sinusoids, of which convention, or rows of a learned table, and how it counts them.

A tiny model of each type computes what its first layer takes. Its parameters are zero but for those that are named after
positions, and tables that are learned have the numbers of their rows; rows of sinusoids are found by their values. The other
fields are seen with padding on the left, another id of padding, embeddings of ones, and other values of the config's keys.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

import fastpe
from fastpe._config.file import written
from tools.measures import tiny

TOKEN, LENGTH = 7, 5
WHOLE, SEEN = [TOKEN] * LENGTH, [1] * LENGTH
PADDED, LEFT = [1, 1, *WHOLE[2:]], [0, 0, *SEEN[2:]]
POSITIONS = re.compile("(?i)po?s|wpe|sinus")
LAYERS = re.compile("Layer(?!Norm)|Block|Attention")
CONVENTIONS = ("vaswani", "concat", "x_transformers", "tensor2tensor", "musicgen")
REQUIRED = {"prediction_length": 8}


class Rows(NamedTuple):
    """A convention, or "" where they are learned; the numbers of the first rows, -1 for none; and their width."""

    convention: str
    numbers: list[int]
    width: int = 0


class Kind(NamedTuple):
    """A configuration's class, values of its keys, and a class of models that adds something."""

    config: Any
    given: dict[str, Any]
    model: Any

    def small(self, **given: Any) -> Any:
        """A configuration of small sizes."""
        known = {key: value for key, value in REQUIRED.items() if key in self.config.__dataclass_fields__}
        config = tiny.shrunk(self.config(**known))
        for key, value in (self.given | given).items():
            setattr(config, key, value)
        return config


class _Reached(Exception):  # the first layer
    pass


def first_layer(model: Any, given: dict[str, Any]) -> tuple[Any, list[int]]:
    """What it takes, None if it is not reached; and which rows of the tables of positions are looked up before."""
    lists = [(name, each) for name, each in model.named_modules() if isinstance(each, torch.nn.ModuleList)]
    layers = [(name, each) for name, each in lists if len(each) and LAYERS.search(type(each[0]).__name__)]
    for name, module in model.named_modules():
        if type(module).__name__.endswith("Norm") and not any(name.startswith(f"{layer}.") for layer, _ in layers):
            module.forward = lambda *given, **named: [*given, *named.values()][0]
    tables = {id(each) for name, each in model.named_parameters() if is_learned(model, name)}
    seen: list[Any] = []
    found: list[int] = []
    real = torch.nn.functional.embedding

    def hook(_: Any, arguments: Any, named: Any) -> None:
        seen.append(arguments[0] if arguments else named["hidden_states"])
        raise _Reached

    def spy(rows: Any, weight: Any, *arguments: Any, **options: Any) -> Any:
        found.extend(rows.flatten().tolist() if id(weight) in tables else [])
        return real(rows, weight, *arguments, **options)

    hooks = [each[0].register_forward_pre_hook(hook, with_kwargs=True) for _, each in layers]
    torch.nn.functional.embedding = spy
    try:
        with torch.no_grad(), contextlib.suppress(Exception):  # other inputs may be needed
            model(**given)
    finally:
        torch.nn.functional.embedding = real
        for each in hooks:
            each.remove()
    return (seen[0].float() if seen else None), found


def is_of_positions(model: Any, name: str) -> bool:
    """Whether a parameter, or the module that has it, is named after positions."""
    owner, _, own = name.rpartition(".")
    return bool(POSITIONS.search(f"{own} {owner.rpartition('.')[2]} {type(model.get_submodule(owner)).__name__}"))


def is_learned(model: Any, name: str) -> bool:
    """Whether it is a table of positions of which rows are taken."""
    owner, _, own = name.rpartition(".")
    return own == "weight" and "Embedding" in type(model.get_submodule(owner)).__name__ and is_of_positions(model, name)


def runs(
    kind: Kind,
    tokens: list[int] = WHOLE,
    mask: list[int] = SEEN,
    *,
    numbered: bool = False,
    ones: bool = False,
    **given: Any,
) -> Iterator[tuple[Any, list[int]]]:
    """What the first layer takes for each shape of inputs, a row for each token; and the rows that are looked up."""
    torch.manual_seed(0)
    model = kind.model(kind.small(**given)).eval().float()
    words = getattr(model.get_input_embeddings(), "weight", None) if ones and tiny.takes(model, "input_ids") else None
    with torch.no_grad():
        for name, each in model.named_parameters():
            if not is_of_positions(model, name):
                each.fill_(float(each is words))
            elif numbered and is_learned(model, name):
                each.copy_(torch.arange(float(len(each)))[:, None].expand_as(each))
    for inputs in tiny.inputs_of(model, tokens, mask, ones=ones):
        taken, looked_up = first_layer(model, inputs)
        yield (None if taken is None else taken.reshape(-1, taken.shape[-1])[: len(tokens)].numpy()), looked_up


def rows(kind: Kind, tokens: list[int] = WHOLE, mask: list[int] = SEEN, **given: Any) -> Rows | None:
    """What is added to these tokens, or to the first frames or patches; None if nothing is, or nothing that is known."""
    for values, _ in runs(kind, tokens, mask, **given):
        if values is not None and (found := sinusoids(values)):
            return found
    for values, looked_up in runs(kind, tokens, mask, numbered=True, **given):
        if looked_up:
            return Rows("", looked_up[: len(tokens)])
        if values is not None and len(values) > 1 and (values[1:] != 0).all():
            return Rows("", np.round(values[:, 0]).astype(int).tolist())
    return None


def sinusoids(values: Any) -> Rows | None:
    """The convention that has these rows."""
    width = values.shape[1]
    for name in CONVENTIONS if width > 6 else ():
        known = fastpe.PositionalEncoding(width, convention=name).encode(16)
        near = np.abs(values[:, None] - known).max(axis=2)
        numbers = [int(each.argmin()) if each.min() < 2e-5 else -1 for each in near]
        if max(numbers) > 0:
            return Rows(name, numbers, width)
    return None


def kinds_of(config: Any, **given: Any) -> Iterator[tuple[Kind, Rows]]:
    """The classes that add something, and what."""
    for model in tiny.classes_of(config):
        kind = Kind(config, given, model)
        with contextlib.suppress(Exception):  # a class that is made in another way
            if known := rows(kind):
                yield kind, known


def first_of(config: Any, **given: Any) -> tuple[Any, Rows | None]:
    """The first of them."""
    return next(kinds_of(config, **given), (None, None))


def counting(kind: Kind) -> dict[str, list[int]]:
    """The numbers of rows: for ids of padding 1 and 3, and with padding on the left, by a mask or not."""
    known = {
        "whole": rows(kind, pad_token_id=1),
        "padding 3": rows(kind, pad_token_id=3),
        "left": rows(kind, PADDED, LEFT, pad_token_id=1),
        "left, no mask": rows(kind, PADDED, pad_token_id=1),
    }
    return {name: each.numbers if each else [] for name, each in known.items()}


def arguments(counted: dict[str, list[int]]) -> str:
    """Those of `fastpe.add_` with a learned table; empty where there are none that give these rows."""
    start, *others = counted["whole"] or [0]
    of_another = (counted["padding 3"] or [start])[0]
    follows = (start, of_another) == (2, 4)
    if others != [*range(start + 1, start + LENGTH)] or not (follows or of_another == start):
        return ""
    offset = "offset=pad_token_id + 1" if follows else f"offset={start}"
    first_tokens = [start, start + 1, start + 2]
    if counted["left"][2:] != first_tokens:
        return offset
    if counted["left, no mask"][2:] != first_tokens:
        return f"{offset}, valid=attention_mask"
    return f"{offset}, valid=ids != {'pad_token_id' if follows else 1}"


def factor(config: Any, **given: Any) -> float:
    """What embeddings are multiplied by before sinusoids are added; 1 where that is not seen."""
    for kind, known in kinds_of(config, **given):
        of_ones, of_zeros = (runs(kind, ones=ones) for ones in (True, False))
        for (one, _), (zero, _) in zip(of_ones, of_zeros, strict=True) if known.convention else ():
            added = np.zeros(1) if one is None else one - zero
            if np.ptp(added) < 1e-4 and added.mean() > 1e-6 and abs(added.mean() - 1) > 1e-3:
                return float(added.mean())
    return 1.0


def keys(config: Any, value: type, word: str = "") -> list[str]:
    """The keys of a configuration that have values of this type, and match this."""
    known = config()
    names = [key for key in config.__dataclass_fields__ if re.search(word, key)]
    return [key for key in names if type(getattr(known, key, None)) is value]


def scale(config: Any, width: str, **given: Any) -> dict[str, str]:
    """Of which key's value embeddings are multiplied by the root, and the key that says whether."""
    switches = keys(config, bool, "scale")
    for on in ({}, *({key: True} for key in switches)):
        if (once := factor(config, **given, **on)) == 1.0:
            continue
        for key in dict.fromkeys([width, *keys(config, int)]):
            size = getattr(Kind(config, given, None).small(), key)
            if abs(once**2 - size) > 1e-3:
                continue
            if abs(factor(config, **given, **on, **{key: 2 * size}) ** 2 - 2 * size) < 0.01:
                off = [switch for switch in switches if factor(config, **given, **{switch: False}) == 1.0]
                return {"scale": key} | ({"scale_key": off[0]} if off else {})
    return {}


def sinusoid(config: Any) -> tuple[dict[str, Any], Kind] | None:
    """A row of the table of sinusoids, and the class that it is of; None where a model of this configuration adds none."""
    kind, known = first_of(config)
    row: dict[str, Any] = {}
    if known is None or not known.convention:
        values = {key: not getattr(config(), key) for key in keys(config, bool, "pos|sinus")}
        others = ((key, *first_of(config, **{key: value})) for key, value in values.items())
        found = next((each for each in others if each[2] and each[2].convention), None)
        if found is None:
            return None
        row = {"requires": {found[0]: [values[found[0]]]}} | ({} if known else {"otherwise": "none"})
        _, kind, known = found
    if not tiny.takes(kind.model, "input_ids"):
        same = (each for each, rows in kinds_of(config, **kind.given) if rows.convention == known.convention)
        kind = next((each for each in same if tiny.takes(each.model, "input_ids")), kind)
    counted = arguments(counting(kind))
    width, is_fairseq = known.width, known.convention == "tensor2tensor"
    if counted == "offset=pad_token_id + 1, valid=ids != pad_token_id":
        row |= {"convention": "fairseq" if is_fairseq else known.convention, "padding": "pad_token_id"}
    elif start := re.fullmatch(r"offset=(\d)", counted):
        name = "fairseq" if is_fairseq and start[1] == "2" else known.convention
        row |= {"convention": name}
        if int(start[1]) != fastpe.conventions[name].first_position:
            row["first_position"] = int(start[1])
    else:
        raise ValueError(f"its rows are counted with {counted or 'no rule'}")
    small, wide = kind.small(), []
    for key in keys(config, int):
        with contextlib.suppress(Exception):  # sizes that do not fit
            other = rows(kind, **{key: 2 * width}) if getattr(small, key) == width else None
            wide += [key] if other and other.width == 2 * width else []
    row |= {"width": wide[0]} if len(wide) == 1 else {}
    row |= scale(config, wide[0] if wide else "hidden_size", **kind.given)
    read = [*(row[key] for key in ("width", "scale", "scale_key", "padding") if key in row), *kind.given]
    row["defaults"] = {key: getattr(config(), key) for key in dict.fromkeys(read)}
    return {**row, "source": f"models/{config.__module__.split('.')[2]}"}, kind


def stored(row: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """What the first layer takes for the last token, whose embedding is of ones, or else of zeros, and the keys of its config."""
    on = {row["scale_key"]: True} if "scale_key" in row else {}
    config = kind.small(pad_token_id=1, **on)
    tokens, mask = (PADDED, LEFT) if tiny.takes(kind.model, "input_ids") else (WHOLE, SEEN)
    zeros, of_ones = (
        next(values for values, _ in runs(kind, tokens, mask, ones=ones, pad_token_id=1, **on) if values is not None)[
            -1
        ]
        for ones in (False, True)
    )
    last = [round(float(each), 4) for each in (*of_ones[:4], *of_ones[-4:])]
    given = {key: getattr(config, key) for key in ("pad_token_id", *row["defaults"]) if hasattr(config, key)}
    one = int((of_ones != zeros).all())
    seen = {"config": given, "tokens": tokens, "embedding": one, "last": last}
    return {**seen, "required": kind.given, "defaults": row["defaults"]}


def measure_sinusoids(kinds: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """The rows of those of these types that add sinusoids, what is stored of each, and why some are not measured."""
    by_hand = written()["sinusoids"]
    found, seen, missing = {}, {}, {}
    for name, config in sorted(kinds.items()):
        try:
            if known := sinusoid(config):
                found[name], seen[name] = known[0], stored(*known)
                if "width" not in known[0] | by_hand.get(name, {}):
                    missing[name] = "the key of its width"
        except Exception as error:  # noqa: BLE001  # a class without defaults, or without a package that it needs
            missing[name] = tiny.reason(error)
    return found, seen, missing


def measure_learned(kinds: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """The arguments of those of these types that have a learned table, and what is stored of each."""
    found, seen = {}, {}
    for name, config in sorted(kinds.items()):
        with contextlib.suppress(Exception):  # a class without defaults, or without a package that it needs
            kind, known = first_of(config)
            counted = counting(kind) if known and not known.convention else {}
            if rule := counted and arguments(counted):
                found[name], seen[name] = rule, counted
    return found, seen
