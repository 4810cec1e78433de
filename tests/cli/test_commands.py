# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

pytest.importorskip("typer")

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import types
from pathlib import Path

import _fastpe_command
import numpy as np
import pyarrow as pa
import zarr
from pyarrow import parquet

import fastpe
from fastpe.__main__ import main

from .test_identify import file_of_arrays
from .test_rotary import GEMMA3, LLAMA


def test_demo_reports_configuration_error_and_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--batch", "2", "--seq-len", "33", "--d-model", "7"]) == 0
    out = capsys.readouterr().out
    assert fastpe.__version__ in out
    assert fastpe.show_config()["instruction_set"] in out
    assert "x [2, 33, 7] float32" in out
    assert "check passed" in out


@pytest.mark.parametrize("name", ["encode", "add_"])
def test_demo_fails_when_a_value_is_wrong(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = getattr(fastpe, name)

    def off_by_one_unit(*arguments: object, **keywords: object) -> np.ndarray:
        result = right(*arguments, **keywords)
        result[..., -1, 0] = np.nextafter(np.nextafter(result[..., -1, 0], np.float32(9)), np.float32(9))
        return result  # type: ignore[no-any-return]

    monkeypatch.setattr(fastpe, name, off_by_one_unit)
    assert main(["demo", "--batch", "2", "--seq-len", "33", "--d-model", "8"]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_as_a_module_in_a_pipe() -> None:
    run = subprocess.run([sys.executable, "-m", "fastpe", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout == f"fastpe {fastpe.__version__}\n"
    assert run.stderr == ""


@pytest.mark.parametrize("library", ["typer", "rich"])
def test_without_its_extra_it_says_what_to_install(library: str) -> None:
    program = f"import sys; sys.modules[{library!r}] = None; from fastpe.__main__ import main; sys.exit(main(['demo']))"
    run = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr.splitlines() == [
        f"fastpe: the command line needs {library}; install it with: pip install {library}"
    ]


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


@pytest.mark.parametrize("imported", ["fastpe._config", "fastpe._cli.run"])
def test_ctrl_c_during_an_import_ends_the_process(imported: str) -> None:
    command = [sys.executable, "-c", _interrupted_import, imported]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "fastpe: interrupted\n")


@pytest.mark.parametrize("imported", ["fastpe.__main__", "fastpe._cli.run"])
def test_ctrl_c_during_an_import_is_reported_in_one_line(
    imported: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupting(types.ModuleType):
        def __getattr__(self, name: str) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, imported, Interrupting(imported))
    assert _fastpe_command.main() == 130
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(Path(fastpe.__file__).with_name("__main__.py")), run_name="__main__")
    assert end.value.code == 130
    assert capsys.readouterr().err == "fastpe: interrupted\n" * 2


@pytest.mark.parametrize("variable", ["FASTPE_ISA", "FASTPE_NUM_THREADS", "FASTPE_STREAMING_BYTES"])
def test_a_wrong_environment_variable_is_one_line_and_2(variable: str) -> None:
    command = Path(sys.executable).with_name("fastpe")
    environment = os.environ | {variable: "foo"}
    run = subprocess.run([command, "info"], env=environment, check=False, capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr.startswith(f"fastpe: {variable}")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize("variable", ["FASTPE_ISA", "FASTPE_NUM_THREADS", "FASTPE_STREAMING_BYTES"])
def test_as_a_module_a_wrong_environment_variable_is_in_the_last_line(variable: str) -> None:
    # Python imports the package before its __main__ module.
    command = [sys.executable, "-m", "fastpe", "info"]
    run = subprocess.run(command, env=os.environ | {variable: "foo"}, check=False, capture_output=True, text=True)
    assert run.returncode != 0
    assert f": {variable}" in run.stderr.splitlines()[-1]


def test_info_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["version"] == fastpe.__version__
    assert facts["largest_position"] == 2**53


def test_info_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    assert fastpe.show_config()["compiler"] in capsys.readouterr().out


def test_no_command_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dem"], "fastpe: No such command 'dem'"),
        (["encode"], "fastpe encode: Missing option"),
        (["demo", "--nonsense"], "fastpe demo: No such option: --nonsense"),
        (["add", "--input", "x.npy"], "fastpe add: No such option: --input; see"),
        (["encode", "--seq-ln", "3"], "fastpe encode: No such option: --seq-ln; did you mean '--seq-len'? See"),
    ],
)
def test_wrong_usage_is_one_line_and_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(message)
    assert captured.err.count("\n") == 1
    assert "--help" in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("demo --batch 0", "--batch is 0, expected an integer that is at least 1"),
        ("encode --seq-len 3 --d-model 4 -o x.npy --offset 1.5", "--offset is 1.5, expected an integer"),
        ("encode --seq-len 3 --d-model 4 -o x.npy --base ten", "--base is ten, expected a finite number above 0"),
        ("add x.npy -o y.npy --scale nan", "--scale is nan, expected a finite number"),
        ("add x.npy -o y.npy --alpha inf", "--alpha is inf, expected a finite number"),
        ("plot heatmp -o x.png", "PICTURE is heatmp, which is not known; did you mean heatmap?"),
        ("plot rotary-wavelengths", "PICTURE is rotary-wavelengths, which is not known; did you mean rotary?"),
        ("plot float32_error", "PICTURE is float32_error, which is not known; did you mean error?"),
    ],
)
def test_a_wrong_value_is_named_in_our_own_words(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments.split()) == 2
    assert capsys.readouterr().err == f"fastpe: {message}\n"


