# SPDX-License-Identifier: BSD-3-Clause
"""The commands."""

from __future__ import annotations

import argparse
import sys

from benchmarks import compare, machine, oracle, processes, report, tables, workloads
from benchmarks.harness import BarResult, CaseResult, Effort, measure
from benchmarks.workloads import Selection

quick = Effort(rounds=7, batch_seconds=0.003, contender_seconds=0.1)
thorough = Effort(rounds=21, batch_seconds=0.01, contender_seconds=0.8)


def _run(effort: Effort, selection: Selection, only: str, *, show: bool) -> list[CaseResult]:
    results = []
    for factory in workloads.factories():
        title = f"{factory.group} {factory.name}"
        if only not in title:
            continue
        print(f"{title} ..", end="", file=sys.stderr, flush=True)
        result = measure(factory.build(selection), effort)
        print("\r" + " " * (len(title) + 3) + "\r", end="", file=sys.stderr, flush=True)
        if show:
            print(f"\n{result.case.group} {result.case.name}\n{tables.case_table(result)}", flush=True)
        results.append(result)
    return results


def _bars(results: list[CaseResult], *, is_quick: bool) -> list[BarResult]:
    bars = [bar for result in results for bar in result.bar_results()]
    bars += processes.many_callers(5 if is_quick else 15, 0.05 if is_quick else 0.3)
    bars += processes.extra_memory(1 if is_quick else 3)
    bars.append(processes.import_time(7 if is_quick else 21))
    return bars


def _print_quick(only: str) -> None:
    for name, value in machine.describe().items():
        print(f"{name}: {value}")
    warning = machine.load_warning()
    results = _run(quick, Selection(slow_peers=False), only, show=True)
    bars = [bar for result in results for bar in result.bar_results()] if only else _bars(results, is_quick=True)
    calls = [result for result in results if result.case.group == "decode"]
    if calls:
        print(f"\n{tables.calls_table(calls)}")
    if bars:
        print(f"\n{tables.bars_table(bars)}\n\n{sum(bar.holds for bar in bars)} of {len(bars)} bars hold")
    if warning is not None:
        print(f"warning: {warning}")


def _write_report() -> None:
    description, warning = machine.describe(), machine.load_warning()
    results = _run(thorough, Selection(), "", show=False)
    bars = _bars(results, is_quick=False)
    (report.directory / "RESULTS.md").write_text(
        report.results_text(description, warning, bars, results), encoding="utf-8"
    )
    report.draw_chart(results, description, report.directory / "encode.svg")
    print(tables.bars_table(bars))
    if warning is not None:
        print(f"warning: {warning}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed of fastpe and its peers.")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name contains TEXT")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("report", help="write benchmarks/RESULTS.md and benchmarks/encode.svg")
    comparison = commands.add_parser("compare", help="two instruction sets, or two git commits, interleaved")
    comparison.add_argument("first", help="an instruction set such as avx2, or a git commit")
    comparison.add_argument("second")
    comparison.add_argument("--only", default="", metavar="TEXT", help="only cases whose name contains TEXT")
    arguments = parser.parse_args()
    oracle.check_itself()
    if arguments.command == "report":
        _write_report()
    elif arguments.command == "compare":
        compare.compare(arguments.first, arguments.second, arguments.only)
    else:
        _print_quick(arguments.only)


if __name__ == "__main__":
    main()
