# SPDX-License-Identifier: BSD-3-Clause
"""Check what is in a wheel: python check_wheel.py fastpe-*.whl ..

Only the package and its metadata, the licence, no library but a vendored OpenMP run-time, and less than 1 MB beside it.
"""

from __future__ import annotations

import re
import sys
import zipfile

LIMIT_BYTES = 1_000_000
ALLOWED = re.compile(
    r"fastpe/(\w+/)*\w+\.(py|pyi)|fastpe/py\.typed|fastpe/_core\.[\w.-]+\.(so|pyd)"
    r"|fastpe-[^/]+\.dist-info/[\w./-]+|(fastpe\.libs|fastpe/\.dylibs)/.*"
)
RUN_TIME = re.compile(r"(libg?omp|vcomp|msvcp)[\w.-]*", re.IGNORECASE)


def main() -> int:
    """Check the wheels named on the command line."""
    complaints = []
    for path in sys.argv[1:]:
        with zipfile.ZipFile(path) as wheel:
            entries = wheel.infolist()
        names = [entry.filename for entry in entries if not entry.is_dir()]
        libraries = [name for name in names if name.startswith(("fastpe.libs/", "fastpe/.dylibs/"))]
        size = sum(entry.compress_size for entry in entries if entry.filename not in libraries)
        complaints += [f"{path}: {name} does not belong there" for name in names if not ALLOWED.fullmatch(name)]
        complaints += [
            f"{path}: {name} is no OpenMP run-time" for name in libraries if not RUN_TIME.fullmatch(name.split("/")[-1])
        ]
        if not any(name.endswith("/licenses/LICENSE") for name in names):
            complaints.append(f"{path} has no licence")
        if not any(re.match(r"fastpe/_core\.", name) for name in names):
            complaints.append(f"{path} has no compiled core")
        if size >= LIMIT_BYTES:
            complaints.append(f"{path} has {size} bytes beside the OpenMP run-time, expected fewer than {LIMIT_BYTES}")
        print(f"{path}: {len(names)} files, {size} bytes, beside {', '.join(libraries) or 'no library'}")
    print("\n".join(complaints))
    return int(bool(complaints) or len(sys.argv) < 2)


if __name__ == "__main__":
    sys.exit(main())
