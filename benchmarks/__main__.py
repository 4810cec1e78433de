# SPDX-License-Identifier: BSD-3-Clause
"""The commands."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import importlib.util
import sys
import time
from typing import Any

from benchmarks import compare, machine, processes, report, results
from benchmarks.harness import Effort, Selection
from benchmarks.worker import Setting, settings, worker

_description = """\
Measures fastpe, and compares it with what the machine allows and what people use instead. Every case runs with each
instruction set, with one thread and with all. Contenders take turns, and every answer is checked before it is timed.

python -m benchmarks                measures for about 5 minutes and prints tables
python -m benchmarks record         measures for half an hour and keeps the results: benchmarks/results/MACHINE.json
python -m benchmarks report         writes benchmarks/RESULTS.md, the charts and README.md's table from them
python -m benchmarks compare A B    compares two installations, which take turns, for less than 3 minutes
python -m benchmarks.instruction_counts --help    explains a measure without noise, which the tests use
"""

_needs = """\
It needs pip install '.[bench]', 3 GB of memory, a C compiler with OpenMP for the loops that show what the machine
allows, and a quiet machine: it warns if other programs use the processors. torch takes part if it is installed, and
record needs it: python -m pip install torch.
"""

_quick = Effort(rounds=11, batch_seconds=0.002, contender_seconds=0.1)
_thorough = Effort(rounds=15, batch_seconds=0.004, contender_seconds=0.2, fewest_rounds=9)
_passes_of_record = 3  # a process's arrays may lie well or badly in the caches
_noise_allowed = 0.05
_others_allowed = 0.05


class Progress:
    """How much is done, and when the rest will be, on standard error."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._start = total, 0, time.monotonic()

    def step(self, title: str) -> None:
        left = ""
        if self._done:
            seconds = (time.monotonic() - self._start) / self._done * (self._total - self._done)
            left = f", {seconds / 60:.0f} min left" if seconds >= 60 else f", {seconds:.0f} s left"
        self._done += 1
        print(f"\r[{self._done} of {self._total}{left}] {title}".ljust(110), end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        print("\r".ljust(111), file=sys.stderr)


def _measure(effort: Effort, *, passes: int, compiled: bool, only: str, repeats: int) -> results.MachineResult:
    warnings = []
    if (warning := machine.load_warning()) is not None:
        print(f"warning: {warning}", file=sys.stderr)
        warnings.append(warning)
    start, others = time.monotonic(), machine.Others()
    with worker(sys.executable) as described:
        description = described.ask(do="describe")
    names = [name for name in description["cases"] if only in name]
    chosen = settings(description["config"])
    progress = Progress(passes * len(chosen) * len(names))
    request = {"effort": dataclasses.asdict(effort), "selection": dataclasses.asdict(Selection(compiled=compiled))}
    earlier: dict[tuple[Setting, str], list[Any]] = collections.defaultdict(list)
    replies = {}
    for _ in range(passes):
        for setting in chosen:
            with worker(sys.executable, setting) as process:
                for name in names:
                    progress.step(f"{setting}: {name}")
                    key = setting, name
                    replies[key] = process.ask(do="measure", case=name, earlier=earlier[key], **request)
                    earlier[key].append(replies[key]["measured"])
    measured = [
        results.SettingResult(
            setting.instruction_set,
            setting.threads,
            [results.case_from(replies[setting, name]["result"]) for name in names],
        )
        for setting in chosen
    ]
    fresh = [] if only else [processes.import_time(7 * repeats), *processes.extra_memory(repeats)]
    progress.end()
    share = others.seconds() / (time.monotonic() - start)
    if share > _others_allowed:
        warnings.append(f"other programs used {share:.0%} of a processor during the run")
    result = results.MachineResult(machine.describe(), warnings, measured, fresh)
    if (noise := result.noise()) > _noise_allowed:
        result.warnings.append(f"half of the contenders' quartiles were more than {noise:.0%} apart")
    return result


def _print(result: results.MachineResult) -> None:
    print(report.machine_text(result))
    for warning in result.warnings:
        print(f"warning: {warning}", file=sys.stderr)


def main() -> None:
    only = argparse.ArgumentParser(add_help=False)
    only.add_argument("--only", default="", metavar="TEXT", help="only cases whose name contains TEXT")
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=_description,
        epilog=_needs,
        parents=[only],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("record", help="measure thoroughly and keep the results")
    commands.add_parser("report", help="write the documents from the results that are kept")
    comparison = commands.add_parser(
        "compare",
        description=compare.__doc__,
        help="compare two installations, which take turns",
        parents=[only],
    )
    comparison.add_argument(
        "first", help="a Python that has fastpe installed, or a git commit or source directory, which is built"
    )
    comparison.add_argument("second", help="another one of these")
    comparison.add_argument(
        "--tolerance", type=float, default=0.03, metavar="SHARE", help="how much slower it may be (default: 0.03)"
    )
    arguments = parser.parse_args()
    if arguments.command == "compare":
        within = compare.compare(arguments.first, arguments.second, only=arguments.only, tolerance=arguments.tolerance)
        sys.exit(0 if within else 1)
    if arguments.command == "report":
        report.write()
        return
    if arguments.command == "record":
        if importlib.util.find_spec("torch") is None:
            sys.exit(
                "record: torch is missing, which targets compare with; install it with: python -m pip install torch"
            )
        result = _measure(_thorough, passes=_passes_of_record, compiled=True, only="", repeats=3)
        result.file.parent.mkdir(exist_ok=True)
        result.file.write_text(result.to_json(), encoding="utf-8")
        print(f"{result.file} is written; python -m benchmarks report makes the documents of it")
    else:
        result = _measure(_quick, passes=1, compiled=False, only=arguments.only, repeats=1)
    _print(result)


if __name__ == "__main__":
    main()
