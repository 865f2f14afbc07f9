"""Vectors and matrices on NVIDIA GPUs, of CuPy, torch, JAX or any package that describes its arrays; none of them is
imported.

The streams of these packages and ours wait for each other by events on the device; the host waits for neither.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import math
import os
import pathlib
import sys
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from . import _dlpack, _residua
from ._dlpack import Place

#: The types of values and of indices whose arrays are used in place, without a copy.
VALUES = ("float32", "float64", "complex64", "complex128")
INDICES = ("int32", "int64")


@functools.cache
def find_compiler() -> str | None:
    """Passes the path of NVRTC, the compiler of GPU kernels, in this interpreter's ``nvidia`` packages to the library.

    The library searches the environments that the shell knows; a Python that was started by its full path is
    none of them. A ``RESIDUA_NVRTC`` that is already set stays. The same holds for cuDSS, which factorises on a GPU
    if it is installed, and for ``RESIDUA_CUDSS``.
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
    return driver


def _check(status: int, what: str) -> None:
    if status != 0:
        raise RuntimeError(f"cuda: {what} failed with error {status}")


def _by_interface(array: Any) -> Place:
    """The place of an array by the CUDA array interface; our stream then waits for the array's stream."""
    interface = array.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise ValueError("masked arrays are not supported: fill the masked entries first")
    shape = tuple(int(extent) for extent in interface["shape"])
    dtype = np.dtype(interface["typestr"])
    strides = interface.get("strides")
    if strides is None:
        strides = _dlpack.packed_strides(shape, dtype.itemsize)
    address = int(interface["data"][0])
    ordinal = ctypes.c_int(0)
    if address:
        # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        status = _driver().cuPointerGetAttribute(ctypes.addressof(ordinal), 9, address)
        _check(status, "looking up the GPU of an array")
    stream = interface.get("stream")
    if stream == 0:
        raise ValueError("stream 0 of the CUDA array interface is ambiguous: use 1 or 2")
    if stream is not None:
        _residua.run_after(ordinal.value, int(stream))
    return Place(address, shape, tuple(strides), dtype, (_dlpack.CUDA, ordinal.value), array)


def place(array: Any) -> Place:
    """The place of an array on a GPU; our stream waits for pending writes to it.

    DLPack comes first, because it orders streams: torch's CUDA array interface names none.
    """
    if _dlpack.is_on_gpu(array):
        ordinal = int(array.__dlpack_device__()[1])
        return _dlpack.place(array, _residua.stream(ordinal))
    return _by_interface(array)


def release(ordinal: int, array: Any) -> None:
    """Makes the package's next work wait for ours on the GPU; if its stream is not known, the host waits.

    Call this before the package can write to the array or free it.
    """
    stream = None
    if package(array) == "torch":
        stream = sys.modules["torch"].cuda.current_stream(ordinal).cuda_stream
    elif package(array) in ("cupy", "cupyx"):
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(ordinal):
            stream = cupy.cuda.get_current_stream().ptr
    if stream is None:
        _residua.wait(ordinal)
    else:
        _residua.run_before(ordinal, int(stream))


def is_packed(found: Place) -> bool:
    """Returns whether the values are contiguous, column by column."""
    step = found.dtype.itemsize
    for extent, stride in zip(found.shape, found.strides):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True


def is_on_gpu(array: Any) -> bool:
    """Returns whether an array is in the memory of an NVIDIA GPU, without importing its package."""
    if isinstance(array, (np.ndarray, np.generic, list, tuple, int, float, complex)):
        return False
    # For CuPy's own type this is known without asking a protocol, which would take longer.
    if package(array) == "cupy" and type(array) is sys.modules["cupy"].ndarray:
        return True
    return _dlpack.is_on_gpu(array) or getattr(array, "__cuda_array_interface__", None) is not None


def ordinal_of(array: Any) -> int:
    """The number of the GPU with an array's memory."""
    if _dlpack.is_on_gpu(array):
        return int(array.__dlpack_device__()[1])
    return _by_interface(array).device[1]


def refuse_gradient(array: Any) -> None:
    """Raises an error for a torch tensor whose gradient would be lost.

    Raises
    ------
    TypeError
        If torch records gradients and the tensor requires one.
    """
    if getattr(array, "requires_grad", False) and sys.modules["torch"].is_grad_enabled():
        raise TypeError("the tensor requires a gradient: call residua.torch.solve for one, or pass tensor.detach()")


def plain(array: Any) -> Any:
    """Resolves torch's lazy conjugation and rejects gradients: neither protocol can export them."""
    refuse_gradient(array)
    for name in ("detach", "resolve_conj", "resolve_neg"):
        if hasattr(array, name):
            array = getattr(array, name)()
    return array


def package(array: Any) -> str:
    """The package that defines an object's type."""
    return type(array).__module__.partition(".")[0]


class Sparse(NamedTuple):
    """The arrays of a sparse matrix: ``first`` are offsets (csr, csc) or rows (coo)."""

    layout: str
    shape: tuple[int, int]
    first: Any
    second: Any
    values: Any


