# SPDX-License-Identifier: BSD-3-Clause
"""The usual NumPy code, which `fastpe demo` compares with fastpe."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def usual_float64(out: Array) -> Array:
    """Encode into `out` [seq_len, d_model] in NumPy's own float64, with an angle for every column."""
    seq_len, d_model = out.shape
    column = np.arange(d_model)[None, :]
    angle = np.arange(seq_len)[:, None] / np.power(10000, (2 * (column // 2)) / np.float64(d_model))
    angle[:, 0::2] = np.sin(angle[:, 0::2])
    angle[:, 1::2] = np.cos(angle[:, 1::2])
    out[:] = angle
    return out
