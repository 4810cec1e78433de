# SPDX-License-Identifier: BSD-3-Clause
"""Make small mistakes in a copy of the source, one at a time, and tell which test notices each.

python tools/mutants.py WORK [--only WORD ..] [--new] [--jobs 2] [--built] [--write] [TESTS ..]

WORK is a directory for the copy. mutants.txt lists the mistakes. Those in C++ are compiled once, each behind a switch, which
FASTPE_MUTANT in the environment sets. pytest collects the tests once, the quick ones or those that are given, and each mistake
gets a fork of it, where they run until one fails: first the test that the list names, then its file, then those that notice
other mistakes in the same place. With --write the list then names what failed. Needs what the tests need, cmake and ninja,
and Linux.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import functools
import importlib
import inspect
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import types
from typing import Any, NoReturn

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIST = pathlib.Path(__file__).with_suffix(".txt")
NEEDS_MORE = "tests/c_library/test_gguf.py"  # an example's program, as .ci/run builds it
SWITCH = """#pragma once
#include <pthread.h>
#include <cstdlib>
inline int read_fastpe_mutant() { const char* text = std::getenv("FASTPE_MUTANT"); return text ? std::atoi(text) : 0; }
inline int fastpe_mutant = [] {
  pthread_atfork(nullptr, nullptr, [] { fastpe_mutant = read_fastpe_mutant(); });
  return read_fastpe_mutant();
}();
"""


@dataclasses.dataclass
class Mistake:
    """What stands between `left` and `right` in a file, and what takes its place."""

    number: int
    file: str
    left: str
    before: str
    after: str
    right: str
    seen: str  # by a user
    noticed: str  # the test that noticed it last
    line: int  # of the list

    def find(self) -> tuple[int, int] | None:
        """Where it is; None where it is not, or not once."""
        path = ROOT / self.file
        left, before, right = (
            r"\s+".join(map(re.escape, part.split())) for part in (self.left, self.before, self.right)
        )
        text = path.read_text() if path.exists() else ""
        found = [*re.finditer(rf"{left}\s*({before})\s*{right}", text)]
        return found[0].span(1) if len(found) == 1 else None

    def __str__(self) -> str:
        return f"{self.number:3} {self.file}: {self.before} => {self.after or 'nothing'} | {self.seen} | {self.noticed}"

    @property
    def in_python(self) -> bool:
        """Whether it needs no compiler."""
        return self.file.endswith(".py")

    def switched(self) -> str:
        """C++ that does either."""
        if self.before.endswith(";"):
            return f"if (fastpe_mutant == {self.number}) {{ {self.after} }} else {{ {self.before} }}"
        return f"(fastpe_mutant == {self.number} ? ({self.after}) : ({self.before}))"

    def put_into_process(self, site: pathlib.Path, copy: pathlib.Path) -> None:
        """Change the code of a module that is imported, and what processes that are started will import."""
        begin, end = self.find() or (0, 0)
        text = (ROOT / self.file).read_text()
        changed = text[:begin] + self.after + text[end:]
        shutil.copytree(site, copy, copy_function=os.link)
        path = copy / self.file.removeprefix("python/")
        path.unlink()
        path.write_text(changed)
        os.environ |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        name = self.file.removeprefix("python/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        old = importlib.import_module(name)
        new = types.ModuleType(name)
        new.__dict__.update(__file__=old.__file__, __package__=old.__package__, __path__=getattr(old, "__path__", None))
        exec(compile(changed, str(old.__file__), "exec"), new.__dict__)  # noqa: S102
        _take_over(vars(old), vars(new), name)


def _take_over(old: Any, new: Any, module: str) -> None:
    """Give the objects of a module, which others have imported, what new ones hold."""
    for name, value in list(old.items()):
        other = new.get(name)
        function, its_other = value, other
        if isinstance(value, (staticmethod, classmethod)):
            function, its_other = value.__func__, other.__func__
        elif isinstance(value, property):
            function, its_other = value.fget, other.fget
        elif isinstance(value, functools.cached_property):
            function, its_other = value.func, other.func
        function, its_other = (inspect.unwrap(each) if callable(each) else each for each in (function, its_other))
        if isinstance(value, type) and value is not other and value.__module__ in (module, "fastpe"):
            _take_over(dict(vars(value)), dict(vars(other)), module)
        elif isinstance(function, types.FunctionType) and isinstance(its_other, types.FunctionType):
            if function.__module__ == module and function.__code__.co_freevars == its_other.__code__.co_freevars:
                function.__code__, function.__defaults__ = its_other.__code__, its_other.__defaults__
                function.__kwdefaults__ = its_other.__kwdefaults__
            getattr(value, "cache_clear", lambda: None)()
        elif isinstance(value, dict) and isinstance(other, dict) and not name.startswith("__"):
            if value is not other and not any(map(callable, value.values())):
                value.clear()
                value.update(other)
        elif isinstance(value, (int, float, str, tuple, frozenset, re.Pattern)) and not name.startswith("__"):
            with contextlib.suppress(TypeError):
                old[name] = other


def name_of(test: str) -> str:
    """A test as the list names it: without what it was called with, which others may change."""
    return test.partition("[")[0].removeprefix("tests/")


def listed() -> list[Mistake]:
    """The list: a file's name, then for each mistake a line of the file, what a user sees, and the test that noticed it."""
    mistakes, file = list[Mistake](), ""
    for number, line in enumerate(LIST.read_text().splitlines()):
        if line.startswith("#"):
            continue
        code, seen, noticed = [*line.split("  # "), "", ""][:3]
        if marked := re.fullmatch(r"(.*?)\[\[(.*) =>(?: (.*))?\]\](.*)", code):
            left, before, after, right = (part or "" for part in marked.groups())
            mistakes.append(Mistake(len(mistakes) + 1, file, left, before, after, right, seen, noticed, number))
        else:
            file = line
    return mistakes


