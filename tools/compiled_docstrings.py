# SPDX-License-Identifier: BSD-3-Clause
"""Gives the methods of the stub the docstrings that the compiled module has."""

from __future__ import annotations

import inspect
from typing import Any

import griffe

from fastpe import _core


class CompiledDocstrings(griffe.Extension):
    """The stub of the compiled module has the signatures, and the module itself has the docstrings."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Complete the classes of ``fastpe._core``."""
        for stub in pkg["_core"].classes.values():
            # A stub has overloads apart from members. The last one of each takes the most.
            for name, overloads in stub.overloads.items():
                if overloads:
                    stub.set_member(name, overloads[-1])
            for name, method in stub.functions.items():
                text = inspect.getdoc(getattr(getattr(_core, stub.name), name))
                if text:
                    method.docstring = griffe.Docstring(text, parent=method, parser="numpy")
