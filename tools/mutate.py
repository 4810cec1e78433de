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
PYTHON_THERE = WORK / "build/mutant/bin/python"
# A sign, a bound, a condition, a stride, a constant; and in Python a key.
BOTH = {r" \+ ": " - ", r" - ": " + ", r" < ": " <= ", r" <= ": " < ", r" > ": " >= ", r" >= ": " > ", r" == ": " != "}
BOTH |= {r"(?<![.\w])0\b(?!\.)": "1", r"(?<![.\w])1\b(?!\.)": "2", r" \* ": " + ", r"\bbegin\b": "end"}
CORE = {" && ": " || ", r"\btrue\b": "false", r"(?<=[=(+*] )(\w+_stride_bytes)\b": r"2 * \1", r"\bsine\b": "cosine"}
PYTHON = {" and ": " or ", r"\bTrue\b": "False", r" is None\b": " is not None", r"\bnot ": "", r'"(\w+)"': r'"\1_"'}
PROSE = re.compile(
    r'\s*(#|//|from |import |@|"|raise |__all__|template|using)|.*(error|Error|message|case \w+:|static_assert)'
)
# These tests run first for files whose path has one of the words.
NEAREST = {
    "cli": ("_cli",),
    "rotary": ("rotary", "rotat"),
    "conventions": ("_identify", "_grid", "preset", "convention"),
    "package": ("plotting", "dask", "_docs"),
    "arrays": ("csrc", "_sinusoid", "_arguments"),
    "values": ("csrc",),
    "reliability": (),
}

Mutant = tuple[pathlib.Path, int, str]  # a file, the number of a line, and what that becomes


def mutants() -> Iterator[Mutant]:
    paths = [path for path in WORK.glob("csrc/*/**/*.[chi]*") if path.parts[-2] not in ("c_library", "include")]
    for path in sorted([*paths, *WORK.glob("python/fastpe/**/*.py")]):
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


def run(*command: str | pathlib.Path, seconds: float = 3600) -> str | None:
    """What a command prints if it fails; it fails too if it takes longer."""
    with subprocess.Popen(
        command, cwd=WORK, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"FAILED: no end in {seconds:.0f} s"
    return said if process.returncode else None


def failure(path: pathlib.Path, arguments: list[str], seconds: float = 3600) -> str | None:
    """The first test that fails with this file changed."""
    near = sorted(NEAREST, key=lambda name: not any(word in str(path.relative_to(WORK)) for word in NEAREST[name]))
    command = [PYTHON_THERE, "-m", "pytest", "-x", "-q", "-n", "2", "-p", "no:cacheprovider", "--no-header", *arguments]
    said = run(*command, *(f"tests/{name}" for name in near), "tests/test_against_numpy.py", seconds=seconds)
    found = re.search(r"^(FAILED|ERROR).*", said or "", re.MULTILINE)
    return found[0] if found else said


def installed() -> pathlib.Path:
    code = "import fastpe; print(fastpe.__path__[0])"
    return pathlib.Path(
        subprocess.run([PYTHON_THERE, "-c", code], check=True, capture_output=True, text=True).stdout[:-1]
    )


def install(path: pathlib.Path, package: pathlib.Path) -> bool | None:
    """Bring a changed file into the environment; whether that makes another program, or None if it does not compile."""
    if path.suffix == ".py":
        shutil.copy(path, package / path.relative_to(WORK / "python/fastpe"))
        return True
    if run("cmake", "--build", "build/mutant-core"):
        return None
    (module,) = (WORK / "build/mutant-core").glob("_core.*.so")
    is_other = module.read_bytes() != (package / module.name).read_bytes()
    shutil.copy(module, package / module.name)
    return is_other


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=lambda text: int(text, 16), help="a commit's hash, or its beginning")
    options, arguments = parser.parse_known_args()
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    WORK.mkdir(parents=True, exist_ok=True)
    subprocess.run(f"git archive HEAD | tar -x -C '{WORK}'", shell=True, cwd=ROOT, check=True)
    started = time.monotonic()
    if (said := run("tools/variant.sh", "mutant") or failure(WORK, arguments)) is not None:
        sys.exit(f"the sources as they are fail: {said}")
    package, seconds = installed(), 3 * (time.monotonic() - started)
    chosen, noticed = [*mutants()], []
    random.Random(options.seed or int(commit[:7], 16)).shuffle(chosen)
    for path, number, line in chosen:
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")
        before, lines[number - 1] = lines[number - 1].strip(), line
        path.write_text("\n".join(lines), encoding="utf-8")
        if is_other := install(path, package):
            noticed.append(failure(path, arguments, seconds))
        path.write_text(text, encoding="utf-8")
        install(path, package)
        verdict = {True: noticed and noticed[-1] or "SURVIVED", False: "the same program", None: "no build"}[is_other]
        print(f"{path.relative_to(WORK)}:{number}: {before} -> {line.strip()}\n    {verdict}", flush=True)
        if len(noticed) == options.count:
            break
    print(f"{len(noticed) - noticed.count(None)} of {len(noticed)} mutants noticed, of {len(chosen)} that there are")
    return int(None in noticed)


if __name__ == "__main__":
    sys.exit(main())
