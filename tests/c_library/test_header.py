# SPDX-License-Identifier: BSD-3-Clause
"""The header, as hosts read it: compilers of C and C++ by each standard, and generators of bindings, which see declarations."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.reference import assert_same_bits
from .shared_library import HEADER

STANDARDS = ["c99", "c11", "c17", "c++98", "c++11", "c++17", "c++20"]
PROGRAM = """
#include <fastpe/fastpe.h>
int main(int count, char** given) {
  fastpe_array array = FASTPE_ZERO;
  fastpe_rows rows = FASTPE_ZERO;
  fastpe_encoding_options encoding = FASTPE_ZERO;
  fastpe_scaling scaling = FASTPE_ZERO;
  fastpe_rotary_options rotary = FASTPE_ZERO;
  (void)given, (void)encoding.convention, (void)scaling.type, (void)rotary.pairing;
  return count == FASTPE_VERSION ? fastpe_encode(0, &array, &rows, 0) : FASTPE_OK;
}
"""


@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("compiler", ["gcc", "clang-14"])
def test_compilers_say_nothing(compiler: str, standard: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    flags = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{HEADER.parents[1]}"]
    language = ["-x", "c++" if "+" in standard else "c", f"-std={standard}"]
    subprocess.run([compiler, *language, *flags, "-"], input=PROGRAM, text=True, check=True)


@pytest.fixture(scope="module")
def declarations(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is left of the header after a preprocessor, without the system's headers."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc here")
    empty = tmp_path_factory.mktemp("empty")
    for name in ("stddef.h", "stdint.h"):
        (empty / name).touch()
    command = ["gcc", "-E", "-P", "-nostdinc", f"-I{empty}", "-DFASTPE_BUILDING", "-D__attribute__(x)=", str(HEADER)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_all_types_have_names_and_no_code_is_inline(declarations: str) -> None:
    """bindgen gives numbers to what has no name, and knows neither inline functions nor macros with arguments."""
    c_ast, c_parser = pytest.importorskip("pycparser.c_ast"), pytest.importorskip("pycparser.c_parser")
    types = "typedef long size_t, int32_t, int64_t;"

    def named(node: Any) -> list[str]:
        found = [node.name] if isinstance(node, (c_ast.Enum, c_ast.Struct)) else []
        return found + [name for _, child in node.children() for name in named(child)]

    parsed = c_parser.CParser().parse(types + declarations)
    assert {type(node) for node in parsed.ext} == {c_ast.Decl, c_ast.Typedef}
    assert all(named(parsed))
    assert {"fastpe_pairing", "fastpe_rows"} <= {*named(parsed)}
    assert not re.findall(r"#define \w+\(", HEADER.read_text())


def test_cffi_reads_and_calls_it(declarations: str, shared_library: pathlib.Path) -> None:
    ffi = pytest.importorskip("cffi").FFI()
    ffi.cdef(declarations)
    c, handle = ffi.dlopen(str(shared_library)), ffi.new("fastpe_encoding**")
    assert (
        c.fastpe_encoding_create(ffi.new("fastpe_encoding_options*", {"d_model": 6}), handle) == c.FASTPE_INVALID_VALUE
    )
    assert ffi.string(c.fastpe_error_argument()) == b"convention"
    options = {"d_model": 6, "convention": c.FASTPE_FAIRSEQ}
    assert c.fastpe_encoding_create(ffi.new("fastpe_encoding_options*", options), handle) == c.FASTPE_OK
    out, shape = np.empty((5, 6), np.float32), ffi.new("int64_t[]", [5, 6])
    view = {"data": ffi.from_buffer(out), "shape": shape, "ndim": 2, "dtype": c.FASTPE_FLOAT32}
    array, rows = ffi.new("fastpe_array*", view), ffi.new("fastpe_rows*", {"offset": 70_001})
    assert c.fastpe_encode(handle[0], array, rows, 1) == c.FASTPE_OK
    c.fastpe_encoding_destroy(handle[0])
    assert_same_bits(out, fastpe.encode(5, 6, convention="fairseq", offset=70_001))
