# SPDX-License-Identifier: BSD-3-Clause
"""Flags that a build must not have, what the built module is to the process that imports it, and the stored sums.

That the sums hold in builds with each flag is checked by ``tools/check_flags.py``.
"""

from __future__ import annotations

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

from fastpe import _core

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = ROOT / "csrc"
COMPILER = shutil.which(os.environ.get("CXX", "c++"))
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="compiles; there is no C++ compiler on this machine")
GCC = "__GNUC__ && !__clang__"
X86 = "__i386__ || __x86_64__"


def compile_source(source: str, *flags: str) -> subprocess.CompletedProcess[str]:
    assert COMPILER is not None
    command = [COMPILER, "-std=c++17", "-fsyntax-only", f"-I{SOURCES}", *flags, "-x", "c++", "-"]
    return subprocess.run(command, input=source, check=False, capture_output=True, text=True)


def compiler_is(condition: str) -> bool:
    words = re.sub(r"__\w+__", r"defined(\g<0>)", condition)
    return compile_source(f"#if !({words})\n#error\n#endif\n").returncode == 0


@needs_compiler
@pytest.mark.parametrize(
    ("flags", "named", "remedy", "condition"),
    [
        ("-ffast-math", "-ffast-math", "-fno-fast-math", ""),
        ("-Ofast", "-Ofast", "-fno-fast-math", GCC),
        ("-funsafe-math-optimizations", "-funsafe-math-optimizations", "-fno-unsafe-math-optimizations", GCC),
        (
            "-fassociative-math -fno-signed-zeros -fno-trapping-math",
            "-fassociative-math",
            "-fno-associative-math -fsigned-zeros",
            GCC,
        ),
        ("-freciprocal-math", "-freciprocal-math", "-fno-reciprocal-math", GCC),
        ("-ffinite-math-only", "-ffinite-math-only", "-fno-finite-math-only", ""),
        ("-fno-signed-zeros", "-fno-signed-zeros", "-fsigned-zeros", GCC),
        ("-fsingle-precision-constant", "-fsingle-precision-constant", "-fno-single-precision-constant", GCC),
        ("-msse2 -mfpmath=387", "x87", "-msse2 -mfpmath=sse", f"({GCC}) && ({X86})"),
        ("-D_M_FP_FAST", "/fp:fast", "-U_M_FP_FAST", ""),
        ("-D_M_FP_CONTRACT", "/fp:contract", "-U_M_FP_CONTRACT", ""),
        ("-D_M_IX86_FP=1", "/arch:SSE2", "-U_M_IX86_FP", ""),
    ],
)
def test_arithmetic_that_is_not_ieee_754_is_refused(flags: str, named: str, remedy: str, condition: str) -> None:
    if condition and not compiler_is(condition):
        pytest.skip("this compiler does not know the flag, or does not tell the source of it")
    source = '#include "fastpe/arithmetic_checks.h"\n'
    refused = compile_source(source, *flags.split())
    assert refused.returncode != 0
    errors = [line for line in refused.stderr.splitlines() if "error:" in line]
    assert len(errors) == 1, refused.stderr
    assert "fastpe: " in errors[0]
    assert named in errors[0]
    assert "remove it" in errors[0] or "compile with" in errors[0]
    mended = compile_source(source, *flags.split(), *remedy.split())
    assert mended.returncode == 0, mended.stderr


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("file", ["sources/sinusoid/frequencies.cpp", "kernels/baseline.cpp"])
def test_the_arithmetic_itself_is_refused(file: str) -> None:
    # Without the AVX2 and AVX-512 files, which need flags of their own and include the same lines as the baseline.
    source = f'#include "fastpe/{file}"\n'
    assert compile_source(source, "-msse2" if compiler_is(X86) else "-O0").returncode == 0
    refused = compile_source(source, "-ffast-math")
    assert refused.returncode != 0
    assert "fastpe: -ffast-math" in refused.stderr


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
    reason="reads the processor's control words as Linux lays them out on x86-64 and AArch64",
)
def test_import_and_calls_leave_the_processors_control_words(run_script: Callable[..., str]) -> None:
    run_script("""
        import ctypes, platform
        import numpy as np

        def control_words():
            state = (ctypes.c_uint8 * 64)()
            assert ctypes.CDLL(None).fegetenv(state) == 0
            if platform.machine() == "aarch64":
                return bytes(state[:4])
            mxcsr = int.from_bytes(bytes(state[28:32]), "little")
            return bytes(state[:2]), mxcsr & ~0x3f  # without its flags of what has happened

        before = control_words()
        import fastpe
        assert control_words() == before, (before, control_words())
        x = np.zeros((16, 512, 768), np.float32)
        fastpe.add_(x, num_threads=3)
        assert control_words() == before, (before, control_words())
        # The threads that helped keep subnormals too.
        x[...] = 1e-45
        assert (fastpe.add_(x, alpha=0.0, num_threads=3) == np.float32(1e-45)).all()
    """)


CHECK = ROOT / "tools" / "check_package.py"


def test_stored_sums_on_every_instruction_set(run_file: Callable[..., str]) -> None:
    names = ", ".join(_core.config()["available_instruction_sets"])
    assert run_file(CHECK).endswith(f" sums checked on {names}, 0 wrong\n")


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="emulates an x86-64 processor of 2008")
@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="qemu-user is not installed")
def test_stored_sums_on_a_processor_without_avx() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "FASTPE_ISA"}
    environment["OPENBLAS_CORETYPE"] = "Nehalem"  # NumPy's OpenBLAS may take it for a processor with AVX
    command = ["qemu-x86_64", "-cpu", "Nehalem", sys.executable, str(CHECK)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert " sums checked on baseline, 0 wrong" in process.stdout


def readelf(*options: str) -> str:
    assert _core.__file__ is not None
    command = ["readelf", "--wide", *options, _core.__file__]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


needs_readelf = pytest.mark.skipif(
    shutil.which("readelf") is None or sys.platform in ("darwin", "win32"),
    reason="reads ELF files with readelf, which comes with compilers on Linux",
)


@needs_readelf
def test_the_module_exports_its_entry_point_alone() -> None:
    symbols = re.findall(r" (?:GLOBAL|WEAK|UNIQUE) +\w+ +(\w+) (.+)", readelf("--dyn-syms"))
    assert [name for section, name in symbols if section != "UND"] == ["PyInit__core"]


@needs_readelf
def test_the_module_is_hardened() -> None:
    assert re.search(r"\(FLAGS_1\).* NOW\b", readelf("--dynamic"))
    headers = readelf("--program-headers")
    assert "GNU_RELRO" in headers
    assert re.search(r"GNU_STACK .* RW ", headers)
    imported = set(re.findall(r" UND (\w+)", readelf("--dyn-syms")))
    is_sanitized = any(re.match(r"__(asan|ubsan|tsan)_", name) for name in imported)
    if platform.libc_ver()[0] == "glibc" and not is_sanitized:
        assert "__snprintf_chk" in imported
