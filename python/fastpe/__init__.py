# SPDX-License-Identifier: BSD-3-Clause
"""Exact sinusoidal positional encodings on the CPU."""

from fastpe._config import __version__, show_config
from fastpe._encoding import PositionalEncoding
from fastpe._functions import add, add_, embed, encode
from fastpe._grids import GridConvention, encode_coordinates, encode_grid, grid_conventions
from fastpe._identify import Identification, identify
from fastpe._timestep import timestep_embedding
from fastpe.conventions import Convention, conventions

__all__ = [
    "Convention",
    "GridConvention",
    "Identification",
    "PositionalEncoding",
    "__version__",
    "add",
    "add_",
    "conventions",
    "embed",
    "encode",
    "encode_coordinates",
    "encode_grid",
    "grid_conventions",
    "identify",
    "show_config",
    "timestep_embedding",
]
