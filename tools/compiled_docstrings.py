# SPDX-License-Identifier: BSD-3-Clause
"""Gives the reference the texts that only exist at run time: docstrings of the compiled module, and lists of presets."""

from __future__ import annotations

import inspect
from typing import Any

import griffe

import fastpe
from fastpe import _core

# Where each registry is made.
REGISTRIES = {
    "_sinusoid.presets.conventions": "Conventions of sequences by name, a read-only mapping",
    "_grid.presets.grid_conventions": "Conventions of grids and points by name, a read-only mapping",
    "_rotary.layout_presets.rotary_layouts": "Rotary layouts of images and videos by name, a read-only mapping",
}


class CompiledDocstrings(griffe.Extension):
    """The stub of the compiled module has the signatures, and the module itself has the docstrings."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Complete the classes of ``fastpe._core``, and list what each registry has."""
        for stub in pkg["_core"].classes.values():
            # A stub has overloads apart from members. The last one of each takes the most.
            for name, overloads in stub.overloads.items():
                if overloads:
                    stub.set_member(name, overloads[-1])
            for name, method in stub.functions.items():
                text = inspect.getdoc(getattr(getattr(_core, stub.name), name))
                if text:
                    method.docstring = griffe.Docstring(text, parent=method, parser="numpy")
        for path, summary in REGISTRIES.items():
            registry = pkg[path]
            presets = getattr(fastpe, registry.name)
            lines = "\n".join(f"* ``{name}``: ``{preset.formula}``" for name, preset in presets.items())
            registry.docstring = griffe.Docstring(f"{summary}.\n\n{lines}", parent=registry, parser="numpy")
