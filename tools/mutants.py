# SPDX-License-Identifier: BSD-3-Clause
"""Make small mistakes in a copy of the source, one at a time, and tell which test notices each.

python tools/mutants.py WORK [--only WORD ..] [--jobs 2] [--built] [TESTS ..]

WORK is a directory for the copy. mutants.txt lists the mistakes. Those in C++ are compiled once, each behind a switch, which
FASTPE_MUTANT in the environment sets. pytest collects the tests once, the most telling ones or those that are given, and each
mistake gets a fork of it, where they run until one fails. Needs what the tests need, cmake and ninja, and Linux.
"""

from __future__ import annotations

import argparse
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
TELLING = """arrays composed c_library reliability/test_bad_input.py reliability/test_wrong_arguments.py rotary/test_errors.py
rotary/test_rotation.py rotary/test_tables.py rotary/test_given_tables.py rotary/test_layouts.py rotary/test_frequencies.py values"""
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
        return (
            f"{self.number:3} {self.file.rpartition('/')[2]}: {self.before} => {self.after or 'nothing'} | {self.seen}"
        )

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
        function, its_other = inspect.unwrap(value) if callable(value) else value, other
        if isinstance(value, (staticmethod, classmethod)):
            function, its_other = value.__func__, other.__func__
        elif isinstance(value, property):
            function, its_other = value.fget, other.fget
        elif isinstance(value, functools.cached_property):
            function, its_other = value.func, other.func
        its_other = inspect.unwrap(its_other) if callable(its_other) else its_other
        if getattr(value, "__module__", None) == module and isinstance(value, type):
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


def listed() -> list[Mistake]:
    """The list: a file's name, then for each mistake a line of the file, and what a user sees."""
    mistakes, file = list[Mistake](), ""
    for line in pathlib.Path(__file__).with_suffix(".txt").read_text().splitlines():
        code, _, seen = line.rpartition("  # ")
        if marked := re.fullmatch(r"(.*?)\[\[(.*) =>(?: (.*))?\]\](.*)", code):
            left, before, after, right = (part or "" for part in marked.groups())
            mistakes.append(Mistake(len(mistakes) + 1, file, left, before, after, right, seen))
        elif not line.startswith("#"):
            file = line
    return mistakes


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
        self.waiting, self.work, self.jobs, self.seconds = [None, *mistakes], work, jobs, seconds
        self.missed = 0
        self.out = os.dup(1)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """First without a mistake: tests that fail then are left out."""
        if session.testsfailed:
            raise session.Interrupted("a module of tests cannot be imported")
        running: dict[int, tuple[Mistake | None, int, float]] = {}
        while self.waiting or running:
            if self.waiting and len(running) < self.jobs and None not in [mistake for mistake, *_ in running.values()]:
                mistake, last_test = self.waiting.pop(0), os.memfd_create("last test")
                os.environ["FASTPE_MUTANT"] = str(mistake.number if mistake else 0)
                if (child := os.fork()) == 0:
                    self.run(session, mistake, last_test)
                running[child] = mistake, last_test, time.monotonic() + self.seconds
            for child, (mistake, last_test, end) in [*running.items()]:
                ended, status = os.waitpid(child, os.WNOHANG)
                if not ended and time.monotonic() < end:
                    continue
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
                if not ended:
                    os.waitpid(child, 0)
                how = {0: "", 1: "fails"}.get(os.waitstatus_to_exitcode(status), f"ends with {status}")
                told = os.pread(last_test, 100_000, 0).decode().splitlines()
                os.close(last_test)
                if mistake is None:
                    session.items[:] = [item for item in session.items if item.nodeid not in told]
                    os.write(self.out, "".join(f"fails without a mistake: {test}\n" for test in told).encode())
                else:
                    noticed = f"{told[0]} {how or f'is not over in {self.seconds} s'}" if how or not ended else "MISSED"
                    self.missed += noticed == "MISSED"
                    os.write(self.out, f"{mistake}: {noticed}\n".encode())
                del running[child]
            time.sleep(0.02)
        os.write(self.out, f"{self.missed} missed\n".encode())
        return True

    def run(self, session: pytest.Session, mistake: Mistake | None, last_test: int) -> NoReturn:
        """In the fork: the tests until one fails."""
        status = 1
        try:
            os.setpgid(0, 0)
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            if mistake and mistake.in_python:
                os.pwrite(last_test, b"the import\n", 0)
                mistake.put_into_process(self.work / "site", self.work / f"copy-{os.getpid()}")
            for item, after in zip(session.items, [*session.items[1:], None], strict=True):
                failed = session.testsfailed
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
    parser.add_argument("tests", nargs="*", help="in place of the most telling ones")
    parser.add_argument("--only", nargs="*", default=[""], help="mistakes whose line has one of these words")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=300, help="after which a mistake counts as noticed")
    parser.add_argument("--built", action="store_true", help="WORK has what the list says")
    options = parser.parse_args()
    work = options.work.resolve()
    mistakes = [mistake for mistake in listed() if mistake.find()]
    chosen = [mistake for mistake in mistakes if any(word in str(mistake) for word in options.only)]
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
        (packages / "others.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")))
        os.environ |= {"PYTHONPATH": str(work / "site"), "FASTPE_TEST_C_LIBRARY": str(work / "prefix")}
        python = str(work / "venv/bin/python")
        os.execv(python, [python, *sys.argv])
    os.chdir(ROOT)
    tests = options.tests or [f"tests/{name}" for name in TELLING.split()]
    arguments = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:faulthandler", f"--ignore={NEEDS_MORE}", *tests]
    raise SystemExit(pytest.main(arguments, plugins=[Runner(chosen, work, options.jobs, options.seconds)]))


if __name__ == "__main__":
    main()
