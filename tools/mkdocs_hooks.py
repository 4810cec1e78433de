# SPDX-License-Identifier: BSD-3-Clause
"""What the site has in addition to the pages of docs/: other files as pages, and wide tables as cards."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import reference
from mkdocs.structure.files import File
from reference import EXAMPLES, described

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/fastpe/fastpe"
# Pages of the site, by their paths in the repository.
PAGES = {
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "RELEASING.md": "releasing.md",
    "SECURITY.md": "security.md",
    "examples": "examples/index.md",
    **{f"docs/{path.name}": path.name for path in (ROOT / "docs").glob("*.md")},
}
TABLE = re.compile(r"^\|(?P<head>.*)\|\n\|[-:| ]+\|\n(?P<rows>(?:\|.*\|\n)+)", re.MULTILINE)
# A table with one of these columns is too wide for a phone.
WIDE = {"Call", "Serves", "Result", "How to get the other meaning"}


def on_config(config: Any) -> Any:
    """List the examples in the navigation, and warn of pages that do not match the docstrings."""
    for name in reference.stale():
        logging.getLogger("mkdocs").warning(
            "docs/%s does not match the docstrings: run python tools/reference.py", name
        )
    for entry in config.nav:
        if "Examples" in entry:
            entry["Examples"] = [PAGES["examples"], *(f"examples/{path.stem}.md" for path in EXAMPLES)]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are no files of docs/."""
    for source, page in PAGES.items():
        if (ROOT / source).is_file() and not source.startswith("docs/"):
            files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    files.append(File.generated(config, PAGES["examples"], content=reference.examples_index(".md")))
    for path in EXAMPLES:
        files.append(File.generated(config, f"examples/{path.stem}.md", content=example_page(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Link to the site where a page links to the repository, and make cards of wide tables."""
    link = rf"\]\({REPOSITORY}/(?:blob|raw|tree)/main/([^)#]*)"
    linked = re.sub(link, lambda match: f"]({PAGES[match[1]]}" if match[1] in PAGES else match[0], markdown)
    return TABLE.sub(cards, linked)


def cards(table: re.Match[str]) -> str:
    """A card for each row, under a heading that the search and a link can lead to; other tables as they are."""
    head = cells(table["head"])
    if not WIDE & {*head}:
        return table[0]
    level = len(re.findall(r"^(##+) ", table.string[: table.start()], re.MULTILINE)[-1]) + 1
    return "".join(card(level, dict(zip(head, cells(row[1:-1]), strict=True))) for row in table["rows"].splitlines())


def card(level: int, row: dict[str, str]) -> str:
    """The row as Markdown: its first cell as a heading, its call as a block that can be copied, and what else it has."""
    title, *others = row
    parts = [f"{'#' * level} {row[title]}"]
    parts += [f"```python\n{row[name].strip('`')}\n```" for name in others if name == "Call"]
    parts += [f"**{name}:** {row[name]}" for name in others if name != "Call" and row[name]]
    return '<div class="card" markdown>\n\n' + "\n\n".join(parts) + "\n\n</div>\n\n"


def cells(row: str) -> list[str]:
    """The cells of a table's row."""
    return [cell.strip() for cell in row.split("|")]


def example_page(path: Path) -> str:
    """An example as a page."""
    code = path.read_text(encoding="utf-8").split('"""\n', 1)[-1].strip("\n")
    source = f"[`examples/{path.name}`]({REPOSITORY}/blob/main/examples/{path.name})"
    return f"# {path.name}\n\n{described(path)}\n\nThe file is {source}.\n\n```python\n{code}\n```\n"
