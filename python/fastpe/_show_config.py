# SPDX-License-Identifier: BSD-3-Clause
"""What this build is and what it uses on this machine."""

from __future__ import annotations

import os
from typing import Any, Literal, overload

import numpy as np

from fastpe import _core
from fastpe._arguments import choice, names_keywords

# The import reports a wrong FASTPE_* variable, so that no call has to. It raises a ValueError here, since an extension
# module's own initialisation would turn it into an ImportError.
_core.config()

__version__: str = _core.__version__

_environment_variables = ("FASTPE_ISA", "FASTPE_NUM_THREADS", "FASTPE_STREAMING_BYTES", "OMP_NUM_THREADS")


@overload
def show_config(mode: Literal["stdout"] = ...) -> None: ...
@overload
def show_config(mode: Literal["dicts"]) -> dict[str, Any]: ...
@names_keywords
def show_config(mode: Literal["stdout", "dicts"] = "stdout") -> dict[str, Any] | None:
    """Describe the build, and what it uses on this machine: print it, or return it, as ``numpy.show_config`` does.

    Parameters
    ----------
    mode : {"stdout", "dicts"}, optional
        Whether to print JSON or to return a dict.

    Returns
    -------
    dict or None
        With "dicts": ``version``, ``compiler``, ``openmp``, ``instruction_set`` (the one in use), ``available_instruction_sets``
        (best first), ``threads`` (of a call without `num_threads`), ``streaming_bytes`` (larger outputs in float32 and
        float64 may bypass the cache), ``kept_row_bytes`` (of all rows that encoders keep now), ``python``, ``numpy``,
        ``machine``, and ``environment``: the variables that are set and that fastpe reads.

    Examples
    --------
    >>> import fastpe
    >>> config = fastpe.show_config("dicts")
    >>> config["instruction_set"] in config["available_instruction_sets"]
    True
    """
    import json
    import platform

    config = {
        "version": __version__,
        **_core.config(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "environment": {name: os.environ[name] for name in _environment_variables if name in os.environ},
    }
    if choice("mode", mode, ("stdout", "dicts")) == "dicts":
        return config
    print(json.dumps(config, indent=2))
    return None
