"""Vectors on NVIDIA GPUs, of CuPy, torch, JAX or whoever describes its arrays; none of them is imported."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import pathlib
import sys
from typing import Any

import numpy as np

from . import _dlpack
from ._dlpack import Place

#: CUDA's legacy default stream, in DLPack and in the driver.
LEGACY = 1


@functools.cache
def find_compiler() -> str | None:
    """Tells the library where this interpreter's ``nvidia`` packages keep NVRTC, the compiler of a GPU's kernels.

    The library looks into the environments that the shell knows of; a Python that was started by its full path is
    none of them. A ``RESIDUA_NVRTC`` that is set already stays. The same holds for cuDSS, which factorises on a GPU
    where it is installed, and for ``RESIDUA_CUDSS``.
    """
    _find("RESIDUA_CUDSS", "libcudss.so*", ("cu13/lib", "cu12/lib"))
    return _find("RESIDUA_NVRTC", "libnvrtc.so*", ("cu13/lib", "cuda_nvrtc/lib", "cu12/lib"))


def _find(variable: str, file: str, folders: tuple[str, ...]) -> str | None:
    if variable in os.environ:
        return os.environ[variable]
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return None
    roots = [pathlib.Path(place) for place in (spec.submodule_search_locations or [])] if spec else []
    for below in folders:
        for root in roots:
            folder = root / below
            if any(folder.glob(file)):
                os.environ[variable] = str(folder)
                return str(folder)
    return None


@functools.cache
def _driver() -> Any:
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuPointerGetAttribute.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64]
    driver.cuStreamSynchronize.argtypes = [ctypes.c_void_p]
    driver.cuDeviceGet.argtypes = [ctypes.c_void_p, ctypes.c_int]
    driver.cuDevicePrimaryCtxRetain.argtypes = [ctypes.c_void_p, ctypes.c_int]
    driver.cuCtxPushCurrent_v2.argtypes = [ctypes.c_void_p]
    driver.cuCtxPopCurrent_v2.argtypes = [ctypes.c_void_p]
    return driver


def _check(status: int, what: str) -> None:
    if status != 0:
        raise RuntimeError(f"cuda: {what} failed with error {status}")


@functools.cache
def _context(ordinal: int) -> int:
    device, context = ctypes.c_int(), ctypes.c_void_p()
    _check(_driver().cuDeviceGet(ctypes.addressof(device), ordinal), "asking for the device")
    _check(_driver().cuDevicePrimaryCtxRetain(ctypes.addressof(context), device), "opening the device")
    return context.value or 0


def _wait(ordinal: int, stream: int) -> None:
    """Waits, without the interpreter's lock, until a stream has done what was queued on it."""
    driver = _driver()
    _check(driver.cuCtxPushCurrent_v2(_context(ordinal)), "entering the device")
    try:
        _check(driver.cuStreamSynchronize(stream), "waiting for the producer's stream")
    finally:
        old = ctypes.c_void_p()
        driver.cuCtxPopCurrent_v2(ctypes.addressof(old))


def _by_interface(array: Any) -> Place:
    """Where an array lies by the CUDA array interface, its stream waited for."""
    interface = array.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise ValueError("a masked array has no values to solve for")
    shape = tuple(int(extent) for extent in interface["shape"])
    dtype = np.dtype(interface["typestr"])
    strides = interface.get("strides")
    if strides is None:
        strides = tuple(int(np.prod(shape[i + 1 :], dtype=np.int64)) * dtype.itemsize for i in range(len(shape)))
    address = int(interface["data"][0])
    ordinal = ctypes.c_int(0)
    if address:
        # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        status = _driver().cuPointerGetAttribute(ctypes.addressof(ordinal), 9, address)
        _check(status, "asking for an address's device")
    stream = interface.get("stream")
    if stream == 0:
        raise ValueError("stream 0 of the CUDA array interface is ambiguous: 1 or 2 is needed")
    if stream is not None:
        _wait(ordinal.value, int(stream))
    return Place(address, shape, tuple(strides), dtype, (_dlpack.CUDA, ordinal.value), array)


def place(array: Any) -> Place:
    """Where an array on a GPU lies, when all that writes it has ended.

    DLPack comes first, for it orders streams: torch's CUDA array interface names none. The host waits.
    """
    if _dlpack.is_on_gpu(array):
        found = _dlpack.place(array, LEGACY)
        _wait(found.device[1], LEGACY)
        return found
    return _by_interface(array)


def is_packed(found: Place) -> bool:
    """Whether the values lie one behind the other, column after column."""
    step = found.dtype.itemsize
    for extent, stride in zip(found.shape, found.strides):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True


