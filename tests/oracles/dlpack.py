# SPDX-License-Identifier: BSD-3-Clause
"""A producer of DLPack's capsules whose every field a test can set, written with ctypes from the published ABI."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
READ_ONLY, IS_COPIED = 1, 2
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
BFLOAT = 4


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_alive: dict[int, Any] = {}  # what tensors point to, until they are deleted


class Producer:
    """The memory of an array. `versioned` is None for a library that does not know `max_version`."""

    def __init__(
        self,
        array: Array,
        *,
        versioned: bool | None = True,
        major: int = 1,
        flags: int = 0,
        device: tuple[int, int] = (1, 0),
        dtype: tuple[int, int, int] | None = None,  # code, bits, lanes
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = (),  # in elements; None: a null pointer
        byte_offset: int = 0,
        is_null: bool = False,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        self.array, self.versioned, self.major, self.flags, self.device = array, versioned, major, flags, device
        self.dtype = dtype or (CODES[array.dtype.kind], 8 * array.itemsize, 1)
        self.lengths = array.shape if shape is None else tuple(shape)
        self.strides = [stride // array.itemsize for stride in array.strides] if strides == () else strides
        self.byte_offset, self.is_null, self.meanwhile = byte_offset, is_null, meanwhile
        self.made = self.deleted = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        if options and self.versioned is None:
            raise TypeError("no keywords")
        self.meanwhile()
        managed: Any = _ManagedVersioned() if options and self.versioned else _Managed()
        name = b"dltensor_versioned" if options and self.versioned else b"dltensor"
        if options and self.versioned:
            managed.major, managed.flags = self.major, self.flags
        address = ctypes.addressof(managed)

        def forget(_: int) -> None:
            self.deleted += 1
            _alive.pop(address)

        delete = _Deleter(forget)
        shape = (ctypes.c_int64 * len(self.lengths))(*self.lengths)
        strides: Any = None if self.strides is None else (ctypes.c_int64 * len(self.strides))(*self.strides)
        managed.deleter = ctypes.cast(delete, ctypes.c_void_p)
        tensor = managed.tensor
        data = self.array.__array_interface__["data"][0] - self.byte_offset
        tensor.data, tensor.byte_offset = None if self.is_null else data, self.byte_offset
        tensor.device_type, tensor.device_id = self.device
        tensor.ndim, (tensor.code, tensor.bits, tensor.lanes) = len(self.lengths), self.dtype
        tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
        tensor.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
        _alive[address] = managed, shape, strides, delete, self.array, name
        self.made += 1
        return _new(address, name, ctypes.cast(_destroy, ctypes.c_void_p))


def _delete_unused(capsule: int) -> None:
    """Of a capsule: it deletes the tensor that nobody took."""
    address, get = None, ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
    valid = ctypes.pythonapi["PyCapsule_IsValid"]
    valid.restype, valid.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
    for name in (b"dltensor", b"dltensor_versioned"):
        if valid(capsule, name):
            address = get(capsule, name)
    if address is not None:
        _alive[address][3](address)


_destroy = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_delete_unused)


def bfloat16_bits(array: Array) -> Array:
    """The upper halves of float32 numbers, as uint16."""
    return (np.ascontiguousarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16)
