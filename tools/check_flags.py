# SPDX-License-Identifier: BSD-3-Clause
"""Check that compiler and linker flags from outside change no value and leave the processor's state alone.

python tools/check_flags.py [part of a name ..]

In each build, the stored sums must hold and subnormals must be kept, or configuring must fail with a sentence that names the
flag. Needs cmake, ninja and GCC. Takes about ten minutes on two processors.
"""

from __future__ import annotations

import os
import pathlib
import platform
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ("test_reference_sums", "test_control_word", "test_buffer")
FAST_MATH = ["-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-freciprocal-math", "-ffinite-math-only"]
FAST_MATH += ["-fassociative-math -fno-signed-zeros -fno-trapping-math", "-fsingle-precision-constant"]
# What is set, and the sentence with which configuring must fail.
BUILDS = {f"CXXFLAGS={flags}": "" for flags in [*FAST_MATH, "-O2 -ffast-math -flto"]}
BUILDS |= {f"LDFLAGS={flags}": "" for flags in FAST_MATH[:3]}
BUILDS |= {f"-DCMAKE_CXX_FLAGS{name}": "" for name in ("=-ffast-math", "_RELEASE=-Ofast")}
BUILDS |= {f"-DCMAKE_BUILD_TYPE={name}": "" for name in ("Debug", "MinSizeRel")}
BUILDS |= {"-DCMAKE_EXE_LINKER_FLAGS=-ffast-math": "", "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON": ""}
if platform.machine() in ("x86_64", "AMD64"):
    BUILDS |= {"CXXFLAGS=-march=haswell -ffp-contract=fast": "", "CXXFLAGS=-mfpmath=387": ""}
    BUILDS |= {f"{name}=-mpc64": "-mpc64 changes the precision of x87 arithmetic" for name in ("CXXFLAGS", "LDFLAGS")}


def complaint(build: str, refusal: str, directory: str) -> str:
    """What is wrong with one build; empty if nothing is."""
    name, _, value = build.partition("=")
    environment = os.environ if build.startswith("-D") else {**os.environ, name: value}
    options = [build] if build.startswith("-D") else []
    options += ["-DFASTPE_PYTHON=OFF", "-DFASTPE_TESTS=ON"]
    commands = [
        ["cmake", "-S", str(ROOT), "-B", directory, "-G", "Ninja", *options],
        ["cmake", "--build", directory, "--target", *TESTS],
        ["ctest", "--test-dir", directory, "--output-on-failure", "--no-tests=error", "-R", f"^({'|'.join(TESTS)})$"],
    ]
    for command in commands:
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
        said = done.stdout + done.stderr
        if refusal:
            return "" if done.returncode and refusal in " ".join(said.split()) else f"does not say {refusal!r}:\n{said}"
        if done.returncode:
            return said
    return ""


def main() -> int:
    chosen = [one for one in BUILDS if len(sys.argv) < 2 or any(part in one for part in sys.argv[1:])]
    wrong = 0
    for build in chosen:
        with tempfile.TemporaryDirectory() as directory:
            found = complaint(build, BUILDS[build], directory)
        wrong += bool(found)
        verdict = "WRONG" if found else "refused" if BUILDS[build] else "sums hold"
        print(f"{verdict:10} {build}\n{found}".rstrip(), flush=True)
    print(f"{len(chosen)} builds, {wrong} wrong")
    return int(wrong > 0 or not chosen)


if __name__ == "__main__":
    sys.exit(main())
