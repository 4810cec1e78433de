# SPDX-License-Identifier: BSD-3-Clause
"""Write docs/reference*.md from docstrings, the tables of docs/models.md, README's table into docs/index.md, and
examples/README.md.

The site's build warns if a page does not match. Run python tools/reference.py; it needs pip install -e . --group docs.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
import models_page

import fastpe
from fastpe import _core

ROOT = Path(__file__).parents[1]
# The members that a page describes besides the class itself.
METHODS = {
    "PositionalEncoding": "from_config shift warm_up frequencies wavelengths",
    "RotaryEmbedding": "from_config layers_from_config from_layout rotate_ rotate tables shift_ shift warm_up frequencies "
    "wavelengths",
    "ModelConfig": "to_dict",
    "RotaryLayout": "from_config positions",
}
PLOTS = ("heatmap", "waves", "similarity", "float32_error", "rotary_wavelengths")
PAGES = {
    "encodings": "Sinusoidal encodings: encode add_ add embed timestep_embedding encode_grid encode_coordinates "
    "PositionalEncoding",
    "rotary": "Rotary embeddings: RotaryEmbedding rotate_by_tables_ rotate_by_tables pair_order "
    "query_scale RotaryLayout ModelConfig",
    "graphs": "Inputs of exported graphs: text_inputs vision_inputs audio_inputs",
    "presets": "Presets: Convention GridConvention ResizeConvention",
    "attention": "What attention takes: attention_mask alibi_slopes relative_buckets deberta_buckets window_relative_index "
    "window_relative_coordinates",
    "other": "Other calls: resize_table resize_taps identify Identification show_config dask.add "
    + " ".join(f"plotting.{name}" for name in PLOTS),
}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CALLS = re.compile(r"^\| I have.*?(?=^$)", re.MULTILINE | re.DOTALL)
REGISTRIES = ("conventions", "grid_conventions", "resize_conventions", "rotary_layouts")
LITERAL = re.compile(r"``([^`]*)``")


class CompiledDocstrings(griffe.Extension):
    """The stub of the compiled module has the signatures, and the module itself has the docstrings."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Complete the classes of ``fastpe._core``."""
        for stub in pkg["_core"].classes.values():
            # A stub has overloads apart from members. The last one of each takes the most, and others have the defaults.
            for name, overloads in stub.overloads.items():
                if overloads:
                    stub.set_member(name, overloads[-1])
                    for parameter in overloads[-1].parameters:
                        known = (
                            each.default
                            for overload in overloads
                            for each in overload.parameters
                            if each.name == parameter.name
                        )
                        parameter.default = next((default for default in known if default is not None), None)
            for name, method in stub.functions.items():
                of_core = getattr(_core, stub.name, None)  # which has no protocols
                text = inspect.getdoc(getattr(of_core, name, None)) if of_core else None
                if text:
                    method.docstring = griffe.Docstring(text, parent=method, parser="numpy")


def prose(text: str, indent: str = "") -> str:
    """Paragraphs and lists of a docstring, each on one line."""
    lines: list[str] = []
    for line in LITERAL.sub(r"`\1`", text).splitlines():
        new = not line.strip() or line.lstrip().startswith(("- ", "* ", "|"))
        if new or not lines or not lines[-1] or line.startswith("    "):
            lines.append(line.rstrip() if line.startswith("    ") else line.strip())
        else:
            lines[-1] += " " + line.strip()
    return f"\n{indent}".join(lines).replace(f"\n{indent}\n", "\n\n").strip()


def signature(name: str, thing: griffe.Object) -> str:
    """The call, with the defaults and without the types, which the text has."""
    if thing.is_class and "dataclass" in thing.labels:
        return ""
    words, stars = [], {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}
    for parameter in (thing.all_members["__init__"] if thing.is_class else thing).parameters:
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is griffe.ParameterKind.keyword_only and not any(word.startswith("*") for word in words):
            words.append("*")
        star = stars.get(parameter.kind, "")
        default = "" if star or parameter.default is None else f"={parameter.default}"
        words.append(star + parameter.name + default)
    call = textwrap.fill(f"{name}({', '.join(words)})", 72, subsequent_indent="    ")
    return f"```py\n{call}\n```\n\n"


def items(section: Any) -> Iterator[str]:
    """What a section lists: arguments, attributes, results or errors. Those with one text are together."""
    for description, group in itertools.groupby(section.value, key=lambda item: item.description):
        together = list(group)
        names = ", ".join(f"`{item.name}`" for item in together if getattr(item, "name", None))
        kinds = {str(item.annotation or "") for item in together}
        # Of several arguments, griffe takes types that are not in the docstring from the signature, often the first one's.
        is_elsewhere = len(together) > 1 and description.startswith(("As in", "The arguments of"))
        kind = prose(kinds.pop()) if len(kinds) == 1 and not is_elsewhere else ""
        if kind.startswith("(") and kind.endswith(")"):
            kind = kind[1:-1]
        head = f"{names} ({kind})" if names and kind else names or kind
        yield f"{head}: {prose(description, '    ')}" if head else prose(description)


