# SPDX-License-Identifier: BSD-3-Clause
"""Check what is in a wheel: python check_wheel.py fastpe-*.whl ..

Only the package and its metadata, all licences, no library but vendored run-times of the compiler, and an ELF file that calls
nothing beyond computing (needs readelf). auditwheel and delvewheel check which libraries it needs, and where from.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator

ALLOWED = re.compile(
    r"_fastpe_command/__init__\.py|fastpe/(\w+/)*\w+\.(py|pyi)|fastpe/py\.typed|fastpe/_\w+/\w+\.json|fastpe/_core\.[\w.-]+\.(so|pyd)"
    r"|fastpe-[^/]+\.dist-info/(METADATA|WHEEL|RECORD|DELVEWHEEL|entry_points\.txt|sboms/[\w.-]+\.json)"
    r"|fastpe-[^/]+\.dist-info/licenses/(LICENSE|csrc/licenses/[\w.-]+\.txt)|(fastpe\.libs|fastpe/\.dylibs)/.*"
)
LICENCES = ("LICENSE", "csrc/licenses/README.txt", "csrc/licenses/pybind11.txt")
GCC_LICENCES = ("csrc/licenses/GPL-3.0.txt", "csrc/licenses/GCC-exception-3.1.txt")
# musl's policy counts no C++ run-time to the system.
RUN_TIME = re.compile(r"(libgomp|vcomp|msvcp)[\w.-]*", re.IGNORECASE)
MUSL_RUN_TIME = re.compile(r"(libgomp|libstdc\+\+|libgcc_s)[\w.+-]*")
# The core opens no connection, starts no process and writes no file.
BEYOND_COMPUTING = re.compile(
    r"socket|connect|bind|listen|send\w*|system|popen|posix_spawn\w*|v?fork|exec[lv]\w*|dlopen|dlmopen|open(at)?(64)?"
    r"|p?write(v|64)?|fwrite|fput[cs]|put[cs]|v?f?printf|rename\w*|unlink\w*|remove|truncate|chmod|setenv|putenv|unsetenv"
)


def complaints_about(path: str) -> Iterator[str]:
    """Everything that is wrong with one wheel."""
    with zipfile.ZipFile(path) as wheel, tempfile.TemporaryDirectory() as directory:
        names = [name for name in wheel.namelist() if not name.endswith("/")]
        libraries = [name for name in names if name.startswith(("fastpe.libs/", "fastpe/.dylibs/"))]
        for name in names:
            if name not in libraries and wheel.read(name).startswith(b"\x7fELF"):
                command = ["readelf", "--dyn-syms", "--wide", wheel.extract(name, directory)]
                table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                # FORTIFY calls f by the name of __f_chk or __f_2.
                imported = [re.sub(r"^__(\w+)_(chk|2)$", r"\1", each) for each in re.findall(r" UND (\w+)", table)]
                yield from (f"{name} calls {each}" for each in imported if BEYOND_COMPUTING.fullmatch(each))
    vendored = [name.rpartition("/")[2] for name in libraries]
    print(f"{path}: {len(names)} files, with {', '.join(vendored) or 'no library'}")
    run_time = MUSL_RUN_TIME if "musllinux" in path else RUN_TIME
    yield from (f"{name} does not belong there" for name in names if not ALLOWED.fullmatch(name))
    yield from (f"{name} is not a run-time of the compiler" for name in vendored if not run_time.fullmatch(name))
    has_gcc = any(name.startswith("lib") for name in vendored)
    for licence in (*LICENCES, *GCC_LICENCES):
        is_there = any(name.endswith(f".dist-info/licenses/{licence}") for name in names)
        if is_there != (has_gcc or licence in LICENCES):
            yield f"the licence {licence} {'does not belong there' if is_there else 'is missing'}"


def main() -> int:
    complaints = [f"{path}: {complaint}" for path in sys.argv[1:] for complaint in complaints_about(path)]
    for complaint in complaints:
        print(complaint)
    return int(bool(complaints) or len(sys.argv) < 2)


if __name__ == "__main__":
    sys.exit(main())
