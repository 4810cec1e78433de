# SPDX-License-Identifier: BSD-3-Clause
"""Every snippet of the documentation and the README runs, and every command in them works."""

from __future__ import annotations

import pytest

for package in ("typer", "pyarrow", "matplotlib", "dask", "zarr"):
    pytest.importorskip(package)

import doctest
import glob
import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fastpe
from fastpe.__main__ import main

from ..oracles import docs_pages

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SLOW_PAGES = ("command-line.md", "index.md", "pictures.md")  # the second one has `fastpe demo`
EXAMPLES = ROOT / "examples"
FENCE = re.compile(r"^```(\w*)(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Snippet(NamedTuple):
    language: str
    info: str
    text: str
    line: int


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text(encoding="utf-8")
    return [
        Snippet(match[1], match[2].strip(), match[3], text.count("\n", 0, match.start(3)))
        for match in FENCE.finditer(text)
    ]


def is_a_recipe(snippet: Snippet) -> bool:
    """Whether it needs a library that the tests do not install; test_recipes.py and test_clusters.py run most of those."""
    return "needs" in snippet.info


def run_doctest(page: Path, snippet: Snippet, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(snippet.text, names, page.name, str(page), snippet.line)
    # The names live on, as they do for a reader who goes through the page.
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False)
    names.update(test.globs)
    assert result.failed == 0, f"{page.name}, line {snippet.line}"


def run_shell(page: Path, snippet: Snippet) -> None:
    """Lines that call fastpe alone; pipes through the shell, with this Python's fastpe."""
    for line in snippet.text.splitlines():
        if line.startswith("fastpe "):
            words = re.sub(r"\s+#.*", "", line).replace("'", "").split()[1:]
            words = [name for word in words for name in sorted(glob.glob(word)) or [word]]
            assert main(words) == 0, f"{page.name}: {line}"
        elif "fastpe" in line and "|" in line:
            command = re.sub(r"\bfastpe\b", f"{sys.executable} -m fastpe", line)
            subprocess.run(command, shell=True, check=True)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow) if page.name in SLOW_PAGES else page for page in PAGES],
    ids=lambda page: page.name,
)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for snippet in snippets(page):
        if snippet.language == "python" and ">>>" in snippet.text:
            run_doctest(page, snippet, names)
        elif snippet.language == "python" and not is_a_recipe(snippet):
            # Padded, so that a traceback has the page's line numbers.
            exec(compile("\n" * snippet.line + snippet.text, str(page), "exec"), names)  # noqa: S102
        elif snippet.language == "sh":
            run_shell(page, snippet)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is in no extra but peers")
def test_the_recipes_for_torch() -> None:
    exec(docs_pages.recipe("torch"), {"fastpe": fastpe, "np": np})  # noqa: S102


# minilm.py downloads a model's files first: see its docstring. test_recipes.py runs onnx_decoder.py,
# vision_encoder_host.py and asgi_server.py.
# Dask and Zarr are slow to start, and snippets also use them.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(path.name, marks=pytest.mark.slow) if path.name == "dask_zarr.py" else path.name
        for path in sorted(EXAMPLES.glob("*.py"))
        if path.name not in ("minilm.py", "onnx_decoder.py", "vision_encoder_host.py", "asgi_server.py")
    ],
)
def test_examples_run(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert capsys.readouterr().out


def test_the_page_about_the_c_library_shows_its_example() -> None:
    example = (EXAMPLES / "c_library" / "example.c").read_text("utf-8")
    assert f"```c\n{example}```" in (ROOT / "docs" / "c-library.md").read_text("utf-8")


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="mkdocs is in the docs extra, not in test")
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    reference = (tmp_path / "reference" / "index.html").read_text(encoding="utf-8")
    docstring = "Rotate queries and keys, in place."  # of the compiled module
    assert all(text in reference for text in ("fastpe.add_", docstring, *fastpe.conventions))
