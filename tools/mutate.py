# SPDX-License-Identifier: BSD-3-Clause
"""Make mutants of the sources, one small change each, and tell which of them the quick tests do not notice.

python tools/mutate.py --count 60 [--seed N] [pytest's arguments]

The seed, the commit's hash if none is given, chooses the mutants. They are made in a copy of HEAD, in build/mutants; one that
does not compile, or to the same machine code, is replaced by another one. Needs what builds fastpe and what the tests need in
the active environment; with CMAKE_CXX_COMPILER_LAUNCHER=ccache it takes less time.
"""

from __future__ import annotations

import argparse
import ast
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "mutants"
# A sign, a bound, a condition, a stride, a constant; and in Python a key.
BOTH = {r" \+ ": " - ", r" - ": " + ", r" < ": " <= ", r" <= ": " < ", r" > ": " >= ", r" >= ": " > ", r" == ": " != "}
BOTH |= {r"(?<![.\w])0\b(?!\.)": "1", r"(?<![.\w])1\b(?!\.)": "2", r" \* ": " + ", r"\bbegin\b": "end"}
CORE = {" && ": " || ", r"\btrue\b": "false", r"(?<=[=(+*] )(\w+_stride_bytes)\b": r"2 * \1", r"\bsine\b": "cosine"}
PYTHON = {" and ": " or ", r"\bTrue\b": "False", r" is None\b": " is not None", r"\bnot ": "", r'"(\w+)"': r'"\1_"'}
PROSE = re.compile(
    r'\s*(#|//|from |import |@|"|raise |__all__|template|using)|.*(error|Error|message|case \w+:|static_assert)'
)
# Directories of tests: those come first that are here for a part of the file's path.
NEAREST = {"cli": "_cli", "rotary": "rota", "conventions": "_identify|_grid|preset|convention", "package": "plot|dask"}
NEAREST |= {"arrays": "csrc|_sinusoid|_arguments", "values": "csrc", "reliability": "parallel|machine"}


def mutants() -> Iterator[tuple[pathlib.Path, int, str]]:
    """Each a file, the number of a line, and what that becomes."""
    core = [path for path in WORK.glob("csrc/*/**/*.[chi]*") if path.parts[-2] not in ("c_library", "include")]
    for path in sorted([*core, *WORK.glob("python/fastpe/**/*.py")]):
        text, is_python = path.read_text(encoding="utf-8"), path.suffix == ".py"
        strings = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)] if is_python else []
        ends = {line for s in strings if s.end_lineno != s.lineno for line in range(s.lineno, (s.end_lineno or 0) + 1)}
        for number, line in enumerate(text.splitlines(), 1):
            code = line.partition(" # " if is_python else "//")[0]
            if number in ends or PROSE.match(line):
                continue
            for pattern, replacement in (BOTH | (PYTHON if is_python else CORE)).items():
                for match in re.finditer(pattern, code):
                    yield path, number, code[: match.start()] + match.expand(replacement) + line[match.end() :]


def failure(*command: str, seconds: float | None = None) -> str:
    """What a command that fails, or takes longer, says of it; empty if it succeeds."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, cwd=WORK, text=True, start_new_session=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            said = process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"no end in {seconds} s"
    found = re.search(r"^(FAILED|ERROR).*", said, re.MULTILINE)
    return "" if process.returncode == 0 else found[0] if found else said or "failed"


def install(path: pathlib.Path, package: pathlib.Path) -> str:
    """Bring a changed file into the environment. Says why it is no mutant, if it is none."""
    if path.suffix == ".py":
        shutil.copy(path, package / path.relative_to(WORK / "python/fastpe"))
        return ""
    if failure("cmake", "--build", "build/mutant-core"):
        return "no build"
    (module,) = (WORK / "build/mutant-core").glob("_core.*.so")
    is_same = module.read_bytes() == (package / module.name).read_bytes()
    shutil.copy(module, package / module.name)
    return "the same program" if is_same else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=lambda text: int(text, 16), help="a commit's hash, or its beginning")
    options, arguments = parser.parse_known_args()
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    WORK.mkdir(parents=True, exist_ok=True)
    subprocess.run(f"git archive HEAD | tar -x -C '{WORK}'", shell=True, cwd=ROOT, check=True)

    def first_failing_test(path: pathlib.Path, seconds: float | None = None) -> str:
        near = sorted(NEAREST, key=lambda name: not re.search(NEAREST[name], str(path.relative_to(WORK))))
        tests = [*(f"tests/{name}" for name in near), "tests/test_against_numpy.py"]
        pytest = [str(WORK / "build/mutant/bin/python"), "-m", "pytest", "-xqn2", "-p", "no:cacheprovider"]
        return failure(*pytest, *arguments, *tests, seconds=seconds)

    started = time.monotonic()
    if said := failure("tools/variant.sh", "mutant") or first_failing_test(WORK):
        sys.exit(f"the sources as they are fail: {said}")
    seconds = 3 * (time.monotonic() - started)
    (package,) = (WORK / "build/mutant").glob("lib/*/site-packages/fastpe")
    chosen, verdicts = [*mutants()], []
    random.Random(options.seed or int(commit[:7], 16)).shuffle(chosen)
    for path, number, line in chosen:
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")
        before, lines[number - 1] = lines[number - 1].strip(), line
        path.write_text("\n".join(lines), encoding="utf-8")
        if not (verdict := install(path, package)):
            verdict = first_failing_test(path, seconds) or "SURVIVED"
            verdicts.append(verdict)
        path.write_text(text, encoding="utf-8")
        install(path, package)
        print(f"{path.relative_to(WORK)}:{number}: {before} -> {line.strip()}\n    {verdict}", flush=True)
        if len(verdicts) == options.count:
            break
    survivors = verdicts.count("SURVIVED")
    print(f"{len(verdicts) - survivors} of {len(verdicts)} mutants noticed, of {len(chosen)} that there are")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
