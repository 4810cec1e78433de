# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks: what they time is right."""

from __future__ import annotations

import pytest

pytest.importorskip("ml_dtypes")

from benchmarks.cases import all_cases
from benchmarks.harness import Case, checked


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_every_answer_is_right(case: Case) -> None:
    *counts, columns = case.shape
    contenders = checked(case, (*(min(count, 4) for count in counts), columns))
    assert [contender.kind for contender, _ in contenders].count("fastpe") == 1
    # onnxruntime, torch's interpolate, and transformers, if they are installed
    optional = ("rotate [", "resize_table", "text_inputs", "vision_inputs")
    assert len(contenders) > 1 or any(text in case.work for text in optional)
