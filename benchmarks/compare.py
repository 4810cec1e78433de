# SPDX-License-Identifier: BSD-3-Clause
"""Two installations of fastpe, taking turns: how much slower is the second, and does it give the same bits?

What moved by more than the tolerance is measured again, in new processes, while there is time. What is slower in the median
of its passes and in each of them, or gives other bits, is listed, and ends the command with 1.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks import root
from benchmarks.harness import Effort
from benchmarks.page import seconds_text, table
from benchmarks.record import Others, progress
from benchmarks.worker import Ask, Setting, WorkerError, settings, worker

_effort = Effort(rounds=9, batch_seconds=0.003, contender_seconds=0.15)
# Where arrays lie in memory is another matter in each process.
_most_passes = 7
_last_pass_begins_seconds = 120.0

Side = tuple[str, pathlib.Path | None]  # a Python, and a directory with what is installed for it before the rest
Key = tuple[Setting, str]


@contextlib.contextmanager
def _side(name: str) -> Iterator[Side]:
    """A Python that has fastpe installed, or a source directory or git commit, which is built."""
    path = pathlib.Path(name)
    if path.is_file():
        yield str(path.absolute()), None  # not resolved: a virtual environment's Python is a link
        return
    parse = ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    commit = subprocess.run(parse, cwd=root, capture_output=True, text=True, check=False).stdout.strip() or name
    source = str(path.resolve()) if path.is_dir() else f"git+file://{root}@{commit}"
    with tempfile.TemporaryDirectory() as temporary:
        print(f"building {name} ..", file=sys.stderr)
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", temporary, source]
        if subprocess.run(install, check=False).returncode != 0:
            sys.exit(f"compare: {name} is neither a Python, nor a source directory or git commit that can be built")
        yield sys.executable, pathlib.Path(temporary)


@dataclasses.dataclass
class _Found:
    """The second side's time over the first one's, and the first side's time, in each pass."""

    ratios: list[float] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)
    same_bits: bool = True

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)


def compare(first: str, second: str, *, only: str, tolerance: float) -> bool:
    """Print a table; whether the second side's bits are the same, and its times at most 1 + `tolerance` times as long."""
    found: dict[Key, _Found] = collections.defaultdict(_Found)
    failed = []
    with _side(first) as a, _side(second) as b:
        start, others, configs = time.monotonic(), Others(), []
        for name, side in ((first, a), (second, b)):
            with worker(side[0], site=side[1]) as ask:
                described = ask(do="describe")
            configs.append(described["config"])
            print(f"{name}: {described['file']}, {configs[-1]['version']}, {configs[-1]['compiler']}")
        chosen = [setting for setting in settings(configs[0]) if setting in settings(configs[1])]
        groups = {case: group for case, group in described["groups"].items() if only in case}
        work = [(setting, case) for setting in chosen for case in groups]
        for number in range(_most_passes):
            if not work or time.monotonic() - start > _last_pass_begins_seconds:
                break
            for setting in chosen:
                with worker(a[0], setting, a[1]) as one, worker(b[0], setting, b[1]) as two:
                    for case in [case for of, case in work if of == setting]:
                        progress(f"pass {number + 1}: {setting}: {case}")
                        try:
                            _add_pass(found[setting, case], case, (one, two), setting)
                        except WorkerError as error:
                            failed.append(f"not compared: {setting}: {case}: {error}\n")
            work = [key for key, each in found.items() if each.ratios and abs(each.ratio - 1) > tolerance]
    progress("")
    measured = {key: each for key, each in found.items() if each.ratios}
    print(f"\nTime of {second} over that of {first}, and the latter:\n{_table(measured, chosen, groups)}\n")
    slower = [k for k, each in measured.items() if each.ratio > 1 + tolerance and min(each.ratios) > 1]
    other = [k for k, each in measured.items() if not each.same_bits]
    for title, keys in ((f"slower by more than {tolerance:.0%}, in every pass", slower), ("other bits", other)):
        print(f"{title}: {len(keys)} of {len(measured)}")
        for setting, case in keys:
            print(f"  {setting}: {case}: {', '.join(f'{ratio:.2f}' for ratio in measured[setting, case].ratios)}")
    print(*dict.fromkeys(failed), sep="", end="")
    print(f"{time.monotonic() - start:.0f} s; other programs used {others.share():.0%} of a processor meanwhile")
    return not (slower or other or failed)


def _add_pass(found: _Found, case: str, sides: tuple[Ask, Ask], setting: Setting) -> None:
    sums = [ask(do="prepare", case=case, effort=dataclasses.asdict(_effort)) for ask in sides]
    seconds: tuple[list[float], list[float]] = ([], [])
    begin = time.monotonic()
    for number in range(_effort.rounds):
        for index in (0, 1) if number % 2 == 0 else (1, 0):
            time.sleep(4 * setting.pause_seconds)
            seconds[index].append(sides[index](do="time"))
        if time.monotonic() - begin > 4 * _effort.contender_seconds and number + 1 >= _effort.fewest_rounds:
            break
    # What other programs do to a time only adds to it.
    one, two = (statistics.quantiles(times, n=4)[0] for times in seconds)
    found.ratios.append(two / one)
    found.seconds.append(one)
    found.same_bits = found.same_bits and sums[0] == sums[1]


def _table(measured: dict[Key, _Found], chosen: list[Setting], groups: dict[str, str]) -> str:
    def mean(setting: Setting, group: str) -> str:
        found = [e.ratio for (s, case), e in measured.items() if s == setting and group in ("all", groups[case])]
        return f"{statistics.geometric_mean(found or [1]):.3f}"

    texts = {
        key: f"{each.ratio:.2f} ({seconds_text(statistics.median(each.seconds))})" for key, each in measured.items()
    }
    rows = [(case, *(texts.get((setting, case), "") for setting in chosen)) for case in groups]
    names = (*dict.fromkeys(groups.values()), "all")
    rows += [(f"geometric mean, {group}", *(mean(setting, group) for setting in chosen)) for group in names]
    return table(("", *map(str, chosen)), rows)
