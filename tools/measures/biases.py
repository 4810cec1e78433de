# SPDX-License-Identifier: BSD-3-Clause
"""Biases of scores by relative positions: which of fastpe's functions gives what a model's own one gives."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

import fastpe
from tools.measures import added, tiny

OWN = re.compile("(_|get_)?relative_position_bucket|build_(mpt_)?alibi_tensor")
FAR = [-300, -70, -20, -5, -1, 0, 1, 5, 20, 70, 300]
BUCKETS, SLOPES = "learned[fastpe.relative_buckets(key - query, bidirectional={})]", "fastpe.alibi_slopes(num_heads)"


@contextlib.contextmanager
def heard(module: Any, calls: list[tuple[Callable[..., Any], list[Any], dict[str, Any]]]) -> Iterator[None]:
    """List what the functions of this module with such names are given."""
    owners = [module, *(each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__)]
    before = [(owner, name, each) for owner in owners for name, each in vars(owner).items() if OWN.fullmatch(name)]

    for owner, name, each in before:
        plain = getattr(owner, name)

        def listed(*given: Any, plain: Any = plain, **named: Any) -> Any:
            calls.append((plain, [*given], named))
            return plain(*given, **named)

        setattr(owner, name, staticmethod(listed) if isinstance(each, staticmethod) else listed)
    try:
        yield
    finally:
        for owner, name, each in before:
            setattr(owner, name, each)


def bias(config: Any) -> tuple[str, dict[str, Any]] | None:
    """The calls for the biases of a model, and what its functions give."""
    module = importlib.import_module(config.__module__.replace("configuration_", "modeling_"))
    if not re.search(f"def ({OWN.pattern})", inspect.getsource(module)):
        return None
    for model in tiny.classes_of(config):
        calls: list[Any] = []
        with contextlib.suppress(Exception), heard(module, calls):
            small = added.Kind(config, {}, model).small()
            made = model(small).eval()
            for given in tiny.inputs_of(made, added.WHOLE, added.SEEN):
                with contextlib.suppress(Exception), torch.no_grad():
                    made(**given)
        if calls:
            return told(calls)
    return None


def told(calls: list[Any]) -> tuple[str, dict[str, Any]] | None:
    """What these calls show."""
    found = {}
    for function, given, named in calls:
        if "alibi" in function.__name__:
            result = function(*given, **named)
            steps = np.diff(result.reshape(result.shape[0], -1).float().numpy())
            np.testing.assert_array_equal(steps, np.broadcast_to(fastpe.alibi_slopes(len(steps))[:, None], steps.shape))
            return SLOPES, {"slopes": steps[:, 0].tolist()}
        at = next(at for at, each in enumerate(given) if isinstance(each, torch.Tensor))
        query, key = np.ogrid[: given[at].shape[-2], : given[at].shape[-1]]
        if np.ptp(given[at].numpy() - (key - query)) == 0:  # as far away as the tokens themselves
            theirs = function(*given[:at], torch.tensor(FAR), *given[at + 1 :], **named).tolist()
            known = {both: fastpe.relative_buckets(FAR, bidirectional=both).tolist() for both in (True, False)}
            found |= {both: theirs for both, ours in known.items() if ours == theirs}
    if True not in found:
        return None
    text = BUCKETS.format(True) + (", and bidirectional=False in its decoder" if False in found else "")
    return text, {"key - query": FAR} | {str(both): each for both, each in found.items()}


def measure(kinds: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """The biases of those of these types that have some, and what is stored of each."""
    found, seen = {}, {}
    for name, config in sorted(kinds.items()):
        with contextlib.suppress(Exception):  # a class without defaults, or without a package that it needs
            if known := bias(config):
                found[name], seen[name] = known
    return found, seen
