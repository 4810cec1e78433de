# SPDX-License-Identifier: BSD-3-Clause
"""What people use instead: NumPy, and torch, numba and JAX where they are installed."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Call = Callable[[], Any]


@functools.cache
def module(name: str) -> ModuleType | None:
    """An optional module, imported when first asked for."""
    return importlib.import_module(name) if importlib.util.find_spec(name) is not None else None


def use_threads(count: int) -> None:
    """Give the peers that can be told as many threads as fastpe uses."""
    torch, numba = module("torch"), module("numba")
    # Told what it does already, torch takes a hundred times as long for small encodings.
    if torch is not None and torch.get_num_threads() != count:
        torch.set_num_threads(count)
    if numba is not None:
        numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))


# ---- NumPy


def numpy_float32_idiom(out: Array) -> Array:
    """The usual few lines, all in float32."""
    seq_len, d_model = out.shape
    position = np.arange(seq_len, dtype=np.float32)[:, None]
    frequency = np.exp(np.arange(0, d_model, 2, dtype=np.float32) * np.float32(-math.log(10000.0) / d_model))
    angle = position * frequency
    out[:, 0::2] = np.sin(angle)
    out[:, 1::2] = np.cos(angle)
    return out


def numpy_float64_idiom(out: Array) -> Array:
    """The usual few lines in NumPy's own float64: an angle for every column, stored in float32."""
    seq_len, d_model = out.shape
    column = np.arange(d_model)[None, :]
    angle = np.arange(seq_len)[:, None] / np.power(10000, (2 * (column // 2)) / np.float64(d_model))
    angle[:, 0::2] = np.sin(angle[:, 0::2])
    angle[:, 1::2] = np.cos(angle[:, 1::2])
    out[:] = angle
    return out


def numpy_rebuilt_chunk(position: int, chunk: Array) -> Array:
    """What streaming front ends do for every chunk: encode everything so far, keep the tail; sine | cosine."""
    frames, d_model = chunk.shape[-2:]
    increment = math.log(10000.0) / (d_model / 2 - 1)
    frequency = np.exp(np.arange(d_model // 2, dtype=np.float32) * np.float32(-increment))
    angle = np.arange(position + frames, dtype=np.float32)[:, None] * frequency
    return np.asarray(chunk + np.concatenate([np.sin(angle), np.cos(angle)], axis=1)[position:])


def numpy_timesteps(steps: Array, d_model: int) -> Array:
    frequency = np.exp(np.arange(d_model // 2, dtype=np.float32) * np.float32(-math.log(10000.0) / (d_model // 2)))
    angle = steps[:, None] * frequency
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1)


# ---- torch


def torch_threads() -> int:
    torch = module("torch")
    return 0 if torch is None else int(torch.get_num_threads())


def _torch_table(torch: Any, out: Any) -> Any:
    seq_len, d_model = out.shape
    position = torch.arange(seq_len, dtype=torch.float32)[:, None]
    frequency = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float32) * (-math.log(10000.0) / d_model))
    angle = position * frequency
    out[:, 0::2] = torch.sin(angle)
    out[:, 1::2] = torch.cos(angle)
    return out


def torch_encode(out: Array, *, compiled: bool) -> Call | None:
    torch = module("torch")
    if torch is None:
        return None
    tensor = torch.from_numpy(out)
    function = _compiled(functools.partial(_torch_table, torch)) if compiled else functools.partial(_torch_table, torch)
    return lambda: function(tensor).numpy()


def torch_add(x: Array, table: Array, *, compiled: bool) -> Call | None:
    """`add_` of a resident table to a resident tensor on x's memory."""
    torch = module("torch")
    if torch is None:
        return None
    tensor, rows = torch.from_numpy(x), torch.from_numpy(table)
    if not compiled:
        return lambda: tensor.add_(rows).numpy()
    function = _compiled(lambda to, addend: to.add_(addend))
    return lambda: function(tensor, rows).numpy()


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    torch: Any = module("torch")
    torch._dynamo.config.recompile_limit = 64
    return torch.compile(function, dynamic=False)  # type: ignore[no-any-return]


# ---- numba


def numba_threads() -> int:
    numba = module("numba")
    return 0 if numba is None else int(numba.get_num_threads())


@functools.cache
def _numba_functions() -> tuple[Callable[[Array], None], Callable[[Array, Array], None]] | None:
    numba = module("numba")
    if numba is None:
        return None
    prange = numba.prange

    def encode(out: Any) -> None:
        seq_len, d_model = out.shape
        frequency = np.empty(d_model // 2)
        for k in range(d_model // 2):
            frequency[k] = 10000.0 ** (-2.0 * k / d_model)
        for position in prange(seq_len):
            for k in range(d_model // 2):
                angle = position * frequency[k]
                out[position, 2 * k] = math.sin(angle)
                out[position, 2 * k + 1] = math.cos(angle)

    def add(x: Any, table: Any) -> None:
        batch, seq_len, d_model = x.shape
        for row in prange(batch * seq_len):
            for column in range(d_model):
                x[row // seq_len, row % seq_len, column] += table[row % seq_len, column]

    return numba.njit(parallel=True)(encode), numba.njit(parallel=True)(add)


def numba_encode(out: Array) -> Call | None:
    functions = _numba_functions()
    if functions is None:
        return None
    encode = functions[0]

    def call() -> Array:
        encode(out)
        return out

    return call


def numba_add(x: Array, table: Array) -> Call | None:
    functions = _numba_functions()
    if functions is None:
        return None
    add = functions[1]

    def call() -> Array:
        add(x, table)
        return x

    return call


# ---- JAX


def jax_encode(out: Array) -> Call | None:
    """JAX arrays are immutable: a new one for every call."""
    jax = module("jax")
    if jax is None:
        return None
    jnp = importlib.import_module("jax.numpy")
    seq_len, d_model = out.shape

    def table() -> Any:
        position = jnp.arange(seq_len, dtype=jnp.float32)[:, None]
        frequency = jnp.exp(jnp.arange(0, d_model, 2, dtype=jnp.float32) * (-math.log(10000.0) / d_model))
        angle = position * frequency
        return jnp.stack([jnp.sin(angle), jnp.cos(angle)], axis=-1).reshape(seq_len, d_model)

    compiled = jax.jit(table)
    return lambda: compiled().block_until_ready()


def jax_add(x: Array, table: Array) -> Call | None:
    """x stays on the NumPy side, as in a host that feeds a jitted function; the table is resident."""
    jax = module("jax")
    if jax is None:
        return None
    rows = jax.device_put(table)
    add = jax.jit(lambda array, addend: array + addend)
    return lambda: add(x, rows).block_until_ready()


def versions() -> dict[str, str]:
    """Of what is installed; nothing is imported."""
    from importlib import metadata

    found = {}
    for name in ("numpy", "ml_dtypes", "torch", "numba", "jax"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
