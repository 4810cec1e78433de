# SPDX-License-Identifier: BSD-3-Clause
"""Make mutants of the sources, one small change each, and tell which of them the quick tests do not notice.

python tools/mutate.py --count 60 [--seed N] [pytest's arguments]

The seed, the commit's hash if none is given, chooses the mutants. They are made in a copy of HEAD, in build/mutants; a mutant
that does not compile is replaced by another one. Needs what builds fastpe and what the tests need in the active environment.
"""

from __future__ import annotations

import argparse
import ast
import pathlib
import random
import re
import subprocess
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "mutants"
# A sign, a bound, a condition, a stride, a constant; and in Python a key.
BOTH = {r" \+ ": " - ", r" - ": " + ", r" < ": " <= ", r" <= ": " < ", r" > ": " >= ", r" >= ": " > ", r" == ": " != "}
BOTH |= {r"(?<![.\w])0\b(?!\.)": "1", r"(?<![.\w])1\b(?!\.)": "2", r" \* ": " + ", r"\bbegin\b": "end"}
CORE = {" && ": " || ", r"\btrue\b": "false", r"(?<=[=(+*] )(\w+_stride_bytes)\b": r"2 * \1", r"\bsine\b": "cosine"}
PYTHON = {" and ": " or ", r"\bTrue\b": "False", r" is None\b": " is not None", r"\bnot ": "", r'"(\w+)"': r'"\1_"'}

Mutant = tuple[pathlib.Path, int, str]  # a file, the number of a line, and what that becomes


PROSE = re.compile(
    r'\s*(#|//|from |import |@|"|raise |__all__|template|using)|.*(error|Error|message|case \w+:|static_assert)'
)


def mutants() -> Iterator[Mutant]:
    for path in sorted([*WORK.glob("csrc/**/*.[chi]*"), *WORK.glob("python/fastpe/**/*.py")]):
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


def run(*command: str) -> bool:
    """Whether a command succeeds."""
    done = subprocess.run(command, cwd=WORK, capture_output=True, text=True, check=False, timeout=1800)
    (WORK / "said").write_text(done.stdout + done.stderr, encoding="utf-8")
    return done.returncode == 0


def is_noticed(arguments: list[str]) -> bool | None:
    """Whether a test fails; None where there is no build."""
    if not run("tools/variant.sh", "mutant"):
        return None
    python = str(WORK / "build/mutant/bin/python")
    return not run(python, "-m", "pytest", "-x", "-q", "-n", "2", "-p", "no:cacheprovider", "tests", *arguments)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=lambda text: int(text, 16), help="a commit's hash, or its beginning")
    options, arguments = parser.parse_known_args()
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    WORK.mkdir(parents=True, exist_ok=True)
    subprocess.run(f"git archive HEAD | tar -x -C '{WORK}'", shell=True, cwd=ROOT, check=True)
    if is_noticed(arguments) is not False:
        sys.exit(f"the sources as they are fail: see {WORK / 'said'}")
    chosen, verdicts = [*mutants()], []
    random.Random(options.seed or int(commit[:7], 16)).shuffle(chosen)
    for path, number, line in chosen:
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")
        before, lines[number - 1] = lines[number - 1].strip(), line
        path.write_text("\n".join(lines), encoding="utf-8")
        verdicts.append(is_noticed(arguments))
        path.write_text(text, encoding="utf-8")
        verdict = {True: "noticed", False: "SURVIVED", None: "no build"}[verdicts[-1]]
        print(f"{verdict:8} {path.relative_to(WORK)}:{number}: {before} -> {line.strip()}", flush=True)
        if len(verdicts) - verdicts.count(None) == options.count:
            break
    print(
        f"{verdicts.count(True)} of {len(verdicts) - verdicts.count(None)} mutants noticed, of {len(chosen)} that there are"
    )
    return int(False in verdicts)


if __name__ == "__main__":
    sys.exit(main())
