# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of torch, JAX and ONNX Runtime, given as they are: in place, as outputs and as inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.refusals import naming

pytestmark = pytest.mark.peers

encoding: Any = fastpe.PositionalEncoding(64)
rope: Any = fastpe.RotaryEmbedding(64, interleaved=False)
x = np.random.default_rng(5).standard_normal((2, 7, 64)).astype(np.float32)
DTYPES = ["float32", "float64", "float16", "bfloat16"]


def numpy_dtype(name: str) -> Any:
    return pytest.importorskip("ml_dtypes").bfloat16 if name == "bfloat16" else name


def plain(tensor: Any) -> Any:
    """The numbers of a tensor of torch."""
    torch = pytest.importorskip("torch")
    if tensor.dtype != torch.bfloat16:
        return tensor.numpy()
    return tensor.view(torch.uint16).numpy().view(numpy_dtype("bfloat16"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    expected = x.astype(numpy_dtype(dtype))
    q, k = (torch.from_numpy(x.copy()).to(getattr(torch, dtype)) for _ in range(2))
    apart = q.transpose(0, 1).contiguous().transpose(0, 1)
    assert fastpe.add_(q) is q
    assert encoding.add_(apart) is apart
    for tensor in (q, apart):
        assert plain(tensor).tobytes() == encoding.add(expected).tobytes()
    rotated = rope.rotate_(q, k, seq_axis=-2)
    assert rotated[0] is q
    assert rotated[1] is k
    assert plain(k).tobytes() == rope.rotate(expected, seq_axis=-2).tobytes()
    out = torch.empty(7, 64, dtype=getattr(torch, dtype))
    assert fastpe.encode(7, 64, out=out) is out
    assert plain(out).tobytes() == fastpe.encode(7, 64, dtype=expected.dtype).tobytes()
    new = encoding.add(k, table=out)
    assert new.tobytes() == encoding.add(plain(k), table=plain(out)).tobytes()
    assert fastpe.resize_table(out, (5,), mode="linear").tobytes() == (
        fastpe.resize_table(plain(out), (5,), mode="linear").tobytes()
    )
    cos, sin = (torch.from_numpy(np.ascontiguousarray(x[0, :, half])) for half in (slice(32), slice(32, 64)))
    assert fastpe.rotate_by_tables_(k, cos=cos, sin=sin, interleaved=True, seq_axis=-2) is k
    assert fastpe.identify(torch.from_numpy(fastpe.encode(64, 64)).to(out.dtype)).matches
    ids = torch.arange(7)
    assert encoding.embed(ids, out).tobytes() == encoding.embed(ids.numpy(), plain(out)).tobytes()


def test_tensors_of_torch_that_stand_for_others() -> None:
    torch = pytest.importorskip("torch")
    with_gradient, negative = torch.zeros(2, 64, requires_grad=True), torch.ones(2, 64)._neg_view()
    for call in (encoding.add_, encoding.add, fastpe.add_):
        for tensor, remedy in ((with_gradient, "detach"), (negative, "resolve_neg")):
            with pytest.raises(TypeError, match=naming("x") + f".*{remedy}"):
                call(tensor)
    assert np.array_equal(encoding.add(with_gradient.detach()), encoding.encode(2))
    assert np.array_equal(encoding.add(negative.resolve_neg()), encoding.encode(2) - 1)
    with pytest.raises(TypeError, match=naming("x")):
        encoding.add_(torch.zeros(2, 64, device="meta"))
    with pytest.raises(TypeError, match=naming("dtype") + ".*'float16'"):
        encoding.encode(2, dtype=torch.float16)


@pytest.mark.parametrize("dtype", DTYPES)
def test_jax(dtype: str) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    expected = x.astype(numpy_dtype(dtype))
    array = jax.numpy.asarray(expected)
    for call in (encoding.add_, fastpe.add_, lambda a: rope.rotate_(a, seq_axis=-2)):
        with pytest.raises(ValueError, match=naming("x") + r".*np\.array\(x\)"):
            call(array)
    assert np.asarray(array).tobytes() == expected.tobytes()
    copy = np.array(array)  # as the message says
    assert encoding.add_(copy).tobytes() == encoding.add(expected).tobytes()
    assert encoding.add(array).tobytes() == encoding.add(expected).tobytes()
    assert rope.rotate(array, positions=jax.numpy.arange(7), seq_axis=-2).tobytes() == (
        rope.rotate(expected, seq_axis=-2).tobytes()
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_onnx_runtime(dtype: str) -> None:
    onnxruntime, onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    expected = x.astype(numpy_dtype(dtype))
    memory = expected.copy()
    if dtype == "bfloat16":
        value = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(memory, onnx.TensorProto.BFLOAT16)
    else:
        value = onnxruntime.OrtValue.ortvalue_from_numpy(memory)
    assert fastpe.add_(value) is value
    assert rope.rotate_(value, seq_axis=-2) is value
    wanted = rope.rotate(encoding.add(expected), seq_axis=-2)
    assert memory.tobytes() == wanted.tobytes()
    assert encoding.add(value, offset=3).tobytes() == encoding.add(wanted, offset=3).tobytes()
