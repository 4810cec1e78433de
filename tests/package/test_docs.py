# SPDX-License-Identifier: BSD-3-Clause
"""Every snippet of the documentation and the README runs, and every command in them works."""

from __future__ import annotations

import pytest

for package in ("typer", "pyarrow", "matplotlib", "dask", "zarr"):
    pytest.importorskip(package)

import ast
import doctest
import importlib.util
import itertools
import json
import re
import shutil
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
SLOW_PAGES = ("command-line.md", "pictures.md")
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_recipes_are_python(page: Path) -> None:
    for snippet in snippets(page):
        if is_a_recipe(snippet):
            ast.parse(snippet.text, str(page))


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is in no extra but peers")
@pytest.mark.parametrize("page", ["integrations.md", "rotary.md"])
def test_the_recipes_for_torch(page: str) -> None:
    exec(docs_pages.recipe(page, "torch"), {"fastpe": fastpe, "np": np})  # noqa: S102


def test_the_pages_have_snippets() -> None:
    found = [snippet for page in PAGES for snippet in snippets(page)]
    assert sum(snippet.language == "python" and not is_a_recipe(snippet) for snippet in found) > 20
    assert sum(is_a_recipe(snippet) for snippet in found) == 10


def test_every_option_of_the_command_line_page_exists(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    commands = {"", "add", "embed", "encode", "identify", "conventions", "plot", "demo", "info", "rotary"}
    assert {line.split()[1] for line in re.findall(r"^fastpe \w+", text, re.MULTILINE)} <= commands
    known = ""
    for command in sorted(commands):
        assert main([*command.split(), "--help"]) == 0
        known += capsys.readouterr().out
    for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)):
        assert option in known, option


# minilm.py downloads a model's files first: see its docstring. test_rotary_examples.py of the peers runs onnx_decoder.py, and
# test_recipes.py runs asgi_server.py.
# Dask and Zarr are slow to start, and snippets use them, too.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(path.name, marks=pytest.mark.slow) if path.name == "dask_zarr.py" else path.name
        for path in sorted(EXAMPLES.glob("*.py"))
        if path.name not in ("minilm.py", "onnx_decoder.py", "asgi_server.py")
    ],
)
def test_examples_run(name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)], capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="mkdocs is in the docs extra, not in test")
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    reference = (tmp_path / "reference" / "index.html").read_text(encoding="utf-8")
    docstring = "Rotate queries and keys, in place."  # of the compiled module
    names = ("fastpe.add_", "fastpe.plotting.float32_error", "fastpe.RotaryEmbedding.rotate_", "fastpe.rotary_layouts")
    for name in (*names, "fastpe.PositionalEncoding.embed", docstring, *fastpe.conventions):
        assert name in reference
    cards = (tmp_path / "conventions" / "index.html").read_text(encoding="utf-8").count('<div class="card">')
    assert cards == len(docs_pages.rows())
    for example in EXAMPLES.glob("*.py"):
        assert (tmp_path / "examples" / example.stem / "index.html").is_file()
    commands = re.findall(
        r"^fastpe plot .* -o (\w+)\.svg$", (ROOT / "docs" / "pictures.md").read_text("utf-8"), re.MULTILINE
    )
    shown = (tmp_path / "pictures" / "index.html").read_text(encoding="utf-8")
    for name, scheme in itertools.product(commands, ("light", "dark")):
        assert f"{name}-{scheme}.svg#only-{scheme}" in shown
        assert (tmp_path / "assets" / f"{name}-{scheme}.svg").is_file()
    # What a reader's browser would ask other servers for.
    pages = "".join(page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html"))
    assert set(re.findall(r'<(?:script|img|iframe)[^>]* src="?(https?://[^" >]*)', pages)) == set()
    assert set(re.findall(r'<link rel="?stylesheet"? [^>]*href="?(https?://[^" >]*)', pages)) == set()


# A page of which filter.js sees as much as it asks for.
STAGE = """
const [, script, texts, queries] = process.argv;
const cards = JSON.parse(texts).map((textContent) => ({ textContent, before() {} }));
let type;
const [input, output] = [{ addEventListener: (_, listener) => { type = listener; } }, {}];
globalThis.document = { querySelectorAll: () => cards, createElement: () => ({ children: [input, output] }) };
require(script);
for (const query of JSON.parse(queries)) {
  input.value = query;
  type();
  console.log(JSON.stringify([cards.filter((card) => !card.hidden).map((card) => card.textContent), output.value]));
}
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_site_shows_the_cards_that_have_every_part_of_a_query() -> None:
    mae, neox, marian = texts = ["MAE get_2d_sincos_pos_embed", "GPT-NeoX, Phi-3.5", "Marian and Pegasus"]
    shown = {
        "": texts,
        "mae": [mae],
        "get2d": [mae],
        "gpt neox": [neox],
        "gptneox": [neox],
        "PHI 35": [neox],
        "pegasus marian": [marian],
        "m-a": [mae, marian],
        "mae pegasus": [],
        "?": texts,
    }
    run = subprocess.run(
        ["node", "-e", STAGE, str(ROOT / "docs" / "assets" / "filter.js"), json.dumps(texts), json.dumps(list(shown))],
        capture_output=True,
        text=True,
        check=True,
    )
    found = dict(zip(shown, map(json.loads, run.stdout.splitlines()), strict=True))
    assert found == {query: [cards, f"{len(cards)} of 3"] for query, cards in shown.items()}


def test_no_line_of_a_shell_snippet_has_a_prompt() -> None:
    for page in (*PAGES, ROOT / "CONTRIBUTING.md"):
        assert not any(re.search(r"^\$ ", snippet.text, re.MULTILINE) for snippet in snippets(page)), page.name


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    for page in (*PAGES, ROOT / "CONTRIBUTING.md", *EXAMPLES.glob("*.py"), *(ROOT / "python").rglob("*.py")):
        assert "pip install 'fastpe" not in page.read_text(encoding="utf-8"), page.name
