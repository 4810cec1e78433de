# SPDX-License-Identifier: BSD-3-Clause
"""A server's application, loaded before its workers are forked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import fastpe

ROWS, D_MODEL = 2048, 512

# Warming up, as servers do: the parent of all workers uses threads.
fastpe.add_(np.zeros((ROWS, D_MODEL), np.float32), num_threads=2)


def application(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    """Encode at the position that the query string names."""
    x = np.zeros((ROWS, D_MODEL), np.float32)
    fastpe.add_(x, offset=int(environ["QUERY_STRING"]), num_threads=2)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [hashlib.sha256(x.tobytes()).hexdigest().encode()]