@pytest.mark.parametrize("command", ["demo", "encode", "rotary", "add", "info", "plot", "identify", "conventions"])
def test_help_is_for_people(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out.partition("Examples:")[0]
    # Names of Python's types, and the ranges that typer makes of bounds.
    assert not re.search(r"<|>|\b(str|int|float|INTEGER|FLOAT|TEXT)\b", text)
    assert all(len(line) <= 80 for line in text.splitlines())


def test_encode_writes_what_the_function_returns(tmp_path: Path) -> None:
    target = tmp_path / "pe.npy"
    assert main(["encode", "--seq-len", "12", "--d-model", "5", "--offset", "1000000", "-o", str(target)]) == 0
    np.testing.assert_array_equal(np.load(target), fastpe.encode(12, 5, offset=10**6))


def test_add_writes_what_the_function_returns(tmp_path: Path) -> None:
    x = np.random.default_rng(1).standard_normal((3, 12, 5), dtype=np.float32)
    source, target = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(source, x)
    assert main(["add", str(source), "-o", str(target), "--convention", "concat", "--scale", "2.5"]) == 0
    np.testing.assert_array_equal(np.load(target), fastpe.add(x, convention="concat", scale=2.5))
    np.testing.assert_array_equal(np.load(source), x)


@pytest.mark.parametrize(
    "command", ["encode", "rotary", "add", pytest.param("plot", marks=pytest.mark.slow), "identify"]
)
def test_the_examples_in_help_texts_work(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    examples = [line.strip() for line in capsys.readouterr().out.partition("Examples:\n")[2].splitlines()]
    assert examples
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).standard_normal((4, 16, 32), dtype=np.float32)
    np.save("embeddings.npy", x)
    np.save("pe.npy", fastpe.encode(64, 32))
    for name, config in (("config", LLAMA), ("gemma3", GEMMA3)):
        Path(f"{name}.json").write_text(json.dumps(config))
    np.savez("batch.npz", inputs=x, labels=np.arange(4))
    cos, sin = fastpe.RotaryEmbedding(32, interleaved=False).tables(64)
    np.savez("rotary.npz", cos=cos, sin=sin, inputs=x)
    file_of_arrays(Path("model.safetensors"), {"encoder.embed_positions.weight": fastpe.encode(64, 32), "inputs": x})
    os.mkdir("shards")
    np.save("shards/0.npy", x)
    parquet.write_table(pa.table({"embeddings": x.tolist(), "id": range(4)}), "rows.parquet")
    zarr.open_group("store.zarr", mode="w")["embeddings"] = x
    for example in examples:
        if "|" not in example:
            assert main(shlex.split(example)[1:]) == 0, f"{example}: {capsys.readouterr().err}"
            continue
        # As pasted into a shell, where `fastpe` is this Python's.
        line = re.sub(r"\bfastpe (?=[a-z])", f"{sys.executable} -m fastpe ", example)
        run = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
        assert run.returncode == 0, f"{example}: {run.stderr}"


def test_conventions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conventions"]) == 0
    out = capsys.readouterr().out
    assert all(f"{name}:" in out for name in fastpe.conventions)
    assert main(["conventions", "mlx"]) == 0
    assert capsys.readouterr().out.startswith("mlx:")
    assert main(["conventions", "mlxx"]) == 1


COMPLETIONS = [
    ("fastpe enc", "encode"),
    ("fastpe add x.npy --convention f", "fairseq"),
    ("fastpe plot w", "waves"),
    ("fastpe rotary --form c", "cos_sin"),
]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("_FASTPE_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    for words, expected in COMPLETIONS:
        for name, value in (
            ("COMP_WORDS", words),
            ("COMP_CWORD", str(words.count(" "))),
            ("_TYPER_COMPLETE_ARGS", words),
        ):
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 0
        assert expected in capsys.readouterr().out.replace('"', " ").split()
