# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on several files: each is added to once, in however many runs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest

for package in ("typer", "pyarrow"):
    pytest.importorskip(package)

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import fastpe

from .support import Array, Capture, contents, embeddings, refused, run

LENGTHS = {f"emb/{length}.npy": length for length in (3, 70, 1, 12)}
FILES = " ".join(LENGTHS)


@pytest.fixture(autouse=True)
def _inputs() -> None:
    os.mkdir("emb")
    for name, length in LENGTHS.items():
        np.save(name, embeddings(2, length, 8))


def once(name: str) -> Array:
    return fastpe.add(embeddings(2, LENGTHS[name], 8), scale=2)


def check_done(names: Any = LENGTHS, folder: str = "emb") -> None:
    for name in names:
        np.testing.assert_array_equal(np.load(f"{folder}/{Path(name).name}"), once(name))
    assert not [each for each in os.listdir(folder) if each.startswith(".fastpe-")]


def test_all_are_changed_in_place() -> None:
    if os.name == "posix":
        os.chmod("emb/3.npy", 0o640)
    os.symlink("3.npy", "emb/link.npy")
    assert run(f"add {FILES.replace('emb/3.npy', 'emb/link.npy')} --in-place --scale 2") == 0
    check_done()
    assert os.path.islink("emb/link.npy")
    assert os.name != "posix" or os.stat("emb/3.npy").st_mode & 0o777 == 0o640


@pytest.mark.parametrize("command", ["--in-place", "--in-place --journal j", "--output-dir new"])
def test_what_fails_is_told_and_the_others_are_done(command: str, capsys: Capture) -> None:
    Path("emb/70.npy").write_bytes(b"something else")
    assert run(f"add {FILES} none.npy {command} --scale 2") == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert "emb/70.npy" in lines[0]
    assert "none.npy" in lines[1]
    check_done([name for name in LENGTHS if name != "emb/70.npy"], "new" if "new" in command else "emb")
    assert Path("emb/70.npy").read_bytes() == b"something else"


class Killed(BaseException):
    """What ends a run without a word of its own."""


@pytest.mark.parametrize("point", range(12))
@pytest.mark.parametrize("cut", [0, 1, 9])
def test_a_run_that_ended_anywhere_is_taken_up_again(point: int, cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each `os.fsync` and `os.replace` is a point, before it and after it. Of a line that is not on the disk, the end is missing."""
    calls, is_on_disk, end = 0, True, 0

    def ends(original: Any) -> Any:
        def call(*arguments: Any) -> Any:
            nonlocal calls, is_on_disk
            calls += 1
            if calls == end:
                is_on_disk = original is replace or not os.path.samestat(os.fstat(arguments[0]), os.stat("j"))
                raise Killed
            result = original(*arguments)
            calls += 1
            if calls == end:
                raise Killed
            return result

        return call

    replace = os.replace
    for each in (2 * point + 1, 2 * point + 2, 10):  # the last one is behind a replacement
        calls, is_on_disk, end = 0, True, each
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            for name in ("fsync", "replace"):
                patch.setattr(os, name, ends(getattr(os, name)))
            run(f"add {FILES} --in-place --journal j --scale 2")
        written = Path("j").read_bytes()
        Path("j").write_bytes(written[: len(written) - (0 if is_on_disk else cut)])
    assert run(f"add {FILES} --in-place --journal j --scale 2") == 0
    check_done()
    # From another folder, and by other names, they are the same files.
    os.chdir("emb")
    assert run(f"add ../emb/1.npy {os.path.abspath('70.npy')} --in-place --journal ../j --scale 2") == 0
    os.chdir("..")
    check_done()


def test_a_stopped_run_says_what_is_done(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    replace, calls = os.replace, 0

    def stop(*names: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:  # of a file, the first call completes what is beside it
            raise KeyboardInterrupt
        replace(*names)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop)
        assert run(f"add {FILES} --in-place --scale 2") == 130
    error = capsys.readouterr().err
    assert "emb/3.npy" in error
    assert "emb/70.npy" not in error
    check_done(["emb/3.npy"])
    np.testing.assert_array_equal(np.load("emb/70.npy"), embeddings(2, 70, 8))


def test_a_folder_of_results(capsys: Capture) -> None:
    table = pa.table({"e": pa.array(embeddings(5, 8).tolist(), pa.list_(pa.float32()))})
    parquet.write_table(table, "emb/t.parquet")
    assert run(f"add {FILES} emb/t.parquet --output-dir new --scale 2") == 0
    check_done(folder="new")
    made = parquet.read_table("new/t.parquet")["e"].to_pylist()
    np.testing.assert_array_equal(np.array(made, np.float32), fastpe.add(embeddings(5, 8), scale=2))
    np.save("new/3.npy", np.ones(3))
    assert run(f"add {FILES} emb/t.parquet --output-dir new --skip-existing --scale 2") == 0
    np.testing.assert_array_equal(np.load("new/3.npy"), np.ones(3))
    refused_files = sum("exists" in line for line in _failures(f"add {FILES} --output-dir new --no-clobber", capsys))
    assert refused_files == len(LENGTHS)
    assert run(f"add {FILES} --output-dir new --scale 2") == 0
    check_done(folder="new")


def _failures(command: str, capsys: Capture) -> list[str]:
    before = contents()
    capsys.readouterr()
    assert run(command) == 1
    assert contents() == before
    return capsys.readouterr().err.splitlines()[:-1]


def test_wrong_calls_change_nothing(capsys: Capture) -> None:
    os.mkdir("other")
    np.save("other/3.npy", embeddings(2, 2))
    os.link("emb/1.npy", "emb/same.npy")
    Path("text").write_text("something else\n")
    Path("line").write_text("a line that does not end")
    assert run("add emb/12.npy --in-place --journal done -q") == 0
    for options, named in {
        f"{FILES}": "--in-place",
        f"{FILES} -o y.npy": "--output-dir",
        f"{FILES} --in-place --output-dir new": "--output-dir",
        f"{FILES} --in-place --skip-existing": "--skip-existing",
        f"{FILES} --output-dir new --journal j": "--journal",
        f"{FILES} --output-dir new --skip-existing --no-clobber": "--no-clobber",
        f"{FILES} --output-dir none/new": "none/new",
        "emb/3.npy other/3.npy --output-dir new": "one name",
        "emb/3.npy ./emb/3.npy --in-place": "emb/3.npy",
        "emb/1.npy emb/same.npy --in-place": "emb/same.npy",
        f"{FILES} --in-place --journal text": "text",
        f"{FILES} --in-place --journal line": "line",
        f"{FILES} --in-place --journal emb/12.npy": "emb/12.npy",
        f"{FILES} --output-dir text": "text",
        f"{FILES} --in-place --journal done --alpha 2": "done",
        f"{FILES} --in-place --convention none": "--convention",
    }.items():
        refused(f"add {options}", capsys, named, code=2)
    assert len(_failures(f"add {FILES} --in-place --dtype float64", capsys)) == len(LENGTHS)
    assert len(_failures(f"add {FILES} --output-dir emb", capsys)) == len(LENGTHS)


def test_one_run_at_a_time_has_a_journal(capsys: Capture) -> None:
    fcntl = pytest.importorskip("fcntl")
    for name in ("j", "emb/70.npy"):
        with open(name, "a+b") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            before = contents()
            assert run(f"add emb/70.npy emb/70.npy{'' if name == 'j' else ' '} --in-place --journal j") in (1, 2)
            assert {**contents(), "./j": None} == {**before, "./j": None}
    assert capsys.readouterr().err
