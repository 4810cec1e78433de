# SPDX-License-Identifier: BSD-3-Clause
"""The commands."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator

import fastpe
from benchmarks import compare, machine, oracle, peers, processes, report, tables, workloads
from benchmarks.harness import BarResult, CaseResult, Effort, measure, only_for_bars
from benchmarks.workloads import Selection

quick = Effort(rounds=11, batch_seconds=0.002, contender_seconds=0.1)
thorough = Effort(rounds=41, batch_seconds=0.004, contender_seconds=0.6)


def _run(effort: Effort, selection: Selection, only: str, *, bars_only: bool = False) -> Iterator[CaseResult]:
    for factory in workloads.factories():
        title = f"{factory.group} {factory.name}"
        if only not in title:
            continue
        print(f"\r{title} ..".ljust(70), end="", file=sys.stderr, flush=True)
        case = factory.build(selection)
        if bars_only:
            case = only_for_bars(case)
        if case.contenders:
            yield measure(case, effort)
    print("\r".ljust(70), file=sys.stderr)


def _bars_of(results: Iterable[CaseResult]) -> list[BarResult]:
    return [bar for result in results for bar in result.bar_results()]


def _bars_of_processes(*, is_quick: bool) -> list[BarResult]:
    return [
        *processes.many_callers(5 if is_quick else 15, 0.05 if is_quick else 0.3),
        processes.idle_threads(5),
        *processes.extra_memory(1 if is_quick else 3),
        processes.import_time(7 if is_quick else 21),
    ]


def _print_bars(bars: list[BarResult]) -> None:
    if bars:
        print(f"\n{tables.bars_table(bars)}\n\n{sum(bar.holds for bar in bars)} of {len(bars)} bars hold")
        print(f"\nThose that do not, and the parts of their work:\n{tables.reasons_table(bars)}")


def _quick(only: str) -> None:
    for name, value in machine.describe().items():
        print(f"{name}: {value}")
    results = []
    for result in _run(quick, Selection(slow_peers=False), only):
        print(f"\n{result.case.group} {result.case.name}\n{tables.case_table(result)}", flush=True)
        results.append(result)
    calls = [result for result in results if result.case.group == "decode"]
    if calls:
        print(f"\n{tables.calls_table(calls)}")
    _print_bars(_bars_of(results) + ([] if only else _bars_of_processes(is_quick=True)))


def _bars(only: str, *, as_json: bool) -> None:
    bars = _bars_of(_run(quick, Selection(slow_peers=False), only, bars_only=True))
    if as_json:
        print(json.dumps({bar.name: bar.ratio.median for bar in bars}))
    else:
        _print_bars(bars)


def _bars_elsewhere() -> dict[str, dict[str, float]]:
    """Medians by bar, in other processes: as here, with each instruction set that is not in use, and on one thread."""
    config = fastpe.show_config()
    others = [name for name in config["available_instruction_sets"] if name != config["instruction_set"]]
    settings: dict[str, dict[str, str]] = {name: {"FASTPE_ISA": name} for name in others}
    if config["threads"] > 1:
        one_thread = {"FASTPE_NUM_THREADS": "1"}
        settings = {**settings, "1 thread": one_thread} | {
            f"{name}, 1 thread": {**setting, **one_thread} for name, setting in settings.items()
        }
    elsewhere = {}
    for title, setting in {"again": {}, "once more": {}, **settings}.items():
        print(title, file=sys.stderr)
        command = [sys.executable, "-m", "benchmarks", "bars", "--json"]
        run = subprocess.run(command, env={**os.environ, **setting}, stdout=subprocess.PIPE, text=True, check=True)
        elsewhere[title] = json.loads(run.stdout)
    return elsewhere


def _report() -> None:
    description, warning = machine.describe(), machine.load_warning()
    results = list(_run(thorough, Selection(), ""))
    bars = _bars_of(results) + _bars_of_processes(is_quick=False)
    (report.directory / "RESULTS.md").write_text(
        report.results_text(description, warning, bars, _bars_elsewhere(), results), encoding="utf-8"
    )
    report.draw_chart(results, description, report.directory / "encode.svg")
    _print_bars(bars)


def main() -> None:
    only = argparse.ArgumentParser(add_help=False)
    only.add_argument("--only", default="", metavar="TEXT", help="only cases whose name contains TEXT")
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Speed of fastpe and its peers; tables by default.", parents=[only]
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("report", help="write benchmarks/RESULTS.md and benchmarks/encode.svg")
    bars = commands.add_parser("bars", help="measure only what the bars need", parents=[only])
    bars.add_argument("--json", action="store_true", help="medians by bar")
    comparison = commands.add_parser("compare", help="two builds or instruction sets, interleaved", parents=[only])
    comparison.add_argument("first", help="an instruction set such as avx2, a git commit, or a source directory")
    comparison.add_argument("second")
    arguments = parser.parse_args()
    warning = machine.load_warning()
    oracle.check_itself()
    peers.use_threads(workloads.threads())
    if arguments.command == "report":
        _report()
    elif arguments.command == "bars":
        _bars(arguments.only, as_json=arguments.json)
    elif arguments.command == "compare":
        compare.compare(arguments.first, arguments.second, arguments.only)
    else:
        _quick(arguments.only)
    if warning is not None:
        print(f"warning: {warning}", file=sys.stderr)


if __name__ == "__main__":
    main()
