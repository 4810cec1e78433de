# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks: right answers, the documents that are written from their results, and the comparison."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from benchmarks import cases, chart, compare, harness, parts, peers, report, results

ROOT = Path(__file__).parents[2]
# Figures made up, but for the machine.
STORED = (ROOT / "tests" / "data" / "benchmark_results.json").read_text(encoding="utf-8")
RESULT = results.MachineResult.from_json(STORED)


def test_results_are_read_as_they_were_written() -> None:
    assert RESULT.to_json() == STORED
    assert STORED.count('\n{"name": ') == sum(len(setting.cases) for setting in RESULT.settings)


def test_a_machine_has_a_file_of_its_own() -> None:
    other = dataclasses.replace(RESULT, machine={**RESULT.machine, "family, model, stepping": "25, 17, 1"})
    assert RESULT.file.name == "amd-epyc-26-2-1.json"
    assert other.file != RESULT.file


def test_a_bar_that_does_not_hold_is_bold_and_stands_beside_what_the_machine_allows() -> None:
    text = report.machine_text(RESULT)
    assert re.search(
        r"\| add_ \[8, 512, 768\] +\| beside x \+ 1 +\| +0\.95 \(>= 0\.9\) \| +\*\*0\.5\*\* \(>= 0\.85\) \|", text
    )
    assert "Targets: 8 of 9 are met" in text
    missed = text.partition("Targets that are missed")[2].partition("### Times")[0]
    assert re.search(r"\| avx512, 1 thread +\| add_ \[8, 512, 768\] .* 0\.93 \(careful loop\): met", missed)
    assert "encode" not in missed


def test_memory_stands_beside_what_the_call_itself_takes() -> None:
    memory = results.BarResult(
        "memory", results.Spread.of([1.25]), at_most=1, unit="MiB", limit="without pages", value_at_limit=0.5
    )
    text = report.machine_text(dataclasses.replace(RESULT, processes=[memory]))
    assert re.search(r"\| memory +\| +1\.25 MiB \| +<= 1 \| missed; 0\.5 MiB without pages \|", text)


def test_the_results_name_every_case_contender_and_setting() -> None:
    text = report.results_text([RESULT])
    for setting in RESULT.settings:
        assert str(setting) in text
        for case in setting.cases:
            assert f"#### {case.name}\n" in text
            for measured in case.times:
                assert measured.contender in text
    assert "import fastpe beyond NumPy" in text
    assert "**Warning:** it was busy." in text


def test_the_readme_has_times_of_all_threads_and_of_one() -> None:
    text = report.readme_text(RESULT)
    assert re.search(
        r"\| `encode` \[512, 768\] +\| +20 us / 30 us \| +3\.0e-08 \| usual NumPy code in float32 300 us", text
    )
    assert "(error 5.3e-05)" in text
    assert "avx2" not in text
    assert "meets 8 of its 9 targets" in " ".join(text.split())


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    before, after = f"# Title\n{report.begin_mark}\n", f"\n{report.end_mark}\nThe rest.\n"
    assert report.with_table(f"{before}\nold\n{after}", "new") == f"{before}\nnew\n{after}"
    with pytest.raises(ValueError, match="lacks the lines"):
        report.with_table("# Title\n", "new")


