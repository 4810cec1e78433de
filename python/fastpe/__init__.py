# SPDX-License-Identifier: BSD-3-Clause
"""Exact sinusoidal positional encodings on the CPU."""

from fastpe._config import __version__, show_config
from fastpe._encoding import PositionalEncoding
from fastpe._functions import add, add_, embed, encode
from fastpe._identify import Identification, identify
from fastpe.conventions import Convention, conventions

__all__ = [
    "Convention",
    "Identification",
    "PositionalEncoding",
    "__version__",
    "add",
    "add_",
    "conventions",
    "embed",
    "encode",
    "identify",
    "show_config",
]
