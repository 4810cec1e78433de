# SPDX-License-Identifier: BSD-3-Clause
"""How transformers numbers the tokens of each model type.

Of each type, a tiny model without trained weights is given ids with padding on the left, and position ids by each rule: the
rule that changes nothing is the model's own. Models that generate text get the counts of valid tokens from `generate`.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from fastpe._config.file import table, written
from tools.measures import tiny

LEFT = 3  # tokens of padding


class Ids(NamedTuple):
    """The rule of a type and its first position; and why one is not measured, or follows only from `generate`."""

    rule: str
    first: int
    why: str = ""


def classes_of(config: Any) -> list[Any]:
    """The classes for this config that take tokens, those that predict masked tokens in front."""
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    names = ("MASKED_LM", "CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "SPEECH_SEQ_2_SEQ", "MULTIMODAL_LM", "")
    found = []
    for name in names:
        mapping = getattr(auto, f"MODEL_FOR_{name}_MAPPING" if name else "MODEL_MAPPING", {})
        if type(config) in mapping:
            kind = mapping[type(config)]
            found += [(name, each) for each in (kind if isinstance(kind, (tuple, list)) else [kind])]
    return [(name, each) for name, each in found if tiny.takes(each, "input_ids")]


def measured(model_type: str, config_class: Any) -> Ids:
    """The rule of one type; a rule is empty where it is not known."""
    by_hand = written()["ids"].get(model_type, ["?"])
    if not by_hand[0]:
        return Ids("", 0)  # its reason is in the table
    if not (classes := classes_of(config_class())):
        return Ids("", 0)  # takes no tokens
    with_ids = [(name, each) for name, each in classes if takes_ids(each)]
    if not with_ids:
        return Ids("none", 0)
    is_masked = any(name == "MASKED_LM" for name, _ in with_ids)
    own = [*vars(importlib.import_module(with_ids[0][1].__module__)).values()]
    kinds = [each for each in own if getattr(each, "config_class", None) is config_class and not is_masked]
    causal = [each for each in (*(kind for _, kind in with_ids), *kinds) if each.can_generate() and takes_ids(each)]
    models = table()["models"]
    if models.get(model_type, {}).get("mrope") or any(makes_its_own(each) for each in causal):
        return Ids("", 0)  # see graphs.py
    is_causal = bool(causal) and not is_masked and not getattr(config_class(), "is_encoder_decoder", False)
    if is_causal:
        text = getattr(config_class(), "text_config", None)
        parts = [each for each in own if getattr(each, "config_class", None) in (config_class, type(text))]
        with suppress(ValueError):  # a class that is named, but not there
            parts += [each for _, each in (classes_of(text) if text is not None else [])]
        causal += [each for each in parts if takes_ids(each) and tiny.takes(each, "input_ids")]
    try:
        starts, rules = first_compared(causal if is_causal else [with_ids[0][1]], config_class)
    except Exception as error:  # noqa: BLE001  # whatever a class raises for sizes that it was not written for
        why = tiny.reason(error)
        is_rotated = bool({model_type, text_type(config_class)} & {*models})
        return (
            Ids("valid", 0, f"ids as generate counts, not compared: {why}")
            if is_causal and is_rotated
            else Ids("", 0, why)
        )
    if "padding" in rules and 0 not in starts:
        return Ids("padding", starts[0])
    if is_causal:
        return Ids("valid", 0) if 0 in starts else Ids("", 0, "0 is not the first position")
    if starts and ("columns" in rules or starts[0] > 0):
        return Ids("columns", starts[0])
    return Ids("", 0, "no rule gives what it gives by itself")


def takes_ids(kind: Any) -> bool:
    return tiny.takes(kind, "position_ids")


def makes_its_own(kind: Any) -> bool:
    """Whether `generate` numbers tokens by the model's own code."""
    names = [base for base in kind.__mro__ if "_prepare_position_ids_for_generation" in vars(base)]
    return any(base.__module__.startswith("transformers.models") for base in names)


def text_type(config_class: Any) -> str:
    """The type of the text that a config of this class has."""
    text = getattr(config_class(), "text_config", None)
    return getattr(text, "model_type", "") if text is not None else ""


def first_compared(kinds: list[Any], config_class: Any) -> tuple[list[int], list[str]]:
    """What the first of these classes gives that can be made small."""
    errors = []
    for make, kind in itertools.product((tiny.shrunk, tiny.divided), dict.fromkeys(kinds)):
        try:
            return compared(kind, make(config_class()))
        except TimeoutError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a class raises for sizes that it was not written for
            errors.append(error)
    raise errors[0]


