# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import importlib
import importlib.util
import logging
import pathlib
import sys
import types
import warnings
from typing import Any

import pytest


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """To import these files and leave their tests out takes as long as all others."""
    return True if "not peers" in config.option.markexpr else None


def imported(module: str) -> Any:
    """A module of a package that may not be installed."""
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if "." in str(error.name):
                raise  # it has another name in a newer release
            pytest.skip(f"{module} needs {error.name}, which is not installed; see the head of test_peers.py")


def modeling(model: str, file: str = "") -> Any:
    return imported(f"transformers.models.{model}.modeling_{file or model}")


def tool() -> Any:
    """The script that measures models: it knows how to call each module's own rotation."""
    return imported("tools.measures.rotation")


def timm_layer(name: str) -> Any:
    """A module of timm's layers, without the rest of timm, which needs a torchvision that matches torch."""
    package = importlib.util.find_spec("timm")
    if package is None or not package.submodule_search_locations:
        pytest.skip("timm is not installed; see the head of test_peers.py")
    layers = types.ModuleType("timm_layers")
    layers.__path__ = [str(pathlib.Path(package.submodule_search_locations[0], "layers"))]
    sys.modules[layers.__name__] = layers
    return importlib.import_module(f"timm_layers.{name}")
