# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of other libraries, by DLPack: in place and as outputs without a copy, by a producer that can be wrong too."""

from __future__ import annotations

import gc
import pathlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fastpe

from ..arrays import test_inputs as inputs
from ..arrays.test_inputs import READS, TARGETS, argument_of, grids, qwen
from ..arrays.test_inputs import tokens as ids
from ..oracles.dlpack import BFLOAT, IS_COPIED, READ_ONLY, Producer, bfloat16_bits
from ..oracles.reference import Array, assert_same_bits
from ..oracles.refusals import naming

encoding: Any = fastpe.PositionalEncoding(8)
rng = np.random.default_rng(3)
x = rng.standard_normal((2, 5, 8)).astype(np.float32)
FORMS: dict[str, Callable[[Array], Producer]] = {
    "versioned": Producer,
    "not": lambda array: Producer(array, versioned=False),
    "keywords refused": lambda array: Producer(array, versioned=None),
    "null strides": lambda array: Producer(array, strides=None),
    "byte offset": lambda array: Producer(array, byte_offset=24),
    **{f"device {device}": lambda array, device=device: Producer(array, device=(device, 0)) for device in (3, 11, 13)},  # type: ignore[misc]
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TARGETS)
def test_what_is_written_to_is_the_memory_itself(name: str, form: str) -> None:
    before = inputs.x.reshape(6, 8) if name == "resize out" else inputs.x
    plain, memory = before.copy(), before.copy()
    TARGETS[name](plain)
    producer = FORMS[form](memory)
    written = TARGETS[name](producer)
    assert (written[-1] if isinstance(written, tuple) else written) is producer
    del written
    assert_same_bits(memory, plain)
    assert not np.array_equal(memory, before)
    assert producer.made == producer.deleted > 0


