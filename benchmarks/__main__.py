# SPDX-License-Identifier: BSD-3-Clause
"""The commands."""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import sys
from typing import Any

from benchmarks import chart, compare, page, record, root
from benchmarks.harness import Effort

_description = """\
Compares fastpe with NumPy, torch and onnxruntime: the same work in the same state. All take turns, and every answer is
checked before it is timed.

python -m benchmarks              measures for 2 minutes, and prints the page and the bars
python -m benchmarks record       measures for 10 minutes at most: benchmarks/results/PROCESSOR.json
python -m benchmarks report       writes benchmarks/README.md, its chart and README.md's rows from all records
python -m benchmarks compare A B  compares two installations, which take turns, for 3 minutes

It needs pip install . --group bench, 2 GB of memory and a quiet machine. torch takes part if it is installed; record needs it.
"""

_smoke = Effort(rounds=1, batch_seconds=0.0, contender_seconds=0.0, fewest_rounds=1)
_quick = Effort(rounds=7, batch_seconds=0.002, contender_seconds=0.06)
_thorough = Effort(rounds=11, batch_seconds=0.004, contender_seconds=0.12)


def _arguments() -> argparse.Namespace:
    only, python = argparse.ArgumentParser(add_help=False), argparse.ArgumentParser(add_help=False)
    only.add_argument("--only", default="", metavar="TEXT", help="only cases whose name contains TEXT")
    python.add_argument(
        "--python", type=os.path.abspath, default=sys.executable, help="whose fastpe (default: this one's)"
    )
    style: Any = {"description": _description, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser("python -m benchmarks", parents=[only, python], **style)
    parser.add_argument("--smoke", action="store_true", help="one round of each case: does all of it run?")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    record = commands.add_parser("record", help="measure thoroughly, and keep the result", parents=[python])
    record.add_argument("--to", type=pathlib.Path, metavar="FILE", help="(default: a file named by the machine)")
    commands.add_parser("report", help="write the documents of all records, and print the bars")
    comparison = commands.add_parser("compare", description=compare.__doc__, help="compare two", parents=[only])
    comparison.add_argument("first", help="a Python that has fastpe, or a source directory or git commit to build")
    comparison.add_argument("second", help="another one of these")
    comparison.add_argument("--tolerance", type=float, default=0.05, help="how much slower (default: 0.05)")
    return parser.parse_args()


def main() -> None:
    arguments = _arguments()
    if arguments.command == "compare":
        is_fine = compare.compare(arguments.first, arguments.second, only=arguments.only, tolerance=arguments.tolerance)
        sys.exit(0 if is_fine else 1)
    if arguments.command == "report":
        records = record.read_all()
        page.write(records)
        chart.draw(records, root / "benchmarks" / "speed.svg")
        for each in records:
            print(page.label(each), page.bars_text(each), sep="\n")
        return
    if arguments.command == "record":
        found = record.measure(arguments.python, _thorough, processes=3, is_record=True)
        name = "-".join(re.findall("[a-z0-9]+", found.machine["processor"].lower()))
        target = arguments.to or record.directory / f"{name}.json"
        target.parent.mkdir(exist_ok=True)
        target.write_text(found.to_json(), encoding="utf-8")
        print(f"{target} is written; python -m benchmarks report makes the documents of it\n")
    else:
        effort, processes = (_smoke, 1) if arguments.smoke else (_quick, 2)
        found = record.measure(arguments.python, effort, processes=processes, only=arguments.only)
        print(page.page_text([found]))
    print(page.bars_text(found))


if __name__ == "__main__":
    main()
