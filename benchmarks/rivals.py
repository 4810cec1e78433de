# SPDX-License-Identifier: BSD-3-Clause
"""Contenders of NumPy, torch and onnxruntime, and a loop in C.

NumPy's loops and the one in C have one thread. torch and onnxruntime have as many threads as fastpe.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import operator
import os
import pathlib
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

import fastpe
from benchmarks import root
from benchmarks.answers import Array, Check
from benchmarks.harness import Contender

_threads = fastpe.show_config("dicts")["threads"]


@functools.cache
def module(name: str) -> Any:
    """An optional module, imported when first asked for, or None."""
    return importlib.import_module(name) if importlib.util.find_spec(name) is not None else None


def both(
    check: Check, work: str, *, torch: str | None = None, way: str = "", kind: Any = "alternative", **values: Any
) -> Iterator[Contender]:
    """NumPy's contender, and torch's where it is installed and its work is not "".

    The work is an expression over `values`, in which `xp` is the library. Each library has copies of the arrays of its own,
    and `own` makes them. A text among the values is an expression over those before it, such as a view.
    """
    for name, xp, own in (("NumPy", np, np.copy), ("torch", module("torch"), _tensor)):
        chosen = work if torch is None or xp is np else torch
        if xp is None or not chosen:
            continue
        # Told what it does already, torch takes a hundred times as long for small encodings.
        if xp is not np and xp.get_num_threads() != _threads:
            xp.set_num_threads(_threads)
        names = {"xp": xp, "own": own, "iadd": operator.iadd, "setitem": operator.setitem}
        for key, value in values.items():
            is_array = isinstance(value, np.ndarray)
            names[key] = own(value) if is_array else eval(value, names) if isinstance(value, str) else value
        yield Contender(name=name + way, work=chosen, names=names, check=_of_any(check), kind=kind)


def _tensor(array: Array) -> Any:
    torch = module("torch")
    if array.dtype.name == "bfloat16":  # torch does not know the dtype of ml_dtypes, and NumPy does not know torch's
        return torch.from_numpy(array.view(np.uint16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def _of_any(check: Check) -> Check:
    """Also of a tensor in bfloat16."""

    def checked(answer: Any) -> float:
        if str(getattr(answer, "dtype", "")) != "torch.bfloat16":
            return check(answer)
        return check(answer.view(module("torch").uint16).numpy().view(module("ml_dtypes").bfloat16))

    return checked


def steps(*works: str) -> str:
    """An expression that does all of them, and has the value of the last one."""
    return f"({', '.join(works)})[-1]"


def frequencies(columns: int) -> Array:
    return np.asarray(np.exp(np.arange(0, columns, 2, dtype=np.float32) * np.float32(-np.log(10000.0) / columns)))


def new_encoding(xp: Any, position: Any, frequency: Any) -> Any:
    angle = position * frequency
    out = xp.empty((len(position), 2 * len(frequency)), dtype=xp.float32)
    xp.sin(angle, out=out[:, 0::2])
    xp.cos(angle, out=out[:, 1::2])
    return out


def new_tables(xp: Any, position: Any, frequency: Any) -> tuple[Any, Any]:
    angle = position * frequency
    return xp.cos(angle), xp.sin(angle)


def onnx_rotate(x: Array, cosines: Array, sines: Array, check: Check, *, interleaved: bool) -> Iterator[Contender]:
    """A graph of one node [B, heads, L, D], whose inputs and output are bound."""
    onnx, runtime = module("onnx"), module("onnxruntime")
    if onnx is None or runtime is None:
        return
    helper, floats, inputs = onnx.helper, onnx.TensorProto.FLOAT, ["x", "positions", "cos", "sin"]
    kinds = [floats, onnx.TensorProto.INT64, floats, floats]
    node = helper.make_node("RotaryEmbedding", inputs, ["y"], domain="com.microsoft", interleaved=int(interleaved))
    values = [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(inputs, kinds, strict=True)]
    graph = helper.make_graph([node], "rotary", values, [helper.make_tensor_value_info("y", floats, None)])
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=9)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = _threads
    options.add_session_config_entry("session.force_spinning_stop", "1")  # between runs: others need the processors
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding, arrays = session.io_binding(), (x, np.zeros(1, np.int64), cosines, sines, np.zeros_like(x))
    *given, y = (runtime.OrtValue.ortvalue_from_numpy(array) for array in arrays)  # they share the arrays' memory
    for name, value in zip(inputs, given, strict=True):
        binding.bind_ortvalue_input(name, value)
    binding.bind_ortvalue_output("y", y)
    names = {"run": session.run_with_iobinding, "binding": binding, "arrays": arrays}
    yield Contender(name="onnxruntime", work=steps("run(binding)", "arrays[-1]"), names=names, check=check)


def interpolate(table: Array, side: int, shapes: list[list[int]], check: Check) -> Iterator[Contender]:
    """torch's own function, of a grid [1, columns, height, width] without gaps."""
    torch = module("torch")
    if torch is None:
        return
    torch.set_num_threads(_threads)
    columns = table.shape[-1]
    grid = _tensor(np.ascontiguousarray(table.T.reshape(1, columns, side, side)))
    names = {"resize": torch.nn.functional.interpolate, "grid": grid, "shapes": shapes}

    def checked(answer: Any) -> float:
        return check(answer[0].flatten(1).T)

    yield Contender(
        name="torch",
        work='[resize(grid, size=shape, mode="bicubic") for shape in shapes][-1]',
        names=names,
        check=checked,
    )


@functools.cache
def _host_loop(compiler: str) -> Any:
    """The loop of examples/c_library, compiled for this machine."""
    with tempfile.TemporaryDirectory() as directory:
        library = pathlib.Path(directory, "host_loop.so")
        flags = ["-std=c99", "-O3", "-shared", "-fPIC"]
        if platform.machine() == "x86_64":  # others may not know it, and need it less
            flags.append("-march=native")
        source = root / "examples" / "c_library" / "host_loops.c"
        subprocess.run([compiler, *flags, str(source), "-o", str(library), "-lm"], check=True)
        return ctypes.CDLL(str(library)).host_loop


def host_loop(x: Array, past: int, check: Check) -> Iterator[Contender]:
    """Of x [tokens, heads, D], where the tokens have gaps between them, into an array without. Without a compiler, none."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None or os.name == "nt":
        return
    out, columns = np.zeros(x.shape, x.dtype), x.strides[0] // x.itemsize
    names: dict[str, Any] = {"loop": _host_loop(compiler), "x": x, "out": out}  # the arrays stay where they are
    names["arguments"] = [ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data), *x.shape, columns]
    names["arguments"] += [ctypes.c_float(10000.0), past]
    yield Contender(name="C loop", work=steps("loop(*arguments)", "out"), names=names, check=check)
