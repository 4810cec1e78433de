# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

pytest.importorskip("typer")

import errno
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import warnings
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import fastpe
from fastpe.__main__ import main
from fastpe._cli.files import blocks, npy_stream
from fastpe._cli.options import dtype_of

Array = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    # Many blocks per file, none of them a whole number of rows.
    monkeypatch.setattr(blocks, "block_bytes", 100)


def embeddings(*shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def save(path: Path, x: Array) -> str:
    np.save(path, x)
    return str(path)


def added(path: Path, x: Array, *options: str) -> Array:
    source, target = path / "x.npy", path / "y.npy"
    np.save(source, x)
    assert main(["add", str(source), "-o", str(target), "--quiet", *options]) == 0
    result: Array = np.load(target, allow_pickle=False)
    assert result.flags.f_contiguous == np.load(source, allow_pickle=False).flags.f_contiguous
    return result


def run_fastpe(*arguments: str | Path, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "fastpe", *arguments], input=data, capture_output=True, check=False, timeout=60
    )


def npy_bytes(x: Array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, x)
    return stream.getvalue()


# ---- blocks


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4), (2, 1, 3, 2), (1, 1, 9)])
@pytest.mark.parametrize("limit", [1, 2, 5, 6, 1000])
def test_blocks_are_contiguous_bounded_and_cover_the_array(shape: tuple[int, ...], limit: int) -> None:
    numbers = np.arange(np.prod(shape)).reshape(shape)
    pieces = [numbers[tuple(slice(*span) for span in block)].ravel() for block in blocks.blocks(shape, limit)]
    assert max(map(len, pieces)) <= limit
    np.testing.assert_array_equal(np.concatenate(pieces), numbers.ravel())


def test_an_empty_array_has_no_blocks() -> None:
    assert list(blocks.blocks((3, 0, 4), 10)) == []


# ---- results


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("shape", "seq_axis"), [((9, 5), 0), ((3, 9, 5), 1), ((9, 3, 6), 0), ((2, 3, 4, 7), 2), ((2, 3, 4, 7), -3)]
)
def test_every_layout_and_axis(tmp_path: Path, shape: tuple[int, ...], seq_axis: int, order: Any) -> None:
    x = np.asarray(embeddings(*shape), order=order)
    result = added(tmp_path, x, "--seq-axis", str(seq_axis), "--offset", "100000")
    np.testing.assert_array_equal(result, fastpe.add(x, seq_axis=seq_axis, offset=100000))


@pytest.mark.parametrize("width", [1, 40])
def test_rows_longer_than_a_block(tmp_path: Path, width: int) -> None:
    x = embeddings(3, 2, width)
    np.testing.assert_array_equal(added(tmp_path, x), fastpe.add(x))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("convention", ["vaswani", "fairseq"])
def test_every_dtype_and_first_position(tmp_path: Path, dtype: str, convention: str) -> None:
    x = embeddings(2, 9, 6, dtype=dtype)
    options = ["--base", "500", "--scale", "3", "--alpha", "0.5", "--threads", "1"]
    result = added(tmp_path, x, "--convention", convention, *options)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, fastpe.add(x, convention=convention, base=500, scale=3, alpha=0.5))


def test_another_byte_order_becomes_the_native_one(tmp_path: Path) -> None:
    x = embeddings(2, 9, 6)
    result = added(tmp_path, x.astype(x.dtype.newbyteorder()))
    assert result.dtype.isnative
    np.testing.assert_array_equal(result, fastpe.add(x))


@pytest.mark.parametrize(("found", "asked"), [("float64", "float32"), ("float32", "float16"), ("float16", "float64")])
def test_conversion_comes_first(tmp_path: Path, found: str, asked: str) -> None:
    x = embeddings(2, 9, 6, dtype=found)
    np.testing.assert_array_equal(added(tmp_path, x, "--dtype", asked), fastpe.add(x.astype(asked)))


def test_bfloat16_as_numpy_saves_it(tmp_path: Path) -> None:
    x = embeddings(2, 9, 6).astype(ml_dtypes.bfloat16)
    result = added(tmp_path, x, "--dtype", "bfloat16").view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(result.view(np.uint16), fastpe.add(x).view(np.uint16))


@pytest.mark.parametrize("shape", [(0, 4), (3, 0, 4), (3, 4, 0)])
def test_empty_arrays(tmp_path: Path, shape: tuple[int, ...]) -> None:
    assert added(tmp_path, np.zeros(shape, np.float32)).shape == shape


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_encode_in_blocks(tmp_path: Path, dtype: str) -> None:
    target = tmp_path / "pe.npy"
    options = ["--seq-len", "50", "--d-model", "7", "--offset", "-9", "--dtype", dtype, "--convention", "ddpm", "-q"]
    assert main(["encode", *options, "-o", str(target)]) == 0
    exact = fastpe.encode(50, 7, offset=-9, dtype=dtype_of(dtype), convention="ddpm")
    assert np.load(target).tobytes() == exact.tobytes()


# ---- in place