def sparse(a: Any) -> Sparse | None:
    """The arrays of a sparse matrix of CuPy, torch or JAX on a GPU; None for anything else."""
    kind = package(a)
    found = None
    if kind == "cupyx" and hasattr(a, "format"):
        if a.format not in ("csr", "csc", "coo"):
            a = a.tocsr()
        arrays = (a.row, a.col, a.data) if a.format == "coo" else (a.indptr, a.indices, a.data)
        found = Sparse(a.format, a.shape, *arrays)
    elif kind == "torch" and getattr(a, "is_cuda", False):
        refuse_gradient(a)
        layout = str(a.layout).removeprefix("torch.")
        if layout == "sparse_csr":
            found = Sparse("csr", a.shape, a.crow_indices(), a.col_indices(), a.values())
        elif layout == "sparse_csc":
            found = Sparse("csc", a.shape, a.ccol_indices(), a.row_indices(), a.values())
        elif layout == "sparse_coo":
            places = a._indices()
            found = Sparse("coo", a.shape, places[0], places[1], a._values()) if places.shape[0] == 2 else None
    elif kind in ("jax", "jaxlib") and hasattr(a, "indices") and is_on_gpu(getattr(a, "data", None)):
        if hasattr(a, "indptr") and a.indptr.ndim == 1:
            used = int(a.indptr[-1])
            found = Sparse("csr", a.shape, a.indptr, a.indices[:used], a.data[:used])
        elif not hasattr(a, "indptr") and a.indices.ndim == 2 and a.indices.shape[1] == 2:
            found = Sparse("coo", a.shape, a.indices[:, 0], a.indices[:, 1], a.data)
    if found is None or len(found.shape) != 2 or found.values.ndim != 1:
        return None
    shape = (int(found.shape[0]), int(found.shape[1]))
    return Sparse(found.layout, shape, *(plain(array) for array in found[2:]))


def engine(a: Any, device: str, dtype: Any, keep: bool, settings: dict[str, Any]) -> tuple[Any, ...] | None:
    """A solver for a sparse matrix in GPU memory, with the matrix's shape and type and the number of its GPU.

    None if it is not on the GPU that ``device`` names, has another type than ``dtype``, or "auto"
    finds neither kernels nor a compiler: the matrix is then copied through the host.
    """
    found = None if device == "cpu" else sparse(a)
    if found is None:
        return None
    ordinal = ordinal_of(found.values)
    if device not in ("auto", f"cuda:{ordinal}") and (device, ordinal) != ("cuda", 0):
        return None
    if device == "auto":
        _, gpus, software = _residua.devices()
        if "compiler_missing" in software and not gpus[ordinal]["kernels"]:
            return None
    first, second, values = places = [place(array) for array in found[2:]]
    if values.dtype.name not in VALUES or (dtype is not None and values.dtype != dtype):
        return None
    if not all(each.dtype.name in INDICES for each in (first, second)):
        return None
    if not all(is_packed(each) and each.device[1] == ordinal for each in places):
        return None
    try:
        made = _residua.Engine.on_gpu(
            ordinal, found.layout, found.shape, _lying(first), _lying(second), _lying(values), values.dtype.name, keep,
            settings,
        )  # fmt: skip
    except ValueError:
        if package(a) in ("jax", "jaxlib") and bool((a.indices >= np.array(found.shape)).any()):
            # JAX pads with indices beyond the matrix, which are left out on the host.
            return None
        raise
    finally:
        release(ordinal, found.values)
    return made, found.shape, values.dtype, ordinal


def _lying(found: Place) -> tuple[int, int, int]:
    """Address, elements, and bits of an element."""
    return found.address, math.prod(found.shape), 8 * found.dtype.itemsize


def update(solver: Any, ordinal: int | None, values: Any) -> bool:
    """Gives a solver new values in the memory of its GPU: a sparse matrix, or an array of its values.

    Returns False, without any change, if they are elsewhere or have another type.
    """
    if ordinal is None:
        return False
    found = sparse(values)
    given = values if found is None else found.values
    if not is_on_gpu(given) or getattr(given, "ndim", 0) != 1:
        return False
    given = plain(given)
    where = place(given)
    if where.dtype != solver.dtype or where.device[1] != ordinal or not is_packed(where):
        return False
    indices = [] if found is None else [place(found.first), place(found.second)]
    if not all(each.dtype.name in INDICES and each.device[1] == ordinal and is_packed(each) for each in indices):
        return False
    try:
        if found is None:
            solver._engine.update_gpu(ordinal, _lying(where))
        else:
            first, second = map(_lying, indices)
            solver._engine.update_matrix_gpu(ordinal, found.layout, found.shape, first, second, _lying(where))
    finally:
        release(ordinal, given)
    return True


def to_host(array: Any) -> np.ndarray:
    """Copies an array of CuPy, torch, JAX, or anything that NumPy can read, to the host."""
    if type(array) is np.ndarray:
        return array
    if isinstance(array, np.ndarray):
        if isinstance(array, np.ma.MaskedArray):
            raise TypeError("masked arrays are not supported: fill the masked entries first")
        # A numpy.matrix becomes a plain array of two dimensions.
        return np.asarray(array)
    if issparse(array):
        raise TypeError(
            "b is a sparse matrix, but a dense array is needed: pass b.toarray(), "
            "or use residua.spsolve, which takes a sparse b"
        )
    if package(array) in ("cupy", "cupyx"):
        return array.get()
    if hasattr(array, "cpu") and hasattr(array, "detach"):
        return plain(array).cpu().numpy()
    if hasattr(array, "copy_to_host"):
        return array.copy_to_host()
    if hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
        return np.from_dlpack(array)
    return np.asarray(array)


def back(b: Any, x: np.ndarray) -> Any:
    """x as the same type of array as b, on b's device; an array on the host if that type is not known."""
    if type(b) is np.ndarray:
        return x
    kind = package(b)
    if kind == "torch":
        return sys.modules["torch"].as_tensor(np.ascontiguousarray(x), device=b.device)
    if kind == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(b.device.id):
            return cupy.asarray(x)
    if kind in ("jax", "jaxlib"):
        return sys.modules["jax"].device_put(x, next(iter(b.devices())))
    if kind == "pyarrow" and x.ndim == 1 and x.dtype.kind == "f":
        return sys.modules["pyarrow"].array(x)
    return x
