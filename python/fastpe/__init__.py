# SPDX-License-Identifier: BSD-3-Clause
"""Exact sinusoidal positional encodings and rotary embeddings on the CPU.

>>> import fastpe, numpy as np
>>> x = fastpe.add_(np.zeros((2, 512, 768), np.float32))  # adds positions to embeddings [B, L, d], in place
>>> table = fastpe.encode(1500, 384, convention="tensor2tensor")  # print(fastpe.conventions) lists the names
>>> rope = fastpe.RotaryEmbedding(64, interleaved=False)  # for queries and keys
>>> rope.rotate_(x.reshape(2, 512, 12, 64), seq_axis=-3).shape
(2, 512, 12, 64)
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from fastpe import _core as _core  # before NumPy: in a sub-interpreter, this says why neither works
from fastpe import _docs
from fastpe._arguments import other_call
from fastpe._show_config import __version__, show_config
from fastpe._sinusoid.convention import Convention
from fastpe._sinusoid.conventions import conventions
from fastpe._sinusoid.encoder import PositionalEncoding
from fastpe._sinusoid.functions import add, add_, embed, encode
from fastpe._sinusoid.timestep import timestep_embedding

if TYPE_CHECKING:
    from fastpe import dask as dask
    from fastpe import plotting as plotting
    from fastpe._attention.alibi import alibi_slopes
    from fastpe._attention.deberta_buckets import deberta_buckets
    from fastpe._attention.mask import attention_mask
    from fastpe._attention.query_scale import query_scale
    from fastpe._attention.relative_buckets import relative_buckets
    from fastpe._attention.windows import window_relative_coordinates, window_relative_index
    from fastpe._config.model import ModelConfig
    from fastpe._graph.audio import audio_inputs
    from fastpe._graph.text import text_inputs
    from fastpe._graph.vision import vision_inputs
    from fastpe._grid.convention import GridConvention
    from fastpe._grid.encode import encode_coordinates, encode_grid
    from fastpe._grid.grid_conventions import grid_conventions
    from fastpe._grid.resize import resize_table, resize_taps
    from fastpe._grid.resize_conventions import ResizeConvention, resize_conventions
    from fastpe._identify.answer import Identification
    from fastpe._identify.identify import identify
    from fastpe._layouts.layout import RotaryLayout
    from fastpe._layouts.layouts import rotary_layouts
    from fastpe._rotary.embedding import RotaryEmbedding
    from fastpe._rotary.given_tables import rotate_by_tables, rotate_by_tables_
    from fastpe._rotary.pair_order import pair_order

__all__ = [
    "Convention",
    "GridConvention",
    "Identification",
    "ModelConfig",
    "PositionalEncoding",
    "ResizeConvention",
    "RotaryEmbedding",
    "RotaryLayout",
    "__version__",
    "add",
    "add_",
    "alibi_slopes",
    "attention_mask",
    "audio_inputs",
    "conventions",
    "deberta_buckets",
    "embed",
    "encode",
    "encode_coordinates",
    "encode_grid",
    "grid_conventions",
    "identify",
    "pair_order",
    "query_scale",
    "relative_buckets",
    "resize_conventions",
    "resize_table",
    "resize_taps",
    "rotary_layouts",
    "rotate_by_tables",
    "rotate_by_tables_",
    "show_config",
    "text_inputs",
    "timestep_embedding",
    "vision_inputs",
    "window_relative_coordinates",
    "window_relative_index",
]

_docs.document_methods()

# Public modules, whose own libraries are extras: `from fastpe import *` leaves them out.
_modules = ("dask", "plotting")


def _publish(value: Any) -> Any:
    """Name a class or function as users do, in pickles and tracebacks too, wherever its file lies."""
    if callable(value):
        value.__module__ = __name__
    return value


for _name in {*__all__} & {*globals()}:
    _publish(globals()[_name])


# Many servers never use these names, so the modules that have them are imported when they are first used.
_deferred = {
    "GridConvention": "_grid.convention",
    "Identification": "_identify.answer",
    "ModelConfig": "_config.model",
    "ResizeConvention": "_grid.resize_conventions",
    "RotaryEmbedding": "_rotary.embedding",
    "RotaryLayout": "_layouts.layouts",  # a layout is found among those that are listed
    "alibi_slopes": "_attention.alibi",
    "attention_mask": "_attention.mask",
    "audio_inputs": "_graph.audio",
    "deberta_buckets": "_attention.deberta_buckets",
    "encode_coordinates": "_grid.encode",
    "encode_grid": "_grid.encode",
    "grid_conventions": "_grid.grid_conventions",
    "identify": "_identify.identify",
    "pair_order": "_rotary.pair_order",
    "query_scale": "_attention.query_scale",
    "relative_buckets": "_attention.relative_buckets",
    "resize_conventions": "_grid.resize_conventions",
    "resize_table": "_grid.resize",
    "resize_taps": "_grid.resize",
    "rotary_layouts": "_layouts.layouts",
    "rotate_by_tables": "_rotary.given_tables",
    "rotate_by_tables_": "_rotary.given_tables",
    "text_inputs": "_graph.text",
    "vision_inputs": "_graph.vision",
    "window_relative_coordinates": "_attention.windows",
    "window_relative_index": "_attention.windows",
}


def __getattr__(name: str) -> Any:
    if name in _modules:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _deferred:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{other_call(name)}")
    importlib.import_module(f"{__name__}.{_deferred[name]}")
    # What was imported along with it is also published, so that pickles never have the name of a file. Of modules that
    # another thread is importing, this waits for the end.
    for each, module_name in _deferred.items():
        path = f"{__name__}.{module_name}"
        if path in sys.modules:
            globals()[each] = _publish(getattr(importlib.import_module(path), each))
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*__all__, *_modules})