def write(noticed: dict[int, str]) -> None:
    """Name in the list what noticed each mistake."""
    lines = LIST.read_text().splitlines()
    for number, test in noticed.items():
        lines[number] = "  # ".join([*lines[number].split("  # ")[:2], name_of(test) or "missed"])
    LIST.write_text("\n".join(lines) + "\n")


def build(work: pathlib.Path, mistakes: list[Mistake]) -> None:
    """Install the package and the C library from a copy of the source with these mistakes."""
    source, site, prefix = (work / name for name in ("source", "site", "prefix"))
    for made in (source, site, prefix):
        shutil.rmtree(made, ignore_errors=True)
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in names.split("\0")[:-1]:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name)
    in_core = [(mistake.find() or (0, 0), mistake) for mistake in mistakes if not mistake.in_python]
    first = dict[str, int]()
    for (begin, end), mistake in sorted(in_core, key=lambda each: -each[0][0]):
        if end > first.get(mistake.file, end):
            raise SystemExit(f"{mistake} overlaps with another one")
        text, first[mistake.file] = (source / mistake.file).read_text(), begin
        (source / mistake.file).write_text(text[:begin] + mistake.switched() + text[end:])
    (work / "switch.h").write_text(SWITCH)
    flags = {**os.environ, "CXXFLAGS": f"-include {work}/switch.h"}
    run = functools.partial(subprocess.run, check=True, env=flags, stdout=subprocess.DEVNULL)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--upgrade"]
    run([*pip, f"--target={site}", f"-Cbuild-dir={work}/python", str(source)])
    options = ["-G", "Ninja", "-DFASTPE_PYTHON=OFF", "-DCMAKE_INSTALL_LIBDIR=lib"]
    run(["cmake", "-S", str(source), "-B", f"{work}/c", *options])
    run(["cmake", "--build", f"{work}/c"])
    run(["cmake", "--install", f"{work}/c", "--prefix", str(prefix)])


