# SPDX-License-Identifier: BSD-3-Clause
"""Two builds or two instruction sets of fastpe, each in a process of its own, taking turns."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import fastpe
from benchmarks import tables
from benchmarks.harness import Effort, Spread

_root = pathlib.Path(__file__).parent.parent
_effort = Effort(rounds=15, batch_seconds=0.005, contender_seconds=0.3)


class Side:
    """A worker process and the name it goes by."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name = name
        self._process = process

    def ask(self, **request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        reply = json.loads(self._process.stdout.readline())
        if "error" in reply:
            raise RuntimeError(f"{self.name}: {reply['error']}")
        return reply["value"]


@contextlib.contextmanager
def _side(name: str, instruction_set: str | None, site: pathlib.Path | None) -> Iterator[Side]:
    environment = dict(os.environ)
    arguments = [sys.executable, "-m", "benchmarks.worker"]
    if instruction_set is not None:
        environment["FASTPE_ISA"] = instruction_set
    if site is not None:
        # Without the site module: an editable installation would go before PYTHONPATH.
        arguments.insert(1, "-S")
        paths = sysconfig.get_paths()
        environment["PYTHONPATH"] = os.pathsep.join([str(site), paths["purelib"], paths["platlib"]])
    process = subprocess.Popen(
        arguments, cwd=_root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield Side(name, process)
        finally:
            process.kill()


@contextlib.contextmanager
def _built(commit_or_directory: str) -> Iterator[pathlib.Path]:
    """An installation of a commit, or of a source directory as it is, in a temporary directory."""
    with tempfile.TemporaryDirectory() as temporary:
        site, source = pathlib.Path(temporary, "site"), pathlib.Path(temporary, "source")
        is_directory = pathlib.Path(commit_or_directory).is_dir()
        if is_directory:
            source = pathlib.Path(commit_or_directory).resolve()
        else:
            verify = ["git", "rev-parse", "--quiet", "--verify", commit_or_directory + "^{commit}"]
            if subprocess.run(verify, cwd=_root, stdout=subprocess.DEVNULL, check=False).returncode != 0:
                names = ", ".join(fastpe.show_config()["available_instruction_sets"])
                sys.exit(f"{commit_or_directory} is no git commit and no directory; instruction sets here: {names}")
            add = ["git", "worktree", "add", "--quiet", "--detach", str(source), commit_or_directory]
            subprocess.run(add, cwd=_root, check=True)
        try:
            print(f"building {commit_or_directory} ..", file=sys.stderr)
            install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site)]
            if importlib.util.find_spec("scikit_build_core") and importlib.util.find_spec("pybind11"):
                install.append("--no-build-isolation")
            subprocess.run([*install, f"-Cbuild-dir={temporary}/build", str(source)], check=True)
            yield site
        finally:
            if not is_directory:
                subprocess.run(["git", "worktree", "remove", "--force", str(source)], cwd=_root, check=True)


@contextlib.contextmanager
def _sides(first: str, second: str) -> Iterator[tuple[Side, Side]]:
    instruction_sets = fastpe.show_config()["available_instruction_sets"]
    with contextlib.ExitStack() as stack:
        sides = []
        for name in (first, second):
            if first in instruction_sets and second in instruction_sets:
                side = stack.enter_context(_side(name, name, None))
            else:
                site = stack.enter_context(_built(name))
                side = stack.enter_context(_side(name, None, site))
                file = pathlib.Path(side.ask(do="describe")["file"])
                assert site in file.parents, f"{name}: measured {file}, expected an installation in {site}"
            sides.append(side)
        yield sides[0], sides[1]


def compare(first: str, second: str, only: str) -> None:
    with _sides(first, second) as sides:
        for side in sides:
            config = side.ask(do="describe")["config"]
            print(f"{side.name}: {config['instruction_set']}, {config['threads']} threads, {config['compiler']}")
        rows: list[tuple[str, ...]] = []
        for case in sides[0].ask(do="describe")["cases"]:
            if only not in case:
                continue
            print(f"{case} ..", file=sys.stderr)
            try:
                rows += _compare_case(case, sides)
            except RuntimeError as error:
                rows.append((case, str(error), "", "", "", ""))
        header = ("case", "contender", first, second, f"{second} / {first}", "quartiles")
        print(tables.table(header, rows, (2, 3, 4, 5)))


def _compare_case(case: str, sides: tuple[Side, Side]) -> list[tuple[str, ...]]:
    for side in sides:
        names = side.ask(do="prepare", case=case, effort=dataclasses.asdict(_effort))
    rounds: tuple[list[list[float]], list[list[float]]] = ([], [])
    spent = 0.0
    for round_index in range(_effort.rounds):
        for index in (0, 1) if round_index % 2 == 0 else (1, 0):
            time.sleep(0.02)  # until the other side's idle threads have stopped spinning
            rounds[index].append(sides[index].ask(do="time"))
            spent += sum(rounds[index][-1])
        if spent > 2 * len(names) * _effort.contender_seconds and round_index + 1 >= _effort.fewest_rounds:
            break
    rows = []
    for i, name in enumerate(names):
        ratio = Spread.of([b[i] / a[i] for a, b in zip(*rounds, strict=True)])
        times = [tables.seconds_text(Spread.of([r[i] for r in rounds[side]]).median) for side in (0, 1)]
        rows.append((case, name, *times, f"{ratio.median:.3f}", f"{ratio.low:.3f} .. {ratio.high:.3f}"))
    return rows
