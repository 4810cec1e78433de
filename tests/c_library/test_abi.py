# SPDX-License-Identifier: BSD-3-Clause
"""What programs that were linked with the library rely on: abi.txt has it, and changes only with the soname."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess

import pytest

from .shared_library import CONSTANTS, HEADER, STRUCTS, TYPES

STORED = pathlib.Path(__file__).with_name("abi.txt")


def test_layouts_numbers_symbols_and_prototypes_are_the_stored_ones(
    shared_library: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc here")
    header = HEADER.read_text()
    fields = [(name, field) for name in STRUCTS for field, _ in TYPES[name + "*"]._type_._fields_]
    enumerations = re.findall(r"^enum (\w+) {", header, re.MULTILINE)
    lines = [f'printf("{name}: %zu bytes\\n", sizeof({name}));' for name in STRUCTS]
    lines += [f'printf("{s}.{f} at %zu, %zu\\n", offsetof({s}, {f}), sizeof((({s}*)0)->{f}));' for s, f in fields]
    lines += [
        f'printf("enum {e}: %zu bytes, signed: %d\\n", sizeof(enum {e}), (enum {e})-1 < 0);' for e in enumerations
    ]
    lines += [f'printf("{name} = %d\\n", {name});' for name in CONSTANTS if name != "FASTPE_VERSION"]
    program = f"#include <stdio.h>\n#include <fastpe/fastpe.h>\nint main(void) {{ {' '.join(lines)} }}"
    command = ["gcc", "-x", "c", f"-I{HEADER.parents[1]}", "-", "-o", str(tmp_path / "abi")]
    subprocess.run(command, input=program, text=True, check=True)
    found = [subprocess.run([tmp_path / "abi"], check=True, capture_output=True, text=True).stdout]
    found += [
        " ".join(each.split()) + "\n" for each in re.findall(r"^FASTPE_API (.*?;)", header, re.MULTILINE | re.DOTALL)
    ]
    symbols = ["nm", "-D", "--defined-only", "--with-symbol-versions", str(shared_library)]
    table = subprocess.run(symbols, check=True, capture_output=True, text=True).stdout
    found += [line.split(maxsplit=1)[1] + "\n" for line in table.splitlines()]
    assert "".join(found) == STORED.read_text()
