# SPDX-License-Identifier: BSD-3-Clause
"""The package as a whole: versions, documentation, the environment variables it reads.

That the stubs of the compiled module agree with it is checked by ``python -m mypy.stubtest`` in the lint step.
"""

from __future__ import annotations

import ast
import doctest
import graphlib
import importlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fastpe
from fastpe import _core


def test_the_package_shows_its_interface_alone_and_how_it_is_used() -> None:
    assert dir(fastpe) == sorted([*fastpe.__all__, "dask", "plotting"])
    assert all(hasattr(fastpe, name) for name in dir(fastpe))
    parsed = doctest.DocTestParser().get_doctest(fastpe.__doc__ or "", {}, "fastpe", None, 0)
    assert len(parsed.examples) >= 4
    assert doctest.DocTestRunner(verbose=False).run(parsed).failed == 0


def test_modules_of_extras_are_attributes_and_imported_when_they_are_asked_for() -> None:
    code = (
        "import sys, fastpe; assert 'fastpe.plotting' not in sys.modules and 'fastpe.dask' not in sys.modules;"
        "fastpe.plotting.heatmap; fastpe.dask.add;"
        "assert not {'matplotlib', 'dask'} & set(sys.modules);"
        "from fastpe import *; assert 'encode' in globals() and 'plotting' not in globals()"
    )
    result = run(code)
    assert result.returncode == 0, result.stderr
    with pytest.raises(AttributeError, match="plottings"):
        fastpe.plottings  # noqa: B018


def _imported(tree: ast.AST, modules: set[str]) -> Iterator[str]:
    """The modules that a file imports, in functions too; not those that only annotations need."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in modules else str(node.module) for name in names)
        yield from _imported(node, modules)


def test_no_circle_of_imports() -> None:
    root = Path(__file__).parents[2] / "python"
    files = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (root / "fastpe").rglob("*.py")
    }
    modules = {*files, "fastpe._core"}
    graph = {
        name: {*_imported(ast.parse(path.read_text("utf-8")), modules)} & modules - {name}
        for name, path in files.items()
    }
    assert "fastpe._config.layers" in graph["fastpe._rotary.embedding"]  # which imports it in a function
    graphlib.TopologicalSorter(graph).prepare()  # an error shows the circle


PUBLIC = [name for name in fastpe.__all__ if callable(getattr(fastpe, name))]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_belong_to_the_package_and_their_examples_run(name: str) -> None:
    value = getattr(fastpe, name)
    assert (value.__module__, value.__qualname__) == ("fastpe", name)
    runner = doctest.DocTestRunner(verbose=False)
    # Wherever they lie: a method's own module is another one.
    for example in doctest.DocTestFinder().find(value, name, module=False):
        assert runner.run(example).failed == 0, example.name


PACKAGE = Path(fastpe.__file__).parent
MODULES = [path for path in PACKAGE.rglob("*.py") if ">>>" in path.read_text("utf-8") and path.name != "__init__.py"]


@pytest.mark.parametrize(
    "name", [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in sorted(MODULES)]
)
def test_examples_of_other_modules_run(name: str) -> None:
    for package in ("typer", "matplotlib", "dask"):
        pytest.importorskip(package)
    assert doctest.testmod(importlib.import_module(name)).failed == 0


METHODS = {fastpe.PositionalEncoding: "encode add_ add embed", fastpe.RotaryEmbedding: "tables rotate_ rotate shift_"}


def test_doctests_of_the_compiled_methods() -> None:
    runner = doctest.DocTestRunner(verbose=False)
    for owner, names in METHODS.items():
        for name in names.split():
            parsed = doctest.DocTestParser().get_doctest(getattr(owner, name).__doc__, {}, name, None, 0)
            assert parsed.examples
            assert runner.run(parsed).failed == 0, name


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**{name: os.environ[name] for name in os.environ if not name.startswith("FASTPE_")}, **environment}
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)


WRONG = {
    "FASTPE_ISA": ["unknown", "AVX2"],
    "FASTPE_NUM_THREADS": ["0", "abc", "2x", str(2**16 + 1)],
    "FASTPE_STREAMING_BYTES": ["-1", "1e6", str(2**63)],
}


def test_a_wrong_environment_variable_fails_the_import_and_a_right_one_does_not() -> None:
    code = f"""if True:
        import os
        for name, values in {WRONG}.items():
            for value in values:
                os.environ[name] = value
                try:
                    import fastpe
                except ValueError as error:
                    assert name in str(error), error
                else:
                    raise AssertionError((name, value))
            os.environ[name] = ""  # as good as unset
        os.environ["FASTPE_NUM_THREADS"] = "65536"
        import fastpe
        assert fastpe.show_config("dicts")["instruction_set"] == fastpe.show_config("dicts")["available_instruction_sets"][0]
    """
    result = run(code)
    assert result.returncode == 0, result.stderr


def test_environment_variables_are_honoured() -> None:
    code = (
        "import fastpe; config = fastpe.show_config('dicts');"
        "print(config['instruction_set'], config['threads'], config['streaming_bytes'])"
    )
    has_openmp = _core.config()["openmp"]
    for name in _core.config()["available_instruction_sets"]:
        result = run(code, FASTPE_ISA=name, FASTPE_NUM_THREADS="3", FASTPE_STREAMING_BYTES="12345", OMP_NUM_THREADS="5")
        assert result.stdout.split() == [name, "3" if has_openmp else "1", "12345"], result.stderr
    assert run(code, OMP_NUM_THREADS="5").stdout.split()[1] == ("5" if has_openmp else "1")


def test_import_and_calls_leave_the_process_as_it_was() -> None:
    code = (
        "import os, sys, numpy as np; before = dict(os.environ); errors = np.geterr(); import fastpe;"
        "tiny = np.array([5e-324, 1e-310]);"
        "fastpe.add_(np.zeros((8, 512, 768), np.float32));"
        "assert dict(os.environ) == before; assert np.geterr() == errors;"
        "assert (tiny * 1.0 == tiny).all() and (tiny > 0).all();"  # no flushing of subnormals
        "assert not [m for m in ('ml_dtypes', 'torch', 'matplotlib', 'rich', 'typer') if m in sys.modules]"
    )
    result = run(code)
    assert result.returncode == 0, result.stderr


COMMAND = shutil.which("fastpe", path=sysconfig.get_path("scripts"))


@pytest.mark.skipif(COMMAND is None, reason="this fastpe is not installed")
def test_the_installed_command(tmp_path: Path) -> None:
    pytest.importorskip("typer")
    out = tmp_path / "pe.npy"
    command = [str(COMMAND), "encode", "--rows=5", "--d-model=8", f"--output={out}"]
    subprocess.run(command, check=True, capture_output=True)
    np.testing.assert_array_equal(np.load(out), fastpe.encode(5, 8))