def test_a_chart_is_small_and_has_a_line_for_each_contender() -> None:
    text = chart.drawn(chart.encode_chart, RESULT)
    found = [element.text for element in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
    for name in ("fastpe", "fastpe, 1 thread", "NumPy float32 idiom", "NumPy float64 idiom"):
        assert name in found
    assert len(text.splitlines()) < 100
    assert not re.search(r"\d\.\d{3}", text.partition("GB/s")[2])
    sums = chart.drawn(chart.add_chart, RESULT)
    assert [name for name in ("fastpe", "memory limit: x + 1", "NumPy float32 idiom") if f">{name}<" in sums] == [
        "fastpe",
        "memory limit: x + 1",
    ]


def test_the_documents_are_those_of_the_stored_results() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    report.with_table(readme, "")  # has the marks
    machines = results.stored()
    documents = report.documents(machines, readme) if machines else {}
    for path, text in documents.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run python -m benchmarks report"


def test_the_fastest_rival_and_the_fastest_limit_count() -> None:
    seconds = {"own": [2.0, 2.0, 4.0], "slow": [4.0] * 3, "fast": [1.0, 1.0, 2.0], "limit": [0.5] * 3, "far": [9.0] * 3}
    bar = harness.Bar(
        requirement="", contender="own", rivals=["slow", "fast", "absent"], at_least=1, limits=["far", "limit"]
    )
    found = harness.bar_result(bar, [seconds])
    assert found is not None
    assert (found.rival, found.value.median, found.limit, found.value_at_limit) == ("fast", 0.5, "limit", 2)
    assert not found.holds
    at_most = dataclasses.replace(bar, at_least=None, at_most=2)
    assert (reverse := harness.bar_result(at_most, [seconds])) is not None
    assert reverse.value.median == 2
    assert reverse.holds
    assert harness.bar_result(dataclasses.replace(bar, rivals=["absent"]), [seconds]) is None


def test_ratios_are_of_times_from_one_process() -> None:
    # The second process is slow, and its rival has more rounds.
    runs = [{"own": [1.0, 1.0], "rival": [2.0]}, {"own": [10.0], "rival": [20.0, 90.0]}]
    found = harness.bar_result(harness.Bar(requirement="", contender="own", rivals=["rival"], at_least=2), runs)
    assert found is not None
    assert (found.value.low, found.value.median, found.value.high) == (2, 2, 2)


def test_a_result_is_of_all_processes() -> None:
    own = harness.Contender(name="own", work=lambda: 1, check=lambda _: 0.0)
    case = harness.Case(name="one", bytes_moved=1, contenders=[own])
    measurements = [
        harness.Measurement({"own": 1e-9}, {"own": [1.0]}),
        harness.Measurement({"own": 0.0}, {"own": [3.0]}),
    ]
    (time,) = harness.result_of(case, measurements).times
    assert (time.seconds.median, time.largest_error) == (2, 1e-9)


def test_a_wrong_answer_is_not_timed() -> None:
    def is_one(value: int) -> float:
        assert value == 1, "expected 1"
        return 0.0

    right = harness.Contender(name="right", work=lambda: 1, check=is_one)
    wrong = harness.Contender(name="wrong", work=lambda: 2, check=is_one)
    case = harness.Case(name="sum", bytes_moved=1, contenders=[right, wrong])
    with pytest.raises(AssertionError, match="sum: wrong is wrong: expected 1"):
        harness.measure(case, harness.Effort(rounds=1, batch_seconds=0, contender_seconds=0))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in ("encode [64, 64]", "add_ [8, 64, 768]") else name
        for name in cases.factories()
        if re.search(r"64\]|stream|decode|64, 768", name)
    ],
)
def test_every_answer_of_the_small_cases_is_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "module", lambda name: None)  # torch and numba take seconds to start
    case = cases.factories()[name](harness.Selection())
    assert case.name == name
    errors = harness.check_answers(case)
    assert len(errors) == len(case.contenders) > 1
    names = {contender.name for contender in case.contenders}
    assert all(names.intersection(bar.rivals) for bar in case.bars) or "careful loop" not in names


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_the_careful_loops_add_a_table_to_every_value(dtype: npt.DTypeLike) -> None:
    if not parts.available():
        pytest.skip("there is no C compiler")
    # Several segments, the last one shorter.
    before = np.random.default_rng(0).integers(-8, 8, (3, 400, 64)).astype(dtype)
    table = np.random.default_rng(1).integers(-8, 8, (400, 64)).astype(np.float32)
    x = before.copy()
    loops = parts.careful_add(x, table, lambda answer: 0.0)
    assert len(loops) == 2 or dtype == np.float16
    for loop in loops:
        x[...] = before
        np.testing.assert_array_equal(loop.answer(), (before + table).astype(dtype))


def test_slower_is_what_is_slower_in_the_median_and_in_every_pass() -> None:
    assert compare.Ratios(ratios=[1.05, 1.2, 1.3]).is_slower(0.1)
    assert not compare.Ratios(ratios=[1.05, 1.09, 1.3]).is_slower(0.1)
    assert not compare.Ratios(ratios=[0.99, 1.2, 1.3]).is_slower(0.1)


@pytest.mark.slow
def test_compare_finds_no_other_bits_between_an_installation_and_itself() -> None:
    # Times are whatever they are on a busy machine.
    arguments = [sys.executable, sys.executable, "--only", "one row", "--tolerance", "1000"]
    command = [sys.executable, "-m", "benchmarks", "compare", *arguments]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"^other bits: 0 of [1-9]", run.stdout, re.MULTILINE)


def test_compare_names_what_is_neither_a_python_nor_source() -> None:
    command = [sys.executable, "-m", "benchmarks", "compare", "no-such-commit", "HEAD"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "no-such-commit is neither a Python, nor a source directory, nor a git commit" in run.stderr
