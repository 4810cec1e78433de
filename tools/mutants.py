# SPDX-License-Identifier: BSD-3-Clause
"""Make small mistakes in a copy of the source, one at a time, and tell which test notices each.

python tools/mutants.py WORK [--only WORD ..] [--new] [--jobs 2] [--built] [--write]

WORK is a directory for the copy. mutants.txt lists the mistakes. Those in C++ are compiled once, each behind a switch, which
FASTPE_MUTANT in the environment sets. Each mistake gets a run of the test that the list names, and of all quick ones where
that one passes. With --write the list then names what failed. Needs what the tests need, cmake and ninja, and Linux.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

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

    def changed(self, site: pathlib.Path, copy: pathlib.Path) -> None:
        """Make a copy of the installed package with this mistake."""
        begin, end = self.find() or (0, 0)
        text = (ROOT / self.file).read_text()
        shutil.copytree(site, copy, copy_function=os.link, dirs_exist_ok=True)
        path = copy / self.file.removeprefix("python/")
        path.unlink()
        path.write_text(text[:begin] + self.after + text[end:])


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
        lines[number] = "  # ".join([*lines[number].split("  # ")[:2], test or "missed"])
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


def failing(work: pathlib.Path, tests: list[str], site: pathlib.Path, number: int = 0, *more: str) -> list[str]:
    """The tests that fail with a mistake, by their names in the list; a process that ends otherwise counts as the first."""
    environment = {"PYTHONPATH": str(site), "FASTPE_MUTANT": str(number), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"FASTPE_TEST_C_LIBRARY": str(work / "prefix")}
    chosen = [f"tests/{each}" for each in tests] or [f"--ignore={NEEDS_MORE}"]
    command = [str(work / "venv/bin/python"), "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", *more, *chosen]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return tests[:1]
    found = re.findall(r"^(?:FAILED|ERROR) tests/(\S+?\.py(?:::\w+)?)", done.stdout, re.MULTILINE)
    return [*dict.fromkeys(found)] or (tests[:1] or ["a process that ended"] if done.returncode else [])


def tried(work: pathlib.Path, mistake: Mistake) -> str:
    """The test that notices the mistake; empty if none does."""
    with tempfile.TemporaryDirectory(dir=work) as directory:
        site = work / "site"
        if mistake.in_python:
            mistake.changed(site, pathlib.Path(directory))
            site = pathlib.Path(directory)
        for tests in ([mistake.noticed] if "::" in mistake.noticed else [], []):
            if found := failing(work, tests, site, mistake.number, "-x"):
                print(f"{mistake}: {found[0]}", flush=True)
                return found[0]
    print(f"{mistake}: MISSED", flush=True)
    return ""


def interpreter(work: pathlib.Path) -> None:
    """One that finds what this one does, but not its fastpe."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(work / "venv")], check=True)
    packages = next((work / "venv").glob("lib/*/site-packages"))
    paths = [str(work / "site"), *(path for path in sys.path if path.endswith("-packages"))]
    (packages / "others.pth").write_text("\n".join(paths))
    command = work / "venv/bin/fastpe"
    command.write_text(f"#!{work}/venv/bin/python\nimport _fastpe_command\nraise SystemExit(_fastpe_command.main())\n")
    command.chmod(0o755)


def main() -> int:
    """Print a line for each mistake, and how many none of the tests noticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[""], help="mistakes whose line has one of these words")
    parser.add_argument("--new", action="store_true", help="mistakes that no test of the list notices")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--built", action="store_true", help="WORK has what the list says")
    parser.add_argument("--write", action="store_true", help="name in the list what noticed each mistake")
    options = parser.parse_args()
    work, mistakes = options.work.resolve(), listed()
    for mistake in mistakes:
        if not mistake.find():
            print(f"{mistake}: GONE, or there more than once", flush=True)
    mistakes = [mistake for mistake in mistakes if mistake.find()]
    if not options.built:
        work.mkdir(parents=True, exist_ok=True)
        build(work, mistakes)
    interpreter(work)
    chosen = [mistake for mistake in mistakes if any(word in str(mistake) for word in options.only)]
    chosen = [mistake for mistake in chosen if not options.new or "::" not in mistake.noticed]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = [*pool.map(functools.partial(tried, work), chosen)]
    for test in failing(work, sorted({test for test in found if "::" in test}), work / "site"):
        print(f"fails without a mistake: {test}")
        found = ["" if each == test else each for each in found]
    print(f"{found.count('')} missed of {len(found)}", flush=True)
    if options.write:
        write({mistake.line: test for mistake, test in zip(chosen, found, strict=True)})
    return int("" in found)


if __name__ == "__main__":
    sys.exit(main())
