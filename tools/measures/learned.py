# SPDX-License-Identifier: BSD-3-Clause
"""Learned tables: which row the first token or patch has, and whether padding is counted.

A tiny model of each type looks rows up in its tables of positions, for tokens without padding and with padding on the left,
and for two ids of padding.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from tools.measures import ids

TOKEN, LENGTH = 7, 5


def tables_of(model: Any) -> list[Any]:
    """Its tables of positions."""
    return [
        module.weight
        for name, module in model.named_modules()
        if "Embedding" in type(module).__name__
        and hasattr(module, "weight")
        and re.search("po?s|wpe", f"{type(module).__name__}{name.rsplit('.')[-1]}", re.IGNORECASE)
    ]


def looked_up(model: Any, run: Callable[[], Any]) -> list[int]:
    """The rows of its tables of positions, in the order in which they are looked up."""
    torch: Any = importlib.import_module("torch")
    tables = {id(weight) for weight in tables_of(model)}
    seen: list[int] = []
    real = torch.nn.functional.embedding

    def spy(rows: Any, weight: Any, *arguments: Any, **options: Any) -> Any:
        if id(weight) in tables:
            seen.extend(rows.flatten().tolist())
        return real(rows, weight, *arguments, **options)

    torch.nn.functional.embedding = spy
    try:
        with torch.no_grad(), contextlib.suppress(Exception):  # what follows the table may need more
            run()
    finally:
        torch.nn.functional.embedding = real
    return seen


def inputs_of(model: Any, tokens: list[int], mask: list[int]) -> dict[str, Any]:
    """The tokens, and where they are no padding; or an image."""
    torch: Any = importlib.import_module("torch")
    size = getattr(model.config, "image_size", 224)
    size = size if isinstance(size, int) else size[0]
    given = {"input_ids": torch.tensor([tokens]), "attention_mask": torch.tensor([mask])}
    given["decoder_input_ids"] = given["input_ids"]
    if not ids.takes(model, "input_ids"):
        given = {"pixel_values": torch.zeros(1, getattr(model.config, "num_channels", 3), size, size)}
    return {name: each for name, each in given.items() if ids.takes(model, name)}


def rows(kind: Any, tokens: list[int], padding: int, mask: list[int]) -> list[int]:
    """The rows that the model of a configuration's class has for the tokens; none where it has no such table."""
    folder = pathlib.Path(inspect.getfile(kind)).parent
    for source in sorted(folder.glob("modeling_*.py")):
        module = importlib.import_module(f"transformers.models.{folder.name}.{source.stem}")
        for name, model in sorted(vars(module).items(), key=lambda item: len(item[0])):
            is_whole = name.endswith(("Model", "Decoder", "ForCausalLM")) and "PreTrained" not in name
            if is_whole and getattr(model, "config_class", None) is kind:
                config = ids.shrunk(kind())
                config.pad_token_id = padding
                made = model(config).eval()
                given = inputs_of(made, tokens, mask)
                if found := looked_up(made, lambda: made(**given)):  # noqa: B023
                    return found[:LENGTH]
    return []


def rule(kind: Any) -> str:
    """The arguments of `fastpe.add_`; empty where the type has no such table."""
    whole, ones = [TOKEN] * LENGTH, [1] * LENGTH
    first, *others = rows(kind, whole, 1, ones) or [0]
    if others != [*range(first + 1, first + LENGTH)]:
        return ""
    (of_another, *_) = rows(kind, whole, 3, ones)
    offset = f"offset={first}" if of_another == first else "offset=pad_token_id + 1"
    if of_another not in (first, 4) or (of_another == 4) != (first == 2 and of_another != first):
        return ""
    counted = [first, first + 1, first + 2]
    padded, left = [1, 1, TOKEN, TOKEN, TOKEN], [0, 0, 1, 1, 1]
    if rows(kind, padded, 1, left)[2:] != counted:
        return offset
    if rows(kind, padded, 1, ones)[2:] != counted:
        return f"{offset}, valid=attention_mask"
    return f"{offset}, valid=ids != {'pad_token_id' if of_another != first else 1}"


def measure(kinds: Mapping[str, Any]) -> dict[str, str]:
    """The rules of those of these types that have one."""
    found = {}
    for name, kind in sorted(kinds.items()):
        with contextlib.suppress(Exception):  # a class without defaults, or without a package that it needs
            if rules := rule(kind):
                found[name] = rules
    return found
