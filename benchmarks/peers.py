# SPDX-License-Identifier: BSD-3-Clause
"""What people use instead: NumPy, and torch and numba where they are installed."""

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

import fastpe
from benchmarks.answers import Answers
from benchmarks.harness import Check, Contender

Array = npt.NDArray[Any]

float32_idiom, float64_idiom = "NumPy float32 idiom", "NumPy float64 idiom"
numpy_add = "NumPy np.add(x, table, out=x)"
torch_add = "torch add_"


@functools.cache
def module(name: str) -> ModuleType | None:
    """An optional module, imported when first asked for."""
    return importlib.import_module(name) if importlib.util.find_spec(name) is not None else None


def use_threads(count: int) -> None:
    """Give the peers that can be told as many threads as fastpe uses; NumPy's loops have one."""
    torch, numba = module("torch"), module("numba")
    # Told what it does already, torch takes a hundred times as long for small encodings.
    if torch is not None and torch.get_num_threads() != count:
        torch.set_num_threads(count)
    if numba is not None:
        numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))


def encoders(out: Array, answers: Answers, *, compiled: bool) -> list[Contender]:
    # Here, as versions that are only compared lack it.
    from fastpe._cli.rival import usual_float32, usual_float64

    found = [
        Contender(name=float32_idiom, work=lambda: usual_float32(out), check=answers.float32_angles()),
        Contender(name=float64_idiom, work=lambda: usual_float64(out), check=answers.float64_angles()),
    ]
    torch = module("torch")
    if torch is not None:
        tensor = torch.from_numpy(out)
        table = functools.partial(_torch_table, torch)
        functions = {"torch eager": table}
        if compiled:
            torch._dynamo.config.recompile_limit = 64
            functions["torch.compile"] = torch.compile(table, dynamic=False)
        found += [
            Contender(name=name, work=functools.partial(_torch_encode, call, tensor), check=answers.float32_angles())
            for name, call in functions.items()
        ]
    if module("numba") is not None:
        encode = _numba_functions()[0]
        found.append(Contender(name="numba parallel", work=lambda: encode(out), check=answers.float64_angles()))
    return found


def adders(x: Array, table: Array, check: Check) -> list[Contender]:
    """In place, with a table at hand, on resident tensors."""

    def contender(name: str, work: Callable[[], Any]) -> Contender:
        return Contender(name=name, work=work, check=check, encoding="cached", output="in place")

    found = [contender(numpy_add, lambda: np.add(x, table, out=x))]
    torch = module("torch")
    if torch is not None:
        tensor, rows = torch.from_numpy(x), torch.from_numpy(table)
        found.append(contender(torch_add, lambda: tensor.add_(rows).numpy()))
    if module("numba") is not None:
        add = _numba_functions()[1]
        found.append(contender("numba parallel", lambda: add(x, table)))
    return found


def rebuilt_chunk(position: int, chunk: Array) -> Array:
    """What streaming front ends do for every chunk: encode everything so far, keep the tail; sine | cosine."""
    frames, d_model = chunk.shape[-2:]
    increment = math.log(10000.0) / (d_model / 2 - 1)
    frequency = np.exp(np.arange(d_model // 2, dtype=np.float32) * np.float32(-increment))
    angle = np.arange(position + frames, dtype=np.float32)[:, None] * frequency
    return np.asarray(chunk + np.concatenate([np.sin(angle), np.cos(angle)], axis=1)[position:])


numpy_rotary, torch_rotary, onnx_rotary = "NumPy idiom", "torch eager", "onnxruntime"


def rotators(
    x: Array, cosines: Array, sines: Array, check: Check, *, interleaved: bool, heads_inside: bool
) -> list[Contender]:
    """Rotation of x with tables [L, pairs] at hand: [B, heads, L, D], or [B, L, heads, D] with `heads_inside`."""
    cos, sin = (_widened(table, interleaved=interleaved) for table in (cosines, sines))
    if heads_inside:
        cos, sin = cos[:, None], sin[:, None]

    def contender(name: str, work: Callable[[], Any]) -> Contender:
        return Contender(name=name, work=work, check=check, encoding="cached", output="fresh")

    found = [contender(numpy_rotary, lambda: x * cos + _numpy_turned(x, interleaved=interleaved) * sin)]
    torch = module("torch")
    if torch is not None:
        tensor, torch_cos, torch_sin = (torch.from_numpy(each) for each in (x, cos, sin))
        turned = functools.partial(_torch_turned, torch, tensor, interleaved=interleaved)
        found.append(contender(torch_rotary, lambda: (tensor * torch_cos + turned() * torch_sin).numpy()))
    if not heads_inside and module("onnxruntime") is not None and module("onnx") is not None:
        found.append(_onnx_rotator(x, cosines, sines, check, interleaved=interleaved))
    return found


def _widened(table: Array, *, interleaved: bool) -> Array:
    """One value for each column."""
    return np.repeat(table, 2, axis=-1) if interleaved else np.tile(table, (1, 2))


def _numpy_turned(x: Array, *, interleaved: bool) -> Array:
    if interleaved:
        return np.stack([-x[..., 1::2], x[..., 0::2]], axis=-1).reshape(x.shape)
    half = x.shape[-1] // 2
    return np.concatenate([-x[..., half:], x[..., :half]], axis=-1)


def _torch_turned(torch: Any, x: Any, *, interleaved: bool) -> Any:
    if interleaved:
        return torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], dim=-1)


