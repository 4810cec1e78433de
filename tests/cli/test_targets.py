# SPDX-License-Identifier: BSD-3-Clause
"""Where results go: complete files under their names, and nothing else, whatever the format."""

from __future__ import annotations

import sys
from typing import Any

import pytest

for package in ("typer", "pyarrow", "matplotlib"):
    pytest.importorskip(package)
zarr: Any = pytest.importorskip("zarr", minversion="3.1") if sys.version_info >= (3, 11) else None
STORES = [".zarr"] if zarr else []  # of which an older Python has only older formats

import errno
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import feather, ipc, parquet

import fastpe

from .support import Array, Capture, contents, embeddings, refused, run

posix = pytest.mark.skipif(os.name != "posix", reason="links, modes and devices are POSIX's")
KILLS = int(os.environ.get("FASTPE_TEST_KILLS", "3"))
WIDTH = 64


def write(name: str, x: Array, part: int = 4) -> None:
    suffix = Path(name).suffix
    if suffix == ".npy":
        np.save(name, x)
    elif suffix == ".zarr":
        zarr.open(name, mode="w", shape=x.shape, chunks=(part, x.shape[1]), dtype="f4")[...] = x
    else:
        table = pa.table({"e": pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), x.shape[1])})
        if suffix == ".parquet":
            parquet.write_table(table, name, row_group_size=part)
        else:
            feather.write_feather(table, name, compression="uncompressed", chunksize=part)


def read(name: str) -> Array:
    suffix = Path(name).suffix
    if suffix == ".npy":
        return np.asarray(np.load(name))
    if suffix == ".zarr":
        return np.asarray(zarr.open(name, mode="r")[...])
    table = parquet.read_table(name) if suffix == ".parquet" else ipc.open_file(name).read_all()
    return np.asarray(table.column("e").combine_chunks().values).reshape(-1, WIDTH)


WRITERS: dict[str, str] = {
    "encode --rows 3 --d-model 4": "y.npy",
    "embed ids.npy x.npy": "y.npy",
    "tables --rotary-dim 4 --rows 3": "y.safetensors",
    "plot heatmap --d-model 4": "y.png",
    **{f"add x{suffix}": f"y{suffix}" for suffix in (".npy", ".parquet", ".arrow")},
}
writers = pytest.mark.parametrize(("command", "output"), WRITERS.items())


@pytest.fixture(autouse=True)
def _inputs() -> None:
    for suffix in (".npy", ".parquet", ".arrow", *STORES):
        write(f"x{suffix}", embeddings(6, WIDTH))
    np.save("ids.npy", np.array([1, 2]))


