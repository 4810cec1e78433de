# SPDX-License-Identifier: BSD-3-Clause
"""Facts that stand in several files: each has one place, and the other places are compared with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fastpe import _core

from ..oracles import weak_spots

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
BOUND = re.compile(r"(\d+(?:\.\d+)?) ulp \+ (\d+(?:\.\d+)?e-\d+)")
REPOSITORY = "https://github.com/fastpe/fastpe"

in_a_checkout = pytest.mark.skipif(not (ROOT / ".github").exists(), reason="the sdist has no files of the server")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def sources() -> Iterator[Path]:
    for folder in ("csrc", "python", "tests", "tools", "benchmarks", "examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".pyi", ".h", ".cpp", ".inl", ".c", ".sh"):
                yield path


def promised() -> dict[str, tuple[float, float]]:
    """The table of docs/accuracy.md: ulps and the absolute error beside them, by dtype."""
    rows = re.findall(r"^\| ([a-z0-9, ]+) \| at most (.*?) \|$", read("docs/accuracy.md"), re.MULTILINE)
    bounds: dict[str, tuple[float, float]] = {}
    for names, text in rows:
        found = BOUND.search(text)
        assert found, text
        bounds |= {name: (float(found[1]), float(found[2])) for name in names.split(", ")}
    return bounds


def test_the_accuracy_page_bounds_every_dtype() -> None:
    assert set(promised()) == {"float32", "float16", "bfloat16", "float64"}


def test_bounds_elsewhere_are_those_of_the_accuracy_page() -> None:
    # The page names the largest errors that were found, too.
    stated = set(BOUND.findall(read("docs/accuracy.md")))
    mentions = [(path, bound) for path in [*PAGES, *sources()] for bound in BOUND.findall(path.read_text("utf-8"))]
    assert len(mentions) > len(stated)
    assert [(path.name, bound) for path, bound in mentions if bound not in stated] == []


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_the_search_for_weak_spots_allows_what_is_promised(name: str) -> None:
    assert weak_spots.allowed(np.dtype(name)) == promised()[name]


def test_pages_state_the_budgets_of_rows_that_are_kept() -> None:
    core = read("csrc/fastpe/sources/sinusoid/row_cache.cpp")
    encoder, process = (
        re.findall(
            rf"^constexpr std::int64_t {name}_budget_bytes = std::int64_t{{(\d+)}} \* 1024 \* 1024;$",
            core,
            re.MULTILINE,
        )
        for name in ("encoder", "process")
    )
    stated = 0
    for name in (
        "docs/index.md",
        "docs/rotary.md",
        "docs/performance.md",
        "python/fastpe/_sinusoid/encoder.py",
        "python/fastpe/_rotary/embedding.py",
    ):
        text = " ".join(read(name).split())
        assert re.findall(r"at most (\d+) MiB", text) == encoder, name
        assert re.findall(r"and (\d+) MiB for all", text) in ([], process), name
        stated += len(re.findall(r"and (\d+) MiB for all", text))
    assert stated == 3


def test_the_rotary_page_names_every_form_of_tables() -> None:
    assert tuple(re.findall(r'^\| `"(\w+)"` \|', read("docs/rotary.md"), re.MULTILINE)) == _core.table_forms


def supported_versions() -> list[str]:
    """The minor versions of Python from requires-python to the newest classifier."""
    project = read("pyproject.toml")
    oldest = re.search(r'^requires-python = ">=3\.(\d+)"$', project, re.MULTILINE)
    assert oldest
    newest = max(map(int, re.findall(r"Python :: 3\.(\d+)\"", project)))
    return [f"3.{minor}" for minor in range(int(oldest[1]), newest + 1)]


def test_the_project_file_agrees_with_itself_about_pythons() -> None:
    project, versions = read("pyproject.toml"), supported_versions()
    assert re.findall(r"Python :: (3\.\d+)\"", project) == versions
    wheels = re.search(r'^build = "(.*)"$', project, re.MULTILINE)
    assert wheels
    tags = [f"cp{version.replace('.', '')}-*" for version in versions]
    assert [tag for tag in wheels[1].split() if "t-" not in tag] == tags
    assert f'python_version = "{versions[0]}"' in project
    assert f'target-version = "py{versions[0].replace(".", "")}"' in project


def test_the_citation_and_the_conda_recipe_repeat_the_project() -> None:
    project, recipe = read("pyproject.toml"), read("conda/recipe.yaml")
    version = re.search(r'^version = "(.*)"$', project, re.MULTILINE)
    assert version
    assert f"\nversion: {version[1]}\n" in read("CITATION.cff")
    assert f'\n  version: "{version[1]}"\n' in recipe
    packages = re.findall(r"^(?:requires|dependencies) = \[(.*)\]$", project, re.MULTILINE)
    for name, bound in re.findall(r'"([\w-]+)(>=[\d.]+)"', " ".join(packages)):
        assert f"    - {name} {bound}\n" in recipe
    summary = re.search(r'^description = "(.*)"$', project, re.MULTILINE)
    assert summary
    assert f"  summary: {summary[1]}\n" in recipe
    # Without it, the recipe cannot be rendered.
    assert ('stdlib("c")' in recipe) == ("\nc_stdlib:\n" in read("conda/variants.yaml"))


@in_a_checkout
def test_the_server_tests_every_python() -> None:
    workflow = read(".github/workflows/ci.yml")
    tested = set(re.findall(r'"(3\.\d+)"', " ".join(re.findall(r"python: (\[.*?\]|\".*?\")", workflow))))
    assert tested == set(supported_versions())


@in_a_checkout
def test_every_wheel_is_tested_before_it_is_published() -> None:
    wheels = re.search(r'^build = "(.*)"$', read("pyproject.toml"), re.MULTILINE)
    assert wheels
    built = [f"{tag[2]}.{tag[3:-2]}" for tag in wheels[1].split()]
    every, musl = re.findall(r"python: (\[.*\])", read(".github/workflows/release.yml"))
    assert re.findall(r'"(.*?)"', every) == built
    assert re.findall(r'"(.*?)"', musl) == [version for version in built if not version.endswith("t")]


def test_what_builds_a_release_is_fixed_by_hashes() -> None:
    needed = re.search(r"^requires = \[(.*)\]$", read("pyproject.toml"), re.MULTILINE)
    assert needed
    names = {re.split(r"[<>=!~]", text)[0] for text in re.findall(r'"(.*?)"', needed[1])}
    entries = re.split(r"\n(?=\w)", read("tools/requirements/build.txt"))[1:]
    assert len(names) > 1
    assert names | {"cmake", "ninja"} <= {entry.split("==")[0] for entry in entries}
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []


@in_a_checkout
def test_the_free_threaded_python_is_the_same_everywhere() -> None:
    wheels = re.findall(r"\bcp3(\d+)t-", read("pyproject.toml"))
    assert len(wheels) == 1
    for name in (".github/workflows/ci.yml", ".ci/run", "CONTRIBUTING.md"):
        assert set(re.findall(r"\b(?:python)?3\.(\d+)t\b", read(name))) == set(wheels), name


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_pages_name_the_oldest_python(name: str) -> None:
    assert set(re.findall(r"Python (3\.\d+) or later", read(name))) == {supported_versions()[0]}


def test_the_first_page_names_the_oldest_numpy() -> None:
    oldest = re.search(r'^dependencies = \["numpy>=(.*)"\]$', read("pyproject.toml"), re.MULTILINE)
    assert oldest
    assert re.findall(r"NumPy (\d+\.\d+) or later", read("docs/index.md")) == [oldest[1]]


def headings(page: Path) -> set[str]:
    lines = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w-]", "", line.lower().replace(" ", "-")) for line in lines}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_into_the_repository_lead_somewhere(page: Path) -> None:
    for target in re.findall(rf"\]\({REPOSITORY}/(?:blob|raw|tree)/main/(.*?)\)", page.read_text("utf-8")):
        name, _, anchor = target.partition("#")
        assert (ROOT / name).exists(), target
        assert not anchor or anchor in headings(ROOT / name), target


def test_the_readme_is_short_and_its_links_work_outside_of_the_repository() -> None:
    text = read("README.md")
    assert text.count("\n") <= 120
    targets = re.findall(r"\]\((.*?)\)", text)
    assert len(targets) > 5
    assert [target for target in targets if not target.startswith("https://")] == []
    assert f'Repository = "{REPOSITORY}"' in read("pyproject.toml")


@pytest.mark.parametrize("name", ["docs/design.md", "CONTRIBUTING.md"])
def test_files_that_are_named_exist(name: str) -> None:
    folders = ("", "docs", "csrc", "csrc/fastpe", "python/fastpe", "python/fastpe/_cli")
    made = {"build/", "dist/"}
    # A name of a file or a directory, and no command.
    named = set(re.findall(r"`([\w.*-]+/[\w./*-]*|[\w-]+\.(?:h|cpp|inl|py|md|toml|txt|json))`", read(name))) - made
    assert len(named) > 10
    missing = {
        path for path in named if not any(next((ROOT / folder).glob(path.rstrip("/")), None) for folder in folders)
    }
    assert {path for path in missing if not path.startswith((".ci", ".github"))} == set()


def test_the_version_of_transformers_is_that_of_the_table_of_model_types() -> None:
    table = json.loads(read("python/fastpe/_rotary/models.json"))
    version = re.search(r"version (\d+\.\d+)", table["source"])
    assert version
    others = [ROOT / "CHANGELOG.md", *(ROOT / "tests" / "data").glob("rotary_*.json")]
    stated = {
        (path.name, found)
        for path in (*PAGES, *sources(), *others)
        for found in re.findall(
            r"(?:transformers|huggingface/transformers\S*, version) (\d+\.\d+)", path.read_text("utf-8")
        )
    }
    assert {name for name, _ in stated} >= {"models.md", "rotary.md", "rotary-layouts.md", "embedding.py", "presets.py"}
    assert {found for _, found in stated} == {version[1]}
