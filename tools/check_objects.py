# SPDX-License-Identifier: BSD-3-Clause
"""Check that instructions beyond the baseline stay where they are chosen at run time, and that the core waits for no lock.

python check_objects.py object ..

Objects compiled for an instruction set (kernels/<name>.cpp) may define one symbol, their table: a weak symbol could be
taken for every other object, and a static initialiser would run on every processor. All others must do without VEX and
EVEX instructions. The core has no static variables in functions: the compiler guards their first use with a lock, which
a child would wait for whose parent forked meanwhile.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

SPECIAL = ("avx2", "avx512")
MAY_BE_CALLED = {"memcpy", "memset", "memmove", "__stack_chk_fail", "___chkstk_ms", "_GLOBAL_OFFSET_TABLE_"}
GUARD = "__cxa_guard_acquire"
VECTOR = re.compile(r"\t(v[a-z0-9]+|k[a-z]+[bwdq])\s|%[yz]mm\d")


def output_of(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def complaints_of_special(path: str, name: str) -> Iterator[str]:
    """What is wrong with an object of an instruction set of its own."""
    for line in output_of("nm", "--format=posix", path).splitlines():
        symbol, kind = line.split()[:2]
        if kind == "U" and symbol not in MAY_BE_CALLED:
            yield f"calls {symbol}"
        elif kind not in "Utrdb" and symbol != f"_ZN6fastpe{len('kernels_' + name)}kernels_{name}E":
            yield f"defines {symbol} of type {kind}, expected local symbols only"
    if ".init_array" in output_of("objdump", "--section-headers", path):
        yield "has a static initialiser"
    if not VECTOR.search(output_of("objdump", "--disassemble", "--no-show-raw-insn", path)):
        yield "has no vector instruction: this check would find none elsewhere either"


def complaints_of_baseline(path: str) -> Iterator[str]:
    """What is wrong with any other object."""
    lines = output_of("objdump", "--disassemble", "--no-show-raw-insn", path).splitlines()
    yield from [f"has a vector instruction:{line}" for line in lines if VECTOR.search(line)][:1]
    if "fastpe_core.dir" in path and GUARD in output_of("nm", "--format=posix", path):
        yield "has a static variable in a function"


def main() -> int:
    """Check the objects named on the command line."""
    wrong = special = 0
    paths = [path for path in sys.argv[1:] if path]
    for path in paths:
        name = pathlib.Path(path).name.split(".")[0]
        is_special = name in SPECIAL and pathlib.Path(path).parent.name == "kernels"
        special += is_special
        for complaint in complaints_of_special(path, name) if is_special else complaints_of_baseline(path):
            wrong += 1
            print(f"{path} {complaint}")
    print(f"{len(paths)} objects checked, {special} of them for an instruction set of their own; {wrong} complaints")
    return int(wrong > 0 or special != len(SPECIAL))


if __name__ == "__main__":
    sys.exit(main())