def compared(kind: Any, config: Any) -> tuple[list[int], list[str]]:
    """Which first positions, and which rules, give what the model gives by itself."""
    torch = importlib.import_module("torch")
    torch.manual_seed(0)
    if type(config) is not kind.config_class and isinstance(getattr(config, "text_config", None), kind.config_class):
        config = config.text_config  # a class for only the text
    config._attn_implementation = "eager"
    padding = getattr(config, "pad_token_id", None)
    padding = 1 if padding is None or padding < 0 else padding
    length, left = 9, LEFT
    with tiny.limited():
        model = kind(config).eval().float()
        for parameter in model.parameters():
            if parameter.ndim >= 2:
                torch.nn.init.normal_(parameter, std=0.2)
        ids = torch.arange(20, 20 + length)[None]
        padded = torch.cat([torch.full((1, left), padding), ids], 1)
        alone, own = output(model, ids, ids > 0), output(model, padded, padded >= 20)[:, left:]
        starts = [n for n in range(4) if agrees(model, ids, alone, 0, list(range(n, n + length)))]
        rules = {
            "columns": list(range(left + length)),
            "padding": [padding] * left + list(range(padding + 1, padding + 1 + length)),
        }
        return starts, [name for name, each in rules.items() if agrees(model, padded, own, left, each)]


def agrees(model: Any, ids: Any, expected: Any, left: int, positions: list[int]) -> bool:
    torch = importlib.import_module("torch")
    try:
        found = output(model, ids, ids >= 20, position_ids=torch.tensor([positions]))[:, left:]
    except (IndexError, RuntimeError):  # a position that the table does not have
        return False
    return bool((found - expected).abs().max() < 1e-4)


def output(model: Any, ids: Any, valid: Any, **given: Any) -> Any:
    """What a model gives for tokens alone, or with other inputs that it needs."""
    torch = importlib.import_module("torch")
    if tiny.takes(model, "use_cache"):
        given["use_cache"] = False
    usual = {"input_ids": ids, "attention_mask": valid.long()}
    others = (each for each in tiny.inputs_of(model, *ids.tolist(), *valid.long().tolist()) if "input_ids" in each)
    errors = []
    for inputs in itertools.chain([usual], (each for each in others if each["input_ids"].shape == ids.shape)):
        try:
            with torch.no_grad():
                result = model(**inputs, **given, return_dict=True)
            names = ("logits", "last_hidden_state", "text_embeds", "logits_per_text")
            return next(each for each in map(result.get, names) if each is not None).float()
        except TimeoutError:
            raise
        except Exception as error:  # noqa: BLE001  # inputs of another kind may be needed
            errors.append(error)
    raise errors[0]


def shown(rule: str, first: int, padding: int) -> list[int]:
    """An id of padding, and the positions of the first tokens behind three of it; none where there are no positions."""
    start = {"valid": first, "columns": LEFT + first, "padding": padding + 1, "none": 0}[rule]
    return [padding, *(range(start, start + 3) if rule != "none" else ())]


def measure(kinds: Mapping[str, Any]) -> tuple[dict[str, list[Any]], dict[str, list[int]], dict[str, str]]:
    """The rules of these types and of the texts in them, what is stored of each, and why some are not measured."""
    rules: dict[str, list[Any]] = {}
    texts: dict[str, list[Any]] = {}
    seen, missing = {}, {}
    for name in sorted(kinds):
        try:
            found = measured(name, kinds[name])
            part = text_type(kinds[name]) if found.rule == "valid" else ""
            if found.rule and not found.why:
                padding = getattr(tiny.shrunk(kinds[name]()), "pad_token_id", None)
                seen[name] = shown(*found[:2], 1 if padding is None or padding < 0 else padding)
        except Exception as error:  # noqa: BLE001  # a class without defaults, or without a package that it needs
            found, part = Ids("", 0, tiny.reason(error)), ""
        if found.rule:
            rules[name] = [found.rule, found.first]
        if part:
            texts[part] = ["valid", 0]
        if found.why:
            missing[name] = found.why
    texts = {name: rule for name, rule in texts.items() if rules.get(name, [""])[0] != "valid"}
    return rules | texts, {name: each for name, each in seen.items() if name not in texts}, missing
