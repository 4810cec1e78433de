# SPDX-License-Identifier: BSD-3-Clause
"""The layouts, which layouts.json has: a new one is an entry there, with the project's file and version as its source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fastpe._arguments import model_guess
from fastpe._config.file import packaged, table
from fastpe._layouts.layout import RotaryLayout
from fastpe._layouts.rotation import Rotation
from fastpe._registry import Registry, plain


class LayoutRegistry(Registry[RotaryLayout]):
    """Layouts by name, which cannot be changed. `print` shows one line for each.

    Examples
    --------
    >>> import fastpe
    >>> "flux" in fastpe.rotary_layouts
    True
    >>> fastpe.rotary_layouts["fluxx"]
    Traceback (most recent call last):
    KeyError: "'fluxx' is not a layout; did you mean 'flux'?"
    """

    def __init__(self, layouts: Iterable[RotaryLayout], not_expressible: Mapping[str, str]) -> None:
        self._not_expressible = dict(not_expressible)
        super().__init__(RotaryLayout, layouts, word="layout", call="fastpe.RotaryEmbedding.from_layout")

    def _hint(self, name: str) -> str:
        """Another spelling of a name is that name: systems that a layout serves may have other position ids."""
        near = next((known for known in self if plain(known) in (plain(name), plain(f"{name}_moe"))), None)
        if near is None and (named := self._of_model_type(name)):
            return f"fastpe.RotaryLayout.from_config finds the layout of this model_type, {named!r}"
        return f"did you mean {near!r}?" if near else self._told(name) or super()._hint(name)

    def _told(self, name: str) -> str:
        return next((why for known, why in self._not_expressible.items() if plain(known) == plain(name)), "")

    def _of_model_type(self, name: str) -> str:
        """The layout of a model type, under any spelling; empty for others."""
        known = table()["text_layouts"] | {each: layout for each, (layout, *_) in table()["layouts"].items()}
        return next((known[each] for each in known if plain(each) == plain(name.removesuffix("_text"))), "")

    def _guess(self, name: str) -> str:
        return self._told(name) or model_guess(name, self)


def _layouts(data: Mapping[str, Any]) -> Iterator[RotaryLayout]:
    for name, row in data["layouts"].items():
        if "model" in row:  # text among images and videos, whose configs have the base
            fields = table()["models"][row["model"]]
            division, sections = fields["mrope"]
            rotation = {
                "division": division,
                "sections": sections,
                "base": None,
                "partial": bool(fields.get("partial")),
            }
            rotation |= {key: fields[key] for key in ("interleaved", "form")}
        else:
            rotation = row["rotation"]
        given: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in rotation.items()
        }
        described = tuple(row["coordinates"]), Rotation(**given), row["ids"], tuple(row["serves"]), row["source"]
        yield RotaryLayout(name, *described)


_data = packaged("layouts.json", "_layouts")
rotary_layouts = LayoutRegistry(_layouts(_data), _data["none"])
