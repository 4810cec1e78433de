# SPDX-License-Identifier: BSD-3-Clause
"""The programs of examples/ as modules."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from typing import Any

DIRECTORY = pathlib.Path(__file__).parents[2] / "examples"


def example(name: str) -> Any:
    """The module `name`, under its own name, so that the examples can import each other."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, DIRECTORY / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]