@pytest.mark.parametrize("order", ["C", "F"])
def test_in_place(tmp_path: Path, order: Any) -> None:
    x = np.asarray(embeddings(4, 9, 6), order=order)
    name = save(tmp_path / "x.npy", x)
    inode = os.stat(name).st_ino
    assert main(["add", name, "--in-place", "-q"]) == 0
    np.testing.assert_array_equal(np.load(name), fastpe.add(x))
    assert os.stat(name).st_ino == inode


def test_in_place_bfloat16(tmp_path: Path) -> None:
    x = embeddings(4, 9, 6).astype(ml_dtypes.bfloat16)
    name = save(tmp_path / "x.npy", x)
    assert main(["add", name, "--in-place", "-q", "--dtype", "bfloat16"]) == 0
    assert np.load(name).tobytes() == fastpe.add(x).tobytes()


@pytest.mark.parametrize("options", [["--dtype", "float64"], []], ids=["dtype", "byte order"])
def test_in_place_refuses_another_dtype(tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    name = save(tmp_path / "x.npy", embeddings(4, 6).astype(np.dtype("=f4" if options else ">f4")))
    before = Path(name).read_bytes()
    assert main(["add", name, "--in-place", *options]) == 1
    assert "not possible in place; write a new file with -o" in capsys.readouterr().err
    assert Path(name).read_bytes() == before


# ---- archives


@pytest.mark.parametrize("writer", [np.savez, np.savez_compressed])
def test_archives(tmp_path: Path, writer: Any) -> None:
    x, other = embeddings(2, 9, 6), np.arange(5)
    source, target = tmp_path / "x.npz", tmp_path / "y.npz"
    writer(source, x=x, other=other)
    assert main(["add", str(source), "-o", str(target), "--key", "x", "-q"]) == 0
    with np.load(target) as result:
        np.testing.assert_array_equal(result["x"], fastpe.add(x))
        np.testing.assert_array_equal(result["other"], other)
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(target) as after:
        assert [m.compress_type for m in before.infolist()] == [m.compress_type for m in after.infolist()]


def test_an_archive_of_one_array_needs_no_key(tmp_path: Path) -> None:
    x = embeddings(2, 9, 6)
    np.savez(tmp_path / "x.npz", x=x)
    assert main(["add", str(tmp_path / "x.npz"), "-o", str(tmp_path / "y.npz"), "-q"]) == 0
    with np.load(tmp_path / "y.npz") as result:
        np.testing.assert_array_equal(result["x"], fastpe.add(x))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "y.npz"], "holds 2 arrays (a, b); choose with --key NAME"),
        (["-o", "y.npz", "--key", "c"], "--key is c, expected one of x.npz's arrays: a, b"),
        (["--in-place", "--key", "a"], "cannot be changed in place"),
        (["-o", "y.npy", "--key", "a"], "give y.npy the suffix .npz"),
    ],
)
def test_archive_errors(
    tmp_path: Path,
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", a=embeddings(3, 4), b=embeddings(3, 4))
    assert main(["add", "x.npz", *options]) == 1
    assert message in capsys.readouterr().err
    assert os.listdir() == ["x.npz"]


def test_damaged_archive_is_refused_and_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "x.npz"
    np.savez(source, x=embeddings(20, 30))
    data = bytearray(source.read_bytes())
    data[1500] ^= 1
    source.write_bytes(data)
    assert main(["add", str(source), "-o", str(tmp_path / "y.npz")]) == 1
    assert "damaged" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["x.npz"]


def test_a_damaged_lzma_member_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "x.npz"
    with zipfile.ZipFile(source, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", npy_bytes(embeddings(20, 30)))
    data = bytearray(source.read_bytes())
    data[200:220] = bytes(20)
    source.write_bytes(data)
    assert main(["add", str(source), "-o", str(tmp_path / "y.npz")]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"fastpe: {source} is not a .npz archive, or damaged: ")
    assert error.count("\n") == 1
    assert os.listdir(tmp_path) == ["x.npz"]


@pytest.mark.parametrize("name", ["x.npy", "notes.txt"])
def test_an_archive_with_two_members_of_one_name_is_refused(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "x.npz"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("x.npy", npy_bytes(embeddings(2, 3)))
        archive.writestr("z.npy", npy_bytes(embeddings(2, 4)))
        archive.writestr("notes.txt", b"")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(name, npy_bytes(embeddings(2, 4, dtype="float64")))
    assert main(["add", str(source), "-o", str(tmp_path / "y.npz")]) == 1
    assert capsys.readouterr().err == f"fastpe: {source} has two members {name}; write it anew with numpy.savez\n"
    assert os.listdir(tmp_path) == ["x.npz"]


# ---- pipes

_commands_that_print = ["info", "--version", "info --json", "conventions", "add --help", "demo --batch 1 --seq-len 3"]


def slow_unless(is_quick: bool, *values: str) -> Any:
    return pytest.param(*values, marks=[] if is_quick else pytest.mark.slow)


def test_from_pipe_to_pipe() -> None:
    x = embeddings(2, 9, 6)
    run = run_fastpe("add", "-", "-o", "-", data=npy_bytes(x))
    assert run.returncode == 0
    np.testing.assert_array_equal(np.load(io.BytesIO(run.stdout)), fastpe.add(x))
    assert run.stderr.splitlines() == [b"added to 1 file: 432 B"]


def test_encode_into_pipe_quietly() -> None:
    run = run_fastpe("encode", "--seq-len", "3", "--d-model", "4", "-o", "-", "--quiet")
    np.testing.assert_array_equal(np.load(io.BytesIO(run.stdout)), fastpe.encode(3, 4))
    assert run.stderr == b""


def test_a_reader_that_leaves_is_no_error_message() -> None:
    command = [sys.executable, "-m", "fastpe", "encode", "--seq-len", "99999", "--d-model", "64", "-o", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.parametrize(
    "command", [slow_unless(command in _commands_that_print[:2], command) for command in _commands_that_print]
)
def test_a_reader_that_left_before_anything_was_printed_is_no_error_message(command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run(
        [sys.executable, "-m", "fastpe", *command.split()], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (run.returncode, run.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "standard input is not a .npy file: it starts with b''"),
        pytest.param(npy_bytes(embeddings(3, 4))[:-1], "standard input is truncated", marks=pytest.mark.slow),
        pytest.param(
            npy_bytes(embeddings(3, 4)) + b"x", "standard input has bytes after its array", marks=pytest.mark.slow
        ),
    ],
)
def test_wrong_data_in_a_pipe(tmp_path: Path, data: bytes, message: str) -> None:
    run = run_fastpe("add", "-", "-o", tmp_path / "y.npy", data=data)
    assert run.returncode == 1
    assert run.stderr.decode().startswith(f"fastpe: {message}")
    assert run.stderr.count(b"\n") == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX's")
def test_a_named_pipe_is_read_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = embeddings(2, 9, 6)
    pipe, target = tmp_path / "pipe", tmp_path / "y.npy"
    os.mkfifo(pipe)
    assert main(["add", str(pipe), "--in-place"]) == 1
    assert "pipe is a pipe, expected it to be the only input, with -o" in capsys.readouterr().err
    with subprocess.Popen([sys.executable, "-m", "fastpe", "add", str(pipe), "-o", str(target), "-q"]) as process:
        pipe.write_bytes(npy_bytes(x))
    assert process.returncode == 0
    np.testing.assert_array_equal(np.load(target), fastpe.add(x))


_closed_and_full = [
    ("add - -o y.npy <&-", "fastpe: standard input is closed; redirect it or name a file\n"),
    ("encode --seq-len 3 --d-model 4 -o - >&-", "fastpe: -o - writes to standard output, which is closed"),
    ("encode --seq-len 3 --d-model 4 -o - > /dev/full", "fastpe: standard output: No space left on device\n"),
    *((f"{command} > /dev/full", "fastpe: No space left on device\n") for command in _commands_that_print),
    *((f"{command} >&-", "fastpe: Bad file descriptor\n") for command in _commands_that_print),
]


@pytest.mark.skipif(os.name != "posix", reason="closes descriptors in a shell")
@pytest.mark.parametrize(
    ("command", "message", "unbuffered"),
    [
        slow_unless(
            command.startswith("info > " if unbuffered else ("info >", "add - ", "encode")),
            command,
            message,
            unbuffered,
        )
        for command, message in _closed_and_full
        for unbuffered in ("", "1")
    ],
)
def test_closed_and_full_streams_are_one_line(command: str, message: str, unbuffered: str, tmp_path: Path) -> None:
    if "/dev/full" in command and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    shell = f"{sys.executable} -m fastpe {command}"
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    run = subprocess.run(shell, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.startswith(message)
    assert run.stderr.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="closes descriptors in a shell")
def test_data_stays_clean_where_errors_cannot_be_written() -> None:
    run = subprocess.run(
        f"{sys.executable} -m fastpe encode --seq-len 3 --d-model 4 -o - 2>&-", shell=True, stdout=-1, check=True
    )
    assert run.stdout == npy_bytes(fastpe.encode(3, 4))


DESCRIPTORS = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1", "link"]


@pytest.mark.skipif(os.name != "posix", reason="descriptors have names in POSIX systems")
@pytest.mark.parametrize(
    ("name", "redirection"),
    [
        slow_unless((name, redirection) in (("-", ">"), ("/dev/stdout", ">>"), ("link", ">>")), name, redirection)
        for name in DESCRIPTORS
        for redirection in (">", ">>")
    ],
)
def test_a_named_descriptor_is_written_where_it_stands(name: str, redirection: str, tmp_path: Path) -> None:
    if name.startswith("/") and not Path(name).parent.exists():
        pytest.skip(f"this system has no {Path(name).parent}")
    (tmp_path / "link").symlink_to("/dev/stdout")
    file = tmp_path / "y"
    file.write_bytes(b"before")
    shell = f"{sys.executable} -m fastpe encode --seq-len 3 --d-model 4 -q -o {name}"
    subprocess.run(f"{{ {shell}; printf after; }} {redirection} y", shell=True, cwd=tmp_path, check=True)
    kept = b"before" if redirection == ">>" else b""
    assert file.read_bytes() == kept + npy_bytes(fastpe.encode(3, 4)) + b"after"


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="this system has no /dev/fd")
def test_a_named_descriptor_other_than_standard_output(tmp_path: Path) -> None:
    shell = f"{sys.executable} -m fastpe encode --seq-len 3 --d-model 4 -q -o /dev/fd/7"
    subprocess.run(f"{{ {shell}; printf after >&7; }} 7> y", shell=True, cwd=tmp_path, check=True)
    assert (tmp_path / "y").read_bytes() == npy_bytes(fastpe.encode(3, 4)) + b"after"
    run = subprocess.run(shell, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stderr == "fastpe: -o /dev/fd/7 writes to descriptor 7, which is closed; redirect it or name a file\n"
    assert run.returncode == 1


@pytest.mark.skipif(os.name != "posix", reason="appends with a shell")
def test_an_archive_is_appended_whole(tmp_path: Path) -> None:
    x = embeddings(2, 9, 6)
    np.savez(tmp_path / "x.npz", x=x)
    shell = f"printf before; {sys.executable} -m fastpe add x.npz -q -o -"
    subprocess.run(f"{{ {shell}; }} >> y", shell=True, cwd=tmp_path, check=True)
    with np.load(io.BytesIO((tmp_path / "y").read_bytes().removeprefix(b"before"))) as result:
        np.testing.assert_array_equal(result["x"], fastpe.add(x))


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="this system has no /dev/fd")
@pytest.mark.parametrize(("name", "number"), [("-", 1), ("/dev/fd/7", 7)])
def test_an_input_is_not_appended_to_itself(name: str, number: int, tmp_path: Path) -> None:
    save(tmp_path / "x.npy", embeddings(3, 4))
    before = (tmp_path / "x.npy").read_bytes()
    shell = f"{sys.executable} -m fastpe add x.npy -o {name} {number}>> x.npy"
    run = subprocess.run(shell, shell=True, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 1
    assert (
        run.stderr
        == f"fastpe: {name} is the input itself; name another output, or change an .npy file with --in-place\n"
    )
    assert (tmp_path / "x.npy").read_bytes() == before


# ---- many files


def test_directories_and_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arrays = {name: embeddings(3, 4 + index) for index, name in enumerate(("a", "b", "c"))}
    for folder in ("in", "more"):
        os.mkdir(folder)
    for name, folder in (("a", "in"), ("b", "in"), ("c", "more")):
        np.save(f"{folder}/{name}.npy", arrays[name])
    Path("in/readme.txt").write_text("not an array")
    assert main(["add", "in", "mor*/*.npy", "-o", "out", "-q"]) == 0
    assert sorted(os.listdir("out")) == ["a.npy", "b.npy", "c.npy"]
    for name, x in arrays.items():
        np.testing.assert_array_equal(np.load(f"out/{name}.npy"), fastpe.add(x))


def test_one_bad_file_stops_all_before_anything_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [save(tmp_path / name, embeddings(3, 4)) for name in ("a.npy", "b.npy")]
    Path(names[1]).write_bytes(b"nonsense")
    before = Path(names[0]).read_bytes()
    assert main(["add", *names, "--in-place"]) == 1
    assert f"{names[1]} is not a .npy file" in capsys.readouterr().err
    assert Path(names[0]).read_bytes() == before


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (np.zeros((1,) * 11 + (4,), np.float32), "b.npy: x has 12 axes, expected at most 10"),
        (np.zeros((3, 5), np.float32), "b.npy: d_model is 5, expected an even number"),
        (np.zeros(3, np.float32), "b.npy has shape [3], expected at least two axes"),
    ],
    ids=["axes", "width", "line"],
)
@pytest.mark.parametrize("output", ["new", "old", None])
def test_every_file_is_checked_before_the_first_is_written(
    tmp_path: Path,
    second: Array,
    message: str,
    output: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", embeddings(3, 4))
    np.save("b.npy", second)
    os.mkdir("old")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    where = ["--in-place"] if output is None else ["-o", output]
    assert main(["add", "a.npy", "b.npy", *where, "--convention", "nerf"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"fastpe: {message}")
    assert error.count("\n") == 1
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    assert not Path("new").exists()


def test_every_target_is_checked_before_the_first_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [save(Path(name), embeddings(3, 4)) for name in ("a.npy", "b.npy")]
    os.makedirs("out/b.npy")
    assert main(["add", *names, "-o", "out"]) == 1
    assert "out/b.npy is a directory, expected a file to write" in capsys.readouterr().err
    os.rmdir("out/b.npy")
    Path("out/b.npy").touch()
    assert main(["add", *names, "-o", "out", "--no-clobber"]) == 1
    assert "out/b.npy exists, and --no-clobber keeps it" in capsys.readouterr().err
    # Each of them would fit, and both would not.
    monkeypatch.setattr(shutil, "disk_usage", lambda _: types.SimpleNamespace(free=60))
    assert main(["add", *names, "-o", "out"]) == 1
    assert "out/a.npy and the 1 other results would take 96 B, and 60 B are free" in capsys.readouterr().err
    assert os.listdir("out") == ["b.npy"]


def test_room_for_an_archive_is_checked_as_far_as_its_size_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    x, rest = embeddings(20, 4), np.zeros(100, np.uint8)
    np.savez("stored.npz", x=x, rest=rest)
    np.savez_compressed("compressed.npz", x=x, rest=rest)
    # The header of the array that is copied has 128 bytes.
    whole = {"float16": x.nbytes // 2 + 228, "float32": x.nbytes + 228, "float64": x.nbytes * 2 + 228}
    for dtype, size in whole.items():
        add = ["add", "stored.npz", "--key", "x", "-o", "y.npz", "--dtype", dtype]
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=size - 1: types.SimpleNamespace(free=free))
        assert main(add) == 1
        assert f"y.npz would take {size} B, and {size - 1} B are free; make room" in capsys.readouterr().err
        assert not Path("y.npz").exists()
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=size: types.SimpleNamespace(free=free))
        assert main(add) == 0
        assert capsys.readouterr().err == f"added to 1 file: {size - 228} B\n"
        os.unlink("y.npz")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: types.SimpleNamespace(free=0))
    assert main(["add", "compressed.npz", "--key", "x", "-o", "y.npz"]) == 0


def test_the_last_line_counts_what_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, target = save(tmp_path / "x.npy", embeddings(30, 4)), str(tmp_path / "y.npy")
    assert main(["add", name, "-o", target, "--dtype", "float16"]) == 0
    assert capsys.readouterr().err == "added to 1 file: 240 B\n"


@pytest.mark.skipif(os.name != "posix", reason="makes symbolic links")
def test_a_target_is_no_other_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [save(Path(name), embeddings(3, 4)) for name in ("a.npy", "b.npy")]
    os.mkdir("out")
    os.symlink("../b.npy", "out/a.npy")
    before = Path("b.npy").read_bytes()
    assert main(["add", *names, "-o", "out"]) == 1
    assert "out/a.npy is the input itself" in capsys.readouterr().err
    assert Path("b.npy").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "shown"), [("a\x1b[31mb\x07", "a\\x1b[31mb\\x07"), ("a\u202eb", "a\\u202eb"), ("a\nb", "a b"), ("ä", "ä")]
)
@pytest.mark.skipif(os.name != "posix", reason="such names are POSIX's")
def test_names_of_files_move_no_terminal(
    tmp_path: Path, name: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["encode", "--seq-len", "3", "--d-model", "4", "-o", f"{name}.npz"]) == 1
    assert capsys.readouterr().err.startswith(f"fastpe: -o is {shown}.npz, expected a name that ends in .npy")