def body(docstring: griffe.Docstring | None) -> str:
    """A docstring as Markdown."""
    if docstring is None:
        return ""
    parts = []
    for section in docstring.parse("numpy"):
        kind = section.kind.value
        if kind == "text":
            parts.append(prose(section.value))
        elif kind == "examples":
            for example, text in section.value:
                code = example is griffe.DocstringSectionKind.examples
                parts.append(f"```pycon\n{text}\n```" if code else prose(text))
        elif kind == "admonition":
            parts.append(prose(section.value.description))
        elif kind in ("returns", "raises"):
            parts.append(f"**{kind.capitalize()}** " + " ".join(items(section)))
        else:
            parts.append("\n".join(f"* {item}" for item in items(section)))
    return "\n\n".join(parts)


def summary(thing: griffe.Object) -> str:
    """The first paragraph of a docstring."""
    return prose(thing.docstring.value.split("\n\n")[0]) if thing.docstring else ""


def entry(package: griffe.Module, name: str) -> str:
    """One function or class with its methods."""
    thing = package[name]
    if thing.is_alias:
        thing = thing.final_target
    text = [f"## `fastpe.{name}`\n\n{signature(f'fastpe.{name}', thing)}{body(thing.docstring)}"]
    for method in METHODS.get(name, "").split():
        member = thing.all_members[method]
        if member.is_alias:
            member = member.final_target
        call = signature(f"{name}.{method}", member) if member.is_function else ""
        text.append(f"### `{name}.{method}`\n\n{call}{body(member.docstring)}")
    return "\n\n".join(text)


def presets() -> str:
    """What each registry has."""
    text = []
    for name in REGISTRIES:
        lines = [f"* `{preset}`: `{value.formula}`" for preset, value in getattr(fastpe, name).items()]
        text.append(f"## `fastpe.{name}`\n\n" + "\n".join(lines))
    return "\n\n".join(text)


def described(path: Path) -> str:
    """An example's docstring."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def examples_index(suffix: str) -> str:
    """The list of the examples, with links to files or pages of this suffix."""
    lines = [f"* [`{path.name}`]({path.stem}{suffix}): {described(path).splitlines()[0]}" for path in EXAMPLES]
    heading = "These are whole programs. The tests run them. Each names at its head what it needs besides fastpe."
    return f"# Examples\n\n{heading}\n\n" + "\n".join(lines) + "\n"


def index_page() -> str:
    """docs/index.md with the table of README."""
    readme, page = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/index.md"))
    table = CALLS.findall(readme)[0].replace("https://github.com/fastpe/fastpe/blob/main/docs/", "")
    return CALLS.sub(lambda _: table, page)


def written() -> Iterator[tuple[str, str]]:
    """The name and the text of each page."""
    yield "index.md", index_page()
    yield from models_page.written()
    yield "../examples/README.md", examples_index(".py")
    package = griffe.load(
        "fastpe",
        search_paths=[ROOT / "python"],
        extensions=griffe.Extensions(CompiledDocstrings()),
        docstring_parser=griffe.Parser.numpy,
    )
    note = "<!-- written by python tools/reference.py -->\n"
    names_of_pages = " ".join(PAGES.values()).split()
    if missing := {*fastpe.__all__} - {*names_of_pages, *REGISTRIES, "__version__"}:
        raise SystemExit(f"no page has {', '.join(sorted(missing))}: name them in PAGES")
    index = []
    for page, listed in PAGES.items():
        file, (title, names) = f"reference-{page}.md", listed.split(": ")
        rows = []
        for name in names.split():
            anchor = f"fastpe{name}".replace(".", "").lower()
            rows.append(f"| [`fastpe.{name}`]({file}#{anchor}) | {summary(package[name])} |")
            for method in METHODS.get(name, "").split():
                link = f"{file}#{name.lower()}{method}"
                rows.append(f"| [`{name}.{method}`]({link}) | {summary(package[name].all_members[method])} |")
        more = ""
        if page == "presets":
            more = "\n" + presets() + "\n"
            for name in REGISTRIES:
                rows.append(f"| [`fastpe.{name}`]({file}#fastpe{name}) | {', '.join(getattr(fastpe, name))} |")
        index.append(f"## {title}\n\n| name | what it is |\n|---|---|\n" + "\n".join(rows))
        entries = "\n\n".join(entry(package, name) for name in names.split())
        yield file, f"{note}\n# {title}\n\n{entries}\n{more}"
    yield "reference.md", f"{note}\n# Reference\n\n" + "\n\n".join(index) + "\n"


def stale() -> list[str]:
    """The pages that do not match the docstrings."""
    pages = ((ROOT / "docs" / name, text) for name, text in written())
    return [path.name for path, text in pages if not path.is_file() or path.read_text(encoding="utf-8") != text]


if __name__ == "__main__":
    for name, text in written():
        (ROOT / "docs" / name).write_text(text, encoding="utf-8")