@pytest.fixture
def no_garbage_collector() -> Iterator[None]:
    """What a call keeps in a circle of references is then kept for good."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("name", READS)
def test_what_is_read_is_an_array_of_any_library(name: str, no_garbage_collector: None) -> None:
    made: list[Producer] = []

    def tensor(array: Array) -> Producer:
        made.append(Producer(array))
        return made[-1]

    assert_same_bits(READS[name](tensor), READS[name](lambda array: array))
    assert all(producer.made == producer.deleted > 0 for producer in made)


def test_ids_and_masks_are_written_to_a_tensor() -> None:
    plain = fastpe.text_inputs(qwen, ids, image_grid_thw=grids)["position_ids"]
    memory = np.zeros_like(plain)
    producer: Any = Producer(memory)
    assert fastpe.text_inputs(qwen, ids, image_grid_thw=grids, out=producer)["position_ids"] is producer
    assert np.array_equal(memory, plain)
    ml_dtypes = pytest.importorskip("ml_dtypes")
    bits = np.zeros((4, 4), np.uint16)
    for dtype in (None, "bfloat16"):
        bits[...] = 1
        mask: Any = Producer(bits, dtype=(BFLOAT, 16, 1))
        assert fastpe.attention_mask(4, causal=True, dtype=dtype, out=mask) is mask
        expected = fastpe.attention_mask(4, causal=True, dtype=ml_dtypes.bfloat16)
        assert np.array_equal(bits, expected.view(np.uint16))


def test_a_graphs_inputs_are_written_to_a_tensor() -> None:
    plain = fastpe.vision_inputs(qwen, grid_thw=grids)["position_ids"]
    memory = np.zeros_like(plain)
    producer = Producer(memory)
    assert fastpe.vision_inputs(qwen, grid_thw=grids, out={"position_ids": producer})["position_ids"] is producer
    assert np.array_equal(memory, plain)
    read_only = np.zeros_like(plain)
    read_only.flags.writeable = False
    for wrong in (Producer(memory, flags=READ_ONLY), read_only):
        with pytest.raises(ValueError, match="out"):
            fastpe.vision_inputs(qwen, grid_thw=grids, out={"position_ids": wrong})


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_dtypes_and_strides(dtype: str) -> None:
    wide = x[:, ::-1].transpose(0, 2, 1).copy().transpose(0, 2, 1)
    if dtype == "bfloat16":
        memory, code = np.asfortranarray(bfloat16_bits(wide)), (BFLOAT, 16, 1)
        ml_dtypes = pytest.importorskip("ml_dtypes")
        plain = memory.view(ml_dtypes.bfloat16).copy()
    else:
        memory, code = np.asfortranarray(wide.astype(dtype)), None
        plain = memory.copy()
    encoding.add_(plain)
    encoding.add_(Producer(memory, dtype=code))
    assert memory.tobytes() == plain.tobytes()
    new = encoding.add(Producer(memory, dtype=code), offset=3)
    assert_same_bits(new, encoding.add(memory.view(plain.dtype), offset=3))


def test_bfloat16_without_ml_dtypes(run_script: Callable[..., str]) -> None:
    script = """
        import sys
        sys.modules["ml_dtypes"] = None
        import numpy as np, fastpe
        from tests.oracles.dlpack import BFLOAT, Producer, bfloat16_bits
        x, encoding = np.linspace(-2, 2, 80, dtype=np.float32).reshape(2, 5, 8), fastpe.PositionalEncoding(8)
        memory, out = bfloat16_bits(x), np.empty((2, 5, 8), np.uint16)
        exact = (memory.astype(np.uint32) << 16).view(np.float32) + encoding.encode(5, dtype=np.float64)
        tensor, to = Producer(memory, dtype=(BFLOAT, 16, 1)), Producer(out, dtype=(BFLOAT, 16, 1))
        try:
            encoding.add(tensor)
        except TypeError as error:
            assert "ml_dtypes" in str(error)
        else:
            raise AssertionError("there is no dtype for the result")
        assert encoding.add(tensor, out=to) is to and encoding.add_(tensor) is tensor
        assert (out == memory).all()
        assert abs((out.astype(np.uint32) << 16).view(np.float32) - exact).max() < 2**-7
        learned, points = np.linspace(-2, 2, 80, dtype=np.float32).reshape(10, 8), np.linspace(0, 3, 10).reshape(5, 2)
        rows = Producer(bfloat16_bits(learned), dtype=(BFLOAT, 16, 1))
        for shape, call in (
            ((5, 8), lambda **more: fastpe.encode(5, 8, **more)),
            ((12,), lambda **more: fastpe.alibi_slopes(12, **more)),
            ((3, 3), lambda **more: fastpe.attention_mask(3, causal=True, window=2, **more)),
            ((7, 8), lambda **more: fastpe.encode_grid((2, 3), 8, convention="mae2d", class_tokens=1, **more)),
            ((2, 3, 8), lambda **more: fastpe.encode_grid((2, 3), 8, convention="detr", valid=np.ones((2, 3), bool), **more)),
            ((5, 10), lambda **more: fastpe.encode_coordinates(points, 8, convention="mae2d", include_input=True, **more)),
            ((4, 8), lambda **more: fastpe.resize_table(rows, (2, 2), mode="bilinear", trained_shape=(2, 5), **more)),
        ):
            out = np.zeros(shape, np.uint16)
            to = Producer(out, dtype=(BFLOAT, 16, 1))
            assert call(dtype="bfloat16", out=to) is to
            found, exact = (out.astype(np.uint32) << 16).view(np.float32), call(dtype=np.float32)
            assert abs(found - exact).max() <= 2**-8 * abs(exact).max() and found.any(), shape
            try:
                call(dtype="bfloat16")
            except TypeError as error:
                assert "pip install ml_dtypes, or pass out=" in str(error)
            else:
                raise AssertionError("there is no dtype for the result")
    """
    run_script(script, PYTHONPATH=str(pathlib.Path(__file__).parents[2]))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("flags", [READ_ONLY, IS_COPIED])
def test_memory_that_is_not_to_be_written_is_refused(name: str, flags: int) -> None:
    memory = inputs.x.copy()
    producer = Producer(memory, flags=flags)
    with pytest.raises(ValueError, match=naming(argument_of(name))):
        TARGETS[name](producer)
    assert_same_bits(memory, inputs.x)
    assert producer.made == producer.deleted > 0
    assert_same_bits(encoding.add(producer), encoding.add(inputs.x))


class WithBuffer(bytes):
    """As an array of JAX: its capsule says nothing, and its buffer cannot be written."""

    def __dlpack__(self) -> Any:
        return Producer(x.copy(), versioned=False).__dlpack__()


class OfArrow(Producer):
    """As an array of pyarrow, which is immutable."""

    def __arrow_c_array__(self, *_: Any) -> None:
        raise NotImplementedError


def test_a_capsule_without_flags_is_not_written_if_the_object_is_immutable() -> None:
    for wrong in (WithBuffer(), OfArrow(x.copy(), versioned=None)):
        with pytest.raises(ValueError, match=naming("x")):
            encoding.add_(wrong)


WRONG: dict[str, tuple[type[Exception], dict[str, Any]]] = {
    "lanes": (TypeError, {"dtype": (2, 32, 2)}),
    "bits": (TypeError, {"dtype": (2, 8, 1)}),
    "code": (TypeError, {"dtype": (3, 64, 1)}),
    "device": (TypeError, {"device": (2, 0)}),
    "version": (TypeError, {"major": 2}),
    "axes": (ValueError, {"shape": (1,) * 33, "strides": (1,) * 33}),
    "negative size": (ValueError, {"shape": (2, -5, 8)}),
    "no data": (ValueError, {"is_null": True}),
    "huge": (ValueError, {"shape": (2**61, 2**61, 8)}),
    "far strides": (ValueError, {"strides": (2**62, 8, 1)}),
}


@pytest.mark.parametrize("name", WRONG)
def test_tensors_that_are_none_are_refused(name: str) -> None:
    error, fields = WRONG[name]
    memory = x.copy()
    for call in (encoding.add_, encoding.add):
        producer = Producer(memory, **fields)
        with pytest.raises(error, match=naming("x")) as caught:
            call(producer)
        assert caught.type is error
        assert producer.made == producer.deleted == 1
    assert_same_bits(memory, x)


@pytest.mark.parametrize("shape", [(0, 5, 8), (2, 0, 8), (2, 5, 0)])
def test_empty_tensors(shape: tuple[int, ...]) -> None:
    for strides in (None, (-(2**63), 2**63 - 1, 2**62)):
        producer = Producer(np.empty(shape, np.float32), is_null=True, strides=strides)
        assert encoding.add_(producer) is producer
        assert encoding.add(producer).shape == shape


def test_strides_of_axes_of_one_element_may_be_any_numbers() -> None:
    memory = x[:1].copy()
    assert encoding.add_(Producer(memory, strides=(-(2**63), 8, 1))) is not None
    assert_same_bits(memory, encoding.add(x[:1]))


class Raising:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __dlpack__(self, **options: Any) -> Any:
        raise self.error


@pytest.mark.parametrize("error", [BufferError("of its own"), TypeError("of its own"), RuntimeError("of its own")])
def test_a_producer_that_raises(error: Exception) -> None:
    for call in (encoding.add_, encoding.add):
        with pytest.raises(TypeError, match=naming("x") + ".*of its own"):
            call(Raising(error))


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, SystemExit])
def test_errors_that_are_not_about_the_object_pass(error: type[BaseException]) -> None:
    for call in (encoding.add_, encoding.add):
        with pytest.raises(error):
            call(Raising(error()))


class Gives(Raising):
    def __init__(self, given: Any) -> None:
        self.given = given

    def __dlpack__(self, **options: Any) -> Any:
        return self.given


def test_capsules_that_are_none_or_used() -> None:
    memory = x.copy()
    used = Gives(Producer(memory).__dlpack__(max_version=(1, 0)))
    assert encoding.add_(used) is used
    for wrong in (used, Gives(None), Gives(3)):
        with pytest.raises(TypeError, match=naming("x")):
            encoding.add_(wrong)
    assert_same_bits(memory, encoding.add(x))


def test_a_call_that_is_refused_later_gives_the_tensor_back() -> None:
    producer = Producer(x.copy())
    with pytest.raises(ValueError, match=naming("positions")):
        encoding.add_(producer, positions=[0, 1])
    assert producer.made == producer.deleted == 1


def test_a_tensor_lives_until_the_call_ends() -> None:
    producer = Producer(x.copy())

    class Positions:
        def __array__(self, *_: Any, **__: Any) -> Array:
            gc.collect()
            assert producer.made == 1
            assert producer.deleted == 0
            return np.arange(5)

    encoding.add_(producer, positions=Positions())
    assert producer.made == producer.deleted


def test_a_producer_that_changes_another_argument_meanwhile() -> None:
    target = np.zeros((2, 5, 8), np.float32)

    def change() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy 2.5
            target.shape = (5, 2, 8)

    table = Producer(np.ones((5, 8), np.float32), meanwhile=change)
    assert encoding.add_(target, table=table) is target
    assert target.shape == (5, 2, 8)
    assert (target == 1).all()


class Negated(Producer):
    """As a tensor of torch, whose memory has the negative of its numbers."""

    def is_neg(self) -> bool:
        return True


def test_a_tensor_that_is_the_negative_of_its_memory_is_refused() -> None:
    x = np.ones((2, 8), np.float32)
    with pytest.raises(TypeError, match=r"^x .*resolve_neg"):
        fastpe.add_(Negated(x))
    assert (x == 1).all()
