# SPDX-License-Identifier: BSD-3-Clause
"""Add the licences of GCC's run-time libraries to repaired wheels that have them: python bundle_licences.py fastpe-*.whl .."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
import zipfile
from pathlib import Path

LICENCES = Path(__file__).parents[1] / "csrc/licenses"
TEXTS = ("GPL-3.0.txt", "GCC-exception-3.1.txt")


def add_licences(path: str) -> None:
    with zipfile.ZipFile(path) as wheel:
        files = [(entry, wheel.read(entry)) for entry in wheel.infolist()]
    names = [entry.filename for entry, _ in files]
    if not any(name.startswith("fastpe.libs/lib") for name in names):
        return
    record = next(name for name in names if name.endswith(".dist-info/RECORD"))
    folder = record.removesuffix("RECORD")
    with zipfile.ZipFile(f"{path}.new", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        lines = []

        def write(entry: zipfile.ZipInfo, data: bytes) -> None:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{entry.filename},sha256={digest},{len(data)}")
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)

        for entry, data in files:
            if entry.filename == f"{folder}METADATA":
                given = "".join(f"License-File: csrc/licenses/{name}\n" for name in TEXTS).encode()
                data, count = re.subn(
                    rb"License-Expression: BSD-3-Clause\n",
                    b"License-Expression: BSD-3-Clause AND GPL-3.0-or-later WITH GCC-exception-3.1\n" + given,
                    data,
                )
                assert count == 1, "the metadata have another licence"
            if entry.filename != record:
                write(entry, data)
        for name in TEXTS:
            entry = zipfile.ZipInfo(f"{folder}licenses/csrc/licenses/{name}", files[0][0].date_time)
            entry.external_attr = 0o644 << 16
            write(entry, (LICENCES / name).read_bytes())
        wheel.writestr(zipfile.ZipInfo(record, files[0][0].date_time), "\n".join([*lines, f"{record},,", ""]))
    os.replace(f"{path}.new", path)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        add_licences(each)
