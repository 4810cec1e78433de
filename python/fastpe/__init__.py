# SPDX-License-Identifier: BSD-3-Clause
"""Exact sinusoidal positional encodings on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastpe._config import __version__, show_config
from fastpe._encoding import PositionalEncoding
from fastpe._functions import add, add_, embed, encode
from fastpe._grids import GridConvention, encode_coordinates, encode_grid, grid_conventions
from fastpe._timestep import timestep_embedding
from fastpe.conventions import Convention, conventions

if TYPE_CHECKING:
    from fastpe._identify import Identification, identify
    from fastpe._rotary.scaling import rotary_frequencies

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
    "rotary_frequencies",
    "show_config",
    "timestep_embedding",
]


def __getattr__(name: str) -> Any:
    # What many servers never ask for does not take part in their start.
    if name in ("Identification", "identify"):
        from fastpe import _identify

        return getattr(_identify, name)
    if name == "rotary_frequencies":
        from fastpe._rotary import scaling

        return scaling.rotary_frequencies
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
