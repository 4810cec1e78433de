# SPDX-License-Identifier: BSD-3-Clause
"""Commands as a user types them: what they print, their exit codes, and what is refused."""

from __future__ import annotations

import pytest

pytest.importorskip("typer")

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

import fastpe
from fastpe.__main__ import main

from .support import Capture, embeddings, refused, run

posix = pytest.mark.skipif(os.name != "posix", reason="shells, signals and such names are POSIX's")


def test_demo_reports_configuration_error_and_times(capsys: Capture) -> None:
    assert run("demo --batch 2 --rows 33 --d-model 7") == 0
    out = capsys.readouterr().out
    for each in (
        fastpe.__version__,
        fastpe.show_config("dicts")["instruction_set"],
        "x [2, 33, 7] float32",
        "check passed",
    ):
        assert each in out


@pytest.mark.parametrize("name", ["encode", "add_"])
def test_demo_fails_when_a_value_is_wrong(name: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    right = getattr(fastpe, name)

    def off_by_one_unit(*arguments: object, **keywords: object) -> np.ndarray:
        result = right(*arguments, **keywords)
        result[..., -1, 0] = np.nextafter(np.nextafter(result[..., -1, 0], np.float32(9)), np.float32(9))
        return result  # type: ignore[no-any-return]

    monkeypatch.setattr(fastpe, name, off_by_one_unit)
    assert run("demo --batch 2 --rows 33 --d-model 8") == 1
    assert "FAILED" in capsys.readouterr().out


def test_conventions(capsys: Capture) -> None:
    assert run("conventions") == 0
    out = capsys.readouterr().out
    assert all(f"{name}:" in out for name in (*fastpe.conventions, *fastpe.grid_conventions))
    assert all(f"layout {name}:" in out for name in fastpe.rotary_layouts)
    assert run("conventions mlx") == 0
    assert capsys.readouterr().out.startswith("mlx:")
    assert run("conventions wan") == 0
    assert capsys.readouterr().out.startswith("layout wan:")
    assert run("conventions timm") == 0
    assert {line.split(":")[0] for line in capsys.readouterr().out.split("\n\n")} == {"resize timm", "layout timm"}
    refused("conventions skyreels_v2", capsys, "'wan' serves", code=2)
    refused("conventions ernie-image", capsys, "transformer_ernie_image.py", code=2)
    refused("conventions mlxx", capsys, "mlx", code=2)
    refused("conventions unheard_of", capsys, "fastpe conventions", code=2)
    refused("conventions clip", capsys, "'mae2d' serves", "'vit' serves", code=2)
    refused("conventions siglip-2", capsys, "'siglip2' serves", code=2)
    refused("conventions loftrr", capsys, "did you mean 'loftr'?", code=2)


# ---- what is refused, by exit code and what is named

WRONG = {
    (2, "--ofset; did you mean --offset?"): "add x.npy -o y.npy --ofset 1",
    (2, "--seq_axis; did you mean --seq-axis?"): "add x.npy -o y.npy --seq_axis 0",
    (2, "--theta; give --base"): "encode --rows 3 --d-model 8 -o y.npy --theta 5",
    (2, "--is-neox-style; see fastpe tables --help"): "tables --rotary-dim 8 --rows 3 -o y.npz --is-neox-style",
    (2, "an option of encode, embed, add, resize, plot"): "tables --convention mlx --rotary-dim 8 --rows 3 -o y.npz",
    (2, "fastpe tables"): "encode --rows 3 --d-model 8 -o y.npy --convention rope",
    (2, "--base"): "encode --rows 3 --d-model 8 -o y.npy --base ten",
    (2, "--offset"): "add x.npy -o y.npy --offset 1.5",
    (2, "--batch"): "demo --batch 0",
    (2, "--rows"): "encode --d-model 8 -o y.npy",
    (2, "-o"): "add x.npy -o",
    (2, "TABLE"): "embed x.npy -o y.npy",
    (2, "--output-dir"): "add x.npy z.npy -o y.npy",
    (2, "z.npy"): "identify x.npy z.npy ids.npy",
    (2, "conventoin"): "conventoin",
    (2, "PICTURE"): "plot flowers -o y.png",
    (2, "--base is 0"): "encode --rows 3 --d-model 8 -o y.npy --base 0",
    (2, "--scale"): "add x.npy -o y.npy --scale nan",
    (2, "none of -o"): "add x.npy",
    (2, "--in-place"): "add x.npy -o y.npy --in-place",
    (2, "--no-clobber"): "add x.npy --in-place --no-clobber",
    (2, "--convention"): "add x.npy -o y.npy --convention fairsec",
    (2, "fastpe conventions"): "add x.npy -o y.npy --convention whisper",
    (2, "--d-model"): "encode --rows 3 --d-model 7 --convention mlx -o y.npy",
    (2, "--dtype"): "encode --rows 3 --d-model 8 -o y.npy --dtype int8",
    (2, "2**53"): f"add x.npy -o y.npy --offset {2**53 - 1}",
    (2, "--offset is"): f"encode --rows 3 --d-model 8 -o y.npy --offset {2**53 + 1}",
    (2, "--key"): "add x.npy -o y.npy --key a",
    (2, "--seq-axis"): "add x.npy -o y.npy --seq-axis 1",
    (1, "learned table: fastpe.add_(x, table=table, offset=0)"): "tables --config bert.json --rows 3 -o y.npz",
    (1, "ascontiguousarray"): "add columns.npy -o y.npy",
    (1, "C order"): "embed columns.npy x.npy -o y.npy",
    (1, "row.npy"): "add row.npy -o y.npy",
    (1, "fastpe embed"): "add ids.npy -o y.npy",
    (1, "--dtype bfloat16"): "add short.npy -o y.npy",
    (1, "x.csv"): "add x.csv -o y.npy",
    (1, "two.npz"): "add two.npz -o y.npz",
    (1, "none.npy"): "add none.npy -o y.npy",
    (1, "expected integers"): "embed x.npy x.npy -o y.npy",
    (1, "give ids.npy and then x.npy"): "embed x.npy ids.npy -o y.npy",
    (1, "ids"): "embed ids.npy x.npy -o y.npy",
}


@pytest.mark.filterwarnings("default")
def test_refused(capsys: Capture) -> None:
    np.save("x.npy", np.ones((3, 8), np.float32))
    np.save("columns.npy", np.ones((3, 8), np.float32, order="F"))
    Path("bert.json").write_text('{"model_type": "bert"}')
    np.save("row.npy", np.ones(8, np.float32))
    np.save("ids.npy", np.full((3, 8), 5))
    np.save("short.npy", np.ones((3, 8), "V2"))
    np.savez("two.npz", a=np.ones((3, 8)), b=np.ones((3, 8)))
    Path("x.csv").write_text("1,2")
    for (code, named), command in WRONG.items():
        refused(command, capsys, named, code=code)


@pytest.mark.parametrize("library", ["typer", "rich"])
def test_without_its_extra_it_says_what_to_install(library: str) -> None:
    program = f"import sys; sys.modules[{library!r}] = None; from fastpe.__main__ import main; sys.exit(main(['demo']))"
    result = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert result.returncode == 2
    assert f"pip install {library}" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(("library", "suffix"), [("pyarrow", "arrow"), ("zarr", "zarr"), ("matplotlib", "png")])
def test_without_the_library_of_a_format(
    library: str, suffix: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    Path("x.arrow").touch()
    os.mkdir("x.zarr")
    command = "plot heatmap" if suffix == "png" else f"add x.{suffix}"
    refused(f"{command} -o y.{suffix}", capsys, "pip install", library, code=2)


@pytest.mark.parametrize(
    "variable",
    ["FASTPE_ISA", *(pytest.param(f"FASTPE_{x}", marks=pytest.mark.slow) for x in ("NUM_THREADS", "STREAMING_BYTES"))],
)
def test_a_wrong_environment_variable_is_one_line_and_2(variable: str) -> None:
    command = [str(Path(sys.executable).with_name("fastpe")), "info"]
    result = subprocess.run(command, env=os.environ | {variable: "foo"}, check=False, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.startswith(f"fastpe: error: {variable}")
    assert result.stderr.count("\n") == 1


# ---- streams, signals, terminals

_interrupted_import = """
import _fastpe_command, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell's background job ignores it.
class Finder:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                pass  # as where the interpreter calls back
sys.meta_path.insert(0, Finder())
sys.exit(_fastpe_command.main())
"""


@posix
@pytest.mark.parametrize("imported", ["fastpe._show_config", "fastpe._cli.run"])
@pytest.mark.timed
def test_ctrl_c_during_an_import_ends_the_process(imported: str) -> None:
    command = [sys.executable, "-c", _interrupted_import, imported]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    # As the shell's own commands end; it reports 130.
    assert (result.returncode, result.stdout, result.stderr) == (-signal.SIGINT, "", "")


def in_shell(command: str) -> subprocess.CompletedProcess[str]:
    line = f"{sys.executable} -m fastpe {command}"
    return subprocess.run(line, shell=True, capture_output=True, text=True, check=False)


@posix
@pytest.mark.parametrize(
    "command", ["info", *(pytest.param(each, marks=pytest.mark.slow) for each in ("--version", "add --help"))]
)
@pytest.mark.timed
def test_a_reader_that_left_is_not_an_error_message(command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-m", "fastpe", *command.split()]
    result = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (result.returncode, result.stderr) == (141, b"")


@posix
def test_closed_and_full_streams() -> None:
    assert in_shell("encode --rows 3 --d-model 4 -o y.npy 2>&- >&-").returncode == 0
    assert np.load("y.npy").shape == (3, 4)
    if Path("/dev/full").exists():
        result = in_shell("info > /dev/full")
        assert result.returncode == 1
        assert "No space left on device" in result.stderr
        assert result.stderr.count("\n") == 1


@posix
@pytest.mark.parametrize(
    ("name", "shown"),
    [("a\x1b[31mb\x07", "a\\x1b[31mb\\x07"), ("a\u202eb", "a\\u202eb"), ("a\nb", "a\\nb"), ("ä", "ä")],
)
def test_names_of_files_move_no_terminal(name: str, shown: str, capsys: Capture) -> None:
    assert main(["encode", "--rows", "3", "--d-model", "4", "-o", f"{name}.npz"]) == 2
    error = capsys.readouterr().err
    assert f"{shown}.npz" in error
    assert error.count("\n") == 1


@pytest.mark.filterwarnings("default")
def test_warnings_of_libraries_are_one_line(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: warnings.warn("a\x1b[31mb\nc", stacklevel=1))
    assert run("encode --rows 3 --d-model 4 -o y.npy -q") == 0
    assert set(capsys.readouterr().err.splitlines()) == {"fastpe: warning: a\\x1b[31mb\\nc"}


def test_quiet_prints_nothing(capsys: Capture) -> None:
    np.save("x.npy", embeddings(3, 4))
    for command in (
        "add x.npy -o y.npy",
        "encode --rows 3 --d-model 4 -o pe.npy",
        "tables --rotary-dim 4 --rows 3 -o r.npz",
    ):
        assert run(command) == 0
        assert capsys.readouterr().err.count("\n") == 1
        assert run(f"{command} --quiet") == 0
        assert capsys.readouterr() == ("", "")


@posix
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((signal.SIGTERM, 143), (signal.SIGKILL, -9))),
    ],
)
@pytest.mark.usefixtures("interruptible_children")
@pytest.mark.timed
def test_a_stopped_run_leaves_what_was_there(number: signal.Signals, code: int) -> None:
    Path("y.npy").write_bytes(b"what was there")
    os.chmod("y.npy", 0o640)
    command = [sys.executable, "-m", "fastpe", "encode", "--rows", "3000000", "--d-model", "512", "-o", "y.npy"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while len(os.listdir()) == 1:
            assert process.poll() is None
        process.send_signal(number)
        _, error = process.communicate()
    assert process.returncode == code
    assert error == {130: "fastpe: interrupted\n", 143: "fastpe: terminated\n"}.get(code, "")
    assert Path("y.npy").read_bytes() == b"what was there"
    left = [name for name in os.listdir() if name != "y.npy"]
    # Nothing can clean up after SIGKILL; what it leaves has another name, and is as private as its target.
    assert len(left) == (1 if number == signal.SIGKILL else 0)
    assert all(os.stat(name).st_mode & 0o777 == 0o640 for name in left)


def test_completion(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("_FASTPE_COMPLETE", "complete_bash")
    for words, expected in (
        ("fastpe enc", "encode"),
        ("fastpe add x.npy --convention f", "fairseq"),
        ("fastpe plot w", "waves"),
        ("fastpe tables --form c", "cos_sin"),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 0
        assert expected in capsys.readouterr().out.split()
