# SPDX-License-Identifier: BSD-3-Clause
"""What a release would get wrong silently: versions that differ, wheels that no job tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    assert match, pattern
    return match[1]


def test_the_citation_and_the_conda_recipe_have_the_projects_version_and_requirements() -> None:
    project, recipe = read("pyproject.toml"), read("conda/recipe.yaml")
    version = found(r'^version = "(.*)"$', project)
    assert f"\nversion: {version}\n" in read("CITATION.cff")
    assert f'\n  version: "{version}"\n' in recipe
    packages = re.findall(r"^(?:requires|dependencies) = \[(.*)\]$", project, re.MULTILINE)
    for name, bound in re.findall(r'"([\w-]+)(>=[\d.]+)"', " ".join(packages)):
        assert f"    - {name} {bound}\n" in recipe


@pytest.mark.skipif(not (ROOT / ".github").exists(), reason="the sdist has no workflows")
def test_every_wheel_is_tested_before_it_is_published() -> None:
    built = re.findall(r"cp3(\d+t?)-\*", found(r'^build = "(.*)"$', read("pyproject.toml")))
    every, musl = re.findall(r"python: \[(.*)\]", read(".github/workflows/release.yml"))
    assert re.findall(r'"3\.(.*?)"', every) == built
    assert re.findall(r'"3\.(.*?)"', musl) == [version for version in built if not version.endswith("t")]