def _onnx_rotator(x: Array, cosines: Array, sines: Array, check: Check, *, interleaved: bool) -> Contender:
    """A graph of one node, whose inputs and output are bound."""
    onnx, runtime = module("onnx"), module("onnxruntime")
    assert onnx is not None
    assert runtime is not None
    helper, names = onnx.helper, ["x", "positions", "cos", "sin"]
    kinds = [onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT]
    node = helper.make_node("RotaryEmbedding", names, ["y"], domain="com.microsoft", interleaved=int(interleaved))
    inputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(names, kinds, strict=True)]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(
        helper.make_graph([node], "rotary", inputs, outputs), opset_imports=versions, ir_version=9
    )
    options = runtime.SessionOptions()
    options.intra_op_num_threads = int(fastpe.show_config()["threads"])
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding, y = session.io_binding(), np.empty_like(x)
    values = dict(zip(names, (x, np.zeros(1, np.int64), cosines, sines), strict=True))
    bound = {name: runtime.OrtValue.ortvalue_from_numpy(value) for name, value in values.items()}
    for name, value in bound.items():
        binding.bind_ortvalue_input(name, value)
    # It shares y's memory.
    binding.bind_ortvalue_output("y", runtime.OrtValue.ortvalue_from_numpy(y))

    def work() -> Array:
        session.run_with_iobinding(binding)
        return y

    return Contender(name=onnx_rotary, work=work, check=check, encoding="cached")


def _torch_encode(function: Callable[[Any], Any], tensor: Any) -> Any:
    return function(tensor).numpy()


def _torch_table(torch: Any, out: Any) -> Any:
    seq_len, d_model = out.shape
    position = torch.arange(seq_len, dtype=torch.float32)[:, None]
    frequency = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float32) * (-math.log(10000.0) / d_model))
    angle = position * frequency
    out[:, 0::2] = torch.sin(angle)
    out[:, 1::2] = torch.cos(angle)
    return out


@functools.cache
def _numba_functions() -> tuple[Callable[[Array], Array], Callable[[Array, Array], Array]]:
    numba: Any = module("numba")
    prange = numba.prange

    def encode(out: Any) -> Any:
        seq_len, d_model = out.shape
        frequency = np.empty(d_model // 2)
        for k in range(d_model // 2):
            frequency[k] = 10000.0 ** (-2.0 * k / d_model)
        for position in prange(seq_len):
            for k in range(d_model // 2):
                angle = position * frequency[k]
                out[position, 2 * k] = math.sin(angle)
                out[position, 2 * k + 1] = math.cos(angle)
        return out

    def add(x: Any, table: Any) -> Any:
        batch, seq_len, d_model = x.shape
        for row in prange(batch * seq_len):
            for column in range(d_model):
                x[row // seq_len, row % seq_len, column] += table[row % seq_len, column]
        return x

    return numba.njit(parallel=True)(encode), numba.njit(parallel=True)(add)


def versions() -> dict[str, str]:
    """Of what is installed; nothing is imported."""
    from importlib import metadata

    found = {}
    for name in ("numpy", "ml_dtypes", "torch", "numba", "onnxruntime"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
