"""The place of an array's values by the DLPack protocol: https://dmlc.github.io/dlpack/latest/python_spec.html."""

from __future__ import annotations

import ctypes
import math
from typing import Any, NamedTuple

import numpy as np

CPU, CUDA, MANAGED = 1, 2, 13

#: Kinds of numbers by DLPack's codes.
KINDS = {0: "i", 1: "u", 2: "f", 5: "c"}


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


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


class Place(NamedTuple):
    """The place of an array in memory. ``owner`` keeps the memory: hold it as long as ``address`` is used."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    device: tuple[int, int]
    owner: Any


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_valid = ctypes.pythonapi.PyCapsule_IsValid
_valid.restype, _valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


def packed_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a contiguous array whose last axis varies fastest."""
    return tuple(math.prod(shape[i + 1 :]) * itemsize for i in range(len(shape)))


def is_on_gpu(array: Any) -> bool:
    """Returns whether an array is in the memory of an NVIDIA GPU, according to DLPack."""
    device = getattr(array, "__dlpack_device__", None)
    if device is None:
        return False
    try:
        return int(device()[0]) in (CUDA, MANAGED)
    except (BufferError, RuntimeError, TypeError, ValueError, AttributeError):
        return False


def place(array: Any, stream: int | None) -> Place:
    """The place of an array. ``stream`` waits for the producer's work (1: CUDA's legacy default stream).

    Strides count bytes.

    Raises
    ------
    TypeError
        If the values have no NumPy type.
    BufferError
        If the producer does not export the array.
    """
    try:
        capsule = array.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:
        capsule = array.__dlpack__(stream=stream)
    if _valid(capsule, b"dltensor_versioned"):
        told = ctypes.cast(_pointer(capsule, b"dltensor_versioned"), ctypes.POINTER(_Versioned)).contents
        if told.major != 1:
            raise BufferError(f"the array comes by DLPack {told.major}.{told.minor}, but version 1 is needed")
        tensor = told.tensor
    elif _valid(capsule, b"dltensor"):
        tensor = ctypes.cast(_pointer(capsule, b"dltensor"), ctypes.POINTER(_Tensor)).contents
    else:
        raise BufferError(f"{capsule!r} is not a DLPack capsule, or was consumed already")
    kind = KINDS.get(tensor.code)
    if kind is None or tensor.lanes != 1 or tensor.bits % 8 != 0:
        raise TypeError(f"values of DLPack's type code {tensor.code} with {tensor.bits} bits are not supported")
    dtype = np.dtype(f"{kind}{tensor.bits // 8}")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[i] * dtype.itemsize for i in range(tensor.ndim))
    else:
        strides = packed_strides(shape, dtype.itemsize)
    # The capsule is not consumed, so it releases the array when it is deleted.
    address = (tensor.data or 0) + tensor.byte_offset
    return Place(address, shape, strides, dtype, (tensor.device_type, tensor.device_id), capsule)
