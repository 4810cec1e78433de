# SPDX-License-Identifier: BSD-3-Clause
"""The installed C library: .ci/run c-library builds it and says where it is."""

from __future__ import annotations

import os
import pathlib

import pytest

from .shared_library import Library


@pytest.fixture(scope="session")
def prefix() -> pathlib.Path:
    """Where the library is installed."""
    if "FASTPE_TEST_C_LIBRARY" not in os.environ:
        pytest.skip("the C library is not installed for tests; run: .ci/run c-library")
    return pathlib.Path(os.environ["FASTPE_TEST_C_LIBRARY"])


@pytest.fixture(scope="session")
def shared_library(prefix: pathlib.Path) -> pathlib.Path:
    """The shared library."""
    return next(prefix.glob("lib*/**/libfastpe.so.*.*"))


@pytest.fixture(scope="session")
def library(shared_library: pathlib.Path) -> Library:
    """The same, loaded."""
    return Library(shared_library)
