# SPDX-License-Identifier: BSD-3-Clause
"""Two installations of fastpe, taking turns: how much slower is the second, and does it give the same bits?

What moved by more than the tolerance is measured again, in new processes, while there is time; a time that is slower in the
median of its passes and in each of them, or other bits, end the command with 1.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks import machine, tables
from benchmarks.harness import Effort
from benchmarks.worker import Setting, Worker, WorkerError, ask_all, root, settings, worker

_effort = Effort(rounds=9, batch_seconds=0.003, contender_seconds=0.15)
# What moved is measured again, in new processes: where arrays lie in memory is another matter in each.
_most_passes = 7
_last_pass_begins_seconds = 120.0
# Until the idle threads of the side before have stopped spinning.
_pause_seconds = 0.02


@dataclasses.dataclass(frozen=True)
class Side:
    """An installation."""

    name: str
    python: str
    site: pathlib.Path | None = None

    def worker(self, setting: Setting | None = None) -> contextlib.AbstractContextManager[Worker]:
        return worker(self.python, setting, self.site)


@dataclasses.dataclass(frozen=True)
class Work:
    """What is compared."""

    setting: Setting
    case: str
    contender: str


@dataclasses.dataclass
class Ratios:
    """The second side's time over the first one's, and the first side's own time, in each pass."""

    seconds: list[float] = dataclasses.field(default_factory=list)
    ratios: list[float] = dataclasses.field(default_factory=list)
    same_bits: bool = True

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    def is_slower(self, tolerance: float) -> bool:
        return self.ratio > 1 + tolerance and min(self.ratios) > 1


@contextlib.contextmanager
def _side(name: str) -> Iterator[Side]:
    """A Python that has fastpe installed, or a git commit or source directory, which is built."""
    path = pathlib.Path(name)
    if path.is_file():
        # Not resolved: a virtual environment's Python is a link.
        yield Side(name, str(path.absolute()))
        return
    with tempfile.TemporaryDirectory() as temporary, _source(name, pathlib.Path(temporary, "source")) as source:
        site = pathlib.Path(temporary, "site")
        print(f"building {name} ..", file=sys.stderr)
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site)]
        if importlib.util.find_spec("scikit_build_core") and importlib.util.find_spec("pybind11"):
            install.append("--no-build-isolation")
        subprocess.run([*install, f"-Cbuild-dir={temporary}/build", str(source)], check=True)
        yield Side(name, sys.executable, site)


@contextlib.contextmanager
def _source(name: str, target: pathlib.Path) -> Iterator[pathlib.Path]:
    if pathlib.Path(name).is_dir():
        yield pathlib.Path(name).resolve()
        return
    verify = ["git", "rev-parse", "--quiet", "--verify", name + "^{commit}"]
    if (
        shutil.which("git") is None
        or subprocess.run(verify, cwd=root, capture_output=True, check=False).returncode != 0
    ):
        sys.exit(f"compare: {name} is neither a Python, nor a source directory, nor a git commit")
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(target), name], cwd=root, check=True)
    try:
        yield target
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", str(target)], cwd=root, check=True)