def is_on_gpu(array: Any) -> bool:
    """Whether an array says that it lies on an NVIDIA GPU. Nothing is imported to find out."""
    if isinstance(array, (np.ndarray, np.generic, list, tuple, int, float, complex)):
        return False
    return _dlpack.is_on_gpu(array) or getattr(array, "__cuda_array_interface__", None) is not None


def ordinal_of(array: Any) -> int:
    """The number of the GPU on which an array lies."""
    return place(plain(array)).device[1]


def plain(array: Any) -> Any:
    """An array without torch's gradient and lazy conjugation, which neither protocol exports."""
    for name in ("detach", "resolve_conj", "resolve_neg"):
        if hasattr(array, name):
            array = getattr(array, name)()
    return array


def _package(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


def _like(b: Any, shape: tuple[int, ...], x0: Any) -> Any:
    """A new array of b's kind on b's device, column after column: x0's values, or zeros. None for other kinds.

    JAX's arrays cannot be written to.
    """
    if _package(b) == "torch":
        torch = sys.modules["torch"]
        backwards = tuple(reversed(shape))
        x = torch.zeros(backwards, dtype=b.dtype, device=b.device).permute(*reversed(range(len(shape))))
        return x if x0 is None else x.copy_(plain(x0))
    if _package(b) == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(b.device.id):
            x = cupy.zeros(shape, dtype=b.dtype, order="F")
            if x0 is not None:
                x[...] = x0
        return x
    return None


def _columns(b: Any) -> Any:
    """b with its columns one behind the other: itself where they lie so, else a copy on its device."""
    if _package(b) == "torch":
        return b.contiguous() if b.dim() == 1 else b.t().contiguous().t()
    return sys.modules["cupy"].asfortranarray(b)


def solve(solver: Any, ordinal: int | None, b: Any, x0: Any) -> tuple[Any, Any]:
    """Solves with a right-hand side on a GPU; x is an array of the same kind there.

    ``ordinal`` is the GPU of the solver, None for the CPU. Where b is on it and of the solver's type, nothing goes
    through the host. Otherwise, and for JAX, b goes to the host and x comes back.
    """
    rows, columns = solver.shape
    shape = tuple(int(extent) for extent in b.shape)
    if len(shape) not in (1, 2) or shape[0] != rows:
        raise ValueError(f"b has shape {shape}: ({rows},) or ({rows}, k) is needed")
    target = (columns, *shape[1:])
    if x0 is not None and tuple(x0.shape) != target:
        raise ValueError(f"x0 has shape {tuple(x0.shape)}: {target} is needed")
    several = len(shape) == 2 and shape[1] != 1
    if ordinal is not None and 0 not in shape and _package(b) in ("torch", "cupy"):
        given = _columns(plain(b))
        right = place(given)
        if right.dtype == solver.dtype and right.device[1] == ordinal:
            x = _like(b, target, x0)
            left = place(x)
            if not is_packed(right) or not is_packed(left):
                raise RuntimeError("columns of a copy do not lie one behind the other")
            reports = solver._engine.solve_device(
                ordinal, (right.address, int(np.prod(shape))), (left.address, int(np.prod(target))), several
            )
            del right, left
            return x, reports if several else reports[0]
    start = None if x0 is None else to_host(x0)
    x, report = solver._solve_host(to_host(b), start, None, None)
    return back(b, x), report


def to_host(array: Any) -> np.ndarray:
    """A copy on the host of an array of CuPy, torch, JAX or anything that NumPy can read."""
    if isinstance(array, np.ndarray):
        if isinstance(array, np.ma.MaskedArray):
            raise TypeError("a masked array: fill its gaps first")
        return array
    if _package(array) in ("cupy", "cupyx"):
        return array.get()
    if hasattr(array, "cpu") and hasattr(array, "detach"):
        return plain(array).cpu().numpy()
    if hasattr(array, "copy_to_host"):
        return array.copy_to_host()
    return np.asarray(array)


def back(b: Any, x: np.ndarray) -> Any:
    """x as an array of b's kind on b's device; on the host where that kind is not known."""
    if not is_on_gpu(b):
        return x
    if _package(b) == "torch":
        return sys.modules["torch"].as_tensor(np.ascontiguousarray(x), device=b.device)
    if _package(b) == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(b.device.id):
            return cupy.asarray(x)
    if _package(b) in ("jax", "jaxlib"):
        return sys.modules["jax"].device_put(x, next(iter(b.devices())))
    return x