@pytest.mark.filterwarnings("default")
def test_warnings_of_libraries_are_one_line_and_move_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: warnings.warn("a\x1b[31mb\nc", stacklevel=1))
    assert main(["encode", "--seq-len", "3", "--d-model", "4", "-o", str(tmp_path / "y.npy"), "-q"]) == 0
    assert set(capsys.readouterr().err.splitlines()) == {"fastpe: warning: a\\x1b[31mb c"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.npy"], "there is no -o and no --in-place, expected one of them"),
        (["a.npy", "-o", "b.npy", "--in-place"], "-o is b.npy and --in-place was given, expected one of them"),
        (["-", "--in-place"], "- is a pipe"),
        (["-", "a.npy", "-o", "out"], "- is a pipe"),
        (["-", "-o", "d"], "-o is d, a directory"),
        (["a.npy", "d/a.npy", "-o", "out"], "a.npy is the name of several inputs"),
        (["a.npy", "d/b.npy", "-o", "a.npy"], "-o is a.npy, expected a directory for 2 files"),
        (["a.npy", "-o", "./a.npy"], "is the input itself"),
        (["d", "-o", "d"], "is the input itself"),
        (["a.npy", "-o", "y.npz"], "give y.npz the suffix .npy"),
        (["a.npy", "-o", "no/y.npy"], "is no directory; make it first"),
        (["a.npy", "-o", "y.npy", "--key", "x"], "--key chooses one of several arrays or columns"),
        (["d", "-o", "y.npy"], "-o is y.npy, the name of a file, expected a directory for the results of d"),
        (["a.npy", "-o", ""], "a name is empty"),
        (["", "-o", "y.npy"], "a name is empty"),
        (["a.npy", "./a.npy", "--in-place"], "./a.npy and a.npy are one file; name it once"),
        (["table.csv", "-o", "y.npy"], "table.csv has none of the formats that are read: .npy, .npz, .parquet"),
        (["a.npy", "-o", "d/b.npy", "--no-clobber"], "d/b.npy exists, and --no-clobber keeps it"),
        (["none.npy", "-o", "y.npy"], "none.npy: No such file or directory"),
        (["none*.npy", "-o", "y"], "none*.npy matches no file"),
        (["empty", "-o", "y"], "empty has no input in it; expected names that end in .npy, .npz"),
        (["a.npy", "-o", "y.npy", "--seq-axis", "1"], "--seq-axis is 1, expected an axis of a.npy"),
        (["a.npy", "-o", "y.npy", "--seq-axis", "-3"], "--seq-axis is -3, expected an axis of a.npy"),
        (["a.npy", "-o", "y.npy", "--convention", "fairsec"], "fastpe: --convention is 'fairsec'"),
        (["a.npy", "-o", "y.npy", "--convention", "fairsec"], "did you mean 'fairseq'?"),
        (["a.npy", "-o", "y.npy", "--dtype", "int8"], "--dtype is int8, expected float16"),
        (["a.npy", "-o", "y.npy", "--offset", str(2**53)], "2**53"),
        (["ids.npy", "-o", "y.npy"], "ids.npy has dtype int64, expected float16, float32 or float64"),
        (["brain.npy", "-o", "y.npy"], "if it is bfloat16, give --dtype bfloat16"),
        (["line.npy", "-o", "y.npy"], "line.npy has shape [3], expected at least two axes"),
    ],
)
def test_errors_are_one_line_and_write_nothing(
    tmp_path: Path,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for directory in ("d", "empty"):
        os.mkdir(directory)
    for name in ("a.npy", "d/a.npy", "d/b.npy"):
        np.save(name, embeddings(3, 4))
    np.save("ids.npy", np.arange(6).reshape(2, 3))
    np.save("line.npy", embeddings(3))
    Path("table.csv").write_text(",0,1\n0,1.5,2.5\n")
    np.save("brain.npy", embeddings(3, 4).astype(ml_dtypes.bfloat16))
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert main(["add", *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("fastpe: ")
    assert error.count("\n") == 1
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["y.parquet", "y.npz"])
def test_encode_writes_npy_alone(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", "--seq-len", "3", "--d-model", "4", "-o", str(tmp_path / name)]) == 1
    assert "expected a name that ends in .npy" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_too_little_room_is_known_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", "--seq-len", str(10**13), "--d-model", "1000", "-o", str(tmp_path / "y.npy")]) == 1
    error = capsys.readouterr().err
    assert "y.npy would take 40.00 PB, and " in error
    assert os.listdir(tmp_path) == []


# ---- hostile files


def header(text: str, version: bytes = b"\x01\x00") -> bytes:
    length = len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + length + text.encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a .npy file"),
        (b"\x93NUMPY", "is not a .npy file"),
        (b"\x93NUMPY\x09\x00" + bytes(100), "has .npy version 9.0"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(100), "has a header of 4294967295 bytes, expected at most"),
        (b"\x93NUMPY\x01\x00\x76\x00{'descr'", "has a damaged header"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, -4)}"), "shape [3, -4]"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4.5)}"), "has a damaged header"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}"), "it is truncated"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}") + bytes(49), "followed by something else"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "9" * 15 + ", 2)}"), "it is truncated"),
        (
            header("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1" + "0" * 23 + ")}"),
            "which no array can have",
        ),
        (
            header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1" + "0" * 23 + ")}"),
            "which no array can have",
        ),
        (
            header("{'descr': '|O', 'fortran_order': False, 'shape': (1, 1)}") + b"cos\nsystem\n.",
            "holds Python objects",
        ),
        (header("__import__('os').abort()"), "has a damaged header"),
        (header("(" * 9000, b"\x02\x00"), "has a damaged header"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), 'x': 1}"), "has a damaged header"),
        (header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1, 1)}", b"\x03\x00") + bytes(4), "dtype"),
    ],
)
@pytest.mark.parametrize("form", ["npy", "npz"])
def test_hostile_headers(
    tmp_path: Path, data: bytes, message: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / f"x.{form}"
    if form == "npy":
        source.write_bytes(data)
    else:
        with zipfile.ZipFile(source, "w") as archive:
            archive.writestr("x.npy", data)
        message = {"it is truncated": "is truncated", "followed by something else": "has bytes after"}.get(
            message, message
        )
    assert main(["add", str(source), "-o", str(tmp_path / f"y.{form}")]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert os.listdir(tmp_path) == [source.name]


# ---- memory, and an end before the end


def sparse_npy(path: Path, rows: int, width: int) -> None:
    with open(path, "wb") as stream:
        npy_stream.write_header(stream, npy_stream.Header((rows, width), False, np.dtype(np.float32)))
        stream.truncate(stream.tell() + rows * width * 4)


_with_little_memory = """
import resource, sys
from fastpe.__main__ import main
assert main(sys.argv[1:3] + ["-o", "/dev/null"] + sys.argv[4:]) == 0
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (32 << 20), now + (32 << 20)))
sys.exit(main(sys.argv[1:2] + sys.argv[3:4] + ["-o", "/dev/null"] + sys.argv[4:]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of address space are Linux's")
@pytest.mark.parametrize("seq_axis", ["0", pytest.param("-2", marks=pytest.mark.slow)])
def test_a_file_larger_than_memory(tmp_path: Path, seq_axis: str) -> None:
    small, large = tmp_path / "small.npy", tmp_path / "large.npy"
    sparse_npy(small, 100, 1024)
    sparse_npy(large, 64 << 10, 1024)
    assert large.stat().st_size > 8 * (32 << 20)
    arguments = ["add", str(small), str(large), "--seq-axis", seq_axis, "--threads", "1"]
    run = subprocess.run(
        [sys.executable, "-c", _with_little_memory, *arguments], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


_fed = npy_bytes(np.zeros((512, 64), np.float32))


def feed_half(target: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "fastpe", "add", "-", "-o", str(target)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(_fed[: len(_fed) // 2])
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not list(target.parent.glob(".fastpe-*.partial")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


@pytest.mark.skipif(os.name != "posix", reason="these signals are POSIX's")
@pytest.mark.parametrize(
    ("number", "exit_code", "message"),
    [
        (signal.SIGTERM, 143, b"fastpe: terminated\n"),
        (signal.SIGINT, 130, b"fastpe: interrupted\n"),
        (signal.SIGKILL, -9, b""),
    ],
)
@pytest.mark.usefixtures("interruptible_children")
def test_a_stopped_run_leaves_what_was_there(
    tmp_path: Path, number: signal.Signals, exit_code: int, message: bytes
) -> None:
    target = tmp_path / "y.npy"
    target.write_bytes(b"what was there")
    process = feed_half(target)
    process.send_signal(number)
    _, error = process.communicate()
    assert process.returncode == exit_code
    assert error == message
    assert target.read_bytes() == b"what was there"
    left = set(os.listdir(tmp_path)) - {"y.npy"}
    # Nothing can clean up after SIGKILL; what it leaves has another name.
    assert len(left) == (1 if number == signal.SIGKILL else 0)


@pytest.mark.skipif(os.name != "posix", reason="this signal is POSIX's")
def test_an_interruption_that_is_switched_off_stays_off(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = feed_half(tmp_path / "y.npy")
    finally:
        signal.signal(signal.SIGINT, before)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(_fed[len(_fed) // 2 :])
    assert process.returncode == 0, error
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), fastpe.encode(512, 64))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/dev/full is Linux's")
def test_a_full_disk_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", "--seq-len", "5000", "--d-model", "64", "-o", "/dev/full"]) == 1
    assert capsys.readouterr().err == "fastpe: /dev/full: No space left on device\n"


def test_in_place_says_that_a_file_is_partly_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    x = embeddings(20, 6)
    name = save(tmp_path / "x.npy", x)
    write, calls = npy_stream.write_elements, 0

    def fail_in_the_third_block(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError(errno.EIO, "Input/output error", name)
        write(*arguments)

    monkeypatch.setattr(npy_stream, "write_elements", fail_in_the_third_block)
    assert main(["add", name, "--in-place"]) == 1
    rows = 2 * (100 // 24)
    assert capsys.readouterr().err.splitlines() == [
        (
            f"fastpe: {name} may be partly changed: the first {rows * 24} bytes of its elements, and perhaps some after them; "
            "restore it from a copy"
        ),
        f"fastpe: {name}: Input/output error",
    ]
    result = np.load(name)
    np.testing.assert_array_equal(result[:rows], fastpe.add(x)[:rows])
    np.testing.assert_array_equal(result[rows:], x[rows:])


def test_ctrl_c_in_place_says_what_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    x = embeddings(3, 6)
    names = [save(tmp_path / f"{name}.npy", x) for name in "abc"]
    write, calls = npy_stream.write_elements, 0

    def interrupt_in_the_second_file(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        write(*arguments)

    monkeypatch.setattr(npy_stream, "write_elements", interrupt_in_the_second_file)
    assert main(["add", *names, "--in-place"]) == 130
    assert capsys.readouterr().err.splitlines() == [
        (
            f"fastpe: {names[1]} may be partly changed: the first 0 bytes of its elements, and perhaps some after them; "
            "restore it from a copy"
        ),
        f"fastpe: of 3 inputs, 1 before {names[1]} is changed, and 1 after it is not",
        "fastpe: interrupted",
    ]
    assert [bool((np.load(name) == x).all()) for name in names] == [False, True, True]


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    result = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        # Half of them where the header is.
        place = int(rng.integers(0, min(len(result), 140) if rng.random() < 0.5 else len(result)))
        replacement = [rng.bytes(1), b"", rng.bytes(9), b"99999999", b"-1", b"(", b"'", b"<f8", b"|O"][rng.integers(9)]
        result[place : place + 1] = replacement
    return bytes(result)


@pytest.mark.parametrize("trials", [60, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", ["npy", "npz"])
def test_damaged_files_are_one_line_and_leave_nothing(
    tmp_path: Path, form: str, trials: int, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / f"x.{form}", tmp_path / f"y.{form}"
    if form == "npy":
        np.save(source, embeddings(3, 5, 8))
    else:
        np.savez_compressed(source, x=embeddings(3, 5, 8))
    whole = source.read_bytes()
    rng = np.random.default_rng(0)
    codes = []
    for _ in range(trials):
        source.write_bytes(mutated(whole, rng))
        code = main(["add", str(source), "-o", str(target), "-q"])
        error = capsys.readouterr().err
        assert error.count("\n") == code, error
        assert target.exists() == (code == 0)
        target.unlink(missing_ok=True)
        assert os.listdir(tmp_path) == [source.name]
        codes.append(code)
    # Changed elements are elements; most changes are damage.
    assert 0 < codes.count(0) < codes.count(1)


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
@pytest.mark.parametrize("target", ["sealed.npy", "sealed/y.npy"])
@pytest.mark.usefixtures("another_user")
def test_what_may_not_be_written_is_left_alone(target: str, request: pytest.FixtureRequest) -> None:
    # The parents of pytest's own directories are closed to others.
    directory = tempfile.TemporaryDirectory()
    request.addfinalizer(directory.cleanup)
    tmp_path = Path(directory.name)
    save(tmp_path / "x.npy", embeddings(3, 4))
    (tmp_path / "sealed").mkdir()
    save(tmp_path / "sealed.npy", embeddings(2, 2))
    before = (tmp_path / "sealed.npy").read_bytes()
    for name in ("sealed", "sealed.npy"):
        (tmp_path / name).chmod(0o555)
    tmp_path.chmod(0o755)
    # Modes do not stop root, so everything is done once while they do not matter and once as somebody else.
    program = (
        "import os, sys; from fastpe.__main__ import main\n"
        "os.chdir(sys.argv[2]); main(['add', 'x.npy', '-o', '/dev/null', '-q'])\n"
        "os.getuid() or os.setuid(65534)\n"
        "sys.exit(main(['add', 'x.npy', '-o', sys.argv[1]]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, target, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert run.stderr == f"fastpe: {target}: Permission denied\n"
    assert run.returncode == 1
    assert (tmp_path / "sealed.npy").read_bytes() == before
    assert os.listdir(tmp_path / "sealed") == []


posix_modes = pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")


@posix_modes
def test_a_replaced_file_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    source = save(tmp_path / "x.npy", embeddings(3, 4))
    real, link = tmp_path / "real.npy", tmp_path / "link.npy"
    real.touch()
    real.chmod(0o640)
    link.symlink_to(real)
    assert main(["add", source, "-o", str(link), "-q"]) == 0
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert np.load(real).shape == (3, 4)


@posix_modes
@pytest.mark.parametrize(
    ("umask", "mode"), [(0o022, 0o600), pytest.param(0o022, 0o640, marks=pytest.mark.slow), (0o077, 0o664)]
)
def test_what_a_killed_run_leaves_is_as_private_as_its_target(tmp_path: Path, umask: int, mode: int) -> None:
    target = tmp_path / "y.npy"
    target.touch()
    target.chmod(mode)
    before = os.umask(umask)
    try:
        process = feed_half(target)
    finally:
        os.umask(before)
    (partial,) = set(tmp_path.iterdir()) - {target}
    deadline = time.monotonic() + 60
    while partial.stat().st_mode & 0o777 != mode:  # It is closed to others until it has its access rights.
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert partial.stat().st_mode & 0o777 == mode


@posix_modes
def test_a_partial_file_is_private_when_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Between the two there is no byte in it, but somebody else could already hold it open.
    made_with = []
    copy = shutil.copystat

    def record(source: Path, partial: Path) -> None:
        made_with.append(partial.stat().st_mode & 0o777)
        copy(source, partial)

    monkeypatch.setattr(shutil, "copystat", record)
    (tmp_path / "y.npy").touch(0o666)
    source = save(tmp_path / "x.npy", embeddings(3, 4))
    assert main(["add", source, "-o", str(tmp_path / "y.npy"), "-q"]) == 0
    assert made_with == [0o600]


@posix_modes
def test_a_replaced_file_keeps_its_owner_and_group(tmp_path: Path) -> None:
    if os.getuid():
        pytest.skip("only root gives files away")
    source = save(tmp_path / "x.npy", embeddings(3, 4))
    target = tmp_path / "y.npy"
    target.touch()
    os.chown(target, 12345, 54321)
    target.chmod(0o4640)
    assert main(["add", source, "-o", str(target), "-q"]) == 0
    status = target.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (12345, 54321, 0o4640)


def test_a_replaced_file_keeps_its_extended_attributes(tmp_path: Path) -> None:
    if not hasattr(os, "setxattr"):
        pytest.skip("this Python has no extended attributes")
    source = save(tmp_path / "x.npy", embeddings(3, 4))
    target = tmp_path / "y.npy"
    target.touch()
    try:
        os.setxattr(target, "user.origin", b"layer 0")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    assert main(["add", source, "-o", str(target), "-q"]) == 0
    assert os.getxattr(target, "user.origin") == b"layer 0"


@posix_modes
def test_another_name_of_a_replaced_file_keeps_what_it_had(tmp_path: Path) -> None:
    source = save(tmp_path / "x.npy", embeddings(3, 4))
    target, other_name = tmp_path / "y.npy", tmp_path / "z.npy"
    target.write_bytes(b"before")
    other_name.hardlink_to(target)
    assert main(["add", source, "-o", str(target), "-q"]) == 0
    assert other_name.read_bytes() == b"before"
