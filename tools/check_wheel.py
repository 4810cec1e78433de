# SPDX-License-Identifier: BSD-3-Clause
"""Check what is in a wheel: python check_wheel.py fastpe-*.whl ..

Only the package and its metadata, all licences, no library but vendored run-times of the compiler,
and ELF files that look for libraries in the system and in the wheel only (needs readelf, where there are such).
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ALLOWED = re.compile(
    r"_fastpe_command/__init__\.py|fastpe/(\w+/)*\w+\.(py|pyi)|fastpe/py\.typed|fastpe/_rotary/(keys|models)\.json|fastpe/_core\.[\w.-]+\.(so|pyd)"
    r"|fastpe-[^/]+\.dist-info/(METADATA|WHEEL|RECORD|DELVEWHEEL|entry_points\.txt|sboms/[\w.-]+\.json)"
    r"|fastpe-[^/]+\.dist-info/licenses/(LICENSE|csrc/licenses/[\w.-]+\.txt)|(fastpe\.libs|fastpe/\.dylibs)/.*"
)
LICENCES = ("LICENSE", "csrc/licenses/README.txt", "csrc/licenses/pybind11.txt")
GCC_LICENCES = ("csrc/licenses/GPL-3.0.txt", "csrc/licenses/GCC-exception-3.1.txt")
# musl's policy counts no C++ run-time to the system.
RUN_TIME = re.compile(r"(libgomp|vcomp|msvcp)[\w.-]*", re.IGNORECASE)
MUSL_RUN_TIME = re.compile(r"(libgomp|libstdc\+\+|libgcc_s)[\w.+-]*")
SYSTEM = re.compile(r"(libc|libm|libpthread|libstdc\+\+|libgcc_s|ld-linux[\w-]*|libc\.musl-\w+)\.so(\.\d+)?")
# The core opens no connection, starts no process and writes no file.
BEYOND_COMPUTING = re.compile(
    r"socket|connect|bind|listen|send\w*|system|popen|posix_spawn\w*|v?fork|exec[lv]\w*|dlopen|dlmopen|open(at)?(64)?"
    r"|p?write(v|64)?|fwrite|fput[cs]|put[cs]|v?f?printf|rename\w*|unlink\w*|remove|truncate|chmod|setenv|putenv|unsetenv"
)
RUN_PATHS = ("$ORIGIN/../fastpe.libs", "$ORIGIN")


def elf_complaints(path: pathlib.Path, vendored: list[str]) -> list[str]:
    """What one ELF file needs, and where it looks for it."""
    dynamic = subprocess.run(
        ["readelf", "--dynamic", "--wide", str(path)], check=True, capture_output=True, text=True
    ).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    run_paths = [one for all_ in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic) for one in all_.split(":")]
    return [f"{path.name} needs {name}" for name in needed if name not in vendored and not SYSTEM.fullmatch(name)] + [
        f"{path.name} looks for libraries in {run_path}" for run_path in run_paths if run_path not in RUN_PATHS
    ]


def foreign_complaints(path: pathlib.Path) -> list[str]:
    """What an ELF file asks of the system beyond memory, threads, reading files and arithmetic."""
    table = subprocess.run(
        ["readelf", "--dyn-syms", "--wide", str(path)], check=True, capture_output=True, text=True
    ).stdout
    # FORTIFY calls f by the name of __f_chk or __f_2.
    imported = [re.sub(r"^__(\w+)_(chk|2)$", r"\1", name) for name in re.findall(r" UND (\w+)", table)]
    return [f"{path.name} calls {name}" for name in imported if BEYOND_COMPUTING.fullmatch(name)]


def complaints_about(path: str) -> list[str]:
    """Everything that is wrong with one wheel."""
    complaints = []
    with zipfile.ZipFile(path) as wheel, tempfile.TemporaryDirectory() as directory:
        entries = [entry for entry in wheel.infolist() if not entry.is_dir()]
        libraries = [
            entry.filename for entry in entries if entry.filename.startswith(("fastpe.libs/", "fastpe/.dylibs/"))
        ]
        vendored = [name.split("/")[-1] for name in libraries]
        for entry in entries:
            if wheel.read(entry).startswith(b"\x7fELF"):
                file = pathlib.Path(wheel.extract(entry, directory))
                complaints += elf_complaints(file, vendored)
                complaints += [] if file.name in vendored else foreign_complaints(file)
    names = [entry.filename for entry in entries]
    size = sum(entry.compress_size for entry in entries if entry.filename not in libraries)
    print(f"{path}: {len(names)} files, {size} bytes, beside {', '.join(vendored) or 'no library'}")

    run_time = MUSL_RUN_TIME if "musllinux" in path else RUN_TIME
    complaints += [f"{name} does not belong there" for name in names if not ALLOWED.fullmatch(name)]
    complaints += [f"{name} is no run-time of the compiler" for name in vendored if not run_time.fullmatch(name)]
    required = LICENCES + (GCC_LICENCES if any(name.startswith("lib") for name in vendored) else ())
    complaints += [
        f"the licence {licence} is missing"
        for licence in required
        if not any(name.endswith(f".dist-info/licenses/{licence}") for name in names)
    ]
    if not any(re.match(r"fastpe/_core\.", name) for name in names):
        complaints.append("there is no compiled core")
    if not {"fastpe/_rotary/keys.json", "fastpe/_rotary/models.json"} <= {*names}:
        complaints.append("there is no table of model types")
    if "-linux_" in path:
        complaints.append("it fits this machine only; repair it with auditwheel")
    return [f"{path}: {complaint}" for complaint in complaints]


def main() -> int:
    """Check the wheels named on the command line."""
    complaints = [complaint for path in sys.argv[1:] for complaint in complaints_about(path)]
    print("\n".join(complaints), end="\n" if complaints else "")
    return int(bool(complaints) or len(sys.argv) < 2)


if __name__ == "__main__":
    sys.exit(main())