class Runner:
    """A plugin of pytest: after the collection, each mistake gets a fork of this process, where the tests run."""

    def __init__(self, mistakes: list[Mistake], work: pathlib.Path, jobs: int, seconds: int) -> None:
        self.mistakes, self.work, self.jobs, self.seconds = mistakes, work, jobs, seconds
        self.listed = listed()
        self.noticed = dict[int, str]()  # by the line of the list

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Tests that also fail without the mistake are left out, and the mistake is tried again."""
        if session.testsfailed:
            raise session.Interrupted("a module of tests cannot be imported")
        waiting = self.mistakes
        while waiting:
            told = self.tell(session, [(mistake, self.in_order(session.items, mistake)) for mistake in waiting])
            found = {test for tests in told for test in tests[:1]}
            [broken] = self.tell(session, [(None, [item for item in session.items if item.nodeid in found])])
            self.noticed |= {mistake.line: "".join(tests[:1]) for mistake, tests in zip(waiting, told, strict=True)}
            waiting = [mistake for mistake in waiting if self.noticed[mistake.line] in broken]
            session.items[:] = [item for item in session.items if item.nodeid not in broken]
            print(*(f"fails without a mistake: {test}\n" for test in broken), sep="", end="", flush=True)
        print(f"{[*self.noticed.values()].count('')} missed of {len(self.noticed)}", flush=True)
        return True

    def in_order(self, items: list[pytest.Item], mistake: Mistake) -> list[pytest.Item]:
        """The most telling ones first."""
        others = collections.Counter(
            each.noticed.partition("::")[0] for each in self.listed if each.file == mistake.file
        )

        def rank(item: pytest.Item) -> tuple[bool, bool, int]:
            path = item.nodeid.partition("::")[0].removeprefix("tests/")
            return name_of(item.nodeid) != mistake.noticed, path != mistake.noticed.partition("::")[0], -others[path]

        return sorted(items, key=rank)

    def tell(self, session: pytest.Session, runs: list[tuple[Mistake | None, list[pytest.Item]]]) -> list[list[str]]:
        """The tests that fail with each mistake: the first one, or all where there is no mistake."""
        waiting, told = [*range(len(runs))], [list[str]() for _ in runs]
        running = dict[int, tuple[int, int]]()
        while waiting or running:
            if waiting and len(running) < self.jobs:
                run, last_test = waiting.pop(0), os.memfd_create("last test")
                os.environ["FASTPE_MUTANT"] = str(runs[run][0].number if (mistake := runs[run][0]) else 0)
                if (child := os.fork()) == 0:
                    self.run(session, *runs[run], last_test)
                running[child] = run, last_test
            for child, (run, last_test) in [*running.items()]:
                ended, status = os.waitpid(child, os.WNOHANG)
                if not ended:
                    continue
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
                too_long = f"is not over in {self.seconds} s"
                how = {0: "", 1: "fails", -signal.SIGALRM: too_long}.get(code := os.waitstatus_to_exitcode(status))
                how = f"ends with {code}" if how is None else how
                told[run] = os.pread(last_test, 1_000_000, 0).decode().splitlines()
                os.close(last_test)
                if mistake := runs[run][0]:
                    told[run] = told[run][:1] if how else []
                    print(f"{mistake}: {told[run][0]} {how}" if told[run] else f"{mistake}: MISSED", flush=True)
                del running[child]
            time.sleep(0.02)
        return told

    def run(
        self, session: pytest.Session, mistake: Mistake | None, items: list[pytest.Item], last_test: int
    ) -> NoReturn:
        """In the fork: the tests until one fails."""
        status = 1
        try:
            os.setpgid(0, 0)
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            if mistake and mistake.in_python:
                mistake.put_into_process(self.work / "site", self.work / f"copy-{os.getpid()}")
            for item, after in zip(items, [*items[1:], None], strict=True):
                failed = session.testsfailed
                signal.alarm(self.seconds)
                if mistake:
                    os.pwrite(last_test, f"{item.nodeid}\n".encode(), 0)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if mistake and session.testsfailed:
                    break
                if session.testsfailed > failed:
                    os.write(last_test, f"{item.nodeid}\n".encode())
            else:
                status = 0
        finally:
            shutil.rmtree(self.work / f"copy-{os.getpid()}", ignore_errors=True)
            os._exit(status)


def main() -> None:
    """Print a line for each mistake, and how many none of the tests noticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("tests", nargs="*", help="in place of all quick ones")
    parser.add_argument("--only", nargs="*", default=[""], help="mistakes whose line has one of these words")
    parser.add_argument("--new", action="store_true", help="mistakes that no test of the list notices")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=120, help="after which a test that is not over has failed")
    parser.add_argument("--built", action="store_true", help="WORK has what the list says")
    parser.add_argument("--write", action="store_true", help="name in the list what noticed each mistake")
    options = parser.parse_args()
    work = options.work.resolve()
    mistakes = [mistake for mistake in listed() if mistake.find()]
    chosen = [mistake for mistake in mistakes if any(word in str(mistake) for word in options.only)]
    chosen = [mistake for mistake in chosen if not options.new or "::" not in mistake.noticed]
    if sys.prefix != str(work / "venv"):
        if not options.built:
            work.mkdir(parents=True, exist_ok=True)
            build(work, mistakes)
        for mistake in listed():
            if not mistake.find():
                print(f"{mistake}: GONE, or there more than once", flush=True)
        # An interpreter that finds what this one does, but not its fastpe.
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(work / "venv")], check=True)
        packages = next((work / "venv").glob("lib/*/site-packages"))
        paths = [str(work / "site"), *(path for path in sys.path if path.endswith("-packages"))]
        (packages / "others.pth").write_text("\n".join(paths))
        command = work / "venv/bin/fastpe"
        command.write_text(
            f"#!{work}/venv/bin/python\nimport _fastpe_command\nraise SystemExit(_fastpe_command.main())\n"
        )
        command.chmod(0o755)
        os.environ |= {"PYTHONPATH": str(work / "site"), "FASTPE_TEST_C_LIBRARY": str(work / "prefix")}
        python = str(work / "venv/bin/python")
        os.execv(python, [python, *sys.argv])
    os.chdir(ROOT)
    arguments = [
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:faulthandler",
        f"--ignore={NEEDS_MORE}",
        *options.tests,
    ]
    runner = Runner(chosen, work, options.jobs, options.seconds)
    pytest.main(arguments, plugins=[runner])
    if options.write:
        write(runner.noticed)
    raise SystemExit("" in runner.noticed.values())


if __name__ == "__main__":
    main()