def compare(first: str, second: str, *, only: str, tolerance: float) -> bool:
    """Print a table; whether all of the second side's work gives the same bits in at most 1 + `tolerance` times as long."""
    if (warning := machine.load_warning()) is not None:
        print(f"warning: {warning}", file=sys.stderr)
    start, others = time.monotonic(), machine.Others()
    found: dict[Work, Ratios] = {}
    failed: dict[str, None] = {}
    with _side(first) as a, _side(second) as b:
        descriptions = []
        for side in (a, b):
            with side.worker() as described:
                try:
                    descriptions.append(described.ask(do="describe"))
                except WorkerError as error:
                    sys.exit(f"compare: {side.name}: {error}")
            config = descriptions[-1]["config"]
            print(f"{side.name}: {descriptions[-1]['file']}, {config['version']}, {config['compiler']}")
        both = [set(settings(description["config"])) for description in descriptions]
        chosen = [s for s in settings(descriptions[0]["config"]) if s in both[1]]
        work = {setting: [case for case in descriptions[0]["cases"] if only in case] for setting in chosen}
        for number in range(_most_passes):
            if time.monotonic() - start > _last_pass_begins_seconds:
                break
            for message in _pass((a, b), work, found, f"pass {number + 1}"):
                failed[message] = None
            moved = [key for key, ratios in found.items() if abs(ratios.ratio - 1) > tolerance]
            work = {s: list(dict.fromkeys(key.case for key in moved if key.setting == s)) for s in chosen}
    print(file=sys.stderr)
    _print_tables(found, chosen, first, second)
    slower = [key for key, ratios in found.items() if ratios.is_slower(tolerance)]
    other = [key for key, ratios in found.items() if not ratios.same_bits]
    for title, keys in (
        (f"slower by more than {tolerance:.0%}, and slower in every pass", slower),
        ("other bits", other),
    ):
        print(f"{title}: {len(keys)} of {len(found)}")
        for key in keys:
            passes = ", ".join(f"{ratio:.3f}" for ratio in found[key].ratios)
            print(f"  {key.setting}: {key.case}: {key.contender}: {passes}")
    for message in failed:
        print(f"not compared: {message}")
    seconds = time.monotonic() - start
    print(f"{seconds:.0f} s; other programs used {others.seconds() / seconds:.0%} of a processor meanwhile")
    return not (slower or other or failed)


def _pass(
    sides: tuple[Side, Side], work: dict[Setting, list[str]], found: dict[Work, Ratios], title: str
) -> Iterator[str]:
    """Add a ratio to `found` for each contender; what could not be measured, and why."""
    total, done = sum(map(len, work.values())), 0
    for setting, cases in work.items():
        if not cases:
            continue
        with sides[0].worker(setting) as first, sides[1].worker(setting) as second:
            for case in cases:
                done += 1
                print(
                    f"\r{title}: {done} of {total}: {setting}: {case}".ljust(100), end="", file=sys.stderr, flush=True
                )
                try:
                    _compare_case(case, setting, (first, second), found)
                except WorkerError as error:
                    yield f"{setting}: {case}: {error}"


def _compare_case(case: str, setting: Setting, workers: tuple[Worker, Worker], found: dict[Work, Ratios]) -> None:
    is_first_pass = not any(work.setting == setting and work.case == case for work in found)
    sums = ask_all(workers, do="prepare", case=case, effort=dataclasses.asdict(_effort), sums=is_first_pass)
    seconds: tuple[list[list[float]], list[list[float]]] = ([], [])
    spent = 0.0
    for number in range(_effort.rounds):
        for index in (0, 1) if number % 2 == 0 else (1, 0):
            if setting.threads > 1:
                time.sleep(_pause_seconds)
            begin = time.monotonic()
            seconds[index].append(workers[index].ask(do="time"))
            spent += time.monotonic() - begin
        if spent > 2 * len(sums[0]) * _effort.contender_seconds and number + 1 >= _effort.fewest_rounds:
            break
    for i, name in enumerate(sums[0]):
        ratios = found.setdefault(Work(setting, case, name), Ratios())
        # What other programs do to a time only adds to it.
        a, b = (statistics.quantiles([times[i] for times in side], n=4)[0] for side in seconds)
        ratios.seconds.append(a)
        ratios.ratios.append(b / a)
        ratios.same_bits = ratios.same_bits and sums[0][name] == sums[1].get(name)


def _print_tables(found: dict[Work, Ratios], chosen: list[Setting], first: str, second: str) -> None:
    print(f"\nTime of {second} over that of {first}, and the latter:")
    rows = [
        (
            case,
            contender,
            *(
                f"{ratios.ratio:.3f} ({tables.seconds_text(statistics.median(ratios.seconds))})"
                if (ratios := found.get(Work(setting, case, contender)))
                else ""
                for setting in chosen
            ),
        )
        for case, contender in dict.fromkeys((key.case, key.contender) for key in found)
    ]
    means = [
        f"{statistics.geometric_mean([r.ratio for key, r in found.items() if key.setting == setting] or [1]):.3f}"
        for setting in chosen
    ]
    header = ("case", "", *map(str, chosen))
    print(tables.table(header, [*rows, ("geometric mean", "", *means)], range(2, len(header))))
