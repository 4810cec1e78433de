# SPDX-License-Identifier: BSD-3-Clause
"""Models that rotate nothing: which of their parameters say positions.

A model is made from its default configuration, without memory for its weights. It rotates nothing if the code of none of its
modules has a word of rotation. Of what it adds or biases instead, the names of its parameters tell.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import torch

from tools.measures import tiny

ROTATION = re.compile(r"(?i)rotary|rotate_half|apply_rot|\brope\b")
POSITIONS = re.compile(
    r"(^|[._])(pos(ition(al)?)?s?_?(emb|enc|bias|conv)|.*_pos(ition)?_emb|pos_embed|wpe|(emb_)?(rel|relative)_)"
)
LAYERS = ("num_hidden_layers", "depth", "n_layer", "num_layers", "encoder_layers", "decoder_layers")


def positions(kind: type) -> list[str] | None:
    """The parameters, as "name [shape]", with the number of a layer as *; None for a model that rotates."""
    model = made(kind)
    modules = {type(module) for module in model.modules() if type(module).__module__.startswith("transformers.models")}
    if any(ROTATION.search(inspect.getsource(module)) for module in modules):
        return None
    found = dict.fromkeys(
        f"{re.sub(r'[.][0-9]+(?=[.])', '.*', name)} {list(each.shape)}"
        for name, each in model.named_parameters()
        if POSITIONS.search(name)
    )
    different = {each.split(" ")[0]: each for each in reversed(found)}  # the first shape, where layers have several
    return [*reversed(different.values())][:8]


def made(kind: type) -> Any:
    """The whole model of a configuration's class, with two layers."""
    if not (classes := tiny.classes_of(kind)):
        raise ValueError("no class has this configuration")
    config = kind()
    for key in LAYERS:
        if type(getattr(config, key, None)) is int and "block_sizes" not in kind.__dataclass_fields__:
            setattr(config, key, min(2, getattr(config, key)))
    with torch.device("meta"):
        return min(classes, key=lambda each: (not each.__name__.endswith("Model"), len(each.__name__)))(config)
