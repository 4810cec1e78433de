# SPDX-License-Identifier: BSD-3-Clause
"""Position ids of models of text only: which rule a model type has, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fastpe._arguments import integer, largest_position, shown
from fastpe._config.file import table
from fastpe._config.model import ModelConfig
from fastpe._config.refusals import other_models, use_of
from fastpe._errors import refused
from fastpe._graph.arrays import Array


class Counted(NamedTuple):
    """How tokens count: the "valid" ones, all "columns", or those that are not the token of "padding"."""

    rule: str
    first: int

    def ids(self, tokens: Array, valid: Array, has_mask: bool, counted: Array, columns: Array) -> Array:
        """The ids [B, L] of tokens behind others, of which `counted` were valid, and which are all of `columns`."""
        if self.rule == "columns":
            return columns[:, None] + np.arange(self.first, self.first + tokens.shape[1])
        if self.rule == "padding":
            is_token = tokens != self.first - 1
            if has_mask and (is_token != valid).any():
                found = f"is not 0 exactly where input_ids has {self.first - 1}, the pad_token_id"
                remedy = "leave it out: the model finds padding by its token"
                raise refused(ValueError, "attention_mask", found, remedy=remedy)
            valid = is_token
        ids = np.cumsum(valid, axis=1) + (counted + self.first - 1)[:, None]
        return np.where(valid, ids, max(self.first - 1, 1))

    def require_positions(self, ids: Array) -> None:
        """Refuse ids that are too large."""
        if ids.max(initial=0) > largest_position:
            raise refused(ValueError, "past", "leads to a position beyond 2**53", "smaller numbers")


def rule_of(config: ModelConfig) -> Counted:
    """The rule of a model type; an empty one where it is not known."""
    return Counted(*table()["ids"].get(config._known_type, ("", 0))[:2])


def counted_by(config: ModelConfig, first_position: int | None) -> Counted:
    """The rule of the models of text in a config; `first_position` says what an unknown type does not."""
    levels = [*config._to_text(must_end=False)]
    _refuse_coordinates(levels)
    of_levels = [rule_of(level) for level in levels]
    for level, (rule, _) in zip(levels, of_levels, strict=True):
        if rule == "none" or level.vision is level or level.audio is level or (not rule and _has_no_ids(level)):
            remedy = use_of(level._known_type or "") or "its exported graph has no such input"
            found = f"is {shown(level.model_type)}, a model that takes no position ids of tokens"
            raise refused(ValueError, level._place("model_type"), found, remedy=remedy)
    rules = {rule for rule, _ in of_levels}
    if "" not in rules and len(rules) == 1:
        (rule,), part, key = rules, levels[-1], "pad_token_id"
        # A model around a model of text may begin elsewhere.
        first = max(each.first for each in of_levels)
        if rule == "padding":
            first = integer(part._place(key), part._json.get(key, first - 1), 0) + 1
        if first_position not in (None, first):
            found = f"is {shown(first_position)}, but the first token of {config.model_type!r} is at {first}"
            raise refused(ValueError, "first_position", found, remedy="leave it out")
        is_decoder = rule == "columns" and part._json.get("is_decoder") is True
        return Counted("valid" if is_decoder else rule, first)
    if first_position is not None:
        return Counted("valid", integer("first_position", first_position, 0))
    raise _unknown(next((level for level, each in zip(levels, of_levels, strict=True) if not each.rule), config))


def _has_no_ids(config: ModelConfig) -> bool:
    """Whether it is known what the model has, and it has no position ids."""
    return any(config._known_type in table()[kind] for kind in ("sinusoids", "biases", "grids"))


def _unknown(config: ModelConfig) -> Exception:
    name = config._known_type
    found = "is missing" if name is None else f"is {name!r}, whose position ids are not known"
    remedy = (
        "give first_position=0 if a position is the number of tokens before, without padding, or padding_idx + 1 if "
    )
    remedy += f"its positions begin behind that of padding{other_models(config._json)}"
    return refused(ValueError, config._place("model_type"), found, remedy=remedy)


def _refuse_coordinates(levels: list[ModelConfig]) -> None:
    """Refuse positions of several coordinates."""
    for level in levels:
        written: Any = level._json
        ropes = [written.get(key) for key in ("rope_scaling", "rope_parameters")]
        if any("mrope_section" in each for each in [written, *(rope for rope in ropes if isinstance(rope, Mapping))]):
            found = f"is {shown(level.model_type)}, whose positions have several coordinates"
            remedy = "number its tokens as the model does, such as by rotary_layouts[NAME].positions"
            raise refused(ValueError, level._place("model_type"), found, "a model that fastpe knows", remedy)
