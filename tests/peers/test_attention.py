# SPDX-License-Identifier: BSD-3-Clause
"""Slopes, buckets and orders of columns beside the functions of transformers.

Run it with ``pytest -m peers tests/peers/test_attention.py``.
"""

from __future__ import annotations

import ast
import importlib
import pathlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fastpe

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

MODELS = pathlib.Path(transformers.__file__).parent / "models"
# Published settings: buckets and the largest distance.
SETTINGS = {"wavlm": (320, 800), "layoutlmv3": (64, 256), "layoutlmv2": (64, 256)}
# The buckets of other formulas.
OTHERS = {"cpmant", "deberta_v2", "prophetnet", "sew_d"}


def functions(word: str) -> Iterator[tuple[str, str, str]]:
    """Model, class or nothing, and function, for every function with this word in its name."""
    for file in sorted(MODELS.glob("*/modeling_*.py")):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if word in text else []:
            for each in getattr(node, "body", []) if isinstance(node, (ast.Module, ast.ClassDef)) else []:
                if isinstance(each, ast.FunctionDef) and word in each.name:
                    yield file.parent.name, getattr(node, "name", ""), each.name


def found(model: str, owner: str, name: str) -> Any:
    module = importlib.import_module(f"transformers.models.{model}.modeling_{model}")
    return getattr(getattr(module, owner) if owner else module, name)


BUCKETS = [each for each in functions("_bucket") if "position" in each[2] and each[0] not in OTHERS]


@pytest.mark.parametrize("case", BUCKETS, ids=" ".join)
def test_buckets_are_those_of_transformers(case: tuple[str, str, str]) -> None:
    """Its float32 logarithms put no distance up to 10**5 into another bucket, with the settings that models have."""
    function = found(*case)
    distances = torch.arange(-(10**5), 10**5 + 1)
    count, farthest = SETTINGS.get(case[0], (32, 128))
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    for both in (True, False) if "bidirectional" in names else (True,):
        whole = SimpleNamespace(
            num_buckets=count, max_distance=farthest, relative_attention_num_buckets=count, is_decoder=False,
            relative_attention_max_distance=farthest, has_relative_attention_bias=True,
        )  # fmt: skip
        values = {"bidirectional": both, "num_buckets": count, "max_distance": farthest}
        arguments = [whole] if names[0] == "self" else []
        got = function(*arguments, distances, **{name: values[name] for name in values if name in names})
        options: dict[str, Any] = {"num_buckets": count, "max_distance": farthest}
        expected = fastpe.relative_buckets(distances.numpy(), bidirectional=both, **options)
        assert (got.numpy() == expected).all()


def test_buckets_of_prophetnet() -> None:
    """The query's position minus the key's, and never a bucket for keys after it."""
    distances = np.arange(-(10**5), 10**5 + 1)
    got = found("prophetnet", "", "compute_relative_buckets")(32, 128, torch.from_numpy(distances))
    assert (got.numpy() == fastpe.relative_buckets(distances, bidirectional=False)).all()


@pytest.mark.parametrize("num_heads", [1, 8, 12, 16, 32, 56, 71, 112])
def test_slopes_are_those_of_bloom_falcon_and_mpt(num_heads: int) -> None:
    slopes = fastpe.alibi_slopes(num_heads)
    for model in ("bloom", "falcon"):
        alibi = found(model, "", "build_alibi_tensor")(torch.ones(1, 2, dtype=torch.int64), num_heads, torch.float32)
        assert np.allclose(alibi[:, 0, 1].float().numpy(), slopes, rtol=4e-3 if model == "falcon" else 1e-6, atol=0)
    for bias in (8, 16):
        alibi = found("mpt", "", "build_mpt_alibi_tensor")(num_heads, 2, bias)
        assert np.allclose(-alibi[:, 0, 0].numpy(), fastpe.alibi_slopes(num_heads, max_bias=bias), rtol=1e-6, atol=0)
    assert {model for model, *_ in functions("alibi")} == {"bloom", "falcon", "mpt"}


def test_orders_are_those_of_the_conversions() -> None:
    heads, width, inner = 3, 16, 5
    weight = np.random.default_rng(0).standard_normal((heads * width, inner))
    by_heads = weight.reshape(heads, width, inner)
    # permute of convert_llama_weights_to_hf.py, and of llama.cpp's convert_hf_to_gguf.py
    to_halves = weight.reshape(heads, width // 2, 2, inner).swapaxes(1, 2).reshape(weight.shape)
    to_pairs = weight.reshape(heads, 2, width // 2, inner).swapaxes(1, 2).reshape(weight.shape)
    for interleaved, expected in ((False, to_halves), (True, to_pairs)):
        order = fastpe.pair_order(width, to_interleaved=interleaved)
        assert (by_heads[:, order].reshape(weight.shape) == expected).all()
