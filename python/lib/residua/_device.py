"""Vectors on NVIDIA GPUs, of CuPy, torch, JAX or whoever describes its arrays; none of them is imported."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import pathlib
import sys
from typing import Any, NamedTuple

import numpy as np


@functools.cache
def find_compiler() -> str | None:
    """Tells the library where this interpreter's ``nvidia`` packages keep NVRTC, the compiler of a GPU's kernels.

    The library looks into the environments that the shell knows of; a Python that was started by its full path is
    none of them. A ``RESIDUA_NVRTC`` that is set already stays.
    """
    if "RESIDUA_NVRTC" in os.environ:
        return os.environ["RESIDUA_NVRTC"]
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return None
    roots = [pathlib.Path(place) for place in (spec.submodule_search_locations or [])] if spec else []
    for below in ("cu13/lib", "cuda_nvrtc/lib"):
        for root in roots:
            folder = root / below
            if any(folder.glob("libnvrtc.so*")):
                os.environ["RESIDUA_NVRTC"] = str(folder)
                return str(folder)
    return None


class Vector(NamedTuple):
    """An array on a GPU, in one piece."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype
    ordinal: int


@functools.cache
def _driver() -> Any:
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuPointerGetAttribute.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64]
    driver.cuStreamSynchronize.argtypes = [ctypes.c_void_p]
    driver.cuDevicePrimaryCtxRetain.argtypes = [ctypes.c_void_p, ctypes.c_int]
    driver.cuCtxPushCurrent_v2.argtypes = [ctypes.c_void_p]
    driver.cuCtxPopCurrent_v2.argtypes = [ctypes.c_void_p]
    return driver


def _check(status: int, what: str) -> None:
    if status != 0:
        raise RuntimeError(f"cuda: {what} failed with error {status}")


def _ordinal(address: int) -> int:
    """The number of the device on which an address lies."""
    ordinal = ctypes.c_int(-1)
    # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    _check(_driver().cuPointerGetAttribute(ctypes.addressof(ordinal), 9, address), "asking for an address's device")
    return ordinal.value


@functools.cache
def _context(ordinal: int) -> int:
    context = ctypes.c_void_p()
    _check(_driver().cuDevicePrimaryCtxRetain(ctypes.addressof(context), ordinal), "opening the device")
    return context.value or 0


def _wait(array: Any, ordinal: int, stream: Any) -> None:
    """Waits until what writes the array has ended.

    torch names no stream in its interface, and JAX none either: theirs are asked. Of others the interface names the
    stream, and without one the producer says that there is nothing to wait for.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        torch.cuda.current_stream(array.device).synchronize()
        return
    if hasattr(array, "block_until_ready"):
        array.block_until_ready()
        return
    if stream is None:
        return
    if stream == 0:
        raise ValueError("stream 0 of the CUDA array interface is ambiguous: 1 or 2 is needed")
    driver = _driver()
    _check(driver.cuCtxPushCurrent_v2(_context(ordinal)), "entering the device")
    try:
        _check(driver.cuStreamSynchronize(stream), "waiting for the producer's stream")
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.addressof(ctypes.c_void_p()))


def describe(array: Any, *, order: str = "C") -> Vector:
    """Address, shape, type and device of an array that describes itself by the CUDA array interface.

    Raises
    ------
    ValueError
        Where it has gaps: columns have to lie one behind the other (``order="F"``), or it is of one dimension.
    """
    interface = array.__cuda_array_interface__
    shape = tuple(int(extent) for extent in interface["shape"])
    dtype = np.dtype(interface["typestr"])
    strides = interface.get("strides")
    expected = np.empty((0,) + shape[1:], dtype, order="C").strides if order == "C" else None
    if strides is not None and len(shape) == 1 and shape[0] > 1 and tuple(strides) != (dtype.itemsize,):
        raise ValueError("the array has gaps: make it contiguous")
    if len(shape) == 2 and min(shape) > 1:
        have = tuple(strides) if strides is not None else expected
        if have != (dtype.itemsize, dtype.itemsize * shape[0]):
            raise ValueError("several right-hand sides on a GPU must lie one behind the other (Fortran order)")
    if interface.get("mask") is not None:
        raise ValueError("masked arrays have no values to solve for")
    address = int(interface["data"][0])
    ordinal = _ordinal(address) if address else 0
    _wait(array, ordinal, interface.get("stream"))
    return Vector(address, shape, dtype, ordinal)


def _like(b: Any, shape: tuple[int, ...], x0: Any) -> Any:
    """A new array of b's kind on b's device: x0's values, or zeros. Its columns lie one behind the other."""
    package = type(b).__module__.partition(".")[0]
    if package == "torch":
        torch = sys.modules["torch"]
        x = torch.zeros(tuple(reversed(shape)), dtype=b.dtype, device=b.device).permute(*reversed(range(len(shape))))
        if x0 is not None:
            x.copy_(x0.detach())
        return x
    if package == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(b.device.id):
            x = cupy.zeros(shape, dtype=b.dtype, order="F")
            if x0 is not None:
                x[...] = x0
        return x
    return None


def solve(solver: Any, b: Any, x0: Any) -> tuple[Any, Any]:
    """Solves with a right-hand side on a GPU; x is an array of the same kind there.

    Where the solver computes on that GPU and has b's type, nothing goes through the host. Otherwise, and for JAX,
    whose arrays cannot be written to, b goes to the host and x back.
    """
    rows, columns = solver.shape
    shape = tuple(int(extent) for extent in b.shape)
    if len(shape) not in (1, 2) or shape[0] != rows:
        raise ValueError(f"b has shape {shape}: ({rows},) or ({rows}, k) is needed")
    target = (columns, *shape[1:])
    if x0 is not None and tuple(x0.shape) != target:
        raise ValueError(f"x0 has shape {tuple(x0.shape)}: {target} is needed")
    several = len(shape) == 2 and shape[1] != 1
    on_cpu = solver.device.startswith("cpu")
    x = None if on_cpu else _like(_detached(b), target, x0)
    if x is not None and 0 not in shape:
        right = describe(_packed(_detached(b)))
        left = describe(x)
        if right.dtype == solver.dtype and left.ordinal == right.ordinal:
            reports = solver._engine.solve_device(
                right.ordinal, (right.address, int(np.prod(shape))), (left.address, int(np.prod(target))), several
            )
            return x, reports if several else reports[0]
    from . import _matrix

    host, report = solver._solve_host(
        _matrix.to_numpy(b), None if x0 is None else _matrix.to_numpy(x0), None, None
    )
    return _back(b, host), report


def _detached(array: Any) -> Any:
    """An array without torch's gradient, which its description refuses."""
    return array.detach() if hasattr(array, "detach") else array


def _packed(b: Any) -> Any:
    """b with its columns one behind the other: itself, or a copy on its device."""
    if len(b.shape) == 1:
        return b.contiguous() if hasattr(b, "contiguous") else sys.modules["cupy"].ascontiguousarray(b)
    if hasattr(b, "contiguous"):
        return b.t().contiguous().t()
    return sys.modules["cupy"].asfortranarray(b)


def _back(b: Any, x: np.ndarray) -> Any:
    """x on b's device, of b's kind; on the host where that kind is not known."""
    package = type(b).__module__.partition(".")[0]
    if package == "torch":
        return sys.modules["torch"].as_tensor(np.ascontiguousarray(x), device=b.device)
    if package == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(b.device.id):
            return cupy.asarray(x)
    if package in ("jax", "jaxlib"):
        return sys.modules["jax"].device_put(x, next(iter(b.devices())))
    return x
