# SPDX-License-Identifier: BSD-3-Clause
"""The calls on docs/conventions.md, and those of systems on docs/models.md, beside the systems' formulas."""

from __future__ import annotations

import math
import pathlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe._config.file import table

from ..oracles import docs_pages
from ..oracles.systems import SYSTEMS, Table, interleaved, split_sinusoid, timing_signal
from ..oracles.wild_tables import zipformer

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")
CALLS = dict(re.findall(r"^\| ([\w ,]+:[\w ]+) \| `(fastpe\..*)` \|$", PAGE, re.MULTILINE))
LENGTH, WIDTH, START, OUTPUT = 12, 16, 5, 32
X = np.random.default_rng(1).standard_normal((LENGTH, WIDTH)).astype(np.float32)
COUNTED = range(START, START + LENGTH)
FORMULAS: dict[str, Callable[[], Table]] = {
    # funasr/models/sanm/encoder.py, funasr/models/transformer/embedding.py: positions from 1, of the whole stream
    "FunASR, Paraformer, SenseVoice: SinusoidalPositionEncoder": lambda: (
        X * math.sqrt(OUTPUT) + timing_signal([1 + position for position in COUNTED], WIDTH)
    ),
    # nemo/collections/asr/parts/submodules/multi_head_attention.py
    "NeMo: RelPositionalEncoding of Conformer and FastConformer": lambda: interleaved(
        range(LENGTH - 1, -LENGTH, -1), WIDTH
    ),
    # nemo/collections/asr/modules/transformer/transformer_modules.py
    "NeMo: FixedPositionalEncoding of decoders": lambda: X + interleaved(COUNTED, WIDTH) / math.sqrt(WIDTH),
    # futz12/ncnn_llm:src/ncnn_llm_base.h @f2f29e41, sinusoidal_positional_embedding
    "ncnn_llm: NLLB": lambda: X + split_sinusoid([1 + position for position in COUNTED], WIDTH),
}


def test_every_call_has_a_formula() -> None:
    assert CALLS.keys() == FORMULAS.keys()


@pytest.mark.parametrize("system", FORMULAS)
def test_the_call_gives_what_the_formula_says(system: str) -> None:
    names: dict[str, Any] = {"fastpe": fastpe, "np": np, "math": math, "L": LENGTH, "d": WIDTH}
    ours = eval(CALLS[system], {**names, "x": X, "start": START, "output_size": OUTPUT})
    np.testing.assert_allclose(ours, FORMULAS[system](), rtol=0, atol=1e-5)


# Where the first row is not that of the first token, or padding is not counted
LEARNED = {
    name: arguments
    for names, arguments in re.findall(r"^\| (`.*`) \| `(offset=.*)` \|$", PAGE, re.MULTILINE)
    for name in re.findall("[^`, ]+", names)
}


def test_the_page_has_every_learned_table_that_does_not_begin_at_0() -> None:
    assert {name: call for name, call in table()["learned"].items() if call != "offset=0"} == LEARNED


@pytest.mark.parametrize("model_type", LEARNED)
def test_refusals_of_learned_tables_give_the_offset_and_the_mask(model_type: str) -> None:
    with pytest.raises(ValueError, match=re.escape(LEARNED[model_type])):
        fastpe.PositionalEncoding.from_config({"model_type": model_type})


def test_zipformer() -> None:
    """k2-fsa/icefall:egs/librispeech/ASR/zipformer/zipformer.py, CompactRelPositionalEncoding."""
    source = re.search(r">>> (def zipformer.*?return result)\n", PAGE, re.DOTALL)
    assert source
    names: dict[str, Any] = {}
    exec("import dataclasses\nimport numpy as np, fastpe\n" + source[1].replace("\n... ", "\n"), names)  # noqa: S102  # the page's own lines
    for factor in (1.0, 3.0):
        expected = zipformer(np.arange(1.0 - LENGTH, LENGTH), WIDTH, factor)
        np.testing.assert_allclose(names["zipformer"](LENGTH, WIDTH, factor), expected, rtol=0, atol=1e-6)


# docs/conventions.md

ROWS = docs_pages.rows()


def test_the_page_names_exactly_the_systems_that_are_proven() -> None:
    assert sorted(ROWS) == sorted(SYSTEMS)


@pytest.mark.parametrize(
    ("system", "example"), [(name, example) for name in SYSTEMS for example in SYSTEMS[name].examples]
)
def test_the_documented_call_gives_the_systems_values(system: str, example: dict[str, Any]) -> None:
    exact = SYSTEMS[system].reference(**example)
    result = ROWS[system].run(**example)
    assert result.shape == exact.shape
    if result.dtype == np.float32:
        # NeRF's coordinates themselves are rounded to float32 as well.
        tolerance = 0.5 * np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64) + 1e-15
    else:
        tolerance = np.full(exact.shape, 4 * np.spacing(np.abs(exact).max()))
    assert (np.abs(result - exact) <= tolerance).all()