@pytest.mark.parametrize(
    ("command", "output", "hard_links"),
    [*((command, output, True) for command, output in WRITERS.items()), ("add x.npy", "y.npy", False)],
)
def test_no_clobber_keeps_a_file_that_appears_meanwhile(
    command: str, output: str, hard_links: bool, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    before, sync = set(os.listdir()), os.fsync

    def no_link(*_: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    def sync_late(descriptor: int) -> None:
        sync(descriptor)
        if not os.path.exists(output):
            Path(output).write_bytes(b"of somebody else")

    if not hard_links:
        monkeypatch.setattr(os, "link", no_link)
    assert run(f"{command} -o {output} --no-clobber --quiet") == 0
    assert set(os.listdir()) == before | {output}
    made = Path(output).read_bytes()
    refused(f"{command} -o {output} --no-clobber", capsys, output)
    os.unlink(output)
    monkeypatch.setattr(os, "fsync", sync_late)
    assert run(f"{command} -o {output} --no-clobber") == 1
    assert output in capsys.readouterr().err
    assert Path(output).read_bytes() == b"of somebody else"
    assert set(os.listdir()) == before | {output}
    # Without the option, it is replaced as any other file is.
    assert run(f"{command} -o {output}") == 0
    assert Path(output).read_bytes() == made


@writers
def test_names_that_cannot_be_written(command: str, output: str, capsys: Capture) -> None:
    os.mkdir(f"d{output}")
    for wrong in ("none/" + output, "d" + output):
        refused(f"{command} -o '{wrong}'", capsys, wrong)
    for wrong in (output + "/", "y", "y.txt", "-", ""):
        refused(f"{command} -o '{wrong}'", capsys, wrong, code=2)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX's")
@writers
def test_pipes_and_devices_are_refused(command: str, output: str, capsys: Capture) -> None:
    suffix = Path(output).suffix
    os.mkfifo(f"pipe{suffix}")
    for target in ("null", "full"):
        os.symlink(f"/dev/{target}", f"{target}{suffix}")
    for name in ("pipe", "null", "full"):
        refused(f"{command} -o {name}{suffix}", capsys, name)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files have no names here")
@pytest.mark.timed
def test_what_another_program_has_open_is_not_replaced() -> None:
    opened = ["0.npy", "1.npy", "2.npy", "7.npy"]
    links = {"a.npy": "/dev/stdout", "b.npy": "/dev/fd/7", "c.npy": "/proc/self/fd/7", "d.npy": "b.npy"}
    for name in opened:
        Path(name).write_bytes(b"before")
    for name, target in links.items():
        os.symlink(target, name)
    program = "import sys; from fastpe.__main__ import main; sys.exit(sum(map(main, map(str.split, sys.argv[1:]))))"
    commands = [f"'add x.npy -q -o {name}'" for name in (*opened[:3], *links)]
    shell = f"{sys.executable} -c '{program}' {' '.join(commands)} < 0.npy >> 1.npy 2>> 2.npy 7>> 7.npy"
    result = subprocess.run(shell, shell=True, check=False, timeout=60)
    before, errors = zip(*((data[:6], data[6:]) for data in map(Path.read_bytes, map(Path, opened))), strict=True)
    assert set(before) == {b"before"}
    assert [result.returncode, *(text.count(b"\n") for text in errors)] == [7, 0, 0, 7, 0]


def test_an_input_is_not_a_target(capsys: Capture) -> None:
    os.link("x.npy", "link.npy")
    for target in ("x.npy", "./x.npy", "link.npy"):
        refused(f"add x.npy -o {target}", capsys, target, code=2)
    for inside in ("x.zarr", "x.zarr/", "x.zarr/y.zarr", "./x.zarr/../x.zarr/y.zarr") if STORES else ():
        refused(f"add x.zarr -o {inside}", capsys, inside, code=2)


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".arrow", *STORES])
def test_a_result_gets_its_name_when_it_is_complete(suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, named = fastpe.add(embeddings(6, WIDTH)), []

    def checked(move: Callable[[Path, Path], None]) -> Callable[[Path, Path], None]:
        def check_and_move(partial: Path, final: Path) -> None:
            if Path(final).name == f"y{suffix}":
                assert not Path(final).exists()
                shutil.copytree(partial, f"z{suffix}") if suffix == ".zarr" else shutil.copy(partial, f"z{suffix}")
                np.testing.assert_array_equal(read(f"z{suffix}"), expected)
                named.append(final)
            move(partial, final)

        return check_and_move

    for name in ("replace", "rename"):
        monkeypatch.setattr(os, name, checked(getattr(os, name)))
    assert run(f"add x{suffix} -o y{suffix} --quiet") == 0
    assert len(named) == 1
    np.testing.assert_array_equal(read(f"y{suffix}"), expected)


@posix
@writers
def test_a_full_disk_is_one_line_and_leaves_nothing(
    command: str, output: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    refused(f"{command} -o {output} -q", capsys, f"{output}: {os.strerror(errno.ENOSPC)}")


@posix
def test_a_replaced_file_keeps_its_mode_and_its_link(monkeypatch: pytest.MonkeyPatch) -> None:
    made, change = [], os.chmod

    def record(path: Path, mode: int) -> None:
        made.append(os.stat(path).st_mode & 0o777)
        change(path, mode)

    for umask, mode in ((0o022, 0o600), (0o077, 0o664)):
        Path("real.npy").touch()
        os.chmod("real.npy", mode)
        Path("link.npy").unlink(missing_ok=True)
        os.symlink("real.npy", "link.npy")
        before = os.umask(umask)
        try:
            with monkeypatch.context() as patch:
                patch.setattr(os, "chmod", record)
                assert run("add x.npy -o link.npy -q") == 0
        finally:
            os.umask(before)
        # A partial file is never more open than its target.
        assert made.pop() & ~mode == 0
        assert os.path.islink("link.npy")
        assert os.stat("real.npy").st_mode & 0o777 == mode
        assert np.load("real.npy").shape == (6, WIDTH)


@posix
@pytest.mark.usefixtures("another_user")
def test_what_may_not_be_written_is_left_alone() -> None:
    os.mkdir("sealed")
    write("sealed.npy", embeddings(2, 2))
    before = contents()
    for name in ("sealed", "sealed.npy"):
        os.chmod(name, 0o555)
    for parent in [Path.cwd(), *list(Path.cwd().parents)[:-2]]:
        os.chmod(parent, 0o755)
    # Modes do not stop root, so everything is imported first, and then done as somebody else.
    program = (
        "import os, sys; from fastpe.__main__ import main\n"
        "main(['encode', '--rows', '1', '--d-model', '2', '-o', 'none/none.npy'])\n"
        "os.getuid() or os.setuid(65534)\n"
        "sys.exit(sum(main(['add', 'x.npy', '-o', target]) for target in sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "sealed.npy", "sealed/y.npy"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    for target, line in zip(command[-2:], result.stderr.splitlines()[-2:], strict=True):
        assert line == f"fastpe: error: {target}: Permission denied"
    assert contents() == before


_growth = """
import re, sys
from fastpe.__main__ import main
peaks = []
for name in ("small", "large"):
    assert main(["add", name + sys.argv[1], "-o", "y" + name + sys.argv[1], "--quiet"]) == 0
    peaks.append(int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]))
print(peaks[1] - peaks[0])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".parquet", ".arrow", *STORES])
@pytest.mark.timed
def test_memory_does_not_grow_with_the_file(suffix: str) -> None:
    large = np.ones((1 << 20, WIDTH), np.float32)
    write(f"small{suffix}", large[: 1 << 16], 1 << 14)
    write(f"large{suffix}", large, 1 << 14)
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, "-c", _growth, suffix]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) * 1024 < large.nbytes / 6


@posix
@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".arrow", *STORES])
@pytest.mark.timed
def test_killed_at_any_point(suffix: str) -> None:
    x = np.ones((1 << 16, WIDTH), np.float32)
    write(f"x{suffix}", x, 1 << 10)
    expected, before = fastpe.add(x), set(os.listdir())
    command = [sys.executable, "-m", "fastpe", "add", f"x{suffix}", "-o", f"y{suffix}", "--quiet"]
    chance = random.Random(1)
    for _ in range(KILLS):
        with subprocess.Popen(command) as process:
            # Most of the time is the start of Python and its libraries.
            while process.poll() is None and set(os.listdir()) == before:
                time.sleep(0.001)
            time.sleep(chance.uniform(0.0, 0.05))
            process.send_signal(signal.SIGKILL)
        for left in set(os.listdir()) - before:
            if left == f"y{suffix}":
                np.testing.assert_array_equal(read(left), expected)
            else:
                assert left.startswith(".fastpe-")
            (shutil.rmtree if os.path.isdir(left) else os.unlink)(left)
    subprocess.run(command, check=True)
    np.testing.assert_array_equal(read(f"y{suffix}"), expected)


def test_a_suffix_may_have_capital_letters() -> None:
    x = embeddings(6, WIDTH)
    np.save("x.npy", x)
    assert run("add x.npy -o Y.NPY") == 0
    assert np.array_equal(np.load("Y.NPY"), fastpe.add(x))
