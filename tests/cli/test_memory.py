# SPDX-License-Identifier: BSD-3-Clause
"""Memory does not grow with the file, and a run that is killed leaves nothing under its final name: all formats alike."""

from __future__ import annotations

import pytest

for package in ("pyarrow", "zarr"):
    pytest.importorskip(package)

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import zarr
from pyarrow import ipc, parquet

import fastpe
from fastpe.__main__ import main

Floats = npt.NDArray[np.float32]

KILLS = int(os.environ.get("FASTPE_TEST_KILLS", "3"))
WIDTH = 1024
# A batch, a row group, and a few chunks: 4 MiB.
PART = 1024


def parts_of_table(row_count: int) -> pa.Table:
    part = np.ones((PART, WIDTH), np.float32).reshape(-1)
    column = pa.chunked_array([pa.FixedSizeListArray.from_arrays(pa.array(part), WIDTH)] * (row_count // PART))
    return pa.table({"e": column})


def write_arrow(path: Path, row_count: int) -> None:
    table = parts_of_table(row_count)
    with ipc.new_file(str(path), table.schema, options=ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)


def write_parquet(path: Path, row_count: int) -> None:
    parquet.write_table(parts_of_table(row_count), path, row_group_size=PART, compression="zstd")


def write_zarr(path: Path, row_count: int) -> None:
    # Chunks that nobody wrote hold the fill value.
    zarr.open(str(path), mode="w", shape=(row_count, WIDTH), chunks=(PART // 4, WIDTH), dtype="f4", fill_value=1)


def read_arrow(path: Path) -> Floats:
    with ipc.open_file(str(path)) as reader:
        return floats(reader.read_all())


def read_parquet(path: Path) -> Floats:
    return floats(parquet.read_table(path))


def read_zarr(path: Path) -> Floats:
    return np.asarray(zarr.open(str(path), mode="r")[...])


def floats(table: pa.Table) -> Floats:
    return np.asarray(table.column("e").combine_chunks().values).reshape(-1, WIDTH)


FORMATS = {
    ".arrow": (write_arrow, read_arrow),
    ".parquet": (write_parquet, read_parquet),
    ".zarr": (write_zarr, read_zarr),
}

# The first file takes the libraries' own memory, and their pools'.
_growth = """
import os, re, sys
from fastpe.__main__ import main
peaks = []
for name in sys.argv[1:3]:
    assert main(["add", name, "-o", sys.argv[3], "--threads", "1", "--quiet"]) == 0
    peaks.append(int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]))
    os.rename(sys.argv[3], name + ".done")
print(peaks[1] - peaks[0])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    "suffix", [".arrow", *(pytest.param(suffix, marks=pytest.mark.slow) for suffix in (".parquet", ".zarr"))]
)
def test_memory_does_not_grow_with_the_file(tmp_path: Path, suffix: str) -> None:
    write, _ = FORMATS[suffix]
    names = [str(tmp_path / name) for name in (f"small{suffix}", f"large{suffix}", f"y{suffix}")]
    write(Path(names[0]), 4 * PART)
    write(Path(names[1]), 64 * PART)
    # What glibc keeps for each of a library's threads depends on chance, as do the parts that zarr has not yet let go:
    # together up to 17 MiB, for files of 64 MiB and of 1 GiB.
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, "-c", _growth, *names]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert run.returncode == 0, run.stderr
    growth_bytes = int(run.stdout) * 1024
    file_bytes = 64 * PART * WIDTH * 4
    print(f"{suffix}: {growth_bytes / 2**20:.0f} MiB more for {file_bytes / 2**20:.0f} MiB")
    assert growth_bytes < file_bytes / 8


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_result_gets_its_name_when_it_is_complete(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, read = FORMATS[suffix]
    source, target = tmp_path / f"x{suffix}", tmp_path / f"y{suffix}"
    write(source, 2 * PART)
    expected = fastpe.add(np.ones((2 * PART, WIDTH), np.float32))
    named = []

    def checked(move: Callable[[Path, Path], None]) -> Callable[[Path, Path], None]:
        def check_and_move(partial: Path, final: Path) -> None:
            assert not target.exists()
            if Path(final) == target:
                np.testing.assert_array_equal(read(Path(partial)), expected)
                named.append(final)
            move(partial, final)

        return check_and_move

    for name in ("replace", "rename"):
        monkeypatch.setattr(os, name, checked(getattr(os, name)))
    assert main(["add", str(source), "-o", str(target), "--quiet"]) == 0
    assert len(named) == 1
    np.testing.assert_array_equal(read(target), expected)


@pytest.mark.skipif(os.name != "posix", reason="kills with SIGKILL")
@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMATS)
def test_killed_at_any_point(tmp_path: Path, suffix: str) -> None:
    write, read = FORMATS[suffix]
    source, target = tmp_path / f"x{suffix}", tmp_path / f"y{suffix}"
    write(source, 8 * PART)
    expected = fastpe.add(np.ones((8 * PART, WIDTH), np.float32))
    command = [sys.executable, "-m", "fastpe", "add", str(source), "-o", str(target), "--quiet"]
    chance = random.Random(1)
    killed = 0
    for _ in range(KILLS):
        with subprocess.Popen(command) as process:
            # Most of the time is the start of Python and its libraries.
            while process.poll() is None and len(os.listdir(tmp_path)) == 1:
                time.sleep(0.001)
            time.sleep(chance.uniform(0.0, 0.1))
            process.kill()
            killed += process.wait() == -signal.SIGKILL
        if target.exists():
            np.testing.assert_array_equal(read(target), expected)
        for left in set(tmp_path.iterdir()) - {source}:
            assert left == target or left.name.startswith(".fastpe-")
            _remove(left)
    assert killed > KILLS // 4
    subprocess.run(command, check=True)
    np.testing.assert_array_equal(read(target), expected)
    print(f"{suffix}: {killed} of {KILLS} killed while they ran")


def _remove(path: Path) -> None:
    remove: Callable[[Path], None] = shutil.rmtree if path.is_dir() else os.unlink
    remove(path)
