# SPDX-License-Identifier: BSD-3-Clause
"""Check that compiler and linker flags from outside change no value and leave the processor's state alone.

python tools/check_flags.py [part of a name ..]

Each build gets flags as users and distributions set them. Its reference sums must hold and subnormals must be kept, or
configuring must fail with a sentence that names the flag. Needs cmake, ninja and a compiler; the 32-bit builds need
g++-multilib and are left out without it. Takes about ten minutes on two processors.
"""

from __future__ import annotations

import os
import pathlib
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAST_MATH = (
    "-ffast-math",
    "-Ofast",
    "-funsafe-math-optimizations",
    "-fassociative-math -fno-signed-zeros -fno-trapping-math",
    "-freciprocal-math",
    "-ffinite-math-only",
    "-fno-signed-zeros",
)


@dataclass(frozen=True)
class Build:
    """How one build is configured, and the sentence with which that must fail."""

    environment: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    refusal: str = ""

    def __str__(self) -> str:
        """Return the command line's part that differs."""
        return " ".join([*(f'{name}="{value}"' for name, value in self.environment.items()), *self.options])


def builds() -> list[Build]:
    """All builds that this machine can make."""
    found = [Build({"CXXFLAGS": flags}) for flags in FAST_MATH]
    found += [Build({"LDFLAGS": flags}) for flags in FAST_MATH[:3]]
    found += [
        Build({"CXXFLAGS": "-O2 -ffast-math -flto", "LDFLAGS": "-O2 -ffast-math -flto"}),
        Build(options=("-DCMAKE_CXX_FLAGS=-ffast-math",)),
        Build(options=("-DCMAKE_CXX_FLAGS_RELEASE=-Ofast",)),
        Build(options=("-DCMAKE_EXE_LINKER_FLAGS=-ffast-math",)),
        Build(options=("-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON",)),
        Build({"CXXFLAGS": "-ffast-math"}, ("-DFASTPE_SIMD=OFF",)),
        *(Build(options=(f"-DCMAKE_BUILD_TYPE={name}",)) for name in ("Debug", "MinSizeRel", "RelWithDebInfo")),
    ]
    compiler = os.environ.get("CXX", "c++")
    said = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout
    if "clang" not in said:
        found.append(Build({"CXXFLAGS": "-fsingle-precision-constant"}))
    if platform.machine() in ("x86_64", "AMD64"):
        found += [
            Build({"CXXFLAGS": "-march=haswell -ffp-contract=fast"}),
            Build({"CXXFLAGS": "-mfpmath=387"}),
            Build({"CXXFLAGS": "-mpc32"}, refusal="-mpc32 changes the precision of x87 arithmetic"),
            Build({"LDFLAGS": "-mpc64"}, refusal="-mpc64 changes the precision of x87 arithmetic"),
        ]
        command = [compiler, "-m32", "-x", "c++", "-", "-o", os.devnull]
        tried = subprocess.run(command, check=False, input="int main() {}", text=True, capture_output=True)
        if tried.returncode == 0:
            thirty_two = ("-m32", "-m32 -msse2 -mfpmath=sse", "-m32 -march=i686 -mfpmath=387", "-m32 -ffast-math")
            found += [Build({"CXXFLAGS": flags}) for flags in thirty_two]
        else:
            print("left out: -m32, for which this compiler has no library")
    return found


def complaint(build: Build, directory: str) -> str:
    """What is wrong with one build; empty if nothing is."""

    def run(*command: str) -> tuple[bool, str]:
        environment = {**os.environ, **build.environment}
        done = subprocess.run(
            command, env=environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return done.returncode == 0, done.stdout

    options = ("-DFASTPE_PYTHON=OFF", "-DFASTPE_TESTS=ON", *build.options)
    configured, said = run("cmake", "-S", str(ROOT), "-B", directory, "-G", "Ninja", *options)
    if build.refusal:
        is_refused = not configured and build.refusal in " ".join(said.split())
        return "" if is_refused else f"configuring does not say {build.refusal!r}:\n{said}"
    if not configured:
        return said
    tests = ("test_reference_sums", "test_control_word", "test_buffer")
    built, said = run("cmake", "--build", directory, "--target", *tests)
    if not built:
        return said
    passed, said = run("ctest", "--test-dir", directory, "--output-on-failure", "-R", f"^({'|'.join(tests)})$")
    return "" if passed and f"out of {len(tests)}" in said else said


def main() -> int:
    """Make the builds whose names contain a part given on the command line, or all."""
    wrong = 0
    chosen = [one for one in builds() if len(sys.argv) < 2 or any(part in str(one) for part in sys.argv[1:])]
    for build in chosen:
        with tempfile.TemporaryDirectory() as directory:
            found = complaint(build, directory)
        wrong += bool(found)
        verdict = "WRONG" if found else "refused" if build.refusal else "sums hold"
        print(f"{verdict:10} {build}\n{found}".rstrip(), flush=True)
    print(f"{len(chosen)} builds, {wrong} wrong")
    return int(wrong > 0 or not chosen)


if __name__ == "__main__":
    sys.exit(main())
